"""Draws compared with their distributions. Each test fails by chance with a probability of at most 1e-6."""

import sys
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chisquare

from sfumato.errors import InvalidParameterError
from sfumato.mechanisms.baselines.noise import (
    add_two_sided_geometric,
    exponential_choices,
    geometric,
    noise_scale,
    noisy_top,
)

pytest.importorskip("opendp")

LEAST_P = 1e-6


def fits(drawn, probabilities):
    """Whether drawn outcomes (0, 1, …) fit their probabilities; rare outcomes at the end are pooled."""
    expected = np.asarray(probabilities) * len(drawn)
    observed = np.bincount(drawn, minlength=len(expected))
    is_rare = expected < 10
    observed = np.append(
        observed[: len(expected)][~is_rare], observed[len(expected) :].sum() + observed[: len(expected)][is_rare].sum()
    )
    expected = np.append(expected[~is_rare], max(len(drawn) - expected[~is_rare].sum(), 1e-9))
    if expected[-1] < 10:
        observed, expected = (
            np.append(observed[:-2], observed[-2:].sum()),
            np.append(expected[:-2], expected[-2:].sum()),
        )
    return chisquare(observed, expected).pvalue > LEAST_P


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("scale", [0.7, 3.0])
def test_noise_is_two_sided_geometric(scale):
    noise = add_two_sided_geometric(np.zeros(20_000, dtype=np.int64), scale)

    alpha = np.exp(-1 / scale)
    values = np.arange(-60, 61)
    probabilities = (1 - alpha) / (1 + alpha) * alpha ** np.abs(values)
    order = np.argsort(np.abs(values), kind="stable")
    place = {int(values[i]): rank for rank, i in enumerate(order)}
    assert fits(np.array([place.get(int(z), 121) for z in noise]), probabilities[order])


@pytest.mark.statistical
def test_noise_is_added_to_each_value():
    noisy = add_two_sided_geometric(np.array([10**6, -(10**6)] * 500), 2.0)

    assert np.abs(noisy - np.array([10**6, -(10**6)] * 500)).max() < 100  # exp(-50) each
    assert len(set(noisy.tolist())) > 4


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("scale", [0.7, 3.0])
def test_one_sided_draws_are_geometric(scale):
    drawn = geometric(20_000, scale)

    alpha = np.exp(-1 / scale)
    assert len(drawn) == 20_000
    assert fits(drawn, (1 - alpha) * alpha ** np.arange(80))


@pytest.mark.slow
@pytest.mark.statistical
def test_the_exponential_mechanism_draws_as_its_formula_says():
    """Two of three features, in order: exp(score/scale) shares, then shares of the rest."""
    scores, scale = np.array([0, 3, 5]), 4.0
    orders = list(permutations(range(3), 2))
    weights = np.exp(scores / scale)

    drawn = [tuple(exponential_choices(scores, 2, scale).tolist()) for _ in range(4000)]

    probabilities = [weights[a] / weights.sum() * weights[b] / (weights.sum() - weights[a]) for a, b in orders]
    assert fits(np.array([orders.index(pair) for pair in drawn]), probabilities)


@pytest.mark.slow
@pytest.mark.statistical
def test_the_noisy_top_draws_as_enumeration_says():
    scores, scale = np.array([0, 2, 3]), 2.0

    drawn = [int(noisy_top(scores, 1, scale)[0]) for _ in range(4000)]

    assert fits(np.array(drawn), top_probabilities(scores, 1, scale).sum(axis=1))


def top_probabilities(scores, n, scale, reach=40):
    """Probability of each (first, second) of three noisy scores, by enumeration; n = 1 leaves the second at 0."""
    alpha = np.exp(-1 / scale)
    z = np.arange(-reach, reach + 1)
    p = (1 - alpha) / (1 + alpha) * alpha ** np.abs(z)
    noisy = np.stack(np.meshgrid(*(z + s for s in scores), indexing="ij")).reshape(3, -1)
    weight = np.einsum("i,j,k->ijk", p, p, p).ravel()
    order = np.argsort(-noisy, axis=0, kind="stable")
    found = np.zeros((3, 3))
    np.add.at(found, (order[0], order[1] if n == 2 else 0), weight)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize(
    ("scores", "neighbour"), [([0, 0, 0], [1, -1, 1]), ([0, 1, 3], [1, 0, 2]), ([2, 2, 5], [3, 1, 4])]
)
def test_the_noisy_top_keeps_its_epsilon(scores, neighbour, n):
    """No ordered choice is more than exp(2 n Δ / scale) times as likely on a neighbour, Δ = 1."""
    scale = 2.0
    here, there = (top_probabilities(np.array(s), n, scale) for s in (scores, neighbour))
    possible = here > 0

    ratio = np.max([here[possible] / there[possible], there[possible] / here[possible]])

    assert np.log(ratio) <= 2 * n / scale + 1e-6


def test_counting_only_one_change_would_not_be_enough():
    """With the noise that covers one changed score, as the paper has it, one row can tell more than ε."""
    scale = 2.0
    here, there = (top_probabilities(np.array(s), 1, scale).sum(axis=1) for s in ([-1, 0, 0], [0, -1, -1]))

    assert np.log(there[0] / here[0]) > 1 / scale


@pytest.mark.parametrize("epsilon", [0.1, 0.25, 1 / 3, 0.7, 1.0, 2.0])
def test_the_scale_never_spends_more_than_epsilon(epsilon):
    for sensitivity in (1, 2, 7, 12_345):
        scale = noise_scale(sensitivity, epsilon)

        assert Fraction(sensitivity) / Fraction(scale) <= Fraction(epsilon)
        assert scale <= sensitivity / epsilon * (1 + 1e-15)


def test_no_values_need_no_noise():
    assert len(add_two_sided_geometric(np.zeros(0, dtype=np.int64), 1.0)) == 0
    assert len(geometric(0, 1.0)) == 0


def test_without_opendp_the_way_out_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)

    with pytest.raises(InvalidParameterError, match=r"pip install 'sfumato\[dp\]'"):
        geometric(1, 1.0)
