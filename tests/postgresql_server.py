"""A real PostgreSQL server for the tests: started when the first test needs it, gone with the process.

``initdb`` refuses to be root, so as root the server belongs to the user ``postgres`` or ``nobody``.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

USER = "sfumato_tests"
PASSWORD = "canary-5f0e1d9c7b"
"""Fed through every error path, and looked for in all that is written."""
_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "shared_buffers": "16MB",
    "max_connections": "20",
    "max_wal_size": "64MB",
    "autovacuum": "off",
    "listen_addresses": "127.0.0.1",
}
_TRIES = 5


@dataclass(frozen=True)
class Server:
    """A server that runs, with one user, who logs in by password from the loopback."""

    port: int
    folder: Path

    @property
    def address(self) -> str:
        """Address of its database, without credentials."""
        return f"postgresql://127.0.0.1:{self.port}/postgres"

    def run(self, sql: str, *, rows: Any = None, table: str = "") -> None:
        """Run statements, which may write; or write Arrow rows into a new table."""
        import adbc_driver_postgresql.dbapi as driver

        uri = f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/postgres"
        with driver.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
            if rows is not None:
                cursor.adbc_ingest(table, rows, mode="replace")
            for statement in filter(None, (part.strip() for part in sql.split(";\n"))):
                cursor.execute(statement)

    def asked(self, sql: str) -> list[tuple[Any, ...]]:
        """Ask as the tests do, not as sfumato does."""
        import adbc_driver_postgresql.dbapi as driver

        uri = f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/postgres"
        with driver.connect(uri) as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())


@contextmanager
def running_server() -> Iterator[Server]:
    """Start a server in a temporary folder, and stop and remove it at the end; skips loudly where that cannot be."""
    pytest.importorskip("adbc_driver_postgresql", reason="the extra io is not installed: no test talks to PostgreSQL")
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="sfumato-tests-pg-", dir="/tmp"))  # short: the path of a socket is
    try:
        user = _owner(folder)
        own = ["--no-sync", "--no-instructions", "--encoding=UTF8", "--locale=C", "--auth=scram-sha-256"]
        named = [f"--username={USER}", f"--pwfile={_password_file(folder)}", f"--pgdata={folder / 'data'}"]
        _call([programs / "initdb", *own, *named], user, folder)
        server = _started(programs, folder, user)
        try:
            yield server
        finally:
            _call([programs / "pg_ctl", "stop", "-w", "-m", "immediate", "-D", folder / "data"], user, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    """Folder of the server's programs, the newest version."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[4]))
    if found:
        return found[-1].parent
    if (named := shutil.which("initdb")) is not None:
        return Path(named).parent
    pytest.skip("NO POSTGRESQL: install it (tests/install_postgresql.sh) to run the tests with a real server")


def _owner(folder: Path) -> pwd.struct_passwd | None:
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        os.chown(folder, user.pw_uid, user.pw_gid)
        return user
    pytest.skip("NO POSTGRESQL: a server refuses to be root, and there is neither a user postgres nor nobody")


def _password_file(folder: Path) -> Path:
    path = folder / "password"
    path.write_text(PASSWORD)
    path.chmod(0o644)
    return path


def _started(programs: Path, folder: Path, user: pwd.struct_passwd | None) -> Server:
    for _ in range(_TRIES):  # another process may take the free port first
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
        options += f" -c unix_socket_directories={folder} -p {port}"
        where = ["-D", folder / "data", "-l", folder / "log"]
        start = [programs / "pg_ctl", "start", "-w", "-t", "120", *where, "-o", options]
        if _call(start, user, folder, must=False):
            return Server(port, folder)
    pytest.fail(f"the server did not start: {(folder / 'log').read_text()[-500:]}")


def _call(command: list[Any], user: pwd.struct_passwd | None, folder: Path, *, must: bool = True) -> bool:
    who: dict[str, Any] = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    with (folder / "calls").open("wb") as said:  # no pipe: the server would keep it open
        done = subprocess.run(
            [str(part) for part in command],
            env={**plain, "LC_ALL": "C"},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,  # a Ctrl-C of the tests is not for the server
            check=False,
            **who,
        )
    if must and done.returncode:
        pytest.fail(f"{Path(str(command[0])).name} failed: {(folder / 'calls').read_text()[-500:]}")
    return done.returncode == 0
