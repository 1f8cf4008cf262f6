"""Groups of items by their sizes: an answer is found whenever there is one; a sure one is the only one."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.original import matching as count_matching
from sfumato.audit.original.matching import LEFT_OUT, PossiblePairs, UnmatchedError, can_be_split, matched_by_counts


@st.composite
def cases(draw):
    """Draw sizes of items, the groups each may go to, and sizes of groups: mostly such that there is an answer."""
    n_groups = draw(st.integers(1, 4))
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    ways = [draw(st.lists(st.integers(0, n_groups - 1), max_size=3, unique=True)) for _ in sizes]
    went = [draw(st.sampled_from([*own, LEFT_OUT])) for own in ways]
    wanted = [sum(size for size, group in zip(sizes, went, strict=True) if group == g) for g in range(n_groups)]
    wanted[0] += draw(st.sampled_from([0, 0, 0, 1]))
    return sizes, ways, wanted


def answers(sizes, ways, wanted):
    """All answers, by trying everything."""
    return [
        found
        for found in itertools.product(*([*own, LEFT_OUT] for own in ways))
        if all(sum(s for s, g in zip(sizes, found, strict=True) if g == group) == n for group, n in enumerate(wanted))
    ]


def possible(sizes, ways, wanted):
    pairs = [(item, group) for item, own in enumerate(ways) for group in own]
    items, groups = (np.array([pair[i] for pair in pairs], dtype=np.int64) for i in range(2))
    return PossiblePairs(items, groups, np.array(sizes), np.array(wanted))


@given(cases())
def test_an_answer_is_found_whenever_there_is_one(case):
    expected = answers(*case)
    if not expected:
        with pytest.raises(UnmatchedError):
            matched_by_counts(possible(*case))
        return
    found, is_sure = matched_by_counts(possible(*case))

    assert tuple(found.tolist()) in expected
    assert not is_sure or len(expected) == 1


@given(cases())
def test_items_that_may_be_split_fill_the_groups_if_hall_s_condition_holds(case):
    """Every set of groups must be offered as much as it wants."""
    sizes, ways, wanted = case
    subsets = itertools.product([False, True], repeat=len(wanted))
    holds = all(
        sum(n for n, is_in in zip(wanted, subset, strict=True) if is_in)
        <= sum(size for size, own in zip(sizes, ways, strict=True) if any(subset[group] for group in own))
        for subset in subsets
    )

    assert can_be_split(possible(*case)) == holds


def test_more_than_a_flow_can_count_proves_nothing():
    assert can_be_split(possible([2**31], [[]], [2**31]))


def test_a_choice_that_spoils_another_is_taken_back():
    """The largest item is tried first, and must be left out."""
    found, is_sure = matched_by_counts(possible([3, 2, 2], [[0], [0], [0]], [4]))

    assert found.tolist() == [LEFT_OUT, 0, 0]
    assert not is_sure


def test_what_takes_too_long_is_given_up(monkeypatch):
    case = [1, 1, 1], [[0], [0], [0]], [2]
    assert not matched_by_counts(possible(*case))[1]
    monkeypatch.setattr(count_matching, "_MOST_WORK", 0)
    with pytest.raises(UnmatchedError):
        matched_by_counts(possible(*case))


@pytest.mark.slow
def test_much_that_sizes_force_and_much_that_they_do_not():
    """Thousands of small choices that have nothing to do with each other are made one by one."""
    n = 3000
    sizes, ways = [1, 2, 3] * n, [[g, n + g] for g in range(n) for _ in range(3)]
    case = possible(sizes, ways, [3] * (2 * n))

    found, is_sure = matched_by_counts(case)

    assert np.bincount(found, weights=sizes).tolist() == [3] * (2 * n)
    assert not is_sure
