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
    """Count the rows at each place from 0 to n - 1; ``row_counts``: rows that each entry stands for (``None``: one)."""
    return np.bincount(places, row_counts, n).astype(np.int64, copy=False)


def ones_of_each(matrix: sp.csc_matrix, row_counts: Counts | None = None) -> Counts:
    """Count the ones of every feature."""
    return np.asarray(np.diff(matrix.indptr) if row_counts is None else row_counts @ matrix, dtype=np.int64)


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
