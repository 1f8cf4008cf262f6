"""The shell line of a report really makes the release again, byte for byte."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.cli.main import run
from sfumato.cli.options.tables import apply_roles
from sfumato.datasets.admissions import admissions
from sfumato.mechanisms.registry import build_mechanism, registered_mechanisms
from sfumato.project.file import load_project
from sfumato.publishing.propose import make_release
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import read_manifest
from sfumato.report.reproduction import (
    CLOCKED,
    Asked,
    command_for,
    may_depend_on_clock,
    mechanism_of,
    settings_of,
)
from sfumato.schema import Role, Schema
from sfumato.table.io.read import read_table
from sfumato.table.io.write import write_table
from shell_lines import run_line
from unit.report.releases import NAMES, PARAMETERS, made, stays

AWKWARD = "age, in years; $HOME `id` \"quoted\" 'too'"
PROJECT = """
[data]
path = "stays.csv"
[columns]
name = { role = "identifier" }
age = { role = "quasi-identifier", kind = "numeric" }
sex = { role = "quasi-identifier" }
insurance = { role = "quasi-identifier" }
smoker = { role = "quasi-identifier" }
diabetes = { role = "quasi-identifier" }
discharge_diagnosis = { role = "sensitive" }
readmitted = { role = "target" }
[binarize.columns]
age = { cuts = [50, 70] }
[release]
mechanism = "greedy-containment"
output = "release.csv"
[release.parameters]
k = 8
on_infeasible = "skip"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a working folder with a table."""
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "stays.csv").open("wb") as file:
        write_table(admissions(n_rows=200).keep(NAMES), file, "csv")
    return tmp_path


def sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def run_in_shell(line, folder):
    """Run a line as somebody types it, and give the digest of what was written."""
    run_line(line, folder)
    return sha256(folder / "release.csv")


def described(path="stays.csv"):
    """Read the table as ``sfumato release`` does with a role for every column."""
    return apply_roles(read_table(path), {name: stays().schema[name].role for name in NAMES})[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "parameters"),
    [
        ("mondrian", {"k": 7, "strict": False}),
        ("slicing", {"l": 3, "random_state": 4}),
        ("gain-recoding", {"k": 4, "max_suppressed_fraction": 0.0}),
        ("breach-aware", {"weights": {"performance": 0.5, "privacy": 0.25, "size": 0.25}}),
    ],
)
def test_the_line_makes_the_same_file(folder, mechanism, parameters):
    table = described()
    publish(make_release(table, build_mechanism(mechanism, parameters)), "release.csv", original=table)
    manifest, _ = read_manifest(folder / "release.csv.manifest.json")
    first = sha256("release.csv")
    line, notes = command_for(manifest, table, Asked(is_as_read=True))
    Path("release.csv").unlink()
    Path("release.csv.manifest.json").unlink()

    assert notes == []
    assert run_in_shell(line, folder) == first == manifest.output["sha256"]


@pytest.mark.slow
def test_awkward_names_survive_the_shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = Path("stays.csv")
    with text.open("wb") as file:
        write_table(admissions(n_rows=100).keep(["age", "sex", "smoker", "readmitted"]), file, "csv")
    quoted = '"' + AWKWARD.replace('"', '""') + '"'
    text.write_text(text.read_text(encoding="utf-8").replace("age", quoted, 1), encoding="utf-8")
    table = read_table("stays.csv")
    table, _ = apply_roles(table, {AWKWARD: Role.QUASI_IDENTIFIER, "readmitted": Role.TARGET})
    published = publish(make_release(table, build_mechanism("mondrian", {})), "release.csv", original=table)
    line, _ = command_for(published.release.manifest, table, Asked())
    Path("release.csv").unlink()

    assert run_in_shell(line, tmp_path) == published.release.manifest.output["sha256"]


@pytest.mark.slow
def test_with_a_project_only_what_differs_from_it_is_given(folder):
    (folder / "sfumato.toml").write_text(PROJECT, encoding="utf-8")
    assert run(["release", "-k", "5"]) == 0
    manifest, _ = read_manifest(folder / "release.csv.manifest.json")
    project = load_project("sfumato.toml")
    declared = {**project.parameters, "binarize": dict(project.binarize)}
    asked = Asked("sfumato.toml", declared)
    first = sha256("release.csv")
    line, notes = command_for(manifest, project.read(), asked)
    Path("release.csv").unlink()

    assert notes == []
    assert line == "sfumato release --project sfumato.toml -m greedy-containment -p k=5 -o release.csv"
    assert run_in_shell(line, folder) == first


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", list(registered_mechanisms()))
def test_every_mechanism_is_built_again_from_its_manifest(mechanism):
    again = mechanism_of(made(mechanism).manifest, PARAMETERS.get(mechanism, {}))

    assert not isinstance(again, str)
    parameters = make_release(stays(), again).manifest.mechanism["parameters"]
    assert parameters == made(mechanism).manifest.mechanism["parameters"]


def test_settings_that_only_a_project_file_holds_are_named():
    manifest = made("global-recoding").manifest
    parameters = {**manifest.mechanism["parameters"], "hierarchies": ["age"]}
    given = made("global-recoding").with_manifest(mechanism={**manifest.mechanism, "parameters": parameters}).manifest

    assert settings_of(given, {})[1] == ["hierarchies"]
    assert settings_of(given, {"hierarchies": {"age": "age.csv"}})[0]["hierarchies"] == {"age": "age.csv"}
    assert "hierarchies" in mechanism_of(given, {})

    table = stays()
    age = replace(table.schema["age"], hierarchy="age.csv")
    described = table.with_schema(Schema.of(age if column.name == "age" else column for column in table.schema))
    assert settings_of(given, {}, described)[1] == []
    assert settings_of(given, {}, table)[1] == ["hierarchies"]


def test_what_cannot_be_made_again_by_a_line_is_said(folder):
    assert command_for(made("mondrian").manifest, stays(), Asked())[0] is None
    assert command_for(made("mondrian").manifest, None, Asked())[0] is None
    line, notes = command_for(made("laplace-dp").manifest, described(), Asked(n_guessed=2))
    assert "-p epsilon=2.0" in line
    for word in ("binarize", "guessed", "noise", "Kinds"):
        assert any(word in note for note in notes)


@pytest.mark.parametrize(
    ("mechanism", "heading", "name"),
    [("global-recoding", "utility", "is_proven_optimal"), ("maximal-containment", "search", "proven")],
)
def test_a_search_that_the_clock_may_have_ended_is_said_not_to_be_the_same_again(folder, mechanism, heading, name):
    manifest = made(mechanism).manifest
    evidence = dict(manifest.evidence)

    for is_proven in (True, False):
        stated = replace(manifest, evidence={**evidence, heading: {**evidence[heading], name: is_proven}})
        assert may_depend_on_clock(stated) is not is_proven
        assert (CLOCKED in command_for(stated, described(), Asked())[1]) is not is_proven
    assert not may_depend_on_clock(made("mondrian").manifest)
