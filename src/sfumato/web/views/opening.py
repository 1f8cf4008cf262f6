"""Step Open: a path on this machine, an upload or the demo table."""

from __future__ import annotations

import asyncio
import secrets
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sfumato.errors import InputError, SfumatoError
from sfumato.schema import PROJECT_NAME
from sfumato.table.io.foreign import refuse_address
from sfumato.web.confinement import checked_path
from sfumato.web.form_fields import Field
from sfumato.web.jobs.jobs import Job, TaskError
from sfumato.web.jobs.process import UPLOADS
from sfumato.web.jobs.running import make_private_folder
from sfumato.web.project_files import project_file_for
from sfumato.web.rendering import is_htmx, page_of, page_response, part_response, redirect
from sfumato.web.state import Page
from sfumato.web.uploads import Uploaded, UploadTooLarge, receive_upload

# The form of the step Open: which file is meant, and how it is read.


_FORMATS = (
    *("csv", "tsv", "parquet", "excel", "arff", "libsvm", "jsonl"),
    *("sav", "zsav", "por", "dta", "sas7bdat", "xpt"),
)
_MOST_DIGITS = 9
_PROJECT = Field(
    "project",
    "Project file",
    "Left empty: sfumato.toml next to the data, or NAME.sfumato.toml where that is about another table. It is made if "
    "there is none.",
    placeholder=PROJECT_NAME,
)
READING = (
    Field("format", "Format", choices=(("", "by the file's name"), *((name, name) for name in _FORMATS))),
    Field("delimiter", "Delimiter of a text file", "Left empty: detected. Write tab for a tab character."),
    Field("encoding", "Encoding of a text file", "Left empty: UTF-8."),
    Field("sheet", "Sheet of an Excel file", "Required if several sheets hold data."),
    Field(
        "skip_rows",
        "Rows above the header",
        "For example a title. This many lines of a text file, or rows of a sheet, are skipped.",
    ),
    Field(
        "missing",
        "Texts that mean missing",
        "Separated by commas. Left empty: empty cells, ?, NA, n/a, NaN, NULL, k.A., s/d and the like.",
    ),
    Field("no_header", "The first line is data; columns are then named c1, c2, …", is_check=True),
    Field("complete_rows_only", "Drop rows with missing values", is_check=True),
)
FIELDS = ("path", *(one.name for one in (_PROJECT, *READING)))

_TYPED = tuple(one.name for one in (_PROJECT, *READING) if one.is_typed)
"""Fields that are told what is wrong with them; anything else is about the file."""
_HOW = "How to read it"
_ABOUT_FIELDS = ("", "InvalidParameterError")
"""Kinds of errors that are about what was typed; others may name a column of the data, whatever it is called."""


def paths_of(fields: Mapping[str, str], root: Path | None = None) -> tuple[Path | None, Path]:
    """Find data and project file; a project file may be named in the place of the data.

    Where none is named it is that of the data, in their folder. Both must be in the folder that the page may use, if
    there is one.
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
    return path, _path(fields["project"]) if fields["project"] else _project_of(path, path.parent, root)


def _project_of(data: Path, folder: Path, root: Path | None) -> Path:
    try:
        return project_file_for(data, folder, root)
    except InputError as error:
        raise TaskError.of(error) from None
    except OSError:  # a folder that nobody may look into: reading the data says so
        return folder / PROJECT_NAME


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
            raise TaskError(message, hint="write 1 if there is one line above it", field="skip_rows")
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


_KEPT = ("project", "data_name", "is_private", "jobs", "short_list", "weights", "asked", "opening")
_TOO_LARGE = 413


async def show_start(request: Request) -> Response:
    """Go to the furthest step that there is something to see on."""
    page = page_of(request)
    opened, release, comparison = page.job("open"), page.job("release"), page.job("compare")
    if opened is None or opened.status in ("failed", "cancelled"):
        return redirect("/open")
    if page.is_running("release", "compare"):
        return redirect("/run")
    if release is not None and release.status == "done":
        return redirect("/release")
    if comparison is not None and comparison.status == "done":
        return redirect("/explore")
    return redirect("/columns")


async def show_open(request: Request) -> Response:
    """Show the three ways to open a table, and what was wrong with the last try."""
    return _open_page(request)


def _open_page(request: Request, status: int = 200) -> Response:
    page = page_of(request)
    job = page.job("open")
    last: Mapping[str, Any] = page.state.get("opening") or {}
    problem = TaskError(**last["problem"]) if last.get("problem") else None
    if problem is None and job is not None and job.status == "failed":
        problem = job.error
    how, blank = last.get("how", "path"), dict.fromkeys(FIELDS, "")
    is_told = problem is not None and problem.kind in _ABOUT_FIELDS and problem.field in _TYPED
    field = problem.field if problem is not None and is_told else "path"
    hint = problem.hint if problem is not None else ""
    fields = {way: {**blank, **(last.get("fields", {}) if way == how else {})} for way in ("path", "upload")}
    return page_response(
        request,
        "open.html",
        step="open",
        status=status,
        job=job,
        problem=problem,
        how=how,
        wrong=f"{how}-{field}" if problem else "",
        fields=fields,
        project_field=_PROJECT,
        reading=READING,
        is_open={way: _says_how(fields[way]) or (how == way and _HOW in hint) for way in fields},
        upload_limit=page.settings.upload_limit,
        former=page.state.get("former"),
    )


def _says_how(typed: Mapping[str, str]) -> bool:
    """Whether something was filled in about how a file is read."""
    return any(typed[one.name] for one in READING)


async def open_table(request: Request) -> Response:
    """Open a path or the demo table, or go back to the table that was open before."""
    page = page_of(request)
    async with request.form() as form:
        fields = {name: str(form.get(name, "")).strip() for name in FIELDS}
        how = str(form.get("how", "path"))
    try:
        if how == "back":
            await asyncio.to_thread(_go_back, page)
        elif how == "demo":
            await asyncio.to_thread(_start_demo, page)
        else:
            data, project = paths_of(fields, page.settings.root)
            start = partial(start_opening, data=data, project=project, reading=reading_of(fields), fields=fields)
            await asyncio.to_thread(start, page)
    except TaskError as error:
        return _not_opened(page, "demo" if how == "demo" else "path", fields, error)
    return redirect("/columns")


async def upload_table(request: Request) -> Response:
    """Take an upload into the private folder and open it."""
    page = page_of(request)
    folder = _new_folder(page)
    try:
        uploaded = await receive_upload(request, folder, page.settings.upload_limit)
        _check_is_data(uploaded)
        await asyncio.to_thread(_start_uploaded, page, uploaded)
    except (TaskError, SfumatoError) as error:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        answer = _not_opened(page, "upload", {}, TaskError.of(error, page.folder))
        return _open_page(request, _TOO_LARGE) if isinstance(error, UploadTooLarge) else answer
    return redirect("/columns")


async def show_progress(request: Request) -> Response:
    """Show how far reading is; when it is over the page is loaded again, or the step Open says what was wrong."""
    page = page_of(request)
    job = page.job("open")
    if not is_htmx(request):
        return redirect("/columns")
    if job is not None and not job.is_over:
        return part_response(request, "open_progress.html", job=job)
    if job is None or job.status != "done":
        return Response(headers={"HX-Redirect": "/open"})
    return Response(headers={"HX-Refresh": "true"})


async def cancel_opening(request: Request) -> Response:
    """Stop reading."""
    page = page_of(request)
    job = page.job("open")
    if job is not None:
        await asyncio.to_thread(page.jobs.cancel, job.id)
    return redirect("/open")


async def show_upload(request: Request) -> Response:
    """Lead a reload after a refused upload back to the step."""
    return redirect("/open")


def start_opening(
    page: Page,
    *,
    data: Path | None = None,
    project: Path | None = None,
    reading: Mapping[str, Any] | None = None,
    fields: Mapping[str, str] | None = None,
) -> Job:
    """Start reading a table; what was found about an earlier one is no longer shown.

    Parameters
    ----------
    data : Path or None
        Data file; None takes the one that the project file names.
    project : Path or None
        Project file; None takes that of the data in the working folder: ``sfumato.toml``, unless it is about others.
    reading : mapping or None
        Reading options, for a project file that is still to be made.
    fields : mapping or None
        What was typed, to be shown again.
    """
    if project is None and data is not None:
        project = _project_of(data, Path.cwd(), page.settings.root)
    file = (project or Path(PROJECT_NAME)).absolute()
    typed = dict(fields) if fields is not None else {"path": str(data or file), "project": str(file) if data else ""}
    return _begin(
        page,
        "opening.open_path",
        {"how": "path", "fields": typed},
        project=file,
        data_name=(data or file).name,
        is_private=False,
        arguments={"project": str(file), "data": str(data.absolute()) if data else None, "reading": reading or None},
    )


def _start_uploaded(page: Page, uploaded: Uploaded) -> Job:
    folder = uploaded.path.parent
    fields = {name: uploaded.fields.get(name, "").strip() for name in FIELDS}
    return _begin(
        page,
        "opening.open_path",
        {"how": "upload", "fields": fields},
        project=folder / PROJECT_NAME,
        data_name=uploaded.name,
        is_private=True,
        arguments={
            "project": str(folder / PROJECT_NAME),
            "data": str(uploaded.path),
            "reading": reading_of(fields) or None,
        },
    )


def _start_demo(page: Page) -> Job:
    with page.between_runs():
        folder = _new_folder(page)
        return _begin(
            page,
            "opening.open_demo",
            {"how": "demo", "fields": {}},
            project=folder / PROJECT_NAME,
            data_name="demo table",
            is_private=True,
            arguments={"target": str(folder)},
        )


def _begin(
    page: Page,
    task: str,
    opening: Mapping[str, Any],
    *,
    project: Path,
    data_name: str,
    is_private: bool,
    arguments: Mapping[str, Any],
) -> Job:
    facts = {"project": str(project), "data_name": data_name, "is_private": is_private, "opening": dict(opening)}
    with page.between_runs():
        opened = page.job("open")
        if opened is not None and opened.status == "done":
            facts["former"] = {key: page.state.get(key) for key in _KEPT}
        _leave(page, facts)
        job = page.jobs.start(task, title=f"Opening {data_name}", **arguments)
        page.started("open", job)
    return job


def _go_back(page: Page) -> None:
    with page.between_runs():
        former = page.state.get("former")
        if former:
            _leave(page, {**former, "former": None})


def _leave(page: Page, facts: Mapping[str, Any]) -> None:
    """Let another table take the place of the one that is open, or of one that is being read."""
    for job in (page.job("open"), page.job("risk")):
        if job is not None:
            page.jobs.cancel(job.id)
    page.replace_table(**facts)
    _remove_unused(page)


def _check_is_data(uploaded: Uploaded) -> None:
    if uploaded.path.suffix.lower() == ".toml":
        message = "a project file names its data by path: an upload is the data itself"
        raise TaskError(message, hint="give the path of the project file under 'A file on this machine'")


def _not_opened(page: Page, how: str, fields: Mapping[str, str], error: TaskError) -> Response:
    """Keep what was wrong, so that the step shows it however often it is loaded."""
    page.state.update(opening={"how": how, "fields": dict(fields), "problem": error.facts()})
    return redirect("/open")


def _new_folder(page: Page) -> Path:
    folder = page.folder / UPLOADS / secrets.token_hex(4)
    make_private_folder(folder)
    return folder


def _remove_unused(page: Page) -> None:
    """Remove uploads that neither the table that is being opened nor the one before it needs."""
    former = page.state.get("former") or {}
    used = {Path(found).parent for found in (page.state.get("project"), former.get("project")) if found}
    for folder in (page.folder / UPLOADS).glob("*"):
        if folder not in used:
            shutil.rmtree(folder, ignore_errors=True)


ROUTES = [
    Route("/", show_start),
    Route("/open", show_open, methods=["GET"]),
    Route("/open", open_table, methods=["POST"]),
    Route("/open/upload", show_upload, methods=["GET"]),
    Route("/open/upload", upload_table, methods=["POST"]),
    Route("/open/progress", show_progress),
    Route("/open/cancel", cancel_opening, methods=["POST"]),
]
