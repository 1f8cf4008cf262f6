"""Orders found in texts: intervals, words of scales, numbered labels."""

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sfumato.schema import Column, Kind, Schema
from sfumato.table.coding import Table
from sfumato.table.io.read import read_table
from sfumato.table.orders import intervals, numbered, words
from sfumato.table.orders.recognise import FEWEST, MOST, recognise_order
from sfumato.table.orders.words import scales

ORDERS = {
    "bands of Diabetes130": ["[0-10)", "[10-20)", "[70-80)", "[90-100)"],
    "plain": ["0-9", "10-19", "20-29"],
    "en dashes": ["0–9", "10–19", "100–199"],
    "open ends": ["<5", "5-10", "11-79", "≥ 80"],
    "plus": ["0-17", "18-64", "65+"],
    "words": ["under 18", "18 to 24", "25 to 64", "over 64"],
    "German": ["unter 18 Jahre", "18 bis 64 Jahre", "65 Jahre und älter"],
    "French": ["moins de 15 ans", "15 à 64 ans", "65 ans et plus"],
    "Spanish": ["menos de 20", "20 a 39", "40 y más"],
    "Polish": ["poniżej 20", "20-39", "powyżej 39"],
    "of pandas": ["(0.999, 25.0]", "(25.0, 50.0]", "(50.0, inf]"],
    "single numbers below a range": ["0", "1", "2-4", "5+"],
    "thousands": ["$0 - $9,999", "$10,000 - $49,999", "$50,000+"],
    "with k": ["<10k", "10k-50k", ">50k"],
    "leading zeros of one width": ["00-04", "05-09", "10-14"],
    "weights of Diabetes130": ["[0-25)", "[25-50)", "[175-200)", ">200"],
    "levels": ["low", "medium", "high"],
    "severity": ["None", "Mild", "Moderate", "Severe"],
    "frequency": ["never", "rarely", "sometimes", "often", "always"],
    "Likert": ["Strongly disagree", "Disagree", "Neither agree nor disagree", "Agree", "Strongly agree"],
    "quality": ["poor", "fair", "good", "very good", "excellent"],
    "clothes": ["XS", "S", "M", "L", "XL", "XXL"],
    "ordinal words": ["first", "second", "third"],
    "ordinal numbers": ["1st", "2nd", "3rd", "11th"],
    "Adult": ["Preschool", "1st-4th", "10th", "HS-grad", "Some-college", "Assoc-voc", "Bachelors", "Masters"],
    "months": ["Jan", "Mar", "Apr", "Dec"],
    "months in Polish": ["styczeń", "marzec", "październik"],
    "weekdays in German": ["Mo", "Mi", "So"],
    "German levels": ["niedrig", "mittel", "hoch"],
    "Dutch schools": ["basisonderwijs", "vmbo", "mbo", "hbo", "wo"],
    "grades": ["Grade 1", "Grade 3", "Grade 10"],
    "stages": ["Stage I", "Stage IIa", "Stage IIb", "Stage IV"],
    "bare stages": ["I", "II", "III", "IV"],
    "ISCED": ["ISCED 0-2", "ISCED 3-4", "ISCED 5-8"],
    "ISCED levels": ["ISCED 2", "ISCED 3", "ISCED 5"],
    "labels": ["1 - bad", "2 - fair", "3 - good"],
    "rating": ["1 - not at all", "2", "3", "4", "5 - extremely"],
}
NONE = {
    "colours": (["red", "green", "blue"], ""),
    "two values": (["low", "high"], ""),
    "a foreign word": (["low", "medium", "high", "unknown"], ""),
    "overlapping": (["0-10", "5-15", "20+"], intervals.OVERLAPPING),
    "overlapping limits": (["<5", "<10", "10+"], intervals.OVERLAPPING),
    "a number inside a range": (["0-5", "5", "6+"], intervals.OVERLAPPING),
    "the same interval twice": (["0-10", "0 – 10", "11+"], intervals.TWICE),
    "descending ends": (["10-5", "20-15", "30-25"], ""),
    "two units": (["1-6 months", "7-9 months", "1-2 years"], ""),
    "two spellings": (["low", "Low", "high"], words.SPELLED_TWICE),
    "wards": (["Ward 1", "Ward 2", "Ward 3"], ""),
    "blood groups": (["A", "B", "AB", "0"], ""),
    "letters": (["A", "B", "C"], ""),
    "numbered codes": (["1 - employed", "2 - retired", "3 - student"], numbered.NO_SCALE),
    "a stage and its parts": (["Stage II", "Stage IIa", "Stage III"], numbered.PARTS),
    "months of years": (["2020-01", "2020-02", "2020-03"], ""),
    "postcodes": (["02-139", "00-950", "31-001"], ""),
    "medicines": (["No", "Steady", "Up", "Down"], ""),
    "results": (["None", "Norm", ">7", ">8"], ""),
    "roman letters": (["C", "D", "M"], ""),
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_an_order_is_found_whatever_the_order_of_the_values(order):
    for values in (order, order[::-1], sorted(order)):
        assert recognise_order(pa.array([*values, None])).domain == tuple(order)


@pytest.mark.parametrize(("values", "why"), NONE.values(), ids=NONE)
def test_no_order_is_found_and_the_reason_names_no_value(values, why):
    found = recognise_order(pa.array(values))

    assert (found.domain, found.said) == ((), why)


@given(st.data())
def test_any_part_of_a_scale_is_in_its_order(data):
    """Each level in one of its spellings, in any order and letter case; two scales may disagree, and then none is."""
    _, levels = data.draw(st.sampled_from(scales()))
    chosen = data.draw(st.lists(st.sampled_from(range(len(levels))), unique=True, min_size=FEWEST))
    spelled = [data.draw(st.sampled_from(levels[level])) for level in chosen]
    cased = [data.draw(st.sampled_from([word, word.upper(), word.title()])) for word in spelled]
    assume(len({words.word_of(word) for word in cased}) == len(cased))
    found = recognise_order(pa.array(cased))

    in_order = tuple(word for _, word in sorted(zip(chosen, cased, strict=True)))
    if found.said in (words.DISAGREEING, words.SPELLED_TWICE):
        assert found.domain == ()
    else:
        assert found.domain in (in_order, in_order[::-1])


@given(
    st.lists(st.integers(-50, 500), unique=True, min_size=FEWEST + 1, max_size=12), st.randoms(use_true_random=False)
)
def test_intervals_between_any_numbers_are_in_order(cuts, chance):
    ends = sorted(cuts)
    order = [f"[{low}, {high})" for low, high in pairwise(ends)]
    shuffled = list(order)
    chance.shuffle(shuffled)

    assert recognise_order(pa.array(shuffled)).domain == tuple(order)


@given(st.lists(st.text("bcdfgjkqwz#", min_size=3, max_size=8), unique=True, min_size=FEWEST, max_size=9))
def test_random_texts_have_no_order(texts):
    known = {word for _, levels in scales() for level in levels for word in level}
    assume(not {words.word_of(text) for text in texts} & known)

    assert recognise_order(pa.array(texts)).domain == ()


def test_levels_of_a_scale_are_different_words():
    for _, levels in scales():
        spelled = [word for level in levels for word in level]
        assert len(levels) >= FEWEST
        assert all(spelled)
        for i, level in enumerate(levels):
            assert not set(level) & {word for other in levels[i + 1 :] for word in other}


def test_too_many_values_are_not_looked_at():
    values = pa.array([f"[{i}-{i + 1})" for i in range(MOST + 1)])

    assert recognise_order(values).domain == ()
    assert len(recognise_order(values[:MOST]).domain) == MOST


def test_a_table_is_read_with_the_orders_that_it_has():
    cells = pa.table({"band": ["65+", "0-17", "18-64"], "sex": ["f", "m", "f"], "n": ["1", "2", "3"]})
    schema = read_table(cells).schema

    assert [column.kind for column in schema] == [Kind.ORDERED, Kind.CATEGORICAL, Kind.NUMERIC]
    assert schema["band"].domain == ("0-17", "18-64", "65+")
    assert "65+" not in repr(schema["band"])


def test_a_declared_kind_stays_and_a_declared_order_comes_first():
    cells = pa.table({"band": ["65+", "0-17", "18-64"], "size": ["S", "M", "L"], "grade": ["low", "high", "medium"]})
    declared = [
        Column("band", kind=Kind.CATEGORICAL),
        Column("size", kind=Kind.ORDERED, domain=("L", "M", "S")),
        Column("grade", kind=Kind.ORDERED),
    ]
    schema = read_table(cells, schema=Schema.of(declared)).schema

    assert schema["band"] == declared[0]
    assert schema["size"] == declared[1]
    assert schema["grade"].domain == ("low", "medium", "high")


def test_a_column_that_is_declared_ordered_and_fits_no_scale_has_no_domain():
    table = Table.from_arrow(pa.table({"c": ["x", "y", "z"]}), Schema.of([Column("c")]))

    assert table.with_schema(Schema.of([Column("c", kind=Kind.ORDERED)])).schema["c"].domain is None
