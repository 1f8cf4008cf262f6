"""Names of columns in eight languages, and names in one that are other words in another."""

from __future__ import annotations

import pyarrow as pa
import pytest

from identifiers.words import HEADERS
from sfumato.schema import Role
from sfumato.table.column_names import BIRTH_DATE_NAMES, DEGREES_NAMES, IDENTIFIER_NAMES, NAMES_OF_NAMES, folded_name
from sfumato.table.io.read import read_table
from sfumato.table.roles import describe_columns

IDENTIFYING = (
    "email",
    "phone",
    "iban",
    "card",
    "url",
    "ip",
    "coordinates",
    "address",
    "national number",
    "insurance number",
)
IDENTIFYING += ("full name", "first name", "last name", "code", "number")
OTHERS = ("sex", "age", "year", "postcode", "city", "occupation", "diagnosis", "department", "amount", "visit", "count")
OTHERS += ("insurer", "drug", "price", "hours", "product")


def says_identifier(name: str) -> bool:
    words = folded_name(name)
    return IDENTIFIER_NAMES.search(words) is not None or words in NAMES_OF_NAMES


@pytest.mark.parametrize("kind", IDENTIFYING)
def test_identifiers_are_known_by_name_in_eight_languages(kind: str) -> None:
    assert [name for name in HEADERS[kind].split("|") if not says_identifier(name)] == []


@pytest.mark.parametrize("kind", OTHERS)
def test_other_columns_are_not_taken_for_them(kind: str) -> None:
    assert [name for name in HEADERS[kind].split("|") if says_identifier(name)] == []


def test_dates_of_birth_and_degrees_are_known_by_name() -> None:
    assert [name for name in HEADERS["birth date"].split("|") if not BIRTH_DATE_NAMES.search(folded_name(name))] == []
    for kind in ("latitude", "longitude"):
        assert [name for name in HEADERS[kind].split("|") if not DEGREES_NAMES.search(folded_name(name))] == []


@pytest.mark.parametrize("name", ["nombre de visites", "drug_name", "Artikelnummer", "numero di visite", "note", "cap"])
def test_words_that_are_others_in_another_language_say_nothing(name: str) -> None:
    assert not says_identifier(name)


def test_a_name_alone_makes_an_identifier_whatever_the_cells_hold() -> None:
    cells = pa.table({"Handynummer": [f"v{i % 30}" for i in range(100)], "q": ["a", "b", "c", "d"] * 25})

    guess = describe_columns(read_table(cells))[0]

    assert guess.column.role is Role.IDENTIFIER
    assert guess.reason == "name says handynummer → identifier"


@pytest.mark.parametrize("name", ["Versichertennr.", "Patientennr", "kundennummer", "klantnr", "id paciente", "BSN"])
def test_a_name_that_numbers_people_tells_them_apart_where_it_repeats(name: str) -> None:
    cells = pa.table({name: [f"v{i % 30}" for i in range(100)], "q": ["a", "b", "c", "d"] * 25})

    assert describe_columns(read_table(cells))[0].column.role is Role.PERSON
