"""How many cells of the quasi-identifiers a release changes: the plainest measure of what was done to the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.manifest import AnyTable
from sfumato.mechanisms.base import Release
from sfumato.mechanisms.drop_in.typical import TYPICAL
from sfumato.schema import Role
from sfumato.table.binary import BinaryTable
from sfumato.table.cells import as_text
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.generalized import write_value


def changed_cells_fraction(original: AnyTable, release: Release) -> float:
    """Share of the original's quasi-identifying cells that are not published unchanged.

    A cell counts as changed if it was generalized, made another value, flipped, moved to another row or drawn anew, or
    if its row or column is not released. A column that is released as binary features only counts as changed.

    Examples
    --------
    >>> from sfumato.datasets.admissions import admissions
    >>> from sfumato.mechanisms.mondrian.mechanism import Mondrian
    >>> table = admissions(n_rows=40).keep(["sex", "readmitted"])
    >>> changed_cells_fraction(table, Mondrian(k=2).release(table))
    0.0
    """
    names = _quasi_identifiers(original)
    if not names or not original.n_rows:
        return 0.0
    done: Mapping[str, Any] = release.manifest.perturbation or {}
    if done.get("kind") == "synthetic":
        return 1.0
    moved = {name for part in done.get("slices", ()) for name in part}
    fixed = [name for name in names if name not in moved]
    n_kept = _n_kept_of_features(original, release, done) if isinstance(original, BinaryTable) else 0
    if isinstance(original, Table):
        table = release.table.to_table() if isinstance(release.table, BinaryTable) else release.table
        rows = np.arange(original.n_rows) if release.kept_rows is None else release.kept_rows
        by_row = {entry["name"] for entry in release.manifest.recodings if entry["rule"] == TYPICAL}
        by_row |= set(fixed) if done.get("kind") == "flipped" else set()
        for name in (name for name in fixed if name in table.schema):
            before, after = original[name], table[name]
            n_kept += _n_same(before, after, rows) if name in by_row else _n_single(before, after)
    n_cells = original.n_rows * len(names)
    return (n_cells - n_kept) / n_cells


def _quasi_identifiers(table: AnyTable) -> Sequence[str]:
    if isinstance(table, BinaryTable):
        return (*table.feature_names, *table.companions.schema.names(Role.QUASI_IDENTIFIER))
    return table.schema.names(Role.QUASI_IDENTIFIER)


def _n_kept_of_features(original: BinaryTable, release: Release, done: Mapping[str, Any]) -> int:
    """Count the cells of released features; where some were flipped, those that were not."""
    shown = set(_quasi_identifiers(release.table))
    n_released = release.table.n_rows * sum(name in shown for name in _quasi_identifiers(original))
    return n_released - int(done.get("n_cells_changed", 0))


def _n_single(before: CodedColumn, after: CodedColumn) -> int:
    """Count the released cells that hold one value of the original's column."""
    values = _texts(before)
    known = {*values, *(write_value(text) for text in values if text is not None)}
    return sum(n for text, n in zip(_texts(after), after.counts.tolist(), strict=True) if text in known)


def _n_same(before: CodedColumn, after: CodedColumn, rows: NDArray[np.intp]) -> int:
    """Count the released rows that have the cell of their own original row."""
    place_of = {text: place for place, text in enumerate(_texts(before))}
    places = np.array([place_of.get(text, -1) for text in _texts(after)], dtype=np.int64)
    return int((places[after.codes] == before.codes[rows]).sum()) if len(places) else 0


def _texts(column: CodedColumn) -> list[str | None]:
    found: list[str | None] = as_text(column.values).to_pylist()
    return found
