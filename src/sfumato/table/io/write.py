"""Write tables, into files that are open already; the same table gives the same bytes.

Cells are never altered, unless that is asked for: a text that a spreadsheet program would take for a formula (``=1+1``)
is marked as text in Excel files; in CSV files it cannot be, and gets an apostrophe in front where ``escape_formulas``.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import BinaryIO, Self, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.schema import Schema
from sfumato.table.binary import BinaryTable
from sfumato.table.cells import written_text
from sfumato.table.coding import Table
from sfumato.table.io.csv import DELIMITERS
from sfumato.table.io.excel import write_workbook
from sfumato.table.io.formats import STATISTICS, WRITABLE, check_format, format_of
from sfumato.table.io.formulas import escaped, may_hold_formulas
from sfumato.table.io.json_lines import write_json_lines
from sfumato.table.io.libsvm import write_libsvm
from sfumato.table.io.parquet import open_parquet, rows_of_a_group, write_parquet
from sfumato.table.io.statistics.write import write_statistics
from sfumato.table.labels import ColumnLabels

__all__ = ["format_of", "write_table"]

_CELLS_AT_ONCE = 1 << 23
BLOCK_FORMATS = ("csv", "tsv", "csv.gz", "tsv.gz", "parquet")
"""Formats that are written block by block."""


def write_table(
    table: Table | BinaryTable,
    file: BinaryIO,
    format: str,
    labels: Mapping[str, ColumnLabels] | None = None,
    *,
    escape_formulas: bool = False,
) -> None:
    """Write a table as ``csv``, ``tsv``, ``parquet``, ``excel``, ``libsvm``, ``jsonl``, ``sav``, ``dta`` or ``xpt``.

    Of text formats there are packed ones, such as ``csv.gz``. ``labels`` are those that a file of a statistics package
    is to hold, see :func:`sfumato.table.io.statistics.write.written_labels`.

    Text files are UTF-8 with a line feed after each row and quotes only where a cell needs them. A missing value is
    written as nothing if the column's missing tokens allow it, else as the first of them. ``escape_formulas`` is for
    text files, see :mod:`sfumato.table.io.formulas`.

    Raises
    ------
    InvalidParameterError
        If the format is unknown or cannot hold the table.
    """
    check_format(format, WRITABLE)
    if format == "libsvm":
        write_libsvm(table, file)
        return
    if format in ("parquet", "excel", "jsonl", "jsonl.gz", *STATISTICS):
        columns = table.to_table() if isinstance(table, BinaryTable) else table
        if format in STATISTICS:
            write_statistics(columns, file, format, labels or {})
        elif format == "jsonl.gz":
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as zipped:
                write_json_lines(columns, cast("BinaryIO", zipped))
        else:
            {"parquet": write_parquet, "excel": write_workbook, "jsonl": write_json_lines}[format](columns, file)
    elif format.endswith(".gz"):
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as zipped:
            _write_delimited(table, cast("BinaryIO", zipped), _delimiter(format), escape_formulas=escape_formulas)
    else:
        _write_delimited(table, file, _delimiter(format), escape_formulas=escape_formulas)


def _delimiter(format_name: str) -> str:
    return "\t" if format_name.startswith("tsv") else ","


class BlockWriter:
    """Writes rows that come in blocks, one or many, as a text or Parquet file; the bytes do not depend on the blocks.

    Use it in a ``with`` block.

    Parameters
    ----------
    columns : mapping of str to Arrow array
        For each column its distinct values, or an array without values where the blocks bring the cells.
    """

    def __init__(self, file: BinaryIO, format: str, schema: Schema, columns: Mapping[str, pa.Array]) -> None:
        check_format(format, BLOCK_FORMATS)
        self._columns = columns
        self._stack = ExitStack()
        if format == "parquet":
            types = pa.schema([(name, values.type) for name, values in columns.items()])
            self._parquet = self._stack.enter_context(open_parquet(file, types))
            self._rows_of_a_group = rows_of_a_group(len(columns))
            self._waiting: list[list[pa.Array]] = []
            self._n_waiting = 0
            return
        self._parquet = None
        if format.endswith(".gz"):
            zipped = self._stack.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0))
            file = cast("BinaryIO", zipped)
        self._rows = _DelimitedRows(file, _delimiter(format), list(columns))
        self._missing = {name: missing_text(schema, name) for name in columns}
        self._texts = {name: self._rows.texts(values, self._missing[name]) for name, values in columns.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        if exc is None and self._parquet is not None:
            self._write_groups(1)
        self._stack.__exit__(kind, exc, tb)

    def write(self, block: Mapping[str, NDArray[np.int32] | pa.Array]) -> None:
        """Write rows: of each column codes into its values, or cells, which may be coded themselves."""
        if self._parquet is None:
            self._rows.write([self._text(name, cells) for name, cells in block.items()])
            return
        cells = (c.dictionary_decode() if isinstance(c, pa.DictionaryArray) else c for c in block.values())
        self._waiting.append([c if isinstance(c, pa.Array) else pa.array(c) for c in cells])
        self._n_waiting += len(self._waiting[-1][0])
        if self._n_waiting >= self._rows_of_a_group:
            self._write_groups(self._rows_of_a_group)

    def _text(self, name: str, cells: NDArray[np.int32] | pa.Array) -> pa.Array:
        if isinstance(cells, pa.DictionaryArray) and not cells.indices.null_count:
            return self._rows.texts(cells.dictionary, self._missing[name]).take(cells.indices)
        if isinstance(cells, pa.Array):
            return self._rows.texts(cells, self._missing[name])
        return self._texts[name].take(pa.array(cells))

    def _write_groups(self, fewest: int) -> None:
        """Write row groups as long as enough rows wait."""
        if not self._waiting or self._parquet is None:
            return
        whole = [pa.concat_arrays(parts) for parts in zip(*self._waiting, strict=True)]
        start = 0
        while self._n_waiting - start >= fewest:
            rows = [cells.slice(start, self._rows_of_a_group) for cells in whole]
            cells = [
                values.take(own) if len(values) else own
                for own, values in zip(rows, self._columns.values(), strict=True)
            ]
            self._parquet.write_table(pa.table(cells, names=list(self._columns)), self._rows_of_a_group)
            start += len(rows[0])
        self._waiting, self._n_waiting = [[cells.slice(start) for cells in whole]], self._n_waiting - start


class _DelimitedRows:
    """A text file whose header is written; rows are joined in bulk."""

    def __init__(self, file: BinaryIO, delimiter: str, names: Sequence[str]) -> None:
        self._file, self._delimiter = file, delimiter
        self._is_alone = len(names) == 1
        header = _quoted(names, delimiter, is_alone=self._is_alone, is_header=True)
        file.write((delimiter.join(header) + "\n").encode())
        self._between, self._end, self._nothing = (pa.scalar(t, pa.large_string()) for t in (delimiter, "\n", ""))

    def texts(self, values: pa.Array, missing: str) -> pa.Array:
        """Values as they are written, in quotes where they need them."""
        texts = pc.fill_null(pc.cast(written_text(values), pa.large_string()), missing)
        special = pc.match_substring_regex(texts, f'["\\n\\r{self._delimiter}]')
        if not pc.any(special).as_py() and not (self._is_alone and pc.any(pc.equal(texts, "")).as_py()):
            return texts
        return pa.array(_quoted(texts.to_pylist(), self._delimiter, is_alone=self._is_alone), pa.large_string())

    def write(self, cells: Sequence[pa.Array]) -> None:
        """Write rows, given the texts of each column."""
        joined = pc.binary_join_element_wise(*cells, self._between)
        self._file.write(_contiguous(pc.binary_join_element_wise(joined, self._nothing, self._end)))


def _write_delimited(
    table: Table | BinaryTable, file: BinaryIO, delimiter: str, *, escape_formulas: bool = False
) -> None:
    """Quote each distinct value once, then join the rows in bulk."""
    features = table.feature_names if isinstance(table, BinaryTable) else ()
    columns = table.coded_part
    names = [*features, *columns.columns]
    rows_of_text = _DelimitedRows(file, delimiter, names)
    values = {n: columns[n].values for n in columns.columns}
    if escape_formulas:
        described = columns.schema
        values = {n: escaped(written_text(v)) if may_hold_formulas(described[n]) else v for n, v in values.items()}
    texts = {n: rows_of_text.texts(own, missing_text(columns.schema, n)) for n, own in values.items()}
    n_rows = max(1, _CELLS_AT_ONCE // max(1, len(names)))
    for start in range(0, table.n_rows if names else 0, n_rows):
        rows = slice(start, min(start + n_rows, table.n_rows))
        cells = [text.take(pa.array(columns[name].codes[rows])) for name, text in texts.items()]
        if isinstance(table, BinaryTable) and features:
            cells.insert(0, _zeros_and_ones(table, rows, delimiter))
        rows_of_text.write(cells)


def _zeros_and_ones(table: BinaryTable, rows: slice, delimiter: str) -> pa.Array:
    """Text of all features of some rows, one text a row."""
    dense = table.matrix[rows].toarray()
    text = np.full((dense.shape[0], 2 * dense.shape[1]), ord(delimiter), dtype=np.uint8)
    text[:, ::2] = dense + ord("0")
    data = np.ascontiguousarray(text[:, :-1])
    offsets = np.arange(len(data) + 1, dtype=np.int64) * data.shape[1]
    return pa.LargeStringArray.from_buffers(len(data), pa.py_buffer(offsets), pa.py_buffer(data))


def _contiguous(rows: pa.Array) -> memoryview:
    """Bytes of all texts of an array, one after the other."""
    first, last = rows.offset, rows.offset + len(rows)
    _, offsets, data = rows.buffers()
    ends = memoryview(offsets).cast("q")
    return memoryview(data)[ends[first] : ends[last]]


def missing_text(schema: Schema, name: str) -> str:
    """Text that a missing value of a column is written as."""
    tokens = schema.missing_tokens(name)
    return "" if "" in tokens or not tokens else tokens[0]


def _quoted(texts: Iterable[str], delimiter: str, *, is_alone: bool, is_header: bool = False) -> list[str]:
    """Quote what needs it; in a header also what could be taken for another delimiter, alone also what is empty."""
    special = {delimiter, '"', "\n", "\r", *(DELIMITERS if is_header else ())}
    return [
        '"' + text.replace('"', '""') + '"' if (is_alone and not text) or any(s in text for s in special) else text
        for text in texts
    ]
