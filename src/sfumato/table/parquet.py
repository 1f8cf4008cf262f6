"""Parquet files, through pyarrow."""

from __future__ import annotations

from collections import deque
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet

from sfumato.errors import InputError
from sfumato.table.bytes import StoredBytes, unzipped, with_head
from sfumato.table.cells import ColumnCoder, check_names
from sfumato.table.coding import Table
from sfumato.table.parsed import Parsed

_MAGIC = b"PAR1"


def parse_parquet(stored: StoredBytes, coder: ColumnCoder) -> Parsed:
    """Parse a Parquet file; columns keep their types."""
    head, chunks = with_head(unzipped(stored.first_pass(), stored.name), len(_MAGIC))
    if head != _MAGIC:
        problem = "is empty" if not head else "is not a Parquet file"
        raise InputError(problem, path=stored.name, hint="name its format with --format" if head else "")
    deque(chunks, maxlen=0)  # to the end, for the hash
    cells = _load(stored)
    stored.ensure_unchanged()
    if cells.num_rows == 0 or cells.num_columns == 0:
        problem = "holds no data rows"
        raise InputError(problem, path=stored.name)
    names = check_names(cells.column_names, place=stored.name)
    columns, kinds = {}, {}
    for name, column in zip(names, cells.columns, strict=True):
        columns[name], kinds[name] = coder.code(name, column)
    return Parsed(columns, kinds, cells.num_rows)


def _load(stored: StoredBytes) -> pa.Table:
    try:
        if stored.path_when_large is not None:
            data = pa.OSFile(str(stored.path_when_large))
        else:
            data = pa.BufferReader(b"".join(unzipped(stored.again(), stored.name)))
        cells = pyarrow.parquet.ParquetFile(data, page_checksum_verification=True).read()
        cells.validate(full=True)
        return cells
    except Exception:  # a damaged file ends in many kinds of errors, whose messages may quote cells
        problem = "cannot be read as a Parquet file"
    raise InputError(problem, path=stored.name, hint="is it complete?")


def write_parquet(table: Table, file: BinaryIO) -> None:
    """Write a table column by column, with checksums and without any metadata of other libraries."""
    pyarrow.parquet.write_table(table.to_arrow(), file, write_page_checksum=True)
