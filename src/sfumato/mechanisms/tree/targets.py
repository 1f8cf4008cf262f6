"""Which columns a tree keeps predictable, and by which criterion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.learning.c45.criteria import Criterion, Entropy, PlainGain, Several, Variance
from sfumato.schema import WITHHELD, Kind, Role
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.weighted import CountedTable

Numbers = NDArray[np.float64]

CriterionChoice = Literal["auto", "entropy", "gain", "variance"]
MOST_CLASSES = 20
"""A numeric target with more values than this is a quantity, with up to as many it is a class."""
MOST_COUNTED_CLASSES = 2_000


@dataclass(frozen=True, eq=False, repr=False)
class Targets:
    """Columns to keep predictable, by which criterion, and what it keeps of each of their values.

    Parameters
    ----------
    names : tuple of str
    criterion : Criterion
    of_values : tuple of ndarray of float64, shape (n_distinct, n_statistics)
        Statistics of a row with each value, column by column.
    """

    names: tuple[str, ...]
    criterion: Criterion
    of_values: tuple[Numbers, ...]

    @classmethod
    def of(cls, table: Table, choice: CriterionChoice = "auto", names: str | None = None) -> Targets:
        """Find the targets of a table; without names that with the role target.

        Raises
        ------
        InvalidParameterError
            If the names are no text, or name a column that is not released as it is.
        SchemaError
            If there is no target, or a quantity is missing or no finite number in some row.
        """
        targets = _target_names(table, names)
        found = [_criterion(table, name, choice) for name in targets]
        criteria, of_values = tuple(c for c, _ in found), tuple(values for _, values in found)
        if len(found) == 1:
            return cls(targets, criteria[0], of_values)
        totals = [table[name].counts @ values for name, values in zip(targets, of_values, strict=True)]
        return cls(targets, Several.of_totals(criteria, totals), of_values)

    def is_quantity(self, name: str) -> bool:
        """Whether a target is predicted as a number, not as a class."""
        parts = self.criterion.parts if isinstance(self.criterion, Several) else (self.criterion,)
        return isinstance(parts[self.names.index(name)], Variance)

    def statistics(self, codes: Sequence[NDArray[np.int32]]) -> Numbers:
        """Statistics of rows, given their codes in each target."""
        each = [values[own] for values, own in zip(self.of_values, codes, strict=True)]
        return each[0] if len(each) == 1 else np.hstack(each)

    def statistics_of(self, table: Table) -> Numbers:
        """Statistics of the rows of a table; distinct rows count as often as they occur."""
        found = self.statistics([table[name].codes for name in self.names])
        if isinstance(table, CountedTable):
            found *= table.row_counts[:, None]
        return found


def named_targets(names: object) -> tuple[str, ...]:
    """Read names that are separated by commas.

    Examples
    --------
    >>> named_targets("income, age")
    ('income', 'age')
    """
    if names is not None and not isinstance(names, str):
        allowed = "a text of column names separated by commas, or None"
        raise InvalidParameterError("targets", f"got {names!r}", allowed=allowed)
    return tuple(name.strip() for name in names.split(",") if name.strip()) if names else ()


def _target_names(table: Table, names: str | None) -> tuple[str, ...]:
    targets = named_targets(names)
    if not targets:
        if table.schema.target is None:
            problem = "the table has no target for the tree to keep predictable"
            hint = "give one column the role target, or use mondrian, which needs none"
            raise SchemaError(problem, hint=hint)
        targets = (table.schema.target,)
    for name in targets:
        if table.schema[name].role.is_one_of((Role.QUASI_IDENTIFIER, *WITHHELD)):
            problem = f"'{name}' is a {table.schema[name].role}"
            raise InvalidParameterError("targets", problem, allowed="columns that are published unchanged")
    return targets


def _criterion(table: Table, name: str, choice: CriterionChoice) -> tuple[Criterion, Numbers]:
    """Criterion of one target, and the statistics of its values."""
    column, kind = table[name], table.schema[name].kind
    is_quantity = kind is Kind.NUMERIC and column.n_distinct > MOST_CLASSES
    if choice == "variance" or (choice == "auto" and is_quantity):
        return Variance(), Variance().statistics(_numbers(column, name), column.counts)
    if column.n_distinct > MOST_COUNTED_CLASSES:
        problem = f"has {column.n_distinct:,} distinct values, too many to be predicted as classes"
        raise SchemaError(problem, column=name, hint="group its values first, or choose another target")
    classes = PlainGain if choice == "gain" else Entropy
    return classes(column.n_distinct), np.eye(column.n_distinct)


def _numbers(column: CodedColumn, name: str) -> Numbers:
    try:
        numbers = column.numbers()
    except ValueError:
        problem = "must be numeric for criterion = variance, but not all of its values are numbers"
        raise SchemaError(problem, column=name, hint="use criterion = entropy") from None
    if column.n_missing:
        problem = f"must be numeric for criterion = variance, but is missing in {column.n_missing:,} rows"
        raise SchemaError(problem, column=name, hint="leave these rows out, or use criterion = entropy")
    n_wrong = int(column.counts[~np.isfinite(numbers)].sum())
    if n_wrong:
        problem = f"must be numeric for criterion = variance, but is infinite or not-a-number in {n_wrong:,} rows"
        raise SchemaError(problem, column=name, hint="leave these rows out, or use criterion = entropy")
    return numbers
