"""Rows of a PostgreSQL server, through ADBC: one statement, in one read-only transaction.

The server says what is wrong in words that quote cells, and the driver in words that may show how it was called. None
of them is passed on: an error is its SQLSTATE, and a sentence of ours.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from typing import Any

import pyarrow as pa

from sfumato.errors import InputError, InvalidParameterError, SfumatoError
from sfumato.table.io.databases.address import Database
from sfumato.table.io.databases.choice import chosen_table, quoted
from sfumato.table.io.databases.streaming import Hand, QueryRows, most_seconds, running, too_slow

_CONNECT_SECONDS = 30
_READ_ONLY = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_SILENT = "SET LOCAL client_min_messages = error"
_LIMIT = """
SELECT set_config('statement_timeout', '{milliseconds}', true) FROM pg_catalog.pg_settings
WHERE name = 'statement_timeout' AND (setting::bigint = 0 OR setting::bigint > {milliseconds})
"""
"""Sets a limit, unless the server has a shorter one for this user."""
_TABLES = """
SELECT n.nspname, c.relname, n.nspname = ANY (pg_catalog.current_schemas(false)) AS near
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT')
ORDER BY 1, 2
"""

_SENTENCES = {
    "08": ("cannot be reached, or the connection was lost", "check host and port, and that the server runs"),
    "25": ("refuses the query: it would write, and only reading is allowed", "give a SELECT statement"),
    "28": ("refuses the login", "check PGUSER and PGPASSWORD (or PGPASSFILE, PGSERVICE) in the environment"),
    "3D": ("has no database of this name", "check the address"),
    "40": ("gave the query up because of other transactions", "try again"),
    "42": ("cannot run the query: a name, a type or its form is wrong", "try the query in psql to see what"),
    "42501": ("does not allow this user to read that", "ask for the right to SELECT, or read another table"),
    "22": ("stopped the query at a value that it cannot compute with", "try the query in psql to see which"),
    "53": ("has no memory, disk or connection left", "try again later, or ask who runs the server"),
    "57": ("stopped the query", "try again, or ask who runs the server"),
}
"""By SQLSTATE, or by its class, which are its first two characters."""

_STATE = re.compile(r"SQLSTATE: ([0-9A-Z]{5})\b", re.ASCII)
_OF_CONNECTING = (
    (("password", "authentication", "role", "pg_hba", "peer"), _SENTENCES["28"]),
    (("database",), _SENTENCES["3D"]),
    (("ssl", "certificate"), ("does not offer the secured connection asked for", "check sslmode and certificates")),
)
"""By words in what libpq says when there is no connection, which has no SQLSTATE."""


def server_rows(database: Database) -> AbstractContextManager[QueryRows]:
    """Run a query, or read a table, on a server; the result is as the driver gives it.

    Raises
    ------
    InvalidParameterError
        Without the driver.
    """
    driver = _driver()
    import adbc_driver_manager

    is_connected = threading.Event()

    def work(hand: Hand) -> None:
        with (
            driver.connect(_with_defaults(database.place)) as opened,
            adbc_driver_manager.AdbcConnection(opened) as connection,
        ):
            is_connected.set()
            connection.set_autocommit(False)
            try:
                for prepared in (_READ_ONLY, _SILENT, *_limits()):
                    with _run(connection, prepared, hand):
                        pass
                sql = database.query
                if sql is None:
                    with _run(connection, _TABLES, hand) as tables:
                        table = chosen_table(database, _listed(tables.read_all()))
                    sql = f"SELECT * FROM {quoted(*table)}"
                with _run(connection, _as_rows(sql), hand) as reader:
                    hand.give(reader.schema)
                    for batch in reader:
                        hand.give(batch)
            finally:
                with suppress(Exception):  # the server ends the transaction of a connection that is lost
                    connection.rollback()

    return running(work, lambda error: _explained(error, database.place, is_connected.is_set()), database.place)


def _driver() -> Any:
    try:
        import adbc_driver_postgresql
    except ImportError:
        hint, allowed = "pip install 'sfumato[io]'", "one with the extra 'io'"
        problem = "but it lacks adbc-driver-postgresql"
        raise InvalidParameterError("the installation", problem, allowed=allowed, hint=hint) from None
    return adbc_driver_postgresql


@contextmanager
def _run(connection: Any, sql: str, hand: Hand) -> Iterator[pa.RecordBatchReader]:
    """Run a statement, which can be cancelled meanwhile, and give its rows."""
    import adbc_driver_manager

    with adbc_driver_manager.AdbcStatement(connection) as statement, hand.cancelled_by(statement.cancel):
        statement.set_sql_query(sql)
        handle, _ = statement.execute_query()
        with closing(_reader(handle)) as reader:
            yield reader


def _reader(handle: Any) -> pa.RecordBatchReader:
    """Read batches by the manager's own reader, where there is one: pyarrow's forgets the SQLSTATE of an error."""
    try:
        from adbc_driver_manager._reader import AdbcRecordBatchReader
    except ImportError:
        return pa.RecordBatchReader.from_stream(handle)
    return AdbcRecordBatchReader._import_from_c(handle.address)


def _as_rows(sql: str) -> str:
    """Ask for the rows of a statement: what gives none, or is more than one statement, is no such thing to the server.

    Given as it is, COPY, DO and the like would be run. A comment at the end of it ends with its line.
    """
    return f"SELECT * FROM (\n{sql.strip().rstrip(';').rstrip()}\n) AS result"


def _limits() -> list[str]:
    seconds = most_seconds()
    return [_LIMIT.format(milliseconds=1000 * seconds)] if seconds else []


def _listed(tables: pa.Table) -> list[tuple[tuple[str, ...], bool]]:
    """Names of the tables, and whether they are found without the name of their schema."""
    schemas, names, near = (tables.column(i).to_pylist() for i in range(3))
    return [((schema, name), bool(is_near)) for schema, name, is_near in zip(schemas, names, near, strict=True)]


def _with_defaults(address: str) -> str:
    """Add what the environment does not say: a time limit, and a name for the server's list."""
    added = []
    if "connect_timeout=" not in address and "PGCONNECT_TIMEOUT" not in os.environ:
        added.append(f"connect_timeout={_CONNECT_SECONDS}")
    if "PGAPPNAME" not in os.environ:
        added.append("application_name=sfumato")
    return address + ("&" if "?" in address else "?") + "&".join(added) if added else address


def _explained(error: BaseException, place: str, is_connected: bool) -> SfumatoError:
    """Say in our own words what a driver's error is about; nothing of its text but the SQLSTATE is passed on."""
    told = _STATE.search(str(error))
    state = getattr(error, "sqlstate", None) or (told[1] if told else "")
    if state == "57014":
        return too_slow(place)
    if _STATE.fullmatch(f"SQLSTATE: {state}"):
        problem, hint = _SENTENCES.get(state) or _SENTENCES.get(state[:2]) or ("cannot run the query", "try it in psql")
        return InputError(f"{problem} (SQLSTATE {state})", path=place, hint=hint)
    if is_connected:
        problem, hint = "stopped answering, or gave rows that cannot be read", "try the query in psql to see why"
        return InputError(problem, path=place, hint=hint)
    text = str(error).lower()
    for words, (problem, hint) in _OF_CONNECTING:
        if any(word in text for word in words):
            return InputError(problem, path=place, hint=hint)
    problem, hint = _SENTENCES["08"]
    return InputError(problem, path=place, hint=hint)
