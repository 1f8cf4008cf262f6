"""Good files of statistics packages, databases, JSON lines and workbooks, to be damaged, and what reads them."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import sqlite3
import zlib
from pathlib import Path

from benchmarks.soak.mutations import damaged, damaged_archive, damaged_gzip, damaged_lines_of_json
from benchmarks.soak.specimens import Read, Specimen

LINES = [
    {"name": "Zoë", "age": 31, "born": "1990-02-28", "weight": 71.5, "ill": True},
    {"name": None, "age": 44, "ill": False, "note": 'a "b"\n'},
    {"age": 29.0, "weight": 1e3, "ill": None, "big": 2**63},
    {"name": "NA", "age": 31, "born": "", "weight": -0.0, "ill": True},
]


def format_specimens(folder: Path) -> list[Specimen]:
    """Collect good files of all these formats."""
    lines = "".join(json.dumps(row) + "\n" for row in LINES * 3).encode()
    workbook = _workbook()
    packages = [Specimen(suffix[1:], suffix, files, _read) for suffix, files in _packages(folder).items()]
    return [
        *packages,
        Specimen("JSON lines", ".jsonl", [lines], _read, damaged_lines_of_json),
        Specimen("JSON lines, bytes", ".jsonl", [lines], _read, damaged),
        Specimen("JSON lines in gzip", ".jsonl.gz", [gzip.compress(lines, mtime=0)], _read, damaged_gzip),
        Specimen("SQLite", ".sqlite", [_sqlite(folder)], _read),
        Specimen("DuckDB", ".duckdb", [_duckdb(folder)], _read),
        Specimen("Excel", ".xlsx", [workbook], _in_memory, damaged_archive),
    ]


def _in_memory(path: Path) -> object:
    from sfumato.table.io.read import ReadOptions, read_table
    from sfumato.table.roles import describe_columns

    table = read_table(path, options=ReadOptions(mixed_as_text=True))
    describe_columns(table)
    return table


def _in_blocks(path: Path) -> object:
    from sfumato.engines.blocks.rows import open_large
    from sfumato.table.io.read import ReadOptions

    large = open_large(path, memory=600 * 10**6, options=ReadOptions(mixed_as_text=True))
    names = large.schema.names()
    return sum(len(block[names[0]]) for block in large.blocks(names))


def _read(path: Path) -> object:
    """Read a file at once or in blocks, by its bytes, so that a finding can be seen again; SPSS portable at once."""
    ways: tuple[Read, ...] = (_in_memory,) if path.suffix == ".por" else (_in_memory, _in_blocks)
    return ways[zlib.crc32(path.read_bytes()) % len(ways)](path)


def _packages(folder: Path) -> dict[str, list[bytes]]:
    """Write files of SPSS, Stata and SAS, with codebooks, missing codes, dates and texts."""
    import pyreadstat

    from statistics_files import sas_file, survey, write_survey  # of the tests, which are on the path

    found = {
        suffix: [write_survey(folder / f"survey{suffix}").read_bytes()] for suffix in (".sav", ".zsav", ".dta", ".xpt")
    }
    frame = survey(30)
    pyreadstat.write_sav(frame, str(folder / "packed.sav"), row_compress=True)
    found[".sav"].append((folder / "packed.sav").read_bytes())
    pyreadstat.write_dta(frame, str(folder / "old.dta"), version=12)
    found[".dta"].append((folder / "old.dta").read_bytes())
    plain = frame[["sex", "edu", "share", "day"]].rename(columns=str.upper)
    plain["NOTE"] = ["a", "b c", ""] * 10
    pyreadstat.write_por(plain, str(folder / "survey.por"))
    found[".por"] = [(folder / "survey.por").read_bytes()]
    found[".sas7bdat"] = [sas_file()]
    return found


def _sqlite(folder: Path) -> bytes:
    path = folder / "good.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("create table people (name text, age integer, weight real, ill)")
        rows = [(row.get("name"), row.get("age"), row.get("weight"), row.get("ill")) for row in LINES * 5]
        connection.executemany("insert into people values (?, ?, ?, ?)", rows)
        connection.commit()
    return path.read_bytes()


def _duckdb(folder: Path) -> bytes:
    import duckdb

    path = folder / "good.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table people (name varchar, age integer, born date, ill boolean)")
        connection.execute(
            "insert into people select 'n' || i, i, date '2020-01-01' + i::int, i % 2 = 0 from range(20) r(i)"
        )
        connection.execute("checkpoint")
    return path.read_bytes()


def _workbook() -> bytes:
    from sfumato.datasets.admissions import admissions
    from sfumato.table.io.write import write_table

    file = io.BytesIO()
    write_table(admissions(n_rows=30), file, "excel")
    return file.getvalue()
