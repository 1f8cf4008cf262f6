"""``release DATA`` takes a table for what ``init`` writes down about it, and so do Python and the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sfumato
from sfumato.cli.main import run
from sfumato.manifest import AnyTable
from sfumato.project.describe import describe_to_project
from sfumato.project.file import load_project
from sfumato.schema import Column, Role
from sfumato.table.io.read import ReadOptions
from sfumato.table.understanding import read_understood

TABLES: dict[str, dict[str, Any]] = {
    "adult/adult.data": {"format": "csv", "header": False},
    "adult/adult.test": {"format": "csv", "header": False, "skip_rows": 1},
    "adult-arx/adult.csv": {},
    "arx-wide/creditcard.csv.gz": {},
    "arx-wide/mach2019.csv.gz": {},
    "cmc/cmc.data": {"format": "csv", "header": False},
    "cmc/cmc.named.csv": {},
    "diabetes130/diabetic_data.csv.gz": {},
    "ilpd/ilpd.csv": {},
    "k-anonml/cahousing.csv.gz": {},
    "k-anonml/cmc.csv.gz": {},
    "k-anonml/mgm.csv.gz": {},
    "k-anonml/published.csv.gz": {},
    "pima/pima-indians-diabetes.csv": {"header": False},
    "primary-tumor/primary-tumor.arff": {},
    "pu1/pu1_bare_body.svm.gz": {},
    "sparse/a9a.gz": {"format": "libsvm"},
}
"""All public tables that have rows and columns; baskets of items (FIMI) and tables of word pairs are none."""
SMALL = ["cmc/cmc.named.csv", "ilpd/ilpd.csv", "k-anonml/mgm.csv.gz", "pima/pima-indians-diabetes.csv"]
FLAGS = {"format": "--format", "skip_rows": "--skip-rows"}


def told(column: Column) -> tuple[object, ...]:
    """Say what a column was taken for; a doubt is none any more once the project file says the format."""
    reading = column.reading
    return column.name, column.role, column.kind, column.domain, reading and (reading.format, reading.unit)


def described(table: AnyTable) -> tuple[object, ...]:
    plain = table.coded_part
    return plain.schema.missing, [told(column) for column in plain.schema]


@pytest.mark.parametrize("name", TABLES)
def test_a_public_table_is_understood_in_one_way(shared_data: Path, tmp_path: Path, name: str) -> None:
    """Roles, kinds, orders, formats, missing texts and preparations, with a project file and without."""
    options = ReadOptions(**TABLES[name])
    describe_to_project(shared_data / name, tmp_path / "sfumato.toml", options=options)
    project = load_project(tmp_path / "sfumato.toml")

    direct = read_understood(shared_data / name, options)
    by_project = project.read_unprepared()

    assert described(by_project) == described(direct.table)
    assert project.preparations == direct.preparations
    assert all(
        by_project.coded_part[one].cells().equals(direct.table.coded_part[one].cells())
        for one in by_project.coded_part.schema.names()
    )


@pytest.mark.parametrize("name", SMALL)
def test_the_released_bytes_are_the_same(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = TABLES[name]
    flags = [part for key, flag in FLAGS.items() if key in settings for part in (flag, str(settings[key]))]
    read = [str(shared_data / name), *flags, *([] if settings.get("header", True) else ["--no-header"])]

    assert run(["init", *read]) == 0
    assert run(["release", "--quick", "-o", "a.csv"]) == 0
    assert run(["release", *read, "--quick", "-o", "b.csv"]) == 0

    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes(), capsys.readouterr().err


def write_hospital(folder: Path) -> Path:
    """Rows with a date of birth, German dates and numbers, and texts for missing."""
    path = folder / "stays.csv"
    rows = [
        f"{1 + i % 28:02}.{1 + i % 12:02}.{1930 + i * 7 % 70};{i % 900},{i % 10};{('k.A.', 'ja', 'nein')[i % 3]};"
        f"{('A', 'B', 'C', 'keine Angabe')[i % 4]};{'mw'[i % 2]};{('gut', 'schlecht')[i * i % 5 % 2]}"
        for i in range(120)
    ]
    path.write_text("\n".join(["Geburtsdatum;Dosis;Raucher;Station;Geschlecht;Ausgang", *rows, ""]), encoding="utf-8")
    return path


def test_python_and_the_command_and_init_take_a_hospital_export_for_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dates of birth, formats and missing texts included; the released bytes are the same."""
    monkeypatch.chdir(tmp_path)
    path = write_hospital(tmp_path)

    assert run(["init", path.name, "--target", "Ausgang"]) == 0
    assert run(["release", "--quick", "-o", "a.csv"]) == 0
    assert run(["release", path.name, "--target", "Ausgang", "--quick", "-o", "b.csv"]) == 0
    made = sfumato.release(path, target="Ausgang")
    sfumato.publish(made, "c.csv", original=path)

    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes() == (tmp_path / "c.csv").read_bytes()
    found = read_understood(path, roles={"Ausgang": Role.TARGET})
    assert [asked.column for asked in found.preparations] == ["Geburtsdatum"]
    assert found.table.coded_part["Raucher"].n_missing == 40
    assert found.table.coded_part["Station"].n_missing == 30
    assert described(load_project("sfumato.toml").read_unprepared()) == described(found.table)
    assert "k.A." not in (tmp_path / "a.csv").read_text()


def test_what_was_understood_says_who_guessed_what(tmp_path: Path) -> None:
    found = read_understood(write_hospital(tmp_path), replace(ReadOptions(), delimiter=";"), {"Station": Role.OTHER})

    assert "Station" not in [guess.column.name for guess in found.guessed]
    assert len(found.guesses) == len(found.guessed) + 1
