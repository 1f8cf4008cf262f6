"""A database that reads rows in blocks and spills what does not fit: for queries over tables larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sfumato.engines.memory_limit import database_bytes, database_threads
from sfumato.errors import InputError
from sfumato.private_folders import PrivateFolder

if TYPE_CHECKING:
    import duckdb


@contextmanager
def spilling_connection(memory: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database in memory that spills what does not fit in its share of it into a private folder."""
    import duckdb

    folder = PrivateFolder("audit")
    config: dict[str, Any] = {
        "temp_directory": str(folder.path),
        "memory_limit": f"{database_bytes(memory) // 1000}KB",
        "threads": database_threads(memory),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
        "preserve_insertion_order": False,
    }
    try:
        with duckdb.connect(":memory:", config=config) as connection:
            connection.execute("SET enable_progress_bar = false")  # which it shows where it takes Python for a notebook
            yield connection
    finally:
        folder.remove()


@contextmanager
def batches_in_database(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], memory: int, place: str
) -> Iterator[tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyRelation]]:
    """Give batches as a relation, which are read when a query asks for them, once.

    Raises
    ------
    InputError
        If the rows cannot be read, or counted in the given memory.
    """
    import duckdb  # here, because every audit loads this module and few count out of core

    failures: list[Exception] = []

    def kept_failures() -> Iterator[pa.RecordBatch]:
        """Keep an error, for the engine hides it."""
        try:
            yield from batches
        except Exception as exc:
            failures.append(exc)
            raise

    reader = pa.RecordBatchReader.from_batches(schema, kept_failures())
    try:
        with spilling_connection(memory) as connection:
            yield connection, connection.from_arrow(reader)
    except (duckdb.Error, pa.ArrowException):
        if failures:
            raise failures[0] from None
        problem = "its rows cannot be counted in the given memory"
        hint = "give more memory, or free disk space for spilling"
        raise InputError(problem, path=place, hint=hint, remedy=("memory",)) from None
