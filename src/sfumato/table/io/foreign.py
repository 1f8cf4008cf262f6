"""What holds a table but cannot be read here: files of other programs, and databases by address.

They are told by their first bytes, which do not lie by accident, and else by their suffix; what is said is what is
known. An address may hold a password, so no more of it than its beginning is ever shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import NoReturn

from sfumato.errors import InputError
from sfumato.table.io.bytes import open_stored, unzipped, with_head

HEAD_BYTES = 64
"""As many bytes of a file are enough to know what it is."""

_ADDRESS = re.compile(r"(jdbc:)?([a-z][a-z0-9]*)(\+[a-z0-9_]+)?://?", re.IGNORECASE)
_IN_PYTHON = "or give the frame itself to sfumato in Python"


@dataclass(frozen=True)
class _Foreign:
    """A kind of file that is known by sight: what it is, its suffixes, its first bytes, and the way out.

    With ``is_text`` the first bytes could also begin a text of another kind, if somebody says so. With a ``format`` it
    can be read when its name, or somebody, says that it is of this one.
    """

    what: str
    suffixes: tuple[str, ...]
    is_it: Callable[[bytes], bool]
    way_out: str
    is_text: bool = False
    format: str = ""


def _starts(*marks: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(marks)


def _never(head: bytes) -> bool:
    """Say nothing: such a file has no first bytes of its own."""
    return False


def _is_old_stata(head: bytes) -> bool:
    """Versions 102 to 115: the number, the order of bytes, and a one."""
    return len(head) >= 4 and 102 <= head[0] <= 115 and head[1] in (1, 2) and head[2] == 1 and head[3] == 0


def _is_portable(head: bytes) -> bool:
    """Five splash lines, the second of which says it in ASCII; a header of 456 characters, then the mark."""
    return b"ASCII SPSS PORT FILE" in head[:200]


_SAS_MARK = bytes.fromhex("000000000000000000000000c2ea8160b31411cfbd92080009c7318c181f1011")
# A key and its colon: a column may be called "{" and hold quoted texts.
_OBJECT = re.compile(rb'[\s\xef\xbb\xbf]*(?:\[\s*)?\{\s*"(?:[^"\\]|\\.)*"\s*:', re.DOTALL)
_LIST = re.compile(rb"[\s\xef\xbb\xbf]*\[\s*\[")

_FOREIGN = (
    _Foreign("an SPSS file", (), _starts(b"$FL2@(#)", b"$FL3@(#)"), "read it as sav", format="sav"),
    _Foreign("a portable SPSS file", (), _is_portable, "read it as por", format="por"),
    _Foreign(
        "a Stata file",
        (),
        lambda head: head.startswith(b"<stata_dta>") or _is_old_stata(head),
        "read it as dta",
        format="dta",
    ),
    _Foreign("a SAS file", (), _starts(_SAS_MARK), "read it as sas7bdat", format="sas7bdat"),
    _Foreign("a SAS transport file", (), _starts(b"HEADER RECORD*******"), "read it as xpt", format="xpt"),
    _Foreign(
        "an SQLite database",
        (".sqlite", ".sqlite3", ".db", ".db3"),
        _starts(b"SQLite format 3\0"),
        "name its format, sqlite, or write a table of it to CSV with the program sqlite3",
        format="sqlite",
    ),
    _Foreign(
        "a DuckDB database",
        (".duckdb", ".ddb"),
        lambda head: head[8:12] == b"DUCK",
        "name its format, duckdb, or write a table of it to Parquet: COPY NAME TO 'data.parquet'",
        format="duckdb",
    ),
    _Foreign(
        "JSON",
        (".json",),
        lambda head: bool(_OBJECT.match(head) or _LIST.match(head)),
        "if each line is an object, read it as jsonl; else write its records to CSV or Parquet: "
        f"pandas.read_json(…).to_parquet(…), {_IN_PYTHON}",
        is_text=True,
    ),
    _Foreign(
        "an R file",
        (".rds", ".rdata", ".rda"),
        _starts(b"RDX2\nX\n", b"RDX3\nX\n", b"RDA2\nA\n", b"RDA3\nA\n", b"X\n\0\0\0\2", b"X\n\0\0\0\3"),
        "write the data frame to CSV in R: write.csv(NAME, 'data.csv', row.names = FALSE)",
    ),
    _Foreign(
        "an Arrow or Feather file",
        (".arrow", ".feather", ".ipc"),
        _starts(b"ARROW1\0\0", b"FEA1\0"),
        f"write it to Parquet: pyarrow.feather.read_table(…), pyarrow.parquet.write_table(…), {_IN_PYTHON}",
    ),
    _Foreign(
        "an ORC file",
        (".orc",),
        lambda head: head.startswith(b"ORC") and any(byte < 9 for byte in head),
        f"write it to Parquet: pyarrow.orc.read_table(…), pyarrow.parquet.write_table(…), {_IN_PYTHON}",
    ),
    _Foreign(
        "an HDF5 file",
        (".h5", ".hdf5", ".hdf"),
        _starts(b"\x89HDF\r\n\x1a\n"),
        f"write the table in it to Parquet: pandas.read_hdf(…).to_parquet(…), {_IN_PYTHON}",
    ),
    _Foreign(
        "an Access database",
        (".mdb", ".accdb"),
        _starts(b"\0\1\0\0Standard Jet DB", b"\0\1\0\0Standard ACE DB"),
        "export a table of it as CSV (in Access: External Data, Text File)",
    ),
    _Foreign("a PDF file", (".pdf",), _starts(b"%PDF-"), "get the table as CSV, Excel or Parquet"),
    _Foreign("XML", (".xml",), _starts(b"<?xml"), "write its records to CSV or Parquet", is_text=True),
    _Foreign("a web page", (".html", ".htm"), _never, "save the table in it as CSV"),
    _Foreign("a pickle of Python", (".pkl", ".pickle"), _never, f"write the frame to Parquet, {_IN_PYTHON}"),
)

_DATABASES = {
    "postgresql": "a PostgreSQL database",
    "postgres": "a PostgreSQL database",
    "redshift": "a Redshift database",
    "mysql": "a MySQL database",
    "mariadb": "a MariaDB database",
    "sqlite": "an SQLite database",
    "duckdb": "a DuckDB database",
    "oracle": "an Oracle database",
    "mssql": "a SQL Server database",
    "sqlserver": "a SQL Server database",
    "snowflake": "a Snowflake database",
    "bigquery": "a BigQuery database",
    "clickhouse": "a ClickHouse database",
    "mongodb": "a MongoDB database",
    "db2": "a Db2 database",
    "trino": "a Trino database",
    "hive": "a Hive database",
}


def refuse_address(source: str | os.PathLike[str]) -> None:
    """Refuse what is no path but the address of a database or of a file elsewhere.

    Raises
    ------
    InputError
        Shows the kind of address and nothing else of it.

    Examples
    --------
    >>> try:
    ...     refuse_address("postgresql://me:secret@db/people")
    ... except InputError as error:
    ...     error.message
    'postgresql://…: is the address of a PostgreSQL database, which cannot be read in this form or place.'
    """
    found = _ADDRESS.match(str(source))
    if found is None or (not found[0].endswith("//") and found[1] is None and found[2].lower() not in _DATABASES):
        return
    scheme = found[2].lower()
    if len(scheme) == 1:  # a drive of Windows
        return
    shown = f"{found[1] or ''}{scheme}{found[3] or ''}://…"
    if scheme in _DATABASES or found[1]:
        what = _DATABASES.get(scheme, "a database")
        problem = f"is the address of {what}, which cannot be read in this form or place"
        known = "in commands and project files postgresql://host/database, sqlite:///file.db, duckdb:///file.duckdb"
        hint = f"{known}; from others write the result of a query to CSV or Parquet and read that file"
    elif scheme == "file":
        problem, hint = "is an address, and files are named by their path", "leave file:// out"
    else:
        problem = "is a remote address, and only files of this machine can be read"
        hint = "download the file, and name its path"
    raise InputError(problem, path=shown, hint=hint)


def refuse_foreign_suffix(path: str | os.PathLike[str]) -> None:
    """Refuse a file whose suffix represents a format that cannot be read, by its first bytes where they tell more.

    Raises
    ------
    InputError
        If the suffix is such a one, or the file of this name cannot be opened.
    """
    suffixes = [suffix.lower() for suffix in PurePath(path).suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    named = next((kind for kind in _FOREIGN if suffixes and suffixes[-1] in kind.suffixes), None)
    if named is None:
        return
    with open_stored(path, most_held=0) as stored:
        head, _ = with_head(unzipped(stored.first_pass(), stored), HEAD_BYTES)
        refuse_foreign_bytes(head, stored.name)
        problem = f"has the suffix {suffixes[-1]} of {named.what}, which this version cannot read"
        hint = f"{named.way_out}; if it is something else, name its format"
        raise InputError(problem, path=stored.name, hint=hint, remedy=("format",))


def refuse_foreign_bytes(head: bytes, name: str, *, is_declared: bool = False) -> None:
    """Refuse a file whose first bytes say that it is of a format that cannot be read.

    With ``is_declared`` somebody says that it is a text of another format, which is believed of a text.
    """
    for kind in _FOREIGN:
        if kind.is_it(head) and not (kind.is_text and is_declared):
            _refuse(kind, name)


def _refuse(kind: _Foreign, name: str) -> NoReturn:
    if kind.format:
        problem = f"is {kind.what}, which its name does not say"
        raise InputError(problem, path=name, hint=kind.way_out, remedy=("format",))
    problem = f"is {kind.what}, which this version cannot read"
    raise InputError(problem, path=name, hint=kind.way_out)
