"""Tables of other libraries, taken as they are: data frames, lazy queries, database tables, arrays and matrices."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import InputError, InvalidParameterError, SfumatoError
from sfumato.schema import Schema
from sfumato.table.binary import BinaryTable, Feature, as_binary_matrix
from sfumato.table.cells import CellRules, ColumnCoder, check_names
from sfumato.table.coding import Source, Table
from sfumato.table.objects import MixedColumnError, column_of_objects, refuse_mixed
from sfumato.table.parsed import Parsed
from sfumato.table.spark_logs import without_quoted_cells
from sfumato.table.write import write_table

ALLOWED = (
    "a path, a pandas, polars, PySpark or Narwhals frame, a DuckDB relation, an Ibis table, a pyarrow table or "
    "dataset, a 2-D numpy array, a scipy.sparse matrix, or an object with __arrow_c_stream__"
)

_PLAIN_ENOUGH = (pa.types.is_large_string, pa.types.is_string, pa.types.is_integer, pa.types.is_floating)


def source_name(frame: Any) -> str:
    """Name the library an object comes from, in angle brackets."""
    return f"<{library_of(frame)}>"


def library_of(frame: Any) -> str:
    """Name of the library whose object this is."""
    return type(frame).__module__.partition(".")[0].lstrip("_")


def native_frame(frame: Any) -> Any:
    """Return the frame inside a Narwhals frame, and any other object as it is."""
    return frame.to_native() if library_of(frame) == "narwhals" and hasattr(frame, "to_native") else frame


def is_lazy_polars(frame: Any) -> bool:
    """Whether an object is a query of polars that was not run yet."""
    return library_of(frame) == "polars" and type(frame).__name__ == "LazyFrame"


def is_relation(frame: Any) -> bool:
    """Whether an object is a query or a table of DuckDB."""
    return library_of(frame) == "duckdb" and hasattr(frame, "project")


def is_dataset(frame: Any) -> bool:
    """Whether an object is a pyarrow dataset: many files that are read as one table."""
    return library_of(frame) == "pyarrow" and hasattr(frame, "get_fragments")


@contextmanager
def explained(place: str, problem: str = "cannot be turned into an Arrow table", hint: str = "") -> Iterator[None]:
    """Say in one line, without a cell, that another library could not give its rows."""
    try:
        yield
    except (MemoryError, SfumatoError):
        raise
    except Exception:  # whatever the other library raises; its message may quote cells
        raise InputError(problem, path=place, hint=hint) from None


def parse_frame(frame: Any, coder: ColumnCoder) -> Parsed:
    """Code the columns of a frame; its index, if it has one, is not a column."""
    place = source_name(frame)
    names, arrays = frame_columns(frame, coder)
    columns, kinds = {}, {}
    n_rows = 0
    for name, array in zip(names, arrays, strict=True):
        n_rows = len(array)
        if n_rows:
            columns[name], kinds[name] = coder.code(name, array)
    if n_rows == 0:
        problem = "has no rows" if names else "has no columns"
        raise InputError(problem, path=place)
    return Parsed(columns, kinds, n_rows)


def binary_from_sparse(matrix: Any, rules: CellRules) -> BinaryTable:
    """Take a sparse 0/1 matrix as features ``x0``, ``x1``, … without any other column."""
    if matrix.ndim != 2 or 0 in matrix.shape:
        problem = "is not a matrix with rows and columns"
        raise InputError(problem, path=source_name(matrix))
    names = [f"x{i}" for i in range(matrix.shape[1])]
    companions = Table(Schema.of([], rules.missing), {}, matrix.shape[0])
    features = tuple(Feature(name, name) for name in names)
    return BinaryTable(as_binary_matrix(matrix, names), features, companions)


def with_content_hash(table: Table | BinaryTable, name: str) -> Table | BinaryTable:
    """Give a table from memory a source whose SHA-256 is that of the table written as CSV."""
    digest = ContentDigest()
    write_table(table, digest, "csv")  # type: ignore[arg-type]
    source = Source(name, digest.hexdigest())
    if isinstance(table, BinaryTable):
        return replace(table, companions=replace(table.companions, source=source))
    return replace(table, source=source)


class ContentDigest:
    """A file that only hashes what is written to it."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        """Hash some more."""
        self._digest.update(data)
        return len(data)

    def hexdigest(self) -> str:
        """SHA-256 of everything written."""
        return self._digest.hexdigest()


def frame_columns(frame: Any, coder: ColumnCoder) -> tuple[list[str], Iterator[pa.Array | pa.ChunkedArray]]:
    """Names and cells of the columns of a frame, all rows at once."""
    place = source_name(frame)
    if is_pandas(frame):
        if getattr(frame.columns, "nlevels", 1) > 1:
            problem = "has column names on several levels"
            raise InputError(problem, path=place, hint="join them into one")
        names = check_names(frame.columns, place=place)
        return names, (_array(frame.iloc[:, i], name, coder, place) for i, name in enumerate(names))
    if isinstance(frame, np.ndarray):
        if frame.ndim != 2 or frame.dtype.names is not None:
            problem = f"has {frame.ndim} dimensions"
            raise InputError(problem, path=place, hint="a table is a 2-D array of plain values")
        names = [f"x{i}" for i in range(frame.shape[1])]
        return names, (_array(frame[:, i], name, coder, place) for i, name in enumerate(names))
    cells = _arrow(frame, place)
    return check_names(cells.column_names, place=place), iter(cells.columns)


def is_pandas(frame: Any) -> bool:
    """Whether an object is a data frame of pandas."""
    return library_of(frame) == "pandas" and type(frame).__name__ == "DataFrame"


def _array(cells: Any, name: str, coder: ColumnCoder, place: str) -> pa.Array | pa.ChunkedArray:
    """Arrow array of a pandas or numpy column; objects are looked at one by one unless Arrow finds them plain."""
    try:
        array = pa.array(cells, from_pandas=True)
        if cells.dtype != object or any(is_type(array.type) for is_type in _PLAIN_ENOUGH):
            return array
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError):
        pass  # its message quotes the cell
    try:
        return column_of_objects(list(cells), coder.rules.tokens(name), is_text=coder.rules.is_text(name))
    except MixedColumnError as error:
        raise refuse_mixed(error, place=place, column=name) from None


def _arrow(frame: Any, place: str) -> pa.Table:
    if isinstance(frame, pa.Table):
        return frame
    with explained(place):
        if is_lazy_polars(frame):
            return pa.table(frame.collect())
        if library_of(frame) == "pyspark" and hasattr(frame, "toArrow"):
            with without_quoted_cells():
                return frame.toArrow()
        if is_dataset(frame):
            return frame.to_table()
        if hasattr(frame, "__arrow_c_stream__"):
            return pa.table(frame)
    raise not_a_table(frame)


def not_a_table(frame: Any) -> InvalidParameterError:
    """Refuse an object by its type."""
    return InvalidParameterError(
        name="source", problem=f"got an object of type {type(frame).__name__}", allowed=ALLOWED
    )
