"""Counting on binary tables: row sets as packed words, ones by class, equal rows, and which rows include which.

Nothing here builds an n × n matrix; memory stays proportional to the number of ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Counts = NDArray[np.int64]
WORD_BITS = 64
ONES, ZEROS = 1, 2
_CHUNK_WORDS = 1 << 21  # words handled at once: 16 MiB
_FIRST_BATCH = 16
_CELLS_A_PAIR = 16  # a table of places and persons that has up to so many cells for each pair is filled, not sorted


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


def rows_with(matrix: sp.csc_matrix, feature: int) -> NDArray[np.int32]:
    """Row numbers that have a one in a feature, ascending."""
    start, end = matrix.indptr[feature], matrix.indptr[feature + 1]
    rows: NDArray[np.int32] = matrix.indices[start:end]
    return rows


def counted(places: NDArray[np.integer], row_counts: Counts | None, n: int) -> Counts:
    """Count the rows at each place from 0 to n - 1; ``row_counts``: rows that each entry represents (``None``: one)."""
    return np.bincount(places, row_counts, n).astype(np.int64, copy=False)


def ones_of_each(matrix: sp.csc_matrix, row_counts: Counts | None = None) -> Counts:
    """Count the ones of every feature."""
    return np.asarray(np.diff(matrix.indptr) if row_counts is None else row_counts @ matrix, dtype=np.int64)


def persons_at(places: NDArray[np.integer], persons: NDArray[np.integer], n: int) -> Counts:
    """Count the different persons at each place from 0 to n - 1; entries are a place and a person each.

    Examples
    --------
    >>> persons_at(np.array([0, 0, 2]), np.array([7, 7, 7]), 3).tolist()
    [1, 0, 1]
    """
    width = int(persons.max(initial=0)) + 1
    pairs = places.astype(np.int64) * width + persons
    if n * width <= _CELLS_A_PAIR * len(pairs):
        has = np.zeros((n, width), dtype=np.bool_)
        has.reshape(-1)[pairs] = True
        return np.asarray(np.count_nonzero(has, axis=1), dtype=np.int64)
    return np.bincount(distinct_keys(pairs) // width, minlength=n).astype(np.int64, copy=False)


def distinct_keys(keys: Counts) -> Counts:
    """Different keys, ascending: by sorting, which is many times faster than ``np.unique`` on millions of keys."""
    ordered = np.sort(keys)
    is_new = np.ones(len(ordered), dtype=np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_new]


def support_of_each(
    matrix: sp.csc_matrix, row_counts: Counts | None = None, persons: NDArray[np.int32] | None = None
) -> Counts:
    """Count the rows with a one in each feature, or the different persons who have such a row."""
    if persons is None:
        return ones_of_each(matrix, row_counts)
    ones = sp.csc_matrix(matrix)
    features = np.repeat(np.arange(ones.shape[1]), np.diff(ones.indptr))
    return persons_at(features, persons[ones.indices], ones.shape[1])


def ones_by_class(
    matrix: sp.csc_matrix, classes: NDArray[np.int32], n_classes: int, row_counts: Counts | None = None
) -> Counts:
    """Count the ones of every feature in every class (classes × features)."""
    ones = sp.csc_matrix(matrix)
    features = np.repeat(np.arange(ones.shape[1]) * n_classes, np.diff(ones.indptr))
    each = None if row_counts is None else row_counts[ones.indices]
    counts = counted(features + classes[ones.indices], each, ones.shape[1] * n_classes)
    return np.ascontiguousarray(counts.reshape(ones.shape[1], n_classes).T)


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


def distinct_rows(matrix: sp.spmatrix, row_counts: Counts | None = None) -> DistinctRows:
    """Group equal rows exactly, in order of first appearance.

    Rows of up to 64 features are compared as words, wider ones as the numbers of their ones.

    Parameters
    ----------
    row_counts : int64 array or None
        How many rows each row of the matrix stands for; ``None``: one.
    """
    ones = _by_row_or_column(matrix)
    keys = pa.array(_row_words(ones)) if ones.shape[1] <= WORD_BITS else _rows_as_bytes(ones)
    inverse = keys.dictionary_encode().indices.to_numpy().astype(np.intp)  # numbered as they appear
    counts = counted(inverse, row_counts, 0)
    representatives = np.empty(len(counts), dtype=np.intp)
    representatives[inverse[::-1]] = np.arange(len(inverse) - 1, -1, -1)  # the first row is written last, and stays
    return DistinctRows(representatives, counts, inverse)


def _by_row_or_column(matrix: sp.spmatrix) -> sp.csr_matrix | sp.csc_matrix:
    return matrix if sp.issparse(matrix) and matrix.format in ("csc", "csr") else sp.csr_matrix(matrix)


def _row_words(ones: sp.csr_matrix | sp.csc_matrix) -> Words:
    """Each row of up to 64 features as a word, the first feature in the lowest bit."""
    bits = np.uint64(1) << np.arange(ones.shape[1], dtype=np.uint64)
    values = np.ones(len(ones.indices), dtype=np.uint64)  # of the same type as the bits: sums of words are exact
    words: Words = type(ones)((values, ones.indices, ones.indptr), shape=ones.shape) @ bits
    return words


def _rows_as_bytes(ones: sp.csr_matrix | sp.csc_matrix) -> pa.Array:
    """Each row as the ascending numbers of its ones."""
    rows = sp.csr_matrix(ones)
    if not rows.has_sorted_indices:
        rows = rows.sorted_indices()
    numbers = rows.indices.astype(np.min_scalar_type(rows.shape[1]))
    ends = rows.indptr.astype(np.int64) * numbers.itemsize
    return pa.Array.from_buffers(pa.large_binary(), rows.shape[0], [None, pa.py_buffer(ends), pa.py_buffer(numbers)])


def positions_in(starts: NDArray[np.integer], ends: NDArray[np.integer]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """All positions of several ranges one after the other, and which range each belongs to."""
    lengths = ends - starts
    owner = np.repeat(np.arange(len(lengths)), lengths)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.repeat(starts, lengths) + within, owner


def inclusions(asked: Words, targets: Words) -> NDArray[np.bool_]:
    """Which asked patterns (rows of packed words) are included in which targets: asked × targets."""
    batch = asked[:, None, :]
    return np.asarray(((targets[None, :, :] & batch) == batch).all(axis=2), dtype=np.bool_)


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
        if not np.all(inclusions(asked[start : start + size], targets).any(axis=1)):
            return False
        start, size = start + size, min(4 * size, most)
    return True


def including_rows(words: Words, counts: Counts) -> Counts:
    """Count for each distinct pattern the rows that include it, itself among them; ``counts``: rows of each pattern."""
    found = np.empty(len(words), dtype=np.int64)
    step = max(1, _CHUNK_WORDS // max(1, words.size))
    for start in range(0, len(words), step):
        found[start : start + step] = inclusions(words[start : start + step], words) @ counts
    return found


def packed_patterns(matrix: sp.spmatrix, chosen: NDArray[np.intp]) -> Words:
    """Chosen rows of a binary matrix as packed words, one row a row."""
    if matrix.shape[1] <= WORD_BITS:
        return _row_words(_by_row_or_column(matrix))[chosen][:, None]
    rows = sp.csr_matrix(matrix)[chosen]
    n_words = -(-max(rows.shape[1], 1) // WORD_BITS)
    words = np.zeros((rows.shape[0], n_words), dtype=np.uint64)
    step = max(1, _CHUNK_WORDS // n_words)
    for start in range(0, rows.shape[0], step):
        bits = np.zeros((min(step, rows.shape[0] - start), n_words * WORD_BITS), dtype=np.uint8)
        bits[:, : rows.shape[1]] = rows[start : start + step].toarray()
        words[start : start + step] = np.packbits(bits, axis=1, bitorder="little").view(np.uint64)
    return words


# Rows of a binary table projected on a growing feature set; nothing is counted anew when a feature joins.


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
    row_counts : array of int or None
        How many rows each row of the matrix stands for; None: one.
    persons : array of int or None
        Person of each row, where persons instead of rows must be k; None: rows.

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
        row_counts: Counts | None = None,
        persons: NDArray[np.int32] | None = None,
    ) -> None:
        n_rows, n_features = matrix.shape
        self.matrix = matrix
        self.classes = classes
        self.n_classes = n_classes
        self.reveals = np.full(n_features, ONES, dtype=np.uint8) if reveals is None else reveals
        self.chosen: list[int] = []
        self.n_groups = 1
        self.group = np.zeros(n_rows, dtype=np.int32)
        self.row_counts = row_counts
        self.persons = persons
        self.class_counts = counted(classes, row_counts, n_classes)[None, :]
        self.excluded = np.zeros(n_features, dtype=np.bool_)
        self._patterns = np.zeros((1, 1), dtype=np.uint64)
        self._n_bits = 0
        self._by_row: sp.csr_matrix | None = None
        self._n_settled = 0

    def exclude_rare(self, k: int) -> None:
        """Exclude features whose ones reveal and occur in 1 to k - 1 rows: they break containment in any company."""
        n_ones = support_of_each(self.matrix, self.row_counts, self.persons)
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
            places, owner = positions_in(self._by_row.indptr[rows], self._by_row.indptr[rows + 1])
            common = self._supports(self._by_row.indices[places], rows[owner], len(shows_ones))
            if shows_ones[feature]:
                self.excluded |= shows_ones & (common > 0) & (common < k)
        self._n_settled = len(self.chosen)

    def keeps_containment(self, feature: int, k: int) -> bool:
        """Whether the rows stay k-anonymous by containment when a feature joins.

        Only rows with a revealing value of the feature gain something an attacker may know, so only their containment
        can fall. Among them, a projected row that occurs k times is safe, and so is one that such a row includes. No
        other is: a pattern that no other includes must itself occur k times, and each is included in such a one. Of
        persons the same is true: a pattern that no other includes is that of those persons only who have just it.
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
        row_counts = self._counts_of(rows)
        if (len(rows) if row_counts is None else row_counts.sum()) < k:
            return len(rows) == 0
        groups, counts = self._groups_of(rows)
        is_safe = counts >= k
        return bool(is_safe.all()) or (
            bool(is_safe.any()) and all_included(self._patterns[groups[~is_safe]], self._patterns[groups[is_safe]])
        )

    def _counts_of(self, rows: NDArray[np.integer]) -> Counts | None:
        return None if self.row_counts is None else self.row_counts[rows]

    def _supports(self, places: NDArray[np.integer], rows: NDArray[np.integer], n: int) -> Counts:
        """Count the rows, or their persons, at each place from 0 to n - 1."""
        if self.persons is None:
            return counted(places, self._counts_of(rows), n)
        return persons_at(places, self.persons[rows], n)

    def _groups_of(self, rows: NDArray[np.int32] | NDArray[np.intp]) -> tuple[NDArray[np.intp], Counts]:
        """Find the groups that rows belong to, and how many of the rows, or of their persons, each has."""
        if len(rows) * 8 < self.n_groups:
            groups, place = np.unique(self.group[rows], return_inverse=True)
            return groups, self._supports(place, rows, len(groups))
        counts = self._supports(self.group[rows], rows, self.n_groups)
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
        places, owner = positions_in(self.matrix.indptr[features], self.matrix.indptr[features + 1])
        rows = self.matrix.indices[places]
        entries, with_one = self._count_entries(owner * self.n_groups + self.group[rows], rows, len(features))
        return entries // self.n_groups, with_one, self.class_counts[entries % self.n_groups] - with_one

    def _count_entries(
        self, keys: NDArray[np.integer], rows: NDArray[np.integer], n_features: int
    ) -> tuple[NDArray[np.integer], Counts]:
        """Distinct keys of feature and group, ascending, with class counts; by a dense table where keys are many."""
        classes, row_counts = self.classes[rows], self._counts_of(rows)
        n_keys = n_features * self.n_groups
        if n_keys <= len(rows):
            cells = counted(keys * self.n_classes + classes, row_counts, n_keys * self.n_classes)
            table = cells.reshape(n_keys, self.n_classes)
            entries: NDArray[np.integer] = np.flatnonzero(table.any(axis=1))
            return entries, table[entries]
        entries, place = np.unique(keys, return_inverse=True)
        cells = counted(place * self.n_classes + classes, row_counts, len(entries) * self.n_classes)
        return entries, cells.reshape(len(entries), self.n_classes)

    def add(self, feature: int) -> None:
        """Let a feature join: rows with and without it no longer share a group."""
        self.chosen.append(feature)
        rows = rows_with(self.matrix, feature)
        is_present = np.zeros(self.n_groups, dtype=np.bool_)
        is_present[self.group[rows]] = True
        groups = np.flatnonzero(is_present)
        _, inside, outside = self.splits(np.array([feature]))
        divided = outside.sum(axis=1) > 0
        with_one = np.where(divided, self.n_groups + np.cumsum(divided) - 1, groups).astype(np.int32)
        self.class_counts = np.concatenate([self.class_counts, inside[divided]])
        self.class_counts[groups[divided]] = outside[divided]
        self._patterns = np.concatenate([self._patterns, self._patterns[groups[divided]]])
        group_with_one = np.zeros(self.n_groups, dtype=np.int32)
        group_with_one[groups] = with_one
        self.group[rows] = group_with_one[self.group[rows]]
        self.n_groups += int(divided.sum())
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
