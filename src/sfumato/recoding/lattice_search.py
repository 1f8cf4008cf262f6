"""Least lossy node of a lattice of hierarchy levels that satisfies a privacy goal, found exactly.

Nodes are ordered by what they lose, then by the sum of their levels, then by the levels from the first column on; the
first node that satisfies the goal is the answer, whatever the search looked at before. Losses that differ by less than
5e-11 count as equal.

How the search gets there: the bound of the loss (see :mod:`sfumato.recoding.lattice_losses`) never falls going up, so
the nodes that could still win lie below a border. Once a good node is known, nodes are checked from that border down: a
node that fails a monotone condition rules out all nodes below it, and one that satisfies the goal lowers the border.
"""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.recoding.lattice import LatticeProblem, Levels, Places
from sfumato.recoding.lattice_bounded import BoundedSearch
from sfumato.recoding.lattice_checks import NodeChecker
from sfumato.recoding.lattice_exact import MAX_NODES, ExactSearch
from sfumato.recoding.time_limit import Clock, TimeLimit

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
        Level of each column.
    loss : float
    n_suppressed : int
        Rows in classes that violate the goal and are left out.
    classes : int array
        Class of each cell, -1 where it is suppressed.
    n_checked : int
        Nodes whose classes were looked at.
    proven : bool
        Whether no other node can be better.
    bound : float
        No node loses less than this; the loss itself when proven. Often far below what any node loses.
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
    bound = best.loss if search.is_finished else min(best.loss, search.bound)
    return LatticeResult(
        best.levels, best.loss, best.n_suppressed, classes, checker.n_checked, search.is_finished, bound, limit.elapsed
    )


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
    return PrivacyNotAchievableError(text, best_level=level, hint=hint)
