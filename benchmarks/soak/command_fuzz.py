"""Damaged files through every command, in one process; see :mod:`benchmarks.soak.reader_fuzz`.

::

    python -m benchmarks.soak.command_fuzz FOLDER SEED COUNT SECONDS
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.soak.hanging import HungError, no_longer_than
from benchmarks.soak.outcome import Effort, Outcome
from benchmarks.soak.processes import Restarted, tell
from benchmarks.soak.specimens import Specimen, specimens

FULL_COUNT = 500
LONGEST = 20.0
"""Seconds after which a command hangs."""
ALLOWED = (0, 2, 3, 4, 5, 6)
TABLES = ("CSV", "TSV", "CSV in gzip", "Parquet", "Excel", "ARFF", "libsvm")
MECHANISMS = ("greedy-containment", "mondrian", "error-risk-tree", "global-recoding", "anatomy", "maximal-containment")

# {file} is the damaged file, {release} a good release; everything else stands in the folder as it is named.
LINES = {
    "table": (
        "init {file} -o -",
        "audit {file}",
        "audit {file} --manifest {release}.manifest.json",
        "release {file} --dry-run -k 2 -m {mechanism}",
        "release {file} --dry-run -k 2 -m {mechanism} --target ill --json",
        "hierarchy build {file} --column age -o -",
        "hierarchy build {file} --column age -m quantile --intervals 4 -o -",
        "attack people.csv {file} --target ill",
        "compare {file} --target ill --dry-run",
        "serve {file} --no-browser",
    ),
    "project TOML": (
        "release --project {file} --dry-run",
        "compare --project {file} --dry-run",
        "serve --project {file} --no-browser",
        "audit {release} --manifest {release}.manifest.json --project {file}",
    ),
    "manifest JSON": (
        "audit {release} --manifest {file} --original people.csv --json",
        "report {release} --manifest {file} --quick -o out.html --force",
        "plot {file} -o out.svg --force --kind levels",
        "attack people.csv {release} --manifest {file}",
    ),
    "hierarchy": (
        "hierarchy show {file}",
        "hierarchy check {file} --data people.csv --column city",
        "release people.csv -m global-recoding -k 2 --dry-run --target ill --hierarchy city={file}",
    ),
    "party.toml": (
        "collaborate schema --config {file} --data people.csv --target ill -o out.json --yes --force",
        "collaborate party --config {file} --data people.csv --schema shared.json -o out.csv --force",
    ),
    "shared schema": (
        "collaborate party --config ann.toml --data people.csv --schema {file} -o out.csv --force --transcript t.jsonl",
    ),
}


def run(effort: Effort, folder: Path) -> Outcome:
    """Fuzz until the count is reached."""
    outcome = Outcome("fuzzed commands", "commands")
    Restarted("benchmarks.soak.command_fuzz", folder, effort.seed).run(outcome, effort.times(FULL_COUNT), 0.0)
    return outcome


def main() -> None:
    """Fuzz in this process and tell findings and counts as lines of JSON."""
    folder, random_ = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
    count, until = int(sys.argv[3]), time.monotonic() + float(sys.argv[4])
    kinds = specimens(folder)
    others = [example for kind in kinds for example in kind.examples]
    releases = sorted(path.name.removesuffix(".manifest.json") for path in folder.glob("*.manifest.json"))
    (folder / "ann.toml").write_bytes(next(kind.examples[0] for kind in kinds if kind.name == "party.toml"))
    os.chdir(folder)
    counts: Counter[str] = Counter()
    n_done = 0
    choices = [(kind, line) for kind in kinds for line in LINES.get(_group(kind), ())]
    with _no_server():
        while n_done < count or time.monotonic() < until:
            kind, line = random_.choice(choices)
            path = folder / f"current{kind.suffix}"
            path.write_bytes(kind.damage(random_, random_.choice(kind.examples), others))
            release, mechanism = random_.choice(releases), random_.choice(MECHANISMS)
            arguments = line.format(file=path.name, release=release, mechanism=mechanism).split()
            code, problem = _ended(arguments)
            counts[f"exit {code}"] += 1
            if problem:
                path.rename(folder / f"finding-{n_done}{kind.suffix}")
                tell(finding=f"sfumato {' '.join(arguments)}: {problem}, file finding-{n_done}{kind.suffix}")
            n_done += 1
    tell(n_done=n_done, counts=counts)


def _group(kind: Specimen) -> str:
    return "table" if kind.name in TABLES else kind.name


def _ended(arguments: list[str]) -> tuple[int, str]:
    """Run a command; gives its exit code and what is wrong with how it ended."""
    from sfumato.cli.main import run as run_command

    shown, said = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(said), no_longer_than(LONGEST):
            code = run_command(arguments)
    except HungError:
        return -1, f"took more than {LONGEST:g} s"
    except BaseException as error:
        return -1, f"raised {type(error).__name__}"
    last = said.getvalue().strip().splitlines()[-1:]
    if code not in ALLOWED:
        return code, f"ended with {code}: {''.join(last)}"
    if "Traceback" in said.getvalue() + shown.getvalue():
        return code, "showed a traceback"
    return code, "" if code == 0 or last else "said nothing"


@contextlib.contextmanager
def _no_server() -> Iterator[None]:
    """Let ``serve`` do everything but serve."""
    import sfumato.web.server

    served: Callable[..., None] = sfumato.web.server.serve
    sfumato.web.server.serve = _serve_nothing
    try:
        yield
    finally:
        sfumato.web.server.serve = served


def _serve_nothing(settings: object) -> None:
    return None


if __name__ == "__main__":
    main()
