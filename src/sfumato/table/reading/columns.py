"""One format for a whole column: declared, or the only one that fits all its texts, or several of dates in no doubt."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from sfumato.errors import InvalidParameterError, on_one_line
from sfumato.schema import AS_TEXT, Column, Kind, Reading, Schema
from sfumato.table.reading.dates import (
    MIXED,
    DateEvidence,
    DateFormat,
    MixedEvidence,
    date_format,
    date_formats,
    doubt_about,
)
from sfumato.table.reading.numbers import (
    PLAIN,
    STOP_IN_DOUBT,
    NumberEvidence,
    NumberFormat,
    PlainNumbers,
    chosen_format,
    number_format,
    number_formats,
)

Format = DateFormat | NumberFormat

_ALLOWED = {
    Kind.DATE: "a date format such as DD/MM/YYYY, MM/DD/YYYY, DD.MM.YY from 1925, DD MMM YYYY, mixed or excel",
    Kind.NUMERIC: "the number 1234.56 as it is written there, such as 1.234,56 or 1234,56 kg",
}


def format_named(text: str, kind: Kind | None = None) -> Format | None:
    """Find a format by its name; ``None`` for "text", which leaves the column as it is.

    Parameters
    ----------
    kind : Kind or None
        Of the format; ``None``: any.

    Raises
    ------
    InvalidParameterError
        If there is no such format.
    """
    if text == AS_TEXT:
        return None
    found: Format | None = date_format(text) if kind is not Kind.NUMERIC else None
    if found is None and kind is not Kind.DATE:
        found = number_format(text)
    if found is None:
        what = {Kind.DATE: "date_format", Kind.NUMERIC: "number_format", None: "format of a column"}[kind]
        allowed = " or ".join(_ALLOWED.values()) if kind is None else _ALLOWED[kind]
        raise InvalidParameterError(what, f"got '{on_one_line(text)}'", allowed=f"{allowed}, or {AS_TEXT}")
    return found


def is_format(text: str) -> bool:
    """Whether a text names a format."""
    return text == AS_TEXT or date_format(text) is not None or number_format(text) is not None


class Candidates:
    """The formats in which all texts of a column seen so far can be read.

    Texts come in parts (blocks of a large file) or at once; the decision is the same. None of this depends on the
    order of the texts.
    """

    def __init__(self) -> None:
        self._dates: list[DateEvidence] | None = None
        self._mixed = MixedEvidence()
        self._numbers: list[NumberEvidence] | None = None
        self._plain = PlainNumbers()

    def take(self, values: pa.Array, plain: Kind) -> None:
        """Look at further distinct texts, trimmed, null where missing, and of this kind as they are.

        Plain numbers fit most formats: what is known of them is kept until there are others, which is cheap.
        """
        known = values.drop_null()
        if len(known) == 0:
            return
        first = known[0].as_py()
        has_digit = any(character.isdigit() for character in first)
        if self._dates is None:
            self._dates = [DateEvidence(one) for one in date_formats() if one.may_be(first)] if has_digit else []
        self._dates = [one for one in self._dates if one.take(known)]
        self._mixed.take(known)
        if plain is Kind.NUMERIC:
            self._plain.take(known)
            return
        if self._numbers is None:
            self._numbers = [NumberEvidence(one) for one in number_formats(first)] if has_digit else []
        self._numbers = [one for one in self._numbers if one.take(known)]

    def decided(self, plain: Kind) -> tuple[Format | None, str]:
        """Choose the format of the column and say what is a guess in it.

        Parameters
        ----------
        plain : Kind
            Of the texts as they are. Plain numbers and ISO dates need no format, except eight digits that are dates.
        """
        dates = self._dates or []
        numbers = [one for one in self._numbers or [] if self._plain.fit(one)]
        if plain is Kind.DATE:
            return None, ""
        if dates and dates[0].is_enough:
            return dates[0].format, doubt_about(dates[0], dates)
        if not dates and self._mixed.is_enough:
            return date_format(MIXED), self._mixed.doubt()
        if plain is Kind.NUMERIC:
            return (number_format(PLAIN), STOP_IN_DOUBT) if self._plain.may_be_thousands else (None, "")
        if numbers:
            chosen, doubt = chosen_format(numbers)
            if chosen.is_enough:
                return chosen.format, doubt
        return None, ""


def format_key(column: Column) -> str:
    """Key by which a project file says the format of a column."""
    is_date = column.reading is not None and date_format(column.reading.format) is not None
    return "date_format" if is_date else "number_format"


def doubts_of(schema: Schema) -> list[tuple[str, str]]:
    """By column, in words, what is a guess in the way that its texts were read."""
    found = [(c, c.reading) for c in schema if c.reading is not None and c.reading.doubt]
    return [(c.name, f"column '{c.name}' is read as {reading.format}: {reading.doubt}") for c, reading in found]


def guessed_format(values: pa.Array, plain: Kind) -> tuple[Format | None, str]:
    """Find the format of a column whose distinct texts these are, and what is a guess in it."""
    if not pa.types.is_string(values.type):
        return None, ""
    if plain is Kind.NUMERIC and not _may_need_format(values):
        return None, ""
    candidates = Candidates()
    candidates.take(values, plain)
    return candidates.decided(plain)


def _may_need_format(values: pa.Array) -> bool:
    """Whether plain numbers may be dates of eight digits, or thousands: looked at by one value, which is cheap."""
    known = values.drop_null()
    text = known[0].as_py() if len(known) else ""
    return (len(text) == 8 and text.isdigit()) or text[-4:-3] == "."


@dataclass(frozen=True)
class Wanted:
    """How the texts of a column are to be read.

    Parameters
    ----------
    format : str or None
        As declared; ``None``: looked for.
    guess : bool
        Whether formats are looked for at all.
    kind : Kind or None
        As declared: a format of another kind is not taken unless it is declared too. ``None``: any.
    """

    format: str | None
    guess: bool
    kind: Kind | None

    def taken(self, natural: Format | None, doubt: str) -> tuple[Format | None, Reading | None]:
        """Give the format in which the column is read, and what has to be said about that.

        Parameters
        ----------
        natural : format or None
            The one that was found.
        doubt : str
            What is a guess in it.
        """
        used, doubt = (natural, doubt) if self.format is None else (format_named(self.format), "")
        if self.format is None and used is not None and self.kind not in (None, used.kind):
            used, doubt = None, ""
        is_own = _name(used) != _name(natural)
        if used is None and not is_own:
            return None, None
        unit = used.unit if isinstance(used, NumberFormat) else ""
        return used, Reading(_name(used), unit=unit, doubt=doubt, is_own=is_own)


def _name(found: Format | None) -> str:
    return AS_TEXT if found is None else found.name
