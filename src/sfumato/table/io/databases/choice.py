"""Which table of a database is meant: the one that is named, or the only one."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from sfumato.errors import InputError, on_one_line
from sfumato.table.io.databases.address import NAMES, Database

_MOST_SHOWN = 12

Table = tuple[str, ...]
"""Name of a table, after that of its schema where there are schemas."""


def chosen_table(database: Database, tables: Sequence[tuple[Table, bool]]) -> Table:
    """Find the table that is named, by its own name or after its schema's and a dot; else the only one.

    Parameters
    ----------
    tables : sequence of pairs
        All that can be read, and whether they are found without the name of their schema.

    Raises
    ------
    InputError
        If there is none, or several.

    Examples
    --------
    >>> base = Database("sqlite", "people.db", table="Visits")
    >>> chosen_table(base, [(("visits",), True), (("people",), True)])
    ('visits',)
    """
    if database.table is None:
        if len(tables) == 1:
            return tables[0][0]
        problem = f"is {NAMES[database.kind]} with {len(tables):,} tables that can be read"
        hint = f"name a table, or give a query; there are {_shown(tables)}" if tables else "check user and address"
        raise InputError(problem, path=database.place, hint=hint, remedy=("table",))
    for is_same in (str.__eq__, lambda one, other: one.lower() == other.lower()):
        found = [(name, near) for name, near in tables if any(is_same(n, database.table) for n in _spelled(name))]
        near = [name for name, is_near in found if is_near] or [name for name, _ in found]
        if len(near) == 1:
            return near[0]
        if near:
            problem = "has several tables of the name that is asked for"
            raise InputError(problem, path=database.place, hint="write the schema's name and a dot before it")
    nearest = difflib.get_close_matches(database.table, [name[-1] for name, _ in tables], n=1)
    hint = f"did you mean '{on_one_line(nearest[0])}'?" if nearest else f"there are {_shown(tables)}"
    problem = "has no table of this name that can be read"
    raise InputError(problem, path=database.place, hint=hint, remedy=("table",))


def quoted(*parts: str) -> str:
    """Write a name in SQL, whatever is in it.

    Examples
    --------
    >>> quoted("public", 'an "odd" name')
    '"public"."an ""odd"" name"'
    """
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def _spelled(name: Table) -> tuple[str, ...]:
    return (name[-1], ".".join(name))


def _shown(tables: Sequence[tuple[Table, bool]]) -> str:
    names = [on_one_line(name[-1] if near else ".".join(name)) for name, near in tables]
    more = f" and {len(names) - _MOST_SHOWN:,} more" if len(names) > _MOST_SHOWN else ""
    return ", ".join(names[:_MOST_SHOWN]) + more if names else "none"
