"""Distinct rows of a table on a cluster, with how often each occurs: counted there, handed over as counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.counting.cells import no_pairs, refuse_open, too_many_cells
from sfumato.counting.crowds import keys_of_digests, with_persons
from sfumato.engines.spark.errors import watching
from sfumato.engines.spark.frames import Frame, exact_settings
from sfumato.errors import InputError
from sfumato.table.weighted import CountedTable

if TYPE_CHECKING:
    from sfumato.engines.protocol import Pairs, Persons
    from sfumato.engines.spark.rows import ClusterTable


def count_on_cluster(
    table: ClusterTable,
    names: Sequence[str],
    *,
    beside: Sequence[str] = (),
    persons: Persons | None = None,
    most_cells: int,
) -> CountedTable:
    """Count the distinct rows of some columns, as :func:`sfumato.engines.counting.count_blocks` does for a file.

    Parameters
    ----------
    names : sequence of str
        At least one column, none of which is open.
    beside : sequence of str
        Columns that are counted with each of the others by itself: their values two by two.
    persons : str and int, or None
        See :mod:`sfumato.counting.crowds`.
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
        coded = _coded(table, every)
        if persons is None:
            codes, counts = _grouped(coded, [f"c{every.index(name)}" for name in columns], most_cells)
            whose = None
        else:
            codes, counts, whose = _grouped_with_persons(table, columns, persons, most_cells)
        if len(counts) > most_cells:
            raise too_many_cells(columns, most_cells, table.place)
        _count_pairs(pairs, coded, columns, beside, every)
    if int(counts.sum()) != table.n_rows or any((code < 0).any() for code in codes):
        problem = "changed while it was being read"
        raise InputError(problem, path=table.place, hint="read it again when no program is writing to it")
    described = every if persons is None else tuple(dict.fromkeys([*every, persons[0]]))
    keys: list[NDArray[Any]] = [*codes, *(whose or ())]
    order = np.lexsort(keys[::-1])
    counted = CountedTable.of(table.outline.keep(described), columns, [code[order] for code in codes], counts[order])
    counted = replace(counted, pairs=pairs)
    if whose is None or persons is None:
        return counted
    return with_persons(counted, persons[0], [o[order] for o in whose], table.n_persons)


def _grouped_with_persons(
    table: ClusterTable, columns: Sequence[str], persons: Persons, most: int
) -> tuple[list[NDArray[np.int32]], NDArray[np.int64], list[NDArray[np.int64]]]:
    """Codes, counts and persons of the distinct rows; those of a crowd are one.

    A person is a digest of the cell by then, which does not leave the cluster: see :mod:`sfumato.counting.crowds`.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    name, k = persons
    keys = [f"c{i}" for i in range(len(columns))]
    wanted = [(n, pa.array(np.arange(table.outline[n].n_distinct, dtype=np.int32))) for n in columns]
    listed = None if table.is_open(name) else pa.array(np.arange(table.outline[name].n_distinct, dtype=np.int32))
    rows = table.rows([*wanted, (name, listed)])
    person = f"c{len(columns)}"
    pairs = rows.groupBy(*keys, person).agg(sf.count(sf.lit(1)).alias("n"))
    counted = pairs.withColumn("persons", sf.count(sf.lit(1)).over(Window.partitionBy(*keys)))
    digest = sf.coalesce(sf.md5(sf.col(person).cast("string").cast("binary")), sf.lit(""))
    named = counted.withColumn("whose", sf.when(sf.col("persons") >= k, None).otherwise(digest))
    found = named.groupBy(*keys, "whose").agg(sf.sum("n").alias("n")).limit(most + 1).toArrow()
    codes = [found.column(key).fill_null(-1).to_numpy().astype(np.int32) for key in keys]
    whose = keys_of_digests(found.column("whose").combine_chunks())
    return codes, found.column("n").to_numpy().astype(np.int64), whose


def fewest_persons_on_cluster(table: ClusterTable, person: str, cells: CountedTable, classes: NDArray[np.int64]) -> int:
    """Count the persons of every class of rows, given by its distinct rows, and give the fewest."""
    from pyspark.sql import functions as sf

    counted, kept = cells.together, classes >= 0
    keys = [f"c{i}" for i in range(len(counted))]
    wanted = [(n, pa.array(np.arange(cells[n].n_distinct, dtype=np.int32))) for n in counted]
    listed = None if table.is_open(person) else pa.array(np.arange(table.outline[person].n_distinct, dtype=np.int32))
    columns = {key: pa.array(cells[n].codes[kept], pa.int32()) for key, n in zip(keys, counted, strict=True)}
    schema = ", ".join([*(f"{key} int" for key in keys), "class bigint"])
    with watching(table.session), exact_settings(table.session):
        known = table.session.createDataFrame(pa.table(columns | {"class": pa.array(classes[kept])}), schema=schema)
        rows = table.rows([*wanted, (person, listed)]).join(sf.broadcast(known), keys)
        pairs = rows.select("class", f"c{len(counted)}").distinct()
        found = pairs.groupBy("class").agg(sf.count(sf.lit(1)).alias("n")).agg(sf.min("n").alias("n")).toArrow()
    return int(found.column("n")[0].as_py() or 0)


def add_pairs_on_cluster(table: ClusterTable, pairs: Pairs) -> None:
    """Add how often the values of columns occur with those of other ones, in all rows."""
    seconds = dict.fromkeys(second for _, second in pairs)
    for second in seconds:
        names = tuple(name for name, own in pairs if own == second)
        every = (*names, second)
        with watching(table.session), exact_settings(table.session):
            _count_pairs(pairs, _coded(table, every), names, [second], every)


def _coded(table: ClusterTable, names: Sequence[str]) -> Frame:
    """Rows of some columns as codes."""
    return table.rows([(n, pa.array(np.arange(table.outline[n].n_distinct, dtype=np.int32))) for n in names])


def _grouped(frame: Frame, keys: Sequence[str], most: int) -> tuple[list[NDArray[np.int32]], NDArray[np.int64]]:
    """Codes and counts of the distinct rows, one more than allowed if there are more; -1 for a cell unknown before."""
    from pyspark.sql import functions as sf

    found = frame.groupBy(*keys).agg(sf.count(sf.lit(1)).alias("n")).limit(most + 1).toArrow()
    codes = [found.column(i).fill_null(-1).to_numpy().astype(np.int32) for i in range(len(keys))]
    return codes, found.column("n").to_numpy().astype(np.int64)


def _count_pairs(
    pairs: Pairs,
    coded: Frame,
    columns: Sequence[str],
    beside: Sequence[str],
    every: Sequence[str],
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
