r"""How a generalized cell is written and read: a range, a set of values, anything, or a single value.

=====================  ====================================================================
``[29, 42]``           a number (a date, a level of an ordered column) from 29 to 42
``{Married|Single}``   one of these values
``{[29, 42]|\N}``      a number from 29 to 42, or missing
``*``                  any value of the column, missing included
(an empty cell)        missing
anything else          that value
=====================  ====================================================================

A backslash precedes each of ``\ | { } [ ] , *`` inside a value; ``\N`` is the missing member of a set.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.table.spellings import CELLS

ANY, MISSING_MEMBER = CELLS["any"], CELLS["missing_member"]
_ESCAPES = "".join(map(re.escape, CELLS["escaped"]))
_SPECIAL = re.compile(f"([{_ESCAPES}])")
_ESCAPED = re.compile(r"\\(.)")
_VALUE = rf"((?:[^{_ESCAPES}]|\\[{_ESCAPES}])*)"
_SINGLE = re.compile(_VALUE)
_RANGE = re.compile(rf"\[{_VALUE}, {_VALUE}\]")
_SET = re.compile(r"\{((?:[^\\]|\\.)*)\}", re.DOTALL)
_MEMBER = re.compile(r"((?:[^\\|]|\\.)*)\|", re.DOTALL)


@dataclass(frozen=True)
class GeneralizedCell:
    """What a cell represents: any value, or a range or single values, with or without missing.

    Parameters
    ----------
    bounds : tuple of two str or None
        Lowest and highest value of a range.
    values : tuple of str
        Single values.
    may_be_missing : bool
    is_any : bool
        Every value of the column.
    """

    bounds: tuple[str, str] | None = None
    values: tuple[str, ...] = ()
    may_be_missing: bool = False
    is_any: bool = False


def write_value(value: str) -> str:
    r"""Write a single value.

    Examples
    --------
    >>> print(write_value("a,b"))
    a\,b
    """
    return _SPECIAL.sub(r"\\\1", value)


def write_range(low: str, high: str, *, may_be_missing: bool = False) -> str:
    r"""Write a range; one that starts where it ends is a single value.

    Examples
    --------
    >>> print(write_range("29", "42"), write_range("7", "7"), write_range("1", "2", may_be_missing=True))
    [29, 42] 7 {[1, 2]|\N}
    """
    text = write_value(low) if low == high else f"[{write_value(low)}, {write_value(high)}]"
    return f"{{{text}|{MISSING_MEMBER}}}" if may_be_missing else text


def write_set(values: Sequence[str], *, may_be_missing: bool = False) -> str | None:
    r"""Write a set of values in the order given; ``None`` (an empty cell) when only missing is in it.

    Examples
    --------
    >>> print(write_set(["Married", "Single"]), write_set(["x"]), write_set(["x"], may_be_missing=True))
    {Married|Single} x {x|\N}
    """
    members = [write_value(value) for value in values] + ([MISSING_MEMBER] if may_be_missing else [])
    if not values:
        return None
    return members[0] if len(members) == 1 else "{" + "|".join(members) + "}"


def read_cell(text: str | None) -> GeneralizedCell:
    r"""Read a cell; raises ``ValueError`` (which names no value) for a text that no writer makes.

    Examples
    --------
    >>> read_cell("[29, 42]").bounds, read_cell(r"{a\,b|\N}").values, read_cell(r"\*").values
    (('29', '42'), ('a,b',), ('*',))
    """
    if text is None:
        return GeneralizedCell(may_be_missing=True)
    if text == ANY:
        return GeneralizedCell(may_be_missing=True, is_any=True)
    if text.startswith("{"):
        return _read_set(text)
    if text.startswith("["):
        return GeneralizedCell(bounds=_read_range(text))
    return GeneralizedCell(values=(_read_value(text),))


def _read_set(text: str) -> GeneralizedCell:
    inside = _SET.fullmatch(text)
    members = _MEMBER.findall(inside.group(1) + "|") if inside else []
    if len(members) < 2 or len(set(members)) < len(members):
        message = "a set is not closed, or has not two different members"
        raise ValueError(message)
    known = [member for member in members if member != MISSING_MEMBER]
    if known[0].startswith("[") and members == [known[0], MISSING_MEMBER]:
        return GeneralizedCell(bounds=_read_range(known[0]), may_be_missing=True)
    values = tuple(_read_value(member) for member in known)
    return GeneralizedCell(values=values, may_be_missing=MISSING_MEMBER in members)


def _read_range(text: str) -> tuple[str, str]:
    match = _RANGE.fullmatch(text)
    if match is None:
        message = "a range is not closed or has not two ends"
        raise ValueError(message)
    return _unescaped(match.group(1)), _unescaped(match.group(2))


def _read_value(text: str) -> str:
    if not _SINGLE.fullmatch(text):
        message = "a value has a character without the backslash that must precede it"
        raise ValueError(message)
    return _unescaped(text)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)
