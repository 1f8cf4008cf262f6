"""Tiered generalization by persons: whose rows are borrowed, and that every row stands for k persons, both ways."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import PrivacyNotAchievableError
from sfumato.mechanisms.tree import tiered
from sfumato.mechanisms.tree.tiered import tiered_cover
from sizes import examples
from unit.mechanisms.tree.test_tiered import ids, numeric, one_group, stands_for, tree_of

TREE = tree_of(2, 2, 2)  # leaves 3 and 4 below 1, leaves 5 and 6 below 2
ROWS = st.lists(st.tuples(st.integers(3, 6), st.integers(0, 5), st.integers(0, 8)), min_size=2, max_size=22).map(
    lambda rows: [*rows, (3, 0, 0), (6, 1, 8)]
)  # leaf, person, and a number: they run from 0 to 8, so that equal distances are equal as floating-point numbers


def tiered_cover_by_persons(tree, leaf_of_row, group_of_leaf, axes, k, persons, progress=None):
    return tiered_cover(tree, leaf_of_row, group_of_leaf, axes, k, persons=persons, progress=progress)


def test_rows_of_one_person_are_not_enough():
    """Three rows of one person borrow the nearest rows of two others, and none more of that person."""
    tree = tree_of(2)
    axis = numeric(10, 11, 12, 13, 20, 15, 30)

    cover = tiered_cover_by_persons(
        tree, ids(1, 1, 1, 2, 2, 2, 2), one_group(tree), [axis], 3, ids(0, 0, 0, 0, 1, 1, 2)
    )
    assert stands_for(cover)[:3] == [{0, 1, 2, 5, 6}] * 3  # of person 1 the nearer row; person 0 lends nothing
    assert stands_for(cover)[5] == {3, 4, 5, 6, 0, 1, 2}
    assert stands_for(cover)[3] == {3, 4, 5, 6}


def test_equally_near_rows_are_borrowed_in_their_order():
    tree = tree_of(2)

    cover = tiered_cover_by_persons(
        tree, ids(1, 2, 2, 2, 2), one_group(tree), [numeric(0, 5, 5, 5, 5)], 2, ids(0, 2, 1, 1, 2)
    )
    assert stands_for(cover)[0] == {0, 1}


def test_rows_come_from_the_lowest_node_with_k_persons():
    """Node 1 has four rows of two persons, which is too few for three: leaf 2 lends."""
    tree = tree_of(2, 2)

    cover = tiered_cover_by_persons(
        tree, ids(3, 3, 4, 4, 2, 2), one_group(tree), [numeric(0, 1, 2, 3, 90, 80)], 3, ids(0, 0, 1, 1, 2, 3)
    )
    assert stands_for(cover)[0] == {0, 1, 2, 5}


def test_groups_of_too_few_persons_are_refused():
    tree = tree_of(2)

    with pytest.raises(PrivacyNotAchievableError, match="persons") as refused:
        tiered_cover_by_persons(tree, ids(1, 1, 1, 2, 2), ids(-1, 1, 2), [numeric(*range(5))], 2, ids(0, 0, 0, 1, 2))
    assert refused.value.best_level == 1


def lowest_tier(leaf, leaves, persons, k):
    """Rows below the lowest node at or above a leaf that has k persons."""
    node = leaf
    while True:
        below = [leaf for leaf in range(3, 7) if node in (leaf, (leaf - 1) // 2, 0)]
        rows = [row for row, own in enumerate(leaves) if own in below]
        if len({persons[row] for row in rows}) >= k:
            return rows
        node = (node - 1) // 2


def borrowed(leaf, leaves, persons, numbers, k):
    """Rows that a leaf borrows, from the definition."""
    own = [row for row, other in enumerate(leaves) if other == leaf]
    mine = {persons[row] for row in own}
    mean = sum(numbers[row] for row in own) / len(own)
    nearest = {}
    for row in lowest_tier(leaf, leaves, persons, k):
        if persons[row] not in mine:
            found = (abs(numbers[row] - mean), row)
            nearest[persons[row]] = min(nearest.get(persons[row], found), found)
    return {row for _, row in sorted(nearest.values())[: max(k - len(mine), 0)]}


@pytest.mark.slow
@given(ROWS, st.integers(2, 4))
@examples(150)
def test_the_nearest_rows_of_further_persons_are_borrowed(rows, k):
    leaves, persons, numbers = (list(column) for column in zip(*rows, strict=True))
    args = TREE, ids(*leaves), one_group(TREE), [numeric(*numbers)], k, ids(*persons)
    if len(set(persons)) < k:
        with pytest.raises(PrivacyNotAchievableError):
            tiered_cover_by_persons(*args)
        return
    lent = {leaf: borrowed(leaf, leaves, persons, numbers, k) for leaf in set(leaves)}
    found = stands_for(tiered_cover_by_persons(*args))

    for row, leaf in enumerate(leaves):
        own = {other for other, at in enumerate(leaves) if at == leaf}
        borrowers = {at for at, lenders in lent.items() if row in lenders}
        assert found[row] == own | lent[leaf] | {other for other, at in enumerate(leaves) if at in borrowers}
    for row in range(len(rows)):
        assert len({persons[other] for other in found[row]}) >= k
        assert len({persons[other] for other in range(len(rows)) if row in found[other]}) >= k


@given(ROWS)
@examples(60)
def test_with_one_row_a_person_the_same_rows_are_borrowed_as_by_rows(rows):
    leaves, numbers = [leaf for leaf, _, _ in rows], [number for _, _, number in rows]
    args = TREE, ids(*leaves), one_group(TREE), [numeric(*numbers)], 4

    assert stands_for(tiered_cover_by_persons(*args, ids(*range(len(rows))))) == stands_for(tiered_cover(*args))


def test_where_tiers_are_large_some_persons_lend_and_the_promise_holds(monkeypatch):
    random = np.random.default_rng(3)
    persons, k = random.integers(0, 400, 900), 3
    tree = tree_of(300)
    leaves = np.sort(random.integers(1, 301, 900)).astype(np.int32)
    axis = numeric(*random.integers(0, 50, 900).tolist())
    args = tree, leaves, one_group(tree), [axis], k, persons.astype(np.int32)
    whole = stands_for(tiered_cover_by_persons(*args))
    monkeypatch.setattr(tiered, "_MOST_PAIRS_BY_PERSONS", 1)
    seen = []

    found = stands_for(tiered_cover_by_persons(*args, progress=lambda *said: seen.append(said)))
    assert found != whole
    assert min(len({*persons[list(own)]}) for own in found) >= k
    fitting = [[other for other in range(900) if row in found[other]] for row in range(900)]
    assert min(len({*persons[own]}) for own in fitting) >= k
    assert seen[-1][0] == seen[-1][1]
