"""Make a release with everything that the page shows of it, and save it beside the project file."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.atomic import (
    PendingFile,
    alone_in,
    appear_together,
    check_writable,
    explained_writing,
    write_atomically,
)
from sfumato.contract import Release
from sfumato.displays.files import rendered
from sfumato.errors import OutputError
from sfumato.manifest import AnyTable, Manifest
from sfumato.mechanisms import find_mechanism
from sfumato.project import DEFAULT_MECHANISM, Project, parse_toml, project_bytes, project_of
from sfumato.project_edit import ProjectChanges, edit_project
from sfumato.project_release import release_project
from sfumato.publishing import Published, check_targets, manifest_path_for, publish
from sfumato.reaudit import audit_published, read_manifest, read_released
from sfumato.report.pictures import displays_of
from sfumato.report.render import report_html
from sfumato.report.reproduction import Asked, project_commands
from sfumato.report.summarize import summarize
from sfumato.table.coding import Source
from sfumato.web.column_store import STORE_NAME, write_columns
from sfumato.web.inputs import DATA, HIERARCHY, PROJECT_FILE, noted
from sfumato.web.tasks.before_after import column_records, rows_beside, tables_beside

if TYPE_CHECKING:
    from sfumato.web.job_process import Tell

DEFAULT_OUTPUT = "release.csv"
REPORT_NAME = "report.html"

_ZIP_DATE = (1980, 1, 1, 0, 0, 0)
_NOISE = "The noise is drawn anew at every run and takes no seed: the files will not have the same bytes."
_TIMED = "The search had a time limit and is not known to have ended before it: another run may give other bytes."
_LIMITS = ("time", "seconds")


def make(folder: Path, tell: Tell, *, project: str, quick: bool = False) -> dict[str, Any]:
    """Release what a project file describes into the job's folder: table, manifest, report, pictures and columns.

    Parameters
    ----------
    project : str
        Path of the project file.
    quick : bool
        Whether to leave out the training of classifiers.

    Returns
    -------
    dict
        ``files`` (by what they are: ``name``, ``size``, ``sha256``), ``summary`` (of the report), ``pictures``,
        ``rows`` (which rows are shown beside each other), ``inputs`` (what it was made of, to notice changes),
        ``command`` and ``python`` (which make the same files), ``notes`` on them, ``target``, where
        ``sfumato release`` would write the table, and ``output``, the same as the project file has it.
    """
    inputs = noted(project, PROJECT_FILE, DATA, HIERARCHY)
    raw = project_bytes(Path(project))
    described = project_of(Path(project), raw, parse_toml(Path(project), raw))
    target = described.output or described.path.parent / DEFAULT_OUTPUT
    check_targets(target, manifest_path_for(target), Source(str(described.data_path), ""), force=True)
    kept = _keep_project(described, raw, folder)
    published, original = _published(described, folder / target.name, tell)
    release, summary = _measured(published, original, described, quick=quick, tell=tell)
    write_atomically(folder / REPORT_NAME, report_html(summary, release.manifest).encode())
    _begin(tell, "drawing pictures and reading both tables beside each other")
    pictures = _draw(summary, release.manifest, folder)
    rows = _write_columns(original, release, summary, folder)
    names = {"table": target.name, "manifest": published.manifest_path.name, "report": REPORT_NAME, "project": kept}
    output = _as_written(target, described.path.parent)
    return {
        "files": {what: _file(folder / name) for what, name in names.items()},
        "summary": summary,
        "pictures": pictures,
        "rows": rows,
        "inputs": inputs,
        "target": str(target.absolute()),
        "output": output,
        "quick": quick,
        **_again(described, output, release.manifest, quick=quick),
    }


def save(
    folder: Path, tell: Tell, *, made_in: str, files: Mapping[str, str], target: str, data: str, replace: bool = False
) -> dict[str, Any]:
    """Write table, manifest and report of a release where the project file says, byte for byte as they were made.

    Parameters
    ----------
    made_in : str
        Folder of the job that made them.
    files : mapping of str to str
        Names of ``table``, ``manifest`` and ``report`` there.
    target : str
        Path of the table; the others stand beside it.
    data : str
        Path of the original, which is never written to.
    replace : bool
        Whether files that exist are replaced.

    Raises
    ------
    OutputError
        If a file exists and ``replace`` is off, is the data itself, or cannot be written.
    """
    table = Path(target)
    targets = {"manifest": manifest_path_for(table), "report": table.parent / REPORT_NAME, "table": table}
    try:
        check_targets(table, targets["manifest"], Source(data, ""), force=replace)
        check_writable(targets["report"], force=replace)
    except OutputError as exc:
        raise _in_words_of_the_page(exc) from None
    with ExitStack() as all_or_none:
        pending = [all_or_none.enter_context(PendingFile(path)) for path in targets.values()]
        for what, file in zip(targets, pending, strict=True):
            with (Path(made_in) / files[what]).open("rb") as content, explained_writing(file.target):
                shutil.copyfileobj(content, file.file)
            file.complete()
        with alone_in(table.parent):
            appear_together(pending, list(targets.values()) if replace else [])
    return {"folder": str(table.parent), "names": [path.name for path in targets.values()]}


def set_output(folder: Path, tell: Tell, *, project: str, output: str) -> dict[str, Any]:
    """Let a project file name another output, and so another format."""
    edited = edit_project(Path(project), ProjectChanges(output=output))
    return {"output": str(edited.output)}


def _begin(tell: Tell, phase: str) -> None:
    """Log what is done next; how long it will take is not known."""
    tell.progress(0, 0, phase)
    tell.log(f"{phase[0].upper()}{phase[1:]}.")


def _published(project: Project, target: Path, tell: Tell) -> tuple[Published, AnyTable]:
    _begin(tell, f"releasing by {project.mechanism or DEFAULT_MECHANISM}")
    made, original = release_project(project, progress=tell.progress)
    tell.log(f"Made {made.table.n_rows:,} rows of {original.n_rows:,}.")
    _begin(tell, "writing and auditing the files")
    return publish(made, target, original=original), original


def _measured(
    published: Published, original: AnyTable, project: Project, *, quick: bool, tell: Tell
) -> tuple[Release, dict[str, Any]]:
    """Read the files back as anybody would and summarize them, so that ``sfumato report`` says the same."""
    _begin(tell, "reading the files back as a recipient would")
    manifest, _ = read_manifest(published.manifest_path)
    release = Release(read_released(published.table_path, manifest), manifest)
    # A look at the original would make it depend on the rows whether a differentially private release appears.
    beside = None if manifest.is_differentially_private else original
    audit = audit_published(published.table_path, published.manifest_path, original=beside, check_roles=True)
    audit.raise_if_failed()
    tell.log(f"The audit ends in: {audit.last_line}.")
    asked = Asked(project.path.name, dict(project.settings), project_sha256=project.sha256)
    _begin(tell, "measuring risk" if quick else "measuring utility and risk")
    return release, summarize(release, original, audit=audit, asked=asked, quick=quick, progress=tell.progress)


def _draw(summary: Mapping[str, Any], manifest: Manifest, folder: Path) -> list[dict[str, str]]:
    pictures = []
    for group, name, alt, display in displays_of(summary, manifest):
        write_atomically(folder / f"{name}.svg", rendered(display, "svg"))
        pictures.append({"name": name, "title": display.title, "alt": alt, "group": group})
    return pictures


def _write_columns(original: AnyTable, release: Release, summary: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    tables = tables_beside(original, release)
    rows = rows_beside(tables)
    changes = {str(entry["name"]): str(entry["change"]) for entry in summary["columns"]["changes"]}
    write_columns(folder / STORE_NAME, column_records(tables, rows, changes))
    return {
        "n_shown": max(rows.n_original, len(rows.released)),
        "n_original": tables.original.n_rows,
        "n_released": tables.released.n_rows,
        "is_matched": rows.is_matched,
        "suppressed": rows.suppressed,
        "note": rows.note,
    }


def _hierarchies(project: Project) -> list[Path]:
    """Hierarchy files that a project names, each once; those that are not there are for the mechanism to miss."""
    declared = project.parameters.get("hierarchies")
    files = [column.hierarchy for column in project.columns if column.hierarchy]
    files += [file for file in declared.values() if isinstance(file, str)] if isinstance(declared, Mapping) else []
    return [path for path in map(Path, dict.fromkeys(files)) if path.is_file()]


def _keep_project(project: Project, raw: bytes, folder: Path) -> str:
    """Keep the project file as it was loaded, with its hierarchy files in a zip if there are some."""
    hierarchies, beside = _hierarchies(project), project.path.parent.absolute()
    if not hierarchies:
        write_atomically(folder / project.path.name, raw)
        return project.path.name
    name = f"{project.path.stem}.zip"
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in (project.path, *hierarchies):
            whole = path.absolute()
            inside = whole.relative_to(beside) if whole.is_relative_to(beside) else Path(whole.name)
            content = raw if path == project.path else path.read_bytes()
            archive.writestr(zipfile.ZipInfo(inside.as_posix(), _ZIP_DATE), content)
    return name


def _as_written(target: Path, beside: Path) -> str:
    return str(target.relative_to(beside)) if target.is_relative_to(beside) else str(target)


def _typed(path: str) -> str:
    """Write a path so that no program takes it for an option."""
    return f"./{path}" if path.startswith("-") else path


def _again(project: Project, output: str, manifest: Manifest, *, quick: bool) -> dict[str, Any]:
    """Write the shell line and the Python lines that make the same files, and what must be known about them."""
    name = project.path.name
    table, file, report = _typed(output), _typed(name), _typed(str(Path(output).parent / REPORT_NAME))
    info = find_mechanism(str(manifest.mechanism["name"]))
    limits = [p.name for p in info.parameters if any(word in p.name for word in _LIMITS)] if info else []
    is_timed = bool(limits) and not _is_proven(manifest)
    is_noisy = (manifest.perturbation or {}).get("kind") == "synthetic"
    command, report_command = project_commands(file, table, report, quick=quick)
    return {
        "command": command,
        "report_command": report_command,
        "python": f"from sfumato import publish_project\n\npublish_project({name!r}, {output!r})\n",
        "notes": [note for note, is_so in ((_NOISE, is_noisy), (_TIMED, is_timed)) if is_so],
    }


def _is_proven(manifest: Manifest) -> bool:
    """Whether the manifest states that the search came to its end."""
    found = (stated for stated in manifest.evidence.values() if isinstance(stated, Mapping))
    return any(stated.get("is_proven_optimal") is True for stated in found)


def _file(path: Path) -> dict[str, Any]:
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return {"name": path.name, "size": path.stat().st_size, "sha256": digest}


def _in_words_of_the_page(error: OutputError) -> OutputError:
    """Say the remedy as the page offers it."""
    if "force" not in error.remedy:
        return error
    problem = error.message.removeprefix(f"{error.path}: ").removesuffix(".")
    return OutputError(problem, path=Path(error.path).name, hint="tick 'Replace files that exist' to replace it")
