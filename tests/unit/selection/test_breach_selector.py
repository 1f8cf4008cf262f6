"""The breach-aware mechanism: what it keeps, what it says, what it refuses, and how it behaves as an estimator."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import sfumato
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.mechanisms import build_mechanism
from sfumato.schema import Kind, Role
from sfumato.selection.breach_evidence import estimate_breach
from sfumato.selection.breach_selector import BreachAwareSelector
from sfumato.table.binary import BinaryTable
from unit.audit.audit_oracles import CANARY, table_of

N_ROWS = 300
ROLES = {"name": Role.IDENTIFIER, "secret": Role.SENSITIVE, "y": Role.TARGET, "ward": Role.OTHER}
KINDS = {"useful": Kind.NUMERIC, "telling": Kind.NUMERIC}


def people(n_rows=N_ROWS, seed=0):
    """Columns of people: one useful for the target, one that tells the secret, one that is noise."""
    rng = np.random.default_rng(seed)
    y, secret = rng.integers(2, size=n_rows), rng.integers(3, size=n_rows)
    return {
        "name": [f"p{i}" for i in range(n_rows)],
        "useful": np.round(y + rng.normal(size=n_rows) / 3, 2),
        "telling": np.round(secret + rng.normal(size=n_rows) / 3, 2),
        "noise": rng.choice(list("abc"), size=n_rows),
        "secret": np.array([CANARY, "flu", "none"])[secret],
        "y": np.array(["no", "yes"])[y],
        "ward": rng.choice(list("uvw"), size=n_rows),
    }


def table(columns=None, roles=None):
    return table_of(columns or people(), ROLES if roles is None else roles, KINDS)


def renamed_roles(**changes):
    return ROLES | changes


def test_what_tells_the_secret_is_dropped_and_what_predicts_the_target_kept():
    original = table()

    release = sfumato.release(original, BreachAwareSelector())

    released = release.table.schema.names()
    assert set(released) - {"noise"} == {"useful", "y", "ward"}
    assert set(release.manifest.dropped_columns) - {"noise"} == {"name", "telling", "secret"}
    (promise,) = release.manifest.promised()
    assert promise.columns == tuple(name for name in released if name not in ("y", "ward"))
    assert (promise.baseline, promise.numeric) == (("useful", "telling", "noise"), ("useful", "telling"))
    assert (promise.sensitive, promise.max_breach_increase) == ("secret", 0.0)
    assert promise.describe().startswith(
        "estimated, not proven: an attacker of the kind naive Bayes who trains on the "
    )
    assert release.manifest.guarantees[0]["audited"] < -30


@pytest.mark.parametrize("learner", ["naive-bayes", "c45"])
@pytest.mark.parametrize("attacker", ["naive-bayes", "c45", "strongest"])
@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy", "auc"])
def test_every_attacker_and_metric_is_released_and_confirmed(learner, attacker, metric):
    mechanism = BreachAwareSelector(learner=learner, attacker=attacker, metric=metric, n_folds=4)

    release = sfumato.release(table(people(120)), mechanism)

    (promise,) = release.manifest.promised()
    assert (promise.attacker, promise.metric) == (attacker, metric)
    assert "telling" not in promise.columns


def test_the_evidence_says_what_the_choice_rests_on():
    mechanism = BreachAwareSelector()
    evidence = mechanism.release(table()).manifest.evidence

    risk, choice = evidence["risk"], evidence["choice"]
    assert risk["breach_increase_percent"] == mechanism.chosen_.breach_increase == mechanism.breach_.increase
    low, high = risk["breach_increase_interval"]
    assert low < risk["breach_increase_percent"] < high
    expected = 100 * (risk["attacker_performance"] / risk["attacker_performance_with_all_columns"] - 1)
    assert risk["breach_increase_percent"] == pytest.approx(expected)
    assert choice["n_candidates"] == len(mechanism.search_.candidates) == sum(choice["candidates_by_region"].values())
    scores = [entry["score"] for entry in choice["best"]]
    assert scores == sorted(scores, reverse=True)
    assert choice["best"][0]["n_columns"] == evidence["utility"]["n_columns_released"]
    assert "note_on_weights" not in choice
    assert "nothing is proven" in risk["what_this_is"]


def test_no_cell_is_in_the_manifest():
    release = sfumato.release(table(), BreachAwareSelector())

    assert CANARY not in json.dumps(release.manifest.to_dict())
    assert CANARY not in repr(release)


def test_a_target_that_is_sensitive_is_released_and_the_evidence_says_so():
    original = table(roles=renamed_roles(secret=Role.QUASI_IDENTIFIER))
    release = sfumato.release(original, BreachAwareSelector(sensitive="y"))

    (promise,) = release.manifest.promised()
    assert promise.sensitive == "y"
    assert "y" in release.table.schema
    assert "the target, which is released" in release.manifest.evidence["risk"]["sensitive_column"]


def test_all_sensitive_columns_are_dropped_and_one_is_to_be_named():
    original = table(roles=renamed_roles(ward=Role.SENSITIVE))

    with pytest.raises(InvalidParameterError, match="the table has 2 columns with that role"):
        BreachAwareSelector().release(original)

    release = sfumato.release(original, BreachAwareSelector(sensitive="secret"))
    assert not {"ward", "secret"} & set(release.table.schema.names())


def test_the_order_of_the_rows_changes_nothing_but_the_order():
    original = table()
    order = np.random.default_rng(3).permutation(N_ROWS)

    first, second = (BreachAwareSelector().release(each) for each in (original, original.take(order)))

    assert first.manifest.evidence == second.manifest.evidence


def test_missing_values_are_released_and_audited():
    columns = people()
    columns["noise"] = [None if i % 7 == 0 else value for i, value in enumerate(columns["noise"])]
    columns["useful"] = [None if i % 50 == 0 else float(value) for i, value in enumerate(columns["useful"])]
    columns["secret"] = [None if value == "none" else str(value) for value in columns["secret"]]

    release = sfumato.release(table(columns), BreachAwareSelector(attacker="strongest", n_folds=3))

    assert "telling" not in release.table.schema


def test_weights_that_do_not_sum_to_one_are_divided_with_a_note():
    evidence = BreachAwareSelector(weights=(2, 1, 1)).release(table()).manifest.evidence

    assert evidence["choice"]["weights"] == {"performance": 0.5, "privacy": 0.25, "size": 0.25}
    assert "summed to 4" in evidence["choice"]["note_on_weights"]


def test_weights_from_the_command_line_go_by_name():
    named = build_mechanism("breach-aware", {"weights": {"performance": 1}}).release(table())
    in_order = BreachAwareSelector(weights=(1, 0, 0)).release(table())

    assert named.manifest.evidence == in_order.manifest.evidence
    assert named.manifest.mechanism == in_order.manifest.mechanism


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"weights": (1, -1, 1)}, "weights must be numbers from 0"),
        ({"weights": (0, 0, 0)}, "all are 0"),
        ({"weights": (1, 1)}, "weights must be three numbers"),
        ({"weights": "123"}, "weights must be three numbers"),
        ({"weights": {"speed": 1}}, "got other names"),
        ({"weights": {"privacy": "much"}}, "weights must be three numbers"),
        ({"max_breach_increase": 1.0}, "max_breach_increase must be at most 0"),
        ({"max_breach_increase": float("nan")}, "a finite number"),
        ({"max_breach_increase": "1"}, "a number of percent"),
        ({"learner": "forest"}, "learner must be"),
        ({"attacker": "forest"}, "attacker must be"),
        ({"metric": "f1"}, "metric must be"),
        ({"lists": "none"}, "lists must be"),
        ({"test": "sign"}, "test must be"),
        ({"random_state": -1}, "random_state must be"),
        ({"n_folds": 1}, "n_folds must be"),
        ({"n_folds": N_ROWS + 1}, "at most 300, the number of rows"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    with pytest.raises(InvalidParameterError, match=message):
        BreachAwareSelector(**parameters).release(table())


def test_an_increase_that_is_asked_for_is_promised():
    release = sfumato.release(table(), BreachAwareSelector(max_breach_increase=5, allow_increase=True))

    assert "at most 5% better" in release.manifest.guarantees[0]["statement"]


def test_a_decrease_out_of_reach_is_refused_with_the_best_level():
    with pytest.raises(PrivacyNotAchievableError) as caught:
        BreachAwareSelector(max_breach_increase=-90).release(table())

    assert -90 < caught.value.best_level < -30


def test_with_a_decrease_asked_for_sets_above_it_are_passed_through():
    """No single column may take an attacker who has two that tell far enough down."""
    columns = people()
    columns["noise"] = [round(float(value), 1) for value in columns["telling"]]
    mechanism = BreachAwareSelector(max_breach_increase=-30)

    release = sfumato.release(table_of(columns, ROLES, KINDS | {"noise": Kind.NUMERIC}), mechanism)

    assert release.manifest.promised()[0].columns == ("useful",)
    assert {step.outcome for step in mechanism.search_.steps} >= {"passed through", "accepted"}


@pytest.mark.parametrize("place", ["noise", "ward", "y"])
def test_a_column_equal_to_the_sensitive_one_is_refused_by_name(place):
    columns = people()
    new_labels = {CANARY: "r", "flu": "s", "none": "t"}
    columns[place] = [new_labels[value] for value in columns["secret"]]

    with pytest.raises(SchemaError, match="equals the sensitive column 'secret'") as caught:
        BreachAwareSelector().release(table(columns))

    assert caught.value.column == place
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "roles", "sensitive", "message"),
    [
        ({"secret": ["flu"] * N_ROWS}, {}, None, "1 different values, so there is nothing to predict"),
        ({"y": ["yes"] * N_ROWS}, {}, None, "the target has one class only"),
        ({}, {"y": Role.OTHER}, None, "has no target"),
        ({}, {"useful": Role.OTHER, "telling": Role.OTHER, "noise": Role.OTHER}, None, "no quasi-identifying column"),
        ({}, {}, "noise", "neither a sensitive column nor the target"),
        ({}, {}, "secert", "did you mean 'secret'"),
    ],
)
def test_tables_without_anything_to_choose_or_to_predict_are_refused(columns, roles, sensitive, message):
    original = table(people() | columns, ROLES | roles)

    with pytest.raises(SchemaError, match=message):
        BreachAwareSelector(sensitive=sensitive).release(original)


def test_sparse_tables_are_refused():
    matrix = sfumato.binarize(table())
    assert isinstance(matrix, BinaryTable)

    with pytest.raises(SchemaError, match="sparse 0/1 table"):
        BreachAwareSelector().release(matrix)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_as_an_estimator_it_chooses_what_the_mechanism_releases(library):
    columns = people()
    frame = library({name: columns[name] for name in ("useful", "telling", "noise")})

    selector = BreachAwareSelector().fit(frame, columns["y"], columns["secret"])
    released = BreachAwareSelector()
    released.release(table(columns))

    assert selector.get_support().tolist() == released.get_support().tolist()
    assert selector.get_support()[:2].tolist() == [True, False]
    kept = selector.get_feature_names_out().tolist()
    assert np.asarray(selector.transform(frame)).T.tolist() == [list(columns[name]) for name in kept]
    assert selector.chosen_ == released.chosen_


def test_a_named_column_of_the_frame_is_sensitive_and_never_chosen():
    columns = people()
    frame = pd.DataFrame({name: columns[name] for name in ("secret", "useful", "telling", "noise")})

    by_name = BreachAwareSelector(sensitive="secret").fit(frame, columns["y"])
    by_value = BreachAwareSelector().fit(frame.drop(columns="secret"), columns["y"], columns["secret"])

    assert by_name.get_support()[:3].tolist() == [False, True, False]
    assert by_name.chosen_ == by_value.chosen_
    with pytest.raises(SchemaError, match="did you mean 'secret'"):
        BreachAwareSelector(sensitive="secrets").fit(frame, columns["y"])


def test_without_a_sensitive_column_the_target_is_attacked():
    columns = people()
    frame = pd.DataFrame({name: columns[name] for name in ("useful", "telling", "noise")})

    own = BreachAwareSelector().fit(frame, columns["y"])
    given = BreachAwareSelector().fit(frame, columns["y"], columns["y"])

    assert own.breach_.attack == own.chosen_.performance
    assert own.get_support().tolist() == given.get_support().tolist()


def test_it_works_in_a_pipeline_and_is_cloned():
    columns = people()
    X = np.column_stack([columns["useful"], columns["telling"]])

    model = make_pipeline(clone(BreachAwareSelector(n_folds=5)), DecisionTreeClassifier(max_depth=2))
    model.fit(X, columns["y"])

    assert model.score(X, columns["y"]) > 0.8
    with pytest.raises(InvalidParameterError, match="one value for each row"):
        BreachAwareSelector().fit(X, columns["y"], columns["secret"][:-1])


def test_the_interval_is_that_of_the_corrected_test():
    attack, with_all = np.array([0.5, 0.6, 0.7, 0.4]), np.array([0.6, 0.5, 0.8, 0.6])

    found = estimate_breach(attack, with_all, 0.9)

    differences = [a - b for a, b in zip(attack, with_all, strict=True)]
    mean = sum(differences) / 4
    variance = sum((d - mean) ** 2 for d in differences) / 3
    half = stats.t.isf(0.05, 3) * (variance * (1 / 4 + 1 / 3)) ** 0.5
    assert found.increase == pytest.approx(100 * (2.2 / 2.5 - 1))
    assert found.low == pytest.approx(100 * (mean - half) / 0.625)
    assert found.high == pytest.approx(100 * (mean + half) / 0.625)
