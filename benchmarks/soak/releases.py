"""Releases by two processes at once for the whole time, each audited later by a third process.

::

    python -m benchmarks.soak.releases release FOLDER SEED
    python -m benchmarks.soak.releases audit FOLDER
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from benchmarks.soak.orders import MECHANISMS, SUFFIXES, write_original
from benchmarks.soak.outcome import Outcome
from benchmarks.soak.processes import ROOT, environment, json_lines, tell

N_RELEASING = 2
SHARED = "shared.csv"
"""Both processes replace this release again and again."""
_STOP = "stop"
_LATER = 3.0
_NICE = 5
_LONGEST_END = 300.0


class Releases:
    """The three processes, in the background."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self._started = time.perf_counter()
        write_original(folder)
        orders = [("release", folder, seed + number) for number in range(N_RELEASING)] + [("audit", folder)]
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.soak.releases", *map(str, order)],
                stdout=subprocess.PIPE,
                cwd=ROOT,
                env=environment(OMP_NUM_THREADS="1"),
            )
            for order in orders
        ]

    def stop(self) -> Outcome:
        """End the releases, wait for the audit of the last ones, and collect what was found."""
        outcome = Outcome("releases by 2 processes, audited later", "releases")
        counts: Counter[str] = Counter()
        (self.folder / _STOP).touch()
        for process in self._processes:
            try:
                told, _ = process.communicate(timeout=_LONGEST_END)
            except subprocess.TimeoutExpired:
                process.kill()
                outcome.found("a process did not end")
                continue
            if process.returncode:
                outcome.found(f"a process ended with {process.returncode}")
            for line in json_lines(told):
                if "finding" in line:
                    outcome.found(line["finding"])
                else:
                    outcome.n_done += line.pop("released", 0)
                    counts.update(line)
        outcome.count(counts)
        self._check_audited(outcome)
        outcome.seconds = time.perf_counter() - self._started
        return outcome

    def _check_audited(self, outcome: Outcome) -> None:
        left = {path.name for path in self.folder.iterdir()} - {"admissions.csv", _STOP}
        if left:
            outcome.found("files that no release is", len(left))


def release_until_stopped(folder: Path, seed: int) -> None:
    """Make releases of all kinds; every fifth has the name that the other process uses too."""
    random_ = random.Random(seed)
    n_released = n_refused = n_shared = 0
    while not (folder / _STOP).exists():
        mechanism, is_shared = random_.choice(MECHANISMS), random_.random() < 0.2
        name = SHARED if is_shared else f"{os.getpid()}-{n_released}{random_.choice(SUFFIXES)}"
        given = ["release", "admissions.csv", "--target", "readmitted", "--sensitive", "discharge_diagnosis"]
        more = ["-p", "on_infeasible=skip"] if mechanism == "greedy-containment" else []
        code = _quietly([*given, "-m", mechanism, *more, "-o", name, *(["--force"] if is_shared else [])], folder)
        n_released += code == 0
        n_shared += code == 0 and is_shared
        n_refused += code == 3 and is_shared
        if code and not (code == 3 and is_shared):
            tell(finding=f"release {mechanism} ended with {code}")
    shared = "under the shared name, of which only the last was audited"
    tell(**{"released": n_released, shared: n_shared, "refused, as the name was taken meanwhile": n_refused})


def audit_until_stopped(folder: Path) -> None:
    """Audit every release some seconds after it appeared, and remove what was confirmed."""
    n_audited = 0
    while True:
        is_last = (folder / _STOP).exists()
        found = sorted(folder.glob("*.manifest.json"), key=lambda path: path.stat().st_mtime)
        for manifest in found:
            table = folder / manifest.name.removesuffix(".manifest.json")
            is_done = is_last and not _is_growing(folder)
            if not is_done and (table.name == SHARED or time.time() - manifest.stat().st_mtime < _LATER):
                continue
            _audit(table, manifest, folder)
            n_audited += 1
        if is_last and not found and not _is_growing(folder):
            break
        time.sleep(0.2)
    tell(**{"audited later": n_audited})


def _is_growing(folder: Path) -> bool:
    """Whether a release may still appear: those who make them look for the sign after each one."""
    return time.time() - (folder / _STOP).stat().st_mtime < 2 * _LATER


def _audit(table: Path, manifest: Path, folder: Path) -> None:
    arguments = ["audit", table.name, "--manifest", manifest.name, "--original", "admissions.csv"]
    code = _quietly(arguments, folder)
    if code:
        tell(finding=f"the audit of {table.name} ended with {code}")
    table.unlink(missing_ok=True)
    manifest.unlink(missing_ok=True)


def _quietly(arguments: list[str], folder: Path) -> int:
    from sfumato.cli.main import run

    os.chdir(folder)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = run(arguments)
    if "Traceback" in said.getvalue():
        tell(finding=f"sfumato {' '.join(arguments)} showed a traceback")
    return code


if __name__ == "__main__":
    os.nice(_NICE)
    if sys.argv[1] == "release":
        release_until_stopped(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        audit_until_stopped(Path(sys.argv[2]))
