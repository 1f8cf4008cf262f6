"""Rows in parts, sorted once along every axis and kept sorted while all parts are divided at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Indices = NDArray[np.intp]
Weights = NDArray[np.signedinteger]


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
        return np.asarray(np.add.reduceat(self.weights[self.rows[0]], self.starts[:-1], dtype=np.int64))

    @cached_property
    def _rows_up_to(self) -> Weights:
        """Rows at the places up to each one along every axis."""
        if self.weights is None:
            raise AssertionError
        return np.asarray(np.cumsum(self.weights[self.rows], axis=1, dtype=self.weights.dtype))

    def rows_of_sides(self, cuts: Cuts) -> tuple[Counts, Counts]:
        """Rows left and right of cuts."""
        starts = self.starts[cuts.part]
        if self.weights is None:
            return cuts.index - starts, self.starts[cuts.part + 1] - cuts.index
        before = np.where(starts > 0, self._rows_up_to[cuts.axis, starts - 1], 0)
        n_left = (self._rows_up_to[cuts.axis, cuts.index - 1] - before).astype(np.int64)
        return n_left, self.n_rows[cuts.part] - n_left

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

    def cuts_between_values(self, k: int) -> Cuts:
        """List the cuts that keep equal values together and leave at least k rows on both sides."""
        axis, index = np.nonzero(self.begins_value)
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
        rows, values, n_axes = self.rows, self.values, len(self.rows)
        if not is_cut.all():
            stays = np.repeat(is_cut, self.sizes)
            rows, values = rows.compress(stays, axis=1), values.compress(stays, axis=1)
        sizes = np.column_stack([(index - self.starts[:-1])[is_cut], (self.starts[1:] - index)[is_cut]]).ravel()
        is_right = goes_right[rows]
        right_half = np.repeat(np.arange(len(sizes)) % 2 == 1, sizes)
        divided = np.empty_like(rows), np.empty_like(values)
        for before, after in zip((rows, values), divided, strict=True):
            after[:, ~right_half] = before[~is_right].reshape(n_axes, -1)
            after[:, right_half] = before[is_right].reshape(n_axes, -1)
        return SortedParts(*divided, np.concatenate([[0], np.cumsum(sizes)]), self.weights)


def _runs(begins: Indices, ends: Counts) -> Indices:
    """All places of runs, one run after the other."""
    lengths = ends - begins
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.arange(int(lengths.sum())) + np.repeat(begins - before, lengths))
