"""Shares of single values in classes: both forms of counts give the levels of the definitions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.counting.counts import Counts, DenseCounts
from sfumato.measures.value_shares import disclosure_levels, largest_shares, likeness_levels

CLASSES = st.lists(st.lists(st.integers(0, 6), min_size=4, max_size=4).filter(any), min_size=1, max_size=4)


def shares(counts):
    """Give p and q of every value that occurs, class by class."""
    totals = [sum(column) for column in zip(*counts, strict=True)]
    for own in counts:
        pairs = zip(totals, own, strict=True)
        yield [(Fraction(total, sum(totals)), Fraction(n, sum(own))) for total, n in pairs if total]


def likeness_of(pairs, enhanced):
    gains = [(float(q / p - 1), p) for p, q in pairs if q > p]
    if enhanced and any(gain > -math.log(p) + 1e-9 for gain, p in gains):
        return math.inf
    return max((gain for gain, _ in gains), default=0.0)


@given(CLASSES)
def test_both_forms_of_counts_follow_the_definitions(counts):
    """Values that do not occur anywhere do not count, those that a class lacks do for δ."""
    dense, written_out = np.array(counts), list(shares(counts))
    forms = DenseCounts(dense, dense.sum(axis=0)), Counts.from_contingency(dense.T)

    for of_form in forms:
        for likeness in ("basic", "enhanced"):
            expected = [likeness_of(pairs, likeness == "enhanced") for pairs in written_out]
            assert likeness_levels(of_form, likeness).tolist() == pytest.approx(expected)
        expected = [max(abs(math.log(q / p)) if q else math.inf for p, q in pairs) for pairs in written_out]
        assert disclosure_levels(of_form).tolist() == pytest.approx(expected, abs=1e-12)
        expected = [float(max(q for _, q in pairs)) for pairs in written_out]
        assert largest_shares(of_form).tolist() == pytest.approx(expected)


def test_a_part_without_rows_keeps_to_every_limit():
    """As with t-closeness: there is nobody in it."""
    nobody = DenseCounts(np.zeros((1, 2), dtype=np.int64), np.array([3, 1]))

    assert likeness_levels(nobody, "enhanced").tolist() == [0.0]
    assert disclosure_levels(nobody).tolist() == [0.0]
    assert largest_shares(nobody).tolist() == [0.0]


def test_classes_are_compared_with_those_that_are_kept():
    """Levels of the others are of no interest, and cost no warning."""
    counts = Counts.from_contingency([[2, 1, 0], [2, 1, 0], [0, 0, 5]])
    compared = counts.compared_with(np.array([True, True, False]))

    assert disclosure_levels(counts).tolist() == [math.inf] * 3
    assert disclosure_levels(compared)[:2].tolist() == [0.0, 0.0]
    assert likeness_levels(compared, "enhanced")[:2].tolist() == [0.0, 0.0]
    assert not math.isnan(likeness_levels(counts.compared_with(np.zeros(3, dtype=np.bool_)))[0])
