"""The Goal step: today's risk first, then target, guarantee and mechanism."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData, QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sfumato.schema import Role
from sfumato.web.goal_guarantees import level_names
from sfumato.web.inputs import DATA, DESCRIPTION, HIERARCHY, content_of, noted
from sfumato.web.jobs.jobs import SECONDS_TO_READ, Job, TaskError
from sfumato.web.project_files import DEFAULT_OUTPUT, OUTPUT_FORMATS, suffix_of, with_suffix
from sfumato.web.rendering import UNPROCESSABLE, page_of, page_response, part_response, redirect
from sfumato.web.state import Page

# Facts of the form on the Goal step: from the project file, the table's choices and what was typed; light.


FIELD_PREFIX, LEVEL_PREFIX = "set-", "promise-"
"""Begin the names of fields: of a mechanism's parameter, and of the level of a kind of guarantee."""
_FIRST_CHOICE = ("auto", {"k": 5})  # of a project file that was just made


_USUAL_FILE: Mapping[str, Any] = {"cells": "", "escape_formulas": False, "output": DEFAULT_OUTPUT}
"""Keys of a project file that say in which form a release is written; no cells: what the mechanism makes."""


@dataclass(frozen=True)
class Written:
    """What a project file says of the goal.

    Parameters
    ----------
    signature : str
        Over all that the risk and a comparison depend on: how the table is described, the data and the hierarchies.
    file : mapping
        In which form it is written, as :data:`_USUAL_FILE`.
    data : str
        Data file, as the project file names it.
    """

    signature: str
    mechanism: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    target: str = ""
    file: Mapping[str, Any] = field(default_factory=lambda: _USUAL_FILE)
    data: str = ""

    @property
    def is_first_choice(self) -> bool:
        """Whether the choice is the one that every new project file comes with."""
        return (self.mechanism or _FIRST_CHOICE[0], {**_FIRST_CHOICE[1], **self.parameters}) == _FIRST_CHOICE


@dataclass(frozen=True)
class Typed:
    """What was typed into the form.

    Parameters
    ----------
    levels : mapping of str to str
        Texts by kind of guarantee.
    values : mapping of str to str
        Texts by parameter.
    shown : str
        Mechanism whose fields were shown; without script it may be another than the chosen one.
    also : tuple of str
        Kinds of promises that a comparison tries as well.
    file : mapping or None
        Form of the file: ``cells``, ``escape_formulas`` and the ``suffix`` of the output; ``None`` where the fields
        were not there, and it stays as it is.
    """

    mechanism: str
    target: str
    levels: Mapping[str, str]
    values: Mapping[str, str]
    shown: str
    also: tuple[str, ...] = ()
    file: Mapping[str, Any] | None = None

    def usable_values(self) -> dict[str, str]:
        """Values that mean something: parameters of a mechanism that was then not chosen do not."""
        return dict(self.values) if self.shown in ("", self.mechanism) else {}


def read_written(path: Path) -> Written:
    """Read what a project file says; one that cannot be read says nothing, and the task that loads it says why."""
    signature = json.dumps(noted(path, DESCRIPTION, DATA, HIERARCHY))
    try:
        content = content_of(path) or {}
        columns, made = content.get("columns", {}), content.get("release", {})
        target = next((name for name, entry in columns.items() if entry.get("role") == Role.TARGET), "")
        file = {key: made.get(key, usual) for key, usual in _USUAL_FILE.items()}
        data = content.get("data", {}).get("path", "")
        return Written(signature, made.get("mechanism", ""), dict(made.get("parameters", {})), target, file, data)
    except (ValueError, TypeError, AttributeError):
        return Written(signature)


def form_facts(
    choices: Mapping[str, Any],
    written: Written,
    recommended: Mapping[str, Any],
    typed: Typed | None,
    problems: Mapping[str, str],
    *,
    is_chosen: bool,
    is_switched: bool = False,
    also: Sequence[str] = (),
) -> dict[str, Any]:
    """Lay the form out.

    Parameters
    ----------
    choices : mapping
        Of :func:`sfumato.web.tasks.goal.choices_for`.
    recommended : mapping
        ``mechanism``, ``why`` and, after a comparison, ``parameters``.
    typed : Typed or None
        ``None`` shows what the project file says, or what is recommended where it says nothing of its own.
    problems : mapping of str to str
        By field.
    is_chosen : bool
        Whether the project file's choice was made by the user, even if it is the one it came with.
    is_switched : bool
        Whether a mechanism, or a setting that makes other promises of its levels, was just chosen: levels that are then
        promised stay as typed, and those that are new begin with what is proposed.
    also : sequence of str
        Kinds of promises that a comparison was last asked to try as well.
    """
    also = also if typed is None else typed.also
    mechanisms = {one["name"]: one for one in choices["mechanisms"]}
    name = typed.mechanism if typed is not None and typed.mechanism in mechanisms else ""
    uses_own = written.mechanism in mechanisms and (is_chosen or not written.is_first_choice)
    name = name or (written.mechanism if uses_own else recommended["mechanism"])
    chosen = mechanisms[name]
    proposed = chosen["proposed"] | (recommended.get("parameters", {}) if name == recommended["mechanism"] else {})
    known = written.parameters if uses_own and name == written.mechanism else proposed
    own = [one for one in chosen["parameters"] if one["name"] not in level_names()]
    is_switched = is_switched or (typed is not None and typed.shown not in ("", name))
    values = {one["name"]: as_text(known.get(one["name"], one["default"])) for one in own}
    values |= typed.usable_values() if typed is not None else {}
    levels = _levels(chosen, values)
    problems = _by_kind({"format" if name == "output" else name: words for name, words in problems.items()}, levels)
    guarantees = _guarantees(choices, chosen, levels, known, typed, values, is_switched=is_switched)
    parameters = [{**one, "value": values[one["name"]]} for one in own]
    in_order = ["target", *(one["kind"] for one in guarantees), "mechanism", *(one["name"] for one in parameters)]
    in_order += ["format", "cells", "escape"]
    return {
        "targets": choices["targets"],
        "target": typed.target if typed is not None else written.target,
        "guarantees": guarantees,
        "parameters": parameters,
        "has_own_settings": any(
            one["value"] != as_text(proposed.get(one["name"], one["default"])) or one["name"] in problems
            for one in parameters
        ),
        "mechanism": chosen,
        "file": _file_facts(choices, written, typed),
        "kinds": [{**one, "is_asked": one["name"] in also} for one in choices["kinds"]],
        "usable": [one for one in mechanisms.values() if one["unavailable"] is None or one is chosen],
        "unusable": [one for one in mechanisms.values() if one["unavailable"] is not None and one is not chosen],
        "recommended": recommended,
        "problems": dict(problems),
        "first_problem": next((name for name in in_order if name in problems), ""),
        "other_problems": [text for key, text in problems.items() if key not in in_order],
    }


def _file_facts(choices: Mapping[str, Any], written: Written, typed: Typed | None) -> dict[str, Any]:
    """Lay out the fields about the file, with what was typed or what the project file says."""
    shown, now = written.file, suffix_of(written.file["output"])
    if typed is not None and typed.file is not None:
        suffix = typed.file["suffix"] if typed.file["suffix"] in OUTPUT_FORMATS else now
        shown = {**typed.file, "output": with_suffix(shown["output"], suffix)}
    own = suffix_of(written.data).lower()
    same = {own: f"{OUTPUT_FORMATS[own]}, as the original"} if own in OUTPUT_FORMATS else {}
    titles = {**OUTPUT_FORMATS, **same}
    if now not in titles:
        titles = {now: "as the project file says", **titles}
    cells, escape, suffix = shown["cells"], shown["escape_formulas"], suffix_of(shown["output"])
    return {
        "cells": cells,
        "cells_choices": choices["cells"],
        "escape": escape,
        "suffix": suffix,
        "formats": dict(sorted(titles.items(), key=lambda one: one[0] != own)),
        "name": shown["output"],
        "is_usual": not cells and not escape and suffix == suffix_of(DEFAULT_OUTPUT),
    }


def _levels(chosen: Mapping[str, Any], values: Mapping[str, str]) -> Mapping[str, str]:
    """Parameters of the chosen mechanism by the kind that they are promised as, with settings as they are shown."""
    for name, by_value in chosen["levels_by"].items():
        if values.get(name) in by_value:
            found: Mapping[str, str] = by_value[values[name]]
            return found
    usual: Mapping[str, str] = chosen["levels"]
    return usual


def _by_kind(problems: Mapping[str, str], levels: Mapping[str, str]) -> dict[str, str]:
    """Put problems of levels, which a release that was refused names by their parameters, beside their fields."""
    kinds = {parameter: kind for kind, parameter in levels.items()}
    return {kinds.get(name, name): words for name, words in problems.items()}


def _guarantees(
    choices: Mapping[str, Any],
    chosen: Mapping[str, Any],
    levels: Mapping[str, str],
    known: Mapping[str, Any],
    typed: Typed | None,
    values: Mapping[str, str],
    *,
    is_switched: bool,
) -> list[dict[str, Any]]:
    """Give the fields of all kinds of guarantees, those first that the mechanism promises with these settings."""
    parameters = {one["name"]: one for one in chosen["parameters"]}
    has_sensitive = choices["has_sensitive"] or bool(values.get("sensitive"))
    found = []
    for one in choices["guarantees"]:
        is_taken, can_be = one["kind"] in levels, has_sensitive or not one["needs_sensitive"]
        begun = ""
        if is_taken and can_be:
            parameter = parameters[levels[one["kind"]]]
            begun = as_text(known.get(parameter["name"], parameter["default"]))
        text = typed.levels.get(one["kind"], "") if typed is not None else ""
        if typed is None or (is_switched and not (is_taken and can_be and text)):
            text = begun
        is_required = is_taken and can_be and parameters[levels[one["kind"]]]["is_required"]
        found.append({**one, "value": text, "is_taken": is_taken, "can_be": can_be, "is_required": is_required})
    return sorted(found, key=lambda one: not one["is_taken"])


def as_text(value: Any) -> str:
    """Write a value as people type it.

    Examples
    --------
    >>> as_text(True), as_text(None), as_text(0.5), as_text({"age": "ones", "sex": "both"})
    ('true', '', '0.5', 'age=ones, sex=both')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={as_text(entry)}" for name, entry in value.items())
    return ", ".join(map(as_text, value)) if isinstance(value, list | tuple) else str(value)


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
    """Forget the measured risk, so that it is measured again."""
    page_of(request).state.update(risk_of=None)
    return redirect("/goal")


async def fields(request: Request) -> Response:
    """Give the fields of another mechanism."""
    page, typed = page_of(request), _typed(request.query_params)
    if page.state.project is None:
        return Response(status_code=204, headers={"HX-Redirect": "/open"})
    context = await _context(page, page.state.project, typed, is_switched=True)
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
    wanted = {"project": project, "asked": checked["asked"], "also": typed.also}
    found = await page.jobs.call("goal.grid", seconds=SECONDS_TO_READ, **wanted)
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
        wanted = {"project": str(path), "asked": checked["asked"], "also": list(typed.also)}
        job = page.jobs.start("explore.compare", title="Compare mechanisms", **wanted)
        page.started("compare", job)
        page.state.update(
            asked=checked["asked"],
            also=list(typed.also),
            compare_of=written.signature,
            compare_inputs=json.loads(written.signature),
        )
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
        if not form and not await asyncio.to_thread(is_decided, page, path):
            problems = {"mechanism": "Nothing was chosen yet. Choose a mechanism, or select a release on Explore."}
        if problems:
            return await _whole_page(request, typed, problems=problems)
        written = await asyncio.to_thread(read_written, path)
        title = f"Make the release with {written.mechanism}" if written.mechanism else "Make the release"
        quick = form.get("quick") == "yes"
        page.started("release", page.jobs.start("release.make", title=title, project=str(path), quick=quick))
    return redirect("/run")


def is_decided(page: Page, path: Path) -> bool:
    """Tell whether somebody chose what the project file asks for: it is more than a new file comes with."""
    return page.state.get("goal_chosen") == str(path) or not read_written(path).is_first_choice


async def definitions(request: Request) -> Response:
    """Show what the guarantees mean, against whom, and what they do not promise."""
    from sfumato.guarantees import GUARANTEES
    from sfumato.report.guarantee_texts import ASSUMPTIONS

    words = {kind: guarantee.words for kind, guarantee in GUARANTEES.items()}
    return page_response(request, "goal_definitions.html", words=words, assumptions=ASSUMPTIONS)


async def _chosen(page: Page, path: Path, typed: Typed) -> dict[str, str]:
    """Write what was typed, if nothing is wrong with it; give the problems by field."""
    checked = await _checked(page, str(path), typed, "release")
    problems: dict[str, str] = checked["problems"] | _target_that_is_needed(page, typed)
    written = await asyncio.to_thread(read_written, path)
    now = suffix_of(written.file["output"])
    if typed.file is not None and typed.file["suffix"] not in (now, *OUTPUT_FORMATS):
        problems |= {"format": "Choose one of the formats in the list."}
    if problems:
        return problems
    target = typed.target if typed.target != written.target else None
    choice = {"mechanism": typed.mechanism, "parameters": checked["parameters"], "target": target}
    if typed.file is not None:
        suffix = typed.file["suffix"]
        output = with_suffix(written.file["output"], suffix) if suffix != now else None
        choice |= {name: typed.file[name] for name in ("cells", "escape_formulas")} | {"output": output}
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
    file: Mapping[str, Any] = typed.file or {**_USUAL_FILE, "suffix": ""}
    is_escaped = file["escape_formulas"] and file["suffix"] in OUTPUT_FORMATS
    found: dict[str, Any] = await page.jobs.call(
        "goal.check",
        project=project,
        mechanism=typed.mechanism,
        levels=typed.levels,
        values=typed.usable_values(),
        target=typed.target,
        purpose=purpose,
        cells=file["cells"],
        escaped=f"release{file['suffix']}" if is_escaped else "",
    )
    return found


def _target_that_is_needed(page: Page, typed: Typed) -> dict[str, str]:
    """Ask for a target where the mechanism stands, for this table, for one that needs it."""
    risk = page.job("risk")
    if typed.target or risk is None or risk.status != "done":
        return {}
    mechanisms = risk.result()["choices"]["mechanisms"]
    is_needed = any(one["needs_target"] for one in mechanisms if one["name"] == typed.mechanism)
    return {"target": f"{typed.mechanism} needs a target for a table of 0/1 columns. Choose one."} if is_needed else {}


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
    page: Page,
    path: Path,
    typed: Typed | None = None,
    problems: Mapping[str, str] | None = None,
    *,
    is_switched: bool = False,
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
        also = page.state.get("also") or ()
        facts = (found["choices"], written, recommended, typed, shown)
        context["form"] = form_facts(*facts, is_chosen=is_chosen, is_switched=is_switched, also=also)
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
    levels, values = (
        {name.removeprefix(prefix): text for name, text in texts.items() if name.startswith(prefix)}
        for prefix in (LEVEL_PREFIX, FIELD_PREFIX)
    )
    also = tuple(kind for kind in form.getlist("also") if isinstance(kind, str))
    file = {
        "cells": texts.get("cells", ""),
        "escape_formulas": texts.get("escape") == "yes",
        "suffix": texts.get("format", ""),
    }
    return Typed(
        texts.get("mechanism", ""),
        texts.get("target", ""),
        levels,
        values,
        texts.get("shown", ""),
        also,
        file if "format" in texts else None,
    )


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
