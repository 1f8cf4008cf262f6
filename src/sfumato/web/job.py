"""A long task: what is known of it while it runs and afterwards, in memory and on disk."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from sfumato.private_folders import write_private
from sfumato.web.job_errors import TaskError
from sfumato.web.job_process import LONGEST_LOG, RESULT_NAME
from sfumato.web.job_progress import Progress
from sfumato.web.job_running import TaskProcess, empty_folder

JOB_NAME = "job.json"
_RECORDS = "*.jsonl"  # what a session of several parties has done so far; no cell stands in them
Status = Literal["running", "done", "failed", "cancelled"]
_SECONDS_BETWEEN_WRITES = 1.0
_SECONDS_TO_CANCEL = 1.0


class Job:
    """One long task.

    Attributes
    ----------
    id, task, title : str
        The id is random; the title is for people.
    status : {"running", "done", "failed", "cancelled"}
        Of the server's knowledge; what stands on disk follows.
    error : TaskError or None
        Why it failed.
    folder : Path
        Its private folder, with the facts in ``job.json`` and the result in ``result.json``.
    """

    def __init__(self, job_id: str, task: str, title: str, folder: Path) -> None:
        self.id = job_id
        self.task = task
        self.title = title
        self.folder = folder
        self.status: Status = "running"
        self.error: TaskError | None = None
        self._progress = Progress.none()
        self._log: deque[dict[str, Any]] = deque(maxlen=LONGEST_LOG)
        self._started = time.monotonic()
        self._seconds: float | None = None
        self._written = 0.0
        self._result: dict[str, Any] | None = None
        self._lock = threading.Lock()
        self._process: TaskProcess | None = None
        self._has_ended = threading.Event()

    @classmethod
    def loaded(cls, path: Path) -> Job | None:
        """Read a job of an earlier server from its file; one that was running has failed."""
        try:
            facts = json.loads(path.read_bytes())
            job = cls(path.parent.name, facts["task"], facts["title"], path.parent)
            job.status, job._seconds = facts["status"], facts["seconds"]
            job._progress = Progress.none().then(facts["done"], facts["total"], facts["what"], 0.0)
            job._log.extend(facts["log"])
            job.error = TaskError(**facts["error"]) if facts["error"] else None
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if job.status == "running":
            job.status, job.error = "failed", TaskError("the server ended", hint="start it again", kind="ServerEnded")
            job._write()
        job._has_ended.set()
        return job

    @property
    def is_over(self) -> bool:
        """Whether it is no longer running."""
        return self.status != "running"

    @property
    def done(self) -> int:
        """Steps that are done."""
        return self._progress.done

    @property
    def total(self) -> int:
        """Steps that there are, as far as is known; 0 where nothing is."""
        return self._progress.total

    @property
    def what(self) -> str:
        """What is under way."""
        return self._progress.what

    @property
    def seconds(self) -> float:
        """Time since the start, up to the end."""
        return self._seconds if self._seconds is not None else time.monotonic() - self._started

    @property
    def seconds_left(self) -> float | None:
        """Estimated time that what is under way will still take, where there is an estimate."""
        return None if self.is_over else self._progress.seconds_left(self.seconds)

    @property
    def log(self) -> list[dict[str, Any]]:
        """Latest lines for people, each with its ``seconds`` since the start and its ``text``."""
        with self._lock:
            return list(self._log)

    def result(self) -> dict[str, Any]:
        """Read what a job that is done has found."""
        if self.status != "done":
            raise TaskError("there is no result", kind="NoResult")
        if self._result is None:
            try:
                self._result = json.loads((self.folder / RESULT_NAME).read_bytes())
            except (OSError, ValueError):
                raise TaskError("the result has gone", hint="run it again", kind="NoResult") from None
        return self._result

    def run(self, process: TaskProcess) -> None:
        """Run the task's process, watched by a thread."""
        self._process = process
        self._write()
        threading.Thread(target=self._watch, args=(process,), daemon=True, name=f"sfumato job {self.id}").start()

    def cancel(self) -> None:
        """Kill the job's processes, unless it is over, and wait until they and their files have gone."""
        with self._lock:
            if self.is_over or self._process is None:
                return
            self._end("cancelled", None)
        is_running = self._process.is_running
        self._process.kill()
        if is_running:
            self._has_ended.wait(_SECONDS_TO_CANCEL)

    def _watch(self, process: TaskProcess) -> None:
        error: TaskError | None = TaskError("the server could not watch the task", kind="Unwatched")
        try:
            error = process.run(self._hear)
        finally:
            with self._lock:
                if not self.is_over:
                    self._end("failed" if error else "done", error)
            with suppress(OSError):
                if self.status == "cancelled":
                    empty_folder(self.folder, but=[JOB_NAME])
                elif self.status == "failed":
                    empty_folder(self.folder, but=[JOB_NAME, _RECORDS])
            self._write()
            self._has_ended.set()

    def _end(self, status: Status, error: TaskError | None) -> None:
        self._seconds = self.seconds
        self.error = error
        self.status = status

    def _hear(self, message: Mapping[str, Any]) -> None:
        with self._lock:
            if self.is_over:
                return
            if "progress" in message:
                done, total, what = message["progress"]
                self._progress = self._progress.then(done, total, what, self.seconds)
            self._log.extend(message.get("log", ()))
        if time.monotonic() - self._written >= _SECONDS_BETWEEN_WRITES:
            self._write()

    def _write(self) -> None:
        """Write the facts to disk; memory stays the truth where that fails."""
        self._written = time.monotonic()
        facts = {
            "id": self.id,
            "task": self.task,
            "title": self.title,
            "status": self.status,
            "seconds": self.seconds,
            "done": self.done,
            "total": self.total,
            "what": self.what,
            "log": self.log,
            "error": self.error.facts() if self.error else None,
        }
        with suppress(OSError):
            write_private(self.folder / JOB_NAME, json.dumps(facts))
