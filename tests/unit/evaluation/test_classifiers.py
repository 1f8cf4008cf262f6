"""Named classifiers: each learns from encoded cells, with holes, and says the same twice."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from sfumato.errors import InvalidParameterError
from sfumato.evaluation.classifiers import (
    CLASSIFIERS,
    DEFAULT_CLASSIFIERS,
    MOST_INTERVALS,
    Encoded,
    Intervals,
    checked_classifiers,
)
from sfumato.evaluation.scores import held_out_fold


def learnable(n_rows=400, seed=0):
    """Make a class that one number, one share and one hole tell something about, a constant and an empty column."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n_rows) < 0.4).astype(np.int32)
    number = 1000.0 * (y + rng.normal(0, 0.8, n_rows))
    number[rng.random(n_rows) < 0.1 + 0.3 * y] = np.nan
    share = np.where(rng.random(n_rows) < 0.7, y, 0.5)
    return np.column_stack([number, share, np.ones(n_rows), np.full(n_rows, np.nan)]), y


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_each_learns_from_cells_with_holes(name):
    X, y = learnable()

    found = held_out_fold(CLASSIFIERS[name].build(0), (X[:300], y[:300]), (X[300:], y[300:]), 2)

    assert roc_auc_score(y[300:], found.evidence[:, 1]) > 0.85
    assert (found.predicted == y[300:]).mean() > 0.75


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_hole_that_training_did_not_have(name):
    X, y = learnable()
    X = np.nan_to_num(X[:, :3])
    test = X[:2].copy()
    test[:, 0] = np.nan

    found = held_out_fold(CLASSIFIERS[name].build(0), (X, y), (test, y[:2]), 2)

    assert np.isfinite(found.evidence).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("seed", [0, 3])
def test_the_same_seed_says_the_same(name, seed):
    X, y = learnable(120)
    first, again = (held_out_fold(CLASSIFIERS[name].build(seed), (X, y), (X, y), 2).evidence for _ in range(2))

    assert first.tolist() == again.tolist()


def test_seeds_reach_the_forest():
    X, y = learnable(120)
    first, other = (
        held_out_fold(CLASSIFIERS["random-forest"].build(seed), (X, y), (X, y), 2).evidence for seed in (0, 1)
    )

    assert first.tolist() != other.tolist()


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_each_is_built_anew_with_its_name(name):
    assert CLASSIFIERS[name].name == name
    assert CLASSIFIERS[name].build() is not CLASSIFIERS[name].build()
    assert name in DEFAULT_CLASSIFIERS


@pytest.mark.parametrize("wrong", ["c45", [], ["c45", "c45"], ["c54"], [None], [3]])
def test_what_is_no_list_of_known_names_is_refused(wrong):
    with pytest.raises(InvalidParameterError, match="classifiers must be one or more of logistic-regression, naive"):
        checked_classifiers(wrong)


numbers = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(-1e6, 1e6), st.just(math.nan))


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=40))
def test_one_interval_of_each_column(rows):
    """Every cell of the fitted rows is in one interval; larger numbers are in no lower one."""
    found = Intervals().fit(rows)
    one_hot = found.transform(rows).toarray()

    assert one_hot.sum(axis=1).tolist() == [2.0] * len(rows)
    first = 0
    for column, limits, has_missing in zip(np.array(rows).T, found.limits_, found.has_missing_, strict=True):
        width = len(limits) + 1 + has_missing
        place = one_hot[:, first : first + width].argmax(axis=1)
        known = ~np.isnan(column)
        assert len(limits) < MOST_INTERVALS
        assert has_missing == (not known.all())
        assert (place[~known] == len(limits) + 1).all()
        in_order = place[known][np.argsort(column[known], kind="stable")]
        assert (np.diff(in_order) >= 0).all()
        if len(np.unique(column[known])) <= MOST_INTERVALS:
            assert len(np.unique(place[known])) == len(np.unique(column[known]))
        first += width


def test_naive_bayes_is_the_categorical_one():
    """Compare with counting by hand: prior times the product of smoothed shares, holes a value of their own."""
    X = np.array([[0, 1.0], [0, np.nan], [1, 2.0], [1, 1.0], [1, 2.0], [0, 2.0]])
    y = np.array([0, 0, 1, 1, 1, 0], dtype=np.int32)
    values = [[0, 1], [1.0, 2.0, None]]

    found = held_out_fold(CLASSIFIERS["naive-bayes"].build(), (X, y), (X, y), 2).evidence

    n_values = sum(map(len, values))
    for row, evidence in zip(X, found, strict=True):
        posterior = []
        for c in (0, 1):
            likelihood = (y == c).mean()
            for column, cell in enumerate(row):
                same = np.isnan(X[:, column]) if np.isnan(cell) else X[:, column] == cell
                likelihood *= ((same & (y == c)).sum() + 1) / ((y == c).sum() * 2 + n_values)
            posterior.append(likelihood)
        assert evidence == pytest.approx(np.array(posterior) / sum(posterior))


def test_naive_bayes_takes_shares_as_evidence_for_one_value():
    """A column without order, written as shares of its three values, counts once and not three times."""
    jobs, y = np.array([0, 0, 1, 1, 2, 2, 2, 0]), np.array([0, 0, 0, 1, 1, 1, 1, 1], dtype=np.int32)
    X = np.eye(3)[jobs]
    both = np.array([[0.5, 0.5, 0.0]])
    classifier = CLASSIFIERS["naive-bayes"].build(0, Encoded(np.ones(3, dtype=np.bool_), np.zeros(3, dtype=np.bool_)))

    found = held_out_fold(classifier, (X, y), (np.vstack([X, both]), np.append(y, 0)), 2).evidence

    shares = np.array([[((jobs == j) & (y == c)).sum() + 1 for j in range(3)] for c in (0, 1)])
    shares = shares / shares.sum(axis=1, keepdims=True)
    prior = np.array([3 / 8, 5 / 8])
    expected = [*(prior * shares[:, j] for j in jobs), prior * np.sqrt(shares[:, 0] * shares[:, 1])]
    assert found == pytest.approx(np.array([row / row.sum() for row in expected]))
