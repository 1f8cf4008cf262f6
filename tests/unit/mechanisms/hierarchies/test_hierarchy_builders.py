"""Builders: what each label says is true of every value under it, levels are nested, and the highest is ``*``."""

import re
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.mechanisms.hierarchies.builders import (
    calendar_levels,
    equal_width_intervals,
    intervals_at,
    masked_characters,
    ordered_groups,
    quantile_intervals,
)
from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy

INTERVAL = re.compile(r"\[(.+), (.+)([\[\]])")
whole = st.integers(-1000, 1000).map(str)
cents = st.decimals(-50, 50, places=2).map(str)
fine = st.floats(-100, 100).map(repr)
numbers = st.one_of(*(st.lists(kind, min_size=1, max_size=15, unique_by=float) for kind in (whole, cents, fine)))
merges = st.none() | st.lists(st.integers(2, 4), max_size=3)


def holds(label, value):
    """Read a label of numbers naively."""
    found = INTERVAL.fullmatch(label)
    if label == "*":
        return True
    if label[:2] in ("< ", "≥ "):
        return (Decimal(value) < Decimal(label[2:])) == (label[0] == "<")
    if found is None:
        return Decimal(label) == Decimal(value)
    low, high, bracket = Decimal(found[1]), Decimal(found[2]), found[3]
    return low <= Decimal(value) and (Decimal(value) < high or (bracket == "]" and Decimal(value) == high))


def check_levels(hierarchy, values):
    """Check the levels from the rows alone: all values, nested, each level coarser than the one below, ``*`` on top."""
    rows = list(hierarchy.rows())
    assert sorted(row[0] for row in rows) == sorted(values)
    assert {row[-1] for row in rows} == {"*"}
    for level in range(1, hierarchy.n_levels):
        parent = {}
        for row in rows:
            assert parent.setdefault(row[level - 1], row[level]) == row[level]
        assert len(set(parent.values())) < len(parent) or len(rows) == 1
    assert list(Hierarchy.from_rows(rows).rows()) == rows


def check_numbers(hierarchy, values):
    """Check that a label is true of exactly the values that have it."""
    check_levels(hierarchy, values)
    for level, labels in enumerate(hierarchy.labels):
        for code, label in enumerate(labels):
            inside = {value for value, own in zip(hierarchy.values, hierarchy.codes[level], strict=True) if own == code}
            assert inside == {value for value in values if holds(label, value)}


@given(numbers, st.decimals("0.25", 60, places=2), st.integers(-10, 10), merges)
def test_equal_widths_hold_what_they_say(values, width, start, merge):
    hierarchy = equal_width_intervals(values, width, start=start, merge=merge)

    check_numbers(hierarchy, values)
    n_intervals = len({(Fraction(value) - start) // Fraction(width) for value in values})
    widths = [INTERVAL.fullmatch(label) for label in hierarchy.labels[1] if n_intervals < len(values)]
    for found in filter(None, widths):
        assert Decimal(found[2]) - Decimal(found[1]) <= width


@given(numbers, st.lists(st.decimals(-60, 60, places=1), min_size=1, max_size=6, unique=True).map(sorted), merges)
def test_chosen_cuts_hold_what_they_say(values, cuts, merge):
    hierarchy = intervals_at(values, cuts, merge=merge)

    check_numbers(hierarchy, values)
    if hierarchy.n_levels > 2:
        below = [sum(cut <= Decimal(value) for cut in cuts) for value in hierarchy.values]
        assert len(hierarchy.labels[1]) <= len(set(below))


@given(numbers, st.data(), st.integers(2, 9), merges)
def test_quantiles_hold_what_they_say(values, data, n_intervals, merge):
    counts = data.draw(st.lists(st.integers(1, 20), min_size=len(values), max_size=len(values)))

    hierarchy = quantile_intervals(values, np.array(counts), n_intervals, merge=merge)

    check_numbers(hierarchy, values)
    assert len(hierarchy.labels[1]) <= n_intervals


def test_quantiles_hold_about_equally_many_rows():
    values = [str(number) for number in range(1, 101)]

    hierarchy = quantile_intervals(values, np.ones(100, dtype=np.int64), 4)

    assert [len(labels) for labels in hierarchy.labels] == [100, 4, 2, 1]
    assert all(0.22 <= share <= 0.28 for share in hierarchy.shares(1))


def test_finest_intervals_are_one_a_cut():
    values = [str(age) for age in range(17, 91)]

    assert intervals_at(values, [18, 30, 65]).labels[1:] == (
        ("< 18", "[18, 29]", "[30, 64]", "≥ 65"),
        ("< 30", "≥ 30"),
        ("*",),
    )


def test_cuts_beyond_the_values_are_their_ends():
    ages = ["20", "21", "70"]
    assert intervals_at(ages, [0, 18, 65, 120], merge=[3]).labels[1:] == (("[18, 64]", "[65, 119]"), ("*",))
    assert intervals_at([*ages, "130"], [0, 50, 100, 200], merge=[2]).labels[1:] == (
        ("[0, 49]", "[50, 99]", "[100, 199]"),
        ("[0, 99]", "[100, 199]"),
        ("*",),
    )


def test_fine_numbers_have_half_open_intervals():
    labels = intervals_at(["0.123456", "0.2", "0.5", "2.5"], [0.5, 1]).labels[1]

    assert labels == ("< 0.5", "[0.5, 1[", "≥ 1")


def test_two_decimals_end_a_cent_below_the_next_interval():
    assert intervals_at(["1.25", "1.3", "9.99"], [0, 5, 10]).labels[1] == ("[0, 4.99]", "[5, 9.99]")


def test_intervals_of_one_number_each_are_left_out():
    assert intervals_at(["0", "1"], [1]).labels == (("0", "1"), ("*",))
    assert quantile_intervals(["0", "1"], np.array([5, 9]), 2).labels == (("0", "1"), ("*",))
    assert equal_width_intervals(["12", "17", "22"], 5).labels[1] == ("[10, 19]", "[20, 29]")


def test_spellings_of_one_number_are_one_value():
    hierarchy = equal_width_intervals(["39", "39.0", "41"], 1)

    assert hierarchy.values == ("39", "41")


def test_numbers_on_both_sides_of_the_start_meet_at_the_star():
    assert equal_width_intervals(["-3", "-1", "2"], 2).labels[-2:] == (("[-4, -1]", "[0, 3]"), ("*",))


@pytest.mark.parametrize("build", [lambda v: equal_width_intervals(v, 5), lambda v: intervals_at(v, [3])])
@pytest.mark.parametrize("values", [["1", "secret"], ["inf"], ["nan"], ["sNaN"], ["1e999999999"], []])
def test_intervals_are_for_numbers(build, values):
    with pytest.raises(SchemaError, match="are not finite numbers") as caught:
        build(values)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "build",
    [
        lambda: equal_width_intervals(["1"], 0),
        lambda: equal_width_intervals(["1"], float("nan")),
        lambda: equal_width_intervals(["1e20"], 1),
        lambda: equal_width_intervals(["1"], 5, merge=[1]),
        lambda: intervals_at(["1"], []),
        lambda: intervals_at(["1"], [3, 3]),
        lambda: intervals_at(["1"], [3, 2]),
        lambda: intervals_at(["1"], [float("inf")]),
        lambda: quantile_intervals(["1"], np.array([1]), 1),
        lambda: masked_characters(["1"], step=0),
        lambda: ordered_groups(["a", "b"], [0]),
        lambda: ordered_groups(["a", "b"], [(1, 2)]),
        lambda: ordered_groups(["a", "b"], [()]),
    ],
)
def test_parameters_out_of_range_are_refused(build):
    with pytest.raises(InvalidParameterError):
        build()


@given(st.lists(st.text("0123456789", min_size=1, max_size=6), min_size=1, max_size=12, unique=True), st.integers(1, 3))
def test_masks_keep_length_and_beginning(values, step):
    hierarchy = masked_characters(values, step=step)

    check_levels(hierarchy, values)
    expected, n_before = [], len(values)
    for n_masked in range(step, 6 + step, step):
        masked = [value[: max(0, len(value) - n_masked)].ljust(len(value), "*") for value in values]
        if 1 < len(set(masked)) < n_before:
            expected.append(masked)
            n_before = len(set(masked))
    assert list(hierarchy.rows()) == list(zip(values, *expected, ["*"] * len(values), strict=True))


def test_postcodes_are_masked_from_the_right():
    codes = ["02139", "02138", "02140", "02210", "01001", "94103"]
    assert next(masked_characters(codes).rows()) == ("02139", "0213*", "021**", "02***", "0****", "*")
    assert next(masked_characters(["02139", "02140", "94103"]).rows()) == ("02139", "021**", "*")


@given(st.lists(st.dates(date(1900, 1, 1), date(2100, 1, 1)), min_size=1, max_size=12, unique=True))
def test_dates_become_months_quarters_years_and_decades(days):
    hierarchy = calendar_levels([day.isoformat() for day in days])

    check_levels(hierarchy, [day.isoformat() for day in days])
    steps = ("{0:%Y-%m}", "{0:%Y}-Q{1}", "{0:%Y}", "{2}s")
    written = [[step.format(d, (d.month - 1) // 3 + 1, d.year // 10 * 10) for d in days] for step in steps]
    kept, finest = [], len(days)
    for level in written:
        if 1 < len(set(level)) < finest:  # a level that joins nothing, or everything, is left out
            kept.append(level)
            finest = len(set(level))
    assert [list(row[1:-1]) for row in hierarchy.rows()] == [list(labels) for labels in zip(*kept, strict=True)] or (
        not kept and all(len(row) == 2 for row in hierarchy.rows())
    )


def test_moments_become_days_first():
    moments = ["2024-02-29T10:00", "2024-02-29 11:30", "2024-03-01"]

    assert calendar_levels(moments).labels[1] == ("2024-02-29", "2024-03-01")


@pytest.mark.parametrize("wrong", ["2024-02-30", "29.02.2024", "2024-02", "2024-02-29x", ""])
def test_what_is_no_date_is_counted(wrong):
    with pytest.raises(SchemaError, match="1 of 2 values are not dates"):
        calendar_levels(["2024-01-01", wrong])


@given(st.integers(1, 12), st.none() | st.lists(st.integers(1, 4), max_size=3))
def test_ordered_groups_are_neighbours(n_values, sizes):
    order = [f"v{i:02}" for i in range(n_values)]

    hierarchy = ordered_groups(order, sizes)

    check_levels(hierarchy, order)
    for level in hierarchy.codes:
        assert (np.diff(level) >= 0).all()
    for labels, codes in zip(hierarchy.labels[1:-1], hierarchy.codes[1:-1], strict=True):
        for code, label in enumerate(labels):
            group = [order[i] for i in np.flatnonzero(codes == code)]
            assert label == (group[0] if len(group) == 1 else f"[{group[0]}, {group[-1]}]")


def test_sizes_of_a_level_may_differ():
    hierarchy = ordered_groups(["a", "b", "c", "d", "e"], [(2, 1, 2), 2])

    assert hierarchy.labels[1:] == (("[a, b]", "c", "[d, e]"), ("[a, c]", "[d, e]"), ("*",))


@pytest.mark.parametrize("build", [masked_characters, calendar_levels, ordered_groups])
def test_no_values_no_hierarchy(build):
    with pytest.raises(SchemaError, match="without values"):
        build([])
