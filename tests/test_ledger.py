"""Several releases of the same people: refused where together they tell people apart, made so that they hold, kept."""

from __future__ import annotations

import csv
import json
import os
import shutil
import stat
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from sfumato.cli.main import run

ILLS = ("flu", "asthma", "gout", "none")


def people(seed: int = 7, n: int = 400) -> list[dict[str, object]]:
    """Draw people of whom every column but the year's own stays the same."""
    rng = np.random.default_rng(seed)
    return [
        {
            "patient": f"P{1000 + i}",
            "age": int(rng.integers(20, 80)),
            "sex": "fm"[int(rng.integers(2))],
            "postcode": int(rng.integers(10, 60)),
            "ill": ILLS[int(rng.integers(4))],
            "readmitted": "yn"[int(rng.integers(2))],
        }
        for i in range(n)
    ]


def write(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


PROJECT = """
[data]
path = "{data}"

[columns]
patient = {{ role = "person", kind = "categorical" }}
age = {{ role = "quasi-identifier", kind = "numeric" }}
sex = {{ role = "quasi-identifier", kind = "categorical" }}
postcode = {{ role = "quasi-identifier", kind = "numeric" }}
ill = {{ role = "sensitive", kind = "categorical" }}
readmitted = {{ role = "target", kind = "categorical" }}

[release]
mechanism = "{mechanism}"

[release.parameters]
k = 5
{more}
"""


def project(folder: Path, data: str, mechanism: str = "mondrian", more: str = "l = 2") -> None:
    (folder / "sfumato.toml").write_text(PROJECT.format(data=data, mechanism=mechanism, more=more), encoding="utf-8")


@pytest.fixture
def two_years(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write two years of the same people: 15 % left, as many came, everybody is a year older."""
    everybody = people()
    write(tmp_path / "first.csv", everybody[:340])
    later = [{**row, "age": int(str(row["age"])) + 1} for row in everybody[60:]]
    write(tmp_path / "second.csv", later)
    monkeypatch.chdir(tmp_path)
    project(tmp_path, "first.csv")
    assert run(["release", "-o", "release-1.csv"]) == 0
    project(tmp_path, "second.csv")
    return tmp_path


# Brute force over what was published: whose rows fit which class, and who has the same classes in both years.


def holds(cell: str, value: str) -> bool:
    if cell == "*":
        return True
    if cell.startswith("["):
        low, high = cell.strip("[]").split(", ")
        return float(low) <= float(value) <= float(high)
    if cell.startswith("{"):
        return value in cell.strip("{}").split("|")
    return cell == value


QI = ("age", "sex", "postcode")


def class_of(row: dict[str, str], released: set[tuple[str, ...]]) -> tuple[str, ...] | None:
    fitting = [cells for cells in released if all(holds(c, row[q]) for c, q in zip(cells, QI, strict=True))]
    assert len(fitting) <= 1
    return fitting[0] if fitting else None


def classes_in(released: list[dict[str, str]]) -> Counter[tuple[str, ...]]:
    return Counter(tuple(row[q] for q in QI) for row in released)


def test_two_releases_that_single_people_out_together_are_refused(two_years, capsys):
    capsys.readouterr()
    assert run(["release", "-o", "release-2.csv"]) == 4
    said = capsys.readouterr().err
    assert not (two_years / "release-2.csv").exists()
    assert len(list((two_years / ".sfumato-ledger").glob("0*"))) == 1
    first, second = read(two_years / "first.csv"), read(two_years / "second.csv")
    # the release that was refused, made without the ledger
    assert run(["release", "-o", "release-2.csv", "--ledger", "off"]) == 0
    assert "not checked together with earlier releases, as asked" in capsys.readouterr().err
    assert len(list((two_years / ".sfumato-ledger").glob("0*"))) == 1
    classes = [set(classes_in(read(two_years / f"release-{i}.csv"))) for i in (1, 2)]
    joint: dict[str, list[object]] = {}
    for i, rows in enumerate((first, second)):
        for row in rows:
            joint.setdefault(row["patient"], [None, None])[i] = class_of(row, classes[i])
    ill = {row["patient"]: row["ill"] for row in [*first, *second]}
    sizes = Counter(map(tuple, joint.values()))
    values: dict[object, set[str]] = {}
    for person, both in joint.items():
        values.setdefault(tuple(both), set()).add(ill[person])
    below = [p for p, both in joint.items() if sizes[tuple(both)] < 5 or len(values[tuple(both)]) < 2]
    assert len(below) > 100
    assert f"together with 1 earlier release {len(below)} persons fall below what was promised" in said
    assert "--ledger repair" in said


@pytest.mark.parametrize(("mechanism", "more"), [("mondrian", "l = 2"), ("auto", "")])
def test_a_repaired_release_holds_together_with_the_first(two_years, capsys, mechanism, more):
    project(two_years, "second.csv", mechanism, more)
    assert run(["release", "-o", "release-2.csv", "--ledger", "repair"]) == 0
    assert "nobody falls below the promise" in capsys.readouterr().err
    from sfumato.publishing.ledger import Ledger

    ledger = Ledger(two_years / ".sfumato-ledger")
    entries = ledger.entries()
    assert [entry.number for entry in entries] == [1, 2]
    released = [read(two_years / f"release-{i}.csv") for i in (1, 2)]
    suppressed = json.loads((two_years / "release-2.csv.manifest.json").read_text())["suppressed_rows"]
    assert len(released[1]) + suppressed == 340
    assert len(released[1]) > 0
    # By brute force: the classes that the ledger has are those of the file, and persons in both keep their crowd.
    sizes = [sorted(Counter(e.rows.classes.tolist()).values()) for e in entries]
    assert sizes == [sorted(classes_in(own).values()) for own in released]
    joint: dict[bytes, list[int]] = {}
    for i, entry in enumerate(entries):
        for code, own in zip(entry.rows.persons.codes, entry.rows.classes, strict=True):
            joint.setdefault(entry.rows.persons.names[code], [-1, -1])[i] = int(own)
    assert min(Counter(map(tuple, joint.values())).values()) >= 5
    held: dict[tuple[int, ...], set[bytes]] = {}
    for entry in entries:
        for code, value in zip(entry.rows.persons.codes, entry.rows.values["ill"].codes, strict=True):
            name = entry.rows.persons.names[code]
            held.setdefault(tuple(joint[name]), set()).add(entry.rows.values["ill"].names[value])
    assert min(map(len, held.values())) >= 2


def test_the_ledger_is_private_and_holds_no_person(two_years):
    ledger = two_years / ".sfumato-ledger"
    assert stat.S_IMODE(ledger.stat().st_mode) == 0o700
    for path in ledger.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
        if path.is_file():
            assert b"P1000" not in path.read_bytes()
    assert (ledger / ".gitignore").read_text() == "*\n"
    assert (ledger / "0001" / "released.csv").read_bytes() == (two_years / "release-1.csv").read_bytes()


def test_the_same_release_once_more_needs_no_second_entry(two_years, capsys):
    project(two_years, "first.csv")
    assert run(["release", "-o", "again.csv"]) == 0
    assert len(list((two_years / ".sfumato-ledger").glob("0*"))) == 1


def test_a_dry_run_is_checked_and_leaves_no_entry(two_years, capsys):
    assert run(["release", "--dry-run"]) == 4
    project(two_years, "first.csv")
    assert run(["release", "--dry-run"]) == 0
    assert len(list((two_years / ".sfumato-ledger").glob("0*"))) == 1


def test_a_release_that_cannot_appear_leaves_no_entry(two_years, monkeypatch):
    from sfumato.publishing import publish

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(publish, "appear_together", fails)
    assert run(["release", "-o", "release-2.csv", "--ledger", "repair"]) == 3
    assert sorted(path.name for path in (two_years / ".sfumato-ledger").iterdir()) == [
        ".gitignore",
        "0001",
        "README",
        "key",
    ]


def test_a_lost_or_foreign_key_is_one_clear_line(two_years, capsys):
    key = two_years / ".sfumato-ledger" / "key"
    kept = key.read_bytes()
    key.unlink()
    assert run(["release", "-o", "release-2.csv"]) == 3
    assert "the ledger's key is not there. Hint: restore it" in capsys.readouterr().err
    key.write_bytes(os.urandom(32))
    assert run(["release", "-o", "release-2.csv"]) == 3
    assert "the ledger's key is not the one that the ledger was made with" in capsys.readouterr().err
    key.write_bytes(kept[:7])
    assert run(["release", "-o", "release-2.csv"]) == 3
    assert "the ledger's key is damaged" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["entry.json", "manifest.json", "persons.parquet"])
@pytest.mark.parametrize("content", [b"", b"{}", None])
def test_a_damaged_entry_is_one_clear_line(two_years, capsys, name, content):
    path = two_years / ".sfumato-ledger" / "0001" / name
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    assert run(["release", "-o", "release-2.csv"]) == 3
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert "0001: this entry of the ledger is damaged" in said
    assert "sfumato ledger forget" in said


def test_a_ledger_of_another_table_is_one_clear_line(two_years, capsys):
    strangers = [{**row, "patient": f"Q{i}"} for i, row in enumerate(people(3))]
    write(two_years / "second.csv", strangers)
    assert run(["release", "-o", "release-2.csv"]) == 3
    assert "none of the 400 persons of this table is in 1 earlier release" in capsys.readouterr().err


def test_a_person_column_with_missing_values_is_one_clear_line(two_years, capsys):
    rows = read(two_years / "second.csv")
    rows[0]["patient"] = ""
    write(two_years / "second.csv", rows)
    assert run(["release", "-o", "release-2.csv"]) == 3
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert "column 'patient': 1 rows have no person, so nobody can say in which releases they are" in said


def test_an_empty_ledger_is_begun(two_years, capsys):
    shutil.rmtree(two_years / ".sfumato-ledger" / "0001")
    assert run(["release", "-o", "release-2.csv"]) == 0
    assert [path.name for path in (two_years / ".sfumato-ledger").glob("0*")] == ["0001"]


def test_without_a_person_column_it_is_said_that_nothing_can_be_checked(two_years, capsys):
    text = (two_years / "sfumato.toml").read_text().replace('role = "person"', 'role = "identifier"')
    (two_years / "sfumato.toml").write_text(text)
    assert run(["release", "-o", "release-2.csv"]) == 0
    said = capsys.readouterr().err
    assert "not checked together with 1 earlier release: no column tells persons apart (role person)" in said
    assert len(list((two_years / ".sfumato-ledger").glob("0*"))) == 2


def test_a_mechanism_that_cannot_be_repaired_names_those_that_can(two_years, capsys):
    assert run(["release", "-m", "global-recoding", "-o", "release-2.csv"]) == 4
    assert "auto and mondrian can make a release that holds together with these" in capsys.readouterr().err
    assert run(["release", "-m", "global-recoding", "-o", "release-2.csv", "--ledger", "repair"]) == 2
    assert "auto or mondrian" in capsys.readouterr().err


def test_a_third_release_is_checked_with_both(two_years, capsys):
    assert run(["release", "-o", "release-2.csv", "--ledger", "repair"]) == 0
    write(two_years / "third.csv", read(two_years / "second.csv"))  # the same people, released once more
    project(two_years, "third.csv", more="l = 2\nsplit = 'median'")
    assert run(["release", "-o", "release-3.csv"]) == 4
    assert "together with 2 earlier releases" in capsys.readouterr().err
    assert run(["release", "-o", "release-3.csv", "--ledger", "repair"]) == 0
    assert "together with 2 earlier releases" in capsys.readouterr().err
