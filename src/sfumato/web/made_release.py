"""The release that was made last, as the pages that show it see it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse

from sfumato.web.column_store import STORE_NAME, ColumnStore
from sfumato.web.inputs import changed_since
from sfumato.web.jobs.jobs import Job
from sfumato.web.rendering import page_of, page_response
from sfumato.web.state import Page

PURPOSE = "release"
_MEASURING = "is being measured"
_STOPPED = "measuring ended before there was a result; make the release again to get one"
_HEADINGS = {"utility": "Prediction"}
"""Sentence of the five on a release that says what was measured."""


@dataclass(frozen=True)
class MadeRelease:
    """A job that made a release, and what it found."""

    job: Job

    @cached_property
    def _read(self) -> tuple[bool, dict[str, Any]]:
        """Whether the job was over, asked first so that the result is then the last one, and its result."""
        is_over = self.job.is_over
        return is_over, self.job.result()

    @property
    def result(self) -> dict[str, Any]:
        """Facts that :func:`sfumato.web.tasks.release.make` gave back, those of its first result while it goes on."""
        return self._read[1]

    @property
    def lacking(self) -> list[str]:
        """What is not measured of the files that are there: ``risk``, ``utility``."""
        return list(self.result["to_come"])

    @property
    def measuring(self) -> list[str]:
        """What is still being measured: ``risk``, ``utility``."""
        return [] if self._read[0] else self.lacking

    @property
    def summary(self) -> dict[str, Any]:
        """Summary of the report; where risk or utility is to follow, that is said in its place."""
        found: dict[str, Any] = self.result["summary"]
        words = _MEASURING if self.measuring else _STOPPED
        missing = {what: {"not_measured": words} for what in self.lacking}
        headed = found["verdict"]["headed"] | {_HEADINGS[what]: words for what in missing if what in _HEADINGS}
        return {**found, **missing, "verdict": {**found["verdict"], "headed": headed}}

    @property
    def columns(self) -> ColumnStore:
        """Columns before and after."""
        return ColumnStore(self.job.folder / STORE_NAME)

    def pictures(self, *groups: str) -> list[dict[str, str]]:
        """Give the pictures of some groups: ``utility``, ``risk`` and ``done``."""
        return [picture for picture in self.result["pictures"] if picture["group"] in groups]

    def input(self, what: str) -> Path:
        """Path of something that the release was made of."""
        return Path(next(entry["path"] for entry in self.result["inputs"] if entry["what"] == what))

    def changed_since(self, project: Path | None) -> list[str]:
        """Name what was changed since the release was made: ``project file``, ``data``, ``hierarchy``."""
        return changed_since(self.result["inputs"], project)


def made_release(page: Page) -> MadeRelease | None:
    """Release that was made last, if the latest job made one; utility may be yet to follow."""
    job = page.job(PURPOSE)
    return MadeRelease(job) if job is not None and job.has_result else None


def missing_response(request: Request, *, step: str, title: str) -> HTMLResponse:
    """Answer where there is no release: how to get one, or how far it is."""
    page = page_of(request)
    return page_response(
        request, "release_missing.html", step=step, title=title, job=page.job(PURPOSE), project=page.state.project
    )
