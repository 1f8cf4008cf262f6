"""What a benchmark is, and the fresh process in which each contender is measured.

A benchmark is a module of this folder with a ``BENCHMARK``. Its top level imports nothing but the standard library and
this module, because contenders that are ``peers`` run in another virtual environment, which has no sfumato.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.forks import Forks

ROOT = Path(__file__).parents[1]
LONGEST_WAIT = 4
DATA = Path(os.environ.get("SFUMATO_DATA", ROOT.parent / "shared" / "data"))


def nothing(folder: Path) -> None:
    """Prepare nothing."""


class LimitExceededError(RuntimeError):
    """A contender needed more time or memory than it may have."""


@dataclass(frozen=True)
class Outcome:
    """What a contender found, as plain data.

    Parameters
    ----------
    answer : object
        Must be that of the first contender; ``None`` when the question was another one (more rows, another k).
    figures : dict of str to float, int or str
        What may differ, such as the information lost: columns of the table beside the seconds. ``bytes`` (in memory)
        and ``file bytes`` are what cannot but be read: the table then says how far the time is from reading them once.
    """

    answer: Any
    figures: dict[str, float | int | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Contender:
    """One way to get the answer.

    Parameters
    ----------
    run : callable
        Timed. Takes what ``load`` returned.
    load : callable
        Not timed, but in the peak memory. Takes the folder that the benchmark prepared.
    packages : tuple of str
        Whose versions to report.
    peer : bool
        Run it in the peers' own environment.
    assess : callable
        Neither timed nor in the peak memory. Makes an Outcome of what ``load`` and ``run`` returned; by default the
        latter is the answer.
    most_seconds, most_megabytes : float or None
        What a run may take, after which its process is ended: CPU seconds, or four times as many of wall time.
    """

    name: str
    run: Callable[[Any], Any]
    load: Callable[[Path], Any] = lambda folder: folder
    packages: tuple[str, ...] = ()
    repeats: int = 5
    peer: bool = False
    assess: Callable[[Any, Any], Outcome] = lambda loaded, result: Outcome(result)
    most_seconds: float | None = None
    most_megabytes: float | None = None


@dataclass(frozen=True)
class Benchmark:
    """Contenders for one answer; the first is ours, and ratios are taken to it.

    ``prepare`` fills a temporary folder once, untimed. ``needs`` are files without which the benchmark is skipped.
    ``is_forked``: the processes of all contenders are forked from one that has imported sfumato; only where there are
    no peers, whose peak memory would be compared with one that begins with all of sfumato.
    """

    title: str
    goal: str
    contenders: tuple[Contender, ...]
    prepare: Callable[[Path], None] = nothing
    needs: tuple[Path, ...] = ()
    is_forked: bool = False


@dataclass(frozen=True)
class Timing:
    """Medians over the repeats, the first run (with what is set up once), and the peak memory of the process."""

    contender: str
    wall_seconds: float
    cpu_seconds: float
    first_wall_seconds: float
    peak_megabytes: float
    repeats: int
    answer: Any = field(repr=False)
    figures: dict[str, float | int | str]
    versions: dict[str, str]

    @property
    def undisturbed_seconds(self) -> float:
        """Time without other work on the machine: CPU where it is shorter, else (several threads) wall."""
        return min(self.wall_seconds, self.cpu_seconds)


def measure(module: str, contender: str, folder: Path, python: Path, forks: Forks | None = None) -> Timing:
    """Measure one contender in a fresh process, or one that is forked."""
    if forks is not None:
        finished = forks.run("contest", module, contender, str(folder))
    else:
        command = [str(python), "-m", "benchmarks.contest", module, contender, str(folder)]
        environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
        finished = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    if finished.returncode in (-signal.SIGPROF, -signal.SIGALRM):
        over_time = f"> {finished.stdout.splitlines()[-1]} s"
        raise LimitExceededError(over_time)
    if finished.returncode and "MemoryError" in finished.stderr[-2000:]:
        over_memory = "not enough memory"
        raise LimitExceededError(over_memory)
    if finished.returncode:
        message = f"{contender} failed:\n{finished.stderr[-2000:]}"
        raise RuntimeError(message)
    return Timing(**json.loads(finished.stdout.splitlines()[-1]))


def peak_megabytes() -> float:
    """Most memory this process has held at once.

    Linux's own high-water mark of this program; ``ru_maxrss`` would start with that of the process that started it.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.split("VmHWM:")[1].split()[0]) / 1024
    except (OSError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


def median(values: list[float]) -> float:
    """Middle value; the lower of the two for an even number."""
    return sorted(values)[(len(values) - 1) // 2]


def said(figure: float | str | None) -> str:
    """Write a figure: real numbers with four digits, whole ones with commas, a dash for none."""
    if figure is None or isinstance(figure, str):
        return figure or "–"
    return f"{figure:,}" if isinstance(figure, int) else f"{figure:.4g}"


def installed(packages: tuple[str, ...]) -> dict[str, str]:
    """Versions of those packages that are here."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def compete(module: str, name: str, folder: Path) -> dict[str, Any]:
    """Load, run and time one contender in this process."""
    benchmark: Benchmark = importlib.import_module(f"benchmarks.{module}").BENCHMARK
    contender = next(c for c in benchmark.contenders if c.name == name)
    if contender.most_megabytes is not None:
        most = int(contender.most_megabytes * 2**20)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    loaded = contender.load(folder)
    if contender.most_seconds is not None:
        print(f"{contender.most_seconds:g}", flush=True)
        signal.setitimer(signal.ITIMER_PROF, contender.most_seconds)  # its signal ends the process
        signal.setitimer(signal.ITIMER_REAL, LONGEST_WAIT * contender.most_seconds)
    wall: list[float] = []
    cpu: list[float] = []
    for _ in range(contender.repeats):
        result = None  # so that the peak memory is not that of two results
        wall_start, cpu_start = time.perf_counter(), time.process_time()
        result = contender.run(loaded)
        wall.append(time.perf_counter() - wall_start)
        cpu.append(time.process_time() - cpu_start)
    for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
        signal.setitimer(timer, 0)
    peak = peak_megabytes()
    outcome = contender.assess(loaded, result)
    return {
        "contender": name,
        "wall_seconds": median(wall),
        "cpu_seconds": median(cpu),
        "first_wall_seconds": wall[0],
        "peak_megabytes": peak,
        "repeats": contender.repeats,
        "answer": outcome.answer,
        "figures": outcome.figures,
        "versions": installed(contender.packages),
    }


def main(module: str, name: str, folder: str) -> None:
    """Measure in this process, and print it."""
    print(json.dumps(compete(module, name, Path(folder))))


if __name__ == "__main__":
    main(*sys.argv[1:])
