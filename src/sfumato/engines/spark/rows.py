"""Tables on a Spark cluster: what their columns hold, counted there and understood here, and their rows as codes.

Cells are understood exactly as :func:`sfumato.table.io.read.read_table` does. The driver sees distinct values and
counts, and whole rows only in parts that fit its memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.counting.cells import no_pairs, refuse_open, too_many_cells
from sfumato.counting.crowds import keys_of_digests, with_persons
from sfumato.engines.protocol import Pairs, Persons, Rows
from sfumato.engines.spark.errors import watching
from sfumato.engines.spark.frames import (
    Frame,
    Lookup,
    Session,
    clean_cell,
    exact_settings,
    looked_up,
    numbered_columns,
    numbered_rows,
    parquet_frame,
)
from sfumato.errors import ColumnNotFoundError, InputError
from sfumato.progress import Progress
from sfumato.table.coding import CodedColumn, PersonRows, Source
from sfumato.table.io.parquet import StoredParquet
from sfumato.table.weighted import Block, CountedTable, Counts, OpenColumn, Places, kept_column

_BYTES_A_PLACE = 64
_CELLS_AT_ONCE = 1 << 23
_ROWS_AT_ONCE = 1 << 16
FRAME = "<pyspark>"


@dataclass(frozen=True, repr=False)
class ClusterTable(Rows):
    """A table whose rows stay on a cluster.

    Parameters
    ----------
    outline : Table
        See :class:`~sfumato.engines.protocol.Rows`.
    source : Source or None
        Name, hash and format of the file or folder; ``None`` for a DataFrame of the user's.
    session : SparkSession
    """

    is_on_cluster = True
    source: Source | None
    session: Session
    _frame: Frame
    _stored: Mapping[str, pa.Array]
    _hashed: StoredParquet | None
    _numbered: Frame | None = None

    @property
    def place(self) -> str:
        """What messages call it."""
        return self.source.name if self.source is not None else FRAME

    def rows(self, wanted: Sequence[tuple[str, pa.Array | None]]) -> Frame:
        """Frame of some columns, named ``c0``, ``c1``, …, one row a row.

        Parameters
        ----------
        wanted : sequence of name and Arrow array or None
            What stands for each code of the column (numbers, labels); ``None`` gives the cells themselves. A cell that
            the table did not hold when it was opened becomes null.
        """
        return self._understood(self._frame, wanted)

    def _understood(self, rows: Frame, wanted: Sequence[tuple[str, pa.Array | None]], *also: str) -> Frame:
        """Read the stored cells of a frame; further columns of it stay beside."""
        from pyspark.sql import functions as sf

        places = {name: i for i, name in enumerate(self.schema.names())}
        for name, _ in wanted:
            if name not in places:
                raise ColumnNotFoundError(name, places)
        own = [sf.col(f"c{places[name]}").alias(f"r{i}") for i, (name, _) in enumerate(wanted)]
        frame = rows.select(*own, *also)
        cells, lookups = [], []
        for i, (name, meant) in enumerate(wanted):
            column = self.outline[name]
            if isinstance(column, OpenColumn):
                cells.append(self._open_cell(sf.col(f"r{i}"), name, column).alias(f"c{i}"))
                continue
            values = (column.values if meant is None else meant).take(pa.array(column.codes))
            lookups.append(Lookup(f"r{i}", self._stored[name], values, f"c{i}"))
            cells.append(sf.col(f"c{i}"))
        return looked_up(self.session, frame, lookups).select(*cells, *also)

    def blocks(
        self, names: Sequence[str], *, as_cells: Collection[str] = (), progress: Progress | None = None
    ) -> Iterator[Block]:
        """Equal rows of some columns one after the other: the cluster counts them, and they come in parts that fit.

        Raises
        ------
        InputError
            If there are other rows than when the table was opened.
        """
        n_given = 0
        for found in self._distinct_rows(names):
            columns = [found.column(i).combine_chunks() for i in range(len(names))]
            if any(own.null_count for own, name in zip(columns, names, strict=True) if not self.is_open(name)):
                raise self._changed()
            ends = np.cumsum(found.column("n").to_numpy())
            n_rows = int(ends[-1]) if len(ends) else 0
            for first in range(0, n_rows, _ROWS_AT_ONCE):
                places = np.arange(first, min(first + _ROWS_AT_ONCE, n_rows))
                rows = pa.array(np.searchsorted(ends, places, side="right"))
                cells = {name: own.take(rows) for name, own in zip(names, columns, strict=True)}
                yield {name: self._as_wanted(name, own, name in as_cells) for name, own in cells.items()}
                n_given += len(rows)
                if progress is not None:
                    progress(n_given, 0, f"{n_given:,} rows read")
        if n_given != self.n_rows:
            raise self._changed()

    def _as_wanted(self, name: str, cells: pa.Array, as_cells: bool) -> NDArray[np.int32] | pa.Array:
        column = self.outline[name]
        if isinstance(column, OpenColumn):
            return cells.cast(column.values.type)
        return column.values.take(cells) if as_cells else cells.to_numpy()

    def _distinct_rows(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """Distinct rows of some columns with their counts ``n``, in parts that fit in memory."""
        from pyspark.sql import functions as sf

        keys, width = [f"c{i}" for i in range(len(names))], len(names) + 1
        is_small = self.n_rows * width <= _CELLS_AT_ONCE
        with watching(self.session), exact_settings(self.session):
            rows = self.rows([wanted for name in names for wanted in self._values_of(name)])
            counted = rows.groupBy(*keys).agg(sf.count(sf.lit(1)).alias("n"))
            n_parts = 1 if is_small else -(-counted.persist().count() * width // _CELLS_AT_ONCE)
        try:
            for part in range(n_parts):
                with watching(self.session), exact_settings(self.session):
                    found = counted.where(sf.pmod(sf.xxhash64(*keys), sf.lit(n_parts)) == part).toArrow()
                yield found
        finally:
            if not is_small:
                counted.unpersist()

    def _changed(self) -> InputError:
        problem = "changed while it was being read"
        return InputError(problem, path=self.place, hint="read it again when no program is writing to it")

    def distinct(
        self,
        names: Sequence[str],
        *,
        beside: Sequence[str] = (),
        persons: Persons | None = None,
        most_cells: int,
        progress: Progress | None = None,
    ) -> CountedTable:
        """Have the cluster count the distinct rows; these come to the driver."""
        if progress is not None:
            progress(0, self.n_rows, "0 rows read")
        return _count(self, names, beside, persons, most_cells)

    def fewest_persons(
        self, person: str, cells: CountedTable, classes: Counts, memory: int, progress: Progress | None = None
    ) -> int:
        """Have the cluster count them."""
        return _fewest_persons(self, person, cells, classes)

    def taken(
        self, names: Sequence[str], places: Places, *, pairs: Pairs | None = None, progress: Progress | None = None
    ) -> dict[str, CodedColumn]:
        """Take some rows, given by their places in the files, ascending; only these come to the driver.

        Raises
        ------
        InputError
            If the rows have no places: those of a DataFrame of the user's may come in another order the next time.
        """
        from pyspark.sql import functions as sf

        if progress is not None:
            progress(0, self.n_rows, "0 rows read")
        _add_pairs(self, pairs or {})
        with watching(self.session), exact_settings(self.session):
            listed = self.session.createDataFrame(
                pa.table({"place": pa.array(places, pa.int64())}), schema="place bigint"
            )
            drawn = self._with_places().join(sf.broadcast(listed), "place")
            codes = [pa.array(np.arange(self.outline[name].n_distinct, dtype=np.int32)) for name in names]
            found = self._understood(drawn, list(zip(names, codes, strict=True)), "place").toArrow()
        is_unknown = any(found.column(i).null_count for i, name in enumerate(names) if not self.is_open(name))
        if found.num_rows != len(places) or is_unknown:
            raise self._changed()
        ordered = found.take(pc.sort_indices(found, [("place", "ascending")]))
        return {name: self.coded(name, ordered.column(i).chunks) for i, name in enumerate(names)}

    def placed(self, wanted: Sequence[tuple[str, pa.Array | None]]) -> Frame:
        """Give the frame of :meth:`rows` with the places of the rows in the files."""
        return self._understood(self._with_places(), wanted, "place")

    def _with_places(self) -> Frame:
        """Give the stored cells of all rows with their places."""
        if self._hashed is None:
            problem = "has rows without a fixed order, so the same ones could not be drawn again"
            raise InputError(problem, path=self.place, hint="write the frame to Parquet files, and name these")
        if self._numbered is not None:
            return self._numbered
        return numbered_rows(numbered_columns(parquet_frame(self.session, self._hashed)), self._hashed, "place")

    def _values_of(self, name: str) -> list[tuple[str, pa.Array | None]]:
        codes = pa.array(np.arange(self.outline[name].n_distinct, dtype=np.int32))
        return [(name, None if self.is_open(name) else codes)]

    def n_open_values(self, name: str, memory: int) -> int:
        """Have the cluster count."""
        with watching(self.session), exact_settings(self.session):
            return int(self.rows([(name, None)]).distinct().count())

    def place_of_each(self, name: str, memory: int, *, ranks: Places | None = None, is_last: bool = False) -> Places:
        """Have the cluster find them; the places come to the driver."""
        from pyspark.sql import functions as sf

        most = memory // _BYTES_A_PLACE
        with watching(self.session), exact_settings(self.session):
            rows = self.placed(self._values_of(name))
            if ranks is not None:
                listed = {"place": pa.array(np.arange(len(ranks))), "rank": pa.array(ranks, pa.int64())}
                known = self.session.createDataFrame(pa.table(listed), schema="place bigint, rank bigint")
                rows = rows.join(known, "place").withColumn("place", sf.col("rank"))
            which = sf.max("place") if is_last else sf.min("place")
            found = rows.groupBy("c0").agg(which.alias("place")).select("place").limit(most + 1).toArrow()
        if found.num_rows > most:
            problem = f"has more than {most:,} persons, of whose rows the places do not fit in the memory given"
            raise InputError(problem, path=self.place, hint="give more memory", remedy=("memory",))
        return np.asarray(found.column("place").to_numpy(), dtype=np.int64)

    def only(self, places: Places, stated: PersonRows) -> ClusterTable:
        """Give the table of some rows alone; their values are counted by the cluster."""
        from pyspark.sql import functions as sf

        with watching(self.session), exact_settings(self.session):
            listed = {"place": pa.array(places, pa.int64()), "number": pa.array(np.arange(len(places)))}
            known = self.session.createDataFrame(pa.table(listed), schema="place bigint, number bigint")
            numbered = self._with_places().join(sf.broadcast(known), "place").drop("place")
            kept = replace(
                self, _frame=numbered.drop("number"), _numbered=numbered.withColumnRenamed("number", "place")
            )
            described, stored = dict(self.outline.columns), dict(self._stored)
            for column in self.schema:
                own = self.outline[column.name]
                counts, n_missing = kept.counts_of(column.name)
                described[column.name] = kept_column(own, counts, len(places), n_missing, column.kind)
                if not self.is_open(column.name):
                    stored[column.name] = stored[column.name].filter(pa.array(counts[own.codes] > 0))
        outline = replace(self.outline, columns=described, n_rows=len(places), person_rows=stated)
        return replace(kept, outline=outline, _stored=stored)

    def counts_of(self, name: str) -> tuple[Counts, int]:
        """Rows of each code of a column, or none where values are not listed; and rows that are missing."""
        from pyspark.sql import functions as sf

        counts = np.zeros(self.outline[name].n_distinct, dtype=np.int64)
        rows = self.rows(self._values_of(name))
        if self.is_open(name):
            return counts, int(rows.agg(sf.count_if(sf.col("c0").isNull()).alias("n")).toArrow().column("n")[0].as_py())
        found = rows.groupBy("c0").agg(sf.count(sf.lit(1)).alias("n")).dropna().toArrow()
        counts[found.column("c0").to_numpy()] = found.column("n").to_numpy()
        return counts, 0

    def _open_cell(self, cell: Any, name: str, column: OpenColumn) -> Any:
        return clean_cell(cell, self._stored[name].type, column.values.type, self.schema.missing_tokens(name))

    def ensure_unchanged(self) -> None:
        """Refuse a file whose bytes are others than when it was opened; nothing is known of a DataFrame."""
        if self._hashed is not None:
            self._hashed.ensure_unchanged()


# Counts by the cluster; only these come to the driver.


def _count(
    table: ClusterTable, names: Sequence[str], beside: Sequence[str], persons: Persons | None, most_cells: int
) -> CountedTable:
    """Have the cluster count the distinct rows of some columns, see :meth:`ClusterTable.distinct`."""
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


def _fewest_persons(table: ClusterTable, person: str, cells: CountedTable, classes: NDArray[np.int64]) -> int:
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


def _add_pairs(table: ClusterTable, pairs: Pairs) -> None:
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
