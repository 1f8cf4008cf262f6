"""One way to look at the columns of a table, whether they are coded or sparse 0/1 features."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.audit.reading.values import zero_one
from sfumato.errors import ColumnNotFoundError, NotBinaryError, SchemaError
from sfumato.schema import Column, Kind, Role
from sfumato.table.binary import BinaryTable, Feature
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.weighted import CountedTable

AnyTable = Table | BinaryTable
Declared = bool | Collection[str]
"""Which columns of an original have roles that its holder declared: all, none, or these."""
Rows = NDArray[np.int64]

_ZERO_ONE = pa.array([0, 1], type=pa.int8())


class Columns:
    """Columns of a table by name; a feature is a quasi-identifying 0/1 column.

    Parameters
    ----------
    table : Table or BinaryTable
        A binary table's matrix is checked: whatever it stores must be 1 (a stored 0 counts as 0).
    """

    def __init__(self, table: AnyTable) -> None:
        self._coded = table.coded_part
        self.n_rows = table.n_rows
        features = table.features if isinstance(table, BinaryTable) else ()
        self._position = {feature.name: i for i, feature in enumerate(features)}
        self._features = features
        self._matrix = _checked(table) if isinstance(table, BinaryTable) else None
        self.row_counts = table.row_counts if isinstance(table, CountedTable) else None
        self._together = frozenset(table.together) if isinstance(table, CountedTable) else None
        self.names = (*self._position, *self._coded.schema.names())

    def __contains__(self, name: object) -> bool:
        return name in self._position or name in self._coded.columns

    def with_role(self, *roles: Role) -> tuple[str, ...]:
        """Names of the columns with one of these roles, in table order."""
        return tuple(name for name in self.names if self.describe(name).role.is_one_of(roles))

    def quasi_identifiers_without(self, name: str) -> tuple[str, ...]:
        """Quasi-identifiers but one column: what is known to attackers who want its value."""
        return tuple(other for other in self.with_role(Role.QUASI_IDENTIFIER) if other != name)

    @property
    def missing_tokens(self) -> tuple[str, ...]:
        """Texts that were read as missing in columns that have none of their own."""
        return self._coded.schema.missing

    @property
    def missing_by_column(self) -> dict[str, tuple[str, ...]]:
        """Texts that were read as missing in columns that have some of their own."""
        return {column.name: column.missing for column in self._coded.schema if column.missing is not None}

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the columns that the table was made of: a computed feature counts as the column it came from."""
        return tuple(dict.fromkeys([*(feature.column for feature in self._features), *self._coded.schema.names()]))

    def describe(self, name: str) -> Column:
        """Role, kind and domain of a column."""
        if name in self._position:
            return Column(name, Role.QUASI_IDENTIFIER, Kind.CATEGORICAL)
        self._require(name)
        return self._coded.schema[name]

    def declared(self, names: Declared) -> frozenset[str]:
        """Names of the columns whose roles were declared; those of features always are."""
        if names is True:
            return frozenset(self.names)
        return frozenset(self._position) | frozenset(names or ())

    def feature(self, name: str) -> Feature | None:
        """How a feature was computed; ``None`` for a coded column."""
        return self._features[self._position[name]] if name in self._position else None

    def coded(self, name: str) -> CodedColumn:
        """Return a column as codes; a feature has the values 0 and 1 even where only one of them occurs."""
        if name in self._position:
            codes = np.zeros(self.n_rows, dtype=np.int32)
            codes[self.rows_with_one(name)] = 1
            return CodedColumn(codes, _ZERO_ONE)
        self._require(name)
        return self._coded[name]

    def type_of(self, name: str) -> pa.DataType:
        """Arrow type of a column's values."""
        if name in self._position:
            return _ZERO_ONE.type
        self._require(name)
        return self._coded[name].values.type

    def rows_with_one(self, name: str) -> Rows:
        """Rows (or distinct rows) in which a 0/1 column is 1, ascending.

        Raises
        ------
        NotBinaryError
            If the column holds anything but 0 and 1; a missing value is neither.
        """
        if name in self._position and self._matrix is not None:
            i = self._position[name]
            return np.asarray(self._matrix.indices[self._matrix.indptr[i] : self._matrix.indptr[i + 1]], dtype=np.int64)
        column = self.coded(name)
        numbers = zero_one(column.values)
        if numbers is None or (numbers < 0).any():
            problem = f"holds something other than 0 and 1 ({column.n_distinct:,} distinct values)"
            raise NotBinaryError(problem, column=name)
        return np.flatnonzero(numbers[column.codes] == 1)

    def ones(self, names: Sequence[str]) -> sp.csr_matrix:
        """Return some 0/1 columns as a matrix of rows × columns, the columns of a row's ones ascending.

        Raises
        ------
        NotBinaryError
            If a column holds anything but 0 and 1; a missing value is neither.
        SchemaError
            If a column was not counted together with the others.
        """
        self.check_counted(names)
        rows = [self.rows_with_one(name) for name in names]
        ends = np.cumsum([0, *map(len, rows)])
        indices = np.concatenate([*rows, np.zeros(0, dtype=np.int64)])
        by_column = sp.csc_matrix(
            (np.ones(len(indices), dtype=np.int8), indices, ends), shape=(self.n_entries, len(names))
        )
        return by_column.tocsr()

    @property
    def n_entries(self) -> int:
        """Number of rows, or of distinct rows where a table holds those with their counts."""
        return self.n_rows if self.row_counts is None else len(self.row_counts)

    def check_counted(self, names: Sequence[str]) -> None:
        """Refuse columns that, in a table of distinct rows, were not counted together with the others."""
        for name in names:
            if self._together is not None and name in self and name not in self._together:
                problem = "was not counted together with other columns"
                raise SchemaError(problem, column=name)

    def split(self, names: Sequence[str]) -> tuple[tuple[str, ...], Iterator[CodedColumn]]:
        """Names of the features among some columns, and the coded columns among them."""
        features = tuple(name for name in names if name in self._position)
        return features, (self.coded(name) for name in names if name not in self._position)

    def incomplete_rows(self) -> NDArray[np.bool_]:
        """Which rows have a missing value in any column."""
        incomplete = np.zeros(self.n_rows, dtype=np.bool_)
        for column in self._coded.columns.values():
            missing = np.asarray(column.values.is_null().to_numpy(zero_copy_only=False))
            if missing.any():
                incomplete |= missing[column.codes]
        return incomplete

    @property
    def n_incomplete_dropped(self) -> int:
        """Rows that were left out when the table was read, because a value was missing."""
        return self._coded.n_incomplete_dropped

    @property
    def n_person_rows_dropped(self) -> int:
        """Rows that were left out when the table was read, because a person has another one."""
        return self._coded.person_rows.n_dropped if self._coded.person_rows else 0

    def _require(self, name: str) -> None:
        if name not in self:
            raise ColumnNotFoundError(name, self.names)


def _checked(table: BinaryTable) -> sp.csc_matrix:
    """Return the matrix with sorted rows in every column and no stored zeros; refuse entries other than 0 and 1."""
    matrix = sp.csc_matrix(table.matrix, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    wrong = np.flatnonzero(matrix.data != 1)
    if len(wrong):
        feature = int(np.searchsorted(matrix.indptr, wrong[0], side="right")) - 1
        problem = f"holds entries that are neither 0 nor 1 ({len(wrong):,} in all features)"
        raise NotBinaryError(problem, column=table.features[feature].name)
    return matrix


# The audit's own counting: rows that are equal on some columns, and the values that occur with them.


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


class Refinement:
    """Row ids that are distinguished by one column after another.

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
        """Give the classes found so far, numbered from 0; ``row_counts``: how many rows each entry represents."""
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
    """Add up the rows that entries represent, by the number of their group."""
    sums = np.zeros(n, dtype=np.int64)
    np.add.at(sums, ids, row_counts)
    return sums


def places_of_runs(first: NDArray[np.integer], last: NDArray[np.integer]) -> Ids:
    """All places of runs, one run after the other."""
    lengths = np.asarray(last - first, dtype=np.int64)
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.arange(int(lengths.sum())) + np.repeat(np.asarray(first, dtype=np.int64) - before, lengths))


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
    Then rows with the same word are compared with the first of them; should some differ, other numbers are drawn.
    """
    n_columns = ones.shape[1]
    is_narrow = n_columns <= _WORD_BITS
    each = np.ones(len(ones.indices), dtype=np.uint64)  # of the type of the words, which stay exact
    while True:
        digits = np.uint64(1) << np.arange(n_columns, dtype=np.uint64) if is_narrow else _random_words(n_columns)
        words = sp.csr_matrix((each, ones.indices, ones.indptr), shape=ones.shape) @ digits
        ids = pa.array(words).dictionary_encode().indices.to_numpy().astype(np.int64)  # numbered as they appear
        first_rows = np.empty(int(ids.max(initial=-1)) + 1, dtype=np.int64)
        first_rows[ids[::-1]] = np.arange(len(ids) - 1, -1, -1)  # the first row is written last, and stays
        if is_narrow or _are_equal(ones, first_rows[ids]):
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
