"""What is promised of a sensitive column by persons, where some have several rows, and what every part must satisfy.

The definitions are those of :mod:`sfumato.measures.person_weights`. Distinct l by persons holds for a part when it
holds for one of the parts that make it up, as l by rows does. Entropy l, recursive l, t and limits of shares (β, δ, α)
by persons do **not** hold for a part because they hold for two that make it up: a person in both weighs 1 in the union.
A partition keeps them all the same, because every group of it was looked at; but groups may not be joined afterwards,
so cells of different groups must differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.guarantees import (
    ROUNDING,
    ROW,
    DiversityVariant,
    KAnonymity,
    LDiversity,
)
from sfumato.guarantees.base import Guarantee
from sfumato.measures.person_weights import matched_diversity_by_class, value_weights
from sfumato.mechanisms.part_constraints import Constraint, SensitiveGuarantee, constraint_on
from sfumato.table.coding import Table
from sfumato.table.persons import person_codes

Ids = NDArray[np.int32]


def check_needs_no_pairs(
    level: float | None, variant: DiversityVariant, t: float | None, shares: Iterable[str] = ()
) -> None:
    """Refuse what needs pairs of a person and a value, where only persons were counted: l, t and limits of shares.

    ``shares`` are the names of the parameters by which such limits are asked for.

    Raises
    ------
    InvalidParameterError
        If there is one.
    """
    needs = {"l": level is not None and not (variant == "distinct" and follows_from_two_persons(level))}
    needs["t"] = t is not None
    needs |= dict.fromkeys(shares, True)
    for name in (name for name, is_needed in needs.items() if is_needed):
        problem = "got one, some persons have several rows, and the table is not in memory"
        hint = "read the table into memory, or ask for distinct 2-diversity or k alone"
        allowed = "left out (l: 2 at most, distinct)"
        raise InvalidParameterError(name, problem, allowed=allowed, hint=hint, remedy=("one_row_per_person",))


def follows_from_two_persons(level: float) -> bool:
    """Whether distinct l-diversity by persons follows from that by rows in a group of two persons or more.

    Two values in such a group are always those of two different persons, for else all its rows would be of one person
    or hold one value. Three values can be those of two persons.

    Examples
    --------
    >>> follows_from_two_persons(2), follows_from_two_persons(3)
    (True, False)
    """
    return level - ROUNDING <= 2


def promised_by_persons(guarantees: Iterable[SensitiveGuarantee], person: str) -> list[Guarantee]:
    """Promises that take the place of those by rows; distinct l by rows follows, and stays beside it.

    Examples
    --------
    >>> [g.unit for g in promised_by_persons([LDiversity(3, "illness", ("age",))], "patient")]
    ['row', 'patient']
    """
    found: list[Guarantee] = []
    for one in guarantees:
        found += [one] if isinstance(one, LDiversity) and one.variant == "distinct" else []
        found.append(replace(one, unit=person))
    return found


def person_crowds(table: Table, k: int, columns: tuple[str, ...]) -> list[KAnonymity]:
    """Promise k persons in every group; nothing where no column tells persons apart, or each has one row."""
    return [KAnonymity(k, columns, unit=table.schema.person or ROW)] if person_codes(table) is not None else []


@dataclass(frozen=True, eq=False)
class PersonLimit:
    """What the values of a sensitive column must satisfy in every part, by persons.

    Parameters
    ----------
    persons : ndarray of int32
        Person of each row.
    codes : ndarray of int32
        Value of each row.
    least_matched : float
        Fewest values of as many different persons; 0: no limit.
    on_weights : Constraint or None
        Condition on the weights of values.
    """

    persons: Ids
    codes: Ids
    least_matched: float = 0.0
    on_weights: Constraint | None = None

    @property
    def n_values(self) -> int:
        """Number of values."""
        return int(self.codes.max(initial=-1)) + 1

    def check_all_rows(self) -> None:
        """Refuse a limit that not even all rows together keep.

        Raises
        ------
        PrivacyNotAchievableError
            With the level that they have.
        """
        one_part = np.zeros(len(self.codes), dtype=np.int64)
        if self.are_kept_by(one_part, np.arange(len(one_part))).all():
            return
        if self.on_weights is not None:
            weights = weights_of_parts(one_part, self.persons, self.codes, self.n_values)
            level, what = float(self.on_weights.levels(weights)[0]), self.on_weights.describe()
        else:
            level = float(matched_diversity_by_class(one_part, self.persons, self.codes, 1)[0])
            what = f"distinct {self.least_matched:g}-diversity"
        raise PrivacyNotAchievableError(f"{what} of the sensitive column by persons", best_level=level)

    def are_kept_by(self, part_of_row: NDArray[np.integer], rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether parts of some rows, numbered from 0 without gaps, keep the limit."""
        persons, codes, n_parts = self.persons[rows], self.codes[rows], int(part_of_row.max(initial=-1)) + 1
        are_kept = np.ones(n_parts, dtype=np.bool_)
        if self.least_matched:
            found = matched_diversity_by_class(part_of_row, persons, codes, n_parts, self.least_matched)
            are_kept &= found >= self.least_matched - ROUNDING
        if self.on_weights is not None:
            are_kept &= self.on_weights(weights_of_parts(part_of_row, persons, codes, self.n_values))
        return are_kept


def weights_of_parts(part_of_row: NDArray[np.integer], persons: Ids, codes: Ids, n_values: int) -> NDArray[np.float64]:
    """Weights of values in parts, numbered from 0: one row a part.

    Examples
    --------
    >>> rows = np.array([0, 0, 0]), np.array([0, 0, 1], np.int32), np.array([0, 1, 1], np.int32)
    >>> weights_of_parts(*rows, 2).tolist()
    [[0.5, 1.5]]
    """
    n_parts = int(part_of_row.max(initial=-1)) + 1
    keys = part_of_row.astype(np.int64) * (int(persons.max(initial=0)) + 1) + persons
    of_row = np.unique(keys, return_inverse=True, return_counts=True)
    weights = 1.0 / of_row[2][of_row[1].reshape(-1)]
    flat = np.bincount(part_of_row.astype(np.int64) * n_values + codes, weights, n_parts * n_values)
    return np.asarray(flat.reshape(n_parts, n_values))


def limits_by_persons(
    table: Table, guarantees: Sequence[SensitiveGuarantee]
) -> tuple[tuple[Constraint, Ids] | None, list[PersonLimit]]:
    """Limits under which a division into groups of at least two persons keeps promises about one sensitive column.

    Gives that on counts of rows, as :func:`sfumato.mechanisms.part_constraints.constraint_on` does, and those by
    persons. Where each person has one row, all are of the first kind.
    """
    persons = person_codes(table)
    if persons is None:
        return constraint_on(table, guarantees), []
    by_rows, weighed = [], []
    limits = []
    for one in guarantees:
        if not isinstance(one, LDiversity) or one.variant != "distinct":
            weighed.append(one)
        elif follows_from_two_persons(one.l):
            by_rows.append(one)
        elif (limit := constraint_on(table, [one])) is not None:
            limits.append(PersonLimit(persons, limit[1], least_matched=one.l))
    limit = constraint_on(table, weighed, lambda codes, n_values: value_weights(persons, codes, n_values))
    if limit is not None:
        limits.append(PersonLimit(persons, limit[1], on_weights=limit[0]))
    return constraint_on(table, by_rows), limits


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
