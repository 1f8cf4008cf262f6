"""Growth curves: the same work on tables of growing size, each point in a process of its own under a limit."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from benchmarks.contest import Contender, LimitExceededError, Outcome, Timing, measure, nothing, said
from benchmarks.forks import Forks
from benchmarks.limits import MachineLimits

MOST_MEGABYTES = 10_000
_CLEARLY = 1.2


@dataclass(frozen=True)
class Curve:
    """Work whose time and memory grow with the size of the table.

    Parameters
    ----------
    load : callable
        Not timed. Takes a size and the folder of the run.
    run : callable
        Timed. Takes what ``load`` returned.
    assess : callable
        Not timed. Makes an Outcome of what ``load`` and ``run`` returned, with the bytes that cannot but be read under
        ``bytes``. Equal sizes of one ``task`` must have equal answers.
    warm_size : int
        Size that is run once beforehand, so that imports are not timed; 0 for none.
    most_seconds : float or None
        Limit of this curve where it is not that of the others.
    is_made_apart : bool
        Whether ``load`` keeps what it makes. It then runs in a process before, so that the peak memory is not its own.
    """

    name: str
    load: Callable[[int, Path], Any]
    run: Callable[[Any], Any]
    assess: Callable[[Any, Any], Outcome]
    sizes: tuple[int, ...]
    packages: tuple[str, ...] = ("sfumato",)
    task: str = ""
    warm_size: int = 2_000
    peer: bool = False
    most_seconds: float | None = None
    is_made_apart: bool = False

    def contender(self, size: int, seconds: float) -> Contender:
        """Make the contender of one point; ``seconds`` is the limit of all curves."""
        return Contender(
            point_name(self.name, size),
            self.run,
            partial(self._warmed, size),
            self.packages,
            repeats=1,
            peer=self.peer,
            assess=self.assess,
            most_seconds=self.most_seconds or seconds,
            most_megabytes=MOST_MEGABYTES,
        )

    def _warmed(self, size: int, folder: Path) -> Any:
        if self.warm_size:
            self.run(self.load(self.warm_size, folder))
        return self.load(size, folder)


@dataclass(frozen=True)
class Growth:
    """Curves over one axis. A point that takes longer than the limit ends its curve."""

    title: str
    goal: str
    axis: str
    curves: tuple[Curve, ...]
    most_seconds: float
    prepare: Callable[[Path], None] = nothing
    needs: tuple[Path, ...] = ()

    @cached_property
    def contenders(self) -> tuple[Contender, ...]:
        """All points, as the process that measures one looks it up."""
        return tuple(curve.contender(size, self.most_seconds) for curve in self.curves for size in curve.sizes)


@dataclass
class Grown:
    """One curve as measured; what ended it, where that was before the last size."""

    curve: Curve
    timings: dict[int, Timing]
    ended: dict[int, str]

    def exponent(self) -> float | None:
        """Power of the size by which the time grows between the first point of 50 ms and the last."""
        seconds = {size: t.undisturbed_seconds for size, t in self.timings.items() if t.undisturbed_seconds >= 0.05}
        if len(seconds) < 2:
            return None
        first, last = min(seconds), max(seconds)
        return math.log(seconds[last] / seconds[first]) / math.log(last / first)


def point_name(name: str, size: int) -> str:
    """Name of one point of a curve."""
    return f"{name}, {size:,}"


def grow(module: str, growth: Growth, curve: Curve, folder: Path, peers: Path | None, forks: Forks) -> Grown:
    """Measure a curve up to the limit; ``peers`` is the interpreter of those that are not measured here."""
    grown = Grown(curve, {}, {})
    for size in curve.sizes:
        if grown.timings and _is_hopeless(grown, size, curve.most_seconds or growth.most_seconds):
            grown.ended[size] = "not run: > limit"
            break
        print(f"{module}: {point_name(curve.name, size)} …", file=sys.stderr)
        try:
            if curve.is_made_apart:
                _make_apart(module, curve, size, folder, forks)
            grown.timings[size] = measure(
                module, point_name(curve.name, size), folder, peers or Path(sys.executable), None if peers else forks
            )
        except LimitExceededError as error:
            grown.ended[size] = str(error)
            break
        except RuntimeError as error:
            print(error, file=sys.stderr)
            grown.ended[size] = "failed: " + str(error).strip().splitlines()[-1]
            break
    return grown


def _make_apart(module: str, curve: Curve, size: int, folder: Path, forks: Forks) -> None:
    made = forks.run("growth", module, curve.name, str(size), str(folder))
    if made.returncode:
        message = f"{curve.name} was not made:\n{made.stderr[-2000:]}"
        raise RuntimeError(message)


def main(module: str, name: str, size: str, folder: str) -> None:
    """Let a curve make and keep what it loads, in this process."""
    growth: Growth = importlib.import_module(f"benchmarks.{module}").BENCHMARK
    next(curve for curve in growth.curves if curve.name == name).load(int(size), Path(folder))


def _is_hopeless(grown: Grown, size: int, most_seconds: float) -> bool:
    """Whether the next point will take too long, if time goes on growing as it did (at first: as a square root)."""
    last, timing = list(grown.timings.items())[-1]
    exponent = min(grown.exponent() or 0.5, 1.0)
    return timing.undisturbed_seconds * (size / last) ** exponent > _CLEARLY * most_seconds


def disagreeing(curves: list[Grown]) -> list[str]:
    """Points that have another answer than the first curve of their task has for that size."""
    first: dict[tuple[str, int], Any] = {}
    wrong = []
    for grown in curves:
        for size, timing in grown.timings.items():
            if timing.answer is None or not grown.curve.task:
                continue
            if timing.answer != first.setdefault((grown.curve.task, size), timing.answer):
                wrong.append(timing.contender)
    return wrong


def describe(name: str, growth: Growth, curves: list[Grown], limits: MachineLimits) -> str:
    """Say the curves as a Markdown section: one line a curve, one column a size."""
    sizes = sorted({size for curve in growth.curves for size in curve.sizes})
    lines = [
        f"## {name}",
        "",
        f"{growth.title}. Goal: {growth.goal}. Each cell: wall / CPU seconds, peak memory. Points over "
        f"{growth.most_seconds:g} CPU s{_own_limits(growth)} or {MOST_MEGABYTES // 1000} GB end a curve, each is run "
        f"once. Exponent: time grows with this power of the {growth.axis}. "
        "Limit: × the time of reading the table's bytes once at the machine's bandwidth, for the largest point.",
        "",
        f"| {growth.axis} |"
        + "".join(f" {size:,} |" for size in sizes)
        + " exponent | × limit | more, largest point |",
        "| --- |" + " ---: |" * (len(sizes) + 2) + " --- |",
    ]
    lines += [_line(grown, sizes, limits) for grown in curves]
    wrong = disagreeing(curves)
    tasks = sorted({grown.curve.task for grown in curves if grown.curve.task})
    verdict = f"**Different answers: {', '.join(wrong)}.**" if wrong else f"Same answers for: {', '.join(tasks)}."
    versions = {p: v for grown in curves for timing in grown.timings.values() for p, v in timing.versions.items()}
    listed = ", ".join(f"{package} {version}" for package, version in sorted(versions.items()))
    lines += ["", f"{verdict if tasks else ''} Versions: {listed}.".strip(), ""]
    return "\n".join(lines)


def _own_limits(growth: Growth) -> str:
    own = [f"{curve.name} {curve.most_seconds:g}" for curve in growth.curves if curve.most_seconds is not None]
    return f" ({', '.join(own)})" if own else ""


def _line(grown: Grown, sizes: list[int], limits: MachineLimits) -> str:
    cells = []
    for size in sizes:
        timing = grown.timings.get(size)
        if timing is not None:
            cells.append(f"{timing.wall_seconds:.2g} / {timing.cpu_seconds:.2g} s, {timing.peak_megabytes:.0f} MB")
        else:
            cells.append(grown.ended.get(size, "–" if size in grown.curve.sizes else ""))
    last = list(grown.timings.values())[-1] if grown.timings else None
    exponent = grown.exponent()
    ratio = limits.ratio(last.undisturbed_seconds, last.figures) if last is not None else None
    more = [f"{name} {said(value)}" for name, value in (last.figures if last else {}).items() if "bytes" not in name]
    shown = f"{exponent:.2f}" if exponent is not None else "–"
    ratio_shown = f"{ratio:,.3g}" if ratio is not None else "–"
    return f"| {grown.curve.name} | {' | '.join(cells)} | {shown} | {ratio_shown} | {', '.join(more)} |"
