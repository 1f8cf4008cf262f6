"""Rows on a cluster as native frames of Spark: opened by path, and looked up in dictionaries that the driver made."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import InputError
from sfumato.schema import Kind
from sfumato.table.cells import as_text, plain_array
from sfumato.table.coding import is_number_type, plain_type
from sfumato.table.io.parquet import StoredParquet

Frame: TypeAlias = Any
"""A Spark DataFrame."""
Session: TypeAlias = Any
"""A SparkSession."""

_SETTINGS = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
}
_TYPE_NAMES = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.string(): "string",
}
_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}

FEW = 8
"""Keys that are found one after the other as fast as by a join, which takes a job of its own."""


@contextmanager
def exact_settings(session: Session) -> Iterator[None]:
    """Have Spark distinguish names by case, read every file or fail, and keep types; the user's settings come back."""
    before = {name: session.conf.get(name, None) for name in _SETTINGS}
    try:
        for name, value in _SETTINGS.items():
            session.conf.set(name, value)
        yield
    finally:
        with suppress(Exception):  # a session whose Java process is gone has no settings
            for name, value in before.items():
                session.conf.unset(name) if value is None else session.conf.set(name, value)


def url_of(path: Path, *, is_pattern: bool = False) -> str:
    """Path as Spark takes it for a file that driver and workers share; what could be a pattern represents itself."""
    text = path.absolute().as_posix()
    if is_pattern:
        text = "".join(f"\\{character}" if character in "{}[]*?\\" else character for character in text)
    return f"file://{text}"


def parquet_frame(session: Session, stored: StoredParquet) -> Frame:
    """Open Parquet files by the columns that they really have, and no others than these files.

    Left to itself, Spark believes a note in the first file about its columns, takes names of folders for columns, and
    chooses files by rules of its own.

    Raises
    ------
    InputError
        If the files have different columns, a column is of a type that Spark does not know, or Spark reads other files.
    """
    from pyspark.sql import functions as sf
    from pyspark.sql.types import DataType, StructType

    stored.check_unpacking(in_blocks=True)
    files, columns = stored.files, stored.check_columns()
    wanted = StructType()
    for field in columns:
        wanted.add(field.name, DataType.fromDDL(type_name(_read_as(field, str(stored.path)))))
    reader = session.read.schema(wanted).option("recursiveFileLookup", "true")
    frame = reader.parquet(*(url_of(file, is_pattern=True) for file in files))
    if len(frame.inputFiles()) != len(files):
        problem = "the cluster reads other files than those of the table"
        raise InputError(problem, path=stored.path, hint="give its files plain names")
    numbered = frame.toDF(*(f"c{i}" for i in range(len(columns))))
    cells = [sf.lit(None) if pa.types.is_null(field.type) else sf.col(f"c{i}") for i, field in enumerate(columns)]
    return numbered.select(*(cell.alias(name) for cell, name in zip(cells, columns.names, strict=True)))


def numbered_rows(frame: Frame, stored: StoredParquet, number: str) -> Frame:
    """Add the place of each row among all rows of its files, one file after the other in the order of their names.

    Parameters
    ----------
    frame : DataFrame
        Of these files, see :func:`parquet_frame`; its columns may have been renamed, and nothing else.
    number : str
        Name of the new column.
    """
    from pyspark.sql import functions as sf

    starts, n_before = {}, 0
    for file, n_rows in stored.rows_of_files():
        starts[file.name] = n_before
        n_before += n_rows
    urls = [url.rsplit("/", 1)[-1] for url in frame.inputFiles()]
    table = pa.table({"file": urls, "start": pa.array([starts[unquote(name)] for name in urls], pa.int64())})
    known = frame.sparkSession.createDataFrame(table, schema="file string, start bigint")
    about = frame.metadataColumn("_metadata")
    columns = frame.columns
    placed = frame.select(
        "*", sf.substring_index(about["file_path"], "/", -1).alias("file"), about["row_index"].alias("row_in_file")
    )
    joined = placed.join(sf.broadcast(known), "file")
    return joined.select(*columns, (sf.col("start") + sf.col("row_in_file")).alias(number))


def check_types(columns: pa.Schema, place: str) -> None:
    """Refuse columns of a type that Spark does not know; no session is needed."""
    for field in columns:
        _read_as(field, place)


def _read_as(field: pa.Field, place: str) -> pa.DataType:
    """Type as which Spark gives back the very values of a column."""
    own = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_null(own):
        return pa.int32()
    plain = plain_type(own)
    if plain is None:
        return plain_array(pa.nulls(0, own), field.name, place).type  # which refuses it
    read_as: Any = _WIDER.get(plain, plain)
    is_moment = pa.types.is_timestamp(read_as) and read_as.unit != "ns" and read_as.tz in (None, "UTC")
    is_known = is_moment or pa.types.is_decimal128(read_as) or read_as in _TYPE_NAMES
    if is_known and not pa.types.is_float16(own):
        return read_as
    problem = f"is of a type that Spark does not know, or not in the same way ({own})"
    hint = "write moments in microseconds and in UTC; times of day, and what is longer or shorter than usual, as texts"
    raise InputError(problem, path=place, column=field.name, hint=hint)


def numbered_columns(frame: Frame) -> Frame:
    """Name the columns ``c0``, ``c1``, … by position; texts compare by their bytes."""
    from pyspark.sql import functions as sf
    from pyspark.sql.types import NullType, StringType

    renamed = frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))
    texts = [isinstance(field.dataType, StringType | NullType) for field in renamed.schema.fields]
    return renamed.select(
        *(
            sf.col(f"c{i}").cast("string").alias(f"c{i}") if is_text else sf.col(f"c{i}")
            for i, is_text in enumerate(texts)
        )
    )


@dataclass(frozen=True)
class Lookup:
    """A new column: the value of the key that a cell equals, a missing one too; null where there is no such key."""

    name: str
    keys: pa.Array
    values: pa.Array
    new: str


def looked_up(session: Session, frame: Frame, lookups: Sequence[Lookup]) -> Frame:
    """Add columns. Many keys are sent to the workers by a job for each column, few as one row for all columns."""
    from pyspark.sql import functions as sf

    for one in (one for one in lookups if len(one.keys) > FEW):
        key = f"{one.new}_key"
        schema = f"{key} {type_name(one.keys.type)}, {one.new} {type_name(one.values.type)}"
        dictionary = session.createDataFrame(pa.table({key: one.keys, one.new: one.values}), schema=schema)
        frame = frame.join(sf.broadcast(dictionary), sf.col(one.name).eqNullSafe(sf.col(key)), "left")
    few = [one for one in lookups if len(one.keys) <= FEW]
    return _looked_up_in_lists(session, frame, few) if few else frame


def _looked_up_in_lists(session: Session, frame: Frame, lookups: Sequence[Lookup]) -> Frame:
    from pyspark.sql import functions as sf

    lists = {f"keys{i}": one.keys for i, one in enumerate(lookups)}
    lists |= {f"values{i}": one.values for i, one in enumerate(lookups)}
    row = pa.table({n: pa.ListArray.from_arrays(pa.array([0, len(own)], pa.int32()), own) for n, own in lists.items()})
    schema = ", ".join(f"{name} array<{type_name(own.type)}>" for name, own in lists.items())
    known = session.createDataFrame(row, schema=schema).select(sf.struct("*").alias("known")).scalar()
    new = []
    for i, one in enumerate(lookups):
        missing = pc.index(one.keys.is_null(), True).as_py()  # -1 if it is no key
        place = sf.array_position(sf.col(f"known.keys{i}"), sf.col(one.name)) - 1
        new.append(sf.get(sf.col(f"known.values{i}"), sf.coalesce(place, sf.lit(missing))).alias(one.new))
    return frame.select("*", known.alias("known")).select(*(sf.col(name) for name in frame.columns), *new)


def type_name(data_type: pa.DataType) -> str:
    """Spark's name of an Arrow type that came from Spark."""
    if pa.types.is_timestamp(data_type):
        return "timestamp_ntz" if data_type.tz is None else "timestamp"
    if pa.types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    return _TYPE_NAMES[data_type]


# Columns on a cluster with too many distinct values to be listed: read, and described, by Spark's own expressions.


_NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"
_LEADING_ZERO = r"^[+-]?0\d"
_ISO_DATE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$"


def clean_cell(cell: Any, own: pa.DataType, read_as: pa.DataType, tokens: tuple[str, ...]) -> Any:
    """Cells as ``rows.out_of_core.open_cells`` reads them: trimmed, null where missing, dates where all are.

    Parameters
    ----------
    cell : Column
        A column of Spark.
    own, read_as : Arrow type
        As it is stored, and as it is read.
    """
    from pyspark.sql import functions as sf

    if pa.types.is_string(own):
        trimmed = sf.btrim(cell, sf.lit(_blanks()))
        return sf.when(trimmed.isin(list(tokens)), None).otherwise(trimmed) if tokens else trimmed
    if pa.types.is_floating(own):
        cell = sf.when(sf.isnan(cell), None).otherwise(cell + sf.lit(0.0).cast(type_name(own)))
    elif pa.types.is_date(read_as):
        cell = cell.cast("date")
    for token in tokens:
        meant = _meant(token, read_as)
        if meant is not None:
            cell = sf.when(cell == sf.lit(token).cast(type_name(read_as)), None).otherwise(cell)
    return cell


def says_of_cells(cell: Any, read: Any, own: pa.DataType) -> dict[str, Any]:
    """Aggregate a column that is too long to be listed: its rows, missing cells, midnights, numbers, dates."""
    from pyspark.sql import functions as sf

    said = {"rows": sf.count(sf.lit(1)), "missing": sf.count_if(read.isNull())}
    if pa.types.is_timestamp(own) and own.tz is None:
        said["midnights"] = sf.min(cell.cast("date").cast("timestamp_ntz") == cell)
    if pa.types.is_string(own):
        is_number = read.rlike(_NUMBER) & ~read.rlike(_LEADING_ZERO) & (sf.abs(read.try_cast("double")) < float("inf"))
        is_date = read.rlike(_ISO_DATE) & sf.substring(read, 1, 10).try_cast("date").isNotNull()
        said["numbers"] = sf.min(sf.when(read.isNull(), True).otherwise(is_number))
        said["broken"] = sf.count_if(~sf.is_valid_utf8(cell))
        said["dates"] = sf.min(sf.when(read.isNull(), True).otherwise(is_date))
    return said


def kind_of_open(nothing: pa.Array, found: Mapping[str, Any]) -> Kind:
    """Kind of a column whose values are not listed, by what was found out about them."""
    if found.get("numbers") or (is_number_type(nothing.type) and not pa.types.is_boolean(nothing.type)):
        return Kind.NUMERIC
    is_moment = pa.types.is_date(nothing.type) or pa.types.is_timestamp(nothing.type)
    return Kind.DATE if found.get("dates") or is_moment else Kind.CATEGORICAL


@cache
def _blanks() -> str:
    """Characters that are trimmed."""
    every = pa.array([chr(i) for i in range(sys.maxunicode) if not 0xD800 <= i < 0xE000])
    return "".join(every.filter(pc.equal(pc.utf8_trim_whitespace(every), "")).to_pylist())


def _meant(token: str, data_type: pa.DataType) -> pa.Scalar | None:
    """Value of a type that is written as a token."""
    try:
        value = pc.cast(pa.array([token]), data_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return value[0] if as_text(value)[0].as_py() == token else None
