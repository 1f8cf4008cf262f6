"""What happened to the columns, compared with a plain count of their cells."""

import pyarrow as pa
import pytest

from sfumato.manifest import draft_manifest
from sfumato.report.summarize import column_changes
from sfumato.schema import Column, Kind, Schema
from sfumato.table.coding import Table
from unit.report.releases import NAMES, made, stays


def certainty_kept(original, released, name):
    """One less the mean share of the column that a cell may stand for, by plain loops over the texts of cells."""
    before = [value for value in original.to_arrow()[name].to_pylist() if value is not None]
    is_number = all(isinstance(value, int | float) for value in before)

    def penalty(text):
        if not is_number:
            members = sorted(set(before)) if text == "*" else text.strip("{}").split("|")
            return 0 if len(members) == 1 else len(members) / len(set(before))
        ends = (text if text.startswith("[") else f"[{text}, {text}]")[1:-1].split(", ")
        low, high = (min(before), max(before)) if text == "*" else map(float, ends)
        return (high - low) / (max(before) - min(before))

    cells = [str(cell) for cell in released.to_arrow()[name].to_pylist()]
    return 1 - sum(map(penalty, cells)) / len(cells)


@pytest.mark.parametrize("mechanism", ["mondrian", "error-risk-tree"])
def test_detail_left_is_one_less_the_mean_certainty_penalty_of_the_cells(mechanism):
    release = made(mechanism)

    found = {entry["name"]: entry for entry in column_changes(release.manifest, release.table, stays())["changes"]}

    assert list(found)[: len(NAMES)] == NAMES
    for name in ("age", "sex", "insurance"):
        assert found[name]["detail_left"] == pytest.approx(certainty_kept(stays(), release.table, name))


@pytest.mark.parametrize("mechanism", ["mondrian", "global-recoding", "anatomy", "slicing", "error-risk-tree"])
def test_no_column_looks_more_detailed_than_it_was(mechanism):
    """Unchanged is 1 and dropped is 0; what was moved says nothing of its own row and has no figure."""
    release = made(mechanism)

    found = {entry["name"]: entry for entry in column_changes(release.manifest, release.table, stays())["changes"]}

    for name, entry in found.items():
        is_released = name in release.table.schema.names()
        assert (entry["change"] == "dropped") is not is_released
        assert entry["detail_left"] is None or 0 <= entry["detail_left"] <= 1
        assert (entry["detail_left"] == 0) or is_released
        if entry["change"] == "coarsened":
            assert entry["detail_left"] < 1
        if entry["change"] == "kept unchanged":
            assert entry["detail_left"] == 1
        if entry["change"] in ("moved within buckets", "added"):
            assert entry["detail_left"] is None
    for name in ("discharge_diagnosis", "readmitted"):
        is_moved = any(name in part for part in (release.manifest.perturbation or {}).get("slices", ()))
        assert found[name]["change"] == ("moved within buckets" if is_moved else "kept unchanged")


def test_more_texts_than_before_are_not_more_detail():
    """Ranges that overlap have more different texts than the ages they cover, and less detail."""
    people = Table.from_arrow(
        pa.table({"age": [20, 20, 40, 40, 60, 60]}), Schema.of([Column("age", kind=Kind.NUMERIC)])
    )
    cells = ["[20, 40]", "[20, 60]", "[20, 40]", "[40, 60]", "[40, 60]", "60"]
    released = Table.from_arrow(pa.table({"age": cells}), Schema.of([Column("age")]))
    manifest = draft_manifest(
        people,
        released,
        mechanism="test",
        parameters={},
        guarantees=[],
        evidence={},
        recodings=[{"name": "age", "column": "age", "rule": "generalized", "kind": "numeric"}],
    )

    (found,) = column_changes(manifest, released, people)["changes"]

    assert found["detail_left"] == pytest.approx(1 - (0.5 + 1 + 0.5 + 0.5 + 0.5 + 0) / 6)
    assert not {"n_before", "n_after"} & set(found)


def test_features_count_as_the_column_they_were_made_of():
    release = made("greedy-containment")

    found = {entry["name"]: entry for entry in column_changes(release.manifest, release.table, stays())["changes"]}

    made_of_age = [entry for entry in release.manifest.recodings if entry["column"] == "age"]
    assert set(found) == set(NAMES)
    assert found["age"]["n_features"] == len(made_of_age) > 0
    assert found["age"]["change"] == "turned into 0/1 features"
    assert found["age"]["detail_left"] is None


def test_cells_that_were_flipped_or_drawn_are_said_to_be():
    flipped, drawn = (
        {entry["name"]: entry["change"] for entry in column_changes(made(name).manifest, made(name).table)["changes"]}
        for name in ("random-flipping", "laplace-dp")
    )

    assert flipped["age"] == "turned into 0/1 features, some cells flipped"
    assert flipped["readmitted"] == "kept unchanged"
    assert drawn["readmitted"] == "drawn at random"
    assert "drawn at random" in drawn["smoker"]


def test_without_the_original_nothing_is_known_of_before():
    release = made("mondrian")

    found = column_changes(release.manifest, release.table)["changes"]

    assert {entry["name"] for entry in found} == set(NAMES)
    assert all(entry["detail_left"] is None for entry in found)
    assert {entry["name"]: entry["role"] for entry in found}["name"] is None
