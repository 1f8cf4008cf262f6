"""Certainty penalties on the paper's example and beside their oracles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from sfumato.errors import InvalidParameterError
from sfumato.measures.loss import (
    generalization_height,
    generalized_certainty_penalty,
    normalized_certainty_penalty_of_ranges,
    normalized_certainty_penalty_of_sets,
    suppressed_fraction,
)


def test_range_of_the_papers_example():
    """Age [29-42] has domain size 13 in [ERP19], whose ages run from 22 to 80."""
    assert normalized_certainty_penalty_of_ranges(29, 42, 22, 80) == pytest.approx(13 / 58)


def test_single_values_cost_nothing():
    assert normalized_certainty_penalty_of_ranges([5, 7], [5, 7], 0, 10).tolist() == [0, 0]
    assert normalized_certainty_penalty_of_ranges([5], [5], 5, 5).tolist() == [0]
    assert normalized_certainty_penalty_of_sets([1], 1).tolist() == [0]
    assert normalized_certainty_penalty_of_sets([1], 4).tolist() == [0]


def test_whole_column_costs_one():
    assert normalized_certainty_penalty_of_ranges(0, 10, 0, 10) == 1
    assert normalized_certainty_penalty_of_sets(4, 4) == 1


@pytest.mark.parametrize(("low", "high"), [(5, 4), (0, 11)], ids=["reversed", "too-wide"])
def test_ranges_lie_in_the_column(low, high):
    with pytest.raises(InvalidParameterError, match="at least low"):
        normalized_certainty_penalty_of_ranges(low, high, 0, 10)


@pytest.mark.parametrize("n_values", [0, 5])
def test_sets_have_values_of_the_column(n_values):
    with pytest.raises(InvalidParameterError, match="between 1 and the 4"):
        normalized_certainty_penalty_of_sets([n_values, 1], 4)


def test_release_without_cells_loses_nothing():
    for shape in ((0, 3), (3, 0)):
        assert generalized_certainty_penalty(np.zeros(shape)) == 0
    assert normalized_certainty_penalty_of_ranges([], [], 0, 1).size == 0
    assert normalized_certainty_penalty_of_sets([], 0).size == 0


def test_suppressed_fraction_is_a_fraction():
    assert suppressed_fraction(15, 1000) == 0.015
    assert suppressed_fraction(0, 0) == 0


@given(data=st.data(), numbers=st.lists(st.integers(0, 20), min_size=1, max_size=8))
def test_penalties_agree_with_the_definitions(data, numbers):
    texts = [str(number % 4) for number in numbers]
    ranges = data.draw(st.lists(st.tuples(st.sampled_from(numbers), st.sampled_from(numbers)).map(sorted), min_size=1))
    sets = [data.draw(st.sets(st.sampled_from(texts), min_size=1)) for _ in ranges]
    lows, highs = zip(*ranges, strict=True)

    by_range = normalized_certainty_penalty_of_ranges(lows, highs, min(numbers), max(numbers))
    by_set = normalized_certainty_penalty_of_sets([len(group) for group in sets], len(set(texts)))
    expected = [
        [oracles.certainty_penalty_of_range(*pair, numbers), oracles.certainty_penalty_of_set(sorted(group), texts)]
        for pair, group in zip(ranges, sets, strict=True)
    ]

    assert np.column_stack([by_range, by_set]).tolist() == [
        [pytest.approx(float(penalty)) for penalty in row] for row in expected
    ]
    whole = generalized_certainty_penalty(np.column_stack([by_range, by_set]))
    assert whole == pytest.approx(float(oracles.generalized_certainty_penalty(expected)))
    assert 0 <= whole <= 1


def test_rows_may_be_given_once_with_their_number():
    penalties = np.array([[0, 0.5], [1, 1]])

    weighted = generalized_certainty_penalty(penalties, counts=[3, 2])

    assert weighted == pytest.approx(generalized_certainty_penalty(np.repeat(penalties, [3, 2], axis=0)))


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 5)), max_size=8),
)
def test_the_height_is_the_sum_over_all_cells_of_all_records(rows):
    """Equation 4 of [FBA19], record by record."""
    records = [levels for *levels, count in rows for _ in range(count)]

    assert generalization_height([row[:2] for row in rows], [row[2] for row in rows]) == sum(map(sum, records))
    assert generalization_height(records) == sum(map(sum, records))
