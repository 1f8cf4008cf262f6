"""Released rows that are nearest to a person: those whose cells cover most of the values that an attacker knows.

A cell *covers* a value if it may stand for it: ``[29, 42]`` covers 38, ``{M|N}`` covers N, ``*`` covers everything. A
cell that was released unchanged covers its own value only. The distance of a released row from a person is the number
of known columns whose cell does not cover the person's value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.candidates import MatchedColumn
from sfumato.audit.reading.cells import a_row_of_each
from sfumato.audit.reading.columns import Classes, Refinement

Ids = NDArray[np.int64]
Distances = NDArray[np.uint8]
Flags = NDArray[np.bool_]

_CHUNK = 1 << 22


class DistancesToRows:
    """Distances of people from released rows; equal released rows are one group.

    Parameters
    ----------
    columns : mapping of str to MatchedColumn
        At most 255.
    n_released : int

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.audit.reading.cells import unchanged
    >>> same = unchanged(pa.array(["a", "b"]), pa.array(["a", "b"]))
    >>> column = MatchedColumn(same, np.array([0, 1]), np.array([0, 0, 1]))
    >>> rows = DistancesToRows({"job": column}, 3)
    >>> [found.tolist() for _, (found,) in rows.chunks(np.arange(2), [["job"]])], rows.groups.sizes.tolist()
    ([[[0, 1], [1, 0]]], [2, 1])
    """

    def __init__(self, columns: Mapping[str, MatchedColumn], n_released: int) -> None:
        self._columns, self._n_released = columns, n_released

    @cached_property
    def groups(self) -> Classes:
        """Released rows with equal cells in all columns."""
        refinement = Refinement(self._n_released)
        for column in self._columns.values():
            refinement.add(column.cells, column.containing.n_cells)
        return refinement.classes()

    @cached_property
    def row_of_group(self) -> Ids:
        """A released row of each group."""
        return a_row_of_each(self.groups)

    def chunks(self, people: Ids, sets: Sequence[Sequence[str]]) -> Iterator[tuple[slice, list[Distances]]]:
        """Give some people at a time, with their distances from every group by each set of columns."""
        n_groups = len(self.groups.sizes)
        step = max(1, _CHUNK // max(n_groups, 1))
        for start in range(0, len(people), step):
            chunk = slice(start, start + step)
            shape = (len(people[chunk]), n_groups)
            found = [np.zeros(shape, dtype=np.uint8) for _ in sets]
            for name, column in self._columns.items():
                asked = [distance for distance, names in zip(found, sets, strict=True) if name in names]
                if asked:
                    missed = ~_covering(column, people[chunk])[:, column.cells[self.row_of_group]]
                    for distance in asked:
                        distance += missed
            yield chunk, found


def _covering(column: MatchedColumn, people: Ids) -> Flags:
    """Whether each distinct released cell covers the value of each of these people."""
    read, places = column.containing, column.places[people][:, None]
    by_run: Flags = (read.starts <= places) & (places < read.stops)
    if len(read.cells) == read.n_cells and (np.diff(read.cells) == 1).all():
        return by_run
    covering = np.zeros((len(people), read.n_cells), dtype=np.bool_)
    with_runs = np.unique(read.cells)
    if len(with_runs):
        covering[:, with_runs] = np.logical_or.reduceat(by_run, read.first_runs[with_runs], axis=1)
    return covering


def is_nearest(distances: Distances) -> Flags:
    """Which groups have the least distance from each person."""
    nearest: Flags = distances == distances.min(axis=1, keepdims=True)
    return nearest
