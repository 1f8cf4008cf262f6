"""A table or a data frame as what a recipient predicts from, what an attacker wants, and the columns of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import ColumnNotFoundError, InvalidParameterError, SchemaError
from sfumato.learning.columns import cells_by_name, numeric_column, tree_columns
from sfumato.learning.tree import MISSING, TreeColumn
from sfumato.schema import Kind, Role, Schema
from sfumato.selection.breach_leaks import leaking_columns, refuse_leaks, refuse_own_values
from sfumato.selection.tradeoff import majority_fraction
from sfumato.table.coding import CodedColumn, Table

Codes = NDArray[np.intp]

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

    @property
    def majority_fraction(self) -> float:
        """Share of the most frequent sensitive value."""
        return majority_fraction(self.sensitive, self.sensitive_name)

    def in_order_of_values(self) -> BreachProblem:
        """Sort the rows by their values, so that folds do not depend on the order in which rows were given."""
        order = np.lexsort(np.stack([self.sensitive, self.target, *(column.codes for column in self.columns)]))
        columns = tuple(replace(column, codes=column.codes[order]) for column in self.columns)
        return replace(self, columns=columns, target=self.target[order], sensitive=self.sensitive[order])

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
    return BreachProblem(
        names,
        tuple(_tree_column(table[name], schema[name].kind) for name in names),
        table[target].codes.astype(np.intp),
        table[wanted].codes.astype(np.intp),
        wanted,
        wanted == target,
        {name: table[name].codes.astype(np.intp) for name in beside},
    )


def target_name(schema: Schema) -> str:
    """Column that a recipient predicts."""
    if schema.target is None:
        problem = "the table has no target, for which columns could be chosen"
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


def _tree_column(column: CodedColumn, kind: Kind) -> TreeColumn:
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
