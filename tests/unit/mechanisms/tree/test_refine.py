"""Refined trees: leaves are divided into parts of at least k, nothing else changes, and new rows find their way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.learning.c45.criteria import Entropy
from sfumato.learning.c45.grow import grow
from sfumato.learning.c45.tree import LEAF, route
from sfumato.mechanisms.axes import Axis
from sfumato.mechanisms.recoder import generalize
from sfumato.mechanisms.tree.groups import refine
from sfumato.mechanisms.tree.tiered import tiered_cover


def axes_and_target(seed, n_rows, missing):
    rng = np.random.default_rng(seed)
    numbers = np.arange(30.0)
    age = rng.integers(0, 30, n_rows).astype(np.int32)
    job = rng.integers(0, 5, n_rows).astype(np.int32)
    income = rng.integers(0, 30, n_rows).astype(np.int32)
    if missing:
        age[rng.random(n_rows) < 0.1] = -1
        job[rng.random(n_rows) < 0.1] = -1
    labels = tuple(str(i) for i in range(30))
    axes = (
        Axis("age", age, labels, numbers),
        Axis("job", job, tuple("abcde")),
        Axis("income", income, labels, numbers),
    )
    return axes, ((age > 15) ^ (job > 2) ^ (rng.random(n_rows) < 0.1)).astype(np.int64)


def grown(axes, target):
    columns = [axis.as_tree_column() for axis in axes]
    criterion = Entropy(2)
    tree = grow(columns, criterion.statistics(target), criterion, missing="heaviest")
    return tree, route(tree, columns)


@given(st.integers(0, 10**6), st.integers(8, 150), st.integers(2, 6), st.booleans())
def test_parts_of_a_leaf_have_k_rows_and_are_found_again(seed, n_rows, k, missing):
    axes, target = axes_and_target(seed, n_rows, missing)
    tree, leaves = grown(axes, target)
    refined = refine(tree, leaves, axes, k)

    sizes, before = np.bincount(refined.leaf_of_row), np.bincount(leaves, minlength=tree.n_nodes)
    pairs = set(zip(leaves.tolist(), refined.leaf_of_row.tolist(), strict=True))
    assert len({part for _, part in pairs}) == len(pairs)  # a part is in one leaf
    for leaf, part in pairs:
        assert sizes[part] >= min(k, before[leaf])
        if before[leaf] < 2 * k:
            assert part == leaf
    assert refined.leaves_of(axes).tolist() == refined.leaf_of_row.tolist()


@pytest.mark.slow
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_the_grafted_tree_is_a_tree(seed, k):
    axes, target = axes_and_target(seed, 120, missing=False)
    tree, leaves = grown(axes, target)
    joined = refine(tree, leaves, axes, k).tree

    assert sorted(np.concatenate(joined.levels).tolist()) == list(range(joined.n_nodes))
    for node in np.flatnonzero(joined.attribute != LEAF).tolist():
        children = joined.children(node)
        assert (joined.parent[children] == node).all()
        assert joined.weights[children].sum() == joined.weights[node]
    assert (joined.n_children[joined.attribute == LEAF] == 0).all()


def test_cells_become_narrower_and_small_leaves_borrow_as_before():
    axes, target = axes_and_target(1, 400, missing=False)
    tree, leaves = grown(axes, target)
    refined = refine(tree, leaves, axes, 10)
    plain = tiered_cover(tree, leaves, np.zeros(tree.n_nodes, dtype=np.int32), axes, 10)
    finer = tiered_cover(refined.tree, refined.leaf_of_row, np.zeros(refined.tree.n_nodes, dtype=np.int32), axes, 10)

    def penalty(cover):
        return sum(cells.penalties[cover.of_row].sum() for cells in generalize(axes, cover))

    assert penalty(finer) < penalty(plain)
    assert min(np.diff(finer.members.indptr)[: finer.home.max() + 1]) >= 10


@pytest.mark.parametrize("k", [5, 50])
def test_a_tree_of_one_leaf_is_divided_as_mondrian_does(k):
    axes, _ = axes_and_target(2, 90, missing=False)
    tree, leaves = grown(axes, np.zeros(90, dtype=np.int64))
    refined = refine(tree, leaves, axes, k)

    assert tree.n_nodes == 1
    assert (refined.tree.n_nodes == 1) == (k == 50)
