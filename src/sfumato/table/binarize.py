"""Mixed columns to binary features, each with a description from which anybody can compute it again."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.errors import ColumnNotFoundError, InvalidParameterError, NotBinaryError, SchemaError
from sfumato.schema import Column, Kind, Role
from sfumato.table.binary import AS_IS, INTERVAL, MISSING, ONE_OF, BinaryTable, Feature
from sfumato.table.coding import CodedColumn, Table, is_number_type
from sfumato.table.weighted import CountedTable, OpenColumn

# Binarizations that a paper or a field has fixed, by name.
#
# ``adult-19`` The 19 binary features of UCI Adult in the experiments of [kAC17]_ (section 5.1), on the columns as
# ``load_adult`` of the reproductions names them. From the paper: five age bands [0, 25], (25, 35], (35, 45],
# (45, 55], (55, ∞); never-married; white; gender; four bands of education and five of weekly hours; one feature each
# for work class and occupation. Ours, because the paper does not say:
#
# - education bands on ``education-num``: ≤ 8 (no diploma), 9 (high-school graduate), 10–12 (some college, associate
# degree), > 12 (bachelor and above); - weekly hours: ≤ 20, 20–35, 35–40, 40–50, > 50; - gender: male is 1; - work
# class: federal, local and state government; occupation: the manual ("blue-collar") trades. Every row has exactly
# three ones from the bands, so the printed density of 27.9 % (32,561 rows) fixes how common these two are together,
# 44–46 % of the rows. This pair gives 27.86 %. Other natural pairs: government with managers, professionals and
# technicians 27.71 %; self-employed with blue-collar 27.75 %; government or self-employed with managers and
# professionals 28.16 %; any pair with private work above 29 %; - a missing work class or occupation is 0, and there is
# no "missing" feature.


_GOVERNMENT = ["Federal-gov", "Local-gov", "State-gov"]
_BLUE_COLLAR = ["Craft-repair", "Farming-fishing", "Handlers-cleaners", "Machine-op-inspct", "Transport-moving"]

RECIPES: Mapping[str, Mapping[str, Any]] = {
    "adult-19": {
        "missing_features": False,
        "unlisted": "drop",
        "columns": {
            "age": {"cuts": [25, 35, 45, 55]},
            "workclass": {"one_of": _GOVERNMENT, "name": "government"},
            "education-num": {"cuts": [8, 9, 12]},
            "marital-status": {"one_of": ["Never-married"], "name": "never-married"},
            "occupation": {"one_of": _BLUE_COLLAR, "name": "blue-collar"},
            "race": {"one_of": ["White"], "name": "white"},
            "sex": {"one_of": ["Male"], "name": "male"},
            "hours-per-week": {"cuts": [20, 35, 40, 50]},
        },
    },
}
"""Plans as :meth:`BinarizePlan.from_dict` reads them."""


# Short cut points near the quantiles of a column.


def quantile_cuts(numbers: NDArray[np.float64], counts: NDArray[np.int64], bands: int) -> tuple[float, ...]:
    """Cut points that split the rows into about ``bands`` equal parts.

    Each is the shortest decimal that moves at most 2 % of the rows to the other side.

    Parameters
    ----------
    numbers, counts : arrays
        Distinct values in any order (not-a-number is left out) and how many rows hold them.

    Returns
    -------
    tuple of float
        Strictly increasing; no band is empty, so heavy ties give fewer cuts than ``bands - 1``.
    """
    finite = np.isfinite(numbers)
    distinct, inverse = np.unique(numbers[finite], return_inverse=True)
    if len(distinct) < 2:
        return ()
    reached = np.cumsum(np.bincount(inverse, weights=counts[finite])) / counts[finite].sum()
    last = len(distinct) - 2  # a cut at the largest value would leave nothing above it
    by_split: dict[int, float] = {}
    for band in range(1, bands):
        low, middle, high = (
            min(int(np.searchsorted(reached, band / bands + shift - 1e-12)), last) for shift in (-0.02, 0.0, 0.02)
        )
        cut = shortest_decimal(float(distinct[low]), float(distinct[middle]), float(distinct[high + 1]))
        by_split.setdefault(int(np.searchsorted(distinct, cut, side="right")), cut)
    return tuple(sorted(by_split.values()))


def shortest_decimal(low: float, middle: float, high: float) -> float:
    """Return the number in [low, high) with the fewest digits; of several, the nearest to ``middle``."""
    largest = max(abs(low), abs(high))
    if largest > 1e300:  # rounding upwards would overflow
        return middle
    first = -math.floor(math.log10(largest)) - 1 if largest > 0 else 0
    for digits in range(first, first + 17):
        step = 10.0**-digits
        near = (round(middle, digits), round(middle - step / 2, digits), round(middle + step / 2, digits))
        inside = [number for number in near if low <= number < high]
        if inside:
            return min(inside, key=lambda number: (abs(number - middle), number)) + 0.0
    return middle


# How one column becomes binary features: cut points, value sets, one feature a value, or the column itself.


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
        """Return what represents this rule in a project file."""
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
            problem = f"has the rule as-is, but its {coded.n_distinct:,} distinct values are not all 0/1 or yes/no"
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
        problem = "has a rule for numbers, but not all its values are numbers"
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


# Plans of how mixed columns become binary features, as project files write them.


_WORDS: Mapping[str, Callable[[], Rule]] = {"values": EachValue, "as-is": AsIs, "drop": Drop}
_MOST_BANDS = 100


@dataclass(frozen=True)
class BinarizePlan:
    """What becomes of each quasi-identifier.

    Parameters
    ----------
    columns : mapping of str to Rule
        A rule for each listed column.
    bands : int
        Number of quantile bands for a numeric column that is not listed.
    missing_features : bool
        Whether a column with missing cells gets a feature ``<column> missing``; otherwise such a row has 0 in all the
        column's features.
    unlisted : {"automatic", "drop"}
        Whether columns that are not listed follow the automatic rule or are left out.

    Examples
    --------
    >>> plan = BinarizePlan.from_dict({"columns": {"age": {"cuts": [25, 35]}, "sex": "values"}})
    >>> plan.columns["age"]
    CutPoints(cuts=(25.0, 35.0))
    >>> BinarizePlan.from_dict(plan.to_dict()) == plan
    True
    """

    columns: Mapping[str, Rule] = field(default_factory=dict)
    bands: int = 4
    missing_features: bool = True
    unlisted: Literal["automatic", "drop"] = "automatic"

    def __post_init__(self) -> None:
        _check_bands("bands", self.bands)
        if not isinstance(self.missing_features, bool):
            raise _invalid(self.missing_features, where="missing_features", allowed="true or false")
        if self.unlisted not in ("automatic", "drop"):
            raise _invalid(self.unlisted, where="unlisted", allowed="'automatic' or 'drop'")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BinarizePlan:
        """Read the plan of a project file: ``{"recipe": name}`` or bands, missing_features, unlisted and columns.

        A column's entry is ``"values"``, ``"as-is"``, ``"drop"``, ``{"cuts": [...]}``, ``{"bands": n}`` or
        ``{"one_of": [...], "name": ...}``.

        Raises
        ------
        InvalidParameterError
            For an unknown key, recipe or rule, or a value of the wrong kind.
        """
        if not isinstance(data, Mapping):
            raise _invalid(data, where="binarize", allowed="a table of settings")
        if "recipe" in data:
            return cls._recipe(data)
        known = ("recipe", "bands", "columns", "missing_features", "unlisted")
        _check_keys("binarize", data, known)
        columns = data.get("columns", {})
        if not isinstance(columns, Mapping):
            raise _invalid(columns, where="binarize.columns", allowed="a table of column names and rules")
        settings = {key: data[key] for key in ("bands", "missing_features", "unlisted") if key in data}
        return cls({str(name): _rule(str(name), spec) for name, spec in columns.items()}, **settings)

    @classmethod
    def _recipe(cls, data: Mapping[str, Any]) -> BinarizePlan:
        name = data["recipe"]
        if name not in RECIPES:
            raise _invalid(name, where="recipe", allowed=_one_of(RECIPES), hint=_nearest(name, RECIPES))
        if len(data) > 1:
            where, others = "binarize", ", ".join(str(key) for key in data if key != "recipe")
            raise InvalidParameterError(where, f"got also {others}", allowed="a recipe alone, or settings without one")
        return cls.from_dict(RECIPES[name])

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data that :meth:`from_dict` reads back; a recipe is written out."""
        columns = {name: rule.to_plan() for name, rule in self.columns.items()}
        return {
            "bands": self.bands,
            "missing_features": self.missing_features,
            "unlisted": self.unlisted,
            "columns": columns,
        }


def _rule(column: str, spec: Any) -> Rule:
    """Read one column's entry of a plan."""
    where = f"binarize.columns.{column}"
    if isinstance(spec, str) and spec in _WORDS:
        return _WORDS[spec]()
    forms = [key for key in ("cuts", "one_of", "bands") if isinstance(spec, Mapping) and key in spec]
    if len(forms) != 1:
        allowed = "'values', 'as-is', 'drop' or a table with exactly one of cuts, one_of and bands"
        hint = _nearest(spec, _WORDS) if isinstance(spec, str) else ""
        shown = repr(spec) if isinstance(spec, str) else _keys_of(spec)
        raise InvalidParameterError(where, f"got {shown}", allowed=allowed, hint=hint)
    _check_keys(where, spec, ("one_of", "name") if forms == ["one_of"] else tuple(forms))
    if forms == ["cuts"]:
        return CutPoints(_cuts(f"{where}.cuts", spec["cuts"]))
    if forms == ["bands"]:
        return QuantileBands(_check_bands(f"{where}.bands", spec["bands"]))
    return _value_set(where, spec)


def _cuts(where: str, given: Any) -> tuple[float, ...]:
    allowed = "a list of one or more different finite numbers, from small to large"
    if not isinstance(given, list | tuple) or not given:
        raise _invalid(given, where=where, allowed=allowed)
    if not all(isinstance(cut, int | float) and not isinstance(cut, bool) and math.isfinite(cut) for cut in given):
        raise _invalid(given, where=where, allowed=allowed)
    cuts = tuple(float(cut) for cut in given)
    if any(low >= high for low, high in pairwise(cuts)):
        raise _invalid(given, where=where, allowed=allowed)
    return cuts


def _value_set(where: str, spec: Mapping[str, Any]) -> OneOf:
    given, name = spec["one_of"], spec.get("name")
    if not isinstance(given, list | tuple) or not given or not all(isinstance(v, str | int | float) for v in given):
        raise _invalid(given, where=f"{where}.one_of", allowed="a list of one or more values")
    if name is not None and (not isinstance(name, str) or not name):
        raise _invalid(name, where=f"{where}.name", allowed="a text")
    return OneOf(tuple(dict.fromkeys(_text(value) for value in given)), name)


def _text(value: str | float) -> str:
    """Write a value of a project file as cells are written: 1.0 as 1, true as true."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _check_bands(where: str, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 2 <= given <= _MOST_BANDS:
        raise _invalid(given, where=where, allowed=f"a whole number from 2 to {_MOST_BANDS}")
    return given


def _check_keys(where: str, data: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in data:
        if key not in known:
            allowed = f"a table with the keys {', '.join(known)}"
            raise InvalidParameterError(where, f"got also {key!r}", allowed=allowed, hint=_nearest(key, known))


def _invalid(given: object, *, where: str, allowed: str, hint: str = "") -> InvalidParameterError:
    return InvalidParameterError(where, f"got {given!r}", allowed=allowed, hint=hint)


def _nearest(given: object, known: Iterable[str]) -> str:
    nearest = difflib.get_close_matches(str(given), list(known), n=1)
    return f"did you mean '{nearest[0]}'?" if nearest else ""


def _one_of(known: Iterable[str]) -> str:
    return "one of " + ", ".join(f"'{name}'" for name in known)


def _keys_of(spec: Any) -> str:
    return f"a table with {', '.join(map(str, spec)) or 'no keys'}" if isinstance(spec, Mapping) else repr(spec)


def binarize(table: Table, plan: BinarizePlan | None = None) -> BinaryTable:
    """Turn the quasi-identifiers of a table into binary features.

    Identifiers are left out; target, sensitive and other columns travel along unchanged.

    Parameters
    ----------
    table : Table
    plan : BinarizePlan or None
        ``None`` uses the automatic rules: 0/1 and yes/no columns stay as they are, numbers with more than 10 distinct
        values become 4 quantile bands, every other value gets a feature of its own, and a column with missing cells a
        feature ``<column> missing``. Dates are dropped: without a rule of their own they are not released.

    Returns
    -------
    BinaryTable
        Features in the order of their columns. A ``one-of`` description compares texts by spelling, and a typed cell
        by what it means: a number with the number that the text spells, a truth value with ``true`` or ``false``. An
        ``interval`` compares the cell as a number. Both are 0 when the cell is missing.

    Raises
    ------
    ColumnNotFoundError
        If the plan lists a column that the table does not have.
    SchemaError
        If the plan lists a column that is no quasi-identifier, a rule does not fit its column, two features would have
        the same name, or a feature the name of a column from which it was not computed.

    Notes
    -----
    Time O(rows + distinct values) a column, plus a sort of the rows for columns with several features.
    """
    return Binarization.of(table, plan).applied_to(table)


@dataclass(frozen=True)
class Binarization:
    """What becomes of the quasi-identifiers of a table: for each the features, and which values have which.

    It needs the distinct values of each column and their counts only. For a table that is larger than memory its
    columns are turned into *places*: codes that say which of the column's features is 1, the last one that none is.
    """

    assignments: Mapping[str, Assignment]

    @classmethod
    def of(cls, table: Table, plan: BinarizePlan | None = None) -> Binarization:
        """Find the features of a table; raises what :func:`binarize` does."""
        plan = plan or BinarizePlan()
        _check_listed(table, plan)
        assignments = {name: _assign(table, name, plan) for name in table.schema.names(Role.QUASI_IDENTIFIER)}
        _check_names([f for assignment in assignments.values() for f in assignment.features], table.schema.names())
        return cls(assignments)

    @property
    def features(self) -> tuple[Feature, ...]:
        """All features, in the order of their columns."""
        return tuple(feature for assignment in self.assignments.values() for feature in assignment.features)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that have features."""
        return tuple(name for name, assignment in self.assignments.items() if assignment.features)

    def place(self, feature: Feature) -> int:
        """Place of a feature among those of its column."""
        return self.assignments[feature.column].features.index(feature)

    def applied_to(self, table: Table) -> BinaryTable:
        """Compute the features of the rows of a table that holds the values themselves."""
        of_rows = [(a, a.of_value[table[name].codes]) for name, a in self.assignments.items() if a.features]
        companions = table.keep(_companions(table))
        return BinaryTable(_matrix(of_rows, table.n_rows), self.features, companions)

    def places(self, outline: Table) -> Table:
        """Replace the values of the columns that have features by places."""
        columns = dict(outline.columns)
        for name in self.columns:
            assignment = self.assignments[name]
            n_features = len(assignment.features)
            of_value = np.where(assignment.of_value < 0, n_features, assignment.of_value).astype(np.int32)
            values = pa.array(range(n_features + 1), pa.int32())
            columns[name] = replace(columns[name], codes=of_value[columns[name].codes], values=values)
        return replace(outline, columns=columns)

    def applied_to_places(self, counted: CountedTable, outline: Table) -> BinaryTable:
        """Compute the features of distinct rows of places; columns of the outline travel along."""
        of_rows = []
        for name in self.columns:
            assignment, codes = self.assignments[name], counted[name].codes
            of_rows.append((assignment, np.where(codes == len(assignment.features), -1, codes)))
        names = _companions(outline)
        together = [name for name in counted.together if name in names]
        codes_together = [counted[name].codes for name in together]
        companions = CountedTable.of(outline.keep(names), together, codes_together, counted.row_counts)
        return BinaryTable(_matrix(of_rows, len(counted.row_counts)), self.features, companions)


def _companions(table: Table) -> tuple[str, ...]:
    return table.schema.published_unchanged()


def _assign(table: Table, name: str, plan: BinarizePlan) -> Assignment:
    column, coded = table.schema[name], table[name]
    is_left_out = plan.unlisted == "drop" or is_dropped(column)
    rule = plan.columns.get(name, Drop() if is_left_out else None)
    if isinstance(coded, OpenColumn) and not isinstance(rule, Drop):
        problem = f"has too many distinct values for a column with the role {column.role}"
        hint = "round or group its values in the file first, or give it the role other or identifier"
        raise SchemaError(problem, column=name, hint=hint)
    found = automatic(column, coded, plan.bands) if rule is None else rule.assign(column, coded)
    if isinstance(rule, Drop) or not plan.missing_features or coded.missing_code is None:
        return found
    of_value = found.of_value.copy()
    of_value[coded.missing_code] = len(found.features)
    return Assignment((*found.features, Feature(f"{name} missing", name, MISSING)), of_value)


def _rows_by_feature(
    of_row: NDArray[np.integer], assignment: Assignment
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Rows of each feature's ones, feature after feature, and how many each has."""
    rows = np.flatnonzero(of_row >= 0).astype(np.int32)
    if len(assignment.features) == 1:
        return rows, np.array([len(rows)])
    order = np.argsort(of_row[rows], kind="stable")
    return rows[order], np.bincount(of_row[rows], minlength=len(assignment.features))


def _matrix(of_rows: Sequence[tuple[Assignment, NDArray[np.integer]]], n_rows: int) -> sp.csc_matrix:
    """Put the features of several columns side by side, given the place of each row's feature in each column."""
    found = [_rows_by_feature(of_row, assignment) for assignment, of_row in of_rows]
    rows = np.concatenate([np.zeros(0, dtype=np.int32), *(indices for indices, _ in found)])
    sizes = np.concatenate([np.zeros(0, dtype=np.int64), *(own for _, own in found)])
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    matrix = sp.csc_matrix((np.ones(len(rows), dtype=np.uint8), rows, indptr), shape=(n_rows, len(sizes)))
    matrix.has_canonical_format = True
    return matrix


def _check_listed(table: Table, plan: BinarizePlan) -> None:
    for name in plan.columns:
        if name not in table.schema:
            raise ColumnNotFoundError(name, table.schema.names())
        role = table.schema[name].role
        if not role.is_one_of([Role.QUASI_IDENTIFIER]):
            problem = f"has a binarization rule and the role {role}; only quasi-identifiers become features"
            raise SchemaError(problem, column=name, hint="change its role or take it out of the plan")


def _check_names(features: Sequence[Feature], columns: Sequence[str]) -> None:
    """Refuse names that repeat or are another column's, naming columns only: a feature's name may hold a cell value.

    This holds for all columns of the table, also those that are not released: a reader would take one for the other.
    """
    owner = {name: name for name in columns}
    for feature in features:
        other = owner.setdefault(feature.name, feature.column)
        if other != feature.column:
            problem = f"a feature of it would have the same name as column '{other}' or one of its features"
            raise SchemaError(problem, column=feature.column, hint=f"rename column '{other}' or give the rule a name")
    if len({feature.name for feature in features}) != len(features):
        problem = "two features would have the same name"
        raise SchemaError(problem, hint="give the rules names")


__all__ = ["Binarization", "BinarizePlan", "binarize"]
