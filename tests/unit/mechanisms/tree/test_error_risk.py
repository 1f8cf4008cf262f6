"""Disclosure figures and pruning of small trees whose answers are known."""

from dataclasses import dataclass

import numpy as np
import pytest

from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.learning.c45.criteria import Entropy, Variance
from sfumato.learning.c45.tree import Tree, TreeColumn
from sfumato.mechanisms.tree.error_risk import domain_granularity, error_risk, prune_by_error_risk

NO_ROWS = np.zeros(0, dtype=np.int32)
BINARY = TreeColumn(NO_ROWS, 2)
CLASSES = Entropy(2)


@dataclass
class Split:
    column: int
    children: list
    cut: float = np.nan


def sums(node):
    return np.sum([sums(child) for child in node.children], axis=0) if isinstance(node, Split) else np.array(node)


def as_tree(root, criterion=CLASSES):
    """Lay the nodes out level by level; a leaf is what the criterion keeps of its rows, class counts for instance."""
    nodes, parent, first = [root], [-1], []
    for i, node in enumerate(nodes):
        children = node.children if isinstance(node, Split) else []
        first.append(len(nodes) if children else -1)
        nodes.extend(children)
        parent.extend([i] * len(children))
    attribute = [n.column if isinstance(n, Split) else -1 for n in nodes]
    n_children = [len(n.children) if isinstance(n, Split) else 0 for n in nodes]
    cut = np.array([n.cut if isinstance(n, Split) else np.nan for n in nodes], dtype=np.float64)
    statistics = np.array([sums(n) for n in nodes], dtype=np.float64)
    ids = [np.array(a, dtype=np.int32) for a in (parent, attribute, first, n_children)]
    return Tree(ids[0], ids[1], cut, cut, ids[2], ids[3], criterion.weight(statistics), statistics)


def numeric(*numbers):
    return TreeColumn(NO_ROWS, len(numbers), np.array(numbers, dtype=np.float64))


def groups(root, columns, k, rule):
    return prune_by_error_risk(as_tree(root), columns, CLASSES, k, rule=rule).groups.tolist()


def test_levels_hold_every_node_once():
    tree = as_tree(Split(0, [Split(1, [(1, 1), (1, 0)]), (2, 2), Split(1, [(0, 1), (3, 0)])]))

    assert [level.tolist() for level in tree.levels] == [[0], [1, 2, 3], [4, 5, 6, 7]]


def test_column_cut_twice_counts_once_with_what_is_left():
    tree = as_tree(Split(0, [Split(0, [(1, 0), (0, 1)], cut=2.0), (3, 3)], cut=4.0))

    found = domain_granularity(tree, [numeric(0, 1, 3, 5, 8)])

    assert found.tolist() == [0, 1, 1, 2, 2]


def test_categorical_column_is_down_to_one_value_after_a_split():
    tree = as_tree(Split(1, [Split(0, [(1, 0), (0, 1)]), (3, 3), (1, 1), (0, 2)]))

    found = domain_granularity(tree, [BINARY, TreeColumn(NO_ROWS, 4), numeric(0, 9)])

    assert found.tolist() == [0, 2, 2, 2, 2, 3, 3]


def test_column_of_one_value_has_nothing_to_learn():
    tree = as_tree(Split(0, [Split(1, [(1, 0), (0, 1)], cut=7.0)]))

    assert domain_granularity(tree, [TreeColumn(NO_ROWS, 1), numeric(7)]).tolist() == [0, 0, 0, 0]


def test_side_without_length_has_finite_granularity():
    """Half way between two neighbouring numbers is one of them."""
    low = 1.0
    high = np.nextafter(low, 2)

    found = domain_granularity(as_tree(Split(0, [(1, 0), (0, 1)], cut=low)), [numeric(low, high)])

    assert found.tolist() == [0, 52, 0]


def test_widest_range_of_numbers_has_a_length():
    largest = np.finfo(np.float64).max

    found = domain_granularity(as_tree(Split(0, [(1, 0), (0, 1)], cut=0.0)), [numeric(-largest, largest)])

    assert found.tolist() == [0, 1, 1]


def test_tree_that_cannot_split_is_one_group():
    tree = as_tree((3, 1))

    found = error_risk(tree, [BINARY], CLASSES)
    pruned = prune_by_error_risk(tree, [BINARY], CLASSES, 4)

    assert (found.information.tolist(), found.error.tolist()) == ([2], [1])
    assert np.isnan(found.ratio).all()
    assert (pruned.groups.tolist(), pruned.group_of_leaf.tolist()) == ([0], [0])


def test_empty_leaves_may_make_a_branch_safer_than_its_node():
    """Lemma 3 fails: two of four values occur, so the leaves with rows fill half of the domain."""
    found = error_risk(as_tree(Split(0, [(2, 0), (0, 0), (0, 2), (0, 0)])), [TreeColumn(NO_ROWS, 4)], CLASSES)

    assert found.information.tolist() == [2, 3, np.inf, 3, np.inf]
    assert found.branch_information[0] == 3
    assert found.ratio[0] == -0.5


def test_pruning_that_costs_no_error_has_an_infinite_ratio():
    found = error_risk(as_tree(Split(0, [(2, 1), (2, 1)])), [BINARY], CLASSES)

    assert (found.error[0], found.branch_error[0]) == (2, 2)
    assert found.ratio[0] == np.inf


def test_numbers_that_lose_nothing_but_digits_count_as_free():
    """Two halves with one mean: the squared errors add up, though 0.1 and 0.7 are no exact numbers."""
    rows = Variance().statistics([0.1, 0.7] * 3 + [0.7, 0.1] * 7)
    tree = as_tree(Split(0, [rows[:6].sum(axis=0), rows[6:].sum(axis=0)]), Variance())

    assert error_risk(tree, [BINARY], Variance()).ratio[0] == np.inf


def test_empty_branch_has_no_say():
    found = error_risk(as_tree(Split(0, [Split(1, [(0, 0), (0, 0)]), (2, 2)])), [BINARY, BINARY], CLASSES)

    assert found.branch_information.tolist() == [3, np.inf, 3, np.inf, np.inf]
    assert found.ratio[1] == np.inf
    assert groups(Split(0, [Split(1, [(0, 0), (0, 0)]), (2, 2)]), [BINARY, BINARY], 4, "literal") == [2]


@pytest.mark.parametrize("rule", ["lowest", "literal"])
def test_leaf_without_rows_is_neither_undersized_nor_a_group(rule):
    pruned = prune_by_error_risk(as_tree(Split(0, [(3, 0), (0, 0)])), [BINARY], CLASSES, 3, rule=rule)

    assert pruned.groups.tolist() == [1]
    assert pruned.group_of_leaf.tolist() == [-1, 1, 2]


@pytest.mark.parametrize("rule", ["lowest", "literal"])
def test_nothing_is_pruned_where_all_leaves_are_large_enough(rule):
    assert groups(Split(0, [Split(1, [(1, 0), (1, 0)]), (2, 0)]), [BINARY, BINARY], 1, rule) == [2, 3, 4]


def test_free_branch_with_the_larger_gain_comes_first():
    """Neither costs an error. The root gains log2(20/4), node 1 log2(6/2), and then nothing is undersized."""
    tree = Split(0, [Split(1, [(1, 0), (5, 0)]), (14, 0)])

    assert groups(tree, [BINARY, BINARY], 3, "literal") == [0]
    assert groups(tree, [BINARY, BINARY], 3, "lowest") == [1, 2]


def test_free_branch_comes_before_any_ratio():
    """Node 1 is free and gains less than half a bit; the root would gain nearly 3 for one error."""
    tree = Split(0, [Split(1, [(2, 1), (3, 2)]), (40, 41)])

    risk = error_risk(as_tree(tree), [BINARY, BINARY], CLASSES)

    assert risk.ratio[:2].tolist() == [pytest.approx(np.log2(89 / 12)), np.inf]
    assert groups(tree, [BINARY, BINARY], 4, "literal") == [1, 2]


@pytest.mark.parametrize(
    ("root", "columns", "k"),
    [
        (
            Split(0, [(4, 2), Split(0, [(2, 0), Split(0, [(1, 0), (0, 0)], cut=443 / 64)], cut=107 / 16)], cut=23 / 4),
            [numeric(2, 7)],
            3,
        ),
        (
            Split(0, [Split(1, [(4, 0), (2, 0)], cut=6), Split(2, [Split(3, [(2, 1), (0, 3)], cut=3.5)])]),
            [BINARY, numeric(5, 7), TreeColumn(NO_ROWS, 1), numeric(1, 2, 5, 6)],
            5,
        ),
        (Split(0, [Split(1, [(1, 3), (7, 3)]), (0, 35)]), [BINARY, BINARY], 5),
    ],
    ids=["equal gain", "no gain", "twice the gain at twice the cost"],
)
def test_equal_ratios_go_to_the_lower_node_whatever_the_last_bits_say(root, columns, k):
    """Computed as they are, the ratios below the root would come out larger by rounding."""
    assert groups(root, columns, k, "literal") == [0]


def test_tree_is_left_as_it_was():
    tree = as_tree(Split(0, [Split(1, [(1, 0), (0, 4)]), (5, 1)]))
    before = {name: array.copy() for name, array in vars(tree).items()}

    for rule in ("lowest", "literal"):
        prune_by_error_risk(tree, [BINARY, BINARY], CLASSES, 3, rule=rule)

    for name, array in before.items():
        np.testing.assert_array_equal(getattr(tree, name), array)


@pytest.mark.parametrize("rule", ["lowest", "literal"])
def test_fewer_rows_than_k_cannot_be_grouped(rule):
    with pytest.raises(PrivacyNotAchievableError, match="k = 5 rows out of 4") as caught:
        groups(Split(0, [(2, 0), (0, 2)]), [BINARY], 5, rule)

    assert caught.value.best_level == 4


@pytest.mark.parametrize("k", [0, -1, 2.0, True, "2", None])
def test_k_is_a_positive_whole_number(k):
    with pytest.raises(InvalidParameterError, match="k must be a whole number of at least 1"):
        groups((2, 2), [BINARY], k, "lowest")


def test_k_may_come_from_an_array():
    assert groups(Split(0, [(2, 0), (0, 3)]), [BINARY], np.int64(3), "lowest") == [0]


def test_rule_is_one_of_three():
    with pytest.raises(InvalidParameterError, match="rule must be lowest or ratio or literal"):
        groups((2, 2), [BINARY], 2, "highest")


def test_reprs_tell_sizes_only():
    tree = as_tree(Split(0, [(2, 0), (0, 3)]))

    assert repr(error_risk(tree, [BINARY], CLASSES)) == "ErrorRisk(3 nodes)"
    assert repr(prune_by_error_risk(tree, [BINARY], CLASSES, 2)) == "PrunedTree(2 groups, 3 nodes)"
