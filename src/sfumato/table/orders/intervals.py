"""Texts that are intervals of numbers: ``[0-10)``, ``10–19``, ``<5``, ``65+``, ``18 to 24``, ``under 18``.

An interval is what lies between two numbers, or beyond one. Single numbers count as intervals of one number where other
texts of the column are intervals (``0``, ``1``, ``2-5``, ``6+``). Words are known in eight languages. A unit (years,
kg, €) may be written with the numbers, the same one in all texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sfumato.table.column_names import folded

OVERLAPPING = "the values look like intervals, but some overlap"
TWICE = "the values look like intervals, but two of them are the same one"

_SIMPLE = r"([+-]?(?:\d+(?:\.\d+)?k?|inf|∞))"
_NUMBER = r"([+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?)k?)"
_TO = r"\s*(?:-|\.\.|\.\.\.|\bto\b|\bthrough\b|\bbis\b|\ba\b|\bat?e\b|\btot(?: en met)?\b|\bt/m\b|\bal\b|\bdo\b)\s*"
_AND = r"\s+(?:and|und|et|y|e|en|i|a)\s+"
_BRACKETS = re.compile(rf"[\[(\]]\s*{_SIMPLE}\s*(?:,|;|:|-|\.\.|to)\s*{_SIMPLE}\s*[\])\[]")
_RANGE = re.compile(rf"(?:(?:from|von|de|da|van|od)\s+)?{_NUMBER}{_TO}{_NUMBER}")
_BETWEEN = re.compile(rf"(?:between|zwischen|entre|tra|tussen|miedzy)\s+{_NUMBER}{_AND}{_NUMBER}")
_BELOW = re.compile(
    r"(?:<=?|≤|under|below|less than|fewer than|up to|at most|younger than|unter|weniger als|bis zu|bis|hochstens|"
    r"junger als|moins de|jusqu'?a|au plus|menos de|menor de|hasta|como maximo|meno di|sotto i?|fino a|al massimo|"
    rf"ate|abaixo de|no maximo|minder dan|onder|tot|hoogstens|jonger dan|ponizej|mniej niz|do|najwyzej)\s*{_NUMBER}"
)
_BELOW_AFTER = re.compile(
    rf"{_NUMBER}\s*(?:(?:or|and|&) (?:less|fewer|under|below|younger)|(?:oder|und) (?:weniger|junger)|ou moins|"
    r"et moins|o menos|y menos|o meno|ou menos|of minder|en jonger|i mniej|lub mniej)"
)
_ABOVE = re.compile(
    r"(?:>=?|≥|over|above|more than|at least|older than|from|uber|mehr als|ab|mindestens|alter als|plus de|au moins|"
    r"a partir de|mas de|mayor de|desde|al menos|piu di|oltre i?|almeno|mais de|acima de|pelo menos|meer dan|boven|"
    rf"vanaf|minstens|ouder dan|powyzej|wiecej niz|od|co najmniej)\s*{_NUMBER}"
)
_ABOVE_AFTER = re.compile(
    rf"{_NUMBER}\s*(?:\+|plus\b|(?:or|and|&) (?:more|over|above|older|up|greater)|(?:oder|und) (?:mehr|alter|daruber)|"
    r"et plus|ou plus|y mas|o mas|e oltre|o piu|e piu|ou mais|e mais|of meer|en ouder|en meer|i wiecej|lub wiecej|"
    r"i starsi)"
)
_POINT = re.compile(_NUMBER)
_UNIT = re.compile(
    r"(?<![a-z])(?:y\.o\.|year olds?|years? old|years? of age|years?|yrs?|(?<=\d)y|jahren?|ans?|anos?|anni|jaar|lat|"
    r"months?|monaten?|mois|mesi|meses|weeks?|wochen?|days?|tagen?|jours?|hours?|hrs?|h|stunden?|minutes?|min|kg|"
    r"lbs?|cm|mm|km|miles?|percent|people|persons?|personen|employees|mitarbeiter|usd|eur|euros?|gbp|chf|pln)(?![a-z])|[%€$£]"
)
_DASHES = str.maketrans({"–": "-", "—": "-", "−": "-", "‒": "-", "‐": "-", "‑": "-", "⩽": "≤", "⩾": "≥"})
_BLANKS = re.compile(r"\s+")


_OPEN = re.compile(  # the number itself is not in it
    r"<(?!=)|>(?!=)|under|below|less|fewer|younger|unter|weniger|junger|moins|menos|menor|meno|sotto|abaixo|minder|"
    r"onder|jonger|ponizej|mniej|over|above|more|older|uber|mehr|alter|plus de|mas|mayor|piu|oltre|mais|acima|meer|"
    r"boven|ouder|powyzej|wiecej"
)


@dataclass(frozen=True, order=True)
class _Interval:
    low: float
    high: float
    has_low: bool = True
    has_high: bool = True

    @property
    def is_point(self) -> bool:
        return self.low == self.high

    def is_before(self, other: _Interval) -> bool:
        """Whether all of it lies below another; ranges may share an end (``0-10``, ``10-20``), single numbers none."""
        if self.high != other.low:
            return self.high < other.low
        return not (self.is_point or other.is_point) or not (self.has_high and other.has_low)


def order_of_intervals(texts: Sequence[str], *, of_numbers_alone: bool = False) -> tuple[tuple[str, ...], str]:
    """Put intervals in order, lowest first; with nothing and the reason where they have none.

    Parameters
    ----------
    texts : sequence of str
        Distinct values.
    of_numbers_alone : bool
        Whether texts that are all single numbers have an order too.

    Returns
    -------
    order : tuple of str
        Empty where the texts are not all intervals, or some overlap.
    why : str
        Why there is none, for texts that look like intervals; else empty.

    Examples
    --------
    >>> order_of_intervals(["[10-20)", "[0-10)", ">20"])
    (('[0-10)', '[10-20)', '>20'), '')
    >>> order_of_intervals(["0-10", "5-15", "20+"])
    ((), 'the values look like intervals, but some overlap')
    """
    placed: dict[str, _Interval] = {}
    units: set[str] = set()
    for text in texts:
        plain, unit = _without_unit(text)
        found = _interval(plain)
        if found is None:
            return (), ""
        placed[text] = found
        units |= unit
    if len(units) > 1 or (all(found.is_point for found in placed.values()) and not of_numbers_alone):
        return (), ""
    order = sorted(placed, key=lambda text: placed[text])
    for before, after in pairwise(order):
        if (placed[before].low, placed[before].high) == (placed[after].low, placed[after].high):
            return (), TWICE
        if not placed[before].is_before(placed[after]):
            return (), OVERLAPPING
    return tuple(order), ""


def _without_unit(text: str) -> tuple[str, set[str]]:
    plain = folded(text.translate(_DASHES)).strip()
    units = {unit.removesuffix("s").removesuffix("n") for unit in _UNIT.findall(plain)}
    return _BLANKS.sub(" ", _UNIT.sub(" ", plain)).strip(), units


def _interval(text: str) -> _Interval | None:
    """Read a text as an interval; a leading zero is a code's unless both ends have as many digits (``00-04``)."""
    for form in (_BRACKETS, _RANGE, _BETWEEN):
        if match := form.fullmatch(text):
            low, high = match.groups()
            if _is_code(low, high) or _number(low) >= _number(high):
                return None
            is_bracketed = form is _BRACKETS
            has_low = not is_bracketed or text[0] == "["
            return _Interval(_number(low), _number(high), has_low, not is_bracketed or text[-1] == "]")
    has_end = _OPEN.match(text) is None
    for form in (_BELOW, _BELOW_AFTER):
        if (match := form.fullmatch(text)) and not _is_code(match[1], ""):
            return _Interval(-math.inf, _number(match[1]), has_high=has_end)
    for form in (_ABOVE, _ABOVE_AFTER):
        if (match := form.fullmatch(text)) and not _is_code(match[1], ""):
            return _Interval(_number(match[1]), math.inf, has_low=has_end)
    if (match := _POINT.fullmatch(text)) and not _is_code(text, ""):
        return _Interval(_number(text), _number(text))
    return None


def _is_code(low: str, high: str) -> bool:
    has_zero = any(len(end) > 1 and end[0] == "0" and end[1].isdigit() for end in (low, high))
    return has_zero and len(low) != len(high)


def _number(text: str) -> float:
    plain, factor = (text[:-1], 1000.0) if text.endswith("k") else (text, 1.0)
    if re.fullmatch(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?", plain):
        plain = plain.replace(",", "")
    return float(plain.replace(",", ".").replace("∞", "inf")) * factor
