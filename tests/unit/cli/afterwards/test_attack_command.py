"""``sfumato attack`` as a user types it."""

import csv
import json

import pytest

from manifest_texts import text_of
from sfumato.cli.main import run
from sfumato.datasets.admissions import admissions
from sfumato.publishing.reaudit import read_manifest
from sfumato.table.io.write import write_table

PROJECT = """
[data]
path = "stays.csv"
[columns]
age = { role = "quasi-identifier", kind = "numeric" }
sex = { role = "quasi-identifier", kind = "categorical" }
postcode_area = { role = "quasi-identifier", kind = "categorical" }
insurance = { role = "quasi-identifier", kind = "categorical" }
discharge_diagnosis = { role = "sensitive", kind = "categorical" }
readmitted = { role = "target", kind = "categorical" }
"""
NAMES = ["age", "sex", "postcode_area", "insurance", "discharge_diagnosis", "readmitted"]
OVERWRITE = ["-o", "release.csv", "--force"]
ATTACK = ["attack", "release.csv", "--manifest", "release.csv.manifest.json", "--reference"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a working folder with a table, its description and a tiered release of k = 4."""
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "stays.csv").open("wb") as file:
        write_table(admissions(n_rows=200).keep(NAMES), file, "csv")
    (tmp_path / "sfumato.toml").write_text(PROJECT)
    assert run(["release", "-m", "error-risk-tree", "-k", "4", "-o", "release.csv"]) == 0
    return tmp_path


def attack(capsys, *arguments):
    capsys.readouterr()
    code = run([*ATTACK, *arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


@pytest.mark.slow
def test_release_keeps_its_crowds(folder, capsys):
    code, out, _ = attack(capsys, "stays.csv", "--rows-correspond", "--json")

    summaries = json.loads(out)
    assert code == 0
    assert [len(summary["background"]) for summary in summaries] == [1] * 4 + [2] * 6 + [3, 4]
    last = summaries[-1]
    assert last["background"] == NAMES[:4]
    assert last["n_reidentified"] == 0
    assert 0 < last["highest_confidence"] <= 1 / 4
    assert last["truth"]["n_own_row_among_candidates"] == 200
    assert {"1/4", "1/10"} <= {entry["at_least"] for entry in last["by_confidence"]}
    assert last["n_learned"].keys() == {"discharge_diagnosis", "readmitted"}


@pytest.mark.slow
def test_words_say_what_was_found_and_quote_no_cell(folder, capsys):
    code, out, _ = attack(capsys, "stays.csv")

    assert code == 0
    assert "200 reference records against 200 released rows" in out
    assert "re-identified: a single candidate" in out
    assert "learned without knowing the row: 'readmitted'" in out
    with (folder / "stays.csv").open() as file:
        cells = {cell for row in list(csv.reader(file))[1:] for cell in row if not cell.isdigit()}
    assert {"male", "private"} <= cells
    assert not [cell for cell in cells if cell in out.split()]


@pytest.mark.slow
def test_grown_sets_say_what_was_added(folder, capsys):
    code, out, _ = attack(capsys, "stays.csv", "--up-to", "1")

    lines = out.splitlines()
    assert code == 0
    assert sum(" + " in line for line in lines) == 3
    assert any("adds a column" in line for line in lines)


@pytest.mark.slow
def test_worst_sets_come_first_and_long_lists_are_cut_short(folder, capsys, monkeypatch):
    monkeypatch.setattr("sfumato.cli.afterwards.attack.SETS_SHOWN", 2)
    pairs = [s for s in json.loads(attack(capsys, "stays.csv", "--json")[1]) if len(s["background"]) == 2]
    worst = sorted(pairs, key=lambda summary: (summary["n_reidentified"], summary["n_expected"]))[-1]

    _, out, _ = attack(capsys, "stays.csv")

    listed = [line for line in out.splitlines() if ", " in line and "least, mean" not in line and "(" not in line]
    assert listed[0].endswith(", ".join(worst["background"]))
    assert len(listed) == 2
    assert "4 more sets of 2 (all with --json)" in out


@pytest.mark.slow
def test_background_columns_can_be_chosen(folder, capsys):
    code, out, _ = attack(capsys, "stays.csv", "--background", "age, sex", "--up-to", "0", "--json")

    assert code == 0
    assert [summary["background"] for summary in json.loads(out)] == [["age", "sex"]]


@pytest.mark.slow
def test_foreign_reference_with_fewer_columns_and_people(folder, capsys):
    (folder / "voters.csv").write_text("name,sex,age\nAnn,female,-5\nBob,male,1e3\nCid,male,44\n")

    code, out, _ = attack(capsys, "voters.csv", "--json")

    last = json.loads(out)[-1]
    assert code == 0
    assert last["background"] == ["age", "sex"]
    assert (last["n_records"], last["n_without_candidates"], last["truth"]) == (3, 2, None)


@pytest.mark.slow
def test_texts_that_mean_missing_can_be_named(folder, capsys):
    (folder / "voters.csv").write_text("sex,age\nfemale,unknown\nmale,44\n")

    assert attack(capsys, "voters.csv", "--background", "age")[0] == 3
    code, out, _ = attack(capsys, "voters.csv", "--background", "age", "--missing", "unknown", "--json")
    assert code == 0
    assert json.loads(out)[-1]["n_without_candidates"] == 1
    code, out, _ = attack(capsys, "voters.csv", "--missing", "unknown", "--drop-incomplete", "--json")
    assert (code, json.loads(out)[-1]["n_records"]) == (0, 1)


def test_incomplete_people_can_be_left_out(folder, capsys):
    (folder / "voters.csv").write_text("sex,age\nfemale,\nmale,44\n")

    code, out, _ = attack(capsys, "voters.csv", "--drop-incomplete", "--json")

    assert (code, json.loads(out)[-1]["n_records"]) == (0, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected", "words"),
    [
        (["nowhere.csv"], 3, "nowhere.csv"),
        (["stays.csv", "--background", "agee"], 3, "did you mean 'age'"),
        (["stays.csv", "--background", "age,age"], 2, "got one twice"),
        (["stays.csv", "--up-to", "-1"], 2, "--up-to"),
        (["few.csv", "--rows-correspond"], 2, "1 reference rows and 200 released ones"),
        (["other.csv"], 3, "share no quasi-identifier"),
        (["texts.csv"], 3, "column 'age': the release has numbers here"),
    ],
)
def test_wrong_input_is_one_line_and_a_code(folder, capsys, arguments, expected, words):
    (folder / "few.csv").write_text("age\n44\n")
    (folder / "other.csv").write_text("height\n44\n")
    (folder / "texts.csv").write_text("age\nforty\n")

    code, out, err = attack(capsys, *arguments)

    assert code == expected
    assert words in err
    assert out == ""
    assert "forty" not in err


@pytest.mark.slow
def test_broken_cells_of_a_release_are_refused(folder, capsys):
    lines = (folder / "release.csv").read_text().splitlines()
    broken = '"[1, ",' + lines[1].split(",", maxsplit=2)[2]
    (folder / "release.csv").write_text("\n".join([lines[0], broken, *lines[2:]]) + "\n")

    code, _, err = attack(capsys, "stays.csv")

    assert code == 3
    assert "column 'age'" in err


def test_broken_manifest_is_refused(folder, capsys):
    path = folder / "release.csv.manifest.json"
    entries = json.loads(path.read_text())
    entries["recodings"][0]["kind"] = "odd"
    path.write_text(text_of(entries), encoding="utf-8")

    code, _, err = attack(capsys, "stays.csv")

    assert (code, "recodings[0].kind" in err) == (3, True)


@pytest.mark.slow
def test_computed_features_are_not_matched(folder, capsys):
    assert run(["release", "-m", "greedy-containment", "-k", "4", "-p", "on_infeasible=skip", *OVERWRITE]) == 0
    manifest, _ = read_manifest(folder / "release.csv.manifest.json")
    feature = manifest.recodings[0]["name"]

    assert attack(capsys, "stays.csv")[0] == 3
    code, _, err = attack(capsys, "stays.csv", "--background", f'"{feature}"')
    assert code == 3
    assert "computed from another column" in err


@pytest.mark.slow
def test_flipped_releases_come_with_a_warning(folder, capsys):
    (folder / "bits.csv").write_text("smokes,drinks,ill\n" + "1,0,y\n0,1,n\n1,1,y\n0,0,n\n" * 10)
    roles = ["--quasi-identifiers", "smokes,drinks", "--target", "ill"]
    assert run(["release", "bits.csv", "-m", "random-flipping", "-k", "2", *roles, *OVERWRITE]) == 0

    code, _, err = attack(capsys, "bits.csv")

    assert code == 0
    assert "so a match proves nothing" in err
