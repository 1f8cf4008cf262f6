"""Local recoding on top of a global one: rows that it suppressed are recoded again among themselves.

The suppressed cells are a table of their own. Of the nodes that release at least half of its rows (any of them, if no
node releases half) in classes that satisfy the same goal, the least lossy one is taken; what that suppresses is
searched again, until nothing more can be released. (The iterative local recoding of ARX: Prasser et al. 2020.) Classes
of different rounds that happen to have equal labels only make larger classes, which satisfy the goal as well.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.recoding.lattice import LatticeProblem, Levels, Places
from sfumato.recoding.lattice_search import LatticeResult, search_lattice


@dataclass(frozen=True, eq=False, repr=False)
class Regrouping:
    """Rounds of recoding, each with levels of its own.

    Parameters
    ----------
    levels : tuple of levels
        Of each round; the first is the global recoding.
    rounds : int array
        Round in which each cell is released, -1 where it never is.
    classes : int array
        Class of each cell, numbered over all rounds, -1 where it is suppressed.
    n_suppressed : int
        Rows that no round releases.
    seconds : float
        That the further rounds took.
    """

    levels: tuple[Levels, ...]
    rounds: Places
    classes: Places
    n_suppressed: int
    seconds: float

    def __repr__(self) -> str:
        return f"Regrouping({len(self.levels)} rounds, {self.n_suppressed:,} rows suppressed)"


def regroup(problem: LatticeProblem, first: LatticeResult, max_seconds: float | None = None) -> Regrouping:
    """Recode again what a global recoding suppressed, until nothing more can be released.

    Parameters
    ----------
    problem : LatticeProblem
    first : LatticeResult
        Of the problem.
    max_seconds : float or None
        Stop then: a round under way ends with the best node it found, and no further one begins. ``None``: no limit.

    Raises
    ------
    InvalidParameterError
        If a condition on classes depends on what else is released (t-closeness): a further round would move the
        distribution that earlier rounds were compared with.
    """
    if any(model.depends_on_kept for model in problem.models):
        got = f"got {next(m.describe() for m in problem.models if m.depends_on_kept)}"
        raise InvalidParameterError("models", got, allowed="conditions on single classes to regroup rows")
    began = time.monotonic()
    deadline = None if max_seconds is None else began + max_seconds
    levels, classes = [first.levels], first.classes.copy()
    rounds = np.where(classes >= 0, 0, -1)
    while True:
        left = np.flatnonzero(rounds < 0)
        found = _round(problem, left, deadline)
        if found is None:
            break
        released = found.classes >= 0
        rounds[left[released]] = len(levels)
        classes[left[released]] = found.classes[released] + classes.max() + 1
        levels.append(found.levels)
    n_suppressed = int(problem.counts[rounds < 0].sum())
    return Regrouping(tuple(levels), rounds, classes, n_suppressed, time.monotonic() - began)


def _round(problem: LatticeProblem, cells: Places, deadline: float | None) -> LatticeResult | None:
    """Least lossy node of some cells that releases half of their rows, or else any of them; none if time is up."""
    n_rows = int(problem.counts[cells].sum())
    if n_rows < problem.k:
        return None
    part = replace(
        problem,
        codes=problem.codes[cells],
        counts=problem.counts[cells],
        sensitive=tuple(column[cells] for column in problem.sensitive),
        target=None if problem.target is None else problem.target[cells],
    )
    for max_suppressed_fraction in (0.5, (n_rows - 0.5) / n_rows):
        seconds = None if deadline is None else deadline - time.monotonic()
        if seconds is not None and seconds <= 0:
            return None
        try:
            return search_lattice(replace(part, max_suppressed_fraction=max_suppressed_fraction), seconds)
        except PrivacyNotAchievableError:
            continue
    return None
