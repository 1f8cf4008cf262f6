"""Processes that are forked from a warm one, run with one thread each, and end when their parent does.

Nothing heavy is imported here, so that a light program can start them too.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.forkserver
import multiprocessing.util
import os
import select
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from typing import Any

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
_LONGEST_FOLDER = 64  # the path of a socket has 108 bytes, of which its own folder and name take about 32
_SHORT_FOLDER = "/tmp"
_NO_THREADS_BEFORE_FORKING = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}
_NOTHING_FROM_THE_WORKING_FOLDER = {"PYTHONSAFEPATH": "1"}


def forking_context(preload: Sequence[str]) -> Any:
    """Context whose processes come from a clean one that has imported some modules, where the system can do that.

    In a process that was itself made so, the same clean one is used again, with what it has imported already.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    _keep_socket_paths_short()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    return context


def _keep_socket_paths_short() -> None:
    """Let sockets of processes stand in /tmp if the path of the usual temporary folder is too long for one."""
    usual = tempfile.gettempdir()
    if len(usual) <= _LONGEST_FOLDER or not os.access(_SHORT_FOLDER, os.W_OK):
        return
    before, tempfile.tempdir = tempfile.tempdir, _SHORT_FOLDER
    try:
        multiprocessing.util.get_temp_dir()  # made once for a process, private, and removed by it
    finally:
        tempfile.tempdir = before


@contextlib.contextmanager
def one_thread_each() -> Iterator[None]:
    """Set the environment for processes that will be forked; it is as before when this is left."""
    with environment(ONE_THREAD | _NO_THREADS_BEFORE_FORKING | _NOTHING_FROM_THE_WORKING_FOLDER):
        yield


@contextlib.contextmanager
def environment(wanted: Mapping[str, str]) -> Iterator[None]:
    """Set variables for processes that will be started; they are as before when this is left."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def signals_heard(numbers: Iterable[int], handler: Any) -> Iterator[None]:
    """Let a function hear signals until this is left; outside the main thread, where Python hears none, do nothing."""
    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, handler) for number in numbers} if is_main else {}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


@contextlib.contextmanager
def interruptions_held_back() -> Iterator[None]:
    """Start processes that do not hear Ctrl-C: whoever started them hears it afterwards, and ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # starting it would let interruptions through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def stand_alone() -> None:
    """Make this process one that nobody interrupts, with a group of its own, and that ends when its parent does."""
    if hasattr(os, "setsid"):
        os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _use_the_same_forkserver()
    parent = multiprocessing.parent_process()
    if parent is not None:
        signal_when_closed(parent.sentinel)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.update(ONE_THREAD)


def _use_the_same_forkserver() -> None:
    """Do what Python means to do: it starts a second server in a forked process, though it knows the first one.

    Where requests need a key, which a forked process does not have, the second server stays.
    """
    server: Any = multiprocessing.forkserver._forkserver
    if getattr(server, "_forkserver_address", None) and not hasattr(server, "_forkserver_authkey"):
        server.ensure_running = lambda: None


def signal_when_closed(pipe: int, handler: Callable[..., object] | signal.Handlers = signal.SIG_DFL) -> None:
    """Ask for a signal when the other end of a pipe closes, or has closed: by default it ends this process.

    It needs no Python thread, which may have to wait for native code.
    """
    if not hasattr(os, "O_ASYNC"):
        return
    import fcntl

    with contextlib.suppress(OSError):
        signal.signal(signal.SIGIO, handler)
        fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)
        if is_closed(pipe):
            signal.raise_signal(signal.SIGIO)


def is_closed(pipe: int) -> bool:
    """Whether the other end of a pipe is closed, even if something is left to read."""
    poll = select.poll()
    poll.register(pipe, 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def kill_forkserver() -> None:
    """Kill the clean process that others are forked from, if this one has started it.

    Python has no public way: it ends by itself once all others have, but not before it has imported everything.
    """
    server: Any = multiprocessing.forkserver._forkserver
    pid = getattr(server, "_forkserver_pid", None)
    if pid is not None and hasattr(server, "_stop"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError, FileNotFoundError):
            server._stop()


def kill_with_group(process: BaseProcess) -> None:
    """Kill a process and those it has started, without waiting for the end."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if process.pid is not None and hasattr(os, "killpg") and os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def kill_group(leader: int | None) -> None:
    """Kill what a process has left of its group."""
    if leader is not None and hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)


def cause_of_death(exit_code: int | None) -> str:
    """Say why a process ended that was not expected to.

    Examples
    --------
    >>> cause_of_death(-9)
    'its process was ended by signal 9; perhaps the memory was used up'
    >>> cause_of_death(3)
    'its process ended early (exit code 3)'
    """
    if exit_code is not None and exit_code < 0:
        hint = "; perhaps the memory was used up" if -exit_code == getattr(signal, "SIGKILL", 9) else ""
        return f"its process was ended by signal {-exit_code}{hint}"
    return f"its process ended early (exit code {exit_code})"
