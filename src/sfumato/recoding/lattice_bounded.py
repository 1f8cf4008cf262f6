r"""Time-bounded search of a lattice too large to look at every node, with a proven bound on what any node loses.

A node that fails a monotone condition rules out all nodes below it. What is left are the nodes that are above each of
the nodes known to fail in at least one column; the least bound among these is a bound of the optimum. Finding it is a
small integer program (a hitting set over the steps "column j at level l or higher"), which SciPy's HiGHS solves. Its
solution is checked next: if it fails, it is lifted to as high a failing node as there is, which raises the bound; if it
satisfies the goal, it is a good answer. The search ends when the bound reaches the best loss, or when time is up. (The
scheme is that of implicit hitting sets: Chandrasekaran et al. 2011.)
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from sfumato.recoding.lattice import Levels
from sfumato.recoding.lattice_checks import DECIMALS, SLACK, CheckedNode, NodeChecker
from sfumato.recoding.lattice_moves import better_neighbours, divided_way_up, raised

_LIFTS_PER_NODE = 2
_ROUGH_GAP = 0.03
_NEAR = 0.9
_INFEASIBLE = 2
"""Status of SciPy's ``milp`` when no solution exists."""
_TOLERANCE = 1e-6
"""HiGHS's absolute tolerance; subtracted from its bounds."""


class BoundedSearch:
    """Search that keeps the highest nodes known to fail, and the least bound of all others."""

    def __init__(self, checker: NodeChecker, random_state: int = 0) -> None:
        self._checker = checker
        self._shape = checker.problem.shape
        self._terms = checker.loss.terms()
        self._program = _Program(self._terms)
        self._failing: NDArray[np.int64] = np.zeros((0, len(self._shape)), dtype=np.int64)
        self._random = np.random.default_rng(random_state)
        self._deadline = float("inf")
        self._least_sum = sum(float(term[0]) for term in self._terms)
        self._bound_of_cells = 0.0
        self.is_finished = False

    @property
    def bound(self) -> float:
        """No node that could still win loses less."""
        return max(float(self._checker.loss.of_sum(np.asarray(self._least_sum))), self._bound_of_cells)

    def run(self, deadline: float) -> None:
        """Search until the best node is proven, or until a moment of the monotonic clock."""
        self._deadline = deadline
        bottom = (0,) * len(self._shape)
        self._bound_of_cells = self._take(bottom).bound
        for levels in divided_way_up(bottom, self._checker, self):
            self._take(levels)
        self._take(self._checker.problem.top)
        self._improve(self._checker.best)
        while not self.is_finished and self._has_time():
            if not self._raise_bound():
                return

    def is_open(self, levels: Levels) -> bool:
        """Whether a node could still win."""
        if self._checker.is_checked(levels) or self._is_ruled_out(levels):
            return False
        best = self._checker.best
        if best is None:
            return True
        bound = float(self._checker.loss.of_sum(np.asarray(self.sum_of_terms(levels))))
        return (round(bound - SLACK, DECIMALS), sum(levels), levels) < best.rank

    def sum_of_terms(self, levels: Levels) -> float:
        """Sum that the bound of a node's loss is made of."""
        return float(sum(term[level] for term, level in zip(self._terms, levels, strict=True)))

    def _has_time(self) -> bool:
        return time.monotonic() < self._deadline

    def _improve(self, start: CheckedNode | None) -> None:
        for levels in better_neighbours(start, self._checker, self):
            self._take(levels)
            if not self._has_time():
                return

    def _raise_bound(self) -> bool:
        """Solve the program, dive from its solution, then dive and disturb as long as that took; false when stuck."""
        began = time.monotonic()
        gap = 0.0 if self._is_near() else _ROUGH_GAP
        solution = self._program.solve(self._failing, (self._deadline - began) / 2, gap)
        if solution.is_empty:
            self.is_finished = True
            return True
        self._least_sum = max(self._least_sum, solution.least_sum)
        best = self._checker.best
        if best is not None and self.bound > best.loss:
            self.is_finished = True
            return True
        if solution.levels in self._program.excluded:
            return False
        if solution.levels is not None:
            self._dive(solution.levels)
        solved = time.monotonic()
        while self._has_time() and time.monotonic() - solved < solved - began:
            self._dive((0,) * len(self._shape))
        dived = time.monotonic()
        while self._has_time() and time.monotonic() - dived < solved - began:
            self._disturb()
        return True

    def _is_near(self) -> bool:
        """Whether the bound is so near to the best node that the program must be solved exactly."""
        best = self._checker.best
        lowest = sum(float(term[0]) for term in self._terms)
        return best is None or self._least_sum - lowest >= _NEAR * (self.sum_of_terms(best.levels) - lowest)

    def _disturb(self) -> None:
        """Lower a few columns of the best node, repair it by raising others, and look for better nodes nearby."""
        best = self._checker.best
        if best is None or not any(best.levels):
            return
        levels = best.levels
        lowerable = [j for j, level in enumerate(levels) if level]
        lowered = self._random.choice(
            lowerable, size=min(int(self._random.integers(1, 4)), len(lowerable)), replace=False
        )
        for column in lowered.tolist():
            levels = raised(levels, column, -int(self._random.integers(1, levels[column] + 1)))
        while self.is_open(levels) or self._is_ruled_out(levels):
            found = self._take(levels)
            if found.satisfies:
                self._improve(found)
                return
            usable = [j for j, n in enumerate(self._shape) if levels[j] + 1 < n and j not in lowered]
            if not usable or not self._has_time():
                return
            levels = raised(levels, max(usable, key=lambda j: self._relief(found, j)))

    def _relief(self, found: CheckedNode, column: int) -> float:
        """Rows no longer suppressed one level up on a column, for what that level adds to the bound."""
        level, term = found.levels[column], self._terms[column]
        gained = found.n_suppressed - self._take(raised(found.levels, column)).n_suppressed
        return gained / (float(term[level + 1] - term[level]) + _TOLERANCE)

    def _dive(self, start: Levels) -> None:
        """Go up from a node, past one failing node after the other, to one that does not fail or can no longer win."""
        levels = self._escaped(start)
        while levels is not None and self._has_time() and (levels == start or self.is_open(levels)):
            found = self._take(levels)
            if not found.rules_out_below:
                self._program.excluded[levels] = None
                if found.satisfies:
                    self._improve(found)
                break
            for _ in range(_LIFTS_PER_NODE):
                self._take(self._lifted(levels))
            levels = self._escaped(levels)

    def _escaped(self, levels: Levels) -> Levels | None:
        """Raise a node until it is below no failing one, by steps that pass many of them for little."""
        at = np.array(levels)
        while len(above := self._failing[(self._failing >= at).all(axis=1)]):
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
            while levels[column] + 1 < highest and self._has_time() and self._fails(raised(levels, column)):
                levels = raised(levels, column)
        return levels

    def _fails(self, levels: Levels) -> bool:
        return self._is_ruled_out(levels) or self._checker.check(levels).rules_out_below

    def _is_ruled_out(self, levels: Levels) -> bool:
        return bool((self._failing >= np.array(levels)).all(axis=1).any())

    def _take(self, levels: Levels) -> CheckedNode:
        found = self._checker.check(levels)
        if found.rules_out_below and not self._is_ruled_out(levels):
            above = ~(self._failing <= np.array(levels)).all(axis=1)
            self._failing = np.vstack([self._failing[above], [levels]])
        return found


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
