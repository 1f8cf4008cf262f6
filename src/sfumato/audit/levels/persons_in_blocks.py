"""Persons in every group of a release whose rows are read in blocks.

DuckDB counts persons group by group; which combinations of the original's values make up a group is found here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.original.assignment import BothBags, Pairs, TooManyPairsError, exact_ids
from sfumato.audit.original.cell_rules import CellRule, FittingRule, refuse_problems
from sfumato.audit.reading.block_counting import GroupKeys, counted_rows, persons_of_groups
from sfumato.audit.reading.cells import a_row_of_each
from sfumato.audit.reading.columns import summed
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
        both = np.concatenate([np.column_stack([own + 1 for own in known.keys]), distinct])
        number = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
        is_lost = ~np.isin(number[len(known.groups) :], number[: len(known.groups)])
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
        sizes = summed(of_row.reshape(-1), self.counted.row_counts, len(groups))
        if not len(groups):
            return None, sizes
        refuse_problems(own)
        exact = [exact_ids(rule) for rule in own]
        columns = tuple(rule.column for rule in own)
        known = [ids for ids in exact if ids is not None]
        if len(known) == len(
            exact
        ):  # each value fits one cell: rows are in the group of the cells that their values fit
            numbers = tuple(before for before, _ in known)
            keys = [after[cells] for (_, after), cells in zip(known, groups.T, strict=True)]
            return GroupKeys(columns, numbers, keys, np.arange(len(groups))), sizes
        return self._by_counts(own, groups, sizes), sizes

    def _by_counts(self, rules: Sequence[CellRule], groups: Counts, sizes: Counts) -> GroupKeys:
        """Values fit several cells: counts show what rows with the same values became, if there is one answer only."""
        columns = tuple(rule.column for rule in rules)
        before = counted_rows(self.original, columns, self.memory, self.progress)
        codes = [before[name].codes for name in columns]
        try:
            pairs = Pairs.of(BothBags.of(rules, codes, list(groups.T), before.row_counts, sizes))
            became = pairs.whole()
        except TooManyPairsError:
            became = None
        if became is None:
            problem = "cells overlap, and counts do not show whose rows a group holds"
            raise InvalidParameterError("cells", problem, allowed="such that counts show it")
        every = (r.read.places if isinstance(r, FittingRule) and r.read is not None else r.expected for r in rules)
        numbers = tuple(np.asarray(own, dtype=np.int64) for own in every)
        kept = became >= 0
        rows = a_row_of_each(pairs.originals)[kept]
        keys = [own[own_codes[rows]] for own, own_codes in zip(numbers, codes, strict=True)]
        return GroupKeys(columns, numbers, keys, a_row_of_each(pairs.classes)[became[kept]])
