"""Noise in all cells of a table of which only a few are listed."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from sfumato.mechanisms.baselines.noisy_counts import (
    Cells,
    _rate_and_distance_scale,
    noise_threshold,
    noisy_cells,
    occupied_cells,
    rows_of,
    scaled_to,
)
from sfumato.table.binary import as_binary_matrix

pytest.importorskip("opendp")

LEAST_P = 1e-6


def cells(keys, counts, n_features, n_classes=2):
    return Cells(np.array(keys, dtype=np.int64), np.array(counts, dtype=np.int64), n_features, n_classes)


def test_cells_are_counted_and_written_out_again():
    rows = np.array([[1, 0, 1], [0, 0, 0], [1, 0, 1], [1, 0, 1]])
    classes = np.array([1, 0, 1, 0], dtype=np.int32)

    found = occupied_cells(as_binary_matrix(rows), classes, 2)
    matrix, labels = rows_of(found)

    assert dict(zip(found.keys.tolist(), found.counts.tolist(), strict=True)) == {0: 1, 10: 1, 11: 2}
    assert found.n_cells == 16
    assert matrix.toarray().tolist() == [[0, 0, 0], [1, 0, 1], [1, 0, 1], [1, 0, 1]]
    assert labels.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("scale", [0.5, 2.0, 8.0, 1e6])
@pytest.mark.parametrize("n_cells", [4, 2**10, 2**28, 2**60])
@pytest.mark.parametrize("most", [0.01, 100, 3e4])
def test_the_threshold_is_the_smallest_that_keeps_false_rows_few(scale, n_cells, most):
    threshold = noise_threshold(n_cells, scale, most)

    def false_rows(t):
        alpha = math.exp(-1 / scale)
        return n_cells * alpha**t / (1 + alpha) * (t + alpha / (1 - alpha))

    assert threshold >= 1
    assert false_rows(threshold) <= most * (1 + 1e-6)
    assert threshold == 1 or false_rows(threshold - 1) > most * (1 - 1e-6)


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0, 16.0, 123.456])
@pytest.mark.parametrize("threshold", [1, 2, 7, 60])
def test_rounding_the_rate_keeps_the_privacy_of_an_empty_cell_exactly(scale, threshold):
    """No outcome is more than exp(1/scale) times as likely from no row as from one row, nor the other way round."""
    with localcontext() as context:
        context.prec = 250
        alpha = (-1 / Decimal(scale)).exp()
        rate = 1 - (-1 / Decimal(_rate_and_distance_scale(scale, threshold)[1])).exp()
        with_one_row = alpha ** (threshold - 1) / (1 + alpha)
        outcomes = [(rate, with_one_row), (1 - rate, 1 - with_one_row)]  # comes out (any value: the same ratio), or not

        assert rate >= alpha**threshold / (1 + alpha)
        for none, one in outcomes:
            assert none <= one / alpha
            assert one <= none / alpha


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("threshold", [1, 3])
def test_empty_cells_come_out_as_often_as_enumeration_says(threshold):
    """16 cells, 5 of them with rows: the number of the 11 others that come out is binomial (p > 1e-6)."""
    occupied = cells([0, 3, 4, 9, 15], [4, 1, 2, 9, 30], n_features=3)
    scale, repeats = 2.0, 1500
    alpha = math.exp(-1 / scale)

    came_out = np.zeros(16, dtype=int)
    numbers = []
    for _ in range(repeats):
        noisy = noisy_cells(occupied, scale, threshold)
        came_out[noisy.keys] += 1
        numbers.append(int((~np.isin(noisy.keys, occupied.keys)).sum()))

    rate = alpha**threshold / (1 + alpha)
    expected = binom.pmf(np.arange(12), 11, rate) * repeats
    middle = expected > 8
    observed = np.bincount(numbers, minlength=12)
    assert (
        chisquare(
            np.append(observed[middle], observed[~middle].sum()), np.append(expected[middle], expected[~middle].sum())
        ).pvalue
        > LEAST_P
    )
    empty = came_out[~np.isin(np.arange(16), occupied.keys)]
    assert chisquare(empty).pvalue > LEAST_P  # uniform places


@pytest.mark.slow
@pytest.mark.statistical
def test_all_cells_have_the_noise_that_drawing_for_each_would_give():
    """Counts of an empty cell, of one with 1 row and of one with 5: the thresholded law of count + noise."""
    occupied = cells([1, 2], [1, 5], n_features=1)
    scale, threshold, repeats = 2.0, 2, 3000
    alpha = math.exp(-1 / scale)

    drawn = np.zeros((4, repeats), dtype=int)
    for i in range(repeats):
        noisy = noisy_cells(occupied, scale, threshold)
        drawn[noisy.keys, i] = noisy.counts

    for key, count in ((0, 0), (1, 1), (2, 5), (3, 0)):
        values = np.arange(threshold, 16)
        p = (1 - alpha) / (1 + alpha) * alpha ** np.abs(values - count)
        observed = np.array([(drawn[key] == v).sum() for v in values])
        rest = repeats - observed.sum()
        keep = p * repeats > 8
        expected = np.append(p[keep] * repeats, repeats * (1 - p[keep].sum()))
        assert chisquare(np.append(observed[keep], rest + observed[~keep].sum()), expected).pvalue > LEAST_P
        assert not ((drawn[key] > 0) & (drawn[key] < threshold)).any()


def test_cells_beyond_listing_take_no_time():
    occupied = cells([5, 2**28 - 1], [400, 2], n_features=27)

    noisy = noisy_cells(occupied, 8.0, noise_threshold(occupied.n_cells, 8.0, 500))

    assert len(noisy.keys) < 500
    assert (np.diff(noisy.keys) > 0).all()
    assert noisy.keys.max() < 2**28


def test_scaling_gives_every_class_its_size_and_every_cell_its_share():
    noisy = cells([0, 1, 2, 5, 6], [10, 7, 30, 21, 0], n_features=2)

    scaled = scaled_to(noisy, np.array([400, 4]))

    found = dict(zip(scaled.keys.tolist(), scaled.counts.tolist(), strict=True))
    assert sum(n for key, n in found.items() if key % 2 == 0) == 400
    assert sum(n for key, n in found.items() if key % 2 == 1) == 4
    assert abs(found[0] - 100) < 1
    assert abs(found[2] - 300) < 1
    assert (found[1], found[5]) == (1, 3)
    assert 6 not in found


def test_a_class_of_which_nothing_is_known_is_spread_over_all_patterns():
    scaled = scaled_to(cells([0], [3], n_features=3), np.array([2, 8]))

    assert scaled.keys.tolist() == [0, 1, 3, 5, 7, 9, 11, 13, 15]
    assert scaled.counts.tolist() == [2] + [1] * 8
