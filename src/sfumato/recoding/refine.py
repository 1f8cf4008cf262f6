"""Leaves that are larger than a group needs to be, divided further along all quasi-identifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.contract import Progress
from sfumato.learning.tree import LEAF, Ids, Tree, TreeColumn, route
from sfumato.recoding.axes import Axis
from sfumato.recoding.mondrian import Partition, mondrian_partition


@dataclass(frozen=True, eq=False, repr=False)
class RefinedTree:
    """A tree below whose leaves rows were divided as Mondrian does.

    Parameters
    ----------
    tree : Tree
        Nodes of the tree as they were, then those of the divisions. A split of the first kind is on a column of an
        axis, one of the second on a column of its scale, which are numbered after those of the axes.
    leaf_of_row : ndarray of int32
    partition : Partition
        The divisions, which know the scales.
    """

    tree: Tree
    leaf_of_row: Ids
    partition: Partition

    def columns(self, axes: Sequence[Axis]) -> list[TreeColumn]:
        """Columns of the axes of new rows, as they are and on their scales."""
        return [*(axis.as_tree_column() for axis in axes), *self.partition.columns(axes)]

    def leaves_of(self, axes: Sequence[Axis]) -> Ids:
        """Leaf that new rows fall into."""
        return route(self.tree, self.columns(axes))


def refine(
    tree: Tree, leaf_of_row: Ids, axes: Sequence[Axis], k: int, *, progress: Progress | None = None
) -> RefinedTree:
    """Divide the rows of every leaf into parts of at least k by the cuts that lower the certainty penalty most.

    A leaf keeps together rows that the target does not tell apart. Where these are many, they may differ in everything
    else; dividing them costs no error and makes their cells narrower. Leaves of fewer than 2k rows stay as they are.
    """
    leaves, within = np.unique(leaf_of_row, return_inverse=True)
    partition = mondrian_partition(axes, k, within=within.astype(np.int32), progress=progress)
    grafted, node_of = _graft(tree, partition.tree, leaves, len(axes))
    leaf_of_group = node_of[np.flatnonzero(partition.tree.attribute == LEAF)]
    return RefinedTree(grafted, leaf_of_group[partition.of_row], partition)


def _graft(tree: Tree, forest: Tree, leaves: NDArray[np.integer], n_axes: int) -> tuple[Tree, Ids]:
    """Put the trees of a forest in the place of leaves; says where each of its nodes is now."""
    n_roots, n_before = len(leaves), tree.n_nodes
    node_of = np.concatenate([leaves, n_before + np.arange(forest.n_nodes - n_roots)]).astype(np.int32)
    is_split = forest.attribute != LEAF
    below = forest.first_child[is_split]
    first_child = np.full(forest.n_nodes, LEAF, dtype=np.int32)
    first_child[is_split] = node_of[below]
    parent = np.full(forest.n_nodes, -1, dtype=np.int32)
    parent[n_roots:] = node_of[forest.parent[n_roots:]]
    own: dict[str, NDArray[Any]] = {
        "attribute": np.where(is_split, forest.attribute + n_axes, LEAF).astype(np.int32),
        "threshold": forest.threshold,
        "cut": forest.cut,
        "first_child": first_child,
        "n_children": forest.n_children,
    }
    joined = {}
    for name, values in own.items():
        at_leaves = getattr(tree, name).copy()
        at_leaves[leaves] = values[:n_roots]
        joined[name] = np.concatenate([at_leaves, values[n_roots:]])
    nothing = np.full((forest.n_nodes - n_roots, tree.statistics.shape[1]), np.nan)
    return (
        Tree(
            parent=np.concatenate([tree.parent, parent[n_roots:]]),
            weights=np.concatenate([tree.weights, forest.weights[n_roots:]]),
            statistics=np.concatenate([tree.statistics, nothing]),
            **joined,
        ),
        node_of,
    )
