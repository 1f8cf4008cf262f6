"""A quasi-identifier as a recoder sees it: codes with a label each and, where values have an order, a position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import SchemaError
from sfumato.learning.c45.tree import MISSING, TreeColumn
from sfumato.schema import Column, Kind
from sfumato.table.cells import as_text
from sfumato.table.coding import CodedColumn, Table, parse_numbers
from sfumato.table.generalized import write_range, write_set
from sfumato.table.weighted import WeightedColumn

Codes = NDArray[np.int32]
Places = NDArray[np.intp]
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
        Where each value lies, ascending: the number, the moment, the level. ``None`` for a categorical column. Values
        that differ in more digits than a double has share a position and are apart all the same.
    described : Column or None
        How the schema describes it; tells how values of another table are placed.
    weights : ndarray of int64 or None
        Rows that each entry stands for, where these are distinct rows with their counts; ``None``: one each.
    """

    name: str
    codes: Codes
    labels: tuple[str, ...]
    positions: Positions | None = None
    described: Column | None = None
    weights: NDArray[np.int64] | None = None

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
    """Describe some columns of a table as axes.

    Raises
    ------
    SchemaError
        If a numeric column holds something else than finite numbers, or a column holds values that no file of a release
        would give back: missing tokens, or blanks around a text. Readers take these out; a table made in memory may
        hold them.
    """
    axes = tuple(axis_of(_as_offered(table.schema[name], table[name]), table[name]) for name in names)
    for axis in axes:
        _check_labels(axis, table.schema.missing_tokens(axis.name))
    return axes


def _as_offered(described: Column, column: CodedColumn) -> Column:
    """Leave levels out of a recognised order that no row has: a manifest would name values of people who are not in."""
    if not described.is_order_recognised:
        return described
    return described.restricted_to(_labels(described, column.values.drop_null()))


def _check_labels(axis: Axis, missing_tokens: tuple[str, ...]) -> None:
    labels = pa.array(axis.labels, pa.string())
    n_tokens = pc.sum(pc.is_in(labels, value_set=pa.array(missing_tokens, pa.string()))).as_py()
    if n_tokens:
        problem = f"has {n_tokens:,} distinct values that the missing tokens of its schema read as missing"
        raise SchemaError(problem, column=axis.name, hint="put nulls there, or change the missing tokens")
    n_untrimmed = pc.sum(pc.not_equal(labels, pc.utf8_trim_whitespace(labels))).as_py()
    if n_untrimmed:
        problem = f"has {n_untrimmed:,} distinct values with blanks around them, which a file would not give back"
        raise SchemaError(problem, column=axis.name, hint="trim them first")


def align(axis: Axis, column: CodedColumn) -> Axis:
    """Code the rows of another table by the values of an axis; a number between two values keeps its own position.

    Values that a categorical axis does not have become missing.
    """
    other = axis_of(axis.described or Column(axis.name), column)
    if axis.positions is not None and other.positions is not None:
        return other
    code_of = {label: code for code, label in enumerate(axis.labels)}
    recode = np.array([code_of.get(label, MISSING) for label in other.labels] + [MISSING], dtype=np.int32)
    return Axis(axis.name, recode[other.codes], axis.labels, axis.positions, axis.described)


def unknown_on(axis: Axis, column: CodedColumn) -> NDArray[np.bool_]:
    """Say of each row of another table whether its value lies outside what an axis has.

    Examples
    --------
    >>> ages = axis_of(Column("age", kind=Kind.NUMERIC), CodedColumn.encode(pa.array(["20", "40"])))
    >>> unknown_on(ages, CodedColumn.encode(pa.array(["30", "41", None]))).tolist()
    [False, True, True]
    """
    other = axis_of(axis.described or Column(axis.name), column)
    if axis.positions is not None and other.positions is not None and axis.n_values:
        is_unknown = (other.positions < axis.positions[0]) | (other.positions > axis.positions[-1])
    else:
        known = set(axis.labels)
        is_unknown = np.array([label not in known for label in other.labels], dtype=np.bool_)
    return np.asarray(np.append(is_unknown, not axis.has_missing)[other.codes])  # the last is that of missing


def cell_of_values(described: Column, values: Sequence[str | None]) -> str | None:
    """Write a cell that represents some values of a column: a range where they have an order, else a set.

    ``None`` among the values is missing.

    Examples
    --------
    >>> cell_of_values(Column("age", kind=Kind.NUMERIC), ["9", "17", "10"]), cell_of_values(Column("job"), ["b", "a"])
    ('[9, 17]', '{a|b}')
    """
    known = sorted({value for value in values if value is not None})
    may_be_missing = None in values
    try:
        positions = positions_of(described, pa.array(known, pa.string()))
    except ValueError:  # labels that are no numbers
        positions = None
    if positions is None or not known:
        return write_set(known, may_be_missing=may_be_missing)
    ends = known[int(positions.argmin())], known[int(positions.argmax())]
    return write_range(*ends, may_be_missing=may_be_missing)


def axis_of(described: Column, column: CodedColumn) -> Axis:
    """Order the values by position, give equal values one code, and take missing out of the codes."""
    missing = column.missing_code
    known = column.values.drop_null()
    if pa.types.is_boolean(known.type):
        described = replace(described, kind=Kind.CATEGORICAL)
    labels = _labels(described, known)
    positions = positions_of(described, known)
    kept = recode = np.arange(len(labels))
    if positions is not None:
        _check_span(described, positions)
        kept, recode = _in_order(described, known, positions)
        positions = positions[kept]
    codes = np.append(recode, MISSING)[np.where(column.codes == missing, len(labels), column.codes)]
    weights = column.weights if isinstance(column, WeightedColumn) and (column.weights != 1).any() else None
    return Axis(described.name, codes.astype(np.int32), tuple(labels[i] for i in kept), positions, described, weights)


def _labels(described: Column, known: pa.Array) -> list[str]:
    texts = as_text(known)
    return list((pc.utf8_trim_whitespace(texts) if described.kind is Kind.NUMERIC else texts).to_pylist())


def _in_order(described: Column, known: pa.Array, positions: Positions) -> tuple[Places, Places]:
    """Where the first of each group of equal values stands, in ascending order, and the group of each value."""
    _, first, at = np.unique(positions, return_index=True, return_inverse=True)
    if len(first) == len(positions):
        return first, at
    shared = np.flatnonzero(np.bincount(at)[at] > 1)
    exact = _exact(described, known.take(pa.array(shared)))
    rank_of = {value: rank for rank, value in enumerate(sorted(set(exact)))}
    ranks = np.zeros(len(positions), dtype=np.int64)
    ranks[shared] = [rank_of[value] for value in exact]
    _, kept, recode = np.unique(at * len(rank_of) + ranks, return_index=True, return_inverse=True)
    return kept, recode


def _exact(described: Column, known: pa.Array) -> list[Any]:
    """Give objects for numbers and dates that are equal, and in order, exactly when the values are."""
    if described.kind is Kind.DATE:
        return list(pc.cast(pc.cast(known, pa.timestamp("us")), pa.int64()).to_pylist())
    values = known.to_pylist()
    return [_exact_number(value) if isinstance(value, str) else value for value in values]


def _exact_number(text: str) -> Decimal | float:
    try:
        return Decimal(text.strip())
    except InvalidOperation:  # an exponent of twenty digits
        return float(text)


def positions_of(described: Column, known: pa.Array) -> Positions | None:
    """Place values by the kind of their column; ``None`` where they have no order, as truth values.

    Raises
    ------
    SchemaError
        If the column is numeric and some values are not finite numbers.

    Examples
    --------
    >>> positions_of(Column("age", kind=Kind.NUMERIC), pa.array(["29", "42.5"])).tolist()
    [29.0, 42.5]
    """
    if pa.types.is_boolean(known.type):
        return None
    if described.kind is Kind.NUMERIC:
        return _numbers(described, known)
    if described.kind is Kind.DATE:
        return _moments(known)
    if described.kind is Kind.ORDERED and described.domain:
        level = {label: i for i, label in enumerate(described.domain)}
        labels = _labels(described, known)
        return np.array([level[label] for label in labels], dtype=np.float64) if set(labels) <= set(level) else None
    return None


def _numbers(described: Column, known: pa.Array) -> Positions:
    try:
        numbers = parse_numbers(known)
    except ValueError:
        problem = f"is declared numeric, but {_not_numbers(known)} are not numbers"
        hint = 'add the texts that mean "missing" to the column\'s missing tokens, or make its kind categorical'
        raise SchemaError(problem, column=described.name, hint=hint) from None
    if np.isfinite(numbers).all():
        return numbers
    problem = "is declared numeric, but has values that are not-a-number (NaN)"
    if np.isinf(numbers).any():
        problem = "has infinite numbers, which no range can hold"
    raise SchemaError(problem, column=described.name, hint="make its kind categorical, or leave these rows out")


def _not_numbers(known: pa.Array) -> str:
    """Say how many of the values cannot be read as numbers."""
    n_wrong = 0
    for i in range(len(known)):
        try:
            parse_numbers(known[i : i + 1])
        except ValueError:
            n_wrong += 1
    return f"{n_wrong:,} of its {len(known):,} distinct values"


def _check_span(described: Column, positions: Positions) -> None:
    if len(positions) and positions.max() / 2 - positions.min() / 2 > np.finfo(np.float64).max / 2:
        problem = "has numbers so far apart that their distance overflows"
        raise SchemaError(problem, column=described.name, hint="give the column in a larger unit")


def _moments(known: pa.Array) -> Positions | None:
    """Microseconds since 1970; ``None`` for dates in a form that has no order here."""
    try:
        moments = pc.cast(known, pa.timestamp("us"))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return np.asarray(pc.cast(moments, pa.int64()).to_numpy(zero_copy_only=False), dtype=np.float64)
