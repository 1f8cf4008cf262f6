"""``sfumato report`` as a user types it."""

import hashlib
import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.cli.main import run
from sfumato.datasets.admissions import admissions
from sfumato.publishing.reaudit import read_manifest
from sfumato.table.io.write import write_table

NAMES = ["name", "age", "sex", "insurance", "smoker", "diabetes", "discharge_diagnosis", "readmitted"]
ROLES = [
    *("--target", "readmitted", "--sensitive", "discharge_diagnosis", "--identifiers", "name"),
    *("--quasi-identifiers", "age,sex,insurance,smoker,diabetes"),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a working folder with a table and a release of it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret folder").mkdir()
    with (tmp_path / "secret folder" / "stays.csv").open("wb") as file:
        write_table(admissions(n_rows=150).keep(NAMES), file, "csv")
    assert run(["release", "secret folder/stays.csv", "-m", "mondrian", "-k", "4", *ROLES, "-o", "release.csv"]) == 0
    return tmp_path


def report(capsys, *arguments):
    capsys.readouterr()
    code = run(["report", "release.csv", "-o", "report.html", *arguments])
    text = Path("report.html").read_text(encoding="utf-8") if code == 0 else ""
    return code, text, capsys.readouterr().err


def commands_in(text):
    return [html.unescape(found) for found in re.findall(r'<pre tabindex="0"><code>(.*?)</code></pre>', text, re.S)]


@pytest.mark.slow
def test_without_the_original_the_report_says_what_is_not_measured(folder, capsys):
    code, text, err = report(capsys)

    assert code == 0
    assert "wrote report.html" in err
    assert text.count("Not measured: the original was not given.") == 2
    assert "without the original" in text


@pytest.mark.slow
def test_the_lines_in_the_report_do_what_they_say(folder, capsys):
    _, text, _ = report(capsys, "--original", "secret folder/stays.csv", *ROLES, "--quick")
    manifest, _ = read_manifest(folder / "release.csv.manifest.json")
    check, again = commands_in(text)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    settings = {"shell": True, "env": {**os.environ, "PATH": path}, "capture_output": True}

    assert subprocess.run(check, **settings).returncode == 8  # without the original there are exceptions
    Path("release.csv").unlink()
    Path("release.csv.manifest.json").unlink()
    assert subprocess.run(again, **settings).returncode == 0

    remade, _ = read_manifest(folder / "release.csv.manifest.json")
    assert remade.to_dict() == manifest.to_dict()
    assert manifest.output["sha256"] in text
    assert hashlib.sha256(Path("secret folder/stays.csv").read_bytes()).hexdigest() not in text
    assert "skipped on request" in text


@pytest.mark.slow
def test_with_a_project_classifiers_are_trained(folder, capsys):
    assert run(["init", "secret folder/stays.csv", "--target", "readmitted", "-o", "sfumato.toml"]) == 0
    assert run(["release", "-m", "mondrian", "-o", "release.csv", "--force"]) == 0

    code, text, _ = report(capsys, "--project", "sfumato.toml")

    assert code == 0
    assert "gradient boosting" in text
    assert commands_in(text)[1] == "sfumato release --project sfumato.toml -m mondrian -o release.csv"
    for private in ("sfumato.toml", "secret folder/stays.csv"):
        assert hashlib.sha256(Path(private).read_bytes()).hexdigest() not in text


@pytest.mark.slow
def test_the_version_for_others_names_no_path_and_tells_less(folder, capsys):
    original = ["--original", "secret folder/stays.csv", *ROLES, "--quick"]
    _, internal, _ = report(capsys, *original)
    _, external, _ = report(capsys, *original, "--external", "--force")

    assert "secret folder" in internal
    assert "Rows in groups of one" in internal
    for word in ("secret folder", "stays.csv", "Rows in groups of one", "found by the worst", "values before"):
        assert word not in external
    assert len(commands_in(external)) == 1
    assert "External version" in external


@pytest.mark.slow
def test_there_is_no_report_of_a_release_that_the_audit_does_not_confirm(folder, capsys):
    text = Path("release.csv").read_text(encoding="utf-8").splitlines()
    Path("release.csv").write_text("\n".join(text[:-1]) + "\n", encoding="utf-8")

    code, _, err = report(capsys)

    assert code == 5
    assert "does not confirm" in err
    assert not Path("report.html").exists()


@pytest.mark.slow
def test_a_report_that_exists_is_replaced_only_by_force(folder, capsys):
    Path("report.html").write_text("mine", encoding="utf-8")

    code, _, err = report(capsys)

    assert code == 3
    assert "exists already" in err
    assert Path("report.html").read_text(encoding="utf-8") == "mine"
    assert report(capsys, "--force")[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--original", "a.csv", "--project", "b.toml"], 2, "one at a time"),
        (["--target", "readmitted"], 2, "--original only"),
        (["--delimiter", ";"], 2, "--original only"),
        (["--manifest", "none.json"], 3, "cannot be read"),
        (["--original", "none.csv"], 3, "none.csv"),
        (["--project", "none.toml"], 3, "no such project file"),
        (["--original", "release.csv"], 5, "does not confirm"),
    ],
)
def test_bad_input_is_refused_in_one_line(folder, capsys, arguments, code, words):
    found, _, err = report(capsys, *arguments)

    assert found == code
    assert words in err
    assert err.count("\n") == 1
    assert not Path("report.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["breach-aware", "mondrian"])
def test_with_some_roles_a_correct_release_is_reported(folder, capsys, mechanism):
    assert run(["release", "secret folder/stays.csv", "-m", mechanism, *ROLES, "-o", "release.csv", "--force"]) == 0
    some = ["--original", "secret folder/stays.csv", "--quick", "--sensitive", "discharge_diagnosis"]

    code, _, err = report(capsys, *some, "--identifiers", "name")

    assert code == 0
    assert "audit: confirmed except: " in err
    assert err.endswith("wrote report.html\n")
    text = Path("report.html").read_text(encoding="utf-8")
    assert text.index('id="exceptions"') < text.index('id="in-short"')


@pytest.mark.slow
@pytest.mark.parametrize(
    "roles",
    [
        ["--identifiers", "age"],
        [*ROLES[:-1], "age,sex,insurance,smoker,diabetes,readmitted"][2:],
    ],
)
def test_roles_that_the_release_contradicts_are_found(folder, capsys, roles):
    code, _, err = report(capsys, "--original", "secret folder/stays.csv", "--quick", *roles)

    assert code == 5
    assert "does not confirm" in err
