"""Maximal feasible sets of a table with many columns: complements of minimal transversals of the rare itemsets.

A set of columns is feasible when what it leaves out meets every rare itemset, and maximal when nothing of what it
leaves out could be spared. The search is that of Murakami and Uno (MMCS, Discrete Applied Mathematics 170, 2014): the
set left out grows by one column of an itemset it does not meet yet, as long as every column of it is *critical*, the
only one in some itemset. Theirs knows all itemsets from the start; here they are looked for when a decision needs one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from sfumato.selection.budget import TimeBudget
from sfumato.selection.reduction import Reduced

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


class RareItemsets:
    """Finds rare itemsets within a set of columns. Sets of columns are whole numbers, column c the bit ``1 << c``."""

    def __init__(self, reduced: Reduced, k: int) -> None:
        by_row = reduced.matrix.tocsr()
        bounds, indices = by_row.indptr.tolist(), by_row.indices.tolist()
        self.k = k
        self.rows = [sum(1 << c for c in indices[a:b]) for a, b in pairwise(bounds)]
        self.counts: list[int] = reduced.counts.tolist()

    def within(self, columns: int, including: int = 0) -> int:
        """Find a rare itemset among some columns that includes given ones and could spare no other; 0 if none."""
        patterns: Counter[int] = Counter()
        for row, count in zip(self.rows, self.counts, strict=True):
            if row & including == including:
                patterns[row & columns] += count
        few = sorted((p for p, count in patterns.items() if count < self.k), key=lambda p: (-p.bit_count(), p))
        for pattern in few:
            if pattern and sum(count for p, count in patterns.items() if p & pattern == pattern) < self.k:
                return self._shrunk(pattern, including)
        return 0

    def _shrunk(self, itemset: int, including: int) -> int:
        """Leave out columns as long as the itemset stays rare."""
        for column in bits_of(itemset & ~including):
            smaller = itemset & ~(1 << column)
            if sum(c for row, c in zip(self.rows, self.counts, strict=True) if row & smaller == smaller) < self.k:
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
