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


@pytest.mark.parametrize("mechanism", ["auto", "global-recoding"])
def test_values_with_memory_are_those_of_a_table_in_memory(tmp_path, mechanism):
    data = written(tmp_path)

    flags = ["--cells", "values", "-m", mechanism, "--quick", *ROLES]
    for name, more in (("here", []), ("there", ["--memory", "600MB"])):
        assert run(["release", data, *flags, *more, "-o", str(tmp_path / f"{name}.csv")]) == 0
    assert (tmp_path / "here.csv").read_bytes() == (tmp_path / "there.csv").read_bytes()
    assert "[" not in (tmp_path / "there.csv").read_text()  # no range
