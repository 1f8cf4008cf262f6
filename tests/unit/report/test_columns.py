"""What happened to the columns, compared with a plain count of their cells."""

import pytest

from sfumato.report.summarize import column_changes
from unit.report.releases import NAMES, made, stays


def distinct(table, name):
    return len(set(table.to_arrow()[name].to_pylist()))


@pytest.mark.parametrize("mechanism", ["mondrian", "global-recoding", "anatomy", "slicing", "error-risk-tree"])
def test_distinct_values_are_those_of_the_cells(mechanism):
    release = made(mechanism)

    found = {entry["name"]: entry for entry in column_changes(release.manifest, release.table, stays())["changes"]}

    assert list(found)[: len(NAMES)] == NAMES
    for name, entry in found.items():
        is_released = name in release.table.schema.names()
        assert entry["n_before"] == (distinct(stays(), name) if name in NAMES else None)
        assert entry["n_after"] == (distinct(release.table, name) if is_released else None)
        assert (entry["change"] == "dropped") is not is_released
    for name in ("discharge_diagnosis", "readmitted"):
        is_moved = any(name in part for part in (release.manifest.perturbation or {}).get("slices", ()))
        assert found[name]["change"] == ("moved within buckets" if is_moved else "kept unchanged")


def test_features_count_as_the_column_they_were_made_of():
    release = made("greedy-containment")

    found = {entry["name"]: entry for entry in column_changes(release.manifest, release.table, stays())["changes"]}

    made_of_age = [entry for entry in release.manifest.recodings if entry["column"] == "age"]
    assert set(found) == set(NAMES)
    assert found["age"]["n_features"] == len(made_of_age) > 0
    assert found["age"]["change"] == "turned into 0/1 features"
    assert found["age"]["n_after"] is None


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
    assert all(entry["n_before"] is None for entry in found)
    assert {entry["name"]: entry["role"] for entry in found}["name"] is None
