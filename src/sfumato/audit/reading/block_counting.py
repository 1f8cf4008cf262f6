"""The audit's own counting of files that are larger than memory: by DuckDB, which spills what does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.audit.reading.packing import Packing
from sfumato.audit.reading.values import ranks
from sfumato.engines.blocks.database import batches_in_database
from sfumato.engines.protocol import Rows
from sfumato.errors import SchemaError
from sfumato.progress import Progress
from sfumato.table.weighted import CountedTable

if TYPE_CHECKING:
    import duckdb

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GroupKeys:
    """Which rows of an original are in which group of its release.

    Parameters
    ----------
    columns : tuple of str
        Columns of the original.
    numbers : tuple of int64 arrays
        For each of them, the number of each of its codes.
    keys : list of int64 arrays
        Combinations of these numbers, column by column, each once.
    groups : int64 array
        Group of each combination. Rows with another combination are in none.
    """

    columns: tuple[str, ...]
    numbers: tuple[Counts, ...]
    keys: list[Counts]
    groups: Counts


def counted_rows(table: Rows, names: Sequence[str], memory: int, progress: Progress | None = None) -> CountedTable:
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
    table: Rows, over: Sequence[str], name: str, memory: int, progress: Progress | None = None
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


def n_unique_rows(table: Rows, names: Sequence[str], memory: int, progress: Progress | None = None) -> int:
    """Count the rows that no other row equals on some columns; combinations never leave the database.

    Raises
    ------
    SchemaError
        If a column has too many distinct values.
    InputError
        If the rows cannot be read or counted.
    """
    _refuse_open(table, names)
    packing = Packing.of([len(table.outline[name].values) for name in names])
    keys = [f"c{i}" for i in range(len(packing.groups))]
    schema = pa.schema([(key, pa.int64()) for key in keys])

    def batches() -> Iterator[pa.RecordBatch]:
        for block in table.blocks(names, progress=progress):
            packed = packing.packed([np.asarray(block[name]) for name in names])
            yield pa.record_batch([pa.array(own) for own in packed], schema=schema)

    with batches_in_database(schema, batches(), memory, table.place) as (_, rows):
        alike = rows.aggregate("count(*) AS n", ", ".join(keys))
        found = alike.filter("n = 1").aggregate("count(*) AS n").to_arrow_table().column("n")[0].as_py()
    return int(found or 0)


def persons_of_groups(
    table: Rows, known: GroupKeys, person: str, memory: int, progress: Progress | None = None
) -> tuple[Counts, Counts, Counts]:
    """Count rows and persons of groups; gives the groups that occur, then both. Pairs never leave the database.

    Raises
    ------
    InputError
        If the rows cannot be read or counted.
    """
    keys, stored = [f"c{i}" for i in range(len(known.columns))], stored_type(table, person)

    def batches() -> Iterator[pa.RecordBatch]:
        for block in table.blocks(list(dict.fromkeys([*known.columns, person])), progress=progress):
            own = [numbers[np.asarray(block[n])] for n, numbers in zip(known.columns, known.numbers, strict=True)]
            cells = [*(pa.array(column, pa.int64()) for column in own), pa.array(block[person], stored)]
            yield pa.record_batch(cells, names=[*keys, "person"])

    schema = pa.schema([*((key, pa.int64()) for key in keys), ("person", stored)])
    listed = pa.table(dict(zip(keys, known.keys, strict=True)) | {"grp": known.groups})
    with batches_in_database(schema, batches(), memory, table.place) as (connection, rows):
        in_groups = rows.join(connection.from_arrow(listed), ", ".join(keys))
        pairs = in_groups.aggregate("grp, person, count(*) AS n", "grp, person")
        found = pairs.aggregate("grp, sum(n)::BIGINT AS n, count(*) AS persons", "grp").to_arrow_table()
    groups, n_rows, n_persons = (found.column(i).to_numpy().astype(np.int64) for i in range(3))
    return groups, n_rows, n_persons


def stored_type(table: Rows, name: str) -> pa.DataType:
    """Type of what blocks hold of a column: codes, or the values of one that lists none."""
    return table.outline[name].values.type if table.is_open(name) else pa.int32()


@contextmanager
def _rows_in_database(
    table: Rows,
    names: Sequence[str],
    memory: int,
    progress: Progress | None,
    same: Mapping[str, NDArray[np.int64]] | None = None,
) -> Iterator[tuple[duckdb.DuckDBPyRelation, list[str]]]:
    """Give the codes of some columns, which are read when they are asked for; ``same`` has a number for each code."""
    _refuse_open(table, names)
    keys = [f"c{i}" for i in range(len(names))]
    schema = pa.schema([(key, pa.int32()) for key in keys])
    batches = _batches(table, names, keys, same or {}, progress)
    with batches_in_database(schema, batches, memory, table.place) as (_, rows):
        yield rows, keys


def _refuse_open(table: Rows, names: Sequence[str]) -> None:
    for name in names:
        if table.is_open(name):
            problem = "has too many distinct values to be counted with other columns"
            hint = "give it the role other or identifier, or more memory"
            raise SchemaError(problem, column=name, hint=hint, remedy=("memory",))


def _batches(
    table: Rows,
    names: Sequence[str],
    keys: Sequence[str],
    same: Mapping[str, NDArray[np.int64]],
    progress: Progress | None,
) -> Iterator[pa.RecordBatch]:
    """Codes in batches."""
    for block in table.blocks(names, progress=progress):
        codes = [same[n][np.asarray(block[n])] if n in same else block[n] for n in names]
        yield pa.record_batch([pa.array(own, pa.int32()) for own in codes], names=list(keys))
