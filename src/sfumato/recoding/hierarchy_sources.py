"""Where the hierarchies of a table's columns come from: given, named in the schema, or built from the values."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.errors import ColumnNotFoundError, InvalidParameterError
from sfumato.recoding.hierarchy import Hierarchy
from sfumato.recoding.hierarchy_automatic import hierarchy_for
from sfumato.recoding.hierarchy_files import read_hierarchy
from sfumato.table.coding import Table


def hierarchies_of(table: Table, names: Sequence[str], given: Mapping[str, Any] | None = None) -> list[Hierarchy]:
    """Hierarchy of each column, all of them ending in one label.

    Parameters
    ----------
    given : mapping of str to Hierarchy or path, or None
        Takes precedence over the file that the schema names. Columns with neither get one that is built from their
        values, categorical ones in view of the target.

    Raises
    ------
    ColumnNotFoundError
        If a hierarchy is given for a column that the table does not have.
    """
    known = dict(given or {})
    for name in known:
        if name not in table.schema:
            raise ColumnNotFoundError(name, table.schema.names(), where="the table, for which a hierarchy is given")
    return [_hierarchy(table, name, known.get(name, table.schema[name].hierarchy)).with_root() for name in names]


def _hierarchy(table: Table, name: str, source: object) -> Hierarchy:
    if source is None:
        return hierarchy_for(table, name, target=table.schema.target)
    if isinstance(source, Hierarchy):
        return source
    if isinstance(source, str | os.PathLike):
        return read_hierarchy(source)
    problem = f"got a {type(source).__name__} for '{name}'"
    raise InvalidParameterError("hierarchies", problem, allowed="Hierarchy objects or paths of hierarchy files")
