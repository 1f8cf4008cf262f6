"""Tiered generalization: small leaves of a pruned tree borrow rows from their neighbourhood instead of merging."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse as sp

from sfumato.contract import Progress
from sfumato.counting.bitsets import distinct_rows
from sfumato.errors import PrivacyNotAchievableError
from sfumato.learning.tree import Ids, Tree
from sfumato.recoding.axes import Axis
from sfumato.recoding.cover import Cover
from sfumato.recoding.lenders import Lenders
from sfumato.recoding.nearness import Coordinates, Pairs, coordinates_of, distances_of, nearest, pairs_with_intervals
from sfumato.recoding.subgroups import Indices, RowsByLeaf

_MANY_PAIRS = 1 << 20  # subgroups × rows of a tier, from which on its rows are looked up


def uniform_cover(leaf_of_row: Ids, group_of_leaf: Ids) -> Cover:
    """Let every leaf of the pruned tree stand for its own rows: uniform generalization of [ERP19]_.

    Examples
    --------
    >>> uniform_cover(np.array([3, 4, 2, 3]), np.array([-1, 1, 2, 1, 1])).of_row.tolist()
    [0, 0, 1, 0]
    """
    return Cover.of_groups(group_of_leaf[leaf_of_row])


def tiered_cover(
    tree: Tree,
    leaf_of_row: Ids,
    group_of_leaf: Ids,
    axes: Sequence[Axis],
    k: int,
    *,
    progress: Progress | None = None,
) -> Cover:
    r"""Let every leaf of the unpruned tree stand for its own rows and, where these are fewer than k, for borrowed ones.

    Section "Tiered Generalization" of [ERP19]_. The *subgroups* of a group are the leaves below it that have rows. A
    subgroup of n < k rows borrows the k - n rows nearest to its centroid from its *tier*: the rows below the lowest
    node above it that has at least k. A row stands for

    - the values of its subgroup and of the rows this borrowed, and
    - the values of every subgroup that borrowed it (without what those borrowed besides).

    Parameters
    ----------
    tree : Tree
        Before pruning.
    leaf_of_row : ndarray of int32, shape (n_rows,)
        Leaf of each row.
    group_of_leaf : ndarray of int32, shape (n_nodes,)
        For each leaf, the node above it (or itself) that is a leaf of the pruned tree.
    axes : sequence of Axis
        Columns in which rows are near.
    k : int

    Raises
    ------
    PrivacyNotAchievableError
        If a group has rows, but fewer than k.

    Notes
    -----
    **Distance.** Euclidean; a column with positions runs from 0 to 1. A categorical column has a coordinate for each
    value, missing among them, times :math:`1/\sqrt 2`, so that two different values are 1 apart. In a column with
    positions missing is a second coordinate, 0 or 1, and a row without a number is taken to be at the subgroup's mean
    (in a subgroup without numbers, every row is). Equally near rows are taken in their order.

    **Anonymity.** The result is (k, k)-anonymous and globally (1, k)-anonymous, not k-anonymous. Let row r belong to a
    subgroup G and s to G or the rows it borrowed, of which there are k or more together. Released r stands for all of
    them, s included. Released s stands for G, r included, because it belongs to G or was borrowed by G. So original r
    fits at least k released rows and released r at least k originals; and as r and s may be swapped while all other
    rows stay, each of these pairs is part of a perfect matching.

    **Deviations.** Step 3 of [ERP19]_ generalizes rows nobody borrowed to the values of their subgroup, without the
    borrowed rows; then a released row fits as few originals as the subgroup has. Its Table 1 includes them, as here.

    Where the subgroups that share a tier times its rows exceed 2^20, rows are compared only if a lower bound of their
    distance allows for them to be borrowed, which changes nothing. Beyond 2^24, however, at most max(2^16, 50 k) rows
    of a tier that differ in values which many have are lent, and a subgroup is compared with about max(5000, 50 k) of
    them, those whose bounds are the lowest (besides all that share a value with it which few have): nearer ones may be
    missed. The anonymity does not depend on which rows are borrowed.

    Time O(rows compared × columns), memory O(rows × columns).

    References
    ----------
    .. [ERP19] Yang, Wang, Hu, Li: A Decision Tree Approach for Assessing and Mitigating Background and Identity
       Disclosure Risks. ICIS 2019.
    """
    rows = RowsByLeaf.of(tree, leaf_of_row)
    tiers = _tiers(tree, rows, group_of_leaf, k)
    needs = np.maximum(k - rows.sizes, 0)
    coordinates = coordinates_of(axes, rows)
    found = [(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp))]
    n_borrowers, n_done = int(np.count_nonzero(needs)), 0
    for pairs in _candidates(rows, tiers, coordinates, k):
        chosen = nearest(distances_of(coordinates, pairs), pairs, needs[pairs.borrowers], rows.order)
        found.append((pairs.borrowers[pairs.of_pair[chosen]], rows.order[pairs.places[chosen]]))
        n_done += len(pairs.borrowers)
        if progress is not None:
            progress(n_done, n_borrowers, "subgroups filled")
    return _cover(rows, np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found]))


def _tiers(tree: Tree, rows: RowsByLeaf, group_of_leaf: Ids, k: int) -> Indices:
    """Lowest node at or above each subgroup that has k rows."""
    n_in_group = rows.n_of_node[group_of_leaf[rows.leaves]]
    if len(n_in_group) and n_in_group.min() < k:
        raise PrivacyNotAchievableError(
            f"(k, k)-anonymity with k = {k} on groups of which some have fewer rows",
            best_level=int(n_in_group.min()),
            hint="prune the tree until every group has k rows",
        )
    tiers = rows.leaves.copy()
    small = np.flatnonzero(rows.n_of_node[tiers] < k)
    while len(small):
        tiers[small] = tree.parent[tiers[small]]
        small = small[rows.n_of_node[tiers[small]] < k]
    return tiers


def _candidates(rows: RowsByLeaf, tiers: Indices, coordinates: Coordinates, k: int) -> Iterator[Pairs]:
    """Pair each subgroup that borrows with its tier or, where that is large for so many, with what may be near."""
    borrowers = np.flatnonzero(rows.sizes < k)
    nodes, of_node, n_here = np.unique(tiers[borrowers], return_inverse=True, return_counts=True)
    is_large = n_here * rows.n_of_node[nodes] > _MANY_PAIRS
    few = borrowers[~is_large[of_node]]
    yield from pairs_with_intervals(rows, few, tiers[few])
    for number in np.flatnonzero(is_large):
        some = borrowers[of_node == number]
        yield from Lenders.of(rows, int(nodes[number]), coordinates, k, len(some)).candidates(some)


def _cover(rows: RowsByLeaf, borrowers: Indices, borrowed: Indices) -> Cover:
    """Make a part of each subgroup with what it borrowed and, for the rows it borrowed, one of each borrower alone."""
    n_rows, n_subgroups = len(rows.order), len(rows.sizes)
    home = np.empty(n_rows, dtype=np.int32)
    home[rows.order] = np.repeat(np.arange(n_subgroups), rows.sizes)
    alone, number = np.unique(borrowers, return_inverse=True)
    own = np.flatnonzero(np.isin(home, alone))
    n_parts = n_subgroups + len(alone)
    members = _incidence(
        np.concatenate([home, borrowers, n_subgroups + np.searchsorted(alone, home[own])]),
        np.concatenate([np.arange(n_rows), borrowed, own]),
        (n_parts, n_rows),
    )
    parts_of_row = _incidence(
        np.concatenate([np.arange(n_rows), borrowed]), np.concatenate([home, n_subgroups + number]), (n_rows, n_parts)
    )
    classes = distinct_rows(parts_of_row)
    return Cover(classes.inverse.astype(np.int32), parts_of_row[classes.representatives], members, home)


def _incidence(rows: Indices, columns: Indices, shape: tuple[int, int]) -> sp.csr_matrix:
    return sp.csr_matrix((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=shape)
