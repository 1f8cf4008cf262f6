r"""Levels at which a table's distinct rows are counted, where the distinct rows of its values do not fit in memory.

Classes of a node are whole classes of any node below it. So from the distinct rows at a *base* every node at or above
it is known exactly, and nothing is known of the others. Which base is taken decides what can be found, and follows a
way up from the finest levels: the first node of the way whose distinct rows fit.

**The way.** With :math:`H_j(l)` the entropy of column j at level l and :math:`P_j(l)` the mean share of its hierarchy's
values that a cell leaves open, the distinct rows are about :math:`2^{\sum_j H_j}` where columns are independent. The
least penalty :math:`\sum_j w_j P_j` for a given sum of entropies is found, but for the last step, by raising columns
in the order of bits saved per penalty, each along the convex hull of its own levels. Both follow from the columns one
by one, so that the way needs no look at the rows and is the same for the same values, however they are sorted. That
columns hang together makes some steps useless, and never the counts wrong: whether the distinct rows of a node fit is
found by counting them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.measures.information import entropy_bits
from sfumato.mechanisms.hierarchies.hierarchy import Covered, Hierarchy
from sfumato.mechanisms.lattice.lattice import Levels

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
RowsOfValues = Callable[[NDArray[np.bool_]], Sequence[Ints]]
"""Takes which distinct rows are released; gives for each column the released rows of each of its values."""

_LEAST_COST = 1e-12
"""So that a column of weight 0 is raised first, and not divided by."""


@dataclass(frozen=True, eq=False, repr=False)
class BaseLevels:
    """Hierarchies of some columns and the levels that their distinct rows were counted at.

    Parameters
    ----------
    hierarchies : tuple of Hierarchy
    fitted : tuple of Covered
        The hierarchies fitted to the columns.
    levels : tuple of int
        Of each column.
    rows_of_values : callable or None
        Ints the released rows of each value, which distinct rows at the base do not tell; ``None`` where the table
        tells it, because its rows are those of the values.
    """

    hierarchies: tuple[Hierarchy, ...]
    fitted: tuple[Covered, ...]
    levels: Levels
    rows_of_values: RowsOfValues | None = None

    def __repr__(self) -> str:
        return (
            f"BaseLevels({', '.join(f'{c.name} {level}' for c, level in zip(self.fitted, self.levels, strict=True))})"
        )

    @property
    def statement(self) -> str:
        """What a manifest says of the levels that were not searched; nothing where all were."""
        raised = [f"'{c.name}' {level}" for c, level in zip(self.fitted, self.levels, strict=True) if level]
        if not raised:
            return ""
        return (
            f"only levels from these on were searched: {', '.join(raised)}; the distinct rows of finer values do not "
            "fit in the memory given, and finer levels may lose less"
        )


@dataclass(frozen=True, eq=False, repr=False)
class LevelSteps:
    """Ever higher levels of some columns, from the finest ones to the top, at which rows may be counted.

    Parameters
    ----------
    hierarchies : tuple of Hierarchy
    fitted : tuple of Covered
    nodes : tuple of levels
        Each above the one before it.
    """

    hierarchies: tuple[Hierarchy, ...]
    fitted: tuple[Covered, ...]
    nodes: tuple[Levels, ...]

    def __repr__(self) -> str:
        return f"LevelSteps({len(self.nodes)} steps of {len(self.fitted)} columns)"

    @property
    def names(self) -> tuple[str, ...]:
        """Columns."""
        return tuple(c.name for c in self.fitted)

    @cached_property
    def mergings(self) -> tuple[dict[str, Codes], ...]:
        """For each step, for each column above its finest level, the value that each value is counted as."""
        merged = {(c.name, level): c.merged_at(level) for c in self.fitted for level in range(1, c.n_levels)}
        return tuple(
            {c.name: merged[c.name, level] for c, level in zip(self.fitted, node, strict=True) if level}
            for node in self.nodes
        )

    def base(self, step: int, rows_of_values: RowsOfValues | None = None) -> BaseLevels:
        """Give the levels of a step."""
        return BaseLevels(self.hierarchies, self.fitted, self.nodes[step], rows_of_values)


def way_up(fitted: Sequence[Covered], counts: Sequence[Ints], weights: Sequence[float] | None) -> tuple[Levels, ...]:
    """Nodes from the finest levels to the top, each with one column raised, by bits saved per penalty.

    Parameters
    ----------
    fitted : sequence of Covered
        Hierarchies that end in one label.
    counts : sequence of int64 arrays
        Rows of each distinct value of each column.
    weights : sequence of float or None
        Of the columns; equal ones if left out.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.mechanisms.hierarchies.hierarchy import covered
    >>> from sfumato.schema import Kind
    >>> from sfumato.table.coding import CodedColumn
    >>> rows = [("a", "ab", "*"), ("b", "ab", "*"), ("c", "c", "*")]
    >>> column = CodedColumn.encode(pa.array(["a", "b", "b", "c"]))
    >>> fitted = covered(Hierarchy.from_rows(rows), column, "town", Kind.CATEGORICAL)
    >>> way_up([fitted, fitted], [column.counts, column.counts], [3.0, 1.0])
    ((0, 0), (0, 1), (0, 2), (1, 2), (2, 2))
    """
    steps = []
    for column, (own, rows) in enumerate(zip(fitted, counts, strict=True)):
        weight = 1.0 if weights is None else float(weights[column])
        steps += [(-ratio, column, level) for ratio, level in _hull(own, rows, weight)]
    at = [0] * len(fitted)
    nodes = [tuple(at)]
    for _, column, level in sorted(steps):
        at[column] = level
        nodes.append(tuple(at))
    return tuple(nodes)


def _hull(fitted: Covered, rows: Ints, weight: float) -> Iterator[tuple[float, int]]:
    """Levels on the convex hull of penalty and entropy, lowest first, with the bits that each saves per penalty."""
    levels = zip(fitted.level_codes, fitted.shares, strict=True)
    of_labels = [np.bincount(codes, rows, len(share)) for codes, share in levels]
    bits = [entropy_bits(own) for own in of_labels]
    penalties = [float(own @ share / own.sum()) for own, share in zip(of_labels, fitted.shares, strict=True)]
    here, slope = 0, float("inf")
    while higher := [level for level in range(here + 1, fitted.n_levels) if bits[level] < bits[here]]:
        ratios = {
            level: (bits[here] - bits[level]) / max(weight * (penalties[level] - penalties[here]), _LEAST_COST)
            for level in higher
        }
        here = max(higher, key=lambda level: (ratios[level], -level))
        slope = min(slope, ratios[here])  # which rounding could let rise by a digit, and levels then come out of order
        yield slope, here
