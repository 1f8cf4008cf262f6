"""From the cells of any source to coded columns: plain types, trimmed text, one missing value.

Everything here works on a column's distinct values, so it costs next to nothing however many rows there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import InputError, InvalidParameterError
from sfumato.schema import DEFAULT_MISSING_TOKENS, Kind, Reading, Schema
from sfumato.table.coding import CodedColumn, Codes, RowMask, plain_type
from sfumato.table.kinds import guess_kind
from sfumato.table.reading.columns import Format, Wanted, guessed_format
from sfumato.table.spellings import checked_texts

_REMEMBERED_VALUES = 64


@dataclass(frozen=True)
class CellRules:
    """What a reader has to know of a column: its missing tokens, its format, and whether all its cells are text.

    Parameters
    ----------
    formats : mapping of str to str
        By column the format of its texts, where it is declared apart from the schema.
    guess_formats : bool
        Whether formats are looked for where none is declared.
    """

    schema: Schema | None = None
    missing: tuple[str, ...] = DEFAULT_MISSING_TOKENS
    mixed_as_text: bool = False
    formats: Mapping[str, str] = field(default_factory=dict)
    guess_formats: bool = True

    def tokens(self, name: str) -> tuple[str, ...]:
        """Texts that mean "missing" in a column."""
        if self.schema is None:
            return self.missing
        return self.schema.missing_tokens(name) if name in self.schema else self.schema.missing

    def is_text(self, name: str) -> bool:
        """Whether numbers among the text of a column are text too, because the schema or the caller says so.

        A column that the schema describes may mix them: numbers that are partly stored as text are numbers all the
        same, and what does not fit the kind is refused by that.
        """
        return self.mixed_as_text or (self.schema is not None and name in self.schema)

    def wanted(self, name: str) -> Wanted:
        """How the texts of a column are to be read."""
        described = self.schema[name] if self.schema is not None and name in self.schema else None
        declared = self.formats.get(name)
        if declared is None and described is not None and described.reading is not None:
            declared = described.reading.format
        return Wanted(declared, self.guess_formats, None if described is None else described.kind)


_Coded = tuple[Codes, pa.Array, Kind, Reading | None]


@dataclass(repr=False)
class ColumnCoder:
    """Codes columns one after the other and remembers what it worked out for a small set of distinct values.

    Tables with thousands of columns mostly hold the same few values in each.
    """

    rules: CellRules
    place: str | None = None
    readings: dict[str, Reading] = field(default_factory=dict)
    """By column how its texts were read, where they were no plain numbers, no ISO dates and no text."""
    line_of: Callable[[int], int | None] | None = None
    """Gives the line of a data row (from 0), for messages; ``None``: there are no lines."""
    codes_are_rows: bool = True
    _remembered: dict[object, _Coded] = field(default_factory=dict)

    def code(self, name: str, cells: pa.Array | pa.ChunkedArray, kind: Kind | None = None) -> tuple[CodedColumn, Kind]:
        """Code a column of any type; its kind is guessed unless given."""
        plain = plain_array(cells, name, self.place)
        encoded = plain.dictionary_encode(null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
        return self.code_distinct(name, codes, encoded.dictionary, kind)

    def code_distinct(
        self, name: str, codes: Codes, values: pa.Array, kind: Kind | None = None
    ) -> tuple[CodedColumn, Kind]:
        """Code a column of codes into plain distinct values, of which some may not occur."""
        occurs = np.bincount(codes, minlength=len(values)) > 0
        tokens, wanted = self.rules.tokens(name), self.rules.wanted(name)
        try:
            if len(values) > _REMEMBERED_VALUES or not (
                pa.types.is_string(values.type) or pa.types.is_integer(values.type)
            ):
                recode, distinct, found, reading = _code_values(values, occurs, tokens, kind, wanted)
            else:
                key = (values.type, tuple(values.to_pylist()), occurs.tobytes(), tokens, kind, wanted)
                if key not in self._remembered:
                    self._remembered[key] = _code_values(values, occurs, tokens, kind, wanted)
                recode, distinct, found, reading = self._remembered[key]
        except _UnreadError as error:
            raise self._unread(name, error, codes) from None
        if reading is not None:
            self.readings[name] = reading
        return CodedColumn(recode[codes], distinct), found

    def _unread(self, name: str, error: _UnreadError, codes: Codes) -> InputError:
        is_wrong, line, first = error.is_wrong[codes], None, ""
        if self.codes_are_rows:
            row = int(np.argmax(is_wrong))
            line = None if self.line_of is None else self.line_of(row)
            first = f" (first: data row {row + 1:,})" if line is None else " (first: this line)"
        what = f"{int(is_wrong.sum()):,} {'rows' if self.codes_are_rows else 'distinct values'}"
        return refuse_unread(error.used, what, first, place=self.place, column=name, line=line)


def refuse_unread(
    used: Format, what: str, first: str = "", *, place: str | None, column: str, line: int | None = None
) -> InputError:
    """Build the message for texts that are not written in the format that is declared."""
    problem = f"is declared to be written as {used.name}, but {what} are not{first}"
    hint = 'correct the format, or add the texts that mean "missing" to the missing tokens'
    return InputError(problem, path=place, line=line, column=column, hint=hint)


class _UnreadError(Exception):
    """Internal: some values are not written in the format that is declared."""

    def __init__(self, used: Format, is_wrong: RowMask) -> None:
        self.used, self.is_wrong = used, is_wrong
        super().__init__()


def _code_values(
    values: pa.Array, occurs: RowMask, tokens: tuple[str, ...], kind: Kind | None, wanted: Wanted
) -> _Coded:
    """Find the new code of every old one, the distinct values in order, their kind, and how they were read."""
    cleaned, reading = clean_values(values.filter(pa.array(occurs)), tokens), None
    found = kind
    if found is None:
        try:
            cleaned, found, reading = _read(cleaned, wanted)
        except _UnreadError as error:
            is_wrong = np.zeros(len(values), dtype=np.bool_)
            is_wrong[occurs] = error.is_wrong
            raise _UnreadError(error.used, is_wrong) from None
    coded = CodedColumn(np.arange(len(cleaned), dtype=np.int32), cleaned).recode(cleaned, found)
    recode = np.zeros(len(values), dtype=np.int32)
    recode[occurs] = coded.codes
    return recode, coded.values, found, reading


def _read(cleaned: pa.Array, wanted: Wanted) -> tuple[pa.Array, Kind, Reading | None]:
    """Read distinct values in the format of their column; plain numbers, ISO dates and other texts stay as they are."""
    plain = guess_kind(cleaned)
    used, reading = wanted.taken(*guessed_format(cleaned, plain) if wanted.guess else (None, ""))
    if used is None or is_read(cleaned.type, used):
        return cleaned, plain, reading
    read = read_values(cleaned, used)
    is_wrong = read.is_null().to_numpy(zero_copy_only=False) & cleaned.is_valid().to_numpy(zero_copy_only=False)
    if is_wrong.any():
        raise _UnreadError(used, is_wrong)
    return read, used.kind, reading


def is_read(data_type: pa.DataType, used: Format) -> bool:
    """Whether values of a type need no format: dates that are dates already, numbers that are numbers."""
    kinds = pa.types
    if used.kind is Kind.NUMERIC:
        return not kinds.is_string(data_type)
    return not (kinds.is_string(data_type) or kinds.is_integer(data_type) or kinds.is_floating(data_type))


def read_values(cleaned: pa.Array, used: Format) -> pa.Array:
    """Read cleaned values in a format: plain texts, null where a value is missing or does not fit."""
    text = as_text(cleaned)
    if pa.types.is_floating(cleaned.type):
        text = pc.replace_substring_regex(text, r"\.0$", "")
    return used.read(text)


def clean_values(values: pa.Array, tokens: Sequence[str]) -> pa.Array:
    """Trim text, make dates of timestamps that are all at midnight, and put null for what means "missing"."""
    if pa.types.is_string(values.type):
        values = pc.utf8_trim_whitespace(values)
    elif pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    elif are_midnights(values):
        values = pc.cast(values, pa.date32(), safe=False)
    return without_tokens(values, tokens)


def are_midnights(values: pa.Array) -> bool:
    """Whether values are timestamps without a time zone that are all at midnight."""
    if not pa.types.is_timestamp(values.type) or values.type.tz is not None:
        return False
    days = pc.cast(values, pa.date32(), safe=False)
    return bool(pc.all(pc.equal(pc.cast(days, values.type), values)).as_py())


def are_whole_seconds(values: pa.Array) -> bool:
    """Whether values are timestamps without a time zone that all fall on a second."""
    if not pa.types.is_timestamp(values.type) or values.type.tz is not None:
        return False
    seconds = pc.cast(values, pa.timestamp("s"), safe=False)
    return bool(pc.all(pc.equal(pc.cast(seconds, values.type), values), min_count=0).as_py())


def without_tokens(values: pa.Array, tokens: Sequence[str]) -> pa.Array:
    """Put null for what means "missing"."""
    try:
        listed = pa.array(tokens, pa.string())
    except UnicodeEncodeError:  # bytes of a command line that are no text, or half a character of a JSON text
        raise InvalidParameterError("missing", "got one that is not valid Unicode", allowed="texts") from None
    is_token = pc.is_in(as_text(values), value_set=listed)
    return pc.if_else(is_token, pa.scalar(None, values.type), values) if pc.any(is_token).as_py() else values


def as_text(values: pa.Array) -> pa.Array:
    """Values as they are written into a text file, spelled as ``spellings.toml`` says.

    Numbers are in their shortest form, decimals with all their places, dates in ISO 8601, moments of a zone in UTC.

    Examples
    --------
    >>> as_text(pa.array([Decimal("0.0000001"), Decimal("2.5000000")])).to_pylist()
    ['0.0000001', '2.5000000']
    """
    kinds = pa.types
    if kinds.is_string(values.type):
        return values
    if kinds.is_decimal(values.type):  # which Arrow writes with an exponent where they are small
        return pa.array([None if value is None else f"{value:f}" for value in values.to_pylist()], pa.string())
    if kinds.is_timestamp(values.type) and values.type.tz is not None:
        values = pc.cast(values, pa.timestamp(values.type.unit, "UTC"))
    texts = pc.cast(values, pa.string())
    if kinds.is_timestamp(values.type) or kinds.is_time(values.type):
        texts = pc.replace_substring_regex(texts, pattern=r"\.0+(Z?)$", replacement=r"\1")
    return texts


def as_doubles(values: pa.Array) -> pa.Array:
    """Numbers of less precision as the doubles that have their digits: 0.1 of single precision is 0.1."""
    return pc.cast(pc.cast(values, pa.string()), pa.float64()) if pa.types.is_float32(values.type) else values


def written_text(values: pa.Array) -> pa.Array:
    """Values of a released file as text.

    Raises
    ------
    InputError
        If a value has no spelling, as a year of five digits.
    """
    return checked_texts(values, as_text(values))


def check_names(names: Iterable[object], *, place: str | None, line: int | None = None) -> list[str]:
    """Trim column names; refuse empty and repeated ones, by position, for what is there may be a row of data.

    ``line`` is the one on which the names stand, in a file that need not have any.
    """
    trimmed = [str(name).strip().removeprefix("\ufeff").strip() for name in names]
    positions: dict[str, int] = {}
    for position, name in enumerate(trimmed, start=1):
        if not name:
            problem = f"column {position:,} of {len(trimmed):,} has no name"
            hint = f"give column {position:,} a name"
            if position == 1 and all(trimmed[1:]):
                hint = "give column 1 a name, or leave it out if it only numbers the rows"
            raise _wrong_name(problem, hint, place, line)
        if name in positions:
            problem = f"columns {positions[name]:,} and {position:,} have the same name"
            raise _wrong_name(problem, f"rename one of the columns {positions[name]:,} and {position:,}", place, line)
        positions[name] = position
    return trimmed


def _wrong_name(problem: str, hint: str, place: str | None, line: int | None) -> InputError:
    if line is None:
        return InputError(problem, path=place, hint=hint)
    hint += f" in line {line:,}; if that line holds data instead of names, state that there is no header"
    return InputError(problem, path=place, line=line, hint=hint, remedy=("header",))


def plain_array(cells: pa.Array | pa.ChunkedArray, name: str, place: str | None) -> pa.Array:
    """One array of a plain type: text, number, truth value, date or time."""
    is_coded = pa.types.is_dictionary(cells.type)
    target = plain_type(cells.type.value_type if is_coded else cells.type)
    chunks = cells.chunks if isinstance(cells, pa.ChunkedArray) else [cells]
    try:
        if target is not None:
            plain = [c.dictionary.cast(target).take(c.indices) if is_coded else c.cast(target) for c in chunks]
            return pa.concat_arrays(plain) if plain else pa.array([], target)
        problem = "holds values that are neither text, numbers, truth values, dates nor times"
    except pa.ArrowException:
        problem = "holds values that cannot be read"
    hint = "leave the column out or turn it into text or numbers first"
    raise InputError(problem, path=place, column=name, hint=hint)


# Columns of Python objects (spreadsheets, object arrays): one kind of value a column, or a clear refusal.


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
    known = [None if is_missing(value, missing) else _native(value) for value in values]
    whats = [None if value is None else kind_of_object(value) for value in known]
    found = list(dict.fromkeys(what for what in whats if what is not None))
    if "other values" in found:
        problem = "holds values that are neither text, numbers, truth values, dates nor times"
        raise MixedColumnError(problem, whats.index("other values"))
    if len(found) > 1:
        if is_text:
            return pa.array([None if value is None else text_of_object(value) for value in known], pa.string())
        raise MixedColumnError(mixed_problem(found), whats.index(found[1]))
    return _array(known, found[0] if found else "text")


def mixed_problem(kinds: Sequence[str]) -> str:
    """Say that a column holds values of several kinds."""
    return "mixes " + ", ".join(kinds[:-1]) + " and " + kinds[-1]


def refuse_mixed(error: MixedColumnError, *, place: str, column: str, row: int | None = None) -> InputError:
    """Build the message for a mixed column, naming the row where there is one."""
    where = f" (row {row:,})" if row is not None else ""
    hint = "make it one kind, or declare the column categorical to take all of it as text"
    return InputError(error.problem + where, path=place, column=column, hint=hint)


def is_missing(value: object, tokens: frozenset[str]) -> bool:
    """Whether a value means that there is none."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, str):
        return value.strip() in tokens or not value
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    return isinstance(value, np.datetime64) and bool(np.isnat(value))


def _native(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def kind_of_object(value: object) -> str:
    """Say what a value is, in the plural."""
    if isinstance(value, bool):
        return "truth values"
    if isinstance(value, int | float | Decimal):
        return "numbers"
    if isinstance(value, str):
        return "text"
    if isinstance(value, date):
        return "dates"
    return "times" if isinstance(value, time) else "other values"


def text_of_object(value: object) -> str:
    """Spell a value in a column of texts."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if is_whole(value) else repr(value)
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
        return pa.array([None if value is None else text_of_object(value) for value in known], pa.string())


def _numbers(known: Sequence[object]) -> pa.Array:
    """Whole numbers as integers (spreadsheets store 3 as 3.0), decimals as decimals, all else as floats."""
    if all(value is None or isinstance(value, int) or is_whole(value) for value in known):
        return pa.array([None if value is None else int(value) for value in known], pa.int64())  # type: ignore[call-overload]
    if all(value is None or isinstance(value, Decimal) for value in known):
        return pa.array(known)
    return pa.array([None if value is None else float(value) for value in known], pa.float64())  # type: ignore[arg-type]


def _dates(known: Sequence[object]) -> pa.Array:
    if all(value is None or not isinstance(value, datetime) or _is_midnight(value) for value in known):
        return pa.array([None if value is None else _day_or_time(value) for value in known], pa.date32())
    moments = [datetime(v.year, v.month, v.day) if type(v) is date else v for v in known]
    return pa.array(moments, pa.timestamp("us"))


def is_whole(value: object) -> bool:
    """Whether a float is a whole number, exactly."""
    return isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT_FLOAT_INTEGERS


def _is_midnight(value: datetime) -> bool:
    return value.tzinfo is None and value.time() == time()


def _day_or_time(value: object) -> date:
    if isinstance(value, datetime):
        return value.date()
    assert isinstance(value, date)
    return value
