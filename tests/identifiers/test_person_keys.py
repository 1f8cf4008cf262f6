"""Numbers that tell persons apart in tables of several rows a person, and numbers that only look like them."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from random import Random

import pytest

from identifiers import formats
from sfumato.cli.main import run
from sfumato.schema import WITHHELD
from sfumato.table.io.read import read_table
from sfumato.table.roles import describe_columns

N_ROWS = 20_190
N_PERSONS = 5_912

Columns = dict[str, list[str]]


def rows_a_person(draw: Random) -> list[int]:
    """One to five rows for each of 5,912 persons, 20,190 together, as in the RAND Health Insurance Experiment."""
    counts = [draw.choice((1, 2, 3, 3, 4, 5)) for _ in range(N_PERSONS)]
    while sum(counts) != N_ROWS:
        at, step = draw.randrange(N_PERSONS), 1 if sum(counts) < N_ROWS else -1
        counts[at] = min(5, max(1, counts[at] + step))
    return counts


def made_keys(form: str, draw: Random) -> list[str]:
    if form == "rising":
        keys = sorted(draw.sample(range(125_000, 640_000), N_PERSONS))
        return [str(key) for key in keys]
    if form == "five digits":
        return [str(key) for key in draw.sample(range(10_000, 99_999), N_PERSONS)]
    keys_of_signs: dict[str, None] = {}
    while len(keys_of_signs) < N_PERSONS:
        keys_of_signs[formats.short_code(draw, "en")] = None
    return list(keys_of_signs)


def insurance_table(form: str, is_shuffled: bool) -> Columns:
    """Persons with a plan, a sex, an income that stay, and visits that change from year to year."""
    draw = Random(f"{form} {is_shuffled}")
    rows = []
    for key, n_rows in zip(made_keys(form, draw), rows_a_person(draw), strict=True):
        age, sex, plan = draw.randrange(5, 62), draw.choice("mf"), draw.choice(("free", "25 %", "50 %", "95 %"))
        income, disease = (
            f"{draw.lognormvariate(9.2, 0.6):.2f}",
            f"{draw.choice((10.57626, 13.73189, draw.gauss(11, 6))):.5f}",
        )
        for year in range(1, n_rows + 1):
            n_visits = int(draw.expovariate(0.4 if plan == "free" else 0.6))
            rows.append((key, year, plan, sex, age + year, income, disease, n_visits, "yes" if n_visits else "no"))
    if is_shuffled:
        draw.shuffle(rows)
    names = ("zper", "year", "plan", "sex", "age", "income", "disea", "mdvis", "seen")
    return {name: [str(row[n]) for row in rows] for n, name in enumerate(names)}


def written(columns: Columns, path: Path) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("is_shuffled", [False, True], ids=["contiguous", "shuffled"])
@pytest.mark.parametrize("form", ["rising", "five digits", "short codes"])
def test_a_key_of_persons_is_left_out_and_the_output_says_what_to_type(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], form: str, is_shuffled: bool
) -> None:
    """The released file lacks the key alone; the output says that k may count rows, not people, and names --person."""
    columns = insurance_table(form, is_shuffled)
    path, output = written(columns, tmp_path / "visits.csv"), tmp_path / "release.csv"
    code = run(["release", str(path), "--target", "seen", "-m", "mondrian", "--quick", "-o", str(output)])
    said = " ".join("".join(capfd.readouterr()).split())

    assert len(columns["zper"]) == N_ROWS
    assert code == 0
    assert output.read_text("utf-8").splitlines()[0].split(",") == list(columns)[1:]
    assert "--person zper" in said
    assert re.search(r"\bk\b.*\brows\b.*\b(people|persons)\b", said), said


@pytest.mark.slow
def test_who_says_that_it_is_the_person_gets_k_by_persons(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """With --person nothing more is asked about the key."""
    path, output = written(insurance_table("rising", True), tmp_path / "visits.csv"), tmp_path / "release.csv"
    given = ["--target", "seen", "--person", "zper", "-m", "mondrian", "--quick"]
    code = run(["release", str(path), *given, "-o", str(output)])
    said = "".join(capfd.readouterr())

    assert code == 0
    assert "zper" not in output.read_text("utf-8").splitlines()[0].split(",")
    assert "--person" not in said


@pytest.mark.slow
def test_whole_numbers_that_measure_are_no_keys(tmp_path: Path) -> None:
    """Incomes, costs, distances and days with few rows each follow the other columns, or are measured."""
    draw = Random(4)
    age = [draw.randrange(18, 90) for _ in range(N_ROWS)]
    distance = [int(draw.lognormvariate(8, 1)) for _ in age]
    columns = {
        "v1": [str(int(draw.lognormvariate(9.5 + years / 90, 0.5))) for years in age],
        "v2": [str(int(metres * 1.3 + draw.gauss(300, 60))) for metres in distance],
        "v3": [str(metres) for metres in distance],
        "v4": [str(years * 365 + draw.randrange(365)) for years in age],
        "v5": [str(round(draw.gauss(200, 40))) for _ in age],
        "age": [str(years) for years in age],
        "y": ["yes" if years + draw.gauss(0, 20) > 60 else "no" for years in age],
    }
    guesses = describe_columns(read_table(written(columns, tmp_path / "measured.csv")))

    assert [(g.column.name, g.reason) for g in guesses if g.column.role in WITHHELD] == []
