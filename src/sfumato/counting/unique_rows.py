"""Rows that equal no other row on all columns together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.bitsets import distinct_rows
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import Table


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
    rows, ids = np.arange(table.n_rows), np.zeros(table.n_rows, dtype=np.int64)
    n_unique = 0
    for codes in [np.zeros(table.n_rows, dtype=np.int64), *columns]:
        keys = ids * (int(codes.max(initial=0)) + 1) + codes[rows]
        _, ids, sizes = np.unique(keys, return_inverse=True, return_counts=True)
        is_alone = sizes[ids] == 1
        n_unique += int(np.count_nonzero(is_alone))
        rows, ids = rows[~is_alone], ids[~is_alone].astype(np.int64)
    return n_unique
