"""The Run step: what is under way, how far it is, and how it ended."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sfumato.web.jobs.jobs import Job
from sfumato.web.rendering import page_of, page_response, part_response, redirect, step_facts
from sfumato.web.state import Page

LINES_SHOWN = 200
_STEPS_SAID = 4


class Remedy(NamedTuple):
    """What to do after a failure, and where."""

    words: str
    url: str = "/goal"
    link: str = "Change the goal"


@dataclass(frozen=True)
class Run:
    """A job as the page shows it."""

    purpose: str
    job: Job
    url: str
    link: str
    when_cancelled: str

    @property
    def log(self) -> list[dict[str, Any]]:
        """Latest lines, newest first."""
        return self.job.log[-LINES_SHOWN:][::-1]

    @property
    def to_come(self) -> list[str]:
        """What is not measured of a release whose files are there: ``risk``, ``utility``."""
        return list(self.job.result().get("to_come", ())) if self.job.has_result else []

    @property
    def remedy(self) -> Remedy:
        """What to do next, by the kind of the error."""
        kind = self.job.error.kind if self.job.error is not None else ""
        return _REMEDIES.get(kind, _FOR_ANYTHING_ELSE)

    @property
    def said(self) -> str:
        """Words for a screen reader, which change a few times in a run."""
        job = self.job
        if job.status != "running":
            return f"{job.title}: {job.status}." + (f" {job.error.message}" if job.error is not None else "")
        quarters = _STEPS_SAID * min(job.done, job.total) // job.total if job.total else 0
        there = " The release is there; more is being measured." if job.has_result else ""
        return (
            f"{job.title}: running" + (f", {100 * quarters // _STEPS_SAID} per cent done." if quarters else ".") + there
        )


_PURPOSES = {
    "release": ("/utility", "See what it did to utility and risk", "Nothing was released."),
    "compare": (
        "/explore",
        "See the comparison",
        "Finished points are kept: the same comparison goes on from there.",
    ),
}
_COLUMNS = Remedy("Change the roles or kinds of the columns.", "/columns", "Go to the columns")
_REMEDIES = {
    "PrivacyNotAchievableError": Remedy("Nothing was released. Ask for less, or compare mechanisms."),
    "InvalidParameterError": Remedy("Change the setting that is named above."),
    "AuditFailedError": Remedy("Nothing was published. Choose another mechanism, and please report this."),
    "SchemaError": _COLUMNS,
    "ColumnNotFoundError": _COLUMNS,
    "NotBinaryError": _COLUMNS,
    "InputError": Remedy("Check the file, then open it again.", "/open", "Open a table"),
    "OutputError": Remedy("Fix what is said above, then start again."),
}
_FOR_ANYTHING_ELSE = Remedy("Start it again, or choose another mechanism. The text above contains none of your data.")


async def show(request: Request) -> Response:
    """Show all runs."""
    return page_response(request, "run.html", step="run", **_facts(page_of(request)))


async def progress(request: Request) -> Response:
    """Give the runs as a fragment; the words for a screen reader come with it when they have changed."""
    facts = _facts(page_of(request))
    has_news = facts["said"] != request.query_params.get("said", "")
    bar = step_facts(page_of(request), "run")
    return part_response(request, "run_progress.html", has_news=has_news, is_part=True, **bar, **facts)


async def cancel(request: Request) -> Response:
    """Cancel a run; one that is over, or is not shown here, is left alone."""
    page, form = page_of(request), await request.form()
    for run in _runs(page):
        if run.job.id == form.get("job"):
            await asyncio.to_thread(page.jobs.cancel, run.job.id)
    return redirect("/run")


def _facts(page: Page) -> dict[str, Any]:
    runs = _runs(page)
    return {
        "runs": runs,
        "is_running": any(not run.job.is_over for run in runs),
        "said": " ".join(run.said for run in runs),
    }


def _runs(page: Page) -> list[Run]:
    """Give the latest run of each purpose, those under way first."""
    found = [(purpose, page.job(purpose), words) for purpose, words in _PURPOSES.items()]
    runs = [Run(purpose, job, *words) for purpose, job, words in found if job is not None]
    return sorted(runs, key=lambda run: run.job.is_over)


ROUTES = [
    Route("/run", show),
    Route("/run/progress", progress),
    Route("/run/cancel", cancel, methods=["POST"]),
]
