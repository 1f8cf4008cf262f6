"""Jobs of the page: tasks in processes of their own, short ones awaited, long ones watched and cancelled.

The server that holds them imports no heavy library.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from sfumato.web.job import JOB_NAME, Job
from sfumato.web.job_errors import TaskError
from sfumato.web.job_process import RESULT_NAME, Tell
from sfumato.web.job_running import (
    TaskProcess,
    empty_folder,
    end_forkserver,
    make_private_folder,
    start_forkserver,
)
from sfumato.web.tasks import PACKAGE

__all__ = ["SECONDS_TO_READ", "Job", "Jobs", "TaskError", "Tell"]

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
