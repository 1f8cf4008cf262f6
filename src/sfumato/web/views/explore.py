"""The Explore step: all releases of a comparison side by side, one of them made the candidate."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sfumato.schema import COMPARISON_NAME
from sfumato.web.charts import frontier_spec
from sfumato.web.inputs import DATA, Input, changed_since, stamp_of
from sfumato.web.jobs.jobs import SECONDS_TO_READ, TaskError
from sfumato.web.made_release import made_release
from sfumato.web.project_files import run_folder_of
from sfumato.web.rendering import is_htmx, page_of, page_response, part_response, problem_response, redirect
from sfumato.web.state import Page
from sfumato.web.views.goal import is_decided

FACTORS = ("utility", "privacy", "size")
"""What E(S) weighs, as the sliders are named."""
_HERE = "/explore"


@dataclass(frozen=True)
class _Shown:
    """A comparison to show, whole or not.

    Parameters
    ----------
    folder : Path
        Where it stands: the job's folder, or the run folder beside the project file.
    inputs : list of Input
        What it was made from.
    status : str
        Of the job that made it; ``on disk`` where an earlier server or the command did.
    """

    folder: Path
    inputs: list[Input]
    status: str


async def explore(request: Request) -> Response:
    """Show the latest comparison, finished or not, or how to get one."""
    page = page_of(request)
    shown = await _shown(page)
    if shown is None:
        return page_response(request, "explore_none.html", step="explore", job=page.job("compare"))
    return page_response(request, "explore.html", step="explore", **await _found(page, shown))


async def rank(request: Request) -> Response:
    """Rank by other weights."""
    page, shown = await _there(request)
    form = await request.form()
    try:
        weights = [_weight(str(form.get(factor, ""))) for factor in FACTORS]
        context = await _found(page, shown, weights)
    except TaskError as error:
        return _problem(request, error)
    page.state.update(weights=weights)
    return _changed(request, context)


async def keep_weights(request: Request) -> Response:
    """Write the weights into the project file."""
    page, shown = await _there(request)
    context = await _found(page, shown)
    try:
        await page.jobs.call("explore.keep_weights", project=str(page.state.project), weights=context["weights"])
    except TaskError as error:
        return _problem(request, error)
    return _changed(request, {**context, "said": "The project file now has these weights."})


async def select(request: Request) -> Response:
    """Show the figures of a release; nothing is decided by it."""
    page, shown = await _there(request)
    try:
        chosen = await _meant(request, page, shown)
    except TaskError as error:
        return _problem(request, error)
    page.state.update(selected=chosen["key"])
    return _changed(request, {**await _found(page, shown), "said": f"{chosen['label']} is selected."})


async def choose(request: Request) -> Response:
    """Make a release of the comparison the one that the project file asks for."""
    page, shown = await _there(request)
    try:
        chosen = await _meant(request, page, shown)
        facts = {name: chosen[name] for name in ("mechanism", "parameters")}
        await page.jobs.call("goal.choose", project=str(page.state.project), **facts)
    except TaskError as error:
        return _problem(request, error)
    page.state.update(goal_chosen=str(page.state.project))
    return _changed(request, {**await _found(page, shown), "said": f"The project file now asks for {chosen['label']}."})


async def short_list(request: Request) -> Response:
    """Put a release on the short list, or take it from there."""
    page, shown = await _there(request)
    try:
        chosen = await _meant(request, page, shown)
    except TaskError as error:
        return _problem(request, error)
    key, listed = chosen["key"], page.state.get("short_list") or []
    is_listed = key in listed
    page.state.update(short_list=[one for one in listed if one != key] if is_listed else [*listed, key])
    said = f"{chosen['label']} {'is no longer' if is_listed else 'is now'} on the short list."
    return _changed(request, {**await _found(page, shown), "said": said})


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


async def _shown(page: Page) -> _Shown | None:
    """Comparison to show: that of the latest job or, where there is none or it is not done, that in the run folder."""
    project, job = page.state.project, page.job("compare")
    if project is None:
        return None
    if job is not None and job.status == "done":
        return _Shown(job.folder, job.result()["inputs"], job.status)
    folder = run_folder_of(project)
    stamp = await asyncio.to_thread(stamp_of, DATA, folder / COMPARISON_NAME)
    if stamp is None:
        return None
    if job is not None:
        return _Shown(folder, page.state.get("compare_inputs") or [], job.status)
    known = page.state.get("on_disk")
    if known is None or known["stamp"] != stamp:
        known = await page.jobs.call("explore.find", seconds=SECONDS_TO_READ, project=str(project)) | {"stamp": stamp}
        page.state.update(on_disk=known)
    return _Shown(folder, known["inputs"], "on disk") if known["is_found"] else None


async def _found(page: Page, shown: _Shown, weights: list[float] | None = None) -> dict[str, Any]:
    """Everything that the step shows, ranked by the given weights or those that were set last."""
    found = await page.jobs.call(
        "explore.rank",
        made_in=str(shown.folder),
        project=str(page.state.project),
        weights=weights or page.state.get("weights"),
    )
    listed = page.state.get("short_list") or []
    spec = frontier_spec(
        found["frontier"],
        original_utility=found["original"]["utility"],
        utility_name=found["utility_name"],
        counted=found["counted"],
        chosen=found["candidate"],
        selected=page.state.get("selected"),
    )
    by_key = {release["key"]: release for release in found["releases"]}
    return {
        **found,
        "compare_status": shown.status,
        "groups": [{**group, "releases": [by_key[key] for key in group["keys"]]} for group in found["groups"]],
        "selected_release": by_key.get(page.state.get("selected")),
        "is_decided": await asyncio.to_thread(is_decided, page, page.state.project or Path()),
        "spec": spec,
        "factors": list(zip(FACTORS, found["weights"], strict=True)),
        "listed": [by_key[key] for key in listed if key in by_key],
        "candidate_release": by_key.get(found["candidate"]),
        "changed": changed_since(shown.inputs, page.state.project),
        "said": "",
    }


async def _there(request: Request) -> tuple[Page, _Shown]:
    page = page_of(request)
    shown = await _shown(page)
    if shown is None:
        raise TaskError("there is no comparison to choose from", hint="compare mechanisms on the Goal step first")
    return page, shown


async def _meant(request: Request, page: Page, shown: _Shown) -> dict[str, Any]:
    """Release whose key was sent."""
    key, found = str((await request.form()).get("key", "")), await _found(page, shown)
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
    Route("/explore/select", select, methods=["POST"]),
    Route("/explore/weights", keep_weights, methods=["POST"]),
    Route("/explore/candidate", choose, methods=["POST"]),
    Route("/explore/short-list", short_list, methods=["POST"]),
    Route("/explore/release", release),
]
