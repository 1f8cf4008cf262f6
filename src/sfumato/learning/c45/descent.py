"""Rows on their way down a tree: each in one node, or in parts in several where a value is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.learning.c45.splits import SMALL
from sfumato.learning.c45.tree import LEAF, Tree, TreeColumn, branch_of_codes

Ids = NDArray[np.int32]
Numbers = NDArray[np.float64]
Places = NDArray[np.int64]
Missing = Literal["fractions", "heaviest"]


@dataclass(frozen=True, eq=False, repr=False)
class Entries:
    """Rows, the node each is in, and the share of the row that is in this node."""

    rows: Places
    nodes: Places
    shares: Numbers

    @classmethod
    def at(cls, nodes: NDArray[np.integer]) -> Entries:
        """Whole rows, each at its node."""
        return cls(np.arange(len(nodes)), nodes.astype(np.int64), np.ones(len(nodes)))

    def of(self, which: NDArray[np.integer] | NDArray[np.bool_]) -> Entries:
        """Return some of the entries."""
        places = np.flatnonzero(which) if which.dtype == np.bool_ else which
        return Entries(self.rows.take(places), self.nodes.take(places), self.shares.take(places))


@dataclass(frozen=True, eq=False, repr=False)
class Branching:
    """How nodes branch: where a row goes, in terms of the codes of its columns.

    Parameters
    ----------
    attribute : ndarray of int32
        Column that a node splits on, -1 for a leaf.
    limit : ndarray of int64
        Of a split on a numeric column: smaller codes go to the first child, the others to the second. Of one on a
        categorical column: the code that goes to the first child, the others to the second; -1 where every code has a
        child of its own.
    first_child, n_children : ndarray of int32
        Children of a node are numbered from ``first_child``.
    """

    attribute: Ids
    limit: Places
    first_child: Ids
    n_children: Ids

    @classmethod
    def of(cls, tree: Tree, columns: Sequence[TreeColumn]) -> Branching:
        """Take the splits of a tree, for rows that have these columns."""
        limit = np.zeros(tree.n_nodes, dtype=np.int64)
        for number, column in enumerate(columns):
            here = np.flatnonzero(tree.attribute == number)
            if column.numbers is not None:
                limit[here] = np.searchsorted(column.numbers, tree.threshold[here], side="right")
            else:
                limit[here] = tree.split_off(here)
        return cls(tree.attribute, limit, tree.first_child, tree.n_children)

    def children_of(self, nodes: NDArray[np.integer]) -> tuple[Places, Places]:
        """Return the children of all nodes, one node after the other, and the place of each one's parent."""
        counts = self.n_children[nodes].astype(np.int64)
        owner = np.repeat(np.arange(len(nodes)), counts)
        offset = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.first_child[nodes][owner] + offset, owner


def descend(
    entries: Entries,
    branching: Branching,
    columns: Sequence[TreeColumn],
    row_weights: Numbers | None = None,
    missing: Missing = "fractions",
    bags: Numbers | None = None,
) -> Entries:
    """Send the entries of inner nodes to the children.

    A row whose value is missing goes to all children, in shares like those of the rows whose value is known
    (``"fractions"``), or whole to the heaviest child, the first of several (``"heaviest"``). Where no value is known
    all children get the same.

    Parameters
    ----------
    row_weights : ndarray of float64 or None
        Weight of each row, 1 when left out.
    bags : ndarray of float64 or None
        Weight of each child to take the shares from; counted from the entries when left out.
    """
    child = _children_of_known(entries, branching, columns)
    is_known = child >= 0
    if is_known.all():
        return Entries(entries.rows, child, entries.shares)
    known = Entries(entries.rows[is_known], child[is_known], entries.shares[is_known])
    bags = _bags(known, branching, row_weights) if bags is None else bags
    lost = entries.of(~is_known)
    parts = _to_heaviest(lost, branching, bags) if missing == "heaviest" else _in_fractions(lost, branching, bags)
    return Entries(*(np.concatenate(both) for both in zip(_fields(known), _fields(parts), strict=True)))


def shares_of_leaves(tree: Tree, columns: Sequence[TreeColumn]) -> Entries:
    """Return the leaves that every row reaches, and in which shares.

    A row whose value is missing or unknown to the tree goes to all children, in shares like those of the training rows.
    """
    branching = Branching.of(tree, columns)
    entries = Entries.at(np.zeros(len(columns[0].codes), dtype=np.int64))
    ended = []
    while len(entries.rows):
        goes_on = tree.attribute[entries.nodes] != LEAF
        ended.append(entries.of(~goes_on))
        moving = entries.of(goes_on)
        entries = descend(moving, branching, columns, bags=tree.weights) if len(moving.rows) else moving
    return Entries(*(np.concatenate(parts) for parts in zip(*map(_fields, ended), strict=True)))


def _bags(known: Entries, branching: Branching, row_weights: Numbers | None) -> Numbers:
    n_children = int((branching.first_child + branching.n_children).max())
    weights = known.shares if row_weights is None else row_weights[known.rows] * known.shares
    return np.bincount(known.nodes, weights=weights, minlength=n_children).astype(np.float64, copy=False)


def _fields(entries: Entries) -> tuple[Places, Places, Numbers]:
    return entries.rows, entries.nodes, entries.shares


def _children_of_known(entries: Entries, branching: Branching, columns: Sequence[TreeColumn]) -> Places:
    """Child that each entry goes to, -1 where its value is missing or unknown to the tree."""
    attributes = branching.attribute[entries.nodes]
    child = np.full(len(attributes), LEAF, dtype=np.int64)
    for attribute in np.flatnonzero(np.bincount(attributes)).tolist():
        here = np.flatnonzero(attributes == attribute)
        nodes, column = entries.nodes[here], columns[attribute]
        codes = column.codes[entries.rows[here]].astype(np.int64)
        if column.numbers is not None:
            is_known = codes >= 0
            branch = (codes >= branching.limit[nodes]).astype(np.int64)
        else:
            branch, is_known = branch_of_codes(codes, branching.limit[nodes], branching.n_children[nodes])
        child[here] = np.where(is_known, branching.first_child[nodes] + branch, LEAF)
    return child


def _in_fractions(lost: Entries, branching: Branching, bags: Numbers) -> Entries:
    child, which = branching.children_of(lost.nodes)
    bag = bags[child]
    total = np.bincount(which, weights=bag, minlength=len(lost.nodes))[which]
    evenly = 1.0 / branching.n_children[lost.nodes][which]
    share = np.where(total > SMALL, bag / np.maximum(total, SMALL), evenly)
    goes = share > SMALL
    return Entries(lost.rows[which[goes]], child[goes], (lost.shares[which] * share)[goes])


def _to_heaviest(lost: Entries, branching: Branching, bags: Numbers) -> Entries:
    nodes, which = np.unique(lost.nodes, return_inverse=True)
    child, owner = branching.children_of(nodes)
    order = np.lexsort((child, -bags[child], owner))
    heaviest = child[order[np.searchsorted(owner, np.arange(len(nodes)))]]
    return Entries(lost.rows, heaviest[which], lost.shares)
