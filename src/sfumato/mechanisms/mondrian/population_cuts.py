r"""People of a population table in the parts of a partition: which cuts leave enough of them on both sides.

The cells of a group are the least ranges and sets that hold the values of its rows, on every axis. So a cut takes away
people on all axes, not only on its own: somebody fits the left side if, on each axis, a range of its rows' values, or a
set of them, holds the person's value. Along the sorted rows of a part the cells of its first i rows only grow with i,
hence there is a first i from which somebody fits, the latest of those of the axes; the same from the right. Counting
these first places gives the people of all sides at once, exactly.

Nobody fits two parts that rows with equal values keep apart, and whoever fits no part does not fit one within it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import PrivacyNotAchievableError
from sfumato.mechanisms.mondrian.parts import Cuts, Indices, SortedParts
from sfumato.mechanisms.population import ColumnPlaces, PopulationPromises, different_people
from sfumato.table.coding import Table

Places = NDArray[np.int64]
Counts = NDArray[np.int64]
_NOWHERE = -1


class PeopleInParts:
    """People of a population who fit the parts of one depth.

    Parameters
    ----------
    rows : sequence of int64 arrays
        For each axis the place of each row.
    columns : sequence of ColumnPlaces
        The same axes, with the people's places.
    k_map : int
        People whom every group must fit; 1 asks for nothing.
    delta_max : float
        Largest share that the rows of a group may be of the people who fit it; infinite: nothing is asked.
    """

    def __init__(
        self, rows: Sequence[Places], columns: Sequence[ColumnPlaces], k_map: int = 1, delta_max: float = math.inf
    ) -> None:
        self._rows = rows
        self._columns = columns
        self._k_map, self._delta_max = k_map, delta_max
        people, self._counts = different_people([column.of_people for column in columns])
        self._people = [np.ascontiguousarray(places) for places in people.T]
        self._part = np.zeros(len(self._counts), dtype=np.int64)
        self._reach: dict[int, tuple[Places, Places]] = {}

    @classmethod
    def of(cls, table: Table, names: Sequence[str], promised: PopulationPromises) -> PeopleInParts:
        """Put the people of a population beside the rows of a table."""
        if promised.population is None:
            raise AssertionError
        columns = promised.population.beside(table, names)
        rows = [column.of_values[table[name].codes] for name, column in zip(names, columns, strict=True)]
        k_map, presence = promised.k_map, promised.presence
        delta_max = math.inf if presence is None else presence.delta_max
        return cls(rows, columns, 1 if k_map is None else k_map.k_map, delta_max)

    def check_all_rows(self, parts: SortedParts) -> None:
        """Refuse a table whose rows, all in one group, fit too few people.

        Raises
        ------
        PrivacyNotAchievableError
            Dividing rows can only lower the people whom a group fits, and raise a share of them somewhere.
        """
        first, _ = self._reached(parts, 0)
        n_rows, n_people = parts.rows.shape[1], int(self._counts[first != _NOWHERE].sum())
        hint = "the population table has other values than the table, or too few people"
        if n_people < self._k_map:
            asked = f"rows that fit {self._k_map:,} people of the population table"
            raise PrivacyNotAchievableError(asked, best_level=n_people, hint=hint)
        if n_people and n_rows > self._delta_max * n_people:
            asked = f"delta_max = {self._delta_max:g}"
            raise PrivacyNotAchievableError(asked, best_level=n_rows / max(n_people, 1), hint=hint)

    def allowed(self, parts: SortedParts, cuts: Cuts) -> Cuts:
        """Keep the cuts both of whose sides fit enough people."""
        passes = np.zeros(len(cuts), dtype=np.bool_)
        of_axis = np.searchsorted(cuts.axis, np.arange(len(parts.rows) + 1))
        self._reach = {}
        for axis in np.unique(cuts.axis).tolist():
            taken = slice(of_axis[axis], of_axis[axis + 1])
            chosen = cuts.keep(taken)
            self._reach[axis] = first, last = self._reached(parts, axis)
            begin, end = parts.starts[chosen.part], parts.starts[chosen.part + 1]
            left = self._counted(first, begin, chosen.index)
            right = self._counted(last, chosen.index, end)
            n_left, n_right = parts.rows_of_sides(chosen)
            passes[taken] = self._enough(n_left, left) & self._enough(n_right, right)
        return cuts.keep(passes)

    def divide(self, parts: SortedParts, axis: Indices, index: Indices) -> None:
        """Go with the rows into the parts of the next depth, as :meth:`SortedParts.divide` numbers them."""
        is_cut = axis >= 0
        first_half = 2 * (np.cumsum(is_cut) - 1)
        part = np.full(len(self._part), _NOWHERE, dtype=np.int64)
        inside = np.flatnonzero(self._part != _NOWHERE)
        axis_of_person = axis[self._part[inside]]
        for number in np.unique(axis[is_cut]).tolist():
            who = inside[axis_of_person == number]
            own = self._part[who]
            first, last = self._reach[number]
            at_left = (first[who] != _NOWHERE) & (first[who] < index[own])
            at_right = (last[who] != _NOWHERE) & (last[who] >= index[own])
            part[who[at_left]] = first_half[own[at_left]]
            part[who[at_right]] = first_half[own[at_right]] + 1
        self._part = part
        self._reach = {}

    def _enough(self, n_rows: Counts, n_people: Counts) -> NDArray[np.bool_]:
        enough = n_people >= self._k_map
        return enough if math.isinf(self._delta_max) else np.asarray(enough & (n_rows <= self._delta_max * n_people))

    def _counted(self, reached: Places, begin: Indices, end: Indices) -> Counts:
        """People who are reached at a place from ``begin`` to before ``end``."""
        who = np.flatnonzero(reached != _NOWHERE)
        who = who[np.argsort(reached[who], kind="stable")]
        sums = np.concatenate([[0], np.cumsum(self._counts[who])])
        ordered = reached[who]
        return np.asarray(sums[np.searchsorted(ordered, end)] - sums[np.searchsorted(ordered, begin)])

    def _reached(self, parts: SortedParts, axis: int) -> tuple[Places, Places]:
        """Place along an axis at which everybody first fits the rows of their part, read from the left and the right.

        Nowhere for those who do not fit the part.
        """
        n_places = parts.rows.shape[1]
        rows, part_of_place = parts.rows[axis], parts.part_of_place
        first = self._first_fits(rows, part_of_place, self._part)
        backwards = np.where(self._part == _NOWHERE, _NOWHERE, parts.n_parts - 1 - self._part)
        last = self._first_fits(rows[::-1], (parts.n_parts - 1 - part_of_place)[::-1], backwards)
        return first, np.where(last == _NOWHERE, _NOWHERE, n_places - 1 - last)

    def _first_fits(self, rows: NDArray[np.int32], part_of_place: Indices, part: Places) -> Places:
        """First place at which the rows of a part up to it have cells that everybody in the part fits."""
        who = np.flatnonzero(part != _NOWHERE)
        own = part[who]
        found = np.zeros(len(who), dtype=np.int64)
        n_places = len(rows)
        for places, column, people in zip(self._rows, self._columns, self._people, strict=True):
            along, wanted = places[rows], people[who]
            width = column.missing + 2
            at = _first_occurrence(part_of_place * width + along, own * width + wanted)
            if column.is_ordered:
                known = wanted < column.missing
                spanned = _first_spanned(part_of_place, along, own[known], wanted[known], column.missing)
                at[known] = spanned
            found = np.maximum(found, at)
        ends = np.searchsorted(part_of_place, own, side="right")
        result = np.full(len(part), _NOWHERE, dtype=np.int64)
        fits = found < np.minimum(ends, n_places)
        result[who[fits]] = found[fits]
        return result


def _first_occurrence(keys: Places, wanted: Places) -> Places:
    """Place at which a key occurs first; after the last place where it does not."""
    present, first = np.unique(keys, return_index=True)
    at = np.minimum(np.searchsorted(present, wanted), len(present) - 1)
    return np.where(present[at] == wanted, first[at], len(keys))


def _first_spanned(part_of_place: Indices, along: Places, part: Places, wanted: Places, missing: int) -> Places:
    """Place from which the known values of a part's rows reach from at most a value to at least it.

    Parts ascend, and lie so far apart that the least and the largest value so far begin anew with every part.
    """
    width = missing + 1
    is_known = along < missing
    low = np.minimum.accumulate(np.where(is_known, along, missing) - part_of_place * width)
    high = np.maximum.accumulate(np.where(is_known, along + 1, 0) + part_of_place * width)
    from_below = np.searchsorted(-low, part * width - wanted)
    from_above = np.searchsorted(high, part * width + wanted + 1)
    return np.maximum(from_below, from_above)
