"""The third reading of ``spellings.toml``: how a typed value is spelled, from the table and Python's own types alone.

It shares no line with the writer and none with the audit, and judges both.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_UP, Context, Decimal
from pathlib import Path
from typing import Any

TABLE: dict[str, Any] = tomllib.loads(
    (Path(__file__).parents[1] / "src" / "sfumato" / "spellings.toml").read_text(encoding="utf-8")
)
FORMS: dict[str, dict[str, Any]] = TABLE["forms"]


def spelled(value: object, *, digits: int = 0) -> str:
    """Spell one value; ``digits`` is the number of places after the second that its type has."""
    if isinstance(value, bool):
        return str(FORMS["truth values"]["words"][int(value)])
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _shortest(value)
    if isinstance(value, Decimal):
        sign, figures, power = value.as_tuple()
        assert isinstance(power, int)
        shown = "".join(map(str, figures)).rjust(1 - power, "0")
        return "-" * sign + (f"{shown[:power]}.{shown[power:]}" if power < 0 else shown + "0" * power)
    if isinstance(value, datetime.datetime):
        in_utc = value if value.tzinfo is None else value.astimezone(datetime.UTC)
        day = f"{in_utc.year:04}-{in_utc.month:02}-{in_utc.day:02}"
        return f"{day} {_clock(in_utc, digits)}{'' if value.tzinfo is None else 'Z'}"
    if isinstance(value, datetime.date):
        return f"{value.year:04}-{value.month:02}-{value.day:02}"
    assert isinstance(value, datetime.time)
    return _clock(value, digits)


def _clock(value: datetime.datetime | datetime.time, digits: int) -> str:
    shown = f"{value.hour:02}:{value.minute:02}:{value.second:02}"
    return f"{shown}.{value.microsecond:06}".ljust(9 + digits, "0")[: 9 + digits] if value.microsecond else shown


def _shortest(number: float) -> str:
    """Try digits from one on until they are the number, and place the point by the powers that the table gives."""
    if number in (float("inf"), float("-inf")):
        return "inf" if number > 0 else "-inf"
    if number == 0:
        return "0"
    ways = (ROUND_HALF_EVEN, ROUND_DOWN, ROUND_UP)  # of a number halfway the nearer digits may be another number's
    tried = (Context(prec=n, rounding=way).plus(Decimal(number)) for n in range(1, 18) for way in ways)
    found = next(digits for digits in tried if float(digits) == number).normalize()
    n = len(found.as_tuple().digits)
    mantissa, power = f"{abs(found):.{n - 1}e}".split("e")
    first, end = FORMS["shortest decimals"]["exponents"]
    if first <= int(power) < end:
        text = f"{abs(found):.{max(0, n - 1 - int(power))}f}"
    else:
        text = f"{mantissa}e{'+' if int(power) > 0 else '-'}{abs(int(power))}"
    return ("-" if number < 0 else "") + text


def is_spelled(texts: list[str], form: str) -> bool:
    """Whether texts of a column are all of a form, by the words of the table."""
    rules = FORMS[form]
    if "words" in rules:
        return set(texts) <= set(rules["words"])
    if not all(re.fullmatch(rules["pattern"], text) for text in texts):
        return False
    if rules.get("is_shortest") and any(_shortest(float(text)) != text for text in texts):
        return False
    places = {len(text.removesuffix("Z").partition(".")[2]) for text in texts if "." in text}
    return not rules.get("same_places") or len(places) <= 1


def escaped(value: str) -> str:
    """Escape a value as it is written where sets and ranges may occur."""
    return "".join("\\" + c if c in TABLE["cells"]["escaped"] else c for c in value)
