"""One spelling for one value: whether numbers, dates and 0/1 cells that are released as text are spelled canonically.

The forms of texts are data (``spellings.toml``), which the writer follows as well, by its own code. Each form has one
text for one value, so that 7, 7.0, 07 and 7e0 cannot tell rows apart. A column read from text keeps its own spelling;
then its texts are the original's, each compared with a row or a bucket of the original, whatever became of the rows.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from importlib.resources import files
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.audit.checks import Check, Unchecked, listed
from sfumato.audit.claims import Claims
from sfumato.audit.reading.values import KNOWN_RULES, TYPICAL, is_text
from sfumato.schema import Kind

NAME = "spelling"
SPELLINGS: dict[str, Any] = tomllib.loads((files("sfumato") / "spellings.toml").read_text(encoding="utf-8"))
"""The table of spellings as it is written down."""
FORMS: dict[str, dict[str, Any]] = SPELLINGS["forms"]
SPELLED = {
    kind: forms for kind in Kind if (forms := tuple(name for name, form in FORMS.items() if str(kind) in form["kinds"]))
}
"""Kinds of columns whose texts have one spelling for one value, with the forms that they may have."""

_ZERO_ONE, _SHORTEST = "0 and 1", "shortest decimals"
_LEAST_POWER, _END_POWER = FORMS[_SHORTEST]["exponents"]
# Up to 15 digits are the shortest text of their double whatever they are.
_SHORT = r"^(0|-?([1-9][0-9]{0,8}(\.[0-9]{0,5}[1-9])?|0\.[0-9]{0,5}[1-9]))$"


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
    if _LEAST_POWER < exponent <= _END_POWER:
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
        self._places: dict[str, set[int]] = {form: set() for form in self._forms}

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

    def _holds(self, known: pa.Array, name: str) -> bool:
        form = FORMS[name]
        if "words" in form:
            return bool(pc.all(pc.is_in(known, value_set=pa.array(form["words"])), min_count=0).as_py())
        if form.get("is_shortest"):
            known = known.filter(pc.invert(pc.match_substring_regex(known, _SHORT)))
        if not pc.all(pc.match_substring_regex(known, f"^(?:{form['pattern']})$"), min_count=0).as_py():
            return False
        if form.get("same_places"):
            parts = pc.struct_field(pc.extract_regex(known, r"\.(?P<places>[0-9]+)"), "places")
            self._places[name].update(pc.unique(pc.utf8_length(parts)).drop_null().to_pylist())
        is_shortest = not form.get("is_shortest") or all(double_text(float(text)) == text for text in known.to_pylist())
        return len(self._places[name]) <= 1 and is_shortest


def _forms_of_type(data_type: pa.DataType, kind: Kind) -> tuple[str, ...]:
    """How values of a type are spelled in a column of a kind; nothing for text."""
    family = _family(data_type)
    forms = tuple(name for name, form in FORMS.items() if family in form["types"])
    if family == "boolean":
        return tuple(name for name in forms if (name == _ZERO_ONE) is (kind is Kind.NUMERIC))
    return forms


def _family(data_type: pa.DataType) -> str:
    kinds = pa.types
    families = {
        "boolean": kinds.is_boolean,
        "integer": kinds.is_integer,
        "floating": kinds.is_floating,
        "decimal": kinds.is_decimal,
        "date": kinds.is_date,
        "time": kinds.is_time,
        "timestamp": lambda one: kinds.is_timestamp(one) and one.tz is None,
        "timestamp with a zone": lambda one: kinds.is_timestamp(one) and one.tz is not None,
    }
    return next((name for name, belongs in families.items() if belongs(data_type)), "text")


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
            forms: tuple[str, ...] = (_ZERO_ONE,)
        else:
            forms = (_forms_of_type(before, column.kind) if before is not None else ()) or SPELLED.get(column.kind, ())
        is_label = claims.output_format == "libsvm"  # a number, whose bytes were judged
        if not forms or is_label or column.name not in released or _is_spelled(released[column.name], forms):
            continue
        if original is None and forms != (_ZERO_ONE,):
            unknown.append(column.name)
        elif before is None or not is_text(before):
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
