"""Which database is meant: an address without credentials, or a file that is one.

Whoever logs in is known from the environment alone, as libpq reads it (``PGUSER``, ``PGPASSWORD``, ``PGPASSFILE``,
``PGSERVICE``). An address that holds a name or a secret is refused before anything of it is shown: what is shown is put
together anew from the parts that were found harmless.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Literal, TypeAlias
from urllib.parse import parse_qsl, quote, urlencode

from sfumato.errors import InputError, InvalidParameterError
from sfumato.table.io.bytes import open_stored, with_head

Kind: TypeAlias = Literal["postgresql", "sqlite", "duckdb"]
NAMES: dict[Kind, str] = {
    "postgresql": "a PostgreSQL database",
    "sqlite": "an SQLite database",
    "duckdb": "a DuckDB database",
}
FILES: tuple[Kind, ...] = ("sqlite", "duckdb")
SUFFIXES = (".sqlite", ".sqlite3", ".db", ".db3", ".duckdb", ".ddb")
"""Names of files that are databases; which, their first bytes tell."""

_SCHEMES: dict[str, Kind] = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "sqlite": "sqlite",
    "sqlite3": "sqlite",
    "duckdb": "duckdb",
}
_SCHEME = re.compile(rf"({'|'.join(_SCHEMES)})://", re.IGNORECASE)
_HEAD_BYTES = 16
_HOSTS = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]*)(?::[0-9]{1,5})?", re.ASCII)
_DATABASE = re.compile(r"[\w.$-]*")
_HOST_FOLDER = re.compile(r"/[\w./-]*|[A-Za-z0-9._,-]+")
_SETTINGS = {
    "host": _HOST_FOLDER,
    "port": re.compile(r"[0-9,]{1,60}", re.ASCII),
    "sslmode": re.compile(r"[a-z-]{1,20}", re.ASCII),
    "sslrootcert": re.compile(r"[\w./ -]+"),
    "channel_binding": re.compile(r"[a-z]{1,20}", re.ASCII),
    "gssencmode": re.compile(r"[a-z]{1,20}", re.ASCII),
    "target_session_attrs": re.compile(r"[a-z-]{1,20}", re.ASCII),
    "connect_timeout": re.compile(r"[0-9]{1,6}", re.ASCII),
}
"""Settings of libpq that an address may hold: where the server is, and how the line to it is secured."""
_ENVIRONMENT = "set PGUSER and PGPASSWORD, or PGPASSFILE or PGSERVICE, in the environment"


@dataclass(frozen=True)
class Database:
    """A database that is to be read.

    Parameters
    ----------
    kind : {"postgresql", "sqlite", "duckdb"}
    place : str
        What messages and project files call it: the address, or the path of the file; never a credential.
    path : Path or None
        Where the file is.
    """

    kind: Kind
    place: str
    path: Path | None = None
    query: str | None = field(default=None, repr=False)
    table: str | None = None

    @property
    def label(self) -> str:
        """What manifests call it: the table, or that it is the result of a query, which may hold values."""
        return self.table or ("query" if self.query is not None else self.kind)


def is_address(source: object) -> bool:
    """Whether a source is the address of a database of a kind that can be read.

    Examples
    --------
    >>> is_address("postgresql://db.example/people"), is_address("sqlite:///people.db"), is_address("people.db")
    (True, True, False)
    """
    return isinstance(source, str) and _SCHEME.match(source) is not None


def database_of(
    source: str | os.PathLike[str], *, format: str | None = None, query: str | None = None, table: str | None = None
) -> Database | None:
    """Find the database that an address, a suffix or a format names; ``None`` for every other file.

    Raises
    ------
    InputError
        If an address holds a credential or cannot be understood, or a file is not the database that its name says.
    InvalidParameterError
        If both a table and a query are named, or one of them for a file that is no database.

    Examples
    --------
    >>> database_of("postgresql://db.example:5433/people", table="visits")
    Database(kind='postgresql', place='postgresql://db.example:5433/people', path=None, table='visits')
    >>> try:
    ...     database_of("postgresql://me:secret@db.example/people")
    ... except InputError as error:
    ...     error.message
    'postgresql://…: holds a user name or a password.'
    """
    found = _named(source, format)
    if found is None:
        for name, given in (("query", query), ("table", table)):
            if given is not None:
                allowed = "given for a database (postgresql://…, an SQLite or a DuckDB file)"
                raise InvalidParameterError(name, "got another kind of source", allowed=allowed)
        return None
    if query is not None and table is not None:
        raise InvalidParameterError("query and table", "got both", allowed="given one at a time")
    if query is not None and not query.strip().strip(";").strip():
        raise InvalidParameterError("query", "got an empty one", allowed="one SELECT statement")
    if (query or table) and "\0" in f"{query}{table}":
        raise InvalidParameterError("query and table", "got one with a NUL character", allowed="text")
    return Database(found.kind, found.place, found.path, query, table)


def is_database(source: str | os.PathLike[str], format: str | None = None) -> bool:
    """Whether a source has tables, by its address, its suffix, or, where such a format is named, its first bytes.

    Raises
    ------
    InputError, InvalidParameterError
        See :func:`database_of`.
    """
    if format in FILES and not is_address(os.fspath(source)):
        return _kind_by_bytes(os.fspath(source)) is not None
    return _named(source, format) is not None


def _named(source: str | os.PathLike[str], format: str | None) -> Database | None:
    text = os.fspath(source)
    if (scheme := _SCHEME.match(text)) is not None:
        kind = _SCHEMES[scheme[1].lower()]
        if format not in (None, kind):
            allowed = f"{kind}, or not given, for such an address"
            raise InvalidParameterError("format", "got another one", allowed=allowed)
        return _server(text[scheme.end() :]) if kind == "postgresql" else _file_of_address(kind, text[scheme.end() :])
    if format == "postgresql":
        allowed = "given for an address such as postgresql://host/database"
        raise InvalidParameterError("format postgresql", "got a path", allowed=allowed)
    if format is not None:
        for kind in FILES:
            if kind == format:
                return _file(kind, text)
        return None
    suffix = PurePath(text).suffix.lower()
    if suffix not in SUFFIXES:
        return None
    told = _kind_by_bytes(text)
    if told is not None:
        return Database(told, text, Path(text))
    problem = f"has the suffix {suffix} of a database, but is neither an SQLite nor a DuckDB database"
    raise InputError(problem, path=text, hint="if it is something else, name its format", remedy=("format",))


def _file_of_address(kind: Kind, rest: str) -> Database:
    """Take the path out of an address as SQLAlchemy writes it: three slashes, then the path, absolute with a fourth."""
    if not rest.startswith("/") or len(rest) == 1 or "?" in rest:
        problem = "is not the address of a file"
        hint = f"write {kind}:///file.db (or {kind}:////folder/file.db), or name the path of the file"
        raise InputError(problem, path=f"{kind}://…", hint=hint)
    return _file(kind, rest[1:])


def _file(kind: Kind, path: str) -> Database:
    if _kind_by_bytes(path) != kind:
        problem = f"is not {NAMES[kind]}"
        raise InputError(problem, path=path)
    return Database(kind, path, Path(path))


def _kind_by_bytes(path: str) -> Kind | None:
    with open_stored(path, most_held=0) as stored:
        head, _ = with_head(stored.first_pass(), _HEAD_BYTES)
    if head.startswith(b"SQLite format 3\0"):
        return "sqlite"
    return "duckdb" if head[8:12] == b"DUCK" else None


def _server(rest: str) -> Database:
    """Put the address of a server together anew from its parts, each of which must look like what it is."""
    before, _, settings = rest.partition("?")
    hosts, _, name = before.partition("/")
    if "@" in before or "@" in settings.replace("%40", "@"):
        problem = "holds a user name or a password"
        raise _refused(problem, f"leave them out of the address, and {_ENVIRONMENT}")
    are_hosts = all(_HOSTS.fullmatch(host) for host in hosts.split(","))
    if not are_hosts or not _DATABASE.fullmatch(name):
        problem = "is not an address of the form postgresql://host:port/database"
        raise _refused(problem, f"leave credentials out of it, and {_ENVIRONMENT}")
    kept = [_setting(key, value) for key, value in parse_qsl(settings, keep_blank_values=True)]
    query = f"?{urlencode(kept, quote_via=quote, safe='/,')}" if kept else ""
    return Database("postgresql", f"postgresql://{hosts}/{name}{query}")


def _setting(key: str, value: str) -> tuple[str, str]:
    form = _SETTINGS.get(key)
    if form is None:
        problem = "has a setting that may not be given in an address"
        raise _refused(problem, f"allowed there: {', '.join(_SETTINGS)}; for everything else {_ENVIRONMENT}")
    if not form.fullmatch(value):
        problem = f"has a value of {key} that is not of its form"
        raise _refused(problem, "see PostgreSQL's list of connection parameters")
    return key, value


def _refused(problem: str, hint: str) -> InputError:
    return InputError(problem, path="postgresql://…", hint=hint)
