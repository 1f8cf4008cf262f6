"""Write tables, into files that are open already; the same table gives the same bytes.

Cells are never altered. In particular a text that a spreadsheet program would take for a formula (``=1+1``) is written
as it is; in Excel files it is marked as text, in CSV files it cannot be.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from typing import BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.schema import Schema
from sfumato.table.binary import BinaryTable
from sfumato.table.cells import as_text
from sfumato.table.coding import Table
from sfumato.table.formats import WRITABLE, check_format, format_of
from sfumato.table.libsvm import write_libsvm
from sfumato.table.parquet import write_parquet
from sfumato.table.records import DELIMITERS
from sfumato.table.workbook import write_workbook

__all__ = ["format_of", "write_table"]

_CELLS_AT_ONCE = 1 << 23


def write_table(table: Table | BinaryTable, file: BinaryIO, format: str) -> None:
    """Write a table as ``csv``, ``tsv``, ``csv.gz``, ``tsv.gz``, ``parquet``, ``excel`` or ``libsvm``.

    Text files are UTF-8 with a line feed after each row and quotes only where a cell needs them. A missing value is
    written as nothing if the column's missing tokens allow it, else as the first of them.

    Raises
    ------
    InvalidParameterError
        If the format is unknown or cannot hold the table.
    """
    check_format(format, WRITABLE)
    if format == "libsvm":
        write_libsvm(table, file)
        return
    if format in ("parquet", "excel"):
        columns = table.to_table() if isinstance(table, BinaryTable) else table
        (write_parquet if format == "parquet" else write_workbook)(columns, file)
    elif format.endswith(".gz"):
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as zipped:
            _write_delimited(table, cast("BinaryIO", zipped), _delimiter(format))
    else:
        _write_delimited(table, file, _delimiter(format))


def _delimiter(format_name: str) -> str:
    return "\t" if format_name.startswith("tsv") else ","


def _write_delimited(table: Table | BinaryTable, file: BinaryIO, delimiter: str) -> None:
    """Quote each distinct value once, then join the rows in bulk."""
    features = table.feature_names if isinstance(table, BinaryTable) else ()
    columns = table.companions if isinstance(table, BinaryTable) else table
    names = [*features, *columns.columns]
    is_alone = len(names) == 1
    file.write((delimiter.join(_quoted(names, delimiter, is_alone=is_alone, is_header=True)) + "\n").encode())
    texts = {name: _quoted_values(columns, name, delimiter, is_alone=is_alone) for name in columns.columns}
    between, end, nothing = (pa.scalar(text, pa.large_string()) for text in (delimiter, "\n", ""))
    n_rows = max(1, _CELLS_AT_ONCE // max(1, len(names)))
    for start in range(0, table.n_rows if names else 0, n_rows):
        rows = slice(start, min(start + n_rows, table.n_rows))
        cells = [text.take(pa.array(columns[name].codes[rows])) for name, text in texts.items()]
        if isinstance(table, BinaryTable) and features:
            cells.insert(0, _zeros_and_ones(table, rows, delimiter))
        joined = pc.binary_join_element_wise(*cells, between)
        file.write(_contiguous(pc.binary_join_element_wise(joined, nothing, end)))


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


def _quoted_values(table: Table, name: str, delimiter: str, *, is_alone: bool) -> pa.Array:
    missing = missing_text(table.schema, name)
    texts = [missing if text is None else text for text in as_text(table[name].values).to_pylist()]
    return pa.array(_quoted(texts, delimiter, is_alone=is_alone), pa.large_string())


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
