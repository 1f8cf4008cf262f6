"""Numbers as countries write them: every format gives back the number that was written, and codes stay text."""

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.schema import Kind
from sfumato.table.kinds import guess_kind
from sfumato.table.reading.columns import guessed_format
from sfumato.table.reading.numbers import _FORMS, NumberFormat, number_format
from sfumato.table.reading.units import AFTER, BEFORE
from sizes import examples

FORMATS = [
    NumberFormat(decimal, group, unit, is_before)
    for decimal, group in _FORMS
    for unit, is_before in (("", False), ("kg", False), ("%", False), ("€", True), ("R$", True), ("km/h", False))
]
NUMBERS = st.decimals(-10_000_000, 10_000_000, places=2)


def written(number: Decimal, one: NumberFormat, *, blank: str = " ") -> str:
    """Write a number in a format, by Python's own grouping."""
    plain = f"{abs(number):,}".replace(",", "\0").replace(".", one.decimal).replace("\0", one.group)
    plain = plain.replace(" ", blank)
    sign = "-" if number < 0 else ""
    return f"{sign}{one.unit}{blank}{plain}" if one.is_before else f"{sign}{plain}{blank if one.unit else ''}{one.unit}"


@pytest.mark.slow
@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
@examples(10)
@given(numbers=st.lists(NUMBERS, min_size=1, max_size=8), blank=st.sampled_from([" ", "\u00a0", "\u202f", "\u2009"]))
def test_every_format_gives_back_the_number(one, numbers, blank):
    texts = pa.array([written(number, one, blank=blank) for number in numbers])

    assert [Decimal(text) for text in one.read(texts).to_pylist()] == numbers
    assert number_format(one.name) == one


@pytest.mark.slow
@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
@examples(10)
@given(numbers=st.lists(NUMBERS, min_size=1, max_size=8))
def test_a_guess_that_is_not_doubtful_is_right(one, numbers):
    """Whatever format is found, it has no other numbers than those written, unless it says that it is a guess."""
    texts = pa.array([written(number, one) for number in numbers])
    plain = guess_kind(texts)
    found, doubt = guessed_format(texts, plain)

    if found is not None and not doubt:
        assert [Decimal(text) for text in found.read(texts).to_pylist()] == numbers
    elif found is None and plain is Kind.NUMERIC:
        assert [Decimal(text) for text in texts.to_pylist()] == numbers


@pytest.mark.parametrize(
    ("texts", "name", "unit", "is_doubtful"),
    [
        (["1,5", "2"], "1234,56", "", False),
        (["1.234,56", "7"], "1.234,56", "", False),
        (["1,234.56", "7"], "1,234.56", "", False),
        (["1\u202f234,5", "12\u00a0345,6"], "1 234,56", "", False),
        (["1’234.5", "7"], "1'234.56", "", False),
        (["1.234.567", "12"], "1.234,56", "", False),
        (["1,234", "2,345"], "1,234.56", "", True),
        (["1,234", "0,345"], "1234,56", "", False),
        (["1,234", "1,2"], "1234,56", "", False),
        (["1,234", "1,234,567"], "1,234.56", "", False),
        (["1.234", "2.345"], "1234.56", "", True),
        (["12 %", "7,5%"], "1234,56 %", "%", False),
        (["12 kg", "7 kg"], "1234.56 kg", "kg", False),
        (["€ 12", "€ 1.234,50"], "€ 1.234,56", "€", False),
        (["$1,234.50", "-$3"], "$ 1,234.56", "$", False),
        (["\u22125", "3"], "1234.56", "", False),
    ],
)
def test_the_format_of_a_column(texts, name, unit, is_doubtful):
    values = pa.array(texts)
    found, doubt = guessed_format(values, guess_kind(values))

    assert (found.name, found.unit, bool(doubt)) == (name, unit, is_doubtful)


@pytest.mark.parametrize(
    "texts",
    [
        ["01234", "99084"],
        ["0,5", "01,5"],
        ["E11.9", "250.01"],
        ["12 kg", "12 g"],
        ["12 kg", "12"],
        ["5A", "7A"],
        ["5m", "7m"],
        ["grade 5", "grade 6"],
        ["3 apples", "4 apples"],
        ["601 234 567", "602 345 678"],
        ["123.456.789", "223.456.789"],
        ["1.234,56", "1,234.56"],
        ["1,2,3", "2"],
        ["1,2345.6"],
        ["1..5"],
        ["12-14"],
        ["#N/A"],
        ["- -5 €"],
        ["٣,٥"],
    ],
)
def test_codes_and_mixtures_stay_text(texts):
    values = pa.array(texts)

    assert guess_kind(values) is Kind.CATEGORICAL
    assert guessed_format(values, Kind.CATEGORICAL) == (None, "")


def test_plain_numbers_need_no_format():
    for texts in (["1", "2.5"], ["-3", "1e5"], ["1234567"], ["0.123", "1.234"]):
        values = pa.array(texts)

        assert guess_kind(values) is Kind.NUMERIC
        assert guessed_format(values, Kind.NUMERIC) == (None, "")


def test_units_are_declared_where_they_are_not_known():
    assert number_format("1.234,56 widgets").read(pa.array(["3,5 widgets", "3,5"])).to_pylist() == ["3.5", None]
    assert BEFORE <= AFTER


@pytest.mark.parametrize("name", ["", "1.234.56", "1234", "a 1234 b", "12", "one", "1,234,56"])
def test_names_that_are_no_format(name):
    found = number_format(name)

    assert (found is None) is (name != "1234")
