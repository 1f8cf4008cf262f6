"""The Goal step: today's risk first, then target, guarantee and mechanism."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData, QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sfumato.web.goal_fields import FIELD_PREFIX, Typed, Written, form_facts, read_written
from sfumato.web.jobs import SECONDS_TO_READ, Job, TaskError
from sfumato.web.rendering import UNPROCESSABLE, page_of, page_response, part_response, redirect
from sfumato.web.state import Page

CONFLICT = 409
_NEEDS_TARGET = "A comparison needs a target: it measures how well the target can be predicted. Choose one."
_RUNNING = {
    "release": "A release is being made. Wait for it, or cancel it first.",
    "compare": "A comparison is running. Wait for it, or cancel it first.",
}


async def show(request: Request) -> Response:
    """Show the whole step."""
    return await _whole_page(request)


async def today(request: Request) -> Response:
    """Give the step's content while the risk is being measured, and once it is known."""
    page = page_of(request)
    if page.state.project is None:
        return Response(status_code=204, headers={"HX-Redirect": "/open"})
    return part_response(request, "goal_body.html", **await _context(page, page.state.project))


async def measure_again(request: Request) -> Response:
    """Forget the measured risk, so that it is measured anew."""
    page_of(request).state.update(risk_of=None)
    return redirect("/goal")


async def fields(request: Request) -> Response:
    """Give the fields of another mechanism."""
    page, typed = page_of(request), _typed(request.query_params)
    if page.state.project is None:
        return Response(status_code=204, headers={"HX-Redirect": "/open"})
    context = await _context(page, page.state.project, typed)
    if "form" not in context:
        return Response(status_code=204, headers={"HX-Redirect": "/goal"})
    return part_response(request, "goal_switched.html", form=context["form"])


async def grid(request: Request) -> Response:
    """Give the list of points that a comparison would try."""
    page, typed = page_of(request), _typed(request.query_params)
    project = str(page.state.project)
    checked = await _checked(page, project, typed, "compare")
    if checked["problems"]:
        return part_response(request, "goal_grid.html", problems=checked["problems"], found=None)
    found = await page.jobs.call("goal.grid", seconds=SECONDS_TO_READ, project=project, asked=checked["asked"])
    return part_response(request, "goal_grid.html", problems={}, found=found)


async def compare(request: Request) -> Response:
    """Start a comparison that asks for the guarantees in the form."""
    page, typed = page_of(request), _typed(await request.form())
    with page.only_one("compare") as is_first:
        path = page.state.project
        if path is None:
            return redirect("/open")
        if not is_first:
            return await _whole_page(request, typed, refused="compare")
        checked = await _checked(page, str(path), typed, "compare")
        problems = checked["problems"] | ({} if typed.target else {"target": _NEEDS_TARGET})
        problems = problems or await _target_chosen(page, path, typed)
        if problems:
            return await _whole_page(request, typed, problems=problems)
        written = await asyncio.to_thread(read_written, path)
        job = page.jobs.start("explore.compare", title="Compare mechanisms", project=str(path), asked=checked["asked"])
        page.started("compare", job)
        page.state.update(asked=checked["asked"], compare_of=written.signature)
    return redirect("/run")


async def release(request: Request) -> Response:
    """Write the choice into the project file and make the release; without a choice, as the file says."""
    page, form = page_of(request), await request.form()
    typed = _typed(form)
    with page.only_one("release") as is_first:
        path = page.state.project
        if path is None:
            return redirect("/open")
        if not is_first:
            return await _whole_page(request, typed if form else None, refused="release")
        problems = await _chosen(page, path, typed) if form else {}
        if problems:
            return await _whole_page(request, typed, problems=problems)
        written = await asyncio.to_thread(read_written, path)
        title = f"Make the release with {written.mechanism}" if written.mechanism else "Make the release"
        quick = form.get("quick") == "yes"
        page.started("release", page.jobs.start("release.make", title=title, project=str(path), quick=quick))
    return redirect("/run")


async def definitions(request: Request) -> Response:
    """Show what the guarantees mean, against whom, and what they do not promise."""
    from sfumato.guarantees import GUARANTEES
    from sfumato.report.words import ASSUMPTIONS

    words = {kind: guarantee.words for kind, guarantee in GUARANTEES.items()}
    return page_response(request, "goal_definitions.html", words=words, assumptions=ASSUMPTIONS)


async def _chosen(page: Page, path: Path, typed: Typed) -> dict[str, str]:
    """Write what was typed, if nothing is wrong with it; give the problems by field."""
    checked = await _checked(page, str(path), typed, "release")
    if checked["problems"]:
        problems: dict[str, str] = checked["problems"]
        return problems
    written = await asyncio.to_thread(read_written, path)
    target = typed.target if typed.target != written.target else None
    choice = {"mechanism": typed.mechanism, "parameters": checked["parameters"], "target": target}
    try:
        await page.jobs.call("goal.choose", project=str(path), **choice)
    except TaskError as error:
        return {"target" if error.kind == "ColumnNotFoundError" else error.field: _in_full(error)}
    page.state.update(goal_chosen=str(path))
    return {}


async def _target_chosen(page: Page, path: Path, typed: Typed) -> dict[str, str]:
    """Write another target, if one was chosen; give the problem by field."""
    written = await asyncio.to_thread(read_written, path)
    if typed.target != written.target:
        try:
            await page.jobs.call("goal.choose", project=str(path), target=typed.target)
        except TaskError as error:
            return {"target": _in_full(error)}
    return {}


async def _checked(page: Page, project: str, typed: Typed, purpose: str) -> dict[str, Any]:
    found: dict[str, Any] = await page.jobs.call(
        "goal_form.check", project=project, mechanism=typed.mechanism, values=typed.usable_values(), purpose=purpose
    )
    return found


async def _whole_page(
    request: Request, typed: Typed | None = None, *, problems: Mapping[str, str] | None = None, refused: str = ""
) -> Response:
    page = page_of(request)
    if page.state.project is None:
        return redirect("/open")
    context = await _context(page, page.state.project, typed, problems or {})
    status = CONFLICT if refused else UNPROCESSABLE if problems else 200
    words = _RUNNING.get(refused, "")
    return page_response(request, "goal.html", step="goal", status=status, refused=words, **context)


async def _context(
    page: Page, path: Path, typed: Typed | None = None, problems: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Facts of the templates: the job that measures the risk, and once it is done its result and the form."""
    written = await asyncio.to_thread(read_written, path)
    job = _risk_job(page, path, written)
    status = job.status  # it may change while the page is being made
    found = job.result() if status == "done" else None
    context: dict[str, Any] = {
        "job": job,
        "is_running": status == "running",
        "risk": found,
        "problems": dict(problems or {}),
    }
    if found is not None:
        shown = dict(problems or _last_problem(page))
        recommended = _recommended(page, written) or found["choices"]["recommended"]
        is_chosen = page.state.get("goal_chosen") == str(path)
        context["form"] = form_facts(found["choices"], written, recommended, typed, shown, is_chosen=is_chosen)
    return context


def _risk_job(page: Page, path: Path, written: Written) -> Job:
    """Job that measures the risk of the table as the project file describes it now; started where there is none."""
    former = page.job("risk")
    if former is not None and page.state.get("risk_of") == written.signature:
        return former
    job = page.jobs.start("goal.risk_today", title="Risk today", project=str(path))
    page.started("risk", job)
    page.state.update(risk_of=written.signature)
    return job


def _recommended(page: Page, written: Written) -> dict[str, Any] | None:
    """Give what the comparison of this table recommends, if there is one."""
    job = page.job("compare")
    if job is None or job.status != "done" or page.state.get("compare_of") != written.signature:
        return None
    found = job.result().get("recommended")
    return {**found, "is_measured": True} if found else None


def _last_problem(page: Page) -> dict[str, str]:
    """Give the setting for which the last release was refused, to stand beside its field."""
    job = page.job("release")
    if job is None or job.error is None or job.error.kind != "InvalidParameterError":
        return {}
    return {job.error.field: _in_full(job.error)}


def _typed(form: FormData | QueryParams) -> Typed:
    texts = {name: value for name, value in form.items() if isinstance(value, str)}
    values = {name.removeprefix(FIELD_PREFIX): text for name, text in texts.items() if name.startswith(FIELD_PREFIX)}
    return Typed(texts.get("mechanism", ""), texts.get("target", ""), values, texts.get("shown", ""))


def _in_full(error: TaskError) -> str:
    return f"{error.message} {error.hint}".strip()


ROUTES = [
    Route("/goal", show),
    Route("/goal/today", today),
    Route("/goal/risk", measure_again, methods=["POST"]),
    Route("/goal/fields", fields),
    Route("/goal/grid", grid),
    Route("/goal/compare", compare, methods=["POST"]),
    Route("/goal/release", release, methods=["POST"]),
    Route("/definitions", definitions),
]
