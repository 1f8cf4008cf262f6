"""One task's process as the server sees it: started, listened to, and ended."""

from __future__ import annotations

import json
import multiprocessing.connection
import multiprocessing.forkserver
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from sfumato.processes import (
    cause_of_death,
    forking_context,
    interruptions_held_back,
    kill_forkserver,
    kill_group,
    kill_with_group,
    one_thread_each,
)
from sfumato.web.jobs.process import TaskError, run_task

PRIVATE = 0o700
_PRELOAD = ["sfumato.web.jobs.preload"]
_SECONDS_TO_LEAVE = 1.0
_STARTING_AND_JOINING = threading.Lock()  # Python looks after all its processes at each start, in whichever thread


def start_forkserver() -> None:
    """Start the process that tasks are forked from, without waiting until it has imported everything."""
    with _STARTING_AND_JOINING, one_thread_each(), interruptions_held_back():
        if forking_context(_PRELOAD).get_start_method() == "forkserver":
            multiprocessing.forkserver.ensure_running()


def end_forkserver() -> None:
    """End the process that tasks are forked from, be it still importing."""
    with _STARTING_AND_JOINING:
        kill_forkserver()


def make_private_folder(folder: Path) -> None:
    """Make a folder that only this user can read, and those above it that are absent."""
    try:
        for parent in reversed(folder.parents):
            parent.mkdir(PRIVATE, exist_ok=True)
        folder.mkdir(PRIVATE)
        folder.chmod(PRIVATE)
    except OSError as exc:
        raise TaskError.of(exc) from None


def empty_folder(folder: Path, *, but: Sequence[str] = ()) -> None:
    """Remove everything in a folder but names of some patterns; what a dying process still adds goes too."""
    deadline = time.monotonic() + _SECONDS_TO_LEAVE
    while True:
        found = list(folder.iterdir()) if folder.is_dir() else []
        left = [entry for entry in found if not any(fnmatchcase(entry.name, kept) for kept in but)]
        for entry in left:
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
        if not left or time.monotonic() > deadline:
            return
        time.sleep(0.01)


class TaskProcess:
    """A task in a process of its own.

    Parameters
    ----------
    folder : Path
        Private folder of the task, which exists.
    package : str
        Where the task's module stands.
    confined_to : sequence of str
        Folders whose files it may use; all if empty.
    """

    def __init__(
        self, task: str, arguments: Mapping[str, Any], folder: Path, package: str, confined_to: Sequence[str] = ()
    ) -> None:
        self._given = (package, task, str(folder), json.dumps(arguments), tuple(confined_to))
        self._process: BaseProcess | None = None
        self._is_unwanted = False
        self._lock = threading.Lock()

    @property
    def is_running(self) -> bool:
        """Whether the process has been started and not yet been seen off."""
        return self._process is not None

    def run(self, listen: Callable[[Mapping[str, Any]], None], seconds: float | None = None) -> TaskError | None:
        """Run the task to its end, which is its result in the folder, or an error.

        Parameters
        ----------
        listen : callable
            Takes the task's messages.
        seconds : float or None
            After which the task is given up.
        """
        context = forking_context(_PRELOAD)
        events, far_end = context.Pipe(duplex=False)
        with events:
            try:
                with far_end, _STARTING_AND_JOINING, one_thread_each(), interruptions_held_back():
                    if self._is_unwanted:
                        return TaskError("the task was ended before it began", exit_code=3, kind="NotStarted")
                    process = context.Process(target=run_task, args=(*self._given, far_end), daemon=False)
                    process.start()
            except (OSError, EOFError):
                message = "the task's process could not be started"
                return TaskError(message, hint="check the free memory, then start the server again", kind="NotStarted")
            with self._lock:
                self._process = process
            if self._is_unwanted:
                self.kill()
            try:
                last = self._last_message(events, listen, seconds)
            except TimeoutError:
                self.kill()
                return TaskError(f"took longer than {seconds:g} seconds and was ended", exit_code=3, kind="TimedOut")
            finally:
                exit_code = self._see_off(process)
        if last is None:
            return TaskError(f"the task did not finish: {cause_of_death(exit_code)}", exit_code=3, kind="Died")
        return TaskError(**last["error"]) if "error" in last else None

    def _last_message(
        self,
        events: multiprocessing.connection.Connection,
        listen: Callable[[Mapping[str, Any]], None],
        seconds: float | None,
    ) -> Mapping[str, Any] | None:
        """Pass messages on up to the one that says how the task ended; ``None`` if it ended without."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            if not events.poll(None if deadline is None else max(deadline - time.monotonic(), 0.0)):
                raise TimeoutError
            try:
                message: Mapping[str, Any] = json.loads(events.recv_bytes())
            except (EOFError, OSError):
                return None
            if "ended" in message:
                return message
            listen(message)

    def _see_off(self, process: BaseProcess) -> int | None:
        """Wait for the end of a process that has said its last word, or make it end; give its exit code."""
        if not multiprocessing.connection.wait([process.sentinel], _SECONDS_TO_LEAVE):
            kill_with_group(process)
            multiprocessing.connection.wait([process.sentinel], _SECONDS_TO_LEAVE)
        with _STARTING_AND_JOINING, self._lock:
            self._process = None
            process.join(_SECONDS_TO_LEAVE)
            exit_code = process.exitcode
            kill_group(process.pid)
            with suppress(ValueError):  # it does not even die
                process.close()
        return exit_code

    def kill(self) -> None:
        """Kill the process and those it has started, or see that it is killed as soon as it runs."""
        self._is_unwanted = True
        with self._lock:
            if self._process is not None:
                kill_with_group(self._process)
