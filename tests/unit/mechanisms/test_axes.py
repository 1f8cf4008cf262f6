"""Axes: codes, labels and positions of every kind of column."""

from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import SchemaError
from sfumato.mechanisms.axes import align, axes_of
from sfumato.schema import Column, Kind, Schema
from sfumato.table.coding import Table


def axis_of(cells, kind=Kind.CATEGORICAL, domain=None):
    table = Table.from_arrow(pa.table({"a": cells}), Schema.of([Column("a", kind=kind, domain=domain)]))
    return axes_of(table, ["a"])[0]


def test_numbers_are_ordered_by_size_and_one_number_in_two_spellings_is_one_value():
    axis = axis_of(["10", "9", "9.0", None], Kind.NUMERIC)

    assert axis.positions.tolist() == [9.0, 10.0]
    assert axis.codes.tolist() == [1, 0, 0, -1]
    assert axis.labels == ("9", "10")
    assert (axis.span, axis.has_missing) == (1.0, True)


def test_typed_numbers_are_written_as_they_print():
    assert axis_of(pa.array([2.5, 1.0])).positions is None
    assert axis_of(pa.array([2.5, 1.0]), Kind.NUMERIC).labels == ("1", "2.5")


def test_dates_lie_on_a_line_of_time():
    axis = axis_of(["2024-03-01", "2024-02-28"], Kind.DATE)

    assert axis.labels == ("2024-02-28", "2024-03-01")
    assert axis.span == pytest.approx(2 * 24 * 3600 * 1e6)


def test_levels_follow_the_declared_domain_and_values_outside_it_take_the_order_away():
    domain = ("low", "middle", "high")

    assert axis_of(["high", "low"], Kind.ORDERED, domain).positions.tolist() == [0.0, 2.0]
    assert axis_of(["high", "other"], Kind.ORDERED, domain).positions is None


def test_an_infinite_number_is_refused_by_its_column():
    with pytest.raises(SchemaError, match="column 'a': has infinite numbers"):
        axis_of(["1", "inf"], Kind.NUMERIC)


def test_not_a_number_is_told_apart_from_infinity():
    with pytest.raises(SchemaError, match=r"column 'a': .* not-a-number \(NaN\)"):
        axis_of([1.0, float("nan")], Kind.NUMERIC)


def test_a_text_in_a_numeric_column_is_counted_and_not_shown():
    with pytest.raises(SchemaError, match="column 'a': is declared numeric, but 2 of its 3") as refused:
        axis_of(["secret", "hidden", "7", "7"], Kind.NUMERIC)
    assert "secret" not in str(refused.value)


def test_a_distance_that_is_no_number_is_refused():
    assert axis_of([8e307, -8e307], Kind.NUMERIC).span == 1.6e308
    with pytest.raises(SchemaError, match="column 'a': has numbers so far apart"):
        axis_of([1e308, -1e308], Kind.NUMERIC)


whole = st.integers(2**53 - 2, 2**53 + 4)
spellings = st.sampled_from(["{}", "{}.0", "+{}", " {}", "0{}", "{}e0"])
spelled = st.tuples(spellings, whole).map(lambda pair: pair[0].format(pair[1]))


@given(st.lists(st.one_of(spelled, whole.map(lambda i: f"{i}.25")), min_size=1, max_size=12))
def test_texts_are_one_value_exactly_when_their_numbers_are_equal(texts):
    axis = axis_of(texts, Kind.NUMERIC)

    numbers = [Fraction(text.strip()) for text in texts]
    in_order = sorted(set(numbers))
    assert axis.codes.tolist() == [in_order.index(number) for number in numbers]
    assert [Fraction(label) for label in axis.labels] == in_order
    assert axis.positions.tolist() == [float(number) for number in in_order]


@pytest.mark.slow
@given(st.lists(st.integers(2**63 - 4, 2**63 + 4), min_size=1, max_size=12), st.booleans())
def test_typed_numbers_with_more_digits_than_a_double_keep_them(numbers, are_decimals):
    cells = pa.array(map(Decimal, numbers), pa.decimal128(30)) if are_decimals else pa.array(numbers, pa.uint64())
    axis = axis_of(cells, Kind.NUMERIC)

    assert axis.labels == tuple(map(str, sorted(set(numbers))))
    assert [int(axis.labels[code]) for code in axis.codes] == numbers


@given(st.lists(st.integers(0, 20), min_size=1, max_size=12))
def test_moments_far_from_1970_keep_their_microseconds(ticks):
    cells = pa.array([datetime(9999, 1, 1) + timedelta(microseconds=tick) for tick in ticks], pa.timestamp("us"))

    assert axis_of(cells, Kind.DATE).codes.tolist() == [sorted(set(ticks)).index(tick) for tick in ticks]


def test_truth_values_are_categories_whatever_their_column_is_declared():
    axis = axis_of(pa.array([True, None, False]), Kind.NUMERIC)

    assert (axis.positions, axis.labels, axis.described.kind) == (None, ("false", "true"), Kind.CATEGORICAL)


def test_blanks_around_numbers_are_no_part_of_their_labels():
    assert axis_of([" 7", "\u00a08 "], Kind.NUMERIC).labels == ("7", "8")
    with pytest.raises(SchemaError, match="column 'a': has 1 distinct values with blanks around them"):
        axis_of(["a", " a"])


def test_rows_of_another_table_are_coded_by_the_values_of_the_axis():
    jobs = axis_of(["nurse", "cook"])
    other = Table.from_arrow(pa.table({"a": ["cook", "pilot", None]}), Schema.of([Column("a")]))

    assert align(jobs, other["a"]).codes.tolist() == [0, -1, -1]
    assert align(jobs, other["a"]).labels == ("cook", "nurse")


def test_new_numbers_keep_their_own_positions():
    ages = axis_of(["30", "50"], Kind.NUMERIC)
    other = Table.from_arrow(pa.table({"a": ["40", None]}), Schema.of([Column("a", kind=Kind.NUMERIC)]))

    aligned = align(ages, other["a"])
    assert aligned.positions.tolist() == [40.0]
    assert aligned.codes.tolist() == [0, -1]


def test_a_column_without_any_value():
    axis = axis_of(pa.array([None, None], pa.string()))

    assert (axis.n_values, axis.codes.tolist(), axis.span) == (0, [-1, -1], 0.0)
    assert np.array_equal(axis.as_tree_column().codes, axis.codes)
