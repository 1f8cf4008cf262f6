"""Thousands of damaged files of statistics packages, databases and JSON lines; runs as a process of its own.

::

    python -m benchmarks.soak.format_fuzz FOLDER SEED COUNT SECONDS

Parsers that sfumato starts as processes run as forks, see :mod:`benchmarks.soak.forked`.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.soak.forked import use_forks
from benchmarks.soak.format_specimens import format_specimens
from benchmarks.soak.outcome import Effort, Outcome
from benchmarks.soak.processes import Restarted
from benchmarks.soak.reader_fuzz import fuzz

FULL_COUNT = 20_000
TURN = 1_000
"""Files of a process, which then ends in time."""


def run(effort: Effort, folder: Path) -> Outcome:
    """Fuzz until the count is reached; a process that a file takes down is started again."""
    outcome = Outcome("fuzzed files of packages, databases and JSON lines", "files")
    Restarted("benchmarks.soak.format_fuzz", folder, effort.seed, turn=TURN).run(outcome, effort.times(FULL_COUNT), 0.0)
    return outcome


def main() -> None:
    """Fuzz in this process and tell findings and counts as lines of JSON."""
    use_forks()
    fuzz(format_specimens)


if __name__ == "__main__":
    main()
