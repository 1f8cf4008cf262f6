"""Sessions with other parties, told while they run: who is connected, every round, and the size of every message.

The same as ``sfumato collaborate party`` and ``sfumato collaborate simulate``. What goes on is appended to
``parties.jsonl``, ``rounds.jsonl`` and ``transcript.jsonl`` in the task's folder, which the server reads meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.collaborate.session.transcript import Entry, Round, SessionWatch
from sfumato.errors import CollaborationError, InputError, InvalidParameterError
from sfumato.schema import WITHHELD, Role
from sfumato.web.jobs.jobs import Tell

if TYPE_CHECKING:
    from sfumato.table.coding import Table
    from sfumato.table.io.read import ReadOptions

PARTIES_NAME, ROUNDS_NAME, TRANSCRIPT_NAME = "parties.jsonl", "rounds.jsonl", "transcript.jsonl"
_QUARTERS = 4


def take_part(
    folder: Path,
    tell: Tell,
    *,
    config: str,
    plan: Mapping[str, Any],
    project: str | None = None,
    data: str | None = None,
    schema: str = "",
    output: str = "",
    transcript: str = "",
    kept_back: Sequence[str] = (),
    released: Sequence[str] = (),
    force: bool = False,
) -> dict[str, Any]:
    """Take part in a session as one party, from its file and its rows to its release.

    Parameters
    ----------
    config : str
        This party's file.
    plan : mapping
        Settings of :class:`~sfumato.collaborate.plan.Plan`; ``min_privacy_gain`` at least.
    project, data : str or None
        This party's rows: those of a project file, or else of a file by itself.
    schema, output : str
        Shared schema and release; those that the party's file names if empty.
    transcript : str
        File for the record; none if empty.
    kept_back, released : sequence of str
        Columns outside the shared schema that are not released, and those that are released as they are.

    Returns
    -------
    dict
        :meth:`~sfumato.collaborate.session.party.PartyResult.to_dict`, and the name of this party as ``me``.
    """
    from sfumato.collaborate.config import load_party_config
    from sfumato.collaborate.plan import Plan
    from sfumato.collaborate.session.joining import in_shared_roles
    from sfumato.collaborate.session.party import take_part as run_session
    from sfumato.collaborate.session.transcript import Transcript
    from sfumato.collaborate.shared_schema import read_shared_schema

    own = load_party_config(_path(config))
    schema_file = _path(schema) if schema else own.schema
    if schema_file is None:
        hint = "fill in the field, or write schema = … into the party's file"
        raise InvalidParameterError("shared schema", "got none", allowed="given", hint=hint)
    own, shared = replace(own, schema=schema_file), read_shared_schema(schema_file)
    tell.progress(0, 0, "reading this party's rows")
    table, options = _read(project, data)
    beyond = _roles_beyond(table, {*shared.names, shared.target.name}, kept_back, released)
    rows = in_shared_roles(table, shared, beyond)
    chosen = Plan(**{**plan, "drop_incomplete": options.complete_rows_only})
    target = _path(output) if output else own.output
    if target is None and not chosen.dry_run:
        hint = "fill in the field, or write output = … into the party's file"
        raise InvalidParameterError("file of the release", "got none", allowed="given", hint=hint)
    with _recorded(folder, tell, own.roster.names, own.me) as recorder:
        others = ", ".join(peer.name for peer in own.roster.peers)
        tell.progress(0, 0, f"session '{own.session}': waiting for {others} (at most {own.start_timeout:g} s)")
        record = Transcript(_path(transcript) if transcript else None, force=force, watch=recorder)
        found = run_session(own, rows, shared, chosen, output=target, transcript=record, force=force)
    return {**found.to_dict(), "me": own.me}


def simulate(
    folder: Path,
    tell: Tell,
    *,
    project: str,
    plan: Mapping[str, Any],
    parties: int = 3,
    seed: int = 0,
    cuts: str = "",
    output_dir: str = "",
    force: bool = False,
) -> dict[str, Any]:
    """Split a table at random and let every part be a party, with real processes and connections on this machine.

    Parameters
    ----------
    cuts : str
        Cut points of numeric features, a line ``age=30,50,70`` for each.
    output_dir : str
        Folder for all parties' releases, transcripts and rows; nothing is kept if empty.

    Returns
    -------
    dict
        :meth:`~sfumato.collaborate.simulate.simulation.SimulationResult.to_dict`, and the first party's name as ``me``.
    """
    from sfumato.collaborate.plan import Plan
    from sfumato.collaborate.schema_session import check_columns
    from sfumato.collaborate.shared_schema import SharedSchema
    from sfumato.collaborate.simulate.simulation import simulate as run_simulation
    from sfumato.collaborate.simulate.simulation import split_rows

    tell.progress(0, 0, "reading the table")
    table, options = _read(project, None)
    points = _cut_points(cuts)
    check_columns(table, points, table.schema.names(Role.QUASI_IDENTIFIER))
    names = list(split_rows(table.n_rows, parties=parties, seed=seed))
    bounds = {"drop_incomplete": options.complete_rows_only, "max_rows": max(1, table.n_rows)}
    with _recorded(folder, tell, names, names[0]) as recorder:
        tell.progress(0, 0, f"starting {parties} parties, each a process of its own")
        result = run_simulation(
            table,
            Plan(**{**bounds, **plan}),
            parties=parties,
            seed=seed,
            schema=SharedSchema.of_table(table, points),
            output_dir=_path(output_dir) if output_dir else None,
            force=force,
            watch=recorder,
        )
    return {**result.to_dict(), "me": names[0]}


def propose_cuts(folder: Path, tell: Tell, *, project: str) -> dict[str, str]:
    """Give cut points near the quartiles of every numeric feature that needs some, a line for each."""
    from sfumato.collaborate.schema_session import FEW_VALUES, numbers_as_categories
    from sfumato.table.binarize import quantile_cuts

    table, _ = _read(project, None)
    lines = []
    for name in numbers_as_categories(table, {}):
        if table[name].n_distinct > FEW_VALUES:
            found = quantile_cuts(table[name].numbers(), table[name].counts, _QUARTERS)
            lines.append(f"{name}={','.join(repr(cut).removesuffix('.0') for cut in found)}")
    return {"cuts": "\n".join(lines)}


class _Recorder(SessionWatch):
    """Appends what goes on to files; one that cannot be written changes nothing of the session."""

    def __init__(self, folder: Path, tell: Tell) -> None:
        self._folder = folder
        self._tell = tell

    def connected(self, peer: str) -> None:
        self.party_is(peer, "connected")
        self._tell.log(f"connected with {peer}")

    def noted(self, entry: Entry) -> None:
        self._append(TRANSCRIPT_NAME, asdict(entry))

    def ended(self, party: str, *, went_well: bool) -> None:
        self.party_is(party, "done" if went_well else "stopped")

    def round_over(self, done: Round) -> None:
        self._append(ROUNDS_NAME, asdict(done))
        self._tell.progress(done.number, 0, f"round {done.number}: {done.stage}")

    def party_is(self, name: str, status: str, stage: str = "") -> None:
        self._append(PARTIES_NAME, {"party": name, "status": status, "stage": stage})

    def _append(self, name: str, line: Mapping[str, object]) -> None:
        with suppress(OSError), (self._folder / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


@contextmanager
def _recorded(folder: Path, tell: Tell, parties: Sequence[str], me: str) -> Iterator[_Recorder]:
    """Note where every party stands: at first all others are waited for, and in the end all are done, or one failed."""
    recorder = _Recorder(folder, tell)
    for name in parties:
        recorder.party_is(name, "here" if name == me else "waiting")
    try:
        yield recorder
    except CollaborationError as exc:
        for name in exc.line or (exc.party,):
            recorder.party_is(name, "cut off" if exc.line else "failed", exc.stage)
        raise
    for name in parties:
        recorder.party_is(name, "done")


def _read(project: str | None, data: str | None) -> tuple[Table, ReadOptions]:
    from sfumato.collaborate.session.joining import plain_table
    from sfumato.project.file import load_project
    from sfumato.table.io.read import ReadOptions, read_table

    if data:
        return plain_table(read_table(_path(data))), ReadOptions()
    if project:
        described = load_project(project)
        return plain_table(described.read()), described.options
    raise InvalidParameterError("data", "got none", allowed="given", hint="open a table first, or name a file")


def _roles_beyond(table: Table, shared: set[str], kept_back: Sequence[str], released: Sequence[str]) -> dict[str, Role]:
    """Roles of columns outside the shared schema: those that were named here, or else the project's own."""
    own = {*WITHHELD, Role.SENSITIVE, Role.OTHER}
    known = {column.name: column.role for column in table.schema if column.role in own and column.name not in shared}
    return known | dict.fromkeys(kept_back, Role.IDENTIFIER) | dict.fromkeys(released, Role.OTHER)


def _cut_points(text: str) -> dict[str, list[float]]:
    found = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, listed = line.rpartition("=")
        try:
            found[name.strip()] = [float(part) for part in listed.split(",") if part.strip()]
        except ValueError:
            found[""] = []
        if "" in found:
            raise InvalidParameterError("cut points", f"got {line!r}", allowed="lines such as age=30,50,70")
    return found


def _path(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise InputError("names a user that this machine does not know", path=text) from None
