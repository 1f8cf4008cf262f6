"""What stands in for a server's processes and a steward's files: jobs that run at once, and a small project."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sfumato.web.jobs.jobs import Job, Jobs, Status
from sfumato.web.jobs.process import TaskError, in_folder_of_upload
from sfumato.web.state import Page
from sfumato.web.tasks import task_named

PROJECT = """# mine
[data]
path = "people.csv"

[columns]
"age" = { role = "quasi-identifier", kind = "numeric" }  # why
"sex" = { role = "quasi-identifier", kind = "categorical" }
"town" = { role = "quasi-identifier", kind = "categorical" }
"illness" = { role = "sensitive", kind = "categorical" }
"paid" = { role = "target", kind = "categorical" }

[release]
mechanism = "auto"
output = "release.csv"

[release.parameters]
k = 5
"""


def people(n_rows: int = 60, illnesses: Sequence[str] = "xyz") -> str:
    """Write the table of the small project."""
    return "age,sex,town,illness,paid\n" + "".join(
        f"{20 + number % 7},{'fm'[number % 2]},{'abc'[number % 3]},{illnesses[number % 3]},{'yn'[number % 4 == 0]}\n"
        for number in range(n_rows)
    )


def small_project(folder: Path, text: str = PROJECT, table: str | None = None) -> Path:
    """Write a project file and the table beside it; gives the project file."""
    folder.mkdir(exist_ok=True)
    (folder / "people.csv").write_text(people() if table is None else table, encoding="utf-8")
    path = folder / "sfumato.toml"
    path.write_text(text, encoding="utf-8")
    return path


class Told:
    """Takes what a task tells its server."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, int, str]] = []
        self.lines: list[str] = []

    def progress(self, done: int, total: int, what: str) -> None:
        self.steps.append((done, total, what))

    def log(self, text: str) -> None:
        self.lines.append(text)

    def first_result(self) -> None:
        self.lines.append("first result")


def end(job: Job, status: Status = "done", *, result: Any = None, error: TaskError | None = None) -> None:
    """End a job that a test holds, as its process would have."""
    (job.folder / "result.json").write_text(json.dumps(result or {}))
    job._end(status, error)


class JobsAtOnce(Jobs):
    """Tasks run at once in this process, but for those in ``waits``, which run until the test ends them."""

    def __init__(self, folder: Path, tell: Callable[[], Told] = Told) -> None:
        super().__init__(folder)
        self.waits = {"release.make", "explore.compare"}
        self.started: list[tuple[str, dict[str, Any]]] = []
        self._tell = tell

    async def call(self, task: str, /, *, seconds: float = 60.0, **arguments: Any) -> dict[str, Any]:
        await asyncio.sleep(0)  # lets other requests go on; no time passes
        return self._run(task, self._folder, arguments)

    def start(self, task: str, /, *, title: str, **arguments: Any) -> Job:
        self.started.append((task, arguments))
        folder = self._folder / f"job{len(self.started)}"
        folder.mkdir()
        job = self._jobs[folder.name] = Job(folder.name, task, title, folder)
        if task not in self.waits:
            try:
                end(job, result=self._run(task, folder, arguments))
            except TaskError as error:
                end(job, "failed", error=error)
        return job

    def cancel(self, job_id: str) -> None:
        job = self.get(job_id)
        if job is not None and not job.is_over:
            end(job, "cancelled")

    def _run(self, task: str, folder: Path, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run a task; arguments and result are what JSON makes of them."""
        try:
            with in_folder_of_upload(json.loads(json.dumps(arguments)), self._folder.parent) as named:
                found = task_named(task)(folder, self._tell(), **named)
            result: dict[str, Any] = json.loads(json.dumps(found))
            return result
        except Exception as error:
            raise TaskError.of(error, self._folder.parent) from None


def start_for(page: Page, purpose: str, title: str = "It") -> Job:
    """Start a release or a comparison, which waits, for a page to show."""
    job = page.jobs.start({"release": "release.make", "compare": "explore.compare"}[purpose], title=title)
    page.started(purpose, job)
    return job


def store_job(
    folder: Path, task: str, *, status: Status = "done", result: Any = None, error: TaskError | None = None
) -> None:
    """Leave the files of a job of an earlier server, which is over."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    facts = {"id": folder.name, "task": task, "title": task, "status": status, "seconds": 1.0, "done": 1, "total": 1}
    facts |= {"what": "", "log": [], "error": error.facts() if error else None}
    (folder / "job.json").write_text(json.dumps(facts), encoding="utf-8")
