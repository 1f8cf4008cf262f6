"""Exact search of the lattice, with pruning: the least lossy node of hierarchy levels that satisfies a privacy goal.

Nodes are ordered by what they lose, then by the sum of their levels, then by the levels from the first column on; the
first node that satisfies the goal is the answer, whatever the search looked at before. Losses that differ by less than
5e-11 count as equal.

How the search gets there: the bound of the loss (see :mod:`sfumato.mechanisms.lattice.losses`) never falls going up, so
the nodes that could still win lie below a border. Once a good node is known, nodes are checked from that border down: a
node that fails a monotone condition rules out all nodes below it, and one that satisfies the goal lowers the border.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.mechanisms.lattice.bounded_search import (
    BoundedSearch,
    StepCosts,
    better_neighbours,
    divided_way_up,
    raised,
)
from sfumato.mechanisms.lattice.lattice import LatticeProblem, Levels, Places
from sfumato.mechanisms.lattice.node_checks import DECIMALS, SLACK, CheckedNode, NodeChecker, limited_persons
from sfumato.mechanisms.time_limit import Clock, OutOfTime, TimeLimit

# Exact search of a lattice small enough to hold a number for every node.


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
        """Check a node; if it clearly fails a monotone condition, climb to an ancestor that prunes more."""
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
            own = int(np.ravel_multi_index(levels, self._shape))
            could_win |= equal & ((heights < height) | ((heights == height) & (numbers < own)))
        self._open[region] &= could_win

    def _levels(self, node: int) -> Levels:
        return tuple(int(level) for level in np.unravel_index(node, self._shape))


def _outer_sum(terms: Sequence[NDArray[np.float64] | NDArray[np.int32]]) -> NDArray[np.float64]:
    """Sum of one term of each column, for every combination of levels."""
    total = np.zeros((), dtype=terms[0].dtype if terms else np.float64)
    for term in terms:
        total = np.add.outer(total, term)
    return np.asarray(total)


MINUTE = 60.0
"""Seconds that the search of a very large lattice gets unless told otherwise."""
NODES_A_SECOND = 2_000_000
"""Nodes of a lattice that the exact search can prepare for, given a second."""
TELLING_SHARE = 0.5
"""Share of the loss found from which on a bound tells something: the optimum is at most so much better."""


@dataclass(frozen=True, eq=False, repr=False)
class LatticeResult:
    """Node that a search found.

    Parameters
    ----------
    levels : tuple of int
        Level of each column's hierarchy.
    loss : float
        Rounded to ten decimals.
    n_suppressed : int
        Rows in classes that violate the goal and are left out.
    classes : int array
        Class of each cell, -1 where it is suppressed.
    n_checked : int
        Nodes whose classes were looked at.
    proven : bool
        Whether no other node can be better; never where the problem begins above the finest levels.
    bound : float
        No node loses less than this; the loss itself when proven. Often far below what any node loses, and 0 where
        the problem begins above the finest levels.
    seconds : float
    """

    levels: Levels
    loss: float
    n_suppressed: int
    classes: Places
    n_checked: int
    proven: bool
    bound: float
    seconds: float

    @property
    def telling_bound(self) -> float | None:
        """The bound where it tells something: where it is at least half of the loss; else ``None``."""
        return self.bound if self.proven or self.bound >= TELLING_SHARE * self.loss else None

    def __repr__(self) -> str:
        bound = self.telling_bound
        proof = "the optimum" if self.proven else "optimum unknown" if bound is None else f"at least {bound:.6g}"
        return (
            f"LatticeResult(levels={list(self.levels)}, loss={self.loss:.6g} ({proof}), "
            f"{self.n_suppressed:,} rows suppressed, {self.n_checked:,} nodes checked)"
        )


def search_lattice(
    problem: LatticeProblem, max_seconds: float | None = None, *, clock: Clock | None = None
) -> LatticeResult:
    """Find the least lossy node whose violating classes hold few enough rows.

    The highest node is looked at in any case, so that there is an answer however little time there is; after that no
    step begins when time is up. A step is the look at one node: one pass over the distinct rows.

    Parameters
    ----------
    problem : LatticeProblem
    max_seconds : float or None
        Stop then, and return the best node found with a bound on what any node loses. ``None``: search exactly, except
        on lattices of more than four million nodes, which get a minute.
    clock : callable or None
        Clock that the seconds are of; ``None`` takes :func:`time.monotonic`.

    Raises
    ------
    PrivacyNotAchievableError
        If no node satisfies the goal, with the level that the highest node reaches; or if none was found in time.

    Examples
    --------
    >>> import numpy as np
    >>> ages = (np.array([0, 1, 2, 3]), np.array([0, 0, 1, 1]), np.array([0, 0, 0, 0]))
    >>> shares = (np.full(4, 0.25), np.full(2, 0.5), np.ones(1))
    >>> cells = np.array([[0], [1], [2], [3]], dtype=np.int32)
    >>> problem = LatticeProblem(cells, np.array([1, 2, 2, 3]), (ages,), (shares,), k=3)
    >>> result = search_lattice(problem)
    >>> result.levels, round(result.loss, 3), result.classes.tolist(), result.proven
    ((1,), 0.333, [0, 0, 1, 1], True)
    """
    if max_seconds is not None and not max_seconds > 0:
        raise InvalidParameterError("max_seconds", f"got {max_seconds!r}", allowed="above 0")
    most_nodes = MAX_NODES if max_seconds is None else min(MAX_NODES, max_seconds * NODES_A_SECOND)
    is_small = problem.n_nodes <= most_nodes
    limit = TimeLimit(MINUTE if max_seconds is None and not is_small else max_seconds, clock)
    checker = NodeChecker(problem)
    checker.check(problem.top)
    checker.time_limit = limit
    search = ExactSearch(checker) if is_small else BoundedSearch(checker)
    search.run()
    best = checker.best
    if best is None:
        raise _not_achievable(checker, search.is_finished)
    classes = _released_classes(checker, best.levels)
    loss = best.rank[0]  # as nodes are compared by it: of equal ones another search may find another one
    levels, proven = problem.in_hierarchies(best.levels), search.is_finished and problem.is_from_finest
    bound = loss if proven else min(loss, search.bound) if problem.is_from_finest else 0.0
    return LatticeResult(levels, loss, best.n_suppressed, classes, checker.n_checked, proven, bound, limit.elapsed)


def look_at_levels(problem: LatticeProblem, levels: Levels) -> LatticeResult:
    """Take a node as it is, without a search; of columns that do not reach a level, the highest that they have.

    Raises
    ------
    PrivacyNotAchievableError
        If more rows or persons would be suppressed than the problem allows.
    """
    checker = NodeChecker(problem)
    levels = tuple(min(pair) for pair in zip(levels, problem.top, strict=True))
    found = checker.check(levels)
    if not found.satisfies:
        text = f"the goal at these levels: {found.n_suppressed:,} of {problem.n_rows:,} rows would be suppressed"
        text += f", at most {problem.max_suppressed:,} may be"
        text += "" if found.spares_persons else ", and too many persons would lose rows"
        hint = "allow more suppressed rows, or let the levels be searched"
        raise PrivacyNotAchievableError(text, best_level=None, hint=hint)
    classes = _released_classes(checker, levels)
    return LatticeResult(levels, found.rank[0], found.n_suppressed, classes, 1, False, 0.0, 0.0)


def _released_classes(checker: NodeChecker, levels: Levels) -> Places:
    kept = checker.judge.judge(checker.roll_up.table(levels)).kept
    classes = checker.roll_up.classes_of_cells(levels)
    classes[~kept[classes]] = -1
    return classes


def _not_achievable(checker: NodeChecker, is_finished: bool) -> PrivacyNotAchievableError:
    problem = checker.problem
    found = checker.judge.worst_levels(checker.roll_up.table(problem.top))
    goal, level, _ = next((missed for missed in found if not missed[2]), found[0])
    hint = "lower the goal, allow more suppressed rows, or give hierarchies that end in one label"
    if not is_finished:
        hint = "the search was out of time; give it more, or " + hint
    text = f"{goal} with at most {problem.max_suppressed:,} of {problem.n_rows:,} rows suppressed"
    persons = limited_persons(problem)
    if persons is not None and persons.n_persons is not None:
        most = problem.largest_part(persons.n_persons)
        text += f", of at most {most:,} of {persons.n_persons:,} persons"
    return PrivacyNotAchievableError(text, best_level=level, hint=hint)
