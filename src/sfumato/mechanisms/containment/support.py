"""Who has an itemset: how many rows or, where persons have several, how many persons have a row that includes it.

Rows add up over patterns; persons do not, for one may have several of them. So it is kept which persons have a pattern
(:class:`Held`), or they are made to add up by signs (:func:`signed_sums`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.counting.bitsets import WORD_BITS, counted, distinct_keys, persons_at, positions_in

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]

_MOST_STEPS = 1 << 22  # words of intersections of rows of one person that are made, of all persons: some seconds
_MOST_ADDED_UP = 1 << 24  # up to here floats of 32 bits add up whole numbers exactly


@dataclass(frozen=True)
class Held:
    """Who has each of some patterns: how many rows or, where these are counted, which persons.

    Parameters
    ----------
    counts : array of int
        Rows, or different persons, that have each pattern.
    persons : csr_matrix or None
        Patterns × persons, without zeros; None: rows are counted.
    """

    counts: Counts
    persons: sp.csr_matrix | None = None

    @classmethod
    def by_persons(cls, places: NDArray[np.integer], persons: NDArray[np.integer], n: int) -> Held:
        """Make it from pairs of a pattern and a person, which may repeat."""
        known, numbers = np.unique(persons, return_inverse=True)
        return cls._numbered(places, numbers.reshape(-1), (n, len(known)))

    @classmethod
    def _numbered(cls, places: NDArray[np.integer], numbers: NDArray[np.integer], shape: tuple[int, int]) -> Held:
        at, who = np.divmod(distinct_keys(places.astype(np.int64) * shape[1] + numbers), max(shape[1], 1))
        counts = counted(at, None, shape[0])
        starts = np.append(0, np.cumsum(counts))
        return cls(counts, sp.csr_matrix((np.ones(len(who), dtype=np.int32), who, starts), shape=shape))

    def grouped(self, rows: NDArray[np.integer], groups: NDArray[np.integer], n_groups: int) -> Held:
        """Give who has a pattern of each group: some of the patterns, and the group of each."""
        if self.persons is None:
            return Held(counted(groups, self.counts[rows], n_groups))
        entries, owner = positions_in(self.persons.indptr[rows], self.persons.indptr[rows + 1])
        return Held._numbered(groups[owner], self.persons.indices[entries], (n_groups, self.persons.shape[1]))

    def support(self, included: Flags) -> Counts:
        """Count who has one of the patterns in each set: sets × patterns."""
        if self.persons is None:
            return np.asarray(included @ self.counts, dtype=np.int64)
        together = sp.csr_matrix(included, dtype=np.int32) @ self.persons
        return np.asarray(np.diff(together.indptr), dtype=np.int64)

    def falls_short(self, included: Flags, k: int) -> Flags:
        """Whether fewer than k have one of the patterns in each set: a pattern that k persons have settles it."""
        if self.persons is None:
            return np.asarray(included @ self.counts < k)
        is_crowd = self.counts >= k
        short = ~np.asarray(included[:, is_crowd].any(axis=1))
        left = np.flatnonzero(~is_crowd)
        few = Held(self.counts[left], self.persons[left])
        short[short] = few.support(included[short][:, left]) < k
        return short

    def beyond(self, known: Flags, added: NDArray[np.intp], keys: NDArray[np.intp], n_keys: int) -> Counts:
        """Count for each key who has one of its patterns and none of the known ones."""
        if self.persons is None:
            return counted(keys, self.counts[added], n_keys)
        is_known = np.zeros(self.persons.shape[1], dtype=np.bool_)
        is_known[self.persons[np.flatnonzero(known)].indices] = True
        entries, owner = positions_in(self.persons.indptr[added], self.persons.indptr[added + 1])
        who = self.persons.indices[entries]
        return persons_at(keys[owner][~is_known[who]], who[~is_known[who]], n_keys)


# Sets of columns as whole numbers, column c the bit ``1 << c``.


def bits_of(mask: int) -> Iterator[int]:
    """Positions of the ones of a whole number, ascending.

    Examples
    --------
    >>> list(bits_of(0b1010))
    [1, 3]
    """
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def as_sets(matrix: sp.csc_matrix) -> list[int]:
    """Columns with a one in each row as a whole number, column c the bit ``1 << c``."""
    by_row = sp.csr_matrix(matrix)
    indices = by_row.indices.tolist()
    return [sum(1 << c for c in indices[a:b]) for a, b in pairwise(by_row.indptr.tolist())]


def as_matrix(sets: list[int], n_columns: int) -> sp.csc_matrix:
    """Rows with ones in these columns: :func:`as_sets` the other way round."""
    columns = [list(bits_of(one)) for one in sets]
    starts = np.cumsum([0, *map(len, columns)])
    indices = np.array([column for row in columns for column in row], dtype=np.int32)
    ones = np.ones(len(indices), dtype=np.uint8)
    return sp.csc_matrix(sp.csr_matrix((ones, indices, starts), shape=(len(sets), n_columns)))


def signed_sums(sets: Sequence[int], persons: sp.csr_matrix) -> dict[int, int] | None:
    r"""Give sets with signed counts, so that the counts of all that include an itemset add up to its persons.

    By inclusion and exclusion: who has the rows A and B counts 1 for A, 1 for B, and -1 for what A and B have in
    common. So :math:`\sum_{R \supseteq S} n_R` is the number of persons with a row that includes S, for each S. A set
    that is given stays, even if its sum is 0.

    Parameters
    ----------
    sets : sequence of int
        Different rows.
    persons : csr_matrix
        Rows × persons who have them.

    Returns
    -------
    dict or None
        None if some persons have so many different rows that their intersections are too many.

    Examples
    --------
    >>> signed_sums([0b110, 0b011], sp.csr_matrix([[1, 1], [1, 0]]))  # one person has both rows
    {6: 2, 3: 1, 2: -1}
    """
    signed = dict.fromkeys(sets, 0)
    n_steps, n_words = 0, 1 + max((one.bit_length() for one in sets), default=0) // WORD_BITS
    by_person = sp.csc_matrix(persons)
    by_person.sort_indices()
    owned = (tuple(by_person.indices[a:b].tolist()) for a, b in pairwise(by_person.indptr.tolist()))
    for rows, n_persons in Counter(owned).items():
        parts: dict[int, int] = {}
        for own in sorted((sets[row] for row in rows), key=lambda one: (-one.bit_count(), one)):
            n_steps += len(parts) * n_words
            if n_steps > _MOST_STEPS:
                return None
            _include(parts, own)
        for part, sign in parts.items():
            signed[part] = signed.get(part, 0) + sign * n_persons
    return signed if sum(map(abs, signed.values())) < _MOST_ADDED_UP else None


def _include(parts: dict[int, int], own: int) -> None:
    """Let a person have one row more: it counts 1, less what of it the signed parts counted already."""
    change = {own: 1}
    for part, sign in parts.items():
        change[part & own] = change.get(part & own, 0) - sign
    for part, sign in change.items():
        total = parts.pop(part, 0) + sign
        if total:
            parts[part] = total
