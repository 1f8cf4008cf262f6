"""Labels of hierarchies: each form stands for exactly the values that it says."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato.audit.labels import contained_in_labels
from sfumato.schema import Kind


def held(label, values, kind=Kind.CATEGORICAL, listed=None, domain=None):
    original = pa.array([*values, None], pa.string())
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
