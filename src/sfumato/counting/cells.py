"""Cell tables: the distinct rows of some columns, with how often each occurs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import ColumnNotFoundError, InputError, SchemaError
from sfumato.table.coding import Table
from sfumato.table.weighted import CountedTable, OpenColumn

_MAX_KEY = 2**62


@dataclass(frozen=True, repr=False, eq=False)
class CellTable:
    """Distinct rows as codes, in lexicographic order, with counts.

    Parameters
    ----------
    columns : tuple of str
    codes : integer array of shape (n_cells, n_columns)
        Not negative. A coded table's own codes; else positions among the sorted distinct values, null last.
    counts : int64 array of shape (n_cells,)
        How many rows each cell stands for, at least 1.
    values : tuple of pyarrow.Array or None
        The values the codes stand for, one array a column, when known.
    """

    columns: tuple[str, ...]
    codes: NDArray[np.signedinteger]
    counts: NDArray[np.int64]
    values: tuple[pa.Array, ...] | None = None

    def __repr__(self) -> str:
        return f"CellTable({self.n_cells:,} cells, {len(self.columns)} columns, {self.n_rows:,} rows)"

    @property
    def n_cells(self) -> int:
        """Number of distinct rows."""
        return len(self.counts)

    @cached_property
    def n_rows(self) -> int:
        """Number of rows the cells represent."""
        return int(self.counts.sum())

    @cached_property
    def n_values(self) -> tuple[int, ...]:
        """Number of codes of each column."""
        if self.values is not None:
            return tuple(len(values) for values in self.values)
        return tuple(int(column.max()) + 1 if len(column) else 0 for column in self.codes.T)

    def project(self, columns: Sequence[str]) -> CellTable:
        """Roll up to some of the columns, in the order given, without going back to the rows.

        No columns give a single cell that holds all rows (no cell when there are no rows).
        """
        places = []
        for name in columns:
            if name not in self.columns:
                raise ColumnNotFoundError(name, self.columns, where="the cell table")
            places.append(self.columns.index(name))
        values = None if self.values is None else tuple(self.values[i] for i in places)
        return _collapse(tuple(columns), self.codes[:, places], self.counts, values)

    def find(self, codes: NDArray[np.signedinteger]) -> NDArray[np.intp]:
        """Cell of each row, given the codes of the rows in the columns of the table; every row must have one.

        Examples
        --------
        >>> cells = CellTable(("a",), np.array([[1], [4]]), np.array([2, 1]))
        >>> cells.find(np.array([[4], [1], [1]])).tolist()
        [1, 0, 0]
        """
        if not self.columns or not len(codes):
            return np.zeros(len(codes), dtype=np.intp)
        both = _packed(np.concatenate([self.codes, codes]))
        if len(both) == 1:
            return np.asarray(np.searchsorted(both[0][: self.n_cells], both[0][self.n_cells :]))
        _, numbers = np.unique(np.column_stack(both), axis=0, return_inverse=True)
        return np.asarray(numbers.reshape(-1)[self.n_cells :], dtype=np.intp)


def cell_table(table: Table, columns: Sequence[str]) -> CellTable:
    """Count the distinct rows of some columns of a table in memory.

    A column may be named twice. No columns give a single cell that holds all rows. A missing value is a value of its
    own. Distinct rows that were counted already are rolled up.

    Examples
    --------
    >>> from sfumato.schema import Column, Schema
    >>> people = pa.table({"sex": ["m", "f", "m"], "age": ["30", "41", "30"]})
    >>> people = Table.from_arrow(people, Schema.of([Column("sex"), Column("age")]))
    >>> cells = cell_table(people, ["sex", "age"])
    >>> cells.codes.tolist(), cells.counts.tolist()
    ([[0, 1], [1, 0]], [1, 2])
    """
    names, counts = tuple(columns), np.ones(table.n_rows, dtype=np.int64)
    if isinstance(table, CountedTable):
        counts = table.row_counts
        for name in names:
            if name not in table.together:
                raise ColumnNotFoundError(name, table.together, where="the columns that were counted together")
    codes = np.empty((len(counts), len(names)), dtype=np.int32, order="F")
    for i, name in enumerate(names):
        codes[:, i] = table[name].codes
    return _collapse(names, codes, counts, tuple(table[name].values for name in names))


def _collapse(
    columns: tuple[str, ...],
    codes: NDArray[np.signedinteger],
    counts: NDArray[np.int64],
    values: tuple[pa.Array, ...] | None,
) -> CellTable:
    """Sort cells, given as codes and counts, and add up those that are equal."""
    if len(counts) == 0:
        return CellTable(columns, codes, counts, values)
    keys = _packed(codes)
    order = np.argsort(keys[0]) if len(keys) == 1 else np.lexsort(keys[::-1])
    starts = np.zeros(len(counts), dtype=np.bool_)
    starts[0] = True
    for key in keys:
        ordered = key[order]
        starts[1:] |= ordered[1:] != ordered[:-1]
    first = np.flatnonzero(starts)
    kept = np.take(codes.T, order[first], axis=1).T  # column by column: the columns are contiguous
    return CellTable(columns, kept, np.add.reduceat(counts[order], first), values)


def _packed(codes: NDArray[np.signedinteger]) -> list[NDArray[np.int64]]:
    """Pack codes, most significant column first, into as few 64-bit keys of the same order as will hold them."""
    keys = [np.zeros(len(codes), dtype=np.int64)]
    span = 1
    for column in codes.T:
        radix = int(column.max()) + 1
        if span * radix > _MAX_KEY:
            keys.append(np.zeros(len(codes), dtype=np.int64))
            span = 1
        keys[-1] = keys[-1] * radix + column
        span *= radix
    return keys


# What cannot be counted together, said in words: columns with too many values, and too many combinations.


_MOST_PAIRS = 10**7


class TooManyCellsError(InputError):
    """There are more distinct rows than fit in memory."""


def too_many_cells(names: Sequence[str], most: int, place: str) -> TooManyCellsError:
    """Error for columns of which there are more combinations than fit."""
    listed = ", ".join(f"'{name}'" for name in names)
    problem = (
        f"the columns {listed} have more than {most:,} distinct combinations, "
        "which is all that fits in the memory given"
    )
    hint = "take fewer quasi-identifiers, coarser values in the file, or more memory"
    return TooManyCellsError(problem, path=place, hint=hint, remedy=("memory",))


def refuse_open(outline: Table, names: Sequence[str]) -> None:
    """Refuse columns whose distinct values are too many to be listed."""
    for name in names:
        if isinstance(outline[name], OpenColumn):
            problem = f"has too many distinct values for a column with the role {outline.schema[name].role}"
            hint = "round or group its values in the file first, or give it the role other or identifier"
            raise SchemaError(problem, column=name, hint=hint)


def no_pairs(outline: Table, name: str, second: str) -> NDArray[np.int64]:
    """Begin to count the values of two columns two by two, all 0; refused where there would be too many."""
    shape = outline[name].n_distinct, outline[second].n_distinct
    if shape[0] * shape[1] > _MOST_PAIRS:
        problem = f"has too many distinct values to be counted with those of '{name}'"
        hint = "round or group its values in the file first, or give it the role other"
        raise SchemaError(problem, column=second, hint=hint)
    return np.zeros(shape, dtype=np.int64)
