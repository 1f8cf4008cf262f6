"""What cell values mean, apart from how they are stored: sameness, number and order.

A release may be written as text although its original holds typed cells, so values are compared by meaning:

- two texts are the same when they are spelled the same;
- a text and a number are the same when the text is a decimal number of that value (``1`` and ``1.0``), and a truth
  value is the word ``true`` or ``false`` in any letter case, or 1 or 0;
- two numbers of different types are the same when they are equal; beside a number of less than double precision the
  other one is rounded to that precision first, and beside a decimal number a double is its shortest decimal;
- a date or time is its ISO text, with a blank or ``T`` between date and time, with or without seconds of zero, trailing
  zeros of the second's fraction and a time of midnight; one with an offset is that of the moment in UTC;
- missing is the same as missing and as nothing else.

Where l and t are counted, more spellings are the same sensitive value than where a release is compared with its
original: see :func:`ranks`.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Hashable
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.audit.claims import ClaimedRecoding
from sfumato.schema import Kind

Ids = NDArray[np.int64]
Meaning = Callable[[Any], Hashable]

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity)|nan", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?\d{1,300}", re.ASCII)
_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2})(:\d{2})?(\.\d+)?(?:([+-])(\d{2}):?(\d{2}))?", re.ASCII)
_DECIMAL = re.compile(
    r"(?P<sign>[+-]?)(?:(?:(?P<whole>\d+)(?:\.(?P<part>\d*))?|\.(?P<dotted>\d+))(?:e(?P<power>[+-]?0*\d{1,9}))?"
    r"|(?P<endless>inf|infinity))",
    re.ASCII,
)
_IGNORABLE = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF)),
    *((0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
"""Code points of Unicode's property Default_Ignorable_Code_Point, from and to."""
_TURNED = str.maketrans("0123456789", "9876543210")
_TRUTH = {"true": True, "false": False}
_NOT_A_NUMBER = "not-a-number"
NEVER_EQUAL = -1


def matching_ids(original: pa.Array, released: pa.Array) -> tuple[Ids, Ids]:
    """Give two lists of distinct values numbers that are equal for equal values.

    A released value that means the same as an earlier released one (``1`` beside ``1.0`` for one number) gets
    ``NEVER_EQUAL``: a second spelling could carry what the original does not hold.
    """
    if is_text(original.type) and is_text(released.type):
        original, released = pc.cast(original, pa.large_string()), pc.cast(released, pa.large_string())
    if original.type == released.type:
        both = pa.concat_arrays([original, released]).dictionary_encode(null_encoding="encode").indices
        ids = both.to_numpy(zero_copy_only=False).astype(np.int64)
    else:
        number_of: dict[Hashable, int] = {}
        meanings = meanings_read_as(original, released.type) + meanings_read_as(released, original.type)
        ids = np.array([number_of.setdefault(m, len(number_of)) for m in meanings], dtype=np.int64)
    before, after = ids[: len(original)], ids[len(original) :].copy()
    _, first = np.unique(after, return_index=True)
    repeated = np.ones(len(after), dtype=np.bool_)
    repeated[first] = False
    after[repeated] = NEVER_EQUAL
    return before, after


def meanings_read_as(values: pa.Array, other: pa.DataType) -> list[Hashable]:
    """Values as objects that are equal when they mean the same as values of the other type."""
    if is_text(values.type):
        meaning: Meaning = _reading_of_text(other)
    elif pa.types.is_temporal(values.type):
        values, meaning = texts_of(values), _temporal_text
    else:
        meaning = _reading_of_number(values.type, other)
    return [None if value is None else meaning(value) for value in values.to_pylist()]


def texts_of(values: pa.Array) -> pa.Array:
    """Texts by which values are spelled, as ``spellings.toml`` says: decimals with all places, moments in UTC.

    Examples
    --------
    >>> texts_of(pa.array([Decimal("0.0000001"), None])).to_pylist()
    ['0.0000001', None]
    """
    if is_text(values.type):
        return pc.cast(values, pa.string())
    if pa.types.is_decimal(values.type):
        return pa.array([None if value is None else format(value, "f") for value in values.to_pylist()], pa.string())
    zone = getattr(values.type, "tz", None)
    if zone is not None:
        values = pc.cast(values, pa.timestamp(values.type.unit, "UTC"))
    texts = pc.cast(values, pa.string())
    if not pa.types.is_temporal(values.type):
        return texts
    whole = pc.replace_substring_regex(texts, r"\.0*Z?$", "")
    ends = pc.match_substring_regex(texts, r"\.0*Z?$")
    return pc.if_else(ends, pc.binary_join_element_wise(whole, "Z" if zone else "", ""), texts)


def is_text(data_type: pa.DataType) -> bool:
    """Whether an Arrow type holds text."""
    kinds = pa.types
    return bool(kinds.is_string(data_type) or kinds.is_large_string(data_type) or kinds.is_string_view(data_type))


def _reading_of_text(other: pa.DataType) -> Meaning:
    if is_text(other) or pa.types.is_null(other):
        return str
    if pa.types.is_temporal(other):
        return _temporal_text
    parse = _at_precision_of(other)
    return lambda text: _number_in(text, parse)


def _reading_of_number(own: pa.DataType, other: pa.DataType) -> Meaning:
    if not pa.types.is_floating(own):
        return _number_meaning
    at_precision = _at_precision_of(other)
    return lambda number: _number_meaning(number if number != number else at_precision(str(number)))


def _at_precision_of(other: pa.DataType) -> Callable[[str], Hashable]:
    """How a number's text is read beside numbers of a type."""
    if pa.types.is_float32(other):
        return lambda text: _rounded(float(text), np.float32)
    if pa.types.is_float16(other):
        return lambda text: _rounded(float(text), np.float16)
    return _decimal if pa.types.is_decimal(other) else _whole_or_double


def _whole_or_double(text: str) -> Hashable:
    return int(text) if _WHOLE.fullmatch(text) else float(text)


def _decimal(text: str) -> Hashable:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of twenty digits
        return float(text)


def _rounded(number: float, precision: type[np.floating[Any]]) -> float:
    with np.errstate(over="ignore"):
        rounded = float(precision(number))
    return rounded if math.isfinite(rounded) else number  # what is too large for the precision is no infinity


def _number_in(text: str, parse: Callable[[str], Hashable]) -> Hashable:
    """Read the number that a text spells; a text that spells none stays a text."""
    if _NUMBER.fullmatch(text):
        return _number_meaning(parse(text))
    return _TRUTH.get(text.lower(), text)


def _number_meaning(value: Any) -> Hashable:
    """Return a number as it is (Python's int, float, Decimal and bool agree when equal); not-a-number equals itself."""
    if isinstance(value, float | Decimal):
        return _NOT_A_NUMBER if value != value else value
    return value if isinstance(value, int | Hashable) else repr(value)


def _temporal_text(text: str) -> Hashable:
    """Write a date or time in one way, from long to short in the order of time; other texts stay as they are."""
    shown = text.strip().removesuffix("Z")
    if len(shown) > 10 and shown[10] == "T":
        shown = shown[:10] + " " + shown[11:]
    moment = _MOMENT.fullmatch(shown)
    if moment:
        shown = _in_utc(moment)
    if "." in shown:
        shown = shown.rstrip("0").rstrip(".")
    return shown.removesuffix(" 00:00:00") if len(shown) > 10 else shown


def _in_utc(moment: re.Match[str]) -> str:
    date, time, seconds, fraction, sign, hours, minutes = moment.groups("")
    shown = f"{date} {time}{seconds or ':00'}"
    if sign:
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        try:
            local = datetime.fromisoformat(shown)
            shown = (local - offset if sign == "+" else local + offset).isoformat(" ")
        except (ValueError, OverflowError):  # no such day, or none that a calendar of four-digit years has
            return moment[0]
    return shown + fraction


def numbers_in(values: pa.Array) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Values as numbers (not-a-number where missing or no number), and which of them are neither number nor missing."""
    if is_text(values.type):
        texts = [None if text is None else text.strip() for text in values.to_pylist()]
        is_number = [text is not None and _NUMBER.fullmatch(text) is not None for text in texts]
        read = [float(text) if ok and text else np.nan for text, ok in zip(texts, is_number, strict=True)]
        wrong = [text is not None and not ok for text, ok in zip(texts, is_number, strict=True)]
        return np.array(read, dtype=np.float64), np.array(wrong, dtype=np.bool_)
    if pa.types.is_temporal(values.type) or pa.types.is_binary(values.type):
        return np.full(len(values), np.nan), np.asarray(pc.is_valid(values).to_numpy(zero_copy_only=False))
    cells = pc.cast(values, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(cells, dtype=np.float64), np.zeros(len(values), dtype=np.bool_)


def moments_in(values: pa.Array) -> pa.Array | None:
    """Dates as microseconds since 1970, null where missing; ``None`` where one is no date."""
    try:
        return pc.cast(pc.cast(values, pa.timestamp("us")), pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def zero_one(values: pa.Array) -> NDArray[np.int8] | None:
    """Distinct values as 0 and 1, -1 where missing; ``None`` when any is something else."""
    if len(values) > 16:  # 0 and 1 in a few spellings are fewer
        return None
    found = np.empty(len(values), dtype=np.int8)
    for i, value in enumerate(values.to_pylist()):
        number = _number_in(value, float) if isinstance(value, str) and value.lower() not in _TRUTH else value
        if number is None:
            found[i] = -1
        elif isinstance(number, int | float | Decimal) and number in (0, 1):
            found[i] = int(number)
        else:
            return None
    return found


def ranks(values: pa.Array, kind: Kind, domain: tuple[str, ...] | None = None) -> Ids:
    """Rank of each distinct value in the order of its kind; spellings of the same value share one, missing is last.

    The same sensitive value, for counting: see :func:`same_value`. Levels of an ordered column come first, by the
    declared domain, and dates of a column of dates by time. Of all else, in columns of every kind, numbers come first,
    by size, and then other texts, by their first text.
    """
    same, placed = _judged(values, kind, domain)
    first: dict[Hashable, tuple[Any, ...]] = {}
    for meaning, place in sorted(zip(same, placed, strict=True), key=lambda pair: pair[1], reverse=True):
        first[meaning] = place
    return _dense([first[meaning] for meaning in same])


def spelled_ranks(values: pa.Array, kind: Kind, domain: tuple[str, ...] | None = None) -> Ids:
    """Rank of each distinct value as :func:`ranks` orders them, with each spelling as a value of its own."""
    return _dense(_judged(values, kind, domain)[1])


def _judged(
    values: pa.Array, kind: Kind, domain: tuple[str, ...] | None
) -> tuple[list[Hashable], list[tuple[Any, ...]]]:
    """For each value what it is the same as, and where it is in order; missing last. See :func:`ranks`."""
    moments = moments_in(values) if kind is Kind.DATE else None
    texts = texts_of(values).to_pylist()
    same: list[Hashable] = [None if text is None else same_value(text) for text in texts]
    if moments is not None:
        same = moments.to_pylist()
    level: dict[Hashable, int] = {}
    for number, declared in enumerate(domain or ()):
        level.setdefault(same_value(declared), number)
    placed: list[tuple[Any, ...]] = []
    for meaning, text in zip(same, texts, strict=True):
        if meaning is None:
            placed.append((3,))
        elif moments is not None:
            placed.append((0, meaning, text))
        elif kind is Kind.ORDERED and meaning in level:
            placed.append((0, level[meaning], text))
        elif isinstance(meaning, tuple):  # a number, whatever the kind
            placed.append((1, meaning, text))
        else:
            placed.append((2, text))
    return same, placed


def _dense(keys: list[tuple[Any, ...]]) -> Ids:
    number = {key: i for i, key in enumerate(sorted(set(keys)))}
    return np.array([number[key] for key in keys], dtype=np.int64)


def same_value(text: str) -> Hashable:
    """Give what a sensitive value is counted as: a text, or a tuple that is equal, and ascends, as numbers do.

    Two texts are the same value if they are equal without the code points that Unicode ignores by default, in
    compatibility composition (NFKC), with letter case folded, composed again, and with white space around them left out
    and within them written as one blank; or if what is left are decimal numbers of the same size, to the last digit.
    """
    shown = unicodedata.normalize("NFKC", "".join(c for c in text if not _is_ignorable(ord(c))))
    shown = unicodedata.normalize("NFKC", shown.casefold())
    shown = re.sub(r"\s+", " ", shown).strip()
    number = _DECIMAL.fullmatch(shown)
    return shown if number is None else _exact(*number.group("sign", "whole", "part", "dotted", "power", "endless"))


def _is_ignorable(point: int) -> bool:
    return point > 0x7F and any(low <= point <= high for low, high in _IGNORABLE)


def _exact(sign: str, whole: str, part: str, dotted: str, power: str, endless: str) -> Hashable:
    """Sign, order of magnitude and digits of a decimal number, so that tuples compare as numbers do."""
    minus = sign == "-"
    if endless:
        return (-2,) if minus else (2,)
    digits = (whole or "") + (part or dotted or "")
    shift = int(power or 0) + len(whole or "")
    significant = digits.lstrip("0")
    magnitude = shift - (len(digits) - len(significant))
    significant = significant.rstrip("0")
    if not significant:
        return (0,)
    if not minus:
        return (1, magnitude, significant)
    # what is larger without its sign comes first: digits are turned round, and an end is larger than any digit
    return (-1, -magnitude, significant.translate(_TURNED) + ":")


# Recoding rules, evaluated on the original's values by the audit's own code.


AS_IS, ONE_OF, INTERVAL, MISSING = "as-is", "one-of", "interval", "missing"
GENERALIZED = "generalized"
"""Rule whose cells say themselves what they stand for; see :mod:`sfumato.audit.reading.cells`."""
HIERARCHY = "hierarchy"
"""Rule whose cells are labels of a hierarchy; see :mod:`sfumato.audit.reading.labels`."""
TYPICAL = "typical"
"""Rule whose cells are the middle or most frequent value of their class; see :mod:`sfumato.audit.original.typical`."""
KNOWN_RULES = (AS_IS, ONE_OF, INTERVAL, MISSING)


def evaluate(recoding: ClaimedRecoding, values: pa.Array, *, clamp: bool = False) -> NDArray[np.int8] | None:
    """0 or 1 for each distinct value of the original column; ``None`` when the rule cannot be evaluated on them.

    A missing value is 1 for ``missing`` and 0 for every other rule. ``one-of`` compares meanings (see
    the top of this module), ``interval`` numbers with ``above < value <= upto``; a side that is not given
    is open. With ``clamp`` what is no number is in no interval, as under differential privacy.
    """
    is_missing = np.asarray(values.is_null().to_numpy(zero_copy_only=False))
    if recoding.rule == MISSING:
        return is_missing.astype(np.int8)
    if recoding.rule == AS_IS:
        found = zero_one(values)
        return None if found is None else np.maximum(found, 0).astype(np.int8)
    if recoding.rule == ONE_OF:
        wanted = set(meanings_read_as(pa.array(recoding.values, pa.string()), values.type))
        return np.array([m is not None and m in wanted for m in meanings_read_as(values, pa.string())], dtype=np.int8)
    if recoding.rule == INTERVAL:
        numbers, wrong = numbers_in(values)
        inside = ~np.isnan(numbers)
        if recoding.above is not None:
            inside &= numbers > recoding.above
        if recoding.upto is not None:
            inside &= numbers <= recoding.upto
        return None if wrong.any() and not clamp else inside.astype(np.int8)
    return None
