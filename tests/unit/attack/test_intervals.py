"""Intervals of rates, risks and areas: known values, edges, and how often they hold the truth."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.attack.intervals import (
    area_under_curve,
    difference_interval,
    rate_interval,
    ratio_interval,
    residual_risk,
)
from sfumato.errors import InvalidParameterError
from sizes import IS_FULL


@pytest.mark.parametrize(
    ("n_success", "n", "low", "high"),
    [(15, 148, 0.0624, 0.1605), (81, 263, 0.2553, 0.3662), (0, 20, 0.0, 0.1611), (29, 29, 0.8830, 1.0)],
)
def test_rates_have_the_wilson_intervals_printed_by_newcombe(n_success, n, low, high):
    """Table I of Newcombe, Statistics in Medicine 17 (1998) 857-872, method 3."""
    assert rate_interval(n_success, n) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


@pytest.mark.parametrize(
    ("counts", "low", "high"),
    [
        ((56, 70, 48, 80), 0.0524, 0.3339),
        ((9, 10, 3, 10), 0.1705, 0.8090),
        ((5, 56, 0, 29), -0.0381, 0.1926),
        ((0, 10, 0, 20), -0.1611, 0.2775),
        ((10, 10, 0, 10), 0.6075, 1.0),
    ],
)
def test_differences_of_rates_have_the_intervals_printed_by_newcombe(counts, low, high):
    """Table II of Newcombe, Statistics in Medicine 17 (1998) 873-890, method 10."""
    assert difference_interval(*counts) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


def test_without_attempts_nothing_is_known():
    assert difference_interval(0, 0, 1, 2) == (-1.0, 1.0)
    assert rate_interval(0, 0) == (0.0, 1.0)
    assert residual_risk(0, 0, 1, 2) == (None, (0.0, 1.0))


def test_risk_is_unknown_where_every_control_person_falls():
    value, (low, high) = residual_risk(10, 10, 10, 10)

    assert (value, low, high) == (None, 0.0, 1.0)


def test_ratio_of_rates_has_the_interval_of_koopmans_paper():
    """36 of 40 against 16 of 80: 2.94 to 7.15 (Koopman 1984, Section 3)."""
    low, high = ratio_interval(36, 40, 16, 80)

    assert (low, high) == (pytest.approx(2.94, abs=0.005), pytest.approx(7.15, abs=0.005))


@given(st.integers(1, 60), st.integers(1, 60), st.data())
def test_the_risk_lies_in_its_interval_and_grows_with_success(n, n_0, data):
    x, x_0 = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, n_0 - 1))

    value, (low, high) = residual_risk(x, n, x_0, n_0)
    more, (more_low, more_high) = residual_risk(x + 1, n, x_0, n_0)

    assert 0 <= low <= value + 1e-9
    assert value <= high + 1e-9 <= 1 + 2e-9
    assert value == pytest.approx(max(0, (x / n - x_0 / n_0) / (1 - x_0 / n_0)))
    assert more >= value
    assert more_low >= low - 1e-6
    assert more_high >= high - 1e-6


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_the_area_is_the_share_of_pairs_in_the_right_order(members, controls):
    pairs = [(a > b) + (a == b) / 2 for a in members for b in controls]

    area, (low, high) = area_under_curve(members, controls)

    assert area == pytest.approx(sum(pairs) / len(pairs))
    assert 0 <= low <= area <= high <= 1


def test_groups_that_never_overlap_leave_room_below_1():
    area, (low, high) = area_under_curve(np.arange(20.0) + 20, np.arange(20.0))
    mirrored = area_under_curve(np.arange(20.0), np.arange(20.0) + 20)

    assert (area, high) == (1, 1)
    assert 0.8 < low < 0.95
    assert mirrored == (0, (0, pytest.approx(1 - low)))


def test_without_scores_the_area_is_unknown():
    assert area_under_curve([], [1]) == (0.5, (0.0, 1.0))


@pytest.mark.parametrize(("n_success", "n"), [(-1, 3), (4, 3)])
def test_more_successes_than_attempts_are_refused(n_success, n):
    with pytest.raises(InvalidParameterError, match="n_success"):
        rate_interval(n_success, n)


def test_a_level_out_of_range_is_refused():
    with pytest.raises(InvalidParameterError, match="confidence"):
        rate_interval(1, 2, 1.0)


# --- how often the truth is inside: fixed seeds, at least 93 % of the draws for nominal 95 % --------------------------

N_DRAWS = 2_000 if IS_FULL else 400
N_OF_TRUTH = 1_000_000 if IS_FULL else 100_000


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("rate_0", "risk"), list(product([0.0, 0.05, 0.5, 0.9], [0.0, 0.1, 0.5, 0.9])), ids=lambda share: f"{share}"
)
def test_intervals_of_risk_hold_the_truth(rate_0, risk):
    random, n, n_0 = np.random.default_rng(1), 1_000, 400
    draws = zip(
        random.binomial(n, rate_0 + risk * (1 - rate_0), N_DRAWS), random.binomial(n_0, rate_0, N_DRAWS), strict=True
    )
    ends = [residual_risk(int(x), n, int(x_0), n_0)[1] for x, x_0 in draws]

    held = np.mean([low - 1e-12 <= risk <= high + 1e-12 for low, high in ends])

    assert held >= 0.93


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.statistical
@pytest.mark.parametrize("is_rounded", [False, True], ids=["continuous", "with ties"])
@pytest.mark.parametrize("shift", [0.0, 0.5, 2.0, 4.0])
def test_intervals_of_areas_hold_the_truth(shift, is_rounded):
    random = np.random.default_rng(2)

    def draw(n):
        scores = random.normal([[shift]], 1, (1, n))[0], random.normal(0, 1, n)
        return [np.round(s) for s in scores] if is_rounded else scores

    truth = area_under_curve(*draw(N_OF_TRUTH))[0]
    ends = [area_under_curve(*draw(100))[1] for _ in range(N_DRAWS)]

    assert np.mean([low <= truth <= high for low, high in ends]) >= 0.93
