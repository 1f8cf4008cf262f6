"""Cross-fitted scores: honest, whatever the order of rows, and sensible where there is little to learn from."""

import numpy as np
import pytest

from sfumato.learning import cross_fitted
from sfumato.learning.c45.tree import TreeColumn
from sfumato.learning.cross_fitted import class_scores, quantity_scores


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch):
    """Boost for fewer rounds, which is enough for what is tested."""
    monkeypatch.setattr(cross_fitted, "N_ROUNDS", 10)


def numbers(values):
    """Numeric column; not-a-number is missing."""
    values = np.asarray(values, dtype=np.float64)
    known = np.unique(values[~np.isnan(values)])
    codes = np.where(np.isnan(values), -1, np.searchsorted(known, values))
    return TreeColumn(codes.astype(np.int32), len(known), known)


def words(codes):
    """Categorical column by its codes."""
    codes = np.asarray(codes, dtype=np.int32)
    return TreeColumn(codes, int(codes.max(initial=-1)) + 1)


def taken(columns, rows):
    return [TreeColumn(column.codes[rows], column.n_values, column.numbers) for column in columns]


@pytest.fixture(scope="module")
def telling():
    """Draw a number and a word that say something about three classes; with the log-odds behind them."""
    rng = np.random.default_rng(5)
    x, word = rng.normal(size=240).round(1), rng.integers(0, 4, 240)
    odds = np.column_stack([np.zeros(240), 2 * x, (word == 1) * 2.0 - x])
    chances = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    classes = (rng.random((240, 1)) > chances.cumsum(axis=1)).sum(axis=1)
    x[::17] = np.nan
    return [numbers(x), words(np.where(word == 3, -1, word))], classes, odds - odds.mean(axis=1, keepdims=True)


def test_every_class_has_a_score_that_follows_its_log_odds(telling):
    """Centred, so that a row's scores add up to nothing where none is cut off."""
    columns, classes, odds = telling
    scores = class_scores(columns, classes)

    assert scores.shape == (240, 3)
    assert np.abs(scores).max() <= cross_fitted.LARGEST_SCORE
    assert [np.corrcoef(scores[:, c], odds[:, c])[0, 1] > 0.7 for c in range(3)] == [True] * 3
    assert np.allclose(scores.sum(axis=1), 0, atol=1e-9)


@pytest.mark.slow
def test_scores_do_not_depend_on_the_order_of_rows_nor_on_how_equal_rows_are_counted(telling):
    """To the last bit: folds are dealt out along the values, and equal rows have one score."""
    columns, classes, _ = telling
    order = np.random.default_rng(1).permutation(240)
    scores = class_scores(columns, classes)
    cells = np.column_stack([*(column.codes for column in columns), classes])
    _, first, of_row, counts = np.unique(cells, axis=0, return_index=True, return_inverse=True, return_counts=True)

    assert np.array_equal(class_scores(taken(columns, order), classes[order]), scores[order])
    assert np.array_equal(class_scores(taken(columns, first), classes[first], weights=counts)[of_row.ravel()], scores)


@pytest.mark.slow
def test_another_seed_gives_other_scores_and_the_same_seed_the_same(telling, monkeypatch):
    """Nothing else is random."""
    columns, classes, _ = telling

    scores = class_scores(columns, classes)

    assert np.array_equal(class_scores(columns, classes), scores)
    monkeypatch.setattr(cross_fitted, "SEED", 1)
    assert not np.array_equal(class_scores(columns, classes), scores)


def test_labels_that_nothing_predicts_leave_the_score_without_a_trace_of_them():
    """A model that had seen the rows would tell their classes apart, since all rows differ."""
    rng = np.random.default_rng(3)
    columns, classes = [numbers(rng.normal(size=300)) for _ in range(3)], rng.integers(0, 2, 300)
    score = class_scores(columns, classes)[:, 0]

    assert abs(np.corrcoef(score, classes)[0, 1]) < 0.2


def test_a_row_does_not_see_its_own_label():
    """Rows of both classes at one place, far from all others: the score is that of the place, for both the same."""
    x = np.repeat(np.arange(12.0), 20)
    classes = np.tile([0, 1], 120)
    scores = class_scores([numbers(x)], classes)

    assert [len(np.unique(scores[x == place])) for place in range(12)] == [1] * 12


@pytest.mark.parametrize(
    "classes",
    [np.zeros(60, int), np.arange(60) // 59, np.arange(60), np.array([], int), np.array([0, 1, 0])],
    ids=["one class", "one row of the other", "all different", "no rows", "three rows"],
)
def test_nothing_to_learn_gives_no_score(classes):
    """One class, or too few rows of all but one: all rows are alike."""
    scores = class_scores([numbers(np.arange(len(classes)) % 7.0)], classes)

    assert scores.shape == (len(classes), 1)
    assert not scores.any()


@pytest.mark.slow
def test_rare_classes_count_as_one_and_very_rare_ones_are_not_learned(monkeypatch):
    """Two frequent ones, and others with fewer rows than folds need; and more classes than have a score."""
    monkeypatch.setattr(cross_fitted, "N_ROUNDS", 2)
    x = np.tile(np.arange(4.0), 30)
    few = np.repeat([0, 1, 2, 3, 4], [50, 50, 7, 7, 6])
    fewer = np.repeat([0, 1, 2, 3], [58, 58, 2, 2])

    assert class_scores([numbers(x)], few).shape == (120, 3)
    assert class_scores([numbers(x)], fewer).shape == (120, 1)
    assert class_scores([numbers(np.arange(300) % 9.0)], np.arange(300) % 25).shape == (300, cross_fitted.MOST_CLASSES)


@pytest.mark.parametrize(
    "column",
    [
        numbers(np.full(80, np.nan)),
        words(np.full(80, -1)),
        numbers(np.full(80, 3.0)),
        words(np.arange(80)),
        numbers(1.7e308 * np.linspace(-1, 1, 80)),
        numbers(np.where(np.arange(80) % 2, np.nan, 1e-300 * np.arange(80))),
    ],
    ids=["no number", "no word", "constant", "all different", "very far apart", "tiny and missing"],
)
def test_columns_that_are_hard_to_learn_from_give_finite_scores(column):
    """No warning either, which the tests would take for an error."""
    classes = np.arange(80) // 40
    scores = class_scores([column], classes)

    assert np.isfinite(scores).all()
    assert np.isfinite(quantity_scores([column], 1e200 * classes)).all()


def test_a_quantity_is_scored_by_what_is_expected_of_it():
    """Numbers as large as a double holds, scored in standard deviations within their range."""
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, 200)
    numbers_of_rows = (x + rng.normal(0, 0.3, 200)) * 1e307
    scores = quantity_scores([numbers(x)], numbers_of_rows)

    assert scores.shape == (200, 1)
    assert np.corrcoef(scores[:, 0], x)[0, 1] > 0.9
    assert not quantity_scores([numbers(x)], np.full(200, 7.0)).any()
    assert not quantity_scores([numbers(x[:8])], x[:8]).any()


def test_of_many_columns_the_telling_ones_are_learned_from(monkeypatch):
    """Chosen in the rows that are trained on, by numbers or by words."""
    monkeypatch.setattr(cross_fitted, "MOST_COLUMNS", 2)
    rng = np.random.default_rng(6)
    x, word = rng.normal(size=200), rng.integers(0, 3, 200)
    classes = (x + (word == 1) + rng.normal(0, 0.3, 200) > 0.5).astype(int)
    noise = [numbers(rng.normal(size=200)) for _ in range(5)] + [words(rng.integers(0, 90, 200)) for _ in range(5)]
    columns = [*noise[:3], numbers(x), *noise[3:], words(word)]
    kept = cross_fitted._telling(columns, np.arange(200), classes)

    assert [id(column) for column in kept] == [id(columns[3]), id(columns[-1])]
    assert np.corrcoef(class_scores(columns, classes)[:, 0], x + (word == 1))[0, 1] > 0.8


def test_models_are_trained_on_a_stated_number_of_rows_and_all_rows_get_a_score(monkeypatch):
    """A limit that leaves enough to learn from."""
    monkeypatch.setattr(cross_fitted, "MOST_TRAINING_ROWS", 100)
    x = np.tile(np.arange(10.0), 40)
    scores = class_scores([numbers(x)], (x > 4).astype(int))

    assert (scores[x > 4] > 0.5).all()
    assert (scores[x < 5] < -0.5).all()
