"""Information for disclosure: the paper's nodes, the edges, and the definitions in plain loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameterError
from sfumato.measures.disclosure import (
    background_information_granularity,
    information_for_reidentification,
    total_information,
)

SHARES = st.lists(st.floats(1e-6, 1), min_size=3, max_size=3)


def test_nodes_of_the_papers_example():
    """R(2) and R(6) of Figure 1, and the two leaves of branch 6, whose least is R(B6) = 3.432."""
    shares = [[1 / 2, 1, 1], [1 / 2, 1 / 2, 1], [1 / 2, 1 / 2, 43 / 58], [1 / 2, 1 / 2, 15 / 58]]
    granularity = background_information_granularity(shares)

    assert total_information(granularity, [5, 5, 2, 3]).round(3).tolist() == [3.322, 4.322, 3.432, 5.536]


def test_whole_domain_needs_no_background():
    assert background_information_granularity([[1, 1], [1, 1]]).tolist() == [0, 0]
    assert background_information_granularity(np.ones((2, 0))).tolist() == [0, 0]
    assert not np.signbit(background_information_granularity([1.0, 1.0]))


def test_empty_domain_needs_endless_background():
    assert background_information_granularity([0.5, 0]) == math.inf


def test_single_row_needs_nothing_and_an_empty_group_discloses_nobody():
    assert information_for_reidentification([1, 0]).tolist() == [0, math.inf]
    assert total_information([1.0, math.inf], [0, 0]).tolist() == [math.inf, math.inf]


def test_scalars_are_groups_too():
    assert background_information_granularity([0.5, 0.5]) == 2
    assert information_for_reidentification(8) == 3
    assert total_information(2.0, 8) == 5


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan])
def test_shares_lie_between_0_and_1(share):
    with pytest.raises(InvalidParameterError, match="between 0 and 1"):
        background_information_granularity([[0.5, share]])


@pytest.mark.parametrize("n_rows", [-1, math.nan])
def test_groups_have_no_fewer_than_0_rows(n_rows):
    with pytest.raises(InvalidParameterError, match="at least 0"):
        information_for_reidentification([1, n_rows])


@given(groups=st.lists(st.tuples(SHARES, st.integers(1, 10**9)), min_size=1, max_size=6))
def test_information_agrees_with_the_definitions(groups):
    shares, sizes = [g[0] for g in groups], [g[1] for g in groups]
    big = [-sum(math.log2(p) for p in row) for row in shares]

    assert background_information_granularity(shares) == pytest.approx(big, abs=1e-9)
    assert information_for_reidentification(sizes) == pytest.approx([math.log2(n) for n in sizes])
    assert total_information(background_information_granularity(shares), sizes) == pytest.approx(
        [b - math.log2(1 / n) for b, n in zip(big, sizes, strict=True)], abs=1e-9
    )
