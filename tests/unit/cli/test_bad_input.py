"""The shortest command on tables that nobody thinks of: a sensible answer or one clear line, nothing half written."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato
from sfumato.cli.main import run
from sfumato.errors import SfumatoError

N_ROWS = 60


def people(n_rows=N_ROWS, **columns):
    made = {
        "age": [20 + i % 30 for i in range(n_rows)],
        "town": ["abc"[i % 3] for i in range(n_rows)],
        "y": ["yn"[i % 2] for i in range(n_rows)],
    }
    return made | {name: [of(i) for i in range(n_rows)] for name, of in columns.items()}


def write(columns, name="in.csv"):
    rows = zip(*columns.values(), strict=True)
    with Path(name).open("w") as file:
        file.writelines(",".join(map(str, row)) + "\n" for row in (tuple(columns), *rows))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def release(capsys, columns, *flags):
    """Release in the shortest way; gives the exit code and what was said of the release."""
    write(columns)
    code = run(["release", "in.csv", *flags, "-o", "out.csv"])
    lines = capsys.readouterr().err.splitlines()
    return code, [line for line in lines if not line.startswith("guessed")]


def line_of(lines, heading):
    return next(line for line in lines if line.startswith(heading)).removeprefix(heading).strip()


ANSWERED = {
    "one class": (people(y=lambda _: "y"), "the target has one class only"),
    "every value missing": (people(y=lambda _: ""), "the target has one class only"),
    "numbers": (people(y=lambda i: i / 7), "column 'y': has 60 different numbers, but only classes can be predicted"),
}
"""Targets that nothing is predicted of, and what is said."""


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "words"), ANSWERED.values(), ids=ANSWERED)
def test_a_target_that_cannot_be_predicted_is_released_and_the_reason_said(folder, capsys, columns, words):
    code, lines = release(capsys, columns, "--target", "y")

    assert code == 0
    assert line_of(lines, "Prediction:").startswith(f"not measured: {words}")
    assert sorted(os.listdir(folder)) == ["in.csv", "out.csv", "out.csv.manifest.json"]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"age": people()["age"], "town": people()["town"]}, "there is no target"),
        (ANSWERED["one class"][0], "one class"),
    ],
    ids=["none", "one class"],
)
def test_without_classes_the_penalty_decides_and_that_is_said(folder, capsys, columns, problem):
    code, lines = release(capsys, columns, *(["--target", "y"] if "y" in columns else []), "--quick")

    assert code == 0
    (note,) = [line for line in lines if line.startswith("note:")]
    assert problem in note
    assert note.endswith("so the release keeps as much detail as it can")


MEASURED = {
    "more classes than folds": people(y=lambda i: f"c{i % 20}"),
    "a class of one row": people(y=lambda i: "rare" if i == 7 else "yn"[i % 2]),
    "missing values": people(y=lambda i: "" if i % 5 == 0 else "yn"[i % 2]),
    "fewer rows than 2k": people(8),
    "two rows of a class at most": people(y=lambda i: f"c{i * 17 % 60 // 2}"),
    "constant columns": people(age=lambda _: 30, town=lambda _: "a"),
}


@pytest.mark.slow
@pytest.mark.parametrize("columns", MEASURED.values(), ids=MEASURED)
def test_what_can_be_measured_is_measured(folder, capsys, columns):
    code, lines = release(capsys, columns, "--target", "y")

    assert code == 0
    assert line_of(lines, "Prediction:").startswith("AUC ")
    assert any(line.startswith("WARNING: this release is not shown to predict better than guessing") for line in lines)


@pytest.mark.slow
def test_a_target_that_a_quasi_identifier_determines_is_said_to_be_disclosed(folder, capsys):
    code, lines = release(capsys, people(y=lambda i: "xyz"[i % 3]), "--target", "y")

    assert code == 0
    assert line_of(lines, "Prediction:").startswith("AUC 1.000")
    assert line_of(lines, "Not covered:").startswith("100 % of rows are in groups that share one target value")


@pytest.mark.slow
def test_several_hundred_classes_are_measured_without_boosting(folder, capsys):
    code, lines = release(capsys, people(600, y=lambda i: f"v{i % 300}"), "--target", "y", "--confirm", "y")

    assert code == 0
    assert "gradient boosting" not in line_of(lines, "Prediction:")


REFUSED = {
    "three rows": (people(3), 4, "groups of k = 5 rows in a table of 3", "ask for a k of at most 3, or give more rows"),
    "one row": (people(1), 4, "groups of k = 5 rows in a table of 1", "or give more rows"),
    "no row": (people(0), 3, "no data rows", ""),
    "one column": ({"y": people()["y"]}, 3, "no quasi-identifier to coarsen", "(--quasi-identifiers)"),
    "identifiers only": (
        {"patient_id": list(range(N_ROWS)), "y": people()["y"]},
        3,
        "apart from the identifiers, which are never released: 'patient_id'",
        "(--quasi-identifiers)",
    ),
    "no such target": ({"age": people()["age"]}, 3, "column 'y'", ""),
}


@pytest.mark.parametrize(("columns", "exit_code", "problem", "remedy"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_released_is_one_line_and_nothing_is_written(
    folder, capsys, columns, exit_code, problem, remedy
):
    code, lines = release(capsys, columns, "--target", "y")

    (line,) = lines
    assert code == exit_code
    assert problem in line
    assert line.endswith(remedy)
    assert os.listdir(folder) == ["in.csv"]


@pytest.mark.parametrize("name", [name for name in REFUSED if name != "no row"])
def test_python_refuses_the_same(name):
    columns, exit_code, problem, _ = REFUSED[name]

    with pytest.raises(SfumatoError) as refused:
        sfumato.release(pa.table(columns), target="y")
    assert refused.value.exit_code == exit_code
    assert problem in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERED)
def test_python_releases_the_same(name):
    columns, _ = ANSWERED[name]

    found = sfumato.release(pa.table(columns), target="y")
    assert found.manifest.guarantees[0]["audited"] >= 5
    guided = {"one class": "penalty", "every value missing": "penalty"}
    assert found.manifest.mechanism["parameters"]["split"] == guided.get(name, "score")
