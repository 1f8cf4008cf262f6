"""Jobs of the page: tasks in processes of their own, short ones awaited, long ones watched and cancelled.

The server that holds them imports no heavy library.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
import threading
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from sfumato.private_folders import write_private
from sfumato.web.jobs.process import FIRST_RESULT_NAME, LONGEST_LOG, RESULT_NAME, TaskError, Tell
from sfumato.web.jobs.running import TaskProcess, empty_folder, end_forkserver, make_private_folder, start_forkserver
from sfumato.web.tasks import PACKAGE

# How far a job is, and how long it will still take.


_LEAST_SECONDS = 0.5


@dataclass(frozen=True)
class Progress:
    """Steps done within the phase that is under way; times are seconds since the job's start.

    Parameters
    ----------
    first_done, first_at
        When the phase began.
    at
        When the latest news came.
    """

    done: int
    total: int
    what: str
    at: float
    first_done: int
    first_at: float

    @classmethod
    def none(cls) -> Progress:
        """Nothing known yet."""
        return cls(0, 0, "", 0.0, 0, 0.0)

    def then(self, done: int, total: int, what: str, at: float) -> Progress:
        """Take in news. A phase begins where the steps start again, or both the total and what is done change.

        Examples
        --------
        >>> counting = Progress.none().then(0, 10, "counting", 1.0).then(8, 10, "counting", 2.0)
        >>> counting.then(2, 30, "searching", 3.0).first_at
        3.0
        """
        is_new = done < self.done or (total != self.total and what != self.what)
        begun = (done, at) if is_new else (self.first_done, self.first_at)
        return replace(self, done=done, total=total, what=what, at=at, first_done=begun[0], first_at=begun[1])

    def seconds_left(self, now: float) -> float | None:
        """Estimate how long the phase still takes, from its rate so far; ``None`` where that tells nothing.

        A step that takes longer than those before it slows the rate down.

        Examples
        --------
        >>> Progress(done=3, total=10, what="folds", at=6.0, first_done=0, first_at=0.0).seconds_left(now=7.0)
        13.0
        """
        completed, remaining = self.done - self.first_done, self.total - self.done
        if completed <= 0 or remaining <= 0 or now - self.first_at < _LEAST_SECONDS:
            return None
        each = max((self.at - self.first_at) / completed, (now - self.first_at) / (completed + 1))
        return each * remaining - min(now - self.at, each)


# A long task: what is known of it while it runs and afterwards, in memory and on disk.


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
        Why it failed; of one that is done, why there is nothing but its first result.
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
        self._has_first_result = False
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
            job._has_first_result = facts.get("has_first_result", False)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if job.status == "running":
            job._end("failed", TaskError("the server ended", hint="start it again", kind="ServerEnded"))
            job._take_last_result()
            job._write()
        job._has_ended.set()
        return job

    @property
    def is_over(self) -> bool:
        """Whether it is no longer running."""
        return self.status != "running"

    @property
    def has_result(self) -> bool:
        """Whether there is a result: the last one, or while it is running a first one."""
        return self.status == "done" or (self.status == "running" and self._has_first_result)

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
        """Read what a job has found, so far if it is running."""
        if not self.has_result:
            raise TaskError("there is no result", kind="NoResult")
        if self._result is not None:
            return self._result
        is_last = self._has_ended.is_set()
        name = RESULT_NAME if self._has_last_result or not self._has_first_result else FIRST_RESULT_NAME
        try:
            found: dict[str, Any] = json.loads((self.folder / name).read_bytes())
        except (OSError, ValueError):
            raise TaskError("the result has gone", hint="run it again", kind="NoResult") from None
        if is_last:
            self._result = found
        return found

    def run(self, process: TaskProcess) -> None:
        """Run the task's process, watched by a thread."""
        self._process = process
        self._write()
        threading.Thread(target=self._watch, args=(process,), daemon=True, name=f"sfumato job {self.id}").start()

    def cancel(self) -> None:
        """Kill the job's processes, unless it is over, and wait until they and their files have gone.

        A first result stays, and the job is done.
        """
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
                self._take_last_result()
            with suppress(OSError):
                if self.status == "cancelled":
                    empty_folder(self.folder, but=[JOB_NAME])
                elif self.status == "failed":
                    empty_folder(self.folder, but=[JOB_NAME, _RECORDS])
            self._write()
            self._has_ended.set()

    def _end(self, status: Status, error: TaskError | None) -> None:
        self._seconds = self.seconds
        if self._has_first_result and status != "done":
            status, error = "done", error or TaskError("it was stopped", kind="Stopped")
        self.error = error
        self.status = status

    @property
    def _has_last_result(self) -> bool:
        return (self.folder / RESULT_NAME).exists()

    def _take_last_result(self) -> None:
        """Count a job that was ended after it wrote its last result, and before it could say so, as done."""
        if self._has_first_result and self._has_last_result:
            self.status, self.error = "done", None

    def _hear(self, message: Mapping[str, Any]) -> None:
        with self._lock:
            if self.is_over:
                return
            if "progress" in message:
                done, total, what = message["progress"]
                self._progress = self._progress.then(done, total, what, self.seconds)
            self._log.extend(message.get("log", ()))
            self._has_first_result |= message.get("has_result", False)
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
            "has_first_result": self._has_first_result,
        }
        with suppress(OSError):
            write_private(self.folder / JOB_NAME, json.dumps(facts))


SECONDS_TO_READ = 600.0
"""Time limit of a short task that reads the whole table."""
_SHORT_TASKS_AT_ONCE = 4
_CALL = "call-"


class Jobs:
    """All jobs of one server.

    Parameters
    ----------
    folder : Path
        Private folder; finished jobs that stand in it are shown again.
    package : str
        Package of the tasks' modules.
    root : Path or None
        Folder that tasks are confined to, besides the private one; ``None`` leaves them all files.
    """

    def __init__(self, folder: Path, package: str = PACKAGE, root: Path | None = None) -> None:
        self._folder = folder
        self._package = package
        self._confined_to = [str(root), str(folder.parent)] if root is not None else []
        self._lock = threading.Lock()
        self._calls: set[TaskProcess] = set()
        self._is_closed = self._is_warm = False
        self._threads = ThreadPoolExecutor(_SHORT_TASKS_AT_ONCE, thread_name_prefix="sfumato short task")
        if not folder.is_dir():
            make_private_folder(folder)
        for left in folder.glob(f"{_CALL}*"):
            shutil.rmtree(left, ignore_errors=True)
        found = [Job.loaded(path) for path in sorted(folder.glob(f"*/{JOB_NAME}"))]
        self._jobs = {job.id: job for job in found if job is not None}

    def warm(self) -> None:
        """Start the process that tasks are forked from; returns at once."""
        self._is_warm = True
        start_forkserver()

    async def call(self, task: str, /, *, seconds: float = 60.0, **arguments: Any) -> dict[str, Any]:
        """Wait for a short task and give its result.

        A few run at once, and others wait. The time limit holds from when the task's turn comes.

        Raises
        ------
        TaskError
            If the task fails, or takes longer than ``seconds``.
        """
        self._check_open()
        folder = self._folder / f"{_CALL}{secrets.token_hex(8)}"
        process = TaskProcess(task, arguments, folder, self._package, self._confined_to)
        run = partial(self._run_call, process, folder, seconds)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, run)
        except asyncio.CancelledError:
            process.kill()
            raise

    def _run_call(self, process: TaskProcess, folder: Path, seconds: float) -> dict[str, Any]:
        make_private_folder(folder)
        with self._lock:
            self._calls.add(process)
        try:
            self._check_open()
            error = process.run(lambda message: None, seconds)
            if error is not None:
                raise error
            result: dict[str, Any] = json.loads((folder / RESULT_NAME).read_bytes())
            return result
        finally:
            with self._lock:
                self._calls.discard(process)
            with suppress(OSError):
                empty_folder(folder)
                folder.rmdir()

    def start(self, task: str, /, *, title: str, **arguments: Any) -> Job:
        """Start a long task and return at once."""
        self._check_open()
        job_id = secrets.token_hex(8)
        folder = self._folder / job_id
        make_private_folder(folder)
        job = Job(job_id, task, title, folder)
        process = TaskProcess(task, arguments, folder, self._package, self._confined_to)
        with self._lock:
            self._jobs[job_id] = job
        job.run(process)
        return job

    def get(self, job_id: str) -> Job | None:
        """Find a job by its id."""
        with self._lock:
            return self._jobs.get(job_id)

    def cancel(self, job_id: str) -> None:
        """Kill a job's processes and remove what it has made; a job that is over or unknown is left alone."""
        job = self.get(job_id)
        if job is not None:
            job.cancel()

    def remove(self, job_id: str) -> None:
        """End a job and remove its folder; it is then unknown."""
        self.cancel(job_id)
        with self._lock:
            job = self._jobs.pop(job_id, None)
        if job is not None:
            shutil.rmtree(job.folder, ignore_errors=True)

    def close(self) -> None:
        """End all tasks, and the process that they are forked from if it was warmed here; no new one is taken."""
        with self._lock:
            self._is_closed = True
            calls, jobs = list(self._calls), list(self._jobs.values())
        for process in calls:
            process.kill()
        for job in jobs:
            job.cancel()
        self._threads.shutdown(cancel_futures=True)
        if self._is_warm:
            end_forkserver()

    def _check_open(self) -> None:
        if self._is_closed:
            raise TaskError("the server is ending", kind="Closed")


__all__ = ["SECONDS_TO_READ", "Job", "Jobs", "TaskError", "Tell"]
