"""Where the time goes: curves at one size, ranked by their distance to the machine's limit, with their functions."""

from __future__ import annotations

import cProfile
import importlib
import json
import os
import pstats
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.forks import Forks
from benchmarks.growth import Curve, point_name
from benchmarks.limits import MachineLimits

N_FUNCTIONS = 3
N_STEPS = 20


@dataclass(frozen=True)
class Ranking:
    """Curves of some growth benchmarks, profiled at one size of their axis.

    Seconds are those of the growth benchmarks where this run has measured them, or else are measured. ``most_seconds``
    ends a point; that of the profiler, which slows calls down, is three times as long.
    """

    title: str
    goal: str
    modules: tuple[str, ...]
    size: int
    most_seconds: float
    curves: tuple[Curve, ...]
    needs: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Place:
    """One curve at the size: seconds (of wall and CPU the fewer), bytes, and the shares of our functions in them."""

    name: str
    seconds: float
    figures: dict[str, Any]
    functions: dict[str, float]


def ranked(name: str, ranking: Ranking, limits: MachineLimits, folder: Path) -> str:
    """Profile every curve, and say them as a Markdown section from the slowest to the fastest."""
    places, over = [], []
    limit = {"SFUMATO_BENCHMARK_SECONDS": f"{ranking.most_seconds}"}
    with Forks(**limit) as forks:
        for curve in ranking.curves:
            print(f"{name}: {curve.name} …", file=sys.stderr)
            place = _profiled_apart(ranking, curve, folder, forks)
            places.append(place) if place is not None else over.append(curve.name)
    by_limit = sorted(places, key=lambda place: -(limits.ratio(place.seconds, place.figures) or 0))
    lines = [
        f"## {name}",
        "",
        f"{ranking.title}. Goal: {ranking.goal}.",
        "",
        "| work | seconds | × reading the bytes once | functions with the largest shares of the profiled time |",
        "| --- | ---: | ---: | --- |",
    ]
    for place in by_limit:
        shares = ", ".join(f"`{function}` {share:.0%}" for function, share in place.functions.items())
        ratio = limits.ratio(place.seconds, place.figures)
        lines.append(f"| {place.name} | {place.seconds:.3g} | {ratio or 0:,.3g} | {shares} |")
    lines += [f"| {late} | > {ranking.most_seconds:g} | | |" for late in over]
    return "\n".join([*lines, ""])


def _profiled_apart(ranking: Ranking, curve: Curve, folder: Path, forks: Forks) -> Place | None:
    """Profile a curve in a process of its own; ``None`` when it takes too long."""
    done = forks.run("ranking", *ranking.modules, curve.name, str(ranking.size), str(folder))
    if done.returncode == -signal.SIGPROF:
        return None
    if done.returncode:
        message = f"{curve.name} failed:\n{done.stderr[-2000:]}"
        raise RuntimeError(message)
    return Place(**json.loads(done.stdout.splitlines()[-1]))


def known_seconds(modules: list[str], folder: Path) -> dict[str, float]:
    """Seconds of the points that growth benchmarks have measured before in this run."""
    files = [folder.parent / f"{module}.json" for module in modules]
    found: dict[str, float] = {}
    for file in files:
        found |= json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


def profiled(curve: Curve, size: int, folder: Path, most_seconds: float, known: dict[str, float]) -> dict[str, Any]:
    """Time a curve at one size where that is not known, then run it with the profiler."""
    curve.run(curve.load(curve.warm_size, folder))
    loaded = curve.load(size, folder)
    seconds = known.get(point_name(curve.name, size))
    if seconds is None:
        signal.setitimer(signal.ITIMER_PROF, most_seconds)
        start, cpu_start = time.perf_counter(), time.process_time()
        curve.run(loaded)
        seconds = min(time.perf_counter() - start, time.process_time() - cpu_start)
    signal.setitimer(signal.ITIMER_PROF, 3 * most_seconds)
    profiler = cProfile.Profile()
    result = profiler.runcall(curve.run, loaded)
    signal.setitimer(signal.ITIMER_PROF, 0)
    figures = curve.assess(loaded, result).figures
    return {"name": curve.name, "seconds": seconds, "figures": figures, "functions": shares_of_functions(profiler)}


def shares_of_functions(profiler: cProfile.Profile) -> dict[str, float]:
    """Shares of our own functions in the time, each with what it calls in libraries, largest first.

    The time of a library's function goes to its callers in proportion to their calls, step by step up to ours.
    """
    entries: dict[Any, Any] = pstats.Stats(profiler).stats  # type: ignore[attr-defined]  # since Python 2
    total = sum(entry[2] for entry in entries.values())
    seconds: dict[str, float] = {}
    moving = {function: entry[2] for function, entry in entries.items()}
    for _ in range(N_STEPS):
        upwards: dict[Any, float] = {}
        for function, spent in moving.items():
            if label := _label(function):
                seconds[label] = seconds.get(label, 0.0) + spent
                continue
            callers = entries[function][4]
            called = sum(entry[3] for entry in callers.values())
            for caller, entry in callers.items():
                upwards[caller] = upwards.get(caller, 0.0) + spent * entry[3] / max(called, 1e-9)
        moving = upwards
    largest = sorted(seconds.items(), key=lambda item: -item[1])[:N_FUNCTIONS]
    return {label: spent / total for label, spent in largest}


def _label(function: tuple[str, int, str]) -> str:
    """Name a function of ours with its module; others get nothing."""
    file, _, name = function
    _, found, module = file.partition("/sfumato/")
    return f"{module.removesuffix('.py').replace('/', '.')}.{name}" if found and "site-packages" not in file else ""


def main(*arguments: str) -> None:
    """Profile one curve in this process, and print it."""
    *modules, wanted, size, folder = arguments
    curves = [curve for module in modules for curve in importlib.import_module(f"benchmarks.{module}").BENCHMARK.curves]
    curve = next(curve for curve in curves if curve.name == wanted)
    known, most_seconds = known_seconds(modules, Path(folder)), float(os.environ["SFUMATO_BENCHMARK_SECONDS"])
    print(json.dumps(profiled(curve, int(size), Path(folder), most_seconds, known)))
