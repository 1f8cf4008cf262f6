"""Distinct binary rows, and how many bits they add to those on which a cluster disagrees.

A row with the bits x adds ``|x - union| + |common - x|`` disagreeing bits to a cluster whose members all have the bits
``common`` and any of which has those of ``union``. With one pattern for both this is the Hamming distance to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Bits = NDArray[Any]
"""Bits of a pattern, as the patterns that it is one of hold them."""
Added = NDArray[np.int32]
MOST_ADDED = np.iinfo(np.int32).max

_WORD = 64
_WORDS_AS_FAST_AS_ONES = 4
"""Ones of a sparse row in whose time a word of a packed one is compared, at least."""


@dataclass(slots=True)
class Cluster:
    """Which patterns a cluster holds and how often, the bits that all its members have, and those that any has."""

    members: list[tuple[int, int]]
    common: Bits
    union: Bits


class Patterns(Protocol):
    """Distinct rows, in their order."""

    def bits(self, pattern: int) -> Bits:
        """Bits of a pattern."""

    def keep(self, chosen: NDArray[np.intp]) -> Patterns:
        """Take some of them."""

    def in_both(self, one: Bits, other: Bits) -> Bits:
        """Bits that both have."""

    def in_any(self, one: Bits, other: Bits) -> Bits:
        """Bits that one or both have."""

    def added(self, common: Bits, union: Bits) -> Added:
        """Disagreeing bits that each pattern would add to a cluster."""

    def added_to(self, clusters: Sequence[Cluster], bits: Bits) -> Added:
        """Disagreeing bits that a pattern would add to each of some clusters."""


def patterns_of(rows: sp.csr_matrix) -> Patterns:
    """Pack the bits of distinct rows into words, or leave them sparse where they have few ones among many bits.

    Examples
    --------
    >>> patterns = patterns_of(sp.csr_matrix([[1, 1, 0], [0, 1, 1]]))
    >>> first = patterns.bits(0)
    >>> patterns.added(first, first).tolist()
    [0, 2]
    """
    n_words = -(-rows.shape[1] // _WORD)
    ones_of_a_row = rows.nnz / max(rows.shape[0], 1)
    if n_words <= max(1.0, ones_of_a_row / _WORDS_AS_FAST_AS_ONES):
        return PackedPatterns.of(rows)
    return SparsePatterns(rows)


def ones_of(rows: sp.csr_matrix, row: int) -> NDArray[np.int32]:
    """Places of the ones of a row."""
    found: NDArray[np.int32] = rows.indices[rows.indptr[row] : rows.indptr[row + 1]]
    return found


@dataclass(frozen=True, eq=False, repr=False)
class PackedPatterns:
    """Patterns as rows of 64-bit words."""

    words: NDArray[np.uint64]

    @classmethod
    def of(cls, rows: sp.csr_matrix) -> PackedPatterns:
        """Pack sparse rows."""
        n_words = max(1, -(-rows.shape[1] // _WORD))
        words = np.zeros((rows.shape[0], n_words), dtype=np.uint64)
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        bit = np.left_shift(np.uint64(1), (rows.indices % _WORD).astype(np.uint64))
        np.bitwise_or.at(words, (row, rows.indices // _WORD), bit)
        return cls(words)

    def bits(self, pattern: int) -> Bits:
        """Words of a pattern."""
        found: Bits = self.words[pattern]
        return found

    def keep(self, chosen: NDArray[np.intp]) -> PackedPatterns:
        """Take some of them."""
        return PackedPatterns(self.words[chosen])

    def in_both(self, one: Bits, other: Bits) -> Bits:
        """Bits that both have."""
        return one & other

    def in_any(self, one: Bits, other: Bits) -> Bits:
        """Bits that one or both have."""
        return one | other

    def added(self, common: Bits, union: Bits) -> Added:
        """Disagreeing bits that each pattern would add to a cluster."""
        return _n_ones((self.words ^ common) & ~(union ^ common))

    def added_to(self, clusters: Sequence[Cluster], bits: Bits) -> Added:
        """Disagreeing bits that a pattern would add to each of some clusters."""
        common, union = np.array([c.common for c in clusters]), np.array([c.union for c in clusters])
        return _n_ones((bits ^ common) & ~(union ^ common))


def _n_ones(words: NDArray[np.uint64]) -> Added:
    counts = np.bitwise_count(words)
    return counts[:, 0].astype(np.int32) if words.shape[1] == 1 else counts.sum(axis=1, dtype=np.int32)


class SparsePatterns:
    """Patterns as the places of their ones.

    With a weight of 1 for the bits of the union and 2 for the common ones, a row x adds ``|x| + |common| - weight of
    x`` bits.
    """

    def __init__(self, rows: sp.csr_matrix) -> None:
        self._rows, self._sizes = rows, np.diff(rows.indptr)

    def bits(self, pattern: int) -> Bits:
        """Places of the ones of a pattern."""
        return ones_of(self._rows, pattern)

    def keep(self, chosen: NDArray[np.intp]) -> SparsePatterns:
        """Take some of them."""
        return SparsePatterns(self._rows[chosen])

    def in_both(self, one: Bits, other: Bits) -> Bits:
        """Bits that both have."""
        return np.intersect1d(one, other, assume_unique=True)

    def in_any(self, one: Bits, other: Bits) -> Bits:
        """Bits that one or both have."""
        return np.union1d(one, other)

    def added(self, common: Bits, union: Bits) -> Added:
        """Disagreeing bits that each pattern would add to a cluster."""
        weights = np.zeros(self._rows.shape[1], dtype=np.int32)
        weights[union] = 1
        weights[common] = 2
        return np.asarray(self._sizes + np.int32(len(common)) - self._rows @ weights, dtype=np.int32)

    def added_to(self, clusters: Sequence[Cluster], bits: Bits) -> Added:
        """Disagreeing bits that a pattern would add to each of some clusters."""
        has = np.zeros(self._rows.shape[1], dtype=np.bool_)
        has[bits] = True
        added = [len(bits) - has[c.union].sum() + len(c.common) - has[c.common].sum() for c in clusters]
        return np.array(added, dtype=np.int32)
