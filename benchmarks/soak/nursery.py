"""A program that has imported sfumato once and forks commands, so that hundreds of them cost little each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.soak.processes import ROOT, environment

# At a line it forks a child that runs a command and tells its id, at the next it waits for it and tells how it ended.
_PROGRAM = """
import contextlib, json, os, resource, sys
import sfumato.cli.making.release, sfumato.cli.speaking.summary, sfumato.cli.afterwards.report
import sfumato.cli.making.hierarchy, sfumato.cli.making.init, sfumato.cli.afterwards.plot
import sfumato.cli.afterwards.audit, sfumato.cli.making.compare, sfumato.publishing.publish, sfumato.table.roles
import sfumato.mechanisms.registry, sfumato.report.render, sfumato.engines.blocks.rows
import sfumato.publishing.propose, sfumato.cli.options.homes
from sfumato.__main__ import main

for name in sfumato.mechanisms.registry.registered_mechanisms():
    with contextlib.suppress(Exception):
        sfumato.mechanisms.registry.build_mechanism(name, {})  # imports it

def used():
    pages = int(open("/proc/self/statm").read().split()[0])
    return pages * resource.getpagesize()

for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        said = os.open(order["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1), os.dup2(said, 2), os.close(0)
        os.environ.update(order["environment"])
        os.chdir(order["folder"])
        if order["memory"] is not None:
            limit = used() + order["memory"]
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        main(order["arguments"])
    print(child, flush=True)
    sys.stdin.readline()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (below 0: by that signal), what it said, and how long it took."""

    code: int
    said: str
    seconds: float


class Nursery:
    """Runs commands one after the other, each as a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.said = folder / "said"
        command = [sys.executable, "-c", _PROGRAM]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment(**_ONE_THREAD)
        )
        self._started = 0.0

    def start(self, arguments: Sequence[object], *, folder: Path, memory: int | None = None, **more: str) -> int:
        """Start a command; gives its process.

        Parameters
        ----------
        folder : Path
            Working folder; temporary files go there too unless ``more`` names another ``TMPDIR``.
        memory : int or None
            Bytes of address space beyond those that the imported modules take.
        more : str
            Environment.
        """
        given = {"TMPDIR": str(folder)} | more
        order: dict[str, Any] = {"arguments": [str(one) for one in arguments], "folder": str(folder)}
        self._started = time.perf_counter()
        return self._ask(order | {"memory": memory, "environment": given, "said": str(self.said)})

    def ended(self) -> Ended:
        """Wait for the command."""
        code = self._ask({})
        seconds = time.perf_counter() - self._started
        return Ended(code, self.said.read_text(encoding="utf-8", errors="replace"), seconds)

    def run(self, arguments: Sequence[object], *, folder: Path, memory: int | None = None, **more: str) -> Ended:
        """Start a command and wait for it."""
        self.start(arguments, folder=folder, memory=memory, **more)
        return self.ended()

    def _ask(self, order: dict[str, Any]) -> int:
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self._process.communicate()


def group_of(process: int) -> set[int]:
    """Find the processes that are still alive in the group that a command began, itself left out."""
    alive = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != process:
            try:
                if os.getpgid(int(folder.name)) == process:
                    alive.add(int(folder.name))
            except ProcessLookupError:
                continue
    return alive
