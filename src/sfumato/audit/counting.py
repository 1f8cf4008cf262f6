"""The audit's own counting: rows that are equal on some columns, and the values that occur with them."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.audit.columns import Columns
from sfumato.audit.values import ranks, spelled_ranks

Ids = NDArray[np.int64]
Counts = NDArray[np.int64]

_LARGEST_KEY = 2**62
_KEYS_A_ROW = 4
_WORD_BITS = 64


@dataclass(frozen=True)
class Classes:
    """Rows that are equal on some columns: the class of each row (or distinct row) and the rows of each class."""

    ids: Ids
    sizes: Counts


@dataclass(frozen=True)
class Joint:
    """How often each value of a column occurs in each class: one entry a pair that occurs, by class and then by value.

    ``totals`` counts the values in the whole table, in their order; every one of them occurs.
    """

    class_ids: Ids
    values: Ids
    counts: Counts
    sizes: Counts
    totals: Counts


class Refinement:
    """Row ids that are told apart by one column after another.

    Ids are mixed-radix keys; before a key could pass 2**62 the ids are renumbered to at most one a row.
    """

    def __init__(self, n_rows: int) -> None:
        self.ids: Ids = np.zeros(n_rows, dtype=np.int64)
        self._n_keys = 1

    def add(self, codes: NDArray[np.integer], n_values: int) -> None:
        """Tell rows apart by the codes 0 .. n_values - 1 of one more column."""
        if self._n_keys * n_values > _LARGEST_KEY:
            known, self.ids = np.unique(self.ids, return_inverse=True)
            self._n_keys = len(known)
        self.ids = self.ids * n_values + codes
        self._n_keys *= max(n_values, 1)

    def classes(self, row_counts: Counts | None = None) -> Classes:
        """Give the classes found so far, numbered from 0; ``row_counts``: how many rows each entry stands for."""
        ids, sizes = _numbered(self.ids, self._n_keys)
        if row_counts is not None:
            sizes = summed(ids, row_counts, len(sizes))
        return Classes(ids.astype(np.int64), sizes.astype(np.int64))


def _numbered(keys: Ids, n_keys: int) -> tuple[Ids, Counts]:
    """Renumber keys from 0 in their order, without those that do not occur, and count each.

    Few possible keys are counted, many are sorted.
    """
    if n_keys > _KEYS_A_ROW * len(keys):
        _, ids, sizes = np.unique(keys, return_inverse=True, return_counts=True)
        return ids, sizes
    counts = np.bincount(keys, minlength=1)
    occurs = counts > 0
    return (np.cumsum(occurs) - 1)[keys], counts[occurs]


def summed(ids: NDArray[np.integer], row_counts: Counts, n: int) -> Counts:
    """Add up the rows that entries stand for, by the number of their group."""
    sums = np.zeros(n, dtype=np.int64)
    np.add.at(sums, ids, row_counts)
    return sums


def group_rows(columns: Columns, names: Sequence[str]) -> Classes:
    """Group the rows that are equal on the named columns; missing equals missing. No columns: one class of all rows."""
    columns.check_counted(names)
    refinement = Refinement(columns.n_entries)
    features, coded = columns.split(names)
    if features:
        ids, first_rows = distinct_patterns(columns.ones(features))
        refinement.add(ids, len(first_rows))
    for column in coded:
        refinement.add(column.codes, len(column.values))
    return refinement.classes(columns.row_counts)


def distinct_patterns(ones: sp.csr_matrix) -> tuple[Ids, Ids]:
    """Pattern number of every row of a 0/1 matrix, and the first row that has each pattern.

    Each row is written as a word: up to 64 columns have a bit each, more a random number each, which are added up.
    Then rows with the same word are compared with the first of them, one by one only if they should differ.
    """
    n_columns = ones.shape[1]
    is_narrow = n_columns <= _WORD_BITS
    digits = np.uint64(1) << np.arange(n_columns, dtype=np.uint64) if is_narrow else _random_words(n_columns)
    each = np.ones(len(ones.indices), dtype=np.uint64)  # of the type of the words, which stay exact
    words = sp.csr_matrix((each, ones.indices, ones.indptr), shape=ones.shape) @ digits
    ids = pa.array(words).dictionary_encode().indices.to_numpy().astype(np.int64)  # numbered as they appear
    first_rows = np.empty(int(ids.max(initial=-1)) + 1, dtype=np.int64)
    first_rows[ids[::-1]] = np.arange(len(ids) - 1, -1, -1)  # the first row is written last, and stays
    if not is_narrow and not _are_equal(ones, first_rows[ids]):
        return _compared_one_by_one(ones)
    return ids, first_rows


def _random_words(n: int) -> NDArray[np.uint64]:
    return np.frombuffer(secrets.token_bytes(8 * n), dtype=np.uint64)


def _are_equal(ones: sp.csr_matrix, others: NDArray[np.integer]) -> bool:
    """Whether each row is equal to another one."""
    lengths = np.diff(ones.indptr)
    if not np.array_equal(lengths, lengths[others]):
        return False
    moved_by = np.repeat(ones.indptr[others] - ones.indptr[:-1], lengths)
    return np.array_equal(ones.indices, ones.indices[np.arange(len(ones.indices)) + moved_by])


def _compared_one_by_one(ones: sp.csr_matrix) -> tuple[Ids, Ids]:
    known: dict[bytes, int] = {}
    first_rows: list[int] = []
    ids = np.empty(ones.shape[0], dtype=np.int64)
    for row in range(ones.shape[0]):
        number = known.setdefault(ones.indices[ones.indptr[row] : ones.indptr[row + 1]].tobytes(), len(first_rows))
        if number == len(first_rows):
            first_rows.append(row)
        ids[row] = number
    return ids, np.array(first_rows, dtype=np.int64)


def joint_counts(columns: Columns, classes: Classes, name: str, *, spelled: bool = False) -> Joint:
    """Count the values of a column in each class; missing is a value.

    A value is one however it is spelled or, where ``spelled``, each spelling is one.
    """
    columns.check_counted([name])
    column, described = columns.coded(name), columns.describe(name)
    rank = (spelled_ranks if spelled else ranks)(column.values, described.kind, described.domain)
    occurring, values = np.unique(rank[column.codes], return_inverse=True)
    n_values = max(len(occurring), 1)
    keys = classes.ids * n_values + values
    if columns.row_counts is None:
        pairs, counts = np.unique(keys, return_counts=True)
        totals = np.bincount(values, minlength=len(occurring))
    else:
        pairs, places = np.unique(keys, return_inverse=True)
        counts = summed(places, columns.row_counts, len(pairs))
        totals = summed(values, columns.row_counts, len(occurring))
    return Joint(pairs // n_values, pairs % n_values, counts.astype(np.int64), classes.sizes, totals.astype(np.int64))


def n_merged_spellings(columns: Columns, name: str) -> int:
    """Count the spellings of a column that are counted as a value which another spelling has, too."""
    column, described = columns.coded(name), columns.describe(name)
    codes = np.unique(column.codes)
    return len(codes) - len(np.unique(ranks(column.values, described.kind, described.domain)[codes]))
