"""What is to be released of a table that is not in memory, whatever way it was found and wherever its rows are.

A proposal is found on counts or on a sample. A file is then written in one pass over its blocks
(:meth:`Proposal.write`); a cluster writes what :mod:`sfumato.publishing.spark` makes of the proposal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO, Protocol, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.audit.verify import measured_level
from sfumato.counting.blocks import Persons, count_merged
from sfumato.counting.cells import TooManyCellsError
from sfumato.counting.crowds import fewest_in_classes, first_of_each, without_persons
from sfumato.counting.persons import fewest_persons
from sfumato.counting.rows import count_rows
from sfumato.counting.sorting import Block, RowSorter
from sfumato.errors import InputError, SchemaError
from sfumato.manifest import declared_formats, describe_column, with_audited
from sfumato.mechanisms.base import Release
from sfumato.progress import Progress, in_rows
from sfumato.rows.memory_limit import Memory, give_back
from sfumato.rows.out_of_core import LargeTable
from sfumato.schema import WITHHELD, Kind, Role, Schema
from sfumato.table.binarize import Binarization
from sfumato.table.binary import BinaryTable, Feature
from sfumato.table.coding import Table
from sfumato.table.io.write import BlockWriter
from sfumato.table.row_order import AS_READ
from sfumato.table.weighted import CountedTable, OutlinedTable


@dataclass(frozen=True, repr=False, eq=False)
class Proposal(ABC):
    """What is to be released of a table that is not in memory.

    Parameters
    ----------
    original : LargeTable or ClusterTable
    release : Release
        Its manifest describes all columns that are to be written; its table holds what the mechanism looked at.
    """

    original: OutlinedTable
    release: Release

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.original!r}, {self.release.manifest.mechanism['name']})"

    def with_order_kept(self) -> Self:
        """Return the same proposal with its rows in the order of the original, which the manifest says."""
        return replace(self, release=self.release.with_order_kept())

    @property
    def large(self) -> LargeTable:
        """Original, whose rows are read in blocks."""
        return as_large(self.original)

    @property
    def released(self) -> Table:
        """Table of the release."""
        if not isinstance(self.release.table, Table):
            raise AssertionError
        return self.release.table

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """Description of the columns that are written."""

    @abstractmethod
    def columns(self) -> dict[str, pa.Array]:
        """Values that the codes of the blocks represent, of every column that is written."""

    @abstractmethod
    def blocks(self, progress: Progress | None = None) -> Iterator[Block]:
        """Released rows, block by block: codes, or cells of columns that are open in the original."""

    def write(self, file: BinaryIO, output_format: str, memory: Memory, progress: Progress | None = None) -> None:
        """Write the released rows in one pass over the original, in their canonical order unless that is kept."""
        columns = self.columns()
        blocks = self.blocks(progress)
        if self.release.manifest.output.get("order") != AS_READ:
            kinds = {entry["name"]: Kind(entry["kind"]) for entry in self.release.manifest.output["columns"]}
            blocks = RowSorter(columns, kinds, output_format, memory.n_bytes).sorted(lambda: self.blocks(progress))
        with BlockWriter(file, output_format, self.schema, columns) as writer:
            for block in blocks:
                writer.write(block)
        self.original.ensure_unchanged()


def as_large(rows: OutlinedTable) -> LargeTable:
    """Give rows that are read in blocks; who asks knows that they are."""
    if not isinstance(rows, LargeTable):
        raise AssertionError
    return rows


def kept_rows(cells: NDArray[np.int32] | pa.Array, kept: NDArray[np.bool_]) -> NDArray[np.int32] | pa.Array:
    """Cells of some rows of a block."""
    return cells.filter(pa.array(kept)) if isinstance(cells, pa.Array) else cells[kept]


def names_but_identifiers(schema: Schema) -> list[str]:
    """Columns that do not name people."""
    return [column.name for column in schema if column.role not in WITHHELD]


def with_measured_levels(release: Release, fewest_persons: int | None = None) -> Release:
    """State what the guarantees reach, measured by the audit on the release's table of distinct rows or groups.

    The fewest persons of a class, whom that table does not hold, were counted before.
    """
    levels = [
        fewest_persons if promised.by_persons else measured_level(promised, release.table)
        for promised in release.manifest.promised()
    ]
    return release.with_manifest(guarantees=with_audited(release.manifest.guarantees, levels))


def with_all_columns(release: Release, schema: Schema) -> Release:
    """Describe the columns too that the mechanism did not look at: published unchanged, or dropped."""
    manifest = release.manifest
    described = {entry["name"]: entry for entry in manifest.output["columns"]}
    kept = names_but_identifiers(schema)
    # which values released rows have is not counted here, so that an order that was recognised is not stated
    columns = [described.get(name) or describe_column(schema[name].restricted_to(())) for name in kept]
    own = {c.name: list(c.missing) for c in schema if c.missing is not None}
    return release.with_manifest(
        input={**(manifest.input or {}), "columns": len(schema)} | declared_formats(schema),
        output={**manifest.output, "columns": columns},
        missing={**manifest.missing, **({"columns": own} if own else {})},
        dropped_columns=tuple(name for name in schema.names() if name not in kept),
    )


# Places of rows among many distinct rows.


Codes = NDArray[np.int32]
Places = NDArray[np.intp]

_LARGEST_KEY = 2**62


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

    def find(self, columns: Sequence[Codes]) -> Places:
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


# Releases that follow from the distinct rows of a large file: searched on them, each row looked up among them.


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
class CellProposal(Proposal):
    """Rows that are released as the distinct rows they are equal to; the release's table holds those.

    ``rows`` is the original with the codes that were counted: its own, or those of values that were merged.
    """

    rows: OutlinedTable
    cells: CountedTable
    is_released: NDArray[np.bool_]

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
        finder = finder_of(self.cells)
        place_of_cell = np.cumsum(self.is_released) - 1
        names = names_but_identifiers(self.original.schema)
        recoded = {name: released[name].codes for name in names if name in released.columns}
        as_they_are = [name for name in names if name not in recoded]
        for block in as_large(self.rows).blocks([*counted, *as_they_are], progress=progress):
            cells = finder.find([np.asarray(block[name]) for name in counted])
            kept = self.is_released[cells]
            places = place_of_cell[cells[kept]]
            yield {n: recoded[n][places] if n in recoded else kept_rows(block[n], kept) for n in names}


def finder_of(cells: CountedTable) -> RowFinder:
    """Give what finds rows among distinct ones by the columns that were counted together."""
    columns = [cells[name] for name in cells.together]
    return RowFinder([column.codes for column in columns], [column.n_distinct for column in columns])


def propose_cells(
    original: OutlinedTable, mechanism: CellMechanism, memory: Memory, progress: Progress | None
) -> CellProposal:
    """Count the distinct rows of a table, let a mechanism release them, and measure what it promises on them.

    A column that need only occur is not counted with the others if it has few values: combinations would be many more.
    On a cluster it is, for what occurs in each of them would take another pass.
    """
    plan = CountingPlan.of(original, mechanism, memory)
    cells = count_rows(
        original,
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
    original: OutlinedTable,
    release: Release,
    rows: OutlinedTable,
    cells: CountedTable,
    is_released: NDArray[np.bool_],
    plan: CountingPlan,
    memory: Memory,
    progress: Progress | None,
) -> CellProposal:
    """Measure what is promised, describe all columns, and leave the persons out that distinct rows were counted with.

    Parameters
    ----------
    rows : LargeTable or ClusterTable
        The original with the codes that were counted.
    is_released : bool array
        Of the distinct rows; equal for those that differ by the person alone.
    """
    give_back()
    if plan.persons is None:
        return CellProposal(original, completed(release, original.schema), rows, cells, is_released)
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
    if fewest is None:
        give_back()
        counting = in_rows(progress, original.n_rows, "rows counted by persons")
        fewest = fewest_persons(rows, person, cells, classes, finder_of(cells).find, memory.n_bytes // 2, counting)
    give_back()
    return CellProposal(original, completed(release, original.schema, fewest), rows, cells, is_released)


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
    def of(cls, original: OutlinedTable, mechanism: CellMechanism, memory: Memory) -> CountingPlan:
        """Plan what a mechanism needs."""
        every, needed = columns_to_count(mechanism, original.schema), mechanism.counted_columns(original.schema)
        is_large = isinstance(original, LargeTable)  # on a cluster what occurs would take another pass
        few = tuple(name for name in every if is_large and name not in needed and _has_few(original, name))
        names = tuple(name for name in every if name not in few)
        n_flags = _TIMES_HELD * sum(original.outline[name].n_distinct for name in few)
        person = original.schema.person if original.n_persons is not None else None
        # one more than a class needs: then distinct rows tell nearly always how many the smallest class has
        persons = None if person is None else (person, int(getattr(mechanism, "k", 1)) + 1)
        return cls(names, few, memory.most_cells(len(names) + (persons is not None), n_flags), persons)

    def with_occurring(self, rows: OutlinedTable, cells: CountedTable, progress: Progress | None) -> CountedTable:
        """Find which values occur in each distinct row, where some columns need only occur."""
        if not self.occurring:
            return cells
        return _with_occurring(as_large(rows), cells, self.occurring, in_rows(progress, rows.n_rows, "rows looked up"))


def columns_to_count(mechanism: CellMechanism, schema: Schema) -> tuple[str, ...]:
    """Columns that have to be counted together; refuses a table without a quasi-identifier."""
    schema.check_quasi_identifiers("to coarsen")
    return tuple(dict.fromkeys([*mechanism.counted_columns(schema), *mechanism.occurring_columns(schema)]))


def _has_few(original: OutlinedTable, name: str) -> bool:
    return not original.is_open(name) and original.outline[name].n_distinct <= _MOST_FLAGS


def _with_occurring(
    original: LargeTable, cells: CountedTable, names: Sequence[str], progress: Progress | None
) -> CountedTable:
    """Find in another pass which values of some columns occur in each distinct row."""
    columns = {**cells.columns, **{name: original.outline[name] for name in names}}
    counted, finder = cells.together, finder_of(cells)
    occurring = {n: np.zeros((len(cells.row_counts), columns[n].n_distinct), dtype=np.bool_) for n in names}
    for block in original.blocks([*counted, *names], progress=progress):
        places = finder.find([np.asarray(block[name]) for name in counted])
        for name, occurs in occurring.items():
            occurs[places, np.asarray(block[name])] = True
    return replace(cells, schema=original.schema.keep(columns), columns=columns, occurring=occurring)


def completed(release: Release, schema: Schema, fewest_persons: int | None = None) -> Release:
    """Measure what is promised on the release's distinct rows, and describe all columns."""
    give_back()
    return with_all_columns(with_measured_levels(release, fewest_persons), schema)


# Releases of binary features of a large file: searched on its distinct patterns, written column by column.


_ZERO_ONE = pa.array([0, 1], type=pa.int8())
_MOST_STEPS = 256
"""Steps at most in which features are left out."""


class PatternMechanism(Protocol):
    """A mechanism that chooses among binary features and treats rows alike that are equal in them and in the target.

    This is what ``needs = Needs.FEATURE_COUNTS`` asks of it.
    """

    def binarization(self, outline: Table) -> Binarization:
        """Find the features, given the columns each by itself."""
        ...

    def release_patterns(
        self,
        outline: Table,
        patterns: BinaryTable,
        *,
        offered: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> Release:
        """Release distinct rows that represent many; ``offered`` are the features to choose from, where not all are."""
        ...


@dataclass(frozen=True, repr=False, eq=False)
class FeatureProposal(Proposal):
    """Some features of every row, and the columns that are published unchanged.

    ``places`` is the original with places of features in its quasi-identifiers (see
    :class:`~sfumato.table.binarize.Binarization`), so that each row's features follow from its own codes.
    """

    places: OutlinedTable
    chosen: tuple[tuple[Feature, int], ...]

    @property
    def schema(self) -> Schema:
        """Description of the columns that are written."""
        return self.released.schema

    def columns(self) -> dict[str, pa.Array]:
        """Values that the codes of the blocks represent."""
        return {f.name: _ZERO_ONE for f, _ in self.chosen} | {n: self.released[n].values for n in self.beside}

    @property
    def beside(self) -> list[str]:
        """Columns that travel along."""
        features = {feature.name for feature, _ in self.chosen}
        return [name for name in self.released.columns if name not in features]

    def blocks(self, progress: Progress | None = None) -> Iterator[Block]:
        """All rows, block by block, in the order of the file."""
        beside = self.beside
        used = list(dict.fromkeys(feature.column for feature, _ in self.chosen))
        for block in as_large(self.places).blocks([*used, *beside], progress=progress):
            features = {f.name: np.asarray(block[f.column] == place, dtype=np.int32) for f, place in self.chosen}
            yield features | {name: block[name] for name in beside}


def propose_features(
    original: OutlinedTable, mechanism: PatternMechanism, memory: Memory, progress: Progress | None
) -> FeatureProposal:
    """Count the distinct patterns of a table, let a mechanism choose features, and measure what it promises."""
    outline = original.outline
    target = outline.schema.target
    if target is None:
        problem = "no column has the role target"
        raise SchemaError(problem, hint="name the target column", remedy=("target",))
    outline.schema.check_quasi_identifiers("to make features of")
    binarization = mechanism.binarization(outline)
    places = replace(original, outline=binarization.places(outline))
    counted, offered = _counted_patterns(places, binarization, (*binarization.columns, target), memory, progress)
    give_back()
    patterns = binarization.applied_to_places(counted, outline)
    if offered is None:
        release = mechanism.release_patterns(outline, patterns, progress=progress)
    else:
        release = mechanism.release_patterns(outline, patterns, offered=offered, progress=progress)
    give_back()
    by_name = {feature.name: (feature, binarization.place(feature)) for feature in binarization.features}
    chosen = tuple(by_name[c["name"]] for c in release.manifest.output["columns"] if c["name"] in by_name)
    return FeatureProposal(original, with_measured_levels(release), places, chosen)


def _counted_patterns(
    places: OutlinedTable, binarization: Binarization, names: tuple[str, ...], memory: Memory, progress: Progress | None
) -> tuple[CountedTable, Sequence[int] | None]:
    """Count the distinct patterns, without the rarest features where not all fit; says which features are in them.

    A choice among some of the features is as exact from the patterns of these as from those of all features.
    """
    most, n_rows = memory.most_cells(len(names)), places.n_rows
    try:
        return count_rows(places, names, most_cells=most, progress=in_rows(progress, n_rows, "rows counted")), None
    except TooManyCellsError:
        if not isinstance(places, LargeTable):
            raise  # merged values are counted block by block
        give_back()
    left_out = _rarest_first(places.outline, binarization)
    steps = [_merged_places(binarization, features) for features in left_out]
    counting = in_rows(progress, n_rows, "rows counted with fewer features")
    try:
        counted, step = count_merged(places, names, steps, pairs={}, most_cells=most, progress=counting)
    except TooManyCellsError:
        problem = f"has too many distinct values to be counted with even one feature: more than {most:,} do not fit"
        hint = "round or group its values in the file first, name another target, or give more memory"
        raise SchemaError(problem, column=names[-1], hint=hint, remedy=("target", "memory")) from None
    return counted, [i for i in range(len(binarization.features)) if i not in left_out[step]]


def _rarest_first(outline: Table, binarization: Binarization) -> list[set[int]]:
    """Ever more features to leave out, those with the fewest ones first; the last step leaves one."""
    features = binarization.features
    ones = [outline[feature.column].counts[binarization.place(feature)] for feature in features]
    order = np.argsort(ones, kind="stable").tolist()
    stride = -(-len(features) // _MOST_STEPS)
    return [set(order[:n]) for n in [*range(0, len(features) - 1, stride), len(features) - 1]]


def _merged_places(binarization: Binarization, left_out: Collection[int]) -> dict[str, NDArray[np.int32]]:
    """Give features that are left out the place of their column that has none."""
    merged = {name: np.arange(len(binarization.assignments[name].features) + 1) for name in binarization.columns}
    for i in left_out:
        feature = binarization.features[i]
        merged[feature.column][binarization.place(feature)] = len(merged[feature.column]) - 1
    return {name: own.astype(np.int32) for name, own in merged.items()}
