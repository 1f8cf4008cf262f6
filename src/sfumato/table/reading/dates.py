"""Formats of dates: how each country writes a day, and how a column of such texts becomes ISO 8601.

A format is named as people name it: ``DD.MM.YYYY``, ``MM/DD/YYYY``, ``DD MMM YYYY`` (the name of the month),
``YYYYMMDD``. A time after it is `` HH:MM``, and `` 00:00`` where it is midnight always and says nothing. Two-digit
years say where they begin: ``DD.MM.YY from 1969`` has the years 1969 to 2068. ``excel`` are the serial numbers of
spreadsheets. ``mixed`` are days in several formats, each of which can be read in one way only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.schema import Kind
from sfumato.table.reading.months import month_of

FIRST_YEAR = 1969
"""Where two-digit years begin unless it is said: 69 is 1969, 68 is 2068, as in POSIX."""
EXCEL = "excel"
MIXED = "mixed"
_CENTURY = 100
_FEWEST_DIGITS_ALONE = 3  # so many dates of eight digits are no chance
_MONTHS_A_YEAR = 12
_LAST_SERIAL = 2_958_465  # 9999-12-31
_NO_DAY = 60  # Excel has a 29 February 1900
_EPOCH_SERIAL = 25_569  # 1970-01-01
_SECONDS = 86_400

_DAY, _MONTH, _YEAR, _SHORT_YEAR = (
    rf"(?P<{name}>{digits})"
    for name, digits in (("d", "[0-9]{1,2}"), ("m", "[0-9]{1,2}"), ("y", "[0-9]{4}"), ("y", "[0-9]{2}"))
)
_MONTH_NAME = r"(?P<name>\pL{3,12}\.?)"
_TIMES = {
    "": "",
    " 00:00": r"[ T]+0?0:00(?::00(?:\.0+)?)?",
    " HH:MM": (
        r"(?:[ T]|, ?)(?P<h>[0-9]{1,2}):(?P<min>[0-9]{2})(?::(?P<s>[0-9]{2})(?P<f>\.[0-9]{1,6})?)?"
        r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?"
    ),
}
_ORDINAL = r"(?:\.|º|er|st|nd|rd|th)?"
_OF = r"(?:de |del |of )?"


@dataclass(frozen=True)
class DateFormat:
    """One way of writing dates.

    Parameters
    ----------
    pattern : str
        Of a whole cell, with groups for the parts; empty for serial numbers and mixtures.
    first_year : int
        Of two-digit years.
    """

    day_part: str
    pattern: str
    time: str = ""
    first_year: int = FIRST_YEAR

    kind = Kind.DATE

    @property
    def name(self) -> str:
        """The format in words: ``DD/MM/YYYY``."""
        return self.day_part + self.time + (f" from {self.first_year}" if self.has_short_years else "")

    @property
    def has_short_years(self) -> bool:
        """Whether years have two digits."""
        return "YY" in self.day_part and "YYYY" not in self.day_part

    @property
    def order(self) -> str:
        """Day, month and year in the order in which they are written: ``DMY``."""
        return "".join(dict.fromkeys(letter for letter in self.day_part if letter in "DMY"))

    @cached_property
    def _whole(self) -> str:
        return f"^{self.pattern}{_TIMES[self.time]}$"

    @cached_property
    def _whole_for_one(self) -> re.Pattern[str]:
        return re.compile(self._whole.replace(r"\pL", r"[^\W\d_]"))

    def may_be(self, text: str) -> bool:
        """Whether one text has the form; its numbers are not looked at."""
        return self._whole_for_one.fullmatch(text) is not None

    def read(self, values: pa.Array) -> pa.Array:
        """Texts in ISO 8601, null where a text is no date of this format.

        Examples
        --------
        >>> date_format("DD.MM.YYYY").read(pa.array(["3.4.2021", "31.02.2021"])).to_pylist()
        ['2021-04-03', None]
        """
        if self.day_part == EXCEL:
            return _of_serials(values)
        if self.day_part == MIXED:
            return read_several(values)[0]
        parts = pc.extract_regex(values, self._whole)
        found = np.array(parts.is_valid().to_numpy(zero_copy_only=False))
        months = _months(parts, found) if "MMM" in self.day_part else _whole_numbers(parts, "m", found)
        years = _whole_numbers(parts, "y", found)
        if self.has_short_years:
            years = self.first_year + (years - self.first_year) % _CENTURY
        days = _whole_numbers(parts, "d", found)
        iso = _iso_days(years, months, days, found)
        if self.time != " HH:MM":
            return iso
        return pc.binary_join_element_wise(iso, _iso_times(parts, found), " ")

    def day_decides(self, read: pa.Array) -> bool:
        """Whether a day above 12 is among dates that were read, so that no number of a month can be meant."""
        known = read.drop_null()
        days = pc.cast(pc.utf8_slice_codeunits(known, 8, 10), pa.int32())
        return bool(pc.any(pc.greater(days, _MONTHS_A_YEAR)).as_py())


def _whole_numbers(parts: pa.Array, name: str, found: NDArray[np.bool_]) -> NDArray[np.int64]:
    texts = pc.if_else(pa.array(found), parts.field(name), "0")
    texts = pc.if_else(pc.equal(texts, ""), "0", texts)
    return np.asarray(pc.cast(texts, pa.int64()).to_numpy(zero_copy_only=False))


def _months(parts: pa.Array, found: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Numbers of the months by their names, 0 for a word that is none."""
    words = pc.if_else(pa.array(found), parts.field("name"), "").dictionary_encode()
    numbers = np.array([month_of(word) or 0 for word in words.dictionary.to_pylist()], dtype=np.int64)
    return numbers[words.indices.to_numpy()] if len(numbers) else np.zeros(len(parts), dtype=np.int64)


def _iso_days(
    years: NDArray[np.int64], months: NDArray[np.int64], days: NDArray[np.int64], found: NDArray[np.bool_]
) -> pa.Array:
    is_month = found & (years >= 1) & (months >= 1) & (months <= _MONTHS_A_YEAR) & (days >= 1)
    firsts = np.where(is_month, (years - 1970) * _MONTHS_A_YEAR + months - 1, 0).astype("datetime64[M]")
    lengths = ((firsts + 1).astype("datetime64[D]") - firsts.astype("datetime64[D]")).astype(np.int64)
    is_day = is_month & (days <= lengths)
    dates = firsts.astype("datetime64[D]") + np.where(is_day, days - 1, 0)
    return pc.cast(pa.array(dates, pa.date32(), mask=~is_day), pa.string())


def _iso_times(parts: pa.Array, found: NDArray[np.bool_]) -> pa.Array:
    hours, minutes, seconds = (_whole_numbers(parts, name, found) for name in ("h", "min", "s"))
    halves = pc.fill_null(pc.utf8_lower(parts.field("half")), "").to_numpy(zero_copy_only=False)
    has_half = halves != ""
    fits = found & (minutes < 60) & (seconds < 60) & np.where(has_half, (hours >= 1) & (hours <= 12), hours < 24)
    hours = np.where(has_half, hours % 12 + np.where(halves == "p", 12, 0), hours)
    fractions = pc.fill_null(parts.field("f"), "").to_pylist()
    texts = [f"{h:02}:{m:02}:{s:02}{f}" for h, m, s, f in zip(hours, minutes, seconds, fractions, strict=True)]
    return pa.array(texts, pa.string(), mask=~fits)


def _of_serials(values: pa.Array) -> pa.Array:
    """Days since the beginning of 1900 as spreadsheets count them; a fraction is the time of the day."""
    looks = pc.fill_null(pc.match_substring_regex(values, r"^[0-9]{1,7}(\.[0-9]+)?$"), fill_value=False)
    numbers = np.asarray(pc.cast(pc.if_else(looks, values, "0"), pa.float64()).to_numpy(zero_copy_only=False))
    days = np.floor(numbers).astype(np.int64)
    fits = looks.to_numpy(zero_copy_only=False) & (days >= 1) & (days <= _LAST_SERIAL) & (days != _NO_DAY)
    since_epoch = np.where(days < _NO_DAY, days + 1, days) - _EPOCH_SERIAL
    seconds = np.rint((numbers - days) * _SECONDS).astype(np.int64)
    moments = since_epoch.astype("datetime64[D]").astype("datetime64[s]") + seconds
    iso = np.where(
        seconds == 0,
        since_epoch.astype("datetime64[D]").astype(str),
        np.char.replace(moments.astype(str), "T", " "),
    )
    return pa.array(iso.tolist(), pa.string(), mask=~fits)


def read_several(values: pa.Array) -> tuple[pa.Array, set[str]]:
    """Read days in several formats; null where none fits, or two that mean different days. Says which were used.

    Only day and month can change places, so that a text which a format has read is looked at by one more at most.
    """
    found: pa.Array = pa.nulls(len(values), pa.string())
    left, used = values, set()
    for one in _likely_first(values):
        read = one.read(left)
        if read.null_count == len(read):
            continue
        used.add(one.name)
        rival = date_format(one.name.translate(_TURNED)) if one.day_part.startswith(("DD/", "DD-")) else None
        sure = read if rival is None else _unless_different(read, rival.read(left))
        found = pc.coalesce(found, sure)
        left = pc.if_else(read.is_valid(), pa.scalar(None, pa.string()), left)
        if left.null_count == len(left):
            break
    return found, used


_TURNED = str.maketrans({"D": "M", "M": "D"})


def _unless_different(days: pa.Array, others: pa.Array) -> pa.Array:
    differ = pc.fill_null(pc.not_equal(days, others), fill_value=False)
    return pc.if_else(differ, pa.scalar(None, pa.string()), days)


def _likely_first(values: pa.Array) -> list[DateFormat]:
    """Give the formats of mixtures, those of the first text first: most columns have one format."""
    first = next((text for text in values.drop_null()[:1].to_pylist()), "")
    return sorted(formats_of_mixtures(), key=lambda one: not one.may_be(first))


@cache
def formats_of_mixtures() -> tuple[DateFormat, ...]:
    """Give the formats that a mixture may be of: of days, with whole years.

    Eight digits may be numbers, and nobody writes the month first with stops and blanks.
    """
    by_month = ("MM.DD.", "MM DD ", "YYYYMMDD")
    days = (one for one in date_formats() if one.time != " HH:MM" and not one.has_short_years)
    return tuple(one for one in days if not one.day_part.startswith(by_month))


@cache
def date_formats() -> tuple[DateFormat, ...]:
    """Give all formats that are looked for, in the order in which they are preferred."""
    days = [DateFormat(name, pattern) for name, pattern in _day_parts()]
    return tuple(replace(one, time=time) for one in days for time in _TIMES)


def _day_parts() -> Iterator[tuple[str, str]]:
    yield "YYYY-MM-DD", f"{_YEAR}-{_MONTH}-{_DAY}"
    for mark, between in ((".", r"\. ?"), ("/", "/"), ("-", "-"), (" ", " ")):
        yield f"DD{mark}MM{mark}YYYY", f"{_DAY}{between}{_MONTH}{between}{_YEAR}"
        yield f"MM{mark}DD{mark}YYYY", f"{_MONTH}{between}{_DAY}{between}{_YEAR}"
    yield "YYYY/MM/DD", f"{_YEAR}/{_MONTH}/{_DAY}"
    yield "YYYY.MM.DD", rf"{_YEAR}\. ?{_MONTH}\. ?{_DAY}\.?"
    yield "YYYY年MM月DD日", f"{_YEAR}年 ?{_MONTH}月 ?{_DAY}日"
    yield "YYYY년 MM월 DD일", f"{_YEAR}년 ?{_MONTH}월 ?{_DAY}일"
    yield "DD MMM YYYY", rf"{_DAY}{_ORDINAL}[ /-]{_OF}{_MONTH_NAME}(?:[ /-]|, ){_OF}{_YEAR}"
    yield "MMM DD, YYYY", rf"{_MONTH_NAME}[ -]{_DAY}{_ORDINAL}(?:, ?|[ -]){_YEAR}"
    yield "DD MMM YY", rf"{_DAY}{_ORDINAL}[ /-]{_MONTH_NAME}[ /-]{_SHORT_YEAR}"
    for mark, between in ((".", r"\. ?"), ("/", "/"), ("-", "-")):
        yield f"DD{mark}MM{mark}YY", f"{_DAY}{between}{_MONTH}{between}{_SHORT_YEAR}"
        yield f"MM{mark}DD{mark}YY", f"{_MONTH}{between}{_DAY}{between}{_SHORT_YEAR}"
        yield f"YY{mark}MM{mark}DD", f"{_SHORT_YEAR}{between}{_MONTH}{between}{_DAY}"
    yield "YYYYMMDD", "(?P<y>(?:19|20)[0-9]{2})(?P<m>[0-9]{2})(?P<d>[0-9]{2})"


@cache
def _by_name() -> dict[str, DateFormat]:
    formats = {one.day_part.upper() + one.time: one for one in date_formats()}
    return formats | {name.upper(): DateFormat(name, "") for name in (EXCEL, MIXED)}


_FROM = re.compile(r"(?P<day>.*?)(?: FROM (?P<first>[0-9]{4}))?")


def date_format(text: str) -> DateFormat | None:
    """Find a format by its name, in any letter case; ``None`` if there is none.

    Examples
    --------
    >>> date_format("dd.mm.yy from 1925").first_year, date_format("day first")
    (1925, None)
    """
    said = _FROM.fullmatch(" ".join(text.upper().split()))
    if said is None:
        return None
    found = _by_name().get(said["day"])
    if found is None or said["first"] is None:
        return found
    return replace(found, first_year=int(said["first"])) if found.has_short_years else None


# What a whole column has to show before a format is taken, and what stays a guess.


@dataclass
class DateEvidence:
    """What is known so far of the texts of a column that may be dates of one format."""

    format: DateFormat
    day_decides: bool = False
    n_values: int = 0

    def take(self, values: pa.Array) -> bool:
        """Look at further distinct texts, none of them missing; whether all are dates of the format."""
        read = self.format.read(values)
        if read.null_count:
            return False
        self.day_decides = self.day_decides or self.format.day_decides(read)
        self.n_values += len(values)
        return True

    @property
    def is_enough(self) -> bool:
        """Whether they may be taken as dates without being told: forms that versions and numbers have too need more."""
        if self.format.day_part == "YYYYMMDD":
            return self.n_values >= _FEWEST_DIGITS_ALONE
        if self.format.has_short_years and "MMM" not in self.format.day_part:
            return self.day_decides or "/" in self.format.day_part
        return True


@dataclass
class MixedEvidence:
    """What is known so far of the texts of a column that may be dates of several formats."""

    used: set[str] = field(default_factory=set)
    is_possible: bool = True

    def take(self, values: pa.Array) -> None:
        """Look at further distinct texts, none of them missing."""
        first = values[0].as_py()
        self.is_possible = self.is_possible and any(one.may_be(first) for one in formats_of_mixtures())
        if self.is_possible:
            read, used = read_several(values)
            self.is_possible = read.null_count == 0
            self.used |= used

    @property
    def is_enough(self) -> bool:
        """Whether every text is a day in one way only, and they are of several formats."""
        return self.is_possible and len(self.used) > 1

    def doubt(self) -> str:
        """Say what is a guess."""
        return f"its dates are in {len(self.used)} formats ({', '.join(sorted(self.used))}), each cell read by itself"


_WITHOUT_DOUBT = ("DD.MM.", "DD MM ")  # nobody writes the month first with these marks


def doubt_about(chosen: DateEvidence, others: list[DateEvidence]) -> str:
    """Say what is a guess in a format that was chosen among others that fit as well; empty if nothing is."""
    said = []
    orders = {one.format.order for one in others} - {chosen.format.order}
    if orders and not chosen.format.day_part.startswith(_WITHOUT_DOUBT):
        first = {"DMY": "day first", "MDY": "month first", "YMD": "year first"}[chosen.format.order]
        said.append(f"{first}; no value above 12 decides" if orders <= {"DMY", "MDY"} else f"{first}; no value decides")
    if chosen.format.has_short_years:
        last = chosen.format.first_year + _CENTURY - 1
        said.append(f"two-digit years are {chosen.format.first_year} to {last}")
    if chosen.format.day_part == "YYYYMMDD":
        said.append("numbers of eight digits that all are dates")
    return "; ".join(said)
