"""Collaborate: take part in a session of several parties, or simulate one on the open table, and watch it run."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sfumato.errors import InputError
from sfumato.web.confinement import checked_path
from sfumato.web.form_fields import Field
from sfumato.web.jobs.jobs import Job, TaskError
from sfumato.web.rendering import UNPROCESSABLE, page_of, page_response, part_response, redirect
from sfumato.web.sessions import known_of
from sfumato.web.state import Page

_PACKAGES = ("cryptography", "mpyc")
_INSTALL = "pip install 'sfumato[collaborate]'"
_PURPOSE, _STATE_KEY = "collaborate", "collaborate_forms"

_MODES = (
    ("totals", "sums of all counts"),
    ("selection-only", "only which features are removed (slower; 3 to 7 parties)"),
)
_FROM_PARTY_FILE, _NAMES = "Left empty: the one that the party file names.", "Names, separated by commas."
_PARTY_FILE = Field("config", "Party file, on this machine", placeholder="party.toml")
_ROWS_FILE = Field("data", "File, on this machine", placeholder="mine.csv")
_MODE = Field("mode", "What is opened", default="totals", choices=_MODES)
_FORCE = Field("force", "Replace files that exist", is_check=True)
_DRY_RUN = "Dry run: do everything, the audit included, but write no release. All parties must choose the same."
_FIRST = {
    "take-part": (
        Field("schema", "Shared schema", _FROM_PARTY_FILE, placeholder="schema.json"),
        Field("output", "Release to write", _FROM_PARTY_FILE, placeholder="release.csv"),
        Field(
            "min_privacy_gain",
            "Privacy gain that this party requires (θ)",
            "From 0 to 1. Features are removed until every party has reached its own.",
            default="0.1",
        ),
        Field("dry_run", _DRY_RUN, is_check=True),
    ),
    "simulate": (
        Field("parties", "Parties", "At least 3.", default="3"),
        Field("min_privacy_gain", "Privacy gain that every party requires (θ)", "From 0 to 1.", default="0.1"),
    ),
}
_MORE = {
    "take-part": (
        _MODE,
        Field("kept_back", "Columns outside the schema that are kept back", _NAMES),
        Field("released", "Columns outside the schema to publish unchanged", _NAMES),
        Field(
            "transcript",
            "Transcript of the session to write",
            "Sizes and stages, no contents.",
            placeholder="session.jsonl",
        ),
        _FORCE,
    ),
    "simulate": (
        Field("seed", "Seed of the split", default="0"),
        _MODE,
        Field(
            "output_dir",
            "Folder for the releases, transcripts and rows of all parties",
            "Left empty: nothing is kept.",
        ),
        _FORCE,
    ),
}
_ASKED_APART = {"take-part": (_PARTY_FILE, _ROWS_FILE, Field("rows", "")), "simulate": (Field("cuts", ""),)}
_DEFAULTS = {
    form: {one.name: one.default for one in (*apart, *_FIRST[form], *_MORE[form])}
    for form, apart in _ASKED_APART.items()
}


class _FieldError(Exception):
    """What is wrong with one field of a form."""

    hint = ""

    def __init__(self, form: str, field: str, message: str) -> None:
        self.form = form
        self.field = field
        self.message = message
        super().__init__(message)


async def show(request: Request) -> Response:
    """Show the forms, and the session that runs or ran last."""
    return _page(request)


async def take_part(request: Request) -> Response:
    """Start a session with other parties, or show what is wrong with the form."""
    return await _started(request, "take-part")


async def simulate(request: Request) -> Response:
    """Start a simulation, or show what is wrong with the form."""
    return await _started(request, "simulate")


async def cuts(request: Request) -> Response:
    """Fill in cut points for the numeric columns that need some."""
    page, form = page_of(request), "simulate"
    values = await _given(request, form)
    try:
        _check_can_start(form, is_first=not page.is_running(_PURPOSE))
        found = await page.jobs.call("collaborate.propose_cuts", project=_open_project(page))
    except _FieldError as problem:
        return _page(request, problem=problem, status=UNPROCESSABLE)
    except TaskError as exc:
        return _page(request, problem=_FieldError(form, "cuts", exc.message), status=UNPROCESSABLE)
    _keep(page, form, {**values, **found})
    return _back()


async def _started(request: Request, form: str) -> Response:
    page, values = page_of(request), await _given(request, form)
    with page.only_one(_PURPOSE) as is_first:
        try:
            _check_can_start(form, is_first=is_first)
            job = _take_part(page, values) if form == "take-part" else _simulate(page, values)
        except _FieldError as problem:
            return _page(request, problem=problem, status=UNPROCESSABLE)
        page.started(_PURPOSE, job)
    return _back()


async def status(request: Request) -> Response:
    """Show how far the session is; asked for again and again while it runs."""
    return part_response(request, "collaborate_status.html", **known_of(page_of(request).job(_PURPOSE)))


def cancel(request: Request) -> Response:
    """End the session of this party."""
    page = page_of(request)
    job = page.job(_PURPOSE)
    if job is not None and not job.is_over:
        page.jobs.cancel(job.id)
    return _back()


async def transcript(request: Request) -> Response:
    """Show the transcript of a session of the command line."""
    path = request.query_params.get("path", "").strip()
    if not path:
        problem = _FieldError("transcript", "path", "Name a file.")
        return _page(request, problem=problem, status=UNPROCESSABLE)
    try:
        whole = _checked_paths(page_of(request), "transcript", {"path": path}, "path")
        found = await page_of(request).jobs.call("transcripts.read", path=whole["path"])
    except _FieldError as outside:
        return _page(request, problem=outside, path=path, status=UNPROCESSABLE)
    except TaskError as exc:
        problem = _FieldError("transcript", "path", exc.message)
        return _page(request, problem=problem, path=path, status=UNPROCESSABLE)
    return _page(request, path=path, opened=found)


ROUTES = [
    Route("/collaborate", show),
    Route("/collaborate/take-part", take_part, methods=["POST"]),
    Route("/collaborate/simulate", simulate, methods=["POST"]),
    Route("/collaborate/cuts", cuts, methods=["POST"]),
    Route("/collaborate/status", status),
    Route("/collaborate/cancel", cancel, methods=["POST"]),
    Route("/collaborate/transcript", transcript),
]


async def _given(request: Request, form: str) -> dict[str, str]:
    """Read a form, and keep it, so that it is still filled in after a reload."""
    given = await request.form()
    values = {name: str(given.get(name, "")).strip() for name in _DEFAULTS[form]}
    _keep(page_of(request), form, values)
    return values


def _keep(page: Page, form: str, values: Mapping[str, str]) -> None:
    page.state.update(**{_STATE_KEY: {**page.state.get(_STATE_KEY, {}), form: values}})


def _back() -> Response:
    return redirect("/collaborate")


def _page(
    request: Request,
    *,
    problem: _FieldError | None = None,
    path: str = "",
    opened: Mapping[str, Any] | None = None,
    status: int = 200,
) -> Response:
    page = page_of(request)
    kept = page.state.get(_STATE_KEY, {})
    return page_response(
        request,
        "collaborate.html",
        step=_PURPOSE,
        status=status,
        forms={form: {**fields, **kept.get(form, {})} for form, fields in _DEFAULTS.items()},
        first_fields=_FIRST,
        more_fields=_MORE,
        party_file=_PARTY_FILE,
        rows_file=_ROWS_FILE,
        problem=problem,
        lacking=_lacking(),
        install=_INSTALL,
        has_table=page.state.project is not None,
        path=path,
        opened=opened,
        **known_of(page.job(_PURPOSE)),
    )


def _lacking() -> list[str]:
    """List packages of the extra that are not installed; nothing is imported for it."""
    return [name for name in _PACKAGES if find_spec(name) is None]


def _check_can_start(form: str, *, is_first: bool) -> None:
    if lacking := _lacking():
        raise _FieldError(form, "", f"This installation lacks {', '.join(lacking)}. Install them: {_INSTALL}")
    if not is_first:
        raise _FieldError(form, "", "A session is running. Wait for its end, or cancel it.")


def _take_part(page: Page, values: Mapping[str, str]) -> Job:
    form, project = "take-part", page.state.project
    if not values["config"]:
        raise _FieldError(form, "config", "Name the file of this party, such as party.toml.")
    uses_file = values["rows"] == "file" or project is None
    if uses_file and not values["data"]:
        raise _FieldError(form, "data", "Name the file with this party's rows.")
    values = _checked_paths(page, form, values, "config", "data", "schema", "output", "transcript")
    return page.jobs.start(
        "collaborate.take_part",
        title="Session with other parties",
        config=values["config"],
        plan={**_plan(form, values), "dry_run": bool(values["dry_run"])},
        project=None if uses_file else str(project),
        data=values["data"] if uses_file else None,
        **{name: values[name] for name in ("schema", "output", "transcript")},
        **{name: _listed(values[name]) for name in ("kept_back", "released")},
        force=bool(values["force"]),
    )


def _open_project(page: Page) -> str:
    if page.state.project is None:
        raise _FieldError("simulate", "", "Open a table first.")
    return str(page.state.project)


def _simulate(page: Page, values: Mapping[str, str]) -> Job:
    form, project = "simulate", _open_project(page)
    parties = int(_number(form, "parties", values, whole=True))
    values = _checked_paths(page, form, values, "output_dir")
    return page.jobs.start(
        "collaborate.simulate",
        title=f"Simulation of {parties} parties",
        project=project,
        plan=_plan(form, values),
        parties=parties,
        seed=int(_number(form, "seed", values, whole=True)),
        cuts=values["cuts"],
        output_dir=values["output_dir"],
        force=bool(values["force"]),
    )


def _checked_paths(page: Page, form: str, values: Mapping[str, str], *fields: str) -> dict[str, str]:
    """Refuse paths that lead out of the folder that the page may use, and give them whole."""
    whole = dict(values)
    for field in fields:
        try:
            typed = checked_path(page.settings.root, values[field])
            # A task may work in the folder of an upload; a typed path is meant from the server's folder.
            is_whole = not typed or typed.startswith("~")
            whole[field] = typed if is_whole else str(Path.cwd() / typed)
        except InputError as error:
            raise _FieldError(form, field, str(error)) from None
    return whole


def _plan(form: str, values: Mapping[str, str]) -> dict[str, Any]:
    return {"min_privacy_gain": _number(form, "min_privacy_gain", values), "mode": values["mode"] or "totals"}


def _number(form: str, field: str, values: Mapping[str, str], *, whole: bool = False) -> float:
    try:
        return int(values[field]) if whole else float(values[field])
    except ValueError:
        raise _FieldError(form, field, "Give a whole number." if whole else "Give a number.") from None


def _listed(text: str) -> list[str]:
    return [name for name in (part.strip() for part in text.split(",")) if name]
