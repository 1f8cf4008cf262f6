"""Rows in parts, sorted once along every axis and kept sorted while all parts are divided at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from sfumato.learning.c45.tree import MISSING, TreeColumn
from sfumato.mechanisms.axes import Axis

Counts = NDArray[np.int64]
Indices = NDArray[np.intp]
Weights = NDArray[np.signedinteger]
Flags = NDArray[np.bool_]
Ids = NDArray[np.int32]

CELLS_AT_ONCE = 2**22
"""Most sums that are held at a time."""


@dataclass(frozen=True, eq=False)
class Cuts:
    """Places at which parts may be cut, ordered by axis, then part, then place.

    Parameters
    ----------
    axis, part : ndarray of intp
    index : ndarray of intp
        Place in the sorted rows of the axis from which rows go to the right.
    """

    axis: Indices
    part: Indices
    index: Indices

    def __len__(self) -> int:
        return len(self.index)

    def keep(self, chosen: NDArray[np.bool_] | Indices | slice) -> Cuts:
        """Keep some, in their order."""
        return Cuts(self.axis[chosen], self.part[chosen], self.index[chosen])

    def first_of_group(self) -> Indices:
        """Where the cuts of one part on one axis begin."""
        is_first = np.ones(len(self), dtype=np.bool_)
        is_first[1:] = (self.part[1:] != self.part[:-1]) | (self.axis[1:] != self.axis[:-1])
        return np.flatnonzero(is_first)


@dataclass(frozen=True, eq=False, repr=False)
class SortedParts:
    """Parts of one depth, each a run of places; every axis has the rows of a part at the same places.

    Parameters
    ----------
    rows : ndarray of int32, shape (n_axes, n_places)
        Rows along each axis, by part, then value, then values on the other axes (that with the fewest values first),
        then row number.
    values : ndarray of int32, shape (n_axes, n_places)
        Value of these rows on the axis.
    starts : ndarray of int64, shape (n_parts + 1,)
        Where each part begins; the last entry is ``n_places``.
    weights : ndarray of int64 or int32 or None
        How many rows each row counts as; ``None``: one.
    """

    rows: NDArray[np.int32]
    values: NDArray[np.int32]
    starts: Counts
    weights: Weights | None = None

    @classmethod
    def of(
        cls,
        values: Sequence[NDArray[np.int32]],
        part_of_row: NDArray[np.int32] | None = None,
        weights: Weights | None = None,
    ) -> SortedParts:
        """Put all rows into one part, or into given ones numbered without gaps from 0.

        ``values`` holds the rows' values on each axis, numbered without gaps.
        """
        from_many_to_few = sorted(values, key=lambda column: -int(np.ptp(column)))
        base = np.lexsort(from_many_to_few)
        rows = np.stack([base[np.argsort(column[base], kind="stable")].astype(np.int32) for column in values])
        starts = np.array([0, rows.shape[1]])
        if part_of_row is not None:
            rows = np.stack([order[np.argsort(part_of_row[order], kind="stable")] for order in rows])
            starts = np.concatenate([[0], np.cumsum(np.bincount(part_of_row))])
        ordered = np.stack([column[order] for column, order in zip(values, rows, strict=True)])
        if weights is not None and int(weights.sum()) <= np.iinfo(np.int32).max:
            weights = weights.astype(np.int32)  # half the memory for sums along every axis
        return cls(rows, ordered, starts, weights)

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self.starts) - 1

    @cached_property
    def sizes(self) -> Counts:
        """Places of each part."""
        return np.diff(self.starts)

    @cached_property
    def n_rows(self) -> Counts:
        """Rows of each part, by their weights."""
        if self.weights is None:
            return self.sizes
        return np.asarray(np.add.reduceat(self.weights.take(self.rows[0]), self.starts[:-1], dtype=np.int64))

    @cached_property
    def _rows_up_to(self) -> Weights:
        """Rows at the places up to each one along every axis."""
        if self.weights is None:
            raise AssertionError
        return np.asarray(np.cumsum(self.weights.take(self.rows), axis=1, dtype=self.weights.dtype))

    def are_counted_by(self, numbers: NDArray[np.float64]) -> bool:
        """Whether numbers, one a row, say how many rows each row counts as."""
        return bool((numbers == (1 if self.weights is None else self.weights)).all())

    def rows_of_sides(self, cuts: Cuts) -> tuple[Counts, Counts]:
        """Rows left and right of cuts."""
        if self.weights is None:
            return cuts.index - self.starts[cuts.part], self.starts[cuts.part + 1] - cuts.index
        before = np.cumsum(self.n_rows) - self.n_rows  # in earlier parts: the same along every axis
        last_on_left = cuts.axis * self.rows.shape[1] + cuts.index - 1
        n_left = self._rows_up_to.reshape(-1).take(last_on_left) - before[cuts.part]
        return n_left, self.n_rows[cuts.part] - n_left

    def persons_of_sides(self, cuts: Cuts, persons: Ids) -> tuple[Counts, Counts]:
        """Different persons among the rows left and right of cuts, given the person of each row.

        Distinct persons do not add up over rows: left of a cut are as many as begin there, read from the left, and
        right of it as many as begin read from the right.
        """
        left, right = np.zeros((2, len(cuts)), dtype=np.int64)
        of_axis = np.searchsorted(cuts.axis, np.arange(len(self.rows) + 1))
        shared, n_shared = self._rows_of_shared_persons(persons)
        for axis in np.unique(cuts.axis).tolist():
            taken = slice(of_axis[axis], of_axis[axis + 1])
            number = shared[self.rows[axis]]
            places = np.flatnonzero(number != MISSING)  # all others begin, read from either side
            begun = [np.zeros(len(number) + 1, dtype=np.int64) for _ in range(2)]
            for sums, along in zip(begun, (places[::-1], places), strict=True):
                begins = np.ones(len(number), dtype=np.bool_)
                begins[places] = False
                last_read = np.empty(n_shared, dtype=np.intp)
                last_read[number[along]] = along  # of several the last assignment stays
                begins[last_read] = True
                np.cumsum(begins, out=sums[1:])
            part, index = cuts.part[taken], cuts.index[taken]
            left[taken] = begun[0][index] - begun[0][self.starts[part]]
            right[taken] = begun[1][self.starts[part + 1]] - begun[1][index]
        return left, right

    def _rows_of_shared_persons(self, persons: Ids) -> tuple[Ids, int]:
        """Find the persons with several rows in a part: number of each row's person, -1 for others; how many."""
        n_persons = int(persons.max(initial=-1)) + 1
        keys = self.part_of_place * n_persons + persons[self.rows[0]]
        _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
        has_several = counts > 1
        number = np.where(has_several, np.cumsum(has_several) - 1, MISSING)
        of_row = np.full(len(persons), MISSING, dtype=np.int32)
        of_row[self.rows[0]] = number[inverse.reshape(-1)]
        return of_row, int(has_several.sum())

    def two_values_on_sides(self, cuts: Cuts, codes: Ids) -> tuple[Flags, Flags]:
        """Whether the rows left and right of cuts have different codes of a column.

        That :func:`sfumato.measures.diversity.distinct_diversity` is 2 or more, without counts of all values: two
        neighbouring rows of the side are different.
        """
        left, right = np.zeros((2, len(cuts)), dtype=np.bool_)
        of_axis = np.searchsorted(cuts.axis, np.arange(len(self.rows) + 1))
        changes = np.zeros(self.rows.shape[1], dtype=np.int32)
        for axis in np.unique(cuts.axis).tolist():
            taken = slice(of_axis[axis], of_axis[axis + 1])
            along = codes.take(self.rows[axis])
            np.cumsum(along[1:] != along[:-1], out=changes[1:])
            part, index = cuts.part[taken], cuts.index[taken]
            left[taken] = changes[index - 1] > changes[self.starts[part]]
            right[taken] = changes[self.starts[part + 1] - 1] > changes[index]
        return left, right

    @cached_property
    def part_of_place(self) -> Indices:
        """Part at each place."""
        return np.repeat(np.arange(self.n_parts), self.sizes)

    @cached_property
    def begins_value(self) -> NDArray[np.bool_]:
        """Whether a place holds another value than the place before, within its part."""
        begins = np.empty(self.values.shape, dtype=np.bool_)
        np.not_equal(self.values[:, 1:], self.values[:, :-1], out=begins[:, 1:])
        begins[:, self.starts[:-1]] = False
        return begins

    def renumbered(self) -> SortedParts:
        """Give the rows new numbers, in their order along the first axis: ``rows[0]`` has those so far.

        Rows of a part are then neighbours in memory, and what is kept of each is read several times as fast.
        """
        number = np.empty(int(self.rows.max(initial=-1)) + 1, dtype=np.int32)
        number[self.rows[0]] = np.arange(self.rows.shape[1])
        weights = None if self.weights is None else self.weights[self.rows[0]]
        return SortedParts(number.take(self.rows), self.values, self.starts, weights)

    def cuts_between_values(self, k: int) -> Cuts:
        """List the cuts that keep equal values together and leave at least k rows on both sides."""
        at = np.flatnonzero(self.begins_value)
        axis = np.repeat(np.arange(len(self.rows)), np.count_nonzero(self.begins_value, axis=1))
        index = at - axis * self.rows.shape[1]
        cuts = Cuts(axis, self.part_of_place[index], index)
        n_left, n_right = self.rows_of_sides(cuts)
        return cuts.keep((n_left >= k) & (n_right >= k))

    def cuts_in_the_middle(self, k: int) -> Cuts:
        """List the cuts of every part into halves, on axes on which it has more than one value."""
        differs = self.values[:, self.starts[:-1]] != self.values[:, self.starts[1:] - 1]
        axis, part = np.nonzero(differs & (self.sizes >= 2 * k))
        return Cuts(axis, part, self.starts[part] + self.sizes[part] // 2)

    def divide(self, axis: Indices, index: Indices) -> SortedParts:
        """Cut every part at its place on its axis; a part whose axis is -1 is taken out.

        The two halves of a part follow each other, left before right.
        """
        is_cut = axis >= 0
        goes_right = np.zeros(int(self.rows.max(initial=-1)) + 1, dtype=np.bool_)
        places = _runs(index[is_cut], self.starts[1:][is_cut])
        goes_right[self.rows[np.repeat(axis[is_cut], (self.starts[1:] - index)[is_cut]), places]] = True
        sizes = np.column_stack([(index - self.starts[:-1])[is_cut], (self.starts[1:] - index)[is_cut]]).ravel()
        right_half = np.repeat(np.arange(len(sizes)) % 2 == 1, sizes)
        kept = None if is_cut.all() else np.flatnonzero(np.repeat(is_cut, self.sizes))
        rows, values = np.empty((2, len(self.rows), len(right_half)), dtype=np.int32)
        place = np.empty(len(right_half), dtype=np.intp)
        for number, own in enumerate(self.rows):
            # places are found once and taken twice: numpy reads by place far faster than by an unforeseeable mask
            is_right = goes_right.take(own if kept is None else own.take(kept))
            place[right_half], place[~right_half] = np.flatnonzero(is_right), np.flatnonzero(~is_right)
            before = place if kept is None else kept.take(place)
            own.take(before, out=rows[number], mode="clip")
            self.values[number].take(before, out=values[number], mode="clip")
        return SortedParts(rows, values, np.concatenate([[0], np.cumsum(sizes)]), self.weights)


def firsts(numbers: Indices) -> Flags:
    """Whether a number stands at a place for the first time."""
    found = np.zeros(len(numbers), dtype=np.bool_)
    found[np.unique(numbers, return_index=True)[1]] = True
    return found


@dataclass(frozen=True, eq=False)
class Stretch:
    """Cuts on one axis, with the rows of their parts in blocks between cuts.

    Parameters
    ----------
    taken : slice
        The cuts.
    places : slice
        Places of the rows of their parts, which are whole.
    rows : ndarray of int32
        The rows there.
    blocks : ndarray of intp
        Where blocks begin, from 0.
    first, last, here : ndarray of intp
        For each cut the first block of its part, the one after its last, and the block that begins at the cut.
    """

    taken: slice
    places: slice
    rows: NDArray[np.int32]
    blocks: Indices
    first: Indices
    last: Indices
    here: Indices

    @property
    def block_of_row(self) -> Indices:
        """Block of each row."""
        return np.repeat(np.arange(len(self.blocks)), np.diff(np.append(self.blocks, len(self.rows))))


def stretches(parts: SortedParts, cuts: Cuts, n_sums: int) -> Iterator[Stretch]:
    """Go through cuts, as many on one axis at a time as their sums, so many each, have room in memory."""
    most = max(1, CELLS_AT_ONCE // max(n_sums, 1))
    of_axis = np.searchsorted(cuts.axis, np.arange(len(parts.rows) + 1))
    for axis in range(len(parts.rows)):
        for begin in range(of_axis[axis], of_axis[axis + 1], most):
            taken = slice(begin, min(begin + most, of_axis[axis + 1]))
            chosen = cuts.keep(taken)
            low, high = chosen.part[0], chosen.part[-1] + 1
            places = slice(int(parts.starts[low]), int(parts.starts[high]))
            part = chosen.part - low
            first_of_part = np.concatenate([[0], np.cumsum(np.bincount(part, minlength=high - low) + 1)])
            here = np.arange(len(chosen)) + part + 1  # a block begins at each cut, and one at each part up to its own
            blocks = np.empty(first_of_part[-1], dtype=np.intp)
            blocks[first_of_part[:-1]], blocks[here] = parts.starts[low:high], chosen.index
            first, last = first_of_part[part], first_of_part[part + 1]
            yield Stretch(taken, places, parts.rows[axis, places], blocks - places.start, first, last, here)


def _runs(begins: Indices, ends: Counts) -> Indices:
    """All places of runs, one run after the other."""
    lengths = ends - begins
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.arange(int(lengths.sum())) + np.repeat(begins - before, lengths))


# Axes on scales that parts are cut along: numbers by position, categories by frequency, missing values at the end.


Floats = NDArray[np.float64]
Values = NDArray[np.int32]

LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False, repr=False)
class Scales:
    """Values of all axes, numbered through: those of the first axis in their order, then those of the next.

    A number, date or level is where its position says. The values of a categorical axis, which have no order of their
    own, are put in one: by falling number of rows (equally frequent ones by code), so that rare values are neighbours
    and few cuts take them away from the frequent ones. Where rows have a score, by its mean instead: of all divisions
    of the values in two, that with the least variance of the score is then a cut (Breiman et al., Classification and
    Regression Trees, 1984, Section 4.2.2), if the part has the means of the table. A missing value comes after all
    others.

    Parameters
    ----------
    ranks : tuple of (ndarray of int32 or None)
        Of a categorical axis the place of each code in the order; ``None`` for one with positions.
    has_missing : ndarray of bool, shape (n_axes,)
    first : ndarray of int64, shape (n_axes + 1,)
        Number of the first value of each axis; the last entry is the number of all values.
    positions : ndarray of float64
        Where each value lies: position or place in the order; infinite for missing.
    spans : ndarray of float64, shape (n_axes,)
        Distance from the lowest position to the highest.
    """

    ranks: tuple[Values | None, ...]
    has_missing: NDArray[np.bool_]
    first: NDArray[np.int64]
    positions: Floats
    spans: Floats

    def __repr__(self) -> str:
        return f"Scales({len(self.ranks)} axes, {len(self.positions):,} values)"

    @classmethod
    def of(cls, axes: Sequence[Axis], order_by: Floats | None = None) -> Scales:
        """Lay out the values of axes; categories by their rows, or by the mean of a number that each entry has."""
        rank = _by_frequency if order_by is None else partial(_by_mean, of_rows=order_by)
        ranks = tuple(None if axis.positions is not None else rank(axis) for axis in axes)
        has_missing = np.array([axis.has_missing for axis in axes], dtype=np.bool_)
        known = [np.arange(float(a.n_values)) if a.positions is None else a.positions for a in axes]
        pieces = [np.append(k, np.inf) if m else k for k, m in zip(known, has_missing, strict=True)]
        first = np.cumsum([0, *map(len, pieces)])
        spans = np.array([axis.span for axis in axes])
        return cls(ranks, has_missing, first, np.concatenate(pieces), spans)

    @property
    def n_values(self) -> NDArray[np.int64]:
        """Number of values of each axis; missing counts as one where it occurs."""
        return np.diff(self.first)

    def values(self, axes: Sequence[Axis]) -> list[Values]:
        """Value of each row on every axis."""
        columns = self.columns(axes)
        return [(column.codes + first).astype(np.int32) for column, first in zip(columns, self.first, strict=False)]

    def columns(self, axes: Sequence[Axis]) -> list[TreeColumn]:
        """Write axes (those laid out, or new rows aligned with them) as columns that a tree cuts at thresholds.

        A missing value of an axis that had none stays missing; otherwise it has the number infinity.
        """
        columns = []
        for axis, rank, has_missing in zip(axes, self.ranks, self.has_missing, strict=True):
            codes = axis.codes if rank is None else np.append(rank, np.int32(MISSING))[axis.codes]
            numbers = np.arange(float(axis.n_values)) if axis.positions is None else axis.positions
            if has_missing:
                codes, numbers = np.where(codes == MISSING, axis.n_values, codes), np.append(numbers, np.inf)
            columns.append(TreeColumn(codes.astype(np.int32), len(numbers), numbers))
        return columns

    def thresholds(self, axis: Indices, left: Values, right: Values) -> tuple[Floats, Floats]:
        """Thresholds and cuts of a tree between the last value on the left and the first on the right.

        As in C4.5 a threshold is the largest number of the data up to half way between the two. Every number lies left
        of a missing value, whatever its size.
        """
        low, high = self.positions[left], self.positions[right]
        cut = np.where(np.isinf(high), np.inf, np.where(np.isinf(high), 0.0, high) / 2 + low / 2)
        threshold = np.where(np.isinf(low), np.inf, LARGEST)
        for number in np.unique(axis[np.isfinite(cut)]).tolist():
            here = (axis == number) & np.isfinite(cut)
            begin, end = self.first[number], self.first[number + 1]
            nearest = begin - 1 + np.searchsorted(self.positions[begin:end], cut[here], side="right")
            threshold[here] = self.positions[np.clip(nearest, left[here], np.maximum(right[here] - 1, left[here]))]
        return threshold, cut


def _by_frequency(axis: Axis) -> Values:
    is_known = axis.codes != MISSING
    weights = None if axis.weights is None else axis.weights[is_known]
    counts = np.bincount(axis.codes[is_known], weights, minlength=axis.n_values)
    rank = np.empty(axis.n_values, dtype=np.int32)
    rank[np.argsort(-counts, kind="stable")] = np.arange(axis.n_values)
    return rank


def _by_mean(axis: Axis, of_rows: Floats) -> Values:
    is_known = axis.codes != MISSING
    weights = np.ones(len(axis.codes)) if axis.weights is None else axis.weights
    counts = np.bincount(axis.codes[is_known], weights[is_known], minlength=axis.n_values)
    sums = np.bincount(axis.codes[is_known], (weights * of_rows)[is_known], minlength=axis.n_values)
    rank = np.empty(axis.n_values, dtype=np.int32)
    rank[np.argsort(sums / np.maximum(counts, 1), kind="stable")] = np.arange(axis.n_values)
    return rank


class Widths:
    """Certainty penalties of runs of places within parts, by the rules of :mod:`sfumato.mechanisms.recoder`."""

    def __init__(self, scales: Scales, parts: SortedParts) -> None:
        self._scales = scales
        self._parts = parts
        self._is_ordered = np.array([rank is None for rank in scales.ranks])
        self._n_begun = np.cumsum(parts.begins_value, axis=1, dtype=np.int32)
        ends = np.broadcast_to(parts.starts[1:], (len(scales.ranks), parts.n_parts)).copy()
        for axis in np.flatnonzero(scales.has_missing).tolist():
            is_missing = parts.values[axis] == scales.first[axis + 1] - 1
            ends[axis] -= np.add.reduceat(is_missing, parts.starts[:-1], dtype=np.int64)
        self._ends_of_known = ends

    def of_sides(self, cuts: Cuts) -> tuple[Floats, Floats]:
        """Penalty of the rows left and right of cuts."""
        starts, ends = self._parts.starts[cuts.part], self._parts.starts[cuts.part + 1]
        return self._of_runs(cuts, starts, cuts.index), self._of_runs(cuts, cuts.index, ends)

    def of_parts(self, cuts: Cuts) -> Floats:
        """Penalty of the parts that cuts divide, on the axes of the cuts."""
        return self._of_runs(cuts, self._parts.starts[cuts.part], self._parts.starts[cuts.part + 1])

    def _of_runs(self, cuts: Cuts, begin: Indices, end: Indices) -> Floats:
        is_ordered = self._is_ordered[cuts.axis]
        penalty = np.empty(len(cuts))
        ordered, unordered = np.flatnonzero(is_ordered), np.flatnonzero(~is_ordered)
        penalty[ordered] = self._of_ranges(cuts.keep(ordered), begin[ordered], end[ordered])
        penalty[unordered] = self._of_sets(cuts.axis[unordered], begin[unordered], end[unordered])
        return penalty

    def _of_ranges(self, cuts: Cuts, begin: Indices, end: Indices) -> Floats:
        end_of_known = np.minimum(end, self._ends_of_known[cuts.axis, cuts.part])
        is_known = end_of_known > begin
        last = np.where(is_known, end_of_known - 1, begin)
        low = self._positions(cuts.axis, begin)
        extent = np.zeros(len(cuts))
        np.subtract(self._positions(cuts.axis, last), low, out=extent, where=is_known)
        extent /= np.where(self._scales.spans > 0, self._scales.spans, 1.0)[cuts.axis]
        may_be_missing = (end_of_known < end) / self._scales.n_values[cuts.axis]
        return np.minimum(extent + may_be_missing, 1.0) * is_known

    def _positions(self, axis: Indices, place: Indices) -> Floats:
        values = self._parts.values
        return np.asarray(self._scales.positions[values.reshape(-1)[axis * values.shape[1] + place]])

    def _of_sets(self, axis: Indices, begin: Indices, end: Indices) -> Floats:
        n_distinct = self._n_begun[axis, end - 1] - self._n_begun[axis, begin] + 1
        return np.where(n_distinct == 1, 0.0, n_distinct / self._scales.n_values[axis])
