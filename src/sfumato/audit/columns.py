"""One way to look at the columns of a table, whether they are coded or sparse 0/1 features."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.audit.values import zero_one
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
        self._coded = table if isinstance(table, Table) else table.companions
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

    def with_role(self, role: Role) -> tuple[str, ...]:
        """Names of the columns with a role, in table order."""
        return tuple(name for name in self.names if self.describe(name).role is role)

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
        """Rows in which a 0/1 column is 1, ascending.

        Raises
        ------
        NotBinaryError
            If the column holds anything but 0 and 1; a missing value is neither.
        """
        if name in self._position and self._matrix is not None:
            i = self._position[name]
            return np.asarray(self._matrix.indices[self._matrix.indptr[i] : self._matrix.indptr[i + 1]], dtype=np.int64)
        column = self.coded(name)
        if self.row_counts is not None:
            problem = "is known by its counts only, not row by row"
            raise NotBinaryError(problem, column=name)
        numbers = zero_one(column.values)
        if numbers is None or (numbers < 0).any():
            problem = f"holds something other than 0 and 1 ({column.n_distinct:,} distinct values)"
            raise NotBinaryError(problem, column=name)
        return np.flatnonzero(numbers[column.codes] == 1)

    def ones(self, names: Sequence[str]) -> sp.csr_matrix:
        """Return some 0/1 columns as a matrix of rows × columns, the columns of a row's ones ascending."""
        rows = [self.rows_with_one(name) for name in names]
        ends = np.cumsum([0, *map(len, rows)])
        indices = np.concatenate([*rows, np.zeros(0, dtype=np.int64)])
        by_column = sp.csc_matrix(
            (np.ones(len(indices), dtype=np.int8), indices, ends), shape=(self.n_rows, len(names))
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
