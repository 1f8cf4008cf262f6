"""How a table on a Spark cluster is opened: its columns are counted there and understood here.

Cells are understood exactly as :func:`sfumato.table.io.read.read_table` does.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.engines.limits import FORMATS_ON_A_CLUSTER, INCOMPLETE_ROWS
from sfumato.engines.persons import one_row_each
from sfumato.engines.spark.errors import watching
from sfumato.engines.spark.frames import (
    Frame,
    Session,
    check_types,
    clean_cell,
    exact_settings,
    kind_of_open,
    numbered_columns,
    parquet_frame,
    says_of_cells,
)
from sfumato.engines.spark.rows import FRAME, ClusterTable
from sfumato.errors import ColumnNotFoundError, InputError
from sfumato.schema import AS_TEXT, Column, Kind, Reading, Schema
from sfumato.table.cells import CellRules, ColumnCoder, check_names, plain_array
from sfumato.table.coding import Source, Table, plain_type
from sfumato.table.io.bytes import open_stored
from sfumato.table.io.parquet import StoredParquet, is_folder
from sfumato.table.io.read import DEFAULT_OPTIONS, ReadOptions, as_read, check_covers
from sfumato.table.orders.recognise import with_recognised_order
from sfumato.table.reading.columns import format_named, guessed_format
from sfumato.table.weighted import OpenColumn, WeightedColumn

_BYTES_A_VALUE = 4000
_SHARE_OF_VALUES = 16
_COLUMNS_A_JOB = 16
_FAR = 2
_SAMPLED_TEXTS = 1_000


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
    place = str(source) if hashed is not None else FRAME
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
        raise FORMATS_ON_A_CLUSTER.refusal("DATA read by a cluster", f"got {options.format}")
    if options.complete_rows_only:
        raise INCOMPLETE_ROWS.refusal("complete_rows_only", "got it")
