"""Counting on binary tables: row sets as packed words, containment counts, and rows projected on a growing feature set.

Nothing here builds an n × n matrix; memory stays proportional to the number of ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Counts = NDArray[np.int64]
WORD_BITS = 64
ONES, ZEROS = 1, 2
_CHUNK_WORDS = 1 << 21  # words handled at once: 16 MiB
_FIRST_BATCH = 16


def pack_rows(rows: NDArray[np.int32], n_rows: int) -> Words:
    """Pack a set of row numbers into words, row 0 in the lowest bit of the first word.

    Examples
    --------
    >>> pack_rows(np.array([0, 2, 64]), 65).tolist()
    [5, 1]
    """
    bits = np.zeros(-(-max(n_rows, 1) // WORD_BITS) * WORD_BITS, dtype=np.uint8)
    bits[rows] = 1
    return np.packbits(bits, bitorder="little").view("<u8").astype(np.uint64)


def popcount(words: Words) -> int:
    """Count the ones in packed words."""
    return int(np.bitwise_count(words).sum())


def support(matrix: sp.csc_matrix, features: NDArray[np.intp] | list[int]) -> int:
    """Count the rows that have a one in every one of these features."""
    n_rows = matrix.shape[0]
    common = pack_rows(np.arange(n_rows, dtype=np.int32), n_rows)
    for feature in features:
        common &= pack_rows(rows_with(matrix, int(feature)), n_rows)
    return popcount(common)


def rows_with(matrix: sp.csc_matrix, feature: int) -> NDArray[np.int32]:
    """Row numbers that have a one in a feature, ascending."""
    start, end = matrix.indptr[feature], matrix.indptr[feature + 1]
    rows: NDArray[np.int32] = matrix.indices[start:end]
    return rows


def ones_by_class(matrix: sp.csc_matrix, classes: NDArray[np.int32], n_classes: int) -> Counts:
    """Count the ones of every feature in every class (classes × features)."""
    n_rows = matrix.shape[0]
    membership = sp.csr_matrix(
        (np.ones(n_rows, dtype=np.int64), (classes, np.arange(n_rows))), shape=(n_classes, n_rows)
    )
    return np.asarray((membership @ matrix.astype(np.int64)).toarray(), dtype=np.int64)


def revealing_items(matrix: sp.csc_matrix, reveals: NDArray[np.uint8]) -> sp.csc_matrix:
    """One column for every revealing value: a feature itself for its ones, its complement for its zeros."""
    ones = matrix[:, np.flatnonzero(reveals & ONES)]
    flipped = matrix[:, np.flatnonzero(reveals & ZEROS)]
    zeros = sp.csc_matrix(1 - flipped.toarray().astype(np.uint8))
    return sp.csc_matrix(sp.hstack([ones, zeros]))


@dataclass(frozen=True)
class DistinctRows:
    """Distinct rows of a binary matrix: one representative each, how often each occurs, and which one a row is."""

    representatives: NDArray[np.intp]
    counts: Counts
    inverse: NDArray[np.intp]


def distinct_rows(matrix: sp.spmatrix) -> DistinctRows:
    """Group equal rows exactly, in order of first appearance."""
    rows = sp.csr_matrix(matrix)
    rows.sort_indices()
    seen: dict[bytes, int] = {}
    inverse = np.empty(rows.shape[0], dtype=np.intp)
    raw = np.ascontiguousarray(rows.indices, dtype=np.int32).tobytes()
    bounds = (rows.indptr.astype(np.int64) * 4).tolist()
    for row, (start, end) in enumerate(pairwise(bounds)):
        inverse[row] = seen.setdefault(raw[start:end], len(seen))
    _, representatives, counts = np.unique(inverse, return_index=True, return_counts=True)
    return DistinctRows(representatives.astype(np.intp), counts.astype(np.int64), inverse)


class Inclusion:
    """Which distinct rows of a binary matrix include which: the ones of one are among the ones of the other."""

    def __init__(self, matrix: sp.spmatrix) -> None:
        self.distinct = distinct_rows(matrix)
        self._patterns = sp.csr_matrix(matrix)[self.distinct.representatives]
        self._by_feature = sp.csc_matrix(self._patterns)
        self._n_patterns_with = np.diff(self._by_feature.indptr)
        self._wanted = np.zeros(self._patterns.shape[1], dtype=np.int64)

    def including(self, pattern: int) -> NDArray[np.integer]:
        """Distinct rows that include a distinct row, itself among them; those with its rarest feature are tried."""
        indptr, indices = self._patterns.indptr, self._patterns.indices
        features = indices[indptr[pattern] : indptr[pattern + 1]]
        if not len(features):
            return np.arange(len(indptr) - 1)
        candidates = rows_with(self._by_feature, int(features[np.argmin(self._n_patterns_with[features])]))
        places, owner = _positions(indptr[candidates], indptr[candidates + 1])
        self._wanted[features] = 1
        shared = np.bincount(owner, weights=self._wanted[indices[places]], minlength=len(candidates))
        self._wanted[features] = 0
        found: NDArray[np.integer] = candidates[shared == len(features)]
        return found


def _positions(starts: NDArray[np.integer], ends: NDArray[np.integer]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """All positions of several ranges one after the other, and which range each belongs to."""
    lengths = ends - starts
    owner = np.repeat(np.arange(len(lengths)), lengths)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.repeat(starts, lengths) + within, owner


def containment_counts(matrix: sp.spmatrix) -> Counts:
    """AC(e) for every row: the number of rows, itself included, whose ones include all of its own.

    Definition 4 of [kAC17]_. A row without ones is contained in every row.
    """
    inclusion = Inclusion(matrix)
    counts = inclusion.distinct.counts
    levels = np.array([counts[inclusion.including(i)].sum() for i in range(len(counts))], dtype=np.int64)
    return levels[inclusion.distinct.inverse]


def all_included(asked: Words, targets: Words) -> bool:
    """Whether each asked pattern (a row of packed words) is included in one of the targets.

    Patterns with most ones are asked first, in growing batches, because they fail most often.
    """
    if not len(asked):
        return True
    if not len(targets):
        return False
    asked = asked[np.argsort(-np.bitwise_count(asked).sum(axis=1, dtype=np.int64), kind="stable")]
    most = max(_FIRST_BATCH, _CHUNK_WORDS // max(1, targets.size))
    start, size = 0, _FIRST_BATCH
    while start < len(asked):
        batch = asked[start : start + size, None, :]
        if not np.all(((targets[None, :, :] & batch) == batch).all(axis=2).any(axis=1)):
            return False
        start, size = start + size, min(4 * size, most)
    return True


def packed_patterns(matrix: sp.spmatrix) -> Words:
    """Rows of a binary matrix as packed words, one row a row."""
    rows = sp.csr_matrix(matrix)
    n_words = -(-max(rows.shape[1], 1) // WORD_BITS)
    words = np.zeros((rows.shape[0], n_words), dtype=np.uint64)
    step = max(1, _CHUNK_WORDS // n_words)
    for start in range(0, rows.shape[0], step):
        bits = np.zeros((min(step, rows.shape[0] - start), n_words * WORD_BITS), dtype=np.uint8)
        bits[:, : rows.shape[1]] = rows[start : start + step].toarray()
        words[start : start + step] = np.packbits(bits, axis=1, bitorder="little").view(np.uint64)
    return words


class ProjectedRows:
    """Rows of a binary table projected on a growing set of features.

    Rows that are equal on the chosen features form a group. Adding a feature splits groups; nothing is recomputed
    from scratch, and whether a feature may be added is decided from the rows with a revealing value alone.

    Parameters
    ----------
    matrix : csc_matrix
        Rows × features, canonical 0/1.
    classes : array of int
        Class of each row, 0 .. n_classes - 1.
    reveals : array of uint8 or None
        For each feature which values an attacker may know: ``ONES``, ``ZEROS`` or both added; None: ones everywhere.

    Attributes
    ----------
    chosen : list of int
        Features that have joined, in order.
    excluded : array of bool
        Features known never to be able to join; searches need not offer them.
    """

    def __init__(
        self,
        matrix: sp.csc_matrix,
        classes: NDArray[np.int32],
        n_classes: int,
        reveals: NDArray[np.uint8] | None = None,
    ) -> None:
        n_rows, n_features = matrix.shape
        self.matrix = matrix
        self.classes = classes
        self.n_classes = n_classes
        self.reveals = np.full(n_features, ONES, dtype=np.uint8) if reveals is None else reveals
        self.chosen: list[int] = []
        self.n_groups = 1
        self.group = np.zeros(n_rows, dtype=np.int32)
        self.class_counts = np.bincount(classes, minlength=n_classes).astype(np.int64)[None, :]
        self.excluded = np.zeros(n_features, dtype=np.bool_)
        self._patterns = np.zeros((1, 1), dtype=np.uint64)
        self._n_bits = 0
        self._by_row: sp.csr_matrix | None = None
        self._n_settled = 0

    def exclude_rare(self, k: int) -> None:
        """Exclude features whose ones reveal and occur in 1 to k - 1 rows: they break containment in any company."""
        n_ones = np.diff(self.matrix.indptr)
        self.excluded |= ((self.reveals & ONES) != 0) & (n_ones > 0) & (n_ones < k)

    def exclude_conflicts(self, k: int) -> None:
        """Exclude features that have 1 to k - 1 rows in common with a chosen one: that pair is rare but present.

        Where zeros reveal nothing, this settles most features without looking at them one by one. Chosen features are
        dealt with once, those with few rows in bulk.
        """
        if self._by_row is None:
            self._by_row = self.matrix.tocsr()
        shows_ones = (self.reveals & ONES) != 0
        for feature in self.chosen[self._n_settled :]:
            rows = rows_with(self.matrix, feature)
            places, _ = _positions(self._by_row.indptr[rows], self._by_row.indptr[rows + 1])
            common = np.bincount(self._by_row.indices[places], minlength=len(shows_ones))
            if shows_ones[feature]:
                self.excluded |= shows_ones & (common > 0) & (common < k)
        self._n_settled = len(self.chosen)

    def keeps_containment(self, feature: int, k: int) -> bool:
        """Whether the rows stay k-anonymous by containment when a feature joins.

        Only rows with a revealing value of the feature gain something an attacker may know, so only their containment
        can fall. Among them, a projected row that occurs k times is safe, and so is one that such a row includes. No
        other is: a pattern that no other includes must itself occur k times, and each is included in such a one.
        """
        rows = rows_with(self.matrix, feature)
        if self.reveals[feature] & ONES and not self._keep(rows, k):
            return False
        return not self.reveals[feature] & ZEROS or self._keep(self._other_rows(rows), k)

    def _other_rows(self, rows: NDArray[np.int32]) -> NDArray[np.intp]:
        others = np.ones(self.matrix.shape[0], dtype=np.bool_)
        others[rows] = False
        return np.flatnonzero(others)

    def _keep(self, rows: NDArray[np.int32] | NDArray[np.intp], k: int) -> bool:
        """Whether rows that gain the same value stay contained k times."""
        if len(rows) < k:
            return len(rows) == 0
        groups, counts = self._groups_of(rows)
        is_safe = counts >= k
        return bool(is_safe.all()) or (
            bool(is_safe.any()) and all_included(self._patterns[groups[~is_safe]], self._patterns[groups[is_safe]])
        )

    def _groups_of(self, rows: NDArray[np.int32] | NDArray[np.intp]) -> tuple[NDArray[np.intp], Counts]:
        """Find the groups that rows belong to, and how many of the rows each has."""
        if len(rows) * 8 < self.n_groups:
            groups, few = np.unique(self.group[rows], return_counts=True)
            return groups, few
        counts = np.bincount(self.group[rows], minlength=self.n_groups)
        present = np.flatnonzero(counts)
        return present, counts[present]

    @property
    def n_unique(self) -> int:
        """Number of rows that no other row equals on the chosen features."""
        return int(np.count_nonzero(self.class_counts.sum(axis=1) == 1))

    def n_unique_with(self, feature: int) -> int:
        """Count the rows that no other row would equal if a feature joined."""
        _, inside, outside = self.splits(np.array([feature]))
        with_one, with_zero = inside.sum(axis=1), outside.sum(axis=1)
        before = int(np.count_nonzero(with_one + with_zero == 1))
        return self.n_unique - before + int(np.count_nonzero(with_one == 1) + np.count_nonzero(with_zero == 1))

    def splits(self, features: NDArray[np.intp]) -> tuple[NDArray[np.integer], Counts, Counts]:
        """How features would divide the groups: one entry for each feature and each group with a row that has it.

        Returns
        -------
        owner : array
            Position in ``features`` that an entry belongs to, ascending.
        with_one, with_zero : arrays, entries × classes
            Class counts of the group's rows that have the feature and of those that have not.
        """
        places, owner = _positions(self.matrix.indptr[features], self.matrix.indptr[features + 1])
        rows = self.matrix.indices[places]
        entries, with_one = self._count_entries(owner * self.n_groups + self.group[rows], rows, len(features))
        return entries // self.n_groups, with_one, self.class_counts[entries % self.n_groups] - with_one

    def _count_entries(
        self, keys: NDArray[np.integer], rows: NDArray[np.integer], n_features: int
    ) -> tuple[NDArray[np.integer], Counts]:
        """Distinct keys of feature and group, ascending, with class counts; by a dense table where keys are many."""
        classes = self.classes[rows]
        n_keys = n_features * self.n_groups
        if n_keys <= len(rows):
            cells = np.bincount(keys * self.n_classes + classes, minlength=n_keys * self.n_classes)
            table = cells.reshape(n_keys, self.n_classes)
            entries: NDArray[np.integer] = np.flatnonzero(table.any(axis=1))
            return entries, table[entries]
        entries, place = np.unique(keys, return_inverse=True)
        cells = np.bincount(place * self.n_classes + classes, minlength=len(entries) * self.n_classes)
        return entries, cells.reshape(len(entries), self.n_classes)

    def add(self, feature: int) -> None:
        """Let a feature join: rows with and without it no longer share a group."""
        self.chosen.append(feature)
        rows = rows_with(self.matrix, feature)
        groups, position = np.unique(self.group[rows], return_inverse=True)
        _, inside, outside = self.splits(np.array([feature]))
        divided = outside.sum(axis=1) > 0
        with_one = np.where(divided, self.n_groups + np.cumsum(divided) - 1, groups).astype(np.int32)
        self.class_counts = np.concatenate([self.class_counts, inside[divided]])
        self.class_counts[groups[divided]] = outside[divided]
        self._patterns = np.concatenate([self._patterns, self._patterns[groups[divided]]])
        self.n_groups += int(divided.sum())
        self.group[rows] = with_one[position]
        self._mark(feature, with_one)

    def _mark(self, feature: int, with_one: NDArray[np.int32]) -> None:
        """Note in the groups' patterns the revealing values of a feature."""
        has_one = np.zeros(self.n_groups, dtype=np.bool_)
        has_one[with_one] = True
        for value, groups in ((ONES, has_one), (ZEROS, ~has_one)):
            if not self.reveals[feature] & value:
                continue
            word, bit = divmod(self._n_bits, WORD_BITS)
            if word >= self._patterns.shape[1]:
                self._patterns = np.pad(self._patterns, ((0, 0), (0, self._patterns.shape[1])))
            self._patterns[groups, word] |= np.uint64(1 << bit)
            self._n_bits += 1
