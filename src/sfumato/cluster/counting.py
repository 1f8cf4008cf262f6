"""Distinct rows of a table on a cluster, with how often each occurs: counted there, handed over as counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.cluster.frames import Frame, exact_settings
from sfumato.cluster.table import ClusterTable
from sfumato.cluster.watching import watching
from sfumato.counting.cell_limits import no_pairs, refuse_open, too_many_cells
from sfumato.errors import InputError
from sfumato.table.weighted import CountedTable

Pairs = dict[tuple[str, str], NDArray[np.int64]]


def count_on_cluster(
    table: ClusterTable, names: Sequence[str], *, beside: Sequence[str] = (), most_cells: int
) -> CountedTable:
    """Count the distinct rows of some columns, as :func:`sfumato.counting.blocks.count_blocks` does for a file.

    Parameters
    ----------
    names : sequence of str
        At least one column, none of which is open.
    beside : sequence of str
        Columns that are counted with each of the others by itself: their values two by two.
    most_cells : int
        Number of distinct rows that fit in the driver's memory.

    Raises
    ------
    SchemaError
        If a column has too many distinct values.
    InputError
        If there are more distinct rows than fit.
    ClusterError
        If the cluster cannot do it.
    """
    columns, every = tuple(names), tuple(dict.fromkeys([*names, *beside]))
    refuse_open(table.outline, every)
    pairs = {(name, second): no_pairs(table.outline, name, second) for second in beside for name in columns}
    with watching(table.session), exact_settings(table.session):
        coded = table.rows(
            [(name, pa.array(np.arange(table.outline[name].n_distinct, dtype=np.int32))) for name in every]
        )
        codes, counts = _grouped(coded, [f"c{every.index(name)}" for name in columns], most_cells)
        if len(counts) > most_cells:
            raise too_many_cells(columns, most_cells, table.place)
        _count_pairs(pairs, coded, columns, beside, every)
    if int(counts.sum()) != table.n_rows or any((code < 0).any() for code in codes):
        problem = "changed while it was being read"
        raise InputError(problem, path=table.place, hint="read it again when nobody writes to it")
    order = np.lexsort(codes[::-1])
    counted = CountedTable.of(table.outline.keep(every), columns, [code[order] for code in codes], counts[order])
    return replace(counted, pairs=pairs)


def _grouped(frame: Frame, keys: Sequence[str], most: int) -> tuple[list[NDArray[np.int32]], NDArray[np.int64]]:
    """Codes and counts of the distinct rows, one more than allowed if there are more; -1 for a cell unknown before."""
    from pyspark.sql import functions as sf

    found = frame.groupBy(*keys).agg(sf.count(sf.lit(1)).alias("n")).limit(most + 1).toArrow()
    codes = [found.column(i).fill_null(-1).to_numpy().astype(np.int32) for i in range(len(keys))]
    return codes, found.column("n").to_numpy().astype(np.int64)


def _count_pairs(
    pairs: Pairs, coded: Frame, columns: Sequence[str], beside: Sequence[str], every: Sequence[str]
) -> None:
    """Count values two by two, all pairs with one column in one job."""
    from pyspark.sql import functions as sf

    for second in beside:
        own = [sf.struct(sf.lit(i).alias("i"), sf.col(f"c{every.index(n)}").alias("v")) for i, n in enumerate(columns)]
        split = coded.select(sf.explode(sf.array(*own)).alias("x"), sf.col(f"c{every.index(second)}").alias("s"))
        found = split.groupBy("x.i", "x.v", "s").agg(sf.count(sf.lit(1)).alias("n")).dropna().toArrow()
        place, value, other, n = (found.column(i).to_numpy() for i in range(4))
        for i, name in enumerate(columns):
            pairs[name, second][value[place == i], other[place == i]] = n[place == i]
