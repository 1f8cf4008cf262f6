"""Dates of birth that are released as ages: what is recognised, and at which day the ages are taken."""

from datetime import date, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.cli.main import run
from sfumato.project.edit import ProjectChanges, edit_project
from sfumato.project.file import load_project
from sfumato.schema import Role
from sfumato.table.births import days_of_ages, released_as_ages
from sfumato.table.io.read import read_table
from sfumato.table.repeating import IdentifierCounts, repeating_identifiers
from sfumato.table.roles import describe_columns

BIRTHS = [date(1950, 3, 1) + timedelta(days=431 * step) for step in range(40)]
NAMES = [
    "date of birth",
    "Geburtsdatum",
    "date de naissance",
    "fecha de nacimiento",
    "data di nascita",
    "data de nascimento",
    "geboortedatum",
    "data urodzenia",
]


def table(births, name="born", **others):
    texts = {name: [day.isoformat() for day in births]}
    return read_table(pa.table({**texts, **{key: [str(cell) for cell in cells] for key, cells in others.items()}}))


def days(found, **roles):
    return days_of_ages(found, describe_columns(found, overrides=roles))


@pytest.mark.parametrize("name", NAMES)
def test_names_of_eight_languages_are_known(name):
    assert list(days(table(BIRTHS, name))) == [name]


def test_the_day_is_the_first_one_after_the_years_of_all_dates():
    visits = [date(2021, 5, 5) + timedelta(days=9 * step) for step in range(40)]

    assert days(table(BIRTHS, seen=visits)) == {"born": date(2023, 1, 1)}
    assert max(visits).year == 2022


def test_without_another_date_it_follows_from_the_newest_birth():
    assert days(table(BIRTHS)) == {"born": date(max(BIRTHS).year + 1, 1, 1)}


def test_a_date_that_stands_for_no_end_is_not_looked_at():
    ends = [date(2020, 1, 1), *[date(2999, 12, 31)] * 39]

    assert days(table(BIRTHS, discharged=ends)) == {"born": date(2021, 1, 1)}


def test_a_role_that_was_given_stays():
    found = table(BIRTHS)

    assert days(found, born=Role.IDENTIFIER) == {}
    assert [g.prepare for g in released_as_ages(found, describe_columns(found, overrides={"born": Role.OTHER}))] == [
        None
    ]


def test_other_dates_and_names_are_left_alone():
    assert days(table(BIRTHS, "built")) == {}
    assert days(read_table(pa.table({"born": ["Graz", "Wien", "Linz"] * 10}))) == {}
    assert days(table([date(1700, 1, 1), *BIRTHS])) == {}


@pytest.mark.slow
@given(
    st.lists(st.dates(date(1900, 1, 1), date(2020, 12, 31)), min_size=25, max_size=60, unique=True),
    st.lists(st.dates(date(1990, 1, 1), date(2024, 12, 31)), min_size=1, max_size=60),
)
def test_nobody_is_born_afterwards_or_too_old_and_no_cell_is_told(births, visits):
    cells = [visits[place % len(visits)] for place in range(len(births))]

    for day in days(table(births, seen=cells)).values():
        assert (day.month, day.day) == (1, 1)
        assert max(births) < day
        assert day.year - min(births).year <= 130


def test_dates_of_birth_are_no_question_of_who_is_in_several_rows():
    counts = [IdentifierCounts("Geburtsdatum", 390, 400), IdentifierCounts("card", 390, 400)]

    assert [one.name for one in repeating_identifiers(counts)] == ["card"]


def written(folder):
    lines = [f"{day.isoformat()},{'mf'[n % 2]},{('yes', 'no', 'no')[n % 3]}" for n, day in enumerate(BIRTHS)]
    (folder / "people.csv").write_text("\n".join(["born,sex,ill", *lines, ""]))


@pytest.mark.slow
def test_init_writes_an_age_that_a_release_takes_and_an_edit_takes_away(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    written(tmp_path)

    assert run(["init", "people.csv"]) == 0
    text = (tmp_path / "sfumato.toml").read_text()
    said = capsys.readouterr().err
    assert '"born" = { role = "quasi-identifier", kind = "date", prepare = { age_at = "1997-01-01" } }' in text
    assert "'born' holds dates of birth and is released as the age on 1997-01-01" in said
    assert not any(day.isoformat() in text + said for day in BIRTHS)

    assert run(["release", "--quick"]) == 0
    assert "'born' is turned into the age in whole years on 1997-01-01" in capsys.readouterr().err

    project = edit_project("sfumato.toml", ProjectChanges(roles={"born": Role.IDENTIFIER}))
    assert project.preparations == load_project("sfumato.toml").preparations == ()


@pytest.mark.slow
def test_a_release_without_a_project_takes_the_age_that_init_writes(tmp_path, monkeypatch, capsys):
    """In memory, out of core and in Python; options leave it out, or take the age on another day."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path)
    assert run(["init", "people.csv"]) == 0
    assert run(["release", "--quick", "-o", "project.csv"]) == 0
    capsys.readouterr()
    release = ["release", "people.csv", "--target", "ill", "--quick", "-o"]

    assert run([*release, "one.csv"]) == 0
    said = "'born' holds dates of birth and is released as the age on 1997-01-01"
    assert said in capsys.readouterr().err
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "project.csv").read_bytes()

    made = sfumato.release("people.csv", target="ill")
    sfumato.publish(made, "python.csv", original="people.csv")
    assert (tmp_path / "python.csv").read_bytes() == (tmp_path / "project.csv").read_bytes()

    assert run(["release", "-m", "global-recoding", "-o", "in-memory.csv"]) == 0
    capsys.readouterr()
    assert run([*release, "big.csv", "-m", "global-recoding", "--memory", "1GB"]) == 0
    assert said in capsys.readouterr().err
    assert (tmp_path / "big.csv").read_bytes() == (tmp_path / "in-memory.csv").read_bytes()

    assert run([*release, "without.csv", "--identifiers", "born"]) == 0
    assert (tmp_path / "without.csv").read_text().startswith("sex,ill\n")
    assert run([*release, "other.csv", "--prepare", "born=age_at:2001-01-01"]) == 0
    assert "'born' is turned into the age in whole years on 2001-01-01" in capsys.readouterr().err
    assert (tmp_path / "other.csv").read_text().startswith("born,sex,ill\n")
