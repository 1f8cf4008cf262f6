"""What cannot be read is named for what it is, with a way out, and never as text in a wrong encoding or a lost file."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from sfumato.cli.main import run
from sfumato.engines.blocks.rows import open_large
from sfumato.errors import InputError
from sfumato.table.io.read import ReadOptions, read_table

SAS_MARK = bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011")
READ = {
    ".sav": (b"$FL2@(#) SPSS DATA FILE MS Windows" + bytes(40) + b"\xff\xfe", "an SPSS file"),
    ".zsav": (b"$FL3@(#) SPSS DATA FILE MS Windows" + bytes(40) + b"\xff\xfe", "an SPSS file"),
    ".sas7bdat": (SAS_MARK + bytes(200), "a SAS file"),
    ".xpt": (b"HEADER RECORD*******LIBRARY HEADER RECORD!!!!!!!" + b"0" * 30 + b"\xc2\xff", "a SAS transport file"),
}
MADE = {
    ".json": (b'[{"age": 31, "sex": "f"}, {"age": 40, "sex": "m"}]', "JSON"),
    ".rds": (b"X\n\0\0\0\3\0\4", "an R file"),
    ".orc": (b"ORC\x0a\x03\x00\x00\x00\x12", "an ORC file"),
    ".mdb": (b"\0\1\0\0Standard Jet DB\0" + bytes(30), "an Access database"),
}


def made(folder: Path, suffix: str) -> tuple[Path, str]:
    """Write a real file where a library is at hand, else its first bytes."""
    path = folder / f"people{suffix}"
    frame = pd.DataFrame({"age": [31, 40], "sex": ["f", "m"]})
    if suffix == ".dta":
        frame.to_stata(path, write_index=False)
        return path, "a Stata file"
    if suffix in (".sqlite", ".db"):
        with sqlite3.connect(path) as base:
            base.execute("create table people (age integer)")
        base.close()
        return path, "an SQLite database"
    if suffix == ".duckdb":
        with duckdb.connect(str(path)) as base:
            base.execute("create table people (age integer)")
        return path, "a DuckDB database"
    if suffix == ".feather":
        pa.feather.write_feather(pa.table({"age": [31]}), str(path), compression="uncompressed")
        return path, "an Arrow or Feather file"
    content, what = (MADE | READ)[suffix]
    path.write_bytes(content)
    return path, what


SUFFIXES = (*MADE, ".feather")
DATABASES = (".sqlite", ".db", ".duckdb")


@pytest.fixture(autouse=True)
def _feather() -> None:
    import pyarrow.feather  # noqa: F401  (an attribute of pyarrow only then)


def refused(path: object, **options: object) -> InputError:
    with pytest.raises(InputError) as caught:
        read_table(path, options=ReadOptions(**options))  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_of_another_program_is_named_and_a_way_out(tmp_path: Path, suffix: str) -> None:
    path, what = made(tmp_path, suffix)

    error = refused(path)

    assert error.problem == f"is {what}, which this version cannot read"
    assert "CSV" in error.hint or "Parquet" in error.hint
    assert "31" not in str(error).replace(str(tmp_path), "")  # a cell; the folder may have any number


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", ["people", "people.csv", "people.CSV.gz", "people.dat"])
def test_it_is_known_by_its_first_bytes_under_any_name(tmp_path: Path, suffix: str, name: str) -> None:
    path, what = made(tmp_path, suffix)
    other = tmp_path / name
    content = path.read_bytes()
    other.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)

    assert refused(other).problem == f"is {what}, which this version cannot read"


@pytest.mark.parametrize("suffix", [*READ, ".dta", *DATABASES])
@pytest.mark.parametrize("name", ["people", "people.csv", "people.CSV.gz"])
def test_a_file_that_is_read_is_known_by_its_first_bytes_under_another_name(
    tmp_path: Path, suffix: str, name: str
) -> None:
    path, what = made(tmp_path, suffix)
    other = tmp_path / name
    content = path.read_bytes()
    other.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)

    error = refused(other)

    assert error.problem == f"is {what}, which its name does not say"
    assert error.remedy == ("format",)


@pytest.mark.parametrize("suffix", [".db", ".json", ".pkl"])
def test_a_suffix_alone_is_called_a_suffix(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"people{suffix}"
    path.write_text("age,sex\n31,f\n40,m\n")

    error = refused(path)

    assert error.problem.startswith(f"has the suffix {suffix} of ")
    assert error.remedy == ("format",)
    assert read_table(path, options=ReadOptions(format="csv")).n_rows == 2


@pytest.mark.parametrize("suffix", [".sav", ".db"])
def test_a_file_that_is_not_there_is_not_there(tmp_path: Path, suffix: str) -> None:
    assert refused(tmp_path / f"people{suffix}").problem == "does not exist"


def test_a_text_that_looks_like_json_can_be_declared(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text('{"a":1,b\n1,2\n')

    assert refused(path).problem == "is JSON, which this version cannot read"
    assert read_table(path, options=ReadOptions(format="csv")).n_rows == 1


@pytest.mark.parametrize("header", ["ORCID,age", "$FL2,age", "ARROW1,age", "RDX2,age", "X,age", "%PDF,age", "[a],[b]"])
def test_names_that_begin_like_another_format_are_names(tmp_path: Path, header: str) -> None:
    path = tmp_path / "people.csv"
    path.write_text(f"{header}\n1,2\n")

    assert list(read_table(path).columns) == header.split(",")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("postgresql+psycopg://me:CANARY@db/people", "a PostgreSQL database"),
        ("mysql://me:CANARY@db/people", "a MySQL database"),
        ("mariadb+pymysql://me:CANARY@db/people", "a MariaDB database"),
        ("mssql+pyodbc://me:CANARY@db/people", "a SQL Server database"),
        ("ORACLE://me:CANARY@db/people", "an Oracle database"),
        ("jdbc:postgresql://db/people?password=CANARY", "a PostgreSQL database"),
        ("jdbc:h2://CANARY", "a database"),
    ],
)
def test_an_address_of_a_database_is_no_lost_file(address: str, what: str) -> None:
    error = refused(address)

    assert error.problem == f"is the address of {what}, which cannot be read in this form or place"
    assert "CSV or Parquet" in error.hint
    assert "CANARY" not in str(error)
    with pytest.raises(InputError, match="is the address of"):
        open_large(address, memory=1 << 30)


@pytest.mark.parametrize("address", ["https://example/people.csv", "s3://CANARY/people.parquet", "file:///people.csv"])
def test_other_addresses_are_addresses(address: str) -> None:
    error = refused(address)

    assert "address" in error.problem
    assert "CANARY" not in str(error)


@pytest.mark.parametrize("command", ["init", "release", "audit", "compare"])
def test_the_command_line_says_so(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert run([command, "mysql://me:CANARY@db/people"]) == 3
    err = capsys.readouterr().err
    assert "is the address of a MySQL database" in err
    assert "CANARY" not in err
    assert "does not exist" not in err


@pytest.mark.parametrize("name", ["a:b.csv", "c:/people.csv"])
def test_a_colon_makes_no_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)

    assert refused(name).problem.startswith("does not exist")
