"""k-anonymity by containment, counted by persons: how many persons have a row with all the ones of a row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.kinds import CROWD, Judging, NotToldError, judge
from sfumato.audit.levels.anonymity import Patterns, known_items
from sfumato.audit.levels.persons.groups import Ids, check_person_promise, fewest_persons_by_fit, released_rows
from sfumato.audit.original.release_vs_original import Beside
from sfumato.audit.reading.columns import group_rows
from sfumato.guarantees import PersonContainment


def measure(guarantee: PersonContainment, beside: Beside) -> float:
    """Fewest persons with a row that has all revealing values of a row; 0 for a table without rows.

    Of a group of equal released rows the original says whose they are. Who has a row of the group has a row with its
    values, so that where rows do not tell it, a group's own fewest persons bound the level.
    """
    try:
        rows = released_rows(guarantee.columns, beside)
    except NotToldError as exc:
        raise NotToldError(str(exc), fewest_persons_by_fit(guarantee, beside)) from None
    if not len(rows.places):
        return 0
    first_rows = np.unique(group_rows(beside.released, guarantee.columns).ids, return_index=True)[1]
    ones = beside.released.ones(guarantee.columns).tocsr()[first_rows]
    persons = beside.original.coded(guarantee.person).codes[rows.places]
    return fewest_holders(Patterns(known_items(ones, guarantee.reveals), None), rows.groups, persons)


def fewest_holders(patterns: Patterns, groups: Ids, persons: NDArray[np.integer]) -> int:
    """Fewest persons who have, in one row, all the ones of a pattern.

    Persons of several patterns do not add up: they are counted for every pattern over all that include it. One that
    has as many persons of its own as the fewest found so far is passed over.

    Parameters
    ----------
    patterns : Patterns
        What is known of each group of equal rows.
    groups, persons : arrays of int
        Group and person of each row.
    """
    pairs = np.unique(np.column_stack([patterns.of_row[groups], persons]), axis=0)
    of_pair, holders = pairs[:, 0], pairs[:, 1]
    starts = np.searchsorted(of_pair, np.arange(int(patterns.of_row.max()) + 2))
    n_own = np.diff(starts)
    fewest = len(np.unique(holders))
    for pattern in patterns.largest_first():
        if n_own[pattern] >= fewest:
            continue
        found: set[int] = set()
        for member in patterns.members(patterns.including(pattern)).tolist():
            found.update(holders[starts[member] : starts[member + 1]].tolist())
            if len(found) >= fewest:
                break
        fewest = min(fewest, len(found))
    return fewest


judge(
    PersonContainment.kind,
    Judging(
        form={**CROWD, "reveals": [frozenset({"ones", "zeros", "both"})], "person": "text"},
        parameters=("k",),
        beside_original=measure,
        further=check_person_promise,
    ),
)
