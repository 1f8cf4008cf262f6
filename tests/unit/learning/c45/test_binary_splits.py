"""Binary splits: one value against the rest, judged by enumeration, by definition and by scikit-learn's trees."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from sfumato.errors import InvalidParameterError
from sfumato.learning.c45.criteria import Entropy, PlainGain, Variance
from sfumato.learning.c45.descent import shares_of_leaves
from sfumato.learning.c45.estimators import C45Classifier, C45Regressor
from sfumato.learning.c45.grow import grow
from sfumato.learning.c45.tree import TreeColumn, numeric_column, route

COLOURS = ["red", "green", "blue", "grey"]


def categorical(codes, n_values):
    return TreeColumn(np.array(codes, dtype=np.int32), n_values)


def entropy_of(labels):
    counts = np.bincount(labels)
    shares = counts[counts > 0] / len(labels)
    return float(-(shares * np.log2(shares)).sum() * len(labels))


def squares_of(numbers):
    return float(((numbers - numbers.mean()) ** 2).sum())


def best_of_all_binary_splits(columns, targets, impurity, min_leaf):
    """Greatest fall of impurity over all values against the rest, and all splits that reach it."""
    falls = {}
    for number, codes in enumerate(columns):
        for value in np.unique(codes).tolist():
            own = codes == value
            if min(own.sum(), (~own).sum()) >= min_leaf:
                falls[number, value] = impurity(targets) - impurity(targets[own]) - impurity(targets[~own])
    greatest = max(falls.values(), default=0.0)
    return greatest, [split for split, fall in falls.items() if fall >= greatest - 1e-9]


@pytest.mark.parametrize(
    ("criterion", "impurity"), [(PlainGain(3), entropy_of), (Variance(), squares_of)], ids=["classes", "numbers"]
)
@given(data=st.data())
def test_every_split_is_the_best_of_all_values_against_the_rest(criterion, impurity, data):
    n_rows = data.draw(st.integers(1, 25))
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    codes = [np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=n_rows, max_size=n_rows))) for n in sizes]
    targets = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n_rows, max_size=n_rows)))
    min_leaf = data.draw(st.integers(1, 3))
    columns = [categorical(own, n) for own, n in zip(codes, sizes, strict=True)]
    tree = grow(columns, criterion.statistics(targets), criterion, min_leaf=min_leaf, splits="binary")
    rows_at = {0: np.arange(n_rows)}

    for node in range(tree.n_nodes):
        rows = rows_at[node]
        greatest, best = best_of_all_binary_splits([own[rows] for own in codes], targets[rows], impurity, min_leaf)
        if tree.attribute[node] == -1:
            assert greatest == pytest.approx(0, abs=1e-9) or len(rows) < 2 * min_leaf
            continue
        assert (tree.attribute[node], tree.threshold[node]) in best
        is_own = codes[tree.attribute[node]][rows] == tree.threshold[node]
        first, second = tree.children(node).tolist()
        rows_at[first], rows_at[second] = rows[is_own], rows[~is_own]
        assert tree.weights[[first, second]].tolist() == [is_own.sum(), (~is_own).sum()]
    leaves = route(tree, columns)
    assert all((leaves[rows] == node).all() for node, rows in rows_at.items() if tree.attribute[node] == -1)


def labelled_table(seed, n_rows):
    """Two categorical columns and a number, none of which tells the class alone."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(5, size=n_rows), rng.integers(4, size=n_rows)
    number = rng.normal(size=n_rows)
    score = rng.normal(size=5)[first] + rng.normal(size=4)[second] * number + 0.3 * rng.normal(size=n_rows)
    return first, second, number, score


def one_hot(first, second, number):
    return np.column_stack([np.eye(5)[first], np.eye(4)[second], number])


def partition(leaves):
    return {tuple(np.flatnonzero(leaves == leaf).tolist()) for leaf in np.unique(leaves)}


@pytest.mark.parametrize("seed", range(5))
def test_by_plain_gain_the_tree_is_that_of_scikit_learn_on_one_hot_columns(seed):
    """Nodes are large enough that no two splits gain the same; between such scikit-learn draws lots."""
    first, second, number, score = labelled_table(seed, 4_000)
    labels = np.digitize(score, [-0.5, 0.7])
    columns = [categorical(first, 5), categorical(second, 4), numeric_column(number)]
    tree = grow(columns, PlainGain(3).statistics(labels), PlainGain(3), max_depth=4, splits="binary")
    peer = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2, max_depth=4, random_state=0)
    peer.fit(one_hot(first, second, number), labels)

    assert tree.n_leaves == peer.get_n_leaves() > 10
    assert partition(route(tree, columns)) == partition(peer.apply(one_hot(first, second, number)))


@pytest.mark.parametrize("seed", range(5))
def test_for_numbers_the_tree_is_that_of_scikit_learn_on_one_hot_columns(seed):
    first, second, number, score = labelled_table(seed, 400)
    columns = [categorical(first, 5), categorical(second, 4), numeric_column(number)]
    tree = grow(columns, Variance().statistics(score), Variance(), splits="binary")
    peer = DecisionTreeRegressor(min_samples_leaf=2, random_state=0).fit(one_hot(first, second, number), score)
    shallow = grow(columns, Variance().statistics(score), Variance(), max_depth=6, splits="binary")
    shallow_peer = DecisionTreeRegressor(min_samples_leaf=2, max_depth=6, random_state=0)
    shallow_peer.fit(one_hot(first, second, number), score)

    assert tree.n_leaves == pytest.approx(peer.get_n_leaves(), rel=0.02)  # pairs of rows may tie at the bottom
    assert partition(route(shallow, columns)) == partition(shallow_peer.apply(one_hot(first, second, number)))


def test_two_values_are_split_alike_in_both_ways():
    codes = [0, 1] * 20
    labels = np.array([0, 1, 0, 1, 0, 0] * 6 + [1, 1, 0, 1])
    columns = [categorical(codes, 2), numeric_column(np.arange(40.0) % 7)]
    two_ways = [grow(columns, Entropy(2).statistics(labels), Entropy(2), splits=w) for w in ("multiway", "binary")]

    assert two_ways[0].statistics.tolist() == two_ways[1].statistics.tolist()
    assert two_ways[0].attribute.tolist() == two_ways[1].attribute.tolist()


def test_a_column_is_split_again_below_its_rest():
    codes = np.repeat([0, 1, 2], 10)
    tree = grow([categorical(codes, 3)], Entropy(3).statistics(codes), Entropy(3), splits="binary")

    assert tree.attribute.tolist() == [0, -1, 0, -1, -1]
    assert tree.threshold[[0, 2]].tolist() == [0, 1]
    assert tree.weights.tolist() == [30, 10, 20, 10, 10]


def test_a_value_that_a_node_has_not_seen_belongs_to_the_rest_and_an_unknown_one_to_the_heavier_side():
    codes = np.repeat([0, 1], [10, 5])
    column = categorical(codes, 4)
    tree = grow([column], Entropy(2).statistics(codes), Entropy(2), splits="binary")

    assert tree.threshold[0] == 0
    assert route(tree, [categorical([0, 1, 2, 3, -1], 4)]).tolist() == [1, 2, 2, 2, 1]


def test_a_missing_value_goes_to_both_sides_in_the_shares_of_the_known_ones():
    column = categorical([0, 0, 0, 1, 2, 2, -1], 3)
    tree = grow([column], Entropy(2).statistics([0, 0, 0, 1, 1, 1, 0]), Entropy(2), min_leaf=1, splits="binary")

    assert tree.statistics.tolist() == [[4, 3], [3.5, 0], [0.5, 3]]
    reached = shares_of_leaves(tree, [categorical([-1], 3)])
    assert dict(zip(reached.nodes.tolist(), reached.shares.tolist(), strict=True)) == {1: 0.5, 2: 0.5}


@given(
    st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 2), st.integers(0, 2)), min_size=1, max_size=40),
    st.sampled_from([Entropy(3), PlainGain(3)]),
)
def test_hard_leaves_hold_the_rows_that_are_routed_to_them_and_none_is_empty(rows, criterion):
    first, second, labels = (np.array(part) for part in zip(*rows, strict=True))
    columns = [categorical(first, 4), categorical(second, 3)]
    tree = grow(columns, criterion.statistics(labels), criterion, min_leaf=1, missing="heaviest", splits="binary")
    leaves = route(tree, columns)

    assert (tree.weights > 0).all()
    for leaf in np.flatnonzero(tree.attribute == -1).tolist():
        assert tree.statistics[leaf].tolist() == np.bincount(labels[leaves == leaf], minlength=3).tolist()


@given(st.permutations(range(4)), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), min_size=2, max_size=30))
def test_names_of_values_do_not_matter_but_for_ties(order, rows):
    codes, labels = (np.array(part) for part in zip(*rows, strict=True))
    criterion, errors = Entropy(2), []
    for own in (codes, np.array(order)[codes]):
        tree = grow([categorical(own, 4)], criterion.statistics(labels), criterion, min_leaf=1, splits="binary")
        leaves = tree.statistics[tree.attribute == -1]
        errors.append(sum(entropy_of(np.repeat([0, 1], leaf.astype(int))) for leaf in leaves))

    assert errors[0] == pytest.approx(errors[1], abs=1e-9)  # fully grown, every value is apart where it helps


@pytest.fixture
def frame():
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"colour": rng.choice(COLOURS, 300), "size": rng.normal(size=300)})
    y = np.where(X["colour"].eq("blue") | (X["colour"].eq("red") & (X["size"] > 0.5)), "yes", "no")
    return X, y


def test_the_classifier_draws_a_binary_tree_as_weka_does():
    X = pd.DataFrame({"colour": ["blue"] * 20 + ["red"] * 12 + ["grey", "green"] * 10, "size": [1, 2, 3, 4] * 13})
    y = np.where(X["colour"].eq("blue") | (X["colour"].eq("red") & (X["size"] > 2)), "yes", "no")
    tree = C45Classifier(splits="binary").fit(X, y)

    assert tree.describe().splitlines()[:5] == [
        "colour = blue: yes (20.0)",
        "colour != blue",
        "|   colour = red",
        "|   |   size <= 2: no (6.0)",
        "|   |   size > 2: yes (6.0)",
    ]
    assert (tree.predict(X) == y).all()


def test_a_category_that_was_not_learned_counts_as_missing(frame):
    tree = C45Classifier(splits="binary").fit(*frame)
    unseen = pd.DataFrame({"colour": ["mauve"], "size": [0.0]})

    shares = tree.predict_proba(unseen)[0]
    blue = (frame[0]["colour"] == "blue").mean()
    assert shares[1] == pytest.approx(blue)


def test_the_regressor_splits_values_off(frame):
    numbers = frame[0]["colour"].map(dict(zip(COLOURS, [0.0, 0.0, 5.0, 1.0], strict=True))).to_numpy()
    tree = C45Regressor(splits="binary").fit(frame[0][["colour"]], numbers)

    assert (tree.get_n_leaves(), tree.get_depth()) == (3, 2)
    assert tree.predict(frame[0][["colour"]]).tolist() == pytest.approx(numbers.tolist())


@pytest.mark.parametrize("estimator", [C45Classifier, C45Regressor])
def test_other_ways_to_split_are_refused(frame, estimator):
    with pytest.raises(InvalidParameterError, match="splits"):
        estimator(splits="ternary").fit(frame[0], np.arange(300))
    with pytest.raises(InvalidParameterError, match="splits"):
        grow([categorical([0, 1], 2)], Entropy(2).statistics([0, 1]), Entropy(2), splits="ternary")


def test_every_subset_of_two_classes_is_reached_by_values_split_off_one_after_the_other():
    """Four values of which two are of each class: no single value parts them, two splits do."""
    for chosen in itertools.combinations(range(4), 2):
        codes = np.repeat(np.arange(4), 6)
        labels = np.isin(codes, chosen).astype(int)
        tree = grow([categorical(codes, 4)], Entropy(2).statistics(labels), Entropy(2), splits="binary")

        assert tree.statistics[tree.attribute == -1].min(axis=1).max() == 0
        assert math.isclose(tree.weights[tree.attribute == -1].sum(), 24)
