"""Release: the files that were made, how they are made again, and where they are saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from sfumato.project.keys import KEY_NAME
from sfumato.web.jobs.jobs import TaskError
from sfumato.web.made_release import PURPOSE, MadeRelease, made_release, missing_response
from sfumato.web.project_files import OUTPUT_FORMATS, with_suffix
from sfumato.web.rendering import UNPROCESSABLE, page_of, page_response, redirect
from sfumato.web.state import Page

_TITLES = {
    "table": "Released table",
    "manifest": "Manifest: what was done, promised and found. Publish it with the table",
    "report": "Report for the data holder, to read and to file",
    "project": "Project file with all settings",
    "data": "The original, as opened: do not pass it on",
    "key": "Secret of this project, by which the manifest commits to the original: keep it, and give it to nobody",
}
_MEDIA_TYPES = {
    ".csv": "text/csv; charset=utf-8",
    ".tsv": "text/tab-separated-values; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
}
_SECONDS_TO_SAVE = 600.0
_SAVED = "saved_release"
_SAVING = "saving"
_NO_CONTENT = 204


async def show(request: Request) -> Response:
    """Show what was made."""
    made = made_release(page_of(request))
    if made is None:
        return missing_response(request, step="release", title="Release")
    return _page(request, made)


async def measuring(request: Request) -> Response:
    """Let a page that waits for figures load itself again as soon as there are some, or none will come."""
    made = made_release(page_of(request))
    if made is not None and made.measuring == request.query_params.getlist("what"):
        return Response(status_code=_NO_CONTENT)
    return Response(headers={"HX-Refresh": "true"})


async def download(request: Request) -> Response:
    """Send one of the files, as stored on disk."""
    page = page_of(request)
    made = made_release(page)
    path = _downloads(page, made).get(request.path_params["what"]) if made is not None else None
    if path is None or not path.is_file():
        raise HTTPException(404)
    media_type = _MEDIA_TYPES.get(path.suffix, "application/octet-stream")
    return FileResponse(path, media_type=media_type, filename=path.name, content_disposition_type="attachment")


async def save(request: Request) -> Response:
    """Write the files next to the project file."""
    page, form = page_of(request), await request.form()
    # While risk and utility are being measured the files are whole: only another tab that saves them stands in the way.
    with page.only_one(_SAVING if page.is_running(PURPOSE) else PURPOSE) as is_first:
        made = made_release(page)
        if made is None or page.state.get("is_private"):
            raise HTTPException(404)
        try:
            if not is_first:
                raise TaskError("it is being saved or made again in another tab", hint="try again in a moment")
            saved = await page.jobs.call(
                "release.save",
                seconds=_SECONDS_TO_SAVE,
                made_in=str(made.job.folder),
                files={what: made.result["files"][what]["name"] for what in ("table", "manifest", "report")},
                target=made.result["target"],
                data=str(made.input("data")),
                replace=form.get("replace") == "yes",
            )
        except TaskError as error:
            return _page(request, made, status=UNPROCESSABLE, problem=error, field="save")
        page.state.update(**{_SAVED: {"job": made.job.id, **saved}})
    return redirect("/release#save")


async def change_format(request: Request) -> Response:
    """Let the project file name an output of another format, and make the release again."""
    page, form = page_of(request), await request.form()
    suffix = str(form.get("format"))
    with page.only_one(PURPOSE) as is_first:
        made, project = made_release(page), page.state.project
        if not is_first:
            return redirect("/run")
        if made is None or project is None:
            raise HTTPException(404)
        try:
            if suffix not in OUTPUT_FORMATS:
                raise TaskError("choose one of the formats in the list")
            output = with_suffix(made.result["output"], suffix)
            await page.jobs.call("release.set_output", project=str(project), output=output)
        except TaskError as error:
            return _page(request, made, status=UNPROCESSABLE, problem=error, field="format")
        title = f"Release as {OUTPUT_FORMATS[suffix]}"
        job = page.jobs.start("release.make", title=title, project=str(project), quick=made.result["quick"])
        page.started(PURPOSE, job)
    return redirect("/run")


def _other_formats(output: str) -> dict[str, str]:
    return {suffix: title for suffix, title in OUTPUT_FORMATS.items() if with_suffix(output, suffix) != output}


def _downloads(page: Page, made: MadeRelease) -> dict[str, Path]:
    """Files that may be downloaded; project file, key and data only where they stand in the private folder alone."""
    is_private = bool(page.state.get("is_private"))
    names = {what: file["name"] for what, file in made.result["files"].items() if what != "project" or is_private}
    found = {what: made.job.folder / name for what, name in names.items()}
    if not is_private:
        return found
    key = made.input("project file").parent / KEY_NAME
    return found | {"data": made.input("data")} | ({"key": key} if key.is_file() else {})


def _page(
    request: Request, made: MadeRelease, *, status: int = 200, problem: TaskError | None = None, field: str = ""
) -> Response:
    page, result = page_of(request), made.result
    is_private = bool(page.state.get("is_private"))
    saved = page.state.get(_SAVED) or {}
    files = [_listed(what, path, result["files"].get(what, {})) for what, path in _downloads(page, made).items()]
    return page_response(
        request,
        "release.html",
        step="release",
        status=status,
        summary=made.summary,
        lacking=made.lacking,
        measuring=made.measuring,
        files=files,
        pictures=made.pictures("done"),
        changed=made.changed_since(page.state.project),
        **{name: result[name] for name in ("command", "report_command", "python", "notes", "quick")},
        is_private=is_private,
        original_name=made.input("data").name,
        folder=str(made.input("project file").parent),
        target=Path(result["target"]),
        saved=saved if saved.get("job") == made.job.id else None,
        formats=_other_formats(result["output"]),
        problem=problem,
        field=field,
    )


def _listed(what: str, path: Path, facts: dict[str, Any]) -> dict[str, Any]:
    size = facts["size"] if facts else path.stat().st_size if path.is_file() else 0
    return {"what": what, "title": _TITLES[what], "name": path.name, "size": size, "sha256": facts.get("sha256", "")}


ROUTES = [
    Route("/release", show),
    Route("/release/measuring", measuring),
    Route("/release/files/{what}", download),
    Route("/release/save", save, methods=["POST"]),
    Route("/release/format", change_format, methods=["POST"]),
]
