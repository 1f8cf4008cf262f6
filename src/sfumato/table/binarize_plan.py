"""Plans of how mixed columns become binary features, as project files write them."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from sfumato.errors import InvalidParameterError
from sfumato.table.feature_rules import AsIs, CutPoints, Drop, EachValue, OneOf, QuantileBands, Rule
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
