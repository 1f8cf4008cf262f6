"""Disclosure and error of every node and branch of a tree, and what pruning a branch would change of either."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.learning.criteria import Criterion
from sfumato.learning.tree import LEAF, Tree, TreeColumn
from sfumato.measures.disclosure import (
    background_information_granularity,
    information_for_reidentification,
    total_information,
)

Numbers = NDArray[np.float64]
Nodes = NDArray[np.intp]
IsSplit = NDArray[np.bool_]

LEAST_SHARE = float(np.finfo(np.float64).eps)
"""Share of a numeric domain that a side without length counts as: 52 bits."""
NEGLIGIBLE_ERROR = 1e-9
"""Errors that differ by less than this fraction of the root's are taken as equal; class counts differ by more."""


@dataclass(frozen=True, eq=False, repr=False)
class ErrorRisk:
    r"""Figures of every node t of a tree and of the branch :math:`B_t` below it, in the terms of [ERP19]_.

    Information is in bits, and little of it is risky. A leaf is its own branch.

    Parameters
    ----------
    n_rows : ndarray of float64
        :math:`n_t`.
    granularity : ndarray of float64
        :math:`BIG(t)`, Definition 1: what it takes to learn the background.
    reidentification : ndarray of float64
        :math:`ICR(t)`, Definition 2: what it takes to tell a row from the others; infinite in an empty node.
    information : ndarray of float64
        :math:`R(t)`, Definition 3 (TIDI): the sum of the two.
    branch_information : ndarray of float64
        :math:`R(B_t)`, Definition 5: the least of the leaves below; an empty leaf has no say.
    error, branch_error : ndarray of float64
        :math:`E(t)` and :math:`E(B_t)`, Definition 6, by the tree's criterion.
    ratio : ndarray of float64
        :math:`\omega_t`, Definition 7: information gained per error when the branch is pruned. Infinite where pruning
        costs no error; not-a-number for a leaf.

    References
    ----------
    .. [ERP19] Yang, Wang, Hu, Li: A Decision Tree Approach for Assessing and Mitigating Background and Identity
       Disclosure Risks. ICIS 2019.
    """

    n_rows: Numbers
    granularity: Numbers
    reidentification: Numbers
    information: Numbers
    branch_information: Numbers
    error: Numbers
    branch_error: Numbers
    ratio: Numbers

    def __repr__(self) -> str:
        return f"ErrorRisk({len(self.n_rows):,} nodes)"


def error_risk(tree: Tree, columns: Sequence[TreeColumn], criterion: Criterion) -> ErrorRisk:
    r"""Measure disclosure and error of all nodes and branches of a tree.

    Parameters
    ----------
    tree : Tree
        Grown without fractional rows, so that its weights are counts.
    columns : sequence of TreeColumn
        What the tree was grown on.
    criterion : Criterion
        Whose statistics the tree holds.

    Notes
    -----
    Time O(nodes × columns that are split on).

    **Deviations.** Lemma 3 of [ERP19]_, :math:`R(t) \ge R(B_t)`, supposes that the leaves fill the domain of t. A
    multiway split may have empty leaves, which disclose nobody; with the leaves that do hold rows filling a share c of
    the domain of t, :math:`R(B_t) - R(t) \le -\log_2 c`, and a ratio may be negative.

    :math:`E(t) = E(B_t)`, on which the paper is silent, gives an infinite ratio whatever the gain.
    """
    granularity = domain_granularity(tree, columns)
    reidentification = information_for_reidentification(tree.weights)
    information = total_information(granularity, tree.weights)
    error = criterion.error(tree.statistics)
    branch_information = least_of_leaves(tree, information)
    branch_error = sum_of_leaves(tree, error)
    gain = np.zeros(tree.n_nodes)
    np.subtract(information, branch_information, out=gain, where=np.isfinite(branch_information))
    cost = error - branch_error
    is_free = cost <= NEGLIGIBLE_ERROR * error[0]
    ratio = np.where(is_free, np.inf, gain / np.where(is_free, 1.0, cost))
    return ErrorRisk(
        n_rows=tree.weights,
        granularity=granularity,
        reidentification=reidentification,
        information=information,
        branch_information=branch_information,
        error=error,
        branch_error=branch_error,
        ratio=np.where(tree.attribute == LEAF, np.nan, ratio),
    )


def domain_granularity(tree: Tree, columns: Sequence[TreeColumn]) -> Numbers:
    """Background information granularity, in bits, of every node of a tree.

    BIG of [ERP19]_, Definition 1: a numeric column counts with the range that all cuts on the way from the root leave
    of the range in the data, a categorical one with one value of all its values once it was split on. A column
    that was not split on adds nothing.

    Notes
    -----
    A cut half way between two numbers of the data leaves both sides a length, unless rounding moves it to the end of
    the range. A side without length counts as 2**-52 of the domain, so that the sum stays finite.
    """
    levels = tree.levels
    granularity = np.zeros(tree.n_nodes)
    for attribute in np.unique(tree.attribute[tree.attribute != LEAF]).tolist():
        column = columns[attribute]
        if column.n_values == 1:
            continue
        is_split = tree.attribute == attribute
        if column.numbers is None:
            shares = _value_shares(tree, levels, is_split, column.n_values)
        else:
            shares = _range_shares(tree, levels, is_split, column.numbers)
        granularity += background_information_granularity(shares[:, None])
    return granularity


def _value_shares(tree: Tree, levels: list[Nodes], is_split: IsSplit, n_values: int) -> Numbers:
    shares = np.ones(tree.n_nodes)
    for level in levels[1:]:
        parent = tree.parent[level]
        shares[level] = np.where(is_split[parent], 1 / n_values, shares[parent])
    return shares


def _range_shares(tree: Tree, levels: list[Nodes], is_split: IsSplit, numbers: Numbers) -> Numbers:
    scale = max(abs(numbers[0]), abs(numbers[-1]))  # the length of a range may be too large for a number
    low = np.full(tree.n_nodes, numbers[0] / scale)
    high = np.full(tree.n_nodes, numbers[-1] / scale)
    width = high[0] - low[0]
    for level in levels[1:]:
        parent = tree.parent[level]
        is_first = level == tree.first_child[parent]
        cut = tree.cut[parent] / scale
        low[level] = np.where(is_split[parent] & ~is_first, cut, low[parent])
        high[level] = np.where(is_split[parent] & is_first, cut, high[parent])
    return np.asarray(np.maximum((high - low) / width, LEAST_SHARE))


def least_of_leaves(tree: Tree, values: Numbers) -> Numbers:
    """Least value of the leaves below each node; a leaf's own is its own."""
    least = np.where(tree.attribute == LEAF, values, np.inf)
    for level in reversed(tree.levels[1:]):
        np.minimum.at(least, tree.parent[level], least[level])
    return least


def sum_of_leaves(tree: Tree, values: Numbers) -> Numbers:
    """Sum of the values of the leaves below each node; a leaf's own is its own."""
    total = np.where(tree.attribute == LEAF, values, 0.0)
    for level in reversed(tree.levels[1:]):
        np.add.at(total, tree.parent[level], total[level])
    return total
