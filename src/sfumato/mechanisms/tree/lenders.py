"""Rows of a tier from which small leaves borrow: how far they are from a subgroup, and which are nearest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.learning.c45.tree import MISSING
from sfumato.mechanisms.axes import Axis
from sfumato.mechanisms.tree.groups import Indices, RowsByLeaf

# Distances from rows to the centroids of subgroups, and the rows nearest to each.


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


# Rows of a tier in blocks of similar ones, with lower bounds of the distance from a subgroup to a block.


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


# Rows of a large tier, arranged so that those near a subgroup are found without looking at all.


_RARE = 64  # values that no more rows of a tier have are looked up
_SMALLEST_BLOCK = 64
_FIRST_BLOCKS = 4
_MAX_CANDIDATES = 5_000
_MAX_LENDERS = 1 << 16
_MAX_BOUNDS = 1 << 21  # rows of borrowers × blocks compared at once
_FEW_PAIRS = 1 << 24  # subgroups × candidates up to which neither maximum holds
_MARGIN = 1e-9  # above the rounding errors of distances


@dataclass(frozen=True, eq=False, repr=False)
class Lenders:
    """Rows of one tier from which many subgroups borrow.

    The nearest rows of a subgroup are among

    - the rows that share a *rare* value with it, one that few rows of the tier have, and
    - of the rows that are alike in everything but rare values, the first k, because at most n are its own.

    The latter are in blocks. A block is looked into if its lower bound does not exceed the distance at which the
    rows of the few blocks with the least bounds would suffice.

    Where the subgroups times the rows exceed 2^24, at most max(2^16, 50 k) rows are in blocks, and a subgroup looks
    into blocks of about max(5000, 50 k) rows, those with the least bounds: then its rows may not be the nearest.
    """

    rows: RowsByLeaf
    coordinates: Coordinates
    k: int
    blocks: Blocks
    block_of: Indices
    rare: Sequence[_RareValues]

    @classmethod
    def of(cls, rows: RowsByLeaf, node: int, coordinates: Coordinates, k: int, n_borrowers: int) -> Lenders:
        """Arrange the rows below a node; if they are too many for the borrowers, evenly spaced ones in sorted order."""
        first = rows.first_of_node[node]
        places = np.arange(first, first + rows.n_of_node[node])
        rare = [_RareValues.of(c, places) for c in coordinates if isinstance(c, Value)]
        common = iter(rare)
        keys = [c.numbers if isinstance(c, Position) else next(common).common_codes() for c in coordinates]
        first_alike = _first_alike([column[places] for column in keys], rows.order[places], k)
        most = max(50 * k, _MAX_LENDERS, _FEW_PAIRS // n_borrowers)
        first_alike = first_alike[:: -(-len(first_alike) // most)]
        size = max(_SMALLEST_BLOCK, 4 * k, int(np.sqrt(len(first_alike)) / 2))
        blocks = Blocks.of(coordinates, keys, places[first_alike], size)
        block_of = np.full(len(rows.order), -1)
        block_of[blocks.members] = np.repeat(np.arange(len(blocks.sizes)), blocks.sizes)
        return cls(rows, coordinates, k, blocks, block_of, rare)

    def candidates(self, borrowers: Indices) -> Iterator[Pairs]:
        """Pair each subgroup with rows among which its nearest are, in blocks of at most as many as is affordable."""
        most = max(50 * self.k, _MAX_CANDIDATES, _FEW_PAIRS // len(borrowers))
        n_at_once = max(1, _MAX_BOUNDS // (len(self.blocks.sizes) * int(self.rows.sizes[borrowers].max())))
        for a in range(0, len(borrowers), n_at_once):
            some = borrowers[a : a + n_at_once]
            is_near = self._near_blocks(some, most)
            for part in chunks(is_near @ self.blocks.sizes):
                yield self._pairs(some[part], is_near[part])

    def _near_blocks(self, borrowers: Indices, most: int) -> NDArray[np.bool_]:
        least = self.blocks.least_distances(self.rows, borrowers)
        n_first = min(_FIRST_BLOCKS, least.shape[1])
        is_first = np.zeros(least.shape, dtype=np.bool_)
        np.put_along_axis(is_first, np.argpartition(least, n_first - 1, axis=1)[:, :n_first], True, axis=1)
        farthest = np.empty(len(borrowers))
        for some in chunks(is_first @ self.blocks.sizes):
            pairs = self._pairs(borrowers[some], is_first[some])
            needs = self.k - self.rows.sizes[pairs.borrowers]
            farthest[some] = farthest_needed(distances_of(self.coordinates, pairs), pairs, needs)
        is_near = least <= farthest[:, None] + _MARGIN
        n_most = -(-most // int(self.blocks.sizes.max()))
        many = np.flatnonzero(np.count_nonzero(is_near, axis=1) > n_most)
        beyond = np.argsort(least[many], axis=1, kind="stable")[:, n_most:]
        is_near[many[:, None], beyond] = False
        return np.asarray(is_near)

    def _pairs(self, borrowers: Indices, is_near: NDArray[np.bool_]) -> Pairs:
        of_block, block = np.nonzero(is_near)
        _, entry, members = ranges(self.blocks.starts[block], self.blocks.sizes[block])
        of_pair, places = of_block[entry], self.blocks.members[members]
        of_rare, rare = self._sharing_rare_values(borrowers)
        is_new = (self.block_of[rare] < 0) | ~is_near[of_rare, self.block_of[rare]]
        if is_new.any():
            of_pair, places = np.append(of_pair, of_rare[is_new]), np.append(places, rare[is_new])
            order = np.argsort(of_pair, kind="stable")
            of_pair, places = of_pair[order], places[order]
        return Pairs.of(self.rows, borrowers, of_pair, places)

    def _sharing_rare_values(self, borrowers: Indices) -> tuple[Indices, Indices]:
        """Borrowers, counted from 0, and places of rows of others with a rare value of theirs; each pair once."""
        starts, sizes = self.rows.starts[borrowers], self.rows.sizes[borrowers]
        _, owner, own = ranges(starts, sizes)
        n_places = len(self.rows.order)
        shared = [np.zeros(0, dtype=np.intp)]
        for values in self.rare:
            entry, places = values.sharing(own)
            shared.append(owner[entry] * n_places + places)
        of_pair, places = np.divmod(np.unique(np.concatenate(shared)), n_places)
        is_other = (places < starts[of_pair]) | (places >= (starts + sizes)[of_pair])
        return of_pair[is_other], places[is_other]


def _first_alike(keys: Sequence[NDArray[np.generic]], row_numbers: Indices, k: int) -> Indices:
    """Of the entries that are equal in all keys, those with the k lowest row numbers."""
    kind = np.zeros(len(row_numbers), dtype=np.intp)
    for column in keys:
        values, codes = np.unique(column, return_inverse=True)
        kind = np.unique(kind * len(values) + codes, return_inverse=True)[1]
    order = np.lexsort((row_numbers, kind))
    kind = kind[order]
    rank = np.arange(len(kind)) - np.searchsorted(kind, kind)
    return order[rank < k]


@dataclass(frozen=True, eq=False, repr=False)
class _RareValues:
    """Places of a tier that have each value of a categorical column which few have."""

    codes: NDArray[np.int32]
    is_rare: NDArray[np.bool_]
    places: Indices
    starts: Indices
    counts: Indices

    @classmethod
    def of(cls, value: Value, places: Indices) -> _RareValues:
        codes = value.codes[places]
        counts = np.bincount(codes, minlength=value.n_values)
        is_rare = counts <= _RARE
        held = places[is_rare[codes]]
        held = held[np.argsort(value.codes[held], kind="stable")]
        counts[~is_rare] = 0
        return cls(value.codes, is_rare, held, np.cumsum(counts) - counts, counts)

    def common_codes(self) -> NDArray[np.int32]:
        """Code of each place, 0 if the value is rare, and from 1 without gaps if not."""
        number = np.where(self.is_rare, 0, np.cumsum(~self.is_rare)).astype(np.int32)
        return np.asarray(number[self.codes])

    def sharing(self, own: Indices) -> tuple[Indices, Indices]:
        """For some places, those with the same value if it is rare: which of the places, and these."""
        codes = self.codes[own]
        _, entry, held = ranges(self.starts[codes], self.counts[codes])
        return entry, self.places[held]
