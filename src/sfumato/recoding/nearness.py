"""Distances from rows to the centroids of subgroups, and the rows nearest to each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.learning.tree import MISSING
from sfumato.recoding.axes import Axis
from sfumato.recoding.subgroups import Indices, RowsByLeaf

Numbers = NDArray[np.float64]

_MAX_PAIRS = 1 << 17  # subgroups × candidates compared at once; a single subgroup may have more
_MAX_SUBGROUPS = 1 << 10


@dataclass(frozen=True, eq=False, repr=False)
class Pairs:
    """Some subgroups that borrow, and each with the places of its candidates, its own places perhaps among them."""

    borrowers: Indices
    own: Indices
    of_own: Indices
    firsts: Indices
    places: Indices
    of_pair: Indices
    is_own: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: RowsByLeaf, borrowers: Indices, of_pair: Indices, places: Indices) -> Pairs:
        """Pair subgroups with places; ``of_pair`` counts the subgroups from 0 and ascends."""
        starts, sizes = rows.starts[borrowers], rows.sizes[borrowers]
        _, of_own, own = ranges(starts, sizes)
        firsts = np.searchsorted(of_pair, np.arange(len(borrowers)))
        is_own = (places >= starts[of_pair]) & (places < (starts + sizes)[of_pair])
        return cls(borrowers, own, of_own, firsts, places, of_pair, is_own)


def pairs_with_intervals(rows: RowsByLeaf, borrowers: Indices, nodes: Indices) -> Iterator[Pairs]:
    """Pair each subgroup with every place below a node."""
    for some in chunks(rows.n_of_node[nodes]):
        _, of_pair, places = ranges(rows.first_of_node[nodes[some]], rows.n_of_node[nodes[some]])
        yield Pairs.of(rows, borrowers[some], of_pair, places)


def chunks(lengths: Indices) -> Iterator[slice]:
    """Divide subgroups with these numbers of candidates into runs that are compared at once."""
    ends = np.cumsum(lengths)
    a = 0
    while a < len(lengths):
        full = int(np.searchsorted(ends, ends[a] - lengths[a] + _MAX_PAIRS, side="right"))
        b = max(a + 1, min(full, a + _MAX_SUBGROUPS))
        yield slice(a, b)
        a = b


def ranges(starts: Indices, lengths: Indices) -> tuple[Indices, Indices, Indices]:
    """Put ranges one after the other: where each begins, which one an entry is of, and the entries."""
    firsts = np.cumsum(lengths) - lengths
    owner = np.repeat(np.arange(len(lengths)), lengths)
    return firsts, owner, np.arange(len(owner)) + (starts - firsts)[owner]


@dataclass(frozen=True, eq=False, repr=False)
class Position:
    """A coordinate with a number at each place and a mean in each subgroup; not-a-number is 0 away from anything."""

    numbers: Numbers
    means: Numbers

    @classmethod
    def of(cls, numbers: Numbers, rows: RowsByLeaf) -> Position:
        """Take the mean of each subgroup, of the rows that have a number."""
        is_known = ~np.isnan(numbers)
        sums = np.add.reduceat(np.where(is_known, numbers, 0.0), rows.starts)
        n_known = np.add.reduceat(is_known.astype(np.intp), rows.starts)
        means = np.divide(sums, n_known, out=np.full(len(sums), np.nan), where=n_known > 0)
        return cls(numbers, means)

    def add_to(self, distances: Numbers, pairs: Pairs) -> None:
        """Add the squared distance of each pair."""
        gaps = self.numbers[pairs.places]
        gaps -= self.means[pairs.borrowers][pairs.of_pair]
        gaps *= gaps
        gaps[np.isnan(gaps)] = 0.0
        distances += gaps


@dataclass(frozen=True, eq=False, repr=False)
class Value:
    """Coordinates of a categorical column, with a code at each place.

    A value v is (1 - 2 p(v) + Σ p²) / 2 away from a subgroup with the shares p; all but - p(v) is the same for all
    candidates of the subgroup.
    """

    codes: NDArray[np.int32]
    n_values: int

    def add_to(self, distances: Numbers, pairs: Pairs) -> None:
        """Add the squared distance of each pair, but for what is the same for all candidates."""
        used, own_codes = np.unique(self.codes[pairs.own], return_inverse=True)
        n_used, n_borrowers = len(used), len(pairs.borrowers)
        column_of = np.full(self.n_values, n_used)
        column_of[used] = np.arange(n_used)
        width = n_used + 1  # the last stands for values that no borrower has
        counts = np.bincount(pairs.of_own * width + own_codes, minlength=n_borrowers * width)
        shares = counts / np.repeat(np.bincount(pairs.of_own), width)
        distances -= shares[pairs.of_pair * width + column_of[self.codes[pairs.places]]]


Coordinates = Sequence[Position | Value]


def coordinates_of(axes: Sequence[Axis], rows: RowsByLeaf) -> list[Position | Value]:
    """Write columns as coordinates, in which rows are near a subgroup or far."""
    return [coordinate for axis in axes for coordinate in _coordinates(axis, rows)]


def _coordinates(axis: Axis, rows: RowsByLeaf) -> list[Position | Value]:
    codes = axis.codes[rows.order]
    if axis.positions is None:
        return [Value(np.where(codes == MISSING, axis.n_values, codes), axis.n_values + 1)]
    scaled = np.append((axis.positions - axis.positions[:1]) / (axis.span or 1.0), np.nan)
    position = Position.of(scaled[codes], rows)
    if not axis.has_missing:
        return [position]
    return [position, Position.of((codes == MISSING).astype(np.float64), rows)]


def distances_of(coordinates: Coordinates, pairs: Pairs) -> Numbers:
    """Squared distance of each pair, but for what is the same for all candidates; own rows are out of reach."""
    distances = np.zeros(len(pairs.places))
    for coordinate in coordinates:
        coordinate.add_to(distances, pairs)
    distances[pairs.is_own] = np.inf
    return distances


def farthest_needed(distances: Numbers, pairs: Pairs, needs: Indices) -> Numbers:
    """Distance of the last row that each borrower needs."""
    bounds = np.append(pairs.firsts, len(distances)).tolist()
    return np.array(
        [
            np.partition(distances[a:b], n - 1)[n - 1]
            for a, b, n in zip(bounds[:-1], bounds[1:], needs.tolist(), strict=True)
        ]
    )


def nearest(distances: Numbers, pairs: Pairs, needs: Indices, order: Indices) -> Indices:
    """Pairs with the smallest distances, as many for each borrower as it needs; the lower row where they are equal."""
    farthest = farthest_needed(distances, pairs, needs)[pairs.of_pair]
    is_nearer = distances < farthest
    n_left = needs - np.add.reduceat(is_nearer.astype(np.intp), pairs.firsts)
    tied = np.flatnonzero(distances == farthest)
    tied = tied[np.lexsort((order[pairs.places[tied]], pairs.of_pair[tied]))]
    owner = pairs.of_pair[tied]
    rank = np.arange(len(tied)) - np.searchsorted(owner, owner)
    return np.concatenate([np.flatnonzero(is_nearer), tied[rank < n_left[owner]]])
