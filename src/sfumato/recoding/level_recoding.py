"""A table taken to levels of hierarchies: which rows are released, at which levels, and as which labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.recoding.axes import positions_of
from sfumato.recoding.covering import Covered
from sfumato.recoding.hierarchy import ROOT, Hierarchy
from sfumato.recoding.label_meaning import listed_labels
from sfumato.schema import Column, Kind
from sfumato.table.cells import as_text
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.generalized import write_value

SUPPRESSED = -1
HIERARCHY = "hierarchy"
"""Rule of a recoding whose cells are labels of a hierarchy."""


@dataclass(frozen=True, eq=False, repr=False)
class LevelRecoding:
    """Released labels of a table's quasi-identifiers.

    Parameters
    ----------
    described : tuple of Column
        The quasi-identifiers.
    hierarchies : tuple of Hierarchy
    covered : tuple of Covered
        The hierarchies fitted to the table's columns.
    levels : int array of shape (n_settings, n_columns)
        Level combinations that rows are released at; the first is that of most rows and of new ones.
    setting_of_row : int array
        Which combination each row is released at, -1 where it is suppressed.
    certainty_penalty : float
        Mean over rows and columns of the share of a hierarchy's values that a cell leaves open; 0 for a cell of one
        value, 1 for a suppressed one.
    """

    described: tuple[Column, ...]
    hierarchies: tuple[Hierarchy, ...]
    covered: tuple[Covered, ...]
    levels: NDArray[np.intp]
    setting_of_row: NDArray[np.intp]
    certainty_penalty: float

    def __repr__(self) -> str:
        return f"LevelRecoding({len(self.setting_of_row):,} rows, {self.n_suppressed:,} suppressed)"

    @property
    def names(self) -> tuple[str, ...]:
        """Columns that are recoded."""
        return tuple(column.name for column in self.described)

    @property
    def n_suppressed(self) -> int:
        """Rows that are not released."""
        return int((self.setting_of_row == SUPPRESSED).sum())

    @property
    def is_released(self) -> NDArray[np.bool_]:
        """Which rows are released."""
        return np.asarray(self.setting_of_row != SUPPRESSED)

    def recoded(self, table: Table) -> Table:
        """Put the labels into the table that was recoded; a suppressed row is ``*`` in every quasi-identifier."""
        labels = [self._labels(j, table[name], self.setting_of_row) for j, name in enumerate(self.names)]
        return _with_labels(table, self.names, labels)

    def generalized(self, table: Table) -> Table:
        """Take the rows of another table to the first level combination; values that are not covered become ``*``."""
        setting = np.zeros(table.n_rows, dtype=np.intp)
        labels = [self._labels(j, table[name], setting) for j, name in enumerate(self.names)]
        return _with_labels(table, self.names, labels)

    def as_cells(self, table: Table) -> Table:
        """Write labels so that an encoder of cells reads each as one value."""
        columns = dict(table.columns)
        for name in self.names:
            texts = [None if text is None else write_value(text) for text in columns[name].values.to_pylist()]
            columns[name] = columns[name].recode(pa.array(texts, pa.string()))
        return replace(table, columns=columns)

    def encodable(self) -> dict[str, Column]:
        """Describe the recoded columns for an encoder: labels have no order."""
        return {name: Column(name) for name in self.names}

    def recodings(self, released: Table) -> list[dict[str, Any]]:
        """Entries of the manifest: how each column's labels are to be read."""
        return [self._entry(j, released) for j in range(len(self.names))]

    def _entry(self, j: int, released: Table) -> dict[str, Any]:
        described = self.described[j]
        entry: dict[str, Any] = {
            "name": described.name,
            "column": described.name,
            "rule": HIERARCHY,
            "kind": str(described.kind),
            "levels": sorted({int(level) for level in self.levels[:, j]}),
            "labels": listed_labels(self.hierarchies[j], self._used(j, released), described),
        }
        return entry | ({"domain": list(described.domain)} if described.domain else {})

    def _used(self, j: int, released: Table) -> dict[str, set[int]]:
        """Released labels of a column and the levels on which they stand."""
        found = {text for text in released[self.names[j]].values.to_pylist() if text is not None}
        levels = {int(level) for level in self.levels[np.unique(self.setting_of_row[self.is_released]), j]}
        return {label: {level for level in levels if label in self._labels_of(j, level)} for label in found}

    def _labels_of(self, j: int, level: int) -> set[str | None]:
        return set(self.covered[j].labels[level])

    def _labels(self, j: int, column: CodedColumn, setting_of_row: NDArray[np.intp]) -> CodedColumn:
        covered = self.covered[j]
        code_of = _codes_in(covered, column, self.described[j])
        texts: dict[str | None, int] = {}
        table = np.empty((len(self.levels) + 1, column.n_distinct), dtype=np.int32)
        for setting, level in enumerate([*self.levels[:, j].tolist(), None]):
            labels = [_label(covered, level, code) for code in code_of]
            table[setting] = [texts.setdefault(label, len(texts)) for label in labels]
        codes = table[setting_of_row, column.codes]  # the last row is that of suppressed rows
        values = pa.array(list(texts), pa.string())
        return CodedColumn(codes, values).recode(values)


def penalty_of(
    columns: Sequence[CodedColumn],
    covered: Sequence[Covered],
    levels: NDArray[np.intp],
    setting_of_row: NDArray[np.intp],
) -> float:
    """Certainty penalty of rows released at level combinations, see :class:`LevelRecoding`."""
    means = []
    for j, (column, fitted) in enumerate(zip(columns, covered, strict=True)):
        of_value = np.ones((len(levels) + 1, column.n_distinct))
        for setting, level in enumerate(levels[:, j].tolist()):
            n_values = np.rint(fitted.shares[level] * fitted.n_rows)[fitted.level_codes[level]]
            of_value[setting] = np.where(n_values > 1, n_values / fitted.n_rows, 0.0)
        means.append(of_value[setting_of_row, column.codes].mean())
    return float(np.mean(means)) if means else 0.0


def _codes_in(covered: Covered, column: CodedColumn, described: Column) -> list[int | None]:
    """Place of each distinct value of a column among those that a hierarchy was fitted to; ``None`` where it has none.

    A number (a date, a level) between two of them goes with the lower one, one below all with the lowest.
    """
    first = {code: place for place, code in reversed(list(enumerate(covered.level_codes[0].tolist())))}
    place_of = {label: first[code] for code, label in enumerate(covered.labels[0]) if code in first}
    texts = [None if text is None else text.strip() for text in as_text(column.values).to_pylist()]
    known = {label: place for label, place in place_of.items() if label is not None}
    positions = _positions(list(known), described)
    new = _positions([text for text in texts if text is not None and text not in known], described)
    if positions is None or new is None or not known:
        return [place_of.get(text) for text in texts]
    order = np.argsort(positions)
    nearest = np.maximum(np.searchsorted(positions[order], new, side="right") - 1, 0)
    placed = iter([list(known.values())[i] for i in order[nearest].tolist()])
    return [place_of[text] if text in place_of else (next(placed) if text is not None else None) for text in texts]


def _positions(texts: list[str], described: Column) -> NDArray[np.float64] | None:
    try:
        return positions_of(described, pa.array(texts, pa.string()))
    except ValueError:
        return None


def _label(covered: Covered, level: int | None, code: int | None) -> str | None:
    if level is None or code is None:
        return ROOT
    return covered.labels[level][int(covered.level_codes[level][code])]


def _with_labels(table: Table, names: Sequence[str], labels: Sequence[CodedColumn]) -> Table:
    columns, schema = dict(table.columns), dict(table.schema.columns)
    for name, column in zip(names, labels, strict=True):
        columns[name] = column
        schema[name] = replace(schema[name], kind=Kind.CATEGORICAL, domain=None, hierarchy=None)
    return replace(table, schema=replace(table.schema, columns=schema), columns=columns)
