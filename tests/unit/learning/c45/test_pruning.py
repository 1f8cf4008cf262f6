"""Pruning: pessimistic errors, leaves in place of branches, and the numbering of what is left."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameterError
from sfumato.learning.c45.criteria import Entropy, Variance
from sfumato.learning.c45.grow import grow
from sfumato.learning.c45.pruning import collapse, pessimistic_errors, prune
from sfumato.learning.c45.tree import TreeColumn, numeric_column


def noisy_problem(seed=0, n_rows=400):
    rng = np.random.default_rng(seed)
    columns = [numeric_column(rng.integers(0, 40, n_rows).astype(np.float64)) for _ in range(3)]
    columns.append(TreeColumn(rng.integers(-1, 4, n_rows).astype(np.int32), 4))
    labels = ((columns[0].codes > 20) ^ (rng.random(n_rows) < 0.25)).astype(int)
    return columns, Entropy(2).statistics(labels)


def test_quinlans_example_of_pessimistic_errors():
    """Quinlan (1993), chapter 4: three leaves of 6, 9 and 1 rows without error against one leaf of 16 rows with one."""
    branch = pessimistic_errors([6, 9, 1], [0, 0, 0]).sum()

    assert branch == pytest.approx(3.273, abs=0.01)
    assert float(pessimistic_errors(16, 1)) == pytest.approx(16 * 0.157, abs=0.15)


def test_an_empty_leaf_makes_no_errors():
    assert pessimistic_errors([0.0, 0.0], [0.0, 0.0]).tolist() == [0, 0]


@given(st.floats(0.5, 1e6), st.floats(0, 1), st.sampled_from([0.001, 0.25, 0.5]))
def test_pessimistic_errors_lie_between_the_errors_and_the_rows(weight, share, confidence):
    wrong = weight * share
    found = float(pessimistic_errors(weight, wrong, confidence))

    assert wrong <= found * (1 + 1e-12)
    assert found <= max(weight, wrong) * (1 + 1e-12) or wrong < 1


@pytest.mark.parametrize("raising", [True, False])
def test_pruned_tree_is_numbered_without_gaps_and_counts_every_row(raising):
    columns, statistics = noisy_problem()
    criterion = Entropy(2)
    grown = collapse(grow(columns, statistics, criterion), criterion)
    pruned = prune(grown, columns, statistics, subtree_raising=raising)

    assert 1 < pruned.n_nodes < grown.n_nodes
    inner = np.flatnonzero(pruned.attribute >= 0)
    children = np.concatenate([pruned.children(node) for node in inner.tolist()])
    assert sorted(children.tolist()) == list(range(1, pruned.n_nodes))
    assert (pruned.parent[children] == np.repeat(inner, pruned.n_children[inner])).all()
    assert (pruned.parent[1:] < np.arange(1, pruned.n_nodes)).all()
    assert pruned.statistics[pruned.attribute == -1].sum(axis=0) == pytest.approx(statistics.sum(axis=0))


def test_smaller_confidence_prunes_more():
    columns, statistics = noisy_problem()
    criterion = Entropy(2)
    grown = collapse(grow(columns, statistics, criterion), criterion)
    sizes = [prune(grown, columns, statistics, confidence).n_nodes for confidence in (0.5, 0.25, 0.05, 0.001)]

    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]


def test_pruning_leaves_the_grown_tree_as_it_was():
    columns, statistics = noisy_problem()
    criterion = Entropy(2)
    grown = grow(columns, statistics, criterion)
    before = [grown.attribute.copy(), grown.first_child.copy(), grown.threshold.copy(), grown.statistics.copy()]
    prune(collapse(grown, criterion), columns, statistics)

    for kept, now in zip(before, (grown.attribute, grown.first_child, grown.threshold, grown.statistics), strict=True):
        np.testing.assert_array_equal(kept, now)


def test_collapsing_never_raises_the_training_errors_by_more_than_its_slack():
    columns, statistics = noisy_problem()
    criterion = Entropy(2)
    grown = grow(columns, statistics, criterion)
    collapsed = collapse(grown, criterion)

    errors = [criterion.error(tree.statistics[tree.attribute == -1]).sum() for tree in (grown, collapsed)]
    assert collapsed.n_nodes < grown.n_nodes
    assert errors[1] <= errors[0] + 1e-3 * grown.n_nodes


def test_splits_of_numbers_that_lower_the_squares_are_not_collapsed():
    criterion = Variance()
    tree = grow([numeric_column(np.arange(8.0))], criterion.statistics(np.arange(8.0) ** 2), criterion)

    assert tree.n_leaves == 3
    assert collapse(tree, criterion).n_leaves == 3


def test_a_single_leaf_stays_one():
    criterion = Entropy(2)
    columns, statistics = [numeric_column(np.array([1.0, 2.0]))], criterion.statistics([0, 0])
    tree = prune(collapse(grow(columns, statistics, criterion), criterion), columns, statistics)

    assert tree.statistics.tolist() == [[2, 0]]


@pytest.mark.parametrize("confidence", [0, 0.51, -1, float("nan")])
def test_a_confidence_that_makes_no_sense_is_refused(confidence):
    columns, statistics = noisy_problem(n_rows=10)

    with pytest.raises(InvalidParameterError, match="confidence"):
        prune(grow(columns, statistics, Entropy(2)), columns, statistics, confidence)
