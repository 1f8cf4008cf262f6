"""``sfumato attack`` with control people as a user types it."""

import csv
import json
import re

import numpy as np
import pytest

from sfumato.attack.controls import hold_out
from sfumato.cli.main import run
from sfumato.datasets.admissions import admissions
from sfumato.table.io.write import write_table

NAMES = ["age", "sex", "insurance", "smoker", "diabetes", "discharge_diagnosis", "readmitted"]
ROLES = ["--target", "readmitted", "--sensitive", "discharge_diagnosis", "--quasi-identifiers", ",".join(NAMES[:5])]
ATTACKS = ["singling_out", "singling_out", "linkability", "inference", "membership"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a working folder with a table, people who are held out of it, and a release of the others."""
    monkeypatch.chdir(tmp_path)
    everybody = admissions(n_rows=400).keep(NAMES)
    parts = {"all.csv": everybody} | dict(zip(("stays.csv", "others.csv"), hold_out(everybody, 0.5), strict=True))
    for name, table in parts.items():
        with (tmp_path / name).open("wb") as file:
            write_table(table, file, "csv")
    return tmp_path


def attack(capsys, *arguments):
    capsys.readouterr()
    code = run(["attack", *arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_held_out_people_are_compared_with_those_released_and_nothing_is_written(folder, capsys):
    before = sorted(folder.iterdir())

    code, out, err = attack(capsys, "all.csv", "--hold-out", ".5", *ROLES, "-m", "mondrian", "-k", "4", "--json")

    found = json.loads(out)
    assert code == 0
    assert list(found) == ["before", "released"]
    for when in found:
        assert found[when]["n_people"] == {"released": 200, "control": 200}
        assert [entry["attack"] for entry in found[when]["attacks"]] == ATTACKS
    assert found["before"]["attacks"][1]["released"]["rate"] > found["released"]["attacks"][1]["released"]["rate"] == 0
    assert "mondrian made a release of 200 of 400 rows" in err
    assert sorted(folder.iterdir()) == before


@pytest.mark.slow
def test_a_control_file_gives_what_holding_out_gives(folder, capsys):
    settings = [*ROLES, "-m", "mondrian", "-k", "4"]
    assert run(["release", "stays.csv", *settings, "-o", "release.csv"]) == 0

    code, out, _ = attack(capsys, "stays.csv", "release.csv", "--control", "others.csv", "--json")

    assert code == 0
    assert json.loads(out) == json.loads(attack(capsys, "all.csv", "--hold-out", ".5", *settings, "--json")[1])


@pytest.mark.slow
def test_a_project_says_what_is_released(folder, capsys):
    settings = [*ROLES, "-m", "mondrian", "-k", "4"]
    assert run(["init", "all.csv", *ROLES]) == 0

    code, out, _ = attack(capsys, "--hold-out", ".5", "-m", "mondrian", "-k", "4", "--json")

    assert code == 0
    assert json.loads(out) == json.loads(attack(capsys, "all.csv", "--hold-out", ".5", *settings, "--json")[1])


@pytest.mark.slow
def test_words_are_a_line_an_attack_and_quote_no_cell(folder, capsys):
    code, out, _ = attack(capsys, "all.csv", "--hold-out", ".25", *ROLES, "--infer-target")

    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith("100 of 300 people in the table and 100 of 100 control people")
    rows = [line for line in lines if re.search(r"\d \(\d+\.\d to \d+\.\d\)", line)]
    assert len(rows) == 6
    for label in (
        "singled out by all",
        "linked by",
        "'discharge_diagnosis' inferred",
        "'readmitted' inferred",
        "member",
    ):
        assert any(label in line for line in rows)
    assert len([line for line in lines if re.search(r"area under the curve.* 0\.\d{3} \(0\.\d{3} to", line)]) == 1
    assert any("promise nothing about membership" in line for line in lines)
    assert any("among 100 people of each group" in line for line in lines)
    with (folder / "all.csv").open(encoding="utf-8") as file:
        cells = {row["discharge_diagnosis"] for row in csv.DictReader(file)}
    assert not [cell for cell in cells if cell and cell in out]


def test_what_does_not_apply_is_said(folder, capsys):
    code, out, _ = attack(capsys, "all.csv", "--hold-out", ".5", *ROLES, "-m", "slicing")

    assert code == 0
    assert "released, singled out by quasi-identifiers: not applicable: values were moved" in out


def test_without_a_manifest_cells_are_values(folder, capsys):
    code, out, err = attack(capsys, "stays.csv", "stays.csv", "--control", "others.csv", *ROLES, "--json")

    found = json.loads(out)
    assert code == 0
    assert found["before"] == found["released"]
    assert "without a manifest" in err


def test_a_person_stays_on_one_side(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(1)
    lines = ["patient,age,sex,ill"]
    lines += [
        f"P{i // 3},{a},{'mf'[s]},{'xyz'[d]}" for i, (a, s, d) in enumerate(random.integers(0, [60, 2, 3], (300, 3)))
    ]
    (tmp_path / "visits.csv").write_text("\n".join(lines), encoding="utf-8")

    code, out, _ = attack(
        capsys,
        "visits.csv",
        "--hold-out",
        ".3",
        "--person",
        "patient",
        "--sensitive",
        "ill",
        "-m",
        "mondrian",
        "--json",
    )

    assert code == 0
    assert json.loads(out)["released"]["n_people"] == {"released": 70, "control": 30}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["all.csv", "stays.csv", "--hold-out", ".5"], "needs one table"),
        (["all.csv", "--hold-out", ".5", "--control", "others.csv"], "give one of"),
        (["stays.csv", "stays.csv", "--control", "others.csv", "-k", "5"], "-k is used with --hold-out only"),
        (
            ["stays.csv", "stays.csv", "--one-row-per-person", "first"],
            "--one-row-per-person is used with --hold-out only",
        ),
        (["stays.csv", "--control", "others.csv"], "give ORIGINAL and RELEASED"),
        (["all.csv", "--hold-out", "1.5"], "--hold-out"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(folder, capsys, arguments, said):
    code, out, err = attack(capsys, *arguments)

    assert (code, out) == (2, "")
    assert said in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.csv", "--hold-out", ".5"], "none.csv"),
        (["stays.csv", "stays.csv", "--control", "none.csv"], "none.csv"),
        (["all.csv", "--hold-out", ".001", *ROLES], "at least 2 people"),
    ],
)
def test_what_cannot_be_read_or_divided_is_one_line(folder, capsys, arguments, said):
    code, out, err = attack(capsys, *arguments)

    assert code != 0
    assert out == ""
    assert said in err
    assert "Traceback" not in err
