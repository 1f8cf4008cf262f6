"""Where rows are counted: Narwhals expressions over an embedded DuckDB, or over the caller's own frame.

Counting never sees a column's name: the columns that are needed are renamed ``c0``, ``c1``, … by position, because
DuckDB takes names that differ only in case for the same, renames them silently and knows no empty name.
"""

from __future__ import annotations

import csv
import ctypes
import gzip
import os
import re
import sys
import threading
import weakref
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeGuard

import narwhals.stable.v2 as nw
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.errors import ColumnNotFoundError, InputError, InvalidParameterError, SchemaError
from sfumato.private_folders import PrivateFolder
from sfumato.schema import DEFAULT_MISSING_TOKENS
from sfumato.table.coding import Table
from sfumato.table.io.frames import is_dataset, without_quoted_cells

if TYPE_CHECKING:  # loaded where it is used: most tables are counted without it
    import duckdb

# Files scanned by DuckDB without reading them into memory.


DELIMITERS = (",", ";", "\t", "|")
TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
MAX_TEXT_COLUMNS = 2_000
BLANKS = "".join(sign for sign in map(chr, range(0x3001)) if sign.isspace())


def is_path(source: Any) -> TypeGuard[str | Path]:
    """Whether a source is named by a path."""
    return isinstance(source, str | Path)


def open_file(
    cursor: duckdb.DuckDBPyConnection, path: Path, columns: Collection[str] | None = None
) -> tuple[list[str], duckdb.DuckDBPyRelation]:
    """Return the names of a Parquet or CSV file's columns, and a relation that scans them in that order.

    Of a Parquet file the values are taken as they are. A CSV file (``.csv``, ``.tsv``, ``.txt``, also with ``.gz``) is
    counted as :func:`sfumato.table.io.read.read_table` would read it: UTF-8 with a header, fields are texts without the
    blanks around them (``007`` is not ``7``), and the usual tokens for a missing value are null. Nothing is guessed but
    the separator, the one of ``, ; tab |`` that cuts the header into most names: a file that does not fit is an error,
    not fewer rows. Only an empty line of a file of one column differs: here it is a missing value.

    With ``columns``, only these are opened; when there are none, one that can be counted.
    """
    if not path.is_file():
        raise InputError(problem="no such file", path=path)
    if path.suffix.lower() == ".parquet":
        names, relation = pq.read_schema(path).names, cursor.read_parquet(_literal(path))
        chosen, own_names = _chosen(names, columns), relation.columns
        scanned = ['"' + own_names[i].replace('"', '""') + '"' for i in chosen]
    else:
        names, relation = _open_text(cursor, path)
        chosen = _chosen(names, columns)
        if len(chosen) > MAX_TEXT_COLUMNS:
            problem = f"{len(chosen):,} columns are too many to scan at once (at most {MAX_TEXT_COLUMNS:,})"
            raise InputError(problem, path=path, hint="name the columns you need, or read the file into a table")
        scanned = [_cleaned(f"c{i}") for i in chosen]
    opened = relation.project(", ".join(f"{column} AS c{i}" for column, i in zip(scanned, chosen, strict=True)))
    return [names[i] for i in chosen], opened


def _chosen(names: list[str], columns: Collection[str] | None) -> list[int]:
    for column in columns or ():
        if column not in names:
            raise ColumnNotFoundError(column, names)
    return [i for i, name in enumerate(names) if columns is None or name in columns] or [0]


def _open_text(cursor: duckdb.DuckDBPyConnection, path: Path) -> tuple[list[str], duckdb.DuckDBPyRelation]:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    if not suffixes or suffixes[-1] not in TEXT_SUFFIXES:
        hint = "scanned are .parquet, .csv, .tsv and .txt, the last three also as .gz"
        raise InputError(problem="not a kind of file that can be scanned", path=path, hint=hint)
    delimiter, names = _read_header(path)
    relation = cursor.read_csv(
        _literal(path),
        header=True,
        auto_detect=False,
        columns={f"c{i}": "VARCHAR" for i in range(len(names))},
        delimiter=delimiter,
        quotechar='"',
        escapechar='"',
    )
    return names, relation


def _cleaned(column: str) -> str:
    """Write SQL for a text without the blanks around it, and null where it means a missing value."""
    at_an_end = _quoted(f"^[{BLANKS}]|[{BLANKS}]$")
    text = f"CASE WHEN regexp_matches({column}, {at_an_end}) THEN trim({column}, {_quoted(BLANKS)}) ELSE {column} END"
    plain = [token for token in DEFAULT_MISSING_TOKENS if not any(mark in token for mark in _MARKS)]
    marked = [token for token in DEFAULT_MISSING_TOKENS if token not in plain]
    has_mark = " OR ".join(f"contains({column}, {_quoted(mark)})" for mark in _MARKS)
    rest = f"CASE WHEN {has_mark} THEN {_without(text, marked)} ELSE {text} END"  # few texts are compared with many
    return _without(text, plain, rest)  # trim alone takes ten times as long; IN (…) becomes a join a column


_MARKS = (" ", "/", ".")


def _without(text: str, tokens: Sequence[str], otherwise: str | None = None) -> str:
    """Write SQL for null where a text is one of some tokens, and else another expression, or the text."""
    cases = " ".join(f"WHEN {_quoted(token)} THEN NULL" for token in tokens)
    return f"CASE {text} {cases} ELSE {otherwise or text} END"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _read_header(path: Path) -> tuple[str, list[str]]:
    try:
        headers = {delimiter: _header_cut_by(path, delimiter) for delimiter in DELIMITERS}
    except (gzip.BadGzipFile, EOFError):
        raise InputError(problem="the file is not compressed as its name says", path=path) from None
    delimiter = max(DELIMITERS, key=lambda candidate: len(headers[candidate]))
    names = [name.strip() for name in headers[delimiter]]
    if not names:
        raise InputError(problem="the file does not start with a header", path=path, line=1)
    if any(map(_has_undecoded, names)):
        raise InputError(problem="the header is not UTF-8 text", path=path, line=1)
    return delimiter, names


def _header_cut_by(path: Path, delimiter: str) -> list[str]:
    open_text = gzip.open if path.suffix.lower() == ".gz" else open
    with open_text(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
        try:
            return next(csv.reader(text, delimiter=delimiter), [])
        except csv.Error:  # an endless field
            return []


def _has_undecoded(name: str) -> bool:
    return any("\udc80" <= sign <= "\udcff" for sign in name)


def _literal(path: Path) -> str:
    """Keep DuckDB from taking ``*``, ``?`` and ``[`` in a path for a pattern."""
    return re.sub(r"[*?\[]", r"[\g<0>]", str(path))


Countable: TypeAlias = Any
"""A :class:`Table`, a pyarrow table or dataset, the path of a Parquet or CSV file, or any frame Narwhals accepts."""

_OTHER_ENGINES = {
    "polars.exceptions": ("PolarsError", "PanicException"),
    "pyspark.errors": ("PySparkException",),
    "py4j.protocol": ("Py4JError",),
    "ibis.common.exceptions": ("IbisError",),
    "narwhals.exceptions": ("NarwhalsError",),
}
"""Errors that the engines of callers' frames raise, by the module that defines them."""

_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


class Engine:
    """An in-process DuckDB that counts tables, also those larger than memory.

    Use it in a ``with`` block. It never reaches for the network (extensions are neither installed nor loaded), and what
    does not fit in memory is spilled into a private folder that is removed on closing; that of a killed process is
    removed by the next. It belongs to the process that made it: a forked child needs an engine of its own.

    Parameters
    ----------
    memory_limit : str or None
        What DuckDB may use before it spills, for example ``"800MB"``; ``None`` leaves its own choice (80 % of memory).
    threads : int or None
        ``None`` takes all cores. The result does not depend on it.

    Examples
    --------
    >>> import pyarrow as pa
    >>> with Engine(threads=1) as engine:
    ...     engine.n_rows(pa.table({"age": [31, 31, 40]}))
    3
    """

    def __init__(self, memory_limit: str | None = None, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise InvalidParameterError(name="threads", problem=f"got {threads}", allowed="at least 1")
        folder = PrivateFolder("count")
        self._remove_folder = weakref.finalize(self, folder.remove)
        config: dict[str, Any] = {
            "temp_directory": str(folder.path),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
            "preserve_insertion_order": False,
        }
        if threads is not None:
            config["threads"] = threads
        import duckdb

        self._connection = duckdb.connect(":memory:", config=config)
        self._owner = os.getpid()
        _engines.add(self)
        if memory_limit is not None:
            self._limit_memory(memory_limit)

    def _limit_memory(self, memory_limit: str) -> None:
        import duckdb

        try:
            self._connection.execute("SET memory_limit = ?", [memory_limit])
        except duckdb.Error:
            self.close()
            raise InvalidParameterError(
                name="memory_limit",
                problem=f"got {memory_limit!r}",
                allowed="a number with a unit, such as '800MB' or '4GB'",
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the database, and with it every frame that was opened here; remove the spill folder.

        Does nothing in a forked child: the threads to wait for and the folder are those of the parent.
        """
        if self._owner == os.getpid():
            self._connection.close()
            self._remove_folder()

    def frame(self, source: Countable, columns: Sequence[str] | None = None) -> nw.LazyFrame[Any]:
        """Open a source as a lazy frame under its own column names; a frame the caller made is used where it is.

        Parameters
        ----------
        source : Countable
            A coded table gives its codes; a file is read as :func:`open_file` says.
        columns : sequence of str or None
            Only these columns; ``None`` gives all.

        Raises
        ------
        SchemaError
            If DuckDB cannot tell the names apart (they differ only in case) or one is empty. The functions of
            :mod:`sfumato.counting` have no such limit.
        """
        names, opened = self._open(source, columns)
        if columns is None and _is_native(source):
            return opened
        wanted = list(names if columns is None else columns)
        positions = _positions(names, wanted)
        if not _is_native(source) and ("" in wanted or len({name.casefold() for name in wanted}) < len(wanted)):
            problem = "column names are empty or differ only in case"
            raise SchemaError(problem, hint="name the columns you need, or rename them")
        return opened.select(*(nw.nth(i).alias(name) for i, name in zip(positions, wanted, strict=True)))

    def keys(self, source: Countable, columns: Sequence[str]) -> nw.LazyFrame[Any]:
        """Open some columns of a source under the names ``c0``, ``c1``, …; a column may be asked for twice.

        Raises
        ------
        ColumnNotFoundError, SchemaError
            If a column does not exist or its name occurs more than once.
        InputError
            If a file cannot be read.
        """
        names, opened = self._open(source, columns)
        positions = _positions(names, columns)
        return opened.select(*(nw.nth(i).alias(f"c{j}") for j, i in enumerate(positions)))

    def n_rows(self, source: Countable) -> int:
        """Count the rows of a source."""
        if isinstance(source, Table):
            return source.n_rows
        if isinstance(source, pa.Table):
            return int(source.num_rows)
        _, opened = self._open(source, ())
        counted = self.collect(opened.select(nw.len().alias("n")))
        return int(counted.column("n")[0].as_py())

    def collect(self, frame: nw.LazyFrame[Any]) -> pa.Table:
        """Run a query and return its result as an Arrow table.

        Raises
        ------
        InputError
            If the rows cannot be read; says where when the engine does, and never shows a value.
        """
        with _without_values():
            return frame.collect().to_arrow()

    def _open(self, source: Countable, columns: Sequence[str] | None) -> tuple[Sequence[str], nw.LazyFrame[Any]]:
        """Names of a source's columns, and a frame with these columns by position under whatever names."""
        with _without_values():
            cursor = self._connection.cursor()  # DuckDB wants one per thread
        if isinstance(source, Table):
            wanted = list(source.columns if columns is None else dict.fromkeys(columns))
            return wanted, _from_arrow(cursor, [pa.array(source[name].codes) for name in wanted])
        if isinstance(source, pa.Table):
            every = source.column_names
            chosen = range(len(every)) if columns is None else sorted(set(_positions(every, columns)))
            return [every[i] for i in chosen], _from_arrow(cursor, [source.column(i) for i in chosen])
        if is_path(source):
            with _without_values(Path(source)):
                names, relation = open_file(cursor, Path(source), columns)
                return names, nw.from_native(relation)
        with _without_values():
            if is_dataset(source):
                return source.schema.names, nw.from_native(cursor.from_arrow(source))
            opened = _native(source).lazy()
            return opened.collect_schema().names(), opened


def _is_native(source: Countable) -> bool:
    return not (isinstance(source, Table | pa.Table) or is_path(source) or is_dataset(source))


def _native(source: Any) -> Any:
    try:
        return nw.from_native(source)
    except TypeError:
        pass
    allowed = "a table, a path, or a frame that Narwhals accepts (pandas, polars, DuckDB, Ibis, PySpark, pyarrow)"
    raise InvalidParameterError("source", f"got an object of type {type(source).__name__}", allowed=allowed)


def _from_arrow(cursor: duckdb.DuckDBPyConnection, arrays: list[Any]) -> nw.LazyFrame[Any]:
    with _without_values():
        return nw.from_native(cursor.from_arrow(pa.table(arrays, names=[f"c{i}" for i in range(len(arrays))])))


def _positions(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    places = {name: i for i, name in enumerate(names)}
    for name in wanted:
        if name not in places:
            raise ColumnNotFoundError(name, map(str, names))
    if len(places) < len(names):
        for name in wanted:
            if list(names).count(name) > 1:
                raise SchemaError(problem="its name occurs more than once", column=name, hint="rename the columns")
    return [places[name] for name in wanted]


@contextmanager
def _without_values(path: Path | None = None) -> Iterator[None]:
    """Turn an engine's error, which may quote a line of the data, into one that says only where."""
    import duckdb

    try:
        with without_quoted_cells():
            yield
    except duckdb.OutOfMemoryException:
        problem = "counting needs more memory than it may use"
        raise InputError(
            problem, path=path, hint="raise the engine's memory_limit, or free disk space for spilling"
        ) from None
    except duckdb.ConnectionException:
        problem = "the counting engine is closed"
        raise InputError(problem, path=path, hint="use the engine inside its with block") from None
    except _errors_of_other_engines() as error:
        problem = f"the table cannot be counted ({type(error).__name__})"
        raise InputError(problem, path=path, hint="run the query by itself to see why") from None
    except (duckdb.Error, pa.ArrowException) as error:
        found = re.search(r"CSV Error on Line: (\d+)", str(error))
        line = int(found.group(1)) if found else None
        problem = f"the table cannot be counted ({type(error).__name__})"
        hint = "check that every line has all fields, in UTF-8, and that no column mixes types"
        raise InputError(problem, path=path, line=line, hint=hint) from None


def _errors_of_other_engines() -> tuple[type[BaseException], ...]:
    """Errors of those engines that are loaded: no other can have raised one."""
    loaded = ((sys.modules.get(module), names) for module, names in _OTHER_ENGINES.items())
    return tuple(getattr(module, name) for module, names in loaded for name in names if hasattr(module, name))


_default: Engine | None = None
_default_lock = threading.Lock()
_inherited: list[Engine] = []


def _keep_inherited() -> None:
    """In a forked child, keep the parent's engines for ever: closing one waits for threads that are not there.

    A list of the module would be emptied when the interpreter ends, so their databases get a reference that nobody
    gives back.
    """
    global _default, _default_lock
    for engine in list(_engines):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine._connection))
        _inherited.append(engine)
    _default, _default_lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep_inherited)


def default_engine() -> Engine:
    """Return the engine that serves callers who bring none: made on first use, one per process, closed at exit."""
    global _default
    with _default_lock:
        if _default is None:
            _default = Engine()
        return _default
