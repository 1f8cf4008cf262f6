"""Rows of the database that is meant, as plain Arrow batches, and as a table in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from sfumato.errors import InputError
from sfumato.table.cells import ColumnCoder, check_names
from sfumato.table.io.databases.address import Database
from sfumato.table.io.databases.digest import content_sha256, keyed_batches
from sfumato.table.io.databases.files import duckdb_rows, sqlite_rows
from sfumato.table.io.databases.plain import plain_rows
from sfumato.table.io.databases.postgresql import server_rows
from sfumato.table.io.databases.streaming import QueryRows
from sfumato.table.io.formats import Parsed


@contextmanager
def opened_rows(
    database: Database, coder: ColumnCoder, *, spill: Path | None = None, memory: int | None = None
) -> Iterator[QueryRows]:
    """Run the query, or read the table, and give its rows once.

    Parameters
    ----------
    spill, memory
        Private folder and bytes for a database that computes in this process, where memory is limited.

    Raises
    ------
    InputError
        If it cannot be reached or read; shows no credential, no query and no cell.
    """
    if database.kind == "postgresql":
        opened = server_rows(database)
    elif database.kind == "sqlite":
        opened = sqlite_rows(database, coder.rules.is_text)
    else:
        opened = duckdb_rows(database, spill, memory)
    with opened as rows:
        plain = plain_rows(rows, database.place)
        if not plain.schema.names:
            raise no_rows(database)
        check_names(plain.schema.names, place=database.place)
        yield plain


def parse_rows(database: Database, coder: ColumnCoder) -> tuple[Parsed, str]:
    """Read all rows into memory; gives them, and their hash."""
    batches: list[pa.RecordBatch] = []
    keyed: list[pa.RecordBatch] = []
    with opened_rows(database, coder) as rows:
        for batch in rows.batches:  # the next ones arrive meanwhile
            batches.append(batch)
            keyed.extend(keyed_batches(rows.schema, [batch], 0))
        cells = pa.Table.from_batches(batches, rows.schema)
    if not cells.num_rows:
        raise no_rows(database)
    columns, kinds = {}, {}
    for name, column in zip(check_names(cells.column_names, place=database.place), cells.columns, strict=True):
        columns[name], kinds[name] = coder.code(name, column)
    return Parsed(columns, kinds, cells.num_rows), content_sha256(cells, keyed)


def no_rows(database: Database) -> InputError:
    """Refuse an empty result."""
    return InputError("gives no rows", path=database.place)
