"""Releases out of core are kept in the ledger and checked with it as those in memory are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sfumato.cli.main import run
from sfumato.publishing.ledger import Ledger
from test_ledger import people, project, read, visits, write

RECODING = ["-m", "global-recoding"]
AWAY = ["--memory", "600MB"]


@pytest.fixture
def years(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    everybody = people()
    write(tmp_path / "first.csv", everybody[:340])
    write(tmp_path / "second.csv", [{**row, "age": int(str(row["age"])) + 1} for row in everybody[60:]])
    monkeypatch.chdir(tmp_path)
    project(tmp_path, "first.csv", "global-recoding")
    return tmp_path


def entries(folder: Path) -> list[list[tuple[bytes, bytes, bytes]]]:
    """Persons, classes (numbered by the persons in them) and values of each entry of a ledger."""
    found = []
    for entry in Ledger(folder / ".sfumato-ledger").entries():
        assert entry.rows is not None
        rows, ill = entry.rows, entry.rows.values["ill"]
        names = [rows.persons.names[code] for code in rows.persons.codes.tolist()]
        first: dict[int, bytes] = {}
        for own, name in sorted(zip(rows.classes.tolist(), names, strict=True)):
            first.setdefault(own, name)
        held = [ill.names[code] for code in ill.codes.tolist()]
        classes = [first[own] for own in rows.classes.tolist()]
        found.append(sorted(zip(names, classes, held, strict=True)))
    return found


@pytest.mark.parametrize("several_rows", [False, True])
@pytest.mark.parametrize("name", ["first.csv", "first.parquet"])
def test_an_entry_of_a_release_out_of_core_is_that_of_one_in_memory(years, capsys, name, several_rows):
    if several_rows:
        write(years / "first.csv", visits(people(), 1))
    if name.endswith("parquet"):
        import pyarrow.csv
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.csv.read_csv("first.csv"), name)
    project(years, name, "global-recoding")
    assert run(["release", *AWAY, "-o", "away.csv"]) == 0, capsys.readouterr().err
    away = entries(years)
    shutil.rmtree(years / ".sfumato-ledger")
    assert run(["release", "-o", "here.csv"]) == 0
    assert (years / "here.csv").read_bytes() == (years / "away.csv").read_bytes()
    assert entries(years) == away
    assert run(["release", *AWAY, "-o", "again.csv"]) == 0
    assert len(entries(years)) == 1  # it is the same release


def test_an_earlier_release_out_of_core_is_checked_with_one_in_memory_and_the_other_way_round(years, capsys):
    assert run(["release", *AWAY, "-o", "release-1.csv"]) == 0
    project(years, "second.csv")
    assert run(["release", "-o", "release-2.csv"]) == 4
    in_memory = capsys.readouterr().err
    assert "together with 1 earlier release" in in_memory
    project(years, "second.csv", "global-recoding", "l = 2\nmax_suppressed_fraction = 0.3")
    assert run(["release", *AWAY, "-o", "release-2.csv"]) == 4
    assert "persons fall below what was promised" in capsys.readouterr().err
    assert not (years / "release-2.csv").exists()


def test_a_dry_run_out_of_core_is_checked_and_leaves_nothing(years, capsys):
    assert run(["release", *AWAY, "--dry-run"]) == 0
    assert not (years / ".sfumato-ledger").exists()
    assert run(["release", *AWAY, "-o", "release-1.csv"]) == 0
    project(years, "second.csv", "global-recoding")
    assert run(["release", *AWAY, "--dry-run"]) == 4
    assert len(Ledger(years / ".sfumato-ledger")) == 1


def test_out_of_core_the_ledger_is_left_alone_on_request_only(years, capsys):
    assert run(["release", *AWAY, "-o", "release-1.csv", "--ledger", "off"]) == 0
    assert "left out of the ledger, and not checked together" in capsys.readouterr().err
    assert not (years / ".sfumato-ledger").exists()
    assert run(["release", *AWAY, "-o", "release-2.csv", "--ledger", "same-levels"]) == 0
    assert run(["release", *AWAY, "-o", "release-3.csv"]) == 0
    capsys.readouterr()
    named = ["--identifiers", "patient", "--target", "readmitted", "--sensitive", "ill"]
    assert run(["release", "first.csv", *RECODING, *named, *AWAY, "-o", "release-4.csv"]) == 0
    assert "ledger: not used: a data file was named, not the project" in capsys.readouterr().err


def test_a_lost_key_out_of_core_is_one_clear_line_and_no_other_key_is_made(years, capsys):
    assert run(["release", *AWAY, "-o", "release-1.csv"]) == 0
    (years / "sfumato.key").unlink()
    capsys.readouterr()
    for use in ("check", "off"):
        assert run(["release", *AWAY, "-o", "release-2.csv", "--ledger", use]) == 3
        assert "sfumato.key: the project's key is not there. Hint: restore it" in capsys.readouterr().err
        assert not (years / "sfumato.key").exists()


def test_missing_persons_and_other_people_are_one_clear_line_each(years, capsys):
    assert run(["release", *AWAY, "-o", "release-1.csv"]) == 0
    rows = read(years / "second.csv")
    write(years / "second.csv", [{**row, "patient": f"Q{i}"} for i, row in enumerate(rows)])
    project(years, "second.csv", "global-recoding")
    capsys.readouterr()
    assert run(["release", *AWAY, "-o", "release-2.csv"]) == 3
    assert "none of the" in capsys.readouterr().err
    write(years / "second.csv", [{**row, "patient": "" if i == 7 else row["patient"]} for i, row in enumerate(rows)])
    assert run(["release", *AWAY, "-o", "release-2.csv"]) == 3
    assert "rows have no person, so nobody can say in which releases they are" in capsys.readouterr().err


def test_what_does_not_fit_is_refused_before_anything_is_written(years, capsys, monkeypatch):
    monkeypatch.setattr("sfumato.publishing.whose_rows.BYTES_A_ROW", 10**6)
    assert run(["release", *AWAY, "-o", "release-1.csv"]) == 3
    said = capsys.readouterr().err
    assert "whose rows are in which class, 340 rows of all releases together, does not fit in memory" in said
    assert "--ledger off" in said
    assert not (years / "release-1.csv").exists()
    assert not (years / ".sfumato-ledger").exists()
