"""Whether released rows can be rows of the original when nothing says which is which: a bag against a bag.

A released row may stand for an original row when all its cells follow from that row's. A release is faithful when every
released row can be given an original row of its own. Where each original row fits one kind of released row, this is a
comparison of counts; else it is a flow from distinct original rows to distinct released rows, which is exact: it finds
an answer if there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import maximum_flow

from sfumato.audit.levels.consistency import Consistency
from sfumato.audit.original.cell_rules import CellRule, Codes, FittingRule
from sfumato.audit.reading.cells import ColumnBits, Containing, a_row_of_each, ones
from sfumato.audit.reading.columns import Classes, Refinement

Ids = NDArray[np.int64]

NO_CELL = -1
_MOST_PAIRS = 1 << 25


class TooManyPairsError(Exception):
    """Original and released rows fit in more ways than can be listed."""


def cell_of_place(read: Containing) -> Ids | None:
    """Released cell that holds each place, -1 where none does; ``None`` where cells overlap."""
    steps = np.zeros(read.n_places + 1, dtype=np.int64)
    np.add.at(steps, read.starts, 1)
    np.add.at(steps, read.stops, -1)
    if (np.cumsum(steps)[:-1] > 1).any():
        return None
    found = np.full(read.n_places, NO_CELL, dtype=np.int64)
    for cell, start, stop in zip(read.cells.tolist(), read.starts.tolist(), read.stops.tolist(), strict=True):
        found[start:stop] = cell
    return found


def exact_ids(rule: CellRule) -> tuple[Ids, Ids] | None:
    """Numbers for each code of the original and of the release, equal where cells agree; ``None`` if cells overlap."""
    if not isinstance(rule, FittingRule):
        return np.asarray(rule.expected, dtype=np.int64), np.asarray(rule.found, dtype=np.int64)
    if rule.read is None:
        raise AssertionError
    owner = cell_of_place(rule.read)
    return None if owner is None else (owner[rule.read.places], np.arange(rule.read.n_cells))


def together(before: Ids, after: Ids) -> tuple[Ids, Ids, int]:
    """Renumber the numbers of both sides from 0, alike, and say how many there are."""
    known, numbers = np.unique(np.concatenate([before, after]), return_inverse=True)
    return numbers[: len(before)], numbers[len(before) :], len(known)


@dataclass(frozen=True, eq=False)
class BothBags:
    """Original and released rows, told apart by what can be compared exactly, and the columns whose cells overlap.

    Parameters
    ----------
    originals, released : array
        Number of each row by the columns that are compared exactly; equal for rows that agree in them.
    overlapping : sequence
        Of each other column what its cells may mean, the places of the original rows and the cells of the released.
    n_before, n_after : array or None
        How many rows each entry represents; ``None``: each for itself.
    """

    originals: Ids
    released: Ids
    n_numbers: int
    overlapping: Sequence[tuple[Containing, Ids, Ids]]
    n_before: Ids | None = None
    n_after: Ids | None = None

    @classmethod
    def of(cls, rules: Sequence[CellRule], originals: Sequence[Codes], released: Sequence[Codes]) -> BothBags:
        """Compare rows by rules, given the codes of each rule's columns."""
        n_before = len(originals[0])
        rows = Refinement(n_before + len(released[0]))
        overlapping = []
        for rule, before, after in zip(rules, originals, released, strict=True):
            exact = exact_ids(rule)
            if exact is not None:
                own, found, n_values = together(*exact)
                rows.add(np.concatenate([own[before], found[after]]), n_values)
            elif isinstance(rule, FittingRule) and rule.read is not None:
                overlapping.append((rule.read, rule.read.places[before], after.astype(np.int64)))
        numbers = rows.classes()
        return cls(numbers.ids[:n_before], numbers.ids[n_before:], len(numbers.sizes), overlapping)

    def n_foreign(self) -> int:
        """Released rows beyond the original's, by the columns that are compared exactly alone."""
        more = np.zeros(self.n_numbers, dtype=np.int64)
        np.add.at(more, self.released, 1 if self.n_after is None else self.n_after)
        np.subtract.at(more, self.originals, 1 if self.n_before is None else self.n_before)
        return int(np.maximum(more, 0).sum())

    def can_be_assigned(self) -> bool:
        """Whether every released row can be given an original row of its own.

        Raises
        ------
        TooManyPairsError
            If there are more pairs of distinct rows that fit than can be held.
        """
        if self.n_foreign():
            return False
        return not self.overlapping or Pairs.of(self).can_be_filled()


@dataclass(frozen=True, eq=False)
class Pairs:
    """Distinct original rows and distinct released rows that fit each other, and how many rows each stands for."""

    originals: Classes
    classes: Classes
    before: Ids
    after: Ids

    @classmethod
    def of(cls, bags: BothBags) -> Pairs:
        """List the pairs that fit.

        Raises
        ------
        TooManyPairsError
            If they are too many.
        """
        before, after = Refinement(len(bags.originals)), Refinement(len(bags.released))
        before.add(bags.originals, bags.n_numbers)
        after.add(bags.released, bags.n_numbers)
        for read, places, cells in bags.overlapping:
            before.add(places, read.n_places)
            after.add(cells, read.n_cells)
        originals, classes = before.classes(bags.n_before), after.classes(bags.n_after)
        first, last = a_row_of_each(originals), a_row_of_each(classes)
        each = np.arange(bags.n_numbers)
        same = Containing(each, len(each), each, each, each + 1, len(each))
        columns = [ColumnBits(same, bags.originals[first], bags.released[last])]
        columns += [ColumnBits(read, places[first], cells[last]) for read, places, cells in bags.overlapping]
        found = Consistency(originals, classes, False, tuple(columns))
        tails, heads, n_pairs = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], 0
        for some, fitting, words in found.fitting_bits():
            rows, bits = ones(words)
            n_pairs += len(rows)
            if n_pairs > _MOST_PAIRS:
                raise TooManyPairsError
            tails.append(some[rows])
            heads.append(fitting[bits])
        return cls(originals, classes, np.concatenate(tails), np.concatenate(heads))

    def can_be_filled(self) -> bool:
        """Whether the original rows can fill all released ones, each used once.

        An original that fits one released row only serves it best, and a released row that one original alone fits
        must take it: both are settled first, again and again. A flow decides the rest.
        """
        supply, demand = self.originals.sizes.copy(), self.classes.sizes.copy()
        tail, head = self.before, self.after
        while True:
            is_open = (supply[tail] > 0) & (demand[head] > 0)
            tail, head = tail[is_open], head[is_open]
            n_ways, n_sources = np.bincount(tail, minlength=len(supply)), np.bincount(head, minlength=len(demand))
            if ((n_sources == 0) & (demand > 0)).any():
                return False
            if not len(tail):
                return True
            is_forced = n_ways[tail] == 1
            if is_forced.any():
                given = np.zeros(len(demand), dtype=np.int64)
                np.add.at(given, head[is_forced], supply[tail[is_forced]])
                supply[tail[is_forced]] = 0
                demand = np.maximum(demand - given, 0)
                continue
            is_only = n_sources[head] == 1
            if not is_only.any():
                return _flows(supply, demand, tail, head)
            np.subtract.at(supply, tail[is_only], demand[head[is_only]])
            if (supply < 0).any():
                return False
            demand[head[is_only]] = 0

    def group_of_originals(self, group_of_released: Ids) -> Ids | None:
        """Group of released rows that each original row fits, -1 for none; ``None`` where one fits several groups."""
        groups = np.zeros(len(self.classes.sizes), dtype=np.int64)
        groups[self.classes.ids] = group_of_released
        lowest = np.full(len(self.originals.sizes), np.iinfo(np.int64).max)
        highest = np.full(len(self.originals.sizes), NO_CELL, dtype=np.int64)
        np.minimum.at(lowest, self.before, groups[self.after])
        np.maximum.at(highest, self.before, groups[self.after])
        if ((highest >= 0) & (lowest != highest)).any():
            return None
        return highest[self.originals.ids]


def _flows(supply: Ids, demand: Ids, tail: Ids, head: Ids) -> bool:
    """Whether a flow from originals fills all that released rows still want."""
    wanted = int(demand.sum())
    if max(int(supply.sum()), wanted) > np.iinfo(np.int32).max:
        raise TooManyPairsError
    n, m = len(supply), len(demand)
    source, sink = n + m, n + m + 1
    starts = np.concatenate([np.full(n, source), tail, n + np.arange(m)])
    ends = np.concatenate([np.arange(n), n + head, np.full(m, sink)])
    capacities = np.concatenate([supply, np.minimum(supply[tail], demand[head]), demand]).astype(np.int32)
    network = sp.csr_array((capacities, (starts, ends)), shape=(sink + 1, sink + 1))
    return int(maximum_flow(network, source, sink).flow_value) == wanted
