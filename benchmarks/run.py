"""Time sfumato beside named peers, in one run on one machine, and write RESULTS.md.

::

    python -m benchmarks.run            # all
    python -m benchmarks.run class_sizes adult_risk
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.contest import Benchmark, Timing, measure, said
from benchmarks.forks import Forks
from benchmarks.growth import Growth, disagreeing, grow
from benchmarks.growth import describe as describe_growth
from benchmarks.limits import MachineLimits, measured_limits
from benchmarks.ranking import Ranking, ranked

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "RESULTS.md"
PEERS = FOLDER / ".venv"
PEER_PACKAGES = (
    "pycanon",
    "pandas",
    "pyfim",
    "mlxtend",
    "scikit-mine",
    "scikit-learn<1.6",
    "anonypy",
    "anonypyx",
    "anjana",
    "ai-privacy-toolkit",
    "python-weka-wrapper3",
)
"""scikit-mine 1.0 does not run with a newer scikit-learn. The last brings weka.jar, which needs Java."""
PEER_MODULES = "pycanon, fim, mlxtend, skmine, anonypy, anonypyx, anjana, weka"
HEADER = """# Results

Written by `python -m benchmarks.run`; see [README.md](README.md). Ratios are to the first contender of each table. Each
section is made again by `python -m benchmarks.run NAME`, one curve or contender by `… NAME --only WORD`.
"""
MACHINE = "machine"
BUSY = 0.3
LIMIT, BYTES = "× reading the bytes once", ("bytes", "file bytes")


def main() -> int:
    """Run the benchmarks named on the command line, or all."""
    asked, failed = arguments(), False
    limits = measured_limits()
    if not asked.only:
        write_results({MACHINE: limits.describe().replace("| limit |", f"{machine()}\n\n| limit |", 1)})
    with tempfile.TemporaryDirectory(prefix="sfumato-benchmark-") as shared:
        for name in asked.names or benchmark_names():
            is_fine = run_section(name, asked.only, limits, Path(shared) / name)
            failed = failed or not is_fine
    return int(failed)


def run_section(name: str, word: str, limits: MachineLimits, folder: Path) -> bool:
    """Measure one benchmark, print it and put it into RESULTS.md; gives whether nothing failed and all agree."""
    benchmark = importlib.import_module(f"benchmarks.{name}").BENCHMARK
    absent = [path for path in benchmark.needs if not path.exists()]
    if absent:
        print(f"{name}: skipped, {absent[0]} is absent (set SFUMATO_DATA to the folder of the public data sets)")
        return True
    started = time.perf_counter()
    folder.mkdir()
    try:
        section, agree = measured(name, only(benchmark, word), limits, folder)
    except (RuntimeError, OSError) as error:
        print(f"{name}: failed, and what stands in RESULTS.md is left: {error}", file=sys.stderr)
        return False
    finally:
        shutil.rmtree(folder)
    section += f"\nMade again by `python -m benchmarks.run {name}` ({time.perf_counter() - started:.0f} s).\n"
    print(section, flush=True)
    if not word:
        write_results({name: section})
    return agree


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", choices=[[], *benchmark_names()], metavar="name", help=", ".join(benchmark_names())
    )
    parser.add_argument("--only", help="run what has this in its name, and do not write RESULTS.md", default="")
    return parser.parse_args()


def only(benchmark: Any, word: str) -> Any:
    """Keep the curves or contenders that have a word in their name."""
    field = "contenders" if isinstance(benchmark, Benchmark) else "curves"
    return replace(benchmark, **{field: tuple(each for each in getattr(benchmark, field) if word in each.name)})


def measured(name: str, benchmark: Any, limits: MachineLimits, folder: Path) -> tuple[str, bool]:
    """Measure a benchmark of any kind; say it as Markdown, and whether all answers agree.

    ``folder`` is the benchmark's own. Generated tables are kept in its parent, where later benchmarks find them.
    """
    if isinstance(benchmark, Ranking):
        return ranked(name, benchmark, limits, folder), True
    run = growth_of if isinstance(benchmark, Growth) else contest
    return run(name, benchmark, limits, folder)


def growth_of(name: str, growth: Growth, limits: MachineLimits, folder: Path) -> tuple[str, bool]:
    """Measure all curves."""
    with Forks() as forks:
        growth.prepare(folder)
        curves = [
            grow(name, growth, curve, folder, peers_python() if curve.peer else None, forks) for curve in growth.curves
        ]
    seconds = {t.contender: t.undisturbed_seconds for grown in curves for t in grown.timings.values()}
    (folder.parent / f"{name}.json").write_text(json.dumps(seconds), encoding="utf-8")
    is_failed = any(ended.startswith("failed") for grown in curves for ended in grown.ended.values())
    return describe_growth(name, growth, curves, limits), not (is_failed or disagreeing(curves))


def benchmark_names() -> list[str]:
    """Modules of this folder that have a ``BENCHMARK``."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if "\nBENCHMARK = " in path.read_text(encoding="utf-8"))


def contest(name: str, benchmark: Benchmark, limits: MachineLimits, folder: Path) -> tuple[str, bool]:
    """Measure all contenders of one benchmark; say it as Markdown, and whether all gave the same answer."""
    timings: list[Timing] = []
    notes: list[str] = []
    benchmark.prepare(folder)
    with Forks() if benchmark.is_forked else nullcontext() as forks:
        for contender in benchmark.contenders:
            print(f"{name}: {contender.name} …", file=sys.stderr)
            try:
                python = peers_python() if contender.peer else Path(sys.executable)
                timings.append(measure(name, contender.name, folder, python, forks))
            except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                print(error, file=sys.stderr)
                notes.append(f"{contender.name}: not measured ({str(error).splitlines()[0]}).")
    verdict, agree = judged(timings)
    return describe(name, benchmark, timings, [verdict, *notes], limits), agree


def judged(timings: list[Timing]) -> tuple[str, bool]:
    """Compare the answers with the first contender's, and say how that went."""
    others = [t for t in timings[1:] if t.answer is not None]
    disagreeing = [t.contender for t in others if not same(t.answer, timings[0].answer)]
    if disagreeing:
        return f"**Different answers: {', '.join(disagreeing)}.**", False
    if len(others) == len(timings) - 1:
        return "All answers are the same.", True
    same_question = ", ".join(t.contender for t in others)
    return f"Same answer as the first: {same_question}." if others else "No two were asked the same.", True


def same(one: Any, other: Any) -> bool:
    """Whether two answers agree, real numbers to nine digits."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, float) or isinstance(other, float):
        return bool(abs(one - other) <= 1e-9 * max(1.0, abs(one)))
    return bool(one == other)


def describe(name: str, benchmark: Benchmark, timings: list[Timing], notes: list[str], limits: MachineLimits) -> str:
    """Say the timings as a Markdown section."""
    for t in timings:
        ratio = limits.ratio(t.undisturbed_seconds, t.figures)
        t.figures.update({} if ratio is None else {LIMIT: ratio})
    figures = [f for f in dict.fromkeys(figure for t in timings for figure in t.figures) if f not in BYTES]
    heads = "".join(f" {figure} |" for figure in figures)
    lines = [
        f"## {name}",
        "",
        f"{benchmark.title}. Goal: {benchmark.goal}.",
        "",
        "| contender | wall s | CPU s | first wall s | peak MB | wall ratio | CPU ratio | memory ratio "
        f"|{heads} versions |",
        "| --- |" + " ---: |" * (7 + len(figures)) + " --- |",
    ]
    for t in timings:
        wall_ratio = t.wall_seconds / timings[0].wall_seconds
        cpu_ratio = t.cpu_seconds / timings[0].cpu_seconds
        memory_ratio = t.peak_megabytes / timings[0].peak_megabytes
        versions = ", ".join(f"{package} {number}" for package, number in t.versions.items())
        lines.append(
            f"| {t.contender} | {t.wall_seconds:.3g} | {t.cpu_seconds:.3g} | {t.first_wall_seconds:.3g} "
            f"| {t.peak_megabytes:.0f} | {wall_ratio:.3g} | {cpu_ratio:.3g} | {memory_ratio:.2f} "
            f"|{''.join(f' {said(t.figures.get(figure))} |' for figure in figures)} {versions} |"
        )
    repeats = ", ".join(f"{t.contender} {t.repeats}" for t in timings)
    lines += ["", " ".join(notes) + f" Repeats: {repeats}. {machine()}", ""]
    return "\n".join(lines)


def machine() -> str:
    """Where and when this was measured."""
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        found = [
            line for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if "model name" in line
        ]
        model = found[0].partition(":")[2].strip() if found else model
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()}, Python {platform.python_version()}"
    busy = os.getloadavg()[0]
    return f"{datetime.now(tz=UTC).date()}: {model}, {os.cpu_count()} cores, {memory:.0f} GiB, {system}.{loaded(busy)}"


def loaded(busy: float) -> str:
    """Say that other work ran at the same time: more processes than the one that is measured."""
    return f" Load average {busy:.1f}: the machine had other work." if busy > 1 + BUSY else ""


@cache
def peers_python() -> Path:
    """Interpreter of the peers' environment, made when it is missing: they pin versions of their own."""
    python = PEERS / "bin" / "python"
    if not python.exists():
        print(f"making {PEERS} with {', '.join(PEER_PACKAGES)} …", file=sys.stderr)
        venv.create(PEERS, with_pip=True, clear=True)
    check = subprocess.run([python, "-c", f"import {PEER_MODULES}"], check=False, capture_output=True)
    if check.returncode:
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEER_PACKAGES], check=True)
    return python


def write_results(sections: dict[str, str]) -> None:
    """Replace the sections that were measured, keep those of other benchmarks that there are."""
    kept, known = {}, {MACHINE, *benchmark_names()}
    if RESULTS.exists():
        for section in RESULTS.read_text(encoding="utf-8").split("\n## ")[1:]:
            name = section.split("\n")[0]
            kept |= {name: f"## {section}".rstrip() + "\n"} if name in known else {}
    merged = kept | sections
    RESULTS.write_text(
        "\n".join([HEADER, *(merged[name] for name in sorted(merged, key=lambda name: (name != MACHINE, name)))]),
        encoding="utf-8",
    )


if __name__ == "__main__":
    sys.exit(main())
