"""SQLite and DuckDB files are read like any table: only to be read, one statement, and nothing else of the machine."""

from __future__ import annotations

import datetime
import hashlib
import sqlite3
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from sfumato.cli.main import run
from sfumato.engines.blocks.rows import open_large
from sfumato.errors import InputError
from sfumato.schema import Column, Kind, Schema
from sfumato.table.io.read import ReadOptions, read_table

CANARY = "CANARY-7f3a"


def sqlite_file(path: Path, *statements: str) -> Path:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def duckdb_file(path: Path, *statements: str) -> Path:
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


PEOPLE = [
    "create table people (age integer, sex text, y text)",
    "insert into people values "
    + ", ".join(f"({20 + i % 9}, '{'fm'[i % 2]}', '{'ab'[i % 3 % 2]}')" for i in range(90)),
]
MAKERS = {".db": sqlite_file, ".sqlite": sqlite_file, ".duckdb": duckdb_file}


def refused(path: object, query: str | None = None, **options: object) -> InputError:
    with pytest.raises(InputError) as caught:
        read_table(path, options=ReadOptions(query=query, **options))  # type: ignore[arg-type]
    assert CANARY not in str(caught.value)
    return caught.value


@pytest.mark.slow
@pytest.mark.parametrize("suffix", MAKERS)
def test_the_only_table_is_read_without_being_named(tmp_path: Path, suffix: str) -> None:
    path = MAKERS[suffix](tmp_path / f"people{suffix}", *PEOPLE)
    kind = "duckdb" if suffix == ".duckdb" else "sqlite"

    table = read_table(path)
    by_address = read_table(f"{kind}:///{path}")
    named = read_table(path, options=ReadOptions(table="People"))
    asked = read_table(path, options=ReadOptions(query="select * from people order by age desc;"))

    assert table.n_rows == 90
    assert table.schema.names() == ("age", "sex", "y")
    assert {one.source.sha256 for one in (table, by_address, named, asked)} == {table.source.sha256}
    assert (table.source.format, named.source.label, asked.source.label) == (kind, "People", "query")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", MAKERS)
def test_one_of_several_tables_must_be_named(tmp_path: Path, suffix: str) -> None:
    path = MAKERS[suffix](tmp_path / f"people{suffix}", *PEOPLE, "create table visits as select age from people")

    error = refused(path)

    assert "with 2 tables" in error.problem
    assert "people, visits" in error.hint
    assert error.remedy == ("table",)
    assert refused(path, table="visit").hint == "did you mean 'visits'?"
    assert read_table(path, options=ReadOptions(table="visits")).schema.names() == ("age",)


WRITING = {
    "insert": "insert into people values (1, 'f', 'a')",
    "delete with rows": "delete from people returning age",
    "two statements": "select 1 as a; drop table people",
    "attach": "attach '{folder}/other.db' as other",
    "pragma": "pragma user_version = 7",
    "create": "create temp table other (a integer)",
    "vacuum": "vacuum",
    "explain": "explain select * from people",
    "nothing": "-- nothing",
}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", MAKERS)
@pytest.mark.parametrize("what", WRITING)
def test_what_is_no_single_select_is_refused_and_changes_nothing(tmp_path: Path, suffix: str, what: str) -> None:
    path = MAKERS[suffix](tmp_path / f"people{suffix}", *PEOPLE)
    before = hashlib.sha256(path.read_bytes()).digest()

    refused(path, WRITING[what].format(folder=tmp_path))

    assert hashlib.sha256(path.read_bytes()).digest() == before
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        "select * from read_csv('{folder}/secret.csv')",
        "select * from read_text('{folder}/secret.csv')",
        "select * from '{folder}/secret.csv'",
        "select * from glob('{folder}/*')",
        "copy people to '{folder}/out.csv'",
        "export database '{folder}/out'",
        "install httpfs",
        "load httpfs",
        "set memory_limit = '1GB'",
    ],
)
def test_a_query_of_duckdb_touches_no_other_file(tmp_path: Path, query: str) -> None:
    path = duckdb_file(tmp_path / "people.duckdb", *PEOPLE)
    (tmp_path / "secret.csv").write_text(f"a\n{CANARY}\n")

    refused(path, query.format(folder=tmp_path))

    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["people.duckdb", "secret.csv"]


def test_the_reader_of_python_itself_writes_nothing(tmp_path: Path) -> None:
    """The guard that remains if the check of statements were to miss one: the file is opened to be read only."""
    path = sqlite_file(tmp_path / "people.db", *PEOPLE)

    error = refused(path, "select writefile('x', 'y') as a")

    assert "query" in error.problem


@pytest.mark.slow
@pytest.mark.parametrize("suffix", MAKERS)
def test_errors_quote_neither_cells_nor_the_query(
    tmp_path: Path, suffix: str, capfd: pytest.CaptureFixture[str]
) -> None:
    make = MAKERS[suffix]
    path = make(
        tmp_path / f"people{suffix}", "create table people (name text)", f"insert into people values ('{CANARY}')"
    )
    queries = [
        f"select * from people where nosuch = '{CANARY}'",
        f"select {CANARY.replace('-', '_')} from people",
        "select cast(name as date) as d, json(name) as j from people",
        "select abs(-9223372036854775808) as a, name from people",
        f"select name from people where name = '{CANARY}",
        "select name as a, name as a from people",
    ]

    for query in queries:
        run(["--debug", "init", str(path), "--query", query, "-o", str(tmp_path / "sfumato.toml")])
        said = capfd.readouterr()
        assert CANARY not in said.out + said.err
        assert CANARY.replace("-", "_") not in said.out + said.err


def test_types_of_duckdb(tmp_path: Path) -> None:
    path = duckdb_file(
        tmp_path / "types.duckdb",
        "create type mood as enum ('low', 'high')",
        "create table t as select 7::tinyint as small, 9::hugeint as huge, 1.5::float as f, "
        "2.25::decimal(8, 2) as dec, true as flag, date '2020-02-03' as day, "
        "timestamp '2020-02-03 04:05:06' as moment, time '04:05' as clock, "
        "'text' as txt, 'low'::mood as mood, '6f1dab10-2c1f-4d3c-9c0d-000000000001'::uuid as id, null::integer as none",
    )

    table = read_table(path)

    found = {name: table[name].values.to_pylist() for name in table.schema.names()}
    assert found["dec"] == [Decimal("2.25")]
    assert (found["small"], found["huge"], found["f"], found["flag"]) == ([7], [9], [1.5], [True])
    assert found["day"] == [datetime.date(2020, 2, 3)]
    assert found["moment"] == [datetime.datetime(2020, 2, 3, 4, 5, 6)]
    assert (found["txt"], found["mood"], found["none"]) == (["text"], ["low"], [None])
    assert found["id"] == ["6f1dab10-2c1f-4d3c-9c0d-000000000001"]


@pytest.mark.slow
@pytest.mark.parametrize("what", ["[1, 2]", "{a: 1}", "'x'::blob", "'{}'::json", "interval 1 day", "map {1: 2}"])
def test_what_is_no_plain_cell_is_refused_by_its_column(tmp_path: Path, what: str) -> None:
    path = duckdb_file(tmp_path / "odd.duckdb", f"create table t as select 1 as a, {what} as odd")

    error = refused(path)

    assert error.column == "odd"
    assert "has the type" in error.problem


def test_types_of_sqlite_are_found_over_all_rows(tmp_path: Path) -> None:
    """A column whose first thousands of rows are null, or whole numbers, is what its later rows are."""
    path = sqlite_file(
        tmp_path / "late.db",
        "create table t (a, b, c, d, e)",
        "with recursive r(i) as (select 1 union all select i + 1 from r where i < 3000) "
        "insert into t select null, i, null, '2020-01-0' || (i % 9 + 1), null from r",
        "insert into t values ('late', 2.5, 9, '2021-01-01', null)",
    )

    table = read_table(path)

    assert table["a"].values.to_pylist() == ["late", None]
    assert table["b"].values.to_pylist()[:3] == [1.0, 2.0, 2.5]
    assert table["c"].values.to_pylist() == [9, None]
    assert {name: table.schema[name].kind for name in "abcd"} == {
        "a": Kind.CATEGORICAL,
        "b": Kind.NUMERIC,
        "c": Kind.NUMERIC,
        "d": Kind.DATE,
    }


def test_numbers_and_text_in_one_column_of_sqlite(tmp_path: Path) -> None:
    path = sqlite_file(tmp_path / "mixed.db", "create table t (a)", "insert into t values (1), ('x'), (2.5), (3.0)")

    assert refused(path).problem == "mixes numbers and text"
    assert read_table(path, schema=Schema.of([Column("a")]))["a"].values.to_pylist() == ["1", "2.5", "3", "x"]
    taken = read_table(path, options=ReadOptions(mixed_as_text=True))
    assert taken["a"].values.to_pylist() == ["1", "2.5", "3", "x"]


def test_bytes_in_sqlite_are_refused(tmp_path: Path) -> None:
    path = sqlite_file(tmp_path / "blob.db", "create table t (a, b)", "insert into t values (1, x'00ff')")

    error = refused(path)

    assert error.column == "b"
    assert "blob" in error.problem


def test_text_that_is_not_unicode_is_refused(tmp_path: Path) -> None:
    path = sqlite_file(tmp_path / "odd.db", "create table t (a)", "insert into t values (cast(x'ff41' as text))")

    assert "Unicode" in refused(path).problem


@pytest.mark.parametrize("suffix", MAKERS)
def test_no_rows_is_said(tmp_path: Path, suffix: str) -> None:
    path = MAKERS[suffix](tmp_path / f"people{suffix}", *PEOPLE)

    assert refused(path, "select * from people where age > 99").problem == "gives no rows"
    with pytest.raises(InputError, match="gives no rows"):
        open_large(path, memory=1 << 28, options=ReadOptions(query="select * from people where age > 99"))


def test_a_file_that_is_not_the_database_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(b"SQLite format 3\0" + bytes(200))
    sqlite_file(tmp_path / "b.db", *PEOPLE)
    (tmp_path / "c.csv").write_text("a\n1\n")

    assert "damaged" in refused(tmp_path / "a.db").problem
    assert refused(f"duckdb:///{tmp_path / 'b.db'}").problem == "is not a DuckDB database"
    assert refused(tmp_path / "c.csv", format="sqlite").problem == "is not an SQLite database"
    assert refused(f"sqlite:///{tmp_path / 'nosuch.db'}").problem == "does not exist"
    assert read_table(tmp_path / "b.db", options=ReadOptions(format="sqlite")).n_rows == 90


@pytest.mark.slow
@pytest.mark.parametrize("suffix", MAKERS)
def test_a_query_has_a_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    path = MAKERS[suffix](tmp_path / f"people{suffix}", *PEOPLE)
    monkeypatch.setenv("SFUMATO_QUERY_SECONDS", "1")

    error = refused(path, "with recursive r(i) as (select 1 union all select i + 1 from r) select count(*) as n from r")

    assert "did not answer within the time" in error.problem


@pytest.mark.slow
@pytest.mark.parametrize("suffix", MAKERS)
def test_release_and_audit_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    monkeypatch.chdir(tmp_path)
    path = MAKERS[suffix](tmp_path / f"base{suffix}", *PEOPLE)
    query = ["--query", "select age, sex, y from people"]
    made = ["release", path.name, *query, "--target", "y", "-k", "3", "-m", "mondrian", "-o", "out.csv"]

    assert run(made) == 0
    audit = ["audit", "out.csv", "--manifest", "out.csv.manifest.json", "--original"]
    roles = ["--target", "y", "--quasi-identifiers", "age,sex"]
    assert run([*audit, path.name, "--query", "select * from people order by y", *roles]) in (0, 8)
    assert run([*audit, path.name, "--query", "select * from people where age < 25", *roles]) == 5
    assert "people" not in Path("out.csv.manifest.json").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", MAKERS)
def test_a_project_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys, suffix: str) -> None:
    monkeypatch.chdir(tmp_path)
    path = MAKERS[suffix](tmp_path / f"base{suffix}", *PEOPLE)
    kind = "duckdb" if suffix == ".duckdb" else "sqlite"

    assert run(["init", f"{kind}:///{path.name}", "--table", "people", "--target", "y"]) == 0
    text = Path("sfumato.toml").read_text()
    assert f'path = "{path.name}"' in text
    assert 'table = "people"' in text
    assert run(["release", "-m", "mondrian", "-k", "3", "-o", "out.csv"]) == 0
    project = ["audit", "out.csv", "--manifest", "out.csv.manifest.json", "--project", "sfumato.toml"]
    assert run(project) == 0
    assert run([*project, "--memory", "600MB"]) == 0
    MAKERS[suffix](path, "insert into people values (33, 'f', 'a')")
    capsys.readouterr()
    assert run(["release", "-m", "mondrian", "-k", "3", "-o", "out2.csv"]) == 3
    assert "its SHA-256 differs" in capsys.readouterr().err
    assert run(["init", "--update"]) == 0
    assert run(["release", "-m", "mondrian", "-k", "3", "-o", "out2.csv"]) == 0


def test_the_database_is_never_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = sqlite_file(tmp_path / "base.csv", *PEOPLE)
    before = path.read_bytes()

    reading = ["base.csv", "--format", "sqlite", "--target", "y"]
    assert run(["release", *reading, "-m", "mondrian", "-k", "3", "--force", "-o", "base.csv"]) == 3
    assert run(["init", "sqlite:///base.csv", "-o", "base.csv", "--force"]) == 3
    assert path.read_bytes() == before
