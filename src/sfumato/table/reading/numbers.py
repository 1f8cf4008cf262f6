"""Formats of numbers: decimal commas, thousands separators, percent, units and currencies.

A format is named by the number 1234.56 as it is written in it: ``1.234,56``, ``1,234.56``, ``1 234,56``, ``1'234.56``,
``1234,56``, with its unit, ``1234.56 kg``. A blank stands for any kind of blank, an apostrophe for both kinds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.schema import Kind
from sfumato.table.coding import parse_numbers
from sfumato.table.reading.units import AFTER, BEFORE, GLUED

PLAIN = "1234.56"
"""The format in which all numbers of a table are kept."""

STOP_IN_DOUBT = "the full stop as decimal point; no value decides that it is not between thousands"

_BLANK = "[ \u00a0\u2009\u202f]"
_MARKS = {"": "", ".": r"\.", ",": ",", " ": _BLANK, "'": "['’]"}
_SIGN = "[+\u2212-]?"
_FORMS = ((".", ""), (",", ""), (",", "."), (".", ","), (",", " "), (".", " "), (".", "'"), (",", "'"))
"""Decimal and thousands mark, in the order in which they are preferred."""


@dataclass(frozen=True)
class NumberFormat:
    """One way of writing numbers.

    Parameters
    ----------
    decimal, group : str
        Marks before the decimals and between thousands; an empty ``group``: none.
    unit : str
        The same text next to every number; empty: none.
    is_before : bool
        Whether the unit is written before the number.
    """

    decimal: str
    group: str
    unit: str = ""
    is_before: bool = False

    kind = Kind.NUMERIC

    @property
    def name(self) -> str:
        """The number 1234.56 as it is written: ``1.234,56 kg``."""
        number = f"1{self.group}234{self.decimal}56"
        return (f"{self.unit} {number}" if self.is_before else f"{number} {self.unit}").strip()

    @cached_property
    def _number(self) -> str:
        point, mark = _MARKS[self.decimal], _MARKS[self.group]
        grouped = f"[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+|" if mark else ""
        return f"(?:(?:{grouped}[0-9]+)(?:{point}[0-9]+)?|{point}[0-9]+)"

    @cached_property
    def _whole(self) -> str:
        unit, number = re.escape(self.unit).replace(r"\ ", " "), self._number
        if self.is_before and unit:
            return f"^{_SIGN}{unit}{_BLANK}*{_SIGN}{number}$"
        return f"^{_SIGN}{number}{_BLANK}*{unit}$" if unit else f"^{_SIGN}{number}$"

    def may_be(self, text: str) -> bool:
        """Whether one text is a number of this format."""
        return re.fullmatch(self._whole, text) is not None

    def read(self, values: pa.Array) -> pa.Array:
        """Texts of plain decimal numbers without the unit, null where a text is no number of this format.

        Examples
        --------
        >>> number_format("1.234,56 kg").read(pa.array(["1.234,50 kg", "12 kg", "1.2 kg", "12"])).to_pylist()
        ['1234.50', '12', None, None]
        """
        fits = pc.fill_null(pc.match_substring_regex(values, self._whole), fill_value=False)
        texts = pc.if_else(fits, values, pa.scalar(None, pa.string()))
        if self.unit:
            texts = pc.replace_substring(texts, self.unit, "", max_replacements=1)
        texts = pc.replace_substring_regex(texts, f"{_BLANK}|[+]", "")
        if self.group:
            texts = pc.replace_substring_regex(texts, _MARKS[self.group], "")
        texts = pc.replace_substring(pc.replace_substring(texts, self.decimal, "."), "\u2212", "-")
        texts = pc.replace_substring_regex(texts, r"^(-?)\.", r"\10.")
        return pc.if_else(_are_finite(texts), texts, pa.scalar(None, pa.string()))


def _are_finite(texts: pa.Array) -> pa.Array:
    try:
        numbers = parse_numbers(texts)
    except ValueError:  # a number with two signs
        return pa.array([text is not None and text.count("-") <= 1 for text in texts.to_pylist()])
    return pa.array(np.isfinite(numbers))


_SAMPLE = re.compile(
    rf"(?P<before>\D*?){_BLANK}*1(?P<group>[.,'’ \u00a0\u2009\u202f]?)234(?P<decimals>(?P<decimal>[.,])56)?{_BLANK}*"
    r"(?P<after>\D.*)?"
)


def number_format(text: str) -> NumberFormat | None:
    """Find the format in which 1234.56 (or 1234) is written like this; ``None`` if it is none.

    Examples
    --------
    >>> number_format("1.234,56"), number_format("€ 1,234").unit
    (NumberFormat(decimal=',', group='.', unit='', is_before=False), '€')
    """
    said = _SAMPLE.fullmatch(text.strip())
    if said is None or (said["before"] and said["after"]):
        return None
    group = said["group"].replace("’", "'")
    group = " " if group and group not in ".,'" else group
    decimal = said["decimal"] or ("," if group == "." else ".")
    if decimal == group:
        return None
    before = said["before"].strip()
    return NumberFormat(decimal, group, before or (said["after"] or "").strip(), bool(before))


_ONE = re.compile(
    rf"{_SIGN}(?P<before>[^\d\s+\u2212.,'’-]*){_BLANK}*{_SIGN}"
    rf"(?P<number>[\d.,'’ \u00a0\u2009\u202f]*\d)(?P<blank>{_BLANK}*)(?P<after>[^\d\s].*)?",
    re.ASCII,
)


def number_formats(text: str) -> list[NumberFormat]:
    """Give the formats in which a text may be a number, in the order in which they are preferred."""
    found = _ONE.fullmatch(text)
    if found is None:
        return []
    before, after = found["before"], found["after"] or ""
    if before and (after or before not in BEFORE):
        return []
    if after and after not in (AFTER if found["blank"] else GLUED):
        return []
    formats = [NumberFormat(*marks, before or after, bool(before)) for marks in _FORMS]
    return [one for one in formats if one.may_be(text)]


# What a whole column has to show before a format is taken, and what stays a guess.


_LEADING_ZERO = r"^-?0[0-9]"
_SHORTEST_CODE = 6


@dataclass
class NumberEvidence:
    """What is known so far of the texts of a column that may be numbers of one format."""

    format: NumberFormat
    has_mark: bool = False
    has_decimals: bool = False
    fewest_digits: int = 1_000
    most_digits: int = 0
    n_values: int = 0

    def take(self, values: pa.Array) -> bool:
        """Look at further distinct texts, none missing; whether all are numbers of the format and none is a code."""
        read = self.format.read(values)
        if read.null_count or pc.any(pc.match_substring_regex(read, _LEADING_ZERO)).as_py():
            return False
        self.has_decimals = self.has_decimals or bool(pc.any(pc.match_substring(read, ".")).as_py())
        if self.format.group:
            marks = pc.match_substring_regex(values, f"[0-9]{_MARKS[self.format.group]}[0-9]")
            self.has_mark = self.has_mark or bool(pc.any(marks).as_py())
        fewest, most = _digits(read)
        self.fewest_digits, self.most_digits = min(self.fewest_digits, fewest), max(self.most_digits, most)
        self.n_values += len(values)
        return True

    @property
    def is_enough(self) -> bool:
        """Whether they may be numbers: groups of digits that are always as many look like codes (``601 234 567``)."""
        if not self.has_mark or self.has_decimals or self.n_values < 2:
            return True
        return self.fewest_digits != self.most_digits or self.most_digits < _SHORTEST_CODE


def _digits(values: pa.Array) -> tuple[int, int]:
    """Fewest and most digits of a text."""
    found = pc.min_max(pc.utf8_length(pc.replace_substring_regex(values, "[^0-9]", "")))
    return found["min"].as_py(), found["max"].as_py()


_LIKE_THOUSANDS = r"^[+-]?[1-9][0-9]{0,2}\.[0-9]{3}$"


class PlainNumbers:
    """What is known of texts that are plain numbers, for the formats in which the other texts of a column are read."""

    def __init__(self) -> None:
        self._n_values = 0
        self._has_stop = self._has_others = False
        self._stops_like_thousands = self._all_like_thousands = True
        self._fewest_digits, self._most_digits = 1_000, 0

    @property
    def may_be_thousands(self) -> bool:
        """Whether there are some, and every one can be a whole number with a full stop between thousands."""
        return bool(self._n_values) and self._all_like_thousands

    def take(self, values: pa.Array) -> None:
        """Look at further distinct texts."""
        has_stop = pc.match_substring(values, ".")
        self._n_values += len(values)
        self._has_others = self._has_others or bool(pc.any(pc.match_substring_regex(values, r"[^0-9.+-]|\.$")).as_py())
        fewest, most = _digits(values) if not self._has_stop else (0, self._most_digits)
        self._fewest_digits, self._most_digits = min(self._fewest_digits, fewest), max(self._most_digits, most)
        self._has_stop = self._has_stop or bool(pc.any(has_stop).as_py())
        if self._stops_like_thousands:
            like = pc.match_substring_regex(values, _LIKE_THOUSANDS)
            self._all_like_thousands = self._all_like_thousands and bool(pc.all(like).as_py())
            self._stops_like_thousands = bool(pc.all(pc.or_(like, pc.invert(has_stop))).as_py())

    def fit(self, evidence: NumberEvidence) -> bool:
        """Whether they are numbers of a format as well; says to its evidence what they show."""
        own = evidence.format
        if not self._n_values:
            return True
        if own.unit or self._has_others:
            return False
        if self._has_stop and own.decimal != "." and not (own.group == "." and self._stops_like_thousands):
            return False
        evidence.has_mark = evidence.has_mark or (self._has_stop and own.group == ".")
        evidence.has_decimals = evidence.has_decimals or (self._has_stop and own.decimal == ".")
        evidence.fewest_digits = min(evidence.fewest_digits, self._fewest_digits)
        evidence.most_digits = max(evidence.most_digits, self._most_digits)
        evidence.n_values += self._n_values
        return True


def chosen_format(fitting: list[NumberEvidence]) -> tuple[NumberEvidence, str]:
    """Choose among formats that all fit, and say what is a guess in that; empty if nothing is.

    A comma that may be both is taken between thousands, a full stop as the decimal point.
    """
    decimals = {one.format.decimal for one in fitting if one.has_decimals}
    grouped = [one for one in fitting if one.has_mark and one.format.group in decimals]
    if not grouped:
        used = [one for one in fitting if one.has_mark or not one.format.group]
        return (used or fitting)[0], ""
    if grouped[0].format.group == ",":
        return grouped[0], "the comma between thousands; no value decides that it is not the decimal comma"
    chosen = next(one for one in fitting if one.has_decimals and one.format.decimal == ".")
    return chosen, STOP_IN_DOUBT
