"""A real PostgreSQL server: what is read, that nothing is written, and that no credential or cell is ever shown."""

from __future__ import annotations

import datetime
import logging
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from decimal import Decimal
from pathlib import Path

import pytest

from postgresql_server import PASSWORD, Server
from sfumato.cli.main import run
from sfumato.engines.blocks.rows import open_large
from sfumato.errors import InputError, InvalidParameterError
from sfumato.schema import Kind
from sfumato.table.io.read import ReadOptions, read_table
from waiting import until

pytestmark = pytest.mark.slow

CELL = "CELL-CANARY-93b1"
SCHEMA = f"""
create schema if not exists other;
drop table if exists people;
create table people (id serial, age int, sex text, town varchar(9), pay numeric(8, 2), y text);
insert into people (age, sex, town, pay, y) select 20 + i % 12, (array['f', 'm'])[1 + i % 2], 't' || i % 4, i % 5,
  (array['a', 'b'])[1 + i % 3 % 2] from generate_series(1, 240) as i;
drop table if exists secrets;
create table secrets (name text);
insert into secrets values ('{CELL}');
create or replace function quoting(x text) returns text language plpgsql as
  $$ begin raise notice 'noticed %', x; raise warning 'warned %', x; return x; end $$;
create or replace function failing(x text) returns text language plpgsql as
  $$ begin raise exception 'failed with %', x using detail = x, hint = x; end $$;
create or replace function writing() returns int language plpgsql as
  $$ begin insert into secrets values ('written'); return 1; end $$
"""


@pytest.fixture(scope="module")
def _filled(postgresql_server: Server) -> None:
    postgresql_server.run(SCHEMA)


@pytest.fixture
def base(postgresql: Server, _filled: None) -> Server:
    return postgresql


def read(base: Server, query: str | None = None, **options: object):
    return read_table(base.address, options=ReadOptions(query=query, **options))  # type: ignore[arg-type]


def refused(base: Server, query: str | None = None, **options: object) -> InputError:
    with pytest.raises(InputError) as caught:
        read(base, query, **options)
    shown = "".join(traceback.format_exception(caught.value))
    assert PASSWORD not in shown
    assert CELL not in str(caught.value)
    return caught.value


def test_every_plain_type_is_read(base: Server) -> None:
    base.run(
        "drop table if exists types;\ndrop domain if exists positive;\ndrop type if exists mood;\n"
        "create type mood as enum ('low', 'high');\ncreate domain positive as int check (value > 0)"
    )
    base.run(
        "create table types as select 1::int2 as i2, 2::int4 as i4, 3::int8 as i8, 1.5::float4 as f4, "
        "2.5::float8 as f8, "
        "1.10::numeric as n, 3.20::numeric(10, 2) as n2, true as flag, date '2020-02-03' as day, "
        "timestamp '2020-02-03 04:05:06' as moment, timestamptz '2020-02-03 04:05:06+02' as zoned, "
        "time '04:05' as clock, "
        "'tä'::text as t, 'v'::varchar(3) as v, 'c'::char(4) as c, 'low'::mood as mood, 5::positive as dom, "
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid as id, null::int as none"
    )
    base.run("insert into types (n, n2, i2) values ('NaN', 'NaN', null), (1.100, 3.2, 1), (100, 0, 1)")

    table = read(base, table="types")

    found = {name: table[name].values.to_pylist()[0] for name in table.schema.names()}
    assert (found["i2"], found["i4"], found["i8"], found["f4"], found["f8"]) == (1, 2, 3, 1.5, 2.5)
    assert table["n"].values.to_pylist() == ["1.1", "100", None]
    assert table["n2"].values.to_pylist() == [Decimal("0.00"), Decimal("3.20"), None]
    assert table.schema["n"].kind is table.schema["n2"].kind is Kind.NUMERIC
    assert (found["flag"], found["day"]) == (True, datetime.date(2020, 2, 3))
    assert found["moment"] == datetime.datetime(2020, 2, 3, 4, 5, 6)
    assert found["zoned"] == datetime.datetime(2020, 2, 3, 2, 5, 6, tzinfo=datetime.UTC)
    assert found["clock"] == datetime.time(4, 5)
    assert (found["t"], found["v"], found["c"], found["mood"], found["dom"]) == ("tä", "v", "c", "low", 5)
    assert found["id"] == "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    assert found["none"] is None


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("'\\x00ff'::bytea", "bytea"),
        ("array[1, 2]", "_int4"),
        ("'{}'::json", "json"),
        ("'{}'::jsonb", "jsonb"),
        ("interval '1 day'", "interval"),
        ("'$3.50'::money", "money"),
        ("inet '10.0.0.1'", "inet"),
        ("row(1, 2)", "record"),
        ("point '(1, 2)'", "point"),
    ],
)
def test_other_types_are_refused_by_column_and_type(base: Server, expression: str, named: str) -> None:
    error = refused(base, f"select 1 as a, {expression} as odd")

    assert error.column == "odd"
    assert f"has the type {named}," in error.problem


def test_tables_are_found_by_name(base: Server) -> None:
    base.run(
        "drop table if exists other.people;\ncreate table other.people (x) as values (1);\n"
        'drop table if exists other."Odd ""name""";\ncreate table other."Odd ""name""" (x) as values (2)'
    )

    assert read(base, table="people").schema.names()[1] == "age"
    assert read(base, table="PEOPLE").n_rows == 240
    assert read(base, table="other.people").schema.names() == ("x",)
    assert read(base, table='Odd "name"').n_rows == 1
    assert refused(base, table="peple").hint == "did you mean 'people'?"
    several = refused(base)
    assert "tables that can be read" in several.problem
    assert "people" in several.hint
    assert several.remedy == ("table",)
    base.run("drop schema other cascade;\ncreate schema other")


WRITING = {
    "insert": "insert into people (age) values (1) returning age",
    "delete in a query": "with gone as (delete from people returning *) select * from gone",
    "drop": "drop table people",
    "two statements": "select 1 as a; drop table people",
    "copy to a file": "copy people to '{folder}/out'",
    "copy to a program": "copy people to program 'touch {folder}/out'",
    "block": "do $$ begin delete from people; end $$",
    "function that writes": "select writing()",
    "sequence": "select nextval('people_id_seq')",
    "for update": "select * from people for update",
    "into": "select * into copied from people",
    "transaction": "commit",
    "set": "set transaction read write",
    "out of the transaction": "select set_config('transaction_read_only', 'off', true)",
    "closed parenthesis": "select 1) as a; drop table people; --",
    "closed into copy": "select 1) to program 'touch {folder}/out' --",
    "explain analyze": "explain analyze delete from people",
}


@pytest.mark.parametrize("what", WRITING)
def test_nothing_is_written(base: Server, tmp_path: Path, what: str) -> None:
    tmp_path.chmod(0o777)
    before = base.asked("select count(*), sum(age), (select last_value from people_id_seq) from people")
    secrets = base.asked("select count(*) from secrets")

    error = refused(base, WRITING[what].format(folder=tmp_path))

    assert "SQLSTATE" in error.problem
    assert base.asked("select count(*), sum(age), (select last_value from people_id_seq) from people") == before
    assert base.asked("select count(*) from secrets") == secrets
    assert list(tmp_path.iterdir()) == []


def test_the_transaction_itself_is_read_only(base: Server) -> None:
    """What refuses writing is the server, whatever a query looks like."""
    table = read(
        base, "select current_setting('transaction_read_only') as ro, current_setting('is_superuser') as super"
    )

    assert table["ro"].values.to_pylist() == ["on"]
    assert table["super"].values.to_pylist() == ["on"]
    assert "25006" in refused(base, "select writing()").problem


def test_a_comment_a_semicolon_and_values_are_fine(base: Server) -> None:
    assert read(base, "select 1 as a -- the end").n_rows == 1
    assert read(base, "select 1 as a ;; ").n_rows == 1
    assert read(base, "values (1, 2), (3, 4)").n_rows == 2
    assert read(base, "with x as (select 1 as a) select * from x /* so */").n_rows == 1


def test_the_hash_is_of_the_rows_whatever_their_order_and_place(base: Server) -> None:
    plain, other = read(base, table="people"), read(base, "select * from people order by town desc, id")
    large = open_large(
        base.address, memory=100_000_000, options=ReadOptions(query="select * from people order by -age")
    )

    assert plain.source.sha256 == other.source.sha256 == large.source.sha256
    assert read(base, "select * from people where id > 1").source.sha256 != plain.source.sha256
    assert (plain.source.format, plain.source.label, other.source.label) == ("postgresql", "people", "query")


# Canaries.


def everything(capfd, caplog, folder: Path) -> str:
    said = capfd.readouterr()
    files = [path.read_bytes().decode(errors="replace") for path in folder.rglob("*") if path.is_file()]
    return "\n".join([said.out, said.err, caplog.text, *files])


BROKEN = {
    "cast": "select name::int from secrets",
    "exception of the server": "select failing(name) from secrets",
    "column": f"select {CELL.replace('-', '_')} from secrets",
    "syntax": f"select '{CELL} from secrets",
    "unique names": "select name as a, name as a from secrets",
    "division": "select 1 / (length(name) - length(name)) from secrets",
    "type": "select name, array[name] as odd from secrets",
    "date": "select to_date(name, 'YYYY-MM-DD') from secrets",
    "xml": "select xmlparse(document name) from secrets",
    "regular expression": "select name ~ (name || '[') as a from secrets",
    "json": "select name::json from secrets",
    "late": "select case when i > 200000 then name::int else i end as a from secrets, generate_series(1, 200001) as i",
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("memory", [(), ("--memory", "600MB")], ids=["in memory", "out of core"])
def test_no_error_of_a_query_shows_password_cell_or_query(base, tmp_path, monkeypatch, capfd, caplog, what, memory):
    caplog.set_level(logging.DEBUG)
    monkeypatch.chdir(tmp_path)
    named = ["-m", "global-recoding", "--quasi-identifiers", "a", "-o", "out.csv"] if memory else ["-o", "out.csv"]

    code = run(["--debug", "release", base.address, "--query", BROKEN[what], *named, *memory])

    seen = everything(capfd, caplog, tmp_path)
    assert code == 3
    assert PASSWORD not in seen
    assert CELL not in seen
    assert CELL.replace("-", "_") not in seen


def test_notices_of_the_server_are_not_shown(base, tmp_path, monkeypatch, capfd, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.chdir(tmp_path)

    table = read(base, "select quoting(name) as a from secrets")

    assert table.n_rows == 1
    assert CELL not in everything(capfd, caplog, tmp_path)
    assert CELL not in repr(table) + repr(table.source)


def _free_port() -> int:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


UNREACHED = {
    "wrong password": ({"PGPASSWORD": f"not-{PASSWORD}"}, "{address}", "refuses the login"),
    "no password": ({"PGPASSWORD": None}, "{address}", "refuses the login"),
    "wrong user": ({"PGUSER": PASSWORD}, "{address}", "refuses the login"),
    "no server": ({}, "postgresql://127.0.0.1:{port}/postgres", "cannot be reached"),
    "no host": ({}, "postgresql://nosuch.invalid/postgres", "cannot be reached"),
    "no socket": ({}, "postgresql:///postgres?host=/nonexistent", "cannot be reached"),
    "no database": ({}, "{server}/nosuch", "has no database of this name"),
    "secured": ({}, "{address}?sslmode=require", "secured connection"),
    "service": ({"PGSERVICE": PASSWORD}, "{address}", ""),
    "database of the environment": ({"PGDATABASE": PASSWORD}, "{server}", ""),
    "options of the environment": ({"PGOPTIONS": f"-c x={PASSWORD}"}, "{address}", ""),
}


@pytest.mark.parametrize("what", UNREACHED)
def test_no_error_of_a_login_shows_a_credential(base, tmp_path, monkeypatch, capfd, caplog, what) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.chdir(tmp_path)
    environment, form, words = UNREACHED[what]
    for name, value in environment.items():
        monkeypatch.setenv(name, value) if value is not None else monkeypatch.delenv(name)
    server = base.address.removesuffix("/postgres")
    address = form.format(address=base.address, server=server, port=_free_port())

    code = run(["--debug", "init", address, "--table", "people"])

    seen = everything(capfd, caplog, tmp_path)
    assert code == 3
    assert words in seen
    assert PASSWORD not in seen


def test_a_password_file_logs_in_and_is_not_shown(base, tmp_path, monkeypatch, capfd, caplog) -> None:
    monkeypatch.delenv("PGPASSWORD")
    file = tmp_path / "pass"
    file.write_text(f"127.0.0.1:*:*:*:{PASSWORD}\n")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)

    assert run(["init", base.address, "--table", "people", "--target", "y"]) == 0
    assert PASSWORD not in everything(capfd, caplog, folder)


def test_the_limit_of_time_is_the_servers_too(base: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_QUERY_SECONDS", "1")

    assert "did not answer within the time" in refused(base, "select pg_sleep(100)").problem
    until(
        lambda: (
            base.asked(
                "select count(*) from pg_stat_activity where query like '%pg_sleep(100)%' "
                "and state = 'active' and pid <> pg_backend_pid()"
            )
            == [(0,)]
        )
    )
    monkeypatch.setenv("SFUMATO_QUERY_SECONDS", "7")
    shown = read(base, "select setting as s from pg_settings where name = 'statement_timeout'")
    assert shown["s"].values.to_pylist() == ["7000"]
    monkeypatch.setenv("PGOPTIONS", "-c statement_timeout=5000")
    shorter = read(base, "select setting as s from pg_settings where name = 'statement_timeout'")
    assert shorter["s"].values.to_pylist() == ["5000"]


def test_a_limit_that_is_no_number_is_refused(base: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_QUERY_SECONDS", "soon")

    with pytest.raises(InvalidParameterError, match="SFUMATO_QUERY_SECONDS"):
        read(base, "select 1 as a")


@pytest.mark.parametrize("memory", [(), ("--memory", "600MB")], ids=["in memory", "out of core"])
def test_ctrl_c_cancels_the_query(base: Server, tmp_path: Path, hears_ctrl_c: None, memory: tuple[str, ...]) -> None:
    asks = "select i as a, pg_sleep(0.01)::text as b from generate_series(1, 1000000) as i"
    named = ["-m", "global-recoding", "-o", "out.csv", *memory]
    command = [sys.executable, "-c", "from sfumato.__main__ import main; main()", "release", base.address]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "PGAPPNAME": f"ctrl-c {tmp_path.name}", "TMPDIR": str(temporary)}
    running = (
        f"select count(*) from pg_stat_activity where application_name = 'ctrl-c {tmp_path.name}' "
        "and state = 'active' and query like '%generate_series%'"
    )

    child = subprocess.Popen(
        [*command, "--query", asks, *named], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    )
    until(lambda: base.asked(running) == [(1,)] or child.poll() is not None)
    child.send_signal(signal.SIGINT)
    said = child.communicate()[1]

    assert child.returncode == 130
    assert "sfumato: interrupted" in said
    assert "Traceback" not in said
    until(lambda: base.asked(running) == [(0,)])
    assert os.listdir(temporary) == []
    assert os.listdir(tmp_path) == ["temporary"]


# From end to end.


def test_release_audit_and_report_of_a_query(base, tmp_path, monkeypatch, capfd, caplog) -> None:
    monkeypatch.chdir(tmp_path)
    asks = ["--query", "select age, sex, town, y from people where sex <> 'SECRET-VALUE'"]
    roles = ["--target", "y", "--quasi-identifiers", "age,sex,town"]

    assert run(["release", base.address, *asks, *roles, "-m", "mondrian", "-k", "3", "-o", "out.csv"]) == 0
    audit = ["audit", "out.csv", "--manifest", "out.csv.manifest.json", "--original", base.address, *roles]
    assert run([*audit, *asks]) in (0, 8)
    assert run([*audit, "--query", "select age, sex, town, y from people order by random()"]) in (0, 8)
    assert run([*audit, "--query", "select age + 1 as age, sex, town, y from people"]) == 5
    report = ["report", "out.csv", "--original", base.address, *asks, *roles, "-o", "report.html", "--quick"]
    assert run(report) == 0
    assert "QUERY stands for the query" in Path("report.html").read_text()
    assert run([*report[:-3], "-o", "external.html", "--quick", "--external"]) == 0
    assert "127.0.0.1" not in Path("external.html").read_text()
    seen = everything(capfd, caplog, tmp_path)
    assert "SECRET-VALUE" not in seen
    assert PASSWORD not in seen
    assert '"format": "postgresql"' in seen
    assert '"name": "query"' in seen
    assert "127.0.0.1" not in Path("out.csv.manifest.json").read_text()


def test_a_project_without_credentials(base, tmp_path, monkeypatch, capfd, caplog) -> None:
    monkeypatch.chdir(tmp_path)

    assert run(["init", base.address, "--table", "people", "--target", "y", "--identifiers", "id"]) == 0
    assert f'path = "{base.address}"' in Path("sfumato.toml").read_text()
    assert run(["release", "-m", "mondrian", "-k", "3", "-o", "out.csv"]) == 0
    project = ["--project", "sfumato.toml"]
    assert run(["audit", "out.csv", "--manifest", "out.csv.manifest.json", *project]) == 0
    assert run(["audit", "out.csv", "--manifest", "out.csv.manifest.json", *project, "--memory", "600MB"]) == 0
    assert run(["compare", "--dry-run"]) == 0
    assert run(["report", "out.csv", *project, "-o", "report.html", "--quick"]) == 0
    assert PASSWORD not in everything(capfd, caplog, tmp_path)
    base.run("insert into people (age, sex, town, y) values (21, 'f', 't1', 'a')")
    assert run(["release", "-m", "mondrian", "-k", "3", "-o", "out2.csv"]) == 3
    assert "does not give the rows that the project describes" in capfd.readouterr().err
    assert run(["init", "--update"]) == 0
    assert run(["release", "-m", "mondrian", "-k", "3", "-o", "out2.csv"]) == 0


def test_a_project_with_a_password_is_refused(tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sfumato.toml").write_text(f'[data]\npath = "postgresql://me:{PASSWORD}@db/people"\n')

    assert run(["--debug", "release", "-o", "out.csv"]) == 3
    assert PASSWORD not in capfd.readouterr().err


def test_out_of_core_release_and_audit(base, tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    asks = ["--query", "select age, sex, town, y from people"]
    roles = ["--target", "y", "--quasi-identifiers", "age,sex,town"]
    memory = ["--memory", "600MB"]

    made = ["release", base.address, *asks, *roles, "-m", "global-recoding", "-k", "3", "-o", "out.csv"]
    assert run([*made, *memory]) == 0
    audit = ["audit", "out.csv", "--manifest", "out.csv.manifest.json", "--original", base.address, *asks, *roles]
    assert run(audit) in (0, 8)
    assert run([*audit, *memory]) in (0, 8)
    assert list(temporary.iterdir()) == []


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)

    with pytest.raises(InvalidParameterError, match=r"sfumato\[io\]"):
        read_table("postgresql://127.0.0.1:1/x")
