"""Rows of databases that are files: SQLite by Python's own module, DuckDB by its own Arrow batches.

Both are opened to be read only, run one statement, and may touch no other file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from sfumato.errors import InputError, SfumatoError
from sfumato.table.io.databases.address import Database
from sfumato.table.io.databases.choice import chosen_table, quoted
from sfumato.table.io.databases.streaming import Hand, QueryRows, running, too_slow

BLOCK_ROWS = 1 << 16
_WRONG_QUERY = "cannot run the query: a name, a type or its form is wrong"

# SQLite: the type of a value is its own, not its column's. So a pass over the result finds which types a column holds.

_SQLITE_TABLES = """
SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND substr(name, 1, 7) <> 'sqlite_' ORDER BY 1
"""
_ALLOWED = (
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
)
_FORBIDDEN_FUNCTIONS = ("load_extension", "readfile", "writefile", "edit", "fts3_tokenizer")
_CLASSES = ("integer", "real", "text", "blob")


def sqlite_rows(database: Database, may_mix: Callable[[str], bool]) -> AbstractContextManager[QueryRows]:
    """Run a query, or read a table, of an SQLite file.

    Parameters
    ----------
    may_mix : callable
        Whether a column of this name that mixes numbers and text is taken as text; else that is refused.
    """

    def work(hand: Hand) -> None:
        place = f"file:{quote(str(Path(database.path or '').absolute()))}?mode=ro"
        with (
            closing(sqlite3.connect(place, uri=True, isolation_level=None, check_same_thread=False)) as connection,
            hand.cancelled_by(connection.interrupt),
        ):
            connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA trusted_schema = OFF")  # views of a file from elsewhere call no risky function
            connection.execute("BEGIN")  # both passes see the same rows
            sql = database.query
            if sql is None:
                listed = [((str(name),), True) for (name,) in connection.execute(_SQLITE_TABLES)]
                sql = f"SELECT * FROM {quoted(*chosen_table(database, listed))}"
            sql = sql.strip().rstrip(";").rstrip() + "\n"
            connection.set_authorizer(_authorized)
            with closing(connection.execute(sql)) as result:
                if result.description is None:
                    raise sqlite3.OperationalError
                names = [str(column[0]) for column in result.description]
            types = _sqlite_types(connection, sql, names, may_mix, database.place)
            schema = pa.schema([pa.field(name, kind) for name, kind in zip(names, types, strict=True)])
            hand.give(schema)
            with closing(connection.execute(sql)) as result:
                while rows := result.fetchmany(BLOCK_ROWS):
                    hand.give(_sqlite_batch(rows, schema))

    return running(work, lambda error: _sqlite_explained(error, database.place), database.place)


def _authorized(action: int, one: str | None, two: str | None, base: str | None, inner: str | None) -> int:
    """Allow reading of tables, and functions that touch no file."""
    is_function = action == sqlite3.SQLITE_FUNCTION
    if action not in _ALLOWED or (is_function and str(two).lower() in _FORBIDDEN_FUNCTIONS):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _sqlite_types(
    connection: sqlite3.Connection, sql: str, names: Sequence[str], may_mix: Callable[[str], bool], place: str
) -> list[pa.DataType]:
    """Find the type of each column by one pass over all its values."""
    columns = ", ".join(f"c{i}" for i in range(len(names)))
    counted = ", ".join(f"coalesce(max(typeof(c{i}) = '{what}'), 0)" for i in range(len(names)) for what in _CLASSES)
    (found,) = connection.execute(f"WITH q({columns}) AS ({sql}) SELECT {counted} FROM q")
    return [
        _sqlite_type(name, tuple(found[len(_CLASSES) * i : len(_CLASSES) * (i + 1)]), may_mix, place)
        for i, name in enumerate(names)
    ]


def _sqlite_type(name: str, classes: tuple[int, ...], may_mix: Callable[[str], bool], place: str) -> pa.DataType:
    has_integer, has_real, has_text, has_blob = map(bool, classes)
    if has_blob:
        problem = "has values of the type blob, which is neither text, number, truth value, date nor time"
        hint = "leave the column out, or turn it into text or numbers in a query"
        raise InputError(problem, path=place, column=name, hint=hint, remedy=("query",))
    if has_text and (has_integer or has_real):
        if not may_mix(name):
            hint = "make it one kind, or declare the column categorical to take all of it as text"
            problem = "mixes numbers and text"
            raise InputError(problem, path=place, column=name, hint=hint)
        return pa.string()
    if has_real:
        return pa.float64()
    return pa.int64() if has_integer else pa.string()


def _sqlite_batch(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    arrays = []
    for cells, column in zip(zip(*rows, strict=True), schema, strict=True):
        if pa.types.is_string(column.type):
            cells = tuple(cell if cell is None or isinstance(cell, str) else _number_text(cell) for cell in cells)
        elif pa.types.is_floating(column.type):
            cells = tuple(None if cell is None else float(cell) for cell in cells)
        arrays.append(pa.array(cells, column.type))
    return pa.record_batch(arrays, schema=schema)


def _number_text(cell: float) -> str:
    is_whole = isinstance(cell, float) and cell.is_integer() and abs(cell) <= 2**53
    return str(int(cell)) if is_whole else repr(cell)


_SQLITE_SENTENCES = {
    "SQLITE_BUSY": ("is being written to by another program", "try again when it is done"),
    "SQLITE_LOCKED": ("is being written to by another program", "try again when it is done"),
    "SQLITE_CANTOPEN": ("cannot be opened", "check that this user may read it, and the -wal and -shm files next to it"),
    "SQLITE_NOTADB": ("is encrypted, or damaged", "open it with the program that wrote it, and copy it from there"),
    "SQLITE_CORRUPT": ("is damaged", "restore it from a backup"),
    "SQLITE_READONLY": ("may only be read, and the query would write", "give a SELECT statement"),
    "SQLITE_SCHEMA": ("may only be read, and the query would do more", "give a SELECT statement"),
    "SQLITE_AUTH": ("may only be read, and the query would do more", "give a SELECT statement"),
    "SQLITE_ERROR": (_WRONG_QUERY, "try the query in the program sqlite3 to see what"),
}


def _sqlite_explained(error: BaseException, place: str) -> SfumatoError:
    name = str(getattr(error, "sqlite_errorname", ""))
    if name == "SQLITE_INTERRUPT":
        return too_slow(place)
    known = next((words for start, words in _SQLITE_SENTENCES.items() if name.startswith(start)), None)
    if known is None and isinstance(error, sqlite3.Warning | sqlite3.ProgrammingError):
        known = ("runs one statement at a time, and got several", "give one SELECT statement")
    if known is None and isinstance(error, sqlite3.OperationalError | UnicodeError):
        known = ("holds text that is not valid Unicode, or gives no rows", "give a SELECT statement of readable text")
    problem, hint = known or ("cannot be read", "try the query in the program sqlite3 to see why")
    return InputError(problem, path=place, hint=hint)


# DuckDB.

_DUCKDB_TABLES = """
SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal
UNION ALL SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1, 2
"""


def duckdb_rows(
    database: Database, spill: Path | None = None, memory: int | None = None
) -> AbstractContextManager[QueryRows]:
    """Run a query, or read a table, of a DuckDB file.

    Parameters
    ----------
    spill : Path or None
        Private folder for what does not fit into ``memory``; without it nothing is written anywhere.
    """
    config: dict[str, Any] = {
        "enable_external_access": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
        "temp_directory": "" if spill is None else str(spill),
        **({} if memory is None else {"memory_limit": f"{max(memory // 1000, 1)}KB"}),
    }

    def work(hand: Hand) -> None:
        import duckdb

        with (
            duckdb.connect(str(database.path), read_only=True, config=config) as connection,
            hand.cancelled_by(connection.interrupt),
        ):
            connection.execute("SET enable_progress_bar = false")
            connection.execute("SET lock_configuration = true")
            sql = database.query
            if sql is None:
                rows = connection.execute(_DUCKDB_TABLES).fetchall()
                listed = [((str(schema), str(name)), schema == "main") for schema, name in rows]
                sql = f"SELECT * FROM {quoted(*chosen_table(database, listed))}"
            relation = connection.sql(_only_select(connection, sql, database.place))
            _refuse_unplain(relation, database.place)
            read = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch  # the second: DuckDB 1
            with read(BLOCK_ROWS) as reader:
                hand.give(reader.schema)
                for batch in reader:
                    hand.give(batch)

    return running(work, lambda error: _duckdb_explained(error, database.place), database.place)


def _only_select(connection: Any, sql: str, place: str) -> str:
    import duckdb

    statements = connection.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        problem = "runs one SELECT statement, and got something else"
        raise InputError(problem, path=place, hint="give one SELECT statement")
    return str(statements[0].query)


def _refuse_unplain(relation: Any, place: str) -> None:
    """Refuse what would look like text: JSON is text with another name."""
    for name, kind in zip(relation.columns, relation.types, strict=True):
        if str(kind).upper() in ("JSON", "BIT", "INTERVAL", "BLOB"):
            problem = f"has the type {str(kind).lower()}, which is neither text, number, truth value, date nor time"
            hint = "leave the column out, or turn it into text or numbers in a query"
            raise InputError(problem, path=place, column=str(name), hint=hint, remedy=("query",))


_DUCKDB_SENTENCES = {
    "IOException": ("cannot be opened", "close the program that has it open, and check that this version can read it"),
    "ConnectionException": ("cannot be opened", "close what else has it open in this process"),
    "SerializationException": ("cannot be opened", "it may have been written by a newer version of DuckDB"),
    "PermissionException": ("may only be read, and the query would do more", "give a SELECT statement of its tables"),
    "OutOfMemoryException": ("needs more memory for the query than is given", "give more, or narrow the query"),
}


def _duckdb_explained(error: BaseException, place: str) -> SfumatoError:
    name = type(error).__name__
    if name == "InterruptException":
        return too_slow(place)
    problem, hint = _DUCKDB_SENTENCES.get(name, (_WRONG_QUERY, "try the query in the program duckdb to see what"))
    return InputError(problem, path=place, hint=hint)
