"""Tests of the suite at the size that people meet: ``make test`` runs the same tests on less, and leaves some out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from benchmarks.soak.outcome import Effort, Outcome
from benchmarks.soak.processes import ROOT, environment

TESTS = (
    "tests/web/browser",
    "tests/web/test_columns.py",
    "tests/identifiers/test_planted.py",
    "tests/test_audit_mutations.py",
    "tests/test_manifest_mutants.py",
    "tests/unit/audit/test_audit_statistics_files.py",
    "tests/unit/mechanisms/lattice/test_lattice_search.py",
    "tests/spark/test_five_systems.py",
    "tests/test_odd_spellings.py -n 2",
    "tests -m hypothesis --ignore tests/spark",
    "tests -m sampled",
    "tests/papers -m soak",
)
"""Files of tests, or how pytest is to choose them."""
_LONGEST = 2400.0


def run(effort: Effort, folder: Path) -> Outcome:
    """Run them once each, however long the soak is."""
    outcome = Outcome("tests at full size", "tests")
    for chosen in TESTS:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen.split()]
        log = folder / f"{re.sub(r'[^a-z]+', '-', chosen)}.log"
        with log.open("w") as words:
            code = subprocess.run(
                command,
                cwd=ROOT,
                env=environment(SFUMATO_FULL_SIZE="1"),
                stdout=words,
                stderr=words,
                timeout=_LONGEST,
                check=False,
            ).returncode
        counts = {what: int(n) for n, what in re.findall(r"(\d+) (passed|failed|skipped)", log.read_text())}
        outcome.n_done += sum(counts.values())
        if code:
            outcome.found(f"{chosen} fails", max(1, counts.get("failed", 0)))
    return outcome
