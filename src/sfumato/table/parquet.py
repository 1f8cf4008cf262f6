"""Parquet files, through pyarrow."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet

from sfumato.errors import InputError
from sfumato.table.bytes import StoredBytes, unzipped, with_head
from sfumato.table.cells import ColumnCoder, check_names
from sfumato.table.coding import Table
from sfumato.table.parsed import Parsed
from sfumato.table.unpacking import UnpackingLimit

_MAGIC = b"PAR1"
_LEAST_WIDTH = 4  # a code, the offset of a text, or the value
_WIDTHS = {"INT64": 8, "DOUBLE": 8, "INT96": 12}
BLOCK_ROWS = 1 << 18
ROWS_OF_A_GROUP = 1 << 20
"""Rows that Arrow writes into one row group."""


def parse_parquet(stored: StoredBytes, coder: ColumnCoder) -> Parsed:
    """Parse a Parquet file; columns keep their types."""
    head, chunks = with_head(unzipped(stored.first_pass(), stored), len(_MAGIC))
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
    with explained_parquet(stored.name):
        if stored.path_when_large is not None:
            data = pa.OSFile(str(stored.path_when_large))
        else:
            data = pa.BufferReader(b"".join(unzipped(stored.again(), stored)))
        file = pyarrow.parquet.ParquetFile(data, page_checksum_verification=True)
        check_unpacking([file.metadata], stored.name, replace(stored.limit, n_stored=data.size()))
        cells = file.read()
        cells.validate(full=True)
    return cells


def check_unpacking(files: Iterable[pyarrow.parquet.FileMetaData], name: str, limit: UnpackingLimit) -> None:
    """Refuse files that say of themselves that their columns take too much memory.

    They are read by what they say: a row that is not announced is not read, and one that is, takes its place, though
    a million of them may be stored in a few bytes.

    Raises
    ------
    InputError
        If it is too much.
    """
    limit.check(sum(map(_unpacked_bytes, files)), name, hint="read it in blocks, if it is as large as that")


def _unpacked_bytes(metadata: pyarrow.parquet.FileMetaData) -> int:
    total = 0
    widths = [_WIDTHS.get(metadata.schema.column(i).physical_type, _LEAST_WIDTH) for i in range(metadata.num_columns)]
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        stored = (group.column(i).total_uncompressed_size for i in range(group.num_columns))
        total += sum(max(size, width * group.num_rows) for size, width in zip(stored, widths, strict=True))
    return total


@dataclass(frozen=True, repr=False)
class ParquetBlocks:
    """Rows of a Parquet file, block by block, as often as asked; texts come coded."""

    path: Path
    names: list[str]

    @classmethod
    def of(cls, path: Path, place: str) -> ParquetBlocks:
        """Look at the columns of a file."""
        limit = UnpackingLimit.of(path.stat().st_size, in_blocks=True)
        with explained_parquet(place), pyarrow.parquet.ParquetFile(path) as file:
            n_rows, own_names = file.metadata.num_rows, file.schema_arrow.names
            check_unpacking([file.metadata], place, limit)
        if n_rows == 0 or not own_names:
            problem = "holds no data rows"
            raise InputError(problem, path=place)
        check_names(own_names, place=place)
        return cls(path, own_names)

    def __call__(self, positions: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Cells of some columns, block by block."""
        wanted = [self.names[i] for i in positions]
        with explained_parquet(str(self.path)), pyarrow.parquet.ParquetFile(self.path) as file:
            texts = [f.name for f in file.schema_arrow if f.name in wanted and pa.types.is_string(f.type)]
        with explained_parquet(str(self.path)):
            opened = pyarrow.parquet.ParquetFile(
                self.path,
                page_checksum_verification=True,
                read_dictionary=texts,
                pre_buffer=False,  # else all that was read stays in memory
            )
        with opened:
            batches = opened.iter_batches(batch_size=BLOCK_ROWS, columns=wanted)
            while True:
                with explained_parquet(str(self.path)):
                    batch = next(batches, None)
                    if batch is None:
                        return
                    batch.validate(full=True)
                yield [batch.column(name) for name in wanted]


@contextmanager
def explained_parquet(place: str) -> Iterator[None]:
    """Say in one line, without a cell, that a file is damaged."""
    try:
        yield
    except (MemoryError, InputError):
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
