"""Sums of statistics by key: the counting below the tree, as few passes over the rows as the statistics allow.

Sums are stored by columns: NumPy adds up a short last axis several times faster that way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
