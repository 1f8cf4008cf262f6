"""The estimators: scikit-learn's rules, DataFrames, missing values and weights."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.learning.c45.estimators import C45Classifier, C45Regressor, first_of_most

# Quinlan's golf table (1993, chapter 2)
GOLF = {
    "outlook": ["sunny"] * 5 + ["overcast"] * 4 + ["rain"] * 5,
    "temperature": [75, 80, 85, 72, 69, 72, 83, 64, 81, 71, 65, 75, 68, 70],
    "humidity": [70, 90, 85, 95, 70, 90, 78, 65, 75, 80, 70, 80, 80, 96],
    "windy": [True, True, False, False, False, True, False, True, False, True, True, False, False, False],
}
PLAY = ["play", "no", "no", "no", "play"] + ["play"] * 4 + ["no", "no", "play", "play", "play"]


@pytest.mark.slow
@parametrize_with_checks([C45Classifier(), C45Classifier(pruned=False), C45Regressor()])
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)


@pytest.mark.parametrize("holder", [pd.DataFrame, pl.DataFrame])
def test_quinlans_golf_tree(holder):
    tree = C45Classifier().fit(holder(GOLF), PLAY)

    assert tree.describe().splitlines() == [
        "outlook = overcast: play (4.0)",
        "outlook = rain",
        "|   windy = False: play (3.0)",
        "|   windy = True: no (2.0)",
        "outlook = sunny",
        "|   humidity <= 75: play (2.0)",
        "|   humidity > 75: no (3.0)",
        "",
        "Number of leaves: 5",
        "Size of the tree: 8",
    ]
    assert (tree.get_n_leaves(), tree.get_depth(), tree.n_nodes_) == (5, 2, 8)
    assert tree.predict(holder(GOLF)).tolist() == PLAY
    assert tree.feature_names_in_.tolist() == list(GOLF)


def test_quinlans_golf_tree_with_a_missing_value():
    """Quinlan (1993, chapter 3): the outlook of the row with overcast, 72, 90 and windy is unknown.

    His row then counts 5/13 in the sunny branch, 3/13 in the overcast and 5/13 in the rainy one.
    """
    golf = pd.DataFrame(GOLF)
    golf.loc[5, "outlook"] = None
    tree = C45Classifier(pruned=False).fit(golf, PLAY)

    assert tree.describe().splitlines()[:7] == [
        "outlook = overcast: play (3.23)",
        "outlook = rain",
        "|   windy = False: play (3.0)",
        "|   windy = True: no (2.38/0.38)",
        "outlook = sunny",
        "|   humidity <= 75: play (2.0)",
        "|   humidity > 75: no (3.38/0.38)",
    ]


def test_a_missing_value_is_predicted_from_all_branches():
    """Of the five sunny training rows three had a high humidity and were no, two a low one and were play."""
    tree = C45Classifier().fit(pd.DataFrame(GOLF), PLAY)
    unknown = pd.DataFrame({"outlook": ["sunny"], "temperature": [70], "humidity": [np.nan], "windy": [False]})

    assert tree.classes_.tolist() == ["no", "play"]
    assert tree.predict_proba(unknown) == pytest.approx(np.array([[3 / 5, 2 / 5]]))
    assert tree.predict(unknown).tolist() == ["no"]


def test_an_unknown_category_is_predicted_like_a_missing_one():
    tree = C45Classifier().fit(pd.DataFrame(GOLF), PLAY)
    rows = pd.DataFrame({"outlook": ["fog", None], "temperature": 70, "humidity": 70, "windy": False})

    assert tree.predict_proba(rows) == pytest.approx(np.array([[0, 1], [0, 1]]))
    assert tree.predict_proba(rows.assign(windy=True)) == pytest.approx(np.array([[5 / 14, 9 / 14]] * 2))


def test_a_value_without_training_rows_is_predicted_from_the_node_above():
    """The third letter is known to the tree, but in the branch of the second digit no row has it."""
    letters, digits = list("aabbc" * 4 + "aabb" * 5), [0] * 20 + [1] * 20
    labels = [0] * 20 + [1, 1, 2, 2] * 5
    rows = pd.DataFrame({"letter": letters, "digit": digits})
    tree = C45Classifier(categorical_features=["letter", "digit"], pruned=False).fit(rows, labels)
    asked = pd.DataFrame({"letter": ["c"], "digit": [1]})

    assert tree.describe().splitlines()[:4] == [
        "digit = 0: 0 (20.0)",
        "digit = 1",
        "|   letter = a: 1 (10.0)",
        "|   letter = b: 2 (10.0)",
    ]
    assert tree.predict_proba(asked) == pytest.approx(np.array([[0, 0.5, 0.5]]))


def test_classes_that_tie_are_decided_for_the_first():
    assert C45Classifier().fit([[0], [0]], ["b", "a"]).predict([[0]]).tolist() == ["a"]


def test_classes_that_tie_but_for_rounding_are_decided_for_the_first():
    """A row without a value gets each leaf's share of each class: a third, in whichever order it is summed up."""
    X = np.array([[number] for number in [1.0] * 7 + [2.0] * 7 + [3.0] * 7 + [np.nan] * 3])
    y = ["a"] * 7 + ["b"] * 7 + ["c"] * 7 + ["a", "b", "c"]
    for names in ("abc", "cab", "bca", "acb", "bac", "cba"):
        tree = C45Classifier(pruned=False).fit(X, [names["abc".index(label)] for label in y])

        assert tree.predict_proba([[np.nan]]) == pytest.approx(np.full((1, 3), 1 / 3))
        assert tree.predict([[np.nan]]).tolist() == ["a"]


def test_the_lead_is_taken_by_more_than_rounding():
    amounts = np.array([[0.3, 0.3 + 4e-7, 0.3 + 8e-7], [0.3, 0.3 + 8e-7, 0.3 + 2e-6], [0.2, 0.5, 0.3], [0.0, 0.0, 0.0]])

    assert first_of_most(amounts).tolist() == [0, 2, 1, 0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("confidence", value) for value in ("x", None, True, 0, 0.6, np.nan)),
        *(("pruned", value) for value in ("no", 1, None)),
        *(("subtree_raising", value) for value in ("no", 3)),
        *(("categorical_features", value) for value in (3, {"x0"}, {"x0": True})),
        *(("min_samples_leaf", value) for value in ("2", True, 0, np.nan)),
        *(("max_depth", value) for value in ("2", True, 1.5, -1)),
    ],
)
def test_parameters_of_another_type_or_size_are_refused(name, value):
    with pytest.raises(InvalidParameterError, match=f"^{name} must be .*got") as caught:
        C45Classifier(**{name: value}).fit([[0], [1]], ["a", "b"])
    assert caught.value.name == name


def test_parameters_reach_the_tree():
    rng = np.random.default_rng(10)
    X = rng.integers(0, 8, (400, 4))
    y = (X[:, 0] + X[:, 1] + rng.normal(0, 4, 400) > 7).astype(int)
    sizes = {
        name: C45Classifier(**options).fit(X, y).n_nodes_
        for name, options in {
            "unpruned": {"pruned": False, "categorical_features": [0, 1]},
            "large leaves": {"pruned": False, "categorical_features": [0, 1], "min_samples_leaf": 15},
            "shallow": {"pruned": False, "max_depth": 2},
            "pruned": {"categorical_features": [0, 1]},
            "not raised": {"categorical_features": [0, 1], "subtree_raising": False},
            "pruned more": {"categorical_features": [0, 1], "confidence": 0.01},
        }.items()
    }

    assert sizes["unpruned"] > sizes["pruned"] > sizes["pruned more"]
    assert sizes["large leaves"] < sizes["unpruned"]
    assert sizes["not raised"] != sizes["pruned"]
    assert sizes["shallow"] <= 7


def test_weights_count_rows():
    golf, weights = pd.DataFrame(GOLF), np.array([2, 1] * 7)
    repeated = np.repeat(np.arange(14), weights)
    by_weight = C45Classifier().fit(golf, PLAY, sample_weight=weights)
    by_rows = C45Classifier().fit(golf.iloc[repeated], np.array(PLAY)[repeated])

    assert by_weight.describe() == by_rows.describe()


def test_weights_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        C45Classifier().fit([[0], [1]], [0, 1], sample_weight=[0, 0])


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (C45Classifier(min_samples_leaf=0), "min_samples_leaf"),
        (C45Classifier(min_samples_leaf="two"), "min_samples_leaf"),
        (C45Classifier(confidence=0.6), "confidence"),
        (C45Regressor(max_depth=-1), "max_depth"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(estimator, name):
    with pytest.raises(InvalidParameterError, match=name):
        estimator.fit([[0], [1]], [0, 1])


def test_nothing_of_the_data_is_in_the_repr():
    tree = C45Classifier().fit(pd.DataFrame(GOLF), PLAY)

    assert repr(tree) == "C45Classifier()"
    assert repr(tree.tree_) == "Tree(8 nodes, 5 leaves)"


def test_a_fitted_tree_can_be_stored():
    tree = C45Classifier().fit(pd.DataFrame(GOLF), PLAY)

    assert pickle.loads(pickle.dumps(tree)).describe() == tree.describe()


def test_regression_predicts_means_of_groups():
    rows = pd.DataFrame({"kind": ["a", "a", "b", "b", "c", "c"], "noise": [1, 2, 1, 2, 1, 2]})
    tree = C45Regressor().fit(rows, [1.0, 3.0, 11.0, 13.0, 21.0, 23.0])

    assert tree.predict(rows).tolist() == [2, 2, 12, 12, 22, 22]
    assert tree.predict(pd.DataFrame({"kind": [None, "z"], "noise": [1, 1]})).tolist() == [12, 12]
    assert tree.describe().splitlines()[:3] == ["kind = a: 2 (2.0)", "kind = b: 12 (2.0)", "kind = c: 22 (2.0)"]


def test_regression_on_several_targets_gives_a_mean_each():
    X = np.arange(8.0).reshape(-1, 1)
    y = np.column_stack([X[:, 0] > 3, 1000 * (X[:, 0] > 5), np.full(8, 7.0)])
    tree = C45Regressor().fit(X, y)

    assert tree.predict(X) == pytest.approx(y)


def test_regression_keeps_small_differences_of_large_numbers():
    X = np.arange(8.0).reshape(-1, 1)
    y = 1e9 + np.repeat([0.0, 1.0, 2.0, 3.0], 2)

    assert C45Regressor().fit(X, y).predict(X).tolist() == y.tolist()


def test_two_columns_of_one_name_are_refused():
    X = pd.DataFrame(np.zeros((4, 2)), columns=["a", "a"])

    with pytest.raises(SchemaError, match="2 columns have this name"):
        C45Classifier().fit(X, [0, 1, 0, 1])
