"""Contingency tables: how often each value of a column occurs with each class of another."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sfumato.table.coding import Table
from sfumato.table.weighted import CountedTable


def contingency(table: Table, column: str, by: str) -> NDArray[np.int64]:
    """Count the rows of every pair of a value and a class.

    Parameters
    ----------
    column, by : str
        The column whose values make the rows of the result, and the one whose values (classes) make its columns.

    Returns
    -------
    array of shape (values of ``column``, values of ``by``)
        Dense, in the order of the codes; a missing value is the last.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.schema import Column, Schema
    >>> cells = pa.table({"sex": ["m", "f", "m"], "ill": ["yes", "no", "no"]})
    >>> table = Table.from_arrow(cells, Schema.of([Column("sex"), Column("ill")]))
    >>> contingency(table, "sex", "ill").tolist()
    [[1, 0], [1, 1]]
    """
    if isinstance(table, CountedTable) and (column, by) in table.pairs:
        return table.pairs[column, by]
    values, classes = table[column], table[by]
    pairs = values.codes.astype(np.int64) * classes.n_distinct + classes.codes
    weights = table.row_counts if isinstance(table, CountedTable) else None
    counted = np.bincount(pairs, weights=weights, minlength=values.n_distinct * classes.n_distinct)
    return counted.astype(np.int64, copy=False).reshape(values.n_distinct, classes.n_distinct)


def contingencies(table: Table, columns: Iterable[str], by: str) -> dict[str, NDArray[np.int64]]:
    """Contingency tables of many columns with the same classes, by column name."""
    return {column: contingency(table, column, by) for column in columns}
