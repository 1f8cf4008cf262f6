"""Parties in lockstep threads that add plain numbers: no secrecy, only the flow."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.collaborate.transport.channel import WHOLE_WORDS
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

SECONDS = 20


class Meeting:
    """Where the parties put their numbers; remembers every total that they learned."""

    def __init__(self, n_parties: int) -> None:
        self.n_parties = n_parties
        self.barrier = threading.Barrier(n_parties)
        self.put: dict[int, Any] = {}
        self.seen: list[tuple[str, int, np.ndarray]] = []

    def run(self, programs: list[Callable[[PlainSum], Any]]) -> list[Any]:
        """Let every party run its program; exceptions are results."""
        with ThreadPoolExecutor(self.n_parties) as pool:
            done = [pool.submit(self._one, number, program) for number, program in enumerate(programs)]
        return [each.result() for each in done]

    def _one(self, number: int, program: Callable[[PlainSum], Any]) -> Any:
        try:
            return program(PlainSum(self, number))
        except Exception as exc:
            return exc


class PlainSum:
    """One party's end of the sum."""

    def __init__(self, meeting: Meeting, number: int) -> None:
        self.meeting = meeting
        self.number = number

    @property
    def n_parties(self) -> int:
        return self.meeting.n_parties

    def total(self, own: np.ndarray, *, stage: str, modulus: int = WHOLE_WORDS) -> np.ndarray:
        meeting = self.meeting
        assert own.dtype == np.uint64
        assert own.ndim == 1
        meeting.put[self.number] = (stage, modulus, own)
        meeting.barrier.wait(SECONDS)
        asked = {(stage, modulus, len(own)) for stage, modulus, own in meeting.put.values()}
        assert len(asked) == 1, asked
        numbers = zip(*(own.tolist() for _, _, own in meeting.put.values()), strict=True)
        added = np.array([sum(column) % modulus for column in numbers], dtype=np.uint64)
        if self.number == 0:
            meeting.seen.append((stage, modulus, added))
        meeting.barrier.wait(SECONDS)
        return added


def run_together(programs: list[Callable[[PlainSum], Any]]) -> list[Any]:
    return Meeting(len(programs)).run(programs)


def table_of(columns: dict[str, list[Any]], target: str = "y", numeric: tuple[str, ...] = (), **roles: Role) -> Table:
    """Code Python lists; columns are quasi-identifiers unless a role is given."""
    described = [
        Column(
            name,
            Role.TARGET if name == target else roles.get(name, Role.QUASI_IDENTIFIER),
            Kind.NUMERIC if name in numeric else Kind.CATEGORICAL,
        )
        for name in columns
    ]
    return Table.from_arrow(pa.table({name: pa.array(cells) for name, cells in columns.items()}), Schema.of(described))
