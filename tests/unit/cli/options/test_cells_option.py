"""``--cells values`` on the command line and in a project file."""

import json

import pytest

from sfumato.cli.main import run
from sfumato.datasets.admissions import admissions

ROLES = ["--target", "readmitted", "--quasi-identifiers", "age,sex,insurance"]


def rules(path):
    return {entry["rule"] for entry in json.loads(path.read_text(encoding="utf-8"))["recodings"]}


def written(folder):
    table = admissions(n_rows=200).keep(["age", "sex", "insurance", "readmitted"])
    table.to_arrow().to_pandas().to_csv(folder / "people.csv", index=False)
    return str(folder / "people.csv")


@pytest.mark.slow
def test_flags_give_values_and_the_audit_leaves_open_whose_they_are(tmp_path):
    data, output = written(tmp_path), str(tmp_path / "out.csv")

    assert run(["release", data, "-m", "mondrian", *ROLES, "--cells", "values", "-o", output]) == 0
    assert rules(tmp_path / "out.csv.manifest.json") == {"typical"}
    audit = ["audit", output, "--manifest", f"{output}.manifest.json", "--original", data, *ROLES]
    assert run(audit) == 8
    assert run([*audit, "--accept", "cells"]) == 0


@pytest.mark.slow
def test_a_project_may_ask_for_values_and_a_flag_for_ranges(tmp_path):
    written(tmp_path)
    columns = '[columns]\nage = { role = "quasi-identifier", kind = "numeric" }\nsex = { role = "quasi-identifier" }\n'
    columns += 'insurance = { role = "quasi-identifier" }\nreadmitted = { role = "target" }\n'
    release = '[release]\nmechanism = "mondrian"\ncells = "values"\noutput = "out.csv"\n'
    project = tmp_path / "sfumato.toml"
    project.write_text(f'[data]\npath = "people.csv"\n{columns}{release}', encoding="utf-8")

    assert run(["release", "--project", str(project)]) == 0
    assert rules(tmp_path / "out.csv.manifest.json") == {"typical"}
    assert run(["release", "--project", str(project), "--cells", "ranges", "--force"]) == 0
    assert rules(tmp_path / "out.csv.manifest.json") == {"generalized"}


def test_values_out_of_core_are_refused(tmp_path, capsys):
    data = written(tmp_path)

    flags = ["--cells", "values", "--memory", "600MB", "-o", str(tmp_path / "out.csv")]
    assert run(["release", data, "-m", "global-recoding", *ROLES, *flags]) == 2
    said = capsys.readouterr().err
    assert "--cells must be ranges with --memory or --engine: other cells need all rows in memory" in said
    assert "--cells ranges" in said
