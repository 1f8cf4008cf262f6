"""All attacks on the releases of every registered mechanism, and on pairs of which the answer is known."""

import json
from collections import Counter
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.attack import risk
from sfumato.attack.risk import attacked_rows, risk_of
from sfumato.datasets.admissions import admissions
from sfumato.errors import InvalidParameterError
from sfumato.manifest import draft_manifest
from sfumato.mechanisms.registry import build_mechanism, registered_mechanisms
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import read_released
from sfumato.schema import Column, Role, Schema
from sfumato.table.binarize import binarize
from sfumato.table.coding import Table

NAMES = list(registered_mechanisms())
SECTIONS = [
    "headline",
    "rows_are_people",
    "reidentification",
    "class_sizes",
    "uniques",
    "inference",
    "linkage",
    "containment",
]
STAYS = ["age", "sex", "postcode_area", "insurance", "discharge_diagnosis", "readmitted"]


def table(*columns, **cells):
    arrays = {c.name: pa.array(cells[c.name], pa.string()) for c in columns}
    return Table.from_arrow(pa.table(arrays), Schema.of(columns))


@pytest.fixture(scope="module")
def flags():
    """Make 200 rows of six correlated 0/1 columns with a sensitive column and a target."""
    rng = np.random.default_rng(8)
    base = rng.random((200, 1))
    bits = (0.5 * rng.random((200, 6)) + 0.5 * base < np.linspace(0.3, 0.7, 6)).astype(int)
    columns = [Column(name) for name in "abcdef"]
    cells = {name: [str(bit) for bit in bits[:, i]] for i, name in enumerate("abcdef")}
    described = [*columns, Column("illness", Role.SENSITIVE), Column("y", Role.TARGET)]
    ill = ["uvw"[int(i)] for i in rng.integers(0, 3, 200)]
    return table(*described, **cells, illness=ill, y=["ny"[bit] for bit in bits[:, 2]])


@pytest.fixture(scope="module")
def stays():
    return admissions(n_rows=300).keep(STAYS)


@pytest.fixture(scope="module")
def before(stays):
    return risk_of(stays, stays)


def small(name):
    parameters = {p.name for p in registered_mechanisms()[name].parameters}
    return build_mechanism(name, {"n_features": 3} if "n_features" in parameters else {})


def check_plain(found, n_people):
    assert list(found) == SECTIONS
    json.dumps(found, allow_nan=False)
    for section in SECTIONS[1:]:
        if isinstance(found[section], dict) and "not_applicable" in found[section]:
            assert len(found[section]["not_applicable"]) > 10
    if "not_applicable" not in found["reidentification"]:
        headline = found["headline"]
        assert 0 <= headline["marketer"] <= headline["highest_prosecutor"] <= 1
        assert headline["marketer"] == found["reidentification"]["marketer"]
        assert found["reidentification"]["n_people"] == n_people
        assert sum(entry["n_rows"] for entry in found["class_sizes"]) == found["reidentification"]["n_released"]
        sizes = [entry["n_background"] for entry in found["linkage"]]
        assert sizes == [1, 2, 3][: len(sizes)]
        assert sizes or "not_applicable" in found["linkage"]
        if "changed at random" in found["reidentification"]["note"]:
            return  # more columns known may then mislead
        assert all(entry["expected"] <= n_people * headline["marketer"] + 1e-6 for entry in found["linkage"])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_mechanism_leaves_a_risk_that_is_told(tmp_path, flags, name):
    release = sfumato.release(flags, small(name))

    found = risk_of(flags, release.table, release.manifest)

    check_plain(found, 200)
    done = publish(release, tmp_path / "out.csv", original=flags)
    reread = read_released(done.table_path, done.release.manifest)
    from_file = risk_of(flags, reread, done.release.manifest)
    if name == "random-flipping":  # whose rows are which only the publisher knows
        assert "do not tell whose" in from_file["reidentification"]["note"]
        check_plain(from_file, 200)
    elif name == "mdav":  # the same: a typical value may be nobody's own
        assert "cannot be matched one by one" in from_file["reidentification"]["note"]
        check_plain(from_file, 200)
    else:
        assert from_file == found


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if "-dp" not in name])  # these take rules for each column
def test_releases_of_ranges_and_labels_are_attacked_by_meaning_and_no_cell_is_told(stays, before, name):
    extra = {"on_infeasible": "skip"} if "on_infeasible" in _parameters(name) else {}
    release = sfumato.release(stays, build_mechanism(name, extra))

    found = risk_of(stays, release.table, release.manifest)

    check_plain(found, 300)
    assert found["headline"]["marketer"] <= before["headline"]["marketer"] + 1e-9
    if (
        "k" in _parameters(name)
        and "containment" not in name
        and name not in ("random-flipping", "anatomy", "breach-aware")
    ):  # k is optional in the last
        assert found["headline"]["highest_prosecutor"] <= 1 / 5 + 1e-9
    told = set(_texts(found))
    assert not told & {r["name"] for r in release.manifest.recodings if r["name"] != r["column"]}
    for column in ("sex", "postcode_area", "insurance", "discharge_diagnosis"):
        cells = {str(value) for value in stays[column].values.to_pylist()}
        assert not [text for text in told if text in cells]


def _parameters(name):
    return {p.name for p in registered_mechanisms()[name].parameters}


def _texts(found):
    """List all texts in plain data, keys too."""
    if isinstance(found, dict):
        return [text for key, value in found.items() for text in (key, *_texts(value))]
    if isinstance(found, list):
        return [text for value in found for text in _texts(value)]
    return [found] if isinstance(found, str) else []


@pytest.mark.slow
def test_rows_drawn_anew_are_nobodys(flags):
    release = sfumato.release(flags, small("laplace-dp"))

    found = risk_of(flags, release.table, release.manifest)

    assert found["headline"]["marketer"] is None
    for section in ("headline", "reidentification", "class_sizes", "uniques", "linkage", "containment"):
        assert "drawn at random" in found[section]["not_applicable"]


values = st.sampled_from("pqr")


@pytest.mark.slow
@given(st.lists(st.tuples(values, values, values, values), min_size=1, max_size=15))
def test_linkage_names_the_worst_columns_of_a_count_over_all_sets(rows):
    people = table(*(Column(name) for name in "abcd"), **{name: [r[i] for r in rows] for i, name in enumerate("abcd")})

    found = risk_of(people, people)["linkage"]

    for size in (1, 2, 3):
        outcomes = []
        for chosen in combinations(range(4), size):
            counts = Counter(tuple(row[i] for i in chosen) for row in rows)
            outcomes.append((sum(count == 1 for count in counts.values()), float(len(counts))))
        assert (found[size - 1]["n_reidentified"], found[size - 1]["expected"]) == max(outcomes)
        assert found[size - 1]["tried_all_sets"]


def test_people_who_were_left_out_are_not_found_by_linkage():
    people, released = table(Column("job"), job=["a", "b", "b", "c"]), table(Column("job"), job=["a", "b"])
    manifest = draft_manifest(
        people, released, mechanism="t", parameters={}, guarantees=[], evidence={}, suppressed_rows=2
    )

    (found,) = risk_of(people, released, manifest)["linkage"]

    assert (found["n_reidentified"], found["expected"]) == (2, 2.0)


def test_many_sets_are_grown_from_the_worst(flags, monkeypatch):
    monkeypatch.setattr(risk, "_MOST_SETS_ROWS", 1)

    found = risk_of(flags, flags)["linkage"]

    assert [entry["tried_all_sets"] for entry in found] == [True, False, False]
    assert [entry["n_sets_tried"] for entry in found] == [6, 5, 4]
    assert set(found[0]["columns"]) < set(found[1]["columns"]) < set(found[2]["columns"])


def test_sections_that_do_not_apply_say_why():
    people = table(Column("job"), job=["a", "b", "b"])

    found = risk_of(people, people)

    assert "no sensitive column" in found["inference"]["not_applicable"]
    assert "not all 0/1" in found["containment"]["not_applicable"]
    assert [entry["n_background"] for entry in found["linkage"]] == [1]


def test_promised_crowds_are_counted_on_sparse_tables(flags):
    release = sfumato.release(flags, build_mechanism("greedy-containment", {"k": 7}))

    found = risk_of(flags, release.table, release.manifest)["containment"]

    assert [entry["n_known"] for entry in found] == [1, 2, 3, 5]
    assert all(entry["below"].keys() == {"2", "5", "7", "10"} for entry in found)
    assert all(entry["below"]["7"] == 0 and (entry["least"] or 7) >= 7 for entry in found)


def test_a_release_without_quasi_identifiers_names_nobody_in_particular():
    people = table(Column("job"), Column("ill", Role.SENSITIVE), job=["a", "b"] * 20, ill=["x", "y"] * 20)
    released = people.keep(["ill"])
    manifest = draft_manifest(people, released, mechanism="t", parameters={}, guarantees=[], evidence={})

    found = risk_of(people, released, manifest)

    assert found["headline"] == {"marketer": 1 / 40, "highest_prosecutor": 1 / 40, "counted": "people"}
    assert "no released quasi-identifier" in found["linkage"]["not_applicable"]
    assert found["uniques"]["n_rows_with"] == 0
    assert found["inference"][0]["with_release"] == pytest.approx(0.5)


@pytest.mark.slow
def test_same_seed_same_numbers_and_progress_is_told(flags):
    told = []

    first = risk_of(flags, flags, seed=3, progress=lambda *step: told.append(step))

    assert risk_of(flags, flags, seed=3) == first
    assert [step[0] for step in told] == list(range(7))
    assert {step[1] for step in told} == {6}


def test_samples_lower_the_journalists_risk_by_classes(flags):
    found = risk_of(flags, flags, sample_fraction=0.1)["reidentification"]["by_classes"]

    assert found["journalist"]["highest"] < found["prosecutor"]["highest"]
    with pytest.raises(InvalidParameterError):
        risk_of(flags, flags, sample_fraction=2)


def test_tables_without_rows_have_no_risk():
    nobody = table(Column("job"), Column("ill", Role.SENSITIVE), job=[], ill=[])

    found = risk_of(nobody, nobody)

    assert found["headline"] == {"marketer": 0.0, "highest_prosecutor": 0.0, "counted": "people"}
    json.dumps(found, allow_nan=False)


@pytest.fixture(scope="module")
def canaries():
    """Make 60 rows whose cells are words that no column name holds."""
    rng = np.random.default_rng(3)
    cells = {name: [f"ZZ{name}{i}" for i in rng.integers(0, 3, 60)] for name in ("sex", "city", "illness", "y")}
    columns = [Column("sex"), Column("city"), Column("illness", Role.SENSITIVE), Column("y", Role.TARGET)]
    return table(*columns, **cells)


def test_features_are_named_by_their_column_and_a_number(canaries):
    release = sfumato.release(canaries, build_mechanism("greedy-containment", {"k": 2, "on_infeasible": "skip"}))
    assert any("ZZ" in str(entry["name"]) for entry in release.manifest.recodings)

    found = risk_of(canaries, release.table, release.manifest)

    assert "ZZ" not in json.dumps(found)
    names = [entry["column"] for entry in found["uniques"]["columns"]]
    assert len(set(names)) == len(names) == len(release.manifest.recodings)
    places = {str(r["name"]): (r["column"], i) for i, r in enumerate(release.manifest.recodings, start=1)}
    assert set(names) == {f"{column} (feature {place})" for column, place in places.values()}
    assert {entry["columns"][0] for entry in found["linkage"]} <= {"sex", "city"}


def test_features_of_an_original_have_one_number_before_and_after(canaries):
    features = binarize(canaries)
    kept = features.select([1, 2])

    before, after = risk_of(features, features), risk_of(features, kept)

    assert "ZZ" not in json.dumps([before, after])
    numbers = {entry["column"] for entry in after["uniques"]["columns"]}
    assert numbers == {f"{f.column} (feature {i})" for i, f in enumerate(features.features, start=1) if i in (2, 3)}
    assert numbers < {entry["column"] for entry in before["uniques"]["columns"]}
    assert set(after["linkage"][1]["columns"]) == numbers


def test_rows_that_were_dropped_as_incomplete_are_not_attacked():
    people = table(Column("job"), Column("y", Role.TARGET), job=["a", None, "b", "b"], y=["0", "1", "0", None])
    complete = people.without_incomplete_rows()
    no_facts = {"mechanism": "m", "parameters": {}, "guarantees": [], "evidence": {}}

    assert attacked_rows(people, draft_manifest(complete, complete, **no_facts)).n_rows == 2
    assert attacked_rows(people, draft_manifest(people, people, **no_facts)) is people
    assert attacked_rows(people, None) is people
