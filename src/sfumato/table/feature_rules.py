"""How one column becomes binary features: cut points, value sets, one feature a value, or the column itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import NotBinaryError, SchemaError
from sfumato.schema import Column, Kind
from sfumato.table.binary import AS_IS, INTERVAL, ONE_OF, Feature
from sfumato.table.coding import CodedColumn
from sfumato.table.quantiles import quantile_cuts

FEW_VALUES = 10
"""A numeric column with more distinct values than this is cut into bands."""

_TRUTH_WORDS = ({"yes": True, "no": False}, {"true": True, "false": False})
_MOST_TRUTH_SPELLINGS = 12  # a column with more distinct values is not looked at as yes/no


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
    """A single feature that is 1 when the cell is one of ``values``; named ``column=a|b`` unless a name is given."""

    values: tuple[str, ...]
    name: str | None = None

    def assign(self, column: Column, coded: CodedColumn) -> Assignment:
        """Match by text; in a numeric column also by number, so that 1 finds 1.0."""
        texts = cell_texts(coded.values)
        wanted = set(self.values)
        if column.kind is Kind.NUMERIC:
            sought = {number for number in map(_number_or_none, self.values) if number is not None}
            numbers = _numbers(column.name, coded)
            wanted |= {
                text for text, number in zip(texts, numbers, strict=True) if text is not None and number in sought
            }
        if texts and not wanted.intersection(texts):
            problem = f"holds none of the {len(self.values):,} values of one_of"
            raise SchemaError(problem, column=column.name, hint="capital letters and blanks count")
        name = self.name or f"{column.name}={'|'.join(self.values)}"
        feature = Feature(name, column.name, ONE_OF, values=(*self.values, *sorted(wanted.difference(self.values))))
        return _single(feature, [text in wanted for text in texts])

    def to_plan(self) -> Any:
        """``{"one_of": [...]}`` with the name if one was given."""
        return {"one_of": list(self.values)} | ({"name": self.name} if self.name else {})


@dataclass(frozen=True)
class EachValue:
    """One feature for every value that occurs, named ``column=value``; equal numbers in two spellings are one value."""

    def assign(self, column: Column, coded: CodedColumn) -> Assignment:
        """Leave a missing value without a feature."""
        texts = cell_texts(coded.values)
        spellings: dict[object, list[str]] = {}
        keys: Sequence[object] = texts
        if column.kind is Kind.NUMERIC:
            keys = [
                t if math.isnan(n) else n for t, n in zip(texts, _numbers(column.name, coded).tolist(), strict=True)
            ]
        position: dict[object, int] = {}
        of_value = np.full(len(texts), -1, dtype=np.intp)
        for i, (key, text) in enumerate(zip(keys, texts, strict=True)):
            if text is not None:
                of_value[i] = position.setdefault(key, len(position))
                spellings.setdefault(key, []).append(text)
        features = tuple(
            Feature(f"{column.name}={same[0]}", column.name, ONE_OF, values=tuple(same)) for same in spellings.values()
        )
        return Assignment(features, of_value)

    def to_plan(self) -> Any:
        """``"values"``."""
        return "values"


@dataclass(frozen=True)
class AsIs:
    """The column itself, which holds only 0 and 1, true and false, or yes and no (in any letter case)."""

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
    """Read a column as 0/1, true/false or yes/no; ``None`` when it holds anything else."""
    if coded.n_distinct > _MOST_TRUTH_SPELLINGS:
        return None
    texts = cell_texts(coded.values)
    present = [text for text in texts if text is not None]
    if all(text in ("0", "1") for text in present):
        return _single(Feature(column.name, column.name, AS_IS), [text == "1" for text in texts])
    for words in _TRUTH_WORDS:
        if all(text.lower() in words for text in present):
            true = tuple(t for t in present if words[t.lower()]) or tuple(w for w, is_true in words.items() if is_true)
            return _single(Feature(column.name, column.name, ONE_OF, values=true), [text in true for text in texts])
    numbers = [_number_or_none(text) for text in present]
    if all(number in (0, 1) for number in numbers):  # 1.0, 01, …: the spellings are recorded
        ones = tuple(text for text, number in zip(present, numbers, strict=True) if number == 1) or ("1",)
        return _single(Feature(column.name, column.name, ONE_OF, values=ones), [text in ones for text in texts])
    return None


def automatic(column: Column, coded: CodedColumn, bands: int) -> Assignment:
    """Choose by what the column holds.

    0/1 and yes/no stay as they are, numbers with more than 10 distinct values become quantile bands, everything else
    gets one feature a value.

    Raises
    ------
    SchemaError
        For a date: an interval is described by numbers, and one feature a day would describe single people.
    """
    if coded.n_distinct - coded.values.null_count == 0:
        return Assignment((), np.full(coded.n_distinct, -1, dtype=np.intp))
    found = as_truth(column, coded)
    if found is not None:
        return found
    if column.kind is Kind.DATE:
        problem = "is a date, for which there is no automatic binary feature"
        hint = "turn it into a year or an age first, or give it another role (identifier drops it)"
        raise SchemaError(problem, column=column.name, hint=hint)
    if column.kind is Kind.NUMERIC and coded.n_distinct - coded.values.null_count > FEW_VALUES:
        return QuantileBands(bands).assign(column, coded)
    return EachValue().assign(column, coded)


def cell_texts(values: pa.Array) -> list[str | None]:
    """Distinct values as the texts that a feature's ``values`` hold: ``1``, ``0.5``, ``true``, ``2024-01-31``.

    A number's text spells exactly that number; a whole floating-point number is written without a point.
    """
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


def _number_or_none(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _single(feature: Feature, is_one: Sequence[bool]) -> Assignment:
    return Assignment((feature,), np.where(np.asarray(is_one, dtype=np.bool_), 0, -1).astype(np.intp))


def _short(number: float) -> int | float:
    return int(number) if float(number).is_integer() and abs(number) < 1e15 else float(number)


def _band_name(name: str, above: float | None, upto: float | None) -> str:
    if above is None:
        return f"{name}<={_short(upto)}" if upto is not None else name
    return f"{name}>{_short(above)}" if upto is None else f"{_short(above)}<{name}<={_short(upto)}"
