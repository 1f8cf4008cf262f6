"""Measures of class sizes, worked by hand."""

import numpy as np
import pytest

from sfumato.errors import InvalidParameterError
from sfumato.measures.anonymity import (
    anonymity_level,
    at_risk_fraction,
    average_class_size,
    discernibility,
    sample_unique_fraction,
)

EMPTY = np.zeros(0, dtype=np.int64)


@pytest.mark.parametrize(("sizes", "level"), [([4, 2, 9], 2), ([6], 6), (EMPTY, 0)], ids=["three", "one", "empty"])
def test_anonymity_level_is_the_smallest_class(sizes, level):
    assert anonymity_level(sizes) == level


def test_rows_at_risk_are_those_in_small_classes():
    assert at_risk_fraction([1, 1, 3, 5], 3) == 0.2
    assert at_risk_fraction([1, 1, 3, 5], 1) == 0
    assert sample_unique_fraction([1, 1, 3, 5]) == 0.2


def test_discernibility_charges_suppressed_rows_with_the_whole_table():
    assert discernibility([2, 3]) == 13
    assert discernibility([2, 3], n_suppressed=5) == 13 + 5 * 10


def test_discernibility_of_a_large_table_does_not_overflow():
    assert discernibility([3_000_000_000]) == 9 * 10**18


def test_average_class_size_is_in_multiples_of_k():
    assert average_class_size([5, 5], k=5) == 1
    assert average_class_size([5, 25], k=5) == 3


def test_suppressed_rows_count_in_the_average_class_size():
    assert average_class_size([5, 15], k=5, n_suppressed=10) == 3
    assert average_class_size(EMPTY, k=5, n_suppressed=10) == 2


def test_empty_table_has_no_risk_and_no_cost():
    assert at_risk_fraction(EMPTY, 5) == sample_unique_fraction(EMPTY) == average_class_size(EMPTY, 5) == 0
    assert discernibility(EMPTY) == 0
    assert discernibility(EMPTY, n_suppressed=3) == 9


@pytest.mark.parametrize("measure", [at_risk_fraction, average_class_size])
def test_k_is_at_least_one(measure):
    with pytest.raises(InvalidParameterError, match="at least 1"):
        measure([3], 0)
