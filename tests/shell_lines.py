"""Lines for a shell, split by a real shell and run in this process: another one would only load the libraries again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sfumato.cli.main import run

_AS_FUNCTION = """sfumato() { printf '%s\\0' "$@"; }\n"""


def arguments_of(line: str, folder: Path) -> list[str]:
    """Give what a shell passes to ``sfumato``."""
    shell = ["/bin/sh", "-c", _AS_FUNCTION + line]
    done = subprocess.run(shell, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.split("\0")[:-1]


def run_line(line: str, folder: Path) -> None:
    """Run a line that begins with ``sfumato`` in a folder; it must end well."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run(arguments_of(line, folder)) == 0


def run_script(code: str, folder: Path) -> None:
    """Run Python lines as a script in a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(compile(code, "as shown", "exec"), {"__name__": "__main__"})
