"""Strongly connected components of originals and released classes."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from sfumato.audit.bit_rows import Words, ones, packed

Ids = NDArray[np.int64]

_EDGES_AT_ONCE = 1 << 22
_MOST_EDGES = 1 << 24
_LARGE_SHARE = 1 / 16


class Components:
    """Strongly connected components of originals and released classes; matched ones are in one from the start.

    Edges are listed between components only. Should more than ``_MOST_EDGES`` remain after joining, the others are left
    out: components can only become smaller by it, so that a level is found too low, never too high.
    """

    def __init__(self, matched: Ids, matched_class: Ids, n_originals: int, n_classes: int) -> None:
        n = n_originals + n_classes
        links = sp.csr_array((np.ones(len(matched)), (matched, n_originals + matched_class)), shape=(n, n))
        self.n, labels = connected_components(links, directed=False)
        self.of_original, self.of_class = labels[:n_originals].astype(np.int64), labels[n_originals:].astype(np.int64)
        self._edges: list[Ids] = []
        self._limit, self._is_full = _EDGES_AT_ONCE, False
        self._find_large()

    def _find_large(self) -> None:
        """Remember the classes of large components: there is no need to list edges inside of them."""
        sizes = np.bincount(self.of_class, minlength=self.n)
        large = np.flatnonzero(sizes > _LARGE_SHARE * len(self.of_class))
        self._large = [int(component) for component in large]

    def add(self, originals: Ids, classes: Ids, words: Words) -> None:
        """Add the edges from some originals, those of one component side by side, to the classes of their bits."""
        if self._is_full:
            return
        tails = self.of_original[originals]
        starts = np.flatnonzero(np.diff(tails, prepend=-1))
        words, tails = np.bitwise_or.reduceat(words, starts, axis=0), tails[starts]
        of_bit = self.of_class[classes]
        for component in self._large:
            is_inside = tails == component
            if is_inside.any():
                words[is_inside] &= packed(of_bit != component)
        rows, bits = ones(words)
        tails, heads = tails[rows], of_bit[bits]
        self._edges.append((tails * self.n + heads)[tails != heads])
        if sum(map(len, self._edges)) > self._limit:
            self.join()

    def join(self) -> None:
        """Make one component of those that reach each other by the edges so far."""
        edges = _distinct(np.concatenate([*self._edges, np.zeros(0, dtype=np.int64)]))
        tails, heads = edges // self.n, edges % self.n
        graph = sp.csr_array((np.ones(len(edges), dtype=np.int8), (tails, heads)), shape=(self.n, self.n))
        self.n, joined = connected_components(graph, directed=True, connection="strong")
        joined = joined.astype(np.int64)
        self.of_original, self.of_class = joined[self.of_original], joined[self.of_class]
        tails, heads = joined[tails], joined[heads]
        kept = _distinct((tails * self.n + heads)[tails != heads])
        self._is_full = len(kept) > _MOST_EDGES
        self._edges = [] if self._is_full else [kept]
        self._limit = _EDGES_AT_ONCE + len(kept)
        self._find_large()


def _distinct(numbers: Ids) -> Ids:
    """Sort and leave out repetitions (NumPy's ``unique`` hashes, which is slower for many distinct numbers)."""
    numbers = np.sort(numbers)
    return numbers[np.flatnonzero(np.diff(numbers, prepend=-1))]
