"""The breach-aware mechanism: what it keeps, what it says, what it refuses, and how it behaves as an estimator."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import PredefinedSplit, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import sfumato
from sfumato.displays.breach_plane import BreachPlaneDisplay
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.guarantees.estimated import BREACH_ATTACKERS
from sfumato.learning.fold_scores import folds
from sfumato.manifest import in_three_digits
from sfumato.mechanisms.breach import evidence as breach_evidence
from sfumato.mechanisms.breach.evidence import estimate_breach
from sfumato.mechanisms.breach.parameters import TrainingCount
from sfumato.mechanisms.breach.selector import BreachAwareSelector
from sfumato.mechanisms.registry import build_mechanism
from sfumato.schema import Kind, Role
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["naive-bayes", "c45"])
@pytest.mark.parametrize("attacker", ["naive-bayes", "c45", "strongest"])
@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy", "auc"])
def test_every_attacker_and_metric_is_released_and_confirmed(learner, attacker, metric):
    mechanism = BreachAwareSelector(learner=learner, attacker=attacker, metric=metric, n_folds=4)

    release = sfumato.release(table(people(120)), mechanism)

    (promise,) = release.manifest.promised()
    assert (promise.attacker, promise.metric) == (attacker, metric)
    assert "telling" not in promise.columns


ENSEMBLES = {"random-forest": "auc", "gradient-boosting": "accuracy"}
"""Kinds that learn slowly, each with the one metric that it is tried with."""


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["accuracy", "auc"])
@pytest.mark.parametrize("kind", [kind for kind in BREACH_ATTACKERS if kind not in ENSEMBLES])
def test_every_quick_kind_of_learner_finds_what_is_useful_and_what_tells(kind, metric):
    assert_it_finds_what_is_useful_and_what_tells(kind, metric)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "metric"), ENSEMBLES.items())
def test_ensembles_find_what_is_useful_and_what_tells(kind, metric):
    assert_it_finds_what_is_useful_and_what_tells(kind, metric)


def assert_it_finds_what_is_useful_and_what_tells(kind, metric):
    mechanism = BreachAwareSelector(learner=kind, attacker=kind, metric=metric, n_folds=3, weights=(0.2, 0.6, 0.2))

    release = sfumato.release(table(people(150)), mechanism)

    (promise,) = release.manifest.promised()
    assert promise.attacker == release.manifest.mechanism["parameters"]["learner"] == kind
    assert "useful" in promise.columns
    assert "telling" not in promise.columns
    assert release.manifest.evidence["utility"]["performance"] > 0.8
    assert BREACH_ATTACKERS[kind] in promise.describe()


SEVERAL = ["naive-bayes", "c45", "logistic-regression"]


@pytest.mark.slow
@pytest.mark.parametrize("given", [SEVERAL, "+".join(SEVERAL)])
def test_of_several_attackers_the_strongest_counts_and_all_are_named(given):
    release = sfumato.release(table(people(120)), BreachAwareSelector(attacker=given, n_folds=3))

    (promise,) = release.manifest.promised()
    alone = [
        BreachAwareSelector(attacker=kind, n_folds=3).release(table(people(120))).manifest.evidence["risk"]
        for kind in SEVERAL
    ]
    together = release.manifest.evidence["risk"]["attacker_performance_with_all_columns"]
    assert promise.attacker == "naive-bayes+c45+logistic-regression"
    assert "naive Bayes, decision tree or logistic regression, whichever is stronger," in promise.describe()
    assert together == max(risk["attacker_performance_with_all_columns"] for risk in alone)


def test_any_classifier_learns_and_attacks_as_in_scikit_learns_cross_validation():
    columns = people()
    X = np.column_stack([columns["useful"], columns["telling"]])
    learner, attacker = KNeighborsClassifier(3), make_pipeline(RidgeClassifier())

    selector = BreachAwareSelector(learner=learner, attacker=attacker, n_folds=3).fit(
        X, columns["y"], columns["secret"]
    )

    y, secret = (np.unique(columns[name], return_inverse=True)[1] for name in ("y", "secret"))
    order = np.lexsort([secret, y, *(np.unique(column, return_inverse=True)[1] for column in X.T)])
    ours = cross_val_score(learner, X[order], y[order], cv=PredefinedSplit(folds(y[order], 3)))
    attack = cross_val_score(attacker, X[order], secret[order], cv=PredefinedSplit(folds(secret[order], 3)))
    assert selector.search_.baseline.fold_performance == pytest.approx(ours, abs=0.03)
    assert selector.breach_.attack_with_all == pytest.approx(attack.mean(), abs=0.03)
    assert selector.get_support().tolist() == [True, False]
    with pytest.raises(AttributeError):
        learner.classes_  # noqa: B018 # only clones are trained


def test_a_classifier_without_a_seed_gets_that_of_the_selector():
    columns = people(100)
    X = np.column_stack([columns["useful"], columns["telling"]])
    guessing = DecisionTreeClassifier(splitter="random", max_depth=2)

    def performance(seed):
        found = BreachAwareSelector(learner=guessing, n_folds=3, random_state=seed).fit(X, columns["y"])
        return found.search_.baseline.fold_performance

    assert performance(1) == performance(1)
    assert guessing.random_state is None


def test_an_attacker_that_the_audit_cannot_train_is_not_released():
    mechanism = BreachAwareSelector(attacker=["naive-bayes", KNeighborsClassifier(3)], n_folds=3)

    with pytest.raises(InvalidParameterError, match="attacker must be given by name in a release") as caught:
        mechanism.release(table())

    assert "fit takes any classifier" in str(caught.value)
    columns = people()
    X = np.column_stack([columns["useful"], columns["telling"]])
    assert mechanism.fit(X, columns["y"], columns["secret"]).get_support().tolist() == [True, False]


@pytest.mark.slow
def test_a_learner_that_is_a_classifier_is_not_named_since_its_class_may_have_any_name():
    release = sfumato.release(table(), BreachAwareSelector(learner=KNeighborsClassifier(3), n_folds=3))

    assert release.manifest.mechanism["parameters"]["learner"] == "own"
    json.dumps(release.manifest.to_dict())


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "metric"), [("c45", "accuracy"), ("gradient-boosting", "auc")])
def test_the_number_of_workers_changes_no_byte(kind, metric):
    manifests = [
        BreachAwareSelector(attacker=kind, metric=metric, n_folds=3, n_workers=n_workers)
        .release(table(people(90)))
        .manifest.to_json()
        for n_workers in (None, 1, 2)
    ]

    assert manifests[0] == manifests[1] == manifests[2]
    assert "n_workers" not in manifests[0]


@pytest.mark.parametrize(("learner", "attacker"), [("c45", "c45"), ("naive-bayes", "c45+logistic-regression")])
def test_progress_counts_every_training_of_those_still_to_do(learner, attacker):
    calls = []

    BreachAwareSelector(learner=learner, attacker=attacker, n_folds=3).release(
        table(people(90)), progress=lambda *call: calls.append(call)
    )

    counts, totals = [done for done, _, _ in calls], [total for _, total, _ in calls]
    assert {what for _, _, what in calls} == {"models trained"}
    assert sorted(set(counts)) == list(range(1, counts[-1] + 1))
    assert counts == sorted(counts)
    assert all(done <= total for done, total, _ in calls)
    assert totals == sorted(totals, reverse=True)
    assert totals[0] == 3 * 2 * (1 + 3 + 2 * 2)  # folds, learners that are trained, sets
    assert totals[-1] == counts[-1]


def test_progress_without_training_counts_columns():
    calls = []

    BreachAwareSelector().release(table(), progress=lambda *call: calls.append(call))

    assert {what for _, _, what in calls} == {"subsets without one column", "columns tried"}


def test_more_trainings_than_expected_are_still_counted():
    calls = []
    count = TrainingCount(lambda *call: calls.append(call), per_set=1, n_columns=1, n_lists=1)
    for _ in range(3):
        count.trained(1, 1, "trees")

    assert calls == [(done, max(done, 2), "models trained") for done in (1, 2, 3)]


def test_candidates_are_listed_with_the_baseline_first():
    mechanism = BreachAwareSelector(max_breach_increase=-5)
    evidence = mechanism.release(table()).manifest.evidence["choice"]

    first, *others = listed = evidence["candidates"]
    assert first["columns"] == ["useful", "telling", "noise"]
    assert (first["region"], first["breach_increase_percent"]) == ("baseline", 0.0)
    assert len(listed) == evidence["n_candidates"] + 1
    assert [entry["score"] for entry in others] == sorted((entry["score"] for entry in others), reverse=True)
    (chosen,) = [entry for entry in listed if entry["chosen"]]
    assert chosen["columns"] == mechanism.get_feature_names_out().tolist()
    assert chosen["performance"] == mechanism.chosen_.performance
    for entry in listed:
        assert entry["n_columns"] == len(entry["columns"])
        is_beaten = any(
            other["performance"] >= entry["performance"]
            and other["breach_increase_percent"] <= entry["breach_increase_percent"]
            and other["n_columns"] <= entry["n_columns"]
            and any(other[key] != entry[key] for key in ("performance", "breach_increase_percent", "n_columns"))
            for other in listed
        )
        assert entry["on_pareto_front"] != is_beaten
        better, safer = entry["performance"] >= first["performance"], entry["breach_increase_percent"] <= 0
        expected = {(False, False): "I", (True, False): "II", (False, True): "III", (True, True): "IV"}[better, safer]
        assert entry["region"] == ("baseline" if entry is first else expected)


def test_a_long_list_of_candidates_is_cut_but_holds_the_chosen_one(monkeypatch):
    mechanism = BreachAwareSelector(max_performance_loss=None).fit(people_frame(), people()["y"], people()["secret"])
    search = mechanism.search_
    *_, worst = (search.compared[place] for place in search.evaluate().order if place)
    assert len(search.candidates) > 1
    monkeypatch.setattr(breach_evidence, "N_CANDIDATES", 2)

    listed = breach_evidence.choice_evidence(search, (1, 1, 1), worst, ("useful", "telling", "noise"))["candidates"]

    assert [(entry["region"] == "baseline", entry["chosen"]) for entry in listed] == [(True, False), (False, True)]


def people_frame():
    columns = people()
    return pd.DataFrame({name: columns[name] for name in ("useful", "telling", "noise")})


def test_the_loss_of_performance_is_stated_with_its_interval():
    mechanism = BreachAwareSelector(weights=(0, 0.5, 0.5), max_performance_loss=100)
    utility = mechanism.release(table()).manifest.evidence["utility"]

    ours, of_all = (np.array(found.fold_performance) for found in (mechanism.chosen_, mechanism.search_.baseline))
    loss = 100 * (of_all.mean() - ours.mean()) / of_all.mean()
    half = stats.t.isf(0.025, 9) * ((of_all - ours).var(ddof=1) * (1 / 10 + 1 / 9)) ** 0.5 / of_all.mean() * 100
    assert utility["performance_loss_percent"] == in_three_digits(float(loss))
    assert utility["performance_loss_interval"] == in_three_digits([float(loss - half), float(loss + half)])


def test_a_large_loss_is_not_chosen_where_the_test_alone_would():
    """Few rows: the loss of the column that predicts the target is not significant."""
    columns = people(24)
    chosen = [
        BreachAwareSelector(n_folds=3, weights=(0, 0.5, 0.5), max_performance_loss=loss).release(table(columns))
        for loss in (None, 5.0)
    ]

    losses = [release.manifest.evidence["utility"]["performance_loss_percent"] for release in chosen]
    assert losses[1] <= 5 < losses[0]
    assert chosen[0].manifest.evidence["utility"]["p_value_of_the_difference"] >= 0.05


def test_the_evidence_says_what_the_choice_rests_on():
    mechanism = BreachAwareSelector()
    evidence = mechanism.release(table()).manifest.evidence

    risk, choice = evidence["risk"], evidence["choice"]
    assert mechanism.chosen_.breach_increase == mechanism.breach_.increase
    assert risk["breach_increase_percent"] == in_three_digits(mechanism.breach_.increase)
    low, high = risk["breach_increase_interval"]
    assert low < risk["breach_increase_percent"] < high
    attack, attack_with_all = mechanism.breach_.attack, mechanism.breach_.attack_with_all
    assert mechanism.breach_.increase == pytest.approx(100 * (attack / attack_with_all - 1))
    assert risk["attacker_performance"] == in_three_digits(float(attack))
    assert risk["attacker_performance_with_all_columns"] == in_three_digits(float(attack_with_all))
    assert choice["n_candidates"] == len(mechanism.search_.candidates) == sum(choice["candidates_by_region"].values())
    best = [entry for entry in choice["candidates"] if entry["region"] != "baseline"]
    scores = [entry["score"] for entry in best]
    assert scores == sorted(scores, reverse=True)
    assert best[0]["chosen"]
    assert best[0]["n_columns"] == evidence["utility"]["n_columns_released"]
    assert best[0]["p_value"] == in_three_digits(mechanism.chosen_.p_value)
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


@pytest.mark.slow
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


@pytest.mark.slow
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
        ({"weights": {"speed": 1}}, "got the names speed"),
        ({"weights": {"privacy": "much"}}, "weights must be three numbers"),
        ({"max_breach_increase": 1.0}, "max_breach_increase must be at most 0"),
        ({"max_breach_increase": float("nan")}, "a finite number"),
        ({"max_breach_increase": "1"}, "a number of percent"),
        ({"learner": "forest"}, "learner must be"),
        ({"learner": KNeighborsClassifier}, "got an object of type"),
        ({"learner": "strongest"}, "learner must be"),
        ({"attacker": "forest"}, "attacker must be"),
        ({"attacker": "c45+forest"}, "attacker must be"),
        ({"attacker": "c45+c45"}, "got one twice"),
        ({"attacker": []}, "got none"),
        ({"attacker": 3}, "got an object of type int"),
        ({"max_performance_loss": -1.0}, "max_performance_loss must be"),
        ({"max_performance_loss": "5"}, "max_performance_loss must be"),
        ({"n_workers": 0}, "n_workers must be"),
        ({"n_workers": True}, "n_workers must be"),
        ({"metric": "f1"}, "metric must be"),
        ({"lists": "none"}, "lists must be"),
        ({"search": "sideways"}, "search must be"),
        ({"n_random_orders": -1}, "n_random_orders must be"),
        ({"n_random_orders": 2.5}, "n_random_orders must be"),
        ({"max_breach_increase": 3.0, "allow_increase": "no"}, "allow_increase must be True or False"),
        ({"allow_increase": 1}, "allow_increase must be True or False"),
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

    with pytest.raises(SchemaError, match="gives the sensitive column 'secret' away") as caught:
        BreachAwareSelector().release(table(columns))

    assert caught.value.column == place
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("place", ["noise", "ward"])
def test_a_column_that_determines_the_sensitive_one_is_refused_by_name(place):
    """Released as other it tells the secret; among the columns compared with it makes any release look safe."""
    columns = people()
    columns[place] = [f"{value}{number % 4}" for number, value in enumerate(columns["secret"])]
    columns[place][0] = columns[place][1]

    with pytest.raises(SchemaError, match="determines it but for at most 1% of the rows") as caught:
        BreachAwareSelector().release(table(columns))

    assert caught.value.column == place
    assert "role sensitive" in str(caught.value)


def test_a_sensitive_column_with_a_value_of_its_own_in_every_row_is_refused_for_that():
    columns = people() | {"secret": [f"{number}.5" for number in range(N_ROWS)], "ward": np.arange(N_ROWS)}

    with pytest.raises(SchemaError, match="a value of its own in \\(almost\\) every row") as caught:
        BreachAwareSelector().release(table(columns))

    assert caught.value.column == "secret"


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


def test_columns_with_numbers_for_names_are_chosen_by_their_places():
    columns = people()
    frame = pd.DataFrame({name: columns[name] for name in ("secret", "useful", "telling", "noise")})
    numbered = frame.set_axis([3, 2, 1, 0], axis=1)

    by_text, by_number = (
        BreachAwareSelector(sensitive=name).fit(X, columns["y"]) for X, name in ((frame, "secret"), (numbered, "3"))
    )

    assert by_number.get_support().tolist() == by_text.get_support().tolist()
    assert by_number.offered_columns_.tolist() == [1, 2, 3]
    assert BreachPlaneDisplay.from_selector(by_number).labels[0] == "x1, x2, x3"


def test_a_leak_in_a_frame_is_refused_with_what_can_be_done_about_it_there():
    columns = people()
    frame = pd.DataFrame({name: columns[name] for name in ("secret", "useful")})

    with pytest.raises(SchemaError, match="BreachAwareSelector\\(sensitive='secret'\\)"):
        BreachAwareSelector().fit(frame, columns["y"], columns["secret"])
    with pytest.raises(SchemaError, match="X has no column to choose") as caught:
        BreachAwareSelector(sensitive="secret").fit(frame[["secret"]], columns["y"])
    assert "role" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda X: sp.csr_array(X), InvalidParameterError, "got a sparse matrix"),
        (lambda X: pd.DataFrame(X, columns=["a", "a"]), SchemaError, "2 columns have this name"),
        (lambda X: pd.DataFrame(X, columns=[1, "1"]), SchemaError, "2 columns have this name"),
        (lambda X: pd.DataFrame(X, columns=[1, "b"]), InvalidParameterError, "all text or all numbers"),
    ],
)
def test_frames_that_cannot_be_read_are_refused(make, error, message):
    columns = people()
    X = np.column_stack([columns["useful"], columns["telling"]])

    with pytest.raises(error, match=message):
        BreachAwareSelector().fit(make(X), columns["y"], columns["secret"])


class OnlyPredicts(ClassifierMixin, BaseEstimator):
    """A classifier that does not say how likely a class is."""

    def fit(self, X, y):
        """Learn nothing."""
        return self

    def predict(self, X):
        """Say 0."""
        return np.zeros(len(X), dtype=int)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (SVC(decision_function_shape="ovo"), "compares classes in pairs"),
        (make_pipeline(SVC(decision_function_shape="ovo")), "compares classes in pairs"),
        (OnlyPredicts(), "it needs predict_proba or decision_function"),
    ],
)
def test_the_area_needs_what_ranks_rows_class_by_class(learner, message):
    columns = people(60)
    X = np.column_stack([columns["useful"], columns["telling"]])

    with pytest.raises(InvalidParameterError, match=message):
        BreachAwareSelector(learner=learner, metric="auc", n_folds=3).fit(X, columns["secret"])


@pytest.mark.parametrize("search", ["forward", "backward"])
def test_the_search_by_score_is_released_and_confirmed(search):
    mechanism = BreachAwareSelector(search=search, weights=(0.6, 0.3, 0.1))
    release = sfumato.release(table(), mechanism)

    (promise,) = release.manifest.promised()
    assert "useful" in promise.columns
    assert "telling" not in promise.columns
    assert release.manifest.mechanism["parameters"]["search"] == search
    listed = release.manifest.evidence["choice"]["candidates"]
    assert (listed[0]["region"], listed[0]["n_columns"]) == ("baseline", 3)
    assert [entry["columns"] for entry in listed if entry["chosen"]] == [list(promise.columns)]
    assert len(listed) == len({tuple(entry["columns"]) for entry in listed})


def test_a_search_by_score_may_choose_all_columns_or_find_nothing_safe():
    """With all weight on performance and both columns needed, the search ends at the baseline from either side."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(2, size=(2, 300))
    columns = {"a": a, "b": b, "y": a + b, "secret": rng.integers(2, size=300)}
    both = table_of(columns, {"secret": Role.SENSITIVE, "y": Role.TARGET})
    given = {"weights": (1, 0, 0), "max_breach_increase": 90, "allow_increase": True}

    for search in ("forward", "backward"):
        chosen = BreachAwareSelector(search=search, **given)
        evidence = chosen.release(both).manifest.evidence["choice"]
        assert chosen.chosen_ == chosen.search_.baseline
        assert evidence["candidates"][0]["chosen"]
        with pytest.raises(PrivacyNotAchievableError) as caught:
            BreachAwareSelector(search=search, max_breach_increase=-99).release(both)
        assert caught.value.best_level > -99


def test_random_orders_tell_how_stable_the_choice_is():
    mechanism = BreachAwareSelector(n_random_orders=8)
    stability = mechanism.release(table()).manifest.evidence["stability"]

    choices = [
        None if choice is None else [("useful", "telling", "noise")[place] for place in choice]
        for choice in mechanism.stability_.choices
    ]
    own = list(mechanism.get_feature_names_out())
    assert stability["n_random_orders"] == len(choices) == 8
    assert stability["share_with_the_same_choice"] == choices.count(own) / 8
    assert stability["n_different_choices"] == len({str(choice) for choice in choices})
    for entry in stability["most_frequent_choices"]:
        assert entry["share"] == choices.count(entry["columns"]) / 8
    assert "stability" not in BreachAwareSelector().release(table()).manifest.evidence


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


# α by name, weights as they are listed, and further factors of E(S).


def noisy_people(n_rows=240, seed=7):
    rng = np.random.default_rng(seed)
    y, secret = rng.integers(2, size=n_rows), (rng.random(n_rows) < 0.3).astype(int)
    X = np.column_stack(
        [
            y + rng.normal(size=n_rows) / 2,
            secret + rng.normal(size=n_rows) / 2,
            rng.integers(3, size=n_rows),
            rng.integers(200, size=n_rows),
        ]
    )
    return X, y, secret


@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy"])
def test_alpha_by_name_is_the_gain_of_mere_guessing(metric):
    """Guessing is right as often as the majority occurs, or for one class of two."""
    X, y, secret = noisy_people()
    selector = BreachAwareSelector("distp", metric=metric).fit(X, y, secret)

    floor = {"accuracy": np.bincount(secret).max() / len(secret), "balanced_accuracy": 0.5}[metric]
    expected = 100 * (floor / selector.breach_.attack_with_all - 1)
    assert selector.max_breach_increase_ == pytest.approx(expected, abs=0.05)
    assert selector.max_breach_increase_ < 0
    assert selector.chosen_.breach_increase <= selector.max_breach_increase_ + 1e-9
    by_number = BreachAwareSelector(selector.max_breach_increase_, metric=metric).fit(X, y, secret)
    assert by_number.search_.candidates == selector.search_.candidates
    assert by_number.chosen_ == selector.chosen_


def test_the_baseline_by_name_is_no_increase():
    X, y, secret = noisy_people()
    named, plain = (BreachAwareSelector(alpha).fit(X, y, secret) for alpha in ("baseline", 0.0))

    assert named.max_breach_increase_ == 0.0
    assert named.search_.candidates == plain.search_.candidates


def test_an_attacker_who_is_worse_than_guessing_has_no_floor():
    rng = np.random.default_rng(1)
    X, y = rng.integers(30, size=(90, 6)), rng.integers(2, size=90)
    secret = (rng.random(90) < 0.1).astype(int)
    with pytest.raises(InvalidParameterError, match="worse than by mere guessing"):
        BreachAwareSelector("distp", attacker="naive-bayes-discretized", metric="accuracy").fit(
            X.astype(str), y, secret
        )


@pytest.mark.parametrize("alpha", ["DistP", "low", True, None])
def test_other_words_for_alpha_are_refused(alpha):
    with pytest.raises(InvalidParameterError, match="distp or baseline"):
        BreachAwareSelector(alpha).fit(*noisy_people())


@pytest.mark.parametrize("given", ["0.5,0.25,0.25", "(0.5, 0.25, 0.25)", [0.5, 0.25, 0.25], (0.5, 0.25, 0.25)])
def test_weights_are_taken_as_they_are_listed(given):
    assert build_mechanism("breach-aware", {"weights": given}).weights == (0.5, 0.25, 0.25)


def test_a_further_factor_counts_in_the_choice_and_is_in_the_evidence():
    """The column of two hundred values makes every row unique; only with the factor does that count."""
    X, y, secret = noisy_people()
    selector = BreachAwareSelector(factors={"anonymity": 3.0, "uniqueness": 0.0}).fit(X, y, secret)
    evaluation = selector.search_.evaluate((1 / 3, 1 / 3, 1 / 3), factors=selector.factors_)

    sizes = [
        min(Counter(map(tuple, X[:, list(found.columns)].tolist())).values()) for found in selector.search_.compared
    ]
    ranks = [1 + sum(other < size for other in sizes) for size in sizes]
    assert evaluation.ranks["anonymity"].tolist() == ranks
    assert set(evaluation.weights) == {"performance", "privacy", "size", "anonymity"}
    assert evaluation.weights["anonymity"] == pytest.approx(0.75)


@pytest.mark.parametrize("factors", [{"speed": 1}, {"anonymity": -1}, {"anonymity": True}, "anonymity"])
def test_other_factors_are_refused(factors):
    with pytest.raises(InvalidParameterError, match="factors"):
        BreachAwareSelector(factors=factors).fit(*noisy_people())
