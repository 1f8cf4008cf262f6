r"""Growth of a C4.5 tree, all nodes of one depth at a time.

References
----------
.. [Q93] Quinlan: C4.5: Programs for Machine Learning. Morgan Kaufmann 1993.
.. [Q96] Quinlan: Improved Use of Continuous Attributes in C4.5. JAIR 4 (1996) 77-90.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError
from sfumato.learning.c45.criteria import Criterion
from sfumato.learning.c45.descent import Branching, Entries, Missing, descend
from sfumato.learning.c45.splits import NO_GAIN, SMALL, Level, Splits, SplitWays, Tally, best_splits
from sfumato.learning.c45.tree import EVERY_VALUE, LEAF, Tree, TreeColumn
from sfumato.progress import Progress

Ids = NDArray[np.int32]
Numbers = NDArray[np.float64]
Mask = NDArray[np.bool_]

AVERAGE_SLACK = 1e-3
MANY_VALUES = 0.3


def grow(
    columns: Sequence[TreeColumn],
    statistics: Numbers,
    criterion: Criterion,
    *,
    min_leaf: float = 2,
    max_depth: int | None = None,
    missing: Missing = "fractions",
    splits: SplitWays | Sequence[SplitWays] = "multiway",
    progress: Progress | None = None,
) -> Tree:
    """Grow a tree without pruning it, by the rules of Weka 3.6's J48 ([Q93]_, [Q96]_).

    Parameters
    ----------
    columns : sequence of TreeColumn
        What may be split on. A numeric column is split in two, a categorical one as ``splits`` says.
    statistics : ndarray of float64, shape (n_rows, n_statistics)
        What the criterion keeps of each row; rows without weight are left out.
    criterion : Criterion
        Where it is in bits, the column with the greatest gain ratio among those of at least average gain is split, and
        a numeric column pays for the choice of its cut. Otherwise the one with the greatest gain.
    min_leaf : float
        Weight that at least two branches must have.
    max_depth : int or None
        Greatest number of splits above a leaf.
    missing : {"fractions", "heaviest"}
        Rows whose value is missing go to all children in shares, as in C4.5, or whole to the heaviest child.
    splits : {"multiway", "binary"} or a sequence of these, one for each column
        A categorical column is split into all its values, once on a way down, or into one value and the rest, that with
        the greatest gain ratio (or gain), as J48 does with its option ``-B``; the rest may be split again below. A tree
        may then be as deep as columns have values, and takes as much longer.
    progress : callable or None
        Called after every depth with the weight of the rows in finished leaves.

    Notes
    -----
    Time O(n_columns × rows still in nodes that can be split) for each depth, with a sort where a column has many
    values. Numbers that differ by less than 1e-5 are not told apart, as in Weka; where a column's range is below 1 the
    limit is that share of it, so that a change of unit makes no difference. The same columns in another order may give
    another tree: of equal gain ratios the first is taken.

    Examples
    --------
    >>> from sfumato.learning.c45.criteria import Entropy
    >>> colour = TreeColumn(np.array([0, 0, 0, 1, 1, 1], dtype=np.int32), 2)
    >>> entropy = Entropy(2)
    >>> grow([colour], entropy.statistics([0, 0, 0, 1, 1, 0]), entropy)
    Tree(3 nodes, 2 leaves)
    """
    _check(columns, statistics, min_leaf, max_depth, missing)
    ways = _ways(splits, len(columns))
    weights = criterion.weight(statistics)
    rows = np.flatnonzero(weights > 0)
    entries = Entries(rows, np.zeros(len(rows), dtype=np.int64), np.ones(len(rows)))
    whole = Tally.from_statistics(statistics)
    nodes = _Nodes((statistics if len(rows) == len(statistics) else statistics[rows]).sum(axis=0, keepdims=True))
    stop = _Stop(criterion, min_leaf, NO_GAIN * float(criterion.impurity(nodes.totals)[0]), ways)
    is_counted = _is_counted(columns, float(criterion.weight(nodes.totals)[0]))
    while max_depth is None or nodes.depth < max_depth:
        may_split = stop.may_split(nodes.totals)
        entries = _renumbered(entries, may_split)
        if progress is not None:
            progress(len(rows) - min(len(entries.rows), len(rows)), len(rows), "rows in leaves")
        if not len(entries.rows):
            break
        tally = whole.of(entries.rows).times(entries.shares)
        level = Level(entries.rows, entries.nodes, tally, nodes.totals[may_split])
        chosen = _choose(level, columns, criterion, stop, is_counted)
        if not chosen.is_split.any():
            break
        branching = nodes.branch(np.flatnonzero(may_split), chosen, columns)
        entries = descend(entries.of(chosen.is_split[entries.nodes]), branching, columns, weights, missing)
        tally = whole.of(entries.rows).times(entries.shares)
        nodes.deepen(tally.table(entries.nodes, int(branching.n_children.sum())))
    return nodes.tree(criterion)


def _check(
    columns: Sequence[TreeColumn], statistics: Numbers, min_leaf: float, max_depth: int | None, missing: Missing
) -> None:
    if any(len(column.codes) != len(statistics) for column in columns):
        raise InvalidParameterError("columns", "some differ in length", allowed="one code for every row of statistics")
    if not min_leaf > 0:
        raise InvalidParameterError("min_leaf", f"got {min_leaf!r}", allowed="above 0")
    if max_depth is not None and max_depth < 0:
        raise InvalidParameterError("max_depth", f"got {max_depth!r}", allowed="0 or more, or None")
    if missing not in ("fractions", "heaviest"):
        raise InvalidParameterError("missing", f"got {missing!r}", allowed="'fractions' or 'heaviest'")


def _ways(splits: SplitWays | Sequence[SplitWays], n_columns: int) -> Sequence[SplitWays]:
    ways: Sequence[SplitWays] = [splits] * n_columns if isinstance(splits, str) else splits
    if len(ways) != n_columns or not set(ways) <= set(get_args(SplitWays)):
        raise InvalidParameterError("splits", f"got {splits!r}", allowed="'multiway' or 'binary', or one a column")
    return ways


def _is_counted(columns: Sequence[TreeColumn], weight: float) -> Mask:
    """Say which columns count for the average gain: not those with many values, unless all are such."""
    has_many = [not c.is_numeric and c.n_values >= MANY_VALUES * weight - SMALL for c in columns]
    return np.array([not many or all(has_many) for many in has_many], dtype=np.bool_)


def _renumbered(entries: Entries, keep: Mask) -> Entries:
    """Drop the entries of finished nodes and number the others' nodes from 0."""
    if keep.all():
        return entries
    kept = entries.of(keep[entries.nodes])
    return Entries(kept.rows, (np.cumsum(keep) - 1)[kept.nodes], kept.shares)


@dataclass(frozen=True)
class _Stop:
    """When a node is not worth splitting, and how it may be."""

    criterion: Criterion
    min_leaf: float
    nothing: float
    ways: Sequence[SplitWays]

    def may_split(self, totals: Numbers) -> Mask:
        """Say which nodes are large enough and impure."""
        if self.criterion.is_in_bits:
            is_impure = self.criterion.error(totals) >= SMALL
        else:
            is_impure = self.criterion.impurity(totals) > self.nothing
        return np.asarray(is_impure & (self.criterion.weight(totals) >= 2 * self.min_leaf - SMALL))


@dataclass(frozen=True, eq=False, repr=False)
class _Choice:
    """Column that each node of a level is split on, -1 for none, and the codes beside the cut or of the value."""

    attribute: Ids
    low: NDArray[np.int64]
    high: NDArray[np.int64]

    @property
    def is_split(self) -> Mask:
        return np.asarray(self.attribute != LEAF)


def _choose(
    level: Level, columns: Sequence[TreeColumn], criterion: Criterion, stop: _Stop, is_counted: Mask
) -> _Choice:
    each = zip(columns, stop.ways, strict=True)
    found = [best_splits(level, column, criterion, stop.min_leaf, ways) for column, ways in each]
    least_gain, least_step = _least_gain(found, is_counted, level.n_nodes), SMALL
    if not criterion.is_in_bits:
        least_gain, least_step = np.full(level.n_nodes, -np.inf), stop.nothing
    choice = _Choice(
        np.full(level.n_nodes, LEAF, dtype=np.int32),
        np.zeros(level.n_nodes, dtype=np.int64),
        np.zeros(level.n_nodes, dtype=np.int64),
    )
    best = np.zeros(level.n_nodes)
    for number, splits in enumerate(found):
        better = np.flatnonzero((splits.gain >= least_gain) & (splits.ratio > best + least_step))
        best[better] = splits.ratio[better]
        choice.attribute[better] = number
        choice.low[better], choice.high[better] = splits.low[better], splits.high[better]
    return choice


def _least_gain(found: Sequence[Splits], is_counted: Mask, n_nodes: int) -> Numbers:
    """Average gain of the columns that can be split, a little less; infinite where there is none."""
    total, count = np.zeros(n_nodes), np.zeros(n_nodes)
    for splits, counts in zip(found, is_counted.tolist(), strict=True):
        if counts:
            is_possible = np.isfinite(splits.gain)
            total[is_possible] += splits.gain[is_possible]
            count += is_possible
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1) - AVERAGE_SLACK, np.inf))


@dataclass(eq=False, repr=False)
class _Nodes:
    """The tree so far, one array a depth; ``totals`` are the statistics of the deepest nodes."""

    totals: Numbers
    depth: int = 0
    n_above: int = 0
    parents: list[Ids] = field(default_factory=lambda: [np.array([-1], dtype=np.int32)])
    splits: list[tuple[Ids, Numbers, Numbers, Ids, Ids]] = field(default_factory=list)
    statistics: list[Numbers] = field(default_factory=list)

    def branch(self, places: NDArray[np.int64], choice: _Choice, columns: Sequence[TreeColumn]) -> Branching:
        """Record the splits of the deepest nodes at ``places``; children are numbered from 0 in the answer."""
        n_nodes = len(self.totals)
        attribute, n_children, first_child = (np.full(n_nodes, value, dtype=np.int32) for value in (LEAF, 0, LEAF))
        threshold, cut = np.full(n_nodes, np.nan), np.full(n_nodes, np.nan)
        attribute[places] = choice.attribute
        for number in np.unique(choice.attribute[choice.is_split]).tolist():
            here = choice.attribute == number
            at, high = places[here], choice.high[here]
            if columns[number].is_numeric:
                n_children[at] = 2
                threshold[at], cut[at] = _thresholds(columns[number], choice.low[here], high)
            else:
                n_children[at] = np.where(high == EVERY_VALUE, columns[number].n_values, 2)
                threshold[at] = np.where(high == EVERY_VALUE, np.nan, high)
        starts = (np.cumsum(n_children) - n_children).astype(np.int32)
        is_inner = n_children > 0
        first_child[is_inner] = starts[is_inner] + self.n_above + n_nodes
        self.parents.append(np.repeat(np.arange(self.n_above, self.n_above + n_nodes, dtype=np.int32), n_children))
        self.splits.append((attribute, threshold, cut, first_child, n_children))
        return Branching(choice.attribute, choice.high, starts[places], n_children[places])

    def deepen(self, totals: Numbers) -> None:
        """Go on with the children."""
        self.statistics.append(self.totals)
        self.n_above += len(self.totals)
        self.depth += 1
        self.totals = totals

    def tree(self, criterion: Criterion) -> Tree:
        """Put the depths together; the deepest nodes are leaves."""
        n_nodes = len(self.totals)
        no_split, nowhere = np.full(n_nodes, LEAF, dtype=np.int32), np.full(n_nodes, np.nan)
        last = (no_split, nowhere, nowhere, no_split, np.zeros(n_nodes, dtype=np.int32))
        attribute, threshold, cut, first_child, n_children = map(np.concatenate, zip(*self.splits, last, strict=True))
        statistics = np.concatenate([*self.statistics, self.totals])
        parent, weights = np.concatenate(self.parents), criterion.weight(statistics)
        return Tree(parent, attribute, threshold, cut, first_child, n_children, weights, statistics)


def _thresholds(column: TreeColumn, low: NDArray[np.int64], high: NDArray[np.int64]) -> tuple[Numbers, Numbers]:
    """Return the largest number of the column up to the middle of the cut, and the middle."""
    numbers = np.asarray(column.numbers)
    middle = numbers[low] / 2 + numbers[high] / 2
    middle = np.where((middle >= numbers[high]) | (middle < numbers[low]), numbers[low], middle)
    return numbers[np.searchsorted(numbers, middle, side="right") - 1], middle
