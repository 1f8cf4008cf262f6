"""Small totals that are not shown, and noise on what is shared."""

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.collaborate.session.agreement import add_own_noise, hidden_counts, shown_counts
from sfumato.errors import InvalidParameterError

COUNTS = st.tuples(st.integers(1, 5), st.integers(1, 4)).flatmap(
    lambda s: st.lists(st.lists(st.integers(0, 12), min_size=s[1], max_size=s[1]), min_size=s[0], max_size=s[0])
)


@given(COUNTS, st.integers(3, 8))
def test_no_small_count_is_shown_nor_left_alone_in_its_class(counts, minimum):
    totals = np.array(counts, dtype=np.int64)
    hidden = hidden_counts(totals, minimum)

    for column, is_hidden in zip(totals.T, hidden.T, strict=True):
        assert all(flag for count, flag in zip(column, is_hidden, strict=True) if 0 < count < minimum)
        if any(0 < count < minimum for count in column):
            assert is_hidden.all() or column[is_hidden].max() >= minimum
        else:
            assert not is_hidden.any()


def possible_values(total, n_hidden, minimum):
    """Values that one of the hidden counts may have for all that a reader knows of them."""
    found = set()
    for others in product(range(1, total), repeat=n_hidden - 1):
        own = total - sum(others)
        if own >= 1 and max(own, *others) >= minimum:
            found.add(own)
    return found


@given(
    st.integers(3, 5).flatmap(
        lambda m: st.tuples(st.just(m), st.integers(1, m - 1), st.lists(st.integers(0, 9), min_size=1, max_size=4))
    )
)
@example((3, 1, [3, 50, 60]))
def test_what_is_hidden_does_not_follow_from_the_size_of_the_class(case):
    minimum, small, others = case
    column = np.array([[small], *([count] for count in others)])
    hidden = hidden_counts(column, minimum)[:, 0]

    if not hidden.all() and hidden.sum() <= 3:
        found = possible_values(int(column[hidden].sum()), int(hidden.sum()), minimum)
        assert found >= set(range(1, minimum))


@given(COUNTS, st.integers(3, 8))
def test_as_little_as_needed_is_hidden(counts, minimum):
    totals = np.array(counts, dtype=np.int64)
    hidden = hidden_counts(totals, minimum)

    for column, is_hidden in zip(totals.T, hidden.T, strict=True):
        small = [c for c in column if 0 < c < minimum]
        large = sorted(c for c in column if c >= minimum)
        enough = [n for n in range(1, len(large) + 1) if sum(small + large[:n]) >= 2 * minimum + len(small) + n - 3]
        expected = sorted(small + large[: enough[0]]) if enough else sorted(column)
        assert sorted(column[is_hidden]) == (expected if small else [])


def test_the_contents_of_a_hidden_pair_cannot_be_told():
    """1 and 3 add up to 4; with the rule of 3 nothing else could."""
    hidden = hidden_counts(np.array([[1], [3], [50], [60]]), 3)

    assert hidden[:, 0].tolist() == [True, True, True, False]


def test_what_is_hidden_looks_the_same_whether_small_or_large():
    shown = shown_counts(np.array([[9, 2], [8, 7], [7, 0]]), 5)

    assert shown[0][1] == shown[1][1] == "fewer than 5, or hidden next to one"
    assert [shown[0][0], shown[1][0], shown[2]] == [9, 8, [7, 0]]


@pytest.mark.parametrize("minimum", [2, 0, -1, True, 2.5])
def test_rules_that_hide_nothing_are_refused(minimum):
    with pytest.raises(InvalidParameterError):
        shown_counts(np.array([[1]]), minimum)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), 1e-9])
def test_noise_needs_an_epsilon(epsilon):
    with pytest.raises(InvalidParameterError):
        add_own_noise(np.zeros(3, dtype=np.uint64), 1, epsilon)


@pytest.mark.slow
@pytest.mark.statistical
def test_noise_has_the_scale_of_the_number_of_features_over_epsilon():
    """Mean 0 and variance 2q/(1-q)², q = exp(-1/scale); with 20,000 draws 6 standard errors fail once in 10^8 runs."""
    n, scale = 20_000, 4 / 0.5
    noise = add_own_noise(np.full(n, 10, dtype=np.uint64), 4, 0.5).view(np.int64) - 10
    q = np.exp(-1 / scale)
    variance = 2 * q / (1 - q) ** 2

    assert abs(noise.mean()) < 6 * np.sqrt(variance / n)
    assert abs(noise.var() / variance - 1) < 6 * np.sqrt(5 / n)
    assert (noise + 10 < 0).any()
