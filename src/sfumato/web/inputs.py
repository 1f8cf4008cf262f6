"""What a result was made from: noted when it is made, so that a later change is noticed. Light, for the server too."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypedDict

PROJECT_FILE = "project file"
DESCRIPTION = "description of the table"
"""What the project file says of the table; what is to be released of it does not count."""
DATA = "data"
HIERARCHY = "hierarchy"

_DESCRIBING = ("data", "columns", "binarize")


class Input(TypedDict):
    """One thing that a result was made from, and a mark that changes with it; None where it could not be read."""

    what: str
    path: str
    stamp: str | None


def noted(project: str | Path, *whats: str) -> list[Input]:
    """Note what a result of a project is made from, before it is made.

    Parameters
    ----------
    whats : str
        Of ``PROJECT_FILE``, ``DESCRIPTION``, ``DATA`` and ``HIERARCHY``, those that the result depends on.
    """
    path = Path(project).absolute()
    content = content_of(path) or {}
    own = [path.name]
    files = {PROJECT_FILE: own, DESCRIPTION: own, DATA: _data_files(content), HIERARCHY: _hierarchies(content)}
    return [note(what, path.parent / file) for what in whats for file in files[what]]


def note(what: str, path: Path) -> Input:
    """Note one file as it is now."""
    return {"what": what, "path": str(path.absolute()), "stamp": stamp_of(what, path)}


def changed_since(inputs: Sequence[Input], project: Path | None) -> list[str]:
    """Name what was changed since it was noted, each once; another project file counts as a change."""
    here = None if project is None else str(project.absolute())
    return list(dict.fromkeys(one["what"] for one in inputs if _is_changed(one, here)))


def _is_changed(one: Input, here: str | None) -> bool:
    is_elsewhere = one["what"] in (PROJECT_FILE, DESCRIPTION) and here not in (None, one["path"])
    return is_elsewhere or stamp_of(one["what"], Path(one["path"])) != one["stamp"]


def stamp_of(what: str, path: Path) -> str | None:
    """Mark that changes with a file: its SHA-256; of the data, which may be large, size and time must do."""
    try:
        if what == DATA:
            found = path.stat()
            return f"{found.st_size} {found.st_mtime_ns}"
        raw = path.read_bytes()
    except OSError:
        return None
    return _description(raw) if what == DESCRIPTION else hashlib.sha256(raw).hexdigest()


def content_of(project: Path) -> Mapping[str, Any] | None:
    """Read a project file without checking it; None if it is not there or no TOML, which a task then explains."""
    try:
        return _parsed(project.read_bytes())
    except OSError:
        return None


@lru_cache(maxsize=4)
def _parsed(raw: bytes) -> Mapping[str, Any] | None:
    try:
        return tomllib.loads(raw.decode())
    except (ValueError, RecursionError):
        return None


@lru_cache(maxsize=4)
def _description(raw: bytes) -> str:
    content = _parsed(raw)
    told = raw if content is None else _as_json([content.get(name) for name in _DESCRIBING])
    return hashlib.sha256(told).hexdigest()


def _as_json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, default=str).encode()


def _data_files(content: Mapping[str, Any]) -> list[str]:
    return list(_texts([_table(content, "data").get("path")]))


def _hierarchies(content: Mapping[str, Any]) -> list[str]:
    """Hierarchy files of columns, of the release and of a comparison, each once."""
    columns, grid = _table(content, "columns"), _table(content, "compare", "grid")
    parameters = [_table(content, "release", "parameters"), *(_table(grid, name) for name in grid)]
    named = [_table(columns, name).get("hierarchy") for name in columns]
    named += [file for one in parameters for file in _table(one, "hierarchies").values()]
    return list(dict.fromkeys(_texts(named)))


def _texts(values: Sequence[Any]) -> Iterator[str]:
    return (value for value in values if isinstance(value, str))


def _table(content: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Table in a table, empty where there is none."""
    for name in names:
        found = content.get(name)
        content = found if isinstance(found, Mapping) else {}
    return content
