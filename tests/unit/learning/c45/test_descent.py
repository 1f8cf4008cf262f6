"""Rows on their way down: where they go when a value is missing, and that nothing of them is lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.learning.c45.criteria import Entropy
from sfumato.learning.c45.descent import Branching, Entries, descend, shares_of_leaves
from sfumato.learning.c45.grow import grow
from sfumato.learning.c45.tree import EVERY_VALUE, TreeColumn, route


def three_ways(codes):
    """One node that splits on a column of three values; its children are 0, 1 and 2."""
    ids = {name: np.array([value], dtype=np.int32) for name, value in (("attribute", 0), ("first", 0), ("n", 3))}
    branching = Branching(ids["attribute"], np.full(1, EVERY_VALUE, dtype=np.int64), ids["first"], ids["n"])
    return Entries.at(np.zeros(len(codes), dtype=np.int64)), branching, [TreeColumn(np.array(codes, dtype=np.int32), 3)]


def as_triples(entries):
    return sorted(zip(entries.rows.tolist(), entries.nodes.tolist(), entries.shares.tolist(), strict=True))


def test_a_missing_value_goes_to_the_children_that_have_rows_in_their_shares():
    found = descend(*three_ways([0, 0, 2, -1]))

    assert as_triples(found) == [
        (0, 0, 1),
        (1, 0, 1),
        (2, 2, 1),
        (3, 0, pytest.approx(2 / 3)),
        (3, 2, pytest.approx(1 / 3)),
    ]


def test_shares_are_those_of_the_weights_of_rows():
    found = descend(*three_ways([0, 2, -1]), np.array([1.0, 3.0, 1.0]))

    assert as_triples(found)[2:] == [(2, 0, 0.25), (2, 2, 0.75)]


def test_where_no_value_is_known_all_children_get_the_same():
    found = descend(*three_ways([-1]))

    assert as_triples(found) == [
        (0, 0, pytest.approx(1 / 3)),
        (0, 1, pytest.approx(1 / 3)),
        (0, 2, pytest.approx(1 / 3)),
    ]


def test_shares_can_be_those_of_other_rows():
    found = descend(*three_ways([0, -1]), bags=np.array([1.0, 0.0, 1.0]))

    assert as_triples(found) == [(0, 0, 1), (1, 0, 0.5), (1, 2, 0.5)]


def test_a_code_that_the_tree_has_no_child_for_counts_as_missing():
    found = descend(*three_ways([1, 7]))

    assert as_triples(found) == [(0, 1, 1), (1, 1, 1)]


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 5), st.integers(0, 1)), min_size=1, max_size=40))
def test_shares_of_a_row_add_up_and_a_complete_row_reaches_one_leaf(rows):
    codes, places, labels = (list(part) for part in zip(*rows, strict=True))
    columns = [
        TreeColumn(np.array(codes, dtype=np.int32), 3),
        TreeColumn(np.array(places, dtype=np.int32), 6, np.arange(6.0)),
    ]
    criterion = Entropy(2)
    tree = grow(columns, criterion.statistics(labels), criterion, min_leaf=1)
    reached = shares_of_leaves(tree, columns)

    assert (tree.attribute[reached.nodes] == -1).all()
    assert np.bincount(reached.rows, weights=reached.shares) == pytest.approx(np.ones(len(rows)), abs=1e-4)
    is_complete = (columns[0].codes >= 0) & (columns[1].codes >= 0)
    routed = route(tree, columns)
    for row, leaf, share in as_triples(reached):
        assert not is_complete[row] or (leaf, share) == (routed[row], 1)
