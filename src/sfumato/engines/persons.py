"""Persons in tables that are not in memory: whether they repeat, and which row of each is kept.

Counted exactly where the rows are, by the cells as they were read. All rows without a person are those of one.
"""

from __future__ import annotations

from typing import TypeVar, get_args

import numpy as np

from sfumato.engines.protocol import Rows
from sfumato.errors import InputError, InvalidParameterError, SchemaError
from sfumato.schema import WITHHELD
from sfumato.table.coding import PersonRows
from sfumato.table.persons import RANDOM_SEED, PersonRule, notes_of_persons
from sfumato.table.repeating import IdentifierCounts, counted_identifiers
from sfumato.table.weighted import Places

AnyRows = TypeVar("AnyRows", bound=Rows)

_BYTES_A_RANK = 16


def persons_repeat(rows: Rows, memory: int) -> bool:
    """Whether a column tells persons apart and some of them have several rows."""
    return n_repeating_persons(rows, memory) is not None


def n_repeating_persons(rows: Rows, memory: int) -> int | None:
    """Count the persons, where a column tells them apart and some of them have several rows; else ``None``."""
    name = rows.schema.person
    found = rows.n_rows if name is None else n_different(rows, name, memory)
    return found if found < rows.n_rows else None


def n_different(rows: Rows, name: str, memory: int) -> int:
    """Count the different values of a column, a missing one included; those that are not listed in a pass."""
    if rows.is_open(name):
        return rows.n_open_values(name, memory)
    return int((rows.outline[name].counts > 0).sum())


def identifiers_away(rows: Rows, memory: int) -> list[IdentifierCounts]:
    """Count the identifiers of a table, as :func:`sfumato.table.persons.identifiers_of` does in memory."""
    if rows.schema.person is not None:
        return []
    facts = []
    for column in (column for column in rows.schema if column.role in WITHHELD):
        n_missing = rows.outline[column.name].n_missing
        n_values = n_different(rows, column.name, memory) - (n_missing > 0)
        facts.append((column.name, column.role, n_values, n_missing))
    return counted_identifiers(facts, rows.n_rows)


def person_notes_away(rows: Rows) -> list[str]:
    """Say what is unusual about who is in a table, as far as its outline tells: see :func:`notes_of_persons`."""
    name = rows.schema.person
    return [] if name is None or not rows.n_rows else notes_of_persons(name, rows.outline[name], rows.n_rows)


def one_row_each(rows: AnyRows, rule: PersonRule, memory: int) -> AnyRows:
    """Keep one row of each person, the same ones as :func:`sfumato.table.persons.one_row_per_person` does in memory.

    Raises
    ------
    SchemaError
        If no column has the role person.
    InvalidParameterError
        If there is no such rule.
    InputError
        If the places of the rows do not fit in memory, or rows have no places.
    """
    if rule not in get_args(PersonRule):
        raise InvalidParameterError("one_row_per_person", f"got {rule!r}", allowed=" or ".join(get_args(PersonRule)))
    name = rows.schema.person
    if name is None:
        problem = "one row of each person is to be kept, and no column has the role person"
        raise SchemaError(problem, hint="name the column that tells persons apart", remedy=("person",))
    order = _drawn_order(rows, memory) if rule == "random" else None
    ranks = None
    if order is not None:
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order))
    found = rows.place_of_each(name, memory, ranks=ranks, is_last=rule == "last")
    places = np.sort(found if order is None else order[found])
    return rows.only(places, PersonRows(name, rule, rows.n_rows - len(places)))


def _drawn_order(rows: Rows, memory: int) -> Places:
    """Places of the rows in the order of a seeded draw; of each person the first one is kept."""
    if rows.n_rows * _BYTES_A_RANK > memory:
        problem = f"an order of its {rows.n_rows:,} rows, by which a random one of each person is drawn, does not fit"
        hint = "keep the first or the last row of each person, or give more memory"
        raise InputError(problem, path=rows.place, hint=hint, remedy=("one_row_per_person", "memory"))
    return np.random.default_rng(RANDOM_SEED).permutation(rows.n_rows)
