"""Comparisons: points are measured apart, ranked as naive loops rank them, and what goes wrong is a marked row."""

import csv
import io
import json
import multiprocessing
import os
import tempfile
import time
from functools import partial
from itertools import pairwise
from unittest.mock import Mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.cli.main import in_flag_words
from sfumato.datasets.admissions import admissions
from sfumato.errors import AuditFailedError, InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.evaluation import compare as processes
from sfumato.evaluation import points as points_module
from sfumato.evaluation.compare import RunFolder, compare
from sfumato.evaluation.comparison import Comparison, short_guarantees, wanted_promise, with_interval
from sfumato.evaluation.points import ORIGINAL, Grid, Measuring, Point, Status, measure_point, unmeasured
from sfumato.evaluation.requested_guarantees import AskedGuarantee
from sfumato.mechanisms.breach.tradeoff import EvaluationWeights
from sfumato.schema import Column, Role, Schema
from sfumato.table.coding import Table
from waiting import until

QUICK = Measuring(("naive-bayes",), n_folds=2)
SMALL = ["age", "sex", "insurance", "discharge_diagnosis", "readmitted"]


@pytest.fixture
def own_processes():
    """Give the processes that a test has started and that are still there; joblib keeps some of other tests'."""
    before = set(multiprocessing.active_children())
    return lambda: set(multiprocessing.active_children()) - before


@pytest.fixture(scope="module")
def table():
    return admissions(n_rows=150).keep(SMALL)


def made(utility, risk, n_columns, k=5, kind="k-anonymity", label=None):
    """Write down the result of a point, as if it had been measured."""
    scores = {"auc": {"mean": utility}} | {key: {"mean": utility / 2} for key in ("accuracy", "balanced_accuracy")}
    return unmeasured(Point(label or f"m{k}", {"k": k}), Status.DONE) | {
        "guarantees": [{"kind": kind, "k": k, "statement": "…", "audited": k, "is_partial": False}],
        "n_columns": n_columns,
        "n_rows": 100,
        "risk": {"headline": {"marketer": risk, "highest_prosecutor": risk}},
        "utility": {"classifiers": {"naive-bayes": scores}, "majority_accuracy": 0.5},
    }


def original(utility=0.9, risk=1.0, n_columns=9):
    return made(utility, risk, n_columns) | {"mechanism": ORIGINAL, "guarantees": []}


def compared(*results, **more):
    return Comparison(tuple(results), more.pop("original", original()), measuring=QUICK, **more)


numbers = st.tuples(
    st.sampled_from([0.6, 0.65, 0.7, 0.705, 0.71]), st.sampled_from([0.0, 0.1, 0.2, 0.5]), st.integers(1, 4)
)


@given(st.lists(numbers, min_size=1, max_size=8))
def test_the_front_is_what_nothing_beats(found):
    points = compared(*(made(*one) for one in found)).points

    for (u, r, _), point in zip(found, points, strict=True):
        beaten = any(u2 >= u and r2 <= r and (u2, r2) != (u, r) for u2, r2, _ in found)
        assert point.on_front == (not beaten)


def test_a_front_is_that_of_releases_that_promise_the_same():
    strict, contained = made(0.7, 0.2, 3), made(0.9, 0.1, 3, kind="containment")
    found = compared(strict, contained)

    assert [one.on_front for one in found.points] == [True, True]
    assert [(group.title, group.best.result) for group in found.groups] == [
        ("k-anonymity", strict),
        ("k-anonymity by containment", contained),
    ]
    assert found.recommended.result is strict


@given(
    st.lists(numbers, min_size=1, max_size=8),
    st.sampled_from([(1, 0, 0), (0.5, 0.25, 0.25), (0.2, 0.6, 0.2), (1 / 3, 1 / 3, 1 / 3)]),
)
def test_scores_are_weighted_ranks_with_the_original_among_them(found, weights):
    points = compared(*(made(*one) for one in found), weights=EvaluationWeights(*weights)).points

    everyone = [*found, (0.9, 1.0, 9)]
    for (u, r, n), point in zip(found, points, strict=True):
        ranks = (
            1 + sum(other[0] < u for other in everyone),
            1 + sum(other[1] > r for other in everyone),
            1 + sum(other[2] > n for other in everyone),
        )
        assert point.score == pytest.approx(sum(w * rank for w, rank in zip(weights, ranks, strict=True)))
    assert sorted(point.rank for point in points) == list(range(1, len(found) + 1))
    in_order = sorted(points, key=lambda point: point.rank)
    assert all(a.score >= b.score - 1e-9 for a, b in pairwise(in_order))


changes = st.sampled_from([0.1, 0.5, None])
kinds = st.sampled_from(["k-anonymity", "k-anonymity", "containment", "kk-anonymity"])


@given(
    st.lists(st.tuples(numbers, st.sampled_from([3, 5, 10]), kinds, changes, st.booleans()), min_size=1, max_size=8),
    st.sampled_from([3, 5, 10]),
    st.sampled_from([(1, 0, 0), (0, 0, 1), (0.2, 0.6, 0.2)]),
)
def test_the_recommended_one_meets_the_guarantee_and_nothing_that_does_beats_it(found, k, weights):
    results = [
        made(*one, k=own, kind=kind)
        | {"changed_cells_fraction": changed, "perturbation": "flipped" if is_flipped else None}
        for one, own, kind, changed, is_flipped in found
    ]
    comparison = compared(*results, asked=(AskedGuarantee("k", k),), weights=EvaluationWeights(*weights))

    meeting = [
        (one[0], one[1], changed, result)
        for (one, own, kind, changed, is_flipped), result in zip(found, results, strict=True)
        if own >= k and kind == "k-anonymity" and not is_flipped
    ]
    chosen = comparison.recommended
    if not meeting:
        assert chosen is None
        return
    unbeaten = [
        (u, r, c, result)
        for u, r, c, result in meeting
        if not any(u2 >= u and r2 <= r and (u2, r2) != (u, r) for u2, r2, _, _ in meeting)
    ]
    best = max(u for u, *_ in unbeaten)
    near = [(r, 1.0 if c is None else c, -u, result) for u, r, c, result in unbeaten if u >= best - 0.01 - 1e-9]
    least = min(one[:3] for one in near)
    assert chosen.result in [one[3] for one in near if one[:3] == least]


def with_folds(utility, spread, risk, k):
    folds = [utility - spread, utility, utility + spread]
    return made(utility, risk, 3, k=k) | {"fold_utility": {"auc": folds, "accuracy": folds}}


def test_a_safer_release_is_taken_only_where_the_folds_cannot_tell_it_from_the_best():
    best = with_folds(0.800, 0.010, 0.2, 5)
    steadily_lower = with_folds(0.795, 0.010, 0.1, 6)  # the same difference in every fold
    unsteady = with_folds(0.795, 0.030, 0.1, 7)

    assert compared(best, steadily_lower).recommended.result is best
    assert compared(best, unsteady).recommended.result is unsteady


def test_the_interval_is_that_of_the_corrected_test_over_the_folds():
    point = compared(with_folds(0.8, 0.03, 0.1, 5)).points[0]

    assert (point.low, point.high) == pytest.approx(
        (0.8 - 4.3027 * 0.03 * (1 / 3 + 1 / 2) ** 0.5, 0.8 + 0.11783), abs=1e-4
    )
    assert with_interval(point) == "0.800 (0.682–0.918)"
    row = compared(with_folds(0.8, 0.03, 0.1, 5)).rows()[0]
    assert (row["utility_low"], row["utility_high"]) == (point.low, point.high)


@pytest.mark.parametrize(
    ("points", "asked", "kind", "guarantees"),
    [
        ([("mondrian", {"k": 5})], [], "k-anonymity", ["k >= 5"]),
        ([("mondrian", {"k": 3})], [], "k-anonymity", ["k >= 3"]),
        ([("mondrian", {}), ("anatomy", {})], [], "k-anonymity", ["k >= 5"]),
        ([("mondrian", {"k": 5, "l": 2})], [], "k-anonymity", ["k >= 5", "l >= 2"]),
        ([("mondrian", {"k": 5, "l": 2}), ("mondrian", {"k": 5})], [], "k-anonymity", ["k >= 5"]),
        ([("error-risk-tree", {"k": 10})], [], "kk-anonymity", ["kk-anonymity >= 5"]),
        ([("greedy-containment", {"k": 5})], [], "containment", ["containment >= 5"]),
        ([("greedy-containment", {"k": 5, "reveals": "both"})], [], "k-anonymity", ["k >= 5"]),
        ([("random-flipping", {"k": 5})], [], "perturbation", ["k >= 5"]),
        ([("random-flipping", {"k": 5}), ("anatomy", {})], [], None, []),
        ([("breach-aware", {})], [], "breach-bound", []),
        ([("mondrian", {})], ["containment=5"], "k-anonymity", ["containment >= 5"]),
        ([("mondrian", {}), ("anatomy", {})], ["bucket-diversity=2"], "buckets", ["bucket-diversity >= 2"]),
    ],
)
def test_what_is_recommended_by_follows_from_what_is_sought_and_not_from_the_rows(points, asked, kind, guarantees):
    wishes = [AskedGuarantee.parse(text) for text in asked]
    found = wanted_promise([Point(*one) for one in points], wishes)

    assert (found[0], [str(one) for one in found[1]]) == (kind, guarantees)


def test_without_a_wish_five_is_asked_for_where_somebody_promises_it():
    weak, strong = made(0.9, 0.1, 3, k=3), made(0.7, 0.1, 3, k=5)

    assert compared(weak, strong).recommended.result is strong
    assert compared(weak).recommended.result is weak
    assert compared(weak, strong).to_dict()["guarantees"] == ["k >= 5"]


def test_the_sentence_says_what_and_why():
    results = made(0.8, 0.05, 3), made(0.795, 0.0, 3, k=6), made(0.7, 0.0, 1, k=7)
    said = compared(*results, weights=EvaluationWeights(0.2, 0.6, 0.2)).why()

    assert said == (
        "Recommended: m6 k=6. Of the 3 releases that promise k >= 5, 2 are on the Pareto front and do not clearly "
        "differ from the best AUC (0.800), and of these it leaves the least risk: AUC 0.795 of 0.900 before, 0.00% "
        "expected to be re-identified."
    )


def test_the_sentence_does_not_count_to_one():
    assert compared(made(0.8, 0.05, 1) | {"changed_cells_fraction": 0.125}).why() == (
        "Recommended: m5 k=5. It is the only finished release that promises k >= 5: AUC 0.800 of 0.900 before, 5.00% "
        "expected to be re-identified, 12.5% of the cells changed."
    )
    assert "that promises k >= 2: AUC" in compared(made(0.8, 0.05, 1, k=2)).why()
    assert (
        "Of the 2 releases that promise k >= 5, it has the best AUC, and every safer one is lower by more than 0.01 or "
        "significantly over the folds: AUC 0.800"
    ) in compared(made(0.8, 0.05, 1), made(0.7, 0.1, 2)).why()
    contained = made(0.8, 0.05, 1, kind="containment") | {"mechanism": "greedy-containment"}
    assert "promises k-anonymity by containment (containment >= 5): AUC" in compared(contained).why()


@pytest.mark.parametrize(
    ("asked", "guarantee", "is_kept"),
    [
        ("k=5", {"kind": "k-anonymity", "k": 5}, True),
        ("k=5", {"kind": "containment", "k": 5}, False),
        ("k=5", {"kind": "kk-anonymity", "k": 5}, False),
        ("k=5", {"kind": "global-anonymity", "k": 5}, False),
        ("containment=5", {"kind": "containment", "k": 5}, True),
        ("kk-anonymity=5", {"kind": "kk-anonymity", "k": 4}, False),
        ("k=5", {"kind": "bucket-size", "k": 9}, False),
        ("k=5", {"kind": "k-anonymity", "k": 9, "is_partial": True}, False),
        ("k-anonymity=5", {"kind": "containment", "k": 9}, False),
        ("bucket-size = 5", {"kind": "bucket-size", "k": 5}, True),
        ("l=2", {"kind": "bucket-diversity", "l": 3}, False),
        ("bucket-diversity=2", {"kind": "bucket-diversity", "l": 3}, True),
        ("l=2", {"kind": "l-diversity", "l": 1.5}, False),
        ("t=0.2", {"kind": "t-closeness", "t": 0.1}, True),
        ("t=0.2", {"kind": "t-closeness", "t": 0.3}, False),
        ("epsilon=1", {"kind": "differential-privacy", "epsilon": 2.0}, False),
        ("breach-bound=0", {"kind": "breach-bound", "max_breach_increase": 0.0}, True),
    ],
)
def test_which_promises_keep_what_is_asked(asked, guarantee, is_kept):
    assert AskedGuarantee.parse(asked).is_promised_by([{"is_partial": False} | guarantee]) is is_kept


@pytest.mark.parametrize("text", ["", "k", "k=", "k=many", "k=nan", "k=inf", "z=5", "=5"])
def test_a_wish_that_cannot_be_read_is_refused(text):
    with pytest.raises(InvalidParameterError, match="NAME=NUMBER"):
        AskedGuarantee.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "k=-5",
        "k=0",
        "k=1",
        "k=2.5",
        "k=1e300",
        "containment=0",
        "l=0",
        "l=-1",
        "t=-0.1",
        "t=2",
        "epsilon=0",
        "epsilon=-1",
    ],
)
def test_a_wish_without_sense_is_refused(text):
    with pytest.raises(InvalidParameterError, match=r"a (whole )?number (from|above)"):
        AskedGuarantee.parse(text)


def test_nothing_that_meets_the_wish_is_refused_with_the_nearest_value():
    comparison = compared(made(0.8, 0.1, 3, k=5), made(0.8, 0.1, 3, k=20), asked=(AskedGuarantee("k", 50),))

    with pytest.raises(PrivacyNotAchievableError, match=r"k >= 50; the best level reached is 20.*m20 k=20 reaches 20"):
        comparison.raise_if_nothing_meets()
    assert "No release is recommended" in comparison.why()


def test_nothing_feasible_is_refused_with_the_nearest_value():
    infeasible = [
        unmeasured(Point("mondrian", {"k": 500}), Status.INFEASIBLE, "cannot be met") | {"best_level": 12},
        unmeasured(Point("anatomy", {"l": 9}), Status.FAILED, "why not"),
    ]

    with pytest.raises(PrivacyNotAchievableError, match="nearest: mondrian k=500 reaches 12") as refused:
        compared(*infeasible).raise_if_nothing_meets()
    assert refused.value.best_level == 12
    assert refused.value.exit_code == 4
    with pytest.raises(PrivacyNotAchievableError, match=r"of 1 point: 1 failed"):
        compared(infeasible[1]).raise_if_nothing_meets()
    assert compared(infeasible[1]).why() == "No release is recommended: no point was released."
    compared(made(0.8, 0.1, 3)).raise_if_nothing_meets()


def refused(*results, asked):
    with pytest.raises(PrivacyNotAchievableError) as found:
        compared(*results, asked=tuple(map(AskedGuarantee.parse, asked))).raise_if_nothing_meets()
    return found.value


def infeasible(mechanism, best_level, **parameters):
    return unmeasured(Point(mechanism, parameters), Status.INFEASIBLE, "…") | {"best_level": best_level}


@pytest.mark.parametrize(
    ("mechanism", "parameters", "wish", "counts"),
    [
        ("mondrian", {"k": 500}, "k=300", True),
        ("mondrian", {"k": 500}, "l=300", False),
        ("mondrian", {"k": 500}, "containment=300", False),
        ("mondrian", {"k": 5, "l": 400}, "k=300", False),
        ("mondrian", {"l": 400}, "l=300", False),
        ("anatomy", {"l": 400}, "l=300", False),
        ("anatomy", {"l": 400}, "bucket-diversity=300", True),
        ("anatomy", {"l": 400}, "k=300", False),
        ("slicing", {"k": 400}, "k=300", False),
        ("breach-aware", {}, "breach-bound=0", True),
        ("breach-aware", {}, "k=300", False),
    ],
)
def test_a_level_of_another_guarantee_is_not_the_nearest(mechanism, parameters, wish, counts):
    error = refused(infeasible(mechanism, 77, **parameters), asked=[wish])

    assert error.best_level == (77 if counts else None)
    assert ("reaches 77" in str(error)) is counts


def test_the_first_guarantee_that_no_point_keeps_is_named():
    error = refused(made(0.8, 0.1, 3, k=5), infeasible("mondrian", 4, k=None, l=9), asked=["k=5", "l=9", "t=0.1"])

    assert str(error).startswith("cannot be met: l >= 9; the best level reached is 4.")
    assert "k >= 5" not in str(error)


def test_guarantees_that_are_kept_but_never_together_are_told_so():
    diverse = made(0.8, 0.1, 3) | {
        "mechanism": "m",
        "parameters": {"l": 3},
        "guarantees": [{"kind": "l-diversity", "l": 3, "is_partial": False}],
    }
    error = refused(made(0.8, 0.1, 3, k=5), diverse, asked=["k=5", "l=2"])

    assert str(error).startswith("no point of the grid promises k >= 5 and l >= 2 together. Nothing was released.")
    assert "k >= 5 by m5 k=5; l >= 2 by m l=3" in str(error)
    assert error.best_level is None


def test_a_grid_that_stops_too_early_is_told_from_what_cannot_be_met():
    error = refused(made(0.8, 0.1, 3, k=20), asked=["k=25"])

    assert str(error).startswith("no point of the grid promises k >= 25; the best level reached is 20.")
    assert "the safest k tried was 20; name others in [compare.grid]" in str(error)
    assert "Hint: no point asks for it; name others in [compare.grid]" in str(
        refused(made(0.8, 0.1, 3), asked=["t=0.1"])
    )
    assert "compare.grid" not in str(refused(infeasible("mondrian", 12, k=25), asked=["k=25"]))


def test_points_of_several_kinds_of_which_none_was_asked_are_refused_by_name():
    contained = made(0.8, 0.1, 3, kind="containment") | {"mechanism": "greedy-containment"}
    bucketed = made(0.8, 0.1, 3) | {
        "mechanism": "anatomy",
        "parameters": {"l": 2},
        "guarantees": [{"kind": "bucket-diversity", "l": 2, "is_partial": False}],
    }
    found = compared(contained, bucketed)

    assert found.recommended is None
    assert "different things (k-anonymity by containment, buckets), and none was asked for" in found.why()
    assert [group.best.result for group in found.groups] == [contained, bucketed]
    with pytest.raises(PrivacyNotAchievableError, match="ask for one kind by its name"):
        found.raise_if_nothing_meets()
    asked = compared(contained, bucketed, asked=(AskedGuarantee("bucket-diversity", 2),))
    assert asked.recommended.result is bucketed


def test_l_that_is_out_of_reach_is_refused_with_the_way_to_ask_for_less():
    error = refused(infeasible("mondrian", 1, k=5, l=2), asked=["k=5", "l=2"])
    by_default = compared(made(0.8, 0.1, 3) | {"mechanism": "mondrian", "parameters": {"k": 5, "l": 2}})

    assert error.best_level is None
    with pytest.raises(PrivacyNotAchievableError) as found:
        by_default.raise_if_nothing_meets()
    assert "l >= 2" in str(found.value)
    assert "--no-l" in in_flag_words(found.value)


def test_a_release_without_utility_is_not_what_cannot_be_met():
    released = made(0.8, 0.1, 3, k=50) | {"status": Status.RELEASED, "utility": None}
    error = refused(made(0.8, 0.1, 3, k=20), released, asked=["k=50"])

    assert str(error).startswith("cannot be met: k >= 50 on the training rows of every fold.")
    assert "m50 k=50 can be released, but the utility was not measured" in str(error)
    assert refused(released, asked=["k=60"]).best_level == 50
    said = compared(released, asked=(AskedGuarantee("k", 50),)).why()
    assert said == "No release is recommended: no release that promises k >= 50 has a measured utility."
    assert compared(made(0.8, 0.1, 3), released).recommended.point.label == "m5 k=5"


def test_accuracy_is_taken_where_there_is_no_area():
    no_area = made(0.8, 0.1, 3)
    no_area["utility"]["classifiers"]["naive-bayes"]["auc"] = None

    comparison = compared(no_area, made(0.7, 0.1, 3, k=6))
    assert comparison.utility_name == "accuracy"
    assert [point.utility for point in comparison.points] == [0.4, 0.35]


def test_rows_drawn_anew_have_no_risk_and_the_notes_say_so():
    comparison = compared(made(0.8, None, 3))

    assert comparison.points[0].risk == 0.0
    assert any("counts as 0" in note for note in comparison.notes())
    assert not any("counts as 0" in note for note in compared(made(0.8, 0.1, 3)).notes())


def test_notes_say_where_a_sample_or_a_time_limit_was_used():
    limited = made(0.8, 0.1, 3) | {"parameters": {"k": 5, "max_seconds": 1.0}}
    sampled = Comparison((limited,), original(), measuring=Measuring(("naive-bayes",), max_rows=60))

    assert any("60 of 100 rows" in note for note in sampled.notes())
    assert any("time limit" in note for note in sampled.notes())
    assert len(compared(made(0.8, 0.1, 3)).notes()) == 2


def test_the_tidy_table_has_a_row_for_every_point_and_the_original():
    failed = unmeasured(Point("anatomy", {"l": 2}), Status.TIMED_OUT, "took longer than 1 seconds")
    comparison = compared(failed, made(0.8, 0.1, 3), made(0.6, 0.2, 4, k=3))

    rows = list(csv.DictReader(io.StringIO(comparison.to_csv())))
    assert [row["mechanism"] for row in rows] == ["m5", "m3", "anatomy", ORIGINAL]
    assert [row["status"] for row in rows] == ["done", "done", "timed out", "done"]
    assert [row["is_recommended"] for row in rows] == ["True", "False", "False", "False"]
    assert rows[2]["reason"] == "took longer than 1 seconds"
    assert json.loads(rows[0]["parameters"]) == {"k": 5}
    assert rows[0]["auc naive-bayes"] == "0.8"
    assert [point["utility"] for point in comparison.frontier()] == [None, 0.8, 0.6]
    assert json.loads(json.dumps(comparison.to_dict(), allow_nan=False))["recommended"]["parameters"] == {"k": 5}


def test_partial_promises_are_marked():
    entry = {"kind": "k-anonymity", "k": 5, "is_partial": True}

    assert short_guarantees([entry]) == ["k-anonymity k=5 (some columns only)"]


@pytest.mark.slow
def test_a_point_is_released_audited_attacked_and_cross_validated(table):
    found = measure_point(table, Point("mondrian", {"k": 4}), QUICK)

    assert found["status"] == "done"
    assert found["guarantees"][0]["k"] == 4
    assert found["guarantees"][0]["audited"] >= 4
    assert 0 < found["risk"]["headline"]["marketer"] <= 0.25
    assert found["utility"]["fitted_on"] == "training fold"
    assert (found["n_columns"], found["n_rows"]) == (4, 150)
    assert found["seconds"] > 0
    text = json.dumps(found, allow_nan=False)
    assert not [value for value in ("female", "private", "public") if value in text]


@pytest.mark.slow
def test_columns_kept_are_columns_of_the_original(table):
    found = measure_point(table, Point("greedy-containment", {"k": 3, "on_infeasible": "skip"}), QUICK)

    assert 1 <= found["n_columns"] <= 4
    assert measure_point(table, Point(ORIGINAL), QUICK)["n_columns"] == 4


def test_what_cannot_be_met_is_a_result_with_the_best_level(table):
    found = measure_point(table, Point("mondrian", {"k": 1000}), QUICK)

    assert found["status"] == "infeasible"
    assert "1000" in found["reason"] or "1,000" in found["reason"] or "999" in found["reason"]
    assert found["utility"] is None


def test_what_cannot_be_met_in_a_fold_says_so(table):
    found = measure_point(table, Point("mondrian", {"k": 100}), QUICK)

    assert found["status"] == "released, utility not measured"
    assert found["risk"]["headline"]["marketer"] <= 0.01
    assert (found["best_level"], found["utility"]) == (None, None)
    assert "Nothing was released" not in found["reason"]
    assert found["reason"].startswith("on the training rows of a fold: ")
    assert found["guarantees"][0]["k"] == 100


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("a secret cell"), "ValueError in test_comparison.py"),
        (MemoryError("a secret cell"), "not enough memory"),
        (AuditFailedError(["k is 2"]), "the audit does not confirm this release: k is 2"),
    ],
)
def test_a_failure_is_a_result_that_quotes_no_cell(table, monkeypatch, error, reason):
    def fails(*_):
        raise error

    monkeypatch.setattr(points_module, "make_release", fails)
    found = measure_point(table, Point("mondrian", {"k": 4}), QUICK)

    assert found["status"] == "failed"
    assert found["reason"].startswith(reason)
    assert "secret" not in found["reason"]


@pytest.mark.parametrize(
    "wrong",
    [{"n_folds": 1}, {"seed": -1}, {"seed": 2**32}, {"max_rows": 1}, {"classifiers": ("oracle",)}, {"classifiers": ()}],
)
def test_measuring_refuses_what_every_point_would_fail_on(wrong):
    with pytest.raises(InvalidParameterError):
        Measuring(**wrong)


GRID = Grid((Point("mondrian", {"k": 3}), Point("mondrian", {"k": 1000}), Point("anatomy", {"l": 2})))


@pytest.mark.slow
def test_a_run_measures_all_points_and_the_next_run_none(table, tmp_path, monkeypatch):
    calls = []
    run = partial(compare, table, GRID, measuring=QUICK, run_folder=tmp_path / "runs", workers=2)
    first = run(progress=lambda done, total, what: calls.append((done, total)))

    assert [one.result["status"] for one in first.points] == ["done", "infeasible", "done"]
    assert calls == [(done, 4) for done in range(5)]
    measured = measure_point(table, GRID.points[0], QUICK)
    assert first.points[0].result["utility"] == measured["utility"]
    assert first.points[0].result["risk"] == measured["risk"]
    assert 0.3 < first.original_utility < 1
    assert first.original_risk > first.points[0].risk

    started = []
    real = processes._started
    monkeypatch.setattr(processes, "_started", lambda *given: started.append(given[2]) or real(*given))
    again = run()
    assert (again.results, again.original, started) == (first.results, first.original, [])

    run(fresh=True)
    assert started == [Point(ORIGINAL), *GRID.points]


@pytest.mark.slow
def test_a_point_that_takes_too_long_is_killed_and_marked(table, tmp_path, monkeypatch, own_processes):
    def started(context, given, point, folder):
        process = context.Process(target=time.sleep, args=(600,))
        process.start()
        return processes._Running(point, process, time.monotonic())

    monkeypatch.setattr(processes, "_started", started)

    found = compare(table, GRID, measuring=QUICK, run_folder=tmp_path / "runs", timeout=0.001)

    assert {one.result["status"] for one in found.points} == {"timed out"}
    assert found.points[0].result["reason"] == "took longer than 0.001 seconds"
    assert not own_processes()
    with pytest.raises(PrivacyNotAchievableError, match="3 timed out"):
        found.raise_if_nothing_meets()


THREE = (AskedGuarantee("k", 3),)


def test_a_comparison_ends_at_its_time_limit_and_says_what_was_not_run(table, tmp_path, monkeypatch, own_processes):
    def started(context, given, point, folder):
        process = context.Process(target=time.sleep, args=(600,))
        process.start()
        return processes._Running(point, process, time.monotonic())

    folder = RunFolder(tmp_path / "runs", processes.table_fingerprint(table), QUICK)
    folder.prepare()
    folder.save(GRID.points[0], made(0.8, 0.1, 3, k=3) | {"seconds": 1.0, "cpu_seconds": 1.0})
    monkeypatch.setattr(processes, "_started", started)
    seen = []
    found = compare(
        table, GRID, measuring=QUICK, run_folder=folder.path, asked=THREE, time_limit=0.01, on_result=seen.append
    )

    assert [one.result["status"] for one in found.points] == ["done", "not run", "not run"]
    assert found.points[1].result["reason"] == "not finished within 0.01 seconds"
    assert [one.point.label for one in found.not_run] == ["mondrian k=1000", "anatomy l=2"]
    assert found.to_dict()["not_run"] == ["mondrian k=1000", "anatomy l=2"]
    assert found.recommended.result["parameters"] == {"k": 3}
    assert [one["mechanism"] for one in seen] == ["mondrian"]
    assert not own_processes()
    assert not folder.is_finished(GRID.points[2], None)  # the next run tries them


def test_an_interrupted_comparison_gives_what_is_finished(table, tmp_path, monkeypatch):
    def interrupted(_, points, folder, *, finished, **limits):
        folder.save(points[1], made(0.8, 0.1, 3, k=3) | {"seconds": 1.0, "cpu_seconds": 1.0})
        finished(points[1])
        raise KeyboardInterrupt

    monkeypatch.setattr(processes, "measure_in_processes", interrupted)
    with pytest.raises(processes.ComparisonInterrupted) as ended:
        compare(table, GRID, measuring=QUICK, run_folder=tmp_path / "runs", asked=THREE)

    found = ended.value.found
    assert [one.result["status"] for one in found.points] == ["done", "not run", "not run"]
    assert found.recommended.point == GRID.points[0]
    assert "interrupted" in found.points[1].result["reason"]
    assert found.why().endswith(" 2 points not run.")


def sleeps_after_saving(folder, point, result):
    folder.save(point, result)
    time.sleep(600)  # until it is killed


@pytest.mark.slow
@pytest.mark.parametrize("status", ["done", "timed out"])
def test_a_result_that_was_saved_at_the_deadline_is_kept_and_an_earlier_one_is_not(tmp_path, status):
    folder, point = RunFolder(tmp_path, "f", QUICK), Point("mondrian", {"k": 3})
    earlier = made(0.8, 0.1, 3) | {"seconds": 1.0, "cpu_seconds": 1.0}
    folder.save(point, earlier)
    later = earlier | {"seconds": 2.0} if status == "done" else earlier
    process = multiprocessing.get_context("forkserver").Process(target=sleeps_after_saving, args=(folder, point, later))
    one = processes._Running(point, process, time.monotonic(), folder.load(point))
    process.start()
    until(lambda: status != "done" or folder.load(point)["seconds"] == 2.0)

    assert processes._is_over(one, folder, 1e-9)
    assert folder.load(point)["status"] == status
    assert not process.is_alive()


@pytest.mark.slow
def test_a_process_that_dies_costs_its_own_point_only(table, tmp_path, monkeypatch):
    real = processes._started

    def started(context, given, point, folder):
        if point.mechanism != "anatomy":
            return real(context, given, point, folder)
        process = context.Process(target=os._exit, args=(3,))
        process.start()
        return processes._Running(point, process, 0.0)

    monkeypatch.setattr(processes, "_started", started)
    found = compare(table, GRID, measuring=QUICK, run_folder=tmp_path / "runs", timeout=None)

    assert [one.result["status"] for one in found.points] == ["done", "infeasible", "failed"]
    assert found.points[2].result["reason"] == "its process ended early (exit code 3)"


def test_an_interrupt_ends_the_processes_and_keeps_finished_points(table, tmp_path, own_processes):
    folder = RunFolder(tmp_path, "f", QUICK)

    def interrupt(point):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        processes.measure_in_processes(
            table, [GRID.points[1], *GRID.points], folder, workers=2, timeout=None, finished=interrupt
        )

    assert not own_processes()
    assert folder.load(GRID.points[1])["status"] == "infeasible"


def test_the_environment_is_as_before(table, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    compare(table, Grid(GRID.points[1:2]), measuring=QUICK, run_folder=tmp_path / "runs", timeout=0.001)

    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


def test_a_table_that_no_point_can_be_measured_on_is_refused_at_once(table, tmp_path):
    one_class = Table.from_arrow(
        pa.table({"a": ["x", "z"], "y": ["u", "u"]}), Schema.of([Column("a"), Column("y", Role.TARGET)])
    )
    refused = partial(compare, run_folder=tmp_path / "runs")

    with pytest.raises(SchemaError, match="no target"):
        refused(table.keep(["age", "sex"]), GRID)
    with pytest.raises(SchemaError, match="one class only"):
        refused(one_class, GRID)
    with pytest.raises(InvalidParameterError, match="no point"):
        refused(table, Grid((), {"anatomy": "no column is sensitive"}))
    for wrong in (
        {"workers": 0},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"time_limit": 0},
        {"weights": (1, 2)},
        {"weights": (0, 0, 0)},
    ):
        with pytest.raises(InvalidParameterError):
            refused(table, GRID, **wrong)
    assert not (tmp_path / "runs").exists()


def test_a_process_leaves_its_temporary_files_where_its_parent_does(table, tmp_path, monkeypatch):
    """So that what both leave when they are killed goes away with one folder."""
    seen = []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    context = Mock()
    point = Point("mondrian", {"k": 3})
    processes._started(context, table, point, RunFolder(tmp_path, "f", QUICK))
    asked = context.Process.call_args.kwargs
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(processes, "stand_alone", lambda: None)
    monkeypatch.setattr(processes, "measure_point", lambda *_: seen.append(tempfile.gettempdir()) or {})
    monkeypatch.setattr(RunFolder, "save", lambda *_: None)
    asked["target"](*asked["args"])
    assert seen == [str(tmp_path)]
