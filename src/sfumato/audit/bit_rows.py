"""Rows of bits: for each value of a column, the groups of released rows whose cell may stand for it."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.cells import Containing
from sfumato.audit.counting import Classes

Ids = NDArray[np.int64]
Words = NDArray[np.uint64]

CHUNK_WORDS = 1 << 17
"""Words that are handled at once: 1 MiB."""
_WORD_BITS = 64
_MOST_IN_BYTE = 255
_WHOLE_WORDS = 1 << 21  # bits of a column that are kept: 16 MiB


class ColumnBits:
    """Released classes whose cell of a column may stand for an original value, one bit a class.

    Going up the places of the values, a class is switched on where a run of its cell starts and off where it stops.
    """

    def __init__(self, containing: Containing, places: Ids, cells: Ids) -> None:
        self._containing, self._cells = containing, cells
        self.places, self.n_words = places, -(-len(cells) // _WORD_BITS)

    def kept(self, originals: Ids, classes: Ids) -> ColumnBits:
        """Keep some of the distinct originals and of the classes."""
        return ColumnBits(self._containing, self.places[originals], self._cells[classes])

    def touches(self, classes: Ids, places: Ids) -> NDArray[np.bool_]:
        """Whether the cell of each class may stand for a value at one of the places.

        Among many values it is only asked whether the cell's lowest and highest one leave room for it.
        """
        cells = self._cells[classes]
        if self._containing.n_places <= _WORD_BITS:
            wanted = np.bitwise_or.reduce(np.uint64(1) << np.unique(places).astype(np.uint64))
            return np.asarray((self._values_of_cell[cells] & wanted) != 0)
        lowest, end = self._extent_of_cell
        return np.asarray((lowest[cells] <= places.max()) & (end[cells] > places.min()))

    @cached_property
    def _values_of_cell(self) -> Words:
        """Values that each cell may stand for, a bit each."""
        read, values = self._containing, np.zeros(self._containing.n_cells, dtype=np.uint64)
        for place in range(read.n_places):
            holding = read.cells[(read.starts <= place) & (place < read.stops)]
            values[holding] |= np.uint64(1) << np.uint64(place)
        return values

    @cached_property
    def _extent_of_cell(self) -> tuple[Ids, Ids]:
        """Lowest place of each cell and the end of its last run; nothing lies between those of a cell without runs."""
        read = self._containing
        lowest, end = np.full(read.n_cells, read.n_places), np.zeros(read.n_cells, dtype=np.int64)
        np.minimum.at(lowest, read.cells, read.starts)
        np.maximum.at(end, read.cells, read.stops)
        return lowest, end

    @cached_property
    def _switched(self) -> tuple[Ids, Ids, Words]:
        """Places at which classes are switched, ascending, with the word and bit of each."""
        read, first = self._containing, self._containing.first_runs
        each = first[self._cells + 1] - first[self._cells]
        runs = np.repeat(first[self._cells] - (np.cumsum(each) - each), each) + np.arange(each.sum())
        classes = np.tile(np.repeat(np.arange(len(self._cells)), each), 2)
        switches = np.concatenate([read.starts[runs], read.stops[runs]])
        order = np.argsort(switches, kind="stable")
        classes = classes[order]
        bits = np.uint64(1) << (classes % _WORD_BITS).astype(np.uint64)
        return switches[order], classes // _WORD_BITS, bits

    @cached_property
    def _whole(self) -> Words | None:
        """Bits at all places, where they are few."""
        n_places = self._containing.n_places
        return self._at(np.arange(n_places)) if n_places * self.n_words <= _WHOLE_WORDS else None

    def of(self, originals: Ids | slice) -> Words:
        """Bits for some of the distinct originals, a row each."""
        places = self.places[originals]
        if self._whole is not None:
            return self._whole[places]
        needed, inverse = np.unique(places, return_inverse=True)
        return self._at(needed)[inverse]

    def _at(self, places: Ids) -> Words:
        """Bits at ascending places."""
        switches, switched_words, switched_bits = self._switched
        row = np.searchsorted(places, switches)
        n_reached = int(np.searchsorted(row, len(places)))
        flat = np.zeros(len(places) * self.n_words, dtype=np.uint64)
        at = row[:n_reached] * self.n_words + switched_words[:n_reached]
        np.bitwise_xor.at(flat, at, switched_bits[:n_reached])
        bits = flat.reshape(len(places), self.n_words)
        np.bitwise_xor.accumulate(bits, axis=0, out=bits)
        return bits


def packed(bits: NDArray[np.bool_]) -> Words:
    """Pack bits into words, the first bit lowest."""
    padded = np.zeros(-(-len(bits) // _WORD_BITS) * _WORD_BITS, dtype=np.bool_)
    padded[: len(bits)] = bits
    return np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64)


def ones(words: Words) -> tuple[Ids, Ids]:
    """Find the rows and bit numbers of the ones."""
    rows, places = np.nonzero(words)
    held = np.unpackbits(words[rows, places].astype("<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    entries, bits = np.nonzero(held)
    return rows[entries], places[entries] * _WORD_BITS + bits


def weighted_ones(words: Words, weights: Ids) -> Ids:
    """Add up the weights of the ones in each row: bits whose weight has a binary digit count by its value."""
    total = np.zeros(len(words), dtype=np.int64)
    for digit in range(int(weights.max(initial=0)).bit_length()):
        mask = packed((weights >> digit) & 1 == 1)
        total += np.bitwise_count(words & mask).sum(axis=1, dtype=np.int64) << digit
    return total


def weighted_rows(words: Words, weights: Ids, n_bits: int) -> Ids:
    """Add up, for each bit, the weights of the rows in which it is 1."""
    total = np.zeros(n_bits, dtype=np.int64)
    for digit in range(int(weights.max(initial=0)).bit_length()):
        rows = words[(weights >> digit) & 1 == 1].astype("<u8").view(np.uint8)
        for start in range(0, len(rows), _MOST_IN_BYTE):
            flags = np.unpackbits(rows[start : start + _MOST_IN_BYTE], axis=1, bitorder="little", count=n_bits)
            total += flags.sum(axis=0, dtype=np.uint8).astype(np.int64) << digit
    return total


def first_ones(words: Words) -> Ids:
    """Find the first bit that is 1 in each row; every row has one."""
    place = (words != 0).argmax(axis=1)
    word = words[np.arange(len(words)), place]
    below = (word & (~word + np.uint64(1))) - np.uint64(1)
    first: Ids = place * _WORD_BITS + np.bitwise_count(below)
    return first


def a_row_of_each(classes: Classes) -> Ids:
    """Pick a row of each class, the last one."""
    rows = np.zeros(len(classes.sizes), dtype=np.int64)
    rows[classes.ids] = np.arange(len(classes.ids))
    return rows
