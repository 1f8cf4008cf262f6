"""k-anonymity by containment: how many rows have all the ones of a row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.audit.columns import AnyTable, Columns
from sfumato.audit.counting import Counts, distinct_patterns, summed
from sfumato.audit.kinds import CROWD, Judging, judge
from sfumato.audit.large_containment import counted_ones
from sfumato.guarantees import Containment

Words = NDArray[np.uint64]


class _Patterns:
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

    def n_rows_in(self, patterns: Words) -> int:
        """Count the rows that have a pattern of a set."""
        words = np.flatnonzero(patterns)
        bits = np.unpackbits(patterns[words].view(np.uint8)).reshape(-1, 64)
        at, place = np.nonzero(bits)
        return int(self.n_rows_with[words[at] * 64 + place].sum())


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
    return _level(_ones(columns, names), columns.n_rows, columns.row_counts)


def _ones(columns: Columns, names: Sequence[str]) -> sp.csr_matrix:
    return columns.ones(names) if columns.row_counts is None else counted_ones(columns, names)


def _level(ones: sp.csr_matrix, n_rows: int, row_counts: Counts | None) -> int:
    smallest = n_rows
    patterns = _Patterns(ones, row_counts)
    for pattern in patterns.largest_first():
        if smallest <= 1:
            break
        if patterns.n_rows_with[pattern] >= smallest:
            continue
        including = patterns.including(pattern)
        if int(np.bitwise_count(including).sum()) < smallest:
            smallest = min(smallest, patterns.n_rows_in(including))
    return smallest


def measure(guarantee: Containment, released: AnyTable) -> float:
    """Largest k for which the revealing values of every row are those of at least k rows."""
    columns = Columns(released)
    known = _known(_ones(columns, guarantee.columns), guarantee.reveals)
    return _level(known, columns.n_rows, columns.row_counts)


def _known(ones: sp.csr_matrix, reveals: Sequence[str]) -> sp.csr_matrix:
    """Write what an attacker may know as a 0/1 matrix: ones, zeros (as ones of the complement) or both."""
    if not reveals:
        return ones
    dense = ones.toarray().astype(np.int8)
    known = [dense[:, i] for i, which in enumerate(reveals) if which != "zeros"]
    known += [1 - dense[:, i] for i, which in enumerate(reveals) if which != "ones"]
    return sp.csr_matrix(np.column_stack(known))


judge(
    Containment.kind,
    Judging(form={**CROWD, "reveals": [frozenset({"ones", "zeros", "both"})]}, parameters=("k",), on_release=measure),
)
