"""Tables of other libraries, taken as they are: data frames, lazy queries, database tables, arrays and matrices."""

from __future__ import annotations

import hashlib
import logging
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from sfumato.errors import InputError, InvalidParameterError, SfumatoError
from sfumato.schema import Kind, Schema
from sfumato.table.binary import BinaryTable, Feature, as_binary_matrix
from sfumato.table.cells import CellRules, ColumnCoder, MixedColumnError, check_names, column_of_objects, refuse_mixed
from sfumato.table.coding import Source, Table
from sfumato.table.io import parquet
from sfumato.table.io.formats import Parsed
from sfumato.table.io.write import write_table
from sfumato.table.orders.recognise import FEWEST

# Spark's own log of failed queries, kept silent where its errors are told in words of ours.


_QUOTING = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


@contextmanager
def without_quoted_cells() -> Iterator[None]:
    """Keep PySpark from writing errors of queries to the terminal in the block: they quote cells.

    They are raised as well. Each block has a filter of its own, so that several threads may be in one.
    """

    def is_told(record: logging.LogRecord) -> bool:
        return False

    with ExitStack() as at_the_end:
        for logger in _quoting_loggers():
            logger.addFilter(is_told)
            at_the_end.callback(logger.removeFilter, is_told)
        yield


def _quoting_loggers() -> list[logging.Logger]:
    loaded = sys.modules.get("pyspark.logger")  # before any error of PySpark is raised
    return [] if loaded is None else [loaded.PySparkLogger.getLogger(name) for name in _QUOTING]


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


def like_frame(table: Table, frame: Any, library: Literal["pandas", "polars"] | None = None) -> Any:
    """Give a table as a frame of the library that another one is from; a table of Arrow where that is not possible.

    A pandas frame keeps the other's index; an array becomes an array of objects, in which missing is ``None``.
    ``library`` names another one, ``"pandas"`` or ``"polars"``.
    """
    import narwhals.stable.v2 as nw

    native = native_frame(frame)
    if library is None and isinstance(frame, np.ndarray):
        cells = [column.cells().to_pylist() for column in table.columns.values()]
        found = np.empty((table.n_rows, len(cells)), dtype=object)
        for place, column in enumerate(cells):
            found[:, place] = column
        return found
    arrow = table.to_arrow()
    own = nw.from_native(native, eager_only=True, pass_through=True)
    if library is None and not isinstance(own, nw.DataFrame):
        return arrow
    made = nw.from_arrow(arrow, backend=library or own.implementation).to_native()
    if is_pandas(made) and is_pandas(frame):
        made.index = frame.index
    return _with_categories(made, table, native) if library in (None, library_of(native)) else made


def _with_categories(made: Any, table: Table, frame: Any) -> Any:
    """Give columns back as categories that were such, where every cell still is one of them.

    Only categories that occur are listed: the others may be values of rows that are not there.
    """
    library = library_of(frame)
    if library not in ("pandas", "polars"):
        return made
    for name in table.columns:
        if name not in frame.columns:
            continue
        own = frame[name].dtype
        categories = _text_categories(own)
        cells = set(table[name].values.take(pa.array(np.unique(table[name].codes))).drop_null().to_pylist())
        if categories is None or not cells.issubset(categories):
            continue
        kept = [text for text in categories if text in cells]
        if library == "pandas":
            import pandas as pd

            made[name] = made[name].astype(pd.CategoricalDtype(kept, ordered=own.ordered))
        elif _is_enum(own):
            import polars as pl

            made = made.with_columns(pl.col(name).cast(pl.Enum(kept)))
    return made


def _text_categories(data_type: Any) -> list[str] | None:
    """Categories of a column of pandas or an Enum of polars, if they are texts as they are read."""
    categories = getattr(data_type, "categories", None)
    if categories is None or not hasattr(categories, "to_list"):
        return None
    listed = categories.to_list()
    return listed if all(isinstance(text, str) and text == text.strip() for text in listed) else None


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
    columns, kinds, domains = {}, {}, {}
    n_rows = 0
    for name, array in zip(names, arrays, strict=True):
        n_rows = len(array)
        if n_rows:
            if domain := ordered_categories(array, name, coder.rules):
                domains[name] = domain
            columns[name], kinds[name] = coder.code(name, array, Kind.ORDERED if domain else None)
    if n_rows == 0:
        problem = "has no rows" if names else "has no columns"
        raise InputError(problem, path=place)
    return Parsed(columns, kinds, n_rows, domains=domains)


def ordered_categories(array: pa.Array | pa.ChunkedArray, name: str, rules: CellRules) -> tuple[str, ...]:
    """Texts of an ordered categorical column (of pandas, an Enum of polars) from lowest to highest.

    None of other columns, of categories that are no texts or fewer than three, of one that the schema describes as
    something else, and where two categories are the same text without blanks around them.
    """
    if not pa.types.is_dictionary(array.type) or not array.type.ordered or not len(array):
        return ()
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    categories = [chunk.dictionary for chunk in chunks]
    if any(not own.equals(categories[0]) for own in categories[1:]):
        return ()
    return _as_domain(categories[0].to_pylist(), name, rules)


def _as_domain(categories: Sequence[object], name: str, rules: CellRules) -> tuple[str, ...]:
    described = rules.schema[name] if rules.schema is not None and name in rules.schema else None
    if described is not None and described.kind not in (Kind.ORDERED, Kind.CATEGORICAL):
        return ()
    texts = [text.strip() for text in categories if isinstance(text, str)]
    known = [text for text in texts if text and text not in rules.tokens(name)]
    if len(texts) < len(categories) or len(set(known)) < len(known) or len(known) < FEWEST:
        return ()
    return tuple(known)


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
    return table.with_coded_part(replace(table.coded_part, source=source))


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
        if cells.dtype != object or (
            any(is_type(array.type) for is_type in _PLAIN_ENOUGH) and not _hides_truth(array, cells)
        ):
            return array
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError):
        pass  # its message quotes the cell
    try:
        return column_of_objects(list(cells), coder.rules.tokens(name), is_text=coder.rules.is_text(name))
    except MixedColumnError as error:
        raise refuse_mixed(error, place=place, column=name) from None


def _hides_truth(array: pa.Array | pa.ChunkedArray, cells: Any) -> bool:
    """Whether Arrow took truth values for numbers, as it does after a number with decimals."""
    return pa.types.is_floating(array.type) and any(isinstance(cell, bool | np.bool_) for cell in cells)


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


# Tables of other libraries, read block by block and as often as asked.
#
# DuckDB relations, lazy polars frames, Ibis tables and pyarrow datasets are run anew for every pass, each time only
# for the columns that are needed, and never held. What is in memory already is cut into blocks where it stands.


Batches: TypeAlias = Generator[pa.RecordBatch]
Reading: TypeAlias = Callable[[Sequence[int]], Batches]
"""Gives the columns at these positions, all rows of them, in batches of any size."""

_PROBLEM = "its rows cannot be read in blocks"
_HINT = "run the query by itself to see why, and leave no other result of its connection open"


@dataclass(frozen=True, repr=False)
class FrameBlocks:
    """Rows of a frame, block by block, as often as asked.

    Examples
    --------
    >>> from sfumato.table.cells import CellRules
    >>> blocks = FrameBlocks.of(pa.table({"age": [31, 40], "sex": ["f", "m"]}), ColumnCoder(CellRules()))
    >>> blocks.names, [[cells.to_pylist() for cells in block] for block in blocks([1])]
    (['age', 'sex'], [[['f', 'm']]])
    """

    names: list[str]
    place: str
    _read: Reading
    domains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, frame: Any, coder: ColumnCoder) -> FrameBlocks:
        """Look at the columns of a frame.

        Raises
        ------
        InputError
            If the library cannot run it; never shows a value.
        InvalidParameterError
            If the object is no frame, or one that gives its rows only once.
        """
        place = source_name(frame)
        if isinstance(frame, np.ndarray) or is_pandas(frame):
            names, arrays = frame_columns(frame, coder)
            frame = pa.table(list(arrays), names=names)
        with explained(place, _PROBLEM, _HINT):
            names, read = _opened(frame)
        if not names:
            problem = "has no columns"
            raise InputError(problem, path=place)
        return cls(names, place, read, _domains_of(frame, names, coder.rules))

    def __call__(self, positions: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Cells of some columns, block by block."""
        n_rows = 0
        with closing(self._read(positions or [0])) as batches:
            while True:
                with explained(self.place, _PROBLEM, _HINT):
                    batch = next(batches, None)
                if batch is None:
                    break
                n_rows += batch.num_rows
                for start in range(0, batch.num_rows, parquet.BLOCK_ROWS):
                    block = batch.slice(start, parquet.BLOCK_ROWS)
                    yield block.columns[: len(positions)]
        if not n_rows:
            problem = "has no rows"
            raise InputError(problem, path=self.place)


def _domains_of(frame: Any, names: Sequence[str], rules: CellRules) -> dict[str, tuple[str, ...]]:
    """Categories of ordered columns, of frames that say them without being run."""
    found: dict[str, tuple[str, ...]] = {}
    if library_of(frame) == "polars":
        types = frame.collect_schema().dtypes()
        told = {name: own.categories.to_list() for name, own in zip(names, types, strict=True) if _is_enum(own)}
        found = {name.strip(): _as_domain(own, name.strip(), rules) for name, own in told.items()}
    elif isinstance(frame, pa.Table):
        columns = zip(names, frame.columns, strict=True)
        found = {name.strip(): ordered_categories(own, name.strip(), rules) for name, own in columns}
    return {name: own for name, own in found.items() if own}


def _is_enum(data_type: Any) -> bool:
    return type(data_type).__name__ == "Enum" and hasattr(data_type, "categories")


def _opened(frame: Any) -> tuple[list[str], Reading]:
    """Names of a frame's columns, and how its rows are read."""
    _refuse_unsteady(frame)
    if is_relation(frame):
        return list(frame.columns), _rows_of_relation(frame)
    if is_lazy_polars(frame):
        return frame.collect_schema().names(), _rows_of_polars(frame)
    if hasattr(frame, "to_pyarrow_batches"):
        return list(frame.columns), _rows_of_ibis(frame)
    if is_dataset(frame):
        return list(frame.schema.names), _rows_of_dataset(frame)
    if not hasattr(frame, "__arrow_c_stream__"):
        raise not_a_table(frame)
    with pa.RecordBatchReader.from_stream(frame) as reader:
        return list(reader.schema.names), _rows_of_stream(frame)


def _refuse_unsteady(frame: Any) -> None:
    problem = hint = ""
    if isinstance(frame, pa.RecordBatchReader):
        problem, hint = "got a reader", "write its rows to a Parquet file first"
    elif library_of(frame) == "pyspark":
        problem, hint = (
            "got a frame of Spark",
            "release it on its cluster (sfumato.release_large), or write it to Parquet",
        )
    if problem:
        allowed = "something that gives its rows several times in one order"
        raise InvalidParameterError("source read in blocks", problem, allowed=allowed, hint=hint)


def _rows_of_relation(relation: Any) -> Reading:
    def rows(positions: Sequence[int]) -> Batches:
        chosen = relation.project(", ".join(f"#{i + 1}" for i in positions))
        read = getattr(chosen, "to_arrow_reader", None) or chosen.fetch_record_batch  # the second: DuckDB 1
        with read(parquet.BLOCK_ROWS) as reader:
            yield from reader

    return rows


def _rows_of_polars(frame: Any) -> Reading:
    nth = sys.modules["polars"].nth

    def rows(positions: Sequence[int]) -> Batches:
        chosen = frame.select([nth(i) for i in positions])
        for batch in chosen.collect_batches(chunk_size=parquet.BLOCK_ROWS, maintain_order=True):
            yield from pa.table(batch).to_batches()

    return rows


def _rows_of_ibis(table: Any) -> Reading:
    def rows(positions: Sequence[int]) -> Batches:
        chosen = table.select(*(table.columns[i] for i in positions))
        with chosen.to_pyarrow_batches(chunk_size=parquet.BLOCK_ROWS) as reader:
            yield from reader

    return rows


def _rows_of_dataset(dataset: Any) -> Reading:
    from pyarrow import dataset as datasets

    of_parquet = getattr(getattr(dataset, "format", None), "default_extname", "") == "parquet"
    options = datasets.ParquetFragmentScanOptions(pre_buffer=False)  # else all that was read of a file stays in memory

    def rows(positions: Sequence[int]) -> Batches:
        wanted = {f"c{j}": datasets.field(dataset.schema.names[i]) for j, i in enumerate(positions)}
        yield from dataset.to_batches(
            columns=wanted,
            batch_size=parquet.BLOCK_ROWS,
            batch_readahead=1,
            fragment_readahead=1,
            fragment_scan_options=options if of_parquet else None,
        )

    return rows


def _rows_of_stream(frame: Any) -> Reading:
    def rows(positions: Sequence[int]) -> Batches:
        with pa.RecordBatchReader.from_stream(frame) as reader:
            for batch in reader:
                yield batch.select(list(positions))

    return rows
