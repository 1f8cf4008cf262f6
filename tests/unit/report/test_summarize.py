"""The summary: plain data, true to what was measured, and without a cell."""

import json
from dataclasses import asdict

import pytest

from sfumato.attack.risk import risk_of
from sfumato.errors import AuditFailedError
from sfumato.evaluation.points import Measuring
from sfumato.evaluation.scores import evaluate
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.registry import build_mechanism, registered_mechanisms
from sfumato.publishing.propose import make_release
from sfumato.report.render import for_others
from sfumato.report.summarize import summarize
from unit.report.releases import made, stays, summary_of

EVERY = list(registered_mechanisms())


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", EVERY)
def test_every_mechanism_has_a_summary_that_json_holds(mechanism):
    found = summary_of(mechanism)

    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert [entry["kind"] for entry in found["guarantees"]] == [g["kind"] for g in made(mechanism).manifest.guarantees]
    assert found["done"]["n_rows_after"] == made(mechanism).table.n_rows


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", EVERY)
def test_no_cell_of_an_identifier_or_diagnosis_is_in_a_summary(mechanism):
    text = json.dumps(summary_of(mechanism), ensure_ascii=False)

    cells = stays().to_arrow()
    for name in ("name", "discharge_diagnosis"):
        assert not [value for value in set(cells[name].to_pylist()) if value in text]


@pytest.mark.slow
def test_utility_and_risk_are_those_measured():
    found = summary_of("mondrian", quick=False)

    settings = asdict(Measuring())
    before, after = evaluate(stays(), **settings).to_dict(), evaluate(stays(), Mondrian(k=5), **settings).to_dict()
    assert [entry["name"] for entry in found["utility"]["classifiers"]] == list(before["classifiers"])
    for entry in found["utility"]["classifiers"]:
        for metric in ("accuracy", "balanced_accuracy", "auc"):
            assert entry["before"][metric] == before["classifiers"][entry["name"]][metric]
            assert entry["after"][metric] == after["classifiers"][entry["name"]][metric]
    risk = risk_of(stays(), made("mondrian").table, made("mondrian").manifest)
    rows = {row["what"]: row for row in found["risk"]["rows"]}
    assert rows["share of people re-identified (marketer attack)"]["after"] == risk["headline"]["marketer"]
    assert rows["people found by the worst 2 columns"]["after"] == risk["linkage"][1]["n_reidentified"]
    assert found["risk"]["class_sizes"]["after"] == risk["class_sizes"]


@pytest.mark.slow
def test_what_is_not_measured_is_said():
    release = made("mondrian")

    assert "original was not given" in summarize(release)["utility"]["not_measured"]
    assert "original was not given" in summarize(release)["risk"]["not_measured"]
    assert "skipped on request" in summary_of("mondrian")["utility"]["not_measured"]
    assert "not measured: skipped on request" in summary_of("mondrian")["verdict"]["headed"]["Prediction"]


def test_a_release_that_the_audit_does_not_confirm_has_no_report():
    release = made("mondrian")
    guarantees = tuple({**entry, "audited": entry["audited"] + 1} for entry in release.manifest.guarantees)
    unaudited = build_mechanism("mondrian", {}).release(stays())

    for wrong in (release.with_manifest(guarantees=guarantees), unaudited):
        with pytest.raises(AuditFailedError):
            summarize(wrong, stays(), quick=True)


@pytest.mark.slow
def test_others_are_told_less():
    found = summary_of("mondrian", quick=False)

    told = for_others(found)

    assert told["risk"]["class_sizes"] is None
    assert {row["what"] for row in told["risk"]["rows"]} < {row["what"] for row in found["risk"]["rows"]}
    assert not any(row["unit"] == "count" for row in told["risk"]["rows"])
    assert all(not entry["recall"] for entry in told["utility"]["classifiers"])
    assert all(entry["detail_left"] is None for entry in told["columns"]["changes"])
    assert told["reproduction"]["command"] is None
    assert found["risk"]["class_sizes"]


def test_others_are_told_of_columns_as_they_see_them():
    found = summary_of("greedy-containment")

    assert "'smoker'" in found["verdict"]["headed"]["Lost columns"]
    assert for_others(found)["verdict"]["headed"]["Lost columns"].startswith("none; ")


@pytest.mark.slow
def test_the_verdict_has_the_figures_of_the_table_of_classifiers():
    found = summary_of("mondrian", quick=False)

    best = next(entry for entry in found["utility"]["classifiers"] if entry["name"] == found["utility"]["best"])
    for told in (found["verdict"], for_others(found)["verdict"]):
        said = told["headed"]["Prediction"]
        assert f"AUC {best['after']['auc']['mean']:.3f}" in said
        assert f"accuracy {best['after']['accuracy']['mean']:.1%}" in said


@pytest.mark.slow
def test_others_are_told_nothing_measured_beside_the_original_of_a_noisy_release():
    told = for_others(summary_of("laplace-dp", quick=False))

    assert set(told["utility"]) == set(told["risk"]) == {"not_measured"}
    assert not any(word in " ".join(told["in_short"]) for word in ("before", "after"))
    assert all("not measured" in told["verdict"]["headed"][heading] for heading in ("Prediction", "Re-identified"))


@pytest.mark.slow
def test_a_mechanism_that_cannot_be_built_again_leaves_utility_open_with_the_reason():
    release = made("greedy-containment")
    parameters = {**release.manifest.mechanism["parameters"], "binarize": "declared; see recodings"}
    unknown = release.with_manifest(mechanism={**release.manifest.mechanism, "parameters": parameters})

    found = summarize(unknown, stays())

    assert "binarize" in found["utility"]["not_measured"]
    with_it = summarize(unknown, stays(), mechanism=build_mechanism("greedy-containment", {}))
    assert with_it["utility"]["best"]


@pytest.mark.slow
def test_a_table_without_a_target_has_no_utility():
    table = stays().keep(["age", "sex", "smoker"])

    found = summarize(make_release(table, Mondrian(k=5)), table)

    assert "no target" in found["utility"]["not_measured"]
