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
    "tests/test_audit_mutations.py": {"SFUMATO_TAMPERING_SEEDS": "12"},
    "tests/unit/mechanisms/lattice/test_lattice_search.py": {"SFUMATO_ALL_MOMENTS": "1"},
    "tests/properties/test_lattice_properties.py": {"SFUMATO_ALL_EXAMPLES": "1"},
    "tests/unit/counting/test_native_frames.py": {"SFUMATO_ALL_EXAMPLES": "1"},
    "tests/unit/rows/test_large_containment.py": {"SFUMATO_ALL_EXAMPLES": "1"},
    "tests/properties/test_itemset_properties.py": {"SFUMATO_ITEMS": "9"},
    "tests/properties/test_same_values.py": {"SFUMATO_ALL_EXAMPLES": "1"},
    "tests/test_audit_bytes.py": {"SFUMATO_ALL_EXAMPLES": "1"},
    "tests/unit/rows/test_large_tree.py": {"SFUMATO_ALL_EXAMPLES": "1"},
    "tests/unit/rows/test_large_slicing.py": {"SFUMATO_ALL_EXAMPLES": "1"},
    "tests/unit/publishing/out_of_core/test_large_release.py": {"SFUMATO_ALL_EXAMPLES": "1"},
    "tests/unit/publishing/out_of_core/test_large_frames.py": {"SFUMATO_ALL_EXAMPLES": "1"},
}
"""Files of tests, and what makes them long."""
_LONGEST = 600.0


def run(effort: Effort, folder: Path) -> Outcome:
    """Run them once each, however long the soak is."""
    outcome = Outcome("tests at full size", "tests")
    for path, size in TESTS.items():
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", path]
        log = folder / f"{Path(path).stem}.log"
        with log.open("w") as words:
            code = subprocess.run(
                command, cwd=ROOT, env=environment(**size), stdout=words, stderr=words, timeout=_LONGEST, check=False
            ).returncode
        counts = {what: int(n) for n, what in re.findall(r"(\d+) (passed|failed|skipped)", log.read_text())}
        outcome.n_done += sum(counts.values())
        if code:
            outcome.found(f"{path} fails", max(1, counts.get("failed", 0)))
    return outcome
