import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from sfumato.audit.reading.values import matching_ids, numbers_in, ranks, zero_one
from sfumato.schema import Kind

DAY = datetime.date(2024, 1, 31)
NOON = datetime.datetime(2024, 1, 31, 12, 0, 0)
MIDNIGHT = datetime.datetime(2024, 1, 31)


def same(original: pa.Array, released: pa.Array) -> bool:
    before, after = matching_ids(original, released)
    return before.tolist() == after.tolist()


SAME = {
    "texts": (pa.array(["a"]), pa.array(["a"])),
    "text types": (pa.array(["a"]), pa.array(["a"], pa.large_string())),
    "int and text": (pa.array([1]), pa.array(["1"])),
    "text and int": (pa.array(["1"]), pa.array([1])),
    "float and text": (pa.array([1.0]), pa.array(["1.0"])),
    "float and whole text": (pa.array([1.0]), pa.array(["1"])),
    "int and float": (pa.array([1]), pa.array([1.0])),
    "narrow and wide int": (pa.array([1], pa.int8()), pa.array([1], pa.int64())),
    "float in scientific notation": (pa.array([1e300]), pa.array(["1e+300"])),
    "single precision": (pa.array([0.1], pa.float32()), pa.array(["0.1"])),
    "half precision": (pa.array([np.float16(0.1)], pa.float16()), pa.array(["0.1"])),
    "single and double precision": (pa.array([0.1], pa.float32()), pa.array([0.1])),
    "double and single precision": (pa.array([0.1, float("nan")]), pa.array([0.1, float("nan")], pa.float32())),
    "decimal and double": (pa.array([Decimal("0.01"), Decimal("1.50")]), pa.array([0.01, 1.5])),
    "decimal and whole": (pa.array([Decimal("2.00")]), pa.array([2])),
    "decimal": (pa.array([Decimal("1.50")]), pa.array(["1.50"])),
    "large whole number": (pa.array([2**53 + 1]), pa.array([str(2**53 + 1)])),
    "truth": (pa.array([True]), pa.array(["true"])),
    "truth in capitals": (pa.array([False]), pa.array(["FALSE"])),
    "truth and number": (pa.array([True]), pa.array([1])),
    "date": (pa.array([DAY]), pa.array(["2024-01-31"])),
    "time with blank": (pa.array([NOON]), pa.array(["2024-01-31 12:00:00"])),
    "time with T": (pa.array([NOON], pa.timestamp("ns")), pa.array(["2024-01-31T12:00:00.000"])),
    "midnight and date": (pa.array([MIDNIGHT]), pa.array([DAY])),
    "not a number": (pa.array([float("nan")]), pa.array(["nan"])),
    "infinite": (pa.array([float("inf")]), pa.array(["inf"])),
    "missing": (pa.array([None], pa.int64()), pa.array([None], pa.string())),
    "missing and null type": (pa.array([None], pa.int64()), pa.nulls(1)),
}


@pytest.mark.parametrize("pair", SAME.values(), ids=SAME.keys())
def test_values_that_mean_the_same(pair):
    assert same(*pair)


DIFFERENT = {
    "texts": (pa.array(["a"]), pa.array(["A"])),
    "spellings of a text": (pa.array(["1"]), pa.array(["1.0"])),
    "blank": (pa.array(["a"]), pa.array(["a "])),
    "numbers": (pa.array([1]), pa.array(["2"])),
    "number and word": (pa.array([1]), pa.array(["one"])),
    "underscore": (pa.array([1000]), pa.array(["1_000"])),
    "other digits": (pa.array([1]), pa.array(["١"])),
    "large whole number": (pa.array([2**53]), pa.array([str(2**53 + 1)])),
    "too large for single precision": (pa.array([float("inf")], pa.float32()), pa.array(["1e300"])),
    "missing and text": (pa.array([None], pa.string()), pa.array(["None"])),
    "missing and zero": (pa.array([None], pa.int64()), pa.array(["0"])),
    "days": (pa.array([DAY]), pa.array(["2024-01-30"])),
    "day and number": (pa.array([DAY]), pa.array([19753])),
}


@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT.keys())
def test_values_that_do_not_mean_the_same(pair):
    assert not same(*pair)


def test_a_second_spelling_of_a_released_value_never_matches():
    """It could tell rows apart that are equal in the original."""
    before, after = matching_ids(pa.array([1.0]), pa.array(["1", "1.0"]))

    assert (before.tolist(), after.tolist()) == ([0], [0, -1])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array(["0", "1", None]), [0, 1, -1]),
        (pa.array([0, 1]), [0, 1]),
        (pa.array([1.0]), [1]),
        (pa.array([False, True]), [0, 1]),
        (pa.array(["no"]), None),
        (pa.array(["true"]), None),
        (pa.array([0.5]), None),
        (pa.array(["2"]), None),
        (pa.array([DAY]), None),
        (pa.array(range(20)), None),
    ],
    ids=str,
)
def test_zeros_and_ones_are_recognized(values, expected):
    found = zero_one(values)

    assert (None if found is None else found.tolist()) == expected


def test_numbers_are_read_from_text_and_typed_values():
    read, wrong = numbers_in(pa.array(["1", " 2.5 ", "1e3", "x", None]))

    assert read[:3].tolist() == [1.0, 2.5, 1000.0]
    assert np.isnan(read[3:]).all()
    assert wrong.tolist() == [False, False, False, True, False]
    assert numbers_in(pa.array([True, None]))[0][0] == 1.0
    assert numbers_in(pa.array([DAY, None]))[1].tolist() == [True, False]


def test_ranks_follow_the_kind():
    assert ranks(pa.array(["10", "9", None, "a"]), Kind.CATEGORICAL).tolist() == [1, 0, 3, 2]
    assert ranks(pa.array(["10", "9", None]), Kind.NUMERIC).tolist() == [1, 0, 2]
    assert ranks(pa.array(["1", "1.0", "0"]), Kind.NUMERIC).tolist() == [1, 1, 0]
    assert ranks(pa.array(["x", "1"]), Kind.NUMERIC).tolist() == [1, 0]
    assert ranks(pa.array(["lo", "hi", None]), Kind.ORDERED, ("lo", "hi")).tolist() == [0, 1, 2]
    assert ranks(pa.array([2, 1]), Kind.ORDERED, ("2", "1")).tolist() == [0, 1]
    assert ranks(pa.array([True, False]), Kind.CATEGORICAL).tolist() == [1, 0]
    assert ranks(pa.array([DAY, None]), Kind.DATE).tolist() == [0, 1]
    assert ranks(pa.nulls(1), Kind.CATEGORICAL).tolist() == [0]
