"""Tiered generalization where persons have several rows: small leaves borrow until they have rows of k persons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import PrivacyNotAchievableError
from sfumato.learning.c45.tree import Ids, Tree
from sfumato.mechanisms.axes import Axis
from sfumato.mechanisms.recoder import Cover
from sfumato.mechanisms.tree.groups import Indices, RowsByLeaf, nodes_allowed_by_persons
from sfumato.mechanisms.tree.tiered import (
    Numbers,
    Pairs,
    chunks,
    coordinates_of,
    distances_of,
    nearest,
    pairs_with_intervals,
    shared_cover,
)
from sfumato.progress import Progress

_MOST_PAIRS = 1 << 25  # subgroups × rows of a tier, from which on only some of its persons lend


def tiered_cover_by_persons(
    tree: Tree,
    leaf_of_row: Ids,
    group_of_leaf: Ids,
    axes: Sequence[Axis],
    k: int,
    persons: Ids,
    *,
    progress: Progress | None = None,
) -> Cover:
    """Let every leaf of the unpruned tree represent its rows and, if these are of fewer than k persons, borrowed ones.

    As :func:`sfumato.mechanisms.tree.tiered.tiered_cover`, with persons in the place of rows: a subgroup with rows of
    p < k persons borrows from its tier, the rows below the lowest node above it that has rows of at least k. Of each
    person who has no row in the subgroup the nearest row is looked at, and the k - p nearest of these are borrowed.

    Parameters
    ----------
    persons : ndarray of int32, shape (n_rows,)
        Person of each row.

    Raises
    ------
    PrivacyNotAchievableError
        If a group has rows, but of fewer than k persons.

    Notes
    -----
    **Anonymity.** Let row r belong to a subgroup G and s to G or the rows it borrowed, which are together those of at
    least k persons. Released r stands for all of them, s included, and released s stands for G, r included, because it
    belongs to G or was borrowed by G. So original r fits released rows of at least k persons, and released r originals
    of at least k persons. As r and s may be swapped while all other rows stay, each of these pairs is part of a
    perfect matching: over all of these, r gets released rows of at least k persons. What a row stands for besides,
    because others borrowed it, only adds to this: nothing needs repair.

    Where the subgroups that share a tier times its rows exceed 2^25, evenly spaced persons of the tier lend, at least
    25 k of them: nearer rows may be missed. The anonymity does not depend on which rows are borrowed.
    """
    rows = RowsByLeaf.of(tree, leaf_of_row)
    person_at = persons[rows.order].astype(np.int64)
    n_persons = int(person_at.max(initial=0)) + 1
    subgroup_at = np.repeat(np.arange(len(rows.sizes)), rows.sizes)
    own = np.unique(subgroup_at * n_persons + person_at)
    needs = np.maximum(k - np.bincount(own // n_persons, minlength=len(rows.sizes)), 0)
    _check_groups(group_of_leaf[leaf_of_row], persons, k)
    tiers = _tiers(tree, rows, nodes_allowed_by_persons(tree, leaf_of_row, k, persons, ()))
    coordinates = coordinates_of(axes, rows)
    nothing = np.zeros(0, dtype=np.intp)
    found, n_done, n_borrowers = [(nothing, nothing)], 0, int(np.count_nonzero(needs))
    for pairs in _candidates(rows, np.flatnonzero(needs), tiers, person_at, k):
        distances, others = _one_of_each_person(rows, pairs, distances_of(coordinates, pairs), person_at, own)
        chosen = nearest(distances, others, needs[others.borrowers], rows.order)
        found.append((others.borrowers[others.of_pair[chosen]], rows.order[others.places[chosen]]))
        n_done += len(pairs.borrowers)
        if progress is not None:
            progress(n_done, n_borrowers, "subgroups filled")
    return shared_cover(rows, np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found]))


def _check_groups(group_of_row: Ids, persons: Ids, k: int) -> None:
    """Refuse groups of fewer than k persons."""
    pairs = np.unique(np.column_stack([group_of_row, persons]), axis=0)
    _, n_persons = np.unique(pairs[:, 0], return_counts=True)
    if int(n_persons.min(initial=k)) < k:
        raise PrivacyNotAchievableError(
            f"(k, k)-anonymity by persons with k = {k} on groups of which some have fewer persons",
            best_level=int(n_persons.min()),
            hint="prune the tree until every group has k persons",
        )


def _tiers(tree: Tree, rows: RowsByLeaf, is_enough: NDArray[np.bool_]) -> Indices:
    """Lowest node at or above each subgroup that has rows of k persons."""
    tiers = rows.leaves.copy()
    small = np.flatnonzero(~is_enough[tiers])
    while len(small):
        tiers[small] = tree.parent[tiers[small]]
        small = small[~is_enough[tiers[small]]]
    return tiers


def _candidates(rows: RowsByLeaf, borrowers: Indices, tiers: Indices, person_at: Indices, k: int) -> Iterator[Pairs]:
    """Pair each subgroup that borrows with its tier or, where that is large for so many, with some persons of it."""
    nodes, of_node, n_here = np.unique(tiers[borrowers], return_inverse=True, return_counts=True)
    is_large = n_here * rows.n_of_node[nodes] > _MOST_PAIRS
    few = borrowers[~is_large[of_node]]
    yield from pairs_with_intervals(rows, few, tiers[few])
    for number in np.flatnonzero(is_large):
        some, first = borrowers[of_node == number], rows.first_of_node[nodes[number]]
        places = np.arange(first, first + rows.n_of_node[nodes[number]])
        lenders = places[_evenly_spaced(person_at[places], _MOST_PAIRS // len(some), 50 * k)]
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


def _one_of_each_person(
    rows: RowsByLeaf, pairs: Pairs, distances: Numbers, person_at: Indices, own: Indices
) -> tuple[Numbers, Pairs]:
    """Keep the nearest row of each person who has none in the subgroup; the lower row where they are equally near.

    ``own`` holds the pairs of a subgroup and a person with a row there, as one ascending number each.
    """
    n_persons = int(person_at.max()) + 1
    person = person_at[pairs.places]
    keys = pairs.borrowers[pairs.of_pair] * n_persons + person
    is_own = own[np.minimum(np.searchsorted(own, keys), len(own) - 1)] == keys
    others = np.flatnonzero(~is_own)
    by_person = (rows.order[pairs.places[others]], distances[others], person[others], pairs.of_pair[others])
    others = others[np.lexsort(by_person)]
    of_pair, whose = pairs.of_pair[others], person[others]
    is_first = np.append(True, (of_pair[1:] != of_pair[:-1]) | (whose[1:] != whose[:-1]))
    others = others[is_first]
    return distances[others], Pairs.of(rows, pairs.borrowers, pairs.of_pair[others], pairs.places[others])
