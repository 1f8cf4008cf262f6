"""One column: its values, its role, kind and format, what is done to it first, and its hierarchy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sfumato.errors import SfumatoError
from sfumato.schema import Kind, Role
from sfumato.web.describing import ColumnNow, Described, change_and_read, described, give_role
from sfumato.web.jobs.jobs import SECONDS_TO_READ, TaskError
from sfumato.web.rendering import UNPROCESSABLE, is_htmx, page_of, page_response, part_response, redirect
from sfumato.web.uploads import receive_upload
from sfumato.web.views.column_forms import (
    LEFT_ALONE,
    METHODS,
    WAYS,
    doubt_in_words,
    format_choices,
    method_named,
    typed_preparation,
    way_named,
    why_not,
    written_preparation,
)

_UPLOAD_LIMIT = 50_000_000


async def show_column(request: Request) -> Response:
    """Show a column with the hierarchy that it has now."""
    job = page_of(request).job("open")
    if job is None or job.status != "done":
        return redirect("/columns")
    now, column = await _found(request)
    return await _answer(request, now, column)


async def change_column(request: Request) -> Response:
    """Give a column another role, another kind, or both."""
    column = (await _found(request))[1]
    page = page_of(request)
    async with request.form() as form:
        role, kind = str(form.get("role", column.role)), str(form.get("kind", column.kind))
    field = "role"
    try:
        if role not in list(Role):  # before the kind is written
            raise TaskError("choose one of the roles in the list")
        field = "kind"
        if kind != column.kind and not column.is_feature:
            await change_and_read(page, "columns.set_kind", column, kind=kind)
        field = "role"
        if role != column.role and not column.is_feature:
            await give_role(page, role, [(await _found(request))[1]])
    except TaskError as exc:
        return await _refused(request, exc, field=field)
    return redirect(f"/columns/{column.number}")


async def change_format(request: Request) -> Response:
    """Say how the values of a column are written: one of the list, or one that was typed."""
    column, form = await _of_no_feature(request)
    typed, chosen = form.get("own_format", "").strip(), form.get("format", "").strip()
    wanted = typed or chosen or column.format
    try:
        if wanted:
            await change_and_read(page_of(request), "columns.set_format", column, format=wanted)
    except TaskError as exc:
        field = "own_format" if typed else "format"
        return await _refused(request, exc, field=field, form={"own_format": typed})
    return redirect(f"/columns/{column.number}#reading")


async def change_preparation(request: Request) -> Response:
    """Say what is done to a column before any mechanism sees it."""
    column, form = await _of_no_feature(request)
    way = way_named(form.get("way", ""))
    if way is None and form.get("way") != LEFT_ALONE.name:
        raise HTTPException(422)
    written = {} if way is None else written_preparation(way, form)
    try:
        if way is not None and not written:
            raise TaskError("nothing was filled in", hint="fill in at least one field, or leave the column as it is")
        told = {"kind": column.kind, "written": written}
        await change_and_read(page_of(request), "columns.set_preparation", column, **told)
    except TaskError as exc:
        fields = {} if way is None else {one.name: way.field_id(one) for one in way.fields}
        return await _refused(request, exc, field=fields.get(exc.field, "way"), form=form)
    return redirect(f"/columns/{column.number}#preparing")


async def confirm_column(request: Request) -> Response:
    """Say that a column that looks as if it named people may be released, or take that back."""
    column, form = await _of_no_feature(request)
    page, is_confirmed = page_of(request), form.get("confirmed") == "yes"
    told: dict[str, Any] = {"name": column.name, "kind": column.kind, "confirmed": is_confirmed}
    try:
        await page.jobs.call("columns.confirm", project=str(page.state.project), **told)
    except TaskError as exc:
        return await _refused(request, exc, field="confirmed")
    return redirect(f"/columns/{column.number}")


async def _of_no_feature(request: Request) -> tuple[ColumnNow, dict[str, str]]:
    """Give the column that a form is about, which can be changed, and the texts in the form."""
    column = (await _found(request))[1]
    if column.is_feature:
        raise HTTPException(404)
    async with request.form() as form:
        return column, {name: str(value) for name, value in form.items()}


async def _refused(request: Request, problem: TaskError, **context: Any) -> Response:
    """Show the column as it is, with what is wrong in a form."""
    return await _answer(request, *await _found(request), problem=problem, **context)


async def change_hierarchy(request: Request) -> Response:
    """Preview, build, check, use or remove a hierarchy; the answer is the part of the page that shows it."""
    now, column = await _found(request)
    if now.is_binary:
        raise HTTPException(404)
    try:
        if request.headers.get("content-type", "").startswith("multipart/"):
            context = await _receive(request, column)
        else:
            async with request.form() as form:
                context = await _act(request, now, column, {name: str(value) for name, value in form.items()})
    except (TaskError, SfumatoError) as exc:
        context = {
            "problem": exc if isinstance(exc, TaskError) else TaskError.of(exc, page_of(request).folder),
            "field": "file",
        }
    return await _answer(request, *await _found(request), **context)


async def _act(request: Request, now: Described, column: ColumnNow, form: Mapping[str, str]) -> dict[str, Any]:
    act = form.get("act", "")
    method = method_named(form.get("method", ""))
    if act == "remove":
        await _call(request, "remove", column)
        return {"note": "Removed from the project file. The hierarchy file itself was not deleted."}
    if act == "check":
        return {"checked": await _call(request, "check", column), "checked_what": "The hierarchy in use"}
    if act not in ("preview", "build") or method is None:
        raise HTTPException(422)
    settings = method.settings(form)
    if method.name == "auto" and now.target and now.target != column.name:
        settings["target"] = now.target
    try:
        made = await _call(request, "build", column, method=method.name, settings=settings, use=act == "build")
    except TaskError as exc:
        field = exc.field.removeprefix("n_")
        fields = {one.name: method.field_id(one) for one in method.fields}
        return {"problem": exc, "field": fields.get(field, "method"), "form": form}
    if act == "build":
        return {"note": f"Built and entered in the project file as {made['file']}.", "form": form}
    return {"previewed": made, "form": form}


async def _receive(request: Request, column: ColumnNow) -> dict[str, Any]:
    """Take a hierarchy file from the browser; it is removed after the check, and kept beside the project if used."""
    page = page_of(request)
    uploaded = await receive_upload(request, page.folder / "uploads", min(_UPLOAD_LIMIT, page.settings.upload_limit))
    is_used = uploaded.fields.get("act") == "use"
    try:
        checked = await _call(request, "check", column, file=str(uploaded.path), use=is_used)
    finally:
        uploaded.path.unlink(missing_ok=True)
    if is_used and not checked["faults"]:
        return {"note": f"Checked and entered in the project file as {checked['file']}."}
    return {"checked": checked, "checked_what": uploaded.name, "field": "file"}


async def _call(request: Request, task: str, column: ColumnNow, **arguments: Any) -> dict[str, Any]:
    page = page_of(request)
    project = str(page.state.project)
    return await page.jobs.call(
        f"hierarchies.{task}", seconds=SECONDS_TO_READ, project=project, name=column.name, **arguments
    )


async def _found(request: Request) -> tuple[Described, ColumnNow]:
    now = await described(page_of(request))
    column = now.column(request.path_params["number"])
    if column is None:
        raise HTTPException(404)
    return now, column


async def _answer(request: Request, now: Described, column: ColumnNow, **context: Any) -> Response:
    """Render the column, or for htmx its hierarchy alone, with what an action has given."""
    hierarchy, hierarchy_problem = None, None
    if column.hierarchy is not None:
        try:
            hierarchy = await _call(request, "show", column)
        except TaskError as exc:
            hierarchy_problem = exc
    is_wrong = context.get("problem") is not None or bool((context.get("checked") or {}).get("faults"))
    known: dict[str, Any] = {
        "now": now,
        "column": column,
        "roles": tuple(Role),
        "kinds": tuple(Kind),
        "methods": METHODS,
        "formats": format_choices(column),
        "doubt": doubt_in_words(column),
        "left_alone": LEFT_ALONE,
        "ways": [] if column.is_feature else [(way, why_not(column, way)) for way in WAYS],
        "preparing": typed_preparation(column.preparation) if column.preparation else {"way": LEFT_ALONE.name},
        "hierarchy": hierarchy,
        "hierarchy_problem": hierarchy_problem,
        "problem": None,
        "field": "",
        "form": {},
        "note": "",
        "previewed": None,
        "checked": None,
        "checked_what": "",
    }
    if "way" in context.get("form", {}):
        known["preparing"] = context["form"]
    status = UNPROCESSABLE if is_wrong else 200
    if is_htmx(request):
        return part_response(request, "hierarchy.html", status=status, **known | context)
    return page_response(request, "column.html", step="columns", status=status, **known | context)


ROUTES = [
    Route("/columns/{number:int}", show_column),
    Route("/columns/{number:int}", change_column, methods=["POST"]),
    Route("/columns/{number:int}/format", change_format, methods=["POST"]),
    Route("/columns/{number:int}/preparation", change_preparation, methods=["POST"]),
    Route("/columns/{number:int}/confirmed", confirm_column, methods=["POST"]),
    Route("/columns/{number:int}/hierarchy", change_hierarchy, methods=["POST"]),
]
