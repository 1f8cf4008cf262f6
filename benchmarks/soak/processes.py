"""Processes of a soak: those that tell lines of JSON, and what they are started with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.soak.outcome import Outcome

ROOT = Path(__file__).parents[2]
TURN = 20_000
TURN_SECONDS = 60.0
TURN_LIMIT = 900.0


def environment(**more: str) -> dict[str, str]:
    """Environment in which this checkout and its tests' tools are imported."""
    paths = [str(ROOT), str(ROOT / "src"), str(ROOT / "tests")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | more


def sfumato_command(*arguments: object) -> list[str]:
    """Command line of sfumato, by this interpreter."""
    start = "from sfumato.__main__ import main; main()"
    return [sys.executable, "-c", start, *map(str, arguments)]


def tell(**facts: object) -> None:
    """Tell the process that started this one something, as a line of JSON."""
    print(json.dumps(facts), flush=True)


def json_lines(told: bytes) -> list[dict[str, Any]]:
    """Read what a process told; a line that it could not complete is left out."""
    return [json.loads(line) for line in told.splitlines() if line.endswith(b"}")]


class Restarted:
    """A module that fuzzes as a program of its own, in turns: a file may take the process down.

    It is given a folder, a seed, a count and seconds, goes on until both are reached, and tells every ``finding`` and
    in the end ``n_done`` and ``counts``.
    """

    def __init__(self, module: str, folder: Path, seed: int, turn: int = TURN) -> None:
        self.module = module
        self.turn = turn
        self.folder = folder
        self.seed = seed

    def run(self, outcome: Outcome, wanted: int, seconds: float) -> None:
        """Fuzz in turns of a minute or so until the count and the time are reached, or a turn fails."""
        counts: Counter[str] = Counter()
        until = time.monotonic() + seconds
        while outcome.n_done < wanted or time.monotonic() < until:
            code, lines = self._turn(wanted - outcome.n_done, until - time.monotonic())
            for line in lines:
                if "finding" in line:
                    outcome.found(f"{line['finding']} (kept in {self.folder.name})")
                else:
                    outcome.n_done += line["n_done"]
                    counts.update(line["counts"])
            if code:
                outcome.found(f"{self.module} ended with {code}; the file is 'current' in {self.folder.name}")
                break
            self.seed += 1
        outcome.count(counts)

    def _turn(self, count: int, seconds: float) -> tuple[int, list[dict[str, Any]]]:
        folder = self.folder / f"seed-{self.seed}"
        folder.mkdir()
        given = (folder, self.seed, min(self.turn, max(0, count)), min(TURN_SECONDS, max(0.0, seconds)))
        command = [sys.executable, "-m", self.module, *map(str, given)]
        try:
            done = subprocess.run(
                command, env=environment(), cwd=ROOT, stdout=subprocess.PIPE, timeout=TURN_LIMIT, check=False
            )
            code, told = done.returncode, done.stdout
        except subprocess.TimeoutExpired as late:
            code, told = -signal.SIGKILL, late.stdout or b""
        return code, json_lines(told)
