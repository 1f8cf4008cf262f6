"""Equivalence classes: rows that are equal on some columns, and what one more column holds in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.counting.cells import CellTable, cell_table
from sfumato.counting.counts import Counts
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


def _counts_of_last_column(cells: CellTable) -> Counts:
    """Take the last column's values within the classes of all other columns."""
    codes = cells.codes
    starts = np.ones(cells.n_cells, dtype=np.bool_)
    starts[1:] = np.any(codes[1:, :-1] != codes[:-1, :-1], axis=1)
    index = np.cumsum(starts, dtype=np.int64) - 1
    return Counts.of(index, codes[:, -1].astype(np.int64), cells.counts, int(starts.sum()), cells.n_values[-1])


def class_value_counts(
    source: Countable, columns: Sequence[str], sensitive: str, engine: Engine | None = None
) -> Counts:
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
    found = _counts_of_last_column(cells)
    values = cells.values[-1] if cells.values is not None else pa.array([], pa.string())
    numbers = value_numbers(values, source.schema[sensitive] if isinstance(source, Table) else _column_of(values))
    spelled = found.renumbered(numbers.spelled)
    return replace(found.renumbered(numbers.merged), spelled=spelled) if numbers.has_spellings else spelled


def _column_of(values: pa.Array) -> Column:
    """Describe the values of a frame by their type."""
    if pa.types.is_temporal(values.type):
        return Column("values", kind=Kind.DATE)
    return Column("values", kind=Kind.NUMERIC if is_number_type(values.type) else Kind.CATEGORICAL)
