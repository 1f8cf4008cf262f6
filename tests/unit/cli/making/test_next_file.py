"""Next year's file, released by the description of last year's."""

import contextlib
import csv
import json
import sqlite3
import tomllib
from pathlib import Path

import pytest

from sfumato.cli.main import run
from sfumato.errors import InputError
from sfumato.project.describe import describe_next
from sfumato.project.file import load_project

CANARY = "CANARY-7f3a"


def written(rows, path):
    with Path(path).open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def people(years, start=0, n_rows=60, header=("who", "age", "job", "y")):
    rows = [[f"w{i}", str(20 + (i + years) % 9), "ab"[i % 2], "pq"[i % 2]] for i in range(start, start + n_rows)]
    return [list(header), *rows]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a folder with two years and a project file of the first, whose release is there."""
    monkeypatch.chdir(tmp_path)
    written(people(0), "2025.csv")
    written(people(0, start=3), "2026.csv")
    assert run(["init", "2025.csv", "--target", "y", "--identifiers", "who", "-o", "old.toml"]) == 0
    text = Path("old.toml").read_text()
    assert 'mechanism = "auto"' in text
    Path("old.toml").write_text(text.replace('mechanism = "auto"', 'mechanism = "mondrian"').replace("k = 5", "k = 4"))
    assert run(["release", "--project", "old.toml", "-o", "2025-release.csv"]) == 0
    return tmp_path


def released(*more, data="2026.csv"):
    return run(["release", data, "--project", "old.toml", *more])


@pytest.mark.slow
def test_the_description_serves_another_file(folder, capsys):
    before = Path("old.toml").read_bytes()
    assert released("-o", "2026-release.csv") == 0

    manifest = json.loads(Path("2026-release.csv.manifest.json").read_text())
    assert manifest["input"]["name"] == "2026.csv"
    assert manifest["mechanism"]["name"] == "mondrian"
    assert manifest["mechanism"]["parameters"]["k"] == 4
    assert manifest["dropped_columns"] == ["who"]
    assert manifest["input"]["commitment"]["release"] != _release_number("2025-release.csv")
    assert Path("old.toml").read_bytes() == before


def _release_number(path):
    return json.loads(Path(f"{path}.manifest.json").read_text())["input"]["commitment"]["release"]


@pytest.mark.slow
def test_it_is_the_release_that_a_project_of_its_own_gives(folder):
    assert released("-o", "reused.csv") == 0
    assert run(["init", "2026.csv", "--from", "old.toml", "-o", "new.toml"]) == 0
    assert run(["release", "--project", "new.toml"]) == 0

    assert Path("2026-release.csv").read_bytes() == Path("reused.csv").read_bytes()


@pytest.mark.slow
def test_the_output_must_be_named(folder, capsys):
    assert released() == 2
    assert "output must be given" in capsys.readouterr().err
    assert released("--dry-run", "--quick") == 0


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--memory", "1GB", "-m", "global-recoding"]], ids=["memory", "out of core"])
def test_columns_that_differ_are_all_named(folder, capsys, more):
    written(people(0, header=("person", "age", "work", "y")), "2026.csv")
    capsys.readouterr()

    assert released("-o", "x.csv", *more) == 3
    said = capsys.readouterr().err
    assert "it lacks 'who', 'job' and also has 'person', 'work'" in said
    assert "sfumato init DATA --from PROJECT" in said
    assert not Path("x.csv").exists()


def test_values_of_another_kind_are_refused_without_them(folder, capsys):
    written([*people(0), ["w1", CANARY, "a", "p"]], "2026.csv")
    capsys.readouterr()

    assert released("-o", "x.csv") == 3
    said = capsys.readouterr().err
    assert "age" in said
    assert CANARY not in said


@pytest.mark.slow
def test_a_default_role_takes_columns_that_are_new_and_only_those(folder, capsys):
    text = Path("old.toml").read_text().replace("[data]\n", '[data]\ndefault_role = "other"\n')
    Path("old.toml").write_text(text)
    written([[*row, "z"] for row in people(0, header=("who", "age", "job", "y"))], "2026.csv")
    assert released("-m", "mondrian", "-o", "x.csv") == 0
    written([row[:2] for row in people(0)], "2026.csv")
    capsys.readouterr()

    assert released("-o", "y.csv") == 3
    assert "it lacks 'job', 'y'" in capsys.readouterr().err


@pytest.mark.slow
def test_people_of_both_years_are_checked_together(folder, capsys):
    Path("old.toml").write_text(Path("old.toml").read_text().replace('role = "identifier"', 'role = "person"'))
    assert run(["release", "--project", "old.toml", "-o", "first.csv"]) == 0
    written(people(4), "2026.csv")  # everybody has got older, and crosses the borders of groups
    capsys.readouterr()

    assert released("-o", "second.csv") == 4
    assert "together with 1 earlier release" in capsys.readouterr().err
    assert not Path("second.csv").exists()
    assert released("-o", "second.csv", "--ledger", "off") == 0


def test_the_ledger_needs_a_project(folder, capsys):
    assert run(["release", "2026.csv", "--ledger", "check", "-o", "x.csv"]) == 2
    assert "for the release of a project" in capsys.readouterr().err


@pytest.mark.slow
def test_out_of_core_the_description_serves_too(folder):
    assert released("-o", "x.csv", "--memory", "1GB", "-m", "global-recoding", "-k", "3") == 0
    assert json.loads(Path("x.csv.manifest.json").read_text())["input"]["name"] == "2026.csv"


def test_init_from_keeps_what_people_wrote_and_the_old_file(folder, capsys):
    before = Path("old.toml").read_bytes()
    written([row[1:] for row in people(0)], "2026.csv")
    assert run(["init", "2026.csv", "--from", "old.toml", "-o", "new.toml"]) == 0
    said = capsys.readouterr().err

    assert "no longer in the data: 'who'" in said
    assert "wrote new.toml" in said
    assert Path("old.toml").read_bytes() == before
    new = tomllib.loads(Path("new.toml").read_text())
    assert new["data"]["path"] == "2026.csv"
    assert new["release"]["output"] == "2026-release.csv"
    assert new["release"]["parameters"]["k"] == 4
    assert load_project("new.toml").read().n_rows == 60


def test_init_from_refuses_what_it_cannot_keep(folder, capsys):
    assert run(["init", "2026.csv", "--from", "old.toml", "-o", "old.toml", "--force"]) == 3
    assert run(["init", "2026.csv", "--from", "old.toml", "--update"]) == 2
    assert run(["init", "--from", "old.toml", "-o", "new.toml"]) == 2
    assert run(["init", "2026.csv", "--from", "old.toml", "-o", "new.toml", "--target", "y"]) == 2
    assert run(["init", "2026.csv", "--from", "old.toml", "-o", "-"]) == 2
    assert run(["init", "2026.csv", "--from", "old.toml", "-o", "new.toml", "--delimiter", ";"]) == 2
    Path("elsewhere").mkdir()
    text = Path("old.toml").read_text()
    Path("old.toml").write_text(text + '\n[release.parameters.hierarchies]\nage = "age.csv"\n')
    with pytest.raises(InputError, match="names hierarchy files"):
        describe_next("2026.csv", "elsewhere/new.toml", like="old.toml")
    assert not list(Path("elsewhere").iterdir())
    assert not Path("new.toml").exists()


# A project of a query, and a new file without tables; rows of a query in the form of a release.


def into_database(rows, path, table="people"):
    names = ", ".join(rows[0])
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"create table {table} ({names})")
        connection.executemany(f"insert into {table} values ({', '.join('?' * len(rows[0]))})", rows[1:])
        connection.commit()


QUERY = "select who, age, job, y from people where who <> 'nobody'"


@pytest.mark.slow
@pytest.mark.parametrize("more", [["--query", QUERY], ["--table", "people"]], ids=["query", "table"])
@pytest.mark.parametrize("away", [[], ["--memory", "600MB"]], ids=["memory", "blocks"])
def test_a_query_of_the_project_is_not_used_for_a_file_without_tables(tmp_path, monkeypatch, capsys, more, away):
    monkeypatch.chdir(tmp_path)
    into_database(people(0), "2025.db")
    written(people(0, start=3), "2026.csv")
    into_database(people(0, start=3), "2026.db")
    given = ["--target", "y", "--identifiers", "who"]
    assert run(["init", "2025.db", *more, *given, "-o", "old.toml"]) == 0
    text = Path("old.toml").read_text().replace('mechanism = "auto"', 'mechanism = "global-recoding"')
    Path("old.toml").write_text(text)
    capsys.readouterr()

    assert released("-o", "of-file.csv", *away) == 0
    said = capsys.readouterr().err
    assert f"note: the {more[0][2:]} in old.toml is not used: the new file has no tables" in said
    assert CANARY not in said
    assert released("-o", "of-database.csv", *away, data="2026.db") == 0
    assert "not used" not in capsys.readouterr().err
    assert Path("of-file.csv").read_bytes() == Path("of-database.csv").read_bytes()


@pytest.mark.slow
def test_a_query_is_for_those_sources_that_are_databases(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    into_database(people(0), "2025.db")
    written(people(0), "2025.csv")
    written(people(0, start=3), "2026.csv")
    into_database(people(0, start=3), "2026.db")
    roles = ["--quasi-identifiers", "age,job", "--identifiers", "who", "--target", "y"]
    assert run(["release", "2025.csv", "-m", "global-recoding", "-k", "4", *roles, "-o", "out.csv"]) == 0
    made = {}
    for new, original, said in (
        ("2026.csv", "2025.csv", None),
        ("2026.csv", "2025.db", "--query is used for --original only: NEW is a file without tables"),
        ("2026.db", "2025.csv", "--query is used for NEW only: --original is a file without tables"),
        ("2026.db", "2025.db", "--query is used for NEW and for --original, which are both databases"),
    ):
        capsys.readouterr()
        query = ["--query", QUERY] if said else []
        target = f"{new}-{original}.csv"
        assert run(["apply", "out.csv.manifest.json", new, "--original", original, *query, "-o", target]) == 0
        assert said is None or said in capsys.readouterr().err
        made[target] = Path(target).read_bytes()
    assert len(set(made.values())) == 1

    capsys.readouterr()
    no_database = ["2026.csv", "--original", "2025.csv", "--query", QUERY, "-o", "none.csv"]
    assert run(["apply", "out.csv.manifest.json", *no_database]) == 2
    assert "--query must be given for a database" in capsys.readouterr().err
