"""Reading a million rows from a PostgreSQL server on the same machine: the door against the driver alone."""

from __future__ import annotations

import atexit
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.contest import Benchmark, Contender, Outcome

N_ROWS = 1_000_000
TABLE = f"""
CREATE TABLE people AS SELECT i AS id, (random() * 80)::int AS age, (ARRAY['f', 'm'])[1 + i % 2] AS sex,
lpad((i::bigint * 7919 % 9999)::text, 5, '0') AS zip, date '1950-01-01' + (random() * 20000)::int AS born,
(random() * 999)::numeric(6, 1) AS pay, random() < 0.3 AS ill, 'job' || (random() * 40)::int AS job,
(random() * 5)::int2 AS children FROM generate_series(1, {N_ROWS}) AS i
"""


def load(folder: Path) -> str:
    """Start a server that ends with this process, and fill it; gives its address."""
    from tests.postgresql_server import PASSWORD, USER, running_server

    server = atexit_stack().enter_context(running_server())
    server.run(TABLE)
    os.environ.update(PGUSER=USER, PGPASSWORD=PASSWORD)
    return server.address


def atexit_stack() -> ExitStack:
    """Keep what is closed at the end of the process."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack


def read_by_sfumato(address: str) -> Any:
    """Find types, hash and dictionary codes, as a release needs them."""
    from sfumato.table.io.read import ReadOptions, read_table

    return read_table(address, options=ReadOptions(table="people"))


def read_out_of_core(address: str) -> Any:
    """Read the same within 500 MB."""
    from sfumato.engines.blocks.rows import open_large
    from sfumato.table.io.read import ReadOptions

    return open_large(address, memory=500_000_000, options=ReadOptions(table="people"))


def read_by_driver(address: str) -> Any:
    """Take Arrow columns as the driver gives them."""
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM people")
        return cursor.fetch_arrow_table()


def of_table(address: str, table: Any) -> Outcome:
    """Count rows, as the answer that all must give."""
    return Outcome(table.n_rows)


def of_arrow(address: str, cells: Any) -> Outcome:
    """Count rows, as the answer that all must give."""
    return Outcome(cells.num_rows)


PACKAGES = ("sfumato", "adbc-driver-postgresql", "pyarrow")
BENCHMARK = Benchmark(
    title="1,000,000 rows × 9 columns of a PostgreSQL server on this machine, read into a coded table with its hash",
    goal="at most 2 × the time of the ADBC driver alone, which gives Arrow columns",
    contenders=(
        Contender("sfumato read_table", read_by_sfumato, load, PACKAGES, 5, assess=of_table),
        Contender("ADBC alone", read_by_driver, load, ("adbc-driver-postgresql",), 5, assess=of_arrow),
        Contender("sfumato out of core, 500 MB", read_out_of_core, load, PACKAGES, 1, assess=of_table),
    ),
)
