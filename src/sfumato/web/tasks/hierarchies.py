"""Tasks about the hierarchy of one column: show, build, check, use and remove.

What they give back holds labels, which are cell values: for the page on this machine only.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.atomic import explained_writing, write_atomically
from sfumato.errors import InputError, SchemaError, SfumatoError
from sfumato.mechanisms.hierarchies.automatic import build_hierarchy, cover_column
from sfumato.mechanisms.hierarchies.files import faults_of_file, hierarchy_text, read_hierarchy
from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy
from sfumato.project.edit import ProjectChanges, edit_project
from sfumato.project.file import Project, load_project
from sfumato.schema import Column
from sfumato.table.coding import Table
from sfumato.web.tasks.columns import column_of, hierarchy_files

if TYPE_CHECKING:
    from sfumato.web.jobs.process import Tell

FOLDER = "hierarchies"
"""Folder beside the project file, for hierarchies that the page writes."""
_MAX_LABELS = 8
_MAX_BRANCHES = (4, 4, 3, 2, 1)  # by depth; deeper ones as the last
_MAX_NAME = 60
_NOT_IN_NAMES = re.compile(r"[^a-z0-9_-]+")


def show(folder: Path, tell: Tell, *, project: str, name: str) -> dict[str, Any]:
    """Levels of the hierarchy that a column has now; without a file there are none."""
    loaded = load_project(project)
    file = _file_in_use(loaded, name)
    return {} if file is None else {"file": _written_path(loaded, file), **preview(read_hierarchy(file))}


def build(
    folder: Path, tell: Tell, *, project: str, name: str, method: str, settings: Mapping[str, Any], use: bool
) -> dict[str, Any]:
    """Build a hierarchy as ``sfumato hierarchy build`` does, and enter it in the project file if it is to be used."""
    loaded = load_project(project)
    tell.log("reading the table")
    table = _table(loaded)
    hierarchy = build_hierarchy(table, name, method, settings)
    saved = _use(loaded, table.schema[name], hierarchy) if use else None
    return {"file": saved, **preview(hierarchy)}


def check(
    folder: Path, tell: Tell, *, project: str, name: str, file: str | None = None, use: bool = False
) -> dict[str, Any]:
    """Check a hierarchy file (by default the one in use) against its column, and enter it in the project file if asked.

    ``faults`` lists what is wrong; only a file without faults is used.
    """
    loaded = load_project(project)
    path = file or _file_in_use(loaded, name)
    if path is None:
        problem = "has no hierarchy file"
        raise SchemaError(problem, column=name, hint="build one or give one")
    faults = [_without_place(fault) for fault in faults_of_file(path)]
    if faults:
        return {"faults": faults}
    hierarchy = read_hierarchy(path)
    tell.log("reading the table")
    table = _table(loaded)
    try:
        found = cover_column(hierarchy, table, name)
    except SchemaError as exc:
        return {"faults": [str(exc)]}
    saved = _use(loaded, table.schema[name], hierarchy) if use else None
    unused = found.n_rows - len(found.labels[0])
    return {"faults": [], "file": saved, "n_values": table[name].n_distinct, "n_unused": unused, **preview(hierarchy)}


def remove(folder: Path, tell: Tell, *, project: str, name: str) -> dict[str, Any]:
    """Take the hierarchy of a column out of the project file; its file stays where it is."""
    loaded = load_project(project)
    _enter(loaded, column_of(loaded, name), None)
    return {}


def preview(hierarchy: Hierarchy) -> dict[str, Any]:
    """Levels with their first labels, and the first branches from the highest level down."""
    whole = hierarchy.with_root()
    levels = [
        {"n_labels": len(labels), "labels": labels[:_MAX_LABELS], "largest_share": float(whole.shares(level).max())}
        for level, labels in enumerate(whole.labels)
    ]
    return {"levels": levels, "n_values": whole.n_values, "tree": _branches(whole, 0, range(len(whole.labels[-1])))}


def _branches(hierarchy: Hierarchy, depth: int, codes: Iterable[int]) -> list[dict[str, Any]]:
    """First labels at a depth from the highest level, with those below them, and how many are left out."""
    level, codes = hierarchy.n_levels - 1 - depth, list(codes)
    shown = codes[: _MAX_BRANCHES[min(depth, len(_MAX_BRANCHES) - 1)]]
    branches = [
        {"label": hierarchy.labels[level][code], "below": _below(hierarchy, depth, code) if level else []}
        for code in shown
    ]
    return [*branches, {"n_left_out": len(codes) - len(shown)}] if len(codes) > len(shown) else branches


def _below(hierarchy: Hierarchy, depth: int, code: int) -> list[dict[str, Any]]:
    parents = hierarchy.parents[hierarchy.n_levels - 2 - depth]
    return _branches(hierarchy, depth + 1, np.flatnonzero(parents == code).tolist())


def _table(project: Project) -> Table:
    table = project.read()
    if not isinstance(table, Table):
        problem = "holds 0/1 features, which need no hierarchy"
        raise InputError(problem, path=project.data_path.name)
    return table


def _file_in_use(project: Project, name: str) -> str | None:
    return hierarchy_files(project).get(name, column_of(project, name).hierarchy)


def _written_path(project: Project, file: str | Path) -> str:
    return Path(os.path.relpath(file, project.path.parent)).as_posix()


def _without_place(error: InputError) -> str:
    """Message without the path of the file, which is a passing one for an upload; the fault itself names the line."""
    return str(error).removeprefix(error.path or "").partition(": ")[2]


def _use(project: Project, column: Column, hierarchy: Hierarchy) -> str:
    """Write a hierarchy beside the project file and enter it there; on failure nothing new is left."""
    content = hierarchy_text(hierarchy).encode()
    folder = project.path.parent / FOLDER
    with explained_writing(folder):
        folder.mkdir(exist_ok=True)
    in_use = _file_in_use(project, column.name)
    path = _free_path(folder, column.name, content, Path(in_use) if in_use else None)
    is_new = not path.exists()
    write_atomically(path, content, force=True)
    try:
        _enter(project, column, _written_path(project, path))
    except SfumatoError:
        if is_new:
            path.unlink()
        raise
    return _written_path(project, path)


def _free_path(folder: Path, name: str, content: bytes, in_use: Path | None) -> Path:
    """Path for a column's hierarchy: one that is free, that the column uses already, or that says the same."""
    stem = safe_name(name)
    for path in (folder / f"{stem}{'' if number == 1 else f'-{number}'}.csv" for number in count(1)):
        is_own = in_use is not None and in_use.exists() and path.exists() and path.samefile(in_use)
        if not path.exists() or is_own or path.read_bytes() == content:
            return path
    raise AssertionError


def safe_name(name: str) -> str:
    """Name of a column as that of a file; different columns have different ones, whatever the file system.

    Examples
    --------
    >>> safe_name("age"), safe_name("Age")[:-8], safe_name("../x")[:-8]
    ('age', 'age-', 'x-')
    """
    plain = _NOT_IN_NAMES.sub("-", name.lower()).strip("-_")[:_MAX_NAME]
    if plain == name:
        return name
    return f"{plain or 'column'}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _enter(project: Project, column: Column, file: str | None) -> None:
    """Write a column's hierarchy into the project file, and out of the mechanism's parameters, which go before it."""
    given = dict(hierarchy_files(project))
    parameters = None
    if given.pop(column.name, None) is not None:
        parameters = {**project.parameters, "hierarchies": given or None}
    name = column.name
    if file is None and name not in {listed.name for listed in project.columns}:
        changes = ProjectChanges(parameters=parameters)
    else:
        changes = ProjectChanges({name: column.role}, {name: column.kind}, {name: file}, parameters=parameters)
    edit_project(project.path, changes)
