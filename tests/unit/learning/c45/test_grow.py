"""Growth: what is split, where, and what happens with missing values and degenerate columns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameterError
from sfumato.learning.c45.criteria import Entropy, Several, Variance
from sfumato.learning.c45.grow import grow
from sfumato.learning.c45.tree import TreeColumn, numeric_column, route


def categorical(codes, n_values):
    return TreeColumn(np.array(codes, dtype=np.int32), n_values)


def numeric(values):
    return numeric_column(np.array(values, dtype=np.float64))


def grown(columns, labels, **options):
    criterion = Entropy(max(labels) + 1)
    return grow(columns, criterion.statistics(labels), criterion, **options)


def test_a_categorical_split_has_a_child_for_every_value_also_for_one_without_rows():
    tree = grown([categorical([0, 0, 0, 2, 2, 2], 4)], [0, 0, 0, 1, 1, 1])

    assert tree.weights.tolist() == [6, 3, 0, 3, 0]
    assert tree.attribute.tolist() == [0, -1, -1, -1, -1]


def test_threshold_is_a_number_of_the_whole_data_and_the_cut_the_middle_in_the_node():
    """Below the first split the node's own neighbours are 2 and 10; 5 lies in the other branch."""
    group = categorical([0] * 6 + [1] * 5, 2)
    size = numeric([1, 1, 2, 10, 11, 11, 5, 5, 5, 5, 5])
    tree = grown([group, size], [0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2])

    assert tree.attribute.tolist() == [0, 1, -1, -1, -1]
    assert tree.threshold[1] == 5
    assert tree.cut[1] == 6


def test_rows_with_a_missing_value_are_divided_like_the_known_ones():
    tree = grown([categorical([0, 0, 0, 1, 1, -1], 2)], [0, 0, 0, 1, 1, 0])

    assert tree.statistics.tolist() == [[4, 2], pytest.approx([3.6, 0]), pytest.approx([0.4, 2])]


def test_rows_with_a_missing_value_go_whole_to_the_heaviest_child():
    tree = grown([categorical([0, 0, 0, 1, 1, -1], 2)], [0, 0, 0, 1, 1, 0], missing="heaviest")

    assert tree.statistics.tolist() == [[4, 2], [4, 0], [0, 2]]


def test_of_equally_heavy_children_the_first_gets_the_rows_with_a_missing_value():
    tree = grown([categorical([0, 0, 1, 1, -1], 2)], [0, 0, 1, 1, 1], missing="heaviest")

    assert tree.weights.tolist() == [5, 3, 2]


@given(
    st.lists(st.tuples(st.integers(-1, 2), st.none() | st.integers(0, 5), st.integers(0, 2)), min_size=1, max_size=40)
)
def test_hard_leaves_hold_the_rows_that_are_routed_to_them(rows):
    columns = [categorical([row[0] for row in rows], 3), numeric([np.nan if r[1] is None else r[1] for r in rows])]
    labels = np.array([row[2] for row in rows])
    criterion = Entropy(3)
    tree = grow(columns, criterion.statistics(labels), criterion, min_leaf=1, missing="heaviest")
    leaves = route(tree, columns)

    for leaf in np.flatnonzero(tree.attribute == -1).tolist():
        assert tree.statistics[leaf].tolist() == np.bincount(labels[leaves == leaf], minlength=3).tolist()


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=20),
    st.integers(2, 3),
)
def test_a_row_of_weight_n_counts_as_n_rows(rows, times):
    numbers, codes, labels = (list(part) for part in zip(*rows, strict=True))
    criterion = Entropy(2)
    weighted = grow([numeric(numbers), categorical(codes, 2)], times * criterion.statistics(labels), criterion)
    repeated = grow(
        [numeric(numbers * times), categorical(codes * times, 2)], criterion.statistics(labels * times), criterion
    )

    assert weighted.attribute.tolist() == repeated.attribute.tolist()
    assert weighted.statistics.tolist() == repeated.statistics.tolist()


def test_rows_without_weight_are_left_out():
    criterion = Entropy(2)
    statistics = criterion.statistics([0, 0, 1, 1, 1, 1]) * np.array([1, 1, 1, 1, 0, 0])[:, None]
    tree = grow([numeric([1, 2, 8, 9, 3, 3])], statistics, criterion)

    assert tree.weights.tolist() == [4, 2, 2]
    assert tree.cut[0] == 5


@pytest.mark.parametrize(
    "column",
    [
        categorical([0] * 6, 1),
        categorical([-1] * 6, 0),
        categorical([0, 1, 2, 3, 4, 5], 6),
        numeric([7.0] * 6),
        numeric([np.nan] * 6),
    ],
    ids=["one category", "no category", "a category a row", "one number", "no number"],
)
def test_a_column_that_tells_nothing_gives_a_single_leaf(column):
    tree = grown([column], [0, 1, 0, 1, 0, 1])

    assert tree.n_nodes == 1
    assert tree.statistics.tolist() == [[3, 3]]


def test_no_columns_and_no_rows_give_a_single_leaf():
    criterion = Entropy(2)

    assert grown([], [0, 1, 1]).weights.tolist() == [3]
    assert grow([], np.zeros((0, 2)), criterion).weights.tolist() == [0]


def test_a_column_with_many_values_does_not_count_for_the_average_gain():
    """Else the average would lie above the gain of the two useful columns, and the many values would win."""
    name = categorical([0, 0, 1, 1, 2, 2, 3, 3], 4)
    useful = categorical([0, 0, 0, 0, 1, 1, 1, 0], 2)
    labels = [0, 0, 0, 0, 1, 1, 1, 1]

    assert grown([name, useful], labels).attribute[0] == 1
    assert grown([name], labels).attribute[0] == 0


def test_a_cut_pays_for_its_choice_among_many():
    """The same halves of the rows: as the only cut they are worth a split, as one of many they are not."""
    labels = [0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1]

    assert grown([numeric([0] * 10 + [1] * 10)], labels).n_nodes == 3
    assert grown([numeric(range(20))], labels).n_nodes == 1


@pytest.mark.parametrize(
    ("n_rows", "n_left", "is_cut_there"),
    [(100, 4, False), (100, 5, True), (2000, 24, False), (2000, 25, True), (30, 2, True), (30, 1, False)],
)
def test_sides_of_a_cut_have_a_tenth_of_an_average_class_but_25_at_most_and_2_at_least(n_rows, n_left, is_cut_there):
    labels = [0] * n_left + [1] * (n_rows - n_left)
    tree = grown([numeric(range(n_rows))], labels)

    assert (tree.n_nodes > 1 and tree.threshold[0] == n_left - 1) == is_cut_there


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_the_unit_of_a_number_makes_no_difference(unit):
    tree = grown([numeric([unit * x for x in (1, 2, 3, 7, 8, 9)])], [0, 0, 0, 1, 1, 1])

    assert tree.threshold[0] == 3 * unit


def test_numbers_nearer_than_a_hundred_thousandth_are_not_told_apart():
    assert grown([numeric([0, 0, 4, 4, 4 + 5e-6, 4 + 5e-6])], [0, 0, 0, 0, 1, 1]).threshold[0] == 0


def test_neighbouring_floats_are_cut_at_the_smaller_one():
    low = 1e16
    tree = grown([numeric([low, low, low + 2, low + 2])], [0, 0, 1, 1])

    assert tree.threshold[0] == tree.cut[0] == low
    assert tree.weights.tolist() == [4, 2, 2]


def naive_variance_split(columns, target, min_leaf):
    """Return the column and the groups of rows of the split with the least squared deviations."""

    def squares(group):
        return sum((target[i] - np.mean([target[j] for j in group])) ** 2 for i in group) if group else 0.0

    best = (squares(range(len(target))) - 1e-9, None, None)
    for number, values in enumerate(columns):
        options = (
            [[[i for i, v in enumerate(values) if v == code] for code in range(3)]]
            if number == 0
            else [
                [[i for i, v in enumerate(values) if v <= cut], [i for i, v in enumerate(values) if v > cut]]
                for cut in sorted(set(values))[:-1]
            ]
        )
        for groups in options:
            large = [len(group) >= min_leaf for group in groups]
            left = sum(squares(group) for group in groups)
            if (sum(large) >= 2 if number == 0 else all(large)) and left < best[0] - 1e-9:
                best = (left, number, groups)
    return best[1:]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(-20, 20)), min_size=2, max_size=25),
    st.integers(1, 3),
)
def test_numbers_are_split_where_the_squares_fall_most(rows, min_leaf):
    codes, numbers, target = (list(part) for part in zip(*rows, strict=True))
    criterion = Variance()
    tree = grow(
        [categorical(codes, 3), numeric(numbers)],
        criterion.statistics(np.array(target) + 1e6),
        criterion,
        min_leaf=min_leaf,
        max_depth=1,
    )
    attribute, groups = naive_variance_split([codes, numbers], target, min_leaf)
    if len(target) < 2 * min_leaf or attribute is None:
        assert tree.n_nodes == 1
    else:
        squares = criterion.impurity(tree.statistics)
        expected = [sum((target[i] - np.mean([target[j] for j in g])) ** 2 for i in g) for g in groups]
        assert squares[1:].sum() == pytest.approx(sum(expected), abs=1e-6)


def test_several_targets_are_split_together():
    """The first column explains the class, the second the number; together the second explains more."""
    label, number = [0, 0, 0, 1, 1, 1], [1.0, 9.0, 9.0, 1.0, 1.0, 9.0]
    columns = [categorical([0, 0, 0, 1, 1, 0], 2), categorical([0, 1, 1, 0, 0, 1], 2)]
    criterion = Several.of((Entropy(2), Variance()), (label, number))
    tree = grow(columns, criterion.statistics([label, number]), criterion)

    assert tree.attribute[0] == 1


@pytest.mark.parametrize(
    ("options", "name"),
    [({"min_leaf": 0}, "min_leaf"), ({"max_depth": -1}, "max_depth"), ({"missing": "drop"}, "missing")],
)
def test_options_that_make_no_sense_are_refused(options, name):
    with pytest.raises(InvalidParameterError, match=name):
        grown([numeric([1, 2])], [0, 1], **options)


def test_columns_of_another_length_are_refused():
    with pytest.raises(InvalidParameterError, match="columns"):
        grown([numeric([1, 2])], [0, 1, 1])


def test_progress_ends_with_all_rows():
    calls = []
    grown([numeric(range(20))], [0] * 5 + [1] * 15, progress=lambda *call: calls.append(call))

    assert calls[0] == (0, 20, "rows in leaves")
    assert calls[-1] == (20, 20, "rows in leaves")
