"""A decision tree as arrays, and the columns it is grown on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Numbers = NDArray[np.float64]

LEAF = -1
MISSING = -1


@dataclass(frozen=True, eq=False, repr=False)
class TreeColumn:
    """A column to split on, as codes of its distinct values; a missing value has the code -1.

    Parameters
    ----------
    codes : ndarray of int32, shape (n_rows,)
    n_values : int
        Number of values; codes run from 0 to ``n_values - 1``.
    numbers : ndarray of float64 or None
        For a numeric column the number of each code, ascending; ``None`` for a categorical one.
    """

    codes: Ids
    n_values: int
    numbers: Numbers | None = None

    @property
    def is_numeric(self) -> bool:
        """Whether the column is split at a threshold instead of into its values."""
        return self.numbers is not None


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """A tree as one array entry a node; node 0 is the root, a parent stands before its children, siblings together.

    Parameters
    ----------
    parent : ndarray of int32
        Parent of each node, -1 for the root.
    attribute : ndarray of int32
        Column that a node splits on, -1 for a leaf.
    threshold : ndarray of float64
        Of a split on a numeric column: numbers up to it go to the first child, larger ones to the second. It is a
        number of the data, as in C4.5. Not-a-number elsewhere.
    cut : ndarray of float64
        Half way between the threshold and the next number of the data: where the domain of the column is divided.
    first_child, n_children : ndarray of int32
        Children are numbered from ``first_child``; of a split on a categorical column the i-th is that of code i.
    weights : ndarray of float64
        Weight of the training rows in each node.
    statistics : ndarray of float64, shape (n_nodes, n_statistics)
        What the criterion keeps of the training rows in each node, class counts for instance.
    """

    parent: Ids
    attribute: Ids
    threshold: Numbers
    cut: Numbers
    first_child: Ids
    n_children: Ids
    weights: Numbers
    statistics: Numbers

    def __repr__(self) -> str:
        return f"Tree({self.n_nodes:,} nodes, {self.n_leaves:,} leaves)"

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.parent)

    @property
    def n_leaves(self) -> int:
        """Number of leaves; one that no training row reached counts as well."""
        return int((self.attribute == LEAF).sum())

    @cached_property
    def levels(self) -> list[NDArray[np.intp]]:
        """Nodes by the number of splits above them, the root first."""
        levels = []
        level = np.zeros(1, dtype=np.intp)
        while len(level):
            levels.append(level)
            counts = self.n_children[level].astype(np.intp)
            first = self.first_child[level] - (np.cumsum(counts) - counts)
            level = np.repeat(first, counts) + np.arange(counts.sum())
        return levels

    @property
    def depth(self) -> int:
        """Largest number of splits above a leaf."""
        return len(self.levels) - 1

    @cached_property
    def heaviest_child(self) -> Ids:
        """Child with the most weight (the first of several), -1 for a leaf: where rows with a missing value go."""
        place = np.arange(self.n_nodes) - self.first_child[self.parent]
        is_child = (self.parent >= 0) & (place >= 0) & (place < self.n_children[self.parent])
        children = np.flatnonzero(is_child)  # nodes of a branch that was replaced are children of none
        order = children[np.lexsort((children, -self.weights[children], self.parent[children]))]
        heaviest = np.full(self.n_nodes, LEAF, dtype=np.int32)
        heaviest[self.parent[order[::-1]]] = order[::-1]  # the heaviest, which comes first, is written last
        return heaviest

    def children(self, node: int) -> NDArray[np.intp]:
        """Children of a node, in the order of the column's values."""
        first = int(self.first_child[node])
        return np.arange(first, first + int(self.n_children[node]))


def route(tree: Tree, columns: Sequence[TreeColumn], start: Ids | None = None) -> Ids:
    """Leaf of every row, without fractions.

    A row whose value is missing or unknown, or leads to a child that no training row reached, goes to the heaviest
    child. ``start`` gives each row a node to start from (the root when left out).

    Examples
    --------
    >>> grown = Tree(*(np.array(a, dtype=t) for a, t in (
    ...     ([-1, 0, 0], np.int32), ([0, -1, -1], np.int32), ([2, np.nan, np.nan], np.float64),
    ...     ([2.5, np.nan, np.nan], np.float64), ([1, -1, -1], np.int32), ([2, 0, 0], np.int32),
    ...     ([5, 2, 3], np.float64), ([[5], [2], [3]], np.float64))))
    >>> route(grown, [TreeColumn(np.array([0, 1, 2, -1], dtype=np.int32), 3, np.array([1.0, 2.0, 3.0]))]).tolist()
    [1, 1, 2, 2]
    """
    n_rows = len(columns[0].codes) if columns else 0
    node = np.zeros(n_rows, dtype=np.int32) if start is None else start.astype(np.int32).copy()
    moving = np.flatnonzero(tree.attribute[node] != LEAF)
    while len(moving):
        at = node[moving]
        for attribute in np.unique(tree.attribute[at]).tolist():
            here = tree.attribute[at] == attribute
            node[moving[here]] = _step(tree, columns[attribute], moving[here], at[here])
        moving = moving[tree.attribute[node[moving]] != LEAF]
    return node


def _step(tree: Tree, column: TreeColumn, rows: NDArray[np.intp], at: Ids) -> Ids:
    codes = column.codes[rows]
    if column.numbers is not None:
        numbers = np.append(column.numbers, np.nan)[codes]  # a missing code, -1, is the last
        is_known = ~np.isnan(numbers)
        branch = (numbers > tree.threshold[at]).astype(np.int32)
    else:
        is_known = (codes >= 0) & (codes < tree.n_children[at])
        branch = np.where(is_known, codes, 0)
    child = tree.first_child[at] + branch
    leads_on = is_known & (tree.weights[child] > 0)
    return np.where(leads_on, child, tree.heaviest_child[at]).astype(np.int32)
