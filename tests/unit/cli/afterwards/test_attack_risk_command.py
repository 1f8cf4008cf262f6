"""``sfumato attack ORIGINAL RELEASED`` as a user types it."""

import csv
import json

import pytest

from sfumato.cli.main import run
from sfumato.cli.options.tables import apply_roles
from sfumato.datasets.admissions import admissions
from sfumato.mechanisms.base import Release
from sfumato.publishing.reaudit import read_manifest, read_original, read_released
from sfumato.report.measured import risk_left
from sfumato.schema import Role
from sfumato.table.io.read import ReadOptions
from sfumato.table.io.write import write_table

NAMES = ["age", "sex", "insurance", "smoker", "diabetes", "discharge_diagnosis", "readmitted"]
ROLES = ["--target", "readmitted", "--sensitive", "discharge_diagnosis", "--quasi-identifiers", ",".join(NAMES[:5])]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a working folder with a table."""
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "stays.csv").open("wb") as file:
        write_table(admissions(n_rows=200).keep(NAMES), file, "csv")
    return tmp_path


def release(mechanism, *more):
    assert run(["release", "stays.csv", "-m", mechanism, *ROLES, *more, "-o", "release.csv", "--force"]) == 0


def attack(capsys, *arguments):
    capsys.readouterr()
    code = run(["attack", *arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


@pytest.mark.slow
def test_the_manifest_beside_the_release_is_found(folder, capsys):
    release("mondrian", "-k", "4")

    code, out, _ = attack(capsys, "stays.csv", "release.csv", "--json")

    found = json.loads(out)
    assert code == 0
    assert found["before"]["headline"]["highest_prosecutor"] == 1
    assert 0 < found["released"]["headline"]["highest_prosecutor"] <= 1 / 4
    assert [entry["column"] for entry in found["released"]["inference"]] == ["discharge_diagnosis"]
    named = attack(capsys, "stays.csv", "release.csv", "--json", "--manifest", "release.csv.manifest.json")
    assert json.loads(named[1]) == found


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["mondrian", "global-recoding", "slicing", "greedy-containment"])
def test_words_put_before_beside_released_and_quote_no_cell(folder, capsys, mechanism):
    release(mechanism, *(["-p", "on_infeasible=skip"] if "containment" in mechanism else []))

    code, out, _ = attack(capsys, "stays.csv", "release.csv")

    assert code == 0
    for words in (
        "highest risk of a person, known to be in the table (prosecutor)",
        "marketer",
        "50 or more",
        "unique on 3 or fewer columns",
        "breach increase",
        "found by the worst 3 columns",
        "the worst 3 columns, released: ",
    ):
        assert words in out
    assert ("1-values are known" in out) == (mechanism == "greedy-containment")
    with (folder / "stays.csv").open() as file:
        cells = {cell for row in list(csv.reader(file))[1:] for cell in row if not cell.isdigit()}
    assert "female" in cells
    assert not [cell for cell in cells if cell in out.split()]


def test_synthetic_releases_say_what_does_not_apply(folder, capsys):
    (folder / "bits.csv").write_text("smokes,drinks,ill\n" + "1,0,y\n0,1,n\n1,1,y\n0,0,n\n" * 30)
    roles = ["--quasi-identifiers", "smokes,drinks", "--target", "ill"]
    assert run(["release", "bits.csv", "-m", "laplace-dp", "-p", "n_features=2", *roles, "-o", "dp.csv"]) == 0

    code, out, _ = attack(capsys, "bits.csv", "dp.csv", "--infer-target")

    assert code == 0
    assert "not applicable: the released rows were drawn at random" in out
    assert "'ill'" in out


@pytest.mark.slow
def test_a_dropped_sensitive_column_is_named_by_its_role(folder, capsys):
    release("breach-aware")

    code, out, _ = attack(capsys, "stays.csv", "release.csv", "--sensitive", "discharge_diagnosis", "--json")

    entry = json.loads(out)["released"]["inference"][0]
    assert code == 0
    assert entry["column"] == "discharge_diagnosis"
    assert "were not released" in entry["trained_on"]


@pytest.mark.slow
def test_tables_without_a_manifest_are_compared_cell_by_cell(folder, capsys):
    lines = (folder / "stays.csv").read_text().splitlines()
    (folder / "some.csv").write_text("\n".join(lines[:101]) + "\n")

    code, out, err = attack(capsys, "stays.csv", "some.csv", *ROLES, "--json", "--sample-fraction", "0.1")

    found = json.loads(out)["released"]["reidentification"]
    assert code == 0
    assert "without a manifest" in err
    assert (found["n_people"], found["n_released"]) == (200, 100)
    assert found["by_classes"]["journalist"]["highest"] < 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected", "words"),
    [
        ([], 2, "ORIGINAL"),
        (["release.csv"], 2, "give ORIGINAL and RELEASED"),
        (["stays.csv", "release.csv", "third.csv"], 2, "give ORIGINAL and RELEASED"),
        (["release.csv", "--reference", "stays.csv"], 2, "--manifest"),
        (["stays.csv", "release.csv", "--reference", "stays.csv"], 2, "one released table"),
        (["stays.csv", "nowhere.csv"], 3, "nowhere.csv"),
        (["stays.csv", "release.csv", "--sensitive", "agee"], 3, "agee"),
        (["stays.csv", "release.csv", "--sample-fraction", "0"], 2, "--sample-fraction"),
    ],
)
def test_wrong_input_is_one_line_and_a_code(folder, capsys, arguments, expected, words):
    release("mondrian")

    code, out, err = attack(capsys, *arguments)

    assert (code, out) == (expected, "")
    assert words in err


@pytest.mark.slow
def test_dropped_rows_leave_the_risk_that_the_report_tells(folder, capsys):
    lines = (folder / "stays.csv").read_text().splitlines()
    holes = [line if number % 4 else line.replace(",female,", ",,") for number, line in enumerate(lines)]
    (folder / "stays.csv").write_text("\n".join(holes) + "\n")
    release("mondrian", "-k", "4", "--drop-incomplete")
    manifest, _ = read_manifest(folder / "release.csv.manifest.json")
    assert manifest.missing["n_dropped"] > 0

    _, out, _ = attack(capsys, "stays.csv", "release.csv", "--json")

    found = json.loads(out)
    roles = dict.fromkeys(NAMES[:5], Role.QUASI_IDENTIFIER)
    roles |= {"discharge_diagnosis": Role.SENSITIVE, "readmitted": Role.TARGET}
    original, _ = apply_roles(read_original("stays.csv", ReadOptions()), roles)
    told = risk_left(Release(read_released("release.csv", manifest), manifest), original)
    assert found["before"] == json.loads(json.dumps(told["before"]))
    assert found["released"] == json.loads(json.dumps(told["after"]))
    assert found["released"]["reidentification"]["n_people"] == 200 - manifest.missing["n_dropped"]
