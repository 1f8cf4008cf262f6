"""Tests of the suite at the size that people meet: ``make test`` runs the same tests on less."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from benchmarks.soak.outcome import Effort, Outcome
from benchmarks.soak.processes import ROOT, environment

TESTS = {
    "tests/web/browser/test_whole_way.py": {"SFUMATO_WIDE_COLUMNS": "25000"},
    "tests/web/test_columns.py": {"SFUMATO_WIDE_COLUMNS": "25000"},
    "tests/identifiers/test_planted.py": {"SFUMATO_ALL_PLANTED": "1"},
    "tests/test_audit_mutations.py": {"SFUMATO_TAMPERING_SEEDS": "12"},
    "tests/unit/mechanisms/lattice/test_lattice_search.py": {"SFUMATO_ALL_MOMENTS": "1"},
    "tests/spark/test_five_systems.py": {"SFUMATO_ALL_KILLS": "1"},
    "tests/properties/test_itemset_properties.py": {"SFUMATO_ITEMS": "9"},
    "tests/test_odd_spellings.py -n 2": {"SFUMATO_ODD_RUNS": "5000"},
    "tests -m hypothesis --ignore tests/spark": {"SFUMATO_ALL_EXAMPLES": "1"},
}
"""Files of tests, or how pytest is to choose them, and what makes them long."""
_LONGEST = 2400.0


def run(effort: Effort, folder: Path) -> Outcome:
    """Run them once each, however long the soak is."""
    outcome = Outcome("tests at full size", "tests")
    for chosen, size in TESTS.items():
        path, *options = chosen.split()
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", path, *options]
        log = folder / f"{Path(path).stem}.log"
        with log.open("w") as words:
            code = subprocess.run(
                command, cwd=ROOT, env=environment(**size), stdout=words, stderr=words, timeout=_LONGEST, check=False
            ).returncode
        counts = {what: int(n) for n, what in re.findall(r"(\d+) (passed|failed|skipped)", log.read_text())}
        outcome.n_done += sum(counts.values())
        if code:
            outcome.found(f"{chosen} fails", max(1, counts.get("failed", 0)))
    return outcome
