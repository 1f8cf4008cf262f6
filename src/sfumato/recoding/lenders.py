"""Rows of a large tier, arranged so that those near a subgroup are found without looking at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.recoding.blocks import Blocks
from sfumato.recoding.nearness import (
    Coordinates,
    Pairs,
    Position,
    Value,
    chunks,
    distances_of,
    farthest_needed,
    ranges,
)
from sfumato.recoding.subgroups import Indices, RowsByLeaf

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
