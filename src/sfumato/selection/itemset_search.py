"""Branch and bound for the maximal frequent itemsets that are worth most.

A set supported by k rows is worth no more than what each of these rows holds. So once a set of a certain worth is
known, rows that hold no more than that are dropped, then items that fewer than k rows still hold, then again rows,
until nothing changes. What is left is divided by whether an item joins.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.selection.budget import TimeBudget
from sfumato.selection.transactions import Positions, Reals, Transactions, add_up, ranges

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
        if worth > self.floor and items not in self.best and not len(self.transactions.joinable(items)):
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
                self.left = max(self.left, *(self._node_bound(node) for node in stack))
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

    def _node_bound(self, node: Node) -> float:
        return self.bound(node.ones @ self.worth[node.items] + node.base, node.copies)


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
