"""The exact condition of k-anonymity by containment: which sets of features are feasible, and which are maximal.

A set of features is feasible for k when it holds no itemset that is *rare but present*: one that some row has, but
fewer than k rows. Subsets of feasible sets are feasible, so the family is given by its maximal members or, the other
way round, by the minimal rare itemsets. Lemma 3 of [kAC17]_ proves only that itemsets with support k are feasible; the
true family holds those and more. For k = 2 minimal rare itemsets are the minimal sample uniques of disclosure control.

Where some persons have several rows, fewer than k *persons* takes the place of fewer than k rows: those who have a row
with the whole itemset. The condition stays the same (decision 49), only what a row counts does not add up any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from operator import add, or_
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.counting.bitsets import distinct_rows, ones_of_each, support_of_each
from sfumato.mechanisms.containment.support import Counts, Held, as_matrix, as_sets, bits_of, signed_sums
from sfumato.mechanisms.time_limit import TimeBudget

# What is left to decide about a table at a given k: no features that are in or out at once, nothing twice.


Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Reduced:
    """The open part of a table: which *columns* to choose, each one standing for features that are equal.

    A feature with fewer than k ones but at least one is out in every feasible set. One without ones, or with ones
    everywhere, changes the support of no itemset that is present: it is *free*, in every maximal set. Features with
    ones in the same rows are in a maximal set together or not at all.

    Parameters
    ----------
    matrix : csc_matrix
        Different rows × columns. The rows are sorted, so their order in the table does not matter; rows without ones
        are left out.
    counts : array of int
        How often each row occurs: in how many rows of the table, or of how many persons.
    members : tuple of tuple of int
        Features that each column stands for, ascending; columns are in the order of their first feature.
    free : tuple of int
        Free features, ascending.
    rare : tuple of int
        Features that are out at once.
    persons : csr_matrix or None
        Different rows × persons who have them, where persons are counted; None: rows are.
    """

    matrix: sp.csc_matrix
    counts: Counts
    members: tuple[tuple[int, ...], ...]
    free: tuple[int, ...]
    rare: tuple[int, ...]
    persons: sp.csr_matrix | None = None

    @property
    def held(self) -> Held:
        """Who has each of the different rows."""
        return Held(self.counts, self.persons)

    def added_up(self) -> Reduced | None:
        """Give rows and counts whose sum over the rows that include an itemset is its support, also by persons.

        See :func:`sfumato.mechanisms.containment.support.signed_sums`; None if there are too many intersections.
        """
        if self.persons is None:
            return self
        signed = signed_sums(as_sets(self.matrix), self.persons)
        if signed is None:
            return None
        counts = np.array(list(signed.values()), dtype=np.int64)
        return replace(self, matrix=as_matrix(list(signed), self.n_columns), counts=counts, persons=None)

    @property
    def n_columns(self) -> int:
        """Number of columns to decide about."""
        return len(self.members)

    @property
    def n_rows(self) -> int:
        """Number of different rows."""
        return len(self.counts)

    def features(self, columns: Iterable[int]) -> tuple[int, ...]:
        """Features of some columns, the free ones included, ascending."""
        return tuple(sorted([*self.free, *(feature for column in columns for feature in self.members[column])]))

    def columns(self, features: Iterable[int]) -> list[int]:
        """Columns that represent some of these features, ascending; free and rare features have none."""
        wanted = set(features)
        return [column for column, members in enumerate(self.members) if not wanted.isdisjoint(members)]

    def weights(self, weights: Counts) -> Counts:
        """Weight of every column: the sum over its features."""
        return np.array([weights[list(members)].sum() for members in self.members], dtype=np.int64)

    def dense(self) -> NDArray[np.float32]:
        """Different rows × columns as numbers that multiply fast and count exactly up to 2**24."""
        return np.asarray(self.matrix.toarray(), dtype=np.float32)


def reduce_table(
    matrix: sp.csc_matrix, k: int, row_counts: Counts | None = None, persons: NDArray[np.int32] | None = None
) -> Reduced:
    """Settle what can be settled feature by feature, and merge what is equal.

    ``row_counts``: how many rows each row of the matrix stands for; None: one. ``persons``: person of each row, where
    persons are counted.

    Examples
    --------
    >>> from sfumato.datasets.papers import toy_containment_table
    >>> left = reduce_table(toy_containment_table().matrix, 2)  # x1 and x5 are ones everywhere
    >>> left.members, left.free, left.counts.tolist()
    (((1,), (2,), (3,)), (0, 4), [1, 1, 3, 1])
    """
    n_rows = matrix.shape[0] if row_counts is None else row_counts.sum()
    support = ones_of_each(matrix, row_counts)
    is_free = (support == 0) | (support == n_rows)
    is_open = (support_of_each(matrix, row_counts, persons) >= k) & ~is_free
    features = np.flatnonzero(is_open)
    part = matrix[:, features]
    equal = distinct_rows(sp.csr_matrix(part.T))
    members: list[list[int]] = [[] for _ in equal.counts]
    for feature, column in zip(features.tolist(), equal.inverse.tolist(), strict=True):
        members[column].append(feature)
    rows, held = _sorted_distinct_rows(sp.csr_matrix(part[:, equal.representatives]), row_counts, persons)
    return Reduced(
        rows,
        held.counts,
        tuple(tuple(group) for group in members),
        tuple(np.flatnonzero(is_free).tolist()),
        tuple(np.flatnonzero(~is_free & ~is_open).tolist()),
        held.persons,
    )


def _sorted_distinct_rows(
    rows: sp.csr_matrix, row_counts: Counts | None, persons: NDArray[np.int32] | None
) -> tuple[sp.csc_matrix, Held]:
    """Different rows that have ones, in an order that depends on nothing but themselves, and who has them."""
    distinct = distinct_rows(rows, row_counts)
    kept = rows[distinct.representatives]
    kept.sort_indices()
    raw = kept.indices.astype(">i4").tobytes()
    bounds = (kept.indptr.astype(np.int64) * 4).tolist()
    keys = [raw[start:end] for start, end in pairwise(bounds)]
    order = [row for row in sorted(range(len(keys)), key=keys.__getitem__) if keys[row]]
    by_column = sp.csc_matrix(kept[order])
    by_column.sort_indices()
    if persons is None:
        return by_column, Held(distinct.counts[order])
    place = np.full(len(keys), -1)
    place[order] = np.arange(len(order))
    of_row = place[distinct.inverse]
    return by_column, Held.by_persons(of_row[of_row >= 0], persons[of_row >= 0], len(order))


# Maximal feasible sets of a table with many columns: complements of minimal transversals of the rare itemsets.
#
# A set of columns is feasible when what it leaves out meets every rare itemset, and maximal when nothing of what it
# leaves out could be spared. The search is that of Murakami and Uno (MMCS, Discrete Applied Mathematics 170, 2014):
# the set left out grows by one column of an itemset it does not meet yet, as long as every column of it is *critical*,
# the only one in some itemset. Theirs knows all itemsets from the start; here they are looked for when a decision
# needs one.


MOST_COLUMNS, MOST_ROWS = 800, 20_000  # beyond, nothing is enumerated: the search goes as deep as there are columns


def maximal_columns(
    reduced: Reduced, k: int, limit: int, budget: TimeBudget | None = None
) -> tuple[list[tuple[int, ...]], bool]:
    """Maximal feasible sets of columns, and whether these are all; at most ``limit`` of them."""
    if reduced.n_columns > MOST_COLUMNS or reduced.n_rows > MOST_ROWS:
        return [], False
    found: list[tuple[int, ...]] = []
    for kept in _Transversals(reduced, k).complements(budget or TimeBudget(3e8)):
        if kept is None or len(found) == limit:
            return found, False
        found.append(tuple(bits_of(kept)))
    return found, True


class RareItemsets:
    """Finds rare itemsets within a set of columns. Sets of columns are whole numbers, column c the bit ``1 << c``."""

    def __init__(self, reduced: Reduced, k: int) -> None:
        self.k = k
        self.rows = as_sets(reduced.matrix)
        by_rows = reduced.persons is None
        # who has a row: a number of rows, which add up, or persons as bits, which are joined
        self.held: list[int] = reduced.counts.tolist() if by_rows else as_sets(reduced.persons)
        self._join: Callable[[int, int], int] = add if by_rows else or_
        self._size: Callable[[int], int] = int if by_rows else int.bit_count

    def within(self, columns: int, including: int = 0) -> int:
        """Find a rare itemset among some columns that includes given ones and could spare no other; 0 if none."""
        join, size = self._join, self._size
        patterns: dict[int, int] = {}
        for row, held in zip(self.rows, self.held, strict=True):
            if row & including == including:
                pattern = row & columns
                patterns[pattern] = join(patterns.get(pattern, 0), held)
        few = sorted((p for p, held in patterns.items() if size(held) < self.k), key=lambda p: (-p.bit_count(), p))
        for pattern in few:
            if pattern and self._support(pattern, patterns.items()) < self.k:
                return self._shrunk(pattern, including)
        return 0

    def _support(self, itemset: int, patterns: Iterable[tuple[int, int]]) -> int:
        """Count who has an itemset, given patterns and who has each."""
        return self._size(reduce(self._join, (held for p, held in patterns if p & itemset == itemset), 0))

    def _shrunk(self, itemset: int, including: int) -> int:
        """Leave out columns as long as the itemset stays rare."""
        for column in bits_of(itemset & ~including):
            smaller = itemset & ~(1 << column)
            if self._support(smaller, zip(self.rows, self.held, strict=True)) < self.k:
                itemset = smaller
        return itemset


@dataclass
class _Node:
    """Columns left out so far, those that may still be, and how the known itemsets stand to them.

    ``missed`` itemsets hold no column left out; ``critical`` lists for every column the itemsets that hold it and no
    other. ``n_known`` is how many itemsets have been sorted into these.
    """

    left_out: int
    candidates: int
    missed: list[int]
    critical: dict[int, list[int]]
    n_known: int


class _Transversals:
    def __init__(self, reduced: Reduced, k: int) -> None:
        self.everything = (1 << reduced.n_columns) - 1
        self.rare = RareItemsets(reduced, k)
        self.known: list[int] = []

    def complements(self, budget: TimeBudget) -> Iterator[int | None]:
        """Complement of every minimal transversal; None, and the end, when the budget is spent."""
        stack = [self._visit(_Node(0, self.everything, [], {}, 0))]
        while stack:
            if budget.is_spent():
                yield None
                return
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
            elif isinstance(step, _Node):
                stack.append(self._visit(step))
            else:
                yield step

    def _visit(self, node: _Node) -> Iterator[_Node | int]:
        """Give the nodes below a node, or its complement if nothing is missed any more."""
        self._sort_in(node)
        if not node.missed:
            itemset = self.rare.within(self.everything & ~node.left_out)
            if not itemset:
                yield self.everything & ~node.left_out
                return
            self.known.append(itemset)
            self._sort_in(node)
        chosen = min(node.missed, key=lambda itemset: (itemset & node.candidates).bit_count())
        branches = chosen & node.candidates
        node.candidates &= ~branches
        for column in bits_of(branches):
            below = self._without(node, column)
            if below is not None:
                yield below
            node.candidates |= 1 << column

    def _sort_in(self, node: _Node) -> None:
        """Sort itemsets that were found after the node was made."""
        for itemset in self.known[node.n_known :]:
            met = itemset & node.left_out
            if not met:
                node.missed.append(itemset)
            elif met & (met - 1) == 0:
                node.critical[met.bit_length() - 1].append(itemset)
        node.n_known = len(self.known)

    def _without(self, node: _Node, column: int) -> _Node | None:
        """Leave out one column more; None if a column left out before could then be spared."""
        self._sort_in(node)
        bit = 1 << column
        critical = {c: [i for i in itemsets if not i & bit] for c, itemsets in node.critical.items()}
        critical[column] = [i for i in node.missed if i & bit]
        missed = [i for i in node.missed if not i & bit]
        below = _Node(node.left_out | bit, node.candidates, missed, critical, node.n_known)
        for other, itemsets in critical.items():
            if not itemsets:
                kept = self.everything & ~below.left_out
                itemset = self.rare.within(kept | 1 << other, including=1 << other)
                if not itemset:
                    return None
                self.known.append(itemset)
                self._sort_in(below)
        return below


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
    With more, or if some persons have very many different rows, maximal sets are the complements of minimal
    transversals of the rare itemsets, which are looked for as they are needed; this ends soon only if the maximal
    sets are few.

    Examples
    --------
    >>> from sfumato.datasets.papers import toy_containment_table
    >>> from sfumato.mechanisms.containment.feasibility import reduce_table
    >>> reduced = reduce_table(toy_containment_table().matrix, 2)
    >>> maximal_sets_of(reduced, 2, limit=10).sets  # {x1, x2, x5}, {x1, x3, x4, x5}
    ((0, 1, 4), (0, 2, 3, 4))
    """
    summed = reduced.added_up() if reduced.n_columns <= LATTICE_COLUMNS else None
    if summed is not None:
        masks = Lattice(summed, k).maximal()
        sets = [columns_of(int(mask), reduced.n_columns) for mask in masks[:limit]]
        complete = len(masks) <= limit
    else:
        sets, complete = maximal_columns(reduced, k, limit, budget)
    return Enumeration(tuple(sorted(reduced.features(columns) for columns in sets)), complete)


class Lattice:
    """All sets of columns as numbers: the first column is the highest bit, so earlier columns make larger numbers.

    The rows of the table are such that their counts add up, see :meth:`Reduced.added_up`.
    """

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
        whole = np.int32 if np.abs(reduced.counts).sum() < _MOST_IN_INT32 else np.int64
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
