"""A hierarchy fitted to a column: which label each value that occurs has on each level."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SchemaError
from sfumato.recoding.hierarchy import ROOT, Codes, Hierarchy
from sfumato.schema import DEFAULT_MISSING_TOKENS, Kind
from sfumato.table.cells import as_text
from sfumato.table.coding import CodedColumn

_UNCOVERED = -1


@dataclass(frozen=True, eq=False, repr=False)
class Covered:
    """Levels of the values of one column.

    Parameters
    ----------
    name : str
        Of the column.
    labels : tuple of tuple of (str or None)
        For each level the labels that occur, in the order in which they first occur among the column's values; those
        of level 0 are the values as the column writes them. ``None`` is missing.
    level_codes : ndarray of int32, shape (n_levels, n_distinct)
        For each level, which label each distinct value of the column has, in the order of the column's codes. Values
        that are one number (``39`` and ``39.0``) have one label on level 0 too.
    shares : tuple of ndarray of float64
        For each level and label, share of the hierarchy's rows that have this label: ARX's measure of how coarse a
        label is, from 1 / ``n_rows`` to 1.
    n_rows : int
        Rows of the hierarchy, the one added for missing counted.
    rows : ndarray of int
        Row of the hierarchy of each distinct value of the column, in the order of the column's codes.
    """

    name: str
    labels: tuple[tuple[str | None, ...], ...]
    level_codes: Codes
    shares: tuple[NDArray[np.float64], ...]
    n_rows: int
    rows: NDArray[np.intp]

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(level):,}" for level in self.labels)
        return f"Covered('{self.name}', {self.n_levels} levels: {sizes} labels)"

    @property
    def n_levels(self) -> int:
        """Number of levels, level 0 (the values) counted."""
        return len(self.labels)

    @cached_property
    def level_maps(self) -> tuple[Codes, ...]:
        """For each level, which label each label of level 0 has; the first entry is the identity."""
        first = np.unique(self.level_codes[0], return_index=True)[1]
        return tuple(np.ascontiguousarray(codes[first]) for codes in self.level_codes)

    def renamed(self, before: Hierarchy, after: Hierarchy) -> Covered:
        """Write the labels of higher levels as another hierarchy of the same groups does."""
        named = [dict(zip(*level, strict=True)) for level in zip(before.labels, after.labels, strict=True)]
        higher = [
            tuple(None if label is None else names.get(label, label) for label in level)
            for names, level in zip(named[1:], self.labels[1:], strict=True)
        ]
        return replace(self, labels=(self.labels[0], *higher))


def covered(
    hierarchy: Hierarchy,
    column: CodedColumn,
    name: str,
    kind: Kind,
    *,
    missing: Sequence[str] = DEFAULT_MISSING_TOKENS,
) -> Covered:
    """Find the row of each distinct value of a column in a hierarchy.

    Numbers of a numeric column match by size (``39`` is ``39.0``), all else as trimmed text. A hierarchy may list
    missing as a value, written as one of the ``missing`` tokens. Where it does not, missing gets a row of its own:
    missing on every level, and ``*`` with all other values on the highest, if that has one label.

    Raises
    ------
    SchemaError
        If values are not covered, two rows stand for one value, or a label of values reads as missing. The message
        gives numbers of values and rows, never a value.

    Examples
    --------
    >>> import pyarrow as pa
    >>> ages = Hierarchy.from_rows([("29", "under 40", "*"), ("39", "under 40", "*"), ("41", "from 40", "*")])
    >>> found = covered(ages, CodedColumn.encode(pa.array(["39.0", "41", None])), "age", Kind.NUMERIC)
    >>> found.labels
    (('39.0', '41', None), ('under 40', 'from 40', None), ('*',))
    >>> found.shares[1].tolist(), found.n_rows
    ([0.5, 0.25, 0.25], 4)
    """
    texts = [None if text is None else text.strip() for text in as_text(column.values).to_pylist()]
    rows = _rows_of(texts, _row_by_key(hierarchy, name, kind, set(missing)), kind)
    _check_covered(rows, column, name)
    labels, codes = _with_missing(hierarchy, name, set(missing), is_added=bool((rows == hierarchy.n_values).any()))
    shares = [np.bincount(level, minlength=len(names)) / len(level) for names, level in zip(labels, codes, strict=True)]
    found = [_occurring(level[rows]) for level in codes]
    written = [tuple(names[i] for i in kept) for names, (kept, _) in zip(labels, found, strict=True)]
    written[0] = tuple(texts[i] for i in _first_places(found[0][1]))
    return Covered(
        name,
        tuple(written),
        np.vstack([renumbered for _, renumbered in found]).astype(np.int32),
        tuple(share[kept] for share, (kept, _) in zip(shares, found, strict=True)),
        codes.shape[1],
        rows,
    )


def _key(text: str | None, kind: Kind) -> Hashable:
    """By what a value is looked up: its size if it is a number of a numeric column, else its text."""
    if text is None or kind is not Kind.NUMERIC:
        return text
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    return text if number.is_nan() else number


def _row_by_key(hierarchy: Hierarchy, name: str, kind: Kind, missing: set[str]) -> dict[Hashable, int]:
    """Row of each value that the hierarchy lists; the key of missing is ``None``, last row plus one if not listed."""
    found: dict[Hashable, int] = {}
    for row, value in enumerate(hierarchy.values):
        text = value.strip()
        key = None if text in missing else _key(text, kind)
        if key in found:
            problem = f"rows {found[key] + 1:,} and {row + 1:,} of its hierarchy stand for the same value"
            raise SchemaError(problem, column=name, hint="keep one of them")
        found[key] = row
    found.setdefault(None, hierarchy.n_values)
    return found


def _rows_of(texts: Sequence[str | None], row_by_key: dict[Hashable, int], kind: Kind) -> NDArray[np.intp]:
    return np.array([row_by_key.get(_key(text, kind), _UNCOVERED) for text in texts], dtype=np.intp)


def _check_covered(rows: NDArray[np.intp], column: CodedColumn, name: str) -> None:
    uncovered = rows == _UNCOVERED
    if not uncovered.any():
        return
    n_rows = int(column.counts[uncovered].sum())
    problem = (
        f"its hierarchy does not cover {int(uncovered.sum()):,} of {len(rows):,} values "
        f"({n_rows:,} of {column.n_rows:,} rows)"
    )
    hint = "add a row for each, or build a hierarchy that covers them"
    raise SchemaError(problem, column=name, hint=hint, remedy=("hierarchies",))


def _with_missing(
    hierarchy: Hierarchy, name: str, missing: set[str], *, is_added: bool
) -> tuple[list[tuple[str | None, ...]], Codes]:
    """Write what means missing as ``None``, and add the row of missing if the column has it and no row lists it."""
    labels: list[tuple[str | None, ...]] = [
        tuple(None if label.strip() in missing else label for label in level) for level in hierarchy.labels
    ]
    _check_missing_is_apart(labels, hierarchy.codes, name)
    if not is_added:
        return labels, hierarchy.codes
    own = []
    for level, names in enumerate(labels):
        is_root = level > 0 and level == len(labels) - 1 and len(names) == 1
        labels[level] = (ROOT,) if is_root else (*names, None)
        own.append(0 if is_root else len(names))
    return labels, np.column_stack([hierarchy.codes, np.array(own, dtype=np.int32)])


def _check_missing_is_apart(labels: Sequence[tuple[str | None, ...]], codes: Codes, name: str) -> None:
    """Refuse a level on which values, and not only missing, get a label that a reader takes for missing."""
    is_value = np.array([label is not None for label in labels[0]])[codes[0]]
    for level, names in enumerate(labels):
        reads_missing = np.array([label is None for label in names])[codes[level]]
        wrong = np.flatnonzero(reads_missing & is_value)
        if len(wrong):
            problem = (
                f"level {level} of its hierarchy gives {len(wrong):,} values a label that means missing "
                f"(first: row {int(wrong[0]) + 1:,})"
            )
            raise SchemaError(problem, column=name, hint="choose another label, or other missing tokens")


def _occurring(codes: Codes) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Labels that occur, in the order in which they first do, and the codes numbered by that order."""
    distinct, inverse = np.unique(codes, return_inverse=True)
    order = np.argsort(_first_places(inverse))
    rank = np.empty(len(distinct), dtype=np.intp)
    rank[order] = np.arange(len(distinct))
    return distinct[order].astype(np.intp), rank[inverse]


def _first_places(codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Where each code, from 0 without gaps, first stands."""
    return np.unique(codes, return_index=True)[1]
