"""Groups that are found on a sample of a large file's rows, where its distinct rows do not fit, and counted on all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.contract import Progress, Release
from sfumato.counting.cell_limits import TooManyCellsError
from sfumato.large.cells import CellMechanism, propose_cells
from sfumato.large.memory import LEAST_BYTES, Memory, give_back
from sfumato.large.proposal import (
    Block,
    Proposal,
    names_but_identifiers,
    telling,
    with_all_columns,
    with_measured_levels,
)
from sfumato.schema import Schema
from sfumato.table.coding import Table
from sfumato.table.large import LargeTable, Told

SAMPLE_ROWS = 500_000
"""Rows of a sample; fewer where these do not fit."""
SEED = 20_261_116

Codes = NDArray[np.int32]
Pass = Callable[[str], Iterable[Mapping[str, Any]]]
"""Starts a pass over all rows in blocks of codes; takes what is to be told of its rows."""


class Groups(Protocol):
    """Groups of rows, known by a rule."""

    def groups_of(self, block: Mapping[str, Any]) -> Codes:
        """Group of every row of a block."""
        ...


class FittedMechanism(CellMechanism, Protocol):
    """A mechanism that finds its groups on distinct rows or, where these are too many, on a sample of the rows.

    This is what ``needs = Needs.COUNTS_OR_SAMPLE`` asks of it.
    """

    def release_by_sample(
        self, whole: Table, sample: Mapping[str, Codes], blocks: Pass, seed: int, *, progress: Progress | None = None
    ) -> tuple[Release, Groups]:
        """Release groups, found on a sample and counted on all rows; the release's table holds the groups."""
        ...


@dataclass(frozen=True, repr=False, eq=False)
class FittedProposal(Proposal):
    """Rows that are released as the groups that they belong to; the release's table holds those, with their sizes."""

    _groups: Groups
    _recoded: tuple[str, ...]

    @property
    def schema(self) -> Schema:
        """Description of the columns that are written."""
        return self.original.schema

    def columns(self) -> dict[str, pa.Array]:
        """Values that the codes of the blocks stand for."""
        outline = self.original.outline
        names = names_but_identifiers(outline.schema)
        return {n: (self.released[n] if n in self._recoded else outline[n]).values for n in names}

    def blocks(self, told: Told | None = None) -> Iterator[Block]:
        """Released rows, block by block, in the order of the file."""
        names = names_but_identifiers(self.original.schema)
        cells = {name: self.released[name].codes for name in self._recoded}
        for block in self.original.blocks(names, told=told):
            groups = self._groups.groups_of(block)
            yield {name: cells[name][groups] if name in cells else block[name] for name in names}


def propose_fitted(
    original: LargeTable, mechanism: FittedMechanism, memory: Memory, progress: Progress | None
) -> Proposal:
    """Let a mechanism group the distinct rows of a large file or, if these do not fit, a sample of its rows.

    With a sample the manifest states on how many rows the groups were found, out of how many, and the seed. What is
    promised was counted on all rows all the same.

    Raises
    ------
    SchemaError
        If there is no quasi-identifier, or a column has too many distinct values.
    PrivacyNotAchievableError
        If the mechanism cannot keep its promise.
    """
    names = mechanism.counted_columns(original.schema)
    for_rows = Memory((3 * memory.n_bytes + LEAST_BYTES) // 4)  # the rest is for the search, which sorts by each column
    try:
        return propose_cells(original, mechanism, for_rows, progress)
    except TooManyCellsError:
        give_back()
    n_sampled = sample_size(for_rows, len(names))
    sample = drawn_rows(original, names, n_sampled, telling(progress, original.n_rows, "rows drawn from"))

    def blocks(what: str) -> Iterator[Block]:
        give_back()
        return original.blocks(names, told=telling(progress, original.n_rows, what))

    whole = original.outline.keep(names)
    release, groups = mechanism.release_by_sample(whole, sample, blocks, SEED, progress=progress)
    give_back()
    recoded = tuple(entry["column"] for entry in release.manifest.recodings)
    completed = with_all_columns(with_measured_levels(release), original.schema)
    return FittedProposal(original, completed, groups, recoded)


def sample_size(memory: Memory, n_columns: int) -> int:
    """Rows that are drawn: as many as fit, up to a limit."""
    return min(SAMPLE_ROWS, memory.most_cells(n_columns))


def drawn_rows(original: LargeTable, names: Sequence[str], n_drawn: int, told: Told | None = None) -> dict[str, Codes]:
    """Draw rows without replacement in one pass, each set of so many rows as likely as any other.

    Every row gets a random number, the same ones whatever the blocks, and those with the smallest are taken, in the
    order of the file.
    """
    random = np.random.default_rng(SEED)
    kept: list[Codes] = [np.zeros(0, dtype=np.int32) for _ in names]
    lots = np.zeros(0)
    for block in original.blocks(names, told=told):
        new = random.random(len(block[names[0]]))
        is_low = np.flatnonzero(new <= (lots.max() if len(lots) == n_drawn else 1.0))
        lots = np.concatenate([lots, new[is_low]])
        kept = [np.concatenate([own, np.asarray(block[n])[is_low]]) for own, n in zip(kept, names, strict=True)]
        if len(lots) > n_drawn:
            lowest = np.sort(np.argpartition(lots, n_drawn - 1)[:n_drawn])
            lots, kept = lots[lowest], [own[lowest] for own in kept]
    return dict(zip(names, kept, strict=True))
