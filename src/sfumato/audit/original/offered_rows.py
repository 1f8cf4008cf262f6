"""Rows of the original that may be released: all but those that the manifest states as left out beforehand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.claims import ClaimedPersons, Claims
from sfumato.audit.reading.columns import Columns

_RANDOM_SEED = 0  # as docs/manifest says: the draw depends on no cell


@dataclass(frozen=True, eq=False)
class OfferedRows:
    """Rows that a mechanism was given, ascending, and how many were left out of the original for which reason."""

    rows: NDArray[np.intp]
    n_incomplete: int
    n_of_same_persons: int


def offered_rows(original: Columns, claims: Claims) -> OfferedRows:
    """Leave out incomplete rows, then further rows of each person, as the manifest says.

    Where the original lacks the column by which persons are identified, none is left out: the check of the numbers of
    rows says so.
    """
    rows = np.arange(original.n_rows)
    if claims.drops_incomplete_rows:
        rows = np.flatnonzero(~original.incomplete_rows())
    n_complete = len(rows)
    if claims.persons is not None and claims.persons.column in original:
        rows = rows[_one_of_each(original.coded(claims.persons.column).codes[rows], claims.persons)]
    return OfferedRows(rows, original.n_rows - n_complete, n_complete - len(rows))


def _one_of_each(persons: NDArray[np.int32], stated: ClaimedPersons) -> NDArray[np.intp]:
    """Places of the rows kept: of each person the first, the last, or the first in a seeded order."""
    places = order_of_rule(len(persons), stated)
    if places is None:
        places = np.arange(len(persons))[:: -1 if stated.rule == "last" else 1]
    first_of_each = np.unique(persons[places], return_index=True)[1]
    return np.sort(places[first_of_each])


def order_of_rule(n_rows: int, stated: ClaimedPersons) -> NDArray[np.intp] | None:
    """Rows in the seeded order by which a random one of each person is kept; ``None`` for other rules."""
    return np.random.default_rng(_RANDOM_SEED).permutation(n_rows) if stated.rule == "random" else None
