r"""What every group of a partition must satisfy besides its size, for the promises about sensitive columns.

By rows a constraint is judged from how often each sensitive value occurs in a group. All of them hold for a group when
they hold for two groups that make it up, l-diversity by [MKGV07]_, Section 4, t-closeness because the distance is
convex in the distribution ([LLV07]_, Section 4), limits of shares by :mod:`sfumato.guarantees.value_shares`: so a part
that violates one cannot be saved by dividing it, and groups of equal cells may be joined.

By persons only distinct l holds for a group because it holds for two that make it up; a person in both weighs 1 in the
union (:mod:`sfumato.counting.counts`). A partition keeps the others all the same, because every group of it was looked
at; but groups may not be joined afterwards, so cells of different groups must differ.

References
----------
.. [MKGV07] Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam: l-Diversity: Privacy Beyond k-Anonymity.
   ACM TKDD 1 (2007).
.. [LLV07] Li, Li, Venkatasubramanian: t-Closeness: Privacy Beyond k-Anonymity and l-Diversity. ICDE (2007).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.counts import AnyCounts, Counts, DenseCounts, Levels, Numbers
from sfumato.counting.same_values import value_numbers
from sfumato.errors import PrivacyNotAchievableError
from sfumato.guarantees import AboutValues, LDiversity
from sfumato.mechanisms.requested import follows_from_two_persons
from sfumato.table.coding import Table
from sfumato.table.persons import person_codes
from sfumato.table.weighted import CountedTable

Flags = NDArray[np.bool_]
Ids = NDArray[np.int32]


class Constraint(Protocol):
    """What every class must keep besides its size. Partitions and lattices search by it and know no guarantee."""

    def are_kept_by(self, counts: AnyCounts) -> Flags:
        """Whether classes are allowed, from their counts of sensitive values."""
        ...

    def levels(self, counts: AnyCounts) -> Levels:
        """Level of each class, by the measure that the constraint is about."""
        ...

    def describe(self) -> str:
        """Say the constraint in a few words."""
        ...


@dataclass(frozen=True, eq=False)
class Promised:
    """What a guarantee asks of the values of its column in every group.

    Parameters
    ----------
    guarantee : AboutValues
    overall : ndarray or None
        How often each value occurs in the whole table, all of whose rows are released; ``None`` where groups are not
        compared with it.

    Examples
    --------
    >>> Promised(LDiversity(2, "illness")).are_kept_by(DenseCounts.alone(np.array([[3, 1], [4, 0]]))).tolist()
    [True, False]
    """

    guarantee: AboutValues
    overall: Numbers | None = None

    def are_kept_by(self, counts: AnyCounts) -> Flags:
        """Whether groups keep the promise."""
        return self.guarantee.are_met_by(self.levels(counts))

    def levels(self, counts: AnyCounts) -> Levels:
        """Level of each group."""
        return self.guarantee.levels(counts if self.overall is None else counts.with_totals(self.overall))

    def describe(self) -> str:
        """Say the constraint in a few words."""
        return self.guarantee.in_short()


@dataclass(frozen=True, eq=False)
class Joined:
    """A constraint on values that have several spellings each, from counts of the spellings.

    Parameters
    ----------
    constraint : Constraint
    value_of : ndarray of int32
        Value of each spelling.
    """

    constraint: Constraint
    value_of: Ids

    def are_kept_by(self, counts: AnyCounts) -> Flags:
        """Whether parts satisfy the constraint."""
        return self.constraint.are_kept_by(counts.renumbered(self.value_of))

    def levels(self, counts: AnyCounts) -> Levels:
        """Level of each part, by the constraint's measure."""
        return self.constraint.levels(counts.renumbered(self.value_of))

    def describe(self) -> str:
        """Say the constraint in a few words."""
        return self.constraint.describe()


@dataclass(frozen=True, eq=False)
class AllOf:
    """Several constraints at once, on the same counts."""

    constraints: tuple[Constraint, ...]

    def are_kept_by(self, counts: AnyCounts) -> Flags:
        """Whether parts satisfy all constraints."""
        return np.asarray(np.logical_and.reduce([constraint.are_kept_by(counts) for constraint in self.constraints]))

    def levels(self, counts: AnyCounts) -> Levels:
        """Level of each part by the first constraint that some part violates, else by the first."""
        violated = [constraint for constraint in self.constraints if not constraint.are_kept_by(counts).all()]
        return (violated or self.constraints)[0].levels(counts)

    def describe(self) -> str:
        """Say the constraints in a few words."""
        return " and ".join(dict.fromkeys(constraint.describe() for constraint in self.constraints))


def asks_for_two_values(constraint: Constraint) -> bool:
    """Whether a part is allowed if and only if it has two different values, so that nothing need be counted.

    Examples
    --------
    >>> [asks_for_two_values(Promised(LDiversity(l, "illness", ()))) for l in (2, 3)]
    [True, False]
    """
    return isinstance(constraint, Promised) and follows_from_two_persons(constraint.guarantee)


def _limit_on(table: Table, guarantees: Sequence[AboutValues], persons: Ids | None) -> Limit:
    """Limit under which a division of a table keeps promises about one sensitive column.

    l-diversity and (α,k)-anonymity count values, however they are spelled. What compares with the whole table is kept
    by the values and by their spellings, each by itself, as the audit measures it.
    """
    (name,) = {guarantee.sensitive for guarantee in guarantees}
    column, weights = table[name], table.row_counts if isinstance(table, CountedTable) else None
    numbers = value_numbers(column.values, table.schema[name])
    by_spelling = numbers.has_spellings and any(guarantee.compares_with_table for guarantee in guarantees)
    merged = numbers.merged[column.codes]
    codes = numbers.spelled[column.codes] if by_spelling else merged
    value_of = np.zeros(len(numbers.spelled), dtype=np.int32)
    value_of[numbers.spelled] = numbers.merged
    found: list[Constraint] = []
    for guarantee in guarantees:
        own = Promised(guarantee, _totals(merged, persons, weights))
        found.append(Joined(own, value_of) if by_spelling else own)
        if by_spelling and guarantee.compares_with_table:
            found.append(Promised(guarantee, _totals(codes, persons, weights)))
    return Limit(found[0] if len(found) == 1 else AllOf(tuple(found)), codes, persons)


def constraint_on_counts(guarantees: Sequence[AboutValues]) -> Constraint:
    """Constraint under which counts of values in a part keep promises that do not compare with the whole table."""
    found = [Promised(guarantee) for guarantee in guarantees]
    return found[0] if len(found) == 1 else AllOf(tuple(found))


@dataclass(frozen=True, eq=False)
class Limit:
    """What the values of a sensitive column must satisfy in every group of rows.

    Parameters
    ----------
    constraint : Constraint
        On counts of the values in a group, or on their weights where persons are counted.
    codes : ndarray of int32
        Value of each row.
    persons : ndarray of int32 or None
        Person of each row, where persons are counted.
    """

    constraint: Constraint
    codes: Ids
    persons: Ids | None = None

    @property
    def n_values(self) -> int:
        """Number of values."""
        return int(self.codes.max(initial=-1)) + 1

    @property
    def matched(self) -> LDiversity | None:
        """Distinct diversity by persons: values are matched with persons, which weights do not show."""
        if self.persons is None or not isinstance(self.constraint, Promised):
            return None
        asked = self.constraint.guarantee
        return asked if isinstance(asked, LDiversity) and asked.variant == "distinct" else None

    def of_rows(self, rows: Ids) -> Limit:
        """Give the same limit on some of the rows, numbered anew."""
        persons = None if self.persons is None else self.persons[rows]
        return Limit(self.constraint, self.codes[rows], persons)

    def check_all_rows(self, weights: NDArray[np.int64] | None = None) -> None:
        """Refuse a limit that not even all rows, each of which may stand for several, keep together.

        Raises
        ------
        PrivacyNotAchievableError
            With the level that they have.
        """
        by_persons, counts = "", DenseCounts.alone(np.bincount(self.codes, weights).astype(np.int64)[np.newaxis])
        if self.persons is not None:
            of_rows = Counts.of_rows(np.zeros(len(self.codes), dtype=np.int64), self.codes, self.persons)
            by_persons, counts = " by persons", DenseCounts.alone(of_rows.weights.dense(self.n_values))
            if self.matched is not None and not self.matched.are_kept_by(of_rows).all():
                level = float(self.matched.levels(of_rows)[0])
                what = f"{self.matched.in_short()} of the sensitive column{by_persons}"
                raise PrivacyNotAchievableError(what, best_level=level)
        if self.matched is None and not self.constraint.are_kept_by(counts).all():
            what = f"{self.constraint.describe()} of the sensitive column{by_persons}"
            raise PrivacyNotAchievableError(what, best_level=float(self.constraint.levels(counts)[0]))

    def are_kept_by(self, part_of_row: NDArray[np.integer], rows: NDArray[np.intp]) -> Flags:
        """Whether parts of some rows, numbered from 0 without gaps, keep the limit."""
        if self.persons is None:
            n_parts, n_values = int(part_of_row.max(initial=-1)) + 1, self.n_values
            keys = part_of_row.astype(np.int64) * n_values + self.codes[rows]
            return self.keeps(np.bincount(keys, minlength=n_parts * n_values).reshape(n_parts, n_values))
        counts = Counts.of_rows(part_of_row, self.codes[rows], self.persons[rows])
        if self.matched is not None:
            return self.matched.are_kept_by(counts)
        return self.keeps(counts.weights.dense(self.n_values))

    def keeps(self, counts: Numbers) -> Flags:
        """Whether parts keep the limit, given their counts (or weights) of the values, a row each."""
        return self.constraint.are_kept_by(DenseCounts.alone(counts))


def limits_of(table: Table, guarantees: Sequence[AboutValues]) -> list[Limit]:
    """Limits under which a division into groups of at least two persons keeps promises about one sensitive column.

    Rows are those of the table, or distinct ones that each stand for several.

    Where each person has one row there is at most one, of rows; else what is promised counts persons, and what follows
    of groups of two persons is asked of rows.
    """
    persons = person_codes(table)
    if persons is None:
        return [_limit_on(table, guarantees, None)] if guarantees else []
    of_rows = [one for one in guarantees if follows_from_two_persons(one)]
    others = [one for one in guarantees if not follows_from_two_persons(one)]
    matched = [one for one in others if isinstance(one, LDiversity) and one.variant == "distinct"]
    weighed = [one for one in others if one not in matched]
    found = [_limit_on(table, of_rows, None)] if of_rows else []
    found += [_limit_on(table, [one], persons) for one in matched]
    return [*found, _limit_on(table, weighed, persons)] if weighed else found


def _totals(codes: Ids, persons: Ids | None, weights: NDArray[np.int64] | None) -> Numbers:
    """Count, or weigh by persons, each value in all rows; weights are the rows of distinct ones."""
    if weights is not None:
        return np.bincount(codes, weights).astype(np.int64)
    return Counts.of_rows(np.zeros(len(codes), dtype=np.int64), codes, persons).weights.value_totals


def check_persons(persons: Ids | None, k: int) -> None:
    """Refuse a table of fewer than k persons.

    Raises
    ------
    PrivacyNotAchievableError
        With the number that there are.
    """
    n_persons = k if persons is None else len(np.unique(persons))
    if n_persons < k:
        problem = f"groups of at least {k:,} of {n_persons:,} persons"
        raise PrivacyNotAchievableError(problem, best_level=n_persons)
