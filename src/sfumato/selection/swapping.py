"""Rows projected on a set of columns from which columns can also be taken out again."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.bitsets import WORD_BITS, Words, rows_with
from sfumato.selection.reduction import Counts, Reduced

Flags = NDArray[np.bool_]

_COMPARED_WORDS = 1 << 21  # words compared at once: 16 MiB
_FIRST_BATCH = 4


class SwappableRows:
    """Whether a column may join a feasible set, and which columns stand in its way.

    Rows that are equal on the chosen columns form a group, as in ``ProjectedRows``. A column that is taken out leaves
    its place in the patterns empty and the groups as they are; that two groups may then be equal does no harm.

    Parameters
    ----------
    reduced : Reduced
        The table; a group counts as many rows as it stands for.
    k : int
        Level of containment that every set keeps.
    """

    def __init__(self, reduced: Reduced, k: int) -> None:
        self.reduced = reduced
        self.k = k
        self.place: dict[int, int] = {}
        self._n_places = 0
        self._group = np.zeros(reduced.n_rows, dtype=np.int32)
        self._sizes = np.array([reduced.n_rows])
        self._patterns = np.zeros((1, 1), dtype=np.uint64)

    @property
    def chosen(self) -> list[int]:
        """Columns of the set, in the order in which they joined."""
        return list(self.place)

    def copy(self) -> SwappableRows:
        """Return an independent copy."""
        other = SwappableRows(self.reduced, self.k)
        other.place, other._n_places = dict(self.place), self._n_places
        other._group, other._sizes, other._patterns = self._group.copy(), self._sizes.copy(), self._patterns.copy()
        return other

    def add(self, column: int) -> None:
        """Let a column join: the rows that have it get groups of their own."""
        rows = rows_with(self.reduced.matrix, column)
        word, bit = divmod(self._n_places, WORD_BITS)
        if word >= self._patterns.shape[1]:
            self._patterns = np.pad(self._patterns, ((0, 0), (0, self._patterns.shape[1])))
        groups, position, sizes = np.unique(self._group[rows], return_inverse=True, return_counts=True)
        divided = sizes < self._sizes[groups]
        ids = np.where(divided, len(self._sizes) + np.cumsum(divided) - 1, groups).astype(np.int32)
        self._sizes[groups[divided]] -= sizes[divided]
        self._sizes = np.concatenate([self._sizes, sizes[divided]])
        self._patterns = np.concatenate([self._patterns, self._patterns[groups[divided]]])
        self._patterns[ids, word] |= np.uint64(1 << bit)
        self._group[rows] = ids[position]
        self.place[column] = self._n_places
        self._n_places += 1

    def drop(self, columns: Iterable[int]) -> None:
        """Take columns out."""
        self._patterns &= ~self._mask(columns)
        for column in columns:
            del self.place[column]

    def allows(self, column: int, without: Iterable[int] = ()) -> bool:
        """Whether the set stays feasible when a column joins, perhaps after others are taken out."""
        return not len(self._rare_patterns(column, without)[0])

    def add_all(self, columns: Iterable[int]) -> None:
        """Let every column join that may, in this order."""
        for column in columns:
            if column not in self.place and self.allows(column):
                self.add(column)

    def obstacles(self, column: int, without: Iterable[int] = ()) -> list[int]:
        """Columns each of which, taken out alone, lets another one join; none if it may join anyway.

        A pattern that is rare among the column's rows needs further rows that include it: those that lack just the
        one column that is taken out.
        """
        rare, present, counts = self._rare_patterns(column, without)
        found: set[int] | None = None
        for pattern in rare:
            missing_rows, helped_by = self._lacking(pattern, present, counts, 1)
            helpful = {single for (single,), n_rows in helped_by.items() if n_rows >= missing_rows}
            found = helpful if found is None else found & helpful
            if not found:
                return []
        return sorted(c for c in found or () if self.allows(column, (*without, c)))

    def obstacle_pairs(self, column: int) -> list[tuple[int, int]]:
        """Pairs of columns that may, taken out together, let another one join; ``allows`` says whether they do."""
        rare, present, counts = self._rare_patterns(column, ())
        if not len(rare):
            return []
        missing_rows, helped_by = self._lacking(rare[0], present, counts, 2)
        singles = sorted(lacking[0] for lacking in helped_by if len(lacking) == 1)
        pairs = {*combinations(singles, 2), *(lacking for lacking in helped_by if len(lacking) == 2)}
        found = {
            (a, b)
            for a, b in pairs
            if helped_by.get((a, b), 0) + helped_by.get((a,), 0) + helped_by.get((b,), 0) >= missing_rows
        }
        for single in singles:
            if helped_by[(single,)] >= missing_rows:  # settles this pattern; the other column must settle the rest
                found.update((min(single, c), max(single, c)) for c in self.obstacles(column, (single,)))
        return sorted(found)

    def _lacking(
        self, pattern: Words, present: Words, counts: Counts, most: int
    ) -> tuple[int, dict[tuple[int, ...], int]]:
        """How many rows a pattern is short of k, and the rows that lack up to so many of its columns, by these."""
        lacking = pattern & ~present
        n_lacking = np.bitwise_count(lacking).sum(axis=1, dtype=np.int64)
        near = np.flatnonzero((n_lacking > 0) & (n_lacking <= most))
        helped_by: dict[tuple[int, ...], int] = {}
        if len(near):
            column_of = {place: chosen for chosen, place in self.place.items()}
            bits = np.unpackbits(lacking[near].astype("<u8").view(np.uint8), axis=1, bitorder="little")
            for row, n_rows in zip(bits, counts[near].tolist(), strict=True):
                columns = tuple(sorted(column_of[place] for place in np.flatnonzero(row).tolist()))
                helped_by[columns] = helped_by.get(columns, 0) + n_rows
        return self.k - int(counts[n_lacking == 0].sum()), helped_by

    def _mask(self, columns: Iterable[int]) -> Words:
        mask = np.zeros(self._patterns.shape[1], dtype=np.uint64)
        for column in columns:
            word, bit = divmod(self.place[column], WORD_BITS)
            mask[word] |= np.uint64(1 << bit)
        return mask

    def _rare_patterns(self, column: int, without: Iterable[int]) -> tuple[Words, Words, Counts]:
        """Patterns of the column's rows that fewer than k of them include (some of these, if there are any).

        Also all patterns of these rows, and how many rows have them. Patterns with most ones are asked first.
        """
        rows = rows_with(self.reduced.matrix, column)
        groups, position = np.unique(self._group[rows], return_inverse=True)
        counts = np.bincount(position, self.reduced.counts[rows]).astype(np.int64)
        present = self._patterns[groups] & ~self._mask(without)
        asked = present[counts < self.k]
        asked = asked[np.argsort(-np.bitwise_count(asked).sum(axis=1, dtype=np.int64), kind="stable")]
        most = max(_FIRST_BATCH, _COMPARED_WORDS // max(1, present.size))
        start, size = 0, _FIRST_BATCH
        while start < len(asked):
            batch = asked[start : start + size]
            included = ((present[None, :, :] & batch[:, None, :]) == batch[:, None, :]).all(axis=2)
            rare: Flags = included @ counts < self.k
            if rare.any():
                return batch[rare], present, counts
            start, size = start + size, min(2 * size, most)
        return asked[:0], present, counts
