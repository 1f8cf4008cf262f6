"""The selectors over the truly feasible sets as scikit-learn estimators and as mechanisms."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from feasible_sets import improved_set, maximal_feasible_sets
from reproductions.public_data import load_adult, load_pu1
from sfumato import BinarizePlan, GreedyContainmentSelector, binarize
from sfumato.datasets.papers import toy_containment_table
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.mechanisms.containment import base
from sfumato.mechanisms.containment import feasibility as transversals
from sfumato.mechanisms.containment import optimal as branching
from sfumato.mechanisms.containment.exact import ExactContainmentSelector, PatternCounts
from sfumato.mechanisms.containment.optimal import OptimalContainmentSelector
from sfumato.mechanisms.registry import build_mechanism
from sfumato.mechanisms.time_limit import TimeBudget
from sfumato.table.binary import as_binary_matrix

ESTIMATORS = [
    OptimalContainmentSelector(k=2),
    ExactContainmentSelector(k=2, criterion="distinguished_pairs"),
    ExactContainmentSelector(k=2, choose="cross_validation"),
]
BOTH = [OptimalContainmentSelector, ExactContainmentSelector]


@pytest.mark.slow
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_contract_holds_on_binary_data(estimator, check, monkeypatch):
    """The checks' data is cut at zero first, because real-valued data is refused."""
    monkeypatch.setattr(base, "as_binary_matrix", lambda X, names: as_binary_matrix(X > 0, names))

    check(estimator)


@pytest.fixture
def toy():
    return toy_containment_table()


@pytest.fixture
def sparse_data():
    """Make a table with more columns than all sets can be listed for, and many maximal sets."""
    rng = np.random.default_rng(7)
    X = (rng.random((120, 60)) < 0.15).astype(int)
    X[:, 40:] |= X[:, :1] & (rng.random((120, 20)) < 0.8)
    y = (X[:, 0] + X[:, 3] + rng.random(120) > 0.9).astype(int)
    return X, y


@pytest.fixture
def small_data():
    rng = np.random.default_rng(3)
    X = (rng.random((300, 12)) < np.linspace(0.05, 0.6, 12)).astype(int)
    return X, (X[:, 11] + X[:, 8] + rng.random(300) > 1.2).astype(int)


def test_maximal_sets_of_the_papers_table(toy):
    """{x1, x3, x4, x5} is not among the paper's, because no row has it."""
    assert maximal_feasible_sets(toy.matrix, 2).sets == ((0, 1, 4), (0, 2, 3, 4))


def test_the_papers_table_has_nineteen_feasible_sets(toy):
    subsets = {
        frozenset(np.flatnonzero([mask >> i & 1 for i in range(5)]).tolist() if mask else []) for mask in range(1, 32)
    }
    maximal = [set(s) for s in maximal_feasible_sets(toy.matrix, 2).sets]

    assert sum(any(subset <= s for s in maximal) for subset in subsets) == 19


@pytest.mark.parametrize("selector", BOTH)
def test_best_set_of_the_papers_table(toy, selector):
    """{x3, x4} alone separate 8 of 9 pairs, more than x2; the two of all rows change nothing."""
    chosen = selector(k=2).fit(toy.matrix, toy.target().codes)

    assert chosen.selected_columns_.tolist() == [0, 2, 3, 4]
    assert chosen.containment_level_ == 2
    assert chosen.search_["proven"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "selector",
    [
        OptimalContainmentSelector(k=4),
        ExactContainmentSelector(k=4, time_budget=300),
        ExactContainmentSelector(k=4, time_budget=300, choose="cross_validation"),
    ],
    ids=["optimal", "exact", "validated"],
)
def test_row_order_does_not_matter(sparse_data, small_data, selector):
    for X, y in (sparse_data, small_data):
        order = np.random.default_rng(0).permutation(len(y))

        expected = selector.fit(X, y).get_support().tolist()

        assert selector.fit(X[order], y[order]).get_support().tolist() == expected


@pytest.mark.slow
@pytest.mark.parametrize("selector", BOTH)
def test_dense_and_sparse_input_give_the_same_selection_and_are_left_alone(sparse_data, selector):
    X, y = sparse_data
    matrix = sp.csc_matrix(X)
    before = matrix.copy()

    expected = selector(k=3, time_budget=300).fit(X, y).get_support().tolist()

    assert selector(k=3, time_budget=300).fit(matrix, y).get_support().tolist() == expected
    assert (matrix != before).nnz == 0


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 5])
def test_optimum_is_proven_and_no_worse_than_any_other_selection(sparse_data, k):
    X, y = sparse_data
    optimal = OptimalContainmentSelector(k=k).fit(X, y)

    assert optimal.search_["proven"]
    assert optimal.search_["gap"] == optimal.search_["gap_fraction"] == 0
    weights = [separated(X[:, [j]], y) for j in range(X.shape[1])]
    assert optimal.search_["separated_pairs"] == sum(weights[j] for j in optimal.selected_columns_)
    for other in (GreedyContainmentSelector(k=k, on_infeasible="skip"), ExactContainmentSelector(k=k, time_budget=10)):
        found = other.fit(X, y).selected_columns_
        assert sum(weights[j] for j in found) <= optimal.search_["separated_pairs"]


def separated(X, y):
    one, other = np.tril_indices(len(y), -1)
    differ = y[one] != y[other]
    return int((X[one[differ]] != X[other[differ]]).sum())


@pytest.mark.parametrize(
    "selector",
    [
        OptimalContainmentSelector(k=4, time_budget=0),
        ExactContainmentSelector(k=4, time_budget=0),
        ExactContainmentSelector(k=4, time_budget=0, criterion="distinguished_pairs", choose="cross_validation"),
    ],
    ids=["optimal", "exact", "validated"],
)
def test_no_time_at_all_still_gives_a_feasible_set(sparse_data, selector):
    selector.fit(*sparse_data)

    assert selector.containment_level_ >= 4
    assert len(selector.selected_columns_)
    assert not selector.search_["proven"]


def test_out_of_time_the_bound_is_told(sparse_data):
    found = OptimalContainmentSelector(k=3, time_budget=0).fit(*sparse_data).search_
    proven = OptimalContainmentSelector(k=3).fit(*sparse_data).search_

    assert found["separated_pairs"] <= proven["separated_pairs"] <= found["separated_pairs_bound"]
    assert 0 < found["gap_fraction"] < 1


def test_a_table_too_large_to_search_gets_a_bound_from_blocks(sparse_data, monkeypatch):
    proven = OptimalContainmentSelector(k=3).fit(*sparse_data).search_
    monkeypatch.setattr(branching, "MOST_COLUMNS", 30)
    monkeypatch.setattr(branching, "_BLOCK", 16)

    found = OptimalContainmentSelector(k=3).fit(*sparse_data).search_

    assert found["method"] == "greedy and exchanges"
    assert found["separated_pairs"] <= proven["separated_pairs"] <= found["separated_pairs_bound"]


def test_a_table_too_wide_to_list_is_told_incomplete(sparse_data, monkeypatch):
    monkeypatch.setattr(transversals, "MOST_COLUMNS", 30)

    found = maximal_feasible_sets(sp.csc_matrix(sparse_data[0]), 3)

    assert not found.complete
    assert found.sets == ()


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["hamming_separation", "distinguished_pairs"])
def test_many_maximal_sets_are_searched_by_exchanges_and_the_result_is_maximal(sparse_data, criterion):
    X, y = sparse_data
    selector = ExactContainmentSelector(k=4, criterion=criterion, time_budget=10).fit(X, y)

    assert selector.search_["n_maximal_sets"] is None
    assert not selector.search_["proven"]
    chosen = selector.selected_columns_.tolist()
    for feature in set(range(X.shape[1])) - set(chosen):
        assert base.containment_level(sp.csc_matrix(X[:, [*chosen, feature]])) < 4


def test_wide_tables_with_few_maximal_sets_are_listed():
    """Thirty features, each with the rows of the one before and another, and one that shares a single row with them."""
    rows = np.arange(60)
    X = np.column_stack([*((rows < 10 + j).astype(int) for j in range(30)), (rows == 0) | (rows >= 40)])

    selector = ExactContainmentSelector(k=2).fit(X, rows % 2)

    assert selector.search_["proven"]
    assert selector.search_["n_maximal_sets"] == 2
    assert selector.selected_columns_.tolist() == list(range(30))


def test_two_features_are_exchanged_for_one_that_is_heavier():
    """The third shares a single row with each of the others, so neither alone makes room for it."""
    rows_of = [[0, 1], [2, 3], [0, 2, 4, 5]]
    X = np.array([[int(row in rows) for rows in rows_of] for row in range(7)])

    better = improved_set(as_binary_matrix(X), [0, 1], np.array([2, 2, 5]), 2, TimeBudget(30))

    assert better == (2,)
    assert improved_set(as_binary_matrix(X), [0, 1], np.array([2, 3, 5]), 2, TimeBudget(30)) == (0, 1)


@pytest.mark.slow
def test_cross_validation_takes_the_set_with_the_largest_area(small_data):
    X, y = small_data
    selector = ExactContainmentSelector(k=8, choose="cross_validation").fit(X, y)
    counts = PatternCounts(as_binary_matrix(X), y.astype(np.int32), 2, 0)

    areas = [counts.cross_validated_auc(s) for s in maximal_feasible_sets(as_binary_matrix(X), 8).sets]

    assert len(areas) > 1
    assert selector.search_["cross_validated_auc"] == max(areas)
    assert selector.search_["chosen_by"] == "cross_validation"


def test_area_from_counts_is_near_that_of_scikit_learn(small_data):
    """The folds differ, the models do not."""
    X, y = small_data
    counts = PatternCounts(as_binary_matrix(X), y.astype(np.int32), 2, 0)

    expected = cross_val_score(LinearSVC(dual=False), X, y, cv=5, scoring="roc_auc").mean()

    assert counts.cross_validated_auc(range(12)) == pytest.approx(expected, abs=0.03)


@pytest.mark.slow
def test_three_classes_can_be_cross_validated(small_data):
    X, y = small_data
    three = np.where(X[:, 5] == 1, 2, y)

    selector = ExactContainmentSelector(k=4, choose="cross_validation").fit(X, three)

    assert 0.5 < selector.search_["cross_validated_auc"] <= 1


def test_a_class_with_one_row_falls_back_to_the_criterion():
    X = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1], [0, 0, 0]] * 3)
    y = np.zeros(12, dtype=int)
    y[0] = 1

    selector = ExactContainmentSelector(k=3, choose="cross_validation").fit(X, y)

    assert selector.search_["chosen_by"] == "criterion"


@pytest.mark.slow
def test_seeds_change_folds_and_not_the_promise(small_data):
    for seed in (0, 1):
        selector = ExactContainmentSelector(k=8, choose="cross_validation", random_state=seed).fit(*small_data)

        assert selector.containment_level_ >= 8


@pytest.mark.slow
@pytest.mark.parametrize("selector", BOTH)
def test_works_in_a_pipeline(small_data, selector):
    pipeline = make_pipeline(selector(k=4), LogisticRegression())

    assert cross_val_score(pipeline, *small_data, cv=3).mean() > 0.6


@pytest.mark.parametrize("selector", BOTH)
@pytest.mark.parametrize("k", [0, 2.5, "5", True, None])
def test_k_must_be_a_whole_number_of_at_least_one(small_data, selector, k):
    with pytest.raises(InvalidParameterError, match="k must be a whole number"):
        selector(k=k).fit(*small_data)


@pytest.mark.parametrize("selector", BOTH)
@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "60", True, None])
def test_time_budget_must_be_a_number_of_seconds(small_data, selector, seconds):
    with pytest.raises(InvalidParameterError, match="time_budget must be a number of seconds"):
        selector(time_budget=seconds).fit(*small_data)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("criterion", "hamdist", "criterion must be 'hamming_separation' or"),
        ("choose", "auc", "choose must be 'criterion' or"),
        ("random_state", -1, "random_state must be a whole number"),
        ("random_state", 1.5, "random_state must be a whole number"),
        ("random_state", None, "random_state must be a whole number"),
    ],
)
def test_parameters_of_the_exact_selector_are_checked(small_data, name, value, message):
    with pytest.raises(InvalidParameterError, match=message):
        ExactContainmentSelector(**{name: value}).fit(*small_data)


@pytest.mark.parametrize("selector", BOTH)
def test_k_above_the_row_count_and_one_class_are_refused(selector):
    with pytest.raises(PrivacyNotAchievableError, match="k is at most the row count"):
        selector(k=5).fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(SchemaError, match="one class only"):
        selector(k=2).fit(np.eye(3), [1, 1, 1])


@pytest.mark.parametrize("selector", BOTH)
def test_constant_features_and_empty_rows_are_fine(selector):
    X = np.array([[1, 0, 1], [1, 0, 0], [1, 0, 1], [1, 0, 0]])

    assert selector(k=2).fit(X, [0, 0, 1, 1]).get_support().tolist() == [True, True, True]


@pytest.mark.parametrize("name", ["optimal-containment", "exact-containment"])
def test_release_promises_containment_and_tells_how_the_search_ended(toy, name):
    release = build_mechanism(name, {"k": "2", "time_budget": "5"}).release(toy)

    assert release.table.feature_names == ("x1", "x3", "x4", "x5")
    (promise,) = release.manifest.promised()
    assert promise.k == 2
    assert json.loads(json.dumps(release.manifest.evidence["search"]))["proven"] is True


def test_release_without_any_feasible_feature_is_refused(toy):
    with pytest.raises(PrivacyNotAchievableError, match="Nothing was released"):
        OptimalContainmentSelector(k=3).release(toy.select([1, 3]))


def test_progress_is_reported(sparse_data):
    told = []
    data = base.Labelled(sp.csc_matrix(sparse_data[0]), sparse_data[1].astype(np.int32), 2)

    OptimalContainmentSelector(k=2)._search(data, lambda *step: told.append(step))

    assert told
    assert told[-1][0] == told[-1][1]


@pytest.mark.slow
@pytest.mark.parametrize(("k", "n_features", "n_maximal"), [(5, 16, 248), (8, 15, 243), (11, 15, 220)])
def test_adult_has_a_proven_optimum_and_few_maximal_sets(shared_data, k, n_features, n_maximal):
    table = binarize(load_adult(), BinarizePlan.from_dict({"recipe": "adult-19"}))
    classes = table.target().codes

    optimal = OptimalContainmentSelector(k=k).fit(table.matrix, classes)
    exact = ExactContainmentSelector(k=k).fit(table.matrix, classes)

    assert len(optimal.selected_columns_) == n_features
    assert optimal.search_["proven"]
    assert exact.search_["n_maximal_sets"] == n_maximal
    assert exact.selected_columns_.tolist() == optimal.selected_columns_.tolist()


@pytest.mark.slow
def test_email_data_within_a_short_budget_is_at_least_greedy_and_at_most_its_bound(shared_data):
    """Greedy with skip separates 8,659,043 pairs at k = 11; the optimum is 33,497,070 (proven in half a minute)."""
    mail = load_pu1()

    selector = OptimalContainmentSelector(k=11, time_budget=1).fit(mail.matrix, mail.target().codes)

    assert selector.containment_level_ >= 11
    assert selector.search_["separated_pairs"] >= 8_659_043
    assert selector.search_["separated_pairs_bound"] >= 33_497_070


def test_clone_keeps_parameters():
    selector = ExactContainmentSelector(k=3, choose="cross_validation", time_budget=2.0, random_state=4)

    assert clone(selector).get_params() == selector.get_params()
