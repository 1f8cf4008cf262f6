"""A table or a data frame as what a recipient predicts from, what an attacker wants, and the columns of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import ColumnNotFoundError, InvalidParameterError, SchemaError
from sfumato.learning.c45.tree import MISSING, TreeColumn, cells_by_name, numeric_column, tree_columns
from sfumato.mechanisms.breach.tradeoff import majority_fraction
from sfumato.schema import Kind, Role, Schema
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.persons import person_codes

# Columns that give a sensitive one away, so that nothing is left to estimate.


Codes = NDArray[np.intp]
Counts = NDArray[np.int64]

MAX_WRONG_ROWS = 0.01
MAX_WRONG_OF_RARER = 0.1
LEAST_ROWS_PER_VALUE = 3
OWN_VALUE_FRACTION = 0.9

_ONE_VALUE_EACH = "one value for each row, as many as sensitive has"


def leaking_columns(columns: Mapping[str, ArrayLike], sensitive: ArrayLike) -> tuple[str, ...]:
    """Names of columns that equal the sensitive one under any labels, or determine it but for few rows.

    A column determines it if its values, each in 3 rows on average, tell the sensitive value wrongly in at most 1 % of
    all rows and in at most a tenth as many rows as have another than the most frequent sensitive value. A value that
    stands in one row alone tells nothing. Where the sensitive column is different in nearly every row
    (:func:`refuse_own_values`) no column is said to equal it: all such columns look alike.

    Examples
    --------
    >>> leaking_columns({"code": [7, 7, 3], "age": [1, 2, 3]}, [0, 0, 1])
    ('code',)
    >>> leaking_columns({"icd": [1, 2, 3] * 4, "ward": [1, 2] * 6}, ["flu", "flu", "none"] * 4)
    ('icd',)
    """
    wanted = _codes_of_values("sensitive", sensitive)
    leaks = []
    for name, column in columns.items():
        own = _codes_of_values(f"column '{name}'", column)
        if len(own) != len(wanted):
            raise InvalidParameterError(f"column '{name}'", f"got {len(own):,}", allowed=_ONE_VALUE_EACH)
        if len(own) and gives_away(own, wanted):
            leaks.append(name)
    return tuple(leaks)


def gives_away(column: Codes, sensitive: Codes) -> bool:
    """Whether codes from 0 equal or determine others, as :func:`leaking_columns` says."""
    n_wanted = int(sensitive.max()) + 1
    pairs, counts = np.unique(column.astype(np.int64) * n_wanted + sensitive, return_counts=True)
    return pairs_give_away(pairs // n_wanted, pairs % n_wanted, counts)


def pairs_give_away(column: Counts, sensitive: Counts, counts: Counts) -> bool:
    """As :func:`gives_away`, from the distinct pairs of codes with the number of rows of each.

    Examples
    --------
    >>> pairs_give_away(np.array([0, 1, 2]), np.array([0, 0, 1]), np.array([50, 40, 60]))
    True
    """
    n_rows, n_values, n_wanted = int(counts.sum()), int(column.max()) + 1, int(sensitive.max()) + 1
    if len(counts) == n_values == n_wanted and n_wanted <= OWN_VALUE_FRACTION * n_rows:
        return True
    if LEAST_ROWS_PER_VALUE * n_values > n_rows:
        return False
    by_sensitive = np.bincount(sensitive, weights=counts)
    most_frequent = int(by_sensitive.argmax())
    right = np.zeros(n_values, dtype=np.int64)
    np.maximum.at(right, column, counts)
    stands_alone = (np.bincount(column, weights=counts) == 1)[column]
    right[column[stands_alone]] = sensitive[stands_alone] == most_frequent
    n_wrong = n_rows - int(right.sum())
    n_rarer = n_rows - int(by_sensitive[most_frequent])
    return n_wrong <= min(MAX_WRONG_ROWS * n_rows, MAX_WRONG_OF_RARER * n_rarer)


def refuse_own_values(sensitive: Codes, name: str) -> None:
    """Refuse a sensitive column with nearly as many values as rows: no value is seen twice, so none can be learned."""
    if len(np.unique(sensitive)) > OWN_VALUE_FRACTION * len(sensitive):
        problem = "has a value of its own in (almost) every row, so an attacker has nothing to learn from other rows"
        hint = "make it coarser, for instance ranges instead of exact numbers"
        raise SchemaError(f"the sensitive column {problem}", column=name, hint=hint)


def refuse_leaks(leaks: Sequence[str], sensitive: str, hint: str) -> None:
    """Refuse columns that give the sensitive one away: they would be released, or make every release look safe.

    Raises
    ------
    SchemaError
        Naming the first.
    """
    for name in leaks:
        problem = f"gives the sensitive column '{sensitive}' away: it equals it under its labels or others, or "
        problem += f"determines it but for at most {MAX_WRONG_ROWS:.0%} of the rows"
        raise SchemaError(problem, column=name, hint=hint.format(column=name))


def _codes_of_values(name: str, values: ArrayLike) -> Codes:
    """Code values from 0; None is a value like any other."""
    try:
        cells = np.asarray(values)
        if cells.ndim != 1:
            raise InvalidParameterError(name, f"got {cells.ndim} dimensions", allowed=_ONE_VALUE_EACH)
        if cells.dtype != np.object_:
            return np.unique(cells, return_inverse=True)[1].astype(np.intp)
        places: dict[object, int] = {}
        return np.array([places.setdefault(cell, len(places)) for cell in cells.tolist()], dtype=np.intp)
    except InvalidParameterError:
        raise
    except (TypeError, ValueError):
        raise InvalidParameterError(name, "some are not", allowed="single values, one for each row") from None


_LEAVE_OUT_OF_RELEASE = "give it the role sensitive, with which it is not released"
_LEAVE_OUT_OF_FRAME = (
    "leave it out of X; if it is the sensitive column itself, name it: BreachAwareSelector(sensitive='{column}')"
)


@dataclass(frozen=True, eq=False, repr=False)
class BreachProblem:
    """Columns to choose from, the target, and the sensitive column.

    Parameters
    ----------
    names : tuple of str
        Of the columns.
    columns : tuple of TreeColumn
    target, sensitive : array of int
        Codes; the same where the sensitive column is the target (C = SA).
    sensitive_name : str
    is_target_sensitive : bool
    beside : mapping of str to array of int
        Codes of further columns that are released, in which the sensitive one must not stand.
    is_frame : bool
        Whether it comes from a data frame, whose columns have no roles.
    places : tuple of int
        Of the columns in the data frame.
    leaks : tuple of str or None
        Columns that give the sensitive one away, where they are known from more rows than these; None: to be found.
    persons : array of int or None
        Person of each row, where some have several: folds then keep the rows of a person together.
    """

    names: tuple[str, ...]
    columns: tuple[TreeColumn, ...]
    target: Codes
    sensitive: Codes
    sensitive_name: str
    is_target_sensitive: bool
    beside: Mapping[str, Codes] = field(default_factory=dict)
    is_frame: bool = False
    places: tuple[int, ...] = ()
    leaks: tuple[str, ...] | None = None
    persons: Codes | None = None

    @property
    def majority_fraction(self) -> float:
        """Share of the most frequent sensitive value."""
        return majority_fraction(self.sensitive, self.sensitive_name)

    def in_order_of_values(self) -> BreachProblem:
        """Sort the rows by their values, so that folds do not depend on the order in which rows were given."""
        last = [] if self.persons is None else [self.persons]
        order = np.lexsort(np.stack([*last, self.sensitive, self.target, *(column.codes for column in self.columns)]))
        columns = tuple(replace(column, codes=column.codes[order]) for column in self.columns)
        persons = None if self.persons is None else self.persons[order]
        target, sensitive = self.target[order], self.sensitive[order]
        return replace(self, columns=columns, target=target, sensitive=sensitive, persons=persons)

    def check(self) -> None:
        """Refuse what has nothing to predict or to choose from, and columns that give the sensitive one away."""
        if not self.columns:
            lacking = "X has no column to choose" if self.is_frame else "there is no quasi-identifying column to choose"
            hint = "give more than the sensitive one" if self.is_frame else "give columns the role quasi-identifier"
            raise SchemaError(lacking, hint=hint)
        if self.target.min() == self.target.max():
            problem = "the target has one class only; a selection for classification needs at least two"
            raise SchemaError(problem, hint="choose another target column")
        majority_fraction(self.sensitive, self.sensitive_name)
        refuse_own_values(self.sensitive, self.sensitive_name)
        leaks = leaking_columns(self.released_or_offered, self.sensitive) if self.leaks is None else self.leaks
        refuse_leaks(leaks, self.sensitive_name, _LEAVE_OUT_OF_FRAME if self.is_frame else _LEAVE_OUT_OF_RELEASE)

    @property
    def released_or_offered(self) -> dict[str, NDArray[Any]]:
        """Codes of the columns in which the sensitive one must not stand."""
        offered = {name: column.codes for name, column in zip(self.names, self.columns, strict=True)}
        return {**self.beside, **offered}


def problem_of_table(table: Table, sensitive: str | None) -> BreachProblem:
    """Read columns by their roles; ``sensitive`` decides among several sensitive columns, or names the target."""
    schema = table.schema
    target = target_name(schema)
    wanted = sensitive_name(schema, target, sensitive)
    beside = [name for name in schema.names(Role.OTHER, Role.TARGET) if name != wanted]
    names = schema.names(Role.QUASI_IDENTIFIER)
    for name in names:
        if schema[name].kind is Kind.NUMERIC and np.isinf(table[name].numbers()).any():
            problem = "has infinite numbers, which have no mean to learn by"
            raise SchemaError(problem, column=name, hint="make its kind categorical, or leave these rows out")
    return BreachProblem(
        names,
        tuple(tree_column(table[name], schema[name].kind) for name in names),
        table[target].codes.astype(np.intp),
        table[wanted].codes.astype(np.intp),
        wanted,
        wanted == target,
        {name: table[name].codes.astype(np.intp) for name in beside},
        persons=None if (persons := person_codes(table)) is None else persons.astype(np.intp),
    )


def target_name(schema: Schema) -> str:
    """Column that a recipient predicts."""
    if schema.target is None:
        problem = "the table has no target to choose columns for"
        raise SchemaError(problem, hint="give a column the role target")
    return schema.target


def sensitive_name(schema: Schema, target: str, named: str | None) -> str:
    """Column that an attacker wants: the sensitive one, or the one that is named among several."""
    known = (*schema.names(Role.SENSITIVE), target)
    if named is None:
        if len(known) == 2:
            return known[0]
        problem = f"the table has {len(known) - 1} columns with that role"
        hint = "name one of them, or the target if that is what an attacker wants"
        raise InvalidParameterError("sensitive", problem, allowed="the name of a sensitive column", hint=hint)
    if schema[named].name not in known:
        problem = "is neither a sensitive column nor the target"
        raise SchemaError(problem, column=named, hint=_LEAVE_OUT_OF_RELEASE)
    return named


def tree_column(column: CodedColumn, kind: Kind) -> TreeColumn:
    """Take a column as numbers, or as categories."""
    if kind is Kind.NUMERIC:
        return numeric_column(column.numbers()[column.codes])
    if column.missing_code is None:
        return TreeColumn(column.codes, column.n_distinct)
    codes = np.where(column.codes == column.missing_code, MISSING, column.codes).astype(np.int32)
    return TreeColumn(codes, column.n_distinct - 1)


def problem_of_frame(X: Any, y: Any, sensitive: Any, sensitive_name: str | None) -> BreachProblem:
    """Read a data frame or an array; the sensitive values are given, a column of the frame, or the target."""
    cells = cells_by_name(X)
    names = list(cells)
    columns = dict(zip(names, tree_columns(X), strict=True))
    target = _codes(y)
    if sensitive is not None:
        attacked, name = _codes(sensitive), sensitive_name or "sensitive"
        columns.pop(name, None)
    elif sensitive_name is not None:
        if sensitive_name not in cells:
            raise ColumnNotFoundError(sensitive_name, names)
        attacked, name = CodedColumn.encode(cells[sensitive_name]).codes.astype(np.intp), sensitive_name
        del columns[sensitive_name]
    else:
        attacked, name = target, "y"
    if not len(target) == len(attacked) == len(next(iter(cells.values()), ())):
        raise InvalidParameterError("y and sensitive", "the numbers differ", allowed="one value for each row of X")
    return BreachProblem(
        tuple(columns),
        tuple(columns.values()),
        target,
        attacked,
        name,
        attacked is target,
        is_frame=True,
        places=tuple(names.index(column) for column in columns),
    )


def _codes(values: Any) -> Codes:
    (cells,) = cells_by_name(np.asarray(values).reshape(-1, 1)).values()
    return CodedColumn.encode(cells).codes.astype(np.intp)
