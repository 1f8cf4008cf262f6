"""Columns on a cluster with too many distinct values to be listed: read, and described, by Spark's own expressions."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.cluster.frames import type_name
from sfumato.schema import Kind
from sfumato.table.cells import as_text
from sfumato.table.coding import is_number_type

_NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"
_LEADING_ZERO = r"^[+-]?0\d"
_ISO_DATE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$"


def clean_cell(cell: Any, own: pa.DataType, read_as: pa.DataType, tokens: tuple[str, ...]) -> Any:
    """Cells as :func:`sfumato.table.distinct.open_cells` reads them: trimmed, null where missing, dates where all are.

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
