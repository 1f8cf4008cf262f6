"""Releases that follow from the distinct rows of a large file: searched on them, each row looked up among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.contract import Progress, Release
from sfumato.counting.blocks import count_blocks
from sfumato.large.finding import RowFinder
from sfumato.large.memory import Memory, give_back
from sfumato.large.proposal import (
    Block,
    Proposal,
    kept_rows,
    names_but_identifiers,
    telling,
    with_all_columns,
    with_measured_levels,
)
from sfumato.schema import Schema
from sfumato.table.large import LargeTable, Told
from sfumato.table.weighted import CountedTable

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
        """Columns of which it must be known which values occur in each distinct row, but not how often."""
        ...

    def release_cells(
        self, cells: CountedTable, *, progress: Progress | None = None
    ) -> tuple[Release, NDArray[np.bool_]]:
        """Release distinct rows, and say which of them are released, in their order."""
        ...


@dataclass(frozen=True, repr=False, eq=False)
class CellProposal(Proposal):
    """Rows that are released as the distinct rows they are equal to; the release's table holds those."""

    _cells: CountedTable
    _is_released: NDArray[np.bool_]

    @property
    def schema(self) -> Schema:
        """Description of the columns that are written."""
        return self.original.schema

    def columns(self) -> dict[str, pa.Array]:
        """Values that the codes of the blocks stand for."""
        released, outline = self.released.columns, self.original.outline
        return {n: (released[n] if n in released else outline[n]).values for n in names_but_identifiers(outline.schema)}

    def blocks(self, told: Told | None = None) -> Iterator[Block]:
        """Released rows, block by block, in the order of the file."""
        counted, released = self._cells.together, self.released
        finder = finder_of(self._cells)
        place_of_cell = np.cumsum(self._is_released) - 1
        names = names_but_identifiers(self.original.schema)
        recoded = {name: released[name].codes for name in names if name in released.columns}
        as_they_are = [name for name in names if name not in recoded]
        for block in self.original.blocks([*counted, *as_they_are], told=told):
            cells = finder.find([np.asarray(block[name]) for name in counted])
            kept = self._is_released[cells]
            places = place_of_cell[cells[kept]]
            yield {n: recoded[n][places] if n in recoded else kept_rows(block[n], kept) for n in names}


def finder_of(cells: CountedTable) -> RowFinder:
    """Give what finds rows among distinct ones by the columns that were counted together."""
    columns = [cells[name] for name in cells.together]
    return RowFinder([column.codes for column in columns], [column.n_distinct for column in columns])


def propose_cells(
    original: LargeTable, mechanism: CellMechanism, memory: Memory, progress: Progress | None
) -> CellProposal:
    """Count the distinct rows of a large file, let a mechanism release them, and measure what it promises on them.

    A column that need only occur is not counted with the others if it has few values: combinations would be many more.
    """
    every, needed = columns_to_count(mechanism, original.schema), mechanism.counted_columns(original.schema)
    few = [name for name in every if name not in needed and _has_few(original, name)]
    names = [name for name in every if name not in few]
    n_flags = _TIMES_HELD * sum(original.outline[name].n_distinct for name in few)
    cells = count_blocks(
        original,
        names,
        beside=mechanism.counted_beside(original.schema),
        most_cells=memory.most_cells(len(names), n_flags),
        told=telling(progress, original.n_rows, "rows counted"),
    )
    if few:
        cells = _with_occurring(original, cells, few, telling(progress, original.n_rows, "rows looked up"))
    release, is_released = release_of_cells(mechanism, cells, original.schema, progress)
    return CellProposal(original, release, cells, is_released)


def columns_to_count(mechanism: CellMechanism, schema: Schema) -> tuple[str, ...]:
    """Columns that have to be counted together; refuses a table without a quasi-identifier."""
    schema.check_quasi_identifiers("to coarsen")
    return tuple(dict.fromkeys([*mechanism.counted_columns(schema), *mechanism.occurring_columns(schema)]))


def _has_few(original: LargeTable, name: str) -> bool:
    return not original.is_open(name) and original.outline[name].n_distinct <= _MOST_FLAGS


def _with_occurring(original: LargeTable, cells: CountedTable, names: Sequence[str], told: Told | None) -> CountedTable:
    """Find in another pass which values of some columns occur in each distinct row."""
    columns = {**cells.columns, **{name: original.outline[name] for name in names}}
    counted, finder = cells.together, finder_of(cells)
    occurring = {n: np.zeros((len(cells.row_counts), columns[n].n_distinct), dtype=np.bool_) for n in names}
    for block in original.blocks([*counted, *names], told=told):
        places = finder.find([np.asarray(block[name]) for name in counted])
        for name, occurs in occurring.items():
            occurs[places, np.asarray(block[name])] = True
    return replace(cells, schema=original.schema.keep(columns), columns=columns, occurring=occurring)


def release_of_cells(
    mechanism: CellMechanism, cells: CountedTable, schema: Schema, progress: Progress | None
) -> tuple[Release, NDArray[np.bool_]]:
    """Let a mechanism release distinct rows, measure what it promises on them, and describe all columns."""
    give_back()
    release, is_released = mechanism.release_cells(cells, progress=progress)
    give_back()
    return with_all_columns(with_measured_levels(release), schema), is_released
