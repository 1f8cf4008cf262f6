"""What becomes of single cells: numbers that are coded and rounded, masked texts, ages of dates of birth.

Everything here works on the distinct values of a column, and a missing value stays missing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal, localcontext
from fractions import Fraction

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import SchemaError
from sfumato.table.cells import as_text
from sfumato.table.preparing.declared import Mask, Preparation, exact, number_text

_ISO_DAY = re.compile(r"(\d{4}-\d{2}-\d{2})($|[T ].*)", re.DOTALL)
_LARGEST_EXPONENT = 300
_DIGITS = 1_000
_SECONDS_A_DAY = 86_400
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def numbers_prepared(values: pa.Array, asked: Preparation) -> pa.Array:
    """Code numbers at the bottom and top and round them; text stays text, in the shortest form of its numbers.

    Examples
    --------
    >>> asked = Preparation.of("income", {"top": 100, "bottom": 0, "round": 10})
    >>> numbers_prepared(pa.array(["-3", "44.9", "45", "1e6", None]), asked).to_pylist()
    ['0', '40', '50', '100', None]
    """
    change = _change_of(asked)
    found = [None if value is None else change(_decimal(value, asked.column)) for value in values.to_pylist()]
    return _as_numbers(found, values.type)


def _change_of(asked: Preparation) -> Callable[[Decimal], Decimal]:
    top, bottom, step = (None if n is None else exact(n) for n in (asked.top, asked.bottom, asked.round_to))

    def change(number: Decimal) -> Decimal:
        number = number if bottom is None or number > bottom else bottom
        number = number if top is None or number < top else top
        return number if step is None else rounded(number, step)

    return change


def rounded(number: Decimal, step: Decimal) -> Decimal:
    """Round to the nearest multiple of a step, a half away from zero, without any error of binary numbers.

    Examples
    --------
    >>> [str(rounded(Decimal(text), Decimal("0.1"))) for text in ("0.25", "-0.25", "0.24")]
    ['0.3', '-0.3', '0.2']
    """
    n_steps = math.floor(abs(Fraction(number)) / Fraction(step) + Fraction(1, 2))
    with localcontext() as context:
        context.prec = _DIGITS
        return Decimal(n_steps) * step * (-1 if number < 0 else 1)


def _decimal(value: object, column: str) -> Decimal:
    number = value if isinstance(value, Decimal) else exact(value.strip() if isinstance(value, str) else value)  # type: ignore[arg-type]
    if not number.is_finite() or (number and abs(number.adjusted()) > _LARGEST_EXPONENT):
        problem = "is to be coded or rounded, but holds numbers that are infinite or out of range"
        raise SchemaError(problem, column=column, hint="declare the texts that stand for no number as missing")
    return number


def _as_numbers(found: list[Decimal | None], was: pa.DataType) -> pa.Array:
    """Numbers in the type that they had, or as floats where a type of whole numbers cannot hold them."""
    if pa.types.is_string(was) or pa.types.is_large_string(was):
        return pa.array([None if number is None else number_text(number) for number in found], pa.string())
    if pa.types.is_integer(was) and all(number is None or number == number.to_integral_value() for number in found):
        try:
            return pa.array([None if number is None else int(number) for number in found], was)
        except (pa.ArrowInvalid, OverflowError):
            pass
    if pa.types.is_decimal(was):
        return pa.array([None if n is None else Decimal(number_text(n)) for n in found])
    return pa.array([None if number is None else float(number) for number in found], pa.float64())


def masked(values: pa.Array, mask: Mask) -> pa.Array:
    """Hide the characters of texts; a text that would be shown whole is hidden whole.

    Examples
    --------
    >>> masked(pa.array(["10115", "1011", "", None]), Mask(keep_first=2)).to_pylist()
    ['10###', '10##', '', None]
    >>> masked(pa.array(["10", "1"]), Mask(keep_first=2)).to_pylist()
    ['##', '#']
    """
    return pa.array(
        [None if text is None else _masked(text, mask) for text in as_text(values).to_pylist()], pa.string()
    )


def _masked(text: str, mask: Mask) -> str:
    n_hidden = len(text) - mask.keep_first - mask.keep_last
    if n_hidden <= 0:
        return mask.character * len(text)
    return text[: mask.keep_first] + mask.character * n_hidden + text[mask.keep_first + n_hidden :]


def ages(values: pa.Array, at: date, column: str) -> pa.Array:
    """Whole years from dates to a day; of somebody born on the 29th of February they are complete on the 1st of March.

    Examples
    --------
    >>> ages(pa.array(["2000-02-29", "2000-03-01", None]), date(2026, 2, 28), "born").to_pylist()
    ['25', '25', None]
    """
    found = [None if day is None else _age(day, at) for day in days_in(values, column)]
    if any(age is not None and age < 0 for age in found):
        problem = f"holds dates after {at.isoformat()}, at which nobody has an age"
        raise SchemaError(problem, column=column, hint="name a later day, or declare such dates as missing")
    is_text = pa.types.is_string(values.type)
    return (
        pa.array([None if n is None else str(n) for n in found], pa.string())
        if is_text
        else pa.array(found, pa.int64())
    )


def _age(born: date, at: date) -> int:
    return at.year - born.year - ((at.month, at.day) < (born.month, born.day))


def days_in(values: pa.Array, column: str) -> list[date | None]:
    """Days of dates and times, read as ISO 8601 where they are text."""
    if pa.types.is_date(values.type) or is_plain_time(values.type):
        days: list[date | None] = pc.cast(values, pa.date32(), safe=False).to_pylist()
        return days
    return [None if text is None else _day_of_text(text, column)[0] for text in _texts(values, column)]


def is_plain_time(data_type: pa.DataType) -> bool:
    """Whether a type holds times of no time zone."""
    return pa.types.is_timestamp(data_type) and data_type.tz is None


def _texts(values: pa.Array, column: str) -> list[str | None]:
    if not pa.types.is_string(values.type):
        problem = "is to be prepared as dates, but is neither text nor dates without a time zone"
        raise SchemaError(problem, column=column, hint="write its dates as 2026-01-31")
    return list(values.to_pylist())


def _day_of_text(text: str, column: str) -> tuple[date, str]:
    found = _ISO_DAY.fullmatch(text)
    try:
        if found is not None:
            return date.fromisoformat(found[1]), found[2]
    except ValueError:
        pass
    problem = "is to be prepared as dates, but holds texts that are no dates such as 2026-01-31"
    raise SchemaError(problem, column=column, hint="write its dates in ISO 8601, or declare such texts as missing")


def shifted(values: pa.Array, by: list[int], column: str) -> pa.Array:
    """Move dates by days, one number for each; the time of the day stays.

    Examples
    --------
    >>> shifted(pa.array(["2026-01-31", "2026-01-31 07:30", None]), [1, -31, 5], "visit").to_pylist()
    ['2026-02-01', '2025-12-31 07:30', None]
    """
    try:
        if pa.types.is_date(values.type):
            days = zip(values.to_pylist(), by, strict=True)
            return pa.array([None if day is None else day + timedelta(days=n) for day, n in days], pa.date32())
        if is_plain_time(values.type):
            return _shifted_times(values, by)
        moved: list[str | None] = []
        for text, n in zip(_texts(values, column), by, strict=True):
            if text is None:
                moved.append(None)
                continue
            day, rest = _day_of_text(text, column)
            moved.append((day + timedelta(days=n)).isoformat() + rest)
        return pa.array(moved, pa.string())
    except OverflowError:
        problem = "holds dates that cannot be shifted: they are at the end of the calendar"
        raise SchemaError(problem, column=column, hint="declare such dates as missing") from None


def _shifted_times(values: pa.Array, by: list[int]) -> pa.Array:
    a_day = _SECONDS_A_DAY * _UNITS[values.type.unit]
    moved = [None if t is None else t + n * a_day for t, n in zip(values.cast(pa.int64()).to_pylist(), by, strict=True)]
    try:
        return pa.array(moved, pa.int64()).cast(values.type)
    except pa.ArrowInvalid:
        raise OverflowError from None
