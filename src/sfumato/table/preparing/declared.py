"""What may be declared to be done to a column before any mechanism sees it: words, checks, and how they are written."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any, Literal

from sfumato.errors import InvalidParameterError, SchemaError, on_one_line
from sfumato.schema import WITHHELD, Column, Kind, Role

Scope = Literal["release", "project"]
SCOPES: tuple[Scope, ...] = ("release", "project")
LONGEST_SHIFT = 36_525
"""Days, a century: a longer one leaves no date that means anything."""
_MOST_KEPT = 1_000
_KEYS = ("drop", "top", "bottom", "round", "mask", "pseudonym", "shift_days", "age_at", "scope")
_FORMS = (
    "entries such as { top = 100000, round = 1000 }, { mask = { keep_first = 2 } }, { pseudonym = true }, "
    "{ shift_days = 30 }, { age_at = '2026-01-01' } or { drop = true }"
)
Number = int | float


@dataclass(frozen=True)
class Mask:
    """How many characters of a text stay at its two ends; every other one becomes ``character``."""

    keep_first: int = 0
    keep_last: int = 0
    character: str = "#"


@dataclass(frozen=True)
class Preparation:
    """What is done to one column. Operations come in this order: age, bottom and top, rounding.

    Everything in it is public: a secret is given where it is done, see :mod:`sfumato.table.preparing.keyed`.

    Examples
    --------
    >>> income = Preparation.of("income", {"top": 100000, "round": 1000})
    >>> income.entries()[0]
    {'column': 'income', 'operation': 'top', 'value': 100000}
    >>> income.in_words()
    "'income' is coded as 100000 where it is more, and rounded to the nearest multiple of 1000"
    """

    column: str
    drop: bool = False
    top: Number | None = None
    bottom: Number | None = None
    round_to: Number | None = None
    mask: Mask | None = None
    pseudonym: bool = False
    shift_days: int | None = None
    age_at: date | None = None
    scope: Scope = "release"
    by: str | None = None
    """Column that tells persons apart whose dates move alike, once the table is known; ``None``: each row by itself."""

    @classmethod
    def of(cls, column: str, written: Any) -> Preparation:
        """Check what somebody has declared for a column, as plain data.

        Raises
        ------
        SchemaError
            If it is nothing that can be done; says what can.
        """
        if not isinstance(written, Mapping) or not written:
            raise _wrong(column, f"is to be prepared by something that is no table of operations; write {_FORMS}")
        for key in written:
            if key not in _KEYS:
                nearest = difflib.get_close_matches(str(key), _KEYS, n=1)
                hint = f"did you mean '{nearest[0]}'?" if nearest else f"known: {', '.join(_KEYS)}"
                problem = f"is to be prepared by '{on_one_line(str(key))}', which is no operation"
                raise SchemaError(problem, column=column, hint=hint)
        made = cls(
            column,
            drop=_truth(column, written, "drop"),
            top=_number(column, written, "top"),
            bottom=_number(column, written, "bottom"),
            round_to=_number(column, written, "round"),
            mask=_mask(column, written["mask"]) if "mask" in written else None,
            pseudonym=_truth(column, written, "pseudonym"),
            shift_days=_days(column, written["shift_days"]) if "shift_days" in written else None,
            age_at=_day(column, written["age_at"]) if "age_at" in written else None,
            scope=_scope(column, written.get("scope", "release")),
        )
        made._check_together("scope" in written)
        return made

    def _check_together(self, has_scope: bool) -> None:
        alone = [name for name, is_asked in self._alone() if is_asked]
        others = ["top, bottom or round"] if self.changes_numbers or self.age_at is not None else []
        if len(alone + others) != 1:
            problem = "is to be prepared in several ways at once" if alone or others else "is to be prepared by nothing"
            hint = "age_at, top, bottom and round go together; drop, mask, pseudonym and shift_days stand alone"
            raise SchemaError(problem, column=self.column, hint=hint)
        if has_scope and not self.is_keyed:
            raise _wrong(self.column, "has a scope, which is for a pseudonym and shift_days only", "scope")
        if self.round_to is not None and not self.round_to > 0:
            raise _wrong(self.column, "is to be rounded to a number that is not above 0", "round")
        if self.top is not None and self.bottom is not None and self.bottom >= self.top:
            raise _wrong(self.column, "has a bottom that is not below its top", "bottom")
        for name, bound in (("top", self.top), ("bottom", self.bottom)):
            if bound is not None and self.round_to is not None and exact(bound) % exact(self.round_to) != 0:
                problem = f"has a {name} that is no multiple of what it is rounded to: rounding could pass it"
                hint = f"choose a {name} that is a multiple of round"
                raise SchemaError(problem, column=self.column, entry=name, hint=hint)

    def _alone(self) -> tuple[tuple[str, bool], ...]:
        return (
            ("drop", self.drop),
            ("mask", self.mask is not None),
            ("pseudonym", self.pseudonym),
            ("shift_days", self.shift_days is not None),
        )

    @property
    def changes_numbers(self) -> bool:
        """Whether numbers are coded at the top or bottom, or rounded."""
        return self.top is not None or self.bottom is not None or self.round_to is not None

    @property
    def is_keyed(self) -> bool:
        """Whether it rests on a secret."""
        return self.pseudonym or self.shift_days is not None

    def entries(self) -> list[dict[str, Any]]:
        """List what a manifest says of it: operations and their public parameters, in the order in which they act."""
        found: list[dict[str, Any]] = []
        if self.drop:
            found.append({"operation": "drop"})
        if self.age_at is not None:
            found.append({"operation": "age", "at": self.age_at.isoformat()})
        for name, value in (("bottom", self.bottom), ("top", self.top), ("round", self.round_to)):
            if value is not None:
                found.append({"operation": name, "value": value})
        if self.mask is not None:
            kept = {"keep_first": self.mask.keep_first, "keep_last": self.mask.keep_last}
            found.append({"operation": "mask", **kept, "character": self.mask.character})
        if self.pseudonym:
            found.append({"operation": "pseudonym", "scope": self.scope})
        if self.shift_days is not None:
            found.append({"operation": "shift", "days": self.shift_days, "scope": self.scope, "by": self.by})
        return [{"column": self.column, **entry} for entry in found]

    def written(self) -> dict[str, Any]:
        """Write it as :meth:`of` takes it, as plain data.

        Examples
        --------
        >>> Preparation.of("born", {"age_at": date(2026, 1, 1), "top": 90.0}).written()
        {'top': 90, 'age_at': '2026-01-01'}
        """
        found: dict[str, Any] = {} if not self.drop else {"drop": True}
        bounds = (("top", self.top), ("bottom", self.bottom), ("round", self.round_to))
        found |= {name: value for name, value in bounds if value is not None}
        found |= {} if self.mask is None else {"mask": asdict(self.mask)}
        found |= {} if not self.pseudonym else {"pseudonym": True}
        found |= {} if self.shift_days is None else {"shift_days": self.shift_days}
        found |= {} if self.age_at is None else {"age_at": self.age_at.isoformat()}
        return found if self.scope == "release" else {**found, "scope": self.scope}

    def in_words(self) -> str:
        """Say it in one sentence, without a full stop."""
        name = f"'{on_one_line(self.column)}'"
        if self.drop:
            return f"{name} is dropped"
        if self.mask is not None:
            return f"{name} is masked: {_mask_words(self.mask)}"
        if self.pseudonym:
            return f"{name} is replaced by keyed pseudonyms of this {self.scope}, a different one in every row"
        if self.shift_days is not None:
            by = f"a secret number of days, at most {self.shift_days:,} either way"
            alike = "dates of a row" if self.by is None else "dates of a person"
            return f"{name} is shifted by {by}; the {alike} move alike"
        said = [] if self.age_at is None else [f"turned into the age in whole years on {self.age_at.isoformat()}"]
        said += [] if self.bottom is None else [f"coded as {number_text(exact(self.bottom))} where it is less"]
        said += [] if self.top is None else [f"coded as {number_text(exact(self.top))} where it is more"]
        if self.round_to is not None:
            said.append(f"rounded to the nearest multiple of {number_text(exact(self.round_to))}")
        return f"{name} is {', and '.join(said)}"


def check_fits(column: Column, asked: Preparation) -> None:
    """Refuse what is not for the role or the kind of a column.

    Raises
    ------
    SchemaError
        Says for which role or kind it is.
    """
    _check_role(column, asked)
    _check_kind(column, asked)


def _check_role(column: Column, asked: Preparation) -> None:
    if asked.pseudonym:
        if column.role in (Role.IDENTIFIER, Role.OTHER):
            return
        problem = f"has the role {column.role}, and pseudonyms are for an identifier only"
        hint = "give it the role identifier: it is then released as a column that no guarantee covers"
        if column.role is Role.PERSON:
            problem = (
                "tells persons apart and is never released, also under pseudonyms: they would link a person's rows"
            )
            hint = "for a key to join by, keep one row of each person and add a copy of the column as an identifier"
        raise SchemaError(problem, column=column.name, hint=hint)
    if column.role in WITHHELD and not (asked.drop and column.role is Role.IDENTIFIER):
        problem = f"has the role {column.role} and is never released: there is nothing to prepare"
        raise SchemaError(
            problem,
            column=column.name,
            hint="give it another role, such as quasi-identifier, or leave its preparation out",
            remedy=("roles",),
        )


def _check_kind(column: Column, asked: Preparation) -> None:
    wanted = None
    if asked.age_at is not None or asked.shift_days is not None:
        wanted = Kind.DATE
    elif asked.changes_numbers:
        wanted = Kind.NUMERIC
    if wanted is not None and column.kind is not wanted:
        what = {Kind.DATE: "shifted or turned into an age", Kind.NUMERIC: "coded at the top or bottom, or rounded"}
        problem = f"is to be {what[wanted]}, and is of the kind {column.kind}"
        raise SchemaError(problem, column=column.name, hint=f"give it the kind {wanted}, if it holds such values")


def preparations_of(given: Mapping[str, Any]) -> tuple[Preparation, ...]:
    """Check what is declared by column: a mapping such as ``{"income": {"top": 100000}}``."""
    if not isinstance(given, Mapping):
        raise InvalidParameterError("prepare", f"got a {type(given).__name__}", allowed="a mapping of column names")
    return tuple(one if isinstance(one, Preparation) else Preparation.of(str(name), one) for name, one in given.items())


def preparations_of_entries(entries: Iterable[Mapping[str, Any]]) -> tuple[Preparation, ...]:
    """Take the declarations back out of what a manifest says of them.

    Raises
    ------
    SchemaError
        If an entry is none that :meth:`Preparation.entries` makes.
    """
    by_column: dict[str, dict[str, Any]] = {}
    persons: dict[str, str | None] = {}
    for entry in entries:
        written = by_column.setdefault(str(entry["column"]), {})
        own = {key: value for key, value in entry.items() if key not in ("column", "operation")}
        operation = entry["operation"]
        if operation == "drop":
            written["drop"] = True
        elif operation == "age":
            written["age_at"] = own["at"]
        elif operation == "mask":
            written["mask"] = own
        elif operation == "pseudonym":
            written |= {"pseudonym": True, "scope": own["scope"]}
        elif operation == "shift":
            written |= {"shift_days": own["days"], "scope": own["scope"]}
            persons[str(entry["column"])] = own["by"]
        else:
            written[operation] = own["value"]
    made_again = preparations_of(by_column)
    return tuple(replace(one, by=persons.get(one.column)) for one in made_again)


def exact(number: Number | str) -> Decimal:
    """Give a declared number as the decimal that it is written as.

    Examples
    --------
    >>> exact(0.1), exact(1000)
    (Decimal('0.1'), Decimal('1000'))
    """
    return Decimal(number) if isinstance(number, int | str) else Decimal(repr(number))


def number_text(number: Decimal) -> str:
    """Write a number in its shortest form without an exponent.

    Examples
    --------
    >>> number_text(Decimal("1E+3")), number_text(Decimal("2.500")), number_text(Decimal("-0.0"))
    ('1000', '2.5', '0')
    """
    text = f"{number:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def _mask_words(mask: Mask) -> str:
    kept = [f"the first {mask.keep_first}"] if mask.keep_first else []
    kept += [f"the last {mask.keep_last}"] if mask.keep_last else []
    character = on_one_line(mask.character)
    if not kept:
        return f"every character is shown as '{character}'"
    return f"{' and '.join(kept)} characters stay, every other one is shown as '{character}'"


def _wrong(column: str, problem: str, entry: str | None = None) -> SchemaError:
    return SchemaError(problem, column=column, entry=entry)


def _truth(column: str, written: Mapping[str, Any], key: str) -> bool:
    value = written.get(key, False)
    if not isinstance(value, bool):
        raise _wrong(column, f"has '{key}' in prepare that is neither true nor false", key)
    return value


def _number(column: str, written: Mapping[str, Any], key: str) -> Number | None:
    value = written.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _wrong(column, f"has '{key}' in prepare that is no finite number", key)
    if abs(value) >= 2**63:
        raise _wrong(column, f"has '{key}' in prepare that is not between -2^63 and 2^63", key)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _mask(column: str, written: Any) -> Mask:
    known = ("keep_first", "keep_last", "character")
    if not isinstance(written, Mapping) or not set(written) <= set(known):
        raise _wrong(column, f"has a mask that is no table of {', '.join(known)}")
    first, last = written.get("keep_first", 0), written.get("keep_last", 0)
    for name, kept in (("keep_first", first), ("keep_last", last)):
        if not _whole(kept, 0, _MOST_KEPT):
            raise _wrong(column, f"has a mask whose {name} is no whole number from 0 to {_MOST_KEPT:,}", name)
    character = written.get("character", "#")
    if not isinstance(character, str) or len(character) != 1 or not character.isprintable() or character.isspace():
        raise _wrong(column, "has a mask whose character is not one that can be seen", "character")
    return Mask(first, last, character)


def _days(column: str, value: Any) -> int:
    if not _whole(value, 1, LONGEST_SHIFT):
        raise _wrong(column, f"has shift_days that is no whole number from 1 to {LONGEST_SHIFT:,}", "shift_days")
    return int(value)


def _day(column: str, value: Any) -> date:
    if type(value) is date:
        return value
    try:
        if isinstance(value, str) and len(value) == len("2026-01-01"):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise _wrong(column, "has age_at that is no date such as 2026-01-01", "age_at")


def _scope(column: str, value: Any) -> Scope:
    for known in SCOPES:
        if value == known:
            return known
    raise _wrong(column, f"has a scope that is none of {', '.join(SCOPES)}", "scope")
