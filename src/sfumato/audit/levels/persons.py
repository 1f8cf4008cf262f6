r"""Levels that count persons: the original says whose rows a group of equal released rows holds.

In a group each person weighs 1, shared equally over the person's rows there, and in the whole release each person
weighs 1, shared over all of the person's released rows. All rows without a person count as those of one. A value of a
group is well represented by persons if as many different persons carry as many different values, each one of them
(distinct): a largest matching of values and persons; or by the weights of the values (entropy, recursive, closeness).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import maximum_bipartite_matching

from sfumato.audit.checks import DECLARE, Check, Unchecked
from sfumato.audit.claims import Claims
from sfumato.audit.kinds import JUDGED, Evidence, UndecidableError
from sfumato.audit.original.assignment import Pairs, TooManyPairsError
from sfumato.audit.original.release_vs_original import ReleaseVsOriginal
from sfumato.audit.reading.columns import Classes, group_rows
from sfumato.audit.reading.equivalence import EquivalenceClasses, classes_of_persons
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
        (of_value, group_of_value), (of_person, _) = (_pairs(self.groups, own) for own in (self.values, self.persons))
        shape = len(group_of_value), int(of_person.max()) + 1
        edges = sp.csr_matrix((np.ones(len(of_value), dtype=np.int64), (of_value, of_person)), shape=shape)
        has_partner = maximum_bipartite_matching(edges, perm_type="column") >= 0
        return float(np.bincount(group_of_value, weights=has_partner).min())

    def classes(self) -> AbstractContextManager[EquivalenceClasses]:
        """Count persons."""
        return classes_of_persons(self.groups, self.persons, self.values)


def _pairs(groups: Ids, own: Ids) -> tuple[Ids, Ids]:
    """Give each row the number of its pair of a group and something, by group first, and each pair its group."""
    n_own = int(own.max(initial=0)) + 1
    keys, numbers = np.unique(groups * n_own + own, return_inverse=True)
    return numbers.reshape(-1).astype(np.int64), keys // n_own


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


def check_person_suppression(claims: Claims, pair: ReleaseVsOriginal | None) -> Iterator[Check | Unchecked]:
    """Whether no larger share of the persons lost a row than may be suppressed, where the manifest says so."""
    promise = limit_of_persons(claims)
    if isinstance(promise, Check):
        yield promise
    if promise is None or isinstance(promise, Check) or pair is None:
        return
    persons = pair.original.coded(promise.unit).codes[pair.rows]
    try:
        kept = released_rows(promise.columns, pair).places
    except UndecidableError as exc:
        at_most = within_limit_of_persons(claims, claims.suppressed_rows, len(np.unique(persons)))
        said = f"how many persons lost rows was not counted: {exc}"
        yield at_most if at_most.passed else Unchecked("persons", said)  # no more persons than rows
        return
    except (InvalidParameterError, SchemaError) as exc:
        yield Check(PERSON_LIMIT, False, f"persons who lost rows cannot be counted: {exc}")
        return
    lost = persons[~np.isin(pair.rows, kept)]
    yield within_limit_of_persons(claims, len(np.unique(lost)), len(np.unique(persons)))


PERSON_LIMIT = "suppression limit: persons"


def limit_of_persons(claims: Claims) -> KAnonymity | Check | None:
    """Promise by persons, where the limit of suppression counts them; a check that failed if none does.

    ``None``: the manifest does not say that persons are limited.
    """
    stated = claims.stated_utility.get("suppression_limit_counts")
    if stated is None:
        return None
    promises = [p.guarantee for p in claims.promises if isinstance(p.guarantee, KAnonymity) and p.guarantee.by_persons]
    limit = claims.parameters.get("max_suppressed_fraction")
    is_limit = isinstance(limit, int | float) and not isinstance(limit, bool) and 0 <= limit <= 1
    if stated != ROWS_AND_PERSONS or not promises or not is_limit:
        return Check(PERSON_LIMIT, False, "the manifest limits persons who lose rows, and does not say which or how")
    return promises[0]


def within_limit_of_persons(claims: Claims, n_lost: int, n_persons: int) -> Check:
    """Compare the share of persons who lost a row with the limit; how many they are is not said."""
    limit = Fraction(str(claims.parameters["max_suppressed_fraction"]))
    passed = n_lost <= limit * n_persons
    said = "no larger" if passed else "a larger"
    return Check(PERSON_LIMIT, passed, f"{said} share of the persons lost a row than {float(limit):.6g}, the limit")
