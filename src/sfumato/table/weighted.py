"""Columns and tables whose entries stand for many rows: distinct values, or distinct rows, with their counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.schema import Kind
from sfumato.table.coding import CodedColumn, RowMask, Table

Counts = NDArray[np.int64]
Places = NDArray[np.int64]
"""Places of rows in a table, counted from 0."""
Block = Mapping[str, NDArray[np.int32] | pa.Array]
"""Some rows: of each column their codes, or their cells."""


@dataclass(frozen=True, repr=False, eq=False)
class WeightedColumn(CodedColumn):
    """A coded column whose entries stand for as many rows as their weights say.

    Examples
    --------
    >>> column = WeightedColumn(np.array([0, 1, 0]), pa.array(["f", "m"]), np.array([10, 4, 1]))
    >>> column.n_rows, column.counts.tolist()
    (15, [11, 4])
    """

    weights: Counts

    @property
    def n_rows(self) -> int:
        """Number of rows that the entries stand for."""
        return int(self.weights.sum())

    @property
    def is_by_row(self) -> bool:
        """Entries stand for rows anywhere in the table."""
        return False

    @cached_property
    def counts(self) -> Counts:
        """How many rows hold each value."""
        return np.bincount(self.codes, weights=self.weights, minlength=len(self.values)).astype(np.int64)

    def recode(self, values: pa.Array, kind: Kind = Kind.CATEGORICAL) -> WeightedColumn:
        """Replace the distinct values one for one (equal results are merged) and sort anew."""
        recoded = CodedColumn._from_codes(self.codes, values, kind)
        return WeightedColumn(recoded.codes, recoded.values, self.weights)

    def take(self, rows: NDArray[np.intp] | RowMask, kind: Kind = Kind.CATEGORICAL) -> WeightedColumn:
        """Keep these entries; values that no longer occur are dropped."""
        taken = CodedColumn._from_codes(self.codes[rows], self.values, kind)
        return WeightedColumn(taken.codes, taken.values, self.weights[rows])


@dataclass(frozen=True, repr=False, eq=False)
class OpenColumn(CodedColumn):
    """A column of a large file with too many distinct values to be listed: only its type and kind are known.

    ``format`` is the one in which its texts are read; ``None``: as they are.
    """

    n_open_rows: int
    n_open_missing: int
    kind: Kind
    format: str | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.n_open_rows

    @property
    def n_missing(self) -> int:
        """Number of rows whose value is missing."""
        return self.n_open_missing

    def recode(self, values: pa.Array, kind: Kind = Kind.CATEGORICAL) -> OpenColumn:
        """Change nothing: there are no values to be sorted."""
        return self


@dataclass(frozen=True, repr=False, eq=False)
class CountedTable(Table):
    """Distinct rows of a table, each with the number of rows that it stands for; ``n_rows`` is their sum.

    Parameters
    ----------
    row_counts : int64 array
        Rows that each distinct row stands for.
    together : tuple of str
        Columns whose entries are those distinct rows. Other columns are counted by themselves: their entries are no
        rows of the same table.
    pairs : mapping of two names to an int64 array of values × values
        Rows that hold each value of one column with each of another, which was not counted together with it.
    occurring : mapping of a name to a bool array of distinct rows × values
        Which values of a column, that was not counted together with the others, occur in each distinct row.
    crowd : int or None
        Where persons were counted: the code of the column that tells them apart which stands for a crowd, at least as
        many persons as a class needs. Other codes stand for one person each. See :mod:`sfumato.counting.crowds`.
    n_persons : int or None
        Where persons were counted: how many there are in all rows.
    """

    row_counts: Counts = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    together: tuple[str, ...] = ()
    pairs: Mapping[tuple[str, str], Counts] = field(default_factory=dict)
    occurring: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    crowd: int | None = None
    n_persons: int | None = None

    @classmethod
    def of(
        cls, outline: Table, names: Sequence[str], codes: Sequence[NDArray[np.int32]], counts: Counts
    ) -> CountedTable:
        """Put rows that were counted together into the table that describes every column by itself."""
        columns = dict(outline.columns)
        for name, own in zip(names, codes, strict=True):
            columns[name] = WeightedColumn(own, outline[name].values, counts)
        return cls(
            outline.schema,
            columns,
            outline.n_rows,
            outline.source,
            outline.n_incomplete_dropped,
            outline.only_complete_rows,
            outline.person_rows,
            outline.prepared,
            counts,
            tuple(names),
        )

    def keep(self, names: Iterable[str]) -> CountedTable:
        """Restrict to these columns, in the order given."""
        kept = super().keep(names)
        together = tuple(name for name in self.together if name in kept.columns)
        return replace(self, schema=kept.schema, columns=kept.columns, together=together)

    def take(self, rows: NDArray[np.intp] | RowMask) -> CountedTable:
        """Restrict to these distinct rows; columns that were not counted together are left out."""
        counts = self.row_counts[rows]
        schema = self.schema.keep(name for name in self.columns if name in self.together)
        columns = {c.name: self[c.name].take(rows, c.kind) for c in schema}
        n_rows = int(counts.sum())
        occurring = {name: occurs[rows] for name, occurs in self.occurring.items()}
        return replace(
            self, schema=schema, columns=columns, n_rows=n_rows, row_counts=counts, pairs={}, occurring=occurring
        )


def kept_column(column: CodedColumn, counts: Counts, n_rows: int, n_missing: int, kind: Kind) -> CodedColumn:
    """Describe a column of some rows: how often each of its codes occurs in them, or how many are missing.

    Entries of values that do not occur are dropped; those that are read as the same value stay.
    """
    if isinstance(column, OpenColumn):
        return replace(column, n_open_rows=n_rows, n_open_missing=n_missing)
    weights = np.zeros(len(column.codes), dtype=np.int64)
    codes, first = np.unique(column.codes, return_index=True)
    weights[first] = counts[codes]
    return WeightedColumn(column.codes, column.values, weights).take(counts[column.codes] > 0, kind)
