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
from numpy.typing import NDArray

from sfumato.audit.original.cell_rules import CellRule, Codes, FittingRule
from sfumato.audit.original.consistency import Consistency, filled_by_flow
from sfumato.audit.reading.cells import ColumnBits, Containing, a_row_of_each, ones
from sfumato.audit.reading.columns import Classes, Refinement, places_of_runs, summed

Ids = NDArray[np.int64]

Filling = tuple[Ids, Ids, Ids]
"""Original and released classes, and how many rows of the one become rows of the other."""
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
    """Original and released rows, kept apart by what can be compared exactly, and the columns whose cells overlap.

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
    def of(
        cls,
        rules: Sequence[CellRule],
        originals: Sequence[Codes],
        released: Sequence[Codes],
        n_before: Ids | None = None,
        n_after: Ids | None = None,
    ) -> BothBags:
        """Compare rows by rules, given the codes of each rule's columns."""
        n_originals = len(originals[0])
        rows = Refinement(n_originals + len(released[0]))
        overlapping = []
        for rule, before, after in zip(rules, originals, released, strict=True):
            exact = exact_ids(rule)
            if exact is not None:
                own, found, n_values = together(*exact)
                rows.add(np.concatenate([own[before], found[after]]), n_values)
            elif isinstance(rule, FittingRule) and rule.read is not None:
                overlapping.append((rule.read, rule.read.places[before], after.astype(np.int64)))
        numbers = rows.classes()
        before, after = numbers.ids[:n_originals], numbers.ids[n_originals:]
        return cls(before, after, len(numbers.sizes), overlapping, n_before, n_after)

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
        if not bags.overlapping:
            class_of_number = np.full(bags.n_numbers, NO_CELL, dtype=np.int64)
            class_of_number[bags.released[last]] = np.arange(len(last))
            found_in = class_of_number[bags.originals[first]]
            return cls(originals, classes, np.flatnonzero(found_in >= 0), found_in[found_in >= 0])
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
        """Whether the original rows can fill all released ones, each used once."""
        return self.filled() is not None

    def whole(self) -> Ids | None:
        """Released class of each original class, -1 for none, if equal rows became the same; ``None``: not decided.

        A released class as large as all rows that may still be in it holds them all, and they are in no other. A
        recoding in rounds takes all rows left of a class at once, so that this decides its classes round by round.
        """
        supply, demand = self.originals.sizes, self.classes.sizes
        became = np.full(len(supply), NO_CELL, dtype=np.int64)
        is_settled = np.zeros(len(demand), dtype=np.bool_)
        tail, head = self.before, self.after
        while not is_settled.all():
            is_forced = (summed(head, supply[tail], len(demand)) == demand) & ~is_settled
            is_taken = is_forced[head]
            if not is_taken.any() or len(np.unique(tail[is_taken])) < is_taken.sum():
                return None
            became[tail[is_taken]] = head[is_taken]
            is_settled |= is_forced
            is_open = became[tail] == NO_CELL
            tail, head = tail[is_open], head[is_open]
        return became

    def filled(self) -> Filling | None:
        """Fill all released rows with original ones, each used once; ``None`` where there is no way.

        An original that fits one released row only serves it best, and a released row that one original alone fits
        must take it: both are settled first, again and again. A flow decides the rest.
        """
        supply, demand = self.originals.sizes.copy(), self.classes.sizes.copy()
        tail, head = self.before, self.after
        settled: list[Filling] = []
        while True:
            is_open = (supply[tail] > 0) & (demand[head] > 0)
            tail, head = tail[is_open], head[is_open]
            n_ways, n_sources = np.bincount(tail, minlength=len(supply)), np.bincount(head, minlength=len(demand))
            if ((n_sources == 0) & (demand > 0)).any():
                return None
            if not len(tail):
                return _joined(settled)
            is_forced = n_ways[tail] == 1
            if is_forced.any():
                by_head = np.argsort(head[is_forced], kind="stable")
                tails, heads = tail[is_forced][by_head], head[is_forced][by_head]
                given = _shared_out(supply[tails], heads, demand)
                settled.append((tails, heads, given))
                supply[tails] = 0
                np.subtract.at(demand, heads, given)
                continue
            is_only = n_sources[head] == 1
            if not is_only.any():
                if max(int(supply.sum()), int(demand.sum())) > np.iinfo(np.int32).max:
                    raise TooManyPairsError
                flow = filled_by_flow(supply, demand, tail, head)
                return None if flow is None else _joined([*settled, flow])
            settled.append((tail[is_only], head[is_only], demand[head[is_only]]))
            np.subtract.at(supply, tail[is_only], demand[head[is_only]])
            if (supply < 0).any():
                return None
            demand[head[is_only]] = 0

    def rows_of_groups(self, group_of_released: Ids) -> tuple[Ids, Ids]:
        """Original rows that fit each group of released rows: pairs of a group and a row, each once.

        Raises
        ------
        TooManyPairsError
            If they are too many.
        """
        before, groups, n_groups = self._with_groups(group_of_released)
        pairs = np.unique(before * n_groups + groups)
        each, group = pairs // n_groups, pairs % n_groups
        n_rows = np.bincount(self.originals.ids, minlength=len(self.originals.sizes))[each]
        if int(n_rows.sum()) > _MOST_PAIRS:
            raise TooManyPairsError
        return np.repeat(group, n_rows), _rows_of(self.originals.ids, each, n_rows)

    def _with_groups(self, group_of_released: Ids) -> tuple[Ids, Ids, int]:
        """Distinct original rows and the groups that they fit, pair by pair, and how many groups there are.

        Released rows that fit the same originals may be of several groups: a typical value fits every original.
        """
        n_groups = int(group_of_released.max(initial=0)) + 1
        links = np.unique(self.classes.ids * n_groups + group_of_released)
        n_links = np.bincount(links // n_groups, minlength=len(self.classes.sizes))
        if len(links) == len(n_links):
            return self.before, (links % n_groups)[self.after], n_groups
        n_each = n_links[self.after]
        if int(n_each.sum()) > _MOST_PAIRS:
            raise TooManyPairsError
        last = np.cumsum(n_links)[self.after]
        return np.repeat(self.before, n_each), (links % n_groups)[places_of_runs(last - n_each, last)], n_groups

    def group_of_originals(self, group_of_released: Ids) -> Ids | None:
        """Group of released rows that each original row fits, -1 for none; ``None`` where one fits several groups."""
        try:
            before, groups, _ = self._with_groups(group_of_released)
        except TooManyPairsError:
            return None  # some row fits several groups, or there would be no more pairs than before
        lowest = np.full(len(self.originals.sizes), np.iinfo(np.int64).max)
        highest = np.full(len(self.originals.sizes), NO_CELL, dtype=np.int64)
        np.minimum.at(lowest, before, groups)
        np.maximum.at(highest, before, groups)
        if ((highest >= 0) & (lowest != highest)).any():
            return None
        return highest[self.originals.ids]


def _shared_out(offered: Ids, heads: Ids, demand: Ids) -> Ids:
    """How much of each offer is taken, in turn, until what its head wants is reached; offers are sorted by head."""
    before = np.cumsum(offered) - offered
    starts = np.flatnonzero(np.diff(heads, prepend=-1))
    before -= np.repeat(before[starts], np.diff(np.append(starts, len(heads))))
    return np.asarray(np.clip(demand[heads] - before, 0, offered), dtype=np.int64)


def _joined(parts: Sequence[Filling]) -> Filling:
    nothing = np.zeros(0, dtype=np.int64)
    tails, heads, given = (np.concatenate([nothing, *(part[i] for part in parts)]) for i in range(3))
    return tails, heads, given


def _taken_in_turn(class_of_row: Ids, classes: Ids, amounts: Ids) -> Ids:
    """Take rows of some classes, so many of each in turn; no row is taken twice."""
    rows = np.argsort(class_of_row, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(class_of_row))])[:-1]
    order = np.argsort(classes, kind="stable")
    taken = np.cumsum(amounts[order]) - amounts[order]
    starts = np.flatnonzero(np.diff(classes[order], prepend=-1))
    taken -= np.repeat(taken[starts], np.diff(np.append(starts, len(order))))
    begin = np.empty(len(order), dtype=np.int64)
    begin[order] = first[classes[order]] + taken
    return np.asarray(rows[places_of_runs(begin, begin + amounts)], dtype=np.int64)


def _rows_of(class_of_row: Ids, classes: Ids, n_rows: Ids) -> Ids:
    """Rows of each of some classes, one class after the other."""
    rows = np.argsort(class_of_row, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(class_of_row))])[:-1]
    return np.asarray(rows[places_of_runs(first[classes], first[classes] + n_rows)], dtype=np.int64)


def assigned_rows(rules: Sequence[CellRule], originals: Sequence[Codes], released: Sequence[Codes]) -> Ids | None:
    """Give each released row an original row of its own that agrees with it; ``None`` where there is no way.

    It is one way in which the release may have been made: others are as good. Given are codes of the rules' columns.

    Raises
    ------
    TooManyPairsError
        If original and released rows fit in too many ways.
    """
    bags = BothBags.of(rules, originals, released)
    if bags.n_foreign():
        return None
    pairs = Pairs.of(bags)
    filling = pairs.filled()
    if filling is None:
        return None
    tails, heads, given = filling
    found = np.empty(len(pairs.classes.ids), dtype=np.int64)
    found[_taken_in_turn(pairs.classes.ids, heads, given)] = _taken_in_turn(pairs.originals.ids, tails, given)
    return found
