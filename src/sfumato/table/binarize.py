"""Mixed columns to binary features, each with a description from which anybody can compute it again."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.errors import ColumnNotFoundError, InvalidParameterError, SchemaError
from sfumato.schema import Role
from sfumato.table.binary import MISSING, BinaryTable, Feature
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.feature_rules import (
    AsIs,
    Assignment,
    CutPoints,
    Drop,
    EachValue,
    OneOf,
    QuantileBands,
    Rule,
    automatic,
    is_dropped,
)
from sfumato.table.recipes import RECIPES

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
    plan = plan or BinarizePlan()
    _check_listed(table, plan)
    features: list[Feature] = []
    indices: list[NDArray[np.int32]] = []
    sizes: list[NDArray[np.int64]] = []
    for name in table.schema.names(Role.QUASI_IDENTIFIER):
        coded = table[name]
        assignment = _assign(table, name, plan)
        if assignment.features:
            features.extend(assignment.features)
            rows, n_ones = _rows_by_feature(coded, assignment)
            indices.append(rows)
            sizes.append(n_ones)
    companions = table.keep(table.schema.names(Role.TARGET, Role.SENSITIVE, Role.OTHER))
    _check_names(features, table.schema.names())
    return BinaryTable(_matrix(indices, sizes, (table.n_rows, len(features))), tuple(features), companions)


def _assign(table: Table, name: str, plan: BinarizePlan) -> Assignment:
    column, coded = table.schema[name], table[name]
    is_left_out = plan.unlisted == "drop" or is_dropped(column)
    rule = plan.columns.get(name, Drop() if is_left_out else None)
    found = automatic(column, coded, plan.bands) if rule is None else rule.assign(column, coded)
    if isinstance(rule, Drop) or not plan.missing_features or coded.missing_code is None:
        return found
    of_value = found.of_value.copy()
    of_value[coded.missing_code] = len(found.features)
    return Assignment((*found.features, Feature(f"{name} missing", name, MISSING)), of_value)


def _rows_by_feature(coded: CodedColumn, assignment: Assignment) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Rows of each feature's ones, feature after feature, and how many each has."""
    of_row = assignment.of_value[coded.codes]
    rows = np.flatnonzero(of_row >= 0).astype(np.int32)
    if len(assignment.features) == 1:
        return rows, np.array([len(rows)])
    order = np.argsort(of_row[rows], kind="stable")
    return rows[order], np.bincount(of_row[rows], minlength=len(assignment.features))


def _matrix(
    indices: Sequence[NDArray[np.int32]], sizes: Sequence[NDArray[np.int64]], shape: tuple[int, int]
) -> sp.csc_matrix:
    rows = np.concatenate([np.zeros(0, dtype=np.int32), *indices])
    indptr = np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, dtype=np.int64), *sizes]))])
    matrix = sp.csc_matrix((np.ones(len(rows), dtype=np.uint8), rows, indptr), shape=shape)
    matrix.has_canonical_format = True
    return matrix


def _check_listed(table: Table, plan: BinarizePlan) -> None:
    for name in plan.columns:
        if name not in table.schema:
            raise ColumnNotFoundError(name, table.schema.names())
        role = table.schema[name].role
        if role is not Role.QUASI_IDENTIFIER:
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
