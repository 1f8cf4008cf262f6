"""Which rows are trained and tested on: the same folds for every mechanism and classifier."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.manifest import AnyTable
from sfumato.recoding.targets import MOST_CLASSES
from sfumato.schema import Kind
from sfumato.table.coding import CodedColumn, Table

Rows = NDArray[np.intp]
Codes = NDArray[np.int32]


def class_column(table: AnyTable) -> CodedColumn:
    """Return the target, whose values are the classes; a missing one is a class of its own.

    Raises
    ------
    SchemaError
        If there is no target, or it is a quantity: numeric, with more than 20 values.
    """
    beside = table if isinstance(table, Table) else table.companions
    name = beside.schema.target
    if name is None:
        problem = "the table has no target to predict"
        raise SchemaError(problem, hint="give one column the role target")
    if beside.schema[name].kind is Kind.NUMERIC and beside[name].n_distinct > MOST_CLASSES:
        problem = f"is to be predicted as a class and has {beside[name].n_distinct:,} different numbers"
        raise SchemaError(problem, column=name, hint="make classes of it, or predict another column")
    return beside[name]


def stratified_folds(target: Codes, n_folds: int, seed: int) -> list[tuple[Rows, Rows]]:
    """Rows to train and to test on, fold by fold; every class as evenly spread as its number of rows allows."""
    most = int(np.bincount(target, minlength=1).max())
    if isinstance(n_folds, bool) or not isinstance(n_folds, int | np.integer) or not 2 <= n_folds <= most:
        allowed = f"a whole number of at least 2 and at most {most:,} (rows of the most frequent class)"
        raise InvalidParameterError("n_folds", f"got {n_folds!r}", allowed=allowed)
    folds = StratifiedKFold(int(n_folds), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # classes with fewer rows than folds, or that are many
        return list(folds.split(np.zeros(len(target)), target))


def rows_of(table: AnyTable, rows: Rows) -> AnyTable:
    """Restrict a table of either kind to some rows."""
    if isinstance(table, Table):
        return table.take(rows)
    matrix = sp.csc_matrix(sp.csr_matrix(table.matrix)[rows])
    matrix.sort_indices()
    return replace(table, matrix=matrix, companions=table.companions.take(rows))
