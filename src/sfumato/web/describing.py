"""The open table as the project file describes it now: what was found when it was read, joined with today's roles."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sfumato.schema import WITHHELD, Kind, Role, shows_values
from sfumato.table.repeating import IdentifierCounts, counted_identifiers, repeating_identifiers
from sfumato.web.inputs import DATA, PROJECT_FILE, changed_since, stamp_of
from sfumato.web.jobs.jobs import SECONDS_TO_READ, Job, TaskError
from sfumato.web.state import Page


@dataclass(frozen=True)
class ColumnNow:
    """One column for the page.

    Parameters
    ----------
    number : int
        From 1, in the order of the table; part of the column's address.
    role, kind : str
        As the project file says now.
    hierarchy : str or None
        Hierarchy file, relative to the project file; without one mechanisms build their own.
    is_listed : bool
        Whether the project file names it; other columns share one role.
    is_feature : bool
        Feature of a sparse 0/1 table: always a quasi-identifier.
    uniqueness : float
        Share of rows with a value that no other row has.
    withheld : str
        Why the column may name people, so that it is released only when confirmed; empty where it does not.
    is_confirmed : bool
        Whether the project file says that it may be released all the same.
    labels, counts : sequence
        Bars of the histogram. The labels are cell values.
    format : str
        In which its texts are read, where they are no plain numbers and no ISO dates; else empty.
    doubt : str
        What in the format is a guess that nobody has confirmed, in words.
    preparation : mapping
        What is done to it first, as the project file writes it; empty for nothing.
    prepared : str
        The same in words.
    """

    number: int
    name: str
    role: str
    kind: str
    hierarchy: str | None
    guessed_role: str
    reason: str
    n_distinct: int
    n_missing: int
    uniqueness: float
    withheld: str
    is_confirmed: bool
    is_listed: bool
    is_feature: bool
    labels: Sequence[str]
    counts: Sequence[int]
    format: str = ""
    doubt: str = ""
    preparation: Mapping[str, Any] = field(default_factory=dict)
    prepared: str = ""

    @property
    def is_withheld_released(self) -> bool:
        """Whether the column may name people and has a role with which it would be released."""
        is_replaced = "drop" in self.preparation or "pseudonym" in self.preparation
        return bool(self.withheld) and not is_replaced and shows_values(Role(self.role), Kind(self.kind))

    @property
    def most_in_one_bar(self) -> int:
        """Rows in the highest bar of the histogram."""
        return max(self.counts, default=0)


@dataclass(frozen=True, eq=False, repr=False)
class Described:
    """The open table and its columns."""

    n_rows: int
    is_binary: bool
    columns: Sequence[ColumnNow]

    def column(self, number: int) -> ColumnNow | None:
        """Column by its number, from 1."""
        return self.columns[number - 1] if 0 < number <= len(self.columns) else None

    def names(self, *roles: str) -> list[str]:
        """Names of the columns with one of these roles."""
        return [column.name for column in self.columns if Role(column.role).is_one_of(map(Role, roles))]

    @cached_property
    def n_by_role(self) -> Mapping[str, int]:
        """Columns of each role that occurs, in the order of the roles."""
        counted = Counter(column.role for column in self.columns)
        return {role: counted[role] for role in Role if counted[role]}

    @property
    def target(self) -> str | None:
        """Name of the target column."""
        return next(iter(self.names(Role.TARGET)), None)

    @cached_property
    def released_identifiers(self) -> Sequence[ColumnNow]:
        """Columns that look like identifiers and have another role, so that mechanisms may release them."""
        looks = (c for c in self.columns if c.guessed_role in WITHHELD and c.role not in WITHHELD)
        return [c for c in looks if "drop" not in c.preparation]

    @cached_property
    def guessed_formats(self) -> Sequence[ColumnNow]:
        """Columns whose texts are read in a format that is a guess, which nobody has confirmed."""
        return [c for c in self.columns if c.doubt]

    @cached_property
    def unconfirmed(self) -> Sequence[ColumnNow]:
        """Columns that may name people, would be released, and nobody has confirmed: a release is refused."""
        return [c for c in self.columns if c.is_withheld_released and not c.is_confirmed]

    @cached_property
    def repeating(self) -> Sequence[IdentifierCounts]:
        """Identifiers that repeat where no column tells persons apart: rows are counted then, not people."""
        facts = ((c.name, c.role, c.n_distinct, c.n_missing) for c in self.columns)
        return repeating_identifiers(counted_identifiers(facts, self.n_rows))


_Stamp = tuple[str, str, str | None]
_KNOWN: weakref.WeakKeyDictionary[Page, tuple[_Stamp, Described]] = weakref.WeakKeyDictionary()
_READ_AGAIN: weakref.WeakKeyDictionary[Page, tuple[str, dict[str, Mapping[str, Any]]]] = weakref.WeakKeyDictionary()
"""By page the job that opened the table, and facts of columns that were read again in another way since."""


async def described(page: Page) -> Described:
    """Describe the open table; the project file is read again only if it changed.

    Raises
    ------
    TaskError
        If no table is open, or the project file can no longer be read.
    """
    job, project = page.job("open"), page.state.project
    if job is None or job.status != "done" or project is None:
        message = "no table is open"
        raise TaskError(message, hint="open one first")
    known = _KNOWN.get(page)
    if known is not None and known[0] == (job.id, str(project), stamp_of(PROJECT_FILE, project)):
        return known[1]
    now = await page.jobs.call("columns.roles", project=str(project))
    joined = _joined(_opened(page, job), now)
    _KNOWN[page] = ((job.id, str(project), now["sha256"]), joined)
    return joined


async def change_and_read(page: Page, task: str, column: ColumnNow, **arguments: Any) -> None:
    """Let a task change how a column is read or prepared; it gives back what it then found in the column.

    Raises
    ------
    TaskError
        If the table does not fit; nothing is changed then.
    """
    job, project = page.job("open"), page.state.project
    found = await page.jobs.call(task, seconds=SECONDS_TO_READ, project=str(project), name=column.name, **arguments)
    if job is not None:
        opened, known = _READ_AGAIN.get(page, ("", {}))
        facts = {**found["facts"], "number": column.number}
        _READ_AGAIN[page] = (job.id, {**(known if opened == job.id else {}), column.name: facts})
        _KNOWN.pop(page, None)


def _opened(page: Page, job: Job) -> dict[str, Any]:
    """Give what was found when the table was opened, with columns that were read again since."""
    found, (opened, again) = job.result(), _READ_AGAIN.get(page, ("", {}))
    if opened != job.id:
        return found
    return {**found, "columns": [again.get(facts["name"], facts) for facts in found["columns"]]}


def is_data_changed(page: Page) -> bool:
    """Whether the data file is another one than when it was opened, so that what was found in it no longer holds."""
    job = page.job("open")
    return job is not None and job.status == "done" and DATA in changed_since(job.result()["inputs"], None)


async def give_role(page: Page, role: str, columns: Sequence[ColumnNow]) -> None:
    """Write the role of some columns into the project file; a new target takes the role from the former one.

    Raises
    ------
    TaskError
        If the role cannot be given.
    """
    job, project = page.job("open"), page.state.project
    names = [column.name for column in columns]
    kinds = {column.name: column.kind for column in columns if not column.is_listed}
    now = await page.jobs.call("columns.set_roles", project=str(project), names=names, role=role, kinds=kinds)
    if job is not None:
        _KNOWN[page] = ((job.id, str(project), now["sha256"]), _joined(_opened(page, job), now))


async def read_changed_data(page: Page) -> None:
    """Take the data file as it is now, if it still fits its description, and open it again.

    Raises
    ------
    TaskError
        If no table is open, or the file no longer fits; everything then stays as it was.
    """
    project = page.state.project
    if project is None:
        message = "no table is open"
        raise TaskError(message, hint="open one first")
    with page.only_one("open") as is_first:
        if not is_first:
            return
        await page.jobs.call("columns.use_changed_data", seconds=SECONDS_TO_READ, project=str(project))
        if page.state.project == project:  # else another table was opened meanwhile
            title = f"Reading {page.state.get('data_name')}"
            job = page.jobs.start("opening.open_path", title=title, project=str(project))
            page.started("open", job)


def _joined(opened: Mapping[str, Any], now: Mapping[str, Any]) -> Described:
    listed, default = now["columns"], now["default_role"]
    columns = [_column(facts, listed.get(facts["name"], {}), default) for facts in opened["columns"]]
    return Described(opened["n_rows"], opened["is_binary"], columns)


def _column(facts: Mapping[str, Any], listed: Mapping[str, Any], default_role: str | None) -> ColumnNow:
    read_as = facts.get("format", "")
    format_now = listed.get("format") or ("" if listed else read_as)
    return ColumnNow(
        number=facts["number"],
        name=facts["name"],
        role=listed.get("role") or default_role or facts["guessed_role"],
        kind=listed.get("kind") or facts["kind"],
        hierarchy=listed.get("hierarchy"),
        guessed_role=facts["guessed_role"],
        reason=facts["reason"],
        n_distinct=facts["n_distinct"],
        n_missing=facts["n_missing"],
        uniqueness=facts["uniqueness"],
        withheld=facts["withheld"],
        is_confirmed=bool(listed.get("confirmed")),
        is_listed=bool(listed),
        is_feature=facts["is_feature"],
        labels=facts["histogram"]["labels"],
        counts=facts["histogram"]["counts"],
        format=format_now,
        doubt=facts.get("doubt", "") if format_now and format_now == read_as else "",
        preparation=listed.get("preparation") or {},
        prepared=listed.get("prepared", ""),
    )
