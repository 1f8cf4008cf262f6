"""All parties of a session on this machine: real processes, keys and connections over loopback, one table split up."""

from __future__ import annotations

import json
import random
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.atomic import PendingFile, alone_in, appear_together, check_writable, explained_writing
from sfumato.collaborate.config import party_config_text
from sfumato.collaborate.plan import Plan
from sfumato.collaborate.roster import Peer
from sfumato.collaborate.scores import gains_of_removal
from sfumato.collaborate.session.joining import check_outputs
from sfumato.collaborate.session.session import MIN_PARTIES
from sfumato.collaborate.session.transcript import Entry, Round, SessionWatch
from sfumato.collaborate.shared_schema import SharedSchema, write_shared_schema
from sfumato.collaborate.simulate import start as simulated_start
from sfumato.collaborate.simulate.leaving import FOLDER_PREFIX
from sfumato.collaborate.simulate.parties import PartyOrder, write_orders
from sfumato.collaborate.transport.keys import AUTHORITY_NAME, make_keys
from sfumato.errors import (
    CollaborationError,
    InvalidParameterError,
    OutputError,
    PrivacyNotAchievableError,
    SfumatoError,
)
from sfumato.processes import kill_group, one_thread_each
from sfumato.table.coding import Table
from sfumato.table.io.write import write_table

# Processes, folders and ports of a simulation, and how all of them go away again.


_PORTS = range(20_000, 32_768)  # below those that systems give to outgoing connections


@contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder that only this user can read, and remove it at the end."""
    folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def pending_copies(copies: Mapping[Path, Path], *, force: bool) -> Iterator[Callable[[], list[str]]]:
    """Copy files into ones without a name, and hand out what names them; it tells what could not be named, and why.

    Leaving without calling what was handed out leaves no copy.
    """
    with ExitStack() as stack:
        pending = {source: stack.enter_context(PendingFile(target)) for source, target in copies.items()}
        for source, copy in pending.items():
            with explained_writing(copy.target), source.open("rb") as content:
                shutil.copyfileobj(content, copy.file)
            copy.complete()

        def keep() -> list[str]:
            problems = []
            for copy in pending.values():
                try:
                    with alone_in(copy.target.parent):
                        appear_together([copy], [copy.target] if force else [])
                except OutputError as exc:
                    problems.append(str(exc))
            return problems

        yield keep


class PartyProcesses:
    """Program that runs the parties; it and they end when this is left, or when this process ends."""

    def __init__(self, folder: Path, watch: SessionWatch | None = None) -> None:
        self._watch = watch or SessionWatch()
        command = [sys.executable, "-m", simulated_start.__name__, str(folder)]
        with one_thread_each():  # libraries must not have threads of their own when the program forks
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )

    def run(self) -> None:
        """Let the parties begin, and wait until all have ended."""
        process = self._process
        if process.stdin is None or process.stdout is None:
            raise AssertionError
        with suppress(BrokenPipeError):
            process.stdin.write(b"\n")
            process.stdin.flush()
        for line in process.stdout:
            self._hear(json.loads(line))
        process.wait()

    def _hear(self, event: dict[str, Any]) -> None:
        match event:
            case {"round": done}:
                self._watch.round_over(Round(**done))
            case {"entry": entry}:
                self._watch.noted(Entry(**entry))
            case {"connected": peer}:
                self._watch.connected(peer)
            case {"ended": party, "went_well": went_well}:
                self._watch.ended(party, went_well=went_well)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        if self._process.poll() != 0:  # else all of them have ended
            kill_group(self._process.pid)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
        self._process.wait()


def free_ports(n_ports: int) -> list[int]:
    """Find ports of this machine that nobody listens on."""
    with ExitStack() as sockets:
        found: list[int] = []
        for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
            candidate = sockets.enter_context(socket.socket())
            with suppress(OSError):
                candidate.bind(("127.0.0.1", port))
                found.append(port)
            if len(found) == n_ports:
                return found
    raise CollaborationError("there are too few free ports", party="this machine", stage="start")


Rows = NDArray[np.intp]

MOST_PARTIES = 60
_RELEASE_END, _TRANSCRIPT_END, _ORIGINAL_END = ".csv", ".transcript.jsonl", ".original.parquet"
_ENDS = (_RELEASE_END, f"{_RELEASE_END}.manifest.json", _TRANSCRIPT_END, _ORIGINAL_END)


class SimulatedPartyError(SfumatoError):
    """A party of a simulation failed by itself; carries its words and its exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        self.exit_code = exit_code  # type: ignore[misc]  # of the party's error, not of the class
        super().__init__(message)


@dataclass(frozen=True, kw_only=True)
class SimulatedSession(ABC):
    """What all parties came to, side by side.

    Parameters
    ----------
    parties : mapping of str to mapping
        What each party ended with.
    warnings : tuple of str
        What could not be kept beside the releases.
    cpu_seconds : float
        Processor time of all parties together.
    seconds : float
    """

    n_rows: dict[str, int]
    parties: dict[str, dict[str, Any]]
    warnings: tuple[str, ...]
    cpu_seconds: float
    seconds: float

    @abstractmethod
    def figures(self) -> dict[str, Any]:
        """Give what the parties made, with their numbers of rows, as plain data."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            **self.figures(),
            "parties": self.parties,
            "warnings": list(self.warnings),
            "cpu_seconds": self.cpu_seconds,
            "seconds": self.seconds,
        }


@dataclass(frozen=True, kw_only=True)
class SimulationResult(SimulatedSession):
    """What all parties came to that removed features together.

    Parameters
    ----------
    removed : tuple of str
        In the order of removal.
    scores : tuple of mapping
        Table I of the paper: every feature's utility, privacy and trade-off. Empty with selection-only.
    gains : mapping of str to tuple
        Table II: gain of each party after each removal, which in a real session only the party itself knows.
    whole_table_gains : tuple of float
        The same for all rows together.
    """

    removed: tuple[str, ...]
    scores: tuple[dict[str, Any], ...]
    gains: dict[str, tuple[float, ...]]
    whole_table_gains: tuple[float, ...]

    def figures(self) -> dict[str, Any]:
        """Tables I and II of the paper."""
        order = {name: place for place, name in enumerate(self.removed, start=1)}
        return {
            "removed": list(self.removed),
            "table_1": [{**score, "removed_as": order.get(score["name"])} for score in self.scores],
            "table_2": {name: list(gains) for name, gains in self.gains.items()},
            "whole_table_gains": list(self.whole_table_gains),
            "n_rows": self.n_rows,
        }


def split_rows(n_rows: int, *, parties: int, sizes: Sequence[int] | None = None, seed: int = 0) -> dict[str, Rows]:
    """Deal out rows at random: parts of the given sizes, or of nearly the same.

    Sizes that add up to less than the table leave rows out, drawn at random as well.

    Examples
    --------
    >>> {name: len(rows) for name, rows in split_rows(10, parties=3).items()}
    {'party-1': 4, 'party-2': 3, 'party-3': 3}
    >>> {name: len(rows) for name, rows in split_rows(10, parties=3, sizes=[2, 3, 1]).items()}
    {'party-1': 2, 'party-2': 3, 'party-3': 1}
    """
    if seed < 0:
        raise InvalidParameterError("seed", f"got {seed}", allowed="0 or above")
    given = list(sizes) if sizes is not None else [(n_rows + i) // parties for i in range(parties)][::-1]
    if not MIN_PARTIES <= parties <= MOST_PARTIES:
        raise InvalidParameterError("parties", f"got {parties}", allowed=f"from {MIN_PARTIES} to {MOST_PARTIES}")
    if n_rows < parties:
        allowed = f"one of at least {parties} rows, so that each party has one"
        raise InvalidParameterError("the table", f"got {n_rows:,}", allowed=allowed)
    if len(given) != parties or min(given) < 1 or sum(given) > n_rows:
        problem = f"got {len(given)} that add up to {sum(given):,}"
        allowed = f"{parties} numbers from 1 that add up to at most the {n_rows:,} rows"
        raise InvalidParameterError("sizes", problem, allowed=allowed)
    order = np.random.default_rng(seed).permutation(n_rows)
    width = len(str(parties))
    parts = np.split(order, np.cumsum(given))[:parties]
    return {f"party-{i:0{width}}": np.sort(rows) for i, rows in enumerate(parts, start=1)}


def simulate(
    table: Table,
    plan: Plan,
    *,
    parties: int = 3,
    sizes: Sequence[int] | None = None,
    seed: int = 0,
    schema: SharedSchema | None = None,
    output_dir: Path | None = None,
    force: bool = False,
    watch: SessionWatch | None = None,
) -> SimulationResult:
    """Split a table among parties and let each of them run a session as a process of its own.

    Everything private, the parties' keys included, lies in a folder that only this user can read and that is removed
    at the end, whatever the end is.

    Parameters
    ----------
    table : Table
        With a target; its quasi-identifiers are the features.
    sizes : sequence of int or None
        Rows of each party; rows beyond their sum are left out. ``None`` deals out all, nearly evenly.
    schema : SharedSchema or None
        Described from the table if None.
    output_dir : Path or None
        Folder for the releases and transcripts of all parties and, so that the releases can be audited again, for
        their parts of the table (``party-1.original.parquet``); made if it is not there. Without it nothing is kept.
    watch : SessionWatch or None
        Told what the first party hears of its session, and which parties have ended.

    Raises
    ------
    PrivacyNotAchievableError
        If removing half of the features is not enough for everybody.
    CollaborationError
        If a party failed in the session.
    SimulatedPartyError
        If a party failed by itself.
    """
    shared = schema or SharedSchema.of_table(table)
    parts = split_rows(table.n_rows, parties=parties, sizes=sizes, seed=seed)
    ran = run_all(table, plan, shared, parts, output_dir=output_dir, force=force, watch=watch)
    found = ran["parties"]
    first = next(iter(found.values()))
    counts = dict(zip(shared.names, shared.matrices(shared.counts(dealt_rows(table, parts))), strict=True))
    return SimulationResult(
        removed=tuple(first["removed"]),
        scores=tuple(first["scores"]),
        gains={name: tuple(result["own_gains"]) for name, result in found.items()},
        whole_table_gains=gains_of_removal(first["removed"], counts),
        **ran,
    )


def dealt_rows(table: Table, parts: Mapping[str, Rows]) -> Table:
    """Rows of all parties, in one place."""
    return table.take(np.sort(np.concatenate(list(parts.values()))))


def run_all(
    table: Table,
    plan: Plan,
    schema: SharedSchema,
    parts: Mapping[str, Rows],
    *,
    hierarchies: Mapping[str, Path] | None = None,
    output_dir: Path | None = None,
    force: bool = False,
    watch: SessionWatch | None = None,
) -> dict[str, Any]:
    """Let each part of a table be a party in a process of its own; gives the entries of :class:`SimulatedSession`."""
    plan.check_group(len(parts), sum(map(len, parts.values())))
    if output_dir is None:
        plan = replace(plan, dry_run=True)
    else:
        _check_folder(output_dir, parts, table, force)
    started, cpu_before = time.monotonic(), _cpu_of_children()
    with private_folder() as folder, PartyProcesses(folder, watch) as processes:
        orders = _prepared(folder, table, schema, plan, parts, output_dir, force, hierarchies or {})
        kept = {} if plan.dry_run or not output_dir else {Path(o.data): output_dir / Path(o.data).name for o in orders}
        with pending_copies(kept, force=force) as keep:
            processes.run()
            found = _answers(orders)
            problems = keep()
    return {
        "n_rows": {name: len(rows) for name, rows in parts.items()},
        "parties": found,
        "warnings": (*(text for result in found.values() for text in result["warnings"]), *problems),
        "cpu_seconds": round(_cpu_of_children() - cpu_before, 3),
        "seconds": round(time.monotonic() - started, 3),
    }


def _check_folder(folder: Path, names: Iterable[str], table: Table, force: bool) -> None:
    """Make the folder, and find out whether all that goes into it can be written there."""
    with explained_writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    paths = {f"file '{name}{end}' of the simulation": folder / f"{name}{end}" for name in names for end in _ENDS}
    for path in paths.values():
        check_writable(path, force=force)
    check_outputs(paths, {"data": Path(table.source.name)} if table.source else {})


def _prepared(
    folder: Path,
    table: Table,
    schema: SharedSchema,
    plan: Plan,
    parts: Mapping[str, Rows],
    output_dir: Path | None,
    force: bool,
    hierarchies: Mapping[str, Path],
) -> list[PartyOrder]:
    """Write keys, files and rows of all parties, and what they are to do."""
    keys = make_keys(folder, parts)
    ports = free_ports(len(parts))
    peers = [Peer(name, "127.0.0.1", port, keys[name].certificate) for name, port in zip(parts, ports, strict=True)]
    write_shared_schema(schema, folder / "schema.json")
    shared = {*schema.names, schema.target.name}
    orders: list[PartyOrder] = []
    for name, rows in parts.items():
        config, data = folder / f"{name}.toml", folder / f"{name}{_ORIGINAL_END}"
        ca = keys[AUTHORITY_NAME].certificate
        config.write_text(party_config_text(name, "simulation", peers, key=keys[name].key, ca=ca), encoding="utf-8")
        with data.open("wb") as file:
            write_table(table.take(rows), file, "parquet")
        order = PartyOrder(
            name=name,
            config=str(config),
            data=str(data),
            schema=str(folder / "schema.json"),
            result=str(folder / f"{name}.json"),
            plan=plan.to_dict(),
            roles={column.name: str(column.role) for column in table.schema if column.name not in shared},
            missing=list(table.schema.missing),
            output=str(output_dir / f"{name}{_RELEASE_END}") if output_dir else None,
            transcript=str(output_dir / f"{name}{_TRANSCRIPT_END}") if output_dir else None,
            force=force,
            says_progress=not orders,
            hierarchies={column: str(path.absolute()) for column, path in hierarchies.items()},
        )
        orders.append(order)
    write_orders(folder, orders)
    return orders


def _answers(orders: Sequence[PartyOrder]) -> dict[str, dict[str, Any]]:
    answers = {order.name: _answer(order) for order in orders}
    failed = [answer for answer in answers.values() if "error" in answer]
    if failed:
        raise _as_error(min(failed, key=lambda answer: bool(answer.get("party"))))  # first who failed by itself
    return {name: answer["result"] for name, answer in answers.items()}


def _answer(order: PartyOrder) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(Path(order.result).read_text(encoding="utf-8"))
    except FileNotFoundError:
        fields = {"problem": "ended without a result", "party": order.name, "stage": "simulation", "message": ""}
        return {"error": "CollaborationError", **fields}
    return found


def _as_error(answer: Mapping[str, Any]) -> SfumatoError:
    """Failure of a party as an error of the simulation: the same words and the same exit code."""
    hint = answer["message"].partition(" Hint: ")[2]
    if answer["error"] == "CollaborationError":
        line, may_be_published = answer.get("line"), answer.get("may_be_published", False)
        return CollaborationError(
            answer["problem"],
            party=answer["party"],
            stage=answer["stage"],
            hint=hint,
            line=(line[0], line[1]) if line else None,
            may_be_published=may_be_published,
        )
    if answer["error"] == "PrivacyNotAchievableError":
        return PrivacyNotAchievableError(answer["guarantee"], best_level=answer["best_level"], hint=hint)
    return SimulatedPartyError(answer["message"], answer["exit_code"])


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
