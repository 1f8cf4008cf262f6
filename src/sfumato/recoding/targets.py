"""Which columns a tree keeps predictable, and by which criterion."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.learning.criteria import Criterion, Entropy, Several, Variance
from sfumato.schema import Kind, Role
from sfumato.table.coding import Table

CRITERIA = ("auto", "entropy", "variance")
CriterionChoice = Literal["auto", "entropy", "variance"]
MOST_CLASSES = 20
"""A numeric target with more values than this is a quantity, with up to as many it is a class."""


def target_criterion(table: Table, choice: CriterionChoice = "auto", names: str | None = None) -> tuple[Criterion, Any]:
    """Criterion for a table's target or targets, and what its ``statistics`` takes.

    Raises
    ------
    InvalidParameterError
        If the names are no text, or name a column that is not released as it is.
    SchemaError
        If there is no target, or a quantity is missing or no finite number in some row.
    """
    if names is not None and not isinstance(names, str):
        allowed = "a text of column names separated by commas, or None"
        raise InvalidParameterError("targets", f"got {names!r}", allowed=allowed)
    targets = [name.strip() for name in names.split(",") if name.strip()] if names else []
    if not targets:
        if table.schema.target is None:
            problem = "the table has no target for the tree to keep predictable"
            hint = "give one column the role target, or use mondrian, which needs none"
            raise SchemaError(problem, hint=hint)
        targets = [table.schema.target]
    for name in targets:
        if table.schema[name].role in (Role.QUASI_IDENTIFIER, Role.IDENTIFIER):
            problem = f"'{name}' is a {table.schema[name].role}"
            raise InvalidParameterError("targets", problem, allowed="columns that are released as they are")
    found = [_criterion(table, name, choice) for name in targets]
    if len(found) == 1:
        return found[0]
    criteria, values = tuple(c for c, _ in found), tuple(v for _, v in found)
    return Several.of(criteria, values), values


def _criterion(table: Table, name: str, choice: CriterionChoice) -> tuple[Criterion, ArrayLike]:
    column, kind = table[name], table.schema[name].kind
    is_quantity = kind is Kind.NUMERIC and column.n_distinct > MOST_CLASSES
    if choice == "variance" or (choice == "auto" and is_quantity):
        return Variance(), _numbers(table, name)
    return Entropy(column.n_distinct), column.codes


def _numbers(table: Table, name: str) -> ArrayLike:
    column = table[name]
    try:
        numbers = column.numbers()
    except ValueError:
        problem = "is to be predicted as a number, but not all of its values are numbers"
        raise SchemaError(problem, column=name, hint="use criterion = entropy") from None
    if column.n_missing:
        problem = f"is to be predicted as a number and is missing in {column.n_missing:,} rows"
        raise SchemaError(problem, column=name, hint="leave these rows out, or use criterion = entropy")
    n_wrong = int((~np.isfinite(numbers)[column.codes]).sum())
    if n_wrong:
        problem = f"is to be predicted as a number and is infinite or not-a-number in {n_wrong:,} rows"
        raise SchemaError(problem, column=name, hint="leave these rows out, or use criterion = entropy")
    return numbers[column.codes]
