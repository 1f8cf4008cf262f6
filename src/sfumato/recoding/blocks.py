"""Rows of a tier in blocks of similar ones, with lower bounds of the distance from a subgroup to a block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.recoding.nearness import Coordinates, Numbers, Position, ranges
from sfumato.recoding.subgroups import Indices, RowsByLeaf

Keys = NDArray[np.float64] | NDArray[np.int32]


@dataclass(frozen=True, eq=False, repr=False)
class Blocks:
    """Places of similar rows next to each other.

    Parameters
    ----------
    members : ndarray of int
        Places, block by block.
    starts, sizes : ndarray of int
        Where each block begins in ``members``, and how many it has.
    bounds : sequence
        One for each coordinate.
    """

    members: Indices
    starts: Indices
    sizes: Indices
    bounds: Sequence[_RangeBounds | _ValueBounds]

    @classmethod
    def of(cls, coordinates: Coordinates, keys: Sequence[Keys], places: Indices, size: int) -> Blocks:
        """Halve places, more or less, until no block has more than some size; none has less than a quarter of it.

        ``keys`` has, for each coordinate and each place of the whole tree, a number, or a code that is 0 for values
        that are left out of the bounds.
        """
        parts = _halved(keys, places, size)
        members, sizes = np.concatenate(parts), np.array([len(part) for part in parts])
        starts = np.cumsum(sizes) - sizes
        bounds = [
            _RangeBounds.of(coordinate, members, starts)
            if isinstance(coordinate, Position)
            else _ValueBounds.of(column, members, sizes)
            for coordinate, column in zip(coordinates, keys, strict=True)
        ]
        return cls(members, starts, sizes, bounds)

    def least_distances(self, rows: RowsByLeaf, borrowers: Indices) -> Numbers:
        """Lower bound of the distances that ``distances_of`` finds between each borrower and the rows of each block."""
        least = np.zeros((len(borrowers), len(self.sizes)))
        for bound in self.bounds:
            bound.add_to(least, rows, borrowers)
        return least


def _halved(keys: Sequence[Keys], places: Indices, size: int) -> list[Indices]:
    """Halve places, each time along the coordinate in which most of the spread goes."""
    waiting, small = [places], []
    while waiting:
        block = waiting.pop()
        if len(block) <= size:
            small.append(block)
            continue
        gains = [_gain(column[block]) for column in keys]
        column = keys[int(np.argmax(gains))]
        block = block[np.argsort(column[block], kind="stable")]
        middle = _middle(column[block])
        waiting += [block[middle:], block[:middle]]
    return small


def _middle(ordered: Keys) -> int:
    """Where to cut: between two different keys, if that leaves a quarter on either side."""
    half, quarter = len(ordered) // 2, -(-len(ordered) // 4)
    cuts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    cuts = cuts[(cuts >= quarter) & (cuts <= len(ordered) - quarter)]
    return int(cuts[np.argmin(np.abs(cuts - half))]) if len(cuts) else half


def _gain(keys: Keys) -> float:
    """Spread that goes when keys are halved: exact for even shares of codes, and for evenly spread numbers."""
    if np.issubdtype(keys.dtype, np.integer):
        same = float(np.square(np.bincount(keys) / len(keys)).sum())
        return min(same, 1 - same) / 2
    known = keys[~np.isnan(keys)]
    return 0.75 * float(known.var()) * len(known) / len(keys) if len(known) else 0.0


@dataclass(frozen=True, eq=False, repr=False)
class _RangeBounds:
    """Lowest and highest number of each block; boundless where one is missing, as that is 0 away from anything."""

    low: Numbers
    high: Numbers
    means: Numbers

    @classmethod
    def of(cls, position: Position, members: Indices, starts: Indices) -> _RangeBounds:
        numbers = position.numbers[members]
        low = np.minimum.reduceat(np.where(np.isnan(numbers), -np.inf, numbers), starts)
        high = np.maximum.reduceat(np.where(np.isnan(numbers), np.inf, numbers), starts)
        return cls(low, high, position.means)

    def add_to(self, least: Numbers, rows: RowsByLeaf, borrowers: Indices) -> None:
        means = self.means[borrowers][:, None]
        gaps = np.fmax(np.fmax(self.low - means, means - self.high), 0.0)
        gaps *= gaps
        least += gaps


@dataclass(frozen=True, eq=False, repr=False)
class _ValueBounds:
    """Which block has which values, one row for each; the row of those left out is empty."""

    keys: Keys
    has_value: NDArray[np.bool_]

    @classmethod
    def of(cls, keys: Keys, members: Indices, sizes: Indices) -> _ValueBounds:
        has_value = np.zeros((int(keys.max()) + 1, len(sizes)), dtype=np.bool_)
        has_value[keys[members], np.repeat(np.arange(len(sizes)), sizes)] = True
        has_value[0] = False
        return cls(keys, has_value)

    def add_to(self, least: Numbers, rows: RowsByLeaf, borrowers: Indices) -> None:
        width, sizes = len(self.has_value), rows.sizes[borrowers]
        if width == 1:
            return
        _, owner, own = ranges(rows.starts[borrowers], sizes)
        held, counts = np.unique(owner * width + self.keys[own], return_counts=True)
        holder, key = np.divmod(held, width)
        shares = (counts / sizes[holder])[:, None] * self.has_value[key]
        least -= np.maximum.reduceat(shares, np.searchsorted(holder, np.arange(len(borrowers))), axis=0)
