"""Releases that follow from a large file's distinct rows at levels above its values, where finer ones do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.blocks import Merging, count_merged, count_pairs, merged_rows
from sfumato.counting.cells import TooManyCellsError
from sfumato.errors import InputError
from sfumato.mechanisms.base import Release
from sfumato.progress import Progress, in_rows
from sfumato.publishing.out_of_core.proposal import (
    CellMechanism,
    CellProposal,
    CountingPlan,
    completed,
    finder_of,
    propose_cells,
)
from sfumato.rows.memory_limit import Memory, give_back
from sfumato.rows.out_of_core import LargeTable
from sfumato.table.coding import Table
from sfumato.table.weighted import CountedTable, OutlinedTable

Counts = NDArray[np.int64]


class Steps(Protocol):
    """Ever coarser ways to merge values, the first of which merges none."""

    @property
    def mergings(self) -> Sequence[Merging]:
        """For each step, for each column with merged values, the value that each value is counted as."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """Columns whose values can be merged."""
        ...

    def base(self, step: int, rows_of_values: Any) -> Any:
        """Give the base of a step: what the mechanism needs to know of how rows were counted."""
        ...


@runtime_checkable
class MergingMechanism(CellMechanism, Protocol):
    """A mechanism that releases no value by itself where values are merged, and so does with counts of merged ones.

    A mechanism with ``needs = Needs.COUNTS`` may offer this besides; one that does not is refused where its distinct
    rows do not fit.
    """

    def level_steps(self, outline: Table) -> Steps:
        """Say how values may be merged, given every column by itself and the values two by two that it asked for."""
        ...

    def release_from_base(
        self, cells: CountedTable, base: Any, *, progress: Progress | None = None
    ) -> tuple[Release, NDArray[np.bool_]]:
        """Release distinct rows of merged values, and say which of them are released, in their order."""
        ...


def propose_counted(
    original: OutlinedTable, mechanism: CellMechanism, memory: Memory, progress: Progress | None
) -> CellProposal:
    """Let a mechanism release the distinct rows of a table or, if these do not fit, those of merged values.

    On a cluster values are not merged.

    Raises
    ------
    TooManyCellsError
        If the distinct rows do not fit, and the mechanism cannot merge values.
    InputError
        If columns whose values cannot be merged have too many combinations by themselves.
    """
    try:
        return propose_cells(original, mechanism, memory, progress)
    except TooManyCellsError:
        if not isinstance(mechanism, MergingMechanism) or not isinstance(original, LargeTable):
            raise
    give_back()
    return _propose_merged(original, mechanism, memory, progress)


def _propose_merged(
    original: LargeTable, mechanism: MergingMechanism, memory: Memory, progress: Progress | None
) -> CellProposal:
    plan, n_rows = CountingPlan.of(original, mechanism, memory), original.n_rows
    beside = mechanism.counted_beside(original.schema)
    pairs = count_pairs(original, plan.together, beside, in_rows(progress, n_rows, "rows counted two by two"))
    outline = CountedTable.of(original.outline, (), (), np.array([n_rows], dtype=np.int64))
    steps = mechanism.level_steps(replace(outline, pairs=pairs))
    counting = in_rows(progress, n_rows, "rows counted at coarser levels")
    try:
        cells, step = count_merged(
            original, plan.together, steps.mergings, pairs=pairs, most_cells=plan.most_cells, progress=counting
        )
    except TooManyCellsError:
        raise _cannot_be_merged(original, plan, steps.names) from None
    merging = steps.mergings[step]
    rows = merged_rows(original, merging)
    cells = plan.with_occurring(rows, cells, progress)
    counter = _ReleasedValues(original, cells, merging, steps.names, progress)
    give_back()
    release, is_released = mechanism.release_from_base(cells, steps.base(step, counter), progress=progress)
    return CellProposal(original, completed(release, original.schema), rows, cells, is_released)


@dataclass(frozen=True)
class _ReleasedValues:
    """Counts, in a pass over the file, the released rows of each value, which labels and lists are written by."""

    original: LargeTable
    cells: CountedTable
    merging: Mapping[str, NDArray[np.int32]]
    names: tuple[str, ...]
    progress: Progress | None

    def __call__(self, is_released: NDArray[np.bool_]) -> list[Counts]:
        """Released rows of each distinct value of each column."""
        if is_released.all():
            return [self.original.outline[name].counts for name in self.names]
        counted, finder = self.cells.together, finder_of(self.cells)
        found = [np.zeros(self.original.outline[name].n_distinct, dtype=np.int64) for name in self.names]
        looking_up = in_rows(self.progress, self.original.n_rows, "rows looked up")
        for block in self.original.blocks(counted, progress=looking_up):
            codes = {name: np.asarray(block[name]) for name in counted}
            kept = is_released[finder.find([self._merged(name, codes[name]) for name in counted])]
            for name, counts in zip(self.names, found, strict=True):
                counts += np.bincount(codes[name][kept], minlength=len(counts))
        return found

    def _merged(self, name: str, codes: NDArray[np.int32]) -> NDArray[np.int32]:
        return self.merging[name][codes] if name in self.merging else codes


def _cannot_be_merged(original: LargeTable, plan: CountingPlan, merged: Sequence[str]) -> InputError:
    """Error for columns that have too many combinations even where all others are generalized to the top."""
    listed = ", ".join(f"'{name}'" for name in plan.together if name not in merged)
    problem = (
        f"{listed} must be counted value by value, because promises or losses are about these values or because they "
        f"are released unchanged, and have more than {plan.most_cells:,} combinations, which is all that fits in the "
        "memory given; the other columns were generalized to the top already"
    )
    hint = "ask for l and t of fewer columns (sensitive=), take slicing=false, another loss, or more memory"
    return InputError(problem, path=original.source.name, hint=hint, remedy=("memory", "parameters"))
