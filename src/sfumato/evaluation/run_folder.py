"""Run folder: one JSON file for every finished point, so that a comparison that was ended goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.atomic import explained_writing, write_atomically
from sfumato.errors import OutputError
from sfumato.evaluation.grid import Point
from sfumato.evaluation.points import Measuring, Status
from sfumato.manifest import AnyTable, tool_versions
from sfumato.schema import Column
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import CodedColumn

RESULT_VERSION = 1


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
            raise OutputError(problem, path=self.path, hint="name another folder with --run-folder")
        with explained_writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)

    def load(self, point: Point) -> dict[str, Any] | None:
        """Read the result of a point; ``None`` if there is none, or the file is not one of ours."""
        try:
            found = json.loads(self.path_of(point).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(found, dict) or found.get("key") != self.key(point):
            return None
        return {name: value for name, value in found.items() if name != "key"}

    def is_finished(self, point: Point, timeout: float | None) -> bool:
        """Whether a point need not be tried again: it is done, cannot be met, or needs more time than there is."""
        found = self.load(point)
        if found is None or found.get("status") == Status.FAILED:
            return False
        if found.get("status") != Status.TIMED_OUT:
            return True
        return timeout is not None and float(found.get("timeout") or 0) >= timeout

    def save(self, point: Point, result: Mapping[str, Any]) -> None:
        """Write a result, whole or not at all."""
        content = json.dumps({"key": self.key(point), **result}, indent=1, allow_nan=False)
        write_atomically(self.path_of(point), content.encode() + b"\n", force=True)


def _with_contents(name: str, value: Any) -> Any:
    """Hierarchy files by their contents, everything else as it is."""
    if name == "hierarchies" and isinstance(value, Mapping):
        return {key: _file_digest(str(file)) for key, file in value.items()}
    return value
