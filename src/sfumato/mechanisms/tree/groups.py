"""Rows in the order of a tree's leaves, in which those below any node are neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.learning.c45.tree import LEAF, Ids, Tree, TreeColumn, route
from sfumato.mechanisms.axes import Axis
from sfumato.mechanisms.constraints import Limit
from sfumato.mechanisms.mondrian.division import Partition, mondrian_partition
from sfumato.mechanisms.score_guide import PENALTY_WEIGHT, ScoreGuide
from sfumato.progress import Progress

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


def nodes_allowed_by_persons(
    tree: Tree, leaf_of_row: Ids, k: int, persons: Ids, limits: Sequence[Limit]
) -> NDArray[np.bool_]:
    """Whether the rows of each node are those of at least k persons and keep what is asked by persons.

    Distinct persons do not add up over leaves: every depth is looked at, from the lowest up. A node without rows is
    allowed. Limits on weights are not monotone, so a node may be forbidden whose children are allowed; pruning goes on
    up from a forbidden one, and what it ends with is allowed.
    """
    allowed = np.ones(tree.n_nodes, dtype=np.bool_)
    node_of_row = leaf_of_row.astype(np.int64)
    for level in reversed(tree.levels):
        here = np.zeros(tree.n_nodes, dtype=np.bool_)
        here[level] = True
        rows = np.flatnonzero(here[node_of_row])
        nodes, part_of_row = np.unique(node_of_row[rows], return_inverse=True)
        part_of_row = part_of_row.reshape(-1)
        pairs = np.unique(part_of_row * (int(persons.max(initial=0)) + 1) + persons[rows])
        allowed[nodes] = np.bincount(pairs // (int(persons.max(initial=0)) + 1), minlength=len(nodes)) >= k
        for limit in limits:
            allowed[nodes] &= limit.are_kept_by(part_of_row, rows)
        node_of_row[rows] = tree.parent[node_of_row[rows]]
    return allowed


# Leaves that are larger than a group needs to be, divided further along all quasi-identifiers.


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
    tree: Tree,
    leaf_of_row: Ids,
    axes: Sequence[Axis],
    k: int,
    *,
    guide: ScoreGuide | None = None,
    limits: Sequence[Limit] = (),
    persons: Ids | None = None,
    progress: Progress | None = None,
) -> RefinedTree:
    """Divide the rows of every leaf into parts of at least k by the cuts that lower the certainty penalty most.

    A leaf keeps together rows that the target does not tell apart. Where these are many, they may differ in everything
    else; dividing them costs no error and makes their cells narrower. Leaves of fewer than 2k rows stay as they are.

    Parameters
    ----------
    guide : ScoreGuide or None
        Scores of the rows: cuts then lower their variance, and the penalty besides; see
        :func:`sfumato.mechanisms.mondrian.division.mondrian_partition`.
    limits : sequence of Limit
        What the sensitive values of parts must satisfy.
    persons : ndarray of int32 or None
        Person of each row, where some have several.
    """
    leaves, within = np.unique(leaf_of_row, return_inverse=True)
    partition = mondrian_partition(
        axes,
        k,
        split="penalty" if guide is None else "score",
        statistics=None if guide is None else guide.statistics,
        criterion=None if guide is None else guide.criterion,
        order_by=None if guide is None else guide.along,
        penalty_weight=PENALTY_WEIGHT,
        limits=limits,
        within=within.astype(np.int32),
        persons=persons,
        progress=progress,
    )
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
