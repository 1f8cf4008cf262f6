"""The Explore step: all releases of a comparison beside each other, one of them made the candidate."""

from __future__ import annotations

import math
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sfumato.web.charts import frontier_spec
from sfumato.web.inputs import changed_since
from sfumato.web.jobs.jobs import Job, TaskError
from sfumato.web.made_release import made_release
from sfumato.web.rendering import is_htmx, page_of, page_response, part_response, problem_response, redirect
from sfumato.web.state import Page

FACTORS = ("utility", "privacy", "size")
"""What E(S) weighs, as the sliders are named."""
_HERE = "/explore"


async def explore(request: Request) -> Response:
    """Show the latest comparison, or how to get one."""
    page = page_of(request)
    job = page.job("compare")
    if job is None or job.status != "done" or page.state.project is None:
        return page_response(request, "explore_none.html", step="explore", job=job)
    return page_response(request, "explore.html", step="explore", **await _found(page, job))


async def rank(request: Request) -> Response:
    """Rank by other weights."""
    page, job = _done(request)
    form = await request.form()
    try:
        weights = [_weight(str(form.get(factor, ""))) for factor in FACTORS]
        context = await _found(page, job, weights)
    except TaskError as error:
        return _problem(request, error)
    page.state.update(weights=weights)
    return _changed(request, context)


async def keep_weights(request: Request) -> Response:
    """Write the weights into the project file."""
    page, job = _done(request)
    context = await _found(page, job)
    try:
        await page.jobs.call("explore.keep_weights", project=str(page.state.project), weights=context["weights"])
    except TaskError as error:
        return _problem(request, error)
    return _changed(request, {**context, "said": "The project file now has these weights."})


async def choose(request: Request) -> Response:
    """Make a release of the comparison the one that the project file asks for."""
    page, job = _done(request)
    key = str((await request.form()).get("key", ""))
    try:
        chosen = _release(await _found(page, job), key)
        facts = {name: chosen[name] for name in ("mechanism", "parameters")}
        await page.jobs.call("goal.choose", project=str(page.state.project), **facts)
    except TaskError as error:
        return _problem(request, error)
    page.state.update(goal_chosen=str(page.state.project))
    return _changed(request, {**await _found(page, job), "said": f"The project file now asks for {chosen['label']}."})


async def short_list(request: Request) -> Response:
    """Put a release on the short list, or take it from there."""
    page, job = _done(request)
    key = str((await request.form()).get("key", ""))
    try:
        chosen = _release(await _found(page, job), key)
    except TaskError as error:
        return _problem(request, error)
    listed = page.state.get("short_list") or []
    is_listed = key in listed
    page.state.update(short_list=[one for one in listed if one != key] if is_listed else [*listed, key])
    said = f"{chosen['label']} {'is no longer' if is_listed else 'is now'} on the short list."
    return _changed(request, {**await _found(page, job), "said": said})


async def release(request: Request) -> Response:
    """Show what the mechanism of the latest release did, in pictures."""
    page = page_of(request)
    made = made_release(page)
    return page_response(
        request,
        "explore_release.html",
        step="explore",
        is_running=page.is_running("release"),
        is_made=made is not None,
        pictures=made.pictures("done") if made else [],
        changed=made.changed_since(page.state.project) if made else [],
    )


async def _found(page: Page, job: Job, weights: list[float] | None = None) -> dict[str, Any]:
    """Everything that the step shows, ranked by the given weights or those that were set last."""
    found = await page.jobs.call(
        "explore.rank",
        made_in=str(job.folder),
        project=str(page.state.project),
        weights=weights or page.state.get("weights"),
    )
    listed = page.state.get("short_list") or []
    spec = frontier_spec(
        found["frontier"],
        original_utility=found["original"]["utility"],
        utility_name=found["utility_name"],
        chosen=found["candidate"],
    )
    by_key = {release["key"]: release for release in found["releases"]}
    return {
        **found,
        "spec": spec,
        "factors": list(zip(FACTORS, found["weights"], strict=True)),
        "listed": [by_key[key] for key in listed if key in by_key],
        "candidate_release": by_key.get(found["candidate"]),
        "changed": changed_since(job.result()["inputs"], page.state.project),
        "said": "",
    }


def _done(request: Request) -> tuple[Page, Job]:
    page = page_of(request)
    job = page.job("compare")
    if job is None or job.status != "done" or page.state.project is None:
        raise TaskError("there is no comparison to choose from", hint="compare mechanisms on the Goal step first")
    return page, job


def _release(found: dict[str, Any], key: str) -> dict[str, Any]:
    for release in found["releases"]:
        if release["key"] == key:
            chosen: dict[str, Any] = release
            return chosen
    raise TaskError("this release is not in the comparison any more", hint="reload the page")


def _weight(text: str) -> float:
    """Weight of a slider, which counts per cent."""
    try:
        weight = float(text) / 100
    except ValueError:
        weight = math.nan
    if not 0 <= weight <= 1:
        raise TaskError("a weight must be a number from 0 to 100")
    return weight


def _changed(request: Request, context: dict[str, Any]) -> Response:
    if not is_htmx(request):
        return redirect(_HERE)
    return part_response(request, "explore_changed.html", **context)


def _problem(request: Request, error: TaskError) -> Response:
    """Say what is wrong beside the sliders; everything else stays as it was."""
    if not is_htmx(request):
        raise error
    response = problem_response(request, error)
    response.headers.update({"HX-Retarget": "#explore-problem", "HX-Reswap": "innerHTML"})
    return response


ROUTES = [
    Route("/explore", explore),
    Route("/explore/rank", rank, methods=["POST"]),
    Route("/explore/weights", keep_weights, methods=["POST"]),
    Route("/explore/candidate", choose, methods=["POST"]),
    Route("/explore/short-list", short_list, methods=["POST"]),
    Route("/explore/release", release),
]
