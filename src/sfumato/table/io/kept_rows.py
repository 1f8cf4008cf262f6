"""Rows that are slow to parse, or come once: kept in a private Parquet file while they are needed, read in blocks.

The file is removed with the last table that uses it, at the end of the process, or by the next process if this one is
killed.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.parquet

from sfumato.errors import InputError
from sfumato.private_folders import PrivateFolder
from sfumato.table.io.parquet import BLOCK_ROWS, ParquetBlocks

PURPOSE = "rows"
"""Part of the name of the folder."""
_BYTES_A_CELL = 8


@dataclass(frozen=True, repr=False)
class KeptRows:
    """Cells of named columns, block by block, as often as asked."""

    names: list[str]
    _blocks: ParquetBlocks

    @classmethod
    def of(
        cls, names: Sequence[str], schema: pa.Schema, batches: Iterable[pa.RecordBatch], place: str, cells_at_once: int
    ) -> Self:
        """Keep rows, of which there must be some; the schema has a field for each name, in their order.

        Raises
        ------
        InputError
            If there is no room for them, or what the batches raise.
        """
        folder = PrivateFolder(PURPOSE)
        try:
            path = folder.path / "rows.parquet"
            write_kept(path, schema, batches, place, cells_at_once * _BYTES_A_CELL)
            kept = cls(list(names), ParquetBlocks.of(path, place, cells_at_once))
        except BaseException:
            folder.remove()
            raise
        weakref.finalize(kept, folder.remove)  # which also runs at the end of the process
        return kept

    def __call__(self, positions: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Cells of some columns, block by block; texts come coded."""
        yield from self._blocks(positions)


def write_kept(
    path: Path,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    place: str,
    most_bytes: int,
    say: Callable[[int], None] = lambda n_rows: None,
) -> int:
    """Write rows into a file of our own, so many bytes at a time; gives how many rows there are.

    Raises
    ------
    InputError
        If there is no room for them.
    """
    n_rows = n_bytes = n_waiting = 0
    waiting: list[pa.RecordBatch] = []
    try:
        with pyarrow.parquet.ParquetWriter(path, schema, write_page_checksum=True) as writer:
            for batch in batches:
                n_rows += batch.num_rows
                waiting.append(batch)
                n_bytes += batch.nbytes
                n_waiting += batch.num_rows
                if n_bytes > most_bytes or n_waiting >= BLOCK_ROWS:
                    writer.write_table(pa.Table.from_batches(waiting, schema))
                    waiting, n_bytes, n_waiting = [], 0, 0
                    say(n_rows)
            if waiting:
                writer.write_table(pa.Table.from_batches(waiting, schema))
    except (OSError, pa.ArrowException):
        problem = "its rows cannot be kept in the temporary folder"
        raise InputError(problem, path=place, hint="free disk space there, or set TMPDIR to another folder") from None
    return n_rows
