"""Counts and samples of rows that are not in memory, wherever they are: in a file that is read in blocks, on a cluster.

This is the one door. What needs no more than counts, or counts and some rows, need not ask where the rows are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.blocks import Persons, count_blocks
from sfumato.progress import Progress
from sfumato.rows.out_of_core import LargeTable
from sfumato.table.coding import CodedColumn
from sfumato.table.weighted import Block, CountedTable, OutlinedTable, Rows


def count_rows(
    rows: OutlinedTable,
    names: Sequence[str],
    *,
    beside: Sequence[str] = (),
    persons: Persons | None = None,
    most_cells: int,
    progress: Progress | None = None,
) -> CountedTable:
    """Count the distinct rows of some columns.

    Parameters
    ----------
    rows : LargeTable or ClusterTable
    names : sequence of str
        At least one column, none of which is open.
    beside : sequence of str
        Columns that are counted with each of the others by itself: their values two by two.
    persons : str and int, or None
        Count persons too, in distinct rows that have fewer than so many, see :mod:`sfumato.counting.crowds`.
    most_cells : int
        Number of distinct rows that fit in memory.
    progress : callable or None
        Called as ``progress(done, total, what)`` while rows are read; a cluster says no more than that it begins.

    Raises
    ------
    SchemaError
        If a column has too many distinct values.
    TooManyCellsError
        If there are more distinct rows than fit.
    """
    if isinstance(rows, LargeTable):
        return count_blocks(rows, names, beside=beside, persons=persons, most_cells=most_cells, progress=progress)
    from sfumato.counting.spark import count_on_cluster  # Spark is there only where somebody has a cluster

    if progress is not None:
        progress(0, rows.n_rows, "0 rows read")
    cluster: Any = rows  # the only other home
    return count_on_cluster(cluster, names, beside=beside, persons=persons, most_cells=most_cells)


def taken_with_pairs(
    rows: OutlinedTable,
    names: Sequence[str],
    places: Rows,
    pairs: Mapping[str, NDArray[np.int64]],
    second: str,
    *,
    progress: Progress | None = None,
) -> dict[str, CodedColumn]:
    """Take some rows by their places, and add to ``pairs`` how often values of columns occur with those of another.

    Parameters
    ----------
    names : sequence of str
        Columns that are taken; those of the pairs are among them.
    places : array
        Of the rows, ascending.
    pairs : mapping of a column to an int64 array of its values × those of ``second``
        All rows are added, not only those that are taken.
    """
    if not isinstance(rows, LargeTable):
        from sfumato.counting.spark import add_pairs_on_cluster

        if progress is not None:
            progress(0, rows.n_rows, "0 rows read")
        add_pairs_on_cluster(rows, pairs, second)  # type: ignore[arg-type] # the only other home
        return rows.taken(names, places, progress=progress)

    def add(block: Block) -> None:
        for name, counts in pairs.items():
            keys = np.asarray(block[name], dtype=np.int64) * counts.shape[1] + block[second]
            counts += np.bincount(keys, minlength=counts.size).reshape(counts.shape)

    return rows.taken(names, places, progress=progress, seen=add)
