"""Scores as pure functions of counts, against sums over rows."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.collaborate.scores import (
    FeatureScore,
    TradeoffWeights,
    check_weights,
    gains_of_removal,
    privacy_score,
    removal_order,
    score_features,
    tradeoff_score,
    utility_bits,
)
from sfumato.errors import InvalidParameterError


def matrices(max_values=5, max_classes=4):
    shape = st.tuples(st.integers(1, max_values), st.integers(1, max_classes))
    return shape.flatmap(
        lambda s: st.lists(
            st.lists(st.integers(0, 30), min_size=s[1], max_size=s[1]), min_size=s[0], max_size=s[0]
        ).map(lambda rows: np.array(rows, dtype=np.int64))
    )


def rows_of(counts):
    return [(i, j) for (i, j), n in np.ndenumerate(counts) for _ in range(n)]


def entropy(things):
    return -sum(n / len(things) * math.log2(n / len(things)) for n in Counter(things).values())


@given(matrices())
def test_scores_are_the_definitions_over_rows(counts):
    rows = rows_of(counts)
    value_entropy = entropy([i for i, _ in rows])
    mutual = value_entropy + entropy([j for _, j in rows]) - entropy(rows)

    assert utility_bits(counts) == pytest.approx(mutual, abs=1e-9)
    if len(counts) > 1:
        assert privacy_score(counts) == pytest.approx(value_entropy / math.log2(len(counts)), abs=1e-9)
    assert 0 <= privacy_score(counts) <= 1


def test_a_value_that_nobody_has_lowers_the_score_and_one_value_gives_none():
    assert privacy_score(np.array([[1], [1]])) == 1
    assert privacy_score(np.array([[1], [1], [0], [0]])) == 0.5
    assert privacy_score(np.array([[7, 3]])) == 0
    assert privacy_score(np.zeros((3, 2), dtype=np.int64)) == 0


def test_negative_counts_count_as_none():
    noisy, clipped = np.array([[5, -3], [-1, 5]]), np.array([[5, 0], [0, 5]])

    assert utility_bits(noisy) == utility_bits(clipped) == 1
    assert privacy_score(noisy) == privacy_score(clipped) == 1


@given(st.dictionaries(st.sampled_from("abcdef"), matrices(), min_size=1))
def test_gains_add_up_and_never_fall(counts):
    order = sorted(counts)
    gains = gains_of_removal(order, counts)
    most = sum(math.log2(len(matrix)) for matrix in counts.values())
    taken = 0.0
    for name, gain in zip(order, gains, strict=True):
        taken += entropy([i for i, _ in rows_of(counts[name])])

        assert gain == pytest.approx(taken / most if most else 0, abs=1e-9)
    assert all(0 <= a <= b for a, b in pairwise(gains))
    assert gains[-1] <= 1 + 1e-9


def test_weights_shift_the_tradeoff():
    assert tradeoff_score(0.2, 0.6) == pytest.approx(0.4)
    assert tradeoff_score(0.2, 0.6, TradeoffWeights(3, 1)) == pytest.approx(0.3)
    assert tradeoff_score(0.2, 0.6, TradeoffWeights(1, 0)) == 0.2


@pytest.mark.parametrize(
    "weights",
    [
        (0, 0),
        (-1, 2),
        (1,),
        (1, 1, 1),
        (math.nan, 1),
        (math.inf, 1),
        ("a", 1),
        (True, 1),
        (1e308, 1e308),
        (5e-324, 5e-324),
    ],
)
def test_weights_that_weigh_nothing_are_refused(weights):
    with pytest.raises(InvalidParameterError):
        check_weights(weights)


@given(st.sampled_from([1e-9, 1e-3, 1.0, 1e9]), st.floats(0, 1), st.floats(0, 1))
def test_only_the_ratio_of_weights_matters(scale, utility, privacy):
    weights = check_weights((scale, scale))

    assert tradeoff_score(utility, privacy, weights) == pytest.approx((utility + privacy) / 2, abs=1e-12)


def test_ties_go_in_the_order_given_even_where_the_last_bits_differ():
    scores = [FeatureScore(name, 0, 0, None, tau) for name, tau in [("b", 0.3 + 1e-15), ("a", 0.3), ("c", 0.1)]]

    assert removal_order(scores) == ("c", "b", "a")


def test_averages_take_the_place_of_pooled_scores():
    totals = {"a": np.array([[1, 1], [1, 1]])}

    (pooled,), (averaged,) = score_features(totals), score_features(totals, {"a": 0.25})

    assert (pooled.privacy_pooled, pooled.privacy_average, pooled.tradeoff) == (1, None, 0.5)
    assert (averaged.privacy_pooled, averaged.privacy_average, averaged.tradeoff) == (1, 0.25, 0.125)
