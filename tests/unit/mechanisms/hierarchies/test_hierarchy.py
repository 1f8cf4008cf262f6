"""Hierarchies: levels, parents, shares, and every fault named by row and never by value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import SchemaError
from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy, faults_of

JOBS = [("nurse", "health", "*"), ("cook", "kitchen", "*"), ("doctor", "health", "*")]


@st.composite
def nested_rows(draw):
    """Rows of a hierarchy: each level joins some labels of the one below."""
    n_values = draw(st.integers(1, 8))
    level = list(range(n_values))
    columns = [[f"v{i}" for i in level]]
    for number in range(1, draw(st.integers(1, 4))):
        joined = draw(st.lists(st.integers(0, 3), min_size=8, max_size=8))
        level = [joined[label] for label in level]
        columns.append([f"l{number}-{label}" for label in level])
    return list(zip(*columns, strict=True))


@given(nested_rows())
def test_rows_come_back_and_parents_lead_from_level_to_level(rows):
    hierarchy = Hierarchy.from_rows(rows)

    assert list(hierarchy.rows()) == rows
    for row, cells in enumerate(rows):
        label = row
        for level, parent in enumerate(hierarchy.parents):
            label = parent[label]
            assert hierarchy.labels[level + 1][label] == cells[level + 1]


@given(nested_rows())
def test_shares_count_the_values_of_each_label(rows):
    hierarchy = Hierarchy.from_rows(rows)

    for level, labels in enumerate(hierarchy.labels):
        column = [row[level] for row in rows]
        assert hierarchy.shares(level).tolist() == [column.count(label) / len(rows) for label in labels]
        assert hierarchy.shares(level).sum() == pytest.approx(1)


@given(nested_rows(), st.data())
def test_a_row_that_leaves_its_group_is_found(rows, data):
    """Two values that a level joins are parted on one level more."""
    joined = [(*row, "same", "same") for row in rows] + [("other", *rows[0][1:], "same", "same")]
    row = data.draw(st.integers(0, len(rows)))
    wrong = [(*cells[:-1], "parted") if i == row else cells for i, cells in enumerate(joined)]

    faults = list(faults_of(wrong))

    assert not list(faults_of(joined))
    assert faults
    assert all("split" in fault.problem for fault in faults)
    assert any(row in fault.rows for fault in faults)


def test_root_is_added_once():
    flat = Hierarchy.from_rows([("a", "x"), ("b", "y"), ("c", "y")])

    assert flat.with_root().labels[-1] == ("*",)
    assert flat.with_root().codes.dtype == np.int32
    assert flat.with_root().with_root().n_levels == 3


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        ([("a", "x"), ("b", "y")], (("a", "b"), ("*",))),
        ([("a", "x", "*"), ("b", "y", "*")], (("a", "b"), ("*",))),
        ([("a", "x", "x"), ("b", "y", "y"), ("c", "y", "y")], (("a", "b", "c"), ("x", "y"), ("*",))),
        ([("a", "all", "*"), ("b", "all", "*")], (("a", "b"), ("*",))),
        ([("a", "all"), ("b", "all")], (("a", "b"), ("all",))),
        ([("a", "x", "*")], (("a",), ("*",))),
        ([("a",)], (("a",),)),
    ],
)
def test_levels_that_join_nothing_are_left_out(rows, labels):
    hierarchy = Hierarchy.from_rows(rows).joining_levels()

    assert hierarchy.labels == labels
    assert list(Hierarchy.from_rows(list(hierarchy.rows())).rows()) == list(hierarchy.rows())


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "without rows"),
        ([()], "without rows"),
        ([("secret", "a"), ("b",)], "row 2 of a hierarchy has 1 levels, the first row 2"),
        ([*JOBS, ("secret", "", "*")], "row 4 of a hierarchy has no label on level 1"),
        ([*JOBS, ("cook", "secret", "*")], "rows 2 and 4 of a hierarchy are for the same value"),
        ([*JOBS, ("x", "health", "secret")], "rows 1 and 4 of a hierarchy have the same label on level 1"),
    ],
)
def test_faults_are_said_with_the_rows_and_without_values(rows, said):
    with pytest.raises(SchemaError) as caught:
        Hierarchy.from_rows(rows)

    assert said in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "cook" not in str(caught.value)


def test_all_faults_are_found():
    rows = [*JOBS, ("cook", "kitchen", "*"), ("nurse", "health", "*"), ("x", "", "*")]

    assert [fault.rows for fault in faults_of(rows)] == [(5,), (1, 3), (0, 4)]


def test_a_missing_value_may_have_empty_labels():
    assert Hierarchy.from_rows([("a", "b", "*"), ("", "", "*")]).n_levels == 3


def test_repr_shows_no_label():
    assert repr(Hierarchy.from_rows(JOBS)) == "Hierarchy(3 levels: 3, 2, 1 labels)"
