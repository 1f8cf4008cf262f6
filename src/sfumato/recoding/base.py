"""What all recoders share: from a table and a cover of its rows to a release with its papers, and new rows alike."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from sfumato.contract import Mechanism, Progress, Release
from sfumato.errors import PrivacyNotAchievableError, SchemaError
from sfumato.guarantees import Guarantee
from sfumato.manifest import AnyTable, draft_manifest
from sfumato.measures.anonymity import anonymity_level
from sfumato.measures.loss import generalized_certainty_penalty
from sfumato.recoding.axes import Axis, align, axes_of
from sfumato.recoding.cover import Cover, Generalized, generalize
from sfumato.schema import Column, Kind, Role
from sfumato.table.coding import Table
from sfumato.table.weighted import CountedTable, WeightedColumn

Ids = NDArray[np.int32]
Counts = NDArray[np.int64]
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
    """

    axes: tuple[Axis, ...]
    cover: Cover
    part_of: Callable[[Sequence[Axis]], Ids]
    entry_of_row: NDArray[np.intp] | None = None

    @cached_property
    def cells(self) -> tuple[Generalized, ...]:
        """Cells of every class, one entry an axis."""
        return generalize(self.axes, self.cover)

    @cached_property
    def certainty_penalty(self) -> float:
        """Global certainty penalty of the released rows (GCP)."""
        return certainty_penalty_of(self.cells, self._rows_of_class)

    @cached_property
    def anonymity_level(self) -> int:
        """Size of the smallest class of rows with equal cells."""
        return anonymity_level_of(self.cells, self._rows_of_class)

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
        return with_cells(table, self.axes, generalize(self.axes, own), self.part_of(aligned))


def certainty_penalty_of(cells: Sequence[Generalized], rows_of_class: Counts) -> float:
    """Global certainty penalty (GCP) of classes with so many rows."""
    return generalized_certainty_penalty(np.column_stack([own.penalties for own in cells]), rows_of_class)


def anonymity_level_of(cells: Sequence[Generalized], rows_of_class: Counts) -> int:
    """Rows of the smallest class, when those with equal cells are one."""
    alike = np.column_stack([own.of_class for own in cells])
    same = np.unique(alike, axis=0, return_inverse=True)[1]
    return anonymity_level(np.bincount(same.reshape(-1), rows_of_class))


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


def _described(axis: Axis) -> dict[str, Any]:
    """Say for the manifest how the cells of a column are to be read: by the order of which kind, if any."""
    kind = axis.described.kind if axis.described and axis.positions is not None else Kind.CATEGORICAL
    entry = {"name": axis.name, "column": axis.name, "rule": GENERALIZED, "kind": str(kind)}
    domain = axis.described.domain if axis.described else None
    return entry | ({"domain": list(domain)} if kind is Kind.ORDERED and domain else {})


class Recoder(Mechanism, BaseEstimator):  # type: ignore[misc]  # no types upstream
    """Base of the mechanisms that release ranges and sets of values instead of values.

    A subclass groups the rows (``recode``) and says what that guarantees (``guarantees``).
    """

    k: int

    @abstractmethod
    def recode(self, table: Table, *, progress: Progress | None = None) -> Recoding:
        """Group the rows of a table and cover each group's values."""

    @abstractmethod
    def guarantees(self, table: Table) -> list[Guarantee]:
        """Promises of a release of this table."""

    def parameters(self) -> dict[str, Any]:
        """Parameters for the manifest."""
        given = self.get_params(deep=False)
        return {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}

    def release(self, table: AnyTable, *, progress: Progress | None = None) -> Release:
        """Recode the quasi-identifiers of a table and describe the result.

        Raises
        ------
        PrivacyNotAchievableError
            If the table has fewer than k rows, or no grouping satisfies what is asked.
        """
        table = self._checked(table)
        recoding = self.recode(table, progress=progress)
        recoded = recoding.recoded(table)
        released = recoded.keep(c.name for c in table.schema if c.role is not Role.IDENTIFIER)
        utility = {
            "global_certainty_penalty": recoding.certainty_penalty,
            "n_classes_of_cells": int(recoding.cover.parts.shape[0]),
        }
        return self._drafted(table, released, recoding.axes, utility, recoding.anonymity_level)

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
            evidence={"utility": utility, "risk": {"anonymity_level": level}},
            seed=seed,
            recodings=[_described(axis) for axis in axes],
        )
        return Release(released, manifest)

    def _checked(self, table: AnyTable) -> Table:
        if not isinstance(table, Table):
            problem = "is a sparse 0/1 table, whose features have no ranges or sets to be coarsened into"
            raise SchemaError(problem, hint="use a mechanism that selects features", remedy=("mechanism",))
        self.check_parameters("k")
        check_group_size(self.k, table.n_rows)
        table.schema.check_quasi_identifiers("to coarsen")
        return table

    def _axes(self, table: Table) -> tuple[Axis, ...]:
        return axes_of(table, table.schema.names(Role.QUASI_IDENTIFIER))


def check_group_size(k: int, n_rows: int) -> None:
    """Refuse a k that the table cannot keep."""
    if k > n_rows:
        raise PrivacyNotAchievableError(
            f"groups of k = {k} rows in a table of {n_rows:,}", best_level=n_rows, hint="k is at most the row count"
        )
