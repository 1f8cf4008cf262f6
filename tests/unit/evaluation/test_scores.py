"""Utility of releases: equal to naive loops, honest where it says so, and the same for the same arguments."""

import itertools
import json
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, recall_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.evaluation.classifiers import CLASSIFIERS
from sfumato.evaluation.scores import (
    MOST_POINTS,
    MOST_VALUES,
    HeldOutFold,
    estimate,
    evaluate,
    held_out_fold,
    pooled_curve,
)
from sfumato.manifest import draft_manifest
from sfumato.mechanisms.base import Release
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.registry import build_mechanism, registered_mechanisms
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binarize import binarize
from sfumato.table.coding import Table

LINEAR = "logistic-regression"
QUICK = ("naive-bayes",)


def table_of(cells, **described):
    columns = [described.get(name, Column(name)) for name in cells]
    return Table.from_arrow(pa.table(cells), Schema.of(columns))


def people(n_rows=240, n_classes=2, noise=0.3, seed=0):
    """Make a class that age and job tell something about, in unequal shares."""
    rng = np.random.default_rng(seed)
    age, job = rng.integers(18, 80, n_rows), rng.integers(0, 3, n_rows)
    score = age / 80 + (job == 1) * 0.4 + rng.normal(0, noise, n_rows)
    y = np.digitize(score, np.quantile(score, np.linspace(0.6, 1, n_classes)[:-1]))
    cells = {
        "name": [f"p{i}" for i in range(n_rows)],
        "age": [str(a) for a in age],
        "job": ["xyz"[j] for j in job],
        "illness": ["uvw"[i % 3] for i in range(n_rows)],
        "y": [f"secret{c}" for c in y],
    }
    return table_of(
        cells,
        name=Column("name", Role.IDENTIFIER),
        age=Column("age", kind=Kind.NUMERIC),
        illness=Column("illness", Role.SENSITIVE),
        y=Column("y", Role.TARGET),
    )


def above_cuts(known, numbers):
    """Say for each of at most 15 cuts, which divide the known numbers evenly, whether a number is above it."""
    different, n_pieces = sorted(set(known.tolist())), 16
    cuts = [(low + high) / 2 for low, high in itertools.pairwise(different)]
    if len(cuts) >= n_pieces:
        first_of = [next(c for c in cuts if (known < c).sum() >= i * len(known) / n_pieces) for i in range(1, n_pieces)]
        cuts = sorted(set(first_of))
    return numbers[:, None] > np.array(cuts)


def naive_scores(table, n_folds, seed):
    """Cross-validate with scikit-learn alone, on the cells as they stand."""
    age = np.array([float(a) for a in table["age"].cells().to_pylist()])
    names = np.array([table[name].cells().to_pylist() for name in ("job", "illness")], dtype=object).T
    y = np.array(table["y"].cells().to_pylist())
    labels = np.unique(y)
    found = {"accuracy": [], "balanced_accuracy": [], "auc": [], **{label: [] for label in labels}}
    for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(y, y):
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(names[train])
        X, Z = (np.hstack([age[rows, None], encoder.transform(names[rows])]) for rows in (train, test))
        pieces = [above_cuts(age[train], age[rows]) for rows in (train, test)]
        whole, bent = StandardScaler().fit(X), StandardScaler().fit(pieces[0])
        X, Z = (
            np.hstack([whole.transform(rows), 0.3 * bent.transform(own)])
            for rows, own in zip((X, Z), pieces, strict=True)
        )
        model = LogisticRegression(C=0.03, max_iter=200).fit(X, y[train])
        predicted, proba = model.predict(Z), model.predict_proba(Z)
        found["accuracy"].append(accuracy_score(y[test], predicted))
        found["balanced_accuracy"].append(balanced_accuracy_score(y[test], predicted))
        evidence = proba[:, 1] if len(labels) == 2 else proba
        found["auc"].append(roc_auc_score(y[test], evidence, multi_class="ovr", average="macro"))
        for label, recall in zip(
            labels, recall_score(y[test], predicted, average=None, labels=labels, zero_division=0), strict=True
        ):
            found[label].append(recall)
    return found, labels[np.argsort([-(y == label).sum() for label in labels], kind="stable")]


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", [0, 5])
def test_without_a_mechanism_it_is_plain_cross_validation(n_classes, seed):
    table = people(n_classes=n_classes)
    expected, by_frequency = naive_scores(table, 4, seed)

    found = evaluate(table, classifiers=[LINEAR], n_folds=4, seed=seed).classifiers[LINEAR]

    assert found.accuracy.folds == pytest.approx(expected["accuracy"])
    assert found.balanced_accuracy.folds == pytest.approx(expected["balanced_accuracy"])
    assert found.auc.folds == pytest.approx(expected["auc"], abs=1e-9)
    for recall, label in zip(found.recall, by_frequency, strict=True):
        assert recall.recall.folds == pytest.approx(expected[label])
        assert recall.share == table["y"].cells().to_pylist().count(label) / table.n_rows
    assert (found.roc is None) == (n_classes == 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", registered_mechanisms())
@pytest.mark.parametrize("fitted_on", ["training fold", "all rows"])
def test_every_mechanism_runs(name, fitted_on):
    rng = np.random.default_rng(4)
    base = rng.random(150)
    cells = {c: (0.6 * rng.random(150) + 0.4 * base < 0.5).astype(int).astype(str).tolist() for c in "abcd"}
    cells |= {"illness": ["uvw"[i % 3] for i in range(150)], "y": np.where(base > 0.4, "n", "y").tolist()}
    table = table_of(cells, illness=Column("illness", Role.SENSITIVE), y=Column("y", Role.TARGET))
    parameters = {p.name for p in registered_mechanisms()[name].parameters}
    mechanism = build_mechanism(name, {"n_features": 2} if "n_features" in parameters else {})

    found = evaluate(table, mechanism, classifiers=QUICK, n_folds=3, fitted_on=fitted_on).to_dict()

    assert found["fitted_on"] == fitted_on
    scores = found["classifiers"]["naive-bayes"]
    assert 0.3 < scores["accuracy"]["mean"] <= 1
    assert scores["accuracy"]["low"] <= scores["accuracy"]["mean"] <= scores["accuracy"]["high"]
    json.dumps(found, allow_nan=False)


@pytest.mark.slow
def test_a_recoder_that_knows_the_classes_looks_good_only_when_fitted_on_all_rows():
    """Parts that are cut by class tell the class of their own rows, and nothing of others."""
    rng = np.random.default_rng(1)
    numbers = {name: [str(number) for number in rng.integers(0, 1000, 400)] for name in "ab"}
    described = {name: Column(name, kind=Kind.NUMERIC) for name in "ab"} | {"y": Column("y", Role.TARGET)}
    table = table_of(numbers | {"y": rng.choice(["n", "y"], 400).tolist()}, **described)
    arguments = {"classifiers": ["gradient-boosting"], "n_folds": 4}

    honest = evaluate(table, Mondrian(5, split="gain"), **arguments)
    as_papers = evaluate(table, Mondrian(5, split="gain"), fitted_on="all rows", **arguments)

    assert 0.4 < honest.classifiers["gradient-boosting"].auc.mean < 0.6
    assert as_papers.classifiers["gradient-boosting"].auc.mean > 0.65


class CopiesTarget:
    """A cheat that writes the class into a column that is released."""

    def release(self, table, *, progress=None):
        released = Table(table.schema, {**table.columns, "age": table["y"]}, table.n_rows)
        manifest = draft_manifest(table, released, mechanism="cheat", parameters={}, guarantees=[], evidence={})
        return Release(released, manifest)


def test_a_mechanism_that_writes_the_target_into_a_column_gains_nothing():
    cells = {"age": list("pq" * 60), "y": ["n" if i % 3 else "y" for i in range(120)]}
    table = table_of(cells, y=Column("y", Role.TARGET))

    honest = evaluate(table, CopiesTarget(), classifiers=[LINEAR], n_folds=3).classifiers[LINEAR]
    as_papers = evaluate(table, CopiesTarget(), classifiers=[LINEAR], n_folds=3, fitted_on="all rows")

    assert honest.auc.mean == pytest.approx(0.5)
    assert as_papers.classifiers[LINEAR].auc.mean == 1.0


@pytest.mark.slow
def test_a_mechanism_that_changes_nothing_changes_no_score():
    """Folds are the same before and after, and so are the numbers."""

    class Nothing:
        def release(self, table, *, progress=None):
            kept = table.keep([name for name in table.schema.names() if name != "name"])
            return Release(kept, draft_manifest(table, kept, mechanism="x", parameters={}, guarantees=[], evidence={}))

    table = people()
    before = evaluate(table, classifiers=[LINEAR, "c45"]).to_dict()

    assert evaluate(table, Nothing(), classifiers=[LINEAR, "c45"]).to_dict() == before
    all_rows = evaluate(table, Nothing(), classifiers=[LINEAR, "c45"], fitted_on="all rows").to_dict()
    assert all_rows == before | {"fitted_on": "all rows"}


@pytest.mark.slow
@pytest.mark.parametrize("fitted_on", ["training fold", "all rows"])
def test_the_same_arguments_the_same_result_and_no_label_in_it(fitted_on):
    arguments = {"n_folds": 3, "fitted_on": fitted_on, "seed": 2}
    first, again = (evaluate(people(), Mondrian(5), **arguments).to_dict() for _ in range(2))

    assert first == again
    assert list(first["classifiers"]) == list(CLASSIFIERS)
    assert "secret" not in json.dumps(first, allow_nan=False)
    assert first["classifiers"]["c45"].keys() == {"accuracy", "balanced_accuracy", "auc", "recall", "roc"}
    assert [recall["class"] for recall in first["classifiers"]["c45"]["recall"]] == [1, 2]
    assert "secret" not in repr(evaluate(people(), classifiers=QUICK, **arguments))


def test_suppressed_rows_are_tested_as_new_ones_and_left_out_of_the_release():
    """Fitted on all rows, folds are those of the rows that were released."""
    rare = {"age": ["1"] * 40 + ["2"] * 40 + ["9"], "y": ["n", "y"] * 40 + ["y"]}
    table = table_of(rare, y=Column("y", Role.TARGET))
    recoder = GlobalRecoder(k=5, max_suppressed_fraction=0.05, regroup=False)

    honest = evaluate(table, recoder, classifiers=QUICK, n_folds=3)
    as_papers = evaluate(table, recoder, classifiers=QUICK, n_folds=3, fitted_on="all rows")

    assert honest.n_rows == as_papers.n_rows == 81
    assert honest.majority_accuracy == 41 / 81


def test_a_binary_table():
    binary = binarize(people().keep(["age", "job", "y"]))

    before = evaluate(binary, classifiers=[LINEAR], n_folds=3).classifiers[LINEAR]
    after = evaluate(binary, build_mechanism("greedy-containment", {"k": 3}), classifiers=[LINEAR], n_folds=3)

    assert before.auc.mean > 0.65
    assert after.classifiers[LINEAR].auc.mean > 0.55


@pytest.mark.slow
def test_a_sample_is_said_to_be_one():
    table = people(300)
    found = evaluate(table, classifiers=QUICK, max_rows=100, n_folds=3)

    assert (found.n_rows, found.n_rows_of_table) == (100, 300)
    assert evaluate(table, classifiers=QUICK, max_rows=300).to_dict() == evaluate(table, classifiers=QUICK).to_dict()
    assert found == evaluate(table, classifiers=QUICK, max_rows=100, n_folds=3)
    assert found != evaluate(table, classifiers=QUICK, max_rows=100, n_folds=3, seed=1)


def test_progress_is_told():
    calls = []
    evaluate(people(60), classifiers=["naive-bayes", "c45"], n_folds=2, progress=lambda *told: calls.append(told))

    assert calls == [(0, 4, "naive-bayes"), (1, 4, "c45"), (2, 4, "naive-bayes"), (3, 4, "c45")]


@pytest.mark.slow
def test_classes_that_are_rarer_than_folds():
    cells = {"age": [str(i % 9) for i in range(43)], "y": ["a"] * 22 + ["b"] * 20 + ["c"]}
    table = table_of(cells, y=Column("y", Role.TARGET))

    found = evaluate(table, n_folds=4).to_dict()["classifiers"]

    for scores in found.values():
        rarest = scores["recall"][2]
        assert (rarest["mean"], rarest["low"], rarest["high"]) == (0.0, 0.0, 1.0)
        assert scores["auc"]["mean"] > 0


def test_a_target_with_a_missing_class():
    cells = {"age": [str(i % 5) for i in range(40)], "y": [None if i % 5 == 0 else "a" for i in range(40)]}
    table = table_of(cells, y=Column("y", Role.TARGET))

    assert evaluate(table, classifiers=["c45"], n_folds=2).classifiers["c45"].accuracy.mean == 1.0


def test_a_column_of_many_values_takes_no_more_than_its_share_of_memory(monkeypatch):
    shapes = []

    def noted(classifier, train, test, n_classes):
        shapes.extend([train[0].shape, test[0].shape])
        return held_out_fold(classifier, train, test, n_classes)

    monkeypatch.setattr("sfumato.evaluation.scores.held_out_fold", noted)
    cells = {"zip": [f"z{i}" for i in range(300)], "y": ["ny"[i % 2] for i in range(300)]}
    evaluate(table_of(cells, y=Column("y", Role.TARGET)), classifiers=QUICK, n_folds=2)

    assert shapes == [(150, MOST_VALUES)] * 4


@pytest.mark.slow
def test_numbers_that_no_classifier_can_square():
    is_one = [i % 3 == 0 for i in range(150)]
    cells = {"age": ["1e300" if one else "-1e300" for one in is_one], "y": ["ny"[one] for one in is_one]}
    table = table_of(cells, age=Column("age", kind=Kind.NUMERIC), y=Column("y", Role.TARGET))

    found = evaluate(table, n_folds=2).classifiers

    assert {name: scores.accuracy.mean for name, scores in found.items()} == dict.fromkeys(CLASSIFIERS, 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": -1}, "seed must be a whole number from 0"),
        ({"seed": True}, "seed must be"),
        ({"seed": 2**32}, "seed must be"),
        ({"fitted_on": "everything"}, "fitted_on must be 'training fold' or 'all rows'"),
        ({"max_rows": 1}, "max_rows must be"),
        ({"max_rows": 2.5}, "max_rows must be"),
        ({"n_folds": 1}, "n_folds must be"),
        ({"classifiers": ["none"]}, "classifiers must be"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(InvalidParameterError, match=message):
        evaluate(people(60), **arguments)


def test_tables_without_classes_are_refused():
    with pytest.raises(SchemaError, match="no target to predict"):
        evaluate(people(40).keep(["age", "job"]))
    same = table_of({"age": ["1", "2"] * 10, "y": ["a"] * 20}, y=Column("y", Role.TARGET))
    with pytest.raises(SchemaError, match="one class only"):
        evaluate(same)


def test_errors_of_the_mechanism_pass_through():
    with pytest.raises(PrivacyNotAchievableError):
        evaluate(people(60), Mondrian(50), n_folds=2)


class DropsTarget:
    def release(self, table, *, progress=None):
        kept = table.keep(["age"])
        return Release(kept, draft_manifest(table, kept, mechanism="x", parameters={}, guarantees=[], evidence={}))


def test_a_release_without_the_target_is_refused():
    with pytest.raises(SchemaError, match="does not release the target"):
        evaluate(people(40), DropsTarget(), n_folds=2)


shares = st.floats(0, 1).map(lambda share: round(share, 6))


@given(st.lists(shares, min_size=2, max_size=10))
def test_intervals_follow_nadeau_and_bengio(scores):
    found = estimate(scores)

    n, variance = len(scores), np.var(scores, ddof=1)
    margin = stats.t.ppf(0.975, n - 1) * np.sqrt((1 / n + 1 / (n - 1)) * variance)
    assert found.mean == pytest.approx(np.mean(scores))
    assert found.low == pytest.approx(max(np.mean(scores) - margin, 0), abs=1e-9)
    assert found.high == pytest.approx(min(np.mean(scores) + margin, 1), abs=1e-9)


def test_folds_without_a_number_are_left_out():
    found = estimate([0.5, float("nan"), 0.7])

    assert found.mean == pytest.approx(0.6)
    assert found.folds == (0.5, None, 0.7)
    assert (estimate([float("nan"), 0.4]).low, estimate([float("nan"), 0.4]).high) == (0.0, 1.0)
    assert estimate([float("nan")]) is None


@st.composite
def held_out_rows(draw, n_classes):
    n_rows = draw(st.integers(n_classes, 25))
    target = [*range(n_classes), *draw(st.lists(st.integers(0, n_classes - 1), min_size=n_rows - n_classes))]
    n_rows = len(target)
    predicted = draw(st.lists(st.integers(0, n_classes - 1), min_size=n_rows, max_size=n_rows))
    cells = st.sampled_from([0.0, 0.2, 0.5, 0.9, -np.inf])
    rows = draw(st.lists(st.lists(cells, min_size=n_classes, max_size=n_classes), min_size=n_rows, max_size=n_rows))
    return HeldOutFold(np.array(target, dtype=np.int32), np.array(predicted, dtype=np.int32), np.array(rows))


@pytest.mark.slow
@given(st.integers(2, 4).flatmap(held_out_rows))
def test_scores_of_a_fold_by_counting_pairs(fold):
    target, n_classes = fold.target.tolist(), fold.evidence.shape[1]
    areas = []
    for c in range(n_classes):
        evidence = fold.evidence[:, c].tolist()
        pairs = list(product([e for e, t in zip(evidence, target, strict=True) if t == c],
                             [e for e, t in zip(evidence, target, strict=True) if t != c]))  # fmt: skip
        areas.append(sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs))
    recalls = [
        sum(p == t for p, t in zip(fold.predicted, target, strict=True) if t == c) / target.count(c)
        for c in range(n_classes)
    ]

    assert fold.area() == pytest.approx(areas[1] if n_classes == 2 else sum(areas) / n_classes)
    assert fold.recalls().tolist() == pytest.approx(recalls)
    assert fold.balanced_accuracy() == pytest.approx(sum(recalls) / n_classes)
    assert fold.accuracy() == sum(p == t for p, t in zip(fold.predicted, target, strict=True)) / len(target)


def test_a_fold_of_one_class_has_no_area():
    fold = HeldOutFold(np.zeros(3, np.int32), np.zeros(3, np.int32), np.ones((3, 2)))

    assert np.isnan(fold.area())
    assert np.isnan(fold.recalls()[1])
    assert pooled_curve([fold], 1) is None


def test_training_rows_of_one_class_predict_it():
    X, target = np.zeros((4, 1)), np.ones(4, dtype=np.int32)
    test = X, np.array([0, 1, 1, 0], dtype=np.int32)

    found = held_out_fold(CLASSIFIERS["linear-svm"].build(), (X, target), test, 2)

    assert found.predicted.tolist() == [1] * 4
    assert found.area() == 0.5


@given(st.integers(0, 1000), st.integers(20, 2000))
def test_a_curve_has_few_points_and_the_area_of_all(seed, n_rows):
    rng = np.random.default_rng(seed)
    target = np.arange(n_rows, dtype=np.int32) % 2
    evidence = np.column_stack([np.zeros(n_rows), target + rng.normal(0, 1, n_rows)])
    fold = HeldOutFold(target, target, evidence)

    curve = pooled_curve([fold], 1)

    across, up = np.array(curve.false_positive), np.array(curve.true_positive)
    assert len(across) == len(up) <= MOST_POINTS
    assert (across[0], up[0], across[-1], up[-1]) == (0, 0, 1, 1)
    assert (np.diff(across) >= 0).all()
    assert (np.diff(up) >= 0).all()
    assert np.trapezoid(up, across) == pytest.approx(fold.area(), abs=0.02)


def test_an_unknown_class_is_at_the_end_of_the_curve():
    """A fold whose training rows lacked the class has no evidence for it at all."""
    fold = HeldOutFold(
        np.array([0, 1, 1], np.int32), np.zeros(3, np.int32), np.array([[1, -np.inf], [1, -np.inf], [0, 0.9]])
    )

    curve = pooled_curve([fold], 1)

    assert curve.to_dict() == {"false_positive": [0.0, 0.0, 1.0], "true_positive": [0.0, 0.5, 1.0]}
