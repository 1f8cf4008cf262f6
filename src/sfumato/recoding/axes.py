"""A quasi-identifier as a recoder sees it: codes with a label each and, where values have an order, a position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import SchemaError
from sfumato.learning.tree import MISSING, TreeColumn
from sfumato.schema import Column, Kind
from sfumato.table.coding import CodedColumn, Table

Codes = NDArray[np.int32]
Positions = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Axis:
    """One quasi-identifying column.

    Parameters
    ----------
    name : str
    codes : ndarray of int32
        Value of each row, from 0; -1 where it is missing.
    labels : tuple of str
        How each value is written, in the order of the codes.
    positions : ndarray of float64 or None
        Where each value lies, ascending: the number, the moment, the level. ``None`` for a categorical column.
    described : Column or None
        How the schema describes it; tells how values of another table are placed.
    """

    name: str
    codes: Codes
    labels: tuple[str, ...]
    positions: Positions | None = None
    described: Column | None = None

    def __repr__(self) -> str:
        return f"Axis('{self.name}', {len(self.codes):,} rows, {self.n_values:,} values)"

    @property
    def n_values(self) -> int:
        """Number of values that occur, missing not counted."""
        return len(self.labels)

    @property
    def has_missing(self) -> bool:
        """Whether some row has no value."""
        return bool((self.codes == MISSING).any())

    @property
    def span(self) -> float:
        """Distance from the lowest position to the highest; 0 for a categorical column."""
        return 0.0 if self.positions is None or not self.n_values else float(self.positions[-1] - self.positions[0])

    def as_tree_column(self) -> TreeColumn:
        """Return the column as a tree splits it."""
        return TreeColumn(self.codes, self.n_values, self.positions)


def axes_of(table: Table, names: Sequence[str]) -> tuple[Axis, ...]:
    """Describe some columns of a table as axes."""
    return tuple(_axis(table.schema[name], table[name]) for name in names)


def align(axis: Axis, column: CodedColumn) -> Axis:
    """Code the rows of another table by the values of an axis; a number between two values keeps its own position.

    Values that a categorical axis does not have become missing.
    """
    other = _axis(axis.described or Column(axis.name), column)
    if axis.positions is not None and other.positions is not None:
        return other
    code_of = {label: code for code, label in enumerate(axis.labels)}
    recode = np.array([code_of.get(label, MISSING) for label in other.labels] + [MISSING], dtype=np.int32)
    return Axis(axis.name, recode[other.codes], axis.labels, axis.positions, axis.described)


def _axis(described: Column, column: CodedColumn) -> Axis:
    """Order the values by position, give equal positions one code, and take missing out of the codes."""
    missing = column.missing_code
    known = column.values.drop_null()
    labels = _labels(known)
    positions = positions_of(described, known)
    if positions is None:
        recode, kept = np.arange(len(labels)), np.arange(len(labels))
    else:
        positions, kept, recode = np.unique(positions, return_index=True, return_inverse=True)
    codes = np.append(recode, MISSING)[np.where(column.codes == missing, len(labels), column.codes)]
    return Axis(described.name, codes.astype(np.int32), tuple(labels[i] for i in kept), positions, described)


def _labels(known: pa.Array) -> list[str]:
    return [str(text).strip() for text in pc.cast(known, pa.string()).to_pylist()]


def positions_of(described: Column, known: pa.Array) -> Positions | None:
    """Place values by the kind of their column; ``None`` where they have no order.

    Examples
    --------
    >>> positions_of(Column("age", kind=Kind.NUMERIC), pa.array(["29", "42.5"])).tolist()
    [29.0, 42.5]
    """
    if described.kind is Kind.NUMERIC:
        return _finite(described, CodedColumn(np.zeros(0, dtype=np.int32), known).numbers())
    if described.kind is Kind.DATE:
        return _moments(known)
    if described.kind is Kind.ORDERED and described.domain:
        level = {label: i for i, label in enumerate(described.domain)}
        labels = _labels(known)
        return np.array([level[label] for label in labels], dtype=np.float64) if set(labels) <= set(level) else None
    return None


def _finite(described: Column, numbers: Positions) -> Positions:
    if not np.isfinite(numbers).all():
        problem = "has infinite numbers, which no range can hold"
        raise SchemaError(problem, column=described.name, hint="make its kind categorical, or leave these rows out")
    return numbers


def _moments(known: pa.Array) -> Positions | None:
    """Microseconds since 1970; ``None`` for dates in a form that has no order here."""
    try:
        moments = pc.cast(known, pa.timestamp("us"))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return np.asarray(pc.cast(moments, pa.int64()).to_numpy(zero_copy_only=False), dtype=np.float64)
