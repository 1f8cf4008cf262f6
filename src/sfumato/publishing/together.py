"""A new release together with those in the project's ledger: checked before it is published, kept afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sfumato.audit.claims import read_claims
from sfumato.audit.together.appearances import (
    NamedRows,
    Promised,
    are_same,
    judged_together,
    n_in_common,
    named_rows,
)
from sfumato.audit.together.levels import Shortfall, Together, total_epsilon
from sfumato.errors import InputError, PrivacyNotAchievableError
from sfumato.manifest import AnyTable, Manifest
from sfumato.mechanisms.base import Mechanism, Release
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.publishing.ledger import Entry, Ledger, levels_of
from sfumato.publishing.out_of_core.proposal import Proposal
from sfumato.publishing.out_of_core.whose_rows import check_fits, named_rows_away
from sfumato.publishing.repair import (
    ANEW,
    ONCE,
    at_earlier_levels,
    earlier_releases,
    is_repaired_by_levels,
    shown_and_sensitive,
)
from sfumato.rows.memory_limit import Memory
from sfumato.table.coding import Table

LedgerUse = Literal["check", "repair", "off"]
"""What a project's releases do with its ledger: be checked, be made so that they pass, or leave it alone."""


@dataclass(frozen=True, eq=False)
class Recording:
    """A release that was checked with the ledger, to be kept there when it is published.

    Parameters
    ----------
    lines : tuple of str
        What the check found, for people: counts, no values.
    """

    ledger: Ledger
    rows: NamedRows | None
    person: str | None
    checked: tuple[int, ...]
    lines: tuple[str, ...]

    def __call__(self, table: Path, manifest: Manifest) -> AbstractContextManager[Any]:
        """Keep the release whose bytes are at ``table`` while it gets its name."""
        rows = self.rows
        if rows is not None and not self.checked:
            rows = self.ledger.named(rows)  # not before: only a first release that is published may make a key
        return self.ledger.recorded(table, manifest, rows, self.person, checked=self.checked)


@dataclass(frozen=True, eq=False)
class NotRecorded:
    """A release that leaves the ledger alone."""

    lines: tuple[str, ...] = ()

    def __call__(self, table: Path, manifest: Manifest) -> AbstractContextManager[Any]:
        """Do nothing."""
        return nullcontext()


@dataclass(frozen=True)
class _Proposed:
    """A proposal as the check needs it, wherever its rows are.

    Parameters
    ----------
    person : str or None
        Column that tells persons apart.
    rows : callable
        Given what is promised, that column and the entries of the ledger, says whose row is in which class.
    nearest : callable
        Given what is promised, names the nearest setting that holds, and options that lead there.
    """

    release: Release
    person: str | None
    rows: Callable[[Promised, str, Sequence[Entry]], NamedRows]
    nearest: Callable[[Promised], tuple[str, tuple[str, ...]]]


def checked_together(
    release: Release,
    original: AnyTable,
    ledger: Ledger,
    use: LedgerUse = "check",
    *,
    mechanism: Mechanism | None = None,
) -> Recording | NotRecorded:
    """Check a proposal together with all releases in a ledger.

    Where no column tells persons apart and there is no ledger, nothing is checked or kept.

    Parameters
    ----------
    mechanism : Mechanism or None
        The one that made it, where it is at hand: a refusal then says what it could do instead.

    Raises
    ------
    PrivacyNotAchievableError
        If together they fall below what was promised, with how many people that concerns.
    InputError
        If the ledger cannot be read, or is that of another table.
    SchemaError
        If the column that tells persons apart has missing values.
    """

    def rows(promised: Promised, person: str, entries: Sequence[Entry]) -> NamedRows:
        claims = read_claims(release.manifest.to_dict())
        places = release.kept_rows if release.kept_rows is not None else np.arange(original.n_rows)
        is_known = len(places) == release.table.n_rows
        return named_rows(release.table, original, claims, person, rows=places if is_known else None)

    def nearest(promised: Promised) -> tuple[str, tuple[str, ...]]:
        return _nearest(original, release, promised, ledger, mechanism)

    return _checked(_Proposed(release, original.coded_part.schema.person, rows, nearest), ledger, use)


def checked_away(
    proposal: Proposal, memory: Memory, ledger: Ledger, use: LedgerUse = "check"
) -> Recording | NotRecorded:
    """Check a proposal whose rows are not in memory, as :func:`checked_together` does.

    Raises
    ------
    InputError
        Also if who is in which class of all releases does not fit in memory.
    """
    original = proposal.original

    def rows(promised: Promised, person: str, entries: Sequence[Entry]) -> NamedRows:
        n_before = sum(len(entry.rows.classes) for entry in entries if entry.rows is not None)
        check_fits(original.n_rows + n_before, memory, original.place)
        return named_rows_away(proposal, promised, person)

    def nearest(promised: Promised) -> tuple[str, tuple[str, ...]]:
        return "in memory, auto and mondrian can make a release that holds together with these", ("ledger_repair",)

    return _checked(_Proposed(proposal.release, original.schema.person, rows, nearest), ledger, use)


def _checked(proposed: _Proposed, ledger: Ledger, use: LedgerUse) -> Recording | NotRecorded:
    release, person = proposed.release, proposed.person
    if use == "off":
        said = "left out of the ledger, and not checked together with earlier releases, as asked"
        return NotRecorded((said,) if ledger.exists or person is not None else ())
    if person is None and not ledger.exists:
        return NotRecorded()
    entries = ledger.entries()
    promised = Promised.of(read_claims(release.manifest.to_dict()))
    numbers = tuple(entry.number for entry in entries)
    cannot = _why_not(promised, person, release)
    if cannot:
        lines = [*_epsilon_lines(promised, entries), *([_not_checked(entries, cannot)] if entries else [])]
        return Recording(ledger, None, None, numbers, tuple(lines))
    rows = proposed.rows(promised, str(person), entries)
    if entries:
        rows = ledger.named(rows)
    lines = _checked_with(entries, rows, proposed, ledger)
    return Recording(ledger, rows, person, numbers, tuple(lines))


def _why_not(promised: Promised, person: str | None, release: Release) -> str:
    """Say why a release cannot be judged together with others; empty where it can."""
    if promised.epsilon is not None:
        return "differential privacy holds whatever else is known, and its ε add up"
    if not promised.has_classes:
        kinds = ", ".join(promised.others) or "nothing"
        return f"{release.manifest.mechanism['name']} promises {kinds}, which is not judged together"
    return "" if person is not None else "no column tells persons apart (role person)"


def _not_checked(entries: Sequence[Entry], why: str) -> str:
    return f"not checked together with {_earlier(len(entries))}: {why}"


def _earlier(n: int) -> str:
    return "1 earlier release" if n == 1 else f"{n:,} earlier releases"


def _epsilon_lines(promised: Promised, entries: Sequence[Entry]) -> list[str]:
    before = [entry.promised.epsilon for entry in entries if entry.promised.epsilon is not None]
    if promised.epsilon is None or not before:
        return []
    total = total_epsilon([*before, promised.epsilon])
    return [f"differential privacy together with {_earlier(len(before))}: ε = {total:g}, the sum"]


def _checked_with(entries: Sequence[Entry], rows: NamedRows, proposed: _Proposed, ledger: Ledger) -> list[str]:
    known = [entry.rows for entry in entries if entry.rows is not None and not are_same(entry.rows, rows)]
    lines = []
    for why, n in (
        ("nobody said whose rows they hold", sum(e.rows is None and e.promised.has_classes for e in entries)),
        ("what they promise is not judged together", sum(_is_judged_alone(e.promised) for e in entries)),
    ):
        lines += [f"not checked together with {_earlier(n)}: {why}"] if n else []
    if any(entry.promised.epsilon is not None for entry in entries):
        lines.append("k and l are not judged together with differentially private releases, which keep their promise")
    if not known:
        return lines
    n_common = n_in_common(rows, known)
    if not n_common:
        problem = f"none of the {rows.n_persons:,} persons of this table is in {_earlier(len(known))} that it holds"
        hint = "if these are other people, keep them in a project (a folder) of their own"
        raise InputError(problem, path=ledger.folder, hint=hint, remedy=("ledger",))
    others = tuple(dict.fromkeys([*rows.promised.others, *(kind for own in known for kind in own.promised.others)]))
    if others:
        lines.append(f"not judged together: {', '.join(others)}")
    together, before = judged_together([*known, rows]), judged_together(known)
    below, already = together.persons_below(), before.persons_below()
    at_risk = np.setdiff1d(below, already)
    if len(at_risk):
        raise _refusal(together, len(at_risk), len(known), proposed.nearest(rows.promised))
    if len(already):
        lines.append(f"{len(already):,} persons are below the promise by the earlier releases alone")
    said = f"together with {_earlier(len(known))} ({n_common:,} of {rows.n_persons:,} persons are in them)"
    return [
        *lines,
        f"{said}: nobody falls below the promise; the smallest joint class has {together.anonymity:,} persons",
    ]


def _is_judged_alone(promised: Promised) -> bool:
    return not promised.has_classes and promised.epsilon is None


def _refusal(
    together: Together, n_at_risk: int, n_known: int, nearest: tuple[str, tuple[str, ...]]
) -> PrivacyNotAchievableError:
    what = "; ".join(_in_words(shortfall) for shortfall in together.shortfalls())
    guarantee = f"together with {_earlier(n_known)} {n_at_risk:,} persons fall below what was promised ({what})"
    hint, remedy = nearest
    return PrivacyNotAchievableError(guarantee, best_level=None, problem="refused:", hint=hint, remedy=remedy)


def _in_words(shortfall: Shortfall) -> str:
    of_column = f" of '{shortfall.column}'" if shortfall.column else ""
    words = {
        "persons": "persons who cannot be told apart",
        "values": f"values{of_column} among them",
        "remaining values": f"values{of_column} that all releases leave possible",
    }[shortfall.what]
    return f"{words}: {shortfall.found:g} of {shortfall.promised:g}, {shortfall.n_persons:,} persons"


def _nearest(
    original: AnyTable, release: Release, promised: Promised, ledger: Ledger, mechanism: Mechanism | None
) -> tuple[str, tuple[str, ...]]:
    """Name the nearest setting that holds, with what it costs."""
    n_rows, levels = original.n_rows, levels_of(release.manifest.to_dict())
    is_partition = release.manifest.mechanism["name"] == "mondrian"
    if not is_partition and (levels is None or not is_repaired_by_levels(mechanism) or not isinstance(original, Table)):
        return "auto and mondrian can make a release that holds together with these", ("mechanism", "ledger_repair")
    if column := shown_and_sensitive(original, promised):
        return f"'{column}' is sensitive and a quasi-identifier, which is not repaired: {ANEW}", ()
    most = earlier_releases(original, ledger, promised, times=ONCE)  # those whom no class of their own tells apart
    if len(most.kept) < promised.k:
        return f"nobody of this table can be released together with these: {ANEW}", ()
    made, of_rows = "let it be made so that it holds", f"of {n_rows:,} rows"
    if levels is None or not isinstance(mechanism, GlobalRecoder) or not isinstance(original, Table):
        return f"{made}: that leaves out at least {n_rows - len(most.kept):,} {of_rows}", ("ledger_repair",)
    found = at_earlier_levels(mechanism, original, ledger, promised, levels)
    made += ", with the levels of an earlier release" if found.is_earlier else ", with the same levels"
    n_left_out, n_least = (n_rows - len(one.kept) for one in (found.earlier, most))
    fewer = f"; auto and mondrian may leave out as few as {n_least:,}" if n_least < n_left_out else ""
    if len(found.earlier.kept) < promised.k:
        return f"only auto and mondrian can: that leaves out at least {n_least:,} {of_rows}", (
            "mechanism",
            "ledger_repair",
        )
    return f"{made}: that leaves out {n_left_out:,} {of_rows}{fewer}", ("ledger_repair",)
