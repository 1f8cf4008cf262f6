"""Which distinct rows of an original became which released rows, when cells may mean several values.

A value may fit several released cells (its town and its region), so the row alone does not show what it became.
But all rows with the same values became the same, or were left out, and the counts on both sides must add up. That
decides nearly always; where it does not, one answer that adds up is searched for. Any answer is only a proposal:
whoever uses it compares whole rows under it, so a wrong one never lets another release pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, maximum_flow

from sfumato.audit.reading.cells import Containing

# Which group each item went to, when only the sizes of items and of groups are known: by what sizes force, and search.
#
# It is the multiple subset sum problem, which is hard in general. Here sizes force nearly everything; the search over
# the rest, part by part, is given up when it takes too long.


Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

LEFT_OUT = -1

_MOST_WORK = 10**8
_WORK_A_STEP, _WORK_A_PAIR = 1000, 20


class UnmatchedError(Exception):
    """No answer was found by which all sizes add up."""


class ImpossibleError(Exception):
    """No answer exists, not even one in which equal rows may have gone to different groups."""


class PossiblePairs(NamedTuple):
    """Pairs of an item and a group that it may have gone to, and the sizes of both."""

    items: Numbers
    groups: Numbers
    sizes: Numbers
    wanted: Numbers


def matched_by_counts(possible: PossiblePairs) -> tuple[Numbers, bool]:
    """Find the group of each item, -1 for none, so that the items of each group are together as large as it is.

    Returns
    -------
    array, bool
        Group of each item, and whether there is no other answer.

    Raises
    ------
    UnmatchedError
        If there is no answer, or none was found in reasonable time.
    """
    state = _State.first(possible)
    if not state.force():
        raise UnmatchedError
    became, is_sure, work = state.became, not state.is_open.any(), 0
    for part, items, groups in _parts(state):
        found, steps = _searched(part, _MOST_WORK - work)
        work += steps
        went = found != LEFT_OUT
        became[items[went]] = groups[found[went]]
    return became, is_sure


def can_be_split(possible: PossiblePairs) -> bool:
    """Whether the groups can be filled if an item may be divided among several: a flow of items into groups.

    Where items are distinct rows with their counts, this is the case of equal rows that became different ones, as with
    partitions that may cut between equal values. A no is a proof that the groups hold something else.
    """
    items, groups, sizes, wanted = possible
    n_items, n = len(sizes), len(sizes) + len(wanted) + 2
    total = int(wanted.sum())
    if max(total, int(sizes.sum())) > np.iinfo(np.int32).max:
        return True  # more than SciPy's flow can count; nothing is proven
    source, sink = n - 2, n - 1
    starts = np.concatenate([np.full(n_items, source), items, n_items + np.arange(len(wanted))])
    ends = np.concatenate([np.arange(n_items), n_items + groups, np.full(len(wanted), sink)])
    capacities = np.concatenate([sizes, np.minimum(sizes[items], wanted[groups]), wanted]).astype(np.int32)
    network = sp.csr_array((capacities, (starts, ends)), shape=(n, n))
    return int(maximum_flow(network, source, sink).flow_value) == total


@dataclass
class _State:
    """Pairs that are still possible, what groups still want, and where items went that are settled."""

    possible: PossiblePairs
    part: Numbers
    part_of_group: Numbers
    is_open: Flags
    left: Numbers
    became: Numbers

    @classmethod
    def first(cls, possible: PossiblePairs) -> _State:
        n_items = len(possible.sizes)
        part = _components(possible, np.ones(len(possible.items), dtype=np.bool_))
        is_open = np.ones(len(possible.items), dtype=np.bool_)
        became = np.full(n_items, LEFT_OUT, dtype=np.int64)
        return cls(possible, part[:n_items], part[n_items:], is_open, possible.wanted.copy(), became)

    def copy(self) -> _State:
        return _State(
            self.possible, self.part, self.part_of_group, self.is_open.copy(), self.left.copy(), self.became.copy()
        )

    def force(self) -> bool:
        """Settle what sizes leave no choice about, again and again; no if they cannot add up any more."""
        items, groups, sizes, _ = self.possible
        while True:
            self.is_open &= sizes[items] <= self.left[groups]
            offered = _sums(groups[self.is_open], sizes[items[self.is_open]], len(self.left))
            n_ways = np.bincount(items[self.is_open], minlength=len(sizes))
            n_parts = int(max(self.part.max(initial=0), self.part_of_group.max(initial=0))) + 1
            spare = _sums(self.part, sizes * (n_ways > 0), n_parts) - _sums(self.part_of_group, self.left, n_parts)
            if (self.left < 0).any() or (offered < self.left).any() or (spare < 0).any():
                return False
            must_go = (n_ways == 1) & (sizes > spare[self.part])
            forced = np.flatnonzero(self.is_open & ((offered == self.left)[groups] | must_go[items]))
            if not len(forced):
                return True
            if len(np.unique(items[forced])) < len(forced):
                return False
            self.settle(forced)

    def settle(self, pairs: Numbers) -> None:
        """Let items go to groups, each item once."""
        items, groups, sizes, _ = self.possible
        self.became[items[pairs]] = groups[pairs]
        np.subtract.at(self.left, groups[pairs], sizes[items[pairs]])
        is_settled = np.zeros(len(sizes), dtype=np.bool_)
        is_settled[items[pairs]] = True
        self.is_open &= ~is_settled[items]

    def next_pair(self) -> int:
        """Pair to be tried: of the group with the fewest ways the largest item."""
        items, groups, sizes, _ = self.possible
        n_ways = np.bincount(groups[self.is_open], minlength=len(self.left))
        among = np.flatnonzero(self.is_open)
        return int(among[np.lexsort((-sizes[items[among]], n_ways[groups[among]]))[0]])


def _searched(possible: PossiblePairs, most_work: int) -> tuple[Numbers, int]:
    """Try one pair at a time, with and then without it; gives the groups of the items and the work done."""
    tried, work = [_State.first(possible)], 0
    while tried and work < most_work:
        work += _WORK_A_STEP + _WORK_A_PAIR * len(possible.items)
        state = tried.pop()
        if not state.force():
            continue
        if not state.is_open.any():
            return state.became, work
        pair = state.next_pair()
        without = state.copy()
        without.is_open[pair] = False
        state.settle(np.array([pair]))
        tried += [without, state]
    raise UnmatchedError


def _parts(state: _State) -> list[tuple[PossiblePairs, Numbers, Numbers]]:
    """Split what is open into parts that have nothing to do with each other, with their items and groups."""
    items, groups, sizes, _ = state.possible
    open_items, open_groups = items[state.is_open], groups[state.is_open]
    if not len(open_items):
        return []
    of_pair = _components(state.possible, state.is_open)[open_items]
    order = np.argsort(of_pair, kind="stable")
    found = []
    for pairs in np.split(order, np.flatnonzero(np.diff(of_pair[order])) + 1):
        own_items, item = np.unique(open_items[pairs], return_inverse=True)
        own_groups, group = np.unique(open_groups[pairs], return_inverse=True)
        part = PossiblePairs(item, group, sizes[own_items], state.left[own_groups])
        found.append((part, own_items, own_groups))
    return found


def _components(possible: PossiblePairs, is_open: Flags) -> Numbers:
    """Component of each item, then of each group, by the open pairs."""
    n_items = len(possible.sizes)
    n = n_items + len(possible.wanted)
    ends = possible.items[is_open], n_items + possible.groups[is_open]
    links = sp.csr_array((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(n, n))
    found: Numbers = connected_components(links, directed=False)[1].astype(np.int64)
    return found


def _sums(places: Numbers, values: Numbers, n: int) -> Numbers:
    """Sum of the values at each place; whole numbers, unlike the weights of np.bincount."""
    sums = np.zeros(n, dtype=np.int64)
    np.add.at(sums, places, values)
    return sums


_MOST_LAYERS = 64


class TooManyLayersError(Exception):
    """Cells overlap in too many ways."""


@dataclass(frozen=True)
class Matched:
    """What distinct rows became.

    Parameters
    ----------
    became : array
        Released distinct row of each distinct row of the original, -1 where it was left out.
    is_sure : bool
        Whether the counts leave no other answer, if rows with the same values became the same.
    """

    became: Numbers
    is_sure: bool


def matched_rows(
    reads: Sequence[Containing],
    places: Sequence[Numbers],
    n_before: Numbers,
    cells: Sequence[Numbers],
    n_after: Numbers,
) -> Matched:
    """Find the released distinct row that each distinct row of the original became.

    Parameters
    ----------
    reads : sequence of Containing
        What the cells of each column stand for.
    places, n_before
        Distinct rows of the original, column by column, as places of their values; how often each occurs.
    cells, n_after
        The same for the release, as codes of cells.

    Raises
    ------
    TooManyLayersError
        If the cells overlap in too many ways.
    UnmatchedError
        If no answer was found by which all counts add up, though equal rows may have become different ones.
    ImpossibleError
        If the released rows cannot be rows of the original, whatever became of equal rows.
    """
    candidates = _candidates(reads, places, cells, n_after)
    rows, ways = np.nonzero(candidates != LEFT_OUT)
    possible = PossiblePairs(rows, candidates[rows, ways], n_before.astype(np.int64), n_after.astype(np.int64))
    try:
        return Matched(*matched_by_counts(possible))
    except UnmatchedError:
        if can_be_split(possible):
            raise
        raise ImpossibleError from None


def _candidates(
    reads: Sequence[Containing], places: Sequence[Numbers], cells: Sequence[Numbers], n_after: Numbers
) -> Numbers:
    """Released rows that each row may have become: one column for each way in which cells are layered, -1 for none."""
    layered = [layers(read) for read in reads]
    ways = np.column_stack([layer_of_cell[own] for (layer_of_cell, _), own in zip(layered, cells, strict=True)])
    distinct, way_of_row = np.unique(ways, axis=0, return_inverse=True)
    if len(distinct) > _MOST_LAYERS:
        raise TooManyLayersError
    by_size = np.argsort(-np.bincount(way_of_row.reshape(-1), weights=n_after), kind="stable")
    found = np.full((len(places[0]), len(distinct)), -1, dtype=np.int64)
    for i, way in enumerate(distinct[by_size]):
        wanted = [owners[layer][own] for (_, owners), layer, own in zip(layered, way, places, strict=True)]
        is_whole = np.logical_and.reduce([own >= 0 for own in wanted])
        found[is_whole, i] = places_among(cells, [own[is_whole] for own in wanted])
    return found


def layers(read: Containing) -> tuple[Numbers, list[Numbers]]:
    """Put cells into layers in which no two overlap: the layer of each cell, and in each layer the cell of a place."""
    sizes = np.bincount(read.cells, weights=read.stops - read.starts, minlength=read.n_cells)
    layer_of_cell = np.zeros(read.n_cells, dtype=np.int64)
    owners = [np.full(read.n_places, -1, dtype=np.int64)]
    for cell in np.argsort(-sizes, kind="stable").tolist():
        runs = [slice(read.starts[i], read.stops[i]) for i in range(read.first_runs[cell], read.first_runs[cell + 1])]
        layer = next((i for i, own in enumerate(owners) if all((own[run] < 0).all() for run in runs)), len(owners))
        if layer == len(owners):
            owners.append(np.full(read.n_places, -1, dtype=np.int64))
        if layer > _MOST_LAYERS:
            raise TooManyLayersError
        for run in runs:
            owners[layer][run] = cell
        layer_of_cell[cell] = layer
    return layer_of_cell, owners


def places_among(known: Sequence[Numbers], wanted: Sequence[Numbers]) -> Numbers:
    """Place of each wanted row among known distinct ones, -1 where it is not among them."""
    n_known = len(known[0])
    key = np.zeros(n_known + len(wanted[0]), dtype=np.int64)
    for first, second in zip(known, wanted, strict=True):
        column = np.concatenate([first, second])
        key = np.unique(key * (column.max(initial=0) + 1) + column, return_inverse=True)[1].reshape(-1)
    place = np.full(key.max(initial=0) + 1, -1, dtype=np.int64)
    place[key[:n_known]] = np.arange(n_known)
    return place[key[n_known:]]
