"""The table of spellings (``spellings.toml``), as the writer reads it; the audit reads it by its own code."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import InputError

_TABLE: dict[str, Any] = tomllib.loads((files("sfumato") / "spellings.toml").read_text(encoding="utf-8"))
CELLS: dict[str, str] = _TABLE["cells"]
FORMULAS: dict[str, str] = _TABLE["formulas"]


def _pattern(form: dict[str, Any]) -> str:
    return str(form.get("pattern") or "|".join(map(re.escape, form.get("words", ()))))


_PATTERNS = {
    family: "^(?:" + "|".join(_pattern(form) for form in _TABLE["forms"].values() if family in form["types"]) + ")$"
    for family in sorted({family for form in _TABLE["forms"].values() for family in form["types"]})
}


def checked_texts(values: pa.Array, texts: pa.Array) -> pa.Array:
    """Give the texts of typed values back, if they are spelled as the table says.

    Raises
    ------
    InputError
        If the table has no spelling for some value.
    """
    pattern = _PATTERNS.get(_family(values.type))
    if pattern is not None and not pc.all(pc.match_substring_regex(texts, pattern), min_count=0).as_py():
        problem = f"values of the type {values.type} have no spelling as text"
        raise InputError(problem, hint="turn the column into text, or leave it out")
    return texts


def _family(data_type: pa.DataType) -> str:
    """Name what a type is called in the table."""
    kinds = pa.types
    if kinds.is_timestamp(data_type):
        return "timestamp" if data_type.tz is None else "timestamp with a zone"
    for name in ("boolean", "integer", "floating", "decimal", "date", "time"):
        if getattr(kinds, f"is_{name}")(data_type):
            return name
    return ""
