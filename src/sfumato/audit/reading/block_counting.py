"""The audit's own counting of files that are larger than memory: by DuckDB, which spills what does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.audit.reading.values import ranks
from sfumato.errors import InputError, SchemaError
from sfumato.private_folders import PrivateFolder
from sfumato.progress import Progress
from sfumato.rows.out_of_core import LargeTable
from sfumato.table.weighted import CountedTable

if TYPE_CHECKING:
    import duckdb

_SHARE_OF_MEMORY = 3


def counted_rows(
    table: LargeTable, names: Sequence[str], memory: int, progress: Progress | None = None
) -> CountedTable:
    """Count the distinct rows of some columns; the other columns are described each by itself.

    What does not fit in a third of the memory is spilled into a private folder that is removed.

    Raises
    ------
    SchemaError
        If a column has too many distinct values.
    InputError
        If the rows cannot be read, or there are too many distinct ones.
    """
    if not names:
        return CountedTable.of(table.outline, (), (), np.array([table.n_rows], dtype=np.int64))
    with _rows_in_database(table, names, memory, progress) as (rows, keys):
        listed = ", ".join(keys)
        counted = rows.aggregate(f"{listed}, count(*) AS n", listed).to_arrow_table()
    codes = [counted.column(key).to_numpy() for key in keys]
    return CountedTable.of(table.outline, names, codes, counted.column("n").to_numpy().astype(np.int64))


def least_different_values(
    table: LargeTable, over: Sequence[str], name: str, memory: int, progress: Progress | None = None
) -> int:
    """Smallest number of different values of a column in a class of rows; combinations never leave the database.

    Raises
    ------
    SchemaError
        If a column has too many distinct values.
    InputError
        If the rows cannot be read or counted.
    """
    described = table.schema[name]
    same = {name: ranks(table.outline[name].values, described.kind, described.domain)}
    with _rows_in_database(table, [*over, name], memory, progress, same) as (rows, keys):
        in_classes = rows.unique(", ".join(keys)).aggregate("count(*) AS n", ", ".join(keys[:-1]))
        least = in_classes.aggregate("min(n) AS n").to_arrow_table().column("n")[0].as_py()
    return int(least or 0)


@contextmanager
def _rows_in_database(
    table: LargeTable,
    names: Sequence[str],
    memory: int,
    progress: Progress | None,
    same: Mapping[str, NDArray[np.int64]] | None = None,
) -> Iterator[tuple[duckdb.DuckDBPyRelation, list[str]]]:
    """Give the codes of some columns, which are read when they are asked for; ``same`` has a number for each code."""
    import duckdb  # here, because every audit loads this module and few count out of core

    for name in names:
        if table.is_open(name):
            problem = "has too many distinct values to be counted with other columns"
            raise SchemaError(
                problem, column=name, hint="give it the role other or identifier, or more memory", remedy=("memory",)
            )
    keys = [f"c{i}" for i in range(len(names))]
    failures: list[Exception] = []
    reader = pa.RecordBatchReader.from_batches(
        pa.schema([(key, pa.int32()) for key in keys]), _batches(table, names, keys, same or {}, failures, progress)
    )
    try:
        with spilling_connection(memory) as connection:
            yield connection.from_arrow(reader), keys
    except (duckdb.Error, pa.ArrowException):
        if failures:
            raise failures[0] from None
        problem = "its rows cannot be counted in the given memory"
        hint = "give more memory, or free disk space for spilling"
        raise InputError(problem, path=table.source.name, hint=hint, remedy=("memory",)) from None


@contextmanager
def spilling_connection(memory: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database in memory that spills what does not fit in a third of it into a private folder."""
    import duckdb

    folder = PrivateFolder("audit")
    config: dict[str, Any] = {
        "temp_directory": str(folder.path),
        "memory_limit": f"{memory // _SHARE_OF_MEMORY // 1000}KB",
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


def _batches(
    table: LargeTable,
    names: Sequence[str],
    keys: Sequence[str],
    same: Mapping[str, NDArray[np.int64]],
    failures: list[Exception],
    progress: Progress | None,
) -> Iterator[pa.RecordBatch]:
    """Codes in batches; an error is kept, for the engine hides it."""
    try:
        for block in table.blocks(names, progress=progress):
            codes = [same[n][np.asarray(block[n])] if n in same else block[n] for n in names]
            yield pa.record_batch([pa.array(own, pa.int32()) for own in codes], names=list(keys))
    except Exception as exc:
        failures.append(exc)
        raise
