"""Hypothesis strategies for small tables; the shapes that break counting (empty, constant, repeated) come up often."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.schema import Column, Schema
from sfumato.table.coding import Table

COLUMN_NAMES = ("age", "Age", "a.b", 'a"b', "x'y", "Größe", "", " ", "c0", "c1", "n", "size", "select", "%s", "a;b")
"""Names that have upset engines: equal up to case, quoted, empty, keywords, and the ones counting uses itself."""


class CategoricalRows(NamedTuple):
    """Rows of texts (or ``None``) under column names; there may be no rows."""

    columns: tuple[str, ...]
    rows: list[tuple[str | None, ...]]

    def arrow(self) -> pa.Table:
        """Make an Arrow table."""
        cells = [pa.array([row[j] for row in self.rows], type=pa.string()) for j in range(len(self.columns))]
        return pa.table(cells, names=list(self.columns))

    def table(self) -> Table:
        """Make a coded table of quasi-identifiers."""
        return Table.from_arrow(self.arrow(), Schema.of(Column(name) for name in self.columns))

    def column(self, name: str) -> list[str | None]:
        """Values of one column."""
        return [row[self.columns.index(name)] for row in self.rows]

    def keep(self, names: tuple[str, ...]) -> CategoricalRows:
        """Keep some of the columns."""
        places = [self.columns.index(name) for name in names]
        return CategoricalRows(names, [tuple(row[i] for i in places) for row in self.rows])


class BinaryRows(NamedTuple):
    """Rows of 0 and 1, perhaps without columns, with a label each."""

    rows: list[tuple[int, ...]]
    labels: list[int]

    def matrix(self) -> NDArray[np.uint8]:
        """Make a dense array."""
        return np.array(self.rows, dtype=np.uint8).reshape(len(self.rows), len(self.rows[0]) if self.rows else 0)


def _repeated(
    rows: st.SearchStrategy[list[tuple[object, ...]]], max_rows: int
) -> st.SearchStrategy[list[tuple[object, ...]]]:
    """Rows drawn anew, or a few of them several times over, or one of them only."""
    twice = rows.map(lambda drawn: (drawn + drawn + drawn[:1])[:max_rows])
    constant = rows.map(lambda drawn: drawn[:1] * len(drawn))
    return st.one_of(rows, twice, constant)


@st.composite
def categorical_rows(
    draw: st.DrawFn,
    min_rows: int = 0,
    max_rows: int = 12,
    min_columns: int = 1,
    max_columns: int = 4,
    max_values: int = 3,
    missing: bool = True,
) -> CategoricalRows:
    """Draw small categorical rows under awkward column names, with missing values."""
    names = draw(st.lists(st.sampled_from(COLUMN_NAMES), min_size=min_columns, max_size=max_columns, unique=True))
    values: list[str | None] = ["b", "a", "", "B", "10", "9"][:max_values]
    cell = st.sampled_from([*values, None] if missing else values)
    plain = st.lists(st.tuples(*(cell for _ in names)), min_size=min_rows, max_size=max_rows)
    return CategoricalRows(tuple(names), draw(_repeated(plain, max_rows)))


def categorical_tables(**shape: int) -> st.SearchStrategy[tuple[CategoricalRows, Table]]:
    """Draw the same small table as rows and as a coded table."""
    return categorical_rows(**shape).map(lambda drawn: (drawn, drawn.table()))


@st.composite
def binary_tables(
    draw: st.DrawFn,
    min_rows: int = 1,
    max_rows: int = 8,
    min_columns: int = 0,
    max_columns: int = 5,
    n_classes: int = 2,
    both_classes: bool = False,
) -> BinaryRows:
    """Draw a small binary matrix with labels: arbitrary, sparse, repeated or constant rows; often one class only.

    ``min_rows=0`` also draws tables without rows; ``both_classes`` makes sure that the first two labels differ (give a
    ``min_rows`` of at least 2).
    """
    n_columns = draw(st.integers(min_columns, max_columns))
    bit = draw(st.sampled_from([st.integers(0, 1), st.sampled_from([0, 0, 0, 1]), st.just(0), st.just(1)]))
    plain = st.lists(st.tuples(*(bit for _ in range(n_columns))), min_size=min_rows, max_size=max_rows)
    rows = draw(_repeated(plain, max_rows))
    label = st.integers(0, n_classes - 1)
    labels = draw(st.lists(label, min_size=len(rows), max_size=len(rows)) | label.map(lambda y: [y] * len(rows)))
    if both_classes:
        labels[:2] = [0, 1]
    return BinaryRows(rows, labels)
