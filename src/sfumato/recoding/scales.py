"""Axes on scales that parts are cut along: numbers by position, categories by frequency, missing values at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.learning.tree import MISSING, TreeColumn
from sfumato.recoding.axes import Axis
from sfumato.recoding.sorted_parts import Cuts, Indices, SortedParts

Floats = NDArray[np.float64]
Values = NDArray[np.int32]

LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False, repr=False)
class Scales:
    """Values of all axes, numbered through: those of the first axis in their order, then those of the next.

    A number, date or level is where its position says. The values of a categorical axis, which have no order of their
    own, are put in one: by falling number of rows (equally frequent ones by code), so that rare values are neighbours
    and few cuts take them away from the frequent ones. A missing value comes after all others.

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
    def of(cls, axes: Sequence[Axis]) -> Scales:
        """Lay out the values of axes."""
        ranks = tuple(None if axis.positions is not None else _by_frequency(axis) for axis in axes)
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


class Widths:
    """Certainty penalties of runs of places within parts, by the rules of :mod:`sfumato.recoding.cover`."""

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
