"""Soak sfumato for some minutes, print a table and write SOAK.md; the exit code is 1 if anything was found.

::

    python -m benchmarks.soak                 # ten minutes
    python -m benchmarks.soak --minutes 1     # a short one, which does not replace SOAK.md
    python -m benchmarks.soak --only kills page
    python -m benchmarks.soak --only formats --record   # its row of SOAK.md is replaced, the others stay
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.soak import command_fuzz, disk, format_fuzz, kills, long_tests, memory, page, reader_fuzz, sessions
from benchmarks.soak.outcome import Effort, Outcome
from benchmarks.soak.releases import Releases
from benchmarks.soak.report import SOAK, as_markdown, as_table, stamp, with_rows

FULL_MINUTES = 10.0
KINDS: dict[str, Callable[[Effort, Path], Outcome]] = {
    "kills": kills.run,
    "disk": disk.run,
    "memory": memory.run,
    "sessions": sessions.run,
    "page": page.run,
    "commands": command_fuzz.run,
    "tests": long_tests.run,
    "formats": format_fuzz.run,
}
LAST = "readers"
"""Fills the rest of the time."""
_TO_END = 15.0


def main() -> int:
    """Run the kinds one after the other, with releases in the background."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=FULL_MINUTES, help="length; counts are scaled by it")
    parser.add_argument("--seed", type=int, default=1, help="of all that is drawn")
    parser.add_argument("--only", nargs="*", choices=[*KINDS, LAST], default=[*KINDS, LAST], help="kinds to run")
    parser.add_argument("--record", action="store_true", help="replace the rows of these kinds in SOAK.md")
    parser.add_argument("--alone", action="store_true", help="without releases in the background")
    given = parser.parse_args()
    effort, started = Effort(given.minutes / FULL_MINUTES, given.seed), time.perf_counter()
    folder = Path(tempfile.mkdtemp(prefix=f"sfumato-soak-{stamp()}-"))
    background = None if given.alone else Releases(_made(folder / "releases"), effort.seed)
    outcomes: list[Outcome] = []
    try:
        for name in given.only:
            outcomes.append(_timed(name, effort, _made(folder / name), started, given.minutes))
            print(as_table(outcomes[-1:]), file=sys.stderr, flush=True)
    finally:
        if background is not None:
            outcomes.insert(0, background.stop())
    print(as_table(outcomes))
    is_found = any(outcome.findings for outcome in outcomes)
    if given.minutes >= FULL_MINUTES and given.only == [*KINDS, LAST]:
        minutes = (time.perf_counter() - started) / 60
        SOAK.write_text(as_markdown(outcomes, minutes, "python -m benchmarks.soak"), encoding="utf-8")
    elif given.record:
        command = f"python -m benchmarks.soak {' '.join(sys.argv[1:])}"
        kinds = [outcome for outcome in outcomes if background is None or outcome is not outcomes[0]]
        SOAK.write_text(with_rows(SOAK.read_text(encoding="utf-8"), kinds, command), encoding="utf-8")
    if is_found:
        print(f"files of the findings: {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder)
    return int(is_found)


def _timed(name: str, effort: Effort, folder: Path, started: float, minutes: float) -> Outcome:
    begun = time.perf_counter()
    if name == LAST:
        left = minutes * 60 - (begun - started) - _TO_END
        outcome = reader_fuzz.run(effort, folder, max(0.0, left))
    else:
        outcome = KINDS[name](effort, folder)
    outcome.seconds = time.perf_counter() - begun
    return outcome


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


if __name__ == "__main__":
    sys.exit(main())
