"""Labels of hierarchies: each form stands for exactly the values that it says."""

from decimal import Decimal
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.reading.labels import contained_in_labels
from sfumato.schema import Kind


def held(label, values, kind=Kind.CATEGORICAL, listed=None, domain=None, data_type=None):
    original = pa.array([*values, None], data_type or pa.string())
    found = contained_in_labels(pa.array([label], pa.string()), original, kind, listed or {}, domain)
    if found.n_unreadable:
        return "unreadable"
    flags = found.holds(np.arange(len(original)), np.zeros(len(original), dtype=np.int64))
    return [value for value, flag in zip([*values, None], flags, strict=True) if flag]


AGES = ["17", "18.0", "24", "25", "90"]


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("[17, 25[", ["17", "18.0", "24"]),
        ("[17, 25]", ["17", "18.0", "24", "25"]),
        ("18", ["18.0"]),
        ("*", [*AGES, None]),
        (None, [None]),
        ("[25, 17[", []),
        ("[a, b[", "unreadable"),
        ("99", []),
    ],
)
def test_numbers(label, expected):
    assert held(label, AGES, Kind.NUMERIC) == expected


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("0213*", ["02139", "02134"]),
        ("02***", ["02139", "02134", "02999"]),
        ("*****", ["02139", "02134", "02999", "12345"]),
    ],
)
def test_masks_leave_out_as_many_characters_as_they_have_stars(label, expected):
    assert held(label, ["02139", "02134", "02999", "12345", "0213"]) == expected


@given(st.dates(), st.lists(st.dates(), max_size=5))
def test_dates_by_quarter_and_decade(day, others):
    """A quarter holds the dates of its three months, a decade those of ten years, with a time as well."""
    days = list(dict.fromkeys([day.isoformat(), *(other.isoformat() for other in others)]))
    quarter = (day.month - 1) // 3

    def in_quarter(text):
        return int(text[:4]) == day.year and (int(text[5:7]) - 1) // 3 == quarter

    found = held(f"{day.year:04}-Q{quarter + 1}", days, Kind.DATE)
    assert found == [text for text in days if in_quarter(text)]
    found = held(f"{day.year // 10:03}0s", [f"{text} 10:00:00" for text in days], Kind.DATE)
    assert found == [f"{text} 10:00:00" for text in days if int(text[:4]) // 10 == day.year // 10]
    assert held(f"{day.year:04}-Q5", days, Kind.DATE) == []
    assert held(f"{day.year:04}-Q{quarter + 1}", days) == []


def test_dates_by_month_and_year():
    days = ["2024-03-01", "2024-04-01", "2023-03-01"]

    assert held("2024-03", days, Kind.DATE) == ["2024-03-01"]
    assert held("2024", days, Kind.DATE) == ["2024-03-01", "2024-04-01"]
    assert held("2024", days) == []
    assert held("[2023-01-01, 2024-03-31]", days, Kind.DATE) == ["2024-03-01", "2023-03-01"]


def test_levels_between_two_of_a_domain():
    domain = ("low", "middle", "high")

    assert held("[low, high[", ["low", "high", "middle"], Kind.ORDERED, domain=domain) == ["low", "middle"]
    assert held("[low, other]", ["low"], Kind.ORDERED, domain=domain) == "unreadable"


def test_what_the_manifest_lists_comes_before_what_the_text_could_mean():
    listed = {"0-19": ["1", "2", "19"], "[1, 3[": ["9"]}

    assert held("0-19", ["1", "9", "19"], Kind.NUMERIC, listed) == ["1", "19"]
    assert held("[1, 3[", ["1", "9"], Kind.NUMERIC, listed) == ["9"]
    assert held("Europe", ["France", "Peru"], listed={"Europe": ["France", "Spain"]}) == ["France"]


@pytest.mark.parametrize("kind", [Kind.CATEGORICAL, Kind.NUMERIC])
@pytest.mark.parametrize("others", [[], ["1", "3"]])
def test_missing_is_the_empty_text_of_a_list(kind, others):
    assert held("g", ["1", "2"], kind, {"g": [*others, ""]}) == [*others[:1], None]
    assert held("g", ["1", "2"], kind, {"g": others}) == others[:1]
    assert held("[1, 2]", ["1", "3"], kind, {"[1, 2]": ["1", "2", ""]}) == ["1", None]


def test_another_token_in_a_list_is_not_missing():
    assert held("g", ["a", "?"], listed={"g": ["?"]}) == ["?"]


@pytest.mark.parametrize(
    ("data_type", "values", "label", "expected"),
    [
        (pa.float32(), [0.5, 0.25], "0.5", [0.5]),
        (pa.decimal128(10, 2), [Decimal("0.10"), Decimal("1.25")], "0.10", [Decimal("0.10")]),
        (pa.decimal128(10, 2), [Decimal("0.10"), Decimal("1.25")], "0.1", [Decimal("0.10")]),
        (pa.decimal128(10, 2), [Decimal("0.10"), Decimal("1.25")], "[0.1, 1.25[", [Decimal("0.10")]),
        (pa.int64(), [2**53, 2**53 + 1], str(2**53 + 1), [2**53 + 1]),
        (pa.int64(), [2**53, 2**53 + 1], f"[{2**53}, {2**53}]", [2**53]),
        (pa.uint64(), [2**64 - 1, 2**64 - 2], f"[{2**64 - 1}, {2**64 - 1}]", [2**64 - 1]),
        (pa.float64(), [1e20, 3.0], "3", [3.0]),
    ],
    ids=str,
)
def test_typed_numbers_are_read_as_they_are_written(data_type, values, label, expected):
    assert held(label, values, Kind.NUMERIC, data_type=data_type) == expected


@pytest.mark.parametrize("label", ["0.1", "[0, 0.1]", "[0.1, 0.2[", "near"])
def test_a_number_of_single_precision_is_the_decimal_that_it_prints_as(label):
    found = contained_in_labels(
        pa.array([label]), pa.array([0.1, 0.2], pa.float32()), Kind.NUMERIC, {"near": ["0.10", "7"]}
    )

    assert found.holds(np.arange(2), np.zeros(2, dtype=np.int64)).tolist() == [True, False]


def test_long_numbers_in_two_spellings_are_one_and_neighbours_are_apart():
    values = ["9007199254740993", "9007199254740993.0", "9007199254740992"]

    assert held("9007199254740993", values, Kind.NUMERIC) == values[:2]
    assert held("[9007199254740993, 9007199254740994[", values, Kind.NUMERIC) == values[:2]
    assert held("[9007199254740992, 9007199254740993[", values, Kind.NUMERIC) == values[2:]


def test_a_level_that_looks_like_an_interval_is_that_level():
    domain = ("[0, 10]", "[10, 20]", "[20, 30]")

    assert held("[0, 10]", ["[0, 10]", "[10, 20]"], Kind.ORDERED, domain=domain) == ["[0, 10]"]
    assert held("[20, 30]", ["[0, 10]", "[10, 20]"], Kind.ORDERED, domain=domain) == []
    assert held("[0, 30]", ["[0, 10]", "[10, 20]"], Kind.ORDERED, domain=domain) == "unreadable"
    assert held("02**", ["02**", "0213"]) == ["02**"]
    assert held("2024", ["2024", "2024-03-01"], Kind.DATE) == ["2024"]


def test_a_day_stands_for_all_its_moments():
    moments = [1_709_251_200_000_000, 1_709_287_200_000_000, 1_709_337_600_000_000]  # 2024-03-01 (twice), 2024-03-02

    found = contained_in_labels(pa.array(["2024-03-01"]), pa.array(moments, pa.timestamp("us")), Kind.DATE, {})
    assert found.holds(np.arange(3), np.zeros(3, dtype=np.int64)).tolist() == [True, True, False]


NUMBERS = st.lists(st.integers(-5, 5), min_size=1, max_size=6, unique=True)


@given(numbers=NUMBERS, low=st.integers(-6, 6), high=st.integers(-6, 6), closed=st.booleans(), scale=st.integers(0, 20))
def test_intervals_hold_what_lies_between(numbers, low, high, closed, scale):
    """At any size: 5 and 10**20 + 5 are told from their neighbours alike."""
    base = 10**scale
    label = f"[{base + low}, {base + high}{']' if closed else '['}"
    expected = [str(base + n) for n in numbers if low <= n and (n <= high if closed else n < high)]

    assert held(label, [str(base + n) for n in numbers], Kind.NUMERIC) == expected


def test_every_pair_of_a_label_and_a_value_is_judged_by_itself():
    values, labels = [str(i) for i in range(7)], ["[0, 3[", "3", "*", "[5, 6]", "odd"]
    found = contained_in_labels(pa.array(labels), pa.array(values), Kind.NUMERIC, {"odd": ["1", "3", "5"]})
    stands = {"[0, 3[": "012", "3": "3", "*": "0123456", "[5, 6]": "56", "odd": "135"}

    for (i, label), (j, value) in product(enumerate(labels), enumerate(values)):
        assert found.holds(np.array([j]), np.array([i]))[0] == (value in stands[label]), (label, value)


@pytest.mark.parametrize("other", ["[17, 25.0]", "[17, 26[", "[16, 25]", "≤ 25"])
def test_a_value_in_more_labels_than_levels_is_in_none(other):
    """Rows of one class could be told apart by which of its labels they have."""
    labels, original = pa.array(["[17, 25]", other, "[60, 90]"]), pa.array(["17", "25", "60", "90"])

    for n_levels, n_held in ((1, 2), (2, 6), (None, 6)):
        found = contained_in_labels(labels, original, Kind.NUMERIC, {}, n_levels=n_levels)
        pairs = np.array(list(product(range(4), range(3)))).T
        assert int(found.holds(*pairs).sum()) == n_held, n_levels


def test_labels_of_single_values_and_a_star_do_not_count_as_groups():
    """Level 0 keeps spellings of the original, of which two may mean the same."""
    labels = pa.array(["7", "7.0", "*", "[7, 9]"])
    found = contained_in_labels(labels, pa.array(["7", "7.0", "9"]), Kind.NUMERIC, {}, n_levels=1)

    assert found.holds(np.zeros(4, dtype=np.int64), np.arange(4)).all()


@pytest.mark.parametrize("listed", [["cook", "Patient 7"], ["cook", "cook"], ["cook", ""]])
def test_lists_name_values_of_the_original_once(listed):
    found = contained_in_labels(
        pa.array(["kitchen"]), pa.array(["cook", "baker"]), Kind.CATEGORICAL, {"kitchen": listed}
    )

    assert found.n_foreign == 1


@pytest.mark.parametrize(
    ("label", "is_built"),
    [
        ("[17, 25]", True),
        ("≥ 17", True),
        ("[17, 25.0]", False),
        ("[17, 25.5]", False),
        ("[+17, 25]", False),
        ("< 18", False),
        ("[ 17, 25]", False),
        ("[017, 25]", False),
        ("[17e0, 25]", False),
    ],
)
def test_built_intervals_end_at_numbers_of_the_column_in_one_spelling(label, is_built):
    original = pa.array(["17", "25", "90"])

    assert contained_in_labels(pa.array([label]), original, Kind.NUMERIC, {}, is_built=True).n_misspelled != is_built
    assert contained_in_labels(pa.array([label]), original, Kind.NUMERIC, {}).n_misspelled == 0
