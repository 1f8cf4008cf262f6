"""The commands as a user types them."""

import json
import os
import tomllib

import pytest

from sfumato.cli.main import COMMANDS, run
from sfumato.datasets.admissions import admissions
from sfumato.publishing.reaudit import audit_published
from sfumato.table.io.write import write_table


@pytest.fixture(scope="module")
def stays_csv(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "admissions.csv"
    with path.open("wb") as file:
        write_table(admissions(n_rows=600), file, "csv")
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch, stays_csv):
    """Make a working folder that holds the data."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "admissions.csv").write_bytes(stays_csv.read_bytes())
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(capsys, name):
    assert run([name, "--help"]) == 0

    shown = capsys.readouterr().out
    assert "Usage: sfumato" in shown
    assert name == "mechanisms" or "Examples:" in shown


@pytest.mark.slow
def test_init_then_release_then_audit(folder, capsys):
    assert run(["init", "admissions.csv"]) == 0
    assert run(["release", "--quick"]) == 0
    made = [".gitignore", "release.csv", "release.csv.manifest.json", "sfumato.key", "sfumato.toml"]
    assert sorted(os.listdir(folder)) == sorted(["admissions.csv", *made])
    capsys.readouterr()

    arguments = ["audit", "release.csv", "--manifest", "release.csv.manifest.json", "--original", "admissions.csv"]
    assert run(arguments) == 8
    assert run([*arguments, "--accept", "roles,commitment"]) == 0
    assert run(["audit", "release.csv", "--manifest", "release.csv.manifest.json", "--project", "sfumato.toml"]) == 0
    assert "FAIL" not in capsys.readouterr().out
    assert audit_published(folder / "release.csv", folder / "release.csv.manifest.json").passed


@pytest.mark.slow
@pytest.mark.parametrize("names", ["everything", "format,everything", "Format", "format,", ",", "digest"])
def test_what_is_no_exception_cannot_be_accepted(folder, capsys, names):
    assert run(["release", "admissions.csv", "-m", "mondrian", "-o", "release.csv"]) == 0
    capsys.readouterr()

    assert run(["audit", "release.csv", "--manifest", "release.csv.manifest.json", "--accept", names]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "--accept must be some of original, roles, promises, breach, format, " in said.err


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 2, 4])
def test_a_manifest_of_another_version_is_bad_input(folder, capsys, version):
    assert run(["release", "admissions.csv", "-m", "mondrian", "-o", "release.csv"]) == 0
    path = folder / "release.csv.manifest.json"
    path.write_text(path.read_text().replace('"sfumato_manifest": 3', f'"sfumato_manifest": {version}'))
    capsys.readouterr()

    assert run(["audit", "release.csv", "--manifest", path.name]) == 3
    said = capsys.readouterr().err
    assert "is no sfumato manifest of version 3, the only version that this program reads" in said


def test_init_explains_every_guess_and_quotes_no_data(folder):
    run(["init", "admissions.csv"])

    text = (folder / "sfumato.toml").read_text()
    project = tomllib.loads(text)
    assert project["columns"]["patient_id"]["role"] == "identifier"
    assert project["columns"]["readmitted"]["role"] == "target"
    for line in text.splitlines():
        if "role =" in line:
            assert "  # " in line


def test_init_refuses_to_overwrite_without_force(folder, capsys):
    (folder / "sfumato.toml").write_text("mine")

    assert run(["init", "admissions.csv"]) == 3
    assert (folder / "sfumato.toml").read_text() == "mine"
    assert "--force" in capsys.readouterr().err
    assert run(["init", "admissions.csv", "--force"]) == 0


@pytest.mark.slow
def test_init_handles_25000_columns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    header = ",".join(f"word{i}" for i in range(25_000)) + ",class\n"
    rows = "".join(",".join("01"[(i * j) % 7 == 1] for j in range(25_000)) + f",{i % 2}\n" for i in range(12))
    (tmp_path / "wide.csv").write_text(header + rows)

    assert run(["init", "wide.csv", "--target", "class"]) == 0
    assert len(tomllib.loads((tmp_path / "sfumato.toml").read_text())["columns"]) == 25_001


@pytest.mark.slow
def test_release_from_flags_alone(folder, capsys):
    code = run(
        [
            "release",
            "admissions.csv",
            "--target",
            "readmitted",
            "-m",
            "greedy-containment",
            "-k",
            "4",
            "-p",
            "on_infeasible=skip",
            "-o",
            "out.parquet",
        ]
    )

    assert code == 0
    manifest = json.loads((folder / "out.parquet.manifest.json").read_text())
    assert manifest["mechanism"]["parameters"]["k"] == 4
    assert "guessed 'patient_id' = identifier" in capsys.readouterr().err


@pytest.mark.slow
def test_dry_run_writes_nothing(folder, capsys):
    assert run(["release", "admissions.csv", "--target", "readmitted", "--dry-run", "--json", "--quick"]) == 0

    assert os.listdir(folder) == ["admissions.csv"]
    manifest = json.loads(capsys.readouterr().out)
    assert (manifest["mechanism"]["name"], manifest["mechanism"]["parameters"]["split"]) == ("mondrian", "score")
    assert {entry["kind"] for entry in manifest["guarantees"]} == {"k-anonymity", "l-diversity"}


def test_a_guarantee_out_of_reach_is_exit_4_and_writes_nothing(folder, capsys):
    assert run(["release", "admissions.csv", "--target", "readmitted", "-k", "601", "-o", "out.csv"]) == 4

    assert os.listdir(folder) == ["admissions.csv"]
    assert "best level reached is 600" in capsys.readouterr().err


@pytest.mark.slow
def test_a_tampered_release_is_exit_5(folder, capsys):
    run(["release", "admissions.csv", "-m", "greedy-containment", "--target", "readmitted", "-o", "out.csv"])
    content = (folder / "out.csv").read_text().splitlines(keepends=True)
    (folder / "out.csv").write_text("".join(content[:-1]))

    assert run(["audit", "out.csv", "--manifest", "out.csv.manifest.json"]) == 5
    assert "FAIL" in capsys.readouterr().out


def test_profile_of_any_table(folder, capsys):
    arguments = [
        "audit",
        "admissions.csv",
        "--quasi-identifiers",
        "age,sex",
        "--sensitive",
        "discharge_diagnosis",
        "--json",
    ]
    assert run([*arguments, "--target", "readmitted"]) == 0

    profile = json.loads(capsys.readouterr().out)
    assert profile["k"] >= 1


def test_exit_codes_for_usage_and_input(folder, capsys):
    (folder / "one.csv").write_text("a,y\n1,same\n0,same\n")

    assert run(["release", "--nonsense"]) == 2
    assert run(["frobnicate"]) == 2
    assert run(["release", "admissions.csv", "-p", "k", "-o", "x.csv"]) == 2
    assert run(["release", "admissions.csv", "-m", "magic", "-o", "x.csv"]) == 2
    assert run(["release", "nowhere.csv", "-o", "x.csv"]) == 3
    assert run(["release", "one.csv", "-m", "greedy-containment", "--target", "y", "-o", "x.csv", "-k", "2"]) == 3
    assert run(["release"]) == 3
    assert run(["release", "admissions.csv", "--target", "readmited", "-o", "x.csv"]) == 3
    assert "did you mean 'readmitted'" in capsys.readouterr().err
    assert not (folder / "x.csv").exists()


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (("readmitted", "readmited"), "did you mean 'readmitted'"),
        (("[columns]", "[colums]"), "did you mean 'columns'"),
        (('role = "target"', 'role = "targt"'), "did you mean 'target'"),
        (('mechanism = "auto"', 'mechanism = "greedy"'), "mechanism must be one of"),
        (("k = 5", "kk = 5"), "did you mean 'k'"),
        (("[data]", "[data"), "not valid TOML"),
    ],
    ids=["column", "section", "role", "mechanism", "parameter", "syntax"],
)
def test_mistakes_in_the_project_file_are_named(folder, capsys, edit, message):
    run(["init", "admissions.csv"])
    text = (folder / "sfumato.toml").read_text()
    (folder / "sfumato.toml").write_text(text.replace(*edit))
    capsys.readouterr()

    assert run(["release"]) in (2, 3)
    shown = capsys.readouterr().err.strip().splitlines()
    assert len(shown) == 1
    assert message in shown[0]
    assert not (folder / "release.csv").exists()


def test_data_that_changed_since_init_is_refused(folder, capsys):
    run(["init", "admissions.csv"])
    with (folder / "admissions.csv").open("a") as file:
        file.write((folder / "admissions.csv").read_text().splitlines()[-1] + "\n")

    assert run(["release"]) == 3
    assert "SHA-256 differs" in capsys.readouterr().err


@pytest.mark.slow
def test_rows_with_missing_values_are_kept_or_dropped_and_the_manifest_says_which(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i % 2},{'' if i % 5 == 0 else i % 3},{'yn'[i % 2]}\n" for i in range(60))
    (tmp_path / "t.csv").write_text("a,b,y\n" + rows)
    common = ["release", "t.csv", "-m", "greedy-containment", "--target", "y", "-k", "2"]

    assert run([*common, "-o", "kept.csv"]) == 0
    assert run([*common, "-o", "dropped.csv", "--drop-incomplete"]) == 0

    kept = json.loads((tmp_path / "kept.csv.manifest.json").read_text())
    dropped = json.loads((tmp_path / "dropped.csv.manifest.json").read_text())
    assert (kept["missing"]["rows"], kept["output"]["rows"]) == ("kept", 60)
    assert (dropped["missing"]["rows"], dropped["missing"]["n_dropped"], dropped["output"]["rows"]) == (
        "dropped",
        12,
        48,
    )
    for name in ("kept", "dropped"):
        arguments = ["audit", f"{name}.csv", "--manifest", f"{name}.csv.manifest.json", "--original", "t.csv"]
        assert run([*arguments, "--accept", "roles,figures"]) == 0


@pytest.mark.slow
def test_standard_input_and_a_sparse_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mail.svm").write_text("+1 1:1 2:1\n-1 1:1\n+1 1:1 2:1 3:1\n-1 2:1\n-1 1:1 2:1\n+1 1:1\n")

    assert run(["init", "mail.svm"]) == 0
    assert run(["release", "-m", "greedy-containment", "-k", "2", "-p", "on_infeasible=skip"]) == 0
    assert run(["release", "mail.svm", "-m", "greedy-containment", "-k", "2", "-o", "out.svm"]) == 0
    arguments = ["audit", "out.svm", "--manifest", "out.svm.manifest.json", "--original", "mail.svm"]
    assert run([*arguments, "--accept", "roles,figures"]) == 0


@pytest.mark.slow
def test_demo_makes_an_audited_release(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    # With all of its 5,000 rows and all columns the demo is run in tests/web/test_opening.py.
    columns = ["name", "age", "sex", "insurance", "smoker", "diabetes", "discharge_diagnosis", "readmitted"]
    monkeypatch.setattr("sfumato.project.describe.admissions", lambda: admissions(n_rows=150).keep(columns))

    assert run(["demo"]) == 0
    assert run(["demo", "-k", "10", "--quick"]) == 0
    names = {"admissions.csv", "sfumato.toml", "release.csv", "release.csv.manifest.json", "report.html"}
    assert set(os.listdir(tmp_path / "sfumato-demo")) == names
    assert "FAIL" not in capsys.readouterr().out


def test_an_unknown_error_is_called_a_bug_and_shows_no_text(folder, capsys, monkeypatch):
    def explode(*_, **__):
        raise RuntimeError("CANARY-7f3a")

    monkeypatch.setattr("sfumato.table.io.read.read_table", explode)

    assert run(["audit", "admissions.csv"]) == 1
    shown = capsys.readouterr()
    assert "CANARY" not in shown.out + shown.err
    assert "this is a bug in sfumato" in shown.err
