"""Forgeries that a cold review got past the audit, each refused now; and what a manifest named of rows left out."""

import hashlib
import json
from pathlib import Path

import pytest

from sfumato.cli.main import run
from sfumato.manifest import manifest_digest
from sfumato.manifest_schema import canonical_text

REFUSED, EXCEPT = 5, 8


def forged(change, path="release.csv"):
    """Change a manifest and everything in it that would tell."""
    place = Path(f"{path}.manifest.json")
    data = json.loads(place.read_text(encoding="utf-8"))
    change(data)
    data["output"]["sha256"] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    data["digest"] = manifest_digest(data)
    place.write_text(canonical_text(data), encoding="utf-8")


def audit(*more):
    return run(["audit", "release.csv", "--manifest", "release.csv.manifest.json", *more])


@pytest.fixture
def visits(tmp_path, monkeypatch):
    """Make a table in which persons have two rows each."""
    monkeypatch.chdir(tmp_path)
    rows = [f"p{i // 2},{20 + i % 30},{'fm'[i % 2]},{['flu', 'gout', 'cold'][i % 3]},{i % 2}" for i in range(120)]
    Path("visits.csv").write_text("patient,age,sex,ill,y\n" + "\n".join(rows) + "\n")
    roles = ["--person", "patient", "--target", "y", "--sensitive", "ill", "--quasi-identifiers", "age,sex"]
    assert run(["release", "visits.csv", "-m", "mondrian", "-k", "5", *roles, "-o", "release.csv"]) == 0
    return roles


@pytest.mark.slow
@pytest.mark.parametrize(
    "entry",
    [
        {"column": "patient", "operation": "mask", "keep_first": 0, "keep_last": 0, "character": "#"},
        {"column": "patient", "operation": "drop"},
    ],
    ids=["mask", "drop"],
)
@pytest.mark.parametrize("with_original", [True, False])
def test_a_column_that_tells_persons_apart_is_never_prepared(visits, capsys, entry, with_original):
    forged(lambda data: data["input"].update(prepared=[entry]))
    capsys.readouterr()

    code = audit("--original", "visits.csv", *visits) if with_original else audit()

    assert code == REFUSED, capsys.readouterr().out


@pytest.mark.slow
def test_another_order_of_a_sensitive_column_is_refused_with_the_project(tmp_path, monkeypatch, capsys):
    """t-closeness is measured along that order."""
    monkeypatch.chdir(tmp_path)
    levels = ["low", "mid", "high", "top"]
    rows = [f"{20 + i % 12},{'fm'[i % 2]},{levels[i % 4]},{i % 2}" for i in range(200)]
    Path("pay.csv").write_text("age,sex,pay,y\n" + "\n".join(rows) + "\n")
    assert run(["init", "pay.csv", "--target", "y", "--sensitive", "pay", "--quasi-identifiers", "age,sex"]) == 0
    text = Path("sfumato.toml").read_text()
    line = next(one for one in text.splitlines() if one.startswith('"pay"'))
    own = f'"pay" = {{ role = "sensitive", kind = "ordered", domain = {json.dumps(levels)} }}'
    Path("sfumato.toml").write_text(text.replace(line, own))
    assert run(["release", "-m", "mondrian", "-k", "5", "-p", "t=0.5", "-o", "release.csv"]) == 0
    assert audit("--project", "sfumato.toml") in (0, EXCEPT)

    def swapped(data):
        for column in data["output"]["columns"]:
            if column["name"] == "pay":
                column["domain"] = ["low", "high", "mid", "top"]

    forged(swapped)
    capsys.readouterr()

    assert audit("--project", "sfumato.toml") == REFUSED, capsys.readouterr().out


@pytest.mark.slow
def test_typical_values_are_of_quasi_identifiers_only(visits, tmp_path, capsys):
    assert run(["release", "visits.csv", "-m", "mondrian", "-k", "5", *visits, "--cells", "values", "-o", "v.csv"]) == 0
    entry = {"name": "ill", "column": "ill", "rule": "typical", "kind": "categorical"}
    forged(lambda data: data["recodings"].append(entry), "v.csv")
    capsys.readouterr()

    assert run(["audit", "v.csv", "--manifest", "v.csv.manifest.json", "--original", "visits.csv", *visits]) == REFUSED


@pytest.mark.slow
def test_one_missing_cell_does_not_hide_a_cell_that_is_no_median(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ages = [str(20 + i // 2) for i in range(38)] + ["97", ""]
    Path("ages.csv").write_text("age,sex,y\n" + "".join(f"{age},f,{i % 2}\n" for i, age in enumerate(ages)))
    roles = ["--target", "y", "--quasi-identifiers", "age,sex"]
    arguments = ["release", "ages.csv", "-m", "mondrian", "-k", "5", "--cells", "values", *roles, "-o", "release.csv"]
    assert run(arguments) == 0
    lines = Path("release.csv").read_text().splitlines()
    highest = max({line.split(",")[0] for line in lines[1:]} - {""}, key=float)
    changed = [line.replace(f"{highest},", "97,", 1) if line.startswith(f"{highest},") else line for line in lines]
    Path("release.csv").write_text("\n".join(changed) + "\n")
    forged(lambda data: None)
    capsys.readouterr()

    assert audit("--original", "ages.csv", *roles) == REFUSED, capsys.readouterr().out


@pytest.mark.slow
def test_a_format_that_only_the_manifest_says_is_an_exception(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"{1 + i % 9:02}/{1 + i % 12:02}/2021,{'fm'[i % 2]},{i % 2}" for i in range(80)]
    Path("days.csv").write_text("day,sex,y\n" + "\n".join(rows) + "\n")
    roles = ["--target", "y", "--quasi-identifiers", "day,sex"]
    month_first = ["--date-format", "day=MM/DD/YYYY"]
    assert run(["release", "days.csv", "-m", "mondrian", "-k", "5", *roles, *month_first, "-o", "release.csv"]) == 0
    capsys.readouterr()

    assert audit("--original", "days.csv", *roles) == EXCEPT
    assert "NOT CHECKED (formats)" in capsys.readouterr().out
    assert audit("--original", "days.csv", *roles, *month_first, "--accept", "figures") == 0


@pytest.mark.slow
def test_typical_values_name_no_value_of_rows_that_were_left_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bands = ["0-9", "10-19", "20-29", "30-39"]
    rows = [f"{bands[i % 4]},{'fm'[i % 2]},{i % 2}" for i in range(80)] + ["96-99,f,"]
    Path("bands.csv").write_text("band,sex,y\n" + "\n".join(rows) + "\n")
    roles = ["--target", "y", "--quasi-identifiers", "band,sex", "--drop-incomplete"]

    assert run(["release", "bands.csv", "-m", "mondrian", "-k", "5", "--cells", "values", *roles, "-o", "r.csv"]) == 0

    assert "30-39" in Path("r.csv").read_text()
    assert "96-99" not in Path("r.csv.manifest.json").read_text()


# What a manifest says of columns, and besides its promises.


@pytest.fixture
def weighed(tmp_path, monkeypatch):
    """Release a table with a unit, an order that is known, and columns that no promise covers."""
    monkeypatch.chdir(tmp_path)
    bands = ["low", "mid", "high"]
    rows = [
        f"p{i},{20 + i % 30},{'fm'[i % 2]},{bands[i % 3]},{['flu', 'gout', 'cold'][i % 3]},{100 + i % 30} kg,{i % 2}"
        for i in range(90)
    ]
    Path("d.csv").write_text("id,age,sex,pay,ill,weight,y\n" + "\n".join(rows) + "\n")
    roles = ["--identifiers", "id", "--target", "y", "--sensitive", "ill,pay"]
    return [*roles, "--quasi-identifiers", "age,sex", "--other", "weight"]


def column(data, name):
    return next(one for one in data["output"]["columns"] if one["name"] == name)


FORGED = {
    "a unit": (
        lambda data: column(data, "ill").update(unit="years"),
        REFUSED,
        "units of numbers are not the original's",
    ),
    "another unit": (lambda data: column(data, "weight").update(unit="t"), REFUSED, "units of numbers"),
    "values of a column": (lambda data: column(data, "sex").update(domain=["f", "m"]), REFUSED, "described otherwise"),
    "values of a plain column": (
        lambda data: column(data, "ill").update(domain=["Ann"]),
        EXCEPT,
        "(order): whether 'ill'",
    ),
    "another kind": (
        lambda data: column(data, "weight").update(kind="categorical"),
        EXCEPT,
        "(order): whether 'weight'",
    ),
    "another order": (lambda data: column(data, "pay")["domain"].reverse(), EXCEPT, "(order): whether 'pay'"),
    "an order that lacks a value": (lambda data: column(data, "pay")["domain"].pop(), REFUSED, "an order without some"),
    "a kind of ranges": (lambda data: column(data, "age").update(kind="ordered"), REFUSED, "than its cells"),
    "missing texts": (lambda data: column(data, "ill").update(missing=["none"]), REFUSED, "texts for missing cells"),
    "a setting that nobody promised": (
        lambda data: data["mechanism"]["parameters"].update(t=0.1),
        REFUSED,
        "and not the levels that the mechanism was asked for: t",
    ),
    "a promise twice": (lambda data: data["guarantees"].append(data["guarantees"][0]), REFUSED, "one of them twice"),
    "a text among the figures": (
        lambda data: data["evidence"]["risk"].update(what_this_is="certified by an authority"),
        REFUSED,
        "sentences that no release has: 'what_this_is'",
    ),
    "a format of a column that is not there": (
        lambda data: data["input"].update(read_as={"born": "DD/MM/YYYY"}),
        REFUSED,
        "for columns that the original lacks: 'born'",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("change", "code", "said"), FORGED.values(), ids=FORGED)
def test_what_is_said_of_columns_is_compared(weighed, capsys, change, code, said):
    assert run(["release", "d.csv", "-m", "mondrian", "-k", "5", *weighed, "-o", "release.csv"]) == 0
    assert audit("--original", "d.csv", *weighed) == 0
    forged(change)
    capsys.readouterr()

    assert audit("--original", "d.csv", *weighed) == code
    assert said in capsys.readouterr().out


@pytest.mark.slow
def test_the_order_of_dropped_columns_is_no_message(weighed, capsys):
    fewer = [*weighed[:5], "ill", "--quasi-identifiers", "age,sex", "--identifiers", "id,weight", "--other", "pay"]
    assert run(["release", "d.csv", "-m", "mondrian", "-k", "5", *fewer, "-o", "release.csv"]) == 0
    assert audit("--original", "d.csv", *fewer) == 0
    forged(lambda data: data["dropped_columns"].reverse())
    capsys.readouterr()

    assert audit("--original", "d.csv", *fewer) == REFUSED
    assert "not in the order of the original" in capsys.readouterr().out


@pytest.mark.slow
def test_units_and_labels_without_the_original_are_named(weighed, capsys):
    assert run(["release", "d.csv", "-m", "mondrian", "-k", "5", *weighed, "-o", "release.csv"]) == 0
    capsys.readouterr()

    assert audit() == EXCEPT
    out = capsys.readouterr().out
    assert "NOT CHECKED (original): whether units of 'weight' are the original's" in out
    assert "not judged, the publisher's word: " in out


@pytest.mark.slow
def test_a_certainty_penalty_that_nobody_measures_is_an_exception(weighed, capsys):
    """Of labels of hierarchies none is computed: a stated one was neither checked nor named."""
    arguments = ["release", "d.csv", "-m", "global-recoding", "-k", "5", *weighed, "-o", "release.csv"]
    assert run(arguments) == 0
    forged(lambda data: data["evidence"]["utility"].update(global_certainty_penalty=0.01))
    capsys.readouterr()

    audit("--original", "d.csv", *weighed)

    assert "'global certainty penalty'" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"role": "target"}, {"kind": "numeric"}, {"domain": ["1"]}, {"missing": ["1"]}])
def test_a_number_of_a_bucket_has_no_role_kind_or_order(weighed, capsys, change):
    one = ["--identifiers", "id", "--target", "y", "--sensitive", "ill", "--quasi-identifiers", "age,sex"]
    one += ["--other", "weight,pay"]
    assert run(["release", "d.csv", "-m", "anatomy", *one, "-o", "release.csv"]) == 0
    assert audit("--original", "d.csv", *one) in (0, EXCEPT)
    forged(lambda data: column(data, data["perturbation"]["bucket"]).update(change))

    assert audit("--original", "d.csv", *one) == REFUSED


@pytest.mark.slow
def test_the_middle_of_numbers_is_not_said_to_be_the_most_frequent(weighed, capsys):
    made = ["release", "d.csv", "-m", "mondrian", "-k", "5", *weighed, "--cells", "values", "-o", "release.csv"]
    assert run(made) == 0

    def categorical(data):
        data["recodings"][0]["kind"] = column(data, "age")["kind"] = "categorical"

    forged(categorical)
    capsys.readouterr()

    assert audit("--original", "d.csv", *weighed) in (REFUSED, EXCEPT)
    assert "(order): whether 'age'" in capsys.readouterr().out


@pytest.mark.slow
def test_a_feature_lists_no_value_that_nobody_has(weighed, capsys):
    one = ["--identifiers", "id", "--target", "y", "--sensitive", "ill", "--quasi-identifiers", "age,sex,pay"]
    one += ["--other", "weight"]
    assert run(["release", "d.csv", "-m", "greedy-containment", "-k", "4", *one, "-o", "release.csv"]) == 0
    assert audit("--original", "d.csv", *one, "--accept", "figures") == 0

    def listing(text):
        def change(data):
            recoding = next(one for one in data["recodings"] if one["rule"] == "one-of")
            recoding["values"].append(recoding["values"][0] if text is None else text)

        return change

    forged(listing("Ann Smith"))
    capsys.readouterr()
    assert audit("--original", "d.csv", *one, "--accept", "figures") == EXCEPT
    out = capsys.readouterr().out
    assert "list and no row of the original has" in out
    assert "Ann Smith" not in out
    forged(listing(None))
    assert audit("--original", "d.csv", *one) == REFUSED
