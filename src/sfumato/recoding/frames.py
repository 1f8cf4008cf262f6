"""A data frame as a described table, for recoders that are used as estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfumato.errors import SchemaError
from sfumato.schema import Role
from sfumato.table.coding import Table
from sfumato.table.read import read_table


def described_frame(frame: Any, quasi_identifiers: Sequence[str], sensitive: str | None) -> Table:
    """Read a data frame and give its columns roles.

    Parameters
    ----------
    quasi_identifiers : sequence of str
        Without any, all columns that are not sensitive.
    sensitive : str or None
        Columns by commas.
    """
    table = read_table(frame)
    if not isinstance(table, Table):
        problem = "is a sparse 0/1 matrix, whose features have no hierarchies"
        raise SchemaError(problem, hint="give a data frame or a Table")
    names = table.schema.names()
    kept_apart = {name.strip() for name in sensitive.split(",")} if sensitive else set()
    quasi = set(quasi_identifiers or names) - kept_apart
    roles = {name: Role.QUASI_IDENTIFIER if name in quasi else Role.OTHER for name in names}
    roles |= {name: Role.SENSITIVE for name in names if name in kept_apart}
    return table.with_schema(table.schema.with_roles(roles))
