"""Every entry of a manifest, changed to something plausible: refused by the audit, an exception, or harmless.

Sampled here, with a seed; ``make soak`` takes every mutant (about 600 a release).
"""

import contextlib
import io
import json
import random
import re
from pathlib import Path

import pytest

from manifest_mutants import mutants
from sfumato.cli.main import run
from sfumato.manifest import manifest_digest
from sfumato.manifest_schema import canonical_text
from sizes import IS_FULL

TAKEN = None if IS_FULL else 60
NAMES = ["id", "age", "sex", "pay", "ill", "cost", "y"]
ROLES = ["--identifiers", "id", "--target", "y", "--sensitive", "ill", "--quasi-identifiers", "age,sex,pay"]
ROLES += ["--other", "cost"]
HARMLESS = {
    r"(mechanism\.|versions).*": "the publisher's word, of a closed form, which the audit says that it is",
    r"recodings\.\d+\.levels.*": "the publisher's word, which the audit says that it is",
    r"(evidence|guarantees)\S* left out": "less is said",
    r"(output\.columns\.\d+\.(unit|missing)|recodings\.\d+\.domain\.\d+) left out": "less is said, of nothing measured",
    r"output\.columns\.\d+\.domain left out": "less is said, of nothing measured",
    r"perturbation\.max_copied_fraction (left out|= 1\.0)": "less is said, or a limit that every table keeps",
    r"output\.columns\.\d+\.confirmed added: True": "the publisher's word, which the audit says that it is",
    r"guarantees turned round": "the same is said",
    r"perturbation\.slices\.\d+ turned round": "the same is said",
    r"recodings\.\d+ left out": "cells that were recoded to themselves are unchanged cells",
    r"input\.prepared added: .*'(top|round|drop)'.*": "true: it changes no cell, or a column that is not released",
    r"input\.one_row_per_person added: .*'id'.*": "true: every person has one row",
    r"(output\.escaped_formulas added|missing\.rows = 'dropped'|missing\.columns added: \{\}).*": "true: of no cell",
    r"evidence\.(utility|risk)\.\w+ added: (0\.5|1)": "true: a check has measured it",
}
"""Mutants that an audit may confirm, and why nothing more is claimed than holds."""


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = random.Random(3)
    rows = [
        f"p{i},{20 + rng.randrange(40)},{'fm'[rng.randrange(2)]},{rng.choice(['low', 'mid', 'high'])},"
        f"{rng.choice(['flu', 'gout', 'cold'])},{rng.randrange(100, 999)} kg,{rng.randrange(2)}"
        for i in range(90)
    ]
    Path("d.csv").write_text(",".join(NAMES) + "\n" + "\n".join(rows) + "\n")


def audited(path, manifest):
    """End of an audit with the original, and what it names as exceptions; nothing where the manifest is refused."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        run(["audit", path, "--manifest", manifest, "--original", "d.csv", *ROLES, "--json"])
    found = json.loads(out.getvalue()) if out.getvalue() else {"passed": False, "unchecked": []}
    return found["passed"], sorted(one["message"] for one in found["unchecked"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "made",
    [
        ["-m", "mondrian", "-k", "5", "-p", "l=2"],
        ["-m", "mondrian", "-k", "5", "--cells", "values"],
        ["-m", "mondrian", "-k", "5", "--cells", "draws", "--max-copies", "0.9"],
        ["-m", "global-recoding", "-k", "5", "-p", "max_suppressed_fraction=0.2"],
        ["-m", "anatomy", "-p", "l=2"],
        ["-m", "slicing", "-k", "4", "-p", "l=2"],
        ["-m", "greedy-containment", "-k", "4"],
    ],
    ids=lambda made: " ".join(made[1:]),
)
def test_no_entry_of_a_manifest_can_be_changed_so_that_more_is_confirmed(table, made):
    assert run(["release", "d.csv", *made, *ROLES, "-o", "r.csv"]) == 0
    honest = json.loads(Path("r.csv.manifest.json").read_text(encoding="utf-8"))
    passed, exceptions = audited("r.csv", "r.csv.manifest.json")
    assert passed
    has_figures = any(one.startswith("figures that the publisher states") for one in exceptions)
    every = list(mutants(honest, NAMES, ["forged"]))
    assert len(every) > 300

    survivors = []
    for said, data in every if TAKEN is None else random.Random(11).sample(every, TAKEN):
        data["digest"] = manifest_digest(data)
        Path("m.json").write_text(canonical_text(data), encoding="utf-8")
        if audited("r.csv", "m.json") == (True, exceptions):
            survivors.append(said)

    judged = [said for said in survivors if not any(re.fullmatch(pattern, said) for pattern in HARMLESS)]
    judged = [said for said in judged if not (has_figures and said.startswith("evidence."))]
    assert not judged
