"""Which rows are about the same person: a column with the role person tells them apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.schema import Role
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import CodedColumn, PersonRows, Table
from sfumato.table.repeating import IdentifierCounts, counted_identifiers, repeating_identifiers

AnyTable = Table | BinaryTable
PersonCodes = NDArray[np.int32]
PersonRule = Literal["first", "last", "random"]
RANDOM_SEED = 0
"""By which a random row of each person is drawn: it depends on no cell, so that everybody may know it."""


def person_codes(table: Table | BinaryTable) -> PersonCodes | None:
    """Code of each row's person; ``None`` where no column tells persons apart, or each has one row.

    All rows without a person (a missing value) count together as one person: nobody can say that they are several.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.schema import Column, Role, Schema
    >>> visits = pa.table({"patient": ["a", "b", "a"], "age": [30, 40, 30]})
    >>> described = Schema.of([Column("patient", Role.PERSON), Column("age")])
    >>> person_codes(Table.from_arrow(visits, described)).tolist()
    [0, 1, 0]
    """
    plain = table.coded_part
    name = plain.schema.person
    if name is None or int(plain[name].counts.max(initial=0)) <= 1:
        return None
    return plain[name].codes


def one_row_per_person(table: AnyTable, rule: PersonRule, column: str | None = None) -> AnyTable:
    """Keep one row of each person, in the order of the rows.

    All rows without a person are left as those of one person: one of them is kept.

    Parameters
    ----------
    rule : {"first", "last", "random"}
        Which row of a person; ``random`` draws by a fixed seed, so that the same table gives the same rows.
    column : str or None
        Column that tells persons apart; ``None``: the one with the role person.

    Raises
    ------
    SchemaError
        If no column has the role person.
    InvalidParameterError
        If there is no such rule.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.schema import Column, Role, Schema
    >>> visits = pa.table({"patient": ["a", "b", "a"], "age": [30, 40, 31]})
    >>> described = Schema.of([Column("patient", Role.PERSON), Column("age")])
    >>> one_row_per_person(Table.from_arrow(visits, described), "last").to_arrow().column("age").to_pylist()
    [40, 31]
    """
    if rule not in get_args(PersonRule):
        raise InvalidParameterError("one_row_per_person", f"got {rule!r}", allowed=" or ".join(get_args(PersonRule)))
    plain = table.coded_part
    name = column or plain.schema.person
    if name is None:
        problem = "one row of each person is to be kept, and no column has the role person"
        raise SchemaError(problem, hint="name the column that tells persons apart", remedy=("person",))
    rows = np.sort(_one_each(plain[name].codes, rule))
    kept, stated = table.take(rows), PersonRows(name, rule, plain.n_rows - len(rows))
    return kept.with_coded_part(replace(kept.coded_part, person_rows=stated))


def _one_each(persons: PersonCodes, rule: PersonRule) -> NDArray[np.intp]:
    n_rows = len(persons)
    order = np.arange(n_rows)
    if rule == "last":
        order = order[::-1]
    elif rule == "random":
        order = np.random.default_rng(RANDOM_SEED).permutation(n_rows)
    return np.asarray(order[np.unique(persons[order], return_index=True)[1]])


def identifiers_of(table: AnyTable) -> list[IdentifierCounts]:
    """Count the identifiers of a table, see :func:`sfumato.table.repeating.counted_identifiers`."""
    plain = table.coded_part
    facts = (
        (c.name, c.role, plain[c.name].n_distinct - plain[c.name].values.null_count, plain[c.name].n_missing)
        for c in plain.schema
        if c.role in (Role.IDENTIFIER, Role.PERSON)
    )
    return counted_identifiers(facts, plain.n_rows)


def person_notes(table: AnyTable) -> list[str]:
    """Say what is unusual about who is in a table: rows without a person, or one person with half of all rows.

    Nothing where no column tells persons apart. Counts only, never whose rows they are.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.schema import Column, Role, Schema
    >>> visits = pa.table({"patient": ["a", None, "b", None], "age": [30, 40, 30, 50]})
    >>> described = Schema.of([Column("patient", Role.PERSON), Column("age")])
    >>> person_notes(Table.from_arrow(visits, described))
    ["2 of 4 rows have no value in 'patient': together they count as the rows of one person"]
    """
    plain = table.coded_part
    name = plain.schema.person
    return [] if name is None or not plain.n_rows else notes_of_persons(name, plain[name], plain.n_rows)


def notes_of_persons(name: str, column: CodedColumn, n_rows: int) -> list[str]:
    """Say the same of a column that tells persons apart; one whose values are not listed has counts of none."""
    notes = []
    if column.n_missing:
        n_missing = f"{column.n_missing:,} of {n_rows:,} rows have no value in '{name}'"
        notes.append(f"{n_missing}: together they count as the rows of one person")
    counts = column.counts.copy()
    if column.missing_code is not None:
        counts[column.missing_code] = 0
    most = int(counts.max(initial=0))
    if most > 1 and 2 * most >= n_rows:
        notes.append(f"one person has {most:,} of {n_rows:,} rows (by '{name}'): a person counts once in every group")
    return notes


def may_repeat(table: Table | BinaryTable) -> bool:
    """Whether a person may have several rows: known from a person column, or not known because identifiers repeat."""
    return person_codes(table) is not None or bool(repeating_identifiers(identifiers_of(table)))
