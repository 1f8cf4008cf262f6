"""The detectors one by one: what they take, what they leave, and the words for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa
import pytest

from sfumato.schema import Kind
from sfumato.table.coding import CodedColumn
from sfumato.table.identifiers import codes, names, patterns
from sfumato.table.identifiers.cells import MOST_VALUES, Cells, Finding, folded
from sfumato.table.identifiers.forms import forms_in
from sfumato.table.identifiers.numbers import checked_numbers
from sfumato.table.identifiers.recognise import recognise


def cells_of(texts: Iterable[str | None], kind: Kind = Kind.CATEGORICAL) -> Cells:
    return Cells.of(CodedColumn.encode(pa.array(list(texts), pa.string()), kind), kind)


FORMS = {
    "e-mail addresses": "write to a.b@example.org|A_B+c@x.example.co.uk|anna (at) example.org",
    "web addresses": "see https://example.org/a|www.example.com|linkedin.com/in/anna-m",
    "@ names of users": "@anna_m89|insta @anna.m",
    "network addresses": "10.0.0.1|from ::1|2001:db8::8",
    "addresses of devices": "MAC 00:1b:44:11:3a:b7|00-1A-2B-3C-4D-5E",
    "phone numbers": "+49 89 1234567|Tel. 089/123 45 67|(0161) 496 0000|06.12.34.56.78|612 345 678|(555) 123-4567",
    "social security numbers": "123-45-6789|her SSN is 123-45-6789.",
    "numbers given by an office": "490154203237518|DE89 3704 0044 0532 0130 00|IBAN DE89370400440532013000|12345678Z",
    "coordinates": "at 52.5200, 13.4050|(48.137,11.575)|52°31'12\"N 13°24'18\"E|POINT(13.4 52.5)",
    "plus codes of places": "8FVC9G8F+6X|9G8F+6X Munich",
    "exact times": "2023-04-05 10:11:12|on 05.04.2023 10:11",
    "paths and names of files": "C:\\scans\\a.jpg|/home/anna/photo|IMG_2034.JPG",
    "names of somebody's device": "Anna's iPhone|iPhone von Anna",
    "postal addresses": "Hauptstraße 5|12 High Street|C/ Real, 5|ul. Polna 3/4|Lindenhof 12, 80331 München",
    "titles with names of people": "Frau Özdemir rief an|seen by Dr. Nguyen|Mr Smith|Sr. Garcia|M. Dupont",
    "given and family names": "Patient Anna Schmidt came|Schmidt, Anna|ANNA SCHMIDT",
}
NONE_OF_THEM = (
    "o.B.|no complaints|[10-20)|250.01|10-19 years|Crohn|Chad|M. Crohn|1.234.567,00|01.02.2020 - 05.03.2020|0100-0199|"
    "type 2|COVID-19|Sr. Analyst|Dr. med.|Trinadad&Tobago|Santa Maria|San Jose|Virginia Beach|Guillain Barre|stage 3/4|"
    "E11.9|A10BA02|5 mg 2x daily|Route 66|ring 5|hauptstrasse|am 5 mai|1.2.3|10.0.0.256|12:30|52.52|1.2, 3.4|120/80|"
    "0.123456789|12.5|2023-05-01|a@b|at|2023-05-01 00:00|Nurse|Mrs|<=50K|$10,000-$19,999"
)


@pytest.mark.parametrize("what", FORMS)
def test_a_form_is_found_inside_a_text(what: str) -> None:
    texts = FORMS[what].split("|")

    assert [text for text in texts if what not in dict(forms_in([text]))] == []
    assert dict(forms_in(["none", *texts, "none"]))[what] == frozenset(range(1, len(texts) + 1))


def test_categories_have_none_of_the_forms() -> None:
    assert {text: found for text in NONE_OF_THEM.split("|") if (found := dict(forms_in([text])))} == {}


def test_no_form_reaches_from_one_value_into_the_next() -> None:
    assert dict(forms_in(["Nurse", "Painter", "Tel", "123456", "iPhone von", "Anna"])) == {}


def test_birth_dates_spread_over_generations_and_visits_do_not() -> None:
    births = [f"{1 + i % 28:02d}.{1 + i % 12:02d}.{1930 + i % 80}" for i in range(100)]
    visits = [f"{1 + i % 28:02d}.{1 + i % 12:02d}.{2019 + i % 5}" for i in range(100)]

    assert patterns.birth_dates(cells_of(births)) == Finding("full dates of birth", 1.0)
    assert patterns.birth_dates(cells_of(visits)) is None
    assert patterns.birth_dates(cells_of(visits), name_says_birth=True) is not None
    assert patterns.birth_dates(cells_of([text[-4:] for text in births]), name_says_birth=True) is None


def test_iso_dates_are_read_as_dates_and_still_dates_of_birth() -> None:
    births = [f"{1930 + i % 80}-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(100)]

    assert recognise(CodedColumn.encode(pa.array(births), Kind.DATE), Kind.DATE) == Finding("full dates of birth", 1.0)


def first_of(texts: Iterable[str], kind: Kind = Kind.CATEGORICAL) -> str:
    found = next(checked_numbers(cells_of(texts, kind)), None)
    return found.what if found else ""


def digits_that_check(form: str, is_valid: Callable[[str], bool], n: int = 12) -> list[str]:
    """Numbers of a form whose # run through all digits, as many as are valid."""
    width = form.count("#")
    found: list[str] = []
    for i in range(10**width):
        digits = iter(f"{i * 7919 % 10**width:0{width}d}")
        number = "".join(next(digits) if c == "#" else c for c in form)
        if is_valid(number):
            found.append(number)
        if len(found) == n:
            break
    return found


def kvnr_is_valid(number: str) -> bool:
    """Check by the rule of § 290 SGB V, written anew: letter as two digits, weights 1 and 2, digits summed."""
    values = [*divmod(ord(number[0]) - 64, 10), *map(int, number[1:9])]
    return sum(sum(map(int, str(v * w))) for v, w in zip(values, [1, 2] * 5, strict=True)) % 10 == int(number[9])


def test_numbers_are_told_by_their_check_digits_and_others_of_their_form_are_not() -> None:
    right = digits_that_check("M6758####7", kvnr_is_valid)
    wrong = digits_that_check("M6758####7", lambda number: not kvnr_is_valid(number))

    assert first_of(right) == "health insurance numbers with valid check digits"
    assert first_of(wrong) == ""
    assert first_of(right[:9]) == ""  # of a few one in ten fits by chance


@pytest.mark.parametrize(
    ("form", "what"),
    [
        ("4000 0000 00## ####", "card numbers"),
        ("DE## 3704 0044 0532 ####00", "bank account numbers (IBAN)"),
        ("5209150####", "national or tax numbers with valid check digits"),  # PESEL
        ("943476####", "insurance numbers with valid check digits"),  # NHS
    ],
)
def test_blanks_within_numbers_do_not_hide_them(form: str, what: str) -> None:
    from stdnum import iban, luhn
    from stdnum.gb import nhs
    from stdnum.pl import pesel

    rules = {"40": luhn, "DE": iban, "52": pesel, "94": nhs}
    texts = digits_that_check(form, lambda number: bool(rules[form[:2]].is_valid(number.replace(" ", ""))))

    assert first_of(texts) == what


def test_names_of_people_are_found_and_words_that_are_names_too_are_not() -> None:
    people = [f"{a} {b}" for a in ("Anna", "Peter", "José", "Giulia") for b in ("Müller", "Nowak", "García", "Rossi")]
    months = "January|February|March|April|May|June|July|August|September|October|November|December"
    trades = "Baker|Cook|Nurse|Teacher|Driver|Farmer|Lawyer|Clerk|Plumber|Cleaner|Mason|Pilot"

    assert names.person_names(cells_of(people)) == Finding("given and family names", 1.0)
    assert names.person_names(cells_of([f"{b.upper()}, {a}" for a, b in map(str.split, people)])) is not None
    assert names.person_names(cells_of(months.split("|"))) is None
    assert names.person_names(cells_of(trades.split("|"))) is None
    assert names.person_names(cells_of(people[:5])) is None


def test_a_feminine_polish_name_is_found_by_the_masculine() -> None:
    assert names.is_full_name(folded("Anna Kowalska"))
    assert names.is_full_name(folded("Zofia Wiśniewska"))


def test_record_codes_have_long_numbers_and_days_are_none() -> None:
    assert codes.is_record_code("P100253")
    assert codes.is_record_code("2023-000017")
    assert codes.is_record_code("9f1c2a77b0de")
    for text in ("20230501", "E11.9", "80331", "1012 AB", "A12-3", "word", "hypertension"):
        assert not codes.is_record_code(text)


def test_codes_need_many_values_for_their_rows() -> None:
    few = [f"A{100000 + i % 30}" for i in range(2_000)]
    many = [f"A{100000 + i % 700}" for i in range(2_000)]

    assert codes.record_codes(cells_of(few)) is None
    assert str(codes.record_codes(cells_of(many))) == "looks like codes (a letter and six digits) in 100 % of the cells"


def test_long_whole_numbers_are_codes_and_amounts_are_not() -> None:
    ids = [str(5_000_000_000 + 7919 * i) for i in range(100)]
    amounts = [str(100 * i * i) for i in range(100)]

    assert recognise(CodedColumn.encode(pa.array(ids), Kind.NUMERIC), Kind.NUMERIC) == Finding(
        "codes of 10 digits", 1.0
    )
    assert recognise(CodedColumn.encode(pa.array(amounts), Kind.NUMERIC), Kind.NUMERIC) is None


def test_sentences_are_free_text_and_a_few_phrases_are_not() -> None:
    notes = [f"the patient came again after {i} days and feels better" for i in range(60)]

    assert codes.free_text(cells_of(notes)) == Finding("free text", 1.0)
    assert codes.free_text(cells_of(["came back after some days of rest", "no change"] * 300)) is None
    assert codes.free_text(cells_of([f"product {i}" for i in range(60)])) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("P100253", "a letter and six digits"),
        ("AB-1", "two letters, a hyphen and a digit"),
        ("12/3456789012", "two digits, a slash and 10 digits"),
        ("a-b-c-d-e", ""),
    ],
)
def test_forms_are_said_in_words(text: str, words: str) -> None:
    assert codes.in_words(codes.form_of(text)) == words


def test_a_share_is_never_rounded_up_to_all() -> None:
    assert str(Finding("codes", 0.999)) == "looks like codes in 99 % of the cells"


def test_no_more_values_are_looked_at_than_said() -> None:
    cells = cells_of(f"v{i}" for i in range(10 * MOST_VALUES))

    assert len(cells.texts) == MOST_VALUES
    assert (cells.n_distinct, cells.n_present) == (10 * MOST_VALUES, 10 * MOST_VALUES)


def test_many_rows_without_a_value_of_the_form_do_not_hide_the_others() -> None:
    texts = ["none"] * 500 + [f"p{i}@example.org" for i in range(50)]

    assert recognise(CodedColumn.encode(pa.array(texts)), Kind.CATEGORICAL) is not None
    assert recognise(CodedColumn.encode(pa.array([None, "a", "b"] * 10)), Kind.CATEGORICAL) is None
