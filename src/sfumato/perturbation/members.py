"""Greedy k-member clustering of binary rows: groups of at least k rows that agree on as many bits as possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.contract import Progress
from sfumato.counting.bitsets import distinct_rows

Bits = NDArray[np.int32]

_REPORT_EVERY = 256


def k_member_clusters(
    matrix: sp.csc_matrix,
    k: int,
    rng: np.random.Generator,
    *,
    keep_frequent: bool = False,
    progress: Progress | None = None,
) -> NDArray[np.intp]:
    """Put every row into a cluster of at least k rows, greedily keeping the bits few on which a cluster disagrees.

    The greedy k-member algorithm of [Byun07]_ with Hamming distance, and as the information loss of a cluster the
    number of bits on which its members disagree. From a row drawn at random, the row farthest from it becomes the
    first seed. A seed takes in, one after the other, the k - 1 rows that add fewest disagreeing bits; the next seed is
    the row farthest from the last one taken. The fewer than k rows left over join the clusters to which they add
    fewest disagreeing bits.

    Parameters
    ----------
    matrix : csc_matrix
        Rows × bits, canonical 0/1, with at least k rows.
    keep_frequent : bool
        Whether rows that equal k - 1 others already are clusters of their own from the start, which is not in
        [Byun07]_: there, those that are left over when equal rows have been taken k by k end up among strangers.

    Returns
    -------
    array of int
        Cluster of each row, numbered from 0 in the order in which the clusters were made.

    Notes
    -----
    Equal rows are handled together, so the time is O(distinct rows × ones of the distinct rows) at worst, less when
    rows repeat. Distinct rows are looked at in the order of their bits, whatever the order of the rows.

    **Deviations.** [Byun07]_ does not say how ties are broken: a row equal to the one taken last goes first, then the
    row that comes first by its bits. It takes the leftover rows in random order; here they come in the order of their
    bits.
    """
    patterns, counts, inverse = _sorted_patterns(matrix)
    search = _Search(patterns, counts, k)
    if keep_frequent:
        search.keep_frequent()
    n_left = int(search.left.sum())
    last = int(np.searchsorted(np.cumsum(search.left), rng.integers(max(n_left, 1)), side="right"))
    n_clusters = n_left // k
    for made in range(n_clusters):
        last = search.grow(search.farthest_from(last))
        if progress and made % _REPORT_EVERY == 0:
            progress(made, n_clusters, "clusters made")
    search.place_leftovers()
    return _cluster_of_rows(search.clusters, inverse)


def _sorted_patterns(matrix: sp.csc_matrix) -> tuple[sp.csr_matrix, NDArray[np.int64], NDArray[np.intp]]:
    """Distinct rows ordered by their ones, how often each occurs, and which one each row is."""
    distinct = distinct_rows(matrix)
    patterns = sp.csr_matrix(matrix, dtype=np.int32)[distinct.representatives]
    patterns.sort_indices()
    order = np.array(sorted(range(patterns.shape[0]), key=lambda i: _bits(patterns, i).tolist()), dtype=np.intp)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return patterns[order], distinct.counts[order], rank[distinct.inverse]


def _bits(patterns: sp.csr_matrix, i: int) -> Bits:
    found: Bits = patterns.indices[patterns.indptr[i] : patterns.indptr[i + 1]]
    return found


@dataclass
class _Cluster:
    """Which patterns a cluster holds and how often, the bits that all its members have, and those that any has."""

    members: list[tuple[int, int]]
    common: Bits
    union: Bits

    def take(self, pattern: int, n: int, bits: Bits) -> None:
        self.members.append((pattern, n))
        self.common = np.intersect1d(self.common, bits, assume_unique=True)
        self.union = np.union1d(self.union, bits)


class _Search:
    """Patterns with the rows that are still in no cluster.

    A row with the bits x adds ``|x - union| + |common - x|`` disagreeing bits to a cluster: with a weight of 1 for the
    bits of the union and 2 for the common ones that is ``|x| + |common| - weight of x``.
    """

    def __init__(self, patterns: sp.csr_matrix, counts: NDArray[np.int64], k: int) -> None:
        self.k = k
        self.patterns = patterns
        self.left = counts.copy()
        self.clusters: list[_Cluster] = []
        self._alive = np.arange(len(counts))
        self._rows, self._sizes = patterns, np.diff(patterns.indptr)

    def keep_frequent(self) -> None:
        """Make a cluster of every pattern with at least k rows."""
        for pattern in np.flatnonzero(self.left >= self.k).tolist():
            bits = _bits(self.patterns, pattern)
            self.clusters.append(_Cluster([(pattern, int(self.left[pattern]))], bits, bits))
            self.left[pattern] = 0

    def farthest_from(self, pattern: int) -> int:
        """Pattern with rows left that is farthest from a pattern in Hamming distance; the first of equals."""
        self._forget_used()
        weights = np.zeros(self.patterns.shape[1], dtype=np.int32)
        weights[_bits(self.patterns, pattern)] = 2
        distance = self._sizes - self._rows @ weights
        distance[self.left[self._alive] == 0] = np.iinfo(distance.dtype).min
        return int(self._alive[np.argmax(distance)])

    def grow(self, seed: int) -> int:
        """Make a cluster of k rows around a pattern; returns the pattern that was taken last."""
        bits = _bits(self.patterns, seed)
        cluster = _Cluster([], bits, bits)
        weights = np.zeros(self.patterns.shape[1], dtype=np.int32)
        chosen, n_rows = seed, 0
        while True:
            n_taken = min(self.k - n_rows, int(self.left[chosen]))
            cluster.take(chosen, n_taken, _bits(self.patterns, chosen))
            self.left[chosen] -= n_taken
            n_rows += n_taken
            if n_rows == self.k:
                self.clusters.append(cluster)
                return chosen
            weights[cluster.union] = 1
            weights[cluster.common] = 2
            added = self._sizes - self._rows @ weights
            added[self.left[self._alive] == 0] = np.iinfo(added.dtype).max
            chosen = int(self._alive[np.argmin(added)])

    def place_leftovers(self) -> None:
        """Let each remaining row join the cluster to which it adds fewest disagreeing bits; the first of equals."""
        for pattern in np.flatnonzero(self.left).tolist():
            bits = _bits(self.patterns, pattern)
            has = np.zeros(self.patterns.shape[1], dtype=np.bool_)
            has[bits] = True
            added = [
                len(bits) - has[cluster.union].sum() + len(cluster.common) - has[cluster.common].sum()
                for cluster in self.clusters
            ]
            self.clusters[int(np.argmin(added))].take(pattern, int(self.left[pattern]), bits)
            self.left[pattern] = 0

    def _forget_used(self) -> None:
        """Look no longer at patterns without rows once they are half of all."""
        still = self.left[self._alive] > 0
        if 2 * int(still.sum()) <= len(still):
            self._alive = self._alive[still]
            self._rows = self.patterns[self._alive]
            self._sizes = np.diff(self._rows.indptr)


def _cluster_of_rows(clusters: Sequence[_Cluster], pattern_of_row: NDArray[np.intp]) -> NDArray[np.intp]:
    """Cluster of each row; where equal rows went to several clusters, earlier rows go to earlier clusters."""
    taken = [(pattern, number, n) for number, c in enumerate(clusters) for pattern, n in c.members]
    taken.sort()
    by_pattern = np.repeat([number for _, number, _ in taken], [n for _, _, n in taken])
    of_row = np.empty(len(pattern_of_row), dtype=np.intp)
    of_row[np.argsort(pattern_of_row, kind="stable")] = by_pattern
    return of_row
