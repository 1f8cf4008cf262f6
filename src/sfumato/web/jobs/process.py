"""What a task's own process does: it runs the task, tells how far it is, and leaves the result in its folder."""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import sys
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from sfumato.errors import BUG, SfumatoError, on_one_line, words_and_exit_code
from sfumato.private_folders import write_private
from sfumato.processes import stand_alone
from sfumato.web.confinement import confine_this_process
from sfumato.web.shown_errors import shown_hint, shown_message
from sfumato.web.tasks import task_named

# What went wrong in a task, as far as people may read it.


_HINT = " Hint: "


class TaskError(Exception):
    """A task did not give a result.

    Parameters
    ----------
    message : str
        For people; never a cell value. A hint at its end is split off.
    hint : str
        What to do about it.
    exit_code : int
        What the command line would return.
    kind : str
        Name of the error's class.
    field : str
        Parameter, entry of a column or column that it is about, where that is known.

    Examples
    --------
    >>> error = TaskError("k must be at least 2, got 1. Hint: take 5", kind="InvalidParameterError")
    >>> error.message, error.hint
    ('k must be at least 2, got 1.', 'take 5')
    """

    def __init__(self, message: str, hint: str = "", exit_code: int = BUG, kind: str = "", field: str = "") -> None:
        if not hint:
            message, _, hint = message.partition(_HINT)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code
        self.kind = kind
        self.field = field
        super().__init__(message + (_HINT + hint if hint else ""))

    @classmethod
    def of(cls, error: BaseException, private: Path | None = None) -> TaskError:
        """Take from an error what may leave the process; files in the private folder are called by their names."""
        if isinstance(error, TaskError):
            return error
        words, exit_code = words_and_exit_code(error, lambda own: shown_message(own, private))
        hint = shown_hint(error) if isinstance(error, SfumatoError) else ""
        is_told = exit_code != BUG
        told = (getattr(error, name, None) for name in ("name", "entry", "column"))
        field = next((one for one in told if one), None) if is_told else None
        known = field if isinstance(field, str) else ""
        return cls(words, hint, exit_code=exit_code, kind=type(error).__name__, field=known)

    def facts(self) -> dict[str, Any]:
        """Give what ``TaskError(**facts)`` is made of."""
        names = ("message", "hint", "exit_code", "kind", "field")
        return {name: getattr(self, name) for name in names}


RESULT_NAME = "result.json"
FIRST_RESULT_NAME = "first-result.json"
"""Result of a task that goes on; the last one does not take its place but stands beside it."""
LONGEST_LOG = 500
_SECONDS_BETWEEN = 0.05
_LONGEST_LINE = 500


class Tell:
    """Passes on how far a task is, at most some twenty times a second; the latest news always arrives.

    Parameters
    ----------
    send : callable
        Takes each message; called from a thread of its own.
    """

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self._send = send
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._progress: tuple[int, int, str] | None = None
        self._log: deque[dict[str, Any]] = deque(maxlen=LONGEST_LOG)
        self._has_result = False
        self._has_news = threading.Event()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._pass_on, daemon=True)
        self._thread.start()

    def progress(self, done: int, total: int, what: str) -> None:
        """Say how many steps of how many are done, and what is under way."""
        progress = (int(done), int(total), _short(what))
        with self._lock:
            self._progress = progress
        self._has_news.set()

    def log(self, text: str) -> None:
        """Add one line for people; never a cell value."""
        line = {"seconds": time.monotonic() - self._started, "text": _short(text)}
        with self._lock:
            self._log.append(line)
        self._has_news.set()

    def first_result(self) -> None:
        """Say that a first result, or a newer one, stands in the task's folder: it stays if the task is ended now."""
        with self._lock:
            self._has_result = True
        self._has_news.set()

    def finish(self) -> None:
        """Pass on what is left."""
        self._is_over.set()
        self._has_news.set()
        self._thread.join()

    def _pass_on(self) -> None:
        while True:
            self._has_news.wait()
            is_over = self._is_over.is_set()
            self._has_news.clear()
            message = self._news()
            if message:
                self._send(message)
            if is_over:
                return
            self._is_over.wait(_SECONDS_BETWEEN)

    def _news(self) -> dict[str, Any]:
        message: dict[str, Any] = {}
        with self._lock:
            if self._progress is not None:
                message["progress"] = self._progress
                self._progress = None
            if self._has_result:
                message["has_result"] = True
                self._has_result = False
            if self._log:
                message["log"] = list(self._log)
                self._log.clear()
        return message


def _short(text: str) -> str:
    return on_one_line(str(text)[:_LONGEST_LINE])


UPLOADS = "data"
"""Folder in the server's private one that holds a folder for each table that was uploaded."""


@contextlib.contextmanager
def in_folder_of_upload(arguments: dict[str, Any], private: Path) -> Iterator[dict[str, Any]]:
    """Work in the folder of the upload that a task is about, and name the files there from it.

    So no text of the task, be it an error or a result, shows more of an upload than the name that its user knows.

    Parameters
    ----------
    arguments : dict
        Of the task; a text that is a path in the folder of an upload is shortened.
    private : Path
        The server's private folder.
    """
    uploads = private / UPLOADS
    paths = {name: Path(text) for name, text in arguments.items() if isinstance(text, str)}
    inside = {name: path.relative_to(uploads) for name, path in paths.items() if path.is_relative_to(uploads)}
    folders = {path.parts[0] for path in inside.values()}
    folder = uploads / folders.pop() if len(folders) == 1 else None
    if folder is None or not folder.is_dir():
        yield arguments
        return
    with contextlib.chdir(folder):
        yield arguments | {name: str(Path(*path.parts[1:])) for name, path in inside.items()}


def run_task(
    package: str, task: str, folder: str, arguments: str, confined_to: Sequence[str], events: Connection
) -> None:
    """Run a task to its end and leave, without the interpreter's last steps: native threads can break those."""
    stand_alone()
    gc.freeze()  # what was imported before the fork stays shared memory
    tempfile.tempdir = folder  # what is left there when the task is killed goes away with the folder
    _be_silent()

    def send(message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the server has gone, and this process ends with it
            events.send_bytes(json.dumps(message).encode())

    tell = Tell(send)
    private = Path(folder).parents[1]  # tasks have folders among the jobs of a server
    ended: dict[str, Any] = {"ended": "done"}
    try:
        run = task_named(task, package)
        if confined_to:
            confine_this_process([Path(name) for name in confined_to])
        with in_folder_of_upload(json.loads(arguments), private) as named:
            result = run(Path(folder), tell, **named)
        write_private(Path(folder) / RESULT_NAME, json.dumps(result))
    except BaseException as exc:
        ended = {"ended": "failed", "error": TaskError.of(exc, private).facts()}
    tell.finish()
    send(ended)
    with contextlib.suppress(Exception):
        atexit._run_exitfuncs()
    os._exit(0)


def _be_silent() -> None:
    """Send to nowhere what libraries write, for it may show cells."""
    warnings.simplefilter("ignore")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (1, 2):
        os.dup2(nowhere, number)
    sys.stdout = sys.stderr = open(nowhere, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 # open to the end
