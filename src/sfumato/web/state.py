"""What the page knows beyond the project file: which project is open, which jobs belong to it, what was short-listed.

It stands on disk, in the private folder of the server, so that closing a tab loses nothing and two tabs see the same.
"""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import Any

from sfumato.atomic import write_atomically
from sfumato.web.jobs import Job, Jobs
from sfumato.web.settings import PageSettings

_STATE_NAME = "state.json"


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
            write_atomically(self.path, json.dumps(facts).encode(), force=True)
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
        self.jobs = Jobs(folder / "jobs")
        self.state = PageState(folder / _STATE_NAME)
        self._lock = threading.Lock()

    def job(self, purpose: str) -> Job | None:
        """Latest job of a purpose: ``open``, ``risk``, ``compare``, ``release`` or ``collaborate``."""
        job_id = self.state.get("jobs", {}).get(purpose)
        return self.jobs.get(job_id) if job_id else None

    def started(self, purpose: str, job: Job) -> None:
        """Note that a job serves a purpose; an earlier one of the same is no longer shown."""
        with self._lock:
            self.state.update(jobs={**self.state.get("jobs", {}), purpose: job.id})

    def forget_results(self) -> None:
        """Forget what was found about a table, when another one is opened."""
        with self._lock:
            self.state.update(jobs={}, short_list=[], weights=None, asked=None)

    def is_running(self, *purposes: str) -> bool:
        """Whether a job of one of these purposes is under way."""
        return any(job is not None and not job.is_over for job in map(self.job, purposes))

    def close(self) -> None:
        """End all jobs and remove the private folder."""
        self.jobs.close()
        shutil.rmtree(self.folder, ignore_errors=True)
