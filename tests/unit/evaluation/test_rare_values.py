"""Columns of many values: the frequent ones stay, sets lose their rare members, order is left alone."""

from collections import defaultdict

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.evaluation.encoding import GeneralizedEncoder
from sfumato.evaluation.scores import MOST_VALUES, without_rare_values
from sfumato.schema import Column, Kind, Schema
from sfumato.table.coding import Table
from sfumato.table.generalized import read_cell, write_set


def one_column(cells, kind=Kind.CATEGORICAL):
    described = Column("c", kind=kind)
    return Table.from_arrow(pa.table({"c": pa.array(cells, pa.string())}), Schema.of([Column("c")])), {"c": described}


members = st.lists(st.sampled_from("abcdefgh|{"), min_size=1, max_size=4, unique=True)


@given(st.lists(st.one_of(members, st.none(), st.just("*")), min_size=1, max_size=30), st.integers(1, 9))
def test_the_most_frequent_values_are_known_afterwards(drawn, most):
    cells = [write_set(cell) if isinstance(cell, list) else cell for cell in drawn]
    table, columns = one_column(cells)
    weight = defaultdict(float)
    for text in sorted({cell for cell in cells if cell is not None}):  # sums in the order of the distinct cells
        for value in read_cell(text).values:
            weight[value] += cells.count(text) / len(read_cell(text).values)
    expected = set(sorted(weight, key=lambda value: (-weight[value], value))[:most])

    found = without_rare_values(table, columns, most)["c"].cells().to_pylist()

    assert {value for cell in found for value in read_cell(cell).values} == expected
    for before, after in zip(cells, found, strict=True):
        if before == "*" or before is None:
            assert after == before
        else:
            assert set(read_cell(after).values) == set(read_cell(before).values) & expected


def test_an_encoder_gets_no_more_columns():
    table, columns = one_column([f"v{i}" for i in range(500)] + ["v7"] * 3)
    encoder = GeneralizedEncoder().fit(without_rare_values(table, columns), columns)
    encoded = encoder.transform(table)

    assert encoded.shape == (503, MOST_VALUES)
    assert encoded[7].sum() == 1
    assert encoded[499].sum() == 0


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([str(i) for i in range(100)], Kind.NUMERIC),
        ([f"2020-01-{i:02d}" for i in range(1, 29)], Kind.DATE),
        (["a", "b", "a"], Kind.CATEGORICAL),
    ],
)
def test_columns_with_an_order_or_few_values_stay(cells, kind):
    table, columns = one_column(cells, kind)

    assert without_rare_values(table, columns, 10)["c"].cells().to_pylist() == cells
