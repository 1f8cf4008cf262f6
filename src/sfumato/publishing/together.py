"""A new release together with those in the project's ledger: checked before it is published, kept afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.claims import read_claims
from sfumato.audit.reading.columns import Columns
from sfumato.audit.together.appearances import (
    NamedRows,
    Promised,
    are_same,
    check_named,
    judged_together,
    n_in_common,
    named_rows,
    names_of,
    numbered_alike,
)
from sfumato.audit.together.levels import ABSENT, Shortfall, Together, total_epsilon
from sfumato.errors import InputError, InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.guarantees import KAnonymity, LDiversity
from sfumato.manifest import AnyTable, Manifest
from sfumato.mechanisms.base import Mechanism, Release
from sfumato.mechanisms.earlier_releases import EarlierReleases, GroupLimit, enough
from sfumato.publishing.ledger import Entry, Ledger
from sfumato.table.coding import Table
from sfumato.table.persons import person_codes

LedgerUse = Literal["check", "repair", "off"]
"""What a project's releases do with its ledger: be checked, be made so that they pass, or leave it alone."""
LEDGER_USES: tuple[LedgerUse, ...] = ("check", "repair", "off")
Ids = NDArray[np.int64]


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


def checked_together(
    release: Release, original: AnyTable, ledger: Ledger, use: LedgerUse = "check"
) -> Recording | NotRecorded:
    """Check a proposal together with all releases in a ledger.

    Where no column tells persons apart and there is no ledger, nothing is checked or kept.

    Raises
    ------
    PrivacyNotAchievableError
        If together they fall below what was promised, with how many people that concerns.
    InputError
        If the ledger cannot be read, or is that of another table.
    SchemaError
        If the column that tells persons apart has missing values.
    """
    person = original.coded_part.schema.person
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
    rows = _rows_of(release, original, str(person))
    if entries:
        rows = ledger.named(rows)
    lines = _checked_with(entries, rows, release, original, ledger)
    return Recording(ledger, rows, person, numbers, tuple(lines))


def _rows_of(release: Release, original: AnyTable, person: str) -> NamedRows:
    claims = read_claims(release.manifest.to_dict())
    rows = release.kept_rows if release.kept_rows is not None else np.arange(original.n_rows)
    is_known = len(rows) == release.table.n_rows
    return named_rows(release.table, original, claims, person, rows=rows if is_known else None)


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


def _checked_with(
    entries: Sequence[Entry], rows: NamedRows, release: Release, original: AnyTable, ledger: Ledger
) -> list[str]:
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
        raise _refusal(together, len(at_risk), rows, known, release, original, ledger)
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
    together: Together,
    n_at_risk: int,
    rows: NamedRows,
    known: Sequence[NamedRows],
    release: Release,
    original: AnyTable,
    ledger: Ledger,
) -> PrivacyNotAchievableError:
    found = list(together.shortfalls())
    what = "; ".join(_in_words(shortfall) for shortfall in found)
    guarantee = f"together with {_earlier(len(known))} {n_at_risk:,} persons fall below what was promised ({what})"
    hint, remedy = _nearest(original, release, rows.promised, ledger)
    return PrivacyNotAchievableError(guarantee, best_level=None, problem="refused:", hint=hint, remedy=remedy)


def _in_words(shortfall: Shortfall) -> str:
    of_column = f" of '{shortfall.column}'" if shortfall.column else ""
    words = {
        "persons": "persons who cannot be told apart",
        "values": f"values{of_column} among them",
        "remaining values": f"values{of_column} that all releases leave possible",
    }[shortfall.what]
    return f"{words}: {shortfall.found:g} of {shortfall.promised:g}, {shortfall.n_persons:,} persons"


def _nearest(original: AnyTable, release: Release, promised: Promised, ledger: Ledger) -> tuple[str, tuple[str, ...]]:
    """Name the nearest setting that holds, with what it costs."""
    if release.manifest.mechanism["name"] != "mondrian":
        return "auto and mondrian can make a release that holds together with these", ("mechanism", "ledger_repair")
    try:
        earlier = _earlier_releases(original, ledger, promised)
    except InvalidParameterError as exc:
        return exc.message.removesuffix("."), ("one_row_per_person",)
    if len(earlier.kept) < promised.k:
        return "nobody of this table can be released together with these: withdraw them and release all anew", ()
    n_left_out = original.n_rows - len(earlier.kept)
    return f"let it be made so that it holds: that leaves out {n_left_out:,} of {original.n_rows:,} rows", (
        "ledger_repair",
    )


# Repair: which rows can be released at all, and what is asked of every class.


def repaired(mechanism: Mechanism, table: AnyTable, ledger: Ledger) -> Mechanism:
    """Give a mechanism whose release of a table holds together with those in a ledger.

    Raises
    ------
    InvalidParameterError
        If the mechanism cannot do that, or persons have several rows.
    PrivacyNotAchievableError
        If nobody could be released.
    """
    chosen = mechanism.for_table(table)
    promises = getattr(chosen, "guarantees", None)
    if not isinstance(table, Table) or promises is None:
        return mechanism.with_earlier(_NOBODY)  # which refuses
    if not any(entry.rows is not None for entry in ledger.entries()):
        return mechanism
    made = promises(table)
    k = max((int(g.k) for g in made if isinstance(g, KAnonymity)), default=0)
    diversity = {g.sensitive: float(g.l) for g in made if isinstance(g, LDiversity)}
    if not k:
        return mechanism.with_earlier(_NOBODY)
    earlier = _earlier_releases(table, ledger, Promised(k, diversity=diversity))
    if len(earlier.kept) < k:
        problem = "nobody of this table can be released together with the earlier releases"
        raise PrivacyNotAchievableError(
            problem, best_level=len(earlier.kept), hint="withdraw them and release all anew"
        )
    return mechanism.with_earlier(earlier)


_NOBODY = EarlierReleases(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int64), ())


def _earlier_releases(table: AnyTable, ledger: Ledger, promised: Promised) -> EarlierReleases:
    """Put the rows of a new table into groups by what the ledger's releases show of their persons.

    Everybody of a group who gets no row, because they left or are left out, must be enough of a crowd as well: so some
    are left out together with those who left.
    """
    known = [entry.rows for entry in ledger.entries() if entry.rows is not None]
    person = table.coded_part.schema.person
    if person is None:
        problem = "no column has the role person"
        raise SchemaError(problem, hint="name the column that tells persons apart", remedy=("person",))
    columns = Columns(table)
    own_persons = names_of(columns, person)
    check_named(own_persons, person)
    several = person_codes(table) is not None or any(len(own.persons.codes) > own.n_persons for own in known)
    if several:
        problem = "some persons have several rows, in this table or in an earlier release"
        hint, remedy = "keep one row of each person in all releases", ("one_row_per_person",)
        raise InvalidParameterError("persons", problem, allowed="of one row each to repair", hint=hint, remedy=remedy)
    values = {name: names_of(columns, name) for name in promised.diversity}
    whole = np.zeros(table.n_rows, dtype=np.int64)
    new = ledger.named(NamedRows(own_persons, whole, values, promised))
    numbers = numbered_alike([*(own.persons for own in known), new.persons])
    n_persons = max(int(own.max(initial=-1)) for own in numbers) + 1
    together = judged_together(known)
    n_groups = len(together.classes) + 1  # the last: those who are in no earlier release
    group_of = np.full(n_persons, n_groups - 1, dtype=np.int64)
    group_of[together.persons] = together.joint
    is_there = np.append(together.classes != ABSENT, np.zeros((1, len(known)), dtype=np.bool_), axis=0)
    k_before = np.where(is_there, [own.promised.k for own in known], 0).max(axis=1)
    arrived = np.arange(n_persons, dtype=np.int64)
    before = [(arrived, k_before)]
    for i, own in enumerate(known):
        for column, l_before in own.promised.diversity.items():
            of_person = np.full(n_persons, -1, dtype=np.int64)
            of_person[numbers[i]] = own.values[column].codes
            before.append((of_person + 1, np.where(is_there[:, i], np.ceil(l_before), 0).astype(np.int64)))
    row_of = np.full(n_persons, -1, dtype=np.int64)
    row_of[numbers[-1]] = np.arange(table.n_rows)
    after = [(arrived, np.maximum(k_before, promised.k)), *before[1:]]
    for column, l_now in promised.diversity.items():
        of_person = np.zeros(n_persons, dtype=np.int64)
        of_person[numbers[-1]] = new.values[column].codes
        after.append((of_person, np.full(n_groups, int(np.ceil(l_now)), dtype=np.int64)))
    order = np.argsort(np.array(_in_order_of_names(known, new, numbers, n_persons)), kind="stable")
    kept = _kept_persons(group_of, order, row_of >= 0, before, after)
    rows = np.sort(row_of[kept])
    limits = tuple(GroupLimit(codes[numbers[-1]], needed) for codes, needed in after)
    return EarlierReleases(rows.astype(np.intp), group_of[numbers[-1]], limits)


def _in_order_of_names(known: Sequence[NamedRows], new: NamedRows, numbers: Sequence[Ids], n_persons: int) -> Ids:
    """Place of each person in the order of their keyed hashes, which is as good as drawn at random."""
    names: list[bytes] = [b""] * n_persons
    for own, numbered in zip([*known, new], numbers, strict=True):
        for code, number in zip(own.persons.codes.tolist(), numbered.tolist(), strict=True):
            names[number] = own.persons.names[code]
    place = {name: i for i, name in enumerate(sorted(set(names)))}
    return np.array([place[name] for name in names], dtype=np.int64)


Limits = Sequence[tuple[Ids, Ids]]


def _kept_persons(group_of: Ids, order: Ids, is_present: NDArray[np.bool_], before: Limits, after: Limits) -> Ids:
    """Persons who can get a row: of each group those left out and those kept are nobody, or enough."""
    members = order[np.argsort(group_of[order], kind="stable")]
    n_groups = len(before[0][1])
    starts = np.searchsorted(group_of[members], np.arange(n_groups + 1))
    kept = []
    for group in range(n_groups):
        of_group = members[starts[group] : starts[group + 1]]
        present, left = of_group[is_present[of_group]], of_group[~is_present[of_group]]
        asked_out = [(codes, int(needed[group])) for codes, needed in before]
        asked_in = [(codes, int(needed[group])) for codes, needed in after]
        if len(left) and not enough(asked_out, left):
            present = present[~_going_along([*asked_out[1:], asked_out[0]], left, present)]
        if len(present) and enough(asked_in, present):
            kept.append(present)
    return np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64)


def _going_along(limits: Sequence[tuple[Ids, int]], left: Ids, present: Ids) -> NDArray[np.bool_]:
    """Choose who of those present must go with those who left for them to be enough: values first, then persons."""
    is_chosen = np.zeros(len(present), dtype=np.bool_)
    for codes, needed in limits:
        held = set(codes[left].tolist()) | set(codes[present[is_chosen]].tolist())
        for i, code in enumerate(codes[present].tolist()):
            if len(held) >= needed:
                break
            if code not in held:
                held.add(code)
                is_chosen[i] = True
    return is_chosen
