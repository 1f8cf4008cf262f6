"""Scores as pure functions of counts, against sums over rows."""

import math
from collections import Counter
from itertools import pairwise
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.collaborate.scores import (
    Combining,
    FeatureScore,
    Ranking,
    TradeoffWeights,
    check_weights,
    gains_of_removal,
    privacy_score,
    removal_order,
    score_features,
    tradeoff_score,
    utility_score,
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

    assert utility_score(counts) == pytest.approx(mutual, abs=1e-9)
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

    assert utility_score(noisy) == utility_score(clipped) == 1
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


def naive_utility(counts, ranking):
    """Ranking functions over rows, each by its textbook definition."""
    rows = rows_of(counts)
    n = len(rows)
    if not n:
        return 0.0
    values, classes = [v for v, _ in rows], [c for _, c in rows]
    of_value, of_class = Counter(values), Counter(classes)
    information = entropy(values) + entropy(classes) - entropy(rows)
    if ranking == "chi-squared":
        expected = {(v, c): of_value[v] * of_class[c] / n for v in of_value for c in of_class}
        return sum((Counter(rows)[cell] - e) ** 2 / e for cell, e in expected.items()) / n
    if ranking == "gini":

        def impurity(labels):
            return 1 - sum((k / len(labels)) ** 2 for k in Counter(labels).values())

        return impurity(classes) - sum(m / n * impurity([c for w, c in rows if w == v]) for v, m in of_value.items())
    below = {
        "mutual-information": 1.0,
        "normalized": math.sqrt(entropy(values) * entropy(classes)),
        "gain-ratio": entropy(values),
        "symmetrical-uncertainty": (entropy(values) + entropy(classes)) / 2,
    }[ranking]
    return information / below if below > 1e-12 else 0.0


@pytest.mark.parametrize("ranking", get_args(Ranking))
@given(counts=matrices())
def test_ranking_functions_are_those_of_their_definitions(ranking, counts):
    assert utility_score(counts, ranking) == pytest.approx(naive_utility(counts, ranking), abs=1e-9)


@given(st.floats(0.001, 5), st.floats(0.001, 1), st.floats(0, 3), st.floats(0.1, 3))
def test_tradeoffs_are_weighted_means_of_their_kinds(utility, privacy, first, second):
    weights = TradeoffWeights(first, second)
    total = first + second
    found = {name: tradeoff_score(utility, privacy, weights, name) for name in get_args(Combining)}

    assert found["mean"] == pytest.approx((first * utility + second * privacy) / total)
    assert found["product"] == pytest.approx((utility**first * privacy**second) ** (1 / total))
    assert found["harmonic"] == pytest.approx(total / (first / utility + second / privacy))
    assert found["harmonic"] <= found["product"] * (1 + 1e-9) <= found["mean"] * (1 + 2e-9)


@pytest.mark.parametrize("combining", ["product", "harmonic"])
def test_a_score_of_nothing_leaves_no_tradeoff_unless_it_weighs_nothing(combining):
    assert tradeoff_score(0.0, 0.8, combining=combining) == 0.0
    assert tradeoff_score(0.0, 0.8, TradeoffWeights(0.0, 1.0), combining) == pytest.approx(0.8)


def test_another_ranking_changes_the_order_of_removal():
    """Seven values that tell the class, against two that tell less: by bits the many win, by gain ratio the few."""
    many = np.array([[2, 0], [2, 0], [2, 0], [2, 1], [0, 2], [0, 2], [0, 3]])
    few = np.array([[7, 1], [1, 7]])
    totals = {"many": many, "few": few}

    orders = {
        name: removal_order(score_features(totals, weights=TradeoffWeights(1, 0), ranking=name))
        for name in ("mutual-information", "gain-ratio")
    }

    assert orders == {"mutual-information": ("few", "many"), "gain-ratio": ("many", "few")}
