"""Several releases of the same people: refused where together they tell people apart, and kept."""

from __future__ import annotations

import csv
import json
import shutil
import signal
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from sfumato.cli.main import run
from sfumato.errors import InputError
from sfumato.publishing.from_project import publish_project
from together_oracles import carried, joint_classes

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


SAME_LEVELS = ("--ledger", "same-levels")


def joined_by(rows: list[dict[str, object]], name: str) -> list[dict[str, object]]:
    """Let six people with the quasi-identifiers of each one join: whoever was there has no smaller class for it."""
    joined = ({**row, "patient": f"{row['patient']}-{name}{i}", "ill": ILLS[i % 4]} for row in rows for i in range(6))
    return [*rows, *joined]


@pytest.fixture
def grown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write two years of a table that others joined, which finer levels suit and those of the first year hold."""
    write(tmp_path / "first.csv", people())
    write(tmp_path / "second.csv", joined_by(people(), "a"))
    monkeypatch.chdir(tmp_path)
    project(tmp_path, "first.csv", "global-recoding", NO_ROW_LEFT_OUT)
    assert run(["release", "-o", "release-1.csv"]) == 0
    project(tmp_path, "second.csv", "global-recoding", NO_ROW_LEFT_OUT)
    return tmp_path


NO_ROW_LEFT_OUT = "l = 2\nmax_suppressed_fraction = 0"


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
    assert "Hint: withdraw the earlier releases and release all anew" in said
    assert "same-levels" not in said  # a partition has none


def test_a_release_at_the_last_levels_holds_together_with_the_first(grown, capsys):
    assert run(["release", "-o", "release-2.csv"]) == 4
    assert "try the levels of the last release (--ledger same-levels)" in capsys.readouterr().err
    assert run(["release", "-o", "release-2.csv", *SAME_LEVELS]) == 0
    assert "nobody falls below the promise" in capsys.readouterr().err
    manifests = [json.loads((grown / f"release-{i}.csv.manifest.json").read_text()) for i in (1, 2)]
    first, second = (manifest["evidence"]["utility"]["levels"] for manifest in manifests)
    assert first == second
    assert below_in_ledger(grown) == set()
    from sfumato.publishing.ledger import Ledger

    entries = Ledger(grown / ".sfumato-ledger").entries()
    assert [entry.number for entry in entries] == [1, 2]
    released = [read(grown / f"release-{i}.csv") for i in (1, 2)]
    assert [len(own) for own in released] == [400, 2800]
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


def test_a_release_that_cannot_appear_leaves_no_entry(grown, monkeypatch):
    from sfumato.publishing import publish

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(publish, "appear_together", fails)
    assert run(["release", "-o", "release-2.csv", *SAME_LEVELS]) == 3
    assert sorted(path.name for path in (grown / ".sfumato-ledger").iterdir()) == [
        ".gitignore",
        "0001",
        "README",
    ]


KILLED = """
import os, signal, sys
from sfumato.cli.main import run
from sfumato.publishing import {module}

def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)

{module}.{name} = killed
run(["release", "-o", "release-2.csv", "--ledger", "same-levels"])
"""


def killed_at(module: str, name: str) -> None:
    found = subprocess.run(  # our own program
        [sys.executable, "-c", KILLED.format(module=module, name=name)], check=False, capture_output=True
    )
    assert found.returncode == -signal.SIGKILL, found.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_release_killed_while_its_entry_is_written_leaves_no_entry(grown):
    killed_at("ledger", "_sync")
    ledger = grown / ".sfumato-ledger"
    assert not (grown / "release-2.csv").exists()
    assert [path.name for path in ledger.glob("0*")] == ["0001"]
    assert len(list(ledger.glob("sfumato-ledger-*"))) == 1  # what it left is no entry
    assert run(["release", "-o", "release-2.csv", *SAME_LEVELS]) == 0
    assert not list(ledger.glob("sfumato-ledger-*"))
    assert len(list(ledger.glob("0*"))) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_release_killed_before_it_appears_leaves_an_entry_that_the_next_attempt_takes_over(grown):
    killed_at("publish", "appear_together")
    assert not (grown / "release-2.csv").exists()
    assert len(list((grown / ".sfumato-ledger").glob("0*"))) == 2
    assert run(["release", "-o", "release-2.csv", *SAME_LEVELS]) == 0
    assert len(list((grown / ".sfumato-ledger").glob("0*"))) == 2


def test_a_lost_or_foreign_key_is_one_clear_line(two_years, capsys):
    key = two_years / "sfumato.key"
    kept = key.read_text()
    key.unlink()
    assert run(["release", "-o", "release-2.csv"]) == 3
    assert "sfumato.key: the project's key is not there. Hint: restore it" in capsys.readouterr().err
    assert not key.exists()  # no other key is made in its place
    assert run(["release", "-o", "release-2.csv", "--ledger", "off"]) == 3  # nor if the ledger is left alone
    assert "If it is lost for good, move .sfumato-ledger away" in capsys.readouterr().err
    assert not key.exists()
    with pytest.raises(InputError, match="the project's key is not there"):
        publish_project(two_years / "sfumato.toml", "release-2.csv", ledger="off")
    assert not key.exists()
    (two_years / ".sfumato-ledger").rename(two_years / "away")  # as the message says
    assert run(["release", "-o", "release-2.csv"]) == 0
    (two_years / "release-2.csv").unlink()
    (two_years / "release-2.csv.manifest.json").unlink()
    shutil.rmtree(two_years / ".sfumato-ledger")
    (two_years / "away").rename(two_years / ".sfumato-ledger")
    key.write_text("0" * 64 + "\n")
    key.chmod(0o600)
    assert run(["release", "-o", "release-2.csv"]) == 3
    assert "the project's key is not the one that the ledger was made with" in capsys.readouterr().err
    key.write_text(kept[:7])
    assert run(["release", "-o", "release-2.csv"]) == 3
    assert "does not hold the key of a project" in capsys.readouterr().err


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


def test_a_promise_that_is_not_judged_together_is_named(two_years, capsys):
    assert run(["release", "-m", "anatomy", "-p", "l=2", "-o", "release-2.csv"]) == 0
    said = capsys.readouterr().err
    assert "not checked together with 1 earlier release: anatomy promises" in said
    project(two_years, "first.csv")
    assert run(["release", "-o", "again.csv"]) == 0
    said = capsys.readouterr().err
    assert "not checked together with 1 earlier release: what they promise is not judged together" in said


@pytest.mark.parametrize(
    "mechanism", [["auto"], ["mondrian"], ["local-recoding"], ["gain-recoding", "-p", "slicing=true"]]
)
def test_a_mechanism_without_levels_of_its_own_names_those_that_have_some(two_years, capsys, mechanism):
    project(two_years, "second.csv", more="")
    assert run(["release", "-m", *mechanism, "-o", "release-2.csv", *SAME_LEVELS]) == 2
    assert "global-recoding or gain-recoding" in capsys.readouterr().err


def test_without_a_release_that_has_levels_none_are_taken(two_years, capsys):
    assert run(["release", "-m", "global-recoding", "-o", "release-2.csv", *SAME_LEVELS]) == 2
    assert "no earlier release has levels of these quasi-identifiers" in capsys.readouterr().err
    assert run(["ledger", "forget", "1"]) == 0
    assert run(["release", "-m", "global-recoding", "-o", "release-2.csv", *SAME_LEVELS]) == 0  # the first one


def test_the_last_levels_leave_out_no_more_rows_than_allowed(grown, capsys):
    write(grown / "second.csv", people()[:60])
    assert run(["release", "-o", "release-2.csv", *SAME_LEVELS]) == 4
    assert "of 60 rows would be suppressed, at most 0 may be" in capsys.readouterr().err


def test_drop_in_cells_are_released_at_the_last_levels(grown):
    assert run(["release", "--cells", "values", "-o", "release-2.csv", *SAME_LEVELS]) == 0
    assert {row["age"] for row in read(grown / "release-2.csv")} <= {row["age"] for row in read(grown / "second.csv")}


def test_a_third_release_is_checked_with_both(grown, capsys):
    assert run(["release", "-o", "release-2.csv", *SAME_LEVELS]) == 0
    write(grown / "third.csv", joined_by(joined_by(people(), "a"), "b"))
    project(grown, "third.csv", "global-recoding", NO_ROW_LEFT_OUT)
    assert run(["release", "-o", "release-3.csv"]) == 4
    assert "together with 2 earlier releases" in capsys.readouterr().err
    assert run(["release", "-o", "release-3.csv", *SAME_LEVELS]) == 0
    assert "together with 2 earlier releases" in capsys.readouterr().err


def test_a_dry_run_of_a_first_release_leaves_no_ledger(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "first.csv", people())
    project(tmp_path, "first.csv")
    assert run(["release", "--dry-run"]) == 0
    assert not (tmp_path / ".sfumato-ledger").exists()


def test_a_refused_release_leaves_no_ledger(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "first.csv", people(n=4))
    project(tmp_path, "first.csv")
    assert run(["release", "-o", "release-1.csv"]) == 4
    assert not (tmp_path / ".sfumato-ledger").exists()


def visits(rows: list[dict[str, object]], seed: int) -> list[dict[str, object]]:
    """Give people one to three rows, of which age and postcode differ a little."""
    rng = np.random.default_rng(seed)
    found = []
    for row in rows:
        for _ in range(int(rng.integers(1, 4))):
            found.append({**row, "age": int(str(row["age"])) + int(rng.integers(3))})
    return found


def test_persons_with_several_rows_are_counted_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "first.csv", visits(people(), 1))
    project(tmp_path, "first.csv")
    assert run(["release", "-o", "release-1.csv"]) == 0
    assert run(["release", "-o", "again.csv"]) == 0  # the same once more says no more
    write(tmp_path / "second.csv", visits(people(), 2))
    project(tmp_path, "second.csv")
    capsys.readouterr()
    assert run(["release", "-o", "release-2.csv"]) == 4
    assert run(["release", "-o", "release-2.csv", "--ledger", "off"]) == 0
    assert audit("--project", "sfumato.toml", *OTHER) == 5  # an audit refuses it, too


def below_in_ledger(folder: Path, k: int = 5, diversity: int = 2) -> set[bytes]:
    """Persons whom the releases in a ledger leave below k or l together, by brute force over who is in which class."""
    from sfumato.publishing.ledger import Ledger

    releases = []
    for entry in Ledger(folder / ".sfumato-ledger").entries():
        codes, held = entry.rows.persons, entry.rows.values["ill"]
        persons, values = ([own.names[c] for c in own.codes.tolist()] for own in (codes, held))
        releases.append(list(zip(persons, entry.rows.classes.tolist(), values, strict=True)))
    below = set()
    for combination, persons in joint_classes(releases).items():
        shown = [(rows, c) for rows, c in zip(releases, combination, strict=True) if c != -1]
        if len(persons) < k or any(carried(rows, c, persons) < diversity for rows, c in shown):
            below |= persons
    return below


def test_two_releases_at_once_are_not_both_kept_unchecked(two_years):
    """The entry of another process that appears after the check stops the release."""
    from sfumato.errors import OutputError
    from sfumato.manifest import Manifest
    from sfumato.publishing.ledger import Ledger

    ledger = Ledger(two_years / ".sfumato-ledger")
    text = (two_years / "release-1.csv.manifest.json").read_text()
    manifest = Manifest.from_json(text, path="release-1.csv.manifest.json")
    with (
        pytest.raises(OutputError, match="another release was put into the ledger"),
        ledger.recorded(two_years / "release-1.csv", manifest, None, None, checked=()),
    ):
        pytest.fail("it was kept")
    assert [entry.number for entry in ledger.entries()] == [1]


# The audit of several releases, and the command that looks at the ledger.


def audit(*arguments: str) -> int:
    return run(["audit", "release-2.csv", "--manifest", "release-2.csv.manifest.json", *arguments])


OTHER = ("--with", "release-1.csv.manifest.json")


def test_an_audit_of_both_refuses_what_single_people_out(two_years, capsys):
    assert run(["release", "-o", "release-2.csv", "--ledger", "off"]) == 0
    capsys.readouterr()
    assert audit("--project", "sfumato.toml") == 0  # each by itself is fine
    capsys.readouterr()
    originals = ["--original", "second.csv", "--person", "patient", "--with-original", "first.csv"]
    assert audit(*originals, *OTHER) == 5
    from_originals = capsys.readouterr().out
    assert "2 releases together: persons with the same classes in all of them: promised 5, found 1" in from_originals
    assert audit("--project", "sfumato.toml", *OTHER) == 5  # the first from the ledger, the second from its original
    assert from_originals.count("together:") == capsys.readouterr().out.count("together:") > 0


def test_an_audit_of_both_confirms_what_holds_by_the_ledger_and_by_originals(grown, capsys):
    assert run(["release", "-o", "release-2.csv", *SAME_LEVELS]) == 0
    capsys.readouterr()
    originals = ["--original", "second.csv", "--person", "patient", "--with-original", "first.csv"]
    for known in (["--project", "sfumato.toml"], originals):
        assert audit(*known, *OTHER, "--accept", "figures,commitment,roles") == 0
        said = capsys.readouterr().out
        assert "2 releases together keep what each promised: the smallest joint class has 6 persons" in said


def test_an_audit_that_does_not_know_who_is_who_says_so(two_years, capsys):
    assert run(["release", "-o", "release-2.csv", "--ledger", "off"]) == 0
    capsys.readouterr()
    assert audit("--original", "second.csv", *OTHER) == 8
    said = capsys.readouterr().out
    assert "whose rows 'release-1.csv' holds is not known: its original was not given" in said
    assert "confirmed except" in said
    assert audit("--original", "second.csv", *OTHER, "--accept", "roles,together,commitment") == 0


def test_an_original_with_more_rows_of_a_class_does_not_tell_whose_they_are(two_years, capsys):
    assert run(["release", "-o", "release-2.csv", "--ledger", "off"]) == 0
    first = read(two_years / "first.csv")
    write(two_years / "longer.csv", [*first, {**first[0], "patient": "P9999"}])
    originals = ["--original", "second.csv", "--person", "patient", "--with-original", "longer.csv"]
    capsys.readouterr()
    assert audit(*originals, *OTHER) == 8
    assert "some rows that fit the cells of a class were left out of the release" in capsys.readouterr().out


def test_another_file_under_the_manifest_is_refused(two_years, capsys):
    assert run(["release", "-o", "release-2.csv", "--ledger", "off"]) == 0
    shutil.copy("release-2.csv", "release-1.csv")
    assert audit("--project", "sfumato.toml", *OTHER) == 5
    assert "'release-1.csv' has not the SHA-256 that its manifest states" in capsys.readouterr().out


def test_options_that_do_not_go_together_are_refused(two_years, capsys):
    assert run(["release", "-o", "release-2.csv", "--ledger", "off"]) == 0
    assert audit(*OTHER, "--with-original", "first.csv", "--with-original", "second.csv") == 2
    assert run(["audit", "first.csv", *OTHER]) == 2
    assert run(["release", "first.csv", "-o", "x.csv", "--ledger", "check"]) == 2


def test_the_ledger_is_listed_forgotten_and_filled_by_originals(two_years, capsys):
    assert run(["ledger", "list"]) == 0
    assert capsys.readouterr().out == "   1  release-1.csv  (mondrian, 340 rows, 340 persons)\n"
    before = (two_years / ".sfumato-ledger" / "0001" / "persons.parquet").read_bytes()
    assert run(["ledger", "forget", "1"]) == 0
    assert run(["ledger", "forget", "1"]) == 3
    assert run(["ledger", "list"]) == 0
    assert "the ledger is empty" in capsys.readouterr().err
    added = ["ledger", "add", "release-1.csv", "--manifest", "release-1.csv.manifest.json", "--original", "first.csv"]
    assert run([*added, "--person", "patient"]) == 0
    assert (two_years / ".sfumato-ledger" / "0001" / "persons.parquet").read_bytes() == before
    assert run([*added, "--person", "patient"]) == 0
    assert "is in the ledger already" in capsys.readouterr().err
    assert run([*added, "--person", "nobody"]) == 3
    assert run(["release", "-o", "release-2.csv"]) == 4  # what was added is checked as what was released


def test_epsilons_of_noisy_releases_are_summed(tmp_path, monkeypatch, capsys):
    pytest.importorskip("opendp")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    features = [{name: int(rng.integers(2)) for name in ("coughs", "smokes", "sick")} for _ in range(200)]
    write(tmp_path / "first.csv", features)
    roles = {"coughs": "quasi-identifier", "smokes": "quasi-identifier", "sick": "target"}
    columns = "\n".join(f'{name} = {{ role = "{role}", kind = "categorical" }}' for name, role in roles.items())
    settings = '[release]\nmechanism = "laplace-dp"\n[release.parameters]\nepsilon = 0.5\nn_features = 2\n'
    (tmp_path / "sfumato.toml").write_text(f'[data]\npath = "first.csv"\n[columns]\n{columns}\n{settings}')
    (tmp_path / ".sfumato-ledger").mkdir()
    assert run(["release", "-o", "release-1.csv"]) == 0
    assert run(["release", "-o", "release-2.csv", "-p", "epsilon=0.25"]) == 0
    assert "differential privacy together with 1 earlier release: ε = 0.75, the sum" in capsys.readouterr().err
