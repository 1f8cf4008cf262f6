"""Scores of sets of columns: folds, measures, trees and other classifiers trained on each fold."""

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import PredefinedSplit, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from sfumato.errors import InvalidParameterError
from sfumato.learning.c45.estimators import C45Classifier
from sfumato.learning.c45.tree import TreeColumn, numeric_column, tree_columns
from sfumato.learning.fold_scores import HeldOut, StrongestScores, folds
from sfumato.learning.trained_scores import ClassifierScores, TreeScores, feature_matrix
from sizes import examples
from waiting import HANGS, until


def all_sets(n_columns):
    return [s for size in range(n_columns + 1) for s in itertools.combinations(range(n_columns), size)]


@given(st.lists(st.integers(0, 3), min_size=2, max_size=60), st.data())
def test_folds_and_classes_in_them_differ_by_one_row_at_most(target, data):
    n_folds = data.draw(st.integers(2, len(target)))
    fold_of_row = folds(target, n_folds, seed=data.draw(st.integers(0, 99)))
    counts = np.zeros((n_folds, 4), dtype=int)
    np.add.at(counts, (fold_of_row, target), 1)

    assert np.ptp(counts.sum(axis=1)) <= 1
    assert np.ptp(counts, axis=0).max() <= 1


def test_folds_depend_on_the_seed_only():
    target = np.arange(100) % 3

    assert folds(target, 10, 5).tolist() == folds(target, 10, 5).tolist()
    assert folds(target, 10, 5).tolist() != folds(target, 10, 6).tolist()


@pytest.mark.parametrize("n_folds", [1, 0, 4, 2.0, True, None])
def test_fewer_rows_than_folds_and_other_numbers_are_refused(n_folds):
    with pytest.raises(InvalidParameterError, match="n_folds must be a whole number of at least 2 and at most 3"):
        folds([0, 1, 1], n_folds)


@st.composite
def evidence_of_rows(draw):
    n_classes, n_folds = draw(st.integers(2, 4)), draw(st.integers(2, 3))
    n_rows = draw(st.integers(n_folds * n_classes, 30))
    target = np.arange(n_rows) // n_folds % n_classes
    shape = st.lists(st.integers(0, 3), min_size=n_rows * n_classes, max_size=n_rows * n_classes)
    weights = np.array(draw(shape), dtype=float).reshape(n_rows, n_classes) + 1
    return target, np.arange(n_rows) % n_folds, weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.slow
@given(evidence_of_rows())
def test_measures_are_scikit_learns(drawn):
    target, fold_of_row, shares = drawn
    areas = HeldOut(target, fold_of_row, "auc").of_evidence(shares)
    balanced = HeldOut(target, fold_of_row, "balanced_accuracy").of_predictions(shares.argmax(axis=1))
    for fold, (area, recall) in enumerate(zip(areas, balanced, strict=True)):
        rows = fold_of_row == fold
        given_shares = shares[rows] if shares.shape[1] > 2 else shares[rows, 1]

        expected = roc_auc_score(target[rows], given_shares, multi_class="ovr", average="weighted")
        assert area == pytest.approx(expected)
        assert recall == pytest.approx(balanced_accuracy_score(target[rows], shares[rows].argmax(axis=1)))


def test_a_class_that_a_fold_lacks_counts_for_nothing():
    target, fold_of_row = np.array([0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 1])

    assert HeldOut(target, fold_of_row, "balanced_accuracy").of_predictions(np.array([0, 1, 1, 1, 0])).tolist() == [
        0.5,
        0.5,
    ]
    assert HeldOut(target, fold_of_row, "auc").of_evidence(np.eye(3)[target]).tolist() == [0.5, 1.0]


@st.composite
def tables(draw):
    """Two categorical and two numeric columns with missing values as a matrix, and folds that may lack classes."""
    n_rows, n_folds = draw(st.integers(4, 40)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    target = rng.integers(0, 3, n_rows)
    X = np.column_stack([rng.integers(0, 4, (n_rows, 2)), rng.integers(0, 9, (n_rows, 2)) + target[:, None]])
    is_missing = rng.random(X.shape) < draw(st.sampled_from([0.0, 0.2]))
    return np.where(is_missing, np.nan, X), target, folds(target, n_folds)


@pytest.mark.slow
@examples(20)
@given(tables())
def test_trees_are_those_of_the_classifier_trained_on_each_fold(table):
    X, target, fold_of_row = table
    trees = TreeScores(tree_columns(X, [0, 1]), target, fold_of_row)
    for chosen in all_sets(4)[1:]:
        expected = []
        for fold in range(trees.n_folds):
            test = fold_of_row == fold
            tree = C45Classifier(categorical_features=[place for place, column in enumerate(chosen) if column < 2])
            tree.fit(X[~test][:, chosen], target[~test])
            expected.append(np.mean(tree.predict(X[test][:, chosen]) == target[test]))

        assert trees.scores(chosen[::-1]).tolist() == expected


@pytest.fixture(scope="module")
def pima(shared_data):
    rows = np.loadtxt(shared_data / "pima" / "pima-indians-diabetes.csv", delimiter=",")
    return rows[:, :-1], rows[:, -1].astype(np.intp)


@pytest.mark.slow
def test_pima_is_predicted_as_well_as_by_weka(pima):
    """73.83 % in the data's README and the paper, within one standard error over the folds; the mean of five seeds."""
    X, target = pima
    columns = tree_columns(X, None)
    found = [TreeScores(columns, target, folds(target, 10, seed)).scores(range(8)) for seed in range(5)]
    standard_error = np.std(found, axis=1, ddof=1).mean() / np.sqrt(10)

    assert abs(np.mean(found) - 0.7383) < standard_error < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["accuracy", "auc"])
def test_the_number_of_workers_makes_no_difference(pima, metric):
    X, target = pima
    columns, fold_of_row = tree_columns(X, None), folds(target, 3)
    alone = TreeScores(columns, target, fold_of_row, metric).without_each([5, 1, 7])
    seen = []
    trees = TreeScores(columns, target, fold_of_row, metric, n_workers=2, progress=lambda *call: seen.append(call))
    together = trees.without_each([5, 1, 7])

    assert seen == [(number, 9, "trees") for number in range(1, 10)]
    assert alone.tolist() == together.tolist()
    assert len(np.unique(alone)) > 3


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 2])
def test_scores_can_be_asked_for_again_after_an_interruption(pima, n_workers):
    X, target = pima
    columns, fold_of_row = tree_columns(X, None), folds(target, 3)
    interruptions = [2]

    def interrupt(done, total, what):
        if done in interruptions:
            interruptions.remove(done)
            raise KeyboardInterrupt

    trees = TreeScores(columns, target, fold_of_row, n_workers=n_workers, progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        trees.without_each([5, 1, 7])

    expected = TreeScores(columns, target, fold_of_row).without_each([5, 1, 7])
    assert trees.without_each([5, 1, 7]).tolist() == expected.tolist()


def test_a_set_without_each_column_is_scored_in_the_order_given(pima):
    X, target = pima
    trees = TreeScores(tree_columns(X, None), target, folds(target, 3))
    without = trees.without_each([5, 1])

    assert without.tolist() == [trees.scores([1]).tolist(), trees.scores([5]).tolist()]
    assert trees.without_each([]).shape == (0, 3)


def test_scores_that_a_caller_changes_are_not_those_kept(pima):
    X, target = pima
    for kept in (
        TreeScores(tree_columns(X, None), target, folds(target, 3)),
        ClassifierScores(X, [[j] for j in range(8)], DecisionTreeClassifier(random_state=0), target, folds(target, 3)),
    ):
        first = kept.scores([1])
        expected = first.tolist()
        first[:] = 0

        assert kept.scores([1]).tolist() == expected


def test_no_column_predicts_the_majority_class():
    target, fold_of_row = np.array([0, 1, 1, 1, 1, 0, 1, 1]), np.arange(8) % 2
    column = TreeColumn(target.astype(np.int32), 2)
    everything = (
        TreeScores([column], target, fold_of_row),
        ClassifierScores(target[:, None], [[0]], KNeighborsClassifier(1), target, fold_of_row),
    )
    for found in everything:
        assert found.scores([]).tolist() == [0.75, 0.75]
        assert found.without_each([0]).tolist() == [[0.75, 0.75]]


INTERRUPTED = """
import numpy as np
from sfumato.learning.c45.tree import TreeColumn
from sfumato.learning.trained_scores import TreeScores
if __name__ == "__main__":
    rng = np.random.default_rng(0)
    n_rows = 30_000
    codes = rng.integers(0, 5_000, (12, n_rows)).astype(np.int32)
    columns = [TreeColumn(column, 5_000, np.arange(5_000.0)) for column in codes]
    trees = TreeScores(columns, rng.integers(0, 2, n_rows), np.arange(n_rows) % 10, n_workers=2)
    print("started", flush=True)
    trees.without_each(range(12))
"""


def running(session):
    """Ids of the processes of a session that have not ended."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, of_process = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(of_process) == session and state != "Z":
            found.append(int(folder.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes where Linux lists them")
def test_ctrl_c_leaves_no_process_and_no_file_behind(tmp_path, hears_ctrl_c):
    program = tmp_path / "program.py"
    program.write_text(INTERRUPTED, encoding="utf-8")
    shared = tmp_path / "shared"
    shared.mkdir()
    process = subprocess.Popen(
        [sys.executable, str(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "JOBLIB_TEMP_FOLDER": str(shared)},
        start_new_session=True,
    )
    assert process.stdout.readline() == b"started\n"
    until(lambda: len(running(process.pid)) >= 4 and any(shared.rglob("*.pkl")))
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=HANGS)
    until(lambda: not running(process.pid) and not any(shared.rglob("*")), 200.0)  # idle workers would live longer

    assert process.returncode != 0
    assert running(process.pid) == []
    assert list(shared.rglob("*")) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("classifier", "metric", "scoring"),
    [
        (KNeighborsClassifier(5), "accuracy", "accuracy"),
        (DecisionTreeClassifier(max_depth=3, random_state=0), "balanced_accuracy", "balanced_accuracy"),
        (KNeighborsClassifier(5), "auc", "roc_auc"),
        (RidgeClassifier(), "auc", "roc_auc"),
    ],
)
def test_any_classifier_scores_as_in_scikit_learns_cross_validation(pima, classifier, metric, scoring):
    X, target = pima
    fold_of_row = folds(target, 4)
    found = ClassifierScores(X, [[0, 1], [5], [7]], classifier, target, fold_of_row, metric)
    for chosen, features in (((0, 2), [0, 1, 7]), ((1,), [5])):
        expected = cross_val_score(classifier, X[:, features], target, cv=PredefinedSplit(fold_of_row), scoring=scoring)

        np.testing.assert_allclose(found.scores(chosen), expected)
    np.testing.assert_allclose(found.without_each([2, 1]), [found.scores([1]), found.scores([2])])


def test_workers_train_classifiers_alike_and_every_training_is_reported(pima):
    X, target = pima
    groups, fold_of_row = [[j] for j in range(8)], folds(target, 3)
    forest = RandomForestClassifier(5, random_state=0)
    alone = ClassifierScores(X, groups, forest, target, fold_of_row, "auc")
    seen = []
    together = ClassifierScores(
        X, groups, forest, target, fold_of_row, "auc", n_workers=2, progress=lambda *call: seen.append(call)
    )

    assert together.without_each([5, 1, 7]).tolist() == alone.without_each([5, 1, 7]).tolist()
    assert seen == [(number, 9, "models") for number in range(1, 10)]
    together.without_each([5, 1, 7])
    assert len(seen) == 9


@pytest.mark.slow
def test_a_class_that_training_lacks_is_never_predicted_and_one_class_needs_no_training():
    target, fold_of_row = np.array([0, 0, 1, 1, 0, 2]), np.array([0, 0, 0, 1, 1, 1])
    X = np.array([[0.0], [0.1], [1.0], [1.1], [0.2], [2.0]])
    found = ClassifierScores(X, [[0]], KNeighborsClassifier(1), target, fold_of_row)
    areas = ClassifierScores(X, [[0]], KNeighborsClassifier(1), target, fold_of_row, "auc")

    np.testing.assert_allclose(found.scores([0]), [1.0, 2 / 3])
    np.testing.assert_allclose(areas.scores([0]), [1.0, (1 + 0.75 + 0.5) / 3])
    one_class = ClassifierScores(X, [[0]], RidgeClassifier(), [0, 0, 0, 1, 1, 1], fold_of_row)
    assert one_class.scores([0]).tolist() == [0.0, 0.0]


def test_numbers_that_are_missing_become_the_median_and_are_marked():
    X, groups = feature_matrix([numeric_column(np.array([1.0, np.nan, 3.0, 9.0])), TreeColumn(np.arange(4), 4)])

    assert X[:, :2].tolist() == [[1, 0], [3, 1], [3, 0], [9, 0]]
    assert X[:, 2:].tolist() == np.eye(4).tolist()
    assert groups == [[0, 1], [2, 3, 4, 5]]


class Fixed:
    """Scores from a table of sets."""

    def __init__(self, table):
        self.table = table
        self.n_columns, self.n_folds = 2, 2

    def scores(self, columns):
        return np.array(self.table[tuple(sorted(columns))], dtype=float)

    def without_each(self, columns):
        return np.array([self.scores([other for other in columns if other != column]) for column in columns])


def test_strongest_attacker_is_that_of_the_best_mean_for_each_set():
    first = Fixed({(): [0.5, 0.5], (0,): [0.9, 0.1], (1,): [0.6, 0.8], (0, 1): [0.7, 0.7]})
    second = Fixed({(): [0.4, 0.6], (0,): [0.6, 0.6], (1,): [0.9, 0.4], (0, 1): [0.6, 0.9]})
    strongest = StrongestScores([first, second])

    assert [strongest.scores(s).tolist() for s in ([], [0], [1], [0, 1])] == [
        [0.5, 0.5], [0.6, 0.6], [0.6, 0.8], [0.6, 0.9],
    ]  # fmt: skip
    assert strongest.without_each([0, 1]).tolist() == [[0.6, 0.8], [0.6, 0.6]]
    assert [strongest.strongest(s) for s in ([], [0], [1], [0, 1])] == [0, 1, 0, 1]
    assert strongest.without_each([]).shape == (0, 2)


def test_attackers_must_exist_and_have_the_same_folds():
    column, target = TreeColumn(np.array([0, 1, 0, 1], dtype=np.int32), 2), [0, 1, 0, 1]
    two, four = TreeScores([column], target, [0, 0, 1, 1]), TreeScores([column], target, [0, 1, 2, 3])
    for attackers in ([], [two, four]):
        with pytest.raises(InvalidParameterError, match="attackers must be one or more"):
            StrongestScores(attackers)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: TreeScores([], [0, 1], [0, 1], n_workers=0), "n_workers"),
        (lambda: ClassifierScores([[0.0], [1.0]], [[0]], None, [0, 1], [0, 1], n_workers=1.5), "n_workers"),
        (lambda: TreeScores([TreeColumn(np.zeros(3, dtype=np.int32), 1)], [0, 1], [0, 1]), "columns"),
        (lambda: TreeScores([], [0, 1], [0, 1], "f1"), "metric"),
        (lambda: ClassifierScores([[0.0]], [[0]], None, [0, 1], [0, 1]), "X"),
        (lambda: ClassifierScores([[0.0], [1.0]], [[1]], None, [0, 1], [0, 1]), "groups"),
        (lambda: TreeScores([], [0, 1], [0, 1]).scores([0]), "columns"),
    ],
)
def test_bad_parameters_are_named(make, named):
    with pytest.raises(InvalidParameterError) as error:
        make()

    assert error.value.name == named
