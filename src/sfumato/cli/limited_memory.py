"""A clear end where the address space is limited (``ulimit -v``).

Native libraries do not all survive a refused allocation: some abort the process, some fail at an address that was never
given. So the command runs in a child, and its parent says what happened.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType

_NO_THREAD_MEMORY = 127  # what the C library ends with when a thread gets no memory of its own
_NOT_ENOUGH = 3
_LEAST = 1 << 30
_AMPLE = 16 << 30


def go_on_in_a_child() -> None:
    """Return in a child if the address space of this process is limited, else at once; the parent ends with it."""
    limit = _limit()
    if limit is None:
        return
    if limit < _LEAST:  # some libraries try for ever to get what they need to start
        _say(limit, f"at least {_LEAST // 2**20:,} MB are needed")
        os._exit(_NOT_ENOUGH)
    from sfumato.processes import ONE_THREAD, signal_when_closed

    if limit < _AMPLE:
        os.environ.update(ONE_THREAD)  # every further thread takes address space, used or not
    heard, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(told)
        signal_when_closed(heard)
        return
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, frame: _pass_on(received, frame, child))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the keyboard's goes to the child as well
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code in (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, _NO_THREAD_MEMORY):
        _say(limit, "that was not enough")
        _tidy_up()
        os._exit(_NOT_ENOUGH)
    os._exit(code if code >= 0 else 128 - code)


def _say(limit: int, problem: str) -> None:
    allowed = f"this process may use {limit // 2**20:,} MB of address space"
    sys.stderr.write(f"sfumato: error: not enough memory: {allowed}; {problem}. Hint: raise the limit (ulimit -v)\n")
    sys.stderr.flush()


def _tidy_up() -> None:
    """Remove what the child could not."""
    import tempfile
    from pathlib import Path

    from sfumato.private_folders import remove_leftovers

    with contextlib.suppress(OSError, MemoryError):
        for purpose in ("count", "audit", "query"):
            remove_leftovers(Path(tempfile.gettempdir()), purpose)


def _limit() -> int | None:
    """Bytes of address space that this process may use, if there is a limit."""
    if not hasattr(os, "fork"):
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def _pass_on(number: int, frame: FrameType | None, child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number)
