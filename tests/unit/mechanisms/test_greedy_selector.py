"""The greedy selector as a scikit-learn estimator and as a mechanism."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato import GreedyContainmentSelector
from sfumato.datasets.papers import toy_containment_table
from sfumato.errors import InvalidParameterError, NotBinaryError, PrivacyNotAchievableError, SchemaError
from sfumato.mechanisms.containment import base
from sfumato.table.binary import BinaryTable, as_binary_matrix

ESTIMATORS = [
    GreedyContainmentSelector(k=2),
    GreedyContainmentSelector(k=2, criterion="distinguished_pairs", on_infeasible="skip"),
]
FED_REAL_VALUED_DATA = (
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_dtype_object",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_estimator_sparse_tag",
    "check_estimators_dtypes",
    "check_estimators_fit_returns_self",
    "check_estimators_nan_inf",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit2d_predict1d",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_fit_score_takes_y",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input",
    "check_transformer_data_not_an_array",
    "check_transformer_general",
    "check_transformer_preserve_dtypes",
)


@pytest.mark.slow
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_contract(estimator, check):
    """All but those that feed real-valued data, which is refused: turning 3.7 into 1 silently would be wrong."""
    if check.func.__name__ in FED_REAL_VALUED_DATA:
        with pytest.raises((NotBinaryError, AssertionError)):
            check(estimator)
    else:
        check(estimator)


@pytest.mark.slow
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_contract_holds_on_binary_data(estimator, check, monkeypatch):
    """The same checks with their data cut at zero first: what is refused above is the data, not the contract."""
    monkeypatch.setattr(base, "as_binary_matrix", lambda X, names: as_binary_matrix(X > 0, names))

    check(estimator)


@pytest.fixture
def binary_data():
    rng = np.random.default_rng(3)
    X = (rng.random((300, 12)) < np.linspace(0.05, 0.6, 12)).astype(int)
    y = (X[:, 11] + X[:, 8] + rng.random(300) > 1.2).astype(int)
    return X, y


@pytest.mark.parametrize("criterion", ["hamming_separation", "distinguished_pairs"])
def test_dense_sparse_and_frame_input_give_the_same_selection(binary_data, criterion):
    X, y = binary_data
    names = [f"word {i}" for i in range(12)]
    selector = GreedyContainmentSelector(k=5, criterion=criterion, on_infeasible="skip")

    expected = selector.fit(X, y).get_support().tolist()

    for other in (X.astype(float), X.astype(bool), sp.csr_matrix(X), sp.csc_array(X), sp.coo_matrix(X)):
        assert clone(selector).fit(other, y).get_support().tolist() == expected
    framed = clone(selector).fit(pd.DataFrame(X, columns=names), y)
    assert framed.get_support().tolist() == expected
    assert framed.get_feature_names_out().tolist() == [n for n, kept in zip(names, expected, strict=True) if kept]


def test_works_in_a_pipeline(binary_data):
    X, y = binary_data
    pipeline = make_pipeline(GreedyContainmentSelector(k=5, on_infeasible="skip"), LogisticRegression())

    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.6


def test_row_order_and_label_names_do_not_matter(binary_data):
    X, y = binary_data
    order = np.random.default_rng(0).permutation(len(y))
    selector = GreedyContainmentSelector(k=4)

    expected = selector.fit(X, y).get_support().tolist()

    assert selector.fit(X[order], y[order]).get_support().tolist() == expected
    assert selector.fit(X, np.where(y == 1, "a", "b")).get_support().tolist() == expected


def test_fitting_leaves_the_input_alone(binary_data):
    X, y = binary_data
    matrix = sp.csc_matrix(X)
    matrix.data = matrix.data.astype(float)
    before = matrix.copy()

    GreedyContainmentSelector(k=3).fit(matrix, y)

    assert (matrix != before).nnz == 0
    assert matrix.dtype == before.dtype


def test_explicit_zeros_of_a_sparse_matrix_are_zeros():
    matrix = sp.csc_matrix((np.array([1.0, 0.0, 1.0]), ([0, 1, 2], [0, 0, 0])), shape=(4, 1))

    selector = GreedyContainmentSelector(k=2).fit(matrix, [0, 1, 0, 1])

    assert selector.containment_level_ == 2


@pytest.mark.parametrize("k", [0, -1, 2.5, "5", True, None])
def test_k_must_be_a_whole_number_of_at_least_one(binary_data, k):
    with pytest.raises(InvalidParameterError, match="k must be a whole number"):
        GreedyContainmentSelector(k=k).fit(*binary_data)


@pytest.mark.parametrize(("name", "value"), [("criterion", "hamdist"), ("on_infeasible", "ignore")])
def test_choices_are_checked(binary_data, name, value):
    with pytest.raises(InvalidParameterError, match=f"{name} must be '"):
        GreedyContainmentSelector(**{name: value}).fit(*binary_data)


def test_k_above_the_row_count_says_what_can_be_had(binary_data):
    with pytest.raises(PrivacyNotAchievableError, match="300") as caught:
        GreedyContainmentSelector(k=301).fit(*binary_data)

    assert caught.value.best_level == 300


def test_values_other_than_zero_and_one_are_refused_with_the_column():
    frame = pd.DataFrame({"fine": [0, 1, 1], "wrong": [0, 3.7, 1]})

    with pytest.raises(NotBinaryError, match=r"'wrong'.*neither 0 nor 1") as caught:
        GreedyContainmentSelector(k=2).fit(frame, [0, 1, 0])
    assert "3.7" not in str(caught.value)


def test_one_class_is_refused():
    with pytest.raises(SchemaError, match="one class only"):
        GreedyContainmentSelector(k=2).fit(np.eye(3), [1, 1, 1])


def test_constant_features_and_empty_rows_are_fine():
    X = np.array([[1, 0, 1], [1, 0, 0], [1, 0, 1], [1, 0, 0]])

    selector = GreedyContainmentSelector(k=2, on_infeasible="skip").fit(X, [0, 0, 1, 1])

    assert selector.get_support().tolist() == [True, True, True]


def test_three_classes_use_all_pairs_of_different_classes():
    X = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 0], [0, 0]])

    selector = GreedyContainmentSelector(k=2, on_infeasible="skip").fit(X, [0, 0, 1, 1, 2, 2])

    assert [round(step.gain, 9) for step in selector.trace_] == [round(8 / 12, 9)] * 2


def test_release_carries_target_and_promise():
    toy = toy_containment_table()

    release = GreedyContainmentSelector(k=2, on_infeasible="skip").release(toy)

    assert isinstance(release.table, BinaryTable)
    assert release.table.feature_names == ("x1", "x2", "x5")
    assert release.manifest.dropped_columns == ("x3", "x4")
    assert release.manifest.recodings == ()
    (promise,) = release.manifest.promised()
    assert promise.k == 2
    assert promise.columns == ("x1", "x2", "x5")
    assert release.manifest.evidence["utility"]["hamming_separation"] == 0.667


def test_release_without_any_feasible_feature_is_refused():
    toy = toy_containment_table().select([1, 3])

    with pytest.raises(PrivacyNotAchievableError, match="Nothing was released") as caught:
        GreedyContainmentSelector(k=3).release(toy)
    assert caught.value.best_level == 2
