"""Rows of bits: for each value of a column, the groups of released rows whose cell may stand for it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.cells import Containing
from sfumato.audit.counting import Classes

Ids = NDArray[np.int64]
Words = NDArray[np.uint64]

CHUNK_WORDS = 1 << 17
"""Words that are handled at once: 1 MiB."""
_WORD_BITS = 64
_WHOLE_WORDS = 1 << 21  # bits of a column that are kept: 16 MiB


class ColumnBits:
    """Released classes whose cell of a column may stand for an original value, one bit a class.

    Going up the places of the values, a class is switched on where a run of its cell starts and off where it stops.
    """

    def __init__(self, containing: Containing, places: Ids, cells: Ids) -> None:
        self._places, self.n_words = places, -(-len(cells) // _WORD_BITS)
        n_runs = np.bincount(containing.cells, minlength=containing.n_cells)
        each = n_runs[cells]
        ends = np.cumsum(each)
        runs = np.repeat((np.cumsum(n_runs) - n_runs)[cells] - (ends - each), each) + np.arange(each.sum())
        classes = np.tile(np.repeat(np.arange(len(cells)), each), 2)
        switches = np.concatenate([containing.starts[runs], containing.stops[runs]])
        order = np.argsort(switches, kind="stable")
        self._switches, classes = switches[order], classes[order]
        self._words = classes // _WORD_BITS
        self._bits = np.uint64(1) << (classes % _WORD_BITS).astype(np.uint64)
        is_small = containing.n_places * self.n_words <= _WHOLE_WORDS
        self._whole = self._at(np.arange(containing.n_places)) if is_small else None

    def of(self, originals: Ids | slice) -> Words:
        """Bits for some of the distinct originals, a row each."""
        places = self._places[originals]
        if self._whole is not None:
            return self._whole[places]
        needed, inverse = np.unique(places, return_inverse=True)
        return self._at(needed)[inverse]

    def _at(self, places: Ids) -> Words:
        """Bits at ascending places."""
        row = np.searchsorted(places, self._switches)
        n_reached = int(np.searchsorted(row, len(places)))
        flat = np.zeros(len(places) * self.n_words, dtype=np.uint64)
        at = row[:n_reached] * self.n_words + self._words[:n_reached]
        np.bitwise_xor.at(flat, at, self._bits[:n_reached])
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
