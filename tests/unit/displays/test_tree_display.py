"""A tree in boxes: TIDI of the paper's example, what was pruned, and no cell value unless asked for."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from sfumato.datasets.admissions import admissions
from sfumato.displays.tree import MOST_LEVELS, TreeDisplay
from sfumato.errors import InvalidParameterError
from sfumato.learning.c45.tree import Tree
from sfumato.mechanisms.axes import Axis
from sfumato.mechanisms.tree.mechanism import ErrorRiskTree
from sizes import examples

NONE = np.nan
# Figure 1 of the paper: Gender, then Marital on both sides, then Age at 65; k = 3 prunes below nodes 2 and 6.
FIGURE = Tree(
    np.array([-1, 0, 0, 1, 1, 2, 2, 5, 5], dtype=np.int32),
    np.array([0, 1, 1, -1, -1, 2, -1, -1, -1], dtype=np.int32),
    np.array([NONE, NONE, NONE, NONE, NONE, 65, NONE, NONE, NONE]),
    np.array([NONE, NONE, NONE, NONE, NONE, 65, NONE, NONE, NONE]),
    np.array([1, 3, 5, -1, -1, 7, -1, -1, -1], dtype=np.int32),
    np.array([2, 2, 2, 0, 0, 2, 0, 0, 0], dtype=np.int32),
    np.array([14.0, 5, 9, 2, 3, 5, 4, 2, 3]),
    np.zeros((9, 2)),
)
NO_ROWS = np.zeros(0, dtype=np.int32)
AXES = (
    Axis("Gender", NO_ROWS, ("F", "M")),
    Axis("Marital", NO_ROWS, ("Married", "Never")),
    Axis("Age", NO_ROWS, ("22", "65", "80"), np.array([22.0, 65.0, 80.0])),
)
GROUPS = [-1, 1, -1, 1, 1, 5, 6, 5, 5]


def figure_1(**more):
    return TreeDisplay.from_tree(FIGURE, AXES, GROUPS, **more)


def box_texts(ax):
    return [text.get_text() for text in ax.texts[:-1]]


def test_the_papers_example():
    display = figure_1()

    assert display.parents == (-1, 0, 0, 1, 1, 2, 2, 5, 5)
    assert display.columns == ("Gender", "Marital", "Marital", "", "", "Age", "", "", "")
    assert display.n_rows == (14, 5, 9, 2, 3, 5, 4, 2, 3)
    assert display.information[1] == pytest.approx(3.322, abs=5e-4)
    assert display.information[5] == pytest.approx(4.322, abs=5e-4)
    assert min(display.information[7:]) == pytest.approx(3.432, abs=5e-4)
    assert display.is_pruned == (False, False, False, True, True, False, False, True, True)
    assert display.branches == ()


def test_boxes_show_columns_rows_and_information_in_the_order_of_the_nodes():
    ax = figure_1().plot()

    assert sorted(box_texts(ax)[:3]) == ["Gender\n14 · 3.8", "Marital\n5 · 3.3", "Marital\n9 · 4.2"]
    assert len(box_texts(ax)) == 9
    assert len(ax.lines) == 8
    styles = [patch.get_linestyle() for patch in ax.patches]
    assert sum(style != "-" and style != "solid" for style in styles) == 4
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "split",
        "group of rows, a leaf after pruning",
        "pruned",
    ]


def test_values_are_shown_only_when_asked_for():
    values = {"F", "M", "Married", "Never", "22", "65", "80"}
    hidden, shown = figure_1(), figure_1(show_values=True)

    assert not any(value in text.split() for text in box_texts(hidden.plot()) for value in values)
    assert shown.branches == ("", "= F", "= M", "= Married", "= Never", "= Married", "= Never", "≤ 65", "> 65")
    assert "≤ 65\n2 · 3.4" in box_texts(shown.plot())
    assert dataclasses.replace(shown, branches=()) == hidden


def test_an_empty_leaf_is_left_out_and_counted():
    weights = np.array([12.0, 5, 7, 2, 3, 3, 4, 0, 3])

    display = TreeDisplay.from_tree(dataclasses.replace(FIGURE, weights=weights), AXES, GROUPS)

    assert display.parents == (-1, 0, 0, 1, 1, 2, 2, 5)
    assert display.n_empty == 1
    assert "1 empty leaf left out" in display.plot().texts[-1].get_text()
    two = dataclasses.replace(display, n_empty=2)
    assert "2 empty leaves left out" in two.plot().texts[-1].get_text()


def test_a_recoders_tree():
    table = admissions(n_rows=150).keep(["age", "sex", "insurance", "smoker", "readmitted"])
    recoder = ErrorRiskTree(k=5)
    recoder.recode(table)

    display = TreeDisplay.from_recoder(recoder, table)

    assert display.n_rows[0] == 150
    assert len(display.parents) + display.n_empty == recoder.tree_.n_nodes
    leaves = [node for node in range(len(display.parents)) if node not in display.parents]
    assert sum(display.n_rows[node] for node in leaves) == 150
    last = [
        node
        for node in range(len(display.parents))
        if not display.is_pruned[node]
        and node not in {display.parents[n] for n in range(len(display.parents)) if not display.is_pruned[n]}
    ]
    assert sum(display.n_rows[node] for node in last) == 150
    assert min(display.n_rows[node] for node in last) >= 5
    assert set(display.columns) <= {"", "age", "sex", "insurance", "smoker"}
    assert any(display.is_pruned)


@st.composite
def trees(draw):
    n_nodes = draw(st.integers(1, 150))
    parents = (-1, *(draw(st.integers(max(0, node - 12), node - 1)) for node in range(1, n_nodes)))
    columns = tuple("c" if node in parents else "" for node in range(n_nodes))
    return TreeDisplay(parents, columns, tuple(range(n_nodes, 0, -1)), (1.0,) * n_nodes, (False,) * n_nodes)


def depth(parents, node):
    return 0 if node == 0 else 1 + depth(parents, parents[node])


@examples(30)
@given(trees(), st.integers(1, 60))
def test_what_is_in_view_is_the_top_of_the_tree_and_never_too_much(display, most_nodes):
    opened = display.opened(most_nodes)

    parents = display.parents
    in_view = {0} | {node for node in range(1, len(parents)) if parents[node] in opened}
    assert len(in_view) <= max(most_nodes, 1)
    assert opened <= in_view
    assert all(depth(parents, node) <= MOST_LEVELS for node in in_view)
    if len(parents) <= most_nodes and max(depth(parents, node) for node in range(len(parents))) <= MOST_LEVELS:
        assert in_view == set(range(len(parents)))


@pytest.mark.slow
@examples(10)
@given(trees())
def test_hidden_nodes_are_counted_where_they_hang(display):
    ax = display.plot(Figure(figsize=(6, 4)).add_subplot())

    texts = box_texts(ax)
    hidden = sum(int(line.split()[1].replace(",", "")) for t in texts for line in t.split("\n") if line.startswith("+"))
    assert len(texts) + hidden == len(display.parents)
    assert (hidden > 0) == ("nodes shown" in ax.texts[-1].get_text())


@pytest.mark.parametrize(
    "changes",
    [
        {"parents": ()},
        {"parents": (0, 0, 0)},
        {"parents": (-1, 2, 0)},
        {"parents": (-1, -1, 0)},
        {"n_rows": (3, 0, 2)},
        {"information": (1.0, float("inf"), 1.0)},
        {"branches": ("a",)},
    ],
)
def test_what_is_no_tree_is_refused(changes):
    display = TreeDisplay((-1, 0, 0), ("a", "", ""), (3, 1, 2), (1.0, 1.0, 1.0), (False, True, True))

    with pytest.raises(InvalidParameterError):
        dataclasses.replace(display, **changes)
