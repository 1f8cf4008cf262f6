"""Codes and texts that are different for almost everybody: record numbers, keys of computers, free text.

What is said of them is their form: "a letter and 6 digits".
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from sfumato.schema import Kind
from sfumato.table.identifiers.cells import Cells, Finding

_ENOUGH = 0.8
_KEY_FRACTION = 0.05  # an average person has fewer than twenty rows
_FEWEST_VALUES = 20
_SAME_FORM = 0.95

_LONG_NUMBER = re.compile(r"\d{6,}")
_CODE = re.compile(r"[\w./-]{6,40}")
_WORD = re.compile(r"[^\W\d_]{2,}")
_DAY = re.compile(r"(19|20)\d{2}(0[1-9]|1[0-2])([0-2]\d|3[01])|([0-2]\d|3[01])(0[1-9]|1[0-2])(19|20)\d{2}")
_RANDOM_CODE = re.compile(r"(?=.*\d)(?=.*[a-z])[0-9a-z-]{10,64}", re.IGNORECASE)
_FEWEST_DIGITS_IN_A_RANDOM_CODE = 3
_FEWEST_DIGITS_OF_A_NUMBER = 9
_FEWEST_WORDS = 5
_TEXT_FRACTION = 0.1


def is_record_code(text: str) -> bool:
    """Whether a text is a code with six digits in a row that are no day, or a random one of ten signs or more."""
    if not _CODE.fullmatch(text):
        return False
    number = _LONG_NUMBER.search(text)
    if number is not None:
        return _DAY.fullmatch(number[0]) is None
    return _RANDOM_CODE.fullmatch(text) is not None and sum(map(str.isdigit, text)) >= _FEWEST_DIGITS_IN_A_RANDOM_CODE


def record_codes(cells: Cells) -> Finding | None:
    """Find codes of records in a column with many of them; numbers only if they are too long to count anything."""
    if cells.kind is Kind.DATE or cells.n_distinct <= _FEWEST_VALUES or cells.distinct_fraction < _KEY_FRACTION:
        return None
    if cells.kind is Kind.NUMERIC:
        lengths = Counter(len(text) for text in cells.texts if text.isdigit())
        length, often = lengths.most_common(1)[0] if lengths else (0, 0)
        is_long = length >= _FEWEST_DIGITS_OF_A_NUMBER and often >= _ENOUGH * len(cells.texts)
        return Finding(f"codes of {length} digits", often / len(cells.texts)) if is_long else None
    share = cells.share(is_record_code)
    if share < _ENOUGH:
        return None
    form = common_form(cells, _ENOUGH)
    return Finding(f"codes ({form or 'letters and digits'})", share)


def free_text(cells: Cells) -> Finding | None:
    """Find sentences: on average five words or more, and many different ones."""
    if cells.kind is not Kind.CATEGORICAL or cells.n_distinct <= _FEWEST_VALUES:
        return None
    if cells.distinct_fraction < _TEXT_FRACTION:
        return None
    words = np.array([len(_WORD.findall(text)) for text in cells.texts])
    share = cells.share(lambda text: len(_WORD.findall(text)) >= _FEWEST_WORDS)
    return Finding("free text", share) if words.mean() >= _FEWEST_WORDS and share >= _ENOUGH / 2 else None


# Forms in words.


_NUMBERS = {1: "a", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine"}
_RUNS = re.compile(r"9+|A+|[^9A]+")
_MOST_RUNS = 5


def form_of(text: str) -> str:
    """Write a text with 9 for each digit and A for each letter."""
    return "".join("9" if c.isdigit() else "A" if c.isalpha() else c for c in text)


def in_words(form: str) -> str:
    """Say a form in words; an empty text where it has too many parts.

    Examples
    --------
    >>> in_words(form_of("P100253")), in_words(form_of("2023-001")), in_words("A")
    ('a letter and six digits', 'four digits, a hyphen and three digits', 'a letter')
    """
    signs = {"-": "a hyphen", ".": "a dot", "/": "a slash", " ": "a blank", "_": "an underscore"}
    runs = _RUNS.findall(form)
    if not 1 <= len(runs) <= _MOST_RUNS:
        return ""
    parts = []
    for run in runs:
        if run[0] not in "9A":
            parts.append(signs.get(run, "a sign" if len(run) == 1 else "signs"))
            continue
        what = "digit" if run[0] == "9" else "letter"
        parts.append(f"{_NUMBERS.get(len(run), len(run))} {what}{'s' if len(run) > 1 else ''}")
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]


def common_form(cells: Cells, enough: float = _SAME_FORM) -> str:
    """Say the form that almost all values share; an empty text where they share none."""
    if not cells.texts:
        return ""
    form, often = Counter(map(form_of, cells.texts)).most_common(1)[0]
    return in_words(form) if often >= enough * len(cells.texts) else ""
