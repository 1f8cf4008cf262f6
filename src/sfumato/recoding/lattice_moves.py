"""Ways through a lattice of hierarchy levels that soon meet good nodes.

Steps are compared by what they add to the bound of the loss, all at once, so that a way through hundreds of columns
takes no longer than the checks of the nodes on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.recoding.lattice import Levels
from sfumato.recoding.lattice_checks import CheckedNode, NodeChecker

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
        if checker.check(way[place]).n_suppressed <= allowed:
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
