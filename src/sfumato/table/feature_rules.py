"""How one column becomes binary features: cut points, value sets, one feature a value, or the column itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import NotBinaryError, SchemaError
from sfumato.schema import Column, Kind
from sfumato.table.binary import AS_IS, INTERVAL, ONE_OF, Feature
from sfumato.table.coding import CodedColumn, is_number_type
from sfumato.table.quantiles import quantile_cuts

FEW_VALUES = 10
"""A numeric column with more distinct values than this is cut into bands."""

_TRUTH_SPELLINGS = (
    (("1", "1.0"), ("0", "0.0")),
    (("yes", "Yes", "YES"), ("no", "No", "NO")),
    (("true", "True", "TRUE"), ("false", "False", "FALSE")),
)
TRUE_TEXTS = tuple(text for true, _ in _TRUTH_SPELLINGS for text in true)
"""Every spelling of 1, yes and true that a 0/1 column may have."""
_MOST_TRUTH_SPELLINGS = 7  # six and a missing value: a column with more distinct values is not looked at as yes/no
_TRUTH_WORDS = {"true": True, "false": False}
_WHOLE = re.compile(r"[+-]?\d{1,300}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity)", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class Assignment:
    """A column's features, and for each of its distinct values the position of the feature that is 1 (-1: none is)."""

    features: tuple[Feature, ...]
    of_value: NDArray[np.intp]


class Rule(Protocol):
    """Turns a column's distinct values into features that exclude each other."""

    def assign(self, column: Column, coded: CodedColumn) -> Assignment:
        """Describe the features and say which distinct value belongs to which; a missing value belongs to none."""
        ...

    def to_plan(self) -> Any:
        """Return what stands for this rule in a project file."""
        ...


@dataclass(frozen=True)
class CutPoints:
    """Bands (-inf, first], (first, second], …, (last, inf) of a numeric column; strictly increasing cut points."""

    cuts: tuple[float, ...]

    def assign(self, column: Column, coded: CodedColumn) -> Assignment:
        """One feature a band, also for a band in which no row lies."""
        numbers = _numbers(column.name, coded)
        edges = (None, *self.cuts, None)
        features = tuple(
            Feature(_band_name(column.name, above, upto), column.name, INTERVAL, above=above, upto=upto)
            for above, upto in pairwise(edges)
        )
        of_value = np.searchsorted(np.asarray(self.cuts, dtype=np.float64), numbers, side="left")
        return Assignment(features, np.where(np.isnan(numbers), -1, of_value).astype(np.intp))

    def to_plan(self) -> Any:
        """``{"cuts": [...]}``."""
        return {"cuts": [_short(cut) for cut in self.cuts]}


@dataclass(frozen=True)
class QuantileBands:
    """Cut points at the column's own quantiles, moved to short decimals near by."""

    bands: int

    def assign(self, column: Column, coded: CodedColumn) -> Assignment:
        """Find the cut points and use them; a constant column becomes one band."""
        cuts = quantile_cuts(_numbers(column.name, coded), coded.counts, self.bands)
        if not cuts:
            return EachValue().assign(column, coded)
        return CutPoints(cuts).assign(column, coded)

    def to_plan(self) -> Any:
        """``{"bands": n}``."""
        return {"bands": self.bands}


@dataclass(frozen=True)
class OneOf:
    """A single feature that is 1 when the cell is one of ``values``; named ``column=a|b`` unless a name is given.

    Texts are compared by spelling, also in a numeric column of a text file: 1 does not find ``1.0`` there, so every
    spelling has to be listed. A typed number or truth value is compared by what the text means: 1.0 finds the number 1.
    """

    values: tuple[str, ...]
    name: str | None = None

    def assign(self, column: Column, coded: CodedColumn) -> Assignment:
        """Record exactly the values that were asked for, whatever spellings occur."""
        wanted = set(self.values)
        is_one = [text in wanted for text in cell_texts(coded.values)]
        if is_number_type(coded.values.type):
            meant = _meanings(self.values, coded.values.type)
            is_one = [one or cell in meant for one, cell in zip(is_one, coded.values.to_pylist(), strict=True)]
        if is_one and not any(is_one):
            problem = f"holds none of the {len(self.values):,} values of one_of"
            hint = "capital letters, blanks and the spelling of numbers count"
            raise SchemaError(problem, column=column.name, hint=hint)
        name = self.name or f"{column.name}={'|'.join(self.values)}"
        return _single(Feature(name, column.name, ONE_OF, values=self.values), is_one)

    def to_plan(self) -> Any:
        """``{"one_of": [...]}`` with the name if one was given."""
        return {"one_of": list(self.values)} | ({"name": self.name} if self.name else {})


@dataclass(frozen=True)
class EachValue:
    """One feature for every value that occurs, named ``column=value``.

    Two spellings in a text file (``1`` and ``1.0``, ``yes`` and ``Yes``) are two values: a description never lists a
    second spelling, which a single row may have.
    """

    def assign(self, column: Column, coded: CodedColumn) -> Assignment:
        """Leave a missing value without a feature."""
        texts = cell_texts(coded.values)
        position: dict[str, int] = {}
        of_value = np.full(len(texts), -1, dtype=np.intp)
        for i, text in enumerate(texts):
            if text is not None:
                of_value[i] = position.setdefault(text, len(position))
        features = tuple(Feature(f"{column.name}={text}", column.name, ONE_OF, values=(text,)) for text in position)
        return Assignment(features, of_value)

    def to_plan(self) -> Any:
        """``"values"``."""
        return "values"


@dataclass(frozen=True)
class AsIs:
    """The column itself, which holds only 0 and 1, true and false, or yes and no (small, Capital or CAPITALS)."""

    def assign(self, column: Column, coded: CodedColumn) -> Assignment:
        """Keep the column's name; words are recorded as ``one-of``, so that the description says which one is 1."""
        found = as_truth(column, coded)
        if found is None:
            problem = (
                f"is to be used as it is, but has {coded.n_distinct:,} distinct values that are not all 0/1 or yes/no"
            )
            raise NotBinaryError(problem, column=column.name, hint="use the rule values, one_of or cuts")
        return found

    def to_plan(self) -> Any:
        """``"as-is"``."""
        return "as-is"


@dataclass(frozen=True)
class Drop:
    """No feature at all."""

    def assign(self, column: Column, coded: CodedColumn) -> Assignment:
        """Leave every value without a feature."""
        return Assignment((), np.full(coded.n_distinct, -1, dtype=np.intp))

    def to_plan(self) -> Any:
        """``"drop"``."""
        return "drop"


def as_truth(column: Column, coded: CodedColumn) -> Assignment | None:
    """Read a column as 0/1, true/false or yes/no; ``None`` when it holds anything else.

    Words count in small letters, with a capital or in capitals, and 0/1 also as 0.0/1.0. All the spellings of "yes" are
    recorded whether they occur or not, so that the description does not show what a single row holds.
    """
    if coded.n_distinct > _MOST_TRUTH_SPELLINGS:
        return None
    texts = cell_texts(coded.values)
    present = {text for text in texts if text is not None}
    if present <= {"0", "1"}:
        return _single(Feature(column.name, column.name, AS_IS), [text == "1" for text in texts])
    if pa.types.is_decimal(coded.values.type):
        cells = coded.values.to_pylist()
        is_truth = all(cell in (None, 0, 1) for cell in cells)
        return _single(Feature(column.name, column.name, AS_IS), [cell == 1 for cell in cells]) if is_truth else None
    for true, false in _TRUTH_SPELLINGS:
        if present.issubset(true + false):
            return _single(Feature(column.name, column.name, ONE_OF, values=true), [text in true for text in texts])
    return None


def is_dropped(column: Column) -> bool:
    """Whether the automatic rule drops a column: an interval needs numbers, and a feature a day would describe people.

    To release something of a date, turn it into a year or an age first, or give it the rule ``values`` or ``one_of``.
    """
    return column.kind is Kind.DATE


def automatic(column: Column, coded: CodedColumn, bands: int) -> Assignment:
    """Choose by what the column holds.

    0/1 and yes/no stay as they are, numbers with more than 10 distinct values become quantile bands, everything else
    gets one feature a value. A date is dropped (see :func:`is_dropped`).
    """
    if is_dropped(column):
        return Drop().assign(column, coded)
    if coded.n_distinct - coded.values.null_count == 0:
        return Assignment((), np.full(coded.n_distinct, -1, dtype=np.intp))
    found = as_truth(column, coded)
    if found is not None:
        return found
    if column.kind is Kind.NUMERIC and coded.n_distinct - coded.values.null_count > FEW_VALUES:
        return QuantileBands(bands).assign(column, coded)
    return EachValue().assign(column, coded)


def cell_texts(values: pa.Array) -> list[str | None]:
    """Distinct values as the texts that a feature's ``values`` hold: ``1``, ``0.5``, ``true``, ``2024-01-31``.

    A number's text spells exactly that number; a whole floating-point number is written without a point, and zero
    without a sign.
    """
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.equal(values, pa.scalar(0, values.type)), pa.scalar(0, values.type), values)
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        values = pc.cast(values, pa.string())
    texts: list[str | None] = values.to_pylist()
    return texts


def _numbers(name: str, coded: CodedColumn) -> NDArray[np.float64]:
    try:
        return coded.numbers()
    except ValueError:
        problem = "is to be read as numbers, but not all its values are numbers"
        hint = "use the rule values or one_of, or declare the texts that mean missing"
        raise SchemaError(problem, column=name, hint=hint) from None


def _meanings(texts: Iterable[str], data_type: pa.DataType) -> set[object]:
    """Numbers and truth values that texts spell, at the precision of a type; other texts mean nothing there."""
    parse = Decimal if pa.types.is_decimal(data_type) else float
    meant: set[object] = set()
    for text in texts:
        if text.lower() in _TRUTH_WORDS:
            meant.add(_TRUTH_WORDS[text.lower()])
        elif _WHOLE.fullmatch(text):
            meant.add(_rounded(int(text), data_type))
        elif _NUMBER.fullmatch(text):
            meant.add(_rounded(parse(text), data_type))
    return meant


def _rounded(number: float | Decimal, data_type: pa.DataType) -> object:
    """Round a number to a type of less than double precision; whole numbers stay as they are."""
    if isinstance(number, float) and pa.types.is_float32(data_type):
        with np.errstate(over="ignore"):
            rounded = float(np.float32(number))
        return rounded if np.isfinite(rounded) else number
    return number


def _single(feature: Feature, is_one: Sequence[bool]) -> Assignment:
    return Assignment((feature,), np.where(np.asarray(is_one, dtype=np.bool_), 0, -1).astype(np.intp))


def _short(number: float) -> int | float:
    return int(number) if float(number).is_integer() and abs(number) < 1e15 else float(number)


def _band_name(name: str, above: float | None, upto: float | None) -> str:
    if above is None:
        return f"{name}<={_short(upto)}" if upto is not None else name
    return f"{name}>{_short(above)}" if upto is None else f"{_short(above)}<{name}<={_short(upto)}"
