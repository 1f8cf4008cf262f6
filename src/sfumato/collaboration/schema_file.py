"""Shared schemas as files: JSON that is read strictly, since every party must read the same out of it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NoReturn

from sfumato.atomic import write_atomically
from sfumato.collaboration.shared_schema import SharedColumn, SharedSchema
from sfumato.errors import InputError, SchemaError
from sfumato.schema import Role

SCHEMA_VERSION = 2
OLDER_VERSION = 1
"""Without roles."""
MOST_BYTES = 64 * 2**20

_VERSION_KEY = "sfumato_shared_schema"


def write_shared_schema(schema: SharedSchema, path: str | Path, *, force: bool = False) -> None:
    """Write a schema whole or not at all; a file that exists is replaced only with ``force``.

    The same schema always gives the same bytes.
    """
    roles = {name: str(schema.roles[name]) for name in sorted(schema.roles)}
    data = {_VERSION_KEY: SCHEMA_VERSION} | schema.to_dict() | {"roles": roles}
    write_atomically(Path(path), (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode(), force=force)


def read_shared_schema(path: str | Path) -> SharedSchema:
    """Read a schema; see :func:`read_shared_schema_and_digest`."""
    return read_shared_schema_and_digest(path)[0]


def read_shared_schema_and_digest(path: str | Path) -> tuple[SharedSchema, str]:
    """Read a schema, and the SHA-256 of the file, which people compare.

    Raises
    ------
    InputError
        If the file cannot be read, is of another version, or holds anything but the agreed entries.
    """
    content = _content(Path(path))
    parsed = _parsed(content, path)
    is_older = isinstance(parsed, dict) and parsed.get(_VERSION_KEY) == OLDER_VERSION
    data = _entries(parsed, {_VERSION_KEY, "features", "target"} | (set() if is_older else {"roles"}), path)
    if data[_VERSION_KEY] is True or data[_VERSION_KEY] not in (OLDER_VERSION, SCHEMA_VERSION):
        problem = "is a shared schema of a version this program does not know"
        raise InputError(problem, path=path, hint=f"expected {_VERSION_KEY} = {SCHEMA_VERSION}")
    if not isinstance(data["features"], list):
        _refuse(path, "features is not a list")
    try:
        features = tuple(_column(entry, path) for entry in data["features"])
        schema = SharedSchema(features, _column(data["target"], path), _roles(data.get("roles", {}), path))
    except SchemaError as exc:
        raise InputError(str(exc).removesuffix("."), path=path) from None
    return schema, hashlib.sha256(content).hexdigest()


def _roles(given: Any, path: str | Path) -> dict[str, Role]:
    known = {str(role): role for role in (Role.IDENTIFIER, Role.SENSITIVE, Role.OTHER)}
    if not isinstance(given, dict) or not all(isinstance(role, str) and role in known for role in given.values()):
        _refuse(path, f"roles are not columns with one of {', '.join(known)}")
    return {name: known[role] for name, role in given.items()}


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "not a path"
        raise InputError(f"cannot be read ({reason})", path=path) from None
    if len(content) > MOST_BYTES:
        _refuse(path, f"it has more than {MOST_BYTES // 2**20} MB")
    return content


def _parsed(content: bytes, path: str | Path) -> Any:
    try:
        return json.loads(content.decode(), object_pairs_hook=_without_repetition, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        _refuse(path, "it is not JSON, or names an entry twice")


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _no_constant(_: str) -> NoReturn:
    raise ValueError


def _column(entry: Any, path: str | Path) -> SharedColumn:
    domain = "cuts" if isinstance(entry, dict) and "cuts" in entry else "values"
    data = _entries(entry, {"name", domain, "missing"}, path)
    listed = data[domain]
    if not isinstance(data["name"], str) or not isinstance(data["missing"], bool) or not isinstance(listed, list):
        _refuse(path, "a column's name is no text, its missing no truth value, or its values no list")
    if domain == "values":
        if not all(isinstance(value, str) for value in listed):
            _refuse(path, "a column's values are not all texts")
        return SharedColumn(data["name"], tuple(listed), None, data["missing"])
    if not all(isinstance(cut, int | float) and not isinstance(cut, bool) and abs(cut) < 2**1023 for cut in listed):
        _refuse(path, "a column's cut points are not all numbers")
    return SharedColumn(data["name"], (), tuple(map(float, listed)), data["missing"])


def _entries(data: Any, names: set[str], path: str | Path) -> dict[str, Any]:
    if not isinstance(data, dict) or set(data) != names:
        _refuse(path, f"an entry lacks or exceeds {', '.join(sorted(names))}")
    return data


def _refuse(path: str | Path, problem: str) -> NoReturn:
    message = f"is not a shared schema: {problem}"
    raise InputError(message, path=path, hint="let all parties make one", remedy=("shared_schema",))
