"""Parsers of files as forks of a process that has imported their libraries: thousands of files cost little each.

sfumato starts a fresh interpreter for every workbook and file of a statistics package, which takes most of the time.
Here the same program runs in a fork, with the same pipes, limits and signals; what reads its answer is unchanged.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class ForkedParser:
    """Stands for ``subprocess.Popen`` where a parser is started; takes what is used of it there."""

    def __init__(self, command: Sequence[str], *, stdin: int, stdout: int, stderr: int, env: object) -> None:
        program = Path(command[3]).resolve()
        to_read, to_give = os.pipe()
        to_take, to_answer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            for end in (to_give, to_take):
                os.close(end)
            _parse(program, to_read, to_answer)
        for end in (to_read, to_answer):
            os.close(end)
        self.stdin, self.stdout = os.fdopen(to_give, "wb", buffering=0), os.fdopen(to_take, "rb")
        self.returncode: int | None = None

    def kill(self) -> None:
        """End it, if it has not ended."""
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait for its end; gives its exit code, below 0 by a signal."""
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.stdin.close()
        self.stdout.close()
        self.wait()


def _parse(program: Path, given: int, answer: int) -> None:
    """Run a parser's program in this process, which then ends."""
    code = 1
    try:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for number, end in enumerate((given, answer, nowhere)):
            os.dup2(end, number)
        sys.stdin, sys.stdout = os.fdopen(0, "r"), os.fdopen(1, "w")
        sys.argv = [str(program)]
        _main_of(program)()
        sys.stdout.flush()
        code = 0
    finally:
        os._exit(code)


def _main_of(program: Path) -> Any:
    from sfumato.table.io import excel_child
    from sfumato.table.io.statistics import child

    mains = {Path(module.__file__).resolve(): module.main for module in (excel_child, child)}
    return mains[program]


def use_forks() -> None:
    """Let parsers of this process be forks of it."""
    import numpy  # noqa: F401  (imported once, for all forks)
    import pyreadstat  # noqa: F401
    import python_calamine  # noqa: F401

    from sfumato.table.io import excel
    from sfumato.table.io.statistics import read

    for module in (excel, read):
        module.subprocess = _Forking(module.subprocess)  # type: ignore[attr-defined]


class _Forking:
    """The module ``subprocess`` with another ``Popen``."""

    Popen = ForkedParser

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)
