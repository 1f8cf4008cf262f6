"""Agreement with Weka's J48 on public tables.

The figures for Pima and CMC (Weka 3.6) are in the data's README; those for Adult are what J48 of Weka 3.9.7 printed,
and the trees were compared with its text line by line.
"""

import numpy as np
import pandas as pd
import pytest

from sfumato.learning.c45.estimators import C45Classifier

CMC_NOMINAL = [1, 2, 4, 5, 6, 7, 8]


@pytest.fixture(scope="module")
def pima(shared_data):
    rows = np.loadtxt(shared_data / "pima" / "pima-indians-diabetes.csv", delimiter=",")
    return rows[:, :-1], rows[:, -1]


@pytest.fixture(scope="module")
def cmc(shared_data):
    rows = np.loadtxt(shared_data / "cmc" / "cmc.data", delimiter=",")
    return rows[:, :-1], rows[:, -1]


def test_pima_tree_is_that_of_j48(pima):
    tree = C45Classifier().fit(*pima)

    assert (tree.get_n_leaves(), tree.n_nodes_, (tree.predict(pima[0]) == pima[1]).sum()) == (20, 39, 646)


def test_cmc_tree_is_that_of_j48(cmc):
    tree = C45Classifier(categorical_features=CMC_NOMINAL).fit(*cmc)

    assert (tree.get_n_leaves(), tree.n_nodes_, (tree.predict(cmc[0]) == cmc[1]).sum()) == (157, 263, 1048)


@pytest.fixture(scope="module")
def adult(shared_data):
    parts = [
        pd.read_csv(shared_data / "adult" / name, header=None, skiprows=skip, skipinitialspace=True, na_values="?")
        for name, skip in (("adult.data", 0), ("adult.test", 1))
    ]
    return pd.concat(parts, ignore_index=True).rename(columns=str)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("is_complete", "pruned", "n_leaves", "n_nodes", "n_right"),
    [
        (True, True, 817, 1072, 39639),
        (True, False, 8188, 9700, 41029),
        (False, True, 696, 911, 42803),
        (False, False, 9129, 10657, 44223),
    ],
)
def test_adult_tree_is_that_of_j48(adult, is_complete, pruned, n_leaves, n_nodes, n_right):
    rows = adult.dropna() if is_complete else adult
    X, y = rows.drop(columns="14"), rows["14"].str.rstrip(".")
    tree = C45Classifier(pruned=pruned).fit(X, y)

    assert (tree.get_n_leaves(), tree.n_nodes_, (tree.predict(X) == y).sum()) == (n_leaves, n_nodes, n_right)


def java_random(seed):
    """Return java.util.Random's nextInt."""
    state = (seed ^ 0x5DEECE66D) & (2**48 - 1)

    def draw(limit):
        nonlocal state
        while True:
            state = (state * 0x5DEECE66D + 0xB) & (2**48 - 1)
            bits = state >> 17
            if limit & (limit - 1) == 0:
                return limit * bits >> 31
            if bits - bits % limit + limit - 1 < 2**31:
                return bits % limit

    return draw


def weka_folds(labels, n_folds, seed):
    """Divide rows as Weka's Instances.randomize, stratify and testCV do."""
    draw, order = java_random(seed), list(range(len(labels)))
    for j in range(len(order) - 1, 0, -1):
        i = draw(j + 1)
        order[i], order[j] = order[j], order[i]
    place = 1
    while place < len(order):
        label = labels[order[place - 1]]
        for j in range(place, len(order)):
            if labels[order[j]] == label:
                order[place], order[j] = order[j], order[place]
                place += 1
        place += 1
    order = [order[i] for start in range(n_folds) for i in range(start, len(order), n_folds)]
    sizes = [len(order) // n_folds + (fold < len(order) % n_folds) for fold in range(n_folds)]
    return np.split(np.array(order), np.cumsum(sizes)[:-1])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "categorical", "percent"), [("pima", None, 73.83), ("cmc", CMC_NOMINAL, 52.1)])
def test_ten_fold_accuracy_is_that_of_j48_on_the_same_folds(name, categorical, percent, request):
    X, y = request.getfixturevalue(name)
    n_right = 0
    for fold in weka_folds(y.tolist(), 10, seed=1):
        rest = np.setdiff1d(np.arange(len(y)), fold)
        tree = C45Classifier(categorical_features=categorical).fit(X[rest], y[rest])
        n_right += int((tree.predict(X[fold]) == y[fold]).sum())

    assert 100 * n_right / len(y) == pytest.approx(percent, abs=0.05)
