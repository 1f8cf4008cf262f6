"""Binary tables: a sparse 0/1 matrix of features next to the columns that travel with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.errors import ColumnNotFoundError, NotBinaryError, SchemaError
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import CodedColumn, RowMask, Source, Table
from sfumato.table.weighted import CountedTable, WeightedColumn

AS_IS, ONE_OF, INTERVAL, MISSING = "as-is", "one-of", "interval", "missing"


@dataclass(frozen=True)
class Feature:
    """A binary feature and how it is computed from a column; the manifest carries this description.

    Parameters
    ----------
    name : str
        Name of the released column.
    column : str
        Name of the column it was computed from.
    rule : {"as-is", "one-of", "interval", "missing"}
        ``as-is``: the column is 0/1 itself. ``one-of``: 1 when the cell is one of ``values``.
        ``interval``: 1 when ``above < cell <= upto``. ``missing``: 1 when the cell is missing.
    """

    name: str
    column: str
    rule: str = AS_IS
    values: tuple[str, ...] = ()
    above: float | None = None
    upto: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the manifest, without the fields that say nothing."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items() if v not in ((), None)}


@dataclass(frozen=True, repr=False, eq=False)
class BinaryTable:
    """Features as a sparse 0/1 matrix (rows × features), with a table of the columns that travel along.

    ``companions`` holds the target and every column that is released as it is; it may be empty of columns. Where it
    is a :class:`~sfumato.table.weighted.CountedTable`, the rows of the matrix are its distinct rows.
    """

    matrix: sp.csc_matrix
    features: tuple[Feature, ...]
    companions: Table

    def __post_init__(self) -> None:
        n_entries = self.n_rows if self.row_counts is None else len(self.row_counts)
        if self.matrix.shape != (n_entries, len(self.features)):
            problem = f"the matrix is {self.matrix.shape} for {len(self.features)} features"
            raise SchemaError(problem)
        names = self.feature_names + self.companions.schema.names()
        if len(set(names)) != len(names):
            problem = "a feature has the name of another column"
            raise SchemaError(problem)

    def __repr__(self) -> str:
        return (
            f"BinaryTable({self.n_rows:,} rows, {len(self.features):,} features, {self.matrix.nnz:,} ones, "
            f"{len(self.companions.columns)} other columns)"
        )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.companions.n_rows

    @property
    def coded_part(self) -> Table:
        """The columns that are held as codes, which are all but the features; a :class:`Table` is that itself."""
        return self.companions

    def with_coded_part(self, coded: Table) -> BinaryTable:
        """Give the columns beside the features another description, or others."""
        return replace(self, companions=coded)

    @property
    def row_counts(self) -> NDArray[np.int64] | None:
        """Rows that each row of the matrix represents; ``None``: each for itself."""
        return self.companions.row_counts if isinstance(self.companions, CountedTable) else None

    @property
    def source(self) -> Source | None:
        """What the table was read from."""
        return self.companions.source

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in matrix order."""
        return tuple(feature.name for feature in self.features)

    def target(self) -> CodedColumn:
        """Return the target column, or say that there is none."""
        name = self.companions.schema.target
        if name is None:
            problem = "no column has the role target"
            raise SchemaError(problem, hint="name the target column", remedy=("target",))
        return self.companions[name]

    def select(self, chosen: Sequence[int] | NDArray[np.intp]) -> BinaryTable:
        """Keep these features, by position."""
        index = np.asarray(chosen, dtype=np.intp)
        return replace(self, matrix=self.matrix[:, index], features=tuple(self.features[i] for i in index))

    def take(self, rows: NDArray[np.intp] | RowMask) -> BinaryTable:
        """Restrict to these rows."""
        matrix = sp.csc_matrix(sp.csr_matrix(self.matrix)[rows])
        matrix.sort_indices()
        return replace(self, matrix=matrix, companions=self.companions.take(rows))

    def position(self, name: str) -> int:
        """Column of a feature in the matrix."""
        try:
            return self.feature_names.index(name)
        except ValueError:
            raise ColumnNotFoundError(name, self.feature_names) from None

    def to_table(self) -> Table:
        """All features as quasi-identifying 0/1 columns, followed by the companions."""
        zero_one = pa.array([0, 1], type=pa.int8())
        zero, one = zero_one[:1], zero_one[1:]
        columns: dict[str, CodedColumn] = {}
        described: list[Column] = []
        n_entries = self.matrix.shape[0]
        for i, feature in enumerate(self.features):
            codes = np.zeros(n_entries, dtype=np.int32)
            ones = self.matrix.indices[self.matrix.indptr[i] : self.matrix.indptr[i + 1]]
            if 0 < len(ones) < n_entries:
                codes[ones] = 1
                columns[feature.name] = self._column(codes, zero_one)
            else:
                columns[feature.name] = self._column(codes, one if len(ones) else zero)
            described.append(Column(feature.name, Role.QUASI_IDENTIFIER, Kind.CATEGORICAL))
        columns |= self.companions.columns
        schema = Schema.of([*described, *self.companions.schema], self.companions.schema.missing)
        if not isinstance(self.companions, CountedTable):
            return replace(self.companions, schema=schema, columns=columns)
        together = (*self.feature_names, *self.companions.together)
        return replace(self.companions, schema=schema, columns=columns, together=together)

    def _column(self, codes: NDArray[np.int32], values: pa.Array) -> CodedColumn:
        counts = self.row_counts
        return CodedColumn(codes, values) if counts is None else WeightedColumn(codes, values, counts)


def as_binary_matrix(X: Any, names: Sequence[str] | None = None) -> sp.csc_matrix:
    """Turn an array or sparse matrix into a canonical 0/1 column-sparse matrix.

    Raises
    ------
    NotBinaryError
        If any entry is neither 0 nor 1; turning 3.7 into 1 silently would change what is released.
    """
    matrix = sp.csc_matrix(X)
    if matrix is X:
        matrix = matrix.copy()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    wrong = np.flatnonzero(matrix.data != 1)
    if wrong.size:
        column = int(np.searchsorted(matrix.indptr, wrong[0], side="right")) - 1
        name = str(names[column]) if names is not None else str(column)
        problem = f"holds entries that are neither 0 nor 1 ({wrong.size:,} in the whole matrix)"
        raise NotBinaryError(problem, column=name, hint="binarize the table first (sfumato.binarize)")
    matrix.data = np.ones(matrix.nnz, dtype=np.uint8)
    matrix.sort_indices()
    return matrix
