"""How the entries of a manifest look as JSON Schema, and how the form of a guarantee follows from its fields' types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

Form = dict[str, Any]

TEXT: Form = {"type": "string"}
TRUTH: Form = {"type": "boolean"}
NUMBER: Form = {"type": "number"}
COUNT: Form = {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}
NOTHING: Form = {"type": "null"}
COLUMNS: Form = {"type": "string", "names": "columns"}
"""A text that names a column of the original, or several between commas; JSON Schema does not know ``names``."""
USUAL_DIGITS = 3
"""Most significant digits of a number among the settings of a mechanism, if that is no whole level of a guarantee."""


def list_of(each: Form) -> Form:
    """Form of a list."""
    return {"type": "array", "items": each}


def named(each: Form) -> Form:
    """Give the same form to everything that names of the data (columns, labels, parties) represent."""
    return {"type": "object", "additionalProperties": each}


def record(required: Mapping[str, Form], optional: Mapping[str, Form] | None = None) -> Form:
    """Form of entries with names of ours; no others are allowed."""
    properties = {**required, **(optional or {})}
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


def word(*choices: str) -> Form:
    """Form of a text that is one of a few."""
    return {"type": "string", "enum": [*choices]}


def number(least: float, most: float, digits: int | None = USUAL_DIGITS) -> Form:
    """Form of a number within limits and of so many significant digits; JSON Schema does not know ``digits``."""
    return {"type": "number", "minimum": least, "maximum": most, **({"digits": digits} if digits else {})}


def exactly(text: str) -> Form:
    """Form of a text by which records are distinguished."""
    return {"const": text}


def or_null(form: Form) -> Form:
    """Allow null in addition to what a form allows."""
    return {**form, "type": [form["type"], "null"]}


_PLAIN: Mapping[Any, Form] = {str: TEXT, bool: TRUTH, int: COUNT, float: NUMBER}

Crowd = Annotated[int, {**COUNT, "minimum": 2}]
"""Number of rows or values that is promised: 1 promises nothing."""
Share = Annotated[float, {"type": "number", "minimum": 0, "exclusiveMaximum": 1}]
ProperShare = Annotated[float, {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}]
AboveZero = Annotated[float, {"type": "number", "exclusiveMinimum": 0}]
AboveOne = Annotated[float, {"type": "number", "exclusiveMinimum": 1}]


def form_of_type(hint: Any) -> Form:
    """Form of a field by its type; ``Annotated[type, form]`` says another one than the type's own.

    Examples
    --------
    >>> form_of_type(tuple[str, ...])
    {'type': 'array', 'items': {'type': 'string'}}
    >>> form_of_type(float | None)
    {'type': ['number', 'null']}
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        own: Form = arguments[1]
        return own
    if origin is Literal:
        return word(*arguments)
    if origin is tuple:
        return list_of(form_of_type(arguments[0]))
    if origin is Mapping:
        return named(form_of_type(arguments[1]))
    if NoneType in arguments:
        return or_null(form_of_type(next(one for one in arguments if one is not NoneType)))
    return _PLAIN[hint]


def form_of_guarantee(guarantee: Any) -> Form:
    """Form of a guarantee (its class) in a manifest: its fields, what is said of it, and last what may be absent."""
    hints = get_type_hints(guarantee, include_extras=True)
    own = {one.name: form_of_type(hints[one.name]) for one in fields(guarantee)}
    if not guarantee.counts_persons:
        own["unit"] = word(guarantee.unit)  # the class's default: rows
    optional = {name: own.pop(name) for name in guarantee.absent_when_empty}
    said = {"statement": TEXT, "audited": or_null(NUMBER)}
    return record({"kind": exactly(guarantee.kind), **own, **said}, optional)
