"""A process that has imported sfumato once and forks a fresh one for every point, which saves its imports.

The peak memory of a forked process begins with what it holds at the start, as that of a new one does after its imports.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[1]
_IMPORTED = (
    "sfumato.mechanisms",
    "sfumato.audit",
    "sfumato.audit.profile",
    "sfumato.attack.risk",
    "sfumato.engines.blocks.rows",
    "sfumato.publishing.publish",
    "sfumato.table.io.read",
    "sfumato.table.io.write",
)


class Forks:
    """Runs ``main`` of modules of this folder, each time in a process of its own."""

    def __init__(self, **environment: str) -> None:
        command = [sys.executable, "-m", "benchmarks.forks"]
        known = {**os.environ, "PYTHONWARNINGS": "ignore", **environment}
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=known, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a module's ``main`` with some arguments; gives how it ended and what it said."""
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError
        with tempfile.TemporaryDirectory(prefix="sfumato-benchmark-") as folder:
            order = {"module": module, "arguments": arguments, "folder": folder}
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            code = int(self._process.stdout.readline())
            said = [(Path(folder) / name).read_text(encoding="utf-8") for name in ("out", "err")]
        return subprocess.CompletedProcess([module, *arguments], code, *said)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.communicate()


def serve() -> None:
    """Fork a process for every line."""
    from sfumato.mechanisms.registry import registered_mechanisms

    registered_mechanisms()
    for name in _IMPORTED:
        importlib.import_module(name)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(order)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _run(order: dict[str, Any]) -> None:
    """Run what was ordered, and end this process."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for place, name in ((1, "out"), (2, "err")):
        written = os.open(Path(order["folder"]) / name, os.O_WRONLY | os.O_CREAT)
        os.dup2(written, place)
    code = 1
    try:
        importlib.import_module(f"benchmarks.{order['module']}").main(*order["arguments"])
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
