"""Facts of columns, compared with plain loops over the cells."""

import math
from collections import Counter
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable, Feature, as_binary_matrix
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.roles import describe_columns
from sfumato.web.tasks.facts import MAX_BARS, column_facts, histogram


def table_of(kind=Kind.CATEGORICAL, **cells):
    arrays = {name: pa.array(values) for name, values in cells.items()}
    return Table.from_arrow(pa.table(arrays), Schema.of(Column(name, kind=kind) for name in cells))


def facts_of(table):
    return column_facts(table, describe_columns(table))


@given(st.lists(st.sampled_from([None, "a", "b", "c", "d", "e"]), min_size=1, max_size=30))
def test_counts_are_those_of_the_cells(cells):
    if set(cells) == {None}:
        cells = [*cells, "a"]
    counted = Counter(cell for cell in cells if cell is not None)

    (facts,) = facts_of(table_of(x=cells))

    assert facts["n_missing"] == cells.count(None)
    assert facts["n_distinct"] == len(counted)
    assert facts["uniqueness"] == sum(1 for n in counted.values() if n == 1) / len(cells)
    assert dict(zip(facts["histogram"]["labels"], facts["histogram"]["counts"], strict=True)) == counted


@given(
    st.lists(st.integers(-1000, 1000) | st.none(), min_size=40, max_size=120),
    st.integers(2, MAX_BARS),
)
def test_ranges_hold_the_numbers_that_they_name(cells, max_bars):
    cells = [*cells, *range(20)]
    found = histogram(CodedColumn.encode(pa.array(cells), Kind.NUMERIC), Kind.NUMERIC, max_bars)

    assert len(found["labels"]) <= max_bars
    for label, count in zip(found["labels"], found["counts"], strict=True):
        low, high = map(float, label.split(" – "))
        assert count == sum(1 for cell in cells if cell is not None and low <= cell < high)


@given(st.lists(st.integers(0, 4000), min_size=30, max_size=80, unique=True))
def test_ranges_of_dates_hold_the_days_that_they_name(days):
    cells = [date(2001, 2, 3) + timedelta(days=day) for day in days]

    for written in (pa.array(cells), pa.array([str(cell) for cell in cells])):
        found = histogram(CodedColumn.encode(written, Kind.DATE), Kind.DATE)
        assert 1 < len(found["labels"]) <= MAX_BARS
        for label, count in zip(found["labels"], found["counts"], strict=True):
            low, high = map(date.fromisoformat, label.split(" – "))
            assert count == sum(1 for cell in cells if low <= cell < high)


@given(st.lists(st.integers(0, 60), min_size=30, max_size=150))
def test_many_texts_show_the_most_frequent_and_all_the_rest(numbers):
    cells = [f"v{number:02}" for number in [*numbers, *range(20)]]
    ranked = sorted(Counter(cells).items(), key=lambda item: (-item[1], item[0]))

    found = histogram(CodedColumn.encode(pa.array(cells)), Kind.CATEGORICAL)

    shown = MAX_BARS - 1
    assert list(zip(found["labels"], found["counts"], strict=True))[:-1] == ranked[:shown]
    assert found["labels"][-1] == f"{len(ranked) - shown} other values"
    assert sum(found["counts"]) == len(cells)


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=12))
def test_features_of_a_sparse_table_follow_its_other_columns(rows):
    matrix = np.array(rows, dtype=np.uint8)
    companions = table_of(ill=["yes", "no"] * len(rows)).take(np.arange(len(rows)))
    features = tuple(Feature(f"f{i}", f"f{i}") for i in range(4))
    table = BinaryTable(as_binary_matrix(sp.csc_matrix(matrix)), features, companions)

    facts = facts_of(table)

    assert [(f["number"], f["name"], f["is_feature"]) for f in facts] == [
        (1, "ill", False),
        *((i + 2, f"f{i}", True) for i in range(4)),
    ]
    for i in range(4):
        column = [row[i] for row in rows]
        assert facts[i + 1]["histogram"] == {"labels": ["0", "1"], "counts": [column.count(False), column.count(True)]}
        lone = sum(1 for value in (True, False) if column.count(value) == 1)
        assert facts[i + 1]["uniqueness"] == lone / len(rows)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([math.inf, -math.inf, *range(20)], Kind.NUMERIC),
        ([1e308, -1e308, *range(20)], Kind.NUMERIC),
        ([i * 1e-310 for i in range(20)], Kind.NUMERIC),
        ([1e17 + 16 * i for i in range(20)], Kind.NUMERIC),
        ([f"about {i}" for i in range(20)], Kind.NUMERIC),
        ([f"day {i}" for i in range(20)], Kind.DATE),
        ([None] * 20, Kind.NUMERIC),
        ([0.1 * i for i in range(20)], Kind.NUMERIC),
    ],
    ids=["infinite", "huge", "tiny", "close together", "no numbers", "no dates", "nothing", "tenths"],
)
def test_every_present_cell_is_in_some_bar(cells, kind):
    array = pa.array(cells, pa.string() if cells[0] is None else None)

    found = histogram(CodedColumn.encode(array, kind), kind)

    assert sum(found["counts"]) == sum(cell is not None for cell in cells)
    assert len(found["labels"]) == len(found["counts"]) <= MAX_BARS


def test_infinite_numbers_count_to_the_outermost_ranges():
    found = histogram(CodedColumn.encode(pa.array([math.inf, *map(float, range(24))]), Kind.NUMERIC), Kind.NUMERIC)

    assert found["counts"][0] == 2
    assert found["counts"][-1] == 3


def test_long_texts_are_cut_short():
    found = histogram(CodedColumn.encode(pa.array(["x" * 500])), Kind.CATEGORICAL)

    assert len(found["labels"][0]) == 40


def test_a_table_without_rows_has_facts():
    table = table_of(x=["a"]).take(np.array([], dtype=np.intp))

    (facts,) = facts_of(table)

    assert (facts["uniqueness"], facts["histogram"]) == (0.0, {"labels": [], "counts": []})


def test_the_guess_is_told():
    table = table_of(patient_id=[f"p{i}" for i in range(30)], ill=["yes", "no"] * 15)

    first, second = facts_of(table)

    assert (first["guessed_role"], second["guessed_role"]) == (str(Role.IDENTIFIER), str(Role.TARGET))
    assert first["uniqueness"] == 1.0
    assert "→ identifier" in first["reason"]
