"""Axes: codes, labels and positions of every kind of column."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import SchemaError
from sfumato.recoding.axes import align, axes_of
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
