"""Ways through a lattice of hierarchy levels that soon meet good nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from sfumato.recoding.lattice import Levels
from sfumato.recoding.lattice_checks import CheckedNode, NodeChecker


class Guide(Protocol):
    """What a search knows about nodes."""

    def is_open(self, levels: Levels) -> bool:
        """Whether a node could still win."""
        ...

    def sum_of_terms(self, levels: Levels) -> float:
        """Sum that the bound of a node's loss is made of; grows going up."""
        ...


def successors(levels: Levels, shape: Levels) -> list[Levels]:
    """Nodes one level up on one column."""
    return [raised(levels, j) for j, level in enumerate(levels) if level + 1 < shape[j]]


def raised(levels: Levels, column: int, by: int = 1) -> Levels:
    """Node some levels up (down, if negative) on one column."""
    return (*levels[:column], levels[column] + by, *levels[column + 1 :])


def neighbours(levels: Levels, shape: Levels) -> list[Levels]:
    """Nodes one level down or up on one column, or down on one and up on another.

    Examples
    --------
    >>> neighbours((0, 1), (2, 2))
    [(0, 0), (1, 0), (1, 1)]
    """
    below = [raised(levels, j, -1) for j, level in enumerate(levels) if level > 0]
    beside = [other for node in below for other in successors(node, shape) if other != levels]
    return below + beside + successors(levels, shape)


def lowest_first(nodes: list[Levels], guide: Guide) -> list[Levels]:
    """Nodes by what their bounds are made of, then by levels."""
    return sorted(nodes, key=lambda levels: (guide.sum_of_terms(levels), levels))


def divided_way_up(start: Levels, checker: NodeChecker, guide: Guide) -> Iterator[Levels]:
    """Nodes that halve a way up from an open node, until the lowest one on it that satisfies the goal is checked.

    The caller checks each node before it asks for the next.
    """
    way = [start]
    shape = checker.problem.shape
    while usable := [node for node in successors(way[-1], shape) if guide.is_open(node)]:
        way.append(lowest_first(usable, guide)[0])
    low, high = 0, len(way) - 1
    while low <= high:
        middle = (low + high) // 2
        yield way[middle]
        if checker.check(way[middle]).satisfies:
            high = middle - 1
        else:
            low = middle + 1


def better_neighbours(start: CheckedNode | None, checker: NodeChecker, guide: Guide) -> Iterator[Levels]:
    """Open nodes near a node that satisfies the goal, then near a better one among them, until none is better.

    The caller checks each node before it asks for the next.
    """
    found = start
    while found is not None:
        here, found = found, None
        for node in lowest_first(neighbours(here.levels, checker.problem.shape), guide):
            if guide.is_open(node):
                yield node
                if checker.check(node).rank < here.rank:
                    found = checker.check(node)
                    break
