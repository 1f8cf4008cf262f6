"""Parquet files, through pyarrow."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet

from sfumato.errors import InputError
from sfumato.table.bytes import StoredBytes, unzipped, with_head
from sfumato.table.cells import ColumnCoder, check_names
from sfumato.table.coding import Table
from sfumato.table.parsed import Parsed

_MAGIC = b"PAR1"
BLOCK_ROWS = 1 << 18
ROWS_OF_A_GROUP = 1 << 20
"""Rows that Arrow writes into one row group."""


def parse_parquet(stored: StoredBytes, coder: ColumnCoder) -> Parsed:
    """Parse a Parquet file; columns keep their types."""
    head, chunks = with_head(unzipped(stored.first_pass(), stored.name), len(_MAGIC))
    if head != _MAGIC:
        problem = "is empty" if not head else "is not a Parquet file"
        raise InputError(problem, path=stored.name, hint="name its format" if head else "", remedy=("format",))
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
    with _explained(stored.name):
        if stored.path_when_large is not None:
            data = pa.OSFile(str(stored.path_when_large))
        else:
            data = pa.BufferReader(b"".join(unzipped(stored.again(), stored.name)))
        cells = pyarrow.parquet.ParquetFile(data, page_checksum_verification=True).read()
        cells.validate(full=True)
    return cells


@dataclass(frozen=True, repr=False)
class ParquetBlocks:
    """Rows of a Parquet file, block by block, as often as asked; texts come coded."""

    path: Path
    names: list[str]

    @classmethod
    def of(cls, path: Path, place: str) -> ParquetBlocks:
        """Look at the columns of a file."""
        with _explained(place), pyarrow.parquet.ParquetFile(path) as file:
            n_rows, own_names = file.metadata.num_rows, file.schema_arrow.names
        if n_rows == 0 or not own_names:
            problem = "holds no data rows"
            raise InputError(problem, path=place)
        check_names(own_names, place=place)
        return cls(path, own_names)

    def __call__(self, positions: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Cells of some columns, block by block."""
        wanted = [self.names[i] for i in positions]
        with _explained(str(self.path)), pyarrow.parquet.ParquetFile(self.path) as file:
            texts = [f.name for f in file.schema_arrow if f.name in wanted and pa.types.is_string(f.type)]
        with _explained(str(self.path)):
            opened = pyarrow.parquet.ParquetFile(
                self.path,
                page_checksum_verification=True,
                read_dictionary=texts,
                pre_buffer=False,  # else all that was read stays in memory
            )
        with opened:
            batches = opened.iter_batches(batch_size=BLOCK_ROWS, columns=wanted)
            while True:
                with _explained(str(self.path)):
                    batch = next(batches, None)
                    if batch is None:
                        return
                    batch.validate(full=True)
                yield [batch.column(name) for name in wanted]


@contextmanager
def _explained(place: str) -> Iterator[None]:
    """Say in one line, without a cell, that a file is damaged."""
    try:
        yield
    except MemoryError:
        raise
    except Exception:  # many kinds of errors, whose messages may quote cells
        problem = "cannot be read as a Parquet file"
        raise InputError(problem, path=place, hint="is it complete?") from None


def write_parquet(table: Table, file: BinaryIO) -> None:
    """Write a table column by column, with checksums and without any metadata of other libraries."""
    cells = table.to_arrow()
    with open_parquet(file, cells.schema) as writer:
        writer.write_table(cells, ROWS_OF_A_GROUP)


def open_parquet(file: BinaryIO, schema: pa.Schema) -> pyarrow.parquet.ParquetWriter:
    """Open a file for tables of a schema; ``ROWS_OF_A_GROUP`` rows at a time give the bytes of all at once.

    Arrow's own copy of the schema is left out: it is metadata that the columns do not need.
    """
    return pyarrow.parquet.ParquetWriter(file, schema, write_page_checksum=True, store_schema=False)
