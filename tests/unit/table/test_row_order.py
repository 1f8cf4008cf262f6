"""The canonical order of released rows, against sorting by hand."""

import datetime as dt
from functools import cmp_to_key

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable, Feature
from sfumato.table.coding import Table
from sfumato.table.row_order import canonical_order, packed_keys, value_ranks

TEXTS = st.sampled_from([None, "", "10", "9", "9.0", "-1", "1e1", "é", "z", "\U0001f600", "￿", "[1, 2]"])
NUMBERS = st.sampled_from([None, "10", "9", "9.0", "-1", "1e1", "007"])
"""Among the texts two that UTF-16 would put the other way round."""


def compared(first, second):
    """-1, 0 or 1: missing first, numbers by value, texts by their bytes."""
    if first is None or second is None:
        return (second is None) - (first is None)
    if isinstance(first, str):
        first, second = first.encode(), second.encode()
    return (first > second) - (first < second)


def compared_as_numbers(first, second):
    if first is None or second is None:
        return compared(first, second)
    return compared(float(first), float(second)) or compared(first, second)


def sorted_by_hand(columns):
    """Rows, each a tuple, sorted by one comparison after the other."""

    def compare(first, second):
        return next((sign for (by, _), a, b in zip(columns, first, second, strict=True) if (sign := by(a, b))), 0)

    return sorted(zip(*(cells for _, cells in columns), strict=True), key=cmp_to_key(compare))


def table_of(**columns):
    described = Schema.of([Column(name, kind=kind) for name, (kind, _) in columns.items()])
    return Table.from_arrow(pa.table({name: cells for name, (_, cells) in columns.items()}), described)


def rows_of(table):
    return list(zip(*(table[name].cells().to_pylist() for name in table.columns), strict=True))


@given(st.lists(st.tuples(TEXTS, NUMBERS, st.sampled_from([None, True, False]), st.integers(-2, 2)), min_size=1))
def test_rows_are_sorted_by_all_columns_in_their_order(rows):
    texts, numbers, flags, counts = map(list, zip(*rows, strict=True))
    table = table_of(
        t=(Kind.CATEGORICAL, pa.array(texts, pa.string())),
        n=(Kind.NUMERIC, pa.array(numbers, pa.string())),
        b=(Kind.CATEGORICAL, pa.array(flags, pa.bool_())),
        i=(Kind.NUMERIC, pa.array(counts, pa.int64())),
    )
    by_hand = sorted_by_hand([(compared, texts), (compared_as_numbers, numbers), (compared, flags), (compared, counts)])

    found = rows_of(table.take(canonical_order(table, "parquet")))

    assert found == by_hand


@given(st.lists(TEXTS, min_size=1))
def test_a_numeric_column_that_holds_anything_else_is_sorted_by_its_texts(cells):
    is_text = any(cell in ("", "é", "z", "\U0001f600", "￿", "[1, 2]") for cell in cells)
    values = pa.array(sorted(set(cells), key=str), pa.string())
    ranks = value_ranks(values, Kind.NUMERIC)
    by_hand = sorted_by_hand([(compared if is_text else compared_as_numbers, values.to_pylist())])

    assert [values[int(i)].as_py() for i in np.argsort(ranks, kind="stable")] == [cell for (cell,) in by_hand]


def test_in_a_text_file_every_cell_is_a_text():
    """A number that is a category is sorted by its value where it is stored as one, and else by its text."""
    table = table_of(zip=(Kind.CATEGORICAL, pa.array([10, 9, 100])))

    assert canonical_order(table, "parquet").tolist() == [1, 0, 2]
    assert canonical_order(table, "csv").tolist() == [0, 2, 1]


def test_dates_are_sorted_by_time_and_missing_is_first():
    table = table_of(day=(Kind.DATE, pa.array([dt.date(2020, 2, 1), None, dt.date(1999, 12, 31)])))

    for format in ("csv", "parquet", "memory"):
        assert canonical_order(table, format).tolist() == [1, 2, 0]


@pytest.mark.parametrize("n_features", [1, 61, 62, 63, 200])
def test_features_are_sorted_as_columns_of_zeros_and_ones(n_features):
    rng = np.random.default_rng(n_features)
    dense = (rng.random((80, n_features)) < 0.1).astype(np.int8)
    dense[40:, : n_features // 2] = 0
    features = tuple(Feature(f"f{i}", f"f{i}") for i in range(n_features))
    target = pa.table({"y": pa.array(rng.choice([1.0, 10.0, 9.0], 80))})
    companions = Table.from_arrow(target, Schema.of([Column("y", Role.TARGET, Kind.NUMERIC)]))
    table = BinaryTable(sp.csc_matrix(dense), features, companions)
    y = companions["y"].cells().to_pylist()

    found = canonical_order(table, "libsvm")

    by_hand = sorted((*row, label) for row, label in zip(dense.tolist(), y, strict=True))
    assert [(*dense[i].tolist(), y[i]) for i in found] == by_hand


def test_more_columns_than_fit_in_one_number():
    rng = np.random.default_rng(1)
    columns = [rng.integers(0, 1000, 50) for _ in range(30)]
    key = packed_keys([(column, 1000) for column in columns], 50)

    assert np.argsort(key, kind="stable").tolist() == np.lexsort(columns[::-1]).tolist()


@given(st.permutations(range(12)))
def test_the_order_of_the_input_does_not_matter(order):
    cells = pa.array(["b", "a", None, "b", "c", "a", "a", "b", None, "c", "b", "a"])
    table = table_of(x=(Kind.CATEGORICAL, cells), n=(Kind.NUMERIC, pa.array(list(range(6)) * 2)))
    other = table.take(np.array(order))

    assert rows_of(other.take(canonical_order(other, "csv"))) == rows_of(table.take(canonical_order(table, "csv")))
