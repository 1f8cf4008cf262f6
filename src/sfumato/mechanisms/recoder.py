"""What all recoders share: from a table and a cover of its rows to a release with its papers, and new rows alike."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.errors import PrivacyNotAchievableError, SchemaError
from sfumato.guarantees import Guarantee
from sfumato.guarantees.request import k_of
from sfumato.learning.c45.tree import MISSING
from sfumato.manifest import AnyTable, draft_manifest
from sfumato.measures.anonymity import anonymity_level
from sfumato.measures.loss import (
    generalized_certainty_penalty,
    normalized_certainty_penalty_of_ranges,
    normalized_certainty_penalty_of_sets,
)
from sfumato.mechanisms.axes import Axis, align, axes_of, unknown_on
from sfumato.mechanisms.base import Mechanism, Release, settings_of
from sfumato.mechanisms.new_rows import RecodingTransformer
from sfumato.progress import Progress
from sfumato.schema import WITHHELD, Column, Kind, Role, Schema
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.generalized import ANY, write_range, write_set
from sfumato.table.weighted import CountedTable, WeightedColumn

# From groups of rows to released columns: what each group's cells stand for and what that costs.


Penalties = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Cover:
    """Which cells are released together and which rows' values they represent.

    A *part* has member rows; a *class* stands for the values of all members of its parts. Every row has one class,
    one of whose parts it is a member of.

    Parameters
    ----------
    of_row : ndarray of int32, shape (n_rows,)
        Class of each row.
    parts : csr_matrix of shape (n_classes, n_parts)
        Parts of each class (any non-zero entry).
    members : csr_matrix of shape (n_parts, n_rows)
        Member rows of each part (any non-zero entry); no part is empty.
    home : ndarray of int32, shape (n_rows,)
        Part that each row falls into, whatever others it is also a member of: that of new rows like it.
    """

    of_row: NDArray[np.int32]
    parts: sp.csr_matrix
    members: sp.csr_matrix
    home: NDArray[np.int32]

    def __repr__(self) -> str:
        return f"Cover({len(self.of_row):,} rows, {self.parts.shape[0]:,} classes, {self.members.shape[0]:,} parts)"

    @classmethod
    def of_groups(cls, groups_of_rows: NDArray[np.integer]) -> Cover:
        """Let every group represent its own rows, and no other; groups are renumbered from 0 in their order."""
        groups, numbered = np.unique(groups_of_rows, return_inverse=True)
        n_rows, n_groups = len(groups_of_rows), len(groups)
        members = sp.csr_matrix((np.ones(n_rows, dtype=np.int8), (numbered, np.arange(n_rows))), (n_groups, n_rows))
        of_row = numbered.astype(np.int32)
        return cls(of_row, sp.identity(n_groups, dtype=np.int8, format="csr"), members, of_row)

    @classmethod
    def of_parts(cls, cover: Cover) -> Cover:
        """Let every part be a class of its own, as new rows see it."""
        n_parts = cover.members.shape[0]
        return cls(cover.home, sp.identity(n_parts, dtype=np.int8, format="csr"), cover.members, cover.home)


@dataclass(frozen=True, eq=False, repr=False)
class Generalized:
    """Cells of each class on one axis: texts (``None`` is missing) by number, and their certainty penalty."""

    texts: tuple[str | None, ...]
    of_class: NDArray[np.int32]
    penalties: Penalties

    def column(self, of_row: NDArray[np.integer]) -> CodedColumn:
        """Released column of rows whose classes are given."""
        values = pa.array(self.texts, pa.string())
        return CodedColumn(self.of_class[of_row], values).recode(values)


def generalize(axes: Sequence[Axis], cover: Cover) -> tuple[Generalized, ...]:
    """Give every class of a cover its cell on each axis: a range where values have positions, else a set.

    A cell that stands for all values of a categorical column is ``*``; see :mod:`sfumato.table.generalized`.
    """
    return tuple(_ranges(axis, cover) if axis.positions is not None else _sets(axis, cover) for axis in axes)


def _ranges(axis: Axis, cover: Cover) -> Generalized:
    positions = axis.positions
    if positions is None:
        raise AssertionError
    codes = axis.codes[cover.members.indices]
    n_values = axis.n_values
    low = _reduced(np.minimum, np.where(codes == MISSING, n_values, codes), cover)
    high = _reduced(np.maximum, codes, cover)
    may_be_missing = _reduced(np.maximum, (codes == MISSING).astype(np.int32), cover) > 0
    shapes, numbered = np.unique(np.column_stack([low, high, may_be_missing]), axis=0, return_inverse=True)
    texts = [
        write_range(axis.labels[a], axis.labels[b], may_be_missing=bool(m)) if b != MISSING else None
        for a, b, m in shapes.tolist()
    ]
    is_known = shapes[:, 1] != MISSING
    penalties = np.zeros(len(shapes))
    if is_known.any():
        ends = positions[np.where(is_known, shapes[:, 0], 0)], positions[np.where(is_known, shapes[:, 1], 0)]
        penalties = normalized_certainty_penalty_of_ranges(*ends, positions[0], positions[-1])
        # One more possibility than the numbers of the range: it costs as much as one value of a categorical column.
        penalties = np.minimum(penalties + shapes[:, 2] / (n_values + 1), 1.0) * is_known
    of_class = numbered.reshape(-1).astype(np.int32)
    return Generalized(tuple(texts), of_class, penalties[of_class])


def _reduced(extreme: np.ufunc, values: NDArray[np.int32], cover: Cover) -> NDArray[np.int32]:
    """Smallest or largest of the members' values in each class."""
    of_part = extreme.reduceat(values, cover.members.indptr[:-1])
    return np.asarray(extreme.reduceat(of_part[cover.parts.indices], cover.parts.indptr[:-1]))


def _sets(axis: Axis, cover: Cover) -> Generalized:
    n_rows, n_values = len(axis.codes), axis.n_values + axis.has_missing
    codes = np.where(axis.codes == MISSING, axis.n_values, axis.codes)
    one_hot = sp.csr_matrix((np.ones(n_rows, dtype=np.int32), codes, np.arange(n_rows + 1)), (n_rows, n_values))
    held = cover.parts.astype(np.int32) @ _presence(cover.members.astype(np.int32) @ one_hot)
    held.sort_indices()
    starts, raw = (held.indptr.astype(np.int64) * 4).tolist(), held.indices.astype(np.int32).tobytes()
    number_of: dict[bytes, int] = {}
    of_class = np.empty(held.shape[0], dtype=np.int32)
    for i in range(held.shape[0]):
        of_class[i] = number_of.setdefault(raw[starts[i] : starts[i + 1]], len(number_of))
    sets = [np.frombuffer(key, dtype=np.int32) for key in number_of]
    penalties = normalized_certainty_penalty_of_sets([len(s) for s in sets], max(n_values, 1))
    texts = [_set_text(axis, members.tolist(), n_values) for members in sets]
    return Generalized(tuple(texts), of_class, penalties[of_class])


def _presence(counts: sp.csr_matrix) -> sp.csr_matrix:
    return sp.csr_matrix((np.ones(counts.nnz, dtype=np.int32), counts.indices, counts.indptr), counts.shape)


def _set_text(axis: Axis, members: list[int], n_values: int) -> str | None:
    if len(members) == n_values > 1:
        return ANY
    labels = [axis.labels[code] for code in members if code < axis.n_values]
    return write_set(labels, may_be_missing=len(labels) < len(members))


Ids = NDArray[np.int32]
Counts = NDArray[np.int64]
_LARGEST_KEY = 2**62
GENERALIZED = "generalized"
"""Rule of a recoding whose cells say themselves what they stand for."""


@dataclass(frozen=True, eq=False, repr=False)
class Recoding:
    """A table's quasi-identifiers, how its rows are covered, and the part that a new row falls into.

    Parameters
    ----------
    axes, cover
        Of the table's rows, or of its distinct rows.
    part_of : callable
        Gives the parts of new rows.
    entry_of_row : ndarray of int or None
        Which of the distinct rows each row of the table is; ``None``: axes and cover are of the rows themselves.
    cover_of : mapping of str to Cover
        Axes whose cells stand for other rows than the cover says: covers with the same classes, a part each.
    """

    axes: tuple[Axis, ...]
    cover: Cover
    part_of: Callable[[Sequence[Axis]], Ids]
    entry_of_row: NDArray[np.intp] | None = None
    cover_of: Mapping[str, Cover] = field(default_factory=dict)

    @cached_property
    def cells(self) -> tuple[Generalized, ...]:
        """Cells of every class, one entry an axis."""
        return self._generalized_by(self.cover)

    def _generalized_by(self, cover: Cover) -> tuple[Generalized, ...]:
        return tuple(generalize([axis], self.cover_of.get(axis.name, cover))[0] for axis in self.axes)

    @cached_property
    def certainty_penalty(self) -> float:
        """Global certainty penalty of the released rows (GCP)."""
        return certainty_penalty_of(self.cells, self._rows_of_class)

    @cached_property
    def rows_alike(self) -> Counts:
        """Rows of each combination of cells; classes of the cover with equal cells are one."""
        return rows_alike(self.cells, self._rows_of_class)

    @cached_property
    def _rows_of_class(self) -> Counts:
        counts = np.bincount(self.cover.of_row, self.axes[0].weights, minlength=self.cover.parts.shape[0])
        return counts.astype(np.int64)

    @property
    def names(self) -> tuple[str, ...]:
        """Columns that are recoded."""
        return tuple(axis.name for axis in self.axes)

    def as_cells(self, table: Table) -> Table:
        """Return a recoded table as an encoder of cells reads it: as it is."""
        return table

    def encodable(self) -> dict[str, Column]:
        """Describe the recoded columns for an encoder, by the kind of their original values."""
        return {axis.name: axis.described or Column(axis.name) for axis in self.axes}

    def recoded(self, table: Table) -> Table:
        """Put the released cells into the table that was covered."""
        of_row = self.cover.of_row if self.entry_of_row is None else self.cover.of_row[self.entry_of_row]
        return with_cells(table, self.axes, self.cells, of_row)

    def generalized(self, table: Table) -> Table:
        """Give the rows of another table the cells of the parts that they fall into."""
        own = Cover.of_parts(self.cover)
        aligned = [align(axis, table[axis.name]) for axis in self.axes]
        return with_cells(table, self.axes, self._generalized_by(own), self.part_of(aligned))

    @property
    def has_parts_of_its_own(self) -> bool:
        """Whether cells of new rows, those of parts, are not those of released classes: of fewer rows than promised."""
        n_classes, n_parts = self.cover.parts.shape
        return bool(n_classes != n_parts or self.cover.parts.nnz != n_classes)

    def unknown(self, table: Table) -> dict[str, NDArray[np.bool_]]:
        """Say by column which rows of another table have a value that this recoding knows nothing of.

        That is a category, or missing, which no covered row has, or a number (a date, a level) outside their range.
        """
        return {axis.name: unknown_on(axis, table[axis.name]) for axis in self.axes}


def certainty_penalty_of(cells: Sequence[Generalized], rows_of_class: Counts) -> float:
    """Global certainty penalty (GCP) of classes with so many rows."""
    return generalized_certainty_penalty(np.column_stack([own.penalties for own in cells]), rows_of_class)


def rows_alike(cells: Sequence[Generalized], rows_of_class: Counts) -> Counts:
    """Rows of each combination of cells, given the rows of classes, of which several may have equal cells."""
    alike = np.column_stack([own.of_class for own in cells])[rows_of_class > 0]
    same = np.unique(alike, axis=0, return_inverse=True)[1]
    return np.bincount(same.reshape(-1), rows_of_class[rows_of_class > 0]).astype(np.int64)


def with_cells(table: Table, axes: Sequence[Axis], cells: Sequence[Generalized], of_row: Ids) -> Table:
    """Put the cells of classes into a table whose rows, or distinct rows, are of these classes."""
    columns = dict(table.columns)
    schema = dict(table.schema.columns)
    for axis, generalized in zip(axes, cells, strict=True):
        column = generalized.column(of_row)
        if isinstance(table, CountedTable):
            column = WeightedColumn(column.codes, column.values, table.row_counts)
        columns[axis.name] = column
        schema[axis.name] = replace(schema[axis.name], kind=Kind.CATEGORICAL, domain=None, hierarchy=None)
    return replace(table, schema=replace(table.schema, columns=schema), columns=columns)


def described_axis(axis: Axis, rule: str = GENERALIZED) -> dict[str, Any]:
    """Say for the manifest how the cells of a column are to be read: by the order of which kind, if any."""
    kind = axis.described.kind if axis.described and axis.positions is not None else Kind.CATEGORICAL
    entry = {"name": axis.name, "column": axis.name, "rule": rule, "kind": str(kind)}
    domain = axis.described.domain if axis.described else None
    return entry | ({"domain": list(domain)} if kind is Kind.ORDERED and domain else {})


def distinct_rows(table: Table, names: Sequence[str]) -> tuple[CountedTable, NDArray[np.intp]]:
    """Find the distinct rows of some columns with their counts, and which one each row is.

    They come in the order of their codes, as those of a table that is not in memory, which is counted already.
    """
    if isinstance(table, CountedTable):
        return table, np.arange(len(table.row_counts))
    columns = tuple(dict.fromkeys(names))
    key, span = np.zeros(table.n_rows, dtype=np.int64), 1
    for name in columns:
        n_values = table[name].n_distinct
        if span * n_values > _LARGEST_KEY:
            found, key = np.unique(key, return_inverse=True)
            span = len(found)
        key = key * n_values + table[name].codes
        span *= n_values
    _, first, cell_of_row, counts = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    codes = [table[name].codes[first] for name in columns]
    return CountedTable.of(table.keep(columns), columns, codes, counts), cell_of_row


class Recoder(RecodingTransformer, Mechanism):
    """Base of the mechanisms that release ranges and sets of values instead of values.

    A subclass groups the rows (``recode``) and says what that guarantees (``guarantees``).
    """

    takes_cells: ClassVar[bool] = True
    k: int
    privacy: Sequence[Guarantee] = ()
    recoding_: Recoding

    @property
    def size(self) -> int:
        """Rows of a group, at least: the k that is asked for."""
        return int(k_of(self.k, self.privacy))

    @abstractmethod
    def recode(self, table: Table, *, progress: Progress | None = None) -> Recoding:
        """Group the rows of a table and cover each group's values."""

    @abstractmethod
    def guarantees(self, table: Table) -> list[Guarantee]:
        """Promises of a release of this table."""

    def remarks(self) -> dict[str, Any]:
        """Say of the last recoding, besides its figures, what the manifest gives as evidence: nothing."""
        return {}

    def further_evidence(self) -> dict[str, Any]:
        """Give parts of the evidence besides utility and risk, of the last recoding: none."""
        return {}

    def parameters(self) -> dict[str, Any]:
        """Parameters for the manifest."""
        given = settings_of(self)
        return {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}

    def release(self, table: AnyTable, *, progress: Progress | None = None) -> Release:
        """Recode the quasi-identifiers of a table and describe the result.

        Raises
        ------
        PrivacyNotAchievableError
            If the table has fewer than k rows, or no grouping satisfies what is asked.
        """
        table = self._checked(table)
        self.recoding_ = recoding = self.recode(table, progress=progress)
        recoded = recoding.recoded(table)
        released = recoded.keep(c.name for c in table.schema if c.role not in WITHHELD)
        utility = {
            "global_certainty_penalty": recoding.certainty_penalty,
            "n_classes_of_cells": len(recoding.rows_alike),
            **self.remarks(),
        }
        return self._drafted(table, released, recoding.axes, utility, anonymity_level(recoding.rows_alike))

    def counted_beside(self, schema: Schema) -> tuple[str, ...]:
        """Columns that are counted with each quasi-identifier by itself: none."""
        return ()

    def occurring_columns(self, schema: Schema) -> tuple[str, ...]:
        """Columns of which it must be known which values occur in each combination: none."""
        return ()

    def release_cells(
        self, cells: CountedTable, *, progress: Progress | None = None
    ) -> tuple[Release, NDArray[np.bool_]]:
        """Release distinct rows that were counted; says as well that all of them are released."""
        return self.release(cells, progress=progress), np.ones(len(cells.row_counts), dtype=np.bool_)

    def _drafted(
        self,
        table: Table,
        released: Table,
        axes: Sequence[Axis],
        utility: Mapping[str, Any],
        level: int,
        seed: int | None = None,
    ) -> Release:
        manifest = draft_manifest(
            table,
            released,
            mechanism=self.mechanism_name,
            parameters=self.parameters(),
            guarantees=self.guarantees(table),
            evidence={"utility": utility, "risk": {"anonymity_level": level}, **self.further_evidence()},
            seed=seed,
            recodings=[described_axis(axis) for axis in axes],
        )
        return Release(released, manifest)

    def _checked(self, table: AnyTable) -> Table:
        if not isinstance(table, Table):
            problem = "is a sparse 0/1 table, whose features have no ranges or sets to be coarsened into"
            raise SchemaError(problem, hint="use a mechanism that selects features", remedy=("mechanism",))
        self._check_k()
        check_group_size(self.size, table.n_rows)
        table.schema.check_quasi_identifiers("to coarsen")
        return table

    def _check_k(self) -> None:
        self.check_parameters("k")

    def _axes(self, table: Table) -> tuple[Axis, ...]:
        return axes_of(table, table.schema.names(Role.QUASI_IDENTIFIER))


def check_group_size(k: int, n_rows: int) -> None:
    """Refuse a k that the table cannot keep."""
    if k > n_rows:
        raise PrivacyNotAchievableError(
            f"groups of k = {k} rows in a table of {n_rows:,}",
            best_level=n_rows,
            hint=f"ask for a k of at most {n_rows:,}, or give more rows",
        )
