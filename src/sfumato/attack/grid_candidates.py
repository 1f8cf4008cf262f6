"""Candidates by a few columns with few values: all combinations of values at once, as a grid of counts.

A released cell stands for runs of values, so a released row stands for boxes of combinations. Each box is written as
its corners, 1 where it begins along an axis and -1 where it ends; sums along every axis then say for each combination
in how many released rows it is. Time O(combinations + released rows × corners), without a pair being looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.candidates import MatchedColumn
from sfumato.audit.bit_rows import a_row_of_each
from sfumato.audit.counting import Classes

Ids = NDArray[np.int64]

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
    """Released rows whose cells may stand for a person's values, counted over a grid of the values.

    Parameters
    ----------
    classes : Classes
        Released rows that are equal on all columns that will be asked for.
    n_people : int

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.audit.cells import unchanged
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
    """Whether every cell of a column stands for a single value, so that candidates are equal and need no grid."""
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
