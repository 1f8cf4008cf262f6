"""Equivalence classes, their size histogram, and the values of a column within them."""

import numpy as np
import pyarrow as pa

from sfumato.counting.classes import class_size_counts, class_value_counts
from sfumato.counting.contingency import contingencies, contingency
from sfumato.counting.counts import Counts
from sfumato.schema import Column, Kind, Schema
from sfumato.table.coding import Table
from strategies import CategoricalRows

PEOPLE = CategoricalRows(
    ("sex", "town", "ill"),
    [("m", "Ulm", "flu"), ("f", None, "flu"), ("m", "Ulm", None), ("f", "Bonn", "flu"), ("m", "Ulm", "flu")],
)


def test_no_columns_make_one_class_of_all_rows():
    assert class_size_counts(PEOPLE.table(), []) == {5: 1}


def test_empty_table_has_no_classes():
    empty = CategoricalRows(("a", "b"), []).table()
    counts = class_value_counts(empty, ["a"], "b")

    for columns in ([], ["a"]):
        assert class_size_counts(empty, columns) == {}
    assert (counts.n_classes, counts.n_values, counts.n_rows) == (0, 0, 0)
    assert counts.class_sizes.tolist() == counts.n_distinct.tolist() == counts.value_totals.tolist() == []


def test_classes_are_counted_by_size():
    assert class_size_counts(PEOPLE.table(), ["sex", "town"]) == {1: 2, 3: 1}


def test_values_within_classes_are_counted_missing_ones_too():
    counts = class_value_counts(PEOPLE.table(), ["sex", "town"], "ill")

    assert counts.class_index.tolist() == [0, 1, 2, 2]
    assert counts.value_code.tolist() == [0, 0, 0, 1]
    assert counts.count.tolist() == [1, 1, 2, 1]
    assert counts.class_sizes.tolist() == [1, 1, 3]
    assert counts.n_distinct.tolist() == [1, 1, 2]
    assert counts.value_totals.tolist() == [4, 1]
    assert repr(counts) == "Counts(3 classes, 2 values, 5 rows)"


def test_without_quasi_identifiers_all_values_are_in_one_class():
    counts = class_value_counts(PEOPLE.table(), [], "ill")

    assert counts.n_classes == 1
    assert counts.count.tolist() == [4, 1]


def test_sensitive_column_among_the_quasi_identifiers_has_one_value_a_class():
    assert class_value_counts(PEOPLE.table(), ["ill"], "ill").n_distinct.tolist() == [1, 1]


def test_dense_counts_leave_out_classes_without_rows():
    counts = Counts.from_contingency([[2, 0, 1], [0, 0, 3]])

    assert counts.n_classes == 2
    assert counts.class_sizes.tolist() == [2, 4]


def test_values_are_numbered_in_the_declared_order():
    pains = ["mild"] * 2 + ["severe"] * 3 + [None] * 4 + ["none"]
    cells = pa.table({"q": ["x"] * 10, "pain": pains})
    pain = Column("pain", kind=Kind.ORDERED, domain=("none", "mild", "unused", "severe"))
    table = Table.from_arrow(cells, Schema.of([Column("q"), pain]))

    counts = class_value_counts(table, ["q"], "pain")

    assert counts.value_totals.tolist() == [1, 2, 3, 4]


def test_contingency_is_dense_and_ordered():
    counted = contingency(PEOPLE.table(), "town", "sex")

    assert counted.tolist() == [[1, 0], [0, 3], [1, 0]]
    assert counted.dtype == np.int64


def test_contingencies_of_many_columns_share_their_classes():
    counted = contingencies(PEOPLE.table(), ["sex", "ill"], by="sex")

    assert counted["sex"].tolist() == [[2, 0], [0, 3]]
    assert counted["ill"].tolist() == [[2, 2], [0, 1]]


def test_contingency_of_an_empty_table_is_empty():
    assert contingency(CategoricalRows(("a", "b"), []).table(), "a", "b").shape == (0, 0)
