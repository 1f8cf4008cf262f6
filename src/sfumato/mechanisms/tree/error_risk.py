"""Disclosure and error of every node and branch of a tree, and what pruning a branch would change of either."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.learning.c45.criteria import Criterion
from sfumato.learning.c45.tree import EVERY_VALUE, LEAF, Ids, Tree, TreeColumn
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
NEGLIGIBLE_BITS = 1e-9
"""Bits that rounding may take from a sum of logarithms."""
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
        The error-risk ratio ω (:math:`\omega_t`), Definition 7: information gained per error when the branch is
        pruned. Infinite where pruning costs no error; not-a-number for a leaf.

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

    **Deviations.** Lemma 3 of [ERP19]_, :math:`R(t) \ge R(B_t)`, supposes that the leaves fill the domain of t. Those
    of binary splits do. A multiway split may have empty leaves, which disclose nobody; with the leaves that do hold
    rows filling a share c of the domain of t, :math:`R(B_t) - R(t) \le -\log_2 c`, and a ratio may be negative.

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
    of the range in the data, a categorical one with the values that the splits on the way leave of all its values: one
    where it was split into all of them, or where one was split off, and one less than above it on the other side. A
    column that was not split on adds nothing.

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
    n_left = np.full(tree.n_nodes, n_values)
    for level in levels[1:]:
        parent = tree.parent[level]
        n_left[level] = n_left[parent]
        below = level[is_split[parent]]
        parent = tree.parent[below]
        is_rest = (tree.split_off(parent) != EVERY_VALUE) & (below != tree.first_child[parent])
        n_left[below] = np.where(is_rest, n_left[parent] - 1, 1)
    return np.asarray(n_left / n_values)


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


# Error-risk pruning: branches of a tree are cut off until every leaf has at least k rows, or more is reached.


PruningRule = Literal["lowest", "ratio", "literal"]

_Priority = tuple[float, float, int]


@dataclass(frozen=True, eq=False, repr=False)
class PrunedTree:
    """Groups of the rows of a tree: the leaves that pruning left.

    Parameters
    ----------
    groups : ndarray of int32
        Nodes that are leaves after pruning and have rows, ascending.
    group_of_leaf : ndarray of int32, shape (n_nodes,)
        For each leaf of the tree before pruning, and for each node in a branch that was cut off, the node above it (or
        itself) that is a leaf after pruning; -1 for a node that stays split. A leaf without rows stands for itself
        where its parent stays split, and is no group.
    """

    groups: Ids
    group_of_leaf: Ids

    def __repr__(self) -> str:
        return f"PrunedTree({len(self.groups):,} groups, {len(self.group_of_leaf):,} nodes)"


def prune_by_error_risk(
    tree: Tree,
    columns: Sequence[TreeColumn],
    criterion: Criterion,
    k: int,
    *,
    rule: PruningRule = "lowest",
    is_allowed: NDArray[np.bool_] | None = None,
    min_bits: float | None = None,
    max_added_error: float = 0.0,
    risk: ErrorRisk | None = None,
) -> PrunedTree:
    r"""Prune a tree until every leaf that has rows has at least k, and further where that is asked for.

    Error-risk pruning (ERP), Figure 2 of [ERP19]_: of the branches with an undersized leaf, prune the one with the
    largest error-risk ratio :math:`\omega_t` (see :func:`error_risk`), and so on.

    Parameters
    ----------
    tree : Tree
        Grown without fractional rows, so that its weights are counts.
    columns, criterion
        What the tree was grown on and by.
    k : int
        At least 1. A leaf without rows is never undersized.
    rule : {"lowest", "ratio", "literal"}
        ``"literal"`` takes the paper at its word. ``"lowest"`` prunes a branch only when no branch inside it has an
        undersized leaf. ``"ratio"`` does the same and then goes on by the largest ratio, as far as
        ``max_added_error`` goes.
    is_allowed : ndarray of bool or None
        Whether each node may be a leaf for other reasons, such as the sensitive values of its rows; the root may. A
        leaf that may not be one is pruned as if it were undersized.
    min_bits : float or None
        Least R(t) of a leaf with rows: one below it is pruned as if it were undersized.
    max_added_error : float
        Of the rule ``"ratio"``: error that goes on pruning may add, as a share of the root's error. With 0 only what
        costs no error is pruned further.
    risk : ErrorRisk or None
        What :func:`error_risk` says of the tree, if it is known.

    Raises
    ------
    PrivacyNotAchievableError
        If the whole tree has fewer than k rows, or pruning ends at the root and that has less than ``min_bits``.

    Notes
    -----
    **Literal.** Branches that cost no error come first, by the information gained; ratios that agree to nine digits
    count as equal, and then the node with the lower number comes first. After a cut only the ratios above it change.
    Time O(nodes × columns + cuts × depth × log nodes).

    **Lowest.** A node with an undersized leaf among its children must go, whatever the order, because nothing else
    makes that leaf larger; and this rule cuts off nothing else. So the ratios do not matter, and the result is the one
    pruned tree of which all others with at least k rows in every leaf are prunings, those of the literal rule
    included: it has the most groups and the least error. Time O(nodes). The same holds with ``min_bits`` and
    ``is_allowed``, which speak of one leaf at a time: the floor needs no ratio either.

    **Ratio.** So a rule in which :math:`\omega_t` decides can only prune more than ``lowest``, and what it buys must be
    information. This one begins with the tree of ``lowest`` and prunes, of the branches that may be leaves, gain
    information (:math:`R(t) > R(B_t)`) and cost no more error than is left, the one with the largest ratio, in the
    order of ``literal``, until there is none. Every leaf keeps what ``lowest`` gives it; the least R of all leaves is
    never lower, because a cut replaces leaves of which the least has R(B_t) by one of R(t); and the error is at most
    that of ``lowest`` plus the allowance. Time O(nodes × columns + cuts × depth × log nodes).

    **Deviations.** On Figure 1 with k = 3 the literal rule prunes node 6 and then the root, which leaves one group,
    while Table 1 of the paper goes on with group 2. Hence the other rule. The paper is silent on ties, on branches
    that cost no error, and on empty leaves.

    References
    ----------
    .. [ERP19] Yang, Wang, Hu, Li: A Decision Tree Approach for Assessing and Mitigating Background and Identity
       Disclosure Risks. ICIS 2019.
    """
    if rule not in get_args(PruningRule):
        raise InvalidParameterError("rule", f"got {rule!r}", allowed=" or ".join(get_args(PruningRule)))
    if rule == "lowest" and min_bits is None:
        return prune_lowest(tree, k, is_allowed)
    _check(tree, k)
    risk = error_risk(tree, columns, criterion) if risk is None else risk
    allowed = np.ones(tree.n_nodes, dtype=np.bool_) if is_allowed is None else is_allowed.copy()
    if min_bits is not None:
        allowed &= risk.information >= min_bits - NEGLIGIBLE_BITS
        allowed[0] = True  # nothing above the root could take a violation away; it is refused below
    is_undersized = _is_undersized(tree, k, allowed)
    if rule == "literal":
        pruned = _pruned(tree, _cut_by_ratio(tree, risk, is_undersized))
    else:
        pruned = _pruned(tree, _cut_lowest(tree, is_undersized))
    if rule == "ratio":
        added = max_added_error * float(risk.error[0])
        pruned = _pruned(tree, _cut_further(tree, risk, is_undersized, pruned, added))
    if min_bits is not None and pruned.group_of_leaf[0] == 0 and risk.information[0] < min_bits - NEGLIGIBLE_BITS:
        raise PrivacyNotAchievableError(
            f"groups with at least {min_bits:g} bits of information for disclosing an individual",
            best_level=np.floor(100 * float(risk.information[0])) / 100,
            hint="all rows together have no more bits than the logarithm of their number",
        )
    return pruned


def prune_lowest(tree: Tree, k: int, is_allowed: NDArray[np.bool_] | None = None) -> PrunedTree:
    """Prune by the rule ``"lowest"`` of :func:`prune_by_error_risk`, for which the weights of the nodes suffice."""
    _check(tree, k)
    return _pruned(tree, _cut_lowest(tree, _is_undersized(tree, k, is_allowed)))


def _check(tree: Tree, k: int) -> None:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InvalidParameterError("k", f"got {k!r}", allowed="a whole number of at least 1")
    n_rows = int(tree.weights[0])
    if n_rows < k:
        raise PrivacyNotAchievableError(
            f"groups of at least k = {k} rows out of {n_rows:,}",
            best_level=n_rows,
            hint="k is at most the row count",
        )


def _is_undersized(tree: Tree, k: int, is_allowed: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    is_small = tree.weights < k
    return (tree.weights > 0) & (is_small if is_allowed is None else is_small | ~is_allowed)


def _cut_lowest(tree: Tree, is_undersized: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether each node is cut off or a leaf; nodes in a branch that is cut off higher up may be either."""
    is_leaf = np.asarray(tree.attribute == LEAF)
    for level in reversed(tree.levels[1:]):
        is_leaf[tree.parent[level[is_leaf[level] & is_undersized[level]]]] = True
    return is_leaf


def _cut_by_ratio(tree: Tree, risk: ErrorRisk, is_undersized: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether each node is cut off or a leaf; of outdated heap entries only the last one of a node counts."""
    branches = _Branches(tree, risk, is_undersized)
    heap = [branches.renewed_priority(node) for node in branches.violating()]
    heapq.heapify(heap)
    while branches.n_undersized[0]:
        priority = heapq.heappop(heap)
        if branches.priority.get(priority[-1]) != priority:
            continue
        for ancestor in branches.cut(priority[-1]):
            heapq.heappush(heap, branches.renewed_priority(ancestor))
    return np.asarray(np.array(branches.n_children) == 0)


def _cut_further(
    tree: Tree, risk: ErrorRisk, is_forbidden: NDArray[np.bool_], pruned: PrunedTree, most_added: float
) -> NDArray[np.bool_]:
    """Go on from a pruned tree by the largest ratio; a branch that costs too much waits until one below it is cut."""
    branches = _Branches(tree, risk, is_forbidden)
    for group in pruned.groups[tree.attribute[pruned.groups] != LEAF].tolist():
        branches.cut(group)
    left = most_added + branches.negligible_error
    still_split = np.flatnonzero((pruned.group_of_leaf == LEAF) & (tree.weights > 0))
    heap = [branches.renewed_priority(node) for node in still_split.tolist()]
    heapq.heapify(heap)
    while heap:
        priority = heapq.heappop(heap)
        node = priority[-1]
        if branches.priority.get(node) != priority or is_forbidden[node]:
            continue
        cost = branches.error[node] - branches.branch_error[node]
        gain = branches.information[node] - branches.branch_information[node]
        if cost > left or gain <= NEGLIGIBLE_BITS:
            continue
        left -= max(cost, 0.0)
        branches.cut(node)
        while (node := branches.parent[node]) >= 0:
            heapq.heappush(heap, branches.renewed_priority(node))
    return np.asarray(np.array(branches.n_children) == 0)


class _Branches:
    """What the ratios of a tree rest on while branches are cut off; lists, because single entries change."""

    def __init__(self, tree: Tree, risk: ErrorRisk, is_undersized: NDArray[np.bool_]) -> None:
        self.parent: list[int] = tree.parent.tolist()
        self.first_child: list[int] = tree.first_child.tolist()
        self.n_children: list[int] = tree.n_children.tolist()
        self.is_undersized: list[bool] = is_undersized.tolist()
        self.n_undersized: list[int] = sum_of_leaves(tree, is_undersized.astype(np.float64)).astype(np.intp).tolist()
        self.information: list[float] = risk.information.tolist()
        self.branch_information: list[float] = risk.branch_information.tolist()
        self.error: list[float] = risk.error.tolist()
        self.branch_error: list[float] = risk.branch_error.tolist()
        self.negligible_error = NEGLIGIBLE_ERROR * self.error[0]
        self.priority: dict[int, _Priority] = {}

    def violating(self) -> list[int]:
        """Nodes that are split and have an undersized leaf below them."""
        return [node for node, n in enumerate(self.n_undersized) if n and self.n_children[node]]

    def renewed_priority(self, node: int) -> _Priority:
        """Compute when a node's turn is: lower comes first."""
        gain = round(self.information[node] - self.branch_information[node], 12)
        cost = self.error[node] - self.branch_error[node]
        is_free = cost <= self.negligible_error
        first = (-np.inf, -float(f"{gain:.9g}")) if is_free else (-float(f"{gain / cost:.9g}"), 0.0)
        self.priority[node] = (*first, node)
        return self.priority[node]

    def cut(self, node: int) -> list[int]:
        """Make a leaf of a node; say which nodes above it have an undersized leaf."""
        self._forget_branch(node)
        more_undersized = self.is_undersized[node] - self.n_undersized[node]
        more_error = self.error[node] - self.branch_error[node]
        before, after = self.branch_information[node], self.information[node]
        self.n_undersized[node] = int(self.is_undersized[node])
        self.branch_information[node] = after
        still_violating = []
        while (node := self.parent[node]) >= 0:
            self.n_undersized[node] += more_undersized
            self.branch_error[node] += more_error
            before, after = self._replace_information(node, before, after)
            if self.n_undersized[node]:
                still_violating.append(node)
            else:
                self.priority.pop(node, None)
        return still_violating

    def _forget_branch(self, node: int) -> None:
        doomed = [node]
        while doomed:
            inner = doomed.pop()
            first, n = self.first_child[inner], self.n_children[inner]
            doomed.extend(range(first, first + n))
            self.n_children[inner] = 0
            self.priority.pop(inner, None)

    def _replace_information(self, node: int, before: float, after: float) -> tuple[float, float]:
        """Give a node the least information of its children, one of which changed; say what it was and is."""
        least = self.branch_information[node]
        if after <= least:
            self.branch_information[node] = after
        elif before == least:
            first = self.first_child[node]
            self.branch_information[node] = min(self.branch_information[first : first + self.n_children[node]])
        return least, self.branch_information[node]


def _pruned(tree: Tree, is_leaf: NDArray[np.bool_]) -> PrunedTree:
    group_of = np.full(tree.n_nodes, LEAF, dtype=np.int32)
    group_of[0] = 0 if is_leaf[0] else LEAF
    for level in tree.levels[1:]:
        above = group_of[tree.parent[level]]
        group_of[level] = np.where(above != LEAF, above, np.where(is_leaf[level], level, LEAF))
    is_group = (group_of == np.arange(tree.n_nodes)) & (tree.weights > 0)
    return PrunedTree(np.flatnonzero(is_group).astype(np.int32), group_of)
