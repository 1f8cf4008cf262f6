"""A made export of a German hospital: what names people in it is found, and no release shows it."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import sfumato
from identifiers import formats, words
from identifiers.formats import Maker, digits, pick
from identifiers.planted import held, leaks
from sfumato.cli.main import run
from sfumato.errors import SchemaError
from sfumato.schema import WITHHELD, Role
from sfumato.table.io.read import read_table
from sfumato.table.roles import describe_columns

N_ROWS = 400
NAMING = ("Patientennr", "Name", "Geburtsdatum", "E-Mail", "Versichertennr.", "Bemerkung")
DIAGNOSES = ("E11.9", "I10.0", "J45.9", "S72.0", "I50.1", "K80.2", "G43.9")


def export_rows() -> list[dict[str, str]]:
    """One to eight rows a person; decimal commas, "k.A.", three forms of dates, an empty column."""
    draw, rows = Random(20), []
    while len(rows) < N_ROWS:
        born = draw.randrange(1930, 2010)
        person = {
            "Patientennr": f"P1{digits(draw, 5)}",
            "Name": formats.full_name(draw, "de"),
            "Geschlecht": draw.choice("mwwmd"),
            "Geburtsdatum": f"{draw.randrange(1, 29):02d}.{draw.randrange(1, 13):02d}.{born}",
            "Alter": str(2024 - born),
            "PLZ": draw.choice(("80331", "80333", "81667", "81925", "85221")),
            "E-Mail": formats.email(draw, "de"),
            "Versichertennr.": formats.versichertennummer(draw, "de"),
            "Krankenkasse": pick(draw, words.INSURERS["de"]),
            "Raucher": draw.choice(("ja", "nein", "k.A.")),
        }
        for _ in range(min(8, 1 + int(draw.expovariate(0.7)))):
            day = f"{draw.randrange(1, 29):02d}", f"{draw.randrange(1, 13):02d}", "2023"
            stay = {
                "Aufnahme": draw.choice((".".join(day), "-".join(reversed(day)), f"{day[0]}.{day[1]}.23")),
                "Verweildauer": str(1 + int(draw.expovariate(0.2))),
                "Hauptdiagnose": draw.choice(DIAGNOSES),
                "Kreatinin": draw.choice(("k.A.", *(f"{x / 10:.1f}".replace(".", ",") for x in range(5, 30)))),
                "Kosten": f"{draw.randrange(1, 9)}.{digits(draw, 3)},{digits(draw, 2)}",
                "Bemerkung": f"{formats.note(draw, 'de')} Tel. {formats.phone(draw, 'de')}",
                "leer": "",
                "Wiederaufnahme": draw.choice(("ja", "nein", "nein")),
            }
            rows.append(person | stay)
    return rows[:N_ROWS]


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    return export_rows()


@pytest.fixture(params=["cp1252", "utf-8-sig"])
def export(rows: list[dict[str, str]], tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "export.csv"
    with path.open("w", encoding=request.param, newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    return path


def encoding_of(path: Path) -> list[str]:
    return [] if path.read_bytes().startswith(b"\xef\xbb\xbf") else ["--encoding", "cp1252"]


def test_what_names_people_is_found_and_what_others_know_is_not_taken_for_it(rows: list[dict[str, str]]) -> None:
    guesses = {g.column.name: g for g in describe_columns(read_table(pa.Table.from_pylist(rows)))}

    assert {name for name in NAMING if guesses[name].column.role not in WITHHELD} == set()
    assert guesses["Patientennr"].column.role is Role.PERSON  # one to eight rows a person
    for name in ("Geschlecht", "Alter", "PLZ", "Krankenkasse", "Aufnahme", "Verweildauer", "Kreatinin", "Raucher"):
        assert guesses[name].column.role is Role.QUASI_IDENTIFIER, guesses[name].reason
    assert guesses["Hauptdiagnose"].column.role is Role.SENSITIVE
    assert guesses["Wiederaufnahme"].column.role is Role.TARGET


def test_names_that_say_nothing_do_not_hide_them(rows: list[dict[str, str]]) -> None:
    unnamed = pa.table(
        {f"v{i}": [row[name] for row in rows] for i, name in enumerate(NAMING)} | {"q": ["a", "b"] * 200}
    )

    reasons = [guess.reason for guess in describe_columns(read_table(unnamed))[:-1]]

    for reason, seen in zip(
        reasons,
        (
            "codes (a letter and six digits)",
            "given and family names",
            "full dates of birth",
            "e-mail addresses",
            "health insurance numbers with valid check digits",
            "phone numbers",
        ),
        strict=True,
    ):
        assert reason == f"looks like {seen} in 100 % of the cells → identifier"


def test_a_release_shows_none_of_them(export: Path, rows: list[dict[str, str]]) -> None:
    output = export.with_name("release.csv")

    arguments = ["release", str(export), "-m", "mondrian", "-k", "5", "-o", str(output), *encoding_of(export)]

    assert run(arguments) == 0
    released = output.read_text(encoding="utf-8") + output.with_name("release.csv.manifest.json").read_text("utf-8")
    for name in NAMING:
        assert not [row[name] for row in rows if row[name] in released], name


@pytest.mark.parametrize("role", ["quasi-identifier", "other", "sensitive"])
@pytest.mark.parametrize("name", ["Patientennr", "Bemerkung", "Versichertennr."])
def test_who_declares_one_is_asked_to_decide(rows: list[dict[str, str]], role: str, name: str) -> None:
    frame = pa.Table.from_pylist(rows)
    with pytest.raises(
        SchemaError, match=f"'{name}' may name people and would be released with the role {role}"
    ) as said:
        sfumato.release(frame, "mondrian", k=5, target="Wiederaufnahme", roles={name: role})

    assert said.value.remedy == ("confirmed",)
    assert not [row[name] for row in rows if row[name] in str(said.value)]


def test_who_has_decided_gets_the_release(rows: list[dict[str, str]]) -> None:
    frame = pa.Table.from_pylist(rows)

    made = sfumato.release(
        frame, "mondrian", k=5, target="Wiederaufnahme", roles={"Patientennr": "other"}, confirmed=["Patientennr"]
    )

    assert "Patientennr" in made.table.schema


# The export of the whole year: remarks of doctors among phrases that everybody writes, first names, and employees.

N_ROWS_OF_THE_YEAR = 2_702
PLANTED = ("Bemerkung", "Vorname", "employee")


@dataclass(frozen=True)
class Year:
    """Rows of the year, and what they say about people: names of patients, relatives, doctors; phone numbers."""

    rows: list[dict[str, str]]
    said_of_people: dict[str, set[str]]


@pytest.fixture(scope="module")
def year() -> Year:
    draw, rows = Random(33), []
    said: dict[str, set[str]] = {name: set() for name in PLANTED}
    makers = (formats.full_name, formats.foreign_name, formats.foreign_name)
    employees = [draw.choice(makers)(draw, "de") for _ in range(120)]
    said["employee"].update(employees)
    while len(rows) < N_ROWS_OF_THE_YEAR:
        for row in export_rows():
            row |= {"Vorname": formats.given_name(draw, "de"), "employee": draw.choice(employees)}
            said["Vorname"].add(row["Vorname"])
            row["Bemerkung"] = pick(draw, words.PHRASES["de"])
            if draw.random() < 0.25:
                name, phone = formats.full_name(draw, "de"), formats.phone(draw, "de")
                said["Bemerkung"] |= {name, phone}
                form = "Rücksprache mit {0}, {1}|Tochter {0} informiert|Dr. {0} Tel. {1}|Rückruf {1}|{0} zur Kontrolle"
                row["Bemerkung"] = pick(draw, form).format(name, phone)
            rows.append({name: cell for name, cell in row.items() if name not in ("Name", "E-Mail", "Versichertennr.")})
    return Year(rows[:N_ROWS_OF_THE_YEAR], said)


def released_of(year: Year, folder: Path, *options: str) -> tuple[int, str]:
    """Release the export of the year by the command; give the exit code and the released file."""
    table, output = folder / "year.csv", folder / "release.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(year.rows[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(year.rows)
    code = run(["release", str(table), "--target", "Wiederaufnahme", "--quick", "-o", str(output), *options])
    return code, output.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-m", "mondrian")], ids=["default", "mondrian"])
def test_the_export_of_a_year_shows_no_remark_first_name_or_employee(
    year: Year, tmp_path: Path, capfd: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    """Names and phone numbers are in no released cell, and each column left out is named with how to keep it."""
    code, table = released_of(year, tmp_path, *options)
    said = "".join(capfd.readouterr())

    assert code == 0
    assert {name: leaks(table, people) for name, people in year.said_of_people.items()} == dict.fromkeys(PLANTED, 0)
    assert [name for name in (*PLANTED, "--confirm") if name not in said] == []
    assert sum(held(said, people) for people in year.said_of_people.values()) == 0


@pytest.mark.slow
def test_the_export_of_a_year_keeps_its_other_columns(year: Year, tmp_path: Path) -> None:
    """What names nobody is released: withholding all would be safe and useless."""
    _, table = released_of(year, tmp_path, "-m", "mondrian")
    kept = {"Geschlecht", "Alter", "PLZ", "Krankenkasse", "Raucher", "Aufnahme", "Verweildauer", "Hauptdiagnose"}

    assert kept - set(table.splitlines()[0].split(",")) == set()


@pytest.mark.parametrize("name", PLANTED)
def test_each_of_them_is_withheld_because_of_its_cells(year: Year, name: str) -> None:
    """Under its own header and under one that says nothing."""
    cells = [row[name] for row in year.rows]
    for header in (name, "v1"):
        table = pa.table({header: cells, "q": [f"{n % 3}" for n in range(len(cells))]})
        guess = describe_columns(read_table(table))[0]

        assert guess.column.role in WITHHELD, guess.reason


@pytest.mark.parametrize(
    ("name", "maker", "n_names"),
    [
        ("employee", formats.foreign_name, 15),
        ("employee", formats.foreign_name, 120),
        ("Mitarbeiter", formats.full_name, 15),
        ("Vorname", formats.given_name, 15),
        ("Vorname", formats.given_name, 120),
    ],
)
def test_names_of_few_people_and_from_elsewhere_are_withheld_too(name: str, maker: Maker, n_names: int) -> None:
    """Neither a header that promises a job title nor many rows for each name let the column pass."""
    draw = Random(f"{name} {n_names}")
    names = [maker(draw, "de") for _ in range(n_names)]
    table = pa.table({name: [draw.choice(names) for _ in range(2_702)], "q": [f"{n % 3}" for n in range(2_702)]})
    guess = describe_columns(read_table(table))[0]

    assert guess.column.role in WITHHELD, guess.reason
