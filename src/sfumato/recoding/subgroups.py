"""Rows in the order of a tree's leaves, in which those below any node are neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.learning.tree import Ids, Tree

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class RowsByLeaf:
    """Rows sorted by leaf, depth first, so that those below any node are at consecutive places.

    Nodes have a first place and a number of rows; so have subgroups, which are numbered in the same order.
    """

    order: Indices
    first_of_node: Indices
    n_of_node: Indices
    leaves: Indices
    starts: Indices
    sizes: Indices

    @classmethod
    def of(cls, tree: Tree, leaf_of_row: Ids) -> RowsByLeaf:
        """Sort the rows of a tree."""
        first, n_below = _intervals(tree, np.bincount(leaf_of_row, minlength=tree.n_nodes))
        order = np.argsort(first[leaf_of_row], kind="stable")
        leaf_at = leaf_of_row[order]
        starts = np.flatnonzero(np.append(-1, leaf_at[:-1]) != leaf_at)
        sizes = np.diff(np.append(starts, len(order)))
        return cls(order, first, n_below, leaf_at[starts].astype(np.intp), starts, sizes)


def _intervals(tree: Tree, n_here: Indices) -> tuple[Indices, Indices]:
    """First place of each node in depth-first order and the number of rows below it."""
    levels = tree.levels[1:]
    n_below = n_here.copy()
    for nodes in reversed(levels):
        np.add.at(n_below, tree.parent[nodes], n_below[nodes])
    first = np.zeros(tree.n_nodes, dtype=np.intp)
    for nodes in levels:
        parents = tree.parent[nodes]
        before = np.cumsum(n_below[nodes]) - n_below[nodes]
        is_eldest = nodes == tree.first_child[parents]
        eldest = np.maximum.accumulate(np.where(is_eldest, np.arange(len(nodes)), 0))
        first[nodes] = first[parents] + n_here[parents] + before - before[eldest]
    return first, n_below
