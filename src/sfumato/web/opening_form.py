"""The form of the step Open: which file is meant, and how it is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.schema import PROJECT_NAME
from sfumato.table.foreign import refuse_address
from sfumato.web.confinement import checked_path
from sfumato.web.jobs import TaskError

FORMATS = ("csv", "tsv", "parquet", "excel", "arff", "libsvm")
_MOST_DIGITS = 9
FIELDS = (
    "path",
    "project",
    "format",
    "delimiter",
    "encoding",
    "sheet",
    "skip_rows",
    "missing",
    "no_header",
    "complete_rows_only",
)


def paths_of(fields: Mapping[str, str], root: Path | None = None) -> tuple[Path | None, Path]:
    """Find data and project file; a project file may be named in the place of the data.

    Both must be in the folder that the page may use, if there is one.
    """
    if not fields["path"]:
        message = "no file was named"
        raise TaskError(message, hint="give the path of a data file or of a project file on this machine")
    try:
        refuse_address(fields["path"])
        checked_path(root, fields["path"])
        checked_path(root, fields["project"])
    except InputError as error:
        raise TaskError.of(error) from None
    path = _path(fields["path"])
    if path.suffix == ".toml" and not fields["project"]:
        return None, path
    return path, _path(fields["project"]) if fields["project"] else path.parent / PROJECT_NAME


def _path(typed: str) -> Path:
    try:
        path = Path(typed).expanduser().absolute()
    except RuntimeError:  # the home of nobody
        path = Path(typed)
    if "\0" in typed or not path.is_absolute():
        message = "this is not a path"
        raise TaskError(message, hint="give the path of a file on this machine")
    return path


def reading_of(fields: Mapping[str, str]) -> dict[str, Any]:
    """Collect the reading options that were given."""
    options: dict[str, Any] = {name: fields[name] for name in ("format", "encoding", "sheet") if fields[name]}
    if fields["skip_rows"]:
        if not fields["skip_rows"].isdecimal() or len(fields["skip_rows"]) > _MOST_DIGITS:
            message = "the rows above the header must be a whole number"
            raise TaskError(message, hint="write 1 if one line stands above it", field="skip_rows")
        options["skip_rows"] = int(fields["skip_rows"])
    if fields["delimiter"]:
        options["delimiter"] = {"\\t": "\t", "tab": "\t", "space": " "}.get(fields["delimiter"], fields["delimiter"])
    if fields["missing"]:
        options["missing"] = ["", *(text.strip() for text in fields["missing"].split(","))]
    if fields["no_header"]:
        options["header"] = False
    if fields["complete_rows_only"]:
        options["complete_rows_only"] = True
    return options
