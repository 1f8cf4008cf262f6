"""Distinct rows of a table that is read in blocks, with how often each occurs, and where each row is among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.cells import TooManyCellsError, no_pairs, refuse_open, too_many_cells
from sfumato.counting.crowds import N_PERSON_KEYS, Counted, Keys, crowded, person_keys, with_persons
from sfumato.engines.protocol import Pairs, Persons, Rows
from sfumato.errors import InputError
from sfumato.progress import Progress
from sfumato.table.weighted import Block, CountedTable

_FEWEST_PENDING = 1 << 20
_LARGEST_KEY = 2**62
_ROWS_AT_A_TIME = 1 << 16

Codes = NDArray[np.int32]
Merging = Mapping[str, Codes]
"""For some columns, the code that each of their codes is counted as; those with one label become one of them."""


def count_blocks(
    rows: Rows,
    names: Sequence[str],
    *,
    beside: Sequence[str] = (),
    persons: Persons | None = None,
    most_cells: int,
    progress: Progress | None = None,
) -> CountedTable:
    """Count the distinct rows in one pass over a file: see :meth:`~sfumato.engines.protocol.Rows.distinct`."""
    columns, every = tuple(names), tuple(dict.fromkeys([*names, *beside]))
    refuse_open(rows.outline, every)
    pairs = no_pairs_yet(rows, columns, beside)
    found = _Cells(rows, columns, most_cells, [{}], persons)
    for block in pairs_counted(rows.blocks(_read_with(every, persons), progress=progress), pairs):
        found.take(block)
    return replace(found.finished(rows, every), pairs=pairs)


def count_pairs(rows: Rows, names: Sequence[str], beside: Sequence[str], progress: Progress | None = None) -> Pairs:
    """Count in one pass the values of some columns two by two with those of others; nothing is read without others."""
    refuse_open(rows.outline, [*names, *beside])
    pairs = no_pairs_yet(rows, names, beside)
    if pairs:
        for _ in pairs_counted(rows.blocks(list(dict.fromkeys([*names, *beside])), progress=progress), pairs):
            pass
    return pairs


def count_merged(
    rows: Rows,
    names: Sequence[str],
    steps: Sequence[Merging],
    *,
    pairs: Pairs,
    persons: Persons | None = None,
    most_cells: int,
    progress: Progress | None = None,
) -> tuple[CountedTable, int]:
    """Count the distinct rows of some columns in one pass, with values merged as little as fits in memory.

    Rows are counted at the first step; whenever there are more distinct ones than fit, what was counted so far is
    rolled up to the next step. So the step that the pass ends with is the first one at which the distinct rows of the
    whole file fit, wherever its blocks end and however its rows are sorted. With persons it can be a later one: a cell
    takes most room right before it becomes a crowd, so that less may fit midway than in the end.

    Parameters
    ----------
    names : sequence of str
        At least one column, none of which is open.
    steps : sequence of mappings of a name to codes
        How values are merged; each step merges at least what the one before it does.
    pairs : mapping of two names to counts
        What :func:`count_pairs` found, for the table.
    persons : str and int, or None
        See :meth:`~sfumato.engines.protocol.Rows.distinct`.
    most_cells : int
        Number of distinct rows that fit in memory.

    Returns
    -------
    counted : CountedTable
        A value that was merged with others has the code of one of them.
    step : int
        Place of the step that it was counted at.

    Raises
    ------
    TooManyCellsError
        If there are more distinct rows than fit at the last step too.
    """
    refuse_open(rows.outline, names)
    found = _Cells(rows, names, most_cells, steps, persons)
    for block in rows.blocks(_read_with(names, persons), progress=progress):
        found.take(block)
    described = dict.fromkeys([*names, *(second for _, second in pairs)])
    return replace(found.finished(rows, tuple(described)), pairs=pairs), found.step


def merged_rows(rows: Rows, merging: Merging) -> Rows:
    """Give the same file with the codes of merged values in its blocks."""
    columns = dict(rows.outline.columns)
    for name, merged in merging.items():
        columns[name] = replace(columns[name], codes=merged[columns[name].codes])
    return replace(rows, outline=replace(rows.outline, columns=columns))


def _read_with(names: Sequence[str], persons: Persons | None) -> tuple[str, ...]:
    return tuple(names) if persons is None else tuple(dict.fromkeys([*names, persons[0]]))


def no_pairs_yet(rows: Rows, names: Sequence[str], beside: Sequence[str]) -> Pairs:
    """Begin to count the values of columns two by two, all 0."""
    return {(name, second): no_pairs(rows.outline, name, second) for second in beside for name in names}


def pairs_counted(blocks: Iterator[Block], pairs: Pairs) -> Iterator[Block]:
    """Hand blocks on, their pairs of values counted."""
    for block in blocks:
        for (name, second), counted in pairs.items():
            keys = np.asarray(block[name], dtype=np.int64) * counted.shape[1] + block[second]
            counted += np.bincount(keys, minlength=counted.size).reshape(counted.shape)
        yield block


class RowFinder:
    """Finds rows of codes among distinct ones.

    Columns are packed into one 64-bit key; before a key could pass 2**62 it is replaced by its place among those that
    occur.

    Parameters
    ----------
    columns : sequence of int arrays
        Codes of the distinct rows, column by column.
    n_values : sequence of int
        Number of codes of each column.

    Examples
    --------
    >>> finder = RowFinder([np.array([4, 1])], [5])
    >>> finder.find([np.array([1, 4, 4])]).tolist()
    [1, 0, 0]
    """

    def __init__(self, columns: Sequence[Codes], n_values: Sequence[int]) -> None:
        self._n_values = tuple(n_values)
        self._known: list[NDArray[np.int64] | None] = []
        key, span = np.zeros(len(columns[0]), dtype=np.int64), 1
        for codes, radix in zip(columns, self._n_values, strict=True):
            is_full = span * radix > _LARGEST_KEY
            self._known.append(np.unique(key) if is_full else None)
            if is_full:
                key, span = np.searchsorted(self._known[-1], key), len(self._known[-1])  # type: ignore[arg-type]
            key = key * radix + codes
            span *= radix
        self._order = np.argsort(key)
        self._keys = key[self._order]

    @classmethod
    def of(cls, cells: CountedTable) -> RowFinder:
        """Find rows by the columns that were counted together."""
        columns = [cells[name] for name in cells.together]
        return cls([column.codes for column in columns], [column.n_distinct for column in columns])

    def find(self, columns: Sequence[Codes]) -> NDArray[np.intp]:
        """Place of each row.

        Raises
        ------
        InputError
            If a row is not among the distinct ones.
        """
        key = np.zeros(len(columns[0]), dtype=np.int64)
        for codes, radix, known in zip(columns, self._n_values, self._known, strict=True):
            if known is not None:
                key = np.searchsorted(known, key)
            key = key * radix + codes
        order = np.argsort(key)  # looked up in their order, neighbours are found near each other
        places = np.empty(len(key), dtype=np.intp)
        found = np.minimum(np.searchsorted(self._keys, key[order]), len(self._keys) - 1)
        if not np.array_equal(self._keys[found], key[order]):
            problem = "the table changed while it was being read"
            raise InputError(problem, hint="try again when no program is writing to it")
        places[order] = self._order[found]
        return places


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

    def packed(self, columns: Iterable[Codes], n_rows: int) -> list[Keys]:
        rest, found = iter(columns), []
        for radices in self._radices:
            key = np.zeros(n_rows, dtype=np.int64)
            for radix in radices:
                key *= radix
                key += next(rest)
            found.append(key)
        return found

    def unpacked(self, keys: Sequence[Keys]) -> list[Codes]:
        found: list[Codes] = []
        for key, radices in zip(keys, self._radices, strict=True):
            own = []
            for radix in reversed(radices):
                key, codes = np.divmod(key, radix)
                own.append(codes.astype(np.int32))
            found += reversed(own)
        return found


class _Cells:
    """Distinct rows so far, as keys, persons last; those of some blocks wait to be added up with the others."""

    def __init__(
        self,
        rows: Rows,
        columns: Sequence[str],
        most: int,
        steps: Sequence[Merging],
        persons: Persons | None = None,
    ) -> None:
        self._columns, self._most, self._steps, self._persons = tuple(columns), most, steps, persons
        self._n_beside = 0 if persons is None else N_PERSON_KEYS
        self._packing = _Packing([rows.outline[name].n_distinct for name in columns])
        self._too_many: TooManyCellsError = too_many_cells(self._columns, most, rows.place)
        self._waiting: list[Counted] = []
        self._n_known = self._n_waiting = 0
        self.step = 0

    def take(self, block: Block) -> None:
        columns = [np.asarray(block[name]) for name in self._columns]
        persons = [] if self._persons is None else person_keys(block[self._persons[0]])
        self._waiting.append(_added_up([*self._keys(columns, len(columns[0])), *persons], None))
        self._n_waiting += len(self._waiting[-1][1])
        if self._n_waiting > max(self._n_known // 2, _FEWEST_PENDING):
            self._add_up()

    def _keys(self, columns: Sequence[Codes], n_rows: int) -> list[Keys]:
        merging = self._steps[self.step]
        named = zip(self._columns, columns, strict=True)
        return self._packing.packed((merging[n][codes] if n in merging else codes for n, codes in named), n_rows)

    def _add_up(self) -> None:
        keys = [np.concatenate(parts) for parts in zip(*(own for own, _ in self._waiting), strict=True)]
        counts = np.concatenate([counts for _, counts in self._waiting])
        self._waiting.clear()
        found = self._added_up(keys, counts)
        if len(found[1]) > self._most:
            found = self._rolled_up(found)
        self._waiting.append(found)
        self._n_known, self._n_waiting = len(found[1]), 0

    def _added_up(self, keys: list[Keys], counts: Keys) -> Counted:
        found = _added_up(keys, counts)
        return found if self._persons is None else crowded(found, self._persons[1])

    def _rolled_up(self, found: Counted) -> Counted:
        """Roll up to the first step at which what was counted so far fits, found by strides and then by halves."""
        too_low, stride = self.step, 1
        while True:
            if too_low + 1 == len(self._steps):
                if self._persons is not None and len(found[1]) <= self._persons[1]:
                    return found  # one cell that is not a crowd yet, and will be one as soon as it has more persons
                raise self._too_many
            self.step = min(too_low + stride, len(self._steps) - 1)
            higher = self._at_step(found)
            if len(higher[1]) <= self._most:
                break
            found, too_low, stride = higher, self.step, 2 * stride
        high = self.step
        while high - too_low > 1:
            self.step = (too_low + high) // 2
            between = self._at_step(found)
            if len(between[1]) <= self._most:
                higher, high = between, self.step
            else:
                found, too_low = between, self.step
        self.step = high
        return higher

    def _at_step(self, found: Counted) -> Counted:
        """Merge the values of distinct rows, some rows at a time: all columns of all of them can be much."""
        every, counts = found
        keys, persons = every[: len(every) - self._n_beside], every[len(every) - self._n_beside :]
        parts: list[list[Keys]] = [[] for _ in keys]
        for first in range(0, len(counts), _ROWS_AT_A_TIME):
            columns = self._packing.unpacked([key[first : first + _ROWS_AT_A_TIME] for key in keys])
            for part, key in zip(parts, self._keys(columns, len(columns[0])), strict=True):
                part.append(key)
        return self._added_up([*(np.concatenate(part) for part in parts), *persons], counts)

    def finished(self, rows: Rows, described: Sequence[str]) -> CountedTable:
        self._add_up()
        ((every, counts),) = self._waiting
        keys, persons = every[: len(every) - self._n_beside], every[len(every) - self._n_beside :]
        outline = rows.outline.keep(_read_with(described, self._persons))
        cells = CountedTable.of(outline, self._columns, self._packing.unpacked(keys), counts)
        if self._persons is None:
            return cells
        return with_persons(cells, self._persons[0], persons, rows.n_persons)


def _added_up(keys: list[Keys], counts: Keys | None) -> Counted:
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
