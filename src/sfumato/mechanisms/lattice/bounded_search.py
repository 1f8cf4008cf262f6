r"""Time-bounded search of a lattice too large to look at every node, with a proven bound where there is time for one.

**Good nodes** are found by going down from the top, always by the step that lowers the loss most (as ARX's top-down
search does: Meurers et al. 2021), by the same way down from the best node of a smaller limit, and from the lowest node
of a cheap way up. Then, again and again, a few columns of the best node are taken to the top, and a way down with other
preferences is tried (iterated local search: Lourenço, Martin, Stützle 2003).

**The bound.** A node that fails a monotone condition rules out all nodes below it. What is left are the nodes that are
above each of the nodes known to fail in at least one column; the least bound among these is a bound of the optimum.
Finding it is a small integer program (a hitting set over the steps "column j at level l or higher"), which SciPy's
HiGHS solves. Its solution is checked next: if it fails, it is lifted to as high a failing node as there is, which
raises the bound; if it satisfies the goal, it is a good answer. The search ends when the bound reaches the best loss,
or when time is up. (The scheme is that of implicit hitting sets: Chandrasekaran et al. 2011.) On wide lattices seconds
or minutes give a bound far below what any node loses, so the ways down come first; a bound that tells nothing is not
stated.

**A looser limit of suppressed rows never gives a worse answer.** The search goes up a ladder of limits, from 0 to the
one asked for. Each rung has its share of the time, the same whatever is asked for, and begins at the best node of the
rung before. So the search for a limit is the beginning of the search for any looser one: what the first finds, the
second has found as well. A limit between two rungs gets the answer of the rung below it. The price is time: a strict
limit uses a part of it only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sfumato.mechanisms.lattice.lattice import LatticeProblem, Levels
from sfumato.mechanisms.lattice.node_checks import DECIMALS, SLACK, CheckedNode, NodeChecker
from sfumato.mechanisms.time_limit import OutOfTime

if TYPE_CHECKING:
    from scipy.optimize import LinearConstraint

# Ways through a lattice of hierarchy levels that soon meet good nodes.
#
# Steps are compared by what they add to the bound of the loss, all at once, so that a way through hundreds of columns
# takes no longer than the checks of the nodes on it.


Numbers = NDArray[np.float64]
_NOWHERE = float("inf")
_LONG_WAY = 100
"""Steps of a way from which on it is searched from its top, by jumps: of many columns few can stay as they are."""


class Guide(Protocol):
    """What a search knows about nodes."""

    @property
    def costs(self) -> StepCosts:
        """What steps up and down add to the sum that the bound of a node's loss is made of."""
        ...

    def is_open(self, levels: Levels) -> bool:
        """Whether a node could still win."""
        ...


class StepCosts:
    """What levels add to the bound of a node's loss.

    Parameters
    ----------
    terms : sequence of arrays
        For each column, what each of its levels adds; never falls with the level.

    Examples
    --------
    >>> costs = StepCosts([np.array([0.0, 1.0, 3.0]), np.array([0.0, 0.5])])
    >>> costs.total((1, 1)), costs.up((1, 1)).tolist(), costs.down((1, 1)).tolist()
    (1.5, [2.0, inf], [-1.0, -0.5])
    """

    def __init__(self, terms: Sequence[Numbers]) -> None:
        n_levels = max((len(term) for term in terms), default=0)
        self._columns = np.arange(len(terms))
        self._terms = np.full((len(terms), n_levels + 1), _NOWHERE)  # the level above the highest one of all too
        for column, term in enumerate(terms):
            self._terms[column, : len(term)] = term

    def total(self, levels: Levels) -> float:
        """Sum of the terms of a node."""
        return float(self._terms[self._columns, levels].sum())

    def up(self, levels: Levels) -> Numbers:
        """Say what one level up on each column adds; infinite where there is none."""
        here = np.array(levels)
        return np.asarray(self._terms[self._columns, here + 1] - self._terms[self._columns, here])

    def down(self, levels: Levels) -> Numbers:
        """Say what one level down on each column adds, 0 or less; infinite where there is none."""
        here = np.array(levels)
        below = self._terms[self._columns, np.maximum(here - 1, 0)] - self._terms[self._columns, here]
        return np.where(here > 0, below, _NOWHERE)


def raised(levels: Levels, column: int, by: int = 1) -> Levels:
    """Node some levels up (down, if negative) on one column."""
    return (*levels[:column], levels[column] + by, *levels[column + 1 :])


def neighbours(levels: Levels, costs: StepCosts) -> Iterator[Levels]:
    """Nodes one level down or up on one column, or down on one and up on another; those with the least bound first.

    Examples
    --------
    >>> list(neighbours((0, 1), StepCosts([np.array([0.0, 2.0]), np.array([0.0, 1.0])])))
    [(0, 0), (1, 0), (1, 1)]
    """
    up, down = costs.up(levels), costs.down(levels)
    n_columns = len(levels)
    both = down[:, None] + up[None, :]
    np.fill_diagonal(both, _NOWHERE)
    added = np.concatenate([down, both.reshape(-1), up])
    for place in np.argsort(added, kind="stable")[: np.count_nonzero(np.isfinite(added))].tolist():
        lowered, lifted = divmod(place - n_columns, n_columns)
        if lowered < 0:
            yield raised(levels, place, -1)
        elif lowered < n_columns:
            yield raised(raised(levels, lowered, -1), lifted)
        else:
            yield raised(levels, lifted)


def divided_way_up(
    start: Levels, checker: NodeChecker, guide: Guide, max_suppressed: int | None = None
) -> Iterator[Levels]:
    """Nodes that divide a way up from an open node, until the lowest one on it that satisfies the goal is checked.

    The caller checks each node before it asks for the next. ``max_suppressed`` is a limit of suppressed rows to be kept
    on the way where it is not that of the goal.
    """
    allowed = checker.max_suppressed if max_suppressed is None else max_suppressed
    way = [start]
    while (following := _cheapest_step_up(way[-1], checker, guide)) is not None:
        way.append(following)
    low, high = 0, len(way) - 1
    jump = 1 if len(way) > _LONG_WAY else len(way)
    while low <= high:
        place = max((low + high) // 2, high - jump)
        yield way[place]
        found = checker.check(way[place])
        if found.n_suppressed <= allowed and found.spares_persons:
            high = place - 1
        else:
            low = place + 1
        jump *= 2


def _cheapest_step_up(levels: Levels, checker: NodeChecker, guide: Guide) -> Levels | None:
    """Open node one level up on one column whose bound is least; of equals the one that raises the last column."""
    added = guide.costs.up(levels)
    for column in np.lexsort((-np.arange(len(levels)), added)).tolist():
        checker.time_limit.check()
        if not np.isfinite(added[column]):
            return None
        following = raised(levels, column)
        if guide.is_open(following):
            return following
    return None


def better_neighbours(start: CheckedNode | None, checker: NodeChecker, guide: Guide) -> Iterator[Levels]:
    """Open nodes near a node that satisfies the goal, then near a better one among them, until none is better.

    The caller checks each node before it asks for the next.
    """
    found = start
    while found is not None:
        here, found = found, None
        for node in neighbours(here.levels, guide.costs):
            checker.time_limit.check()
            if guide.is_open(node):
                yield node
                if checker.check(node).rank < here.rank:
                    found = checker.check(node)
                    break


_LIFTS_PER_NODE = 2
_ROUGH_GAP = 0.03
_MOST_FRUITLESS = 8
"""Disturbances in a row that look at no new node, after which something else is tried."""
_MOST_RAISED = 3
"""Columns that a disturbance raises at most."""
_DISTURBANCES = (16, 32)
"""Disturbances before the nodes next to the best one are looked at, again and again; then the bound is raised."""
_NEAR = 0.9
_INFEASIBLE = 2
"""Status of SciPy's ``milp`` when no solution exists."""
_TOLERANCE = 1e-6
"""HiGHS's absolute tolerance; subtracted from its bounds."""
_WORTHWHILE = 1.25
"""How many times the best loss a node found otherwise may lose to be worth a search nearby."""

LADDER = (
    (0.0, 0.04),
    (0.005, 0.07),
    (0.01, 0.10),
    (0.015, 0.40),
    (0.02, 0.42),
    (0.03, 0.45),
    (0.05, 0.50),
    (0.1, 0.56),
    (0.2, 0.73),
    (0.3, 0.76),
    (0.5, 0.83),
    (1.0, 1.00),
)
"""Limits of suppressed rows that are searched one after the other, and the share of the time by which each ends.

The limits people ask for: the default of 1.5 % gets most.
"""
_LONGER = 0.1
"""Share of the time that a rung's way to a good node may take beyond its own: it is worth more than what follows."""
_FEW_ROWS = 32
"""Tables of so few rows have a rung for every number of suppressed rows."""


@dataclass(frozen=True)
class Rung:
    """Limit of suppressed rows, and the share of the time by which its search ends."""

    max_suppressed: int
    share: float


def rungs_below(problem: LatticeProblem) -> list[Rung]:
    """Rungs of the ladder up to the limit of a problem; what they are depends on its number of rows alone.

    Examples
    --------
    >>> maps, shares = ((np.array([0, 1]), np.array([0, 0])),), ((np.full(2, 0.5), np.ones(1)),)
    >>> codes, counts = np.array([[0], [1]]), np.array([500, 500])
    >>> problem = LatticeProblem(codes, counts, maps, shares, k=5, max_suppressed_fraction=0.008)
    >>> [rung.max_suppressed for rung in rungs_below(problem)]
    [0, 5]
    """
    n_rows = problem.n_rows
    share_of = {min(int(Fraction(str(fraction)) * n_rows), n_rows - 1): share for fraction, share in LADDER}
    if n_rows <= _FEW_ROWS:
        share_of = {n: (n + 1) / n_rows for n in range(n_rows)}
    return [Rung(n, share) for n, share in share_of.items() if n <= problem.max_suppressed]


class BoundedSearch:
    """Search that keeps the highest nodes known to fail, and the least bound of all others."""

    def __init__(self, checker: NodeChecker) -> None:
        self._checker = checker
        self._shape = checker.problem.shape
        self._terms = checker.loss.terms()
        self.costs = StepCosts(self._terms)
        self._program = _Program(self._terms)
        self._failing: NDArray[np.int64] = np.zeros((0, len(self._shape)), dtype=np.int64)
        self._random = np.random.default_rng(0)
        self._lowest_sum = self._least_sum = self.costs.total((0,) * len(self._shape))
        self._bound_of_cells = 0.0
        self.is_finished = False

    @property
    def bound(self) -> float:
        """No node that could still win loses less."""
        return max(float(self._checker.loss.of_sum(np.asarray(self._least_sum))), self._bound_of_cells)

    def run(self) -> None:
        """Search until the best node is proven, or until the checker's time is up."""
        whole, asked = self._checker.time_limit, self._checker.problem.max_suppressed
        for rung in rungs_below(self._checker.problem):
            self._begin(rung.max_suppressed)
            try:
                self._checker.time_limit = whole.part(min(rung.share + _LONGER, 1.0))
                self._descend()
                self._checker.time_limit = whole.part(rung.share)
                self._explore()
            except OutOfTime:
                if whole.is_over:
                    break
        if self._checker.max_suppressed != asked:
            self._begin(asked)

    def _begin(self, max_suppressed: int) -> None:
        """Judge what was found so far by a rung's limit: fewer nodes fail, and nothing is proven any more."""
        self._checker.allow(max_suppressed)
        self._failing = self._failing[:0]
        self._least_sum, self.is_finished = self._lowest_sum, False
        for found in self._checker.checked:
            self._note(found)

    def _descend(self) -> None:
        """Go down from the top, from the best node of smaller limits and from the lowest node of a way up."""
        bottom = (0,) * len(self._shape)
        self._bound_of_cells = self._take(bottom).bound
        plain = np.ones(len(self._shape))
        self._go_down(self._take(self._checker.problem.top), plain)
        self._go_down(self._checker.best, plain)
        lowest = None
        for levels in divided_way_up(bottom, self._checker, self):
            found = self._take(levels)
            lowest = found if found.satisfies else lowest
        if self._is_worthwhile(lowest):
            self._go_down(lowest, plain)

    def _explore(self) -> None:
        """Look near the best node and raise the bound in turn, until the best node is proven."""
        while not self.is_finished:
            for n_disturbances in _DISTURBANCES:
                self._disturb_often(n_disturbances)
                self._improve(self._checker.best)
            self._checker.time_limit.check()
            if not self._raise_bound():
                return

    def _disturb_often(self, n_times: int) -> None:
        """Disturb so many times, those not counted that look at no new node; stop when few such nodes are left."""
        n_fruitless = 0
        while n_times > 0 and n_fruitless < _MOST_FRUITLESS:
            self._checker.time_limit.check()
            n_checked = self._checker.n_checked
            self._disturb()
            is_fruitless = self._checker.n_checked == n_checked
            n_fruitless = n_fruitless + 1 if is_fruitless else 0
            n_times -= not is_fruitless

    def is_open(self, levels: Levels) -> bool:
        """Whether a node could still win."""
        if self._checker.is_checked(levels) or self._is_ruled_out(levels):
            return False
        best = self._checker.best
        if best is None:
            return True
        bound = float(self._checker.loss.of_sum(np.asarray(self.costs.total(levels))))
        return (round(bound - SLACK, DECIMALS), sum(levels), levels) < best.rank

    def _improve(self, start: CheckedNode | None) -> None:
        for levels in better_neighbours(start, self._checker, self):
            self._take(levels)

    def _is_worthwhile(self, start: CheckedNode | None) -> bool:
        best = self._checker.best
        return start is not None and best is not None and start.loss <= _WORTHWHILE * best.loss

    def _raise_bound(self) -> bool:
        """Solve the program, dive from its solution, then dive as long as that took; false when stuck."""
        limit = self._checker.time_limit
        left = limit.left
        best, lowest = self._checker.best, self._lowest_sum
        # once the bound is near the best node, the program must be solved exactly
        is_near = best is None or self._least_sum - lowest >= _NEAR * (self.costs.total(best.levels) - lowest)
        gap = 0.0 if is_near else _ROUGH_GAP
        solution = self._program.solve(self._failing, left / 2, gap)
        if solution.is_empty:
            self.is_finished = True
            return True
        self._least_sum = max(self._least_sum, solution.least_sum)
        if best is not None and self.bound > best.loss:
            self.is_finished = True
            return True
        if solution.levels in self._program.excluded:
            return False
        if solution.levels is not None:
            self._dive(solution.levels)
        solved = limit.left
        while solved - limit.left < left - solved:
            limit.check()
            self._dive((0,) * len(self._shape))
        return True

    def _disturb(self) -> None:
        """Take a few columns of the best node to their highest levels, and go down from there by another way."""
        best = self._checker.best
        raisable = [j for j, n in enumerate(self._shape) if best is not None and best.levels[j] + 1 < n]
        if best is None or not raisable:
            return
        n_raised = min(int(self._random.integers(1, _MOST_RAISED + 1)), len(raisable))
        levels = list(best.levels)
        for column in self._random.choice(raisable, size=n_raised, replace=False).tolist():
            levels[column] = self._shape[column] - 1
        self._go_down(self._take(tuple(levels)), np.exp(self._random.standard_normal(len(levels))))

    def _go_down(self, start: CheckedNode | None, luck: Numbers) -> None:
        """Lower one column after the other, the one that lowers the loss most, as long as the goal stays satisfied.

        Losses saved are multiplied by the luck of each column. A step is taken to save no more than it did when last
        looked at, so that few steps are looked at again; with no luck (all 1) this is ARX's top-down search, or nearly.
        """
        if start is None or not start.satisfies:
            return
        here = start
        steps = [(-_NOWHERE, column) for column, level in enumerate(here.levels) if level]
        while steps:
            _, column = heappop(steps)
            levels = raised(here.levels, column, -1)
            self._checker.time_limit.check()
            found = None if self._is_ruled_out(levels) else self._take(levels)
            if found is None or not found.rank < here.rank:
                continue
            saved = (found.loss - here.loss) * float(luck[column])
            if steps and saved > steps[0][0]:
                heappush(steps, (saved, column))
                continue
            here = found
            if here.levels[column]:
                heappush(steps, (saved, column))

    def _dive(self, start: Levels) -> None:
        """Go up from a node, past one failing node after the other, to one that does not fail or can no longer win."""
        levels = self._escaped(start)
        while levels is not None and (levels == start or self.is_open(levels)):
            found = self._take(levels)
            if not found.rules_out_below:
                self._program.excluded[levels] = None
                if self._is_worthwhile(found):
                    self._improve(found)
                break
            for _ in range(_LIFTS_PER_NODE):
                self._take(self._lifted(levels))
            levels = self._escaped(levels)

    def _escaped(self, levels: Levels) -> Levels | None:
        """Raise a node until it is below no failing one, by steps that pass many of them for little."""
        at = np.array(levels)
        while len(above := self._failing[(self._failing >= at).all(axis=1)]):
            self._checker.time_limit.check()
            best_ratio, step = -1.0, None
            luck = 0.5 + self._random.random(len(levels))
            for column, term in enumerate(self._terms):
                for level in range(int(at[column]) + 1, len(term)):
                    n_passed = int(np.count_nonzero(above[:, column] < level))
                    ratio = n_passed * luck[column] / (float(term[level] - term[at[column]]) + _TOLERANCE)
                    if ratio > best_ratio and n_passed:
                        best_ratio, step = ratio, (column, level)
            if step is None:
                return None
            at[step[0]] = step[1]
        return tuple(at.tolist())

    def _lifted(self, levels: Levels) -> Levels:
        """Node as high as can be that still fails; columns that cost little are more often raised first."""
        cost = np.array([term[-1] - term[level] for term, level in zip(self._terms, levels, strict=True)])
        cost *= self._random.random(len(cost))
        for column in np.argsort(cost, kind="stable").tolist():
            highest = self._shape[column] - 1
            to_top = raised(levels, column, highest - levels[column])
            if self._fails(to_top):
                levels = to_top
                continue
            while levels[column] + 1 < highest and self._fails(raised(levels, column)):
                levels = raised(levels, column)
        return levels

    def _fails(self, levels: Levels) -> bool:
        return self._is_ruled_out(levels) or self._checker.check(levels).rules_out_below

    def _is_ruled_out(self, levels: Levels) -> bool:
        return bool((self._failing >= np.array(levels)).all(axis=1).any())

    def _take(self, levels: Levels) -> CheckedNode:
        found = self._checker.check(levels)
        self._note(found)
        return found

    def _note(self, found: CheckedNode) -> None:
        if found.rules_out_below and not self._is_ruled_out(found.levels):
            above = ~(self._failing <= np.array(found.levels)).all(axis=1)
            self._failing = np.vstack([self._failing[above], [found.levels]])


@dataclass(frozen=True)
class _Solution:
    """Node with the least sum of terms among those not ruled out, and a sum that none of them is below."""

    levels: Levels | None = None
    least_sum: float = float("-inf")
    is_empty: bool = False


class _Program:
    """Integer program with a variable for each step up: whether column j is at level l or higher."""

    def __init__(self, terms: tuple[NDArray[np.float64], ...]) -> None:
        self._sizes = [len(term) - 1 for term in terms]
        self._first = np.concatenate([[0], np.cumsum(self._sizes)])
        self._costs = np.concatenate([np.maximum(np.diff(term), 0.0) for term in terms])
        self._base = sum(float(term[0]) for term in terms)
        self.excluded: dict[Levels, None] = {}

    def solve(self, failing: NDArray[np.int64], seconds: float, gap: float) -> _Solution:
        """Find the node with the least sum, up to a relative gap, that is neither below a failing node nor excluded."""
        if any(not self._steps_above(levels) for levels in failing.tolist()):
            return _Solution(is_empty=True)
        from scipy.optimize import Bounds, milp  # heavy, and most lattices need no program

        found = milp(
            self._costs,
            integrality=np.ones(len(self._costs)),
            bounds=Bounds(0, 1),
            constraints=self._constraints(failing),
            options={"time_limit": max(seconds, 0.01), "mip_rel_gap": gap},
        )
        if found.status == _INFEASIBLE:
            return _Solution(is_empty=True)
        known = found.mip_dual_bound
        least = self._base + float(known) - _TOLERANCE if known is not None else float("-inf")
        if found.x is None:
            return _Solution(least_sum=least)
        steps = np.round(found.x).astype(np.int64)
        levels = tuple(int(steps[a:b].sum()) for a, b in zip(self._first[:-1], self._first[1:], strict=True))
        return _Solution(levels, least)

    def _steps_above(self, levels: Sequence[int]) -> list[int]:
        return [int(self._first[j]) + level for j, level in enumerate(levels) if level < self._sizes[j]]

    def _constraints(self, failing: NDArray[np.int64]) -> LinearConstraint:
        """Each level on top of the one below it; above every failing node; no excluded node."""
        from scipy.optimize import LinearConstraint

        rows: list[tuple[list[int], list[int], int]] = []
        for j, size in enumerate(self._sizes):
            first = int(self._first[j])
            rows += [([first + level], [first + level + 1], 0) for level in range(size - 1)]
        rows += [(self._steps_above(levels), [], 1) for levels in failing.tolist()]
        for levels in self.excluded:
            taken = [int(self._first[j]) + level - 1 for j, level in enumerate(levels) if level > 0]
            rows.append((self._steps_above(levels), taken, 1 - len(taken)))
        columns = [place for plus, minus, _ in rows for place in (*plus, *minus)]
        signs = [sign for plus, minus, _ in rows for sign in (*[1.0] * len(plus), *[-1.0] * len(minus))]
        starts = np.concatenate([[0], np.cumsum([len(plus) + len(minus) for plus, minus, _ in rows])])
        matrix = csr_array((signs, columns, starts), shape=(len(rows), len(self._costs)))
        return LinearConstraint(matrix, lb=[least for _, _, least in rows])
