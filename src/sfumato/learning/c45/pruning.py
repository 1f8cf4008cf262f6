"""Pruning of a C4.5 tree: collapsing, pessimistic errors and subtree raising, all nodes of one depth at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from sfumato.errors import InvalidParameterError
from sfumato.learning.c45.criteria import Criterion, Entropy
from sfumato.learning.c45.descent import Branching, Entries, descend
from sfumato.learning.c45.splits import NO_GAIN, SMALL, Tally
from sfumato.learning.c45.tree import LEAF, Tree, TreeColumn

# A tree that is being changed: nodes become leaves or take the place of their parent.


Places = NDArray[np.int64]


class Draft:
    """Copies of a tree's arrays; nodes keep their numbers until :meth:`tree` renumbers those that are left.

    Parameters
    ----------
    tree : Tree
    columns : sequence of TreeColumn
        Columns of the rows that are to be sent down, if any.
    """

    def __init__(self, tree: Tree, columns: Sequence[TreeColumn] = ()) -> None:
        of_tree = Branching.of(tree, columns)
        self.branching = Branching(
            of_tree.attribute.copy(), of_tree.limit, of_tree.first_child.copy(), of_tree.n_children.copy()
        )
        self.threshold = tree.threshold.copy()
        self.cut = tree.cut.copy()
        self.statistics = tree.statistics.copy()

    def is_inner(self, nodes: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Say which nodes are split."""
        return np.asarray(self.branching.attribute[nodes] != LEAF)

    def make_leaves(self, nodes: Places) -> None:
        """Cut off everything below nodes."""
        self.branching.attribute[nodes] = LEAF
        self.branching.n_children[nodes] = 0
        self.branching.first_child[nodes] = LEAF
        self.threshold[nodes] = np.nan
        self.cut[nodes] = np.nan

    def replace(self, nodes: Places, children: Places) -> None:
        """Put a child of each node in its place, with what is below it; statistics stay those of the node."""
        split = self.branching
        for values in (
            split.attribute,
            split.limit,
            split.first_child,
            split.n_children,
            self.threshold,
            self.cut,
        ):
            values[nodes] = values[children]

    def levels(self) -> list[Places]:
        """Return the nodes of each depth, from the root down."""
        levels = [np.zeros(1, dtype=np.int64)]
        while len(below := self.branching.children_of(levels[-1])[0]):
            levels.append(below)
        return levels

    def tree(self, criterion: Criterion) -> Tree:
        """Give new numbers to the nodes that are left, depth by depth."""
        levels = self.levels()
        kept = np.concatenate(levels)
        n_children = self.branching.n_children[kept]
        first_child = (1 + np.cumsum(n_children) - n_children).astype(np.int32)
        parent = np.concatenate([[LEAF], np.repeat(np.arange(len(kept)), n_children)]).astype(np.int32)
        statistics = self.statistics[kept]
        return Tree(
            parent=parent,
            attribute=self.branching.attribute[kept],
            threshold=self.threshold[kept],
            cut=self.cut[kept],
            first_child=np.where(n_children > 0, first_child, LEAF).astype(np.int32),
            n_children=n_children,
            weights=criterion.weight(statistics),
            statistics=statistics,
        )


Numbers = NDArray[np.float64]

COLLAPSE_SLACK = 1e-3
PRUNE_SLACK = 0.1


def pessimistic_errors(weight: ArrayLike, wrong: ArrayLike, confidence: float = 0.25) -> Numbers:
    """Upper limit, at a confidence, of the errors that leaves would make on as many new rows.

    Quinlan (1993), chapter 4, in the reading of Weka's ``Stats.addErrs``: the binomial limit where there is no error,
    a normal approximation from one error on, linear in between. 0 for an empty leaf.

    Examples
    --------
    >>> pessimistic_errors([6, 9, 1], [0, 0, 0]).round(3).tolist()  # Quinlan's own example: 1.236, 1.285, 0.750
    [1.238, 1.285, 0.75]
    """
    n, e = np.broadcast_arrays(np.asarray(weight, dtype=np.float64), np.asarray(wrong, dtype=np.float64))
    is_empty = n < SMALL
    n = np.where(is_empty, 1.0, n)
    none = n * (1 - confidence ** (1 / n))
    added = _added_from_one_error(n, np.maximum(e, 1.0), confidence)
    added = np.where(e < 1, none + e * (added - none), added)
    return np.asarray(np.where(is_empty, 0.0, e + added))


def _added_from_one_error(n: Numbers, e: Numbers, confidence: float) -> Numbers:
    z = float(ndtri(1 - confidence))
    f = np.minimum((e + 0.5) / n, 1.0)
    spread = np.sqrt(np.maximum(f / n - f**2 / n + z**2 / (4 * n**2), 0.0))
    rate = (f + z**2 / (2 * n) + z * spread) / (1 + z**2 / n)
    return np.where(e + 0.5 >= n, np.maximum(n - e, 0.0), rate * n - e)


def collapse(tree: Tree, criterion: Criterion) -> Tree:
    """Make a leaf of every node whose branch makes no fewer training errors than it would.

    J48 always does so after growing, an unpruned tree included.

    Examples
    --------
    >>> from sfumato.learning.c45.criteria import Entropy
    >>> from sfumato.learning.c45.grow import grow
    >>> entropy = Entropy(2)
    >>> column = TreeColumn(np.array([0, 0, 0, 1, 1, 1], dtype=np.int32), 2)
    >>> collapse(grow([column], entropy.statistics([0, 0, 0, 0, 0, 1]), entropy), entropy)
    Tree(1 nodes, 1 leaves)
    """
    own = criterion.error(tree.statistics)
    slack = COLLAPSE_SLACK if criterion.is_in_bits else NO_GAIN * float(own[0])
    draft = Draft(tree)
    below = np.where(tree.attribute == LEAF, own, 0.0)
    for level in reversed(draft.levels()[1:]):
        below += np.bincount(tree.parent[level], weights=below[level], minlength=tree.n_nodes)
    draft.make_leaves(np.flatnonzero(below >= own - slack))
    return draft.tree(criterion)


def prune(
    tree: Tree,
    columns: Sequence[TreeColumn],
    statistics: Numbers,
    confidence: float = 0.25,
    subtree_raising: bool = True,
) -> Tree:
    """Replace branches by leaves, or by their largest branch, where the pessimistic errors do not grow by it.

    Quinlan (1993), chapter 4, in the order of Weka 3.6's J48: the children of a node first, then the node; a branch
    that was raised gets all rows of the node and is pruned again. Nodes of one depth have no row in common (or only
    shares of it) and are treated together.

    Parameters
    ----------
    columns, statistics
        The training rows, as given to :func:`sfumato.learning.c45.grow.grow`; the statistics are class counts.
    confidence : float
        Above 0 and at most 0.5; smaller prunes more.
    """
    if not 0 < confidence <= 0.5:
        raise InvalidParameterError("confidence", f"got {confidence!r}", allowed="above 0 and at most 0.5")
    pruning = _Pruning(tree, columns, statistics, confidence, subtree_raising)
    rows = np.flatnonzero(pruning.row_weights > 0)
    pruning.run(np.zeros(1, dtype=np.int64), Entries(rows, np.zeros(len(rows), dtype=np.int64), np.ones(len(rows))))
    return pruning.draft.tree(Entropy(statistics.shape[1]))


class _Pruning:
    """A tree being pruned, the training rows, and the pessimistic errors below every node."""

    def __init__(
        self, tree: Tree, columns: Sequence[TreeColumn], statistics: Numbers, confidence: float, raising: bool
    ) -> None:
        self.draft = Draft(tree, columns)
        self.columns = columns
        self.row_weights = statistics.sum(axis=1)
        self.confidence = confidence
        self.raising = raising
        self.tally = Tally.from_statistics(statistics)
        self.errors_below = np.zeros(tree.n_nodes)

    def run(self, roots: Places, entries: Entries) -> None:
        """Prune the branches at ``roots``, whose rows are given, from the bottom up."""
        for nodes, rows in reversed(self._distribute(roots, entries)):
            children, owner = self.draft.branching.children_of(nodes)
            errors = np.bincount(owner, weights=self.errors_below[children], minlength=len(nodes))
            as_leaf = self._errors(self.draft.statistics[nodes])
            largest = self._largest(children, owner, len(nodes))
            raised = self._errors_of_branches(nodes, largest, rows, as_leaf)
            becomes_leaf = (as_leaf - errors - PRUNE_SLACK < SMALL) & (as_leaf - raised - PRUNE_SLACK < SMALL)
            is_raised = ~becomes_leaf & (raised - errors - PRUNE_SLACK < SMALL)
            self.errors_below[nodes] = np.where(becomes_leaf, as_leaf, errors)
            self.draft.make_leaves(nodes[becomes_leaf])
            if is_raised.any():
                self.draft.replace(nodes[is_raised], largest[is_raised])
                self.run(nodes[is_raised], self._at(nodes[is_raised], rows))

    def _distribute(self, roots: Places, entries: Entries) -> list[tuple[Places, Entries]]:
        """Send rows down from roots and note what every node gets; return the inner nodes of each depth, with rows."""
        levels: list[tuple[Places, Entries]] = []
        nodes = roots
        while True:
            self._note(nodes, entries)
            nodes = nodes[self.draft.is_inner(nodes)]
            entries = entries.of(self.draft.is_inner(entries.nodes))
            if not len(nodes):
                return levels
            levels.append((nodes, entries))
            entries = descend(entries, self.draft.branching, self.columns, self.row_weights)
            nodes, _ = self.draft.branching.children_of(nodes)

    def _note(self, nodes: Places, entries: Entries) -> None:
        self.draft.statistics[nodes] = self._sums(nodes, entries)
        self.errors_below[nodes] = self._errors(self.draft.statistics[nodes])

    def _sums(self, nodes: Places, entries: Entries) -> Numbers:
        place = self._place(nodes)[entries.nodes]
        return self.tally.of(entries.rows).times(entries.shares).table(place, len(nodes))

    def _place(self, nodes: Places) -> Places:
        place = np.full(len(self.errors_below), LEAF, dtype=np.int64)
        place[nodes] = np.arange(len(nodes))
        return place

    def _at(self, nodes: Places, entries: Entries) -> Entries:
        return entries.of(self._place(nodes)[entries.nodes] != LEAF)

    def _errors(self, sums: Numbers) -> Numbers:
        weight = sums.sum(axis=1)
        return pessimistic_errors(weight, weight - sums.max(axis=1), self.confidence)

    def _largest(self, children: Places, owner: Places, n_nodes: int) -> Places:
        """Return the child of each node with the greatest weight, the last of several as in Weka."""
        weights = self.draft.statistics[children].sum(axis=1)
        greatest = np.zeros(n_nodes)
        np.maximum.at(greatest, owner, weights)
        is_largest = np.flatnonzero(weights >= greatest[owner] - SMALL)
        largest = np.zeros(n_nodes, dtype=np.int64)
        largest[owner[is_largest]] = children[is_largest]
        return largest

    def _errors_of_branches(self, nodes: Places, largest: Places, entries: Entries, as_leaf: Numbers) -> Numbers:
        """Return the pessimistic errors when all rows of a node go to its largest child, shared out anew below it."""
        if not self.raising:
            return np.full(len(nodes), np.inf)
        is_inner = self.draft.is_inner(largest)
        errors = np.where(is_inner, 0.0, as_leaf)
        owner = np.flatnonzero(is_inner)
        entries = self._at(nodes[owner], entries)
        entries = Entries(entries.rows, largest[self._place(nodes)[entries.nodes]], entries.shares)
        below = largest[owner]
        while len(below):
            entries = descend(entries, self.draft.branching, self.columns, self.row_weights)
            below, which = self.draft.branching.children_of(below)
            owner = owner[which]
            is_inner = self.draft.is_inner(below)
            leaves = below[~is_inner]
            goes_on = self.draft.is_inner(entries.nodes)
            found = self._errors(self._sums(leaves, entries.of(~goes_on)))
            errors += np.bincount(owner[~is_inner], weights=found, minlength=len(nodes))
            below, owner, entries = below[is_inner], owner[is_inner], entries.of(goes_on)
        return errors
