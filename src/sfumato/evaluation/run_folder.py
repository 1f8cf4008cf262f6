"""Run folder: one JSON file for every finished point, so that a comparison that was ended goes on where it was.

What attackers score with the original is the same for many points, and has files of its own.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

from sfumato.atomic import explained_writing, write_atomically
from sfumato.errors import OutputError
from sfumato.evaluation.asked import is_readable
from sfumato.evaluation.grid import Point
from sfumato.evaluation.points import Measuring, Status
from sfumato.manifest import AnyTable, tool_versions
from sfumato.schema import Column
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import CodedColumn

RESULT_VERSION = 2
_SCORES = ".scores"
_DIGITS = 16
_NUMBER = (int, float)
_FIELDS: Mapping[str, tuple[type, ...]] = {
    "status": (str,),
    "reason": (str, NoneType),
    "best_level": (*_NUMBER, NoneType),
    "guarantees": (list,),
    "n_columns": (int, NoneType),
    "n_rows": (int, NoneType),
    "risk": (dict, NoneType),
    "utility": (dict, NoneType),
    "seconds": (*_NUMBER, NoneType),
    "cpu_seconds": (*_NUMBER, NoneType),
    "peak_memory_bytes": (int, NoneType),
}
_IF_DONE = ("n_columns", "n_rows", "risk", "utility", "seconds", "cpu_seconds")


def table_fingerprint(table: AnyTable) -> str:
    """SHA-256 over everything in a table that a result depends on: cells in their order, names, roles and kinds.

    Hierarchy files count by their contents. A table that is read again from the same file has the same fingerprint.
    """
    plain = table.companions if isinstance(table, BinaryTable) else table
    digest = hashlib.sha256()
    for column in plain.schema:
        digest.update(_line("column", _described(column)))
        _add_cells(digest, plain[column.name])
    if isinstance(table, BinaryTable):
        for feature in table.features:
            digest.update(_line("feature", feature.to_dict()))
        for part in (table.matrix.indptr, table.matrix.indices):
            digest.update(part.astype("<i8").tobytes())
    digest.update(_line("missing", list(plain.schema.missing)))
    return digest.hexdigest()


def _described(column: Column) -> dict[str, Any]:
    domain, own = column.domain, column.missing
    return {
        "name": column.name,
        "role": column.role,
        "kind": column.kind,
        "domain": None if domain is None else [str(value) for value in domain],
        "missing": None if own is None else list(own),
        "hierarchy": _file_digest(column.hierarchy) if column.hierarchy else None,
    }


def _add_cells(digest: Any, column: CodedColumn) -> None:
    for value in column.values.to_pylist():
        text = repr(value).encode()
        digest.update(len(text).to_bytes(8, "little") + text)
    digest.update(_line("rows", len(column.codes)))
    digest.update(column.codes.astype("<i4").tobytes())


def _line(what: str, content: Any) -> bytes:
    return json.dumps([what, content], sort_keys=True, default=str).encode() + b"\n"


def _file_digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except (OSError, ValueError):
        return "unreadable"


@dataclass(frozen=True)
class RunFolder:
    """A folder of results.

    Parameters
    ----------
    path : Path
        Made when the first result is written. Other files in it are left alone.
    fingerprint : str
        Of the table, see :func:`table_fingerprint`.
    measuring : Measuring
    """

    path: Path
    fingerprint: str
    measuring: Measuring

    def key(self, point: Point) -> str:
        """SHA-256 over all that a result depends on: data, mechanism, parameters, measuring and versions."""
        parameters = {name: _with_contents(name, value) for name, value in point.parameters.items()}
        depends_on = {
            "result": RESULT_VERSION,
            "table": self.fingerprint,
            "mechanism": point.mechanism,
            "parameters": parameters,
            "measuring": self.measuring.to_dict(),
            "versions": tool_versions(),
        }
        return hashlib.sha256(_line("point", depends_on)).hexdigest()

    def path_of(self, point: Point) -> Path:
        """File of a point's result."""
        return self.path / f"{point.mechanism}-{self.key(point)[:16]}.json"

    def prepare(self) -> None:
        """Make the folder, or refuse what cannot be one."""
        if self.path.exists() and not self.path.is_dir():
            problem = "is a file, not a folder"
            raise OutputError(problem, path=self.path, hint="name another folder", remedy=("run_folder",))
        with explained_writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)

    def load(self, point: Point) -> dict[str, Any] | None:
        """Read the result of a point; ``None`` if there is none, or the file is not one of ours or was changed."""
        try:
            found = json.loads(self.path_of(point).read_bytes(), parse_constant=_no_number)
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(found, dict) or found.pop("key", None) != self.key(point):
            return None
        found |= {"mechanism": point.mechanism, "parameters": dict(point.parameters)}
        return found if _is_whole(found, self.measuring) else None

    @property
    def scores(self) -> ScoresInFolder:
        """Scores of attackers with the original, which all points share."""
        return ScoresInFolder(self.path)

    def is_finished(self, point: Point, timeout: float | None) -> bool:
        """Whether a point need not be tried again: it is done, cannot be met, or needs more time than there is."""
        found = self.load(point)
        if found is None or found["status"] == Status.FAILED:
            return False
        if found["status"] != Status.TIMED_OUT:
            return True
        return timeout is not None and found["timeout"] >= timeout

    def save(self, point: Point, result: Mapping[str, Any]) -> None:
        """Write a result, whole or not at all."""
        content = json.dumps({"key": self.key(point), **result}, indent=1, allow_nan=False)
        write_atomically(self.path_of(point), content.encode() + b"\n", force=True)


@dataclass(frozen=True)
class ScoresInFolder:
    """Scores of attackers with the original, one file each; see :mod:`sfumato.attack.kept_scores`."""

    path: Path

    def load(self, key: str) -> Any:
        """Read what was kept, or ``None`` if there is nothing, or the file is not one of ours or was changed."""
        found = _read_entries(self._path_of(key))
        digest = found.pop("sha256", None)
        return found if found.get("key") == self._whole(key) and digest == _entries_digest(found) else None

    def save(self, key: str, entry: Mapping[str, Any]) -> None:
        """Write an entry, whole or not at all."""
        kept = {"key": self._whole(key), **entry}
        content = json.dumps(kept | {"sha256": _entries_digest(kept)}, indent=1, allow_nan=False)
        write_atomically(self._path_of(key), content.encode() + b"\n", force=True)

    def clear(self) -> None:
        """Remove all entries; a file of another kind stays, whatever its name is."""
        with explained_writing(self.path):
            for path in self.path.glob(f"*{_SCORES}"):
                if _is_named_by_key(path):
                    path.unlink(missing_ok=True)

    def _path_of(self, key: str) -> Path:
        return self.path / f"{self._whole(key)[:_DIGITS]}{_SCORES}"

    @staticmethod
    def _whole(key: str) -> str:
        return hashlib.sha256(_line(key, {"result": RESULT_VERSION, "versions": tool_versions()})).hexdigest()


def _read_entries(path: Path) -> dict[str, Any]:
    """Read a file of JSON; empty where it is none."""
    try:
        found = json.loads(path.read_bytes(), parse_constant=_no_number)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _entries_digest(entries: Mapping[str, Any]) -> str:
    return hashlib.sha256(_line("entries", entries)).hexdigest()


def _is_named_by_key(path: Path) -> bool:
    name, key = path.name.removesuffix(_SCORES), _read_entries(path).get("key")
    is_digits = len(name) == _DIGITS and set(name) <= set("0123456789abcdef")
    return is_digits and isinstance(key, str) and key.startswith(name)


def _with_contents(name: str, value: Any) -> Any:
    """Hierarchy files by their contents, everything else as it is."""
    if name == "hierarchies" and isinstance(value, Mapping):
        return {key: _file_digest(str(file)) for key, file in value.items()}
    return value


def _no_number(text: str) -> None:
    raise ValueError(text)


def _is_whole(found: Mapping[str, Any], measuring: Measuring) -> bool:
    """Whether all that a comparison reads of a result is there and of its type."""
    if not all(name in found and _is_of(found[name], types) for name, types in _FIELDS.items()):
        return False
    if found["status"] not in set(Status) or not all(map(_is_guarantee, found["guarantees"])):
        return False
    if found["status"] == Status.TIMED_OUT and not _is_of(found.get("timeout"), _NUMBER):
        return False
    if found["status"] == Status.DONE and any(found[name] is None for name in _IF_DONE):
        return False
    return _has_headline(found["risk"]) and _has_scores(found["utility"], measuring.classifiers)


def _is_of(value: Any, types: tuple[type, ...]) -> bool:
    is_finite = not isinstance(value, float) or math.isfinite(value)
    return isinstance(value, types) and not isinstance(value, bool) and is_finite


def _is_guarantee(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("kind"), str)
        and isinstance(entry.get("is_partial"), bool)
        and is_readable(entry)
    )


def _has_headline(risk: Mapping[str, Any] | None) -> bool:
    if risk is None:
        return True
    headline = risk.get("headline")
    return isinstance(headline, dict) and _is_of(headline.get("marketer", ""), (*_NUMBER, NoneType))


def _has_scores(utility: Mapping[str, Any] | None, classifiers: Sequence[str]) -> bool:
    if utility is None:
        return True
    found = utility.get("classifiers")
    if not isinstance(found, dict) or set(found) != set(classifiers):
        return False
    return all(isinstance(scores, dict) and _has_means(scores) for scores in found.values())


def _has_means(scores: Mapping[str, Any]) -> bool:
    means = [scores.get(measure, "") for measure in ("auc", "accuracy")]
    return all(one is None or (isinstance(one, dict) and _is_of(one.get("mean"), _NUMBER)) for one in means)
