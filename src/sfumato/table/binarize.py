"""Mixed columns to binary features, each with a description from which anybody can compute it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.errors import ColumnNotFoundError, SchemaError
from sfumato.schema import Role
from sfumato.table.binarize_plan import BinarizePlan
from sfumato.table.binary import MISSING, BinaryTable, Feature
from sfumato.table.coding import Table
from sfumato.table.feature_rules import Assignment, Drop, automatic, is_dropped
from sfumato.table.weighted import CountedTable, OpenColumn

__all__ = ["Binarization", "BinarizePlan", "binarize"]


def binarize(table: Table, plan: BinarizePlan | None = None) -> BinaryTable:
    """Turn the quasi-identifiers of a table into binary features.

    Identifiers are left out; target, sensitive and other columns travel along unchanged.

    Parameters
    ----------
    table : Table
    plan : BinarizePlan or None
        ``None`` uses the automatic rules: 0/1 and yes/no columns stay as they are, numbers with more than 10 distinct
        values become 4 quantile bands, every other value gets a feature of its own, and a column with missing cells a
        feature ``<column> missing``. Dates are dropped: without a rule of their own they are not released.

    Returns
    -------
    BinaryTable
        Features in the order of their columns. A ``one-of`` description compares texts by spelling, and a typed cell
        by what it means: a number with the number that the text spells, a truth value with ``true`` or ``false``. An
        ``interval`` compares the cell as a number. Both are 0 when the cell is missing.

    Raises
    ------
    ColumnNotFoundError
        If the plan lists a column that the table does not have.
    SchemaError
        If the plan lists a column that is no quasi-identifier, a rule does not fit its column, two features would have
        the same name, or a feature the name of a column from which it was not computed.

    Notes
    -----
    Time O(rows + distinct values) a column, plus a sort of the rows for columns with several features.
    """
    return Binarization.of(table, plan).applied_to(table)


@dataclass(frozen=True)
class Binarization:
    """What becomes of the quasi-identifiers of a table: for each the features, and which values have which.

    It needs the distinct values of each column and their counts only. For a table that is larger than memory its
    columns are turned into *places*: codes that say which of the column's features is 1, the last one that none is.
    """

    assignments: Mapping[str, Assignment]

    @classmethod
    def of(cls, table: Table, plan: BinarizePlan | None = None) -> Binarization:
        """Find the features of a table; raises what :func:`binarize` does."""
        plan = plan or BinarizePlan()
        _check_listed(table, plan)
        assignments = {name: _assign(table, name, plan) for name in table.schema.names(Role.QUASI_IDENTIFIER)}
        _check_names([f for assignment in assignments.values() for f in assignment.features], table.schema.names())
        return cls(assignments)

    @property
    def features(self) -> tuple[Feature, ...]:
        """All features, in the order of their columns."""
        return tuple(feature for assignment in self.assignments.values() for feature in assignment.features)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that have features."""
        return tuple(name for name, assignment in self.assignments.items() if assignment.features)

    def place(self, feature: Feature) -> int:
        """Place of a feature among those of its column."""
        return self.assignments[feature.column].features.index(feature)

    def applied_to(self, table: Table) -> BinaryTable:
        """Compute the features of the rows of a table that holds the values themselves."""
        of_rows = [(a, a.of_value[table[name].codes]) for name, a in self.assignments.items() if a.features]
        companions = table.keep(_companions(table))
        return BinaryTable(_matrix(of_rows, table.n_rows), self.features, companions)

    def places(self, outline: Table) -> Table:
        """Replace the values of the columns that have features by places."""
        columns = dict(outline.columns)
        for name in self.columns:
            assignment = self.assignments[name]
            n_features = len(assignment.features)
            of_value = np.where(assignment.of_value < 0, n_features, assignment.of_value).astype(np.int32)
            values = pa.array(range(n_features + 1), pa.int32())
            columns[name] = replace(columns[name], codes=of_value[columns[name].codes], values=values)
        return replace(outline, columns=columns)

    def applied_to_places(self, counted: CountedTable, outline: Table) -> BinaryTable:
        """Compute the features of distinct rows of places, beside which columns of the outline travel along."""
        of_rows = []
        for name in self.columns:
            assignment, codes = self.assignments[name], counted[name].codes
            of_rows.append((assignment, np.where(codes == len(assignment.features), -1, codes)))
        names = _companions(outline)
        together = [name for name in counted.together if name in names]
        codes_together = [counted[name].codes for name in together]
        companions = CountedTable.of(outline.keep(names), together, codes_together, counted.row_counts)
        return BinaryTable(_matrix(of_rows, len(counted.row_counts)), self.features, companions)


def _companions(table: Table) -> tuple[str, ...]:
    return table.schema.names(Role.TARGET, Role.SENSITIVE, Role.OTHER)


def _assign(table: Table, name: str, plan: BinarizePlan) -> Assignment:
    column, coded = table.schema[name], table[name]
    is_left_out = plan.unlisted == "drop" or is_dropped(column)
    rule = plan.columns.get(name, Drop() if is_left_out else None)
    if isinstance(coded, OpenColumn) and not isinstance(rule, Drop):
        problem = f"has too many distinct values for a column with the role {column.role}"
        hint = "round or group its values in the file first, or give it the role other or identifier"
        raise SchemaError(problem, column=name, hint=hint)
    found = automatic(column, coded, plan.bands) if rule is None else rule.assign(column, coded)
    if isinstance(rule, Drop) or not plan.missing_features or coded.missing_code is None:
        return found
    of_value = found.of_value.copy()
    of_value[coded.missing_code] = len(found.features)
    return Assignment((*found.features, Feature(f"{name} missing", name, MISSING)), of_value)


def _rows_by_feature(
    of_row: NDArray[np.integer], assignment: Assignment
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Rows of each feature's ones, feature after feature, and how many each has."""
    rows = np.flatnonzero(of_row >= 0).astype(np.int32)
    if len(assignment.features) == 1:
        return rows, np.array([len(rows)])
    order = np.argsort(of_row[rows], kind="stable")
    return rows[order], np.bincount(of_row[rows], minlength=len(assignment.features))


def _matrix(of_rows: Sequence[tuple[Assignment, NDArray[np.integer]]], n_rows: int) -> sp.csc_matrix:
    """Put the features of several columns side by side, given the place of each row's feature in each column."""
    found = [_rows_by_feature(of_row, assignment) for assignment, of_row in of_rows]
    rows = np.concatenate([np.zeros(0, dtype=np.int32), *(indices for indices, _ in found)])
    sizes = np.concatenate([np.zeros(0, dtype=np.int64), *(own for _, own in found)])
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    matrix = sp.csc_matrix((np.ones(len(rows), dtype=np.uint8), rows, indptr), shape=(n_rows, len(sizes)))
    matrix.has_canonical_format = True
    return matrix


def _check_listed(table: Table, plan: BinarizePlan) -> None:
    for name in plan.columns:
        if name not in table.schema:
            raise ColumnNotFoundError(name, table.schema.names())
        role = table.schema[name].role
        if role is not Role.QUASI_IDENTIFIER:
            problem = f"has a binarization rule and the role {role}; only quasi-identifiers become features"
            raise SchemaError(problem, column=name, hint="change its role or take it out of the plan")


def _check_names(features: Sequence[Feature], columns: Sequence[str]) -> None:
    """Refuse names that repeat or are another column's, naming columns only: a feature's name may hold a cell value.

    This holds for all columns of the table, also those that are not released: a reader would take one for the other.
    """
    owner = {name: name for name in columns}
    for feature in features:
        other = owner.setdefault(feature.name, feature.column)
        if other != feature.column:
            problem = f"a feature of it would have the same name as column '{other}' or one of its features"
            raise SchemaError(problem, column=feature.column, hint=f"rename column '{other}' or give the rule a name")
    if len({feature.name for feature in features}) != len(features):
        problem = "two features would have the same name"
        raise SchemaError(problem, hint="give the rules names")
