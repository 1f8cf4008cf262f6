"""Who may be whom: released rows that are consistent with a person, and people that are consistent with a released row.

Columns in which a value stands in one released cell only (values kept, hierarchies of one level, 0/1 features) are
joined to one column first; ranges and sets that overlap are then compared with it as rows of bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.original.consistency import Consistency
from sfumato.audit.reading.cells import ColumnBits, Containing, a_row_of_each, ones, packed
from sfumato.audit.reading.columns import Classes, Refinement
from sfumato.errors import SchemaError

Ids = NDArray[np.int64]
Codes = NDArray[np.int32] | NDArray[np.int64]

_NO_CELL = -1
_WORD_BITS = 64
_CHUNK_BITS = 1 << 22
_MOST_PRODUCTS = 10**11
_MOST_PAIRS = 1 << 24  # of kinds of people and kinds of rows that are listed


@dataclass(frozen=True, repr=False, eq=False)
class MatchedColumn:
    """A released column against the original's.

    Parameters
    ----------
    containing : Containing
        Values that each distinct released cell may stand for.
    places : array
        Value of each person, as its place among them.
    cells : array
        Distinct released cell of each released row.
    """

    containing: Containing
    places: Codes
    cells: Codes

    def holds(self, people: Ids, rows: Ids) -> NDArray[np.bool_]:
        """Whether, pair by pair, a released row's cell may mean a person's value."""
        return self.containing.holds_at(self.places[people].astype(np.int64), self.cells[rows])

    @cached_property
    def cell_of_person(self) -> Codes | None:
        """Released cell of each person's value, -1 where there is none; ``None`` where a value is in several."""
        read = self.containing
        n_cells_at = np.zeros(read.n_places + 1, dtype=np.int64)
        np.add.at(n_cells_at, read.starts, 1)
        np.add.at(n_cells_at, read.stops, -1)
        if (np.cumsum(n_cells_at) > 1).any():
            return None
        lengths = read.stops - read.starts
        offsets = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        cell_at = np.full(read.n_places, _NO_CELL, dtype=np.int32)
        cell_at[np.repeat(read.starts, lengths) + offsets] = np.repeat(read.cells, lengths)
        return cell_at[self.places]


@dataclass(frozen=True, repr=False, eq=False)
class Candidates:
    """Released rows for each person, and people for each released row."""

    per_person: Ids
    per_row: Ids


def candidates_of(columns: Sequence[MatchedColumn], n_people: int, n_released: int) -> Candidates:
    """Count the pairs of a person and a released row in which every cell may mean the person's value.

    Without columns everybody may be every row.

    Examples
    --------
    >>> from sfumato.audit.reading.cells import unchanged
    >>> import pyarrow as pa
    >>> same = unchanged(pa.array(["a", "b"]), pa.array(["a", "b"]))
    >>> found = candidates_of([MatchedColumn(same, np.array([0, 1, 1]), np.array([0, 0, 1]))], 3, 3)
    >>> found.per_person.tolist(), found.per_row.tolist()
    ([2, 1, 1], [1, 1, 2])
    """
    people, rows, overlapping = _joined(columns, n_people, n_released)
    if not overlapping:
        n_classes = 1 + max(int(people.max(initial=-1)), int(rows.max(initial=-1)))
        return Candidates(
            np.bincount(rows, minlength=n_classes)[people], np.bincount(people, minlength=n_classes)[rows]
        )
    found = _consistency(overlapping, n_people, n_released)
    return Candidates(found.released_per_original[found.originals.ids], found.originals_per_released[found.classes.ids])


@dataclass(frozen=True, repr=False, eq=False)
class FittingKinds:
    """Kind of each person and of each released row, alike in all columns, and which kinds fit each other.

    Parameters
    ----------
    of_person, of_row : array
        Kind of each person (row of the original) and of each released row, numbered from 0 apart from each other.
    pairs : tuple of two arrays
        Kinds of persons and kinds of rows, pair by pair, in which every cell may mean the person's value.
    """

    of_person: Ids
    of_row: Ids
    pairs: tuple[Ids, Ids]


def fitting_kinds(columns: Sequence[MatchedColumn], n_people: int, n_released: int) -> FittingKinds | None:
    """List who may be whom as :func:`candidates_of` counts it; ``None`` where the pairs are too many to be listed.

    Examples
    --------
    >>> from sfumato.audit.reading.cells import unchanged
    >>> import pyarrow as pa
    >>> same = unchanged(pa.array(["a", "b"]), pa.array(["a", "b"]))
    >>> found = fitting_kinds([MatchedColumn(same, np.array([0, 1, 1]), np.array([0, 0, 1]))], 3, 3)
    >>> found.of_person.tolist(), found.of_row.tolist()
    ([0, 1, 1], [0, 0, 1])
    """
    people, rows, overlapping = _joined(columns, n_people, n_released)
    if not overlapping:
        each = np.arange(1 + max(int(people.max(initial=-1)), int(rows.max(initial=-1))))
        return FittingKinds(people, rows, (each, each))
    found, tails, heads, n_pairs = _consistency(overlapping, n_people, n_released), [], [], 0
    for originals, classes, words in found.fitting_bits():
        n_pairs += int(np.bitwise_count(words).sum(dtype=np.int64))
        if n_pairs > _MOST_PAIRS:
            return None
        of_original, of_class = ones(words)
        tails.append(originals[of_original])
        heads.append(classes[of_class])
    nothing = np.zeros(0, dtype=np.int64)
    pairs = np.concatenate([nothing, *tails]), np.concatenate([nothing, *heads])
    return FittingKinds(found.originals.ids, found.classes.ids, pairs)


def _joined(columns: Sequence[MatchedColumn], n_people: int, n_released: int) -> tuple[Ids, Ids, list[MatchedColumn]]:
    """Classes by the columns whose values stand in one cell only, and all columns where some overlap; else none."""
    joined = [column for column in columns if column.cell_of_person is not None]
    overlapping = [column for column in columns if column.cell_of_person is None]
    people, rows = joint_classes(joined, n_people, n_released)
    if joined and overlapping:
        overlapping.append(_as_column(people, rows))
    return people, rows, overlapping


def joint_classes(columns: Sequence[MatchedColumn], n_people: int, n_released: int) -> tuple[Ids, Ids]:
    """Class of each person and of each released row, equal where all cells fit; each value is in one cell only.

    Raises
    ------
    SchemaError
        If a value stands in several cells of a column.
    """
    refinement = Refinement(n_people + n_released)
    for column in columns:
        if column.cell_of_person is None:
            problem = "has cells that overlap, which cannot be matched in buckets"
            raise SchemaError(problem)
        refinement.add(np.concatenate([column.cell_of_person, column.cells]) + 1, column.containing.n_cells + 1)
    ids = refinement.classes().ids
    return ids[:n_people], ids[n_people:]


def _as_column(people: Ids, rows: Ids) -> MatchedColumn:
    """Make one column of joint classes, in which a released row stands for the people of its class."""
    each = np.arange(1 + max(int(people.max(initial=-1)), int(rows.max(initial=-1))))
    return MatchedColumn(Containing(each, len(each), each, each, each + 1, len(each)), people, rows)


def _consistency(columns: Sequence[MatchedColumn], n_people: int, n_released: int) -> Consistency:
    before, after = Refinement(n_people), Refinement(n_released)
    for column in columns:
        before.add(column.places, column.containing.n_places)
        after.add(column.cells, column.containing.n_cells)
    people, rows = before.classes(), after.classes()
    one_person, one_row = a_row_of_each(people), a_row_of_each(rows)
    bits = tuple(
        ColumnBits(c.containing, c.places[one_person].astype(np.int64), c.cells[one_row].astype(np.int64))
        for c in columns
    )
    return Consistency(people, rows, False, bits)


def nearest_candidates(columns: Sequence[MatchedColumn], own_row: Ids) -> Candidates | None:
    """Count the released rows that differ from a person in the fewest columns, for cells that were changed at random.

    Equal chances of a change make these the most likely ones. Of a person whose own row is not among them, and of a row
    whose own person is not, the count is 0. ``None`` where a value stands in several cells, or pairs are too many.

    Parameters
    ----------
    own_row : array
        Released row of each person, -1 for those who have none; every row is somebody's.
    """
    if not columns or any(column.cell_of_person is None for column in columns):
        return None
    people = np.flatnonzero(own_row >= 0)
    cells = [_beside(column, people, own_row[people]) for column in columns]
    refinement = Refinement(2 * len(people))
    for column, codes in zip(columns, cells, strict=True):
        refinement.add(codes + 1, column.containing.n_cells + 1)
    alike = refinement.classes()
    of_person, of_row = alike.ids[: len(people)], alike.ids[len(people) :]
    if len(np.unique(of_person)) * len(np.unique(of_row)) * len(columns) > _MOST_PRODUCTS:
        return None
    one_of_each = a_row_of_each(alike)
    indicators = np.hstack([_indicators(codes[one_of_each]) for codes in cells])
    per_person, per_row = np.zeros(len(own_row), dtype=np.int64), np.zeros(len(people), dtype=np.int64)
    per_person[people] = _nearest(indicators, of_person, of_row)
    per_row[own_row[people]] = _nearest(indicators, of_row, of_person)
    return Candidates(per_person, per_row)


def _beside(column: MatchedColumn, people: Ids, rows: Ids) -> Ids:
    """Cells of people's values, then those of rows."""
    return np.concatenate([np.asarray(column.cell_of_person)[people], column.cells[rows]])


def _indicators(codes: Ids) -> NDArray[np.float32]:
    """One column for each cell, 1 where it stands; -1 stands nowhere."""
    is_there: NDArray[np.bool_] = codes[:, None] == np.arange(int(codes.max(initial=0)) + 1)
    return is_there.astype(np.float32)


def _nearest(indicators: NDArray[np.float32], seekers: Ids, sought: Ids) -> Ids:
    """For each seeker how many of those sought agree most, 0 where the one beside it is not one of them.

    Both are places in the table of different patterns; agreements are products of indicators.
    """
    patterns, of_seeker = np.unique(seekers, return_inverse=True)
    others, of_sought, counts = np.unique(sought, return_inverse=True, return_counts=True)
    most, n_most = np.zeros(len(patterns)), np.zeros(len(patterns), dtype=np.int64)
    step = max(1, _CHUNK_BITS // max(len(others), 1))
    for start in range(0, len(patterns), step):
        agreement = indicators[patterns[start : start + step]] @ indicators[others].T
        most[start : start + step] = agreement.max(axis=1)
        n_most[start : start + step] = (agreement == agreement.max(axis=1, keepdims=True)) @ counts
    own = (indicators[patterns[of_seeker]] * indicators[others[of_sought]]).sum(axis=1)
    return np.where(own == most[of_seeker], n_most[of_seeker], 0)


def candidates_in_buckets(pieces: Sequence[Sequence[MatchedColumn]], buckets: Classes, n_people: int) -> Candidates:
    """Count for columns whose values were moved within buckets, each piece by itself.

    A person may be any row of a bucket that has, for every piece, a row that fits; any row of a bucket may be any of
    the people whom the bucket fits.
    """
    n_buckets, n_words = len(buckets.sizes), -(-len(buckets.sizes) // _WORD_BITS)
    alike, tables = Refinement(n_people), []
    for columns in pieces:
        people, rows = joint_classes(columns, n_people, len(buckets.ids))
        words = np.zeros((1 + max(int(people.max(initial=-1)), int(rows.max(initial=-1))), n_words), dtype=np.uint64)
        one = np.uint64(1) << (buckets.ids % _WORD_BITS).astype(np.uint64)
        np.bitwise_or.at(words, (rows, buckets.ids // _WORD_BITS), one)
        alike.add(people, len(words))
        tables.append((words, people))
    distinct = alike.classes()
    one_person = a_row_of_each(distinct)
    n_rows = np.zeros(len(one_person), dtype=np.int64)
    n_matching = np.zeros(n_buckets, dtype=np.int64)
    every = packed(np.ones(n_buckets, dtype=np.bool_))
    step = max(1, _CHUNK_BITS // max(n_words * _WORD_BITS, 1))
    for start in range(0, len(one_person), step):
        chunk = slice(start, start + step)
        matching = np.tile(every, (len(one_person[chunk]), 1))
        for words, people in tables:
            matching &= words[people[one_person[chunk]]]
        flags = np.unpackbits(matching.astype("<u8").view(np.uint8), axis=1, bitorder="little", count=n_buckets)
        n_rows[chunk] = flags @ buckets.sizes
        n_matching += distinct.sizes[chunk] @ flags
    return Candidates(n_rows[distinct.ids], n_matching[buckets.ids])


# Candidates by a few columns with few values: all combinations of values at once, as a grid of counts.
#
# A released cell stands for runs of values, so a released row stands for boxes of combinations. Each box is written as
# its corners, 1 where it begins along an axis and -1 where it ends; sums along every axis then say for each
# combination in how many released rows it is. Time O(combinations + released rows × corners), without a pair being
# looked at.


_FEWEST_AT_ONCE = 1 << 16
_A_PERSON = 8
"""Combinations, and corners, that may be counted for each person; beyond, pairs are counted otherwise."""


@dataclass(frozen=True, eq=False, repr=False)
class _Corners:
    """Corners of boxes: the class of released rows that each is of, its place in the grid, and its count.

    ``of_person`` is the place of each person in the same grid.
    """

    owner: Ids
    place: Ids
    count: NDArray[np.float64]
    of_person: Ids


class GridCandidates:
    """Released rows whose cells may mean a person's values, counted over a grid of the values.

    Parameters
    ----------
    classes : Classes
        Released rows that are equal on all columns that will be asked for.
    n_people : int

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.audit.reading.cells import unchanged
    >>> same = unchanged(pa.array(["a", "b"]), pa.array(["a", "b"]))
    >>> column = MatchedColumn(same, np.array([0, 1, 1]), np.array([0, 0, 1]))
    >>> GridCandidates(Classes(np.array([0, 0, 1]), np.array([2, 1])), 3).per_person([column]).tolist()
    [2, 1, 1]
    """

    def __init__(self, classes: Classes, n_people: int) -> None:
        self._classes, self._n_people = classes, n_people
        n_classes = len(classes.sizes)
        nowhere, nobody = np.zeros(n_classes, dtype=np.int64), np.zeros(n_people, dtype=np.int64)
        self._without_columns = _Corners(np.arange(n_classes), nowhere, classes.sizes.astype(np.float64), nobody)
        self._kept: dict[int, tuple[tuple[MatchedColumn, ...], _Corners]] = {}

    def per_person(self, columns: Sequence[MatchedColumn]) -> Ids | None:
        """Count for every person; ``None`` where the grid or the corners would be too many."""
        shape = [column.containing.n_places for column in columns]
        corners = self._corners(tuple(columns)) if prod(shape) <= self._most else None
        if corners is None:
            return None
        grid = np.bincount(corners.place, weights=corners.count, minlength=prod(shape)).reshape(shape)
        for axis in range(len(shape)):
            np.cumsum(grid, axis=axis, out=grid)
        return grid.astype(np.int64).ravel()[corners.of_person]

    @property
    def _most(self) -> int:
        return max(_A_PERSON * self._n_people, _FEWEST_AT_ONCE)

    @cached_property
    def _row_of_class(self) -> Ids:
        return a_row_of_each(self._classes)

    def _corners(self, columns: tuple[MatchedColumn, ...]) -> _Corners | None:
        """Corners in the grid of some columns; those of all but the last are kept for the next set that begins so."""
        if not columns:
            return self._without_columns
        known = self._kept.get(len(columns))
        if known is not None and all(a is b for a, b in zip(known[0], columns, strict=True)):
            return known[1]
        before = self._corners(columns[:-1])
        after = self._along(before, columns[-1]) if before is not None else None
        if after is not None:
            self._kept[len(columns)] = columns, after
        return after

    def _along(self, corners: _Corners, column: MatchedColumn) -> _Corners | None:
        """Divide each corner into those along one more axis."""
        at, sign, first = _ends_of_runs(column)
        cells = column.cells[self._row_of_class]
        begin, n_corners = first[cells][corners.owner], np.diff(first)[cells][corners.owner]
        n_in_all = int(n_corners.sum())
        if n_in_all > self._most:
            return None
        source = np.repeat(np.arange(len(begin)), n_corners)
        end = np.arange(n_in_all) + (begin - np.cumsum(n_corners) + n_corners)[source]
        width = column.containing.n_places
        place = (corners.place * width)[source] + at[end]
        of_person = corners.of_person * width + column.places
        return _Corners(corners.owner[source], place, corners.count[source] * sign[end], of_person)


def stands_for_one_value(column: MatchedColumn) -> bool:
    """Whether every cell of a column means a single value, so that candidates are equal and need no grid."""
    read = column.containing
    return len(read.cells) == read.n_cells and bool((read.stops - read.starts == 1).all())


def _ends_of_runs(column: MatchedColumn) -> tuple[Ids, NDArray[np.float64], Ids]:
    """Where the runs of cells begin and end along an axis, with 1 or -1, and the first of them of each cell.

    An end behind the last place is left out, for nothing is there.
    """
    read = column.containing
    is_inside = np.column_stack([np.ones(len(read.cells), dtype=np.bool_), read.stops < read.n_places]).ravel()
    at = np.column_stack([read.starts, read.stops]).ravel()[is_inside]
    sign = np.tile([1.0, -1.0], len(read.cells))[is_inside]
    n_of_cell = np.bincount(np.repeat(read.cells, 2)[is_inside], minlength=read.n_cells)
    return at, sign, np.concatenate([[0], np.cumsum(n_of_cell)])
