"""Tiered generalization: small leaves of a pruned tree borrow rows from their neighbourhood instead of merging."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.contract import Progress
from sfumato.counting.bitsets import distinct_rows
from sfumato.errors import PrivacyNotAchievableError
from sfumato.learning.tree import MISSING, Ids, Tree
from sfumato.recoding.axes import Axis
from sfumato.recoding.cover import Cover

Indices = NDArray[np.intp]
Numbers = NDArray[np.float64]

_MAX_PAIRS = 1 << 17  # subgroups × candidates compared at once; a single subgroup may have more
_MAX_SUBGROUPS = 1 << 10


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

    Time O(rows compared × columns), memory O(rows × columns).

    References
    ----------
    .. [ERP19] Yang, Wang, Hu, Li: A Decision Tree Approach for Assessing and Mitigating Background and Identity
       Disclosure Risks. ICIS 2019.
    """
    rows = _RowsByLeaf.of(tree, leaf_of_row)
    tiers = _tiers(tree, rows, group_of_leaf, k)
    needs = np.maximum(k - rows.sizes, 0)
    coordinates = [c for axis in axes for c in _coordinates(axis, rows)]
    found = [(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp))]
    borrowers = np.flatnonzero(needs)
    n_done = 0
    for pairs in _pairs_in_chunks(rows, tiers, borrowers):
        distances = np.zeros(len(pairs.places))
        for coordinate in coordinates:
            coordinate.add_to(distances, pairs)
        distances[pairs.is_own] = np.inf
        chosen = _nearest(distances, pairs, needs[pairs.borrowers], rows.order)
        found.append((pairs.borrowers[pairs.of_pair[chosen]], rows.order[pairs.places[chosen]]))
        n_done += len(pairs.borrowers)
        if progress is not None:
            progress(n_done, len(borrowers), "subgroups filled")
    return _cover(rows, np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found]))


@dataclass(frozen=True, eq=False, repr=False)
class _RowsByLeaf:
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
    def of(cls, tree: Tree, leaf_of_row: Ids) -> _RowsByLeaf:
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


def _tiers(tree: Tree, rows: _RowsByLeaf, group_of_leaf: Ids, k: int) -> Indices:
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


@dataclass(frozen=True, eq=False, repr=False)
class _Pairs:
    """Some subgroups that borrow, and each with every place of its tier, its own places among them."""

    borrowers: Indices
    own: Indices
    of_own: Indices
    firsts: Indices
    places: Indices
    of_pair: Indices
    is_own: NDArray[np.bool_]


def _pairs_in_chunks(rows: _RowsByLeaf, tiers: Indices, borrowers: Indices) -> Iterator[_Pairs]:
    n_in_tier = rows.n_of_node[tiers[borrowers]]
    ends = np.cumsum(n_in_tier)
    a = 0
    while a < len(borrowers):
        full = int(np.searchsorted(ends, ends[a] - n_in_tier[a] + _MAX_PAIRS, side="right"))
        b = max(a + 1, min(full, a + _MAX_SUBGROUPS))
        some = borrowers[a:b]
        starts, sizes = rows.starts[some], rows.sizes[some]
        firsts, of_pair, places = _ranges(rows.first_of_node[tiers[some]], n_in_tier[a:b])
        _, of_own, own = _ranges(starts, sizes)
        is_own = (places >= starts[of_pair]) & (places < (starts + sizes)[of_pair])
        yield _Pairs(some, own, of_own, firsts, places, of_pair, is_own)
        a = b


def _ranges(starts: Indices, lengths: Indices) -> tuple[Indices, Indices, Indices]:
    """Put ranges one after the other: where each begins, which one an entry is of, and the entries."""
    firsts = np.cumsum(lengths) - lengths
    owner = np.repeat(np.arange(len(lengths)), lengths)
    return firsts, owner, np.arange(len(owner)) + (starts - firsts)[owner]


@dataclass(frozen=True, eq=False, repr=False)
class _Position:
    """A coordinate with a number at each place and a mean in each subgroup; not-a-number is 0 away from anything."""

    numbers: Numbers
    means: Numbers

    @classmethod
    def of(cls, numbers: Numbers, rows: _RowsByLeaf) -> _Position:
        is_known = ~np.isnan(numbers)
        sums = np.add.reduceat(np.where(is_known, numbers, 0.0), rows.starts)
        n_known = np.add.reduceat(is_known.astype(np.intp), rows.starts)
        means = np.divide(sums, n_known, out=np.full(len(sums), np.nan), where=n_known > 0)
        return cls(numbers, means)

    def add_to(self, distances: Numbers, pairs: _Pairs) -> None:
        gaps = self.numbers[pairs.places]
        gaps -= self.means[pairs.borrowers][pairs.of_pair]
        gaps *= gaps
        gaps[np.isnan(gaps)] = 0.0
        distances += gaps


@dataclass(frozen=True, eq=False, repr=False)
class _Value:
    """Coordinates of a categorical column, with a code at each place.

    A value v is (1 - 2 p(v) + Σ p²) / 2 away from a subgroup with the shares p; all but - p(v) is the same for all
    candidates of the subgroup.
    """

    codes: NDArray[np.int32]
    n_values: int

    def add_to(self, distances: Numbers, pairs: _Pairs) -> None:
        used, own_codes = np.unique(self.codes[pairs.own], return_inverse=True)
        n_used, n_borrowers = len(used), len(pairs.borrowers)
        column_of = np.full(self.n_values, n_used)
        column_of[used] = np.arange(n_used)
        width = n_used + 1  # the last stands for values that no borrower has
        counts = np.bincount(pairs.of_own * width + own_codes, minlength=n_borrowers * width)
        shares = counts / np.repeat(np.bincount(pairs.of_own), width)
        distances -= shares[pairs.of_pair * width + column_of[self.codes[pairs.places]]]


def _coordinates(axis: Axis, rows: _RowsByLeaf) -> list[_Position | _Value]:
    codes = axis.codes[rows.order]
    if axis.positions is None:
        return [_Value(np.where(codes == MISSING, axis.n_values, codes), axis.n_values + 1)]
    scaled = np.append((axis.positions - axis.positions[:1]) / (axis.span or 1.0), np.nan)
    position = _Position.of(scaled[codes], rows)
    if not axis.has_missing:
        return [position]
    return [position, _Position.of((codes == MISSING).astype(np.float64), rows)]


def _nearest(distances: Numbers, pairs: _Pairs, needs: Indices, order: Indices) -> Indices:
    """Pairs with the smallest distances, as many for each borrower as it needs; the lower row where they are equal."""
    bounds = np.append(pairs.firsts, len(distances)).tolist()
    farthest = np.array(
        [
            np.partition(distances[a:b], n - 1)[n - 1]
            for a, b, n in zip(bounds[:-1], bounds[1:], needs.tolist(), strict=True)
        ]
    )[pairs.of_pair]
    is_nearer = distances < farthest
    n_left = needs - np.add.reduceat(is_nearer.astype(np.intp), pairs.firsts)
    tied = np.flatnonzero(distances == farthest)
    tied = tied[np.lexsort((order[pairs.places[tied]], pairs.of_pair[tied]))]
    owner = pairs.of_pair[tied]
    rank = np.arange(len(tied)) - np.searchsorted(owner, owner)
    return np.concatenate([np.flatnonzero(is_nearer), tied[rank < n_left[owner]]])


def _cover(rows: _RowsByLeaf, borrowers: Indices, borrowed: Indices) -> Cover:
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
