"""Dates of birth that can be released as ages: which columns hold them, and at which day the ages are taken.

A full date of birth names a person nearly as a number does, so it is guessed an identifier and left out. The age says
most of what a recipient learns from it. The day is never today's, for a release would then differ from one day to the
next. It follows from the years of the dates in the table, and not from a single day, so that no cell is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date

from sfumato.errors import SchemaError
from sfumato.schema import Kind, Role
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import Table
from sfumato.table.column_names import BIRTH_DATE_NAMES, folded_name
from sfumato.table.identifiers.cells import Cells
from sfumato.table.identifiers.patterns import birth_dates
from sfumato.table.preparing.cells import days_in
from sfumato.table.roles import ColumnGuess

_OLDEST = 130


def days_of_ages(table: Table | BinaryTable, guesses: Iterable[ColumnGuess]) -> dict[str, date]:
    """Say of guessed identifiers that are dates of birth, by name and by values, at which day to take the ages.

    That is the first of January after the newest date of the table. Dates at which somebody would be older than 130
    years are no events (``2999-12-31``) and are not looked at. A column in which somebody then still is older, or in
    which a value is no date, is left as it is.
    """
    plain = table.coded_part
    listed = [guess for guess in guesses if guess.column.name in plain.schema]
    births = {guess.column.name: days for guess in listed if (days := _births(plain, guess))}
    others = {guess.column.name: _days(plain, guess) for guess in listed if guess.column.name not in births}
    found = {}
    for name, days in births.items():
        last = min(days).year + _OLDEST
        newest = max(day.year for day in (*days, *(day for more in others.values() for day in more)) if day.year < last)
        if max(days).year <= newest:
            found[name] = date(newest + 1, 1, 1)
    return found


def released_as_ages(
    table: Table | BinaryTable, guesses: Sequence[ColumnGuess], own: Mapping[str, date | None] | None = None
) -> list[ColumnGuess]:
    """Guess dates of birth to be quasi-identifiers that are prepared: turned into ages at the day of the table.

    ``own`` are days that somebody gave for some columns, ``None`` for columns that are to be prepared in another way
    and stay what they are guessed to be.
    """
    given = own or {}
    found = {name: given.get(name, day) for name, day in days_of_ages(table, guesses).items()}
    days = {name: day for name, day in found.items() if day is not None}
    return [_as_age(guess, days[guess.column.name]) if guess.column.name in days else guess for guess in guesses]


def _as_age(guess: ColumnGuess, day: date) -> ColumnGuess:
    why = guess.reason.removesuffix(f" → {guess.column.role}")
    told = f"released as the age on {day.isoformat()}, the first day after the years of all dates here"
    column = replace(guess.column, role=Role.QUASI_IDENTIFIER)
    return replace(guess, column=column, reason=f"{why}; {told} → {column.role}", prepare={"age_at": day.isoformat()})


def _births(table: Table, guess: ColumnGuess) -> list[date]:
    column = guess.column
    if guess.is_given or column.role is not Role.IDENTIFIER or not BIRTH_DATE_NAMES.search(folded_name(column.name)):
        return []
    days = _days(table, guess)
    if not days or birth_dates(Cells.of(table[column.name], column.kind), name_says_birth=True) is None:
        return []
    return days


def _days(table: Table, guess: ColumnGuess) -> list[date]:
    """Give the distinct days of a column; none if it is not of dates, or some value is no day."""
    if guess.column.kind is not Kind.DATE:
        return []
    try:
        return [day for day in days_in(table[guess.column.name].values, guess.column.name) if day is not None]
    except SchemaError:
        return []
