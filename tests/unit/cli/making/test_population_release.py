"""``sfumato release --population-table``: from two files to a release whose k-map an auditor checks."""

from __future__ import annotations

import hashlib
import json
from typing import NamedTuple

import numpy as np
import pytest

from sfumato.cli.main import run
from sfumato.datasets.admissions import admissions
from sfumato.table.io.write import write_table

ROLES = ["--quasi-identifiers", "age,sex,insurance", "--target", "readmitted"]


class Said(NamedTuple):
    """How a command ended, and all that it said."""

    exit_code: int
    output: str


@pytest.fixture
def command(capfd):
    """Run a command as a user types it."""

    def _run(*arguments):
        capfd.readouterr()
        code = run([str(one) for one in arguments])
        return Said(code, "".join(capfd.readouterr()))

    return _run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    people = admissions(n_rows=600).keep(["age", "sex", "insurance", "readmitted"])
    for name, table in (("register.csv", people), ("survey.csv", people.take(np.arange(0, 600, 6)))):
        with (tmp_path / name).open("wb") as file:
            write_table(table, file, "csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


AUDIT = ("audit", "release.csv", "--manifest", "release.csv.manifest.json", "--original", "survey.csv", *ROLES)


def _released(command, *more, mechanism="mondrian"):
    asked = ("release", "survey.csv", *ROLES, "-m", mechanism, "-o", "release.csv")
    return command(*asked, "--population-table", "register.csv", *more)


@pytest.mark.slow
def test_a_release_with_k_map_is_made_and_audited(folder, command):
    made = _released(command, "-p", "k_map=5", "-p", "delta_max=0.6", "-k", "1")
    assert made.exit_code == 0, made.output
    assert "every released row fits at least 5 of these people" in made.output
    manifest = json.loads((folder / "release.csv.manifest.json").read_text())
    assert [entry["kind"] for entry in manifest["guarantees"]] == ["k-map", "delta-presence"]
    whole = command(*AUDIT, "--population-table", "register.csv")
    assert whole.exit_code == 0, whole.output
    alone = command(*AUDIT)
    assert alone.exit_code == 8
    assert "give --population-table" in alone.output
    other = command(*AUDIT, "--population-table", "survey.csv")
    assert other.exit_code == 5
    away = command(*AUDIT, "--memory", "1GB")
    assert away.exit_code == 8  # counts do not show it: both tables are taken into memory
    assert "give --population-table" in away.output
    whole = command(*AUDIT, "--memory", "1GB", "--population-table", "register.csv")
    assert whole.exit_code == 0, whole.output


@pytest.mark.slow
def test_a_release_with_memory_is_that_of_a_table_in_memory(folder, command):
    asked = ("-p", "k_map=5", "-k", "1")
    assert _released(command, *asked).exit_code == 0
    here = (folder / "release.csv").read_bytes()
    assert _released(command, *asked, "--memory", "1GB", "--force").exit_code == 0
    assert (folder / "release.csv").read_bytes() == here


@pytest.mark.slow
def test_a_project_commits_to_the_register_by_its_key(folder, command):
    assert command("init", "survey.csv", *ROLES).exit_code == 0
    asked = ("-m", "global-recoding", "-p", "k_map=5", "-k", 2, "--population-table", "register.csv")
    made = command("release", *asked, "-o", "r.csv")
    assert made.exit_code == 0, made.output
    manifest = json.loads((folder / "r.csv.manifest.json").read_text())
    assert [entry["kind"] for entry in manifest["guarantees"]] == ["k-anonymity", "k-map"]
    register = manifest["guarantees"][1]["register"]
    assert len(register) == 64
    assert register != manifest["input"]["commitment"]["value"]
    audit = (
        "audit",
        "r.csv",
        "--manifest",
        "r.csv.manifest.json",
        "--population-table",
        "register.csv",
        "--accept",
        "figures",
    )
    keyed = command(*audit, "--project", "sfumato.toml")
    assert keyed.exit_code == 0, keyed.output
    assert "the commitment in the manifest is to this population table" in keyed.output
    unkeyed = command(*audit, "--original", "survey.csv", *ROLES)
    assert unkeyed.exit_code == 8
    assert "which needs the key of the release" in unkeyed.output
    changed = (folder / "register.csv").read_bytes().replace(b"\n", b"\r\n")
    (folder / "register.csv").write_bytes(changed)
    assert command(*audit, "--project", "sfumato.toml").exit_code == 5
    text = (folder / "r.csv.manifest.json").read_text()
    assert hashlib.sha256(changed).hexdigest() not in text


def test_what_does_not_go_together_is_one_sentence(folder, command):
    for more, mechanism, said in (
        (("-p", "k_map=5"), "auto", "mondrian, global-recoding or gain-recoding"),
        ((), "mondrian", "neither k_map nor delta_max"),
        (("-k", "1", "-p", "delta_max=0.5"), "mondrian", "at least 2"),
    ):
        refused = _released(command, *more, mechanism=mechanism)
        assert refused.exit_code == 2, refused.output
        assert said in refused.output
        assert not (folder / "release.csv").exists()
    without = command("release", "survey.csv", *ROLES, "-m", "mondrian", "-p", "k_map=5", "-o", "release.csv")
    assert without.exit_code == 2
    assert "--population-table" in without.output


@pytest.mark.slow
def test_a_report_names_the_register_and_audits_beside_it(folder, command):
    assert _released(command, "-p", "k_map=5", "-k", "1").exit_code == 0
    report = ("report", "release.csv", "--original", "survey.csv", *ROLES, "--quick", "--population-table")
    made = command(*report, "register.csv", "-o", "report.html")
    assert made.exit_code == 0, made.output
    assert "was not measured" not in made.output
    text = (folder / "report.html").read_text()
    assert "--population-table REGISTER" in text
    assert "k-map" in text
    assert command(*report, "survey.csv", "-o", "other.html").exit_code == 5
