"""A tree that is being changed: nodes become leaves or take the place of their parent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.learning.criteria import Criterion
from sfumato.learning.descent import Branching
from sfumato.learning.tree import LEAF, Tree, TreeColumn

Places = NDArray[np.int64]


class Draft:
    """Copies of a tree's arrays; nodes keep their numbers until :meth:`tree` numbers those that are left anew.

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
