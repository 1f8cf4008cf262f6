"""Tasks of the step Open: read a table, describe it in its project file, and look at its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import InputError, InvalidParameterError
from sfumato.manifest import AnyTable
from sfumato.project.describe import DEMO_DATA, describe_to_project, write_demo
from sfumato.project.edit import ProjectChanges, doubts_in, edit_project
from sfumato.project.file import Project, load_project
from sfumato.schema import DEFAULT_MISSING_TOKENS, PROJECT_NAME
from sfumato.table.binary import BinaryTable
from sfumato.table.io.bytes import open_stored
from sfumato.table.io.read import ReadOptions
from sfumato.table.roles import ColumnGuess
from sfumato.table.understanding import understand
from sfumato.web.inputs import DATA, Input, note
from sfumato.web.project_files import DEFAULT_OUTPUT, beside, is_same_file
from sfumato.web.tasks.facts import facts_beside

if TYPE_CHECKING:
    from sfumato.web.jobs.process import Tell

_N_STEPS = 3


def open_path(
    folder: Path,
    tell: Tell,
    *,
    project: str,
    data: str | None = None,
    reading: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Open a data file with its project file, which is made as by ``sfumato init`` where there is none.

    One that is named after the data has an output of that name too.

    Parameters
    ----------
    project : str
        Project file.
    data : str or None
        Data file; None takes the one that the project file names.
    reading : mapping or None
        ``format``, ``delimiter``, ``encoding``, ``header``, ``sheet``, ``skip_rows``, ``missing`` and
        ``complete_rows_only``, as far as they are given. They go into a new project file; one that exists says them
        already.

    Raises
    ------
    InputError
        If the file cannot be read as a table, or the project file describes another one.
    """
    path = Path(project)
    if data is None or path.exists():
        return _open_project(tell, load_project(path), data, reading)
    with open_stored(data):  # says what is wrong with the path before the project file's folder is looked at
        tell.progress(0, _N_STEPS, f"reading {Path(data).name}")
    noted = note(DATA, Path(data))
    described = describe_to_project(data, path, options=_options(reading or {}))
    if (output := beside(path, DEFAULT_OUTPUT)) != DEFAULT_OUTPUT:
        edit_project(path, ProjectChanges(output=output))
    prepared = _prepared(load_project(path), described.table)  # dates of birth become ages
    return _opened(tell, path, noted, described.table, described.guesses, prepared)


def open_demo(folder: Path, tell: Tell, *, target: str) -> dict[str, Any]:
    """Write the built-in table and its project file into a folder, as ``sfumato demo`` does, and open them."""
    tell.progress(0, _N_STEPS, "making the demo table")
    described = write_demo(Path(target), force=True)
    noted = note(DATA, Path(target) / DEMO_DATA)
    return _opened(tell, Path(target) / PROJECT_NAME, noted, described.table, described.guesses)


def _open_project(tell: Tell, project: Project, data: str | None, reading: Mapping[str, Any] | None) -> dict[str, Any]:
    if project.data_address is not None:
        problem = "describes a table on a database server, and the page opens files only"
        raise InputError(problem, path=project.path, hint="use the commands, such as sfumato release")
    if data is not None and not is_same_file(Path(data), project.data_path):
        problem = "describes another data file"
        hint = "name another project file, which is then made for this data"
        raise InputError(problem, path=project.path, hint=hint)
    if reading:
        hint = f"change them in {project.path.name}, or name another project file"
        raise InvalidParameterError(
            "reading options", "as the project file says them already", allowed="left alone", hint=hint
        )
    tell.progress(0, _N_STEPS, f"reading {project.data_path.name}")
    noted = note(DATA, project.data_path)
    table = project.read_unprepared()
    return _opened(tell, project.path, noted, table, understand(table).guesses, _prepared(project, table))


def _prepared(project: Project, table: AnyTable) -> AnyTable | None:
    """Prepare the columns; where that is not possible the table is opened all the same, so that it can be mended."""
    try:
        return project.prepared(table)
    except InputError:  # the step Goal, and the commands, say what it is
        return None


def _options(reading: Mapping[str, Any]) -> ReadOptions:
    missing = tuple(reading.get("missing", DEFAULT_MISSING_TOKENS))
    return ReadOptions(**{**reading, "missing": missing})


def _opened(
    tell: Tell,
    project: Path,
    data: Input,
    table: AnyTable,
    guesses: Sequence[ColumnGuess],
    prepared: AnyTable | None = None,
) -> dict[str, Any]:
    """Give what the page shows of an open table, and its data file as noted before it was read."""
    tell.progress(1, _N_STEPS, f"looking at {len(guesses):,} columns")
    columns = facts_beside(table, table if prepared is None else prepared, guesses)
    unconfirmed = doubts_in(project)  # a format that the project file says is no doubt to who reads the data by it
    for facts in columns:
        facts["doubt"] = facts["doubt"] or unconfirmed.get(facts["name"], "")
    tell.progress(_N_STEPS, _N_STEPS, "done")
    tell.log(f"{table.n_rows:,} rows, {len(columns):,} columns")
    return {
        "project": str(project.absolute()),
        "data_name": Path(data["path"]).name,
        "inputs": [data],
        "n_rows": table.n_rows,
        "n_columns": len(columns),
        "is_binary": isinstance(table, BinaryTable),
        "columns": columns,
    }
