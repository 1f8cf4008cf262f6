"""The exact condition of k-anonymity by containment: which sets of features are feasible, and which are maximal.

A set of features is feasible for k when it holds no itemset that is *rare but present*: one that some row has, but
fewer than k rows. Subsets of feasible sets are feasible, so the family is given by its maximal members or, the other
way round, by the minimal rare itemsets. Lemma 3 of [kAC17]_ proves only that itemsets with support k are feasible; the
true family holds those and more. For k = 2 minimal rare itemsets are the minimal sample uniques of disclosure control.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.selection.budget import TimeBudget
from sfumato.selection.reduction import Counts, Reduced
from sfumato.selection.transversals import maximal_columns

Flags = NDArray[np.bool_]
Columns = tuple[int, ...]
Scalar = TypeVar("Scalar", bound=np.generic)

LATTICE_COLUMNS = 24  # up to here all 2**d sets of columns are looked at
_MOST_IN_INT32 = 2**31


@dataclass(frozen=True)
class Enumeration:
    """Sets of features in ascending order, and whether these are all."""

    sets: tuple[Columns, ...]
    complete: bool


def maximal_sets_of(reduced: Reduced, k: int, limit: int, budget: TimeBudget | None = None) -> Enumeration:
    """Feasible sets that no feature can join, as features, of a table that is already reduced.

    Parameters
    ----------
    limit : int
        Stop, incomplete, beyond so many sets.
    budget : TimeBudget, optional
        Stop, incomplete, when it is spent.

    Notes
    -----
    With up to 24 columns to decide about, the supports of all sets of columns are counted by sums over supersets.
    With more, maximal sets are the complements of minimal transversals of the rare itemsets, which are looked for as
    they are needed; this ends soon only if the maximal sets are few.

    Examples
    --------
    >>> from sfumato.datasets.papers import toy_containment_table
    >>> from sfumato.selection.reduction import reduce_table
    >>> reduced = reduce_table(toy_containment_table().matrix, 2)
    >>> maximal_sets_of(reduced, 2, limit=10).sets  # {x1, x2, x5}, {x1, x3, x4, x5}
    ((0, 1, 4), (0, 2, 3, 4))
    """
    if reduced.n_columns <= LATTICE_COLUMNS:
        masks = Lattice(reduced, k).maximal()
        sets = [columns_of(int(mask), reduced.n_columns) for mask in masks[:limit]]
        complete = len(masks) <= limit
    else:
        sets, complete = maximal_columns(reduced, k, limit, budget)
    return Enumeration(tuple(sorted(reduced.features(columns) for columns in sets)), complete)


class Lattice:
    """All sets of columns as numbers: the first column is the highest bit, so earlier columns make larger numbers."""

    def __init__(self, reduced: Reduced, k: int) -> None:
        self.n_columns = reduced.n_columns
        supports = self._supports(reduced)
        self.rare: Flags = (supports >= 1) & (supports < k)
        self.infeasible = self.rare.copy()
        for without, with_bit in self._halves(self.infeasible):
            with_bit |= without

    def _halves(self, values: NDArray[Scalar]) -> Iterator[tuple[NDArray[Scalar], NDArray[Scalar]]]:
        """For every column, views of the sets without it and of the same sets with it."""
        for bit in range(self.n_columns):
            pairs = values.reshape(-1, 2, 1 << bit)
            yield pairs[:, 0], pairs[:, 1]

    def _supports(self, reduced: Reduced) -> NDArray[np.signedinteger]:
        """Support of every set: the sum of the counts of the rows' own sets over its supersets."""
        bits = 1 << np.arange(self.n_columns - 1, -1, -1, dtype=np.int64)
        whole = np.int32 if reduced.counts.sum() < _MOST_IN_INT32 else np.int64
        supports: NDArray[np.signedinteger] = np.zeros(1 << self.n_columns, dtype=whole)
        supports[reduced.matrix.astype(np.int64) @ bits] = reduced.counts
        for without, with_bit in self._halves(supports):
            without += with_bit
        return supports

    def maximal(self) -> Counts:
        """Feasible sets without a feasible superset, descending."""
        can_grow = self.infeasible.copy()
        for (without, _), (_, with_bit) in zip(self._halves(can_grow), self._halves(self.infeasible), strict=True):
            without |= ~with_bit
        return np.flatnonzero(~can_grow)[::-1]

    def weigh(self, masks: Counts, weights: Counts) -> Counts:
        """Sum of the weights of the columns of each set."""
        total = np.zeros(len(masks), dtype=np.int64)
        for column, weight in enumerate(weights.tolist()):
            total += weight * ((masks >> (self.n_columns - 1 - column)) & 1)
        return total


def columns_of(mask: int, n_columns: int) -> Columns:
    """Columns of a set of the lattice, ascending.

    Examples
    --------
    >>> columns_of(0b101, 3)
    (0, 2)
    """
    return tuple(column for column in range(n_columns) if mask >> (n_columns - 1 - column) & 1)
