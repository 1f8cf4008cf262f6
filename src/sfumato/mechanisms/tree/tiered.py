"""Tiered generalization: small leaves of a pruned tree borrow rows from their neighbourhood instead of merging."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.counting.bitsets import distinct_rows
from sfumato.errors import PrivacyNotAchievableError
from sfumato.learning.c45.tree import Ids, Tree
from sfumato.mechanisms.axes import Axis
from sfumato.mechanisms.recoder import Cover
from sfumato.mechanisms.tree.groups import Indices, RowsByLeaf, nodes_allowed_by_persons
from sfumato.mechanisms.tree.lenders import (
    Coordinates,
    Lenders,
    Numbers,
    Pairs,
    chunks,
    coordinates_of,
    distances_of,
    nearest,
    pairs_with_intervals,
)
from sfumato.progress import Progress

_MANY_PAIRS = 1 << 20  # subgroups × rows of a tier, from which on its rows are looked up
_MOST_PAIRS_BY_PERSONS = 1 << 25  # subgroups × rows of a tier, from which on only some of its persons lend


def uniform_cover(leaf_of_row: Ids, group_of_leaf: Ids) -> Cover:
    """Let every leaf of the pruned tree represent its own rows: uniform generalization of [ERP19]_.

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
    persons: Ids | None = None,
    progress: Progress | None = None,
) -> Cover:
    r"""Let every leaf of the unpruned tree represent its own rows and, where these are fewer than k, borrowed ones.

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
    persons : ndarray of int32, shape (n_rows,), or None
        Person of each row, where some have several. Persons then take the place of rows: a subgroup with rows of
        p < k persons borrows from the rows below the lowest node above it that has rows of at least k. Of each person
        who has no row in the subgroup the nearest row is looked at, and the k - p nearest of these are borrowed.

    Raises
    ------
    PrivacyNotAchievableError
        If a group has rows, but fewer than k, or of fewer than k persons.

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

    *By persons* the same holds of rows of at least k persons: over all perfect matchings, r gets released rows of at
    least k persons. What a row stands for besides, because others borrowed it, only adds to this.

    **Deviations.** Step 3 of [ERP19]_ generalizes rows nobody borrowed to the values of their subgroup, without the
    borrowed rows; then a released row fits as few originals as the subgroup has. Its Table 1 includes them, as here.

    Where the subgroups that share a tier times its rows exceed 2^20, rows are compared only if a lower bound of their
    distance allows for them to be borrowed, which changes nothing. Beyond 2^24, however, at most max(2^16, 50 k) rows
    of a tier that differ in values which many have are lent, and a subgroup is compared with about max(5000, 50 k) of
    them, those whose bounds are the lowest (besides all that share a value with it which few have): nearer ones may be
    missed. By persons, beyond 2^25 evenly spaced ones of a tier lend, at least 25 k of them. The anonymity does not
    depend on which rows are borrowed.

    Time O(rows compared × columns), memory O(rows × columns).

    References
    ----------
    .. [ERP19] Yang, Wang, Hu, Li: A Decision Tree Approach for Assessing and Mitigating Background and Identity
       Disclosure Risks. ICIS 2019.
    """
    rows = RowsByLeaf.of(tree, leaf_of_row)
    if persons is None:
        in_group = rows.n_of_node[group_of_leaf[rows.leaves]]
        _check_groups(in_group, k, "", "rows")
        is_enough, n_own, own = rows.n_of_node >= k, rows.sizes, None
    else:
        pairs_in_groups = np.unique(np.column_stack([group_of_leaf[leaf_of_row], persons]), axis=0)
        _check_groups(np.unique(pairs_in_groups[:, 0], return_counts=True)[1], k, " by persons", "persons")
        is_enough = nodes_allowed_by_persons(tree, leaf_of_row, k, persons, ())
        own = _OwnPersons.of(rows, persons)
        n_own = own.n_persons_of_subgroups(len(rows.sizes))
    needs = np.maximum(k - n_own, 0)
    tiers = _tiers(tree, rows, is_enough)
    coordinates = coordinates_of(axes, rows)
    found = [(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp))]
    n_borrowers, n_done = int(np.count_nonzero(needs)), 0
    for pairs in _candidates(rows, np.flatnonzero(needs), tiers, coordinates, k, own):
        distances, others = distances_of(coordinates, pairs), pairs
        if own is not None:
            distances, others = own.nearest_of_others(rows, pairs, distances)
        chosen = nearest(distances, others, needs[others.borrowers], rows.order)
        found.append((others.borrowers[others.of_pair[chosen]], rows.order[others.places[chosen]]))
        n_done += len(pairs.borrowers)
        if progress is not None:
            progress(n_done, n_borrowers, "subgroups filled")
    return shared_cover(rows, np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found]))


def _check_groups(n_in_group: Indices, k: int, by: str, units: str) -> None:
    """Refuse groups of fewer than k rows or persons."""
    if int(n_in_group.min(initial=k)) < k:
        raise PrivacyNotAchievableError(
            f"(k, k)-anonymity{by} with k = {k} on groups of which some have fewer {units}",
            best_level=int(n_in_group.min()),
            hint=f"prune the tree until every group has k {units}",
        )


def _tiers(tree: Tree, rows: RowsByLeaf, is_enough: NDArray[np.bool_]) -> Indices:
    """Lowest node at or above each subgroup that has rows, or persons, enough."""
    tiers = rows.leaves.copy()
    small = np.flatnonzero(~is_enough[tiers])
    while len(small):
        tiers[small] = tree.parent[tiers[small]]
        small = small[~is_enough[tiers[small]]]
    return tiers


def _candidates(
    rows: RowsByLeaf, borrowers: Indices, tiers: Indices, coordinates: Coordinates, k: int, own: _OwnPersons | None
) -> Iterator[Pairs]:
    """Pair each subgroup that borrows with its tier or, where that is large for so many, with a part of it.

    Of rows that is what may be near; of persons some, evenly spaced.
    """
    nodes, of_node, n_here = np.unique(tiers[borrowers], return_inverse=True, return_counts=True)
    is_large = n_here * rows.n_of_node[nodes] > (_MANY_PAIRS if own is None else _MOST_PAIRS_BY_PERSONS)
    few = borrowers[~is_large[of_node]]
    yield from pairs_with_intervals(rows, few, tiers[few])
    for number in np.flatnonzero(is_large):
        some, node = borrowers[of_node == number], int(nodes[number])
        if own is None:
            yield from Lenders.of(rows, node, coordinates, k, len(some)).candidates(some)
            continue
        places = np.arange(rows.first_of_node[node], rows.first_of_node[node] + rows.n_of_node[node])
        lenders = places[_evenly_spaced(own.person_at[places], _MOST_PAIRS_BY_PERSONS // len(some), 50 * k)]
        for part in chunks(np.full(len(some), len(lenders))):
            of_pair = np.repeat(np.arange(len(some[part])), len(lenders))
            yield Pairs.of(rows, some[part], of_pair, np.tile(lenders, len(some[part])))


def _evenly_spaced(persons: Indices, n_rows: int, least: int) -> Indices:
    """Rows of evenly spaced persons, in the order of their first rows: about so many.

    They are of at least half the least number of persons, or of all where there are no more than that.
    """
    known, first, number = np.unique(persons, return_index=True, return_inverse=True)
    rank = np.empty(len(known), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(known))
    n_kept = max(n_rows * len(known) // len(persons), least)
    return np.flatnonzero(rank[number.reshape(-1)] % -(-len(known) // n_kept) == 0)


@dataclass(frozen=True, eq=False, repr=False)
class _OwnPersons:
    """Person at each place, and the pairs of a subgroup and a person with a row there, as one ascending number each."""

    person_at: Indices
    n_persons: int
    pairs: Indices

    @classmethod
    def of(cls, rows: RowsByLeaf, persons: Ids) -> _OwnPersons:
        person_at = persons[rows.order].astype(np.int64)
        n_persons = int(person_at.max(initial=0)) + 1
        subgroup_at = np.repeat(np.arange(len(rows.sizes)), rows.sizes)
        return cls(person_at, n_persons, np.unique(subgroup_at * n_persons + person_at))

    def n_persons_of_subgroups(self, n_subgroups: int) -> Indices:
        """Count the persons who have a row in each subgroup."""
        return np.bincount(self.pairs // self.n_persons, minlength=n_subgroups)

    def nearest_of_others(self, rows: RowsByLeaf, pairs: Pairs, distances: Numbers) -> tuple[Numbers, Pairs]:
        """Keep the nearest row of each person who has none in the subgroup; the lower row where two are as near."""
        person = self.person_at[pairs.places]
        keys = pairs.borrowers[pairs.of_pair] * self.n_persons + person
        is_own = self.pairs[np.minimum(np.searchsorted(self.pairs, keys), len(self.pairs) - 1)] == keys
        others = np.flatnonzero(~is_own)
        by_person = (rows.order[pairs.places[others]], distances[others], person[others], pairs.of_pair[others])
        others = others[np.lexsort(by_person)]
        of_pair, whose = pairs.of_pair[others], person[others]
        others = others[np.append(True, (of_pair[1:] != of_pair[:-1]) | (whose[1:] != whose[:-1]))]
        return distances[others], Pairs.of(rows, pairs.borrowers, pairs.of_pair[others], pairs.places[others])


def shared_cover(rows: RowsByLeaf, borrowers: Indices, borrowed: Indices) -> Cover:
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
