r"""Levels that count persons: the original says whose rows a group of equal released rows holds.

In a group each person weighs 1, shared equally over the person's rows there, and in the whole release each person
weighs 1, shared over all of the person's released rows. All rows without a person count as those of one. A value of a
group is well represented by persons if as many different persons carry as many different values, each one of them
(distinct): a largest matching of values and persons; or by the weights of the values (entropy, recursive, closeness).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.checks import DECLARE, Check, Unchecked
from sfumato.audit.claims import Claims, is_number
from sfumato.audit.kinds import JUDGED, Evidence, UndecidableError
from sfumato.audit.original.assignment import Pairs, TooManyPairsError
from sfumato.audit.original.release_vs_original import ReleaseVsOriginal
from sfumato.audit.reading.columns import Classes, group_rows
from sfumato.audit.reading.equivalence import EquivalenceClasses, classes_of_persons, largest_matchings
from sfumato.audit.reading.values import ranks, spelled_ranks
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees import Containment, Guarantee, KAnonymity
from sfumato.guarantees.anonymity import ROWS_AND_PERSONS
from sfumato.schema import Role

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class ReleasedRows:
    """Rows of the original that are released: their places there, and the group of equal released rows of each."""

    places: NDArray[np.intp]
    groups: Ids


def released_rows(columns: tuple[str, ...], pair: ReleaseVsOriginal) -> ReleasedRows:
    """Find which rows of the original each group of equal released rows holds.

    Where it is known which row of the original each released one is, which another check compares, rows tell whose they
    are. Else the rows of a group are all rows of the original that fit its cells, if each fits one group only and none
    of them is missing.

    Raises
    ------
    SchemaError
        If a column is in neither table.
    InvalidParameterError
        If it cannot be known whose rows a group holds.
    UndecidableError
        If sorted rows do not tell it: some original rows fit several groups. Whoever measures says what holds anyway.
    """
    classes = group_rows(pair.released, columns)
    if pair.in_original_order:
        own_rows = pair.rows if pair.own_rows is None else pair.own_rows
        if len(own_rows) != len(classes.ids):
            raise InvalidParameterError("rows", "the numbers differ", allowed="one released row for each original one")
        return ReleasedRows(own_rows, classes.ids)
    of_row = None if pair.fitting is None else pair.fitting.group_of_originals(classes.ids)
    if of_row is None:
        problem = "rows are sorted, and some original rows fit several groups"
        raise UndecidableError(problem)
    is_released = of_row >= 0
    if not np.array_equal(np.bincount(of_row[is_released], minlength=len(classes.sizes)), classes.sizes):
        problem = "some rows of a group were left out, and others not"
        raise InvalidParameterError("rows", problem, allowed="released or left out group by group")
    return ReleasedRows(pair.rows[is_released], of_row[is_released])


def fewest_persons_by_fit(guarantee: KAnonymity | Containment, pair: ReleaseVsOriginal) -> int:
    """Fewest persons that a group of equal released rows can have, where it is not known which rows it holds."""
    persons = pair.original.coded(guarantee.unit).codes[pair.rows]
    return _fewest_persons(pair.fitting, group_rows(pair.released, guarantee.columns), persons)


def _fewest_persons(fitting: Pairs | None, classes: Classes, persons: NDArray[np.int32]) -> int:
    """Fewest persons that a group can have: those with the most rows that fit it, until it is full; 0 if unknown."""
    if fitting is None:
        return 0
    try:
        groups, rows = fitting.rows_of_groups(classes.ids)
    except TooManyPairsError:
        return 0
    pairs, n_rows = np.unique(np.column_stack([groups, persons[rows]]), axis=0, return_counts=True)
    order = np.lexsort((-n_rows, pairs[:, 0]))
    of_group, n_rows = pairs[order, 0], n_rows[order]
    starts = np.searchsorted(of_group, np.arange(len(classes.sizes)))
    before = np.cumsum(n_rows) - n_rows
    filled = before - before[np.minimum(starts, len(before) - 1)][of_group]
    needed = np.bincount(of_group[filled < classes.sizes[of_group]], minlength=len(classes.sizes))
    return int(needed.min(initial=len(persons)))


def level_by_persons(guarantee: Guarantee, pair: ReleaseVsOriginal) -> float:
    """Measure a level by persons.

    Raises
    ------
    UndecidableError
        If it cannot be known whose rows a group holds, with what the level is whoever has them.
    """
    by_persons = JUDGED[guarantee.kind].by_persons or level_in_classes_of_persons
    return by_persons(guarantee, pair)


def level_in_classes_of_persons(guarantee: Guarantee, pair: ReleaseVsOriginal) -> float:
    """Measure a level in classes that are counted by persons; errors as of :func:`level_by_persons`."""
    try:
        return JUDGED[guarantee.kind].level_in(
            guarantee, lambda spelled: PersonValues.of(guarantee, pair, spelled=spelled).classes(), are_merged=True
        )
    except UndecidableError as exc:
        if isinstance(guarantee, KAnonymity):
            raise UndecidableError(str(exc), fewest_persons_by_fit(guarantee, pair)) from None
        raise UndecidableError(str(exc), 0 if guarantee.level.higher_is_safer else math.inf) from None


@dataclass(frozen=True)
class PersonValues:
    """Group, person and sensitive value of each released row; all three are numbered from 0 without gaps."""

    groups: Ids
    persons: Ids
    values: Ids

    @classmethod
    def of(cls, guarantee: Guarantee, pair: ReleaseVsOriginal, *, spelled: bool = False) -> PersonValues:
        """Find them, by the values or by their spellings; one value for all where no column is sensitive."""
        rows = released_rows(tuple(JUDGED[guarantee.kind].columns_of_classes(guarantee)), pair)
        persons = pair.original.coded(guarantee.unit).codes[rows.places]
        values = np.zeros(len(persons), dtype=np.int64)
        if (name := getattr(guarantee, "sensitive", None)) is not None:
            described, column = pair.released.describe(name), pair.original.coded(name)
            rank = (spelled_ranks if spelled else ranks)(column.values, described.kind, described.domain)
            values = rank[column.codes[rows.places]]
        numbered = (rows.groups, persons, values)
        return cls(*(np.unique(own, return_inverse=True)[1].reshape(-1).astype(np.int64) for own in numbered))

    def matched_level(self) -> float:
        """Size of the largest matching of values and persons in the group where that is smallest."""
        if not len(self.groups):
            return 0.0
        n_persons = int(self.persons.max()) + 1
        pairs, of_row = np.unique(self.groups * n_persons + self.persons, return_inverse=True)
        n_groups = int(self.groups.max()) + 1
        return float(largest_matchings(pairs // n_persons, of_row.reshape(-1), self.values, n_groups).min())

    def classes(self) -> AbstractContextManager[EquivalenceClasses]:
        """Count persons."""
        return classes_of_persons(self.groups, self.persons, self.values)


def check_person_promise(guarantee: Guarantee, evidence: Evidence) -> Iterator[Check | Unchecked]:
    """Whether the column that identifies persons is the one that the holder declared, and is not released."""
    claims, name = evidence.claims, guarantee.unit
    sources = {recoding.column for recoding in claims.recodings.values()}
    is_shown = name in claims.names() or name in sources
    problems = [f"'{name}', which tells persons apart, is released"] if is_shown else []
    declared = evidence.original.with_role(Role.PERSON) if evidence.original is not None else ()
    if (declared or evidence.has_roles) and name not in declared:
        problems.append(f"'{name}' is not the column that was declared to tell persons apart")
    said = "; ".join(problems) or "the column that tells persons apart is not released"
    yield Check(f"{guarantee.name}: persons", not problems, f"{guarantee.name}: {said}")
    if evidence.original is not None and not declared and not evidence.has_roles:
        yield Unchecked("roles", f"that '{name}' tells persons apart is the manifest's word", DECLARE)


PERSON_LIMIT = "suppression limit: persons"
Losses = tuple[int, int, str]
"""Persons who lost a row, or at most so many; all persons; and why the first number is not known, if it is not."""


def check_person_suppression(
    claims: Claims, losses: Callable[[KAnonymity], Losses] | None
) -> Iterator[Check | Unchecked]:
    """Whether no larger share of the persons lost a row than may be suppressed, where the manifest says so.

    How many they are is not said.

    Parameters
    ----------
    losses : callable or None
        Counts them by the original, for a promise by persons; ``None``: without an original.
    """
    stated = claims.stated_utility.get("suppression_limit_counts")
    if stated is None:
        return
    promises = [p.guarantee for p in claims.promises if isinstance(p.guarantee, KAnonymity) and p.guarantee.by_persons]
    limit = claims.parameters.get("max_suppressed_fraction")
    if stated != ROWS_AND_PERSONS or not promises or not is_number(limit) or not 0 <= limit <= 1:
        said = "the manifest limits persons who lose rows, and does not say which or how"
        yield Check(PERSON_LIMIT, False, said)
        return
    if losses is None:
        return
    try:
        n_lost, n_persons, unknown = losses(promises[0])
    except (InvalidParameterError, SchemaError) as exc:
        yield Check(PERSON_LIMIT, False, f"persons who lost rows cannot be counted: {exc}")
        return
    passed = n_lost <= Fraction(str(limit)) * n_persons
    if unknown and not passed:
        yield Unchecked("persons", f"how many persons lost rows was not counted: {unknown}")
        return
    said = f"{'no larger' if passed else 'a larger'} share of the persons lost a row than {float(limit):.6g}, the limit"
    yield Check(PERSON_LIMIT, passed, said)


def losses_of_persons(promise: KAnonymity, pair: ReleaseVsOriginal) -> Losses:
    """Look up whose rows are released; errors as of :func:`released_rows`, but where rows do not tell it."""
    persons = pair.original.coded(promise.unit).codes[pair.rows]
    n_persons = len(np.unique(persons))
    try:
        kept = released_rows(promise.columns, pair).places
    except UndecidableError as exc:
        return pair.claims.suppressed_rows, n_persons, str(exc)  # no more persons than rows
    return len(np.unique(persons[~np.isin(pair.rows, kept)])), n_persons, ""
