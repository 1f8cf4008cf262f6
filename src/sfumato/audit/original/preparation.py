"""What the manifest says was done to columns before anything else, done again by the audit's own means.

With the original each column is prepared anew and compared with what is released. Without it, what released cells show
of it is checked: no number above the top, every one a multiple of what it was rounded to, masks and pseudonyms of their
form. The definitions are those of docs/manifest; nothing is shared with what prepares columns.
"""

from __future__ import annotations

import hmac
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.audit.checks import GIVE_KEY, IN_MEMORY, Check, Unchecked, listed
from sfumato.audit.claims import ClaimedPreparation, Claims
from sfumato.audit.original.offered_rows import offered_rows
from sfumato.audit.reading.columns import AnyTable, Columns
from sfumato.audit.reading.values import is_text, texts_of
from sfumato.errors import on_one_line
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.weighted import OpenColumn

PREPARED = "prepared columns"
_PSEUDONYM = re.compile(r"p[0-9a-f]{24}")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOST_PROBLEMS = 5
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _joined(problems: list[str]) -> str:
    more = f"; and {len(problems) - _MOST_PROBLEMS:,} more" if len(problems) > _MOST_PROBLEMS else ""
    return on_one_line("; ".join(problems[:_MOST_PROBLEMS]) + more)


class _CannotError(Exception):
    """An operation cannot have been done to the cells of a column."""


# With the original.


def prepared_again(
    original: Table, claims: Claims, key: bytes | None, project_key: bytes | None
) -> tuple[Table, Claims, list[Check | Unchecked]]:
    """Prepare the columns of an original as the manifest says.

    Parameters
    ----------
    original : Table
        As it was read; its entries may be rows, or distinct values of a table that is not in memory.
    key, project_key : bytes or None
        Key of the release, and the one for what is the same in all releases of its project.

    Returns
    -------
    tuple of Table, Claims and list
        The table as the mechanism must have seen it, the claims with the columns that cannot be checked without a key,
        and what was found.
    """
    columns, described = dict(original.columns), dict(original.schema.columns)
    problems: list[str] = []
    unkeyed: list[str] = []
    for name, claimed in claims.prepared.items():
        if name not in columns:
            problems.append(f"'{name}' is not in the original")
            continue
        if not _may_be_prepared(described[name], claimed, claims):
            problems.append(f"'{name}' has a role in which nothing is prepared, or tells persons apart")
            continue
        try:
            done = _done(original, claimed, claims, key, project_key)
        except _CannotError as exc:
            problems.append(f"'{name}' {exc}")
            continue
        if done is None:
            unkeyed.append(name)
        else:
            columns[name] = done
        described[name] = _described(described[name], claimed)
    found: list[Check | Unchecked] = []
    said = f"were prepared again as the manifest says: {listed(list(claims.prepared))}"
    if problems:
        said = f"cannot have been prepared as the manifest says: {_joined(problems)}"
    found.append(Check(PREPARED, not problems, f"columns {said}"))
    if unkeyed:
        names = listed(unkeyed)
        said = f"whether the pseudonyms or shifted dates in {names} follow from the original and the key"
        found.append(Unchecked("cells", said, GIVE_KEY))
    table = replace(original, schema=Schema.of(described.values(), original.schema.missing), columns=columns)
    return table, replace(claims, unkeyed=frozenset(unkeyed)), found


def _may_be_prepared(column: Column, claimed: ClaimedPreparation, claims: Claims) -> bool:
    """Whether a column of this role can have been prepared so: one that identifies persons never is."""
    if column.role in (Role.PERSON, Role.WEIGHT) or column.name in _person_columns(claims):
        return False
    if claimed.has("pseudonym"):
        return column.role in (Role.IDENTIFIER, Role.OTHER, Role.QUASI_IDENTIFIER)  # the last where nobody declared it
    return column.role is not Role.IDENTIFIER or claimed.has("drop")


def _person_columns(claims: Claims) -> set[str]:
    """Columns by which the manifest says that persons are counted or kept."""
    promised = {promise.guarantee.unit for promise in claims.promises if promise.guarantee.by_persons}
    return promised | ({claims.persons.column} if claims.persons is not None else set())


def _described(column: Column, claimed: ClaimedPreparation) -> Column:
    if claimed.has("drop"):
        return replace(column, role=Role.IDENTIFIER)
    if claimed.has("pseudonym"):
        role = Role.OTHER if column.role in (Role.IDENTIFIER, Role.OTHER) else column.role
        return replace(column, role=role, kind=Kind.CATEGORICAL, domain=None)
    if claimed.has("mask"):
        return replace(column, kind=Kind.CATEGORICAL, domain=None)
    return replace(column, kind=Kind.NUMERIC, domain=None) if claimed.has("age") else column


def _done(
    table: Table, claimed: ClaimedPreparation, claims: Claims, key: bytes | None, project_key: bytes | None
) -> CodedColumn | None:
    """Prepare one column; ``None`` where the key is lacking."""
    column = table[claimed.column]
    if claimed.has("drop"):
        return column
    if isinstance(column, OpenColumn) or (claimed.has("pseudonym", "shift") and not column.is_by_row):
        problem = "can be prepared again in memory only"
        raise _CannotError(problem)
    asked = claimed.parameters("pseudonym") or claimed.parameters("shift")
    if asked is None:
        kind = _described(table.schema[claimed.column], claimed).kind
        return column.recode(_mapped(column.values, claimed), kind)
    secret = (
        project_key if asked["scope"] == "project" else None if key is None else keyed(key, "sfumato", "preparation")
    )
    if secret is None:
        return None
    if claimed.has("pseudonym"):
        texts = _texts(column.values)
        made = [
            None if t is None else "p" + keyed(secret, "sfumato", "pseudonym", claimed.column, t).hex()[:24]
            for t in texts
        ]
        return column.recode(pa.array(made, pa.string()))
    return _moved(table, claimed.column, asked, claims, secret)


def _mapped(values: pa.Array, claimed: ClaimedPreparation) -> pa.Array:
    """Prepare distinct values by the operations of single cells."""
    for operation, given in claimed.operations:
        if operation == "mask":
            values = pa.array([None if t is None else _hidden(t, given) for t in _texts(values)], pa.string())
        elif operation == "age":
            values = _years(values, date.fromisoformat(given["at"]))
    if claimed.has("bottom", "top", "round"):
        values = _bounded(values, claimed)
    return values


def _texts(values: pa.Array) -> list[str | None]:
    """Values as a text file has them."""
    return list(texts_of(values).to_pylist())


def _hidden(text: str, given: Mapping[str, Any]) -> str:
    first, last, character = given["keep_first"], given["keep_last"], given["character"]
    is_shown = [i < first or i >= len(text) - last for i in range(len(text))]
    if all(is_shown):
        return str(character) * len(text)
    return "".join(own if shown else character for own, shown in zip(text, is_shown, strict=True))


def _years(values: pa.Array, at: date) -> pa.Array:
    found: list[int | None] = []
    for day in _days(values):
        if day is None:
            found.append(None)
            continue
        years = at.year - day.year
        had_birthday = at.month > day.month or (at.month == day.month and at.day >= day.day)
        years -= 0 if had_birthday else 1
        if years < 0:
            problem = "holds dates after the day at which ages are stated"
            raise _CannotError(problem)
        found.append(years)
    if is_text(values.type):
        return pa.array([None if n is None else str(n) for n in found], pa.string())
    return pa.array(found, pa.int64())


def _days(values: pa.Array) -> list[date | None]:
    if pa.types.is_date(values.type) or (pa.types.is_timestamp(values.type) and values.type.tz is None):
        return list(values.cast(pa.date32(), safe=False).to_pylist())
    if not is_text(values.type):
        problem = "holds no dates"
        raise _CannotError(problem)
    return [None if text is None else _day_in(text) for text in values.to_pylist()]


def _day_in(text: str) -> date:
    found = _DAY.match(text)
    try:
        if found is not None and (len(text) == 10 or text[10] in "T "):
            return date.fromisoformat(found[0])
    except ValueError:
        pass
    problem = "holds texts that are no dates"
    raise _CannotError(problem)


def _bounded(values: pa.Array, claimed: ClaimedPreparation) -> pa.Array:
    bounds = {name: _fraction(given["value"]) for name, given in claimed.operations if "value" in given}
    low, high, step = bounds.get("bottom"), bounds.get("top"), bounds.get("round")
    _check_bounds(low, high, step)

    def change(number: Fraction) -> Fraction:
        number = number if low is None else max(number, low)
        number = number if high is None else min(number, high)
        return number if step is None else _nearest(number, step)

    found = [None if value is None else change(_fraction(value)) for value in values.to_pylist()]
    was = values.type
    if is_text(was):
        return pa.array([None if n is None else _shortest(n) for n in found], pa.string())
    if pa.types.is_integer(was) and all(n is None or n.denominator == 1 for n in found):
        try:
            return pa.array([None if n is None else int(n) for n in found], was)
        except (pa.ArrowInvalid, OverflowError):
            pass
    if pa.types.is_decimal(was):
        return pa.array([None if n is None else Decimal(_shortest(n)) for n in found])
    return pa.array([None if n is None else float(n) for n in found], pa.float64())


def _check_bounds(low: Fraction | None, high: Fraction | None, step: Fraction | None) -> None:
    if low is not None and high is not None and low >= high:
        problem = "has a bottom that is not below its top"
        raise _CannotError(problem)
    if step is not None and any(bound is not None and bound % step for bound in (low, high)):
        problem = "has a top or bottom that is no multiple of what it is rounded to"
        raise _CannotError(problem)


def _fraction(value: Any) -> Fraction:
    """Read a number as the decimal that it is written as."""
    if isinstance(value, str):
        if _NUMBER.fullmatch(value.strip()) is None:
            problem = "holds texts that are no finite numbers"
            raise _CannotError(problem)
        return Fraction(value.strip())
    try:
        return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    except (TypeError, ValueError, OverflowError):
        problem = "holds something else than finite numbers"
        raise _CannotError(problem) from None


def _nearest(number: Fraction, step: Fraction) -> Fraction:
    """Nearest multiple of a step, a half away from zero."""
    whole, rest = divmod(abs(number), step)
    steps = whole + (1 if 2 * rest >= step else 0)
    return steps * step if number >= 0 else -steps * step


def _shortest(number: Fraction) -> str:
    """Write a number that has finitely many decimals without an exponent and without zeros at its end."""
    n_digits, scaled = 0, abs(number)
    while scaled.denominator != 1:
        n_digits, scaled = n_digits + 1, scaled * 10
        if n_digits > 1_000:
            problem = "holds numbers with too many digits"
            raise _CannotError(problem)
    digits = str(scaled.numerator).rjust(n_digits + 1, "0")
    text = f"{digits[:-n_digits]}.{digits[-n_digits:]}" if n_digits else digits
    return f"-{text}" if number < 0 else text


def _moved(table: Table, name: str, given: Mapping[str, Any], claims: Claims, secret: bytes) -> CodedColumn:
    """Shift each date by the days of its person, or of its row among those that may be released."""
    most, by = int(given["days"]), given["by"]

    def days(*whose: str) -> int:
        drawn = int.from_bytes(keyed(secret, "sfumato", "shift", *whose), "big")
        return drawn % (2 * most + 1) - most

    shifts = np.zeros(table.n_rows, dtype=np.int64)
    if by is None:
        for place, row in enumerate(offered_rows(Columns(table), claims).rows.tolist()):
            shifts[row] = days("row", str(place))
    elif by not in table.columns:
        problem = f"was shifted by persons of '{by}', which the original lacks"
        raise _CannotError(problem)
    else:
        own = [days("nobody") if text is None else days("person", text) for text in _texts(table[by].values)]
        shifts = np.array(own, dtype=np.int64)[table[by].codes]
    cells = table[name].cells()
    if pa.types.is_timestamp(cells.type) and cells.type.tz is None:
        ticks = shifts * 86_400 * _TICKS[cells.type.unit]
        moved = pc.add(cells.cast(pa.int64()), pa.array(ticks)).cast(cells.type)
        return CodedColumn.encode(moved, Kind.DATE)
    days_before = _days(cells)
    try:
        after = [
            None if day is None else day + timedelta(days=int(n)) for day, n in zip(days_before, shifts, strict=True)
        ]
    except OverflowError:
        problem = "holds dates at the end of the calendar"
        raise _CannotError(problem) from None
    if not is_text(cells.type):
        return CodedColumn.encode(pa.array(after, pa.date32()), Kind.DATE)
    rests = [None if text is None else text[10:] for text in cells.to_pylist()]
    texts = [
        None if day is None or rest is None else day.isoformat() + rest for day, rest in zip(after, rests, strict=True)
    ]
    return CodedColumn.encode(pa.array(texts, pa.string()), Kind.DATE)


def with_original_prepared(
    original: AnyTable, claims: Claims, key: bytes | None, project_key: bytes | None
) -> tuple[AnyTable, Claims, list[Check | Unchecked], bool]:
    """Prepare an original in memory, and say whether its rows can be compared with the release.

    They cannot where dates that ranges run over were shifted by a secret that was not given.
    """
    if not claims.prepared:
        return original, claims, [], True
    plain, claims, found = prepared_again(original.coded_part, claims, key, project_key)
    recoded = {recoding.column for recoding in claims.recodings.values()}
    hidden = [name for name in claims.unkeyed if claims.prepared[name].has("shift") and name in recoded]
    if hidden:
        said = f"whether the released cells follow from the original: {listed(hidden)} was shifted by a secret"
        found.append(Unchecked("original", said, GIVE_KEY))
    return original.with_coded_part(plain), claims, found, not hidden


# Without the original.


def check_prepared(released: Columns, claims: Claims) -> Iterator[Check | Unchecked]:
    """Whether released cells are such as the stated operations give; nothing where none is stated."""
    if not claims.prepared:
        return
    sources = {recoding.column for recoding in claims.recodings.values()}
    persons = _person_columns(claims) & claims.prepared.keys()
    problems = [f"'{name}' tells persons apart, and is never prepared" for name in sorted(persons)]
    for name, claimed in claims.prepared.items():
        is_released = name in claims.names() and name in released
        if claimed.has("drop"):
            if name in claims.names() or name in sources:
                problems.append(f"'{name}' is stated as dropped but released")
            continue
        if not is_released or name in claims.recodings or released.feature(name):
            if name not in {*claims.names(), *sources, *claims.dropped_columns}:
                problems.append(f"'{name}' is neither released nor stated as dropped")
            if claimed.has("pseudonym") and name in sources:
                problems.append(f"'{name}' holds pseudonyms and was recoded")
            continue
        if isinstance(released.coded(name), OpenColumn):
            said = f"whether the cells of '{name}' are such as the stated operations give: they are too many to list"
            yield Unchecked("cells", on_one_line(said), IN_MEMORY)
            continue
        problem = _problem_of(released.coded(name), claimed, next(c for c in claims.columns if c.name == name).role)
        problems += [f"'{name}' {problem}"] if problem else []
    names = listed(list(claims.prepared))
    said = f"are such as the stated operations give: {names}"
    if problems:
        said = f"are not such as the stated operations give: {_joined(problems)}"
    yield Check("prepared cells", not problems, f"released cells of prepared columns {said}")


def _problem_of(column: CodedColumn, claimed: ClaimedPreparation, role: Role) -> str:
    """Say what is wrong with the cells of a column that is released as it was prepared; nothing where all is well."""
    if claimed.has("pseudonym"):
        if role is not Role.OTHER:
            return "holds pseudonyms and is not released as a column that no guarantee covers"
        return _problem_of_pseudonyms(column)
    values = [value for value in column.values.to_pylist() if value is not None]
    try:
        for operation, given in claimed.operations:
            if any(_is_wrong(value, operation, given) for value in values):
                return _WRONG[operation]
    except _CannotError as exc:
        return str(exc)
    return ""


def _problem_of_pseudonyms(column: CodedColumn) -> str:
    counts = column.counts.copy()
    if column.missing_code is not None:
        counts[column.missing_code] = 0
    if (counts > 1).any():
        return "holds a pseudonym in several rows, which links them"
    texts = _texts(column.values)
    is_one = all(text is None or _PSEUDONYM.fullmatch(text) is not None for text in texts)
    return "" if is_one else "holds cells that are no pseudonyms"


_WRONG = {
    "top": "holds numbers above the stated top",
    "bottom": "holds numbers below the stated bottom",
    "round": "holds numbers that were not rounded",
    "age": "holds no ages",
    "mask": "holds cells that are not masked",
    "shift": "holds cells that are no dates",
}


def _is_wrong(value: Any, operation: str, given: Mapping[str, Any]) -> bool:
    """Whether a cell cannot be what an operation gives."""
    if operation == "mask":
        return not _is_masked(str(value), given)
    if operation == "shift":
        return _is_no_date(value)
    number = _fraction(value)
    if operation == "age":
        return number.denominator != 1 or number < 0
    bound = _fraction(given["value"])
    if operation == "round":
        return number % bound != 0
    return number > bound if operation == "top" else number < bound


def _is_masked(text: str, given: Mapping[str, Any]) -> bool:
    first, last, character = given["keep_first"], given["keep_last"], given["character"]
    hidden = text[first : max(len(text) - last, first)]
    return set(text) <= {character} or bool(hidden and set(hidden) == {character})


def _is_no_date(value: Any) -> bool:
    if not isinstance(value, str):
        return not isinstance(value, date)
    try:
        _day_in(value)
    except _CannotError:
        return True
    return False


def keyed(key: bytes, *texts: str) -> bytes:
    """HMAC-SHA256 of texts, each after its length in eight bytes."""
    digest = hmac.new(key, digestmod="sha256")
    for text in texts:
        encoded = text.encode()
        digest.update(struct.pack(">Q", len(encoded)) + encoded)
    return digest.digest()
