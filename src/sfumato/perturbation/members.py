"""Greedy k-member clustering of binary rows: groups of at least k rows that agree on as many bits as possible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.contract import Progress
from sfumato.counting.bitsets import distinct_rows
from sfumato.perturbation.patterns import MOST_ADDED, Cluster, ones_of, patterns_of

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
    rows repeat: the row farthest from another one stays so until all its equals are taken. Distinct rows are looked at
    in the order of their bits, whatever the order of the rows.

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
    order = np.array(sorted(range(patterns.shape[0]), key=lambda i: ones_of(patterns, i).tolist()), dtype=np.intp)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return patterns[order], distinct.counts[order], rank[distinct.inverse]


class _Search:
    """Patterns with the rows that are still in no cluster."""

    def __init__(self, patterns: sp.csr_matrix, counts: NDArray[np.int64], k: int) -> None:
        self.k = k
        self.left = counts.copy()
        self.clusters: list[Cluster] = []
        self._patterns = self._rows = patterns_of(patterns)
        self._alive = np.arange(len(counts))
        self._is_used, self._n_used = np.zeros(len(counts), dtype=np.bool_), 0
        self._farthest: dict[int, int] = {}

    def keep_frequent(self) -> None:
        """Make a cluster of every pattern with at least k rows."""
        for pattern in np.flatnonzero(self.left >= self.k).tolist():
            bits = self._patterns.bits(pattern)
            self.clusters.append(Cluster([], bits, bits))
            self._put(self.clusters[-1], pattern, int(self.left[pattern]))

    def farthest_from(self, pattern: int) -> int:
        """Pattern with rows left that is farthest from a pattern in Hamming distance; the first of equals.

        It stays the farthest until it has no rows left, for the others only become fewer.
        """
        found = self._farthest.get(pattern)
        if found is None or not self.left[found]:
            self._forget_used()
            bits = self._patterns.bits(pattern)
            distance = self._rows.added(bits, bits)
            distance[self._is_used] = -1
            found = self._farthest[pattern] = int(self._alive[np.argmax(distance)])
        return found

    def grow(self, seed: int) -> int:
        """Make a cluster of k rows around a pattern; returns the pattern that was taken last."""
        bits = self._patterns.bits(seed)
        cluster = Cluster([], bits, bits)
        chosen, n_rows = seed, 0
        while True:
            n_taken = min(self.k - n_rows, int(self.left[chosen]))
            self._put(cluster, chosen, n_taken)
            n_rows += n_taken
            if n_rows == self.k:
                self.clusters.append(cluster)
                return chosen
            added = self._rows.added(cluster.common, cluster.union)
            added[self._is_used] = MOST_ADDED
            chosen = int(self._alive[np.argmin(added)])

    def place_leftovers(self) -> None:
        """Let each remaining row join the cluster to which it adds fewest disagreeing bits; the first of equals."""
        for pattern in np.flatnonzero(self.left).tolist():
            added = self._patterns.added_to(self.clusters, self._patterns.bits(pattern))
            self._put(self.clusters[int(np.argmin(added))], pattern, int(self.left[pattern]))

    def _put(self, cluster: Cluster, pattern: int, n: int) -> None:
        if cluster.members:
            bits = self._patterns.bits(pattern)
            cluster.common = self._patterns.in_both(cluster.common, bits)
            cluster.union = self._patterns.in_any(cluster.union, bits)
        cluster.members.append((pattern, n))
        self.left[pattern] -= n
        if not self.left[pattern]:
            self._is_used[np.searchsorted(self._alive, pattern)] = True
            self._n_used += 1

    def _forget_used(self) -> None:
        """Look no longer at patterns without rows once they are half of all."""
        if 2 * self._n_used >= len(self._alive):
            self._alive = self._alive[~self._is_used]
            self._is_used, self._n_used = np.zeros(len(self._alive), dtype=np.bool_), 0
            self._rows = self._patterns.keep(self._alive)


def _cluster_of_rows(clusters: Sequence[Cluster], pattern_of_row: NDArray[np.intp]) -> NDArray[np.intp]:
    """Cluster of each row; where equal rows went to several clusters, earlier rows go to earlier clusters."""
    taken = [(pattern, number, n) for number, c in enumerate(clusters) for pattern, n in c.members]
    taken.sort()
    by_pattern = np.repeat([number for _, number, _ in taken], [n for _, _, n in taken])
    of_row = np.empty(len(pattern_of_row), dtype=np.intp)
    of_row[np.argsort(pattern_of_row, kind="stable")] = by_pattern
    return of_row
