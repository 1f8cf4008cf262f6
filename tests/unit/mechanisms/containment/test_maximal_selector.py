"""The maximal-itemset selector as a scikit-learn estimator and as a mechanism, and what it finds on public data."""

import gzip
import json
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from reproductions.public_data import load_adult, load_pu1
from sfumato.datasets.papers import toy_containment_table
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.manifest import in_three_digits
from sfumato.mechanisms import time_limit
from sfumato.mechanisms.containment import base
from sfumato.mechanisms.containment.itemsets import largest_itemsets
from sfumato.mechanisms.containment.maximal import MaximalContainmentSelector
from sfumato.mechanisms.registry import build_mechanism
from sfumato.table.binarize import BinarizePlan, binarize
from sfumato.table.binary import BinaryTable, as_binary_matrix

ESTIMATORS = [
    MaximalContainmentSelector(k=2),
    MaximalContainmentSelector(k=2, search="best"),
    MaximalContainmentSelector(k=2, criterion="distinguished_pairs", r=3),
]


@pytest.mark.slow
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_contract_holds_on_binary_data(estimator, check, monkeypatch):
    """Its data cut at zero first: real values are refused by all selectors alike, which is tested with the greedy."""
    monkeypatch.setattr(base, "as_binary_matrix", lambda X, names: as_binary_matrix(X > 0, names))

    check(estimator)


@pytest.fixture
def binary_data():
    rng = np.random.default_rng(3)
    X = (rng.random((300, 12)) < np.linspace(0.05, 0.6, 12)).astype(int)
    y = (X[:, 11] + X[:, 8] + rng.random(300) > 1.2).astype(int)
    return X, y


@pytest.mark.parametrize("search", ["top-r", "best"])
def test_dense_sparse_and_frame_input_and_row_order_give_the_same_selection(binary_data, search):
    X, y = binary_data
    order = np.random.default_rng(0).permutation(len(y))
    selector = MaximalContainmentSelector(k=5, search=search)

    expected = selector.fit(X, y).get_support().tolist()

    assert selector.search_["proven"]
    for other in (X.astype(bool), sp.csr_matrix(X), pd.DataFrame(X, columns=[f"word {i}" for i in range(12)])):
        assert clone(selector).fit(other, y).get_support().tolist() == expected
    assert clone(selector).fit(X[order], y[order]).get_support().tolist() == expected


def test_selection_is_never_larger_or_worse_than_what_the_other_search_finds(binary_data):
    X, y = binary_data

    def separation(features):
        ones = [X[y == c][:, features].mean(axis=0) for c in (0, 1)]
        return float((ones[0] * (1 - ones[1]) + (1 - ones[0]) * ones[1]).sum())

    largest = MaximalContainmentSelector(k=8, r=1).fit(X, y)
    best = MaximalContainmentSelector(k=8, search="best").fit(X, y)

    assert len(largest.selected_columns_) >= len(best.selected_columns_)
    assert separation(best.selected_columns_) >= separation(largest.selected_columns_)
    assert best.search_["bound"] == pytest.approx(separation(best.selected_columns_))


@pytest.mark.parametrize("k", [0, -1, 2.5, "5", True, None])
def test_k_must_be_a_whole_number_of_at_least_one(binary_data, k):
    with pytest.raises(InvalidParameterError, match="k must be a whole number"):
        MaximalContainmentSelector(k=k).fit(*binary_data)


@pytest.mark.parametrize("r", [0, -20, 1.5, "20", True, None])
def test_r_must_be_a_whole_number_of_at_least_one(binary_data, r):
    with pytest.raises(InvalidParameterError, match="r must be a whole number"):
        MaximalContainmentSelector(r=r).fit(*binary_data)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "30", None, True])
def test_time_budget_must_be_a_number_of_seconds(binary_data, seconds):
    with pytest.raises(InvalidParameterError, match="time_budget must be a number of seconds"):
        MaximalContainmentSelector(time_budget=seconds).fit(*binary_data)


@pytest.mark.parametrize(("name", "value"), [("criterion", "hamdist"), ("search", "all")])
def test_choices_are_checked(binary_data, name, value):
    with pytest.raises(InvalidParameterError, match=f"{name} must be '"):
        MaximalContainmentSelector(**{name: value}).fit(*binary_data)


def test_best_of_all_by_distinguished_pairs_is_refused_with_what_to_do(binary_data):
    with pytest.raises(InvalidParameterError, match=r"criterion must be 'hamming_separation'.*search='top-r'"):
        MaximalContainmentSelector(search="best", criterion="distinguished_pairs").fit(*binary_data)


def test_k_above_the_row_count_says_what_can_be_had(binary_data):
    with pytest.raises(PrivacyNotAchievableError, match="300") as caught:
        MaximalContainmentSelector(k=301).fit(*binary_data)

    assert caught.value.best_level == 300


@pytest.mark.parametrize("search", ["top-r", "best"])
def test_features_that_are_always_one_belong_to_every_selection(search):
    X = np.array([[1, 0, 1], [1, 0, 0], [1, 0, 1], [1, 1, 0]])

    selector = MaximalContainmentSelector(k=2, search=search).fit(X, [0, 0, 1, 1])
    alone = MaximalContainmentSelector(k=4, search=search).fit(X, [0, 0, 1, 1])

    assert selector.get_support().tolist() == [True, False, True]
    assert alone.get_support().tolist() == [True, False, False]


def test_three_classes_use_all_pairs_of_different_classes():
    X = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 1]])

    selector = MaximalContainmentSelector(k=2, search="best").fit(X, [0, 0, 1, 1, 2, 2])

    assert selector.selected_columns_.tolist() == [1, 2]
    assert selector.search_["bound"] == pytest.approx((8 + 8) / 12)


def test_no_feature_with_k_ones_gives_an_empty_selection_and_no_release():
    toy = toy_containment_table().select([1, 3])

    selector = MaximalContainmentSelector(k=3)

    assert not selector.fit(toy.matrix, toy.target().codes).get_support().any()
    assert selector.search_["proven"]
    assert selector.search_["n_candidates"] == selector.search_["bound"] == selector.search_["gap"] == 0
    with pytest.raises(PrivacyNotAchievableError, match="Nothing was released") as caught:
        selector.release(toy)
    assert caught.value.best_level == 2


def test_release_says_how_the_search_ended():
    release = build_mechanism("maximal-containment", {"k": "2", "search": "best"}).release(toy_containment_table())

    assert isinstance(release.table, BinaryTable)
    assert release.table.feature_names == ("x1", "x2", "x5")
    (promise,) = release.manifest.promised()
    assert promise.k == 2
    ending = release.manifest.evidence["search"]
    assert json.loads(json.dumps(ending)) == {
        "search": "best",
        "proven": True,
        "n_candidates": 1,
        "bound_on": "hamming_separation",
        "bound": in_three_digits(6 / 9),
        "gap": 0.0,
    }


@pytest.mark.slow
@pytest.mark.parametrize("search", ["top-r", "best"])
def test_what_cannot_be_proven_in_time_has_a_bound_and_a_gap(monkeypatch, search):
    """Random rows of half ones: the hardest there is. The budget is of processor time, the same beside other work."""
    monkeypatch.setattr(time_limit, "time", SimpleNamespace(monotonic=time.process_time))
    rng = np.random.default_rng(1)
    X, y = (rng.random((300, 150)) < 0.5).astype(int), np.arange(300) % 2
    selector = MaximalContainmentSelector(k=5, search=search, time_budget=0.3)

    start = time.process_time()
    selector.fit(X, y)

    assert time.process_time() - start < 30  # a budget that nobody looks at would take hours
    assert not selector.search_["proven"]
    assert selector.search_["gap"] > 0
    assert selector.search_["n_candidates"] == (20 if search == "top-r" else 1)
    assert selector.containment_level_ >= 5
    assert json.dumps(selector.search_)


def test_progress_is_told(binary_data):
    """More sets are asked for than there are, so several searches are needed."""
    told = []

    found = largest_itemsets(
        as_binary_matrix(binary_data[0]), np.ones(12, dtype=int), 30, 1000, 30.0, lambda *said: told.append(said)
    )

    assert found.proven
    assert all(done < total and what for done, total, what in told)
    assert [done for done, _, _ in told] == list(range(1, len(told) + 1))
    assert told


def test_weights_beyond_exact_floats_still_rank_sizes_first():
    rows = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 1, 0]])
    weights = np.array([2**60, 1, 5, 5])

    found = largest_itemsets(as_binary_matrix(rows), weights, 2)

    assert found.itemsets == [(0, 1), (2, 3)]
    assert found.bound == 2


# Public data; figures of LCM and pyfim, and those that a prototype proved -----------------------------------------


def fimi_with_classes(path):
    """Rows of a FIMI file whose items 1 and 2 are the class."""
    with gzip.open(path, "rt") as lines:
        rows = [[int(item) for item in line.split()] for line in lines]
    X = np.zeros((len(rows), max(map(max, rows)) + 1), dtype=np.int8)
    for matrix_row, row in zip(X, rows, strict=True):
        matrix_row[row] = 1
    return sp.csc_matrix(X[:, 3:]), X[:, 1]


def test_mushroom_best_of_all_is_proven(shared_data):
    X, y = fimi_with_classes(shared_data / "sparse" / "mushroom.dat.gz")

    selector = MaximalContainmentSelector(k=5, search="best").fit(X, y)

    assert selector.search_["proven"]
    assert selector.search_["bound"] == pytest.approx(8.8029, abs=1e-4)
    assert len(selector.selected_columns_) == 20


@pytest.mark.slow
def test_mushroom_largest_sets_have_twenty_items_and_ties_go_to_the_best(shared_data):
    """19,730 of its 34,106 maximal sets have 20 items: which 20 of them are compared matters."""
    X, y = fimi_with_classes(shared_data / "sparse" / "mushroom.dat.gz")

    top = MaximalContainmentSelector(k=5).fit(X, y)
    best = MaximalContainmentSelector(k=5, search="best").fit(X, y)

    assert top.search_ == {
        "search": "top-r",
        "proven": True,
        "n_candidates": 20,
        "bound_on": "size",
        "bound": 20,
        "gap": 0,
    }
    assert top.selected_columns_.tolist() == best.selected_columns_.tolist()


@pytest.mark.slow
def test_chess_best_is_not_among_the_largest(shared_data):
    X, y = fimi_with_classes(shared_data / "sparse" / "chess.dat.gz")

    top = MaximalContainmentSelector(k=5).fit(X, y)
    best = MaximalContainmentSelector(k=5, search="best").fit(X, y)

    assert top.search_["proven"]
    assert best.search_["proven"]
    assert top.search_["bound"] == 34
    assert len(best.selected_columns_) == 33
    assert best.search_["bound"] == pytest.approx(9.5225, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("k", "size"), [(5, 694), (8, 617), (11, 577)])
def test_largest_itemset_of_the_email_corpus(shared_data, k, size):
    """Where no complete miner comes to an end."""
    table = load_pu1()

    found = largest_itemsets(table.matrix, np.ones(table.matrix.shape[1], dtype=np.int64), k, 1)

    assert found.proven
    assert found.worths == [size]


@pytest.mark.slow
def test_best_of_the_email_corpus_is_the_largest(shared_data):
    table = load_pu1()

    selector = MaximalContainmentSelector(k=5, search="best").fit(table.matrix, table.target().codes)

    assert selector.search_["proven"]
    assert len(selector.selected_columns_) == 694


def test_sizes_on_adult_are_those_of_a_complete_listing(shared_data):
    table = binarize(load_adult(), BinarizePlan.from_dict({"recipe": "adult-19"}))
    ones = np.ones(len(table.features), dtype=np.int64)

    assert largest_itemsets(table.matrix, ones, 5, 20).worths == [8] * 5 + [7] * 15


@pytest.mark.slow
def test_sizes_on_retail_are_those_of_a_complete_listing(shared_data):
    """Wide and sparse: divided by the rarest item."""
    with gzip.open(shared_data / "sparse" / "retail.dat.gz", "rt") as lines:
        rows = [np.array(line.split(), dtype=int) for line in lines]
    indptr = np.cumsum([0, *map(len, rows)])
    X = as_binary_matrix(sp.csr_matrix((np.ones(indptr[-1]), np.concatenate(rows), indptr)))

    found = largest_itemsets(X, np.ones(X.shape[1], dtype=np.int64), 5, 20)

    assert found.proven
    assert found.worths == [17, *[16] * 6, *[15] * 7, 14, 14, *[13] * 4]
