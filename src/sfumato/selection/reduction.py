"""What is left to decide about a table at a given k: no features that are in or out at once, nothing twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.counting.bitsets import distinct_rows, ones_of_each

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Reduced:
    """The open part of a table: which *columns* to choose, each one standing for features that are equal.

    A feature with fewer than k ones but at least one is out in every feasible set. One without ones, or with ones
    everywhere, changes the support of no itemset that is present: it is *free*, in every maximal set. Features with
    ones in the same rows are in a maximal set together or not at all.

    Parameters
    ----------
    matrix : csc_matrix
        Different rows × columns. The rows are sorted, so their order in the table does not matter; rows without ones
        are left out.
    counts : array of int
        How often each row occurs.
    members : tuple of tuple of int
        Features that each column stands for, ascending; columns are in the order of their first feature.
    free : tuple of int
        Free features, ascending.
    rare : tuple of int
        Features that are out at once.
    """

    matrix: sp.csc_matrix
    counts: Counts
    members: tuple[tuple[int, ...], ...]
    free: tuple[int, ...]
    rare: tuple[int, ...]

    @property
    def n_columns(self) -> int:
        """Number of columns to decide about."""
        return len(self.members)

    @property
    def n_rows(self) -> int:
        """Number of different rows."""
        return len(self.counts)

    def features(self, columns: Iterable[int]) -> tuple[int, ...]:
        """Features of some columns, the free ones included, ascending."""
        return tuple(sorted([*self.free, *(feature for column in columns for feature in self.members[column])]))

    def columns(self, features: Iterable[int]) -> list[int]:
        """Columns that stand for some of these features, ascending; free and rare features have none."""
        wanted = set(features)
        return [column for column, members in enumerate(self.members) if not wanted.isdisjoint(members)]

    def weights(self, weights: Counts) -> Counts:
        """Weight of every column: the sum over its features."""
        return np.array([weights[list(members)].sum() for members in self.members], dtype=np.int64)

    def dense(self) -> NDArray[np.float32]:
        """Different rows × columns as numbers that multiply fast and count exactly up to 2**24."""
        return np.asarray(self.matrix.toarray(), dtype=np.float32)


def reduce_table(matrix: sp.csc_matrix, k: int, row_counts: Counts | None = None) -> Reduced:
    """Settle what can be settled feature by feature, and merge what is equal.

    ``row_counts``: how many rows each row of the matrix stands for; None: one.

    Examples
    --------
    >>> from sfumato.datasets.papers import toy_containment_table
    >>> left = reduce_table(toy_containment_table().matrix, 2)  # x1 and x5 are ones everywhere
    >>> left.members, left.free, left.counts.tolist()
    (((1,), (2,), (3,)), (0, 4), [1, 1, 3, 1])
    """
    n_rows = matrix.shape[0] if row_counts is None else row_counts.sum()
    support = ones_of_each(matrix, row_counts)
    is_free = (support == 0) | (support == n_rows)
    is_open = (support >= k) & ~is_free
    features = np.flatnonzero(is_open)
    part = matrix[:, features]
    equal = distinct_rows(sp.csr_matrix(part.T))
    members: list[list[int]] = [[] for _ in equal.counts]
    for feature, column in zip(features.tolist(), equal.inverse.tolist(), strict=True):
        members[column].append(feature)
    rows, counts = _sorted_distinct_rows(sp.csr_matrix(part[:, equal.representatives]), row_counts)
    return Reduced(
        rows,
        counts,
        tuple(tuple(group) for group in members),
        tuple(np.flatnonzero(is_free).tolist()),
        tuple(np.flatnonzero(~is_free & ~is_open).tolist()),
    )


def _sorted_distinct_rows(rows: sp.csr_matrix, row_counts: Counts | None) -> tuple[sp.csc_matrix, Counts]:
    """Different rows that have ones, in an order that depends on nothing but themselves, and their counts."""
    distinct = distinct_rows(rows, row_counts)
    kept = rows[distinct.representatives]
    kept.sort_indices()
    raw = kept.indices.astype(">i4").tobytes()
    bounds = (kept.indptr.astype(np.int64) * 4).tolist()
    keys = [raw[start:end] for start, end in pairwise(bounds)]
    order = [row for row in sorted(range(len(keys)), key=keys.__getitem__) if keys[row]]
    by_column = sp.csc_matrix(kept[order])
    by_column.sort_indices()
    return by_column, distinct.counts[order]
