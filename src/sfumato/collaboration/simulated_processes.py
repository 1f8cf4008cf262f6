"""Processes, folders and ports of a simulation, and how all of them go away again."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sfumato.atomic import PendingFile, alone_in, appear_together, explained_writing
from sfumato.collaboration import simulated_start
from sfumato.collaboration.transcript import Entry, Round, RoundProgress, SessionWatch
from sfumato.errors import CollaborationError, OutputError

_ONE_THREAD = {  # libraries must not have threads of their own when the program forks
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
_PORTS = range(20_000, 32_768)  # below those that systems give to outgoing connections


@contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder that only this user can read, and remove it at the end."""
    folder = Path(tempfile.mkdtemp(prefix=simulated_start.FOLDER_PREFIX))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def pending_copies(copies: Mapping[Path, Path], *, force: bool) -> Iterator[Callable[[], list[str]]]:
    """Copy files into ones without a name, and hand out what names them; it tells what could not be named, and why.

    Leaving without calling what was handed out leaves no copy.
    """
    with ExitStack() as stack:
        pending = {source: stack.enter_context(PendingFile(target)) for source, target in copies.items()}
        for source, copy in pending.items():
            with explained_writing(copy.target), source.open("rb") as content:
                shutil.copyfileobj(content, copy.file)
            copy.complete()

        def keep() -> list[str]:
            problems = []
            for copy in pending.values():
                try:
                    with alone_in(copy.target.parent):
                        appear_together([copy], [copy.target] if force else [])
                except OutputError as exc:
                    problems.append(str(exc))
            return problems

        yield keep


class PartyProcesses:
    """Program that runs the parties; it and they end when this is left, or when this process ends."""

    def __init__(self, folder: Path, watch: SessionWatch | None = None) -> None:
        self._watch = watch or SessionWatch()
        command = [sys.executable, "-m", simulated_start.__name__, str(folder)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env=os.environ | _ONE_THREAD,
        )

    def run(self, progress: RoundProgress | None) -> None:
        """Let the parties begin, and wait until all have ended."""
        process = self._process
        if process.stdin is None or process.stdout is None:
            raise AssertionError
        with suppress(BrokenPipeError):
            process.stdin.write(b"\n")
            process.stdin.flush()
        for line in process.stdout:
            self._hear(json.loads(line), progress)
        process.wait()

    def _hear(self, told: dict[str, Any], progress: RoundProgress | None) -> None:
        match told:
            case {"round": done} if progress is not None:
                progress(Round(**done))
            case {"entry": entry}:
                self._watch.noted(Entry(**entry))
            case {"connected": peer}:
                self._watch.connected(peer)
            case {"ended": party, "went_well": went_well}:
                self._watch.ended(party, went_well=went_well)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        if self._process.poll() != 0:  # else all of them have ended
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
        self._process.wait()


def free_ports(n_ports: int) -> list[int]:
    """Find ports of this machine that nobody listens on."""
    with ExitStack() as sockets:
        found: list[int] = []
        for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
            candidate = sockets.enter_context(socket.socket())
            with suppress(OSError):
                candidate.bind(("127.0.0.1", port))
                found.append(port)
            if len(found) == n_ports:
                return found
    raise CollaborationError("there are too few free ports", party="this machine", stage="start")
