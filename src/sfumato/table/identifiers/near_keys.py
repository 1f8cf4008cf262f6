"""Columns that are nearly keys: a value of its own in nearly every row, or a code that few rows share.

A set or a label that lists such values says who is in it, whatever k is; so does a column that is passed through. They
are released only when somebody has confirmed it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sfumato.errors import SchemaError, on_one_line
from sfumato.schema import Column, Kind, shows_values
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.identifiers.cells import Cells
from sfumato.table.identifiers.codes import common_form
from sfumato.table.identifiers.recognise import recognise
from sfumato.table.weighted import OpenColumn

UNIQUE_FRACTION = 0.95
"""A column whose value is unique in this share of the rows that have one names people."""
_FEWEST_ROWS = 20  # below this, unique values say nothing
_FEW_ROWS_A_VALUE = 5
_NAMES_SHOWN = 5


def unique_fraction(coded: CodedColumn) -> float:
    """Share of the rows with a value whose value no other row has; of a few rows it says nothing, and is 0."""
    n_missing = coded.n_missing
    n_present, n_distinct = coded.n_rows - n_missing, coded.n_distinct - coded.values.null_count
    if n_present < _FEWEST_ROWS or n_distinct < UNIQUE_FRACTION * n_present:
        return 0.0
    return (int(np.count_nonzero(coded.counts == 1)) - (n_missing == 1)) / n_present


def is_measurement(coded: CodedColumn, kind: Kind) -> bool:
    """Whether a numeric column has decimals: such numbers are measured, and recoded into ranges."""
    if kind is not Kind.NUMERIC:
        return False
    numbers = coded.numbers()
    present = numbers[np.isfinite(numbers)]
    return bool(np.any(present != np.floor(present)))


def uniqueness(coded: CodedColumn, kind: Kind) -> str:
    """Say that nearly every row has a value of its own, and of what form; an empty text where that is not so."""
    unique = unique_fraction(coded)
    if unique < UNIQUE_FRACTION or is_measurement(coded, kind):
        return ""
    form = "" if kind is Kind.NUMERIC else common_form(Cells.of(coded, kind))
    of = "rows with a value" if coded.n_missing else "rows"
    return f"{form}{', ' if form else ''}unique in {100 * unique:.1f} % of {of}"


def near_key(coded: CodedColumn, kind: Kind) -> str:
    """Say why a column is nearly a key; an empty text where it is none.

    Whether that matters depends on the role, see :func:`sfumato.schema.shows_values`. Numbers with decimals are none:
    they are measured. Of whole numbers and dates only those are that nearly every row has one of its own.
    """
    if coded.n_rows - coded.n_missing < _FEWEST_ROWS:
        return ""
    if kind in (Kind.NUMERIC, Kind.DATE):
        return "" if isinstance(coded, OpenColumn) else uniqueness(coded, kind)
    if isinstance(coded, OpenColumn):
        return "a text with too many distinct values to list"
    n_distinct = coded.n_distinct - coded.values.null_count
    if n_distinct * _FEW_ROWS_A_VALUE < coded.n_rows - coded.n_missing:
        return ""
    return uniqueness(coded, kind) or str(recognise(coded, kind) or "")


def check_near_keys(table: Table | BinaryTable) -> None:
    """Refuse to release columns that are nearly keys and that nobody has confirmed.

    Raises
    ------
    SchemaError
        Names them, with what was seen of the first.
    """
    plain = table.coded_part
    found = {c.name: why for c in plain.schema if (why := _undecided(c, plain.columns))}
    if not found:
        return
    names = [f"'{on_one_line(name)}'" for name in found]
    first, *others = names[:_NAMES_SHOWN]
    more = f" and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    role, why = plain.schema[next(iter(found))].role, next(iter(found.values()))
    problem = f"column {first} is nearly a key and would be released with the role {role} ({why})"
    if others:
        problem += f"; so would {', '.join(others)}{more}"
    hint = "give it the role identifier, or coarsen it first; if it names nobody, confirm it"
    raise SchemaError(problem, hint=hint, remedy=("confirmed",))


def _undecided(column: Column, columns: Mapping[str, CodedColumn]) -> str:
    """Say why a column has to be confirmed."""
    if column.confirmed or not shows_values(column.role, column.kind):
        return ""
    return near_key(columns[column.name], column.kind)
