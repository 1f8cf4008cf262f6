"""E(S), regions and the Pareto front against counting one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.mechanisms.breach.tradeoff import (
    EvaluationWeights,
    Factor,
    Region,
    breach_increase_percent,
    evaluation_scores,
    majority_fraction,
    pareto_front,
    regions,
)

POINTS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(-5, 5), st.integers(1, 5)), min_size=1, max_size=12
)  # small numbers, so ties are frequent
WEIGHTS = st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(1, 8)).map(
    lambda parts: tuple(part / sum(parts) for part in parts)
)


def columns_of(points):
    return [list(column) for column in zip(*points, strict=True)]


def rank_by_counting(values, value, better):
    """One more than the number of subsets that are strictly worse: equal ones share the lowest rank."""
    return 1 + sum(better(value, other) for other in values)


@given(POINTS, WEIGHTS)
def test_evaluation_is_the_weighted_sum_of_ranks_counted_one_by_one(points, weights):
    performance, breach, size = columns_of(points)

    found = evaluation_scores(performance, breach, size, weights)

    for place, (perf, risk, n_columns) in enumerate(points):
        prf = rank_by_counting(performance, perf, lambda own, other: own > other)
        prv = rank_by_counting(breach, risk, lambda own, other: own < other)
        num = rank_by_counting(size, n_columns, lambda own, other: own < other)
        assert [found.ranks[name][place] for name in ("performance", "privacy", "size")] == [prf, prv, num]
        assert found.scores[place] == pytest.approx(weights[0] * prf + weights[1] * prv + weights[2] * num)


@pytest.mark.slow
@given(POINTS, WEIGHTS)
def test_order_lists_every_subset_best_first_and_ties_by_fewest_columns(points, weights):
    found = evaluation_scores(*columns_of(points), weights)

    assert sorted(found.order) == list(range(len(points)))
    keys = [(-round(float(found.scores[place]), 6), points[place][2], place) for place in found.order]
    assert keys == sorted(keys)
    assert found.best == found.order[0]


@given(POINTS, WEIGHTS)
def test_with_all_weights_above_zero_the_best_subset_is_on_the_pareto_front(points, weights):
    mixed = tuple((weight + 1) / 4 for weight in weights)

    best = evaluation_scores(*columns_of(points), mixed).best

    assert pareto_front(*columns_of(points))[best]


def test_equal_scores_go_to_the_fewest_columns_even_where_their_last_bits_differ():
    """E(S) of the first and the last subset is 3.1; as floats the last one, with more columns, comes out higher."""
    found = evaluation_scores([0, 1, 2, 3], [0, 2, 3, 1], [0, 1, 2, 3], (0.3, 0.6, 0.1))
    plain = evaluation_scores([0, 0], [0, 1], [5, 4], (0.0, 0.5, 0.5))

    assert found.scores[3] > found.scores[0] == pytest.approx(3.1)
    assert found.order == (0, 3, 1, 2)
    assert plain.scores.tolist() == [1.5, 1.5]
    assert plain.order == (1, 0)


def test_numbers_that_differ_by_rounding_share_a_rank():
    found = evaluation_scores([0.1 + 0.2, 0.3], [0, 0], [2, 1])

    assert found.ranks["performance"].tolist() == [1, 1]


def test_weights_of_another_sum_are_divided_by_it_and_a_note_says_so():
    points = ([3, 2, 1], [3, 2, 1], [1, 2, 3])
    found = evaluation_scores(*points, (2, 1, 1))
    exact = evaluation_scores(*points, (0.5, 0.25, 0.25))

    assert found.note == "the weights summed to 4 and were divided by it"
    assert exact.note == ""
    assert found.scores.tolist() == exact.scores.tolist()
    assert dict(found.weights) == {"performance": 0.5, "privacy": 0.25, "size": 0.25}


def test_weights_printed_to_three_decimals_are_left_as_they_are():
    found = evaluation_scores([1], [1], [1], (0.333, 0.333, 0.333))

    assert found.note == ""
    assert found.scores.tolist() == [pytest.approx(0.999)]
    assert evaluation_scores([1], [1], [1], (0.33, 0.33, 0.33)).note


def test_equal_weights_are_the_default():
    assert EvaluationWeights() == (1 / 3, 1 / 3, 1 / 3)
    assert evaluation_scores([2, 1], [0, 0], [1, 1]).scores.tolist() == pytest.approx([4 / 3, 1])


def test_extra_factors_take_part_with_their_weight_and_direction():
    extra = {
        "fairness": Factor([0.1, 0.9], 0.2),
        "cost": Factor([0.1, 0.9], 0.3, higher_is_better=False),
    }

    found = evaluation_scores([1, 1], [1, 1], [1, 1], (0.2, 0.2, 0.1), extra=extra)

    assert found.note == ""
    assert found.ranks["fairness"].tolist() == [1, 2]
    assert found.ranks["cost"].tolist() == [2, 1]
    assert found.scores.tolist() == pytest.approx([0.5 + 0.2 + 0.6, 0.5 + 0.4 + 0.3])


@pytest.mark.parametrize(
    "weights", [(-0.1, 0.6, 0.5), (0, 0, 0), (np.nan, 0.5, 0.5), (np.inf, 0, 0), (0.5, 0.5), (0.25,) * 4]
)
def test_bad_weights_are_refused(weights):
    with pytest.raises(InvalidParameterError, match="weights must be"):
        evaluation_scores([1, 2], [1, 2], [1, 2], weights)


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (([], [], []), None),
        (([1, 2], [1], [1, 2]), None),
        (([1, np.nan], [1, 2], [1, 2]), None),
        (([[1, 2]], [1, 2], [1, 2]), None),
        (([1, 2], [1, 2], [1, 2]), {"size": Factor([1, 2], 0.1)}),
        (([1, 2], [1, 2], [1, 2]), {"cost": Factor([1, 2, 3], 0.1)}),
        (([1, 2], [1, 2], [1, 2]), {"cost": Factor([1, 2], -0.1)}),
    ],
)
def test_bad_factors_are_refused(arguments, extra):
    with pytest.raises(InvalidParameterError):
        evaluation_scores(*arguments, extra=extra)


@given(POINTS)
def test_pareto_front_is_what_no_other_subset_beats(points):
    def beats(own, other):
        no_worse = own[0] >= other[0] and own[1] <= other[1] and own[2] <= other[2]
        return no_worse and own != other

    expected = [not any(beats(other, point) for other in points) for point in points]

    assert pareto_front(*columns_of(points)).tolist() == expected
    assert any(expected)


def test_pareto_front_of_thousands_agrees_with_comparing_all_pairs():
    rng = np.random.default_rng(0)
    performance, breach, size = rng.random(2000).round(2), rng.normal(size=2000).round(1), rng.integers(1, 30, 2000)
    no_worse = (performance[:, None] >= performance) & (breach[:, None] <= breach) & (size[:, None] <= size)
    better = (performance[:, None] > performance) | (breach[:, None] < breach) | (size[:, None] < size)

    found = pareto_front(performance, breach, size)

    assert found.tolist() == (~(no_worse & better).any(axis=0)).tolist()
    assert 1 < found.sum() < 2000


def test_regions_around_the_baseline_and_on_its_lines():
    performance = [72, 75, 72, 75, 73, 73, 73, 72, 75]
    breach = [1, 1, -1, -1, 0, 1, -1, 0, 0]

    found = regions(performance, breach, baseline_performance=73)

    assert [str(region) for region in found] == ["I", "II", "III", "IV", "IV", "II", "IV", "III", "IV"]
    assert found[0] is Region.WORSE_AND_RISKIER


@given(st.lists(st.integers(1, 99), min_size=1, max_size=8), st.integers(1, 99))
def test_where_the_sensitive_column_is_the_target_only_the_trade_offs_are_left(scores, baseline):
    """PBI is then a rising function of Perf: better is riskier (II), worse is safer (III), equal is the baseline."""
    breach = [breach_increase_percent(score, baseline) for score in scores]

    found = regions(scores, breach, baseline_performance=baseline)

    expected = ["IV" if score == baseline else "II" if score > baseline else "III" for score in scores]
    assert list(found) == expected


def test_breach_increase_of_the_majority_is_the_floor():
    share = majority_fraction([0, 0, 0, 1], "illness")

    assert share == 0.75
    assert breach_increase_percent(share, 0.75) == 0
    assert breach_increase_percent(share, 1.0) == pytest.approx(-25)


@pytest.mark.parametrize("baseline", [0, -1, np.nan, np.inf])
def test_an_attacker_who_is_never_right_gives_no_breach_increase(baseline):
    with pytest.raises(InvalidParameterError, match="above 0"):
        breach_increase_percent(0.5, baseline)


@pytest.mark.parametrize("values", [[4711, 4711], []])
def test_a_sensitive_column_with_one_value_or_none_is_refused_without_showing_it(values):
    with pytest.raises(SchemaError, match="nothing to predict") as caught:
        majority_fraction(values, "illness")

    assert caught.value.column == "illness"
    assert "4711" not in str(caught.value)


@pytest.mark.parametrize(
    ("performance", "weights", "message"),
    [
        (["CANARY"], (1, 1, 1), "performance must be finite numbers"),
        ([None], (1, 1, 1), "performance must be finite numbers"),
        ([1.0], None, "weights must be three"),
        ([1.0], "123", "weights must be three"),
        ([1.0], (1, 2, "CANARY"), "weights must be numbers from 0, got an object of type str for size"),
    ],
)
def test_what_is_no_number_is_refused_without_showing_it(performance, weights, message):
    with pytest.raises(InvalidParameterError, match=message) as caught:
        evaluation_scores(performance, [0.0], [1], weights)

    assert "CANARY" not in str(caught.value)


def test_places_of_what_is_no_number_are_refused():
    with pytest.raises(InvalidParameterError, match="performance must be finite numbers") as caught:
        regions(["CANARY"], [0.0], baseline_performance=1.0)

    assert "CANARY" not in str(caught.value)
