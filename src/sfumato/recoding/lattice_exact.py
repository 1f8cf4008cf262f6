"""Exact search of a lattice small enough to hold a number for every node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.recoding.lattice import Levels
from sfumato.recoding.lattice_checks import DECIMALS, SLACK, CheckedNode, NodeChecker
from sfumato.recoding.lattice_moves import StepCosts, better_neighbours, divided_way_up, raised
from sfumato.recoding.time_limit import OutOfTime

MAX_NODES = 4_000_000
"""Most nodes that an exact search holds numbers for."""

_N_WAYS_UP = 3
_BLOCK = 4096
_FAR = 2.0
"""A node with so many times the suppressed rows allowed is worth a look at the node above it."""
_STRICTER = 0.25
_LEAST_LOOSE = 0.05
"""Where more of the rows than this may be suppressed, ways up also look for nodes that suppress far fewer."""


class ExactSearch:
    """Search that ends when every node is checked, ruled out, or bound to lose more than the best one.

    Losses of columns have a good bound at every node from the start: after a first good node, nodes are checked from
    the border of what could still win downwards. Losses of classes get theirs from the nodes checked: nodes are checked
    from the lowest that satisfy the goal upwards.
    """

    def __init__(self, checker: NodeChecker) -> None:
        self._checker = checker
        self._shape = checker.problem.shape
        self._open = np.ones(self._shape, dtype=np.bool_)
        self._flat_open = self._open.reshape(-1)  # a view
        self.costs = StepCosts(checker.loss.terms())
        sums = _outer_sum(checker.loss.terms())
        self._sums = sums.reshape(-1)
        self._bounds = np.ascontiguousarray(checker.loss.of_sum(sums))
        self._heights = _outer_sum([np.arange(n, dtype=np.int32) for n in self._shape]).reshape(-1)
        self.is_finished = False
        if checker.best is not None:
            self._close_losers((slice(None),) * len(self._shape))

    @property
    def bound(self) -> float:
        """No node that could still win loses less."""
        open_bounds = self._bounds[self._open]
        return float(open_bounds.min()) if len(open_bounds) else float("inf")

    def run(self) -> None:
        """Search until the best node is proven, or until the checker's time is up."""
        try:
            for levels in self._plan():
                if self.is_open(levels):
                    self._check(levels)
        except OutOfTime:
            return
        self.is_finished = True

    def is_open(self, levels: Levels) -> bool:
        """Whether a node could still win."""
        return bool(self._open[levels])

    def _plan(self) -> Iterator[Levels]:
        """Nodes to check next; what a check found is known when the next one is asked for."""
        order = np.lexsort((self._heights, self._sums))
        if not self._checker.loss.is_bounded_by_columns:
            for node in self._open_nodes(order):
                yield from divided_way_up(node, self._checker, self)
            yield from self._open_nodes(order)
            return
        for _ in range(_N_WAYS_UP):
            for node in self._open_nodes(order):
                yield from divided_way_up(node, self._checker, self)
                break
        yield from self._ways_up_that_suppress_less()
        yield from better_neighbours(self._checker.best, self._checker, self)
        yield from self._border(np.lexsort((self._heights, self._rounded_bounds())))

    def _ways_up_that_suppress_less(self) -> Iterator[Levels]:
        """Nodes on ways up that keep ever stricter limits: where much may be suppressed, the first ways find little."""
        allowed = self._checker.max_suppressed
        least = _LEAST_LOOSE * self._checker.problem.n_rows
        while allowed > least:
            allowed = int(allowed * _STRICTER)
            yield from divided_way_up((0,) * len(self._shape), self._checker, self, allowed)

    def _open_nodes(self, order: NDArray[np.intp]) -> Iterator[Levels]:
        """Nodes that could still win, in an order."""
        for begin in range(0, len(order), _BLOCK):
            block = order[begin : begin + _BLOCK]
            for node in block[self._flat_open[block]].tolist():
                if self._flat_open[node]:
                    yield self._levels(node)

    def _border(self, order: NDArray[np.intp]) -> Iterator[Levels]:
        """Nodes that could still win, from the highest bound down."""
        bounds = self._rounded_bounds()[order]
        end = len(order)
        while end > 0:
            best = self._checker.best
            if best is not None:
                end = min(end, int(np.searchsorted(bounds, best.rank[0], side="right")))
            begin = max(0, end - _BLOCK)
            block = order[begin:end]
            for node in block[self._flat_open[block]][::-1].tolist():
                if self._flat_open[node]:
                    yield self._levels(node)
            end = begin

    def _check(self, levels: Levels) -> None:
        """Check a node and, while a monotone condition is missed by far, ever higher ones that rule out more."""
        found = self._take(levels)
        while found.rules_out_below and found.n_suppressed > _FAR * self._checker.max_suppressed:
            following = self._successor_with_most_open_below(found.levels)
            if following is None:
                return
            found = self._take(following)

    def _take(self, levels: Levels) -> CheckedNode:
        best = self._checker.best
        found = self._checker.check(levels)
        if found.rules_out_below:
            self._open[tuple(slice(0, level + 1) for level in levels)] = False
        self._open[levels] = False
        if self._checker.best is not best:
            self._close_losers((slice(None),) * len(levels))
        self._raise_bounds(found)
        return found

    def _raise_bounds(self, found: CheckedNode) -> None:
        """Raise the bounds of nodes above, by the node's classes, or of nodes below, which suppress no fewer rows."""
        loss, levels = self._checker.loss, found.levels
        if not loss.is_bounded_by_columns:
            region = tuple(slice(level, None) for level in levels)
            np.maximum(self._bounds[region], found.bound, out=self._bounds[region])
        elif found.n_suppressed_below and not found.rules_out_below:
            region = tuple(slice(0, level + 1) for level in levels)
            terms = [term[part] for term, part in zip(loss.terms(found.n_suppressed_below), region, strict=True)]
            np.maximum(self._bounds[region], loss.of_sum(_outer_sum(terms)), out=self._bounds[region])
        else:
            return
        self._close_losers(region)

    def _successor_with_most_open_below(self, levels: Levels) -> Levels | None:
        """Node one level up below which most nodes are open that are not below the node itself."""
        most, found = 0, None
        for column, level in enumerate(levels):
            if level + 1 < self._shape[column]:
                below = [slice(0, other + 1) for other in levels]
                below[column] = slice(level + 1, level + 2)
                n_open = int(np.count_nonzero(self._open[tuple(below)]))
                if n_open > most:
                    most, found = n_open, raised(levels, column)
        return found

    def _rounded_bounds(self) -> NDArray[np.float64]:
        return np.round(self._bounds.reshape(-1) - SLACK, DECIMALS)

    def _close_losers(self, region: tuple[slice, ...]) -> None:
        """Close the nodes of a region whose bounds rank behind the best node."""
        best = self._checker.best
        if best is None:
            return
        loss, height, levels = best.rank
        bounds = np.round(self._bounds[region] - SLACK, DECIMALS)
        could_win = bounds < loss
        equal = bounds == loss
        if equal.any():
            heights = self._heights.reshape(self._shape)[region]
            numbers = np.arange(self._open.size).reshape(self._shape)[region]
            could_win |= equal & ((heights < height) | ((heights == height) & (numbers < self._index(levels))))
        self._open[region] &= could_win

    def _levels(self, node: int) -> Levels:
        return tuple(int(level) for level in np.unravel_index(node, self._shape))

    def _index(self, levels: Levels) -> int:
        return int(np.ravel_multi_index(levels, self._shape))


def _outer_sum(terms: Sequence[NDArray[np.float64] | NDArray[np.int32]]) -> NDArray[np.float64]:
    """Sum of one term of each column, for every combination of levels."""
    total = np.zeros((), dtype=terms[0].dtype if terms else np.float64)
    for term in terms:
        total = np.add.outer(total, term)
    return np.asarray(total)
