"""Texts with an order, from the file to the audited release: cut in order, and named only where rows show them."""

import csv
import json
import random
import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.cli.main import run
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.table.generalized import read_cell
from sfumato.table.io.read import ReadOptions, read_table
from sizes import examples

BANDS = [f"[{low}-{low + 10})" for low in range(0, 100, 10)]
LEVELS = ["low", "medium", "high"]
ROLES = {"age": "quasi-identifier", "grade": "quasi-identifier", "sex": "quasi-identifier", "ill": "target"}
CONFIRMED_EXCEPT = 8
OPTIONS = ["--quasi-identifiers", "age,grade,sex", "--target", "ill"]


def rows_of(n_rows, seed=0):
    draw = random.Random(seed)
    return [
        {
            "age": draw.choice(BANDS),
            "grade": draw.choice(LEVELS),
            "sex": draw.choice("fm"),
            "ill": draw.choice(["yes", "no"]),
        }
        for _ in range(n_rows)
    ]


def written(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def check_confirmed(capsys, *options):
    """Whether the audit finds no fault; figures that nobody can compute again and undeclared roles do not count."""
    capsys.readouterr()
    code = run(["audit", "r.csv", "--manifest", "r.csv.manifest.json", *options])
    said = capsys.readouterr().out

    assert "FAIL" not in said
    assert set(re.findall(r"NOT CHECKED \((.*?)\)", said)) <= {"figures", "roles"}
    assert code in (0, CONFIRMED_EXCEPT)


def recodings(manifest):
    return {entry["name"]: entry for entry in json.loads(manifest.read_text())["recodings"]}


@pytest.mark.slow
@examples(30)
@given(st.lists(st.tuples(st.sampled_from(BANDS), st.sampled_from("fm")), min_size=6, max_size=40), st.integers(2, 3))
def test_no_released_range_skips_what_lies_between(people, k):
    """Oracle: rows with equal cells are the rows of a range whose ends they have; nothing is a set of bands."""
    cells = pa.table({"age": [age for age, _ in people], "sex": [sex for _, sex in people]})
    table = read_table(cells)
    released = Mondrian(k=k).release(table).table
    shown, sexes = released["age"].cells().to_pylist(), released["sex"].cells().to_pylist()
    groups = {}
    for (age, _), cell, sex in zip(people, shown, sexes, strict=True):
        groups.setdefault((cell, sex), []).append(BANDS.index(age))

    is_ordered = len({age for age, _ in people}) >= 3
    for (cell, _), places in groups.items():
        said = read_cell(cell)
        assert len(places) >= k
        if is_ordered:
            low, high = (BANDS.index(end) for end in said.bounds or said.values * 2)
            assert (low, high) == (min(places), max(places))


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["mondrian", "auto", "error-risk-tree", "local-recoding", "global-recoding"])
def test_a_release_is_cut_in_order_and_confirmed_with_the_original(mechanism, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "people.csv", rows_of(120))

    assert run(["release", "people.csv", "-m", mechanism, "-k", "3", *OPTIONS, "-o", "r.csv"]) == 0
    entries = recodings(tmp_path / "r.csv.manifest.json")
    with (tmp_path / "r.csv").open() as file:
        shown = {row["age"] for row in csv.DictReader(file)}
    assert entries["age"].get("domain", BANDS) == BANDS
    assert not any(cell.startswith("{") for cell in shown)
    check_confirmed(capsys, "--original", "people.csv", *OPTIONS)


@pytest.mark.slow
@pytest.mark.parametrize("memory", [[], ["--memory", "600MB"]], ids=["in memory", "out of core"])
def test_a_project_holds_no_values_and_finds_the_order_again(memory, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "people.csv", rows_of(120))

    assert run(["init", "people.csv", *OPTIONS]) == 0
    text = (tmp_path / "sfumato.toml").read_text()
    assert text.count('kind = "ordered"') == 2
    assert "intervals, kind ordered" in text
    assert not any(value in text for value in [*BANDS, *LEVELS])
    assert run(["release", "-m", "local-recoding", "-k", "3", "-o", "r.csv", *memory]) == 0
    assert recodings(tmp_path / "r.csv.manifest.json")["age"]["kind"] in ("ordered", "categorical")
    check_confirmed(capsys, "--project", "sfumato.toml")


def test_init_says_why_values_that_look_ordered_are_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [row | {"age": band} for row, band in zip(rows_of(90), ["0-10", "5-15", "20+"] * 30, strict=True)]
    written(tmp_path / "people.csv", rows)

    assert run(["init", "people.csv", *OPTIONS]) == 0
    line = next(line for line in (tmp_path / "sfumato.toml").read_text().splitlines() if line.startswith('"age"'))
    assert 'kind = "categorical"' in line
    assert "the values look like intervals, but some overlap" in line


CANARY = "[1234-1235)"


def test_values_of_rows_that_are_left_out_at_the_door_are_not_named():
    rows = [*rows_of(60), {"age": CANARY, "grade": None, "sex": "f", "ill": "no"}]
    cells = pa.table({name: [row[name] for row in rows] for name in rows[0]})
    table = read_table(cells, options=ReadOptions(complete_rows_only=True)).with_schema(ROLES)
    manifest = Mondrian(k=3).release(table).manifest.to_dict()

    assert table.schema["age"].domain[-1] == CANARY
    assert CANARY not in json.dumps(manifest)
    assert manifest["recodings"][0]["domain"] == BANDS


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["global-recoding", "gain-recoding", "local-recoding"])
@pytest.mark.parametrize("memory", [[], ["--memory", "600MB"]], ids=["in memory", "out of core"])
def test_values_of_suppressed_rows_are_not_named(mechanism, memory, tmp_path, monkeypatch, capsys):
    """Neither of the quasi-identifier nor of an ordered column that is published unchanged."""
    monkeypatch.chdir(tmp_path)
    rows = [row | {"note": draw} for row, draw in zip(rows_of(200), LEVELS * 67, strict=False)]
    rows += [{"age": CANARY, "grade": "very low", "sex": "f", "ill": "no", "note": "very high"}]
    written(tmp_path / "people.csv", rows)
    limit = [] if mechanism == "local-recoding" else ["-p", "max_suppressed_fraction=0.02", "-p", "regroup=false"]
    code = run(
        [
            "release",
            "people.csv",
            "-m",
            mechanism,
            "-k",
            "2",
            *OPTIONS,
            "--other",
            "note",
            "-o",
            "r.csv",
            *limit,
            *memory,
        ]
    )
    assert code == 0
    shown = (tmp_path / "r.csv").read_text()
    manifest = (tmp_path / "r.csv.manifest.json").read_text()

    is_suppressed = mechanism != "local-recoding"  # that one may release the row in coarser cells
    assert not is_suppressed or "very high" not in shown
    for value in (CANARY, "very low", "very high"):
        assert value not in manifest or (value in shown.replace("\\", "") and not is_suppressed)
    check_confirmed(capsys, "--original", "people.csv")
