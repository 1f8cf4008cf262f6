"""Ready hierarchies: every code of a standard has one place, and what is unknown is refused or put apart."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.mechanisms.hierarchies.automatic import build_hierarchy, hierarchy_for
from sfumato.mechanisms.hierarchies.hierarchy import faults_of
from sfumato.mechanisms.hierarchies.ready import (
    OTHER,
    READY,
    Recognised,
    countries,
    icd10_blocks,
    ready_hierarchy,
    recognised_ready,
)
from sfumato.schema import Column, Schema
from sfumato.table.coding import Table
from sfumato.table.io.read import read_table

CANARY = "zz-canary-zz"
EXAMPLES = {
    "age": ["0", "4", "17", "45", "99"],
    "date": ["2024-02-28", "2024-03-01", "2023-12-24"],
    "country": ["FR", "DEU", "Brazil", "Côte d'Ivoire", "Korea, Republic of"],
    "postcode": ["02139", "02140", "10001", "94110"],
    "icd10": ["E11.9", "E11.65", "I21.0", "C4A.0", "S72.001A"],
    "icd9": ["250.83", "8", "V27", "E909", "428"],
    "isced": ["0", "3", "344", "ISCED 5"],
    "isco": ["2511", "2512", "5120", "51"],
    "nace": ["C10.11", "10.12", "A01.1", "62"],
}


@pytest.mark.parametrize("name", READY)
def test_levels_are_nested_and_end_in_any_value(name):
    hierarchy = ready_hierarchy(name, EXAMPLES[name])

    assert not list(faults_of(list(hierarchy.rows())))
    assert hierarchy.labels[-1] == ("*",)
    assert hierarchy.values == tuple(EXAMPLES[name])


@pytest.mark.parametrize("name", [name for name in READY if name != "postcode"])
def test_unknown_values_are_refused_without_a_value_or_put_apart(name):
    values = [*EXAMPLES[name], CANARY]
    with pytest.raises(SchemaError, match=f"1 of {len(values)} values are no ") as refused:
        ready_hierarchy(name, values)
    hierarchy = ready_hierarchy(name, values, unknown=OTHER)

    assert CANARY not in str(refused.value)
    assert list(hierarchy.rows())[-1] == (CANARY, *[OTHER] * (hierarchy.n_levels - 2), "*")
    assert not list(faults_of(list(hierarchy.rows())))


def test_every_country_has_one_place_among_the_regions_of_the_united_nations():
    regions = Counter(places[-1] for _, _, places in countries().values())
    names = [name for two, (three, own, _) in countries().items() for name in (two, three, *own)]
    hierarchy = ready_hierarchy("country", names)

    assert len(countries()) == len({three for three, _, _ in countries().values()}) == 249
    assert regions == {"Africa": 60, "Americas": 57, "Asia": 51, "Europe": 51, "Oceania": 29, "Antarctica": 1}
    assert len({places[0] for _, _, places in countries().values()}) == 23
    assert [len(level) for level in hierarchy.labels[1:]] == [23, 18, 6, 1]
    assert len(set(names)) == len(names)


def test_a_code_in_small_letters_is_no_country():
    with pytest.raises(SchemaError):
        ready_hierarchy("country", ["no", "is", "it"])


@given(st.sampled_from([chr(c) for c in range(65, 91)]), st.integers(0, 99))
def test_a_category_of_diagnoses_is_in_one_block_of_its_chapter(letter, number):
    """Whatever the suffix; blocks neither overlap nor leave their chapter."""
    code = f"{letter}{number:02}"
    fitting = [
        (block, chapter)
        for block, chapter, _ in icd10_blocks()
        if block[1:3].isdigit() and block[:3] <= code <= block[4:]
    ]
    if not fitting:
        with pytest.raises(SchemaError):
            ready_hierarchy("icd10", [code])
        return
    ((block, chapter),) = fitting
    low, high = chapter[chapter.index("(") + 1 : -1].split("-")
    rows = list(ready_hierarchy("icd10", [code, f"{code}.1", f"{code}1XA", "A00", "I10"]).rows())

    assert low <= block[:3] <= block[4:] <= high
    assert len({row[1:] for row in rows[:3]}) == 1


def test_diagnoses_climb_from_category_to_block_to_chapter():
    rows = {row[0]: row[1:] for row in ready_hierarchy("icd10", ["E11.9", "E11.0", "E10", "E66", "I10"]).rows()}

    assert rows["E11.9"] == ("E11.-", "E08-E14", "IV (E00-E90)", "*")
    assert rows["E66"] == ("E66.-", "E65-E68", "IV (E00-E90)", "*")
    assert len({chapter for _, chapter, _ in icd10_blocks()}) == 22


def test_blocks_are_those_of_the_lists_of_the_who_and_of_icd_10_cm():
    """The blocks that a comparison with both lists mended."""
    codes = ["N50.1", "N50.8", "N52.9", "O75", "O76", "T24.0", "T27", "T30.0", "Y35", "Y37.0", "U07.1", "U83", "U99"]
    blocks = {row[0]: row[2] for row in ready_hierarchy("icd10", codes).rows()}

    assert blocks["N50.1"] == blocks["N52.9"] == "N40-N53"
    assert blocks["O75"] == blocks["O76"] == "O60-O77"
    assert (blocks["T24.0"], blocks["T27"], blocks["T30.0"]) == ("T20-T25", "T26-T28", "T29-T32")
    assert blocks["Y35"] == blocks["Y37.0"] == "Y35-Y38"
    assert (blocks["U07.1"], blocks["U83"], blocks["U99"]) == ("U00-U49", "U50-U99", "U50-U99")


def test_ages_are_in_bands_of_5_10_and_20_years():
    labels = ready_hierarchy("age", [str(age) for age in range(100)]).labels

    assert [len(level) for level in labels] == [100, 20, 10, 5, 1]
    assert labels[1][3] == "[15, 19]"


@pytest.mark.parametrize(
    ("country", "values", "labels"),
    [
        ("US", ["02139", "2140", "94110-1234"], ("021**", "941**")),
        ("DE", ["01067", "01069", "80331"], ("010**", "803**")),
        ("GB", ["SW1A 1AA", "SW1A 2AB", "M1 1AE"], ("SW1A*", "M1*")),
        ("NL", ["1011 AB", "1011 AC", "9712CP"], ("1011**", "9712**")),
        ("PL", ["00-950", "00-951", "31-001"], ("009**", "310**")),
        (None, ["0123", "0124", "0223"], ("012*", "022*")),
    ],
)
def test_postcodes_are_cut_to_prefixes_with_their_leading_zeros(country, values, labels):
    assert ready_hierarchy("postcode", values, country=country).labels[1] == labels


def test_what_is_asked_wrongly_is_said():
    with pytest.raises(InvalidParameterError, match="ready"):
        ready_hierarchy("planets", ["Mars"])
    with pytest.raises(InvalidParameterError, match="country"):
        ready_hierarchy("postcode", ["1"], country="XX")
    with pytest.raises(InvalidParameterError, match="country"):
        ready_hierarchy("age", ["1"], country="US")
    with pytest.raises(InvalidParameterError, match="unknown"):
        ready_hierarchy("age", ["1"], unknown="drop")
    with pytest.raises(SchemaError, match="without values"):
        ready_hierarchy("age", [])


def test_columns_are_recognised_by_what_they_hold():
    names = ["France", "Germany", "Peru", "Chad", "Japan"]
    codes = ["FR", "DE", "PE", "TD", "JP"]
    diagnoses = ["E11.9", "I10", "I21.0", "C50.1", "J45.0"]

    assert recognised_ready(" home ", names) == Recognised("country")
    assert (recognised_ready(" home ", codes), recognised_ready(" country ", codes)) == (None, Recognised("country"))
    assert recognised_ready(" x ", diagnoses) == Recognised("icd10")
    assert recognised_ready(" x ", [code[:3] for code in diagnoses]) is None
    assert recognised_ready(" diag 1 ", [code[:3] for code in diagnoses]) == Recognised("icd10")


def test_a_column_named_after_countries_may_hold_some_that_no_list_has():
    names = ["France", "Germany", "Peru", "Chad", "Japan", "Mali"]

    assert recognised_ready(" native country ", [*names, "South", "Hong"]) == Recognised("country", unknown=OTHER)
    assert recognised_ready(" native country ", [*names, "South", "Hong", "x"]) is None
    assert recognised_ready(" home ", [*names, "South"]) is None


@pytest.mark.parametrize(
    ("values", "country"),
    [
        (["02139", "02140", "10001", "94110", "94111"], None),
        (["SW1A 1AA", "SW1A 2AB", "M1 1AE", "M1 1AF", "EC1A 1BB"], "GB"),
        (["1011 AB", "1011 AC", "9712CP", "3511 LX", "1012 AA"], "NL"),
        (["00-950", "00-951", "31-001", "80-180", "50-001"], "PL"),
        (["K1A 0B1", "V6B 1A1", "H2X 1Y4", "M5V 2T6", "T2P 1J9"], "CA"),
        (["111 22", "113 30", "411 01", "211 15", "753 10"], "SE"),
        (["AD500", "AD501", "AD502", "AD503", "AD600"], None),
    ],
)
def test_postcodes_are_recognised_by_name_and_form_where_that_is_asked_for(values, country):
    assert recognised_ready(" zip code ", values, with_postcodes=True) == Recognised("postcode", country=country)
    assert recognised_ready(" zip code ", values) is None
    assert recognised_ready(" order ", values, with_postcodes=True) is None
    assert recognised_ready(" zip code ", [*values, CANARY + "/"], with_postcodes=True) is None


def test_postcodes_climb_by_prefix_unless_classes_can_be_learned_from_them():
    values = [f"{number:05}" for number in range(100, 2100, 100)]
    cells = pa.table({"plz": [*values, *values, *values], "ill": ["yes", "no", "no"] * 20})
    whole = Table.from_arrow(cells, Schema.of([Column("plz"), Column("ill")]))
    few = whole.take(np.arange(40))

    assert hierarchy_for(few, "plz", target="ill").standard == hierarchy_for(whole, "plz").standard == "postcode"
    assert hierarchy_for(whole, "plz", target="ill").standard == ""


def test_the_automatic_hierarchy_of_countries_is_the_ready_one():
    table = read_table(pa.table({"home": ["France", "Germany", "Peru", "Chad", "Japan"]}))

    assert hierarchy_for(table, "home").labels == build_hierarchy(table, "home", "ready", {"ready": "country"}).labels
