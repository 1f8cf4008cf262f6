"""Trees of labels that all parties know before they look at a row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.collaborate.joint.generalization import digest_of, generalized_columns
from sfumato.collaborate.shared_schema import SharedSchema
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy
from sfumato.schema import Kind

CLASSES = {"ill": ["n", "y"]}


def tree(values, *, cuts=None, hierarchy=None):
    schema = SharedSchema.of_values({"a": values}, CLASSES, {"a": cuts} if cuts else None)
    return generalized_columns(schema, {"a": hierarchy} if hierarchy else None)[0]


def labels(node):
    """Nested labels, for people who read this test."""
    return (node.label, *map(labels, node.children)) if node.children else node.label


@given(st.lists(st.integers(-30, 30), min_size=1, max_size=12, unique=True), st.booleans())
def test_parts_share_no_value_and_leave_none_out(numbers, has_missing):
    made = tree([*map(str, numbers), *([None] if has_missing else [])])

    assert sorted(made.root.places) == list(range(made.column.n_values))
    for node in made.root.below():
        if node.children:
            assert len(node.children) > 1
            assert sorted(p for child in node.children for p in child.places) == sorted(node.places)
        else:
            assert len(node.places) == 1


def test_numbers_are_halved_in_their_order_and_a_missing_one_stands_beside_them():
    made = tree(["10", "9", "100", None])

    assert made.kind is Kind.NUMERIC
    assert labels(made.root) == ("*", ("[9, 10]", "9", "10"), "100", None)


def test_intervals_are_joined_with_their_neighbours():
    assert labels(tree([], cuts=[1, 2, 3, 4]).root) == (
        "*", ("≤ 3", ("≤ 2", "≤ 1", "]1, 2]"), "]2, 3]"), ("> 3", "]3, 4]", "> 4"),
    )  # fmt: skip


def test_other_values_have_the_levels_of_their_hierarchy_without_those_that_divide_nothing():
    jobs = Hierarchy.from_rows(
        [("nurse", "health", "care", "*"), ("doctor", "health", "care", "*"), ("cook", "food", "food", "*")]
    )

    made = tree(["nurse", "doctor", "cook"], hierarchy=jobs)

    assert labels(made.root) == ("*", "cook", ("care", "doctor", "nurse"))
    assert made.listed_labels() == {"care": ["doctor", "nurse"]}


def test_values_without_a_hierarchy_are_halved_in_the_order_of_their_list():
    made = tree(["x", "y", "z", None])

    assert labels(made.root) == ("*", ("{x|y}", "x", "y"), "z", None)
    assert made.kind is Kind.CATEGORICAL
    assert made.listed_labels() == {"{x|y}": ["x", "y"]}


def test_what_cannot_be_read_or_is_not_covered_is_refused():
    ambiguous = Hierarchy.from_rows([("a", "c", "*"), ("b", "c", "*"), ("c", "d", "*"), ("e", "d", "*")])

    with pytest.raises(SchemaError, match="different groups"):
        tree(["a", "b", "c", "e"], hierarchy=ambiguous)
    with pytest.raises(SchemaError, match="1 values that its hierarchy"):
        tree(["a", "secret"], hierarchy=Hierarchy.from_rows([("a", "*")]))
    with pytest.raises(InvalidParameterError, match="hierarchies"):
        generalized_columns(SharedSchema.of_values({"a": ["1"]}, CLASSES), {"b": ambiguous})


def test_the_penalty_is_the_share_of_values_that_a_label_leaves_open():
    made = tree(["1", "2", "3", "4"])

    assert [made.penalty(node) for node in made.root.below()] == [1.0, 0.5, 0.0, 0.0, 0.5, 0.0, 0.0]


def test_other_trees_have_another_digest():
    plain = [tree(["a", "b", "c"])]
    levels = [tree(["a", "b", "c"], hierarchy=Hierarchy.from_rows([("a", "x", "*"), ("b", "x", "*"), ("c", "c", "*")]))]

    assert digest_of(plain) == digest_of([tree(["c", "b", "a"])]) != digest_of(levels)
