"""k-anonymity: how many rows share a row's values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.audit.kinds import Judging, UndecidableError, judge
from sfumato.audit.levels.persons import Ids, fewest_persons_by_fit, released_rows
from sfumato.audit.original.release_vs_original import ReleaseVsOriginal
from sfumato.audit.reading.columns import AnyTable, Columns, Counts, distinct_patterns, group_rows, summed
from sfumato.guarantees import Containment, KAnonymity, UniquePatterns

SMALLEST_CLASS = "SELECT coalesce(min(size), 0) FROM classes"
UNIQUE_CLASSES = "SELECT count(*) FILTER (size = 1) FROM classes"


UNIQUE_SHARE = "SELECT coalesce(count(*) FILTER (size = 1) / sum(size), 1) FROM classes"

# The largest k that holds is the size of the smallest class. A table without rows has k = 0, and a share of unique rows
# of 1, which keep no promise.
judge(
    KAnonymity.kind,
    Judging(parameters=("k",), in_classes=lambda _, classes: classes.ask(SMALLEST_CLASS)),
)
judge(
    UniquePatterns.kind,
    Judging(
        parameters=("max_unique_fraction",),
        in_classes=lambda _, classes: classes.ask(UNIQUE_SHARE),
        over=lambda guarantee: guarantee.columns,
    ),
)


# k-anonymity by containment: how many rows have all the ones of a row.


Words = NDArray[np.uint64]


class Patterns:
    """Distinct rows of a 0/1 matrix; for each column the set of patterns that have a one there, as packed bits.

    A pattern is included in those that lie in the intersection of the sets of its ones. ``row_counts`` says how many
    rows each row of the matrix stands for; ``None``: one.
    """

    def __init__(self, ones: sp.csr_matrix, row_counts: Counts | None) -> None:
        self.of_row, first_rows = distinct_patterns(ones)
        each = np.ones(len(self.of_row), dtype=np.int64) if row_counts is None else row_counts
        self.n_rows_with = summed(self.of_row, each, len(first_rows))
        self._distinct = ones[first_rows]
        self._by_column = self._distinct.tocsc()
        self._sets: dict[int, Words] = {}
        self._all = self._pack(np.arange(len(first_rows)))

    def _pack(self, patterns: NDArray[np.integer]) -> Words:
        n_words = -(-len(self.n_rows_with) // 64)
        bits = np.zeros(n_words * 64, dtype=np.uint8)
        bits[patterns] = 1
        return np.packbits(bits).view(np.uint64)

    def _set_of(self, column: int) -> Words:
        if column not in self._sets:
            start, end = self._by_column.indptr[column : column + 2]
            self._sets[column] = self._pack(self._by_column.indices[start:end])
        return self._sets[column]

    def largest_first(self) -> list[int]:
        """Patterns by their number of ones, most first: those are included in fewest rows."""
        order: list[int] = np.argsort(-np.diff(self._distinct.indptr), kind="stable").tolist()
        return order

    def including(self, pattern: int) -> Words:
        """Return the set of patterns that have all the ones of a pattern."""
        start, end = self._distinct.indptr[pattern : pattern + 2]
        common = self._all.copy()
        for column in self._distinct.indices[start:end].tolist():
            np.bitwise_and(common, self._set_of(column), out=common)
        return common

    def members(self, patterns: Words) -> NDArray[np.intp]:
        """Places of the patterns of a set."""
        words = np.flatnonzero(patterns)
        bits = np.unpackbits(patterns[words].view(np.uint8)).reshape(-1, 64)
        at, place = np.nonzero(bits)
        return np.asarray(words[at] * 64 + place)

    def n_rows_in(self, patterns: Words) -> int:
        """Count the rows that have a pattern of a set."""
        return int(self.n_rows_with[self.members(patterns)].sum())


def containment_level(columns: Columns, names: Sequence[str]) -> int:
    """AC(D), the smallest AC(e); no columns gives the number of rows, no rows give 0, which keeps no promise.

    Notes
    -----
    A pattern that occurs at least as often as the smallest AC found so far cannot be below it, nor can one that is
    included in at least so many patterns: both are passed over. No smaller AC than 1 exists, so there the search ends.

    References
    ----------
    .. [kAC17] Zhang, Mohammed, Dave, Al Hasan: Feature Selection for Classification under Anonymity Constraint.
       Transactions on Data Privacy 10 (2017) 1-25.
    """
    return _level(columns.ones(names), columns.n_rows, columns.row_counts)


def _level(ones: sp.csr_matrix, n_rows: int, row_counts: Counts | None) -> int:
    smallest = n_rows
    patterns = Patterns(ones, row_counts)
    for pattern in patterns.largest_first():
        if smallest <= 1:
            break
        if patterns.n_rows_with[pattern] >= smallest:
            continue
        including = patterns.including(pattern)
        if int(np.bitwise_count(including).sum()) < smallest:
            smallest = min(smallest, patterns.n_rows_in(including))
    return smallest


def measure_containment(guarantee: Containment, released: AnyTable) -> float:
    """Largest k for which the revealing values of every row are those of at least k rows."""
    columns = Columns(released)
    known = known_items(columns.ones(guarantee.columns), guarantee.reveals)
    return _level(known, columns.n_rows, columns.row_counts)


def known_items(ones: sp.csr_matrix, reveals: Sequence[str]) -> sp.csr_matrix:
    """Write what an attacker may know as a 0/1 matrix: ones, zeros (as ones of the complement) or both."""
    if not reveals:
        return ones
    dense = ones.toarray().astype(np.int8)
    known = [dense[:, i] for i, which in enumerate(reveals) if which != "zeros"]
    known += [1 - dense[:, i] for i, which in enumerate(reveals) if which != "ones"]
    return sp.csr_matrix(np.column_stack(known))


def measure_containment_by_persons(guarantee: Containment, pair: ReleaseVsOriginal) -> float:
    """Fewest persons with a row that has all revealing values of a row; 0 for a table without rows.

    Of a group of equal released rows the original says whose they are. Who has a row of the group has a row with its
    values, so that where rows do not tell it, a group's own fewest persons bound the level.
    """
    try:
        rows = released_rows(guarantee.columns, pair)
    except UndecidableError as exc:
        raise UndecidableError(str(exc), fewest_persons_by_fit(guarantee, pair)) from None
    if not len(rows.places):
        return 0
    first_rows = np.unique(group_rows(pair.released, guarantee.columns).ids, return_index=True)[1]
    ones = pair.released.ones(guarantee.columns).tocsr()[first_rows]
    persons = pair.original.coded(guarantee.unit).codes[rows.places]
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
    Containment.kind,
    Judging(
        parameters=("k",),
        on_release=measure_containment,
        by_persons=measure_containment_by_persons,
    ),
)
