"""Equivalence classes: rows that are equal on some columns, and what one more column holds in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

    @classmethod
    def from_size_counts(cls, size_counts: Mapping[int, int]) -> EquivalenceClasses:
        """Classes, smallest first, from how many there are of each size.

        Examples
        --------
        >>> EquivalenceClasses.from_size_counts({1: 2, 5: 1}).sizes.tolist()
        [1, 1, 5]
        """
        sizes = np.array(sorted(size_counts), dtype=np.int64)
        repeats = np.array([size_counts[int(size)] for size in sizes], dtype=np.int64)
        return cls(np.repeat(sizes, repeats), int(sizes @ repeats))


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
    n_classes, n_values : int
    spelled : ClassValueCounts or None
        The same with every spelling as a value of its own, where some value has several.
    """

    class_index: NDArray[np.int64]
    value_code: NDArray[np.int64]
    count: NDArray[np.int64]
    n_classes: int
    n_values: int
    spelled: ClassValueCounts | None = None

    def __repr__(self) -> str:
        return f"ClassValueCounts({self.n_classes:,} classes, {self.n_values:,} values, {self.n_rows:,} rows)"

    @classmethod
    def from_cells(cls, cells: CellTable) -> ClassValueCounts:
        """Take the last column's values within the classes of all other columns."""
        codes = cells.codes
        starts = np.ones(cells.n_cells, dtype=np.bool_)
        starts[1:] = np.any(codes[1:, :-1] != codes[:-1, :-1], axis=1)
        index = np.cumsum(starts, dtype=np.int64) - 1
        return cls(index, codes[:, -1].astype(np.int64), cells.counts, int(starts.sum()), cells.n_values[-1])

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
        return cls(index, codes, dense[index, codes], *dense.shape)

    def renumbered(self, number: NDArray[np.integer]) -> ClassValueCounts:
        """Give the values other numbers, from 0 without gaps, one for each code; values with one number are one."""
        n_values = int(number.max(initial=-1)) + 1
        keys = self.class_index * max(n_values, 1) + number[self.value_code]
        pairs, places = np.unique(keys, return_inverse=True)
        count = np.zeros(len(pairs), dtype=np.int64)
        np.add.at(count, places, self.count)
        index, code = np.divmod(pairs, max(n_values, 1))
        return ClassValueCounts(index, code, count, self.n_classes, n_values)

    @property
    def n_rows(self) -> int:
        """Number of rows counted."""
        return int(self.count.sum())

    @cached_property
    def class_starts(self) -> NDArray[np.int64]:
        """Where each class begins in the arrays."""
        return np.searchsorted(self.class_index, np.arange(self.n_classes)).astype(np.int64)

    @cached_property
    def class_sizes(self) -> NDArray[np.int64]:
        """Number of rows in each class."""
        return np.add.reduceat(self.count, self.class_starts) if self.n_classes else np.zeros(0, dtype=np.int64)

    @cached_property
    def n_distinct(self) -> NDArray[np.int64]:
        """Number of different values in each class, a missing value counted as one."""
        return np.diff(self.class_starts, append=len(self.count))

    @cached_property
    def value_totals(self) -> NDArray[np.int64]:
        """How often each value occurs in the whole table."""
        totals = np.zeros(self.n_values, dtype=np.int64)
        np.add.at(totals, self.value_code, self.count)
        return totals


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
