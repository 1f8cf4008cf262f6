"""Rows of a query that are more than memory holds: fetched once, and kept in a private file while they are needed.

A query that is run again may give other rows, or the same in another order. So every pass reads the file, which is
removed with the last table that uses it, at the end of the process, or by the next process if this one is killed.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from sfumato.engines.blocks.database import batches_in_database
from sfumato.engines.memory_limit import cells_at_once, database_bytes
from sfumato.private_folders import PrivateFolder
from sfumato.table.cells import ColumnCoder
from sfumato.table.io.databases.address import Database
from sfumato.table.io.databases.digest import (
    ATTEMPTS,
    KEY,
    SameKeyError,
    SortedDigest,
    keyed_batches,
    keyed_schema,
    no_order,
)
from sfumato.table.io.databases.rows import no_rows, opened_rows
from sfumato.table.io.kept_rows import write_kept
from sfumato.table.io.parquet import ParquetBlocks, StoredParquet

PURPOSE = "query"
"""Part of the name of the folder."""
_SHARE_OF_MEMORY = 16
_BLOCK_ROWS = 1 << 16


@dataclass(frozen=True, repr=False)
class SpooledRows:
    """Rows of a query, block by block, as often as asked.

    Parameters
    ----------
    sha256 : str
        Of the rows, see :mod:`sfumato.table.io.databases.digest`; the same as when they are read into memory.
    """

    sha256: str
    _blocks: ParquetBlocks
    _file: StoredParquet

    @classmethod
    def of(cls, database: Database, coder: ColumnCoder, memory: int, say: Callable[[int], None]) -> SpooledRows:
        """Run the query and keep its rows.

        Raises
        ------
        InputError
            If it cannot be run, gives no rows, or there is no room for them.
        """
        folder = PrivateFolder(PURPOSE)
        try:
            path = folder.path / "rows.parquet"
            spill = folder.path / "spill"
            spill.mkdir()
            with opened_rows(database, coder, spill=spill, memory=database_bytes(memory)) as rows:
                most_bytes = memory // _SHARE_OF_MEMORY
                n_rows = write_kept(path, rows.schema, rows.batches, database.place, most_bytes, say)
            if not n_rows:
                raise no_rows(database)
            sha256 = _sha256(path, rows.schema, memory, database.place)
            blocks = ParquetBlocks.of(path, database.place, cells_at_once(memory))
            spooled = cls(sha256, blocks, StoredParquet.of(path))
        except BaseException:
            folder.remove()
            raise
        weakref.finalize(spooled, folder.remove)  # which also runs at the end of the process
        return spooled

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return self._blocks.names

    def __call__(self, positions: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Cells of some columns, block by block."""
        yield from self._blocks(positions)

    def ensure_unchanged(self) -> None:
        """Refuse rows that are others than those that were fetched."""
        self._file.ensure_unchanged()


def _sha256(path: Path, schema: pa.Schema, memory: int, place: str) -> str:
    """Hash the rows in the order of their keys, which a database sorts that spills."""
    for attempt in range(ATTEMPTS):
        digest = SortedDigest(schema)
        keyed = keyed_batches(schema, _batches(path, schema), attempt)
        with batches_in_database(keyed_schema(schema), keyed, memory, place) as (_, rows):
            ordered = rows.order(KEY)
            read = getattr(ordered, "to_arrow_reader", None) or ordered.fetch_record_batch  # the second: DuckDB 1
            try:
                with read(_BLOCK_ROWS) as reader:
                    for batch in reader:
                        digest.update(pa.Table.from_batches([batch]))
            except SameKeyError:
                continue
        return digest.hexdigest()
    raise no_order()


def _batches(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with pyarrow.parquet.ParquetFile(path, pre_buffer=False) as file:
        for batch in file.iter_batches(batch_size=_BLOCK_ROWS):
            yield batch.cast(schema)
