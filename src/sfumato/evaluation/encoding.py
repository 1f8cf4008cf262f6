"""Generalized cells as numbers that any classifier can be trained on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from sfumato.errors import InputError, InvalidParameterError
from sfumato.mechanisms.axes import positions_of
from sfumato.mechanisms.recoder import GENERALIZED
from sfumato.schema import Column, Kind
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.generalized import GeneralizedCell, read_cell, write_value

Matrix = NDArray[np.float64]
RangeEncoding = Literal["midpoint", "bounds"]
SetEncoding = Literal["shares", "label"]


class GeneralizedEncoder:
    """Turn ranges and sets of values into columns of numbers.

    Parameters
    ----------
    ranges : {"midpoint", "bounds"}, default="midpoint"
        A range becomes its middle (one column), or its two ends (two columns).
    sets : {"shares", "label"}, default="shares"
        A set becomes one column for each value that the fitted table names, with 1 over the size of the set for its
        values and 0 for all others (a single value is a one, ``*`` the same share for all; missing is not counted); or
        one column with a number for each distinct set, to be taken as a category.

    Attributes
    ----------
    feature_names_ : tuple of str
    is_categorical_ : ndarray of bool
        Which columns hold numbers of categories.

    Notes
    -----
    A missing cell is not-a-number in a column of ranges and of labels, and all zeros in shares. A label that the
    fitted table did not have is not-a-number as well, and so is a date or level without a place in the order of the
    fitted ones. Where no cell of the fitted table says anything, all rows get one column of zeros.

    Examples
    --------
    >>> from sfumato.schema import Schema
    >>> cells = pa.table({"age": ["[20, 30]", "25"], "job": ["{a|b}", "b"]})
    >>> columns = {"age": Column("age", kind=Kind.NUMERIC), "job": Column("job")}
    >>> coded = Table.from_arrow(cells, Schema.of([Column("age"), Column("job")]))
    >>> GeneralizedEncoder().fit(coded, columns).transform(coded).tolist()
    [[25.0, 0.5, 0.5], [25.0, 0.0, 1.0]]
    """

    def __init__(self, ranges: RangeEncoding = "midpoint", sets: SetEncoding = "shares") -> None:
        if ranges not in ("midpoint", "bounds"):
            raise InvalidParameterError("ranges", f"got {ranges!r}", allowed="one of midpoint, bounds")
        if sets not in ("shares", "label"):
            raise InvalidParameterError("sets", f"got {sets!r}", allowed="one of shares, label")
        self.ranges = ranges
        self.sets = sets

    def fit(self, table: Table, columns: Mapping[str, Column]) -> GeneralizedEncoder:
        """Learn which values occur.

        Parameters
        ----------
        table : Table
            Released columns, cells as :mod:`sfumato.table.generalized` writes them.
        columns : mapping of str to Column
            Columns to encode, with the kind that their *original* values have; see :func:`cells_of_release`.
        """
        self._parts: list[_Ranges | _Shares | _Labels] = []
        for name, described in columns.items():
            distinct = _Distinct.of(name, table[name], described)
            if distinct.has_order:
                self._parts.append(_Ranges(described, self.ranges))
            elif self.sets == "shares":
                self._parts.append(_Shares(described, distinct.single_values()))
            else:
                labels = tuple(text for text in table[name].values.to_pylist() if text is not None)
                self._parts.append(_Labels(described, {label: i for i, label in enumerate(labels)}))
        named = [(name, isinstance(part, _Labels)) for part in self._parts for name in part.names()]
        named = named or [("nothing known", False)]
        self.feature_names_ = tuple(name for name, _ in named)
        self.is_categorical_ = np.array([is_label for _, is_label in named], dtype=np.bool_)
        return self

    def transform(self, table: Table) -> Matrix:
        """Encode the rows of a table, which may be another one than was fitted."""
        if not hasattr(self, "_parts"):
            message = "fit the encoder before it transforms a table"
            raise NotFittedError(message)
        blocks = []
        for part in self._parts:
            column = table[part.described.name]
            distinct = _Distinct.of(part.described.name, column, part.described)
            blocks.append(part.encode(distinct)[column.codes])
        encoded = np.hstack([np.zeros((table.n_rows, 0)), *blocks])
        return encoded if encoded.shape[1] else np.zeros((table.n_rows, 1))


def cells_of_release(manifest: Mapping[str, Any], table: Table) -> tuple[Table, dict[str, Column]]:
    r"""Prepare a release for an encoder: all columns as cells, described by the kinds that their original values have.

    A column that the manifest calls generalized holds cells already; its recoding says what its values were. In all
    others a text such as ``*`` or ``{a|b}`` is a value like any other, and is written as one.

    Examples
    --------
    >>> from sfumato.schema import Schema
    >>> shown = pa.table({"age": ["[20, 30]", "25"], "note": ["*", "b"]})
    >>> released = Table.from_arrow(shown, Schema.of([Column("age"), Column("note")]))
    >>> manifest = {"recodings": [{"name": "age", "column": "age", "rule": "generalized", "kind": "numeric"}]}
    >>> cells, columns = cells_of_release(manifest, released)
    >>> cells["note"].values.to_pylist(), str(columns["age"].kind)
    (['\\*', 'b'], 'numeric')
    """
    generalized = {
        entry["name"]: Column(
            entry["name"],
            kind=Kind(entry.get("kind", Kind.CATEGORICAL)),
            domain=tuple(entry.get("domain") or ()) or None,
        )
        for entry in manifest.get("recodings", ())
        if entry.get("rule") == GENERALIZED
    }
    cells = values_as_cells(table, (name for name in table.schema.names() if name not in generalized))
    return cells, {column.name: generalized.get(column.name, column) for column in table.schema}


def values_as_cells(table: Table, names: Iterable[str]) -> Table:
    """Write plain values of some columns as cells that stand for one value each; numeric truth values as 1 and 0."""
    columns = dict(table.columns)
    for name in names:
        values, kind = columns[name].values, table.schema[name].kind
        if pa.types.is_boolean(values.type) and kind is Kind.NUMERIC:
            values = pc.cast(values, pa.int8())
        texts = pc.cast(values, pa.string()).to_pylist()
        written = pa.array([None if text is None else write_value(text) for text in texts], pa.string())
        columns[name] = columns[name].recode(written, kind)
    return replace(table, columns=columns)


@dataclass(frozen=True)
class _Distinct:
    """Distinct cells of a column, read; positions of all single values and range ends in them."""

    texts: tuple[str | None, ...]
    cells: tuple[GeneralizedCell, ...]
    position_of: Mapping[str, float] | None

    @classmethod
    def of(cls, name: str, column: CodedColumn, described: Column) -> _Distinct:
        texts = tuple(pc.cast(column.values, pa.string()).to_pylist())
        try:
            cells = tuple(read_cell(text) for text in texts)
        except ValueError:
            problem = "has cells that are neither values nor ranges or sets of values"
            raise InputError(problem, column=name) from None
        named = sorted({value for cell in cells for value in _named(cell)})
        positions = positions_of(described, pa.array(named, pa.string()))
        return cls(texts, cells, None if positions is None else dict(zip(named, positions.tolist(), strict=True)))

    @property
    def has_order(self) -> bool:
        return self.position_of is not None

    def single_values(self) -> tuple[str, ...]:
        return tuple(sorted({value for cell in self.cells for value in cell.values}))


def _named(cell: GeneralizedCell) -> tuple[str, ...]:
    return (*cell.values, *(cell.bounds or ()))


@dataclass(frozen=True)
class _Ranges:
    described: Column
    form: RangeEncoding

    def names(self) -> list[str]:
        name = self.described.name
        return [name] if self.form == "midpoint" else [f"{name} from", f"{name} to"]

    def encode(self, distinct: _Distinct) -> Matrix:
        position_of = self._placed_one_by_one(distinct) if distinct.position_of is None else distinct.position_of
        ends = np.array([self._ends(cell, position_of) for cell in distinct.cells]).reshape(-1, 2)
        return ends.mean(axis=1, keepdims=True) if self.form == "midpoint" else ends

    def _placed_one_by_one(self, distinct: _Distinct) -> dict[str, float]:
        """Place the values that have a place, beside others that have none."""
        named = {value for cell in distinct.cells for value in _named(cell)}
        found = ((value, positions_of(self.described, pa.array([value], pa.string()))) for value in named)
        return {value: float(position[0]) for value, position in found if position is not None}

    @staticmethod
    def _ends(cell: GeneralizedCell, position_of: Mapping[str, float]) -> tuple[float, float]:
        places = [position_of[value] for value in _named(cell) if value in position_of]
        is_placed = places and len(places) == len(_named(cell))
        return (min(places), max(places)) if is_placed else (np.nan, np.nan)


@dataclass(frozen=True)
class _Shares:
    described: Column
    values: tuple[str, ...]

    def names(self) -> list[str]:
        return [f"{self.described.name} = {i}" for i in range(len(self.values))]

    def encode(self, distinct: _Distinct) -> Matrix:
        place = {value: i for i, value in enumerate(self.values)}
        shares = np.zeros((len(distinct.cells), len(self.values)))
        for row, cell in enumerate(distinct.cells):
            if cell.is_any:
                shares[row] = 1 / max(len(self.values), 1)
            else:
                held = [place[value] for value in cell.values if value in place]
                shares[row, held] = 1 / max(len(cell.values), 1)
        return shares


@dataclass(frozen=True)
class _Labels:
    described: Column
    number_of: Mapping[str, int]

    def names(self) -> list[str]:
        return [self.described.name]

    def encode(self, distinct: _Distinct) -> Matrix:
        numbers = [np.nan if text is None else self.number_of.get(text, np.nan) for text in distinct.texts]
        return np.array(numbers, dtype=np.float64).reshape(-1, 1)
