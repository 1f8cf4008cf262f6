"""Distinct rows of a file that is read in blocks, with how often each occurs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.cells import TooManyCellsError, no_pairs, refuse_open, too_many_cells
from sfumato.rows.out_of_core import LargeTable, Told
from sfumato.table.weighted import CountedTable

_FEWEST_PENDING = 1 << 20
_LARGEST_KEY = 2**62

Keys = NDArray[np.int64]


def count_blocks(
    large: LargeTable,
    names: Sequence[str],
    *,
    beside: Sequence[str] = (),
    most_cells: int,
    told: Told | None = None,
) -> CountedTable:
    """Count the distinct rows of some columns in one pass over a file.

    Parameters
    ----------
    names : sequence of str
        At least one column, none of which is open.
    beside : sequence of str
        Columns that are counted with each of the others by itself: their values two by two.
    most_cells : int
        Number of distinct rows that fit in memory.

    Raises
    ------
    SchemaError
        If a column has too many distinct values.
    TooManyCellsError
        If there are more distinct rows than fit.
    """
    columns, every = tuple(names), tuple(dict.fromkeys([*names, *beside]))
    refuse_open(large.outline, every)
    packing = _Packing([large.outline[name].n_distinct for name in columns])
    found = _Cells(most_cells, too_many_cells(columns, most_cells, large.source.name))
    pairs = {(name, second): no_pairs(large.outline, name, second) for second in beside for name in columns}
    for block in large.blocks(every, told=told):
        found.take(packing.packed([np.asarray(block[name]) for name in columns]))
        for (name, second), counted in pairs.items():
            keys = np.asarray(block[name], dtype=np.int64) * counted.shape[1] + block[second]
            counted += np.bincount(keys, minlength=counted.size).reshape(counted.shape)
    cells, counts = found.finished()
    counted_table = CountedTable.of(large.outline.keep(every), columns, packing.unpacked(cells), counts)
    return replace(counted_table, pairs=pairs)


class _Packing:
    """Codes of several columns as few 64-bit keys, in the same order; the first column is the most significant."""

    def __init__(self, n_values: Sequence[int]) -> None:
        self._radices: list[list[int]] = [[]]
        span = 1
        for radix in n_values:
            if span * radix > _LARGEST_KEY:
                self._radices.append([])
                span = 1
            self._radices[-1].append(radix)
            span *= radix

    def packed(self, columns: Sequence[NDArray[np.int32]]) -> list[Keys]:
        rest, found = iter(columns), []
        for radices in self._radices:
            key = np.zeros(len(columns[0]), dtype=np.int64)
            for radix in radices:
                key *= radix
                key += next(rest)
            found.append(key)
        return found

    def unpacked(self, keys: Sequence[Keys]) -> list[NDArray[np.int32]]:
        found: list[NDArray[np.int32]] = []
        for key, radices in zip(keys, self._radices, strict=True):
            own = []
            for radix in reversed(radices):
                key, codes = np.divmod(key, radix)
                own.append(codes.astype(np.int32))
            found += reversed(own)
        return found


class _Cells:
    """Distinct rows so far, as keys; those of some blocks wait to be added up with the others."""

    def __init__(self, most: int, too_many: TooManyCellsError) -> None:
        self._most, self._too_many = most, too_many
        self._waiting: list[tuple[list[Keys], Keys]] = []
        self._n_known = self._n_waiting = 0

    def take(self, keys: list[Keys]) -> None:
        self._waiting.append(_added_up(keys, None))
        self._n_waiting += len(self._waiting[-1][1])
        if self._n_waiting > max(self._n_known // 2, _FEWEST_PENDING):
            self._add_up()

    def _add_up(self) -> None:
        keys = [np.concatenate(parts) for parts in zip(*(own for own, _ in self._waiting), strict=True)]
        counts = np.concatenate([counts for _, counts in self._waiting])
        self._waiting.clear()
        self._waiting.append(_added_up(keys, counts))
        self._n_known, self._n_waiting = len(self._waiting[0][1]), 0
        if self._n_known > self._most:
            raise self._too_many

    def finished(self) -> tuple[list[Keys], Keys]:
        self._add_up()
        return self._waiting[0]


def _added_up(keys: list[Keys], counts: Keys | None) -> tuple[list[Keys], Keys]:
    """Distinct keys, ascending, with their counts added up; without counts every key counts once."""
    if counts is None and len(keys) == 1:
        distinct, counted = np.unique(keys[0], return_counts=True)
        return [distinct], counted
    order = np.argsort(keys[0]) if len(keys) == 1 else np.lexsort(keys[::-1])
    ordered = [key[order] for key in keys]
    starts = np.ones(len(order), dtype=np.bool_)
    starts[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in ordered])
    first = np.flatnonzero(starts)
    weights = np.ones(len(order), dtype=np.int64) if counts is None else counts[order]
    return [key[first] for key in ordered], np.add.reduceat(weights, first)
