"""l-diversity and t-closeness, on the papers' examples and at their edges."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from sfumato.counting.counts import Counts, DenseCounts
from sfumato.errors import InvalidParameterError
from sfumato.measures.diversity import distinct_diversity, entropy_diversity, recursive_diversity, t_closeness
from table_levels import distinct_diversity_level, entropy_diversity_level, recursive_diversity_level

EMPTY = Counts.from_contingency(np.zeros((0, 0), dtype=np.int64))
SALARIES = Counts.from_contingency(np.repeat(np.eye(3, dtype=np.int64), 3, axis=0))


def counts_of(*classes):
    """One list of counts by value for each class."""
    return Counts.from_contingency(np.array(classes).T)


def test_distinct_level_is_that_of_the_least_diverse_class():
    assert distinct_diversity_level(counts_of([3, 1, 0], [1, 1, 1])) == 2


def test_entropy_level_is_that_of_the_least_diverse_class():
    assert entropy_diversity_level(counts_of([2, 2, 0], [1, 1, 1])) == pytest.approx(2)
    assert entropy_diversity_level(counts_of([3, 1])) == pytest.approx(
        2 ** -(0.75 * math.log2(0.75) + 0.25 * math.log2(0.25))
    )


def test_one_value_in_a_class_gives_entropy_level_exactly_one():
    assert entropy_diversity_level(counts_of([7, 0], [3, 4])) == 1


@pytest.mark.parametrize(
    ("c", "level"),
    [(0.5, 0), (0.51, 1), (1, 1), (1.01, 2), (2.5, 2), (2.51, 3), (10.0, 3), (10.01, 4), (math.inf, 4)],
)
def test_recursive_level_follows_the_strict_inequality(c, level):
    """10 < c (20, 10, 4, 1) for l = 1 .. 4."""
    assert recursive_diversity_level(counts_of([10, 6, 3, 1]), c) == level


def test_recursive_level_is_that_of_the_least_diverse_class():
    assert recursive_diversity_level(counts_of([5, 5, 5], [8, 1, 1]), c=3) == 1
    assert recursive_diversity_level(counts_of([5, 5, 5], [8, 3, 1]), c=3) == 2


@pytest.mark.parametrize(
    "level", [distinct_diversity, entropy_diversity, lambda counts: recursive_diversity(counts, 2)]
)
def test_levels_of_dense_counts_are_those_of_the_last_axis(level):
    """Of one group, and of groups of groups."""
    groups = np.array([[[4, 3, 1], [8, 3, 1]], [[2, 2, 0], [5, 0, 0]]])

    found = level(DenseCounts.alone(groups)).tolist()

    assert found == [[level(DenseCounts.alone(group)).tolist() for group in part] for part in groups]


def test_recursive_level_takes_decimals_at_their_word():
    """3 < 0.1 * 30 is false for the tenth that was meant, though the float 0.1 is a little more."""
    counts = counts_of([3] * 10)

    assert recursive_diversity_level(counts, 0.1) == 0
    assert recursive_diversity_level(counts, 1 / 3) == 7


@pytest.mark.parametrize("c", [0, -1, math.nan])
def test_recursive_diversity_needs_a_positive_c(c):
    with pytest.raises(InvalidParameterError, match="above 0"):
        recursive_diversity_level(EMPTY, c)


def test_ordered_distance_of_the_salaries_of_li_et_al():
    """{3k,4k,5k} is at 0.375 and {6k,8k,11k} at 0.167 from {3k..11k} in Li et al. (2007)."""
    assert t_closeness(SALARIES, "ordered") == pytest.approx(0.375)
    spread = np.zeros((9, 2), dtype=np.int64)
    spread[[3, 5, 8], 0] = 1
    spread[:, 1] = 1000 - spread[:, 0]
    assert t_closeness(Counts.from_contingency(spread), "ordered") == pytest.approx(0.167, abs=1e-3)


def test_equal_distance_is_half_the_sum_of_differences():
    assert t_closeness(SALARIES) == pytest.approx(2 / 3)
    assert t_closeness(counts_of([4, 0], [0, 4])) == 0.5


def test_classes_distributed_as_the_table_are_at_no_distance():
    for distance in ("equal", "ordered"):
        assert t_closeness(counts_of([1, 2, 3], [2, 4, 6]), distance) == pytest.approx(0, abs=1e-15)


def test_edges_are_defined():
    for counts in (EMPTY, counts_of([3]), counts_of([3], [2])):
        for distance in ("equal", "ordered"):
            assert t_closeness(counts, distance) == 0
    assert distinct_diversity_level(EMPTY) == entropy_diversity_level(EMPTY) == recursive_diversity_level(EMPTY, 2) == 0


def test_unknown_distance_is_refused():
    with pytest.raises(InvalidParameterError, match="'equal' or 'ordered'"):
        t_closeness(EMPTY, "hierarchical")


@given(
    st.lists(st.lists(st.integers(0, 4), min_size=5, max_size=5).filter(any), min_size=1, max_size=5),
    st.permutations(range(5)),
)
def test_ordered_distance_follows_a_declared_order(classes, order):
    rows, sensitive = [], []
    for name, counts in enumerate(classes):
        for value, count in enumerate(counts):
            rows += [(name,)] * count
            sensitive += [value] * count
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    ordered = counts_of(*classes).renumbered(rank)

    occurring = [value for value in order if value in sensitive]
    expected = oracles.ordered_t_closeness(rows, sensitive, occurring)
    assert t_closeness(ordered, "ordered") == pytest.approx(float(expected), abs=1e-12)
    assert expected <= Fraction(1)
