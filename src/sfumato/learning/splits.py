"""Candidate splits of one column, for all nodes of a depth at once, judged by the rules of C4.5 release 8."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.learning.criteria import Criterion
from sfumato.learning.tally import Tally, rows_of, starts_of_runs
from sfumato.learning.tree import TreeColumn
from sfumato.measures.information import x_log_x

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

SMALL = 1e-6
"""Weights and gains that differ by less are taken as equal, as in Weka."""
SMALLEST_STEP = 1e-5
"""Neighbouring numbers that differ by less are not told apart, as in Weka; times the range where that is below 1."""


@dataclass(frozen=True, eq=False, repr=False)
class Level:
    """Training rows of the nodes of one depth that may still be split.

    Parameters
    ----------
    rows, nodes : ndarray of int
        A row number and the node it is in, one entry each; a row that was divided has several entries.
    tally : Tally
        What each entry adds to the statistics of its node.
    totals : ndarray of float64, shape (n_nodes, n_statistics)
        Statistics of the nodes.
    """

    rows: Places
    nodes: Places
    tally: Tally
    totals: Numbers

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.totals)


@dataclass(frozen=True, eq=False, repr=False)
class Splits:
    """Best split of every node on one column.

    Parameters
    ----------
    gain : ndarray of float64, shape (n_nodes,)
        What the split gains for an average row; minus infinity where the column cannot be split.
    ratio : ndarray of float64
        Gain over the information of the split itself; the gain where the criterion is not in bits.
    low, high : ndarray of int64
        For a numeric column the codes on both sides of the cut.
    """

    gain: Numbers
    ratio: Numbers
    low: Places
    high: Places

    @classmethod
    def none(cls, n_nodes: int) -> Splits:
        """No node can be split."""
        never, nowhere = np.full(n_nodes, -np.inf), np.zeros(n_nodes, dtype=np.int64)
        return cls(never, never.copy(), nowhere, nowhere.copy())


def best_splits(level: Level, column: TreeColumn, criterion: Criterion, min_leaf: float) -> Splits:
    """Split of every node of a level on a column: the best cut of a numeric one, all values of a categorical one.

    Quinlan (1993) and (1996), in the reading of Weka 3.6's J48. Two parts, or branches, must have ``min_leaf`` rows;
    both sides of a cut a tenth of the rows of a class on average, but no more than 25.

    Notes
    -----
    Of cuts whose gains differ by less than 1e-6 from the greatest the first is taken; Weka compares each with the best
    before it, which differs only in chains of nearly equal gains.
    """
    groups = _group(level, column)
    if not len(groups.nodes):
        return Splits.none(level.n_nodes)
    judge = _best_cuts if column.is_numeric else _all_values
    return judge(level, groups, column, criterion, min_leaf)


@dataclass(frozen=True, eq=False, repr=False)
class _Groups:
    """Entries with a known value by node and code, in this order; ``starts`` says where a node begins."""

    nodes: Places
    codes: Places
    sums: Numbers

    @cached_property
    def starts(self) -> Places:
        return starts_of_runs(self.nodes)

    @cached_property
    def sizes(self) -> Places:
        return np.diff(np.append(self.starts, len(self.nodes)))


def _group(level: Level, column: TreeColumn) -> _Groups:
    codes = column.codes[level.rows]
    keys = level.nodes * column.n_values + codes
    is_known = codes >= 0
    if is_known.all():
        found, sums = level.tally.by_key(keys, level.n_nodes * column.n_values)
    else:
        found, sums = level.tally.of(is_known).by_key(keys[is_known], level.n_nodes * column.n_values)
    nodes = found // column.n_values
    return _Groups(nodes, found - nodes * column.n_values, sums)


@dataclass(frozen=True, eq=False, repr=False)
class _Known:
    """Rows of each node whose value is known, and the weight of all its rows."""

    nodes: Places
    sums: Numbers
    weight: Numbers
    total: Numbers
    criterion: Criterion

    @classmethod
    def of(cls, level: Level, groups: _Groups, sums: Numbers, criterion: Criterion) -> _Known:
        nodes = groups.nodes[groups.starts]
        return cls(nodes, sums, criterion.weight(sums), criterion.weight(level.totals[nodes]), criterion)

    def gain(self, which: Places, remaining: Numbers) -> Numbers:
        """Impurity lost by a split that leaves ``remaining``, times the share of rows with a known value."""
        gained = self.weight[which] / self.total[which] * (self.criterion.impurity(self.sums)[which] - remaining)
        if not self.criterion.is_in_bits:
            return gained
        return np.asarray(np.where(np.abs(gained) < SMALL, 0.0, gained) / self.weight[which])

    def ratio(self, which: Places, gain: Numbers, branches: Numbers) -> Numbers:
        """Gain over the information of the split, in which rows with a missing value are a branch of their own."""
        if not self.criterion.is_in_bits:
            return gain
        total = self.total[which]
        information = x_log_x(total) - branches - x_log_x(total - self.weight[which])
        is_trivial = np.abs(information) < SMALL
        return np.asarray(np.where(is_trivial, 0.0, gain * total / np.where(is_trivial, 1.0, information)))

    def least_side(self, min_leaf: float) -> Numbers:
        """Weight that both sides of a cut must have."""
        if not self.criterion.is_in_bits:
            return np.full(len(self.weight), float(min_leaf))
        tenth = 0.1 * self.weight / self.criterion.n_statistics
        return np.where(tenth <= min_leaf + SMALL, float(min_leaf), np.minimum(tenth, 25.0))


def _best_cuts(level: Level, groups: _Groups, column: TreeColumn, criterion: Criterion, min_leaf: float) -> Splits:
    cumulative = np.cumsum(groups.sums.T, axis=1).T
    before = rows_of(cumulative, groups.starts) - rows_of(groups.sums, groups.starts)
    ends = groups.starts + groups.sizes - 1
    known = _Known.of(level, groups, rows_of(cumulative, ends) - before, criterion)
    which = np.repeat(np.arange(len(groups.starts)), groups.sizes)
    left_weight = criterion.weight(cumulative) - criterion.weight(before)[which]
    right_weight = known.weight[which] - left_weight
    least = known.least_side(min_leaf)[which] - SMALL
    has_rows = (left_weight >= least) & (right_weight >= least)
    at = np.flatnonzero(has_rows[:-1] & (which[:-1] == which[1:]) & _are_apart(groups, column, criterion))
    splits = Splits.none(level.n_nodes)
    if not len(at):
        return splits
    left = rows_of(cumulative, at) - rows_of(before, which[at])
    right = rows_of(known.sums, which[at]) - left
    gains = known.gain(which[at], criterion.impurity(left) + criterion.impurity(right))
    chosen, n_cuts = _first_of_greatest(gains, starts_of_runs(which[at]), SMALL if criterion.is_in_bits else 0.0)
    gain, at = gains[chosen], at[chosen]
    if criterion.is_in_bits:
        gain = gain - np.log2(n_cuts) / known.total[which[at]]  # the price of telling which cut it is [Q96]
        at, gain = at[gain > SMALL], gain[gain > SMALL]
    nodes = known.nodes[which[at]]
    branches = x_log_x(left_weight[at]) + x_log_x(right_weight[at])
    splits.gain[nodes] = gain
    splits.ratio[nodes] = known.ratio(which[at], gain, branches)
    splits.low[nodes], splits.high[nodes] = groups.codes[at], groups.codes[at + 1]
    return splits


def _are_apart(groups: _Groups, column: TreeColumn, criterion: Criterion) -> NDArray[np.bool_]:
    numbers = np.asarray(column.numbers)
    half_range = float(numbers[-1] / 2 - numbers[0] / 2)  # the whole one may be too large for a number
    step = SMALLEST_STEP * min(1.0, 2 * half_range) if criterion.is_in_bits else 0.0
    return np.asarray(numbers[groups.codes[:-1]] + step < numbers[groups.codes[1:]])


def _first_of_greatest(gains: Numbers, starts: Places, nearly: float) -> tuple[Places, Places]:
    """Return the place of each segment's greatest gain, the first one of several, and the segments' sizes."""
    sizes = np.diff(np.append(starts, len(gains)))
    is_greatest = gains >= np.repeat(np.maximum.reduceat(gains, starts), sizes) - nearly
    places = np.where(is_greatest, np.arange(len(gains)), len(gains))
    return np.minimum.reduceat(places, starts), sizes


def _all_values(level: Level, groups: _Groups, column: TreeColumn, criterion: Criterion, min_leaf: float) -> Splits:
    weights = criterion.weight(groups.sums)
    n_branches = np.add.reduceat((weights >= min_leaf - SMALL).astype(np.int64), groups.starts)
    which = np.flatnonzero(n_branches >= 2)
    splits = Splits.none(level.n_nodes)
    if len(which):
        known = _Known.of(level, groups, np.add.reduceat(groups.sums, groups.starts, axis=0), criterion)
        gain = known.gain(which, np.add.reduceat(criterion.impurity(groups.sums), groups.starts)[which])
        branches = np.add.reduceat(x_log_x(weights), groups.starts)[which]
        splits.gain[known.nodes[which]] = gain
        splits.ratio[known.nodes[which]] = known.ratio(which, gain, branches)
    return splits
