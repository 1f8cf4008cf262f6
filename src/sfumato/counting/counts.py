r"""Counts: how often each value of a column occurs in each equivalence class, and of which units.

A unit is what a guarantee counts: rows, or persons, of whom some have several rows. A table of rows is one of persons
in which every row is its own person, so everything is defined by units, and rows are the simple case:

- *Different values of different units* of a class: the largest number of values that as many different units carry,
  each one of them. It is the size of a maximum matching in the bipartite graph of the values and units of the class,
  with an edge where a unit has a row with a value. Of rows it is the number of different values. It never falls when a
  class grows, because a matching stays one. Whoever is taken out takes one pair of a matching along at most.
- *Weights*: in a class each unit weighs 1, shared equally over its rows there, so that value v of unit p weighs
  :math:`n_{pv}/n_p`. The weight of a value is the sum over units. Of rows weights are counts. Weights of persons do not
  add up over classes: a person in two classes weighs 1 in each and 1 in their union. So a union of classes can be less
  diverse, and further from the table, than each of them, and what is monotone for rows is not for persons. Example:
  classes {p: a; q: b} and {p: a, ninety-nine times; r: b} have both values by half; their union has a by a third.

Weights are sums of fractions. They are compared with a slack of :data:`sfumato.counting.ROUNDING`.

Counts come in two forms that the measures treat alike: :class:`Counts` holds only what occurs and so has room for
millions of classes, :class:`DenseCounts` is an array with the values as last axis, for the many cuts of a partition.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.counting import ROUNDING

Ids = NDArray[np.integer]
Numbers = NDArray[np.int64] | NDArray[np.float64]
"""Counts of rows, or weights."""
Levels = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of a unit and a value, numbered, so that they can be counted as the values of one column.

    Parameters
    ----------
    unit, value : int arrays
        Unit and value of each pair; both are numbered from 0.
    """

    unit: Ids
    value: Ids

    @classmethod
    def of(cls, units: Ids, values: Ids) -> Pairs:
        """Find the pairs that occur; they are numbered by unit, then by value."""
        n_values = int(values.max(initial=0)) + 1
        keys = np.unique(units.astype(np.int64) * n_values + values)
        return cls(keys // n_values, keys % n_values)

    @classmethod
    def of_units(cls, n_units: int) -> Pairs:
        """Take the codes of a column as units without values."""
        return cls(np.arange(n_units), np.zeros(n_units, dtype=np.int64))

    def find(self, units: Ids, values: Ids) -> NDArray[np.int64]:
        """Numbers of pairs, all of which occur.

        Examples
        --------
        >>> Pairs.of(np.array([0, 0, 1]), np.array([0, 1, 1])).find(np.array([1, 0]), np.array([1, 1])).tolist()
        [2, 1]
        """
        n_values = int(self.value.max(initial=0)) + 1
        known = self.unit.astype(np.int64) * n_values + self.value
        return np.searchsorted(known, units.astype(np.int64) * n_values + values)


@dataclass(frozen=True, repr=False, eq=False)
class Counts:
    """How often each value of one column occurs in each equivalence class; only what occurs is held.

    Parameters
    ----------
    class_index, value_code, count : arrays of the same length
        Sorted by class, then by value; ``count`` is above 0 and every class occurs. Codes ascend as values do.
    class_sizes : array
        Rows, or weight, of each class.
    value_totals : array
        How often each code occurs in the rows that classes are compared with: the whole table, or those released.
    spelled : Counts or None
        The same with every spelling as a value of its own, where some value has several.
    pairs : Pairs or None
        Unit and value that each code stands for, where units are persons; ``None``: codes are values, units rows.
    """

    class_index: NDArray[np.int64]
    value_code: NDArray[np.int64]
    count: Numbers
    class_sizes: Numbers
    value_totals: Numbers
    spelled: Counts | None = None
    pairs: Pairs | None = None

    def __repr__(self) -> str:
        return f"Counts({self.n_classes:,} classes, {self.n_values:,} values, {self.n_rows:,} rows)"

    @classmethod
    def of(
        cls,
        class_index: NDArray[np.int64],
        value_code: NDArray[np.int64],
        count: NDArray[np.int64],
        n_classes: int,
        n_values: int,
    ) -> Counts:
        """Add up what classes and values have."""
        sizes, totals = np.zeros(n_classes, dtype=np.int64), np.zeros(n_values, dtype=np.int64)
        np.add.at(sizes, class_index, count)
        np.add.at(totals, value_code, count)
        return cls(class_index, value_code, count, sizes, totals)

    @classmethod
    def of_rows(cls, class_of_row: Ids, values: Ids, units: Ids | None = None) -> Counts:
        """Count rows, given their classes, numbered from 0 without gaps, values and, if these are persons, units.

        Examples
        --------
        >>> counts = Counts.of_rows(np.array([0, 0, 0]), np.array([0, 1, 1]), np.array([0, 0, 1]))
        >>> counts.n_units.tolist(), counts.weights.count.tolist()
        ([2], [0.5, 1.5])
        """
        pairs = None if units is None else Pairs.of(units, values)
        codes = values if pairs is None or units is None else pairs.find(units, values)
        n_codes = int(codes.max(initial=-1)) + 1
        keys, count = np.unique(class_of_row.astype(np.int64) * max(n_codes, 1) + codes, return_counts=True)
        index, code = np.divmod(keys, max(n_codes, 1))
        return replace(cls.of(index, code, count, int(class_of_row.max(initial=-1)) + 1, n_codes), pairs=pairs)

    @classmethod
    def from_contingency(cls, contingency: ArrayLike) -> Counts:
        """Take counts as a dense array of shape (values, classes); a class without rows is left out.

        Examples
        --------
        >>> Counts.from_contingency([[2, 1], [0, 3]])
        Counts(2 classes, 2 values, 6 rows)
        """
        dense = np.asarray(contingency, dtype=np.int64).T
        dense = dense[dense.sum(axis=1) > 0]
        index, codes = np.nonzero(dense)
        return cls.of(index, codes, dense[index, codes], *dense.shape)

    def renumbered(self, number: Ids) -> Counts:
        """Give the values other numbers, from 0 without gaps, one for each code; values with one number are one."""
        n_values = int(number.max(initial=-1)) + 1
        keys = self.class_index * max(n_values, 1) + number[self.value_code]
        pairs, places = np.unique(keys, return_inverse=True)
        count = np.zeros(len(pairs), dtype=np.int64)
        np.add.at(count, places, self.count)
        index, code = np.divmod(pairs, max(n_values, 1))
        return Counts.of(index, code, count, self.n_classes, n_values)

    def with_totals(self, totals: Numbers) -> Counts:
        """Compare all classes with rows in which each value occurs so often."""
        return replace(self, value_totals=totals)

    def compared_with(self, kept: NDArray[np.bool_]) -> Counts:
        """Compare all classes with the rows of some of them."""
        here = kept[self.class_index]
        totals = np.bincount(self.value_code[here], self.count[here], self.n_values).astype(np.int64)
        return replace(self, value_totals=totals)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_sizes)

    @property
    def n_values(self) -> int:
        """Number of values, some of which may not occur."""
        return len(self.value_totals)

    @property
    def n_rows(self) -> int:
        """Number of rows counted."""
        return int(self.count.sum())

    @cached_property
    def class_starts(self) -> NDArray[np.int64]:
        """Where each class begins in the arrays."""
        begins = np.ones(len(self.class_index), dtype=np.bool_)
        begins[1:] = self.class_index[1:] != self.class_index[:-1]
        return np.flatnonzero(begins)

    @cached_property
    def shares(self) -> Levels:
        """Share of each value in its class."""
        return np.asarray(self.count / self.class_sizes[self.class_index], dtype=np.float64)

    @property
    def positive_shares(self) -> Levels:
        """Shares, of which none is 0."""
        return self.shares

    @cached_property
    def table_shares(self) -> Levels:
        """Share of each entry's value in the rows that classes are compared with.

        A share of 0 is taken as that of one row: its class is not among those that are compared.
        """
        return np.asarray(_shares_of_table(self.value_totals)[self.value_code])

    @cached_property
    def n_distinct(self) -> NDArray[np.int64]:
        """Number of different values in each class, a missing value counted as one."""
        return np.bincount(self.class_index, minlength=self.n_classes).astype(np.int64)

    @cached_property
    def n_units(self) -> Numbers:
        """Number of units of each class."""
        if self.pairs is None:
            return self.class_sizes
        return np.bincount(_numbered(self.class_index, self.pairs.unit[self.value_code])[1], minlength=self.n_classes)

    def matched(self, enough: float = np.inf) -> Levels:
        """Largest number of values of each class that as many different units carry.

        One call of Hopcroft and Karp's algorithm for all classes: their graphs are apart from each other.

        Parameters
        ----------
        enough : float
            A class for which simple bounds show on which side of this number it is gets the bound. Values that a unit
            has which has no other in the class can all be matched at once; no more can be than there are values, or
            units.

        Examples
        --------
        >>> classes, values, units = np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 0, 0]), np.array([0, 0, 1, 0, 1])
        >>> Counts.of_rows(classes, values, units).matched().tolist()
        [2.0, 1.0]
        """
        if self.pairs is None:
            return self.n_distinct.astype(np.float64)
        value, unit = self.pairs.value[self.value_code], self.pairs.unit[self.value_code]
        of_value, class_of_value = _numbered(self.class_index, value)
        of_unit, class_of_unit = _numbered(self.class_index, unit)
        n_classes = self.n_classes
        found = np.minimum(*(np.bincount(classes, minlength=n_classes) for classes in (class_of_value, class_of_unit)))
        is_open = np.ones(n_classes, dtype=np.bool_)
        if not np.isinf(enough):
            has_no_other = np.bincount(of_unit, minlength=len(class_of_unit)) == 1
            surely = np.bincount(class_of_value[np.unique(of_value[has_no_other[of_unit]])], minlength=n_classes)
            is_open = (found >= enough - ROUNDING) & (surely < enough - ROUNDING)
            found = np.where(is_open, found, np.where(found < enough - ROUNDING, found, surely))
            is_edge = is_open[self.class_index]
            of_value, of_unit = of_value[is_edge], of_unit[is_edge]
        if len(of_value):
            matched = _matched(of_value, of_unit, (len(class_of_value), len(class_of_unit)))
            found = np.where(is_open, np.bincount(class_of_value[matched], minlength=n_classes), found)
        return found.astype(np.float64)

    @property
    def weights(self) -> Counts:
        """Weights of values in classes, and in the rows that these are compared with.

        Examples
        --------
        >>> pairs = Pairs.of(np.array([0, 0, 1]), np.array([0, 1, 1]))
        >>> replace(Counts.from_contingency([[3], [1], [5]]), pairs=pairs).weights.count.tolist()
        [0.75, 1.25]
        """
        return self if self.pairs is None else self._weighed(self.pairs)  # kept, it would keep itself alive

    def _weighed(self, pairs: Pairs) -> Counts:
        index, code = self.class_index, self.value_code
        in_class, _ = _numbered(index, pairs.unit[code])
        of_pair = self.count / np.bincount(in_class, self.count)[in_class]
        n_values = int(pairs.value.max(initial=-1)) + 1
        keys, places = np.unique(index * n_values + pairs.value[code], return_inverse=True)
        weights = np.bincount(places.reshape(-1), of_pair, len(keys))
        classes, values = np.divmod(keys, n_values)
        compared = self.value_totals  # of the pairs up to the last that occurs
        unit, value = pairs.unit[: len(compared)], pairs.value[: len(compared)]
        of_unit = np.bincount(unit, compared, minlength=1)
        totals = np.bincount(value, compared / np.maximum(of_unit, 1)[unit], n_values)
        return Counts(classes, values, weights, np.bincount(classes, weights, self.n_classes), totals)

    def dense(self, n_values: int) -> Numbers:
        """Write the counts as an array of shape (classes, values), of so many values."""
        keys = self.class_index * n_values + self.value_code
        return np.asarray(np.bincount(keys, self.count, self.n_classes * n_values).reshape(-1, n_values))

    def sums(self, of_entries: Numbers) -> Levels:
        """Sum over the values of each class."""
        return np.asarray(np.add.reduceat(of_entries, self.class_starts), dtype=np.float64)

    def maxima(self, of_entries: Levels) -> Levels:
        """Largest over the values of each class."""
        return np.asarray(np.maximum.reduceat(of_entries, self.class_starts))

    @property
    def array(self) -> Numbers:
        """Return the counts as an array of shape (classes, values)."""
        return self.dense(self.n_values)

    @property
    def has_rows(self) -> NDArray[np.bool_]:
        """Whether classes have rows: all have."""
        return np.ones(self.n_classes, dtype=np.bool_)

    def tails(self) -> tuple[Numbers, Numbers, Numbers]:
        """Of each class with its counts descending: the largest, the sums of each and all after it, and of all."""
        descending = self.count[np.lexsort((-self.count, self.class_index))]
        before = np.cumsum(descending) - descending
        ends = before[self.class_starts] + self.class_sizes
        largest = descending[self.class_starts][self.class_index]
        return largest, ends[self.class_index] - before, self.class_sizes[self.class_index]

    def ordered_distances(self) -> Levels:
        """Area between the cumulative distributions of class and table, over the values of the table, as a share.

        Between two neighbouring values of a class its cumulative share is constant while the table's rises: the stretch
        crosses it once, and its area follows from the sums of the table's. Time O(n log m) for n entries and m values.
        """
        occurring = np.flatnonzero(self.value_totals)
        overall = self.value_totals[occurring] / self.value_totals.sum()
        ranks = np.searchsorted(occurring, self.value_code)
        starts, index, last = self.class_starts, self.class_index, len(overall) - 1
        risen = np.cumsum(overall)[:last]
        sums = np.concatenate([[0.0], np.cumsum(risen)])
        running = np.cumsum(self.count)
        share = (running - (running[starts] - self.count[starts])[index]) / self.class_sizes[index]
        begin = np.minimum(ranks, last)
        end = np.full_like(begin, last)
        end[:-1] = np.where(index[1:] == index[:-1], begin[1:], last)
        crossing = np.clip(np.searchsorted(risen, share), begin, end)
        area = share * (2 * crossing - begin - end) + sums[begin] + sums[end] - 2 * sums[crossing]
        ahead = sums[begin[starts]]  # before a class's first value its share is 0
        return np.asarray((np.add.reduceat(area, starts) + ahead) / last)


@dataclass(frozen=True, repr=False, eq=False)
class DenseCounts:
    """Counts, or weights, of the values in groups of rows as an array; a group may be without rows.

    Parameters
    ----------
    count : array of shape (n_groups, n_values)
    value_totals : array of shape (n_values,)
        How often each value occurs in the rows that groups are compared with.
    """

    count: Numbers
    value_totals: Numbers

    @classmethod
    def alone(cls, count: Numbers) -> DenseCounts:
        """Take groups that are not compared with a table."""
        return cls(count, np.zeros(count.shape[-1], dtype=np.int64))

    def with_totals(self, totals: Numbers) -> DenseCounts:
        """Compare all groups with rows in which each value occurs so often."""
        return DenseCounts(self.count, totals)

    def renumbered(self, number: Ids) -> DenseCounts:
        """Give the values other numbers, one for each; values with one number are one."""
        is_of = np.zeros((len(number), int(number.max(initial=-1)) + 1), dtype=np.int64)
        is_of[np.arange(len(number)), number] = 1
        return DenseCounts.alone(np.asarray(self.count @ is_of[: self.count.shape[-1]]))

    @property
    def array(self) -> Numbers:
        """Return the counts as an array of shape (groups, values)."""
        return self.count

    @property
    def weights(self) -> DenseCounts:
        """Counts are weights."""
        return self

    @cached_property
    def class_sizes(self) -> Numbers:
        """Rows of each group."""
        return np.asarray(self.count.sum(axis=-1))

    @property
    def n_units(self) -> Numbers:
        """Rows of each group: they are its units."""
        return self.class_sizes

    @property
    def has_rows(self) -> NDArray[np.bool_]:
        """Whether groups have rows."""
        return np.asarray(self.class_sizes > 0)

    @cached_property
    def shares(self) -> Levels:
        """Share of each value in its group; 0 in one without rows."""
        sizes = self.class_sizes[..., None]
        return np.asarray(self.count / np.where(sizes > 0, sizes, 1))

    @property
    def positive_shares(self) -> Levels:
        """Shares with 1 in place of 0, whose logarithm is 0."""
        return np.where(self.shares > 0, self.shares, 1.0)

    @cached_property
    def table_shares(self) -> Levels:
        """Share of each value in the rows that groups are compared with; one of 0 is taken as that of one row."""
        return _shares_of_table(self.value_totals)

    @property
    def n_distinct(self) -> NDArray[np.int64]:
        """Number of different values in each group."""
        return np.asarray(np.count_nonzero(self.count, axis=-1))

    def matched(self, enough: float = np.inf) -> Levels:
        """Different values of each group: its units are rows."""
        return self.n_distinct.astype(np.float64)

    def sums(self, of_entries: Numbers) -> Levels:
        """Sum over the values of each group."""
        return np.asarray(of_entries.sum(axis=-1), dtype=np.float64)

    def maxima(self, of_entries: Levels) -> Levels:
        """Largest over the values of each group."""
        return np.asarray(of_entries.max(axis=-1, initial=-np.inf))

    def tails(self) -> tuple[Numbers, Numbers, Numbers]:
        """Of each group with its counts descending: the largest, the sums of each and all after it, and of all."""
        ascending: NDArray[Any] = np.sort(self.count, axis=-1)
        tails = np.cumsum(ascending, axis=-1)[..., ::-1]
        return ascending[..., -1:], tails, tails[..., :1]

    def ordered_distances(self) -> Levels:
        """Area between the cumulative distributions of group and table, over the values of the table, as a share."""
        occurs = self.value_totals > 0
        overall = self.value_totals[occurs] / self.value_totals.sum()
        ahead = self.shares[..., occurs] - overall * self.has_rows[..., None]
        return np.asarray(np.abs(np.cumsum(ahead, axis=-1)[..., :-1]).sum(axis=-1) / (len(overall) - 1))


AnyCounts = Counts | DenseCounts


def _shares_of_table(totals: Numbers) -> Levels:
    return np.asarray(np.where(totals > 0, totals, 1) / (totals.sum() or 1))


def _matched(left: Ids, right: Ids, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Which left nodes of a bipartite graph have a partner in a maximum matching."""
    from scipy.sparse import csr_matrix  # heavy, and needed where persons repeat only
    from scipy.sparse.csgraph import maximum_bipartite_matching

    edges = csr_matrix((np.ones(len(left), dtype=np.int32), (left, right)), shape=shape)
    edges.sum_duplicates()
    return np.asarray(maximum_bipartite_matching(edges, perm_type="column") >= 0)


def _numbered(class_index: Ids, other: Ids) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give each entry the number of its pair of a class and something, and each pair its class."""
    n_other = int(other.max(initial=0)) + 1
    keys, numbers = np.unique(class_index.astype(np.int64) * n_other + other, return_inverse=True)
    return numbers.reshape(-1).astype(np.int64), keys // n_other
