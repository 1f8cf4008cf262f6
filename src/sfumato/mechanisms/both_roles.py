r"""A sensitive quasi-identifier in a partition of rows: how its values are coarsened so that both its roles are kept.

Let :math:`s` be the column and :math:`Q` the other quasi-identifiers. Two attackers are at work. One knows all of
:math:`Q` and :math:`s` and looks for a person's row: k-anonymity over :math:`Q \cup \{s\}` stops them. The other knows
:math:`Q` and wants :math:`s`: they see the released cells of :math:`s` in the class of rows that are equal on
:math:`Q`, and l-diversity is about those cells.

Rows are first divided along :math:`Q` alone, into *parts*, and all rows of a part get the same cells on :math:`Q`. Then
the values of :math:`s` in each part are put into *groups* of neighbouring values, each group with at least k rows, and
each group is one cell. So every combination of cells has k rows, and a part is diverse if its groups are. Cells of a
part share no value. What is diverse as cells is then as diverse as original values, in each of the three variants and
by the largest share, because the counts :math:`r` of the values refine the counts :math:`q` of the cells:

- distinct: every cell holds a value that no other cell of the part holds;
- entropy: it does not fall when a distribution is refined;
- recursive (c, l): :math:`r_1 \le q_1`, and :math:`l - 1` values lie in at most :math:`l - 1` cells, so the rows
  outside the :math:`l - 1` most frequent values are at least those outside the :math:`l - 1` largest cells;
- largest share: that of a value is at most that of its cell.

Distances from the whole table (t, β, δ) *grow* when a distribution is refined, so that cells can be close to the table
while values are not: these are refused.

Groups are formed from the first value on, each closed as soon as it has k rows; what is left joins the last one. No
division of neighbouring values has more groups of k rows, and a part made up of two parts has at least as many as
either, for the groups of one of them, widened until they cover all values, are groups of both together. Values of a
column without an order are neighbours by how frequent they are in the table, so that frequent ones stay apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.counting.counts import AnyCounts, DenseCounts, Levels, Numbers
from sfumato.counting.same_values import value_numbers
from sfumato.learning.c45.tree import MISSING
from sfumato.mechanisms.axes import Axis
from sfumato.mechanisms.constraints import Constraint, Flags, Ids
from sfumato.mechanisms.recoder import Cover
from sfumato.table.coding import Table

RowCounts = NDArray[np.int64]

_CELLS_AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class GroupedValues:
    """A constraint on groups of neighbouring values, each of at least k rows, from counts of the values in their order.

    Parameters
    ----------
    k : int
    constraint : Constraint
        What the counts of the groups must satisfy.

    Examples
    --------
    >>> from sfumato.guarantees import LDiversity
    >>> from sfumato.mechanisms.constraints import Promised
    >>> counts = DenseCounts.alone(np.array([[2, 1, 1], [2, 1, 0], [1, 0, 2]]))
    >>> GroupedValues(2, Promised(LDiversity(2, "s"))).are_kept_by(counts).tolist()
    [True, False, False]
    """

    k: int
    constraint: Constraint

    def are_kept_by(self, counts: AnyCounts) -> Flags:
        """Whether parts satisfy the constraint after their values were grouped."""
        return self.constraint.are_kept_by(self._grouped(counts))

    def levels(self, counts: AnyCounts) -> Levels:
        """Level of each part, by the constraint's measure, of its groups."""
        return self.constraint.levels(self._grouped(counts))

    def _grouped(self, counts: AnyCounts) -> DenseCounts:
        return DenseCounts.alone(group_values(_of_rows(counts.array), self.k)[1])

    def describe(self) -> str:
        """Say the constraint in a few words."""
        return f"{self.constraint.describe()} of ranges or sets of values with {self.k:,} rows each"


@dataclass(frozen=True, eq=False)
class WithinGroups:
    """A constraint on another sensitive column that every group of neighbouring values must satisfy by itself.

    Parameters
    ----------
    k : int
    n_places, n_codes : int
        Values of the column that is grouped and of the other one; counts are of pairs, place after place, and may end
        with the last pair that occurs.
    constraint : Constraint
        On counts of the other column.

    Examples
    --------
    >>> from sfumato.guarantees import LDiversity
    >>> from sfumato.mechanisms.constraints import Promised
    >>> counts = DenseCounts.alone(np.array([[1, 1, 2, 0], [1, 1, 1, 1]]))  # two places, two codes
    >>> WithinGroups(2, 2, 2, Promised(LDiversity(2, "s"))).are_kept_by(counts).tolist()
    [False, True]
    """

    k: int
    n_places: int
    n_codes: int
    constraint: Constraint

    def are_kept_by(self, counts: AnyCounts) -> Flags:
        """Whether every group of a part satisfies the constraint."""
        in_groups, is_used = self._grouped(counts.array)
        each = DenseCounts.alone(in_groups.reshape(-1, in_groups.shape[-1]))
        return np.asarray((self.constraint.are_kept_by(each).reshape(is_used.shape) | ~is_used).all(axis=1))

    def levels(self, counts: AnyCounts) -> Levels:
        """Level of each part as one group: what no division could exceed."""
        return self.constraint.levels(DenseCounts.alone(self._by_place(counts.array).sum(axis=1)))

    def describe(self) -> str:
        """Say the constraint in a few words."""
        return f"{self.constraint.describe()} in every range or set of the other sensitive column"

    def _grouped(self, counts: Numbers) -> tuple[RowCounts, Flags]:
        both = self._by_place(counts)
        of_value, rows = group_values(both.sum(axis=2), self.k)
        in_groups = np.zeros(both.shape, dtype=np.int64)
        every = np.arange(len(counts))
        for place in range(self.n_places):
            in_groups[every, of_value[:, place]] += both[:, place]
        return in_groups, rows > 0

    def _by_place(self, counts: Numbers) -> RowCounts:
        n_lacking = self.n_places * self.n_codes - counts.shape[1]
        padded = np.pad(_of_rows(counts), ((0, 0), (0, n_lacking)))
        return padded.reshape(len(counts), self.n_places, self.n_codes)


def _of_rows(counts: Numbers) -> RowCounts:
    """Take counts of rows; weights, which are for persons with several rows, are refused before and fail here."""
    return counts.astype(np.int64, casting="safe")


def group_values(counts: RowCounts, k: int) -> tuple[Ids, RowCounts]:
    """Group the values of parts, given their counts in order: the group of each value, and the rows of each group.

    Examples
    --------
    >>> of_value, rows = group_values(np.array([[3, 1, 0, 1, 1]]), 2)
    >>> of_value.tolist(), rows.tolist()
    ([[0, 1, 1, 1, 1]], [[3, 3, 0, 0, 0]])
    """
    n_parts, n_values = counts.shape
    of_value = np.zeros((n_parts, n_values), dtype=np.int32)
    open_rows, n_closed = np.zeros(n_parts, dtype=np.int64), np.zeros(n_parts, dtype=np.int32)
    for value in range(n_values):
        of_value[:, value] = n_closed
        open_rows += counts[:, value]
        is_closed = open_rows >= k
        n_closed += is_closed
        open_rows[is_closed] = 0
    of_value = np.minimum(of_value, np.maximum(n_closed - 1, 0)[:, None])
    rows = np.zeros((n_parts, n_values), dtype=np.int64)
    every = np.arange(n_parts)
    for value in range(n_values):
        rows[every, of_value[:, value]] += counts[:, value]
    return of_value, rows


@dataclass(frozen=True, eq=False, repr=False)
class BothRoles:
    """A sensitive quasi-identifier whose values are in the order in which they are grouped.

    Parameters
    ----------
    axis : Axis
    places : ndarray of int32
        Place of each row's value in that order.
    place_of_code : ndarray of int32
        Place of each value of the axis, and last that of a missing one.
    n_places : int
    """

    axis: Axis
    places: Ids
    place_of_code: Ids
    n_places: int

    @classmethod
    def of(cls, table: Table, axis: Axis) -> BothRoles:
        """Order the values of a column: by size, moment or level, else the most frequent first."""
        column, described = table[axis.name], table.schema[axis.name]
        numbers = value_numbers(column.values, described).merged[column.codes]
        n_numbers = int(numbers.max(initial=-1)) + 1
        place_of_number = np.arange(n_numbers, dtype=np.int32)
        if axis.positions is None:
            by_frequency = np.lexsort((np.arange(n_numbers), -np.bincount(numbers, minlength=n_numbers)))
            place_of_number[by_frequency] = np.arange(n_numbers, dtype=np.int32)
        places = place_of_number[numbers]
        place_of_code = np.full(axis.n_values + 1, max(n_numbers - 1, 0), dtype=np.int32)
        place_of_code[axis.codes] = places  # missing is -1, the last entry
        return cls(axis, places, place_of_code, n_numbers)

    def divided(self, part_of_row: Ids, k: int) -> GroupsInParts:
        """Group the values in each part."""
        n_parts = int(part_of_row.max(initial=-1)) + 1
        part_of, last = [], []
        for parts, counts in self._counts(part_of_row, n_parts):
            of_value = group_values(counts, k)[0]
            is_last = np.ones(of_value.shape, dtype=np.bool_)
            is_last[:, :-1] = of_value[:, 1:] != of_value[:, :-1]
            part, place = np.nonzero(is_last)
            part_of.append(part + parts.start)
            last.append(place)
        return GroupsInParts(self, np.concatenate(part_of), np.concatenate(last))

    def _counts(self, part_of_row: Ids, n_parts: int) -> Iterator[tuple[slice, RowCounts]]:
        """Rows of each value in each part, as many parts as fit into memory at a time."""
        order = np.argsort(part_of_row, kind="stable")
        starts = np.searchsorted(part_of_row[order], np.arange(n_parts + 1))
        step = max(1, _CELLS_AT_ONCE // max(self.n_places, 1))
        for begin in range(0, n_parts, step):
            end = min(begin + step, n_parts)
            rows = order[starts[begin] : starts[end]]
            keys = (part_of_row[rows].astype(np.int64) - begin) * self.n_places + self.places[rows]
            counts = np.bincount(keys, minlength=(end - begin) * self.n_places)
            yield slice(begin, end), counts.reshape(end - begin, self.n_places).astype(np.int64)

    def places_of(self, aligned: Axis) -> Ids:
        """Places of new rows' values; a number that the table does not have goes with the next lower one."""
        if self.axis.positions is None or aligned.positions is None or not self.axis.n_values:
            return np.asarray(self.place_of_code[aligned.codes])
        lower = np.searchsorted(self.axis.positions, aligned.positions, side="right") - 1
        code_of = np.append(np.maximum(lower, 0), MISSING)
        return np.asarray(self.place_of_code[code_of[aligned.codes]])


@dataclass(frozen=True, eq=False, repr=False)
class GroupsInParts:
    """Groups of values in parts of rows: the part of each group and the last place that belongs to it, ascending."""

    both: BothRoles
    part_of: NDArray[np.intp]
    last: NDArray[np.intp]

    def groups_of(self, part_of_row: NDArray[np.integer], places: Ids) -> Ids:
        """Group of each row, given its part and the place of its value."""
        n_places = max(self.both.n_places, 1)
        found = np.searchsorted(
            self.part_of * n_places + self.last,
            part_of_row.astype(np.int64) * n_places + np.minimum(places, n_places - 1),
        )
        return found.astype(np.int32)

    def covers(self, part_of_row: Ids) -> tuple[Cover, Cover]:
        """Give the groups' own rows as a cover, and one in which every group stands for all rows of its part."""
        own = Cover.of_groups(self.groups_of(part_of_row, self.both.places))
        in_part = sp.csr_matrix(
            (np.ones(len(self.part_of), dtype=np.int8), self.part_of, np.arange(len(self.part_of) + 1))
        )
        together = sp.csr_matrix(in_part @ in_part.T)
        together.sort_indices()
        return own, replace(own, parts=together)
