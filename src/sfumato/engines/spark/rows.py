"""Tables on a Spark cluster: what their columns hold, counted there and understood here, and their rows as codes.

Cells are understood exactly as :func:`sfumato.table.io.read.read_table` does. The driver sees distinct values and
counts, and whole rows only in parts that fit its memory.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.engines.persons import one_row_each
from sfumato.engines.protocol import Pairs, Persons, Rows
from sfumato.engines.spark.counting import add_pairs_on_cluster, count_on_cluster, fewest_persons_on_cluster
from sfumato.engines.spark.errors import watching
from sfumato.engines.spark.frames import (
    Frame,
    Lookup,
    Session,
    check_types,
    clean_cell,
    exact_settings,
    kind_of_open,
    looked_up,
    numbered_columns,
    numbered_rows,
    parquet_frame,
    says_of_cells,
)
from sfumato.errors import ColumnNotFoundError, InputError, InvalidParameterError
from sfumato.progress import Progress
from sfumato.schema import AS_TEXT, Column, Kind, Reading, Schema
from sfumato.table.cells import CellRules, ColumnCoder, check_names, plain_array
from sfumato.table.coding import CodedColumn, PersonRows, Source, Table, plain_type
from sfumato.table.io.bytes import open_stored
from sfumato.table.io.parquet import StoredParquet, is_folder
from sfumato.table.io.read import DEFAULT_OPTIONS, ReadOptions, as_read, check_covers
from sfumato.table.orders.recognise import with_recognised_order
from sfumato.table.reading.columns import format_named, guessed_format
from sfumato.table.weighted import Block, CountedTable, Counts, OpenColumn, Places, WeightedColumn, kept_column

_BYTES_A_PLACE = 64
_CELLS_AT_ONCE = 1 << 23
_ROWS_AT_ONCE = 1 << 16
_BYTES_A_VALUE = 4000
_SHARE_OF_VALUES = 16
_COLUMNS_A_JOB = 16
_FAR = 2
_SAMPLED_TEXTS = 1_000
_FRAME = "<pyspark>"


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

    keeps_order = False
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
        return self.source.name if self.source is not None else _FRAME

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
        return count_on_cluster(self, names, beside=beside, persons=persons, most_cells=most_cells)

    def fewest_persons(
        self, person: str, cells: CountedTable, classes: Counts, memory: int, progress: Progress | None = None
    ) -> int:
        """Have the cluster count them."""
        return fewest_persons_on_cluster(self, person, cells, classes)

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
        add_pairs_on_cluster(self, pairs or {})
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


def check_cluster_file(
    path: str | os.PathLike[str], options: ReadOptions = DEFAULT_OPTIONS, *, named: Collection[str] = ()
) -> tuple[int, tuple[str, ...]]:
    """Refuse what the ends of the files alone say that a cluster will refuse, before Java is started.

    Parameters
    ----------
    named : collection of str
        Columns that somebody gives a role.

    Returns
    -------
    n_rows : int
    names : tuple of str
        Names of the columns.

    Raises
    ------
    InputError, ColumnNotFoundError, InvalidParameterError
        As :func:`open_cluster` does.
    """
    _check_options(options)
    if not is_folder(path):
        with open_stored(path, in_blocks=True):
            pass
    stored = StoredParquet(Path(path), sha256="")
    columns = stored.check_columns()
    check_types(columns, str(path))
    stored.check_unpacking(in_blocks=True)
    names = tuple(check_names(columns.names, place=str(path)))
    for name in named:
        if name not in names:
            raise ColumnNotFoundError(name, names, where=str(path))
    n_rows = stored.n_rows()
    if not n_rows:
        problem = "holds no data rows"
        raise InputError(problem, path=str(path))
    return n_rows, names


def open_cluster(
    session: Session,
    source: Any,
    *,
    memory: int,
    schema: Schema | None = None,
    options: ReadOptions = DEFAULT_OPTIONS,
) -> ClusterTable:
    """Let a cluster count the distinct values of every column, and find out what they mean.

    Parameters
    ----------
    session : SparkSession
    source : path or Spark DataFrame
        A Parquet file or a folder of such that driver and workers see under the same path; or a frame of the session.
    memory : int
        Bytes that the driver may use; a column whose distinct values take more than a share of it is not listed.
    schema, options
        See :func:`sfumato.table.io.read.read_table`.

    Raises
    ------
    InputError, SchemaError
        As reading the whole table does.
    InvalidParameterError
        If the file is not to be read as Parquet, or incomplete rows are to be left out.
    ClusterError
        If the cluster cannot do it.
    """
    _check_options(options)
    hashed = StoredParquet.of(source) if isinstance(source, str | os.PathLike) else None
    place = str(source) if hashed is not None else _FRAME
    with watching(session), exact_settings(session):
        frame = source if hashed is None else parquet_frame(session, hashed)
        names = check_names(frame.columns, place=place)
        n_stored = None if hashed is None else hashed.n_rows()
        reader = _ColumnReader(numbered_columns(frame), options.rules(schema), place, memory, n_stored)
        found = reader.read(names)
    own = None if hashed is None else Source(place, hashed.sha256, "parquet")
    n_rows = _n_rows([column for _, column, _ in found.values()], place)
    if n_stored is not None and n_stored != n_rows:
        problem = "the cluster has read another number of rows than its files hold"
        raise InputError(problem, path=place, hint="read it again when no program is writing to it")
    outline = Table(
        Schema.of(
            (
                with_recognised_order(Column(n, kind=kind, reading=reader.readings.get(n)), column.values)
                for n, (_, column, kind) in found.items()
            ),
            options.missing if schema is None else schema.missing,
        ),
        {n: column for n, (_, column, _) in found.items()},
        n_rows,
        own,
    )
    table = ClusterTable(
        outline, own, session, reader.frame, {n: stored for n, (stored, _, _) in found.items()}, hashed
    )
    if schema is None:
        return table
    check_covers(schema, tuple(names), tuple(names), where=place)
    described = table.with_schema(as_read(schema.keep(names), reader.readings))
    if options.one_row_per_person is None:
        return described
    return one_row_each(described, options.one_row_per_person, memory)


class _ColumnReader:
    """Reads the columns of a frame, some at a time."""

    def __init__(self, frame: Frame, rules: CellRules, place: str, memory: int, n_rows: int | None) -> None:
        self.frame, self._rules, self._place, self._n_rows = frame, rules, place, n_rows
        self._coder = ColumnCoder(rules, place, codes_are_rows=False)
        self.readings = self._coder.readings
        self._most, self._most_bytes = memory // _BYTES_A_VALUE, memory // _SHARE_OF_VALUES

    def read(self, names: Sequence[str]) -> dict[str, tuple[pa.Array, WeightedColumn | OpenColumn, Kind]]:
        """Values as they are stored, the column that they make, and its kind."""
        types = self.frame.limit(0).toArrow().schema.types
        for name, data_type in zip(names, types, strict=True):
            if plain_type(data_type) is None:
                plain_array(pa.nulls(0, data_type), name, self._place)
        found: dict[int, tuple[pa.Array, WeightedColumn | OpenColumn, Kind]] = {}
        for first in range(0, len(names), _COLUMNS_A_JOB):
            positions = range(first, min(first + _COLUMNS_A_JOB, len(names)))
            long = self._far_too_long(positions)
            for position in long:
                nothing = plain_array(pa.nulls(0, types[position]), names[position], self._place)
                found[position] = self._open(position, names[position], nothing)
            listed = [position for position in positions if position not in long]
            for position, (values, counts) in zip(listed, self._distinct(listed), strict=True):
                found[position] = self._column(position, names[position], values, counts)
        return {name: found[position] for position, name in enumerate(names)}

    def _far_too_long(self, positions: Sequence[int]) -> set[int]:
        """Columns that have far more distinct values than are listed: grouping them would move all rows.

        The estimate errs by some percent, so that a column of half as many values is never among them. It is left out
        where there are no more rows than that.
        """
        from pyspark.sql import functions as sf

        most = _FAR * self._most
        if self._n_rows is not None and self._n_rows <= most:
            return set()
        estimates = self.frame.agg(*(sf.approx_count_distinct(f"c{i}") for i in positions)).toArrow()
        return {i for i, estimate in zip(positions, estimates.columns, strict=True) if estimate[0].as_py() > most}

    def _distinct(self, positions: Sequence[int]) -> Iterator[tuple[pa.ChunkedArray, pa.ChunkedArray]]:
        """Distinct values of columns that are not far too long, with their counts, in one pass over the rows."""
        from pyspark.sql import functions as sf

        if not positions:
            return
        keys = [f"c{i}" for i in positions]
        numbered = [sf.grouping_id().alias("set"), sf.count(sf.lit(1)).alias("n")]
        found = self.frame.groupingSets([[key] for key in keys], *keys).agg(*numbered).toArrow()
        for i, key in enumerate(keys):
            all_but_it = (1 << len(keys)) - 1 - (1 << (len(keys) - 1 - i))
            own_rows = found.filter(pc.equal(found.column("set"), all_but_it))
            yield own_rows.column(key), own_rows.column("n")

    def _column(
        self, position: int, name: str, values: pa.ChunkedArray, counts: pa.ChunkedArray
    ) -> tuple[pa.Array, WeightedColumn | OpenColumn, Kind]:
        stored = plain_array(values, name, self._place)
        self._refuse_broken(name, are_broken=not _is_valid(stored))
        if len(stored) > self._most or stored.nbytes > self._most_bytes:
            return self._open(position, name, stored.slice(0, 0))
        coded, kind = self._coder.code_distinct(name, np.arange(len(stored), dtype=np.int32), stored)
        return stored, WeightedColumn(coded.codes, coded.values, counts.to_numpy().astype(np.int64)), kind

    def _refuse_broken(self, name: str, *, are_broken: bool) -> None:
        if are_broken:
            problem = "holds texts that are not UTF-8"
            raise InputError(problem, path=self._place, column=name, hint="write the table again in UTF-8")

    def _open(self, position: int, name: str, nothing: pa.Array) -> tuple[pa.Array, OpenColumn, Kind]:
        from pyspark.sql import functions as sf

        cell, tokens = sf.col(f"c{position}"), self._rules.tokens(name)
        read = clean_cell(cell, nothing.type, nothing.type, tokens)
        said = says_of_cells(cell, read, nothing.type)
        found = self.frame.agg(*(what.alias(key) for key, what in said.items())).toArrow().to_pylist()[0]
        self._refuse_broken(name, are_broken=bool(found.get("broken")))
        read_as = pc.cast(nothing, pa.date32()) if found.get("midnights") else nothing
        kind = kind_of_open(read_as, found)
        self._refuse_format(name, read, kind)
        return nothing, OpenColumn(np.zeros(0, dtype=np.int32), read_as, found["rows"], found["missing"], kind), kind

    def _refuse_format(self, name: str, read: Any, kind: Kind) -> None:
        """Refuse texts that are to be read in a format, declared or found in some: that takes their distinct values."""
        wanted = self._rules.wanted(name)
        if wanted.format == AS_TEXT:
            self.readings[name] = Reading(AS_TEXT, is_own=True)
            return
        used = None if wanted.format is None else format_named(wanted.format)
        if used is None and wanted.guess and kind is Kind.CATEGORICAL:
            some = self.frame.select(read.alias("read")).limit(_SAMPLED_TEXTS).toArrow().column("read").unique()
            used, _ = wanted.taken(*guessed_format(some, kind))
        if used is not None:
            problem = f"has too many distinct values to be read as {used.name} on a cluster"
            hint = f"convert it first, or declare the format {AS_TEXT} for it, which leaves it as it is"
            raise InputError(problem, path=self._place, column=name, hint=hint)


def _is_valid(values: pa.Array) -> bool:
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _n_rows(columns: Sequence[WeightedColumn | OpenColumn], place: str) -> int:
    """Return the number of rows, the same for every column."""
    found = {column.n_rows for column in columns}
    if not found or found == {0}:
        problem = "holds no data rows"
        raise InputError(problem, path=place)
    if len(found) > 1:
        problem = "changed while it was being read"
        raise InputError(problem, path=place, hint="take a frame that gives the same rows each time, or cache it")
    return found.pop()


def _check_options(options: ReadOptions) -> None:
    if options.format not in (None, "parquet"):
        hint = "convert the file to Parquet"
        raise InvalidParameterError("DATA read by a cluster", f"got {options.format}", allowed="Parquet", hint=hint)
    if options.complete_rows_only:
        hint = "remove incomplete rows from the file first"
        allowed = "off for a table on a cluster"
        raise InvalidParameterError("complete_rows_only", "got it", allowed=allowed, hint=hint)
