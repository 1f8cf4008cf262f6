"""What the page knows beyond the project file: which project is open, which jobs belong to it, what was short-listed.

It stands on disk, in the private folder of the server, so that closing a tab loses nothing and two tabs see the same.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sfumato.private_folders import write_private
from sfumato.web.jobs.jobs import Job, Jobs, TaskError
from sfumato.web.settings import PageSettings

_STATE_NAME = "state.json"
_RUNS = ("release", "compare", "collaborate")
_FORGOTTEN: dict[str, Any] = {
    "jobs": {},
    "short_list": [],
    "weights": None,
    "asked": None,
    "also": [],
    "compare_inputs": None,
    "on_disk": None,
    "selected": None,
}
"""What is known of a table, as it is for a new one."""


class PageState:
    """Small facts by name, written to disk at every change.

    Parameters
    ----------
    path : Path
        JSON file; need not exist.

    Examples
    --------
    >>> import tempfile
    >>> state = PageState(Path(tempfile.mkdtemp()) / "state.json")
    >>> state.update(weights=[1, 1, 1])
    >>> PageState(state.path).get("weights")
    [1, 1, 1]
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._facts: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {}

    @property
    def project(self) -> Path | None:
        """Project file in use."""
        found = self.get("project")
        return Path(found) if found else None

    def get(self, key: str, default: Any = None) -> Any:
        """Look a fact up."""
        with self._lock:
            return self._facts.get(key, default)

    def update(self, **changes: Any) -> None:
        """Set facts, on disk first."""
        with self._lock:
            facts = {**self._facts, **changes}
            write_private(self.path, json.dumps(facts))
            self._facts = facts


class Page:
    """One running server: its settings, its private folder, its jobs and its state.

    Parameters
    ----------
    folder : Path
        Private to this server and removed with it; uploads, jobs and their results stand in it.
    """

    def __init__(self, settings: PageSettings, folder: Path) -> None:
        self.settings = settings
        self.folder = folder
        self.jobs = Jobs(folder / "jobs", root=settings.root)
        self.state = PageState(folder / _STATE_NAME)
        self._lock = threading.RLock()
        self._starting: set[str] = set()

    def job(self, purpose: str) -> Job | None:
        """Latest job of a purpose: ``open``, ``risk``, ``compare``, ``release`` or ``collaborate``."""
        job_id = self.state.get("jobs", {}).get(purpose)
        return self.jobs.get(job_id) if job_id else None

    def started(self, purpose: str, job: Job) -> None:
        """Note that a job serves a purpose; an earlier one of the same is ended and removed."""
        with self._lock:
            self._update({"jobs": {**self.state.get("jobs", {}), purpose: job.id}})

    def replace_table(self, **facts: Any) -> None:
        """Note what is known of another table, and forget what was found about the one before.

        Jobs stay as long as they are among the ``jobs`` of either the table or its ``former``.
        """
        with self._lock:
            self._update(_FORGOTTEN | facts)

    def is_running(self, *purposes: str) -> bool:
        """Whether a job of one of these purposes is under way."""
        return any(job is not None and not job.is_over for job in map(self.job, purposes))

    @contextlib.contextmanager
    def only_one(self, purpose: str) -> Iterator[bool]:
        """Tell whether a run may be started: none of the kind is under way, nor being started from another tab.

        Until this is left, no other table takes the place of the one that is open.
        """
        with self._lock:
            is_first = not self._is_busy(purpose)
            if is_first:
                self._starting.add(purpose)
        try:
            yield is_first
        finally:
            if is_first:
                with self._lock:
                    self._starting.discard(purpose)

    @contextlib.contextmanager
    def between_runs(self) -> Iterator[None]:
        """Hold back new runs while another table takes the place of the one that is open.

        Raises
        ------
        TaskError
            If a run is under way or being started.
        """
        with self._lock:
            if any(map(self._is_busy, _RUNS)):
                message = "work on the open table is still running"
                raise TaskError(message, hint="wait until it is done, or cancel it on the step Run or Collaborate")
            yield

    def _is_busy(self, purpose: str) -> bool:
        return purpose in self._starting or self.is_running(purpose)

    def _update(self, changes: dict[str, Any]) -> None:
        """Set facts, and remove the jobs that none names any more; a thread waits for the end of those that run."""
        before = self._named_jobs()
        self.state.update(**changes)
        for job_id in before - self._named_jobs():
            threading.Thread(target=self.jobs.remove, args=(job_id,), daemon=True).start()

    def _named_jobs(self) -> set[str]:
        former = self.state.get("former") or {}
        return {*self.state.get("jobs", {}).values(), *(former.get("jobs") or {}).values()}

    def close(self) -> None:
        """End all jobs and remove the private folder."""
        self.jobs.close()
        shutil.rmtree(self.folder, ignore_errors=True)
