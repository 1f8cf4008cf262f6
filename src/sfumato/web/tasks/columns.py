"""Tasks of the step Columns: read and change roles, kinds and hierarchies in the project file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sfumato.errors import ColumnNotFoundError, InvalidParameterError, SchemaError
from sfumato.project.edit import ProjectChanges, edit_project, project_with
from sfumato.project.file import Project, load_project
from sfumato.schema import AS_TEXT, Column, Kind, Reading, Role
from sfumato.table.preparing.declared import Preparation, check_fits
from sfumato.table.reading.columns import format_key, format_named
from sfumato.table.understanding import understand
from sfumato.web.tasks.facts import facts_beside
from sfumato.web.tasks.goal_levels import number_or_text

if TYPE_CHECKING:
    from sfumato.web.jobs.process import Tell

_Choice = TypeVar("_Choice", Role, Kind)


def roles(folder: Path, tell: Tell, *, project: str) -> dict[str, Any]:
    """Role, kind and hierarchy file of every listed column, and the role of all others."""
    return _roles(load_project(project))


def _roles(project: Project) -> dict[str, Any]:
    return {
        "columns": {column.name: _described(project, column) for column in project.columns},
        "default_role": str(project.default_role) if project.default_role else None,
        "sha256": project.sha256,
    }


def _described(project: Project, column: Column) -> dict[str, Any]:
    file = hierarchy_files(project).get(column.name, column.hierarchy)
    asked = next((one for one in project.preparations if one.column == column.name), None)
    return {
        "role": str(column.role),
        "kind": str(column.kind),
        "hierarchy": _from_project(project, file),
        "confirmed": column.confirmed,
        "format": "" if column.reading is None or column.reading.format == AS_TEXT else column.reading.format,
        **({} if asked is None else {"preparation": asked.written(), "prepared": asked.in_words()}),
    }


def hierarchy_files(project: Project) -> Mapping[str, str]:
    """Hierarchies among the mechanism's parameters, which go before those of the columns."""
    given = project.parameters.get("hierarchies")
    return given if isinstance(given, dict) else {}


def _from_project(project: Project, file: str | None) -> str | None:
    """Path of a file as the project file writes it."""
    return None if file is None else os.path.relpath(file, project.path.parent)


def set_roles(
    folder: Path, tell: Tell, *, project: str, names: list[str], role: str, kinds: Mapping[str, str]
) -> dict[str, Any]:
    """Give columns a role; a new target takes the role from the former one, which becomes a quasi-identifier.

    Parameters
    ----------
    kinds : mapping of str to str
        Kinds of the columns that the project file does not list yet.

    Returns
    -------
    dict
        The roles as they are now; see :func:`roles`.
    """
    wanted = _one_of(Role, "role", role)
    if wanted is Role.TARGET and len(names) > 1:
        problem = f"{len(names):,} columns cannot all be the target"
        raise SchemaError(problem, hint="select one column")
    added = {name: _one_of(Kind, "kind", kind) for name, kind in kinds.items()}
    loaded = load_project(project)
    for asked in loaded.preparations:
        if asked.column in names:
            check_fits(replace(column_of(loaded, asked.column), role=wanted), asked)
    changes = ProjectChanges(dict.fromkeys(names, wanted), added, former_target=Role.QUASI_IDENTIFIER)
    return _roles(edit_project(project, changes))


def set_kind(folder: Path, tell: Tell, *, project: str, name: str, kind: str) -> dict[str, Any]:
    """Give a column another kind, after reading the table with it: a numeric column must hold numbers.

    A format of another kind goes.
    """
    loaded = load_project(project)
    new, column = _one_of(Kind, "kind", kind), column_of(loaded, name)
    declared = None if column.reading is None else format_named(column.reading.format)
    is_kept = column.reading is None or (declared is not None and declared.kind is new)
    changes = ProjectChanges({name: column.role}, {name: new}, formats={} if is_kept else {name: None})
    return _changed(loaded, name, changes)


def set_format(folder: Path, tell: Tell, *, project: str, name: str, format: str) -> dict[str, Any]:
    """Say in which format the texts of a column are written, after reading the table with it; it decides the kind."""
    loaded = load_project(project)
    column, found = column_of(loaded, name), format_named(format)
    if found is None:
        new = column.kind if column.kind not in (Kind.DATE, Kind.NUMERIC) else Kind.CATEGORICAL
        changes = ProjectChanges({name: column.role}, {name: new}, formats={name: None})
    else:
        key = format_key(replace(column, reading=Reading(found.name)))
        changes = ProjectChanges({name: column.role}, {name: found.kind}, formats={name: {key: found.name}})
    return _changed(loaded, name, changes)


_TEXTS = ("age_at", "character", "scope")
"""Parts of a preparation that are no numbers."""


def set_preparation(
    folder: Path, tell: Tell, *, project: str, name: str, kind: str, written: Mapping[str, Any]
) -> dict[str, Any]:
    """Say what is done to a column first, after doing it to the table.

    Parameters
    ----------
    kind : str
        Of a column that the project file does not list yet.
    written : mapping
        As in a project file, numbers as texts; empty for nothing.
    """
    loaded = load_project(project)
    column, told = column_of(loaded, name), None
    if not any(name == listed.name for listed in loaded.columns):
        column = replace(column, kind=_one_of(Kind, "kind", kind))
    if written:
        asked = Preparation.of(name, _numbered(written))
        check_fits(column, asked)
        told = asked.written()
    changes = ProjectChanges({name: column.role}, {name: column.kind}, preparations={name: told})
    return _changed(loaded, name, changes)


def _numbered(written: Mapping[str, Any]) -> dict[str, Any]:
    """Turn texts into numbers where that is possible; whether they make sense is checked where they are declared."""
    read = {key: _numbered(value) for key, value in written.items() if isinstance(value, Mapping)}
    texts = {key: value for key, value in written.items() if isinstance(value, str) and key not in _TEXTS}
    return {**written, **read, **{key: number_or_text(text) for key, text in texts.items()}}


def _changed(project: Project, name: str, changes: ProjectChanges) -> dict[str, Any]:
    """Change the project file if the table can be read and prepared so; gives ``facts`` of the column as it then is."""
    wanted = project_with(project.path, changes)
    table = wanted.read_unprepared()
    made = wanted.prepared(table)
    edit_project(project.path, changes)
    guesses = [one for one in understand(table).guesses if one.column.name == name]
    return {"facts": facts_beside(table, made, guesses)[0]}


def confirm(folder: Path, tell: Tell, *, project: str, name: str, kind: str, confirmed: bool) -> dict[str, Any]:
    """Write down that a column that looks as if it named people names nobody and may be released, or take that back."""
    loaded = load_project(project)
    column = column_of(loaded, name)
    is_listed = any(name == listed.name for listed in loaded.columns)
    kinds = {} if is_listed else {name: _one_of(Kind, "kind", kind)}
    edit_project(loaded.path, ProjectChanges(roles={name: column.role}, kinds=kinds, confirmed={name: confirmed}))
    return {}


def use_changed_data(folder: Path, tell: Tell, *, project: str) -> dict[str, Any]:
    """Describe the data file as it is now: if it can be read with the same columns, its SHA-256 is written down."""
    loaded = load_project(project)
    source = replace(loaded, data_sha256=None).read().source
    if source is not None and loaded.data_sha256 is not None:
        edit_project(loaded.path, ProjectChanges(data_sha256=source.sha256))
    return {}


def _one_of(choices: type[_Choice], name: str, value: str) -> _Choice:
    try:
        return choices(value)
    except ValueError:
        raise InvalidParameterError(name, f"got {value!r}", allowed=f"one of {', '.join(choices)}") from None


def column_of(project: Project, name: str) -> Column:
    """Column as the project file describes it, by name or by the role of all that are not listed."""
    listed = {column.name: column for column in project.columns}
    if name not in listed and project.default_role is None:
        raise ColumnNotFoundError(name, listed, where="the project file")
    return listed.get(name) or Column(name, project.default_role or Role.QUASI_IDENTIFIER)
