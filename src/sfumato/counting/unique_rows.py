"""Rows that equal no other row on all columns together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.bitsets import distinct_rows
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import Table

_LARGEST_KEY = 2**62


def n_unique_rows(table: Table | BinaryTable) -> int:
    """Count the rows of a table in memory that no other row equals; missing equals missing.

    A row that some columns tell apart from all others stays apart, and is not looked at again.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.schema import Column, Schema
    >>> cells = pa.table({"sex": ["m", "f", "m"], "age": ["30", "41", "30"]})
    >>> n_unique_rows(Table.from_arrow(cells, Schema.of([Column("sex"), Column("age")])))
    1
    """
    columns: list[NDArray[np.integer]] = [column.codes for column in table.coded_part.columns.values()]
    if isinstance(table, BinaryTable):
        columns.insert(0, distinct_rows(table.matrix).inverse)
    rows, keys, n_keys = np.arange(table.n_rows), np.zeros(table.n_rows, dtype=np.int64), 1
    n_unique = 0
    for codes in columns:
        n_values = int(codes.max(initial=0)) + 1
        if n_keys * n_values > _LARGEST_KEY:
            n_alone, rows, keys = _without_unique(rows, keys)
            n_unique, n_keys = n_unique + n_alone, max(table.n_rows, 1)
        keys, n_keys = keys * n_values + codes[rows], n_keys * n_values
    return n_unique + _without_unique(rows, keys)[0]


def _without_unique(rows: NDArray[np.intp], keys: NDArray[np.int64]) -> tuple[int, NDArray[np.intp], NDArray[np.int64]]:
    """Count the rows whose key no other row has, leave them out, and number the keys of the others from 0."""
    _, numbers, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    is_shared = sizes[numbers] > 1
    return int(np.count_nonzero(sizes == 1)), rows[is_shared], np.asarray(numbers[is_shared], dtype=np.int64)
