"""The largest and the heaviest maximal frequent itemsets of a binary table, without listing all of them."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # comes with scikit-learn

from sfumato.counting.bitsets import Words, counted, distinct_rows, pack_rows, persons_at, positions_in, support_of_each
from sfumato.mechanisms.containment.support import Held
from sfumato.mechanisms.time_limit import TimeBudget
from sfumato.progress import Progress

# Rows of a binary table as sets of items, and what a search for maximal frequent itemsets asks of them.
#
# A set of items is *frequent* when at least k rows contain it, and *maximal* when no further item can join it. Where
# persons are counted, a row has as many copies as persons have it. Persons of several rows do not add up: their sum is
# an upper bound, by which the search prunes, and what it offers is counted exactly.


Positions = NDArray[np.intp]
Reals = NDArray[np.float64]

_CODE_SEED = 20170
_BUCKET_BITS = 20
_CACHED_BITS = 1 << 29  # 64 MiB of row sets


@dataclass(frozen=True)
class Transactions:
    """Rows as sets of items that occur in at least k rows; equal rows and equal items are merged.

    An item stands for all features that are one in exactly the same rows. Items, rows and their order depend on the
    set of rows alone, not on the order in which they came. Rows without such an item are left out.

    Parameters
    ----------
    k : int
        Least number of rows that must contain a set.
    rows, items : arrays
        Row and item of every one of the matrix, by row and then by item, ascending.
    rows_by_item, item_starts : arrays
        The rows of the first item, ascending, then those of the second, and so on; where those of each begin.
    copies : array
        How often each row occurs, or how many persons have it, at most k: further copies change nothing.
    features : array
        Positions of the features that occur in at least k rows.
    item_of_feature : array
        The item that each of these belongs to.
    held : Held or None
        Which persons have each row; None: rows are counted.
    """

    k: int
    rows: Positions
    items: Positions
    rows_by_item: Positions
    item_starts: Positions
    copies: Reals
    features: Positions
    item_of_feature: Positions
    held: Held | None = None

    @classmethod
    def from_matrix(
        cls,
        matrix: sp.csc_matrix,
        k: int,
        row_counts: NDArray[np.int64] | None = None,
        persons: NDArray[np.int32] | None = None,
    ) -> Transactions:
        """Keep the features with at least k ones, and merge what is equal.

        ``row_counts``: how many rows each row of the matrix stands for; None: one. ``persons``: person of each row,
        where persons are counted.
        """
        features = np.flatnonzero(support_of_each(matrix, row_counts, persons) >= k)
        by_row = sp.csr_matrix(matrix[:, features])
        has_ones = np.diff(by_row.indptr) > 0
        by_row = by_row[has_ones]
        representatives, counts, inverse = merge_equal_rows(by_row)
        if row_counts is not None:
            counts = counted(inverse, row_counts[has_ones], len(counts))
        held = None if persons is None else Held.by_persons(inverse, persons[has_ones], len(counts))
        if held is not None:
            counts = held.counts
        by_item = sp.csr_matrix(by_row[representatives].T)
        first_of_item, _, item_of_feature = merge_equal_rows(by_item)
        by_item = by_item[first_of_item]
        merged = sp.csr_matrix(by_item.T)
        return cls(
            k,
            np.repeat(np.arange(merged.shape[0]), np.diff(merged.indptr)),
            merged.indices.astype(np.intp),
            by_item.indices.astype(np.intp),
            by_item.indptr.astype(np.intp),
            np.minimum(counts, k).astype(np.float64),
            features,
            item_of_feature,
            held,
        )

    @property
    def n_rows(self) -> int:
        """Number of different rows."""
        return len(self.copies)

    @property
    def n_items(self) -> int:
        """Number of different items."""
        return len(self.item_starts) - 1

    @cached_property
    def row_starts(self) -> Positions:
        """Where each row begins among the entries; one more than there are rows."""
        return np.searchsorted(self.rows, np.arange(self.n_rows + 1))

    @cached_property
    def _row_sets(self) -> dict[int, Words]:
        return {}

    def per_item(self, per_feature: NDArray[np.int64]) -> Reals:
        """Add up a number of every feature over the features of each item."""
        return add_up(self.item_of_feature, per_feature[self.features], self.n_items)

    def per_row(self, per_item: Reals) -> Reals:
        """Add up a number of every item over the items of each row."""
        return add_up(self.rows, per_item[self.items], self.n_rows)

    def features_of(self, items: Positions) -> tuple[int, ...]:
        """Positions of the features that some items represent, ascending."""
        chosen = np.zeros(self.n_items, dtype=np.bool_)
        chosen[items] = True
        return tuple(self.features[chosen[self.item_of_feature]].tolist())

    def items_of_rows(self, rows: Positions) -> tuple[Positions, Positions]:
        """Entries of some rows: for each its place in ``rows``, and its item."""
        starts, ends = self.row_starts[rows], self.row_starts[rows + 1]
        return np.repeat(np.arange(len(rows)), ends - starts), self.items[ranges(starts, ends)]

    def items_of_row(self, row: int) -> Positions:
        """Items of one row, ascending."""
        return self.items[self.row_starts[row] : self.row_starts[row + 1]]

    def rows_with(self, items: Positions) -> Positions:
        """Rows that contain all of these items."""
        common = np.bitwise_and.reduce([self._rows_of(int(item)) for item in items])
        return np.flatnonzero(np.unpackbits(common.astype("<u8").view(np.uint8), bitorder="little"))

    def _rows_of(self, item: int) -> Words:
        if item not in self._row_sets:
            if len(self._row_sets) * self.n_rows > _CACHED_BITS:
                self._row_sets.clear()
            start, end = self.item_starts[item : item + 2]
            self._row_sets[item] = pack_rows(self.rows_by_item[start:end].astype(np.int32), self.n_rows)
        return self._row_sets[item]

    def joinable(self, items: Positions) -> Positions:
        """Items outside the set with which it stays frequent: none if it is maximal."""
        rows = self.rows_with(items)
        place, found = self.items_of_rows(rows)
        together = self._together(rows, place, found)
        together[items] = 0
        return np.flatnonzero(together >= self.k)

    def _together(self, rows: Positions, place: Positions, found: Positions) -> Reals:
        """Count for every item who has it in these rows, given their entries."""
        together = add_up(found, self.copies[rows][place], self.n_items)
        if self.held is None or self.held.persons is None:
            return together
        likely = (together >= self.k)[found]  # persons are at most so many
        holders = self.held.persons
        at, entry = positions_in(holders.indptr[rows[place[likely]]], holders.indptr[rows[place[likely]] + 1])
        by_persons = persons_at(found[likely][entry], holders.indices[at], self.n_items)
        return by_persons.astype(np.float64)

    def is_frequent(self, rows: Positions) -> bool:
        """Whether what these rows have in common is frequent, as far as they show; rows are enough to show it."""
        if self.held is None:
            return bool(self.copies[rows].sum() >= self.k)
        is_member = np.zeros((1, self.n_rows), dtype=np.bool_)
        is_member[0, rows] = True
        return bool(self.held.support(is_member)[0] >= self.k)

    def extended(self, items: Positions, worth: Reals) -> Positions:
        """Let the item that is worth most join, as long as one can: a maximal set, ascending."""
        while len(left := self.joinable(items)):
            items = np.append(items, left[np.argmax(worth[left])])
        return np.sort(items)


def add_up(places: Positions, values: NDArray[Any], n: int) -> Reals:
    """Sum values by the place, 0 to n - 1, that each belongs to."""
    return np.bincount(places, values, n).astype(np.float64, copy=False)


def ranges(starts: Positions, ends: Positions) -> Positions:
    """Concatenate the whole numbers from each start up to, not including, its end.

    Examples
    --------
    >>> ranges(np.array([3, 8]), np.array([5, 11])).tolist()
    [3, 4, 8, 9, 10]
    """
    lengths = ends - starts
    before = np.cumsum(lengths) - lengths
    joined: Positions = np.arange(lengths.sum()) + np.repeat(starts - before, lengths)
    return joined


def merge_equal_rows(matrix: sp.csr_matrix) -> tuple[Positions, NDArray[np.int64], Positions]:
    """Find one representative of each different row, its count, and which one a row is.

    Rows are grouped by the sum of a random number for every column, and then compared. Their order is that of the
    sums, so it does not depend on the order of the rows given.
    """
    matrix.sort_indices()
    codes = np.cumsum(np.append(np.uint64(0), _codes(matrix.shape[1])[matrix.indices]), dtype=np.uint64)
    starts, ends = matrix.indptr[:-1].astype(np.intp), matrix.indptr[1:].astype(np.intp)
    _, representatives, inverse, counts = np.unique(
        codes[ends] - codes[starts], return_index=True, return_inverse=True, return_counts=True
    )
    of_row = representatives[inverse]
    if np.array_equal((ends - starts)[of_row], ends - starts) and np.array_equal(
        matrix.indices[ranges(starts[of_row], ends[of_row])], matrix.indices
    ):
        return representatives, counts, inverse
    distinct = distinct_rows(matrix)  # two different rows have the same sum: one pair in 10**19
    return distinct.representatives, distinct.counts, distinct.inverse


def _codes(n: int) -> NDArray[np.uint64]:
    return np.random.default_rng(_CODE_SEED).integers(0, 2**64, size=n, dtype=np.uint64)


def largest_size_bound(transactions: Transactions) -> int:
    """Bound the number of features of a frequent set, from the longest rows.

    A set that lacks at most one feature of the longest rows is such a row, or one without a feature. These are few
    enough to be counted: if none is frequent, a frequent set has at least two features less. Tables made from
    columns with one value a row, whose rows are all equally long, gain most.
    """
    sizes = transactions.per_item(np.ones(transactions.features.max(initial=-1) + 1, dtype=np.int64))
    row_sizes = transactions.per_row(sizes)
    longest = int(row_sizes.max(initial=0))
    codes = _codes(transactions.n_items)
    sums = np.add.reduceat(codes[transactions.items], transactions.row_starts[:-1]) if longest else codes
    whole = row_sizes == longest
    if _reaches(sums[whole], transactions.copies[whole], transactions.k):
        return longest
    one_less = whole[transactions.rows] & (sizes[transactions.items] == 1)
    rows, shorter = transactions.rows[one_less], row_sizes == longest - 1
    candidates = np.concatenate([sums[rows] - codes[transactions.items[one_less]], sums[shorter]])
    copies = np.concatenate([transactions.copies[rows], transactions.copies[shorter]])
    return longest - (1 if _reaches(candidates, copies, transactions.k) else 2)


def _reaches(codes: NDArray[np.uint64], copies: Reals, k: int) -> bool:
    """Whether equal codes have k copies together."""
    bucket = (codes >> np.uint64(64 - _BUCKET_BITS)).astype(np.intp)
    full = add_up(bucket, copies, 1 << _BUCKET_BITS) >= k
    likely = full[bucket]
    _, group = np.unique(codes[likely], return_inverse=True)
    return bool((add_up(group, copies[likely], 1) >= k).any())


# Branch and bound for the maximal frequent itemsets that are worth most.
#
# A set supported by k rows is worth no more than what each of these rows holds. So once a set of a certain worth is
# known, rows that hold no more than that are dropped, then items that fewer than k rows still hold, then again rows,
# until nothing changes. What is left is divided by whether an item joins.


Flags = NDArray[np.bool_]

_FIRST_DESCENT = 0.9
_DENSE_CELLS = 1 << 22  # up to here rows × items are held as a matrix of floats: 32 MiB
_COMPARED_ROWS = 256  # up to here every two rows of a node are compared
_PAIR_WORK, _PAIR_CELLS = 1 << 23, 1 << 27  # up to here pairs of items are counted


class BestItemsets:
    """The r best sets met so far; ``floor`` is what a further one must exceed."""

    def __init__(self, r: int) -> None:
        self.r = r
        self.floor = 0.0
        self.best = 0.0
        self._heap: list[tuple[float, int, bytes]] = []
        self._known: set[bytes] = set()

    def __contains__(self, items: Positions) -> bool:
        return items.tobytes() in self._known

    def add(self, items: Positions, worth: float) -> None:
        """Take a set that is new and worth more than the floor, the items ascending; the worst beyond r goes."""
        key = items.tobytes()
        self._known.add(key)
        heapq.heappush(self._heap, (worth, -len(self._known), key))
        if len(self._heap) > self.r:
            heapq.heappop(self._heap)
        if len(self._heap) == self.r:
            self.floor = self._heap[0][0]
        self.best = max(self.best, worth)

    def ranked(self) -> list[Positions]:
        """List the sets, best first; equal ones in the order in which they were met."""
        return [np.frombuffer(key, dtype=np.intp) for _, _, key in sorted(self._heap, reverse=True)]


@dataclass(frozen=True)
class Block:
    """A part of the search as a list of entries: the rows that still matter and their items that may join.

    ``items`` names the items by their position among all; ``taken`` have joined and are worth ``base``.
    """

    rows: Positions
    columns: Positions
    copies: Reals
    items: Positions
    base: float = 0.0
    taken: tuple[Positions, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """The same as a matrix, with an item that is to join or to leave before anything else."""

    ones: Reals
    copies: Reals
    items: Positions
    base: float
    taken: tuple[Positions, ...]
    branch: int = -1
    joins: bool = False


class ItemsetSearch:
    """Branch and bound for the r sets that are worth most.

    Parameters
    ----------
    worth : array
        Worth of every item, whole numbers.
    size_unit, largest_size : float
        If a worth is a size times ``size_unit`` and a rest below it: the unit and the largest size there is.
    """

    def __init__(
        self, transactions: Transactions, worth: Reals, r: int, size_unit: float = 0.0, largest_size: float = 0.0
    ) -> None:
        self.transactions = transactions
        self.worth = worth
        self.row_worths = transactions.per_row(worth)
        self.k = transactions.k
        self.best = BestItemsets(r)
        self.n_nodes = 0
        self.pass_floor = 0.0
        self.left = 0.0
        self._budget = self._share = TimeBudget(0)
        self._unit, self._top = size_unit, largest_size * size_unit

    @property
    def floor(self) -> float:
        """What a set must be worth more than to be of interest."""
        return max(self.pass_floor, self.best.floor)

    def run(self, floor: float, budget: TimeBudget, share: TimeBudget) -> bool:
        """Look for all sets worth more than a floor; whether this came to an end.

        The share of the time holds as long as the r best are not known to be above the floor. When time is up, ``left``
        bounds what was not looked at.
        """
        self.pass_floor, self.left = floor, 0.0
        self._budget, self._share = budget, share
        whole = self.transactions
        rows = np.flatnonzero(self._capped(self.row_worths.copy()) > floor)
        self._explore(Block(*whole.items_of_rows(rows), whole.copies[rows], np.arange(whole.n_items)))
        return self.left <= self.floor

    def _out_of_time(self) -> bool:
        return self._budget.is_spent() or (self.best.floor <= self.pass_floor and self._share.is_spent())

    def _capped(self, worths: Reals) -> Reals:
        """Lower the sizes in some worths to the largest size there is, in place."""
        over = worths >= self._top + self._unit
        if self._unit and over.any():
            worths[over] = self._top + worths[over] % self._unit
        return worths

    def bound(self, worths: Reals, copies: Reals) -> float:
        """Bound what k rows have in common by the worth of the k-th best row; 0 if there are fewer."""
        worths = self._capped(worths.copy())
        order = np.argsort(-worths, kind="stable")
        place = int(np.searchsorted(np.cumsum(copies[order]), self.k))
        return float(worths[order[place]]) if place < len(order) else 0.0

    def first_floor(self, bound: float) -> float:
        """Start a little below a bound: of the largest size, if there are sizes, with almost the best of the rest."""
        rest = bound % self._unit if self._unit else bound
        return bound - (1 - _FIRST_DESCENT) * rest

    def offer(self, taken: tuple[Positions, ...]) -> None:
        """Take a frequent set if it is good enough and maximal."""
        items = np.sort(np.concatenate([np.zeros(0, dtype=np.intp), *taken]))
        worth = float(self.worth[items].sum())
        if worth <= self.floor or items in self.best:
            return
        whole = self.transactions  # the search knows of rows that the set is frequent, and not of persons
        is_frequent = whole.held is None or whole.is_frequent(whole.rows_with(items))
        if is_frequent and not len(whole.joinable(items)):
            self.best.add(items, worth)

    def offer_extended(self, items: Positions) -> None:
        """Take a frequent set, which items that are worth most join as long as they can, if it is good enough."""
        self.offer((self.transactions.extended(items, self.worth),))

    # A part as a list of entries: divided by the rarest item of the set --------------------------------------------

    def _explore(self, block: Block) -> None:
        reduced = self._reduced(block)
        if reduced is None:
            return
        if not len(reduced.items):
            self.offer(reduced.taken)
        elif len(reduced.copies) * len(reduced.items) <= _DENSE_CELLS:
            ones = np.zeros((len(reduced.copies), len(reduced.items)))
            ones[reduced.rows, reduced.columns] = 1
            self._explore_matrix(Node(ones, reduced.copies, reduced.items, reduced.base, reduced.taken))
        else:
            self._divide(reduced)

    def _reduced(self, block: Block) -> Block | None:
        """Drop rows and items that cannot belong to a set of interest, until nothing changes."""
        rows, columns, copies, items = block.rows, block.columns, block.copies, block.items
        while True:
            worths = add_up(rows, self.worth[items[columns]], len(copies)) + block.base
            kept = self._capped(worths) > self.floor
            if copies[kept].sum() < self.k:
                return None
            entries = kept[rows]
            support = add_up(columns[entries], copies[rows[entries]], len(items))
            alive = support >= self.k
            if kept.all() and alive.all():
                return replace(block, rows=rows, columns=columns, copies=copies, items=items)
            entries &= alive[columns]
            rows = (np.cumsum(kept) - 1)[rows[entries]]
            columns = (np.cumsum(alive) - 1)[columns[entries]]
            copies, items = copies[kept], items[alive]

    def _divide(self, block: Block) -> None:
        """Search for each item the sets of which it is the rarest, the most promising items first."""
        block = _rarest_first(block)
        starts = np.searchsorted(block.rows, np.arange(len(block.copies) + 1))
        sums = np.concatenate([[0.0], np.cumsum(self.worth[block.items][block.columns])])
        rest = sums[starts[block.rows + 1]] - sums[:-1] + block.base  # an entry's own item and the more frequent ones
        entries = np.flatnonzero(self._capped(rest) > self.floor)
        rest = rest[entries]
        work = (starts[block.rows[entries] + 1] - entries).sum()
        if work <= _PAIR_WORK and len(block.items) ** 2 <= _PAIR_CELLS:
            entries, rest = self._with_frequent_pairs(block, entries, starts)
        order = np.lexsort((-rest, block.columns[entries]))
        entries, rest = entries[order], rest[order]
        firsts = np.searchsorted(block.columns[entries], np.arange(len(block.items) + 1))
        bounds = self._bounds_by_rarest(block.copies[block.rows[entries]], rest, firsts)
        for item in np.argsort(-bounds, kind="stable").tolist():
            if bounds[item] <= self.floor:
                return
            if self._out_of_time():
                self.left = max(self.left, float(bounds[item]))
                return
            of_item = slice(firsts[item], firsts[item + 1])
            self._explore(self._with_rarest(block, item, entries[of_item][rest[of_item] > self.floor], starts))

    def _with_frequent_pairs(self, block: Block, entries: Positions, starts: Positions) -> tuple[Positions, Reals]:
        """Keep the entries whose row holds enough items that are more frequent and share k of these rows with theirs.

        Returns them with what they and these items are worth.
        """
        worth, rows, items = self.worth[block.items], block.rows[entries], block.columns[entries]
        pairs = self._frequent_pairs(block, rows, items, starts)
        promising = self._capped(add_up(pairs.row, worth[pairs.col], len(worth)) + block.base) > self.floor
        slot = np.cumsum(promising) - 1
        frequent = np.zeros((promising.sum(), len(worth)), dtype=np.bool_)
        listed = promising[pairs.row]
        frequent[slot[pairs.row[listed]], pairs.col[listed]] = True
        entries = entries[promising[items]]
        ends = starts[block.rows[entries] + 1]
        place = np.repeat(np.arange(len(entries)), ends - entries)
        beside = block.columns[ranges(entries, ends)]
        held = frequent[slot[block.columns[entries]][place], beside]
        rest = self._capped(add_up(place[held], worth[beside[held]], len(entries)) + block.base)
        kept = rest > self.floor
        return entries[kept], rest[kept]

    def _frequent_pairs(self, block: Block, rows: Positions, items: Positions, starts: Positions) -> sp.coo_matrix:
        """Pairs of an item and a more frequent one, or itself, that at least k of the item's rows given here hold."""
        shape = len(block.copies), len(block.items)
        holds = sp.csr_matrix((np.ones(len(block.rows), np.float32), block.columns, starts), shape=shape)
        copies = block.copies[rows].astype(np.float32)
        pairs = sp.coo_matrix(sp.csr_matrix((copies, (items, rows)), shape=shape[::-1]) @ holds)
        frequent = (pairs.data >= self.k) & (pairs.col >= pairs.row)
        return sp.coo_matrix((pairs.data[frequent], (pairs.row[frequent], pairs.col[frequent])), shape=pairs.shape)

    def _bounds_by_rarest(self, copies: Reals, rest: Reals, firsts: Positions) -> Reals:
        """For each item, what the k-th best of its rows holds of it and the more frequent items."""
        counted = np.concatenate([[0.0], np.cumsum(copies)])
        place = np.searchsorted(counted, counted[firsts[:-1]] + self.k) - 1
        reached = place < firsts[1:]
        bounds = np.zeros(len(firsts) - 1)
        bounds[reached] = rest[place[reached]]
        return bounds

    def _with_rarest(self, block: Block, item: int, entries: Positions, starts: Positions) -> Block:
        """Restrict a block to the rows at some entries of an item and to what is more frequent than it."""
        rows = block.rows[entries]
        ends = starts[rows + 1]
        name = block.items[item]
        return Block(
            np.repeat(np.arange(len(rows)), ends - entries - 1),
            block.columns[ranges(entries + 1, ends)],
            block.copies[rows],
            block.items,
            block.base + float(self.worth[name]),
            (*block.taken, block.items[item : item + 1]),
        )

    # A part as a matrix: divided by whether an item joins ----------------------------------------------------------

    def _explore_matrix(self, root: Node) -> None:
        stack = [root]
        while stack:
            if self._out_of_time():
                worths = (node.ones @ self.worth[node.items] + node.base for node in stack)
                bounds = [self.bound(own, node.copies) for own, node in zip(worths, stack, strict=True)]
                self.left = max(self.left, *bounds)
                return
            self.n_nodes += 1
            node, support = self._narrowed(stack.pop())
            if node is None:
                continue
            if not len(node.items):
                self.offer(node.taken)
                continue
            alike = self._has_k_alike(node)
            if not alike.all():
                stack.append(replace(node, ones=node.ones[alike], copies=node.copies[alike]))
                continue
            evenness = np.minimum(support, node.copies.sum() - support)
            branch = int(np.argmax(self.worth[node.items] * evenness))
            stack.append(replace(node, branch=branch, joins=False))
            stack.append(replace(node, branch=branch, joins=True))

    def _narrowed(self, node: Node) -> tuple[Node | None, Reals]:
        """Let the item join or leave, then drop rows and items until nothing changes; items in all rows join.

        With an item leave all those whose rows have it: a set with one of these and without the item is not maximal.
        Returns what is left, if anything of interest can be, and the rows of each item.
        """
        ones, copies, items, base, taken = node.ones, node.copies, node.items, node.base, node.taken
        if node.joins:
            with_item = ones[:, node.branch] > 0
            ones, copies = ones[with_item], copies[with_item]
        elif node.branch >= 0:
            staying = (copies * (1 - ones[:, node.branch])) @ ones > 0
            ones, items = ones[:, staying], items[staying]
        worth = self.worth[items]
        while True:
            kept = self._capped(ones @ worth + base) > self.floor
            if not kept.all():
                ones, copies = ones[kept], copies[kept]
            total = copies.sum()
            if total < self.k:
                return None, worth
            support = copies @ ones
            alive, everywhere = support >= self.k, support >= total
            if everywhere.any():
                base += float(worth[everywhere].sum())
                taken = (*taken, items[everywhere])
            remaining = alive & ~everywhere
            if not remaining.all():
                ones, items, worth = ones[:, remaining], items[remaining], worth[remaining]
                support = support[remaining]
            if alive.all() or not len(items):
                return Node(ones, copies, items, base, taken), support

    def _has_k_alike(self, node: Node) -> Flags:
        """Which rows have enough in common with k rows, themselves included (all, where that is long to say)."""
        if len(node.copies) > _COMPARED_ROWS:
            return np.ones(len(node.copies), dtype=np.bool_)
        common = (node.ones * self.worth[node.items]) @ node.ones.T + node.base
        flags: Flags = (common > self.floor) @ node.copies >= self.k
        return flags


def _rarest_first(block: Block) -> Block:
    """Renumber the items from the rarest to the most frequent, in every row ascending."""
    support = add_up(block.columns, block.copies[block.rows], len(block.items))
    order = np.argsort(support, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    shape = len(block.copies), len(order)
    by_item = sp.csc_matrix((np.ones(len(block.rows), np.int8), (block.rows, rank[block.columns])), shape=shape)
    by_row = by_item.tocsr()  # which sorts every row
    rows = np.repeat(np.arange(shape[0]), np.diff(by_row.indptr))
    return replace(block, rows=rows, columns=by_row.indices.astype(np.intp), items=block.items[order])


_EXACT_BITS = 53  # whole numbers of so many bits are exact as floats
_DESCENT = 0.75


@dataclass(frozen=True)
class FoundItemsets:
    """Maximal frequent itemsets, best first, and how far the search for them got.

    Parameters
    ----------
    itemsets : list of tuple of int
        Positions of the features of each set, ascending.
    worths : list of int
        What each is worth: the sum of its features' weights, or its size when the largest were asked for.
    proven : bool
        Whether the search came to its end: no maximal set that is missing is better than one that is listed.
    bound : int
        No frequent itemset is worth more than this; what the first one is worth if that is proven.
    n_nodes : int
        How often the search was divided.
    """

    itemsets: list[tuple[int, ...]]
    worths: list[int]
    proven: bool
    bound: int
    n_nodes: int


def heaviest_itemsets(
    matrix: sp.csc_matrix,
    weights: NDArray[np.int64],
    k: int,
    r: int = 1,
    time_budget: float = 30.0,
    progress: Progress | None = None,
    row_counts: NDArray[np.int64] | None = None,
    persons: NDArray[np.int32] | None = None,
) -> FoundItemsets:
    """Find the r maximal frequent itemsets whose features weigh most.

    Parameters
    ----------
    matrix : csc_matrix
        Rows × features, canonical 0/1.
    weights : array of int
        Weight of every feature: at least 1, or 0 for a feature that is one in every row. Sums above 2**53 are rounded.
    k : int
        Rows that must contain a set.
    time_budget : float
        Seconds after which the best found so far is returned. Reading the table in, which is linear in its ones, is
        counted but not cut short.
    row_counts : array of int or None
        How many rows each row of the matrix stands for; None: one.
    persons : array of int or None
        Person of each row, where k persons must have a row that contains a set; None: k rows must.

    Examples
    --------
    >>> from sfumato.datasets.papers import toy_containment_table
    >>> toy = toy_containment_table()  # x2 and x4 weigh most; no two rows have both
    >>> heaviest_itemsets(toy.matrix, np.array([1, 5, 3, 4, 2]), k=2)
    FoundItemsets(itemsets=[(0, 1, 4)], worths=[8], proven=True, bound=8, n_nodes=0)
    """
    budget = TimeBudget(time_budget)
    transactions = Transactions.from_matrix(matrix, k, row_counts, persons)
    search = ItemsetSearch(transactions, transactions.per_item(np.maximum(weights, 1)), r)
    bound, proven = _descend(search, budget, progress)
    return _answer(search, weights, bound, proven)


def largest_itemsets(
    matrix: sp.csc_matrix,
    tie_weights: NDArray[np.int64],
    k: int,
    r: int = 20,
    time_budget: float = 30.0,
    progress: Progress | None = None,
    row_counts: NDArray[np.int64] | None = None,
    persons: NDArray[np.int32] | None = None,
) -> FoundItemsets:
    """Find the r maximal frequent itemsets with most features; of equally large ones, the heavier.

    Parameters are those of :func:`heaviest_itemsets`. Weights that cannot be added to a size exactly are rounded down
    to where they can.

    Examples
    --------
    >>> from sfumato.datasets.papers import toy_containment_table
    >>> toy = toy_containment_table()
    >>> found = largest_itemsets(toy.matrix, np.array([1, 5, 3, 4, 2]), k=2)
    >>> found.itemsets  # M_2 of [kAC17]_
    [(0, 1, 4), (0, 3, 4), (0, 2, 4)]
    """
    budget = TimeBudget(time_budget)
    transactions = Transactions.from_matrix(matrix, k, row_counts, persons)
    total = int(tie_weights[transactions.features].sum()) + 1
    shift = max(0, (total * (len(transactions.features) + 1)).bit_length() - _EXACT_BITS)
    ties = tie_weights >> shift
    unit = int(ties[transactions.features].sum()) + 1
    worth = transactions.per_item(ties + unit)
    search = ItemsetSearch(transactions, worth, r, unit, largest_size_bound(transactions))
    bound, proven = _descend(search, budget, progress)
    return _answer(search, np.ones(matrix.shape[1], dtype=np.int64), bound // unit, proven)


def _answer(search: ItemsetSearch, weights: NDArray[np.int64], bound: float, proven: bool) -> FoundItemsets:
    itemsets = [search.transactions.features_of(items) for items in search.best.ranked()]
    worths = [int(weights[list(itemset)].sum()) for itemset in itemsets]
    if proven:
        bound = worths[0] if worths else 0
    return FoundItemsets(itemsets, worths, proven, int(bound), search.n_nodes)


def _descend(search: ItemsetSearch, budget: TimeBudget, progress: Progress | None) -> tuple[float, bool]:
    """Look for sets above a high floor first, then above lower ones, until the r best are known or time is up.

    Above a high floor little is left to search, so a floor below the r-th best is reached soon, and each one passed
    bounds what there can be. When a floor takes too long, the best rows give a start for a search of everything.
    Returns a bound on every frequent set, and whether the search came to its end.
    """
    bound = search.bound(search.row_worths, search.transactions.copies)
    least = float(search.worth.min(initial=bound))
    floor = search.first_floor(bound)
    n_passes = 0
    with _blas().limit(limits=1, user_api="blas"):  # many small products: threads would only wait for each other
        _seed(search)
        while bound:
            complete = search.run(floor, budget, budget.share(1 / 3 if floor > search.best.floor else 1))
            bound = min(bound, max(search.left, search.floor))
            if complete and floor <= search.best.floor:
                break
            if not complete:
                if budget.is_spent():
                    return max(bound, search.best.best), False
                search.pass_floor, diving = 0.0, budget.share(1 / 5)
                for row in np.argsort(-search.row_worths, kind="stable").tolist():
                    _dive(search, row)
                    if diving.is_spent():
                        break
            floor = floor * _DESCENT if complete and floor * _DESCENT >= least else 0.0
            n_passes += 1
            if progress:
                progress(n_passes, n_passes + 1, "searches for itemsets above a falling worth")
    return search.best.best, True


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def _seed(search: ItemsetSearch) -> None:
    """Start from the best rows that occur k times, and from what the best row shares with those most like it."""
    transactions = search.transactions
    repeated = np.flatnonzero(transactions.copies >= transactions.k)
    best_first = np.argsort(-search.row_worths[repeated], kind="stable")
    for row in repeated[best_first][: search.best.r].tolist():
        search.offer_extended(transactions.items_of_row(row))
    if transactions.n_rows:
        _dive(search, int(np.argmax(search.row_worths)))


def _dive(search: ItemsetSearch, row: int) -> None:
    """Offer what a row has in common with others, each time the one that keeps most, until k rows hold it."""
    transactions = search.transactions
    common = transactions.items_of_row(row)
    unused = np.ones(transactions.n_rows, dtype=np.bool_)
    used: list[int] = []
    while not transactions.is_frequent(np.array(used, dtype=np.intp)) and len(common):
        worth = np.zeros(transactions.n_items)
        worth[common] = search.worth[common]
        shared = np.where(unused, transactions.per_row(worth), -1.0)
        nearest = int(np.argmax(shared))
        unused[nearest] = False
        used.append(nearest)
        common = np.intersect1d(common, transactions.items_of_row(nearest), assume_unique=True)
    if len(common):
        search.offer_extended(common)
