"""Releases made so that they hold together with earlier ones: whom to leave out, and what is asked of every class.

Persons whom the earlier releases show in the same classes are a *group*. Where persons have several rows, a person may
be in several groups, one for each combination of classes that the person has rows in. Of every group those who get a
row in a class of the new release, and those who get none, must be nobody or enough: as many persons as were promised,
with as many sensitive values. So some are left out together with those who left.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.reading.columns import Columns
from sfumato.audit.together.appearances import (
    NamedRows,
    Promised,
    check_named,
    judged_together,
    names_of,
    numbered_alike,
)
from sfumato.audit.together.levels import ABSENT, Together, runs
from sfumato.errors import PrivacyNotAchievableError, SchemaError
from sfumato.guarantees import KAnonymity, LDiversity
from sfumato.manifest import AnyTable
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.earlier_releases import EarlierReleases, GroupLimit, enough
from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.publishing.ledger import Ledger
from sfumato.schema import Role
from sfumato.table.coding import Table

Ids = NDArray[np.int64]
_NOTHING = -1
ANEW = "withdraw the earlier releases and release all anew"
ONCE = (1,)
TIMES_ENOUGH = (1, 4, 16, 10**9)
"""Of several choices of rows, ever fewer; by the last one newcomers alone."""
_FEWEST_BROUGHT_ALONG = 2
"""Values of a class that follow from any two of its persons: of more, each must have a carrier of its own."""


def repaired(mechanism: Mechanism, table: AnyTable, ledger: Ledger) -> Mechanism:
    """Give a mechanism whose release of a table holds together with those in a ledger.

    Raises
    ------
    InvalidParameterError
        If the mechanism cannot do that.
    SchemaError
        If a column about which something is promised is a quasi-identifier as well.
    PrivacyNotAchievableError
        If nobody could be released.
    """
    promised = _promised(mechanism, table)
    if promised is None or not isinstance(table, Table):
        return mechanism.with_earlier(_NOBODY)  # which refuses
    if not any(entry.rows is not None for entry in ledger.entries()):
        return mechanism
    if column := shown_and_sensitive(table, promised):
        problem = "is sensitive and a quasi-identifier: its groups within a class cannot be kept together"
        raise SchemaError(problem, column=column, hint=ANEW)
    if isinstance(mechanism, GlobalRecoder) and is_repaired_by_levels(mechanism):
        own = mechanism.recode(table)
        found = at_earlier_levels(mechanism, table, ledger, promised, dict(zip(own.names, own.levels[0], strict=True)))
        earlier = found.earlier
        made: Mechanism = mechanism.at_levels(found.levels, found.hierarchies, earlier, table.n_rows)
    else:
        earlier = earlier_releases(table, ledger, promised)
        made = mechanism.with_earlier(earlier)
    if len(earlier.kept) < promised.k:
        problem = "nobody of this table can be released together with the earlier releases"
        raise PrivacyNotAchievableError(problem, best_level=len(earlier.kept), hint=ANEW)
    return made


def shown_and_sensitive(table: AnyTable, promised: Promised) -> str | None:
    """Name a quasi-identifier about whose values something is promised; ``None`` where there is none."""
    quasi_identifiers = table.coded_part.schema.names(Role.QUASI_IDENTIFIER)
    return next((name for name in promised.diversity if name in quasi_identifiers), None)


def is_repaired_by_levels(mechanism: Mechanism | None) -> bool:
    """Whether a recoder has one combination of levels for all quasi-identifiers, which may be that of another time."""
    return isinstance(mechanism, GlobalRecoder) and not getattr(mechanism, "slicing", False)


def _promised(mechanism: Mechanism, table: AnyTable) -> Promised | None:
    """Say what a mechanism is going to promise of all quasi-identifiers; ``None`` where that are no classes."""
    promises = getattr(mechanism.for_table(table), "guarantees", None)
    if not isinstance(table, Table) or promises is None:
        return None
    made = promises(table)
    k = max((int(g.k) for g in made if isinstance(g, KAnonymity)), default=0)
    return Promised(k, diversity={g.sensitive: float(g.l) for g in made if isinstance(g, LDiversity)}) if k else None


_NOBODY = EarlierReleases(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int64), ())


def earlier_releases(
    table: AnyTable, ledger: Ledger, promised: Promised, *, times: Sequence[int] = TIMES_ENOUGH
) -> EarlierReleases:
    """Put the rows of a new table into groups by what the ledger's releases show of their persons.

    For ``times`` see :func:`asked_by_earlier`.

    Raises
    ------
    SchemaError
        If no column tells persons apart, or some rows have no person.
    """
    whole = np.zeros(table.n_rows, dtype=np.int64)
    return asked_by_earlier(_known(ledger), _new_rows(table, ledger, promised, whole), times=times)


def _known(ledger: Ledger) -> list[NamedRows]:
    return [entry.rows for entry in ledger.entries() if entry.rows is not None]


def _new_rows(table: AnyTable, ledger: Ledger, promised: Promised, classes: Ids) -> NamedRows:
    person = table.coded_part.schema.person
    if person is None:
        problem = "no column has the role person"
        raise SchemaError(problem, hint="name the column that tells persons apart", remedy=("person",))
    columns = Columns(table)
    own_persons = names_of(columns, person)
    check_named(own_persons, person)
    values = {name: names_of(columns, name) for name in promised.diversity}
    return ledger.named(NamedRows(own_persons, classes, values, promised))


@dataclass(frozen=True, eq=False)
class EarlierLevels:
    """A recoding at the levels of an earlier release, and which rows it can release together with all of them."""

    levels: Mapping[str, int]
    hierarchies: Mapping[str, Hierarchy]
    earlier: EarlierReleases
    is_earlier: bool


def at_earlier_levels(
    mechanism: GlobalRecoder, table: Table, ledger: Ledger, promised: Promised, own: Mapping[str, int]
) -> EarlierLevels:
    """Find the levels, of earlier releases or those that would be taken without them, that keep most rows.

    Parameters
    ----------
    own : mapping of str to int
        Levels that would be taken without regard to earlier releases.
    """
    names = mechanism.columns(table)
    sources, fitted = mechanism.fitted(table, names)
    candidates = [(entry.levels, True) for entry in reversed(ledger.entries()) if entry.levels is not None]
    known, blank = _known(ledger), _new_rows(table, ledger, promised, np.zeros(table.n_rows, dtype=np.int64))
    best: EarlierLevels | None = None
    for given, is_earlier in [*candidates, (own, False)]:
        if set(given) != set(names):
            continue
        levels = {name: min(given[name], len(one.level_codes) - 1) for name, one in zip(names, fitted, strict=True)}
        labels = [one.level_codes[levels[one.name]][table[one.name].codes] for one in fitted]
        classes = np.unique(np.column_stack(labels), axis=0, return_inverse=True)[1].reshape(-1)
        found = asked_by_earlier(known, replace(blank, classes=classes.astype(np.int64)), times=ONCE)
        if best is None or len(found.kept) > len(best.earlier.kept):
            best = EarlierLevels(levels, dict(zip(names, sources, strict=True)), found, is_earlier)
    if best is None:
        raise AssertionError  # its own levels are those of these columns
    return best


def asked_by_earlier(
    known: Sequence[NamedRows], new: NamedRows, *, times: Sequence[int] = TIMES_ENOUGH
) -> EarlierReleases:
    """Say which rows of a new table can be released, and what earlier releases ask of every class of these.

    Parameters
    ----------
    new : NamedRows
        All rows of the table, with what is to be promised. Their classes are what is to be divided further, if at all:
        all in one, or each in that of a recoding that is settled.
    times : sequence of int
        How many times the persons that it needs a group must have to be kept, of each choice of rows.
    """
    return _Groups.of(known, new).limits_of(new.promised, times)


@dataclass(frozen=True, eq=False)
class _Groups:
    """Who is in which group: pairs of a person and a group, and members, which are pairs of a row and a group.

    Parameters
    ----------
    persons, groups : ndarray of int64
        Of each pair, by person; the last group holds those who are in no earlier release.
    row_of, pair_of : ndarray
        Of each member, by row.
    numbers : sequence of ndarray
        Person of each row, of the earlier releases and of the new table.
    """

    known: Sequence[NamedRows]
    new: NamedRows
    together: Together
    numbers: Sequence[Ids]
    persons: Ids
    groups: Ids
    row_of: NDArray[np.intp]
    pair_of: Ids

    @classmethod
    def of(cls, known: Sequence[NamedRows], new: NamedRows) -> _Groups:
        numbers = numbered_alike([*(own.persons for own in known), new.persons])
        together = judged_together(known)
        arrived = np.setdiff1d(numbers[-1], together.persons)
        persons = np.concatenate([together.persons, arrived])
        groups = np.concatenate([together.joint, np.full(len(arrived), len(together.classes))])
        order = np.lexsort((groups, persons))
        persons, groups = persons[order], groups[order]
        first, last = (np.searchsorted(persons, numbers[-1], side=side) for side in ("left", "right"))
        row_of = np.repeat(np.arange(len(first)), last - first)
        return cls(known, new, together, numbers, persons, groups, row_of, runs(first, last))

    @property
    def n_groups(self) -> int:
        """Number of groups, that of newcomers included."""
        return len(self.together.classes) + 1

    def limits_of(self, promised: Promised, times: Sequence[int]) -> EarlierReleases:
        """Say what is asked of every class of the new release, and which rows can be released."""
        is_there = np.append(self.together.classes != ABSENT, np.zeros((1, len(self.known)), dtype=np.bool_), axis=0)
        k_before = np.where(is_there, [own.promised.k for own in self.known], 0).max(axis=1)
        before = [GroupLimit(self.persons, k_before)]
        for i, own in enumerate(self.known):
            for column, l_before in own.promised.diversity.items():
                needed = np.where(is_there[:, i], np.ceil(l_before), 0).astype(np.int64)
                before.append(GroupLimit(self._value_of_pairs(i, column), needed))
        after = [GroupLimit(self.persons[self.pair_of], np.maximum(k_before, promised.k))]
        after += [limit.take(self.pair_of) for limit in before[1:]]
        for column, l_now in promised.diversity.items():
            codes = self._values_of_rows(column, l_now)[self.row_of]
            after.append(GroupLimit(codes, np.full(self.n_groups, int(np.ceil(l_now)), dtype=np.int64)))
            after += self._limits_of_remaining(column, l_now, is_there)
        choices: list[NDArray[np.intp]] = []
        for enough_times in times:
            is_kept = _Leaving(self, before, self._with_crowds(after, enough_times)).kept_persons()
            rows = np.flatnonzero(is_kept[self.numbers[-1]]).astype(np.intp)
            if not choices or promised.k <= len(rows) < len(choices[-1]):
                choices.append(rows)
        is_one_each = len(self.row_of) == len(self.numbers[-1])
        row_of = None if is_one_each else self.row_of.astype(np.intp)
        return EarlierReleases(choices[0], self.groups[self.pair_of], tuple(after), row_of, tuple(choices[1:]))

    def _with_crowds(self, after: Sequence[GroupLimit], times: int) -> list[GroupLimit]:
        """Ask for so many times the persons of each group of those who are in earlier releases."""
        needed = after[0].needed * times
        needed[-1] = after[0].needed[-1]
        return [replace(after[0], needed=needed), *after[1:]]

    def _value_of_pairs(self, release: int, column: str) -> Ids:
        """One value of each person in the group's class of an earlier release, the rarest: each carries one then."""
        own = self.known[release]
        codes = own.values[column].codes
        order = np.lexsort((codes, np.bincount(codes)[codes], own.classes, self.numbers[release]))
        width = int(own.classes.max(initial=-1)) + 2
        keys = (self.numbers[release] * width + own.classes)[order]
        classes = np.append(self.together.classes[:, release], ABSENT)[self.groups]
        wanted = self.persons * width + classes
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        is_found = (classes != ABSENT) & (keys[place] == wanted)
        return np.where(is_found, codes[order][place], _NOTHING)

    def _values_of_rows(self, column: str, l_now: float) -> Ids:
        """Value of each row; of persons with several rows one row's alone where more than two values are asked for.

        Two persons of a class bring two carriers along for any two values; of three, two may be one person's.
        """
        codes = self.new.values[column].codes
        if l_now <= _FEWEST_BROUGHT_ALONG:
            return codes
        persons = self.numbers[-1]
        order = np.lexsort((np.arange(len(codes)), np.bincount(codes)[codes], persons))
        carries = order[np.unique(persons[order], return_index=True)[1]]
        found = np.full(len(codes), _NOTHING, dtype=np.int64)
        found[carries] = codes[carries]
        return found

    def _limits_of_remaining(self, column: str, l_now: float, is_there: NDArray[np.bool_]) -> list[GroupLimit]:
        """Ask for values that the earlier classes leave possible, where the values of a person may have changed."""
        promising = [i for i, own in enumerate(self.known) if column in own.promised.diversity]
        if not promising:
            return []
        numbered = numbered_alike([*(self.known[i].values[column] for i in promising), self.new.values[column]])
        n_values = 1 + max(int(own.max(initial=0)) for own in numbered)
        needed, pairs = np.zeros(self.n_groups, dtype=np.int64), []
        for i, codes in zip(promising, numbered, strict=False):
            held = np.unique(self.known[i].classes * n_values + codes)
            groups = np.flatnonzero(is_there[:, i])
            of_class = held // n_values
            classes = self.together.classes[groups, i]
            first, last = (np.searchsorted(of_class, classes, side=side) for side in ("left", "right"))
            pairs.append(np.repeat(groups, last - first) * n_values + held[runs(first, last)] % n_values)
            strictest = int(np.ceil(max(l_now, self.known[i].promised.diversity[column])))
            needed[groups] = np.maximum(needed[groups], strictest)
        found, times = np.unique(np.concatenate(pairs), return_counts=True)
        remaining = found[times == is_there[:, promising].sum(axis=1)[found // n_values]]
        needed[np.setdiff1d(np.arange(self.n_groups), remaining // n_values)] = 0  # there values did change over time
        own = self._values_of_rows(column, l_now)
        keys = self.groups[self.pair_of] * n_values + numbered[-1][self.row_of]
        return [GroupLimit(np.where(np.isin(keys, remaining), own[self.row_of], _NOTHING), needed)]

    def order_of_names(self) -> Ids:
        """Place of each person in the order of their keyed hashes, which is as good as drawn at random."""
        names: list[bytes] = [b""] * (int(self.persons.max(initial=-1)) + 1)
        for own, numbered in zip([*self.known, self.new], self.numbers, strict=True):
            for code, number in zip(own.persons.codes.tolist(), numbered.tolist(), strict=True):
                names[number] = own.persons.names[code]
        place = {name: i for i, name in enumerate(sorted(set(names)))}
        return np.array([place[name] for name in names], dtype=np.int64)


class _Leaving:
    """Finds who can get rows: of each group those left out and those kept are nobody, or enough.

    Leaving somebody out may be too little in another group of that person, which is then looked at once more. Nobody
    comes back, so that it ends.
    """

    def __init__(self, groups: _Groups, before: Sequence[GroupLimit], after: Sequence[GroupLimit]) -> None:
        self._groups, self._before, self._after = groups, before, after
        n_groups_of = np.bincount(groups.persons)
        is_present = np.zeros(len(n_groups_of), dtype=np.bool_)
        is_present[groups.numbers[-1]] = True
        self._is_kept = is_present
        order = np.lexsort((groups.order_of_names()[groups.persons], n_groups_of[groups.persons], groups.groups))
        self._pairs = order
        self._pair_starts = np.searchsorted(groups.groups[order], np.arange(groups.n_groups + 1))
        of_member = groups.groups[groups.pair_of]
        self._members = np.argsort(of_member, kind="stable")
        self._member_starts = np.searchsorted(of_member[self._members], np.arange(groups.n_groups + 1))

    def kept_persons(self) -> NDArray[np.bool_]:
        """Whether each person can get rows."""
        waiting = deque(range(self._groups.n_groups))
        is_waiting = np.ones(self._groups.n_groups, dtype=np.bool_)
        while waiting:
            group = waiting.popleft()
            is_waiting[group] = False
            for person in self._leaving(group).tolist():
                first, last = np.searchsorted(self._groups.persons, [person, person + 1])
                for other in self._groups.groups[first:last].tolist():
                    if other != group and not is_waiting[other]:
                        is_waiting[other] = True
                        waiting.append(other)
        return self._is_kept

    def _leaving(self, group: int) -> Ids:
        """Leave out whom a group cannot keep."""
        pairs = self._pairs[self._pair_starts[group] : self._pair_starts[group + 1]]
        persons = self._groups.persons[pairs]
        was_kept = self._is_kept[persons]
        asked = [(limit.codes, int(limit.needed[group])) for limit in self._before]
        while True:
            sizes = self._leave_classes(group)
            is_kept = self._is_kept[persons]
            present, left = pairs[is_kept], pairs[~is_kept]
            if not len(present) or not len(left) or enough([(codes[left], needed) for codes, needed in asked]):
                return persons[was_kept & ~is_kept]
            # those of large classes first, which can do without them
            slack = np.array([sizes[person] for person in self._groups.persons[present].tolist()])
            present = present[np.argsort(-slack, kind="stable")]
            along = _going_along([*asked[1:], asked[0]], left, present)
            self._is_kept[self._groups.persons[present[along]]] = False

    def _leave_classes(self, group: int) -> dict[int, int]:
        """Leave out who is in a class that has too few of a group; gives the size of the smallest class of others."""
        every = self._members[self._member_starts[group] : self._member_starts[group + 1]]
        while True:
            of_member = self._groups.persons[self._groups.pair_of[every]]
            is_kept = self._is_kept[of_member]
            every, of_member = every[is_kept], of_member[is_kept]
            classes = self._groups.new.classes[self._groups.row_of[every]]
            order = np.argsort(classes, kind="stable")
            gone: list[Ids] = []
            sizes: dict[int, int] = {}
            for members in np.split(order, np.flatnonzero(np.diff(classes[order])) + 1):
                asked = [(own.codes[every[members]], int(own.needed[group])) for own in self._after]
                persons = np.unique(of_member[members])
                if len(members) and not enough(asked):
                    gone.append(persons)
                for person in persons.tolist():
                    sizes[person] = min(sizes.get(person, len(persons)), len(persons))
            if not gone:
                return sizes
            self._is_kept[np.concatenate(gone)] = False


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
