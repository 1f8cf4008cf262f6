"""One way to run a reproduction: its jobs in processes, each kept when it is done, and then the paper beside ours.

A job's outcome is kept under ``reproductions/.cache`` with a key of the job and of all code that it may run, so that a
run that was killed goes on where it was, and no outcome of other code is ever taken.
"""

from __future__ import annotations

import argparse
import hashlib
import pickle
import sys
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Generic, TypeVar

from joblib import Parallel, delayed

from reproductions.figures import Figure, kept_figures, moved, reasons_of, table, write_figures, write_scoreboard
from sfumato.atomic import write_atomically
from sfumato.errors import SfumatoError

HERE = Path(__file__).parent
Job = TypeVar("Job", bound=Hashable)
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Reproduction(Generic[Job, Outcome]):
    """What one paper's reproduction consists of.

    Parameters
    ----------
    paper : str
        Name of its folder.
    jobs : sequence
        In the order in which they are begun; each is hashable, and its ``repr`` says all that it is.
    measure : callable
        Does one job, in a process of its own.
    label : callable
        Names a job for people and for ``--only``.
    is_quick : callable
        Whether a quick run does the job. All of these together take less than two minutes.
    figures : callable
        Printed figures that follow from some outcomes; those that need others are left out.
    report : callable
        Lines of RESULTS.md, from the outcomes of all jobs.
    misses : callable
        What is not as ``expected.toml`` says, from the outcomes of all jobs.
    """

    paper: str
    jobs: Sequence[Job]
    measure: Callable[[Job], Outcome]
    label: Callable[[Job], str]
    is_quick: Callable[[Job], bool]
    figures: Callable[[Mapping[Job, Outcome]], Iterator[Figure]]
    report: Callable[[Mapping[Job, Outcome]], Iterator[str]]
    misses: Callable[[Mapping[Job, Outcome]], Iterator[str]]

    @property
    def folder(self) -> Path:
        """Where the paper's printed figures, reasons and results are."""
        return HERE / self.paper


def run(reproduction: Reproduction[Job, Outcome], arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments ask for; the exit code is 1 if something is not as expected."""
    asked = _parser(reproduction.paper).parse_args(arguments)
    chosen = _chosen(reproduction, asked)
    if asked.list:
        sys.stdout.write("".join(f"{reproduction.label(job)}\n" for job in chosen))
        return 0
    if not chosen:
        sys.stderr.write("no job has such a name; --list shows all\n")
        return 2
    is_whole = len(chosen) == len(reproduction.jobs)
    if asked.update and not is_whole:
        sys.stderr.write("--update needs a whole run: leave out --only and --quick\n")
        return 2
    outcomes = _outcomes(reproduction, chosen, fresh=asked.fresh, workers=asked.workers)
    figures = list(reproduction.figures(outcomes))
    if is_whole:
        lines, missed = list(reproduction.report(outcomes)), list(reproduction.misses(outcomes))
    else:
        lines = list(table(figures, reasons_of(reproduction.paper)))
        missed = list(moved(figures, kept_figures(reproduction.paper)))
    text = "\n".join(lines) + "\n"
    if asked.update:
        (reproduction.folder / "RESULTS.md").write_text(text, encoding="utf-8")
        write_figures(reproduction.paper, figures)
        sys.stderr.write(f"wrote {reproduction.folder / 'RESULTS.md'}, figures.csv and {write_scoreboard()}\n")
    elif asked.output:
        try:
            write_atomically(Path(asked.output), text.encode(), force=asked.force)
        except SfumatoError as exc:
            sys.stderr.write(f"sfumato: {exc}\n")
            return 3
        sys.stderr.write(f"wrote {asked.output}\n")
    else:
        sys.stdout.write(text)
    for line in missed:
        sys.stderr.write(f"missed: {line}\n")
    return 1 if missed else 0


def _parser(paper: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"sfumato reproduce {paper}")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("-o", "--output")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    return parser


def _chosen(reproduction: Reproduction[Job, Outcome], asked: argparse.Namespace) -> list[Job]:
    wanted = [text.lower() for text in asked.only]
    return [
        job
        for job in reproduction.jobs
        if (not asked.quick or reproduction.is_quick(job))
        and (not wanted or any(text in reproduction.label(job).lower() for text in wanted))
    ]


def _outcomes(
    reproduction: Reproduction[Job, Outcome], jobs: Sequence[Job], *, fresh: bool, workers: int
) -> dict[Job, Outcome]:
    """Give the outcomes of jobs: those that are kept, and the others as they are done."""
    kept = {job: _path(reproduction, job) for job in jobs}
    found: dict[Job, Outcome] = {}
    for job, path in kept.items():
        if not fresh and path.exists():
            found[job] = pickle.loads(path.read_bytes())
    todo = [job for job in jobs if job not in found]
    if found:
        sys.stderr.write(f"{len(found)} of {len(jobs)} jobs were done before\n")
    begun = time.monotonic()
    do = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    for n_done, (job, outcome) in enumerate(do(delayed(_measured)(reproduction.measure, job) for job in todo), 1):
        found[job] = outcome
        _keep(kept[job], outcome)
        spent = time.monotonic() - begun
        left = spent / n_done * (len(todo) - n_done)
        sys.stderr.write(
            f"{len(found)}/{len(jobs)} {reproduction.label(job)} ({spent:.0f} s, about {left:.0f} s left)\n"
        )
    return {job: found[job] for job in jobs}


def _measured(measure: Callable[[Job], Outcome], job: Job) -> tuple[Job, Outcome]:
    return job, measure(job)


def _path(reproduction: Reproduction[Job, Outcome], job: Job) -> Path:
    key = hashlib.sha256(f"{code_digest(reproduction.paper)} {job!r}".encode()).hexdigest()
    return HERE / ".cache" / reproduction.paper / f"{key}.pickle"


def _keep(path: Path, outcome: object) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, pickle.dumps(outcome), force=True)
    except (OSError, SfumatoError) as exc:
        sys.stderr.write(f"not kept, a new run will do it again: {exc}\n")


@cache
def code_digest(paper: str) -> str:
    """Digest of all code and libraries that an outcome depends on, the package's and the paper's."""
    digest = hashlib.sha256()
    package = HERE.parent / "src" / "sfumato"
    for path in sorted([*package.rglob("*.py"), *(HERE / paper).glob("*.py"), *(HERE / paper).glob("paper.toml")]):
        digest.update(str(path.relative_to(HERE.parent)).encode() + b"\0" + path.read_bytes() + b"\0")
    for name in ("numpy", "scipy", "scikit-learn"):
        digest.update(f"{name} {version(name)}\n".encode())
    return digest.hexdigest()
