"""Persons in every group of a release whose rows are read in blocks.

DuckDB counts persons group by group; which combinations of the original's values make up a group is found here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.levels.persons import cell_of_value
from sfumato.audit.original.cell_rules import CellRule, FittingRule
from sfumato.audit.original.matching import TooManyLayersError, layers, places_among
from sfumato.audit.reading.block_counting import GroupKeys, counted_rows, persons_of_groups
from sfumato.audit.reading.cells import Containing, unchanged
from sfumato.engines.protocol import Rows
from sfumato.errors import ColumnNotFoundError, InvalidParameterError
from sfumato.guarantees import KAnonymity
from sfumato.progress import Progress
from sfumato.table.weighted import CountedTable

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PersonsInBlocks:
    """Persons of the groups of equal released rows.

    Parameters
    ----------
    guarantee : KAnonymity
        What is promised, by persons.
    counted : CountedTable
        Distinct rows of the release, over the columns of the promise at least.
    original : Rows
        Rows before the release, with the column that says whose they are.
    rules : sequence of CellRule
        How released cells follow from the original's.
    """

    guarantee: KAnonymity
    counted: CountedTable
    original: Rows
    rules: Sequence[CellRule]
    memory: int
    progress: Progress | None

    def fewest(self) -> int:
        """Fewest persons of a group; 0 for a table without rows.

        Raises
        ------
        InvalidParameterError
            If it cannot be known whose rows a group holds.
        """
        known, sizes = self._groups()
        if known is None:
            return 0
        found, n_rows, n_persons = self._persons_of(known)
        of_group = np.zeros(len(sizes), dtype=np.int64)
        of_group[found] = n_rows
        if not np.array_equal(of_group, sizes):
            problem = "some rows of a group were left out, and others not"
            raise InvalidParameterError("rows", problem, allowed="released or left out group by group")
        return int(n_persons.min())

    def losses(self) -> tuple[int, int]:
        """Count the persons who lost a row, and all persons; errors as of :meth:`fewest`."""
        known, _ = self._groups()
        if known is None:
            problem = "no row is released"
            raise InvalidParameterError("rows", problem, allowed="released in part")
        before = counted_rows(self.original, known.columns, self.memory, self.progress)
        numbers = tuple(own + 1 for own in known.numbers)  # 0 is a value that fits no cell
        of_rows = [own[before[name].codes] for own, name in zip(numbers, known.columns, strict=True)]
        distinct = np.unique(np.column_stack(of_rows).astype(np.int64), axis=0)
        is_lost = places_among([own + 1 for own in known.keys], list(distinct.T)) < 0
        found = []
        for rows in (distinct[is_lost], distinct):
            keys = [np.ascontiguousarray(own) for own in rows.T]
            one_group = GroupKeys(known.columns, numbers, keys, np.zeros(len(rows), dtype=np.int64))
            found.append(int(self._persons_of(one_group)[2].sum()) if len(rows) else 0)
        return found[0], found[1]

    def _persons_of(self, known: GroupKeys) -> tuple[Counts, Counts, Counts]:
        return persons_of_groups(self.original, known, self.guarantee.unit, self.memory // 2, self.progress)

    def _groups(self) -> tuple[GroupKeys | None, Counts]:
        """Which rows are in which group, and the released rows of each; no keys where nothing is released."""
        named = {rule.name: rule for rule in self.rules}
        if unstated := [name for name in self.guarantee.columns if name not in named]:
            raise ColumnNotFoundError(unstated[0], named, where="the columns that the manifest describes")
        own = [named[name] for name in self.guarantee.columns]
        codes = np.column_stack([self.counted[name].codes for name in self.guarantee.columns]).astype(np.int64)
        groups, of_row = np.unique(codes, axis=0, return_inverse=True)
        sizes = np.zeros(len(groups), dtype=np.int64)
        np.add.at(sizes, of_row.reshape(-1), self.counted.row_counts)
        if not len(groups):
            return None, sizes
        if not any(_overlap(rule) for rule in own):
            return _by_values(own, groups), sizes
        columns = tuple(rule.column for rule in own)
        before = counted_rows(self.original, columns, self.memory, self.progress)
        return _by_counts(own, groups, sizes, self.original, before, self.counted), sizes


def _overlap(rule: CellRule) -> bool:
    """Whether some value fits several released cells."""
    if rule.problem or not isinstance(rule, FittingRule) or rule.read is None:
        return False
    ends = np.zeros(rule.read.n_places + 1, dtype=np.int64)
    np.add.at(ends, rule.read.starts, 1)
    np.subtract.at(ends, rule.read.stops, 1)
    return bool((np.cumsum(ends) > 1).any())


def _by_values(rules: Sequence[CellRule], groups: Counts) -> GroupKeys:
    """Each value fits one cell: rows are in the group of the cells that their values fit."""
    keys = [
        cells if isinstance(rule, FittingRule) else rule.found[cells]
        for rule, cells in zip(rules, groups.T, strict=True)
    ]
    return GroupKeys(
        tuple(rule.column for rule in rules),
        tuple(cell_of_value(rule) for rule in rules),
        [np.asarray(own, dtype=np.int64) for own in keys],
        np.arange(len(groups)),
    )


def _by_counts(
    rules: Sequence[CellRule],
    groups: Counts,
    sizes: Counts,
    original: Rows,
    before: CountedTable,
    released: CountedTable,
) -> GroupKeys:
    """Values fit several cells: counts show what all rows with the same values became, if there is one answer only."""
    reads = [_read(rule, original, released) for rule in rules]
    columns = tuple(rule.column for rule in rules)
    places = np.column_stack([read.places[before[name].codes] for read, name in zip(reads, columns, strict=True)])
    distinct, of_row = np.unique(places.astype(np.int64), axis=0, return_inverse=True)
    n_before = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(n_before, of_row.reshape(-1), before.row_counts)
    try:
        became = _forced(reads, list(distinct.T), n_before, list(groups.T), sizes)
    except TooManyLayersError:
        became = None
    if became is None:
        problem = "cells overlap, and counts do not show whose rows a group holds"
        raise InvalidParameterError("cells", problem, allowed="such that counts show it")
    kept = became >= 0
    return GroupKeys(
        columns,
        tuple(np.asarray(read.places, dtype=np.int64) for read in reads),
        [np.ascontiguousarray(own[kept]) for own in distinct.T],
        became[kept],
    )


def _forced(
    reads: Sequence[Containing], places: Sequence[Counts], n_before: Counts, cells: Sequence[Counts], sizes: Counts
) -> Counts | None:
    """Group of each distinct row, -1 for none, as far as sizes leave no choice; ``None`` if some group stays open.

    A group that is as large as all rows that may still be in it holds them all, and they are in no other. A recoding in
    rounds takes all rows left of a class at once, so that this settles its groups in the order of the rounds.
    """
    layered = [layers(read) for read in reads]
    way_of_group = np.column_stack([layer_of_cell[own] for (layer_of_cell, _), own in zip(layered, cells, strict=True)])
    ways, number = np.unique(way_of_group, axis=0, return_inverse=True)
    waiting = [(way, np.flatnonzero(number.reshape(-1) == i)) for i, way in enumerate(ways)]
    waiting.sort(key=lambda one: -int(one[0].sum()))  # later layers hold the smaller cells, which were taken first
    became, is_open = np.full(len(n_before), -1, dtype=np.int64), np.ones(len(n_before), dtype=np.bool_)
    is_settled = np.zeros(len(sizes), dtype=np.bool_)
    while waiting:
        before = int(is_settled.sum())
        for way, own in waiting:
            rows = np.flatnonzero(is_open)
            wanted = [owners[layer][at[rows]] for (_, owners), layer, at in zip(layered, way, places, strict=True)]
            fits = np.logical_and.reduce([cell >= 0 for cell in wanted])
            rows = rows[fits]
            among = places_among([cell[own] for cell in cells], [cell[fits] for cell in wanted])
            rows, among = rows[among >= 0], among[among >= 0]
            offered = np.bincount(among, n_before[rows], len(own)).astype(np.int64)
            is_forced = (offered == sizes[own]) & ~is_settled[own]
            taken = is_forced[among]
            became[rows[taken]] = own[among[taken]]
            is_open[rows[taken]] = False
            is_settled[own[is_forced]] = True
        waiting = [(way, own[~is_settled[own]]) for way, own in waiting if not is_settled[own].all()]
        if waiting and int(is_settled.sum()) == before:
            return None
    return became


def _read(rule: CellRule, original: Rows, released: CountedTable) -> Containing:
    if rule.problem:
        raise InvalidParameterError("cells", f"'{rule.name}' {rule.problem}", allowed="those of the original")
    if isinstance(rule, FittingRule) and rule.read is not None:
        return rule.read
    return unchanged(released[rule.name].values, original.outline[rule.column].values)
