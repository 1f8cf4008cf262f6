"""Columns of Python objects (spreadsheets, object arrays): one kind of value a column, or a clear refusal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal

import numpy as np
import pyarrow as pa

from sfumato.errors import InputError

_EXACT_FLOAT_INTEGERS = 2**53


class MixedColumnError(Exception):
    """Internal: a column mixes kinds of values; says which, and at which position the second kind begins."""

    def __init__(self, problem: str, position: int) -> None:
        self.problem = problem
        self.position = position
        super().__init__(problem)


def column_of_objects(values: Sequence[object], tokens: Sequence[str], *, is_text: bool) -> pa.Array:
    """Arrow array of a column's objects; missing tokens become null before the kind of the rest is looked at.

    Parameters
    ----------
    is_text : bool
        Take everything as text when the column mixes numbers, dates and text; else that is refused. Says nothing about
        a column of one kind.

    Raises
    ------
    MixedColumnError
        If the column mixes kinds of values, or holds some that are none of text, number, truth value, date or time.
    """
    missing = frozenset(tokens)
    known = [None if _is_missing(value, missing) else _native(value) for value in values]
    whats = [None if value is None else _what(value) for value in known]
    found = list(dict.fromkeys(what for what in whats if what is not None))
    if "other values" in found:
        problem = "holds values that are neither text, numbers, truth values, dates nor times"
        raise MixedColumnError(problem, whats.index("other values"))
    if len(found) > 1:
        if is_text:
            return pa.array([None if value is None else _text(value) for value in known], pa.string())
        problem = "mixes " + ", ".join(found[:-1]) + " and " + found[-1]
        raise MixedColumnError(problem, whats.index(found[1]))
    return _array(known, found[0] if found else "text")


def refuse_mixed(error: MixedColumnError, *, place: str, column: str, row: int | None = None) -> InputError:
    """Build the message for a mixed column, naming the row where there is one."""
    where = f" (row {row:,})" if row is not None else ""
    hint = "make it one kind, or declare the column categorical to take all of it as text"
    return InputError(error.problem + where, path=place, column=column, hint=hint)


def _is_missing(value: object, tokens: frozenset[str]) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, str):
        return value.strip() in tokens or not value
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    return isinstance(value, np.datetime64) and bool(np.isnat(value))


def _native(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def _what(value: object) -> str:
    if isinstance(value, bool):
        return "truth values"
    if isinstance(value, int | float | Decimal):
        return "numbers"
    if isinstance(value, str):
        return "text"
    if isinstance(value, date):
        return "dates"
    return "times" if isinstance(value, time) else "other values"


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if _is_whole(value) else repr(value)
    if isinstance(value, datetime):
        return _day_or_time(value).isoformat() if _is_midnight(value) else value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _array(known: Sequence[object], what: str) -> pa.Array:
    try:
        if what == "numbers":
            return _numbers(known)
        if what == "dates":
            return _dates(known)
        return pa.array(known, pa.string() if what == "text" else None)
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError):
        return pa.array([None if value is None else _text(value) for value in known], pa.string())


def _numbers(known: Sequence[object]) -> pa.Array:
    """Whole numbers as integers (spreadsheets store 3 as 3.0), decimals as decimals, all else as floats."""
    if all(value is None or isinstance(value, int) or _is_whole(value) for value in known):
        return pa.array([None if value is None else int(value) for value in known], pa.int64())  # type: ignore[call-overload]
    if all(value is None or isinstance(value, Decimal) for value in known):
        return pa.array(known)
    return pa.array([None if value is None else float(value) for value in known], pa.float64())  # type: ignore[arg-type]


def _dates(known: Sequence[object]) -> pa.Array:
    if all(value is None or not isinstance(value, datetime) or _is_midnight(value) for value in known):
        return pa.array([None if value is None else _day_or_time(value) for value in known], pa.date32())
    moments = [datetime(v.year, v.month, v.day) if type(v) is date else v for v in known]
    return pa.array(moments, pa.timestamp("us"))


def _is_whole(value: object) -> bool:
    return isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT_FLOAT_INTEGERS


def _is_midnight(value: datetime) -> bool:
    return value.tzinfo is None and value.time() == time()


def _day_or_time(value: object) -> date:
    if isinstance(value, datetime):
        return value.date()
    assert isinstance(value, date)
    return value
