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
_CHUNK_WORDS = 1 << 21  # words compared at once when supersets are counted: 16 MiB
_FIRST_BATCH = 4


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


def containment_counts(matrix: sp.spmatrix) -> Counts:
    """AC(e) for every row: the number of rows, itself included, whose ones include all of its own.

    Definition 4 of [kAC17]_. A row without ones is contained in every row. For each distinct row only the rows that
    share its rarest feature are looked at.
    """
    distinct = distinct_rows(matrix)
    patterns = sp.csr_matrix(matrix)[distinct.representatives]
    by_feature = sp.csc_matrix(patterns)
    weighted = np.asarray(by_feature.T @ distinct.counts).ravel()
    levels = np.empty(len(distinct.counts), dtype=np.int64)
    wanted = np.zeros(patterns.shape[1], dtype=np.int64)
    for i in range(len(levels)):
        features = patterns.indices[patterns.indptr[i] : patterns.indptr[i + 1]]
        if not len(features):
            levels[i] = distinct.counts.sum()
            continue
        candidates = rows_with(by_feature, int(features[np.argmin(weighted[features])]))
        wanted[features] = 1
        shared = patterns[candidates] @ wanted
        wanted[features] = 0
        levels[i] = distinct.counts[candidates[shared == len(features)]].sum()
    return levels[distinct.inverse]


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
        self.n_unique = int(n_rows == 1)
        self.group = np.zeros(n_rows, dtype=np.int32)
        self.class_counts = np.bincount(classes, minlength=n_classes).astype(np.int64)[None, :]
        self._patterns = np.zeros((1, 1), dtype=np.uint64)
        self._n_bits = 0

    def keeps_containment(self, feature: int, k: int) -> bool:
        """Whether the rows stay k-anonymous by containment when a feature joins.

        Only rows with a revealing value of the feature gain something an attacker may know, so only their containment
        can fall. Among them, a projected row that occurs k times is safe; for the others the projected rows that
        include it are counted.
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
        groups, counts = np.unique(self.group[rows], return_counts=True)
        few = np.flatnonzero(counts < k)
        return not len(few) or self._are_included(groups, counts, few, k)

    def n_unique_with(self, feature: int) -> int:
        """Count the rows that no other row would equal if a feature joined."""
        _, inside, outside = self.splits(np.array([feature]))
        with_one, with_zero = inside.sum(axis=1), outside.sum(axis=1)
        before = int(np.count_nonzero(with_one + with_zero == 1))
        return self.n_unique - before + int(np.count_nonzero(with_one == 1) + np.count_nonzero(with_zero == 1))

    def _are_included(self, groups: NDArray[np.int32], counts: Counts, few: NDArray[np.intp], k: int) -> bool:
        """Whether, for each group at the positions ``few``, at least k rows of all these groups include its pattern.

        Patterns with most ones are included in fewest others, so they are asked first, in growing batches: one that
        fails settles the question.
        """
        patterns = self._patterns[groups]
        asked = patterns[few]
        asked = asked[np.argsort(-np.bitwise_count(asked).sum(axis=1, dtype=np.int64), kind="stable")]
        most = max(_FIRST_BATCH, _CHUNK_WORDS // max(1, patterns.size))
        start, size = 0, _FIRST_BATCH
        while start < len(asked):
            batch = asked[start : start + size, None, :]
            included = ((patterns[None, :, :] & batch) == batch).all(axis=2)
            if not np.all(included @ counts >= k):
                return False
            start, size = start + size, min(2 * size, most)
        return True

    def splits(self, features: NDArray[np.intp]) -> tuple[NDArray[np.intp], Counts, Counts]:
        """How features would divide the groups: one entry for each feature and each group with a row that has it.

        Returns
        -------
        owner : array
            Position in ``features`` that an entry belongs to, ascending.
        with_one, with_zero : arrays, entries × classes
            Class counts of the group's rows that have the feature and of those that have not.
        """
        starts, ends = self.matrix.indptr[features], self.matrix.indptr[features + 1]
        lengths = ends - starts
        owner = np.repeat(np.arange(len(features)), lengths)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        rows = self.matrix.indices[np.repeat(starts, lengths) + within]
        entries, place = np.unique(owner * self.n_groups + self.group[rows], return_inverse=True)
        cells = np.bincount(place * self.n_classes + self.classes[rows], minlength=len(entries) * self.n_classes)
        with_one = cells.reshape(len(entries), self.n_classes)
        return entries // self.n_groups, with_one, self.class_counts[entries % self.n_groups] - with_one

    def add(self, feature: int) -> None:
        """Let a feature join: rows with and without it no longer share a group."""
        self.n_unique = self.n_unique_with(feature)
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
