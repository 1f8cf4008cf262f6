"""One column: its values, its role and kind, and its hierarchy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sfumato.errors import SfumatoError
from sfumato.schema import Kind, Role
from sfumato.web.describing import ColumnNow, Described, described, give_role
from sfumato.web.jobs.jobs import SECONDS_TO_READ, TaskError
from sfumato.web.rendering import UNPROCESSABLE, is_htmx, page_of, page_response, part_response, redirect
from sfumato.web.uploads import receive_upload

# How a hierarchy can be built, in words for people, with the fields that each way asks for.


@dataclass(frozen=True)
class MethodField:
    """One setting of a method."""

    name: str
    title: str
    hint: str = ""
    default: str = ""
    is_needed: bool = False


@dataclass(frozen=True)
class Method:
    """One way to build a hierarchy; its name is that of ``sfumato hierarchy build --method``."""

    name: str
    title: str
    why: str
    fields: tuple[MethodField, ...] = ()

    def settings(self, form: Mapping[str, object]) -> dict[str, str]:
        """Take this method's fields out of a form; empty ones are not given."""
        given = {field.name: str(form.get(self.field_id(field), "")).strip() for field in self.fields}
        return {name: text for name, text in given.items() if text}

    def field_id(self, field: MethodField) -> str:
        """Name of a field in the form, which holds the fields of all methods."""
        return f"{self.name}-{field.name}"


_MERGE = MethodField("merge", "Neighbours joined on each further level", "such as 2,2,5; empty: two, again and again")

METHODS = (
    Method(
        "auto",
        "Automatic",
        "Suits the kind: numbers at quantiles, dates by month, quarter and year, texts by the target.",
    ),
    Method(
        "width",
        "Intervals of one width",
        "For numbers that people know in round steps, such as age in tens.",
        (
            MethodField("width", "Width of the finest intervals", "such as 5", is_needed=True),
            MethodField("start", "Where an interval begins", default="0"),
            _MERGE,
        ),
    ),
    Method(
        "quantile",
        "Intervals with equally many rows",
        "For numbers that are spread unevenly.",
        (MethodField("intervals", "Number of the finest intervals", default="16"), _MERGE),
    ),
    Method(
        "cuts",
        "Intervals at your own cuts",
        "For borders that mean something, such as 18 and 65.",
        (MethodField("cuts", "Where the finest intervals begin", "such as 0,18,40,65", is_needed=True), _MERGE),
    ),
    Method(
        "mask",
        "Mask characters from the right",
        "For codes in which the first characters say most, such as postcodes.",
        (MethodField("step", "Characters masked more on each level", default="1"),),
    ),
    Method("dates", "Month, quarter, year, decade", "For dates written as 2024-02-29."),
    Method(
        "groups",
        "Groups of neighbours in an order",
        "For texts with an order, such as small, medium, large.",
        (
            MethodField("order", "All values from lowest to highest", "separated by commas", is_needed=True),
            MethodField("sizes", "Neighbours joined on each level", "such as 2,2; empty: two"),
        ),
    ),
)


def method_named(name: str) -> Method | None:
    """Look a method up by its name."""
    return next((method for method in METHODS if method.name == name), None)


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
    project = str(page.state.project)
    async with request.form() as form:
        role, kind = str(form.get("role", column.role)), str(form.get("kind", column.kind))
    field = "role"
    try:
        if role not in list(Role):  # before the kind is written
            raise TaskError("choose one of the roles in the list")
        field = "kind"
        if kind != column.kind and not column.is_feature:
            await page.jobs.call(
                "columns.set_kind", seconds=SECONDS_TO_READ, project=project, name=column.name, kind=kind
            )
        field = "role"
        if role != column.role and not column.is_feature:
            await give_role(page, role, [(await _found(request))[1]])
    except TaskError as exc:
        return await _answer(request, *await _found(request), problem=exc, field=field)
    return redirect(f"/columns/{column.number}")


async def confirm_column(request: Request) -> Response:
    """Say that a column which is nearly a key may be released, or take that back."""
    column = (await _found(request))[1]
    page = page_of(request)
    if column.is_feature:
        raise HTTPException(404)
    async with request.form() as form:
        is_confirmed = form.get("confirmed") == "yes"
    call: dict[str, Any] = {"name": column.name, "kind": column.kind, "confirmed": is_confirmed}
    try:
        await page.jobs.call("columns.confirm", project=str(page.state.project), **call)
    except TaskError as exc:
        return await _answer(request, *await _found(request), problem=exc, field="confirmed")
    return redirect(f"/columns/{column.number}")


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
    status = UNPROCESSABLE if is_wrong else 200
    if is_htmx(request):
        return part_response(request, "hierarchy.html", status=status, **known | context)
    return page_response(request, "column.html", step="columns", status=status, **known | context)


ROUTES = [
    Route("/columns/{number:int}", show_column),
    Route("/columns/{number:int}", change_column, methods=["POST"]),
    Route("/columns/{number:int}/confirmed", confirm_column, methods=["POST"]),
    Route("/columns/{number:int}/hierarchy", change_hierarchy, methods=["POST"]),
]
