"""Files scanned by DuckDB without reading them into memory."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, TypeGuard

import duckdb
import pyarrow.parquet as pq

from sfumato.errors import ColumnNotFoundError, InputError
from sfumato.schema import DEFAULT_MISSING_TOKENS

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
    counted as :func:`sfumato.table.read.read_table` would read it: UTF-8 with a header, fields are texts without the
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
    tokens = " ".join(f"WHEN {_quoted(token)} THEN NULL" for token in DEFAULT_MISSING_TOKENS)
    return f"CASE {text} {tokens} ELSE {text} END"  # trim alone takes ten times as long; IN (…) becomes a join a column


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
