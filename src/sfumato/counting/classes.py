"""Equivalence classes: rows that are equal on some columns, and what one more column holds in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sfumato.counting.cells import cell_table
from sfumato.counting.counts import Counts
from sfumato.counting.same_values import value_numbers
from sfumato.table.coding import Table


def class_size_counts(table: Table, columns: Sequence[str]) -> dict[int, int]:
    """Count the equivalence classes of each size, smallest size first.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.schema import Column, Schema
    >>> table = Table.from_arrow(pa.table({"sex": ["m", "f", "m"]}), Schema.of([Column("sex")]))
    >>> class_size_counts(table, ["sex"])
    {1: 1, 2: 1}
    """
    sizes, n_classes = np.unique(cell_table(table, columns).counts, return_counts=True)
    return dict(zip(sizes.tolist(), n_classes.tolist(), strict=True))


def class_value_counts(table: Table, columns: Sequence[str], sensitive: str) -> Counts:
    """Count the values of a sensitive column within every equivalence class of other columns.

    Cells that hold the same value in different spellings count as one (see :mod:`sfumato.counting.same_values`); what
    ``spelled`` holds counts them apart. Values are numbered in the order of their kind; missing is last.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.schema import Column, Schema
    >>> cells = pa.table({"sex": ["m", "f", "m", "m"], "ill": ["flu", "flu", None, "Flu"]})
    >>> table = Table.from_arrow(cells, Schema.of([Column("sex"), Column("ill")]))
    >>> class_value_counts(table, ["sex"], "ill").n_distinct.tolist()
    [1, 2]
    """
    cells = cell_table(table, [*columns, sensitive])
    codes = cells.codes
    starts = np.ones(cells.n_cells, dtype=np.bool_)
    starts[1:] = np.any(codes[1:, :-1] != codes[:-1, :-1], axis=1)
    index = np.cumsum(starts, dtype=np.int64) - 1
    n_values = table[sensitive].n_distinct
    found = Counts.of(index, codes[:, -1].astype(np.int64), cells.counts, int(starts.sum()), n_values)
    numbers = value_numbers(table[sensitive].values, table.schema[sensitive])
    spelled = found.renumbered(numbers.spelled)
    return replace(found.renumbered(numbers.merged), spelled=spelled) if numbers.has_spellings else spelled
