"""Rows on a cluster as native frames of Spark: opened by path, and looked up in dictionaries that the driver made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

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


@contextmanager
def exact_settings(session: Session) -> Iterator[None]:
    """Have Spark tell names apart by case, read every file or fail, and keep types; the user's settings come back."""
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
    """Path as Spark takes it for a file that driver and workers share; what could be a pattern stands for itself."""
    text = path.absolute().as_posix()
    if is_pattern:
        text = "".join(f"\\{character}" if character in "{}[]*?\\" else character for character in text)
    return f"file://{text}"


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


def looked_up(session: Session, frame: Frame, name: str, keys: pa.Array, values: pa.Array, new: str) -> Frame:
    """Add a column: the value beside the key that a cell equals, a missing one too; null where there is no such key."""
    from pyspark.sql import functions as sf

    key = f"{new}_key"
    schema = f"{key} {type_name(keys.type)}, {new} {type_name(values.type)}"
    dictionary = session.createDataFrame(pa.table({key: keys, new: values}), schema=schema)
    return frame.join(sf.broadcast(dictionary), sf.col(name).eqNullSafe(sf.col(key)), "left")


def type_name(data_type: pa.DataType) -> str:
    """Spark's name of an Arrow type that came from Spark."""
    if pa.types.is_timestamp(data_type):
        return "timestamp_ntz" if data_type.tz is None else "timestamp"
    if pa.types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    return _TYPE_NAMES[data_type]
