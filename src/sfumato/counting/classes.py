"""Equivalence classes: rows that are equal on some columns, and what one more column holds in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from sfumato.counting.cells import CellTable, cell_table
from sfumato.counting.engine import Countable, Engine, default_engine
from sfumato.counting.same_values import value_numbers
from sfumato.schema import Column, Kind
from sfumato.table.coding import Table, is_number_type


@dataclass(frozen=True, repr=False, eq=False)
class EquivalenceClasses:
    """Sizes of the classes of rows that are equal on some columns, in the order of their cells."""

    sizes: NDArray[np.int64]
    n_rows: int

    def __repr__(self) -> str:
        return f"EquivalenceClasses({len(self.sizes):,} classes, {self.n_rows:,} rows)"


def equivalence_classes(source: Countable, columns: Sequence[str], engine: Engine | None = None) -> EquivalenceClasses:
    """Count the rows of every equivalence class; no columns make one class of all rows.

    Examples
    --------
    >>> import pyarrow as pa
    >>> equivalence_classes(pa.table({"sex": ["m", "f", "m"]}), ["sex"]).sizes.tolist()
    [1, 2]
    """
    cells = cell_table(source, columns, engine)
    return EquivalenceClasses(cells.counts, cells.n_rows)


def class_size_counts(source: Countable, columns: Sequence[str], engine: Engine | None = None) -> dict[int, int]:
    """Count the equivalence classes of each size, smallest size first.

    Counted wholly inside the engine, so that neither the classes nor the rows ever come into memory as a result.

    Examples
    --------
    >>> import pyarrow as pa
    >>> class_size_counts(pa.table({"sex": ["m", "f", "m"]}), ["sex"])
    {1: 1, 2: 1}
    """
    engine = default_engine() if engine is None else engine
    if not columns:
        n_rows = engine.n_rows(source)
        return {n_rows: 1} if n_rows else {}
    keys = [f"c{i}" for i in range(len(columns))]
    classes = engine.keys(source, columns).group_by(*keys).agg(nw.len().alias("size"))
    found = engine.collect(classes.group_by("size").agg(nw.len().alias("n_classes")))
    return dict(sorted(zip(found.column("size").to_pylist(), found.column("n_classes").to_pylist(), strict=True)))


@dataclass(frozen=True, repr=False, eq=False)
class ClassValueCounts:
    """How often each value of one column occurs in each equivalence class; only what occurs is held.

    Parameters
    ----------
    class_index, value_code, count : arrays of the same length
        Sorted by class, then by value; ``count`` is at least 1 and every class occurs. Codes ascend as values do.
    class_sizes : int64 array
        Rows of each class.
    value_totals : int64 array
        How often each value occurs in the rows that classes are compared with: the whole table, or those released.
    spelled : ClassValueCounts or None
        The same with every spelling as a value of its own, where some value has several.
    """

    class_index: NDArray[np.int64]
    value_code: NDArray[np.int64]
    count: NDArray[np.int64]
    class_sizes: NDArray[np.int64]
    value_totals: NDArray[np.int64]
    spelled: ClassValueCounts | None = None

    def __repr__(self) -> str:
        return f"ClassValueCounts({self.n_classes:,} classes, {self.n_values:,} values, {self.n_rows:,} rows)"

    @classmethod
    def of(
        cls,
        class_index: NDArray[np.int64],
        value_code: NDArray[np.int64],
        count: NDArray[np.int64],
        n_classes: int,
        n_values: int,
    ) -> ClassValueCounts:
        """Add up what classes and values have."""
        sizes, totals = np.zeros(n_classes, dtype=np.int64), np.zeros(n_values, dtype=np.int64)
        np.add.at(sizes, class_index, count)
        np.add.at(totals, value_code, count)
        return cls(class_index, value_code, count, sizes, totals)

    @classmethod
    def from_cells(cls, cells: CellTable) -> ClassValueCounts:
        """Take the last column's values within the classes of all other columns."""
        codes = cells.codes
        starts = np.ones(cells.n_cells, dtype=np.bool_)
        starts[1:] = np.any(codes[1:, :-1] != codes[:-1, :-1], axis=1)
        index = np.cumsum(starts, dtype=np.int64) - 1
        return cls.of(index, codes[:, -1].astype(np.int64), cells.counts, int(starts.sum()), cells.n_values[-1])

    @classmethod
    def from_contingency(cls, contingency: ArrayLike) -> ClassValueCounts:
        """Take counts as a dense array of shape (values, classes); a class without rows is left out.

        Examples
        --------
        >>> ClassValueCounts.from_contingency([[2, 1], [0, 3]])
        ClassValueCounts(2 classes, 2 values, 6 rows)
        """
        dense = np.asarray(contingency, dtype=np.int64).T
        dense = dense[dense.sum(axis=1) > 0]
        index, codes = np.nonzero(dense)
        return cls.of(index, codes, dense[index, codes], *dense.shape)

    def renumbered(self, number: NDArray[np.integer]) -> ClassValueCounts:
        """Give the values other numbers, from 0 without gaps, one for each code; values with one number are one."""
        n_values = int(number.max(initial=-1)) + 1
        keys = self.class_index * max(n_values, 1) + number[self.value_code]
        pairs, places = np.unique(keys, return_inverse=True)
        count = np.zeros(len(pairs), dtype=np.int64)
        np.add.at(count, places, self.count)
        index, code = np.divmod(pairs, max(n_values, 1))
        return ClassValueCounts.of(index, code, count, self.n_classes, n_values)

    def compared_with(self, kept: NDArray[np.bool_]) -> ClassValueCounts:
        """Compare all classes with the rows of some of them."""
        here = kept[self.class_index]
        totals = np.bincount(self.value_code[here], self.count[here], self.n_values).astype(np.int64)
        return replace(self, value_totals=totals)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_sizes)

    @property
    def n_values(self) -> int:
        """Number of values, some of which may not occur."""
        return len(self.value_totals)

    @property
    def n_rows(self) -> int:
        """Number of rows counted."""
        return int(self.count.sum())

    @cached_property
    def class_starts(self) -> NDArray[np.int64]:
        """Where each class begins in the arrays."""
        begins = np.ones(len(self.class_index), dtype=np.bool_)
        begins[1:] = self.class_index[1:] != self.class_index[:-1]
        return np.flatnonzero(begins)

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Share of each value in its class."""
        return np.asarray(self.count / self.class_sizes[self.class_index], dtype=np.float64)

    @cached_property
    def n_distinct(self) -> NDArray[np.int64]:
        """Number of different values in each class, a missing value counted as one."""
        return np.bincount(self.class_index, minlength=self.n_classes).astype(np.int64)


def class_value_counts(
    source: Countable, columns: Sequence[str], sensitive: str, engine: Engine | None = None
) -> ClassValueCounts:
    """Count the values of a sensitive column within every equivalence class of other columns.

    Cells that hold the same value in different spellings count as one (see :mod:`sfumato.counting.same_values`); what
    ``spelled`` holds counts them apart. Values are numbered in the order of their kind; missing is last.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"sex": ["m", "f", "m", "m"], "ill": ["flu", "flu", None, "Flu"]})
    >>> class_value_counts(table, ["sex"], "ill").n_distinct.tolist()
    [1, 2]
    """
    cells = cell_table(source, [*columns, sensitive], engine)
    found = ClassValueCounts.from_cells(cells)
    values = cells.values[-1] if cells.values is not None else pa.array([], pa.string())
    numbers = value_numbers(values, source.schema[sensitive] if isinstance(source, Table) else _column_of(values))
    spelled = found.renumbered(numbers.spelled)
    return replace(found.renumbered(numbers.merged), spelled=spelled) if numbers.has_spellings else spelled


def _column_of(values: pa.Array) -> Column:
    """Describe the values of a frame by their type."""
    if pa.types.is_temporal(values.type):
        return Column("values", kind=Kind.DATE)
    return Column("values", kind=Kind.NUMERIC if is_number_type(values.type) else Kind.CATEGORICAL)
