"""Codes and names of public lists: values that name a disease, a drug or a country, never a person."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from sfumato.table.column_names import DIAGNOSIS_NAMES, POSTCODE_NAMES, folded

_ICD10 = re.compile(r"[A-Z]\d[0-9AB]\.(?:[0-9A-Z]{1,4}[-+*!]?|-)|[A-Z]\d\d")
_ICD10_UNDOTTED = re.compile(r"[A-Z]\d[0-9AB]\d{0,2}[-+*!]?")
_ICD9 = re.compile(r"\d{3}(?:\.\d{1,2})?|V\d{2}(?:\.\d{1,2})?|E\d{3}(?:\.\d)?|\d{1,2}")
_ATC = re.compile(r"[A-DGHJLMNPRSV]\d{2}[A-Z](?:[A-Z](?:\d{2})?)?")
_TIME = re.compile(r"([01]?\d|2[0-4]):[0-5]\d(:00)?")
_DAY = re.compile(r"\d{4}-\d{1,2}(-\d{1,2})?|\d{1,2}([./-])\d{1,2}(\2(\d{2}|\d{4}))?")
_MEASURED = re.compile(r"[<>≤≥~]? ?-?\d{1,6}[.,]\d{1,3}|[<>≤≥~] ?\d+|\d{1,2}")
_POSTCODE = re.compile(
    r"\d{3,5}|\d{5}-\d{3,4}|\d{4}-\d{3}|\d{2}-\d{3}|\d{3} \d{2}|\d{4} ?[A-Z]{2}|[A-Z]{1,2}\d[A-Z\d]?( \d[A-Z]{2})?"
)

_ANYWHERE = (_ICD10, _ATC, _TIME, _DAY, _MEASURED)


def is_known_code(text: str, name: str) -> bool:
    """Whether a value is of a public list; some codes are taken for one only in a column that is named for it.

    Parameters
    ----------
    name : str
        Name of the column, as :func:`sfumato.table.column_names.folded_name` writes it.

    Examples
    --------
    >>> is_known_code("E11.9", " c7 "), is_known_code("K1234", " c7 "), is_known_code("France", " c7 ")
    (True, False, True)
    """
    if any(form.fullmatch(text) for form in _ANYWHERE) or _country(text) in _countries():
        return True
    if DIAGNOSIS_NAMES.search(name) and (_ICD9.fullmatch(text) or _ICD10_UNDOTTED.fullmatch(text)):
        return True
    return POSTCODE_NAMES.search(name) is not None and _POSTCODE.fullmatch(text.upper()) is not None


@cache
def _countries() -> frozenset[str]:
    text = (resources.files("sfumato.table.standards") / "countries.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and line[0] not in "#["]
    return frozenset(_country(name) for line in lines for name in line.split(" ", 2)[2].split(" / "))


def _country(name: str) -> str:
    """Write the name of a country in lower case, without accents, signs and *the*."""
    words = re.sub(r"[\W_]+", " ", folded(name).replace("&", " and ")).split()
    return " ".join(word for word in words if word != "the")
