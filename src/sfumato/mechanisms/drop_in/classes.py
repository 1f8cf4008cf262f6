"""Classes of rows that a mechanism made equal, and what must hold of a release for their values to be shown instead."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.manifest import AnyTable
from sfumato.mechanisms.base import Cells, Release
from sfumato.schema import Role
from sfumato.table.coding import Table


def with_classes(table: AnyTable, release: Release, cells: Cells, why_not_both: str) -> tuple[Table, Table]:
    """Give both tables back, if the rows of the release have classes whose values may be shown.

    Parameters
    ----------
    why_not_both : str
        Why a column that is sensitive and a quasi-identifier cannot have such cells.

    Raises
    ------
    InvalidParameterError
        If there are no classes, or something is asked of the groups before they became classes.
    SchemaError
        If a quasi-identifier is sensitive as well.
    """
    made = release.manifest
    if not isinstance(table, Table) or not isinstance(release.table, Table) or made.perturbation:
        problem = f"got a release by {made.mechanism['name']}, which has no classes of rows with equal cells"
        raise InvalidParameterError("cells", problem, allowed=f"{cells} of releases that coarsen values")
    if made.mechanism["parameters"].get("min_disclosure_bits") is not None:
        problem = "got min_disclosure_bits, which is about the groups of the tree before classes with equal cells join"
        raise InvalidParameterError("cells", problem, allowed=f"{cells} without it")
    both = release.table.schema.names(Role.SENSITIVE_QUASI_IDENTIFIER)
    if both:
        problem = f"is sensitive and a quasi-identifier: {why_not_both}"
        raise SchemaError(problem, column=both[0], hint="release ranges, or give the column one of the two roles")
    return table, release.table


def class_of_row(released: Table) -> NDArray[np.int32]:
    """Give the class of each row, from 0: rows with equal cells on all quasi-identifiers are one."""
    codes = released.codes(released.schema.names(Role.QUASI_IDENTIFIER))
    return np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int32)
