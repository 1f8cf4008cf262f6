"""A file with dates and numbers of the world, released and audited: in memory, in blocks, by options, by project."""

import json
import random

import pytest

from sfumato.cli.main import run

ROLES = ["--target", "class", "--quasi-identifiers", "when,day,weight,share", "--other", "ward"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(5)
    lines = ["when;day;weight;share;ward;class"]
    for _ in range(300):
        when = f"{draw.randint(1, 28):02}.{draw.randint(1, 12):02}.{draw.randint(2019, 2021)}"
        day = f"{draw.randint(1, 12):02}/{draw.randint(1, 3):02}/2021"
        weight = f"{draw.randint(50, 60)},5 kg"
        ward = draw.choice(["1,5", "2,5", "3,5"])
        lines.append(f"{when};{day};{weight};{draw.randint(1, 9)} %;{ward};{draw.choice(['yes', 'no'])}")
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def manifest_of(folder, name="out.csv"):
    return json.loads((folder / f"{name}.manifest.json").read_text())


def audited(*arguments):
    """Exit code of an audit with the original: 8 where only figures and roles could not be checked."""
    return run(["audit", "out.csv", "--manifest", "out.csv.manifest.json", "--original", "in.csv", *arguments])


@pytest.mark.parametrize("mechanism", ["global-recoding", "mondrian", "gain-recoding"])
def test_a_release_has_plain_cells_and_is_confirmed_with_the_original(folder, capsys, mechanism):
    assert run(["release", "in.csv", "-m", mechanism, *ROLES, "-o", "out.csv"]) == 0
    said = capsys.readouterr().err

    assert "note: column 'day' is read as DD/MM/YYYY: day first; no value above 12 decides" in said
    manifest, released = manifest_of(folder), (folder / "out.csv").read_text()
    assert {c["name"]: c.get("unit") for c in manifest["output"]["columns"]} == {
        "when": None,
        "day": None,
        "weight": "kg",
        "share": "%",
        "ward": None,
        "class": None,
    }
    assert "read_as" not in manifest["input"]
    assert "kg" not in released
    assert "1,5" not in released
    assert "1.5" in released
    assert audited() == 8
    assert "refused" not in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("memory", [[], ["--memory", "600MB"]], ids=["memory", "blocks"])
def test_a_declared_format_is_in_the_manifest_only_where_nobody_would_guess_it(folder, capsys, memory):
    declared = ["--date-format", "day=MM/DD/YYYY", "--date-format", "when=DD.MM.YYYY", "--number-format", "ward=text"]
    roles = ["--target", "class", "--quasi-identifiers", "when,weight,share", "--other", "ward,day"]
    made = ["release", "in.csv", "-m", "global-recoding", *roles, *declared, "-o", "out.csv", *memory]
    assert run(made) == 0
    assert "please confirm" not in capsys.readouterr().err

    assert manifest_of(folder)["input"]["read_as"] == {"day": "MM/DD/YYYY", "ward": "text"}
    assert '"1,5"' in (folder / "out.csv").read_text()
    for where in ([], ["--memory", "600MB"]):
        assert audited(*where) == 8
        assert "note: column 'day' is read as MM/DD/YYYY, as the manifest says" in capsys.readouterr().err
    assert audited("--date-format", "day=DD/MM/YYYY") == 5


def test_a_project_is_released_as_its_file_says(folder, capsys):
    assert run(["init", "in.csv", "--target", "class", "--date-format", "day=MM/DD/YYYY"]) == 0
    text = (folder / "sfumato.toml").read_text()
    text = text.replace('"ward" = { role = "quasi-identifier", kind = "numeric", number_format = "1234,56" }', WARD)
    (folder / "sfumato.toml").write_text(text)
    assert WARD in text

    assert run(["release", "-m", "global-recoding", "-o", "out.csv"]) == 0
    assert "please confirm" not in capsys.readouterr().err
    assert '"1,5"' in (folder / "out.csv").read_text()
    assert manifest_of(folder)["input"]["read_as"] == {"day": "MM/DD/YYYY", "ward": "text"}
    assert audited() == 8
    assert run(["audit", "out.csv", "--manifest", "out.csv.manifest.json", "--project", "sfumato.toml"]) in (0, 8)


WARD = '"ward" = { role = "other", kind = "categorical" }'


def test_an_update_adds_a_new_column_with_its_format(folder, capsys):
    assert run(["init", "in.csv", "--target", "class"]) == 0
    lines = (folder / "in.csv").read_text().splitlines()
    added = [f"{line};{'left' if i == 0 else f'0{i % 9 + 1}/0{i % 7 + 1}/2021'}" for i, line in enumerate(lines)]
    (folder / "in.csv").write_text("\n".join(added) + "\n")

    assert run(["init", "--update"]) == 0
    listed = (folder / "sfumato.toml").read_text()
    assert (
        'kind = "date", date_format = "DD/MM/YYYY" }  # not recognised: please decide; date_format is a guess' in listed
    )


def test_differential_privacy_reads_texts_as_they_are(folder, capsys):
    made = ["release", "in.csv", "-m", "laplace-dp", *ROLES[:4], "--param", "epsilon=1", "-o", "out.csv"]

    assert run([*made, "--date-format", "day=MM/DD/YYYY"]) == 2
    assert "differential privacy" in capsys.readouterr().err
