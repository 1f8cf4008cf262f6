"""Rows of a binary table as sets of items, and what a search for maximal frequent itemsets asks of them.

A set of items is *frequent* when at least k rows contain it, and *maximal* when no further item can join it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.counting.bitsets import Words, counted, distinct_rows, ones_of_each, pack_rows

Positions = NDArray[np.intp]
Reals = NDArray[np.float64]

_CODE_SEED = 20170
_BUCKET_BITS = 20
_CACHED_BITS = 1 << 29  # 64 MiB of row sets


@dataclass(frozen=True)
class Transactions:
    """Rows as sets of items that occur in at least k rows; equal rows and equal items are merged.

    An item stands for all features that are one in exactly the same rows. Items, rows and their order depend on the
    set of rows alone, not on the order in which they came. Rows without such an item are left out.

    Parameters
    ----------
    k : int
        Least number of rows that must contain a set.
    rows, items : arrays
        Row and item of every one of the matrix, by row and then by item, ascending.
    rows_by_item, item_starts : arrays
        The rows of the first item, ascending, then those of the second, and so on; where those of each begin.
    copies : array
        How often each row occurs, at most k: further copies change nothing.
    features : array
        Positions of the features that occur in at least k rows.
    item_of_feature : array
        The item that each of these belongs to.
    """

    k: int
    rows: Positions
    items: Positions
    rows_by_item: Positions
    item_starts: Positions
    copies: Reals
    features: Positions
    item_of_feature: Positions

    @classmethod
    def from_matrix(cls, matrix: sp.csc_matrix, k: int, row_counts: NDArray[np.int64] | None = None) -> Transactions:
        """Keep the features with at least k ones, and merge what is equal.

        ``row_counts``: how many rows each row of the matrix stands for; None: one.
        """
        features = np.flatnonzero(ones_of_each(matrix, row_counts) >= k)
        by_row = sp.csr_matrix(matrix[:, features])
        has_ones = np.diff(by_row.indptr) > 0
        by_row = by_row[has_ones]
        representatives, counts, inverse = merge_equal_rows(by_row)
        if row_counts is not None:
            counts = counted(inverse, row_counts[has_ones], len(counts))
        by_item = sp.csr_matrix(by_row[representatives].T)
        first_of_item, _, item_of_feature = merge_equal_rows(by_item)
        by_item = by_item[first_of_item]
        merged = sp.csr_matrix(by_item.T)
        return cls(
            k,
            np.repeat(np.arange(merged.shape[0]), np.diff(merged.indptr)),
            merged.indices.astype(np.intp),
            by_item.indices.astype(np.intp),
            by_item.indptr.astype(np.intp),
            np.minimum(counts, k).astype(np.float64),
            features,
            item_of_feature,
        )

    @property
    def n_rows(self) -> int:
        """Number of different rows."""
        return len(self.copies)

    @property
    def n_items(self) -> int:
        """Number of different items."""
        return len(self.item_starts) - 1

    @cached_property
    def row_starts(self) -> Positions:
        """Where each row begins among the entries; one more than there are rows."""
        return np.searchsorted(self.rows, np.arange(self.n_rows + 1))

    @cached_property
    def _row_sets(self) -> dict[int, Words]:
        return {}

    def per_item(self, per_feature: NDArray[np.int64]) -> Reals:
        """Add up a number of every feature over the features of each item."""
        return add_up(self.item_of_feature, per_feature[self.features], self.n_items)

    def per_row(self, per_item: Reals) -> Reals:
        """Add up a number of every item over the items of each row."""
        return add_up(self.rows, per_item[self.items], self.n_rows)

    def features_of(self, items: Positions) -> tuple[int, ...]:
        """Positions of the features that some items stand for, ascending."""
        chosen = np.zeros(self.n_items, dtype=np.bool_)
        chosen[items] = True
        return tuple(self.features[chosen[self.item_of_feature]].tolist())

    def items_of_rows(self, rows: Positions) -> tuple[Positions, Positions]:
        """Entries of some rows: for each its place in ``rows``, and its item."""
        starts, ends = self.row_starts[rows], self.row_starts[rows + 1]
        return np.repeat(np.arange(len(rows)), ends - starts), self.items[ranges(starts, ends)]

    def items_of_row(self, row: int) -> Positions:
        """Items of one row, ascending."""
        return self.items[self.row_starts[row] : self.row_starts[row + 1]]

    def rows_with(self, items: Positions) -> Positions:
        """Rows that contain all of these items."""
        common = np.bitwise_and.reduce([self._rows_of(int(item)) for item in items])
        return np.flatnonzero(np.unpackbits(common.astype("<u8").view(np.uint8), bitorder="little"))

    def _rows_of(self, item: int) -> Words:
        if item not in self._row_sets:
            if len(self._row_sets) * self.n_rows > _CACHED_BITS:
                self._row_sets.clear()
            start, end = self.item_starts[item : item + 2]
            self._row_sets[item] = pack_rows(self.rows_by_item[start:end].astype(np.int32), self.n_rows)
        return self._row_sets[item]

    def joinable(self, items: Positions) -> Positions:
        """Items outside the set with which it stays frequent: none if it is maximal."""
        rows = self.rows_with(items)
        place, found = self.items_of_rows(rows)
        together = add_up(found, self.copies[rows][place], self.n_items)
        together[items] = 0
        return np.flatnonzero(together >= self.k)

    def extended(self, items: Positions, worth: Reals) -> Positions:
        """Let the item that is worth most join, as long as one can: a maximal set, ascending."""
        while len(left := self.joinable(items)):
            items = np.append(items, left[np.argmax(worth[left])])
        return np.sort(items)


def add_up(places: Positions, values: NDArray[Any], n: int) -> Reals:
    """Sum values by the place, 0 to n - 1, that each belongs to."""
    return np.bincount(places, values, n).astype(np.float64, copy=False)


def ranges(starts: Positions, ends: Positions) -> Positions:
    """Concatenate the whole numbers from each start up to, not including, its end.

    Examples
    --------
    >>> ranges(np.array([3, 8]), np.array([5, 11])).tolist()
    [3, 4, 8, 9, 10]
    """
    lengths = ends - starts
    before = np.cumsum(lengths) - lengths
    joined: Positions = np.arange(lengths.sum()) + np.repeat(starts - before, lengths)
    return joined


def merge_equal_rows(matrix: sp.csr_matrix) -> tuple[Positions, NDArray[np.int64], Positions]:
    """Find one representative of each different row, its count, and which one a row is.

    Rows are grouped by the sum of a random number for every column, and then compared. Their order is that of the
    sums, so it does not depend on the order of the rows given.
    """
    matrix.sort_indices()
    codes = np.cumsum(np.append(np.uint64(0), _codes(matrix.shape[1])[matrix.indices]), dtype=np.uint64)
    starts, ends = matrix.indptr[:-1].astype(np.intp), matrix.indptr[1:].astype(np.intp)
    _, representatives, inverse, counts = np.unique(
        codes[ends] - codes[starts], return_index=True, return_inverse=True, return_counts=True
    )
    of_row = representatives[inverse]
    if np.array_equal((ends - starts)[of_row], ends - starts) and np.array_equal(
        matrix.indices[ranges(starts[of_row], ends[of_row])], matrix.indices
    ):
        return representatives, counts, inverse
    distinct = distinct_rows(matrix)  # two different rows have the same sum: one pair in 10**19
    return distinct.representatives, distinct.counts, distinct.inverse


def _codes(n: int) -> NDArray[np.uint64]:
    return np.random.default_rng(_CODE_SEED).integers(0, 2**64, size=n, dtype=np.uint64)


def largest_size_bound(transactions: Transactions) -> int:
    """Bound the number of features of a frequent set, from the longest rows.

    A set that lacks at most one feature of the longest rows is such a row, or one without a feature. These are few
    enough to be counted: if none is frequent, a frequent set has at least two features less. Tables made from
    columns with one value a row, whose rows are all equally long, gain most.
    """
    sizes = transactions.per_item(np.ones(transactions.features.max(initial=-1) + 1, dtype=np.int64))
    row_sizes = transactions.per_row(sizes)
    longest = int(row_sizes.max(initial=0))
    codes = _codes(transactions.n_items)
    sums = np.add.reduceat(codes[transactions.items], transactions.row_starts[:-1]) if longest else codes
    whole = row_sizes == longest
    if _reaches(sums[whole], transactions.copies[whole], transactions.k):
        return longest
    one_less = whole[transactions.rows] & (sizes[transactions.items] == 1)
    rows, shorter = transactions.rows[one_less], row_sizes == longest - 1
    candidates = np.concatenate([sums[rows] - codes[transactions.items[one_less]], sums[shorter]])
    copies = np.concatenate([transactions.copies[rows], transactions.copies[shorter]])
    return longest - (1 if _reaches(candidates, copies, transactions.k) else 2)


def _reaches(codes: NDArray[np.uint64], copies: Reals, k: int) -> bool:
    """Whether equal codes have k copies together."""
    bucket = (codes >> np.uint64(64 - _BUCKET_BITS)).astype(np.intp)
    full = add_up(bucket, copies, 1 << _BUCKET_BITS) >= k
    likely = full[bucket]
    _, group = np.unique(codes[likely], return_inverse=True)
    return bool((add_up(group, copies[likely], 1) >= k).any())
