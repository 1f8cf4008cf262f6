"""One spelling for one value: whether numbers, dates and 0/1 cells that are released as text are spelled canonically.

A column may be spelled as the writer spells typed values: whole numbers, shortest decimals of doubles, decimals with
the same number of places, truth values, dates. Each of these has one text for one value, so that 7, 7.0, 07 and 7e0
cannot tell rows apart. A column read from text keeps its own spelling; then the original's texts are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.audit.checks import Check, Unchecked, listed
from sfumato.audit.claims import Claims
from sfumato.audit.reading.values import KNOWN_RULES, TYPICAL, is_text
from sfumato.schema import Kind

NAME = "spelling"
WHOLE, DOUBLE, DECIMAL, TRUTH, DATE, MOMENT, ZERO_ONE = (
    "whole numbers",
    "shortest decimals",
    "decimals of one length",
    "truth values",
    "dates",
    "moments",
    "0 and 1",
)
SPELLED = {Kind.NUMERIC: (WHOLE, DOUBLE, DECIMAL), Kind.DATE: (DATE, MOMENT)}
"""Kinds of columns whose texts have one spelling for one value, with the forms that they may have."""

_WHOLE = r"^(0|-?[1-9][0-9]*)$"
# Up to 15 digits are the shortest text of their double whatever they are.
_SHORT = r"^(0|-?([1-9][0-9]{0,8}(\.[0-9]{0,5}[1-9])?|0\.[0-9]{0,5}[1-9]))$"
_DECIMAL = r"^-?(?:0|[1-9][0-9]*)\.(?P<places>[0-9]+)$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.(?P<places>[0-9]*[1-9][0-9]*))?Z?$"


def double_text(number: float) -> str:
    """Spell a double: its shortest digits, without an exponent from 1e-6 up to below 1e10.

    Examples
    --------
    >>> double_text(7.0), double_text(1.5e-5), double_text(1e10), double_text(-2.5e-7)
    ('7', '0.000015', '1e+10', '-2.5e-7')
    """
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    if not isinstance(exponent, int):
        return repr(number)
    shown = "".join(map(str, digits)).rstrip("0")
    exponent += len(digits)  # of a fraction 0.DIGITS
    if not shown:
        return "-0" if sign else "0"
    if -6 < exponent <= 10:
        whole = shown[: max(exponent, 0)].ljust(exponent, "0") or "0"
        places = "0" * -min(exponent, 0) + shown[max(exponent, 0) :]
        text = f"{whole}.{places}" if places else whole
    else:
        power = exponent - 1
        text = shown[0] + (f".{shown[1:]}" if shown[1:] else "") + f"e{'+' if power > 0 else '-'}{abs(power)}"
    return "-" * sign + text


class Spelling:
    """Forms in which all texts of a column are spelled that were seen so far, of those that it may be spelled in."""

    def __init__(self, forms: Iterable[str]) -> None:
        self._forms = set(forms)
        self._places: set[int] = set()

    def take(self, values: pa.Array) -> None:
        """Look at more texts of the column."""
        known = pc.cast(values.drop_null(), pa.string())
        # One value rules most forms out without a look at the others.
        self._forms = {form for form in self._forms if self._holds(known.slice(0, 1), form)}
        self._forms = {form for form in self._forms if self._holds(known, form)}

    @property
    def is_one_form(self) -> bool:
        """Whether one form fits all that was seen."""
        return bool(self._forms)

    def _holds(self, known: pa.Array, form: str) -> bool:
        if form == DOUBLE:
            other = known.filter(pc.invert(pc.match_substring_regex(known, _SHORT)))
            return all(_is_double(text) for text in other.to_pylist())
        if form in (TRUTH, ZERO_ONE):
            words = ["true", "false"] if form == TRUTH else ["0", "1"]
            return bool(pc.all(pc.is_in(known, value_set=pa.array(words)), min_count=0).as_py())
        if form in (DECIMAL, MOMENT):
            return self._have_same_places(known, _DECIMAL if form == DECIMAL else _MOMENT)
        pattern = _WHOLE if form == WHOLE else _DATE
        return bool(pc.all(pc.match_substring_regex(known, pattern), min_count=0).as_py())

    def _have_same_places(self, known: pa.Array, pattern: str) -> bool:
        """Whether all texts fit and, as far as they have places after a point, have as many."""
        found = pc.extract_regex(known, pattern)
        if found.null_count:
            return False
        self._places.update(pc.unique(pc.utf8_length(pc.struct_field(found, "places"))).to_pylist())
        is_below_zero = pc.match_substring_regex(known, r"^-0\.0*$")
        return len(self._places - {0}) <= 1 and not pc.any(is_below_zero, min_count=0).as_py()


def _is_double(text: str) -> bool:
    try:
        return double_text(float(text)) == text and text != "-0"
    except (ValueError, OverflowError):
        return False


def _forms_of_type(data_type: pa.DataType) -> tuple[str, ...]:
    """How the writer spells values of a type; nothing for text, and for times, which have no kind of their own."""
    kinds = pa.types
    if kinds.is_boolean(data_type):
        return (TRUTH,)
    if kinds.is_integer(data_type):
        return (WHOLE,)
    if kinds.is_floating(data_type):
        return (DOUBLE,)
    if kinds.is_decimal(data_type):
        return (DECIMAL, WHOLE)
    if kinds.is_date(data_type):
        return (DATE,)
    return ()


Values = Mapping[str, Iterable[pa.Array]]
"""For each column its values, in one or several arrays."""


def check_spelling(
    released: Values, claims: Claims, original: Mapping[str, pa.DataType] | None
) -> Iterator[Check | Unchecked]:
    """Whether texts are spelled as the writer spells their values, or as the original does.

    Parameters
    ----------
    released : mapping of str to arrays
        Distinct values of the columns, or cells.
    original : mapping of str to Arrow types, or None
        Types of the original's columns.
    """
    wrong, unknown = [], []
    for column in claims.columns:
        recoding = claims.recodings.get(column.name)
        is_own_value = recoding is None or recoding.rule == TYPICAL
        before = original.get(column.name) if original is not None and is_own_value else None
        if recoding is not None and recoding.rule in KNOWN_RULES:
            forms: tuple[str, ...] = (ZERO_ONE,)
        else:
            forms = (_forms_of_type(before) if before is not None else ()) or SPELLED.get(column.kind, ())
        if not forms or column.name not in released or _is_spelled(released[column.name], forms):
            continue
        if original is None and forms != (ZERO_ONE,):
            unknown.append(column.name)
        elif before is None or not is_text(before) or claims.perturbation is not None:
            wrong.append(column.name)
    said = f"are not spelled in the one canonical way: {listed(wrong)}" if wrong else "are spelled in one way each"
    yield Check(NAME, not wrong, f"numbers, dates and 0/1 cells {said}")
    if unknown:
        message = f"whether numbers or dates in {listed(unknown)} are spelled as in the original"
        yield Unchecked(NAME, message, "give the original, whose texts are compared one by one")


def _is_spelled(values: Iterable[pa.Array], forms: tuple[str, ...]) -> bool:
    spelling = Spelling(forms)
    for some in values:
        if not is_text(some.type):
            return True  # a typed file has no spellings
        spelling.take(some)
    return spelling.is_one_form
