"""Contingency tables: how often each value of a column occurs with each class of another."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.cells import cell_table
from sfumato.counting.engine import Countable, Engine
from sfumato.table.coding import Table
from sfumato.table.weighted import CountedTable


def contingency(source: Countable, column: str, by: str, engine: Engine | None = None) -> NDArray[np.int64]:
    """Count the rows of every pair of a value and a class.

    Parameters
    ----------
    source : Countable
        See :data:`sfumato.counting.engine.Countable`.
    column, by : str
        The column whose values make the rows of the result, and the one whose values (classes) make its columns.

    Returns
    -------
    array of shape (values of ``column``, values of ``by``)
        Dense; in the order of a coded table's codes, else of the sorted distinct values. A missing value is the last.

    Notes
    -----
    The codes of a table in memory are counted where they are, which takes microseconds a column; anything else is
    counted by the engine, one scan a column.

    Examples
    --------
    >>> import pyarrow as pa
    >>> contingency(pa.table({"sex": ["m", "f", "m"], "ill": [1, 0, 0]}), "sex", "ill").tolist()
    [[1, 0], [1, 1]]
    """
    if isinstance(source, CountedTable) and (column, by) in source.pairs:
        return source.pairs[column, by]
    if isinstance(source, Table):
        values, classes = source[column], source[by]
        pairs = values.codes.astype(np.int64) * classes.n_distinct + classes.codes
        weights = source.row_counts if isinstance(source, CountedTable) else None
        counted = np.bincount(pairs, weights=weights, minlength=values.n_distinct * classes.n_distinct)
        return counted.astype(np.int64, copy=False).reshape(values.n_distinct, classes.n_distinct)
    cells = cell_table(source, [column, by], engine)
    dense = np.zeros(cells.n_values, dtype=np.int64)
    dense[cells.codes[:, 0], cells.codes[:, 1]] = cells.counts
    return dense


def contingencies(
    source: Countable, columns: Iterable[str], by: str, engine: Engine | None = None
) -> dict[str, NDArray[np.int64]]:
    """Contingency tables of many columns with the same classes, by column name."""
    return {column: contingency(source, column, by, engine) for column in columns}
