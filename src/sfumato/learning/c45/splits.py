"""Candidate splits of one column, for all nodes of a depth at once, judged by the rules of C4.5 release 8."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.learning.c45.criteria import Criterion
from sfumato.learning.c45.tree import EVERY_VALUE, TreeColumn
from sfumato.measures.information import x_log_x

# Sums of statistics by key: the counting below the tree, as few passes over the rows as the statistics allow.
#
# Sums are stored by columns: NumPy adds up a short last axis several times faster that way.


Numbers = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """What every entry adds to the statistics of its group.

    Parameters
    ----------
    amounts : ndarray of float64, shape (n_entries, n_statistics) or (n_entries,), or None
        Statistics of the entries. With ``labels`` the amount of the one statistic an entry has; ``None`` when that is
        1 everywhere.
    labels : ndarray of int64 or None
        Which statistic an entry has, where each has one only: its class.
    n_statistics : int
    """

    amounts: Numbers | None
    labels: Places | None
    n_statistics: int

    @classmethod
    def from_statistics(cls, statistics: Numbers) -> Tally:
        """Find out whether every row has one statistic only."""
        n_statistics = statistics.shape[1]
        if (np.count_nonzero(statistics, axis=1) > 1).any():
            return cls(statistics, None, n_statistics)
        amounts = statistics.sum(axis=1)
        return cls(None if (amounts == 1).all() else amounts, statistics.argmax(axis=1), n_statistics)

    def of(self, entries: NDArray[np.integer] | NDArray[np.bool_]) -> Tally:
        """Tally of some entries."""
        return Tally(
            None if self.amounts is None else self.amounts[entries],
            None if self.labels is None else self.labels[entries],
            self.n_statistics,
        )

    def times(self, weights: Numbers) -> Tally:
        """Tally of entries that count in part."""
        if (weights == 1).all():
            return self
        if self.labels is None and self.amounts is not None:
            return Tally(self.amounts * weights[:, None], None, self.n_statistics)
        return Tally(weights if self.amounts is None else self.amounts * weights, self.labels, self.n_statistics)

    def table(self, keys: Places, n_keys: int) -> Numbers:
        """Add up the statistics of every key from 0 to ``n_keys - 1``.

        Examples
        --------
        >>> tally = Tally.from_statistics(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]))
        >>> tally.table(np.array([0, 2, 2]), 3).tolist()
        [[1.0, 0.0], [0.0, 0.0], [0.0, 2.0]]
        """
        if self.labels is None:
            columns = np.asarray(self.amounts).T
            sums = [np.bincount(keys, weights=column, minlength=n_keys) for column in columns]
            return np.asarray(sums, dtype=np.float64).T
        both = self.labels * n_keys + keys
        counts = np.bincount(both, weights=self.amounts, minlength=n_keys * self.n_statistics)
        return counts.reshape(self.n_statistics, n_keys).T.astype(np.float64, copy=False)

    def by_key(self, keys: Places, n_keys: int) -> tuple[Places, Numbers]:
        """Return the keys that occur, ascending, and the sums of their statistics."""
        if n_keys * self.n_statistics <= 4 * len(keys):
            found = np.flatnonzero(np.bincount(keys, minlength=n_keys))
            return found, rows_of(self.table(keys, n_keys), found)
        if self.labels is None or self.amounts is not None:
            order = np.argsort(keys, kind="stable")
            starts = starts_of_runs(keys[order])
            sizes = np.diff(np.append(starts, len(keys)))
            runs = np.repeat(np.arange(len(starts)), sizes)
            return keys[order[starts]], self.of(order).table(runs, len(starts))
        return self._counted_by_sorting(keys, self.labels)

    def _counted_by_sorting(self, keys: Places, labels: Places) -> tuple[Places, Numbers]:
        both = np.sort(keys * self.n_statistics + labels)
        starts = starts_of_runs(both)
        counts = np.diff(np.append(starts, len(both)))
        keys_of_runs = both[starts] // self.n_statistics
        firsts = starts_of_runs(keys_of_runs)
        sums = np.zeros((self.n_statistics, len(firsts)))
        which = np.repeat(np.arange(len(firsts)), np.diff(np.append(firsts, len(starts))))
        sums[both[starts] - keys_of_runs * self.n_statistics, which] = counts
        return keys_of_runs[firsts], sums.T


def rows_of(sums: Numbers, which: NDArray[np.integer]) -> Numbers:
    """Take rows of an array that is stored by columns, and store them so."""
    return np.take(sums.T, which, axis=1).T


def starts_of_runs(ordered: NDArray[np.integer]) -> Places:
    """Return where each run of equal numbers begins.

    Examples
    --------
    >>> starts_of_runs(np.array([4, 4, 7, 9, 9])).tolist()
    [0, 2, 3]
    """
    differs = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=differs[1:])
    return np.flatnonzero(differs)


SplitWays = Literal["multiway", "binary"]
"""How a categorical column is split: into all its values, or one value against the rest."""

SMALL = 1e-6
"""Weights and gains that differ by less are taken as equal, as in Weka."""
NO_GAIN = 1e-12
"""Share of an impurity below which a difference is rounding."""
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
        For a numeric column the codes on both sides of the cut; for a categorical one twice the code of the value that
        is split off, -1 where it is split into all values.
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


def best_splits(
    level: Level, column: TreeColumn, criterion: Criterion, min_leaf: float, ways: SplitWays = "multiway"
) -> Splits:
    """Split of every node of a level on a column: the best cut of a numeric one, all values of a categorical one.

    Quinlan (1993) and (1996), in the reading of Weka 3.6's J48. Two parts, or branches, must have ``min_leaf`` rows;
    both sides of a cut a tenth of the rows of a class on average, but no more than 25. With ``ways="binary"`` a
    categorical column is split into one value and the rest, that of the greatest gain ratio (J48's option ``-B``).

    Notes
    -----
    Of cuts whose gains, or values whose ratios, differ by less than 1e-6 from the greatest the first is taken; Weka
    compares each with the best before it, which differs only in chains of nearly equal ones.
    """
    groups = _group(level, column)
    if not len(groups.nodes):
        return Splits.none(level.n_nodes)
    judge = _best_cuts if column.is_numeric else _all_values if ways == "multiway" else _best_values
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


def _first_of_greatest(gains: Numbers, starts: Places, nearly: float | Numbers) -> tuple[Places, Places]:
    """Return the place of each segment's greatest gain, the first one of several, and the segments' sizes."""
    sizes = np.diff(np.append(starts, len(gains)))
    is_greatest = gains >= np.repeat(np.maximum.reduceat(gains, starts) - nearly, sizes)
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
        splits.low[known.nodes[which]] = splits.high[known.nodes[which]] = EVERY_VALUE
    return splits


def _best_values(level: Level, groups: _Groups, column: TreeColumn, criterion: Criterion, min_leaf: float) -> Splits:
    known = _Known.of(level, groups, np.add.reduceat(groups.sums, groups.starts, axis=0), criterion)
    which = np.repeat(np.arange(len(groups.starts)), groups.sizes)
    own_weight = criterion.weight(groups.sums)
    rest_weight = known.weight[which] - own_weight
    at = np.flatnonzero((own_weight >= min_leaf - SMALL) & (rest_weight >= min_leaf - SMALL))
    splits = Splits.none(level.n_nodes)
    if not len(at):
        return splits
    own = rows_of(groups.sums, at)
    rest = rows_of(known.sums, which[at]) - own
    gains = known.gain(which[at], criterion.impurity(own) + criterion.impurity(rest))
    ratios = known.ratio(which[at], gains, x_log_x(own_weight[at]) + x_log_x(rest_weight[at]))
    starts = starts_of_runs(which[at])
    # of a column with two values both are the same split: rounding must not say which of them is named
    rounding = NO_GAIN * criterion.impurity(known.sums)[which[at[starts]]]
    chosen, _ = _first_of_greatest(ratios, starts, SMALL if criterion.is_in_bits else rounding)
    nodes = known.nodes[which[at[chosen]]]
    splits.gain[nodes], splits.ratio[nodes] = gains[chosen], ratios[chosen]
    splits.low[nodes] = splits.high[nodes] = groups.codes[at[chosen]]
    return splits
