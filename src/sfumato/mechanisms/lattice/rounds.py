r"""Local recoding in rounds: each round takes the node that costs least on the rows it releases; the others wait.

The scheme is ARX's ``optimizeIterativeFast`` ([PEK20]_): a round searches the lattice for the rows that are left.
Classes that satisfy the goal are released at the levels of the node. Rows in other classes cost nothing in this round,
because they are left to the next one. A node must release a share of all rows, 1 % by default (a tenth of what is left,
once that is less), so that rounds are few. Two things differ from ARX: the score of a node is the *mean* cost of a
released row (ARX adds the costs up, which prefers nodes that release just enough rows), and **every row is released**.

That every row is released follows from one rule: the rows that a round leaves must satisfy the goal as one class.
Where they would not, the round holds back its most costly classes until they do. The last round can then always release
the rest, with every value generalized to the top if nothing better is found. So no row is left out, the distribution
of sensitive values in the release is that of the original table, and t, β and δ are measured against both at once.

Classes of different rounds may have equal labels. They then make up one class of the release, which satisfies
the goal as well: sizes and numbers of values only grow, and entropy l-diversity, recursive (c, l)-diversity and
t-closeness and limits of shares beside a fixed distribution hold for a union of classes that satisfy them
(:mod:`sfumato.mechanisms.lattice.conditions`).

**How a round finds its node.** A row's certainty penalty at a node depends on its values and the levels alone and never
falls going up. So the mean over the cheapest rows, as many as a node must release, bounds its score from below. From
round to round rows are only taken away: a node can release no row later that it could not release before. Bounds found
in one round therefore hold in later ones, nodes are looked at in the order of their bounds, and a round ends as soon as
the next bound is above the best score found. A node that cannot release enough rows rules out all nodes below it, for
good. On lattices of more than :data:`MOST_HELD` nodes, and for losses of classes, which have no such bound, a round
looks near the last round's node and at the best nodes of earlier rounds instead. The work is counted in values looked
at, never in seconds, so that the same table gives the same release.

References
----------
.. [PEK20] Prasser, Eicher, Spengler, Bild, Kuhn: Flexible data anonymization using ARX. Software: Practice and
   Experience 50 (2020).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.mechanisms.lattice.bounded_search import StepCosts, neighbours, raised
from sfumato.mechanisms.lattice.lattice import ClassTable, LatticeProblem, Levels, Places, RollUp, bincount
from sfumato.mechanisms.lattice.losses import (
    TARGET_LOSSES,
    certainty_penalties,
    cheapest_rows,
    class_starts,
    label_rows,
    shares_of_weight,
    target_counts,
    targets_of,
)
from sfumato.mechanisms.lattice.node_checks import DECIMALS, SLACK, Judge
from sfumato.progress import Progress

Numbers = NDArray[np.float64]

LOCAL_LOSSES = ("certainty_penalty", "target_information")
"""Losses by which a round may be scored."""
MOST_HELD = 200_000
"""Most nodes for which a bound is held, so that a round's best node is proven."""
COST_OF_A_LOOK = 1_000
"""Distinct rows whose values cost as much to look at as a look costs in any case."""
_SHARE_OF_WORK = 0.1
"""Share of the work left that one round may use."""
_SHARE_OF_REST = 10
"""A round need not release more than one of so many rows that are left."""
_MUCH_LESS = 3
"""Bounds are found anew when a round need only release this many times fewer rows than the last one."""
_REVISITED = 50
"""Nodes of earlier rounds that a round without bounds looks at again."""


@dataclass(frozen=True, eq=False, repr=False)
class LocalResult:
    """Rounds of a local recoding.

    Parameters
    ----------
    levels : tuple of levels
        Of each round, in the columns' hierarchies.
    rounds : int array
        Round in which each cell is released; every cell is.
    n_checked : int
        Nodes looked at, over all rounds.
    proven : bool
        Whether in every round no other node scores better. (Other rounds may still lead to a better release.) Never
        where the problem begins above the finest levels.
    """

    levels: tuple[Levels, ...]
    rounds: Places
    n_checked: int
    proven: bool

    def __repr__(self) -> str:
        return f"LocalResult({len(self.levels)} rounds, {self.n_checked:,} nodes checked)"


def recode_in_rounds(
    problem: LatticeProblem,
    min_released_fraction: float = 0.01,
    max_values_checked: int = 4 * 10**9,
    *,
    progress: Progress | None = None,
) -> LocalResult:
    """Release all cells of a problem in rounds, each at the node that costs least on the rows it releases.

    Parameters
    ----------
    problem : LatticeProblem
        With hierarchies that end in one label; its limit of suppressed rows is not used.
    min_released_fraction : float
        Share of all rows that a round must release.
    max_values_checked : int
        Values to look at over all nodes: for each one the distinct rows left and :data:`COST_OF_A_LOOK` more, times the
        columns. Each round may use a tenth of what is left, so that the last ones take the first node that they find.
    progress : callable or None
        Called after each round with the rows released so far and all rows.

    Raises
    ------
    PrivacyNotAchievableError
        If all rows together, generalized to the top, do not satisfy the goal.

    Examples
    --------
    >>> ages = (np.array([0, 1, 2, 3]), np.array([0, 0, 1, 1]), np.array([0, 0, 0, 0]))
    >>> shares = (np.full(4, 0.25), np.full(2, 0.5), np.ones(1))
    >>> cells = np.array([[0], [1], [2], [3]], dtype=np.int32)
    >>> problem = LatticeProblem(cells, np.array([3, 1, 2, 3]), (ages,), (shares,), k=3, loss="certainty_penalty")
    >>> found = recode_in_rounds(problem)
    >>> found.levels, found.rounds.tolist()
    (((0,), (2,)), [0, 1, 1, 0])
    """
    if not 0 < min_released_fraction <= 1:
        got = f"got {min_released_fraction!r}"
        raise InvalidParameterError("min_released_fraction", got, allowed="above 0 and at most 1")
    if any(int(maps[-1].max()) > 0 for maps in problem.level_maps):
        raise InvalidParameterError("level_maps", "some do not end in one label", allowed="hierarchies with one top")
    return _Rounds(problem, min_released_fraction, max_values_checked).run(progress)


class _Score(Protocol):
    """What a row of a class costs at a node."""

    def costs(self, table: ClassTable, classes: Places) -> Numbers:
        """Mean cost of the rows of each class."""
        ...


class _Penalties:
    """Certainty penalty of a row, a weighted mean over columns; the bound of a node is made of it too."""

    def __init__(self, problem: LatticeProblem) -> None:
        self._weights = shares_of_weight(problem)
        self._penalties = certainty_penalties(problem)

    def costs(self, table: ClassTable, classes: Places) -> Numbers:
        """Penalty of each class."""
        total = np.zeros(len(classes))
        for column, level in enumerate(table.levels):
            penalties = self._penalties[column][level]
            if len(penalties) == 1:
                total += self._weights[column] * penalties[0]
            else:
                total += self._weights[column] * penalties[table.class_labels(column, classes)]
        return total

    def terms(self, part: LatticeProblem, n_rows: int) -> list[Numbers]:
        """For each column and level the mean penalty of the cheapest rows, so many of them."""
        return [
            weight * np.array([cheapest_rows(*pair)(n_rows) / n_rows for pair in zip(rows, penalties, strict=True)])
            for weight, rows, penalties in zip(self._weights, label_rows(part), self._penalties, strict=True)
        ]


class _LostInformation:
    """Bits about the target that a row's class no longer tells and its cell did: H(T | class) - H(T | cell)."""

    def __init__(self, part: LatticeProblem, roll_up: RollUp) -> None:
        self._roll_up = roll_up
        self._targets = targets_of(part, roll_up)
        cells = roll_up.classes_of_cells((0,) * part.n_columns)
        in_cell = np.stack([cells, np.asarray(part.target, dtype=np.intp)])
        pairs, place = np.unique(in_cell, axis=1, return_inverse=True)
        of_pair = bincount(place.reshape(-1), part.counts, pairs.shape[1])
        of_cell = bincount(cells, part.counts, int(cells.max()) + 1)
        self._cell_bits = part.counts * np.log2(of_cell[cells] / of_pair[place.reshape(-1)])

    def costs(self, table: ClassTable, classes: Places) -> Numbers:
        """Bits lost by a row of each class."""
        of_pair, counts = target_counts(table, self._targets)
        bits = np.add.reduceat(counts * np.log2(table.sizes[of_pair] / counts), class_starts(of_pair))
        known = np.bincount(self._roll_up.classes_of_cells(table.levels), self._cell_bits, table.n_classes)
        return np.asarray(np.maximum(bits - known, 0.0)[classes] / table.sizes[classes])


@dataclass(frozen=True, eq=False)
class _Look:
    """What a look at a node found.

    ``rank`` is ``None`` where the node releases too few rows; ``bound`` is infinite where no node below it can release
    enough, else no later round's score is below it.
    """

    bound: float
    rank: tuple[float, int, int, Levels] | None = None
    released: NDArray[np.bool_] | None = None

    @property
    def rules_out_below(self) -> bool:
        """Whether no node below can release enough rows."""
        return math.isinf(self.bound)


class _HeldNodes:
    """Bound of every node of a lattice."""

    def __init__(self, terms: list[Numbers]) -> None:
        total = np.zeros(())
        for term in terms:
            total = np.add.outer(total, term)
        self._bounds = total

    def bound(self, levels: Levels) -> float:
        """Least score of a node in this round and all later ones."""
        return float(self._bounds[levels])

    def note(self, levels: Levels, look: _Look) -> None:
        """Keep what a look tells about later ones."""
        if look.rules_out_below:
            self._bounds[tuple(slice(0, level + 1) for level in levels)] = np.inf
        else:
            self._bounds[levels] = max(self._bounds[levels], look.bound)

    def in_order(self) -> Iterator[Levels]:
        """Nodes by their bounds as they were when the first one was asked for, lowest first."""
        flat = self._bounds.reshape(-1)
        open_nodes = np.flatnonzero(np.isfinite(flat))
        for node in open_nodes[np.argsort(flat[open_nodes], kind="stable")]:
            yield tuple(int(level) for level in np.unravel_index(node, self._bounds.shape))


class _MetNodes:
    """Nodes that were looked at, of a lattice too large to hold a bound for each, or for a loss without bounds."""

    def __init__(self, terms: list[Numbers] | None) -> None:
        self._costs = None if terms is None else StepCosts(terms)
        self._failing: NDArray[np.int64] = np.zeros((0, 0), dtype=np.int64)
        self._last: dict[Levels, float] = {}

    def bound(self, levels: Levels) -> float:
        """Least score of a node."""
        if len(self._failing) and bool((self._failing >= np.array(levels)).all(axis=1).any()):
            return float("inf")
        return 0.0 if self._costs is None else self._costs.total(levels)

    def note(self, levels: Levels, look: _Look) -> None:
        """Keep what a look tells about later ones."""
        self._last.pop(levels, None)
        if look.rules_out_below:
            below = (self._failing <= np.array(levels)).all(axis=1) if len(self._failing) else np.zeros(0, np.bool_)
            kept = self._failing[~below].reshape(-1, len(levels))
            self._failing = np.vstack([kept, np.array([levels], dtype=np.int64)])
        elif look.rank is not None:
            self._last[levels] = look.rank[0]

    def promising(self) -> list[Levels]:
        """Nodes with the best scores when last looked at."""
        return sorted(self._last, key=lambda levels: (self._last[levels], levels))[:_REVISITED]


class _Rounds:
    """State that lasts over the rounds of one recoding."""

    def __init__(self, problem: LatticeProblem, min_released_fraction: float, max_values_checked: int) -> None:
        self._problem = problem
        self._least = max(math.ceil(Fraction(str(float(min_released_fraction))) * problem.n_rows), 1)
        self._work_left = max_values_checked
        self._penalties = _Penalties(problem)
        self._with_target = problem.loss in TARGET_LOSSES
        self._totals = [bincount(c, problem.counts, int(c.max()) + 1) for c in problem.sensitive]
        self._n_checked = 0
        self._proven = True

    def run(self, progress: Progress | None) -> LocalResult:
        """Release all rows."""
        problem = self._problem
        of_cell = np.full(len(problem.counts), -1, dtype=np.intp)
        levels: list[Levels] = []
        left, needed, nodes = np.arange(len(problem.counts)), 0, None
        while len(left):
            part = self._part(left)
            wanted = min(self._least, -(-part.n_rows // _SHARE_OF_REST))
            if nodes is None or needed > min(_MUCH_LESS * wanted, part.n_rows):
                needed, nodes = wanted, self._nodes(part, wanted)
            # the cost of steps up is that of the penalties, whatever the score is
            costs = StepCosts(self._penalties.terms(part, needed))
            this_round = _Round(part, needed, nodes, self._tools(part), costs, _SHARE_OF_WORK * self._work_left)
            start = levels[-1] if levels else (0,) * problem.n_columns
            best, released = this_round.run(start)
            self._n_checked += this_round.n_checked
            self._work_left -= this_round.n_checked * this_round.work_of_a_look
            self._proven &= this_round.is_proven
            of_cell[left[released]] = len(levels)
            left = left[~released]
            levels.append(best)
            if progress is not None:
                progress(problem.n_rows - int(problem.counts[left].sum()), problem.n_rows, "rows released")
        in_hierarchies = tuple(problem.in_hierarchies(node) for node in levels)
        return LocalResult(in_hierarchies, of_cell, self._n_checked, self._proven and problem.is_from_finest)

    def _part(self, cells: Places) -> LatticeProblem:
        problem = self._problem
        return replace(
            problem,
            codes=problem.codes[cells],
            counts=problem.counts[cells],
            sensitive=tuple(column[cells] for column in problem.sensitive),
            target=None if problem.target is None else problem.target[cells],
        )

    def _nodes(self, part: LatticeProblem, needed: int) -> _HeldNodes | _MetNodes:
        if self._with_target:
            return _MetNodes(None)
        terms = self._penalties.terms(part, needed)
        return _HeldNodes(terms) if part.n_nodes <= MOST_HELD else _MetNodes(terms)

    def _tools(self, part: LatticeProblem) -> tuple[RollUp, Judge, _Score]:
        """Tools to look at the nodes of the rows that are left."""
        roll_up = RollUp(part, with_target=self._with_target)
        score = _LostInformation(part, roll_up) if self._with_target else self._penalties
        return roll_up, Judge(part, roll_up.combinations, self._totals), score


class _Enough(Exception):  # noqa: N818  # no error: what the round found so far is its answer
    """A round has used the work that it may use."""


class _Round:
    """One round: the node that costs least on the rows that it releases."""

    def __init__(
        self,
        part: LatticeProblem,
        needed: int,
        nodes: _HeldNodes | _MetNodes,
        tools: tuple[RollUp, Judge, _Score],
        costs: StepCosts,
        work_left: float,
    ) -> None:
        self._part = part
        self._needed = needed
        self._nodes = nodes
        self._roll_up, self._judge, self._score = tools
        self._costs = costs
        self._looked: dict[Levels, _Look] = {}
        self._best: _Look | None = None
        self._work_left = work_left
        self.work_of_a_look = (len(part.counts) + COST_OF_A_LOOK) * part.n_columns
        self.is_proven = True

    @property
    def n_checked(self) -> int:
        """Nodes looked at."""
        return len(self._looked)

    def run(self, start: Levels) -> tuple[Levels, NDArray[np.bool_]]:
        """Find the node; gives its levels and which cells it releases."""
        self._climb(start)
        try:
            self._improve()
            if isinstance(self._nodes, _HeldNodes):
                self._prove(self._nodes)
            else:
                self.is_proven = False
                for levels in self._nodes.promising():
                    self._look_if_open(levels)
                self._improve()
        except _Enough:
            self.is_proven = False
        if self._best is None or self._best.rank is None or self._best.released is None:
            raise self._not_achievable()
        levels = self._best.rank[-1]
        return levels, self._best.released[self._roll_up.classes_of_cells(levels)]

    def _climb(self, start: Levels) -> None:
        """Find the lowest node that releases enough on the cheapest way from a node to the top."""
        way = [start]
        while (added := self._costs.up(way[-1])).size and np.isfinite(added).any():
            way.append(raised(way[-1], int(np.argmin(added))))
        low, high = 0, len(way) - 1
        while low <= high:
            place = (low + high) // 2
            if self._look(way[place]).rank is not None:
                high = place - 1
            else:
                low = place + 1

    def _improve(self) -> None:
        """Look near the best node, then near a better one found there, until none is better."""
        here = None
        while self._best is not None and self._best.rank is not None and self._best is not here:
            here = self._best
            for levels in neighbours(self._best.rank[-1], self._costs):
                self._look_if_open(levels)
                if self._best is not here:
                    break

    def _prove(self, nodes: _HeldNodes) -> None:
        """Look at every node that its bound does not exclude."""
        for levels in nodes.in_order():
            if self._best is not None and not self._could_win(nodes.bound(levels)):
                # bounds that rose since the order was made are those of nodes looked at in this round
                if math.isfinite(nodes.bound(levels)) and levels not in self._looked:
                    return
                continue
            self._look_if_open(levels)

    def _could_win(self, bound: float) -> bool:
        best = self._best.rank if self._best is not None else None
        return best is None or round(bound - SLACK, DECIMALS) <= best[0]

    def _look_if_open(self, levels: Levels) -> None:
        bound = self._nodes.bound(levels)
        if levels in self._looked or math.isinf(bound) or not self._could_win(bound):
            return
        if self._work_left <= 0:
            raise _Enough
        self._look(levels)

    def _look(self, levels: Levels) -> _Look:
        if levels not in self._looked:
            self._work_left -= self.work_of_a_look
            self._looked[levels] = look = self._found(levels)
            self._nodes.note(levels, look)
            if look.rank is not None and (self._best is None or look.rank < (self._best.rank or look.rank)):
                self._best = look
        return self._looked[levels]

    def _found(self, levels: Levels) -> _Look:
        table = self._roll_up.table(levels)
        verdict = self._judge.judge(table)
        possible = np.flatnonzero(verdict.possible)
        sizes = table.sizes[possible]
        if int(sizes.sum()) < self._needed:
            return _Look(float("inf"))
        costs = self._score.costs(table, possible)
        order = np.argsort(np.round(costs, DECIMALS), kind="stable")  # rounded: equal ones in the order of their labels
        possible, sizes, costs = possible[order], sizes[order], costs[order]
        bound = cheapest_rows(sizes, costs)(self._needed) / self._needed
        is_kept = verdict.kept[possible]
        classes, sizes, costs = possible[is_kept], sizes[is_kept], costs[is_kept]
        n_classes = self._n_released(table, classes, np.cumsum(sizes))
        n_rows = int(sizes[:n_classes].sum())
        if n_rows < self._needed:
            return _Look(bound)
        score = float(sizes[:n_classes] @ costs[:n_classes]) / n_rows
        released = np.zeros(table.n_classes, dtype=np.bool_)
        released[classes[:n_classes]] = True
        return _Look(bound, (round(score, DECIMALS), -n_rows, sum(levels), levels), released)

    def _n_released(self, table: ClassTable, classes: Places, n_rows: NDArray[np.int64]) -> int:
        """Of classes, cheapest first, how many can be released so that the rest satisfies the goal as one class.

        ``n_rows`` are the rows of the first classes.
        """
        n_left = self._part.n_rows
        if not len(classes) or n_rows[-1] == n_left:
            return len(classes)
        n_released = int(np.searchsorted(n_rows, n_left - self._part.k, side="right"))
        step = 1
        while n_released > 0 and n_rows[n_released - 1] >= self._needed:
            rest = np.ones(table.n_classes, dtype=np.bool_)
            rest[classes[:n_released]] = False
            if self._judge.are_safe_together(table, rest):
                return n_released
            n_released, step = n_released - step, 2 * step
        return 0

    def _not_achievable(self) -> PrivacyNotAchievableError:
        found = self._judge.worst_levels(self._roll_up.table(self._part.top))
        goal, level, _ = next((missed for missed in found if not missed[2]), found[0])
        hint = "lower the goal: all rows together, generalized to the top, do not satisfy it"
        return PrivacyNotAchievableError(goal, best_level=level, hint=hint)
