"""Start of the command: Ctrl-C is one line and exit code 130 from the first import to the end.

Nothing but what Python itself has loaded is imported at the top, for an interruption before :func:`main` runs is
Python's own and shows a traceback.

Python raises ``KeyboardInterrupt`` wherever it is. Two places do not pass it on: the start-up code of native modules
prints it and raises ``ImportError`` instead, and functions that the interpreter calls by itself (finalizers, callbacks)
print and forget it. So an interruption during an import waits until the import is done, and one that was forgotten
comes again.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from types import FrameType
    from typing import Any

INTERRUPTED = 130
_IMPORT_CODE = "<frozen importlib._bootstrap>"
_LATER_SECONDS = 0.02


class Interruptions:
    """Handler of Ctrl-C; ``did_happen`` says whether one came, ``is_due`` whether it is still to be raised.

    While ``is_put_off`` none is raised; ``came_meanwhile`` says whether one came then.
    """

    def __init__(self) -> None:
        self.did_happen = False
        self.is_due = False
        self.is_put_off = False
        self.came_meanwhile = False

    def take_over(self) -> None:
        """Handle Ctrl-C from now on, unless it is ignored here, as under nohup and in the background."""
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._interrupt)
            sys.unraisablehook = self._forgotten

    def end(self) -> None:
        """Be deaf from now on: the command is over, and what is tidied up now is not interrupted."""
        if signal.getsignal(signal.SIGINT) == self._interrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.is_put_off:  # raised inside the hook it would be lost for good
            self.came_meanwhile = True
            return
        importer = None if self.is_due else _importing_frame(frame)  # who interrupts again is impatient
        self.did_happen = True
        if importer is not None and sys.gettrace() is None:
            self.is_due = True
            importer.f_trace = self._raise  # when its next line, after the import, is reached
            sys.settrace(_trace_no_other)
            return
        self.is_due = False
        raise KeyboardInterrupt

    def _raise(self, frame: FrameType, event: str, argument: Any) -> Any:
        sys.settrace(None)
        frame.f_trace = None
        self.is_due = False
        raise KeyboardInterrupt

    def _forgotten(self, event: Any) -> None:
        """Let an interruption come again that was raised where nobody could take it."""
        if event.exc_type is KeyboardInterrupt:
            self.is_due = self.came_meanwhile = True
            while self.came_meanwhile:  # on a busy machine a timer may be over before its start is
                self.is_put_off, self.came_meanwhile = True, False
                _interrupt_later()
                self.is_put_off = False
        else:
            sys.__unraisablehook__(event)


def _interrupt_later() -> None:
    import threading

    timer = threading.Timer(_LATER_SECONDS, _interrupt_again)
    timer.daemon = True
    timer.start()


def _interrupt_again() -> None:
    import threading

    if hasattr(signal, "pthread_kill"):  # it ends a wait, too
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)


def _importing_frame(frame: FrameType | None) -> FrameType | None:
    """Frame that waits for the outermost import under way, if there is one."""
    found = None
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT_CODE:
            found = frame.f_back
        frame = frame.f_back
    return found


def _trace_no_other(frame: FrameType, event: str, argument: Any) -> None:
    """Look into no function that is called meanwhile."""


interruptions = Interruptions()


def interrupted_words() -> str:
    """Say that the command was interrupted, and which files it had written by then."""
    written = ", ".join(sorted(map(str, _named_files())))
    return f"sfumato: interrupted; {f'written before that: {written}' if written else 'no release was written'}\n"


def forget_written() -> None:
    """Begin again to count the files that are written."""
    _named_files().clear()


def _named_files() -> set[Path]:
    atomic = sys.modules.get("sfumato.atomic")
    return atomic.NAMED if atomic is not None else set()


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    What was registered for the end is run, and then the process ends at once: threads of native libraries that are
    still waiting for work would now and then abort it (exit code 134) while the interpreter is taken down. Where memory
    is limited, the command runs in a child of this process.
    """
    interruptions.take_over()
    try:
        from sfumato.cli.limited_memory import go_on_in_a_child

        go_on_in_a_child()
        from sfumato.cli.main import run

        code = run(sys.argv[1:] if arguments is None else arguments)
        if interruptions.is_due:
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        interruptions.end()
        os.write(2, interrupted_words().encode(errors="replace"))
        code = INTERRUPTED
    interruptions.end()
    _tidy_up()
    os._exit(code)


def _tidy_up() -> None:
    import atexit
    import contextlib

    with contextlib.suppress(Exception):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
