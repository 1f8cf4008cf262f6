"""``sfumato apply``: new rows in the form of a release, as the evaluation gives it to test rows."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from sfumato.cli.main import run
from sfumato.datasets.admissions import admissions
from sfumato.evaluation.treatment import learned_from, recoded_cells, stratified_folds, treated
from sfumato.mechanisms.registry import build_mechanism
from sfumato.schema import Role
from sfumato.table.io.read import read_table
from sfumato.table.io.write import write_table
from sfumato.table.roles import with_guessed_roles

COLUMNS = ["name", "age", "sex", "marital_status", "insurance", "emergency", "smoker", "readmitted"]
RECODERS = {
    "mondrian": [],
    "auto": [],
    "error-risk-tree": ["-p", "generalization=uniform"],
    "global-recoding": [],
    "gain-recoding": ["-p", "max_suppressed_fraction=0.2"],
    "local-recoding": [],
}
CANARY = "CANARY-7f3a"


def write(table, path):
    with Path(path).open("wb") as file:
        write_table(table, file, path.rpartition(".")[2])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a folder with a fold of a table to train on, and one to test on."""
    monkeypatch.chdir(tmp_path)
    table = admissions(n_rows=400).keep(COLUMNS)
    train, test = stratified_folds(table["readmitted"].codes, 4, seed=3)[0]
    write(table.take(train), "train.csv")
    write(table.take(test), "test.csv")
    return tmp_path


def release(*more, data="train.csv"):
    roles = ["--target", "readmitted", "--identifiers", "name"]
    assert run(["release", data, *roles, "--quick", "-o", "release.csv", *more]) == 0


def applied(*more, new="test.csv"):
    return run(["apply", "release.csv.manifest.json", new, "-o", "applied.csv", *more])


def rows_of(path):
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
@pytest.mark.parametrize("name", RECODERS)
def test_what_is_written_is_the_evaluations_own_treatment_to_the_byte(folder, name):
    release("-m", name, *RECODERS[name])
    parameters = json.loads((folder / "release.csv.manifest.json").read_text())["mechanism"]
    assert applied("--original", "train.csv") == 0

    roles = {"name": Role.IDENTIFIER, "readmitted": Role.TARGET}
    train, test = (with_guessed_roles(read_table(f"{part}.csv"), roles)[0] for part in ("train", "test"))
    given = {key: value for key, value in parameters["parameters"].items() if value is not None}
    mechanism = build_mechanism(parameters["name"], given)
    expected = treated(mechanism, train, test).test
    names = learned_from(train.schema)
    write(mechanism.fit(train).transform(test), "expected.csv")

    assert (folder / "applied.csv").read_bytes() == (folder / "expected.csv").read_bytes()
    found = mechanism.transform(test)
    assert recoded_cells(mechanism.recoding_, found.keep(names), names).to_arrow().equals(expected.to_arrow())
    header = (folder / "release.csv").read_text().splitlines()[0]
    assert (folder / "applied.csv").read_text().splitlines()[0] == header
    assert not (folder / "applied.csv.manifest.json").exists()


@pytest.mark.slow
def test_a_project_gives_the_same_rows_and_its_key_checks_the_original(folder, capsys):
    assert run(["init", "train.csv", "--target", "readmitted", "--identifiers", "name"]) == 0
    assert run(["release", "-m", "mondrian", "-o", "release.csv"]) == 0
    assert applied("--project", "sfumato.toml") == 0
    by_project = (folder / "applied.csv").read_bytes()
    assert applied("--original", "train.csv", "--force") == 0
    assert (folder / "applied.csv").read_bytes() == by_project
    capsys.readouterr()

    write(admissions(n_rows=300).keep(COLUMNS), "train.csv")
    assert run(["init", "--update"]) == 0
    assert applied("--project", "sfumato.toml", "--force") == 3
    assert "the commitment in the manifest does not fit" in capsys.readouterr().err


@pytest.mark.slow
def test_another_original_is_refused_and_nothing_is_written(folder, capsys):
    release("-m", "mondrian")
    write(admissions(n_rows=300).keep(COLUMNS), "train.csv")

    assert applied("--original", "train.csv") == 3
    assert "is not the release of the manifest" in capsys.readouterr().err
    assert not (folder / "applied.csv").exists()


@pytest.mark.slow
def test_the_manifest_alone_is_enough_for_features_and_not_for_groups(folder, capsys):
    release("-m", "greedy-containment", "-k", "3")
    assert applied() == 0
    assert (folder / "applied.csv").read_text().splitlines()[0] == (folder / "release.csv").read_text().splitlines()[0]
    roles = {"name": Role.IDENTIFIER, "readmitted": Role.TARGET}
    train, test = (with_guessed_roles(read_table(f"{part}.csv"), roles)[0] for part in ("train", "test"))
    expected = treated(build_mechanism("greedy-containment", {"k": 3}), train, test).test.to_arrow().to_pydict()
    found = rows_of("applied.csv")
    assert {name: [row[name] for row in found] for name in expected} == expected
    release("-m", "mondrian", "--force")

    assert applied("--force") == 2
    assert "--original FILE, --project FILE or --release FILE" in capsys.readouterr().err


def written(rows, path):
    with Path(path).open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def unknown_rows():
    rows = rows_of("test.csv")[:6]
    rows[1]["insurance"] = CANARY
    rows[3]["insurance"] = CANARY
    rows[4]["age"] = "717171"
    written([list(rows[0]), *(row.values() for row in rows)], "new.csv")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mondrian", "global-recoding"])
def test_unknown_values_are_refused_by_column_and_row_and_never_shown(folder, capsys, name):
    release("-m", name)
    unknown_rows()
    capsys.readouterr()

    assert applied("--original", "train.csv", new="new.csv") == 3
    said = capsys.readouterr()
    assert "'insurance' in 2 rows (2, 4)" in said.err
    assert "'age' in 1 row (5)" in said.err
    assert "--unknown generalize" in said.err
    assert CANARY not in said.err + said.out
    assert "717171" not in said.err + said.out
    assert not (folder / "applied.csv").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mondrian", "global-recoding"])
def test_unknown_values_become_a_cell_that_says_nothing_and_other_rows_stay(folder, capsys, name):
    release("-m", name)
    unknown_rows()
    assert applied("--original", "train.csv", "--unknown", "generalize", new="new.csv") == 0
    found = rows_of("applied.csv")
    (folder / "applied.csv").unlink()
    assert applied("--original", "train.csv") == 0
    known = rows_of("applied.csv")

    assert [row["insurance"] for row in found][1] == [row["insurance"] for row in found][3] == "*"
    assert found[4]["age"] == "*"
    assert [found[i] for i in (0, 2, 5)] == [known[i] for i in (0, 2, 5)]
    assert CANARY not in (folder / "applied.csv").read_text() + capsys.readouterr().err


def test_a_rule_that_cannot_be_applied_is_refused_whatever_is_asked(folder, capsys):
    rows = [["age", "readmitted"], *([str(20 + i % 20), "yn"[i % 20 > 9]] for i in range(80))]
    written(rows, "ages.csv")
    given = ["release", "ages.csv", "--target", "readmitted", "-m", "greedy-containment", "-k", "3"]
    assert run([*given, "-o", "release.csv"]) == 0
    written([["age"], ["30"], ["40"], [CANARY]], "new.csv")
    capsys.readouterr()

    assert applied("--unknown", "generalize", new="new.csv") == 3
    said = capsys.readouterr().err
    assert "in 1 row (3)" in said
    assert CANARY not in said


@pytest.mark.slow
def test_the_target_may_be_missing_other_columns_may_not(folder, capsys):
    release("-m", "mondrian")
    test = read_table("test.csv")
    write(test.keep(["smoker", *(name for name in COLUMNS if name not in ("readmitted", "smoker", "name"))]), "new.csv")
    assert applied("--original", "train.csv", new="new.csv") == 0
    assert list(rows_of("applied.csv")[0]) == ["age", "sex", "marital_status", "insurance", "emergency", "smoker"]
    write(test.keep(["age", "sex"]), "less.csv")
    capsys.readouterr()

    assert applied("--original", "train.csv", "--force", new="less.csv") == 3
    assert "'marital_status'" in capsys.readouterr().err


@pytest.mark.slow
def test_the_output_is_guarded_as_a_release_is(folder, capsys):
    release("-m", "mondrian")
    assert applied("--original", "train.csv") == 0
    assert "no guarantee holds for these rows" in capsys.readouterr().err
    assert applied("--original", "train.csv") == 3
    assert applied("--original", "train.csv", "--force") == 0
    for own in ("test.csv", "train.csv", "release.csv.manifest.json"):
        given = ["apply", "release.csv.manifest.json", "test.csv", "--original", "train.csv", "--force", "-o", own]
        assert run(given) in (2, 3)
    assert run(["apply", "release.csv.manifest.json", "test.csv", "--original", "train.csv", "-o", "a.parquet"]) == 0
    assert read_table("a.parquet").n_rows == len(rows_of("test.csv"))


def test_what_makes_no_sense_is_refused(folder, capsys):
    release("-m", "mondrian")
    for options in (
        ["--original", "train.csv", "--project", "sfumato.toml"],
        ["--original", "train.csv", "--release", "release.csv"],
        ["--original", "train.csv", "--missing", "x"],
        ["--original", "train.csv", "--drop-incomplete"],
        ["--original", "train.csv", "--hierarchy", "age"],
        ["--original", "train.csv", "-o", "-"],
    ):
        assert applied(*options) == 2
    manifest = (folder / "release.csv.manifest.json").read_text()
    (folder / "release.csv.manifest.json").write_text(manifest.replace('"suppressed_rows": 0', '"suppressed_rows": 1'))

    assert applied("--original", "train.csv") == 3
    assert "its digest does not fit" in capsys.readouterr().err


def test_buckets_have_no_form_for_one_row(folder, capsys):
    release("-m", "anatomy", "--sensitive", "age")

    assert applied("--original", "train.csv") == 2
    assert "moves values between rows" in capsys.readouterr().err


@pytest.mark.slow
def test_own_hierarchies_are_given_again(folder, capsys):
    levels = [
        f"{value};{'covered' if value != 'none' else value};*" for value in ("public", "private", "company", "none")
    ]
    (folder / "insurance.csv").write_text("\n".join(levels) + "\n")
    release("-m", "global-recoding", "--hierarchy", "insurance=insurance.csv")
    capsys.readouterr()

    assert applied("--original", "train.csv") == 2
    assert "hierarchies" in capsys.readouterr().err
    assert applied("--original", "train.csv", "--hierarchy", "insurance=insurance.csv") == 0


def said_to_show_more(capsys, *more):
    release(*more)
    capsys.readouterr()
    assert applied("--original", "train.csv", "--quiet") == 0
    return "tell more about the original" in capsys.readouterr().err


@pytest.mark.slow
def test_tiered_cells_are_warned_of_and_those_of_groups_are_all_released(folder, capsys):
    assert said_to_show_more(capsys, "-m", "error-risk-tree")
    (folder / "applied.csv").unlink()
    assert not said_to_show_more(capsys, "-m", "mondrian", "--force")
    new, shown = ({tuple(row.values())[:-1] for row in rows_of(path)} for path in ("applied.csv", "release.csv"))

    assert new <= shown


def test_labels_that_no_released_row_has_are_warned_of(folder, capsys):
    """All people of one region but a few are released at a level that the others are not at."""
    rows = [["region", "y"], *(["a", "pq"[i % 2]] for i in range(30)), *([f"b{i}", "pq"[i % 2]] for i in range(3))]
    written(rows, "train.csv")
    regions = ["a;a;*", *(f"b{i};b;*" for i in range(9))]
    (folder / "regions.csv").write_text("\n".join(regions) + "\n")
    given = [
        "release",
        "train.csv",
        "--target",
        "y",
        "--quasi-identifiers",
        "region",
        "-m",
        "global-recoding",
        "-k",
        "5",
    ]
    options = ["--hierarchy", "region=regions.csv"]
    assert run([*given, *options, "-p", "max_suppressed_fraction=0.2", "-o", "release.csv"]) == 0
    shown = {row["region"] for row in rows_of("release.csv")}
    written([["region"], ["a"], ["b7"]], "new.csv")
    capsys.readouterr()
    assert applied("--original", "train.csv", *options, new="new.csv") == 0
    new = {row["region"] for row in rows_of("applied.csv")}

    assert ("'region' are not those of the release" in capsys.readouterr().err) == bool(new - shown - {"*"})
    assert new - shown


def test_rows_with_missing_values_are_kept_and_a_dropped_kind_of_row_is_unknown(folder, capsys):
    rows = [["age", "job", "y"], *([str(20 + i % 9), "ab"[i % 2], "pq"[i % 2]] for i in range(40)), ["", "a", "p"]]
    written(rows, "holes.csv")
    given = ["release", "holes.csv", "--target", "y", "--quasi-identifiers", "age,job", "-m", "mondrian"]
    assert run([*given, "--drop-incomplete", "-o", "release.csv"]) == 0
    capsys.readouterr()

    assert applied("--original", "holes.csv", new="holes.csv") == 3
    assert "'age' in 1 row (41)" in capsys.readouterr().err
    assert applied("--original", "holes.csv", "--unknown", "generalize", new="holes.csv") == 0
    assert rows_of("applied.csv")[40]["age"] == "*"


def test_persons_are_counted_again_as_they_were(folder):
    ids = np.repeat(np.arange(60), 2)
    cells = {
        "who": [f"w{i}" for i in ids],
        "age": [str(20 + i % 11) for i in ids],
        "job": ["abc"[i % 3] for i in range(120)],
        "y": ["pq"[i % 2] for i in range(120)],
    }
    with pa.OSFile("visits.csv", "wb") as file:
        pa.csv.write_csv(pa.table(cells), file)
    given = ["release", "visits.csv", "--target", "y", "--person", "who", "-m", "mondrian", "-o", "release.csv"]
    assert run(given) == 0

    assert applied("--original", "visits.csv", new="visits.csv") == 0
    assert list(rows_of("applied.csv")[0]) == ["age", "job", "y"]


@pytest.mark.slow
@pytest.mark.parametrize("way", [["--original", "train.csv"], ["--release", "release.csv", "--unknown", "generalize"]])
def test_new_rows_are_prepared_as_the_columns_of_the_release_were(folder, way):
    """Rows prepared by hand and applied to a release without preparation are the oracle."""
    asked = ["--prepare", "age=top:70,round:5", "--prepare", "insurance=keep_first:2"]
    release("-m", "mondrian", *asked)
    assert applied(*way) == 0
    own = Path("applied.csv").read_text()

    for name in ("train.csv", "test.csv"):
        rows = rows_of(name)
        for row in rows:
            row["age"] = str(min(70, 5 * int(int(row["age"]) / 5 + 0.5)))
            row["insurance"] = row["insurance"][:2] + "#" * len(row["insurance"][2:])
        with Path(name).open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    released = Path("release.csv").read_text()
    release("-m", "mondrian", "--force")
    assert Path("release.csv").read_text() == released
    assert applied(*way, "--force") == 0

    assert Path("applied.csv").read_text() == own


@pytest.mark.slow
def test_what_follows_from_a_key_is_refused(folder, capsys):
    release("-m", "mondrian", "--prepare", "name=pseudonym")

    assert applied("--original", "train.csv") == 2

    assert "pseudonyms or shifted dates" in capsys.readouterr().err


@pytest.mark.slow
def test_typical_values_need_no_other_form(folder, capsys):
    release("-m", "mondrian", "--cells", "values")

    assert applied("--original", "train.csv") == 2

    assert "typical values" in capsys.readouterr().err
