"""How manifests state the parameters of every mechanism of this package, made from the declarations of these.

``sfumato/parameters.json`` is this table as data, for those who may not import a mechanism: the form of manifests and
the audit. ``python -m sfumato.mechanisms.stated_parameters`` writes it, and a test compares.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sfumato
from sfumato.guarantees import GUARANTEES
from sfumato.guarantees.forms import COLUMNS, NOTHING, TRUTH, USUAL_DIGITS, Form, record, word
from sfumato.mechanisms.base import SEEDS
from sfumato.mechanisms.registry import mechanism_info, own_mechanism_names
from sfumato.parameters import Parameter

PARAMETERS_FILE = "parameters.json"
_LARGEST_WHOLE, _LARGEST = 10**6, 10.0**6
_LEVELS = frozenset(guarantee.level.name for guarantee in GUARANTEES.values())
_MAKES_NO_RELEASE = "auto"
"""Its manifests name the mechanism that it chose."""


def stated_parameters() -> dict[str, dict[str, Form]]:
    """Form of every parameter that manifests state, by mechanism."""
    names = [name for name in own_mechanism_names() if name != _MAKES_NO_RELEASE]
    found = {name: _of(name) for name in names}
    (then,) = (own for own in mechanism_info("breach-aware").parameters if own.name == "then")
    recoders = {name: found[name] for name in then.choices}
    found["breach-aware"]["then_settings"] = _settings_of(recoders)
    return found


def _of(name: str) -> dict[str, Form]:
    info = mechanism_info(name)
    forms = {own.name: _form(own) for own in info.parameters if own.is_stated}
    if info.build.takes_population:  # whoever promises k-map alone asks for a k of 1
        forms["k"] = {**forms["k"], "minimum": 1}
    return forms


def _form(own: Parameter) -> Form:
    if own.stated is not None:
        return dict(own.stated)
    form = _form_of_value(own)
    return {"oneOf": [NOTHING, form]} if own.is_optional else form


def _form_of_value(own: Parameter) -> Form:
    if own.choices:
        return word(*own.choices)
    if own.type is bool:
        return TRUTH
    if own.type is str:
        return COLUMNS
    if own.type not in (int, float):
        return {"type": "object"}  # replaced above: what it may hold depends on another parameter
    is_whole = own.type is int
    limits: dict[str, Any] = {
        "minimum": own.at_least,
        "exclusiveMinimum": own.above,
        "maximum": own.at_most,
        "exclusiveMaximum": None if own.below == math.inf else own.below,
    }
    form = {name: limit for name, limit in limits.items() if limit is not None}
    if not {"minimum", "exclusiveMinimum"} & set(form):
        form["minimum"] = 0
    if not {"maximum", "exclusiveMaximum"} & set(form):
        form["maximum"] = _LARGEST_WHOLE if is_whole else _LARGEST
    is_exact = is_whole and (own.name in _LEVELS or own.below == SEEDS)
    digits = {} if is_exact else {"digits": own.digits or USUAL_DIGITS}
    return {"type": "integer" if is_whole else "number", **form, **digits}


def _settings_of(recoders: Mapping[str, Mapping[str, Form]]) -> Form:
    """Form of the settings of a mechanism among several: a word may be one that any of these knows."""
    merged: dict[str, Form] = {}
    for own in recoders.values():
        for name, form in ((name, form) for name, form in own.items() if name != "k"):
            earlier = merged.get(name, form)
            merged[name] = form if earlier == form else _either(earlier, form)
    return record({}, merged)


def _either(one: Form, other: Form) -> Form:
    if "enum" not in one or "enum" not in other:
        problem = "settings of the same name have different forms"
        raise TypeError(problem)
    return word(*dict.fromkeys([*one["enum"], *other["enum"]]))


def as_text() -> str:
    """Content of the file."""
    return json.dumps(stated_parameters(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    (Path(sfumato.__file__).parent / PARAMETERS_FILE).write_text(as_text(), encoding="utf-8")
