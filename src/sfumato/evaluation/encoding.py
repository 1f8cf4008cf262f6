"""Generalized cells as numbers that any classifier can be trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import InputError, InvalidParameterError
from sfumato.recoding.axes import positions_of
from sfumato.schema import Column, Kind
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.generalized import GeneralizedCell, read_cell

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
        A set becomes one column for each value of the original column, with 1 over the size of the set for its values
        and 0 for all others (a single value is a one, ``*`` the same share for all); or one column with a number for
        each distinct set, to be taken as a category.

    Attributes
    ----------
    feature_names_ : tuple of str
    is_categorical_ : ndarray of bool
        Which columns hold numbers of categories.

    Notes
    -----
    A missing cell is not-a-number in a column of ranges and of labels, and all zeros in shares. A label that the
    fitted table did not have is not-a-number as well.

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
            Columns to encode, with the kind that their *original* values have; see :func:`original_columns`.
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
        self.feature_names_ = tuple(name for part in self._parts for name in part.names())
        self.is_categorical_ = np.array(
            [isinstance(p, _Labels) for p in self._parts for _ in p.names()], dtype=np.bool_
        )
        return self

    def transform(self, table: Table) -> Matrix:
        """Encode the rows of a table, which may be another one than was fitted."""
        blocks = []
        for part in self._parts:
            column = table[part.described.name]
            distinct = _Distinct.of(part.described.name, column, part.described)
            blocks.append(part.encode(distinct)[column.codes])
        return np.hstack(blocks) if blocks else np.zeros((table.n_rows, 0))


def original_columns(manifest: Mapping[str, Any], table: Table) -> dict[str, Column]:
    """Describe the columns of a release by the kinds that their original values have.

    A generalized column is released as text; its recoding says what its values were.
    """
    from_recoding = {
        entry["name"]: Column(
            entry["name"],
            kind=Kind(entry.get("kind", Kind.CATEGORICAL)),
            domain=tuple(entry.get("domain") or ()) or None,
        )
        for entry in manifest.get("recodings", ())
    }
    return {column.name: from_recoding.get(column.name, column) for column in table.schema}


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
            named = sorted({value for cell in cells for value in (*cell.values, *(cell.bounds or ()))})
            positions = positions_of(described, pa.array(named, pa.string()))
        except ValueError:
            problem = "has cells that are neither values nor ranges or sets of values"
            raise InputError(problem, column=name) from None
        return cls(texts, cells, None if positions is None else dict(zip(named, positions.tolist(), strict=True)))

    @property
    def has_order(self) -> bool:
        return self.position_of is not None

    def single_values(self) -> tuple[str, ...]:
        return tuple(sorted({value for cell in self.cells for value in cell.values}))


@dataclass(frozen=True)
class _Ranges:
    described: Column
    form: RangeEncoding

    def names(self) -> list[str]:
        name = self.described.name
        return [name] if self.form == "midpoint" else [f"{name} from", f"{name} to"]

    def encode(self, distinct: _Distinct) -> Matrix:
        ends = np.array([self._ends(cell, distinct.position_of or {}) for cell in distinct.cells]).reshape(-1, 2)
        return ends.mean(axis=1, keepdims=True) if self.form == "midpoint" else ends

    @staticmethod
    def _ends(cell: GeneralizedCell, position_of: Mapping[str, float]) -> tuple[float, float]:
        places = [position_of[value] for value in (*cell.values, *(cell.bounds or ()))]
        return (min(places), max(places)) if places else (np.nan, np.nan)


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
            held = range(len(self.values)) if cell.is_any else [place[v] for v in cell.values if v in place]
            shares[row, list(held)] = 1 / max(len(held), 1)
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
