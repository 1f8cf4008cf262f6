"""Releases that follow from distinct rows with their counts: searched on these, each row looked up among them.

Where the distinct rows do not fit, values are counted at levels above them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.counting.cells import TooManyCellsError
from sfumato.counting.crowds import fewest_in_classes, first_of_each, without_persons
from sfumato.engines.counting import Merging, RowFinder, count_merged, count_pairs, merged_rows
from sfumato.engines.memory_limit import Memory, give_back
from sfumato.engines.protocol import Persons, Rows
from sfumato.errors import InputError
from sfumato.mechanisms.base import Release
from sfumato.progress import Progress, in_rows
from sfumato.publishing.proposals.base import RowsProposal, completed, kept_rows, names_but_identifiers
from sfumato.schema import Role, Schema
from sfumato.table.coding import Table
from sfumato.table.weighted import Block, CountedTable, Counts

_MOST_FLAGS = 64
_TIMES_HELD = 3  # flags of distinct rows, those of the released ones, and those of classes


class CellMechanism(Protocol):
    """A mechanism that treats equal rows alike and so needs only the distinct ones, with how often each occurs.

    This is what ``needs = Needs.COUNTS`` asks of it.
    """

    def counted_columns(self, schema: Schema) -> tuple[str, ...]:
        """Columns that have to be counted together."""
        ...

    def counted_beside(self, schema: Schema) -> tuple[str, ...]:
        """Columns that have to be counted with each of these by itself."""
        ...

    def occurring_columns(self, schema: Schema) -> tuple[str, ...]:
        """Columns whose values are listed for each distinct row, without counts."""
        ...

    def release_cells(
        self, cells: CountedTable, *, progress: Progress | None = None
    ) -> tuple[Release, NDArray[np.bool_]]:
        """Release distinct rows, and say which of them are released, in their order."""
        ...


@dataclass(frozen=True, repr=False, eq=False)
class CellProposal(RowsProposal):
    """Rows that are released as the distinct rows they are equal to; the release's table holds those.

    ``rows`` is the original with the codes that were counted: its own, or those of values that were merged.
    """

    rows: Rows
    cells: CountedTable
    is_released: NDArray[np.bool_]

    def showing(self, person: str) -> Self:
        """Show it in the rows too."""
        shown = super().showing(person)
        return replace(shown, rows=self.rows.with_schema({person: Role.OTHER}))

    @property
    def schema(self) -> Schema:
        """Description of the columns that are written."""
        return self.original.schema

    def columns(self) -> dict[str, pa.Array]:
        """Values that the codes of the blocks represent."""
        released, outline = self.released.columns, self.original.outline
        return {n: (released[n] if n in released else outline[n]).values for n in names_but_identifiers(outline.schema)}

    def blocks(self, progress: Progress | None = None) -> Iterator[Block]:
        """Released rows, block by block, in the order of the file."""
        counted, released = self.cells.together, self.released
        finder = RowFinder.of(self.cells)
        place_of_cell = np.cumsum(self.is_released) - 1
        names = names_but_identifiers(self.original.schema)
        recoded = {name: released[name].codes for name in names if name in released.columns}
        as_they_are = [name for name in names if name not in recoded]
        for block in self.rows.blocks([*counted, *as_they_are], progress=progress):
            cells = finder.find([np.asarray(block[name]) for name in counted])
            kept = self.is_released[cells]
            places = place_of_cell[cells[kept]]
            yield {n: recoded[n][places] if n in recoded else kept_rows(block[n], kept) for n in names}


def propose_cells(original: Rows, mechanism: CellMechanism, memory: Memory, progress: Progress | None) -> CellProposal:
    """Count the distinct rows of a table, let a mechanism release them, and measure what it promises on them.

    A column that need only occur is not counted with the others if it has few values: combinations would be many more.
    On a cluster it is, for what occurs in each of them would take another pass.
    """
    plan = CountingPlan.of(original, mechanism, memory)
    cells = original.distinct(
        plan.together,
        beside=mechanism.counted_beside(original.schema),
        persons=plan.persons,
        most_cells=plan.most_cells,
        progress=in_rows(progress, original.n_rows, "rows counted"),
    )
    cells = plan.with_occurring(original, cells, progress)
    give_back()
    release, is_released = mechanism.release_cells(cells, progress=progress)
    return cell_proposal(original, release, original, cells, is_released, plan, memory, progress)


def cell_proposal(
    original: Rows,
    release: Release,
    rows: Rows,
    cells: CountedTable,
    is_released: NDArray[np.bool_],
    plan: CountingPlan,
    memory: Memory,
    progress: Progress | None,
) -> CellProposal:
    """Measure what is promised, describe all columns, and leave the persons out that distinct rows were counted with.

    Parameters
    ----------
    rows : Rows
        The original with the codes that were counted.
    is_released : bool array
        Of the distinct rows; equal for those that differ by the person alone.
    """
    give_back()
    if plan.persons is None:
        return CellProposal(completed(release, original.schema), original, rows, cells, is_released)
    person, crowd_size = plan.persons
    is_first = first_of_each(cells, person)
    released = release.table
    if not isinstance(released, CountedTable):
        raise AssertionError
    classes = np.full(len(is_released), -1, dtype=np.int64)
    classes[is_released] = _classes_of(released)
    fewest = fewest_in_classes(cells, person, classes, crowd_size)
    release = replace(release, table=without_persons(released, person, is_first[is_released]))
    cells, is_released, classes = without_persons(cells, person, is_first), is_released[is_first], classes[is_first]
    if fewest is None and not (classes >= 0).any():
        fewest = 0
    if fewest is None:
        give_back()
        counting = in_rows(progress, original.n_rows, "rows counted by persons")
        fewest = rows.fewest_persons(person, cells, classes, memory.n_bytes // 2, counting)
    give_back()
    return CellProposal(completed(release, original.schema, fewest), original, rows, cells, is_released)


def _classes_of(released: CountedTable) -> NDArray[np.int64]:
    """Class of each released distinct row: rows that are equal on all quasi-identifiers."""
    names = released.schema.names(Role.QUASI_IDENTIFIER)
    classes = np.zeros(len(released.row_counts), dtype=np.int64)
    for name in names:
        key = classes * released[name].n_distinct + released[name].codes
        classes = np.unique(key, return_inverse=True)[1].reshape(-1)
    return classes


@dataclass(frozen=True)
class CountingPlan:
    """Which columns of a large file are counted together, and which need only occur.

    Parameters
    ----------
    together : tuple of str
    occurring : tuple of str
        Columns of few values: which of them occur in each distinct row is found in a pass of its own.
    most_cells : int
        Distinct rows that fit.
    persons : str and int, or None
        Column that tells persons apart, where some have several rows, and how many are a crowd.
    """

    together: tuple[str, ...]
    occurring: tuple[str, ...]
    most_cells: int
    persons: Persons | None = None

    @classmethod
    def of(cls, original: Rows, mechanism: CellMechanism, memory: Memory) -> CountingPlan:
        """Plan what a mechanism needs."""
        every, needed = columns_to_count(mechanism, original.schema), mechanism.counted_columns(original.schema)
        is_here = not original.is_on_cluster  # there what occurs would take another pass
        few = tuple(name for name in every if is_here and name not in needed and _has_few(original, name))
        names = tuple(name for name in every if name not in few)
        n_flags = _TIMES_HELD * sum(original.outline[name].n_distinct for name in few)
        person = original.schema.person if original.n_persons is not None else None
        # one more than a class needs: then distinct rows tell nearly always how many the smallest class has
        persons = None if person is None else (person, int(getattr(mechanism, "k", 1)) + 1)
        return cls(names, few, memory.most_cells(len(names) + (persons is not None), n_flags), persons)

    def with_occurring(self, rows: Rows, cells: CountedTable, progress: Progress | None) -> CountedTable:
        """Find which values occur in each distinct row, where some columns need only occur."""
        if not self.occurring:
            return cells
        return _with_occurring(rows, cells, self.occurring, in_rows(progress, rows.n_rows, "rows looked up"))


def columns_to_count(mechanism: CellMechanism, schema: Schema) -> tuple[str, ...]:
    """Columns that have to be counted together; refuses a table without a quasi-identifier."""
    schema.check_quasi_identifiers("to coarsen")
    return tuple(dict.fromkeys([*mechanism.counted_columns(schema), *mechanism.occurring_columns(schema)]))


def _has_few(original: Rows, name: str) -> bool:
    return not original.is_open(name) and original.outline[name].n_distinct <= _MOST_FLAGS


def _with_occurring(
    original: Rows, cells: CountedTable, names: Sequence[str], progress: Progress | None
) -> CountedTable:
    """Find in another pass which values of some columns occur in each distinct row."""
    columns = {**cells.columns, **{name: original.outline[name] for name in names}}
    counted, finder = cells.together, RowFinder.of(cells)
    occurring = {n: np.zeros((len(cells.row_counts), columns[n].n_distinct), dtype=np.bool_) for n in names}
    for block in original.blocks([*counted, *names], progress=progress):
        places = finder.find([np.asarray(block[name]) for name in counted])
        for name, occurs in occurring.items():
            occurs[places, np.asarray(block[name])] = True
    return replace(cells, schema=original.schema.keep(columns), columns=columns, occurring=occurring)


# Distinct rows of merged values, where those of single ones do not fit.


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
    original: Rows, mechanism: CellMechanism, memory: Memory, progress: Progress | None
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
        if not isinstance(mechanism, MergingMechanism) or original.is_on_cluster:
            raise
    give_back()
    return _propose_merged(original, mechanism, memory, progress)


def _propose_merged(
    original: Rows, mechanism: MergingMechanism, memory: Memory, progress: Progress | None
) -> CellProposal:
    plan, n_rows = CountingPlan.of(original, mechanism, memory), original.n_rows
    beside = mechanism.counted_beside(original.schema)
    pairs = count_pairs(original, plan.together, beside, in_rows(progress, n_rows, "rows counted two by two"))
    outline = CountedTable.of(original.outline, (), (), np.array([n_rows], dtype=np.int64))
    steps = mechanism.level_steps(replace(outline, pairs=pairs))
    counting = in_rows(progress, n_rows, "rows counted at coarser levels")
    try:
        cells, step = count_merged(
            original,
            plan.together,
            steps.mergings,
            pairs=pairs,
            persons=plan.persons,
            most_cells=plan.most_cells,
            progress=counting,
        )
    except TooManyCellsError:
        raise _cannot_be_merged(original, plan, steps.names) from None
    merging = steps.mergings[step]
    rows = merged_rows(original, merging)
    cells = plan.with_occurring(rows, cells, progress)
    counter = _ReleasedValues(original, cells, merging, steps.names, progress)
    give_back()
    release, is_released = mechanism.release_from_base(cells, steps.base(step, counter), progress=progress)
    return cell_proposal(original, release, rows, cells, is_released, plan, memory, progress)


@dataclass(frozen=True)
class _ReleasedValues:
    """Counts, in a pass over the file, the released rows of each value, which labels and lists are written by."""

    original: Rows
    cells: CountedTable
    merging: Mapping[str, NDArray[np.int32]]
    names: tuple[str, ...]
    progress: Progress | None

    def __call__(self, is_released: NDArray[np.bool_]) -> list[Counts]:
        """Released rows of each distinct value of each column."""
        if is_released.all():
            return [self.original.outline[name].counts for name in self.names]
        cells = self.cells
        person = cells.schema.person if cells.crowd is not None else None
        if person is not None:
            is_first = first_of_each(cells, person)
            cells, is_released = without_persons(cells, person, is_first), is_released[is_first]
        counted, finder = cells.together, RowFinder.of(cells)
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


def _cannot_be_merged(original: Rows, plan: CountingPlan, merged: Sequence[str]) -> InputError:
    """Error for columns that have too many combinations even where all others are generalized to the top."""
    listed = ", ".join(f"'{name}'" for name in plan.together if name not in merged)
    problem = (
        f"{listed} must be counted value by value, because promises or losses are about these values or because they "
        f"are released unchanged, and have more than {plan.most_cells:,} combinations, which is all that fits in the "
        "memory given; the other columns were generalized to the top already"
    )
    hint = "ask for l and t of fewer columns (sensitive=), take slicing=false, another loss, or more memory"
    return InputError(problem, path=original.place, hint=hint, remedy=("memory", "parameters"))
