"""Automatic hierarchies, beside greedy merging written out naively."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproductions.public_data import load_adult
from sfumato.mechanisms.hierarchies import automatic as hierarchy_automatic
from sfumato.mechanisms.hierarchies.automatic import (
    automatic_hierarchy,
    distinct_texts,
    groups_of_rare_values,
    groups_of_similar_values,
    hierarchy_for,
)
from sfumato.mechanisms.hierarchies.hierarchy import covered
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

tables_of_counts = st.integers(1, 3).flatmap(
    lambda n_classes: st.lists(
        st.lists(st.integers(0, 9), min_size=n_classes, max_size=n_classes), min_size=1, max_size=9
    )
)


def entropy_bits(counts):
    return -sum(n * math.log2(n / sum(counts)) for n in counts if n)


def naive_groups(table, cost):
    """Partitions by greedy merging, kept whenever the number of groups has halved."""
    groups = [[i] for i in range(len(table))]
    kept, wanted = [], math.ceil(len(groups) / 2)
    while len(groups) > 2:
        pairs = [(i, j) for i in range(len(groups)) for j in range(i + 1, len(groups))]
        i, j = min(pairs, key=lambda pair: (cost(table, groups[pair[0]], groups[pair[1]]), pair))
        groups[i] = groups[i] + groups.pop(j)
        if len(groups) == wanted:
            kept.append({frozenset(group) for group in groups})
            wanted = math.ceil(wanted / 2)
    return kept


def partitions(hierarchy):
    return [
        {frozenset(np.flatnonzero(codes == code).tolist()) for code in range(len(labels))}
        for labels, codes in zip(hierarchy.labels[1:-1], hierarchy.codes[1:-1], strict=True)
    ]


def information_lost(table, first, second):
    def summed(group):
        return [sum(table[i][c] for i in group) for c in range(len(table[0]))]

    joined = entropy_bits(summed(first + second))
    return round(joined - entropy_bits(summed(first)) - entropy_bits(summed(second)), 6)


@given(tables_of_counts)
def test_the_most_alike_are_joined_first(table):
    values = [f"v{i}" for i in range(len(table))]

    hierarchy = groups_of_similar_values(values, np.array(table))

    assert partitions(hierarchy) == naive_groups(table, information_lost)
    assert hierarchy.labels[-1] == ("*",)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=9, unique=True))
def test_the_rarest_are_joined_first(counts):
    """With distinct powers of three no two groups are ever equally frequent."""
    weights = [3**count for count in counts]
    hierarchy = groups_of_rare_values([f"v{i}" for i in range(len(counts))], np.array(weights))

    def rarest(table, first, second):
        return sum(table[i] for i in first + second)

    assert partitions(hierarchy) == naive_groups(weights, rarest)


def test_small_groups_list_their_values_and_large_ones_are_counted():
    values = [f"v{i}" for i in range(20)]
    counts = np.array([100, *[1] * 18, 50])

    labels = groups_of_rare_values(values, counts).labels

    assert "v0" in labels[1]
    assert {"{v1|v2|v3|v4}", "{v5|v6}"} <= set(labels[1])
    assert labels[-2] == ("v0", "v19 and 18 others")


def test_many_values_are_joined_beforehand(monkeypatch):
    """Classes decide all the same: the two halves of the values never meet below the highest level."""
    monkeypatch.setattr(hierarchy_automatic, "_MAX_COMPARED", 10)
    contingency = np.array([[20, i % 5] if i % 2 else [i % 5, 20] for i in range(200)])

    hierarchy = groups_of_similar_values([f"v{i}" for i in range(200)], contingency)

    assert [len(labels) for labels in hierarchy.labels] == [200, 100, 50, 25, 13, 7, 4, 2, 1]
    assert partitions(hierarchy)[-1] == {frozenset(range(0, 200, 2)), frozenset(range(1, 200, 2))}


def test_kinds_have_their_own_builders():
    days = ["2024-01-05", "2024-02-05", "2019-02-05", "2019-10-05"]
    sizes = ["small", "medium", "large"]

    assert automatic_hierarchy(days, np.ones(4), Kind.DATE).labels[-2] == ("2024", "2019")
    assert automatic_hierarchy(sizes, np.ones(3), Kind.ORDERED, order=sizes).labels[1] == ("[small, medium]", "large")
    assert automatic_hierarchy(sizes, np.ones(3), Kind.ORDERED).labels[1] == ("{small|medium}", "large")
    numbers = [str(i) for i in range(8)]
    labels = automatic_hierarchy(numbers, np.ones(8, dtype=np.int64), Kind.NUMERIC).labels
    assert [len(level) for level in labels] == [8, 4, 2, 1]


@pytest.mark.parametrize(
    ("kind", "values"), [(Kind.NUMERIC, ["1", "2", "inf"]), (Kind.DATE, ["1.2.2024", "2.2.2024", "3.2.2024"])]
)
def test_numbers_and_dates_without_an_order_are_grouped_as_texts(kind, values):
    hierarchy = automatic_hierarchy(values, np.array([9, 1, 1]), kind)

    assert hierarchy.labels[1] == (values[0], f"{{{values[1]}|{values[2]}}}")


def test_a_column_without_values_has_the_levels_of_missing():
    table = Table.from_arrow(pa.table({"empty": pa.array([None, None], pa.string())}), Schema.of([Column("empty")]))

    found = covered(hierarchy_for(table, "empty"), table["empty"], "empty", Kind.CATEGORICAL)

    assert found.labels == ((None,), ("*",))


@pytest.mark.parametrize("kind", list(Kind))
def test_one_value_becomes_a_star(kind):
    hierarchy = automatic_hierarchy(["2024-01-05" if kind is Kind.DATE else "7"], np.array([3]), kind)

    assert [len(labels) for labels in hierarchy.labels] == [1, 1]
    assert hierarchy.labels[-1] == ("*",)


def test_a_target_of_many_values_is_joined_into_classes():
    """Without the joining every row would be a class of its own, and no two texts alike."""
    n_rows = 400
    income = np.arange(n_rows)
    job = np.where(income < 200, np.where(income % 2, "a", "b"), np.where(income % 2, "c", "d"))
    cells = pa.table({"job": job, "income": income})
    columns = [Column("job"), Column("income", Role.TARGET, Kind.NUMERIC)]

    hierarchy = hierarchy_for(Table.from_arrow(cells, Schema.of(columns)), "job", target="income")

    assert hierarchy.labels[1] == ("{a|b}", "{c|d}")


@pytest.mark.slow
def test_every_column_of_adult_gets_levels_that_cover_it(shared_data):
    adult = load_adult("train")

    for column in adult.schema:
        hierarchy = hierarchy_for(adult, column.name, target="salary")
        found = covered(hierarchy, adult[column.name], column.name, column.kind)
        assert found.labels[-1] == ("*",)
    marital = hierarchy_for(adult, "marital-status", target="salary")
    assert "{Married-AF-spouse|Married-civ-spouse}" in marital.labels[-2]


def test_two_numbers_have_no_level_between_them_and_the_star():
    assert automatic_hierarchy(["0", "1"], np.array([3, 4]), Kind.NUMERIC).labels == (("0", "1"), ("*",))


@pytest.mark.parametrize(("target", "groups"), [(None, ("{a|b|c}", "d")), ("y", ("{a|b}", "{c|d}"))])
def test_texts_that_differ_in_outer_blanks_are_one_value(target, groups):
    """They are built into one row, with the rows of all their spellings, and are covered."""
    cells = ["a", "a ", " a", "b", "c", "c", "d ", "d ", "d ", None]
    classes = ["1", "0", "0", "0", "1", "1", "1", "1", "1", "1"]
    schema = Schema.of([Column("x"), Column("y", Role.TARGET)])
    table = Table.from_arrow(pa.table({"x": cells, "y": classes}), schema)

    hierarchy = hierarchy_for(table, "x", target=target)

    assert distinct_texts(table["x"])[1].tolist() == [3, 1, 2, 3]
    assert hierarchy.values == ("a", "b", "c", "d")
    assert hierarchy.labels[1] == groups
    found = covered(hierarchy, table["x"], "x", Kind.CATEGORICAL)
    assert len(found.labels[0]) == 5
