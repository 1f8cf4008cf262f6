"""Drop-in releases: every cell of a class becomes one value, typical of the class, in the original's own type.

A class has the rows that a mechanism made equal on all quasi-identifiers. On a column with an order (numbers, dates,
levels) its typical value is the lower median of its known values: the middle one, and of two middle ones the lower.
More than half of the rows must be without a value for the cell to be missing. On any other column it is the most
frequent value; of several the one whose text comes first, and missing only where it is more frequent than any value.

All rows of a class still have the same cells, so that k-anonymity, and with it l and t, can be counted on the release
as ever. Two classes may get the same cells. They are one class then, whose typical values are these very cells: less
than half of either is below a common median, and the most frequent value of both is that of the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.counting.unique_rows import n_unique_rows
from sfumato.errors import InvalidParameterError
from sfumato.learning.c45.tree import MISSING
from sfumato.manifest import AnyTable, describe_column, in_three_digits, stating_unique_rows
from sfumato.mechanisms.axes import Axis, axes_of
from sfumato.mechanisms.base import Release
from sfumato.mechanisms.drop_in.classes import class_of_row, with_classes
from sfumato.mechanisms.drop_in.copies import COPIED_ROWS, n_copied_rows
from sfumato.mechanisms.recoder import described_axis
from sfumato.schema import Kind, Role
from sfumato.table.coding import CodedColumn, Table

Ids = NDArray[np.int32]

TYPICAL = "typical"
"""Rule of a recoding whose cells are the typical value of their class."""
COUNTED_OVER_CLASSES = frozenset(
    {"k-anonymity", "l-diversity", "t-closeness", "beta-likeness", "delta-disclosure", "alpha-k-anonymity"}
)
"""Kinds of promises about classes of rows with equal cells: they hold for cells of any form."""
_STILL_TRUE = ("suppressed_fraction", "suppression_limit_counts", "n_columns_offered", "n_columns_released", "tree")
"""Figures of the utility that do not depend on what cells hold."""


def typical_of_classes(axis: Axis, classes: NDArray[np.integer], n_classes: int) -> Ids:
    """Find the typical value of every class on an axis; -1 is missing.

    Examples
    --------
    >>> ages = Axis("age", np.array([0, 2, 1, 3, 0, -1]), ("20", "30", "40", "90"), np.array([20.0, 30, 40, 90]))
    >>> typical_of_classes(ages, np.array([0, 0, 0, 0, 1, 1]), 2).tolist()
    [1, 0]
    >>> jobs = Axis("job", np.array([1, 0, 2, 2, -1, -1]), ("cook", "baker", "smith"))
    >>> typical_of_classes(jobs, np.array([0, 0, 1, 1, 1, 1]), 2).tolist()
    [1, 2]
    """
    known = axis.codes != MISSING
    n_known = np.bincount(classes[known], minlength=n_classes)
    n_missing = np.bincount(classes[~known], minlength=n_classes)
    found = np.full(n_classes, MISSING, dtype=np.int32)
    if axis.positions is not None:
        order = np.lexsort((axis.codes[known], classes[known]))
        middle = np.cumsum(n_known) - n_known + (n_known - 1) // 2
        has_value = (n_known > 0) & (n_missing <= n_known)
        found[has_value] = axis.codes[known][order][middle[has_value]]
        return found
    rank_of_code = np.empty(axis.n_values, dtype=np.int64)
    rank_of_code[sorted(range(axis.n_values), key=axis.labels.__getitem__)] = np.arange(axis.n_values)
    width = max(axis.n_values, 1)
    pairs, counts = np.unique(classes[known].astype(np.int64) * width + axis.codes[known], return_counts=True)
    of_pair, codes = pairs // width, pairs % width
    best_first = np.lexsort((rank_of_code[codes], -counts, of_pair))
    firsts = best_first[np.unique(of_pair[best_first], return_index=True)[1]]
    is_value = counts[firsts] >= n_missing[of_pair[firsts]]
    found[of_pair[firsts[is_value]]] = codes[firsts[is_value]]
    return found


def in_values(table: AnyTable, release: Release) -> Release:
    """Give a release typical values, unless it has them already; see :func:`with_typical_values`."""
    has_them = any(entry.get("rule") == TYPICAL for entry in release.manifest.recodings)
    return release if has_them else with_typical_values(table, release)


def with_typical_values(table: AnyTable, release: Release) -> Release:
    """Give a release of ranges, sets or labels the typical values of its classes instead.

    Parameters
    ----------
    table : Table
        The original; the release has its rows in its order, some of which may be left out.
    release : Release
        A proposal whose promises are about classes of equal cells.

    Raises
    ------
    InvalidParameterError
        If what is promised is not about such classes.
    SchemaError
        If a quasi-identifier is sensitive as well, or there are none that the original has.
    """
    table, released = with_classes(
        table, release, "values", "one value for a class would leave nothing of it to protect"
    )
    _check_promises(release)
    names = released.schema.names(Role.QUASI_IDENTIFIER)
    rows = np.arange(table.n_rows) if release.kept_rows is None else release.kept_rows
    classes = class_of_row(released)
    n_classes = int(classes.max(initial=-1)) + 1
    columns, described = dict(released.columns), dict(released.schema.columns)
    entries: list[dict[str, Any]] = []
    kept = table.take(rows)  # values of rows that are left out are named nowhere
    for axis in axes_of(kept, names):
        own = kept.schema[axis.name]
        if axis.positions is None:  # what has no middle is released without an order, whatever kind was declared
            own = replace(own, kind=Kind.CATEGORICAL, domain=None, is_order_recognised=False)
        typical = typical_of_classes(axis, classes, n_classes)[classes]
        columns[axis.name] = _of_values(kept[axis.name], axis, typical, own.kind)
        own = own.restricted_to(_texts_in(columns[axis.name]))  # a level that no cell has is named nowhere
        described[axis.name] = own
        entries.append(described_axis(replace(axis, described=own), TYPICAL))
    made = replace(released, schema=replace(released.schema, columns=described), columns=columns)
    shown = [column.restricted_to(_texts_in(made[column.name])) for column in made.schema]
    output = {**release.manifest.output, "columns": [describe_column(column) for column in shown]}
    stated = release.with_manifest(
        output=output, recodings=tuple(entries), evidence=_evidence(release, table, made, names)
    )
    return replace(stated, table=made)


def _texts_in(column: CodedColumn) -> list[str]:
    """Values of a column as the texts of a domain; a domain is of texts only."""
    return [value for value in column.values.drop_null().to_pylist() if isinstance(value, str)]


def _check_promises(release: Release) -> None:
    mechanism, promised = str(release.manifest.mechanism["name"]), release.manifest.promised()
    other = [promise.kind for promise in promised if promise.kind not in COUNTED_OVER_CLASSES]
    if other or not promised:
        problem = f"got a release by {mechanism}, which promises {', '.join(other) or 'nothing'}"
        allowed = "values where k-anonymity is promised, and l, t and the like over its classes"
        hint = "leave the population table out, or give uniform instead of tiered generalization"
        raise InvalidParameterError("cells", problem, allowed=allowed, hint=hint)


def _of_values(column: CodedColumn, axis: Axis, codes: Ids, kind: Kind) -> CodedColumn:
    """Put values of the original's column in place of codes of an axis; of several spellings the first in order."""
    first = np.full(axis.n_values, column.n_distinct, dtype=np.int64)
    known = axis.codes != MISSING
    np.minimum.at(first, axis.codes[known], column.codes[known])
    values = column.values.take(pa.array(first))
    has_missing = bool((codes == MISSING).any())
    if has_missing:
        values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    filled = np.where(codes == MISSING, len(values) - 1, codes) if has_missing else codes
    return CodedColumn(filled.astype(np.int32), values).recode(values, kind)


def _evidence(release: Release, table: Table, made: Table, names: tuple[str, ...]) -> Mapping[str, Any]:
    """Keep what is true of cells of any form, and count classes anew: some may have become one."""
    sizes = np.unique(made.codes(names), axis=0, return_counts=True)[1]
    stated = release.manifest.evidence.get("utility", {})
    utility = {name: stated[name] for name in _STILL_TRUE if name in stated} | {"n_classes_of_cells": len(sizes)}
    copied = n_copied_rows(table, made, names) / max(made.n_rows, 1)
    risk = {"anonymity_level": int(sizes.min(initial=made.n_rows)), COPIED_ROWS: copied}
    evidence = {"utility": utility, "risk": risk}
    stating = stating_unique_rows(evidence, n_unique_rows(made), made.n_rows)
    counted: Mapping[str, Any] = in_three_digits(stating)
    return counted
