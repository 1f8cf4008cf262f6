"""TOPSIS and the lexicographic order: figures computed by hand, a plain re-telling, and what must hold for any sets."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameterError
from sfumato.mechanisms.breach.rankings import rankings, topsis
from sfumato.mechanisms.breach.tradeoff import Factor


def test_topsis_by_hand():
    """Three sets, of performance (3, 4, 0) and size (4, 3, 0), each over 5, weighted by one half.

    Best: .4 and 0, worst: 0 and .4. From the best: (.1, .4) = .412311, (0, .3) = .3, (.4, 0) = .4; from the worst:
    (.3, 0) = .3, (.4, .1) = .412311, (0, .4) = .4.
    """
    found = topsis({"performance": Factor([3, 4, 0], 0.5), "size": Factor([4, 3, 0], 0.5, False)})

    far = math.hypot(0.1, 0.4)
    assert found.tolist() == pytest.approx([0.3 / (0.3 + far), far / (0.3 + far), 0.5])


def test_the_lexicographic_order_by_hand():
    """The largest weight first: breach; its tie is broken by performance, size does not count."""
    criteria = {
        "performance": Factor([0.8, 0.9, 0.7], 0.3),
        "privacy": Factor([-1.0, -1.0, -2.0], 0.7, higher_is_better=False),
        "size": Factor([1, 9, 5], 0.0, higher_is_better=False),
    }

    assert rankings(criteria).lexicographic_places.tolist() == [3, 2, 1]


def test_equal_sets_share_the_better_place():
    found = rankings({"performance": Factor([0.8, 0.8, 0.9], 1.0)})

    assert found.topsis_places.tolist() == found.lexicographic_places.tolist() == [2, 2, 1]
    assert rankings({"performance": Factor([0.8, 0.8], 1.0)}).closeness.tolist() == [0.5, 0.5]


def told_again(columns, weights, is_high):
    """Compute closeness by plain loops."""
    n_sets = len(columns[0])
    weighted = []
    for values, weight, high in zip(columns, weights, is_high, strict=True):
        length = math.sqrt(sum(value * value for value in values)) or 1.0
        weighted.append([weight * value / length * (1 if high else -1) for value in values])
    found = []
    for place in range(n_sets):
        best = math.sqrt(sum((max(own) - own[place]) ** 2 for own in weighted))
        worst = math.sqrt(sum((min(own) - own[place]) ** 2 for own in weighted))
        found.append(0.5 if best + worst < 1e-9 else worst / (best + worst))
    return found


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(-9, 9), st.integers(1, 8)), min_size=1, max_size=6),
    st.tuples(*[st.integers(1, 4)] * 3),
)
def test_topsis_is_its_definition_and_both_keep_to_who_is_better_in_everything(sets, weights):
    columns = list(zip(*sets, strict=True))
    given_weights = [weight / sum(weights) for weight in weights]
    is_high = (True, False, False)
    criteria = {
        name: Factor(values, weight, high)
        for name, values, weight, high in zip("abc", columns, given_weights, is_high, strict=True)
    }

    found = rankings(criteria)

    assert found.closeness.tolist() == pytest.approx(told_again(columns, given_weights, is_high), abs=1e-6)
    for one, (high, low, small) in enumerate(sets):
        for other, (its_high, its_low, its_small) in enumerate(sets):
            if high >= its_high and low <= its_low and small <= its_small:
                assert found.lexicographic_places[one] <= found.lexicographic_places[other]
                assert found.closeness[one] >= found.closeness[other] - 1e-6


@pytest.mark.parametrize(
    "criteria",
    [
        {"a": Factor([], 1.0)},
        {"a": Factor([1.0], 0.0)},
        {"a": Factor([1.0], -1.0)},
        {"a": Factor([math.nan], 1.0)},
        {"a": Factor([1.0], 1.0), "b": Factor([1.0, 2.0], 1.0)},
    ],
)
def test_what_cannot_be_ranked_is_refused(criteria):
    with pytest.raises(InvalidParameterError, match="criteria"):
        rankings(criteria)
