"""Distinct rows with their counts are treated as the rows that they stand for."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.learning.c45.criteria import Variance
from sfumato.learning.c45.tree import route
from sfumato.mechanisms.axes import Axis, axes_of
from sfumato.mechanisms.mondrian.division import mondrian_partition
from sfumato.mechanisms.tree.groups import refine
from sfumato.mechanisms.tree.mechanism import ErrorRiskTree
from sfumato.mechanisms.tree.targets import MOST_COUNTED_CLASSES, Targets
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table
from sfumato.table.weighted import CountedTable


def table_of(rows):
    """Make a table of ages, towns and a target."""
    ages, towns, ills = (list(column) for column in zip(*rows, strict=True))
    cells = pa.table({"age": pa.array(ages, pa.int32()), "town": pa.array(towns, pa.string()), "ill": pa.array(ills)})
    columns = [
        Column("age", Role.QUASI_IDENTIFIER, Kind.NUMERIC),
        Column("town", Role.QUASI_IDENTIFIER, Kind.CATEGORICAL),
        Column("ill", Role.TARGET, Kind.CATEGORICAL),
    ]
    return Table.from_arrow(cells, Schema.of(columns))


def counted(table):
    """Count distinct rows one by one; says where each row is among them."""
    names = table.schema.names()
    rows = list(zip(*(table[name].codes.tolist() for name in names), strict=True))
    distinct = sorted(set(rows))
    codes = [np.array(column, dtype=np.int32) for column in zip(*distinct, strict=True)]
    counts = np.array([rows.count(row) for row in distinct], dtype=np.int64)
    return CountedTable.of(table, names, codes, counts), np.array([distinct.index(row) for row in rows])


ROWS = st.lists(
    st.tuples(
        st.sampled_from([20, 21, 30, 45, None]), st.sampled_from(["Ulm", "Bonn", "Kiel", None]), st.sampled_from("yn")
    ),
    min_size=4,
    max_size=60,
)


@pytest.mark.slow
@given(ROWS, st.integers(1, 4))
def test_groups_of_distinct_rows_are_those_of_rows(rows, k):
    """Mondrian cuts at the same places."""
    table = table_of(rows)
    cells, place = counted(table)
    names = ("age", "town")
    expected = mondrian_partition(axes_of(table, names), k)
    found = mondrian_partition(axes_of(cells, names), k)

    assert found.of_row[place].tolist() == expected.of_row.tolist()
    assert found.tree.weights.tolist() == expected.tree.weights.tolist()
    assert np.bincount(expected.of_row).min() >= k


@pytest.mark.slow
@given(ROWS, st.sampled_from(["lowest", "literal"]), st.booleans())
def test_a_tree_of_distinct_rows_is_that_of_rows(rows, rule, refined):
    """Cells, penalty and level are the same."""
    table = table_of(rows)
    cells, place = counted(table)
    mechanism = ErrorRiskTree(k=2, generalization="uniform", rule=rule, refine=refined)
    expected, found = mechanism.release(table), mechanism.release(cells)

    for name in ("age", "town"):
        texts = found.table[name].values.take(pa.array(found.table[name].codes[place]))
        assert texts.to_pylist() == expected.table[name].cells().to_pylist()
    evidence = {**expected.manifest.evidence, "risk": {**expected.manifest.evidence["risk"]}}
    del evidence["risk"]["unique_row_fraction"]  # of counted rows it is stated when all of them are written
    assert found.manifest.evidence == evidence
    assert found.table.n_rows == len(rows)


def test_relaxed_groups_need_single_rows():
    """Halves of equal rows are taken row by row."""
    axis = Axis("age", np.array([0, 1], dtype=np.int32), ("20", "30"), np.array([20.0, 30.0]), weights=np.array([5, 1]))
    with pytest.raises(InvalidParameterError, match="several rows"):
        mondrian_partition([axis], 2, strict=False)


def test_tiered_cells_need_single_rows():
    """Some of the rows that are equal lend, and some do not."""
    cells, _ = counted(table_of([(20, "Ulm", "y")] * 4 + [(30, "Bonn", "n")] * 4))
    with pytest.raises(InvalidParameterError, match="uniform"):
        ErrorRiskTree(k=2).release(cells)


def test_a_mean_counts_numbers_as_often_as_they_occur():
    """The centre is that of all rows."""
    repeated = Variance().statistics([1.0, 1.0, 1.0, 5.0])
    found = Variance().statistics([1.0, 5.0], np.array([3, 1]))
    assert found.tolist() == repeated[[0, 3]].tolist()


def test_a_target_with_very_many_classes_is_refused():
    """Counts of each class in each node would not fit."""
    rows = [(20, "Ulm", f"class {i}") for i in range(MOST_COUNTED_CLASSES + 1)]
    with pytest.raises(SchemaError, match="too many to be predicted"):
        Targets.of(table_of(rows))


def test_rows_with_a_missing_value_stay_in_the_branch_that_took_the_place_of_another():
    """Where a branch was replaced, its nodes are no way for new rows."""
    rows = [(age, town, "y" if age == 20 else "n") for age in (20, 21, 30, 45) for town in ("Ulm", "Bonn", "Kiel")] * 4
    table = table_of(rows)
    mechanism = ErrorRiskTree(k=2, generalization="uniform", refine=False)
    mechanism.recode(table)
    axes = axes_of(table, ("age", "town"))
    refined = refine(mechanism.tree_, np.zeros(len(rows), dtype=np.int32), axes, 2)
    assert refined.tree.n_nodes > refined.partition.tree.n_nodes  # the old branch is still stored

    lost = [Axis(axis.name, np.full(3, -1, dtype=np.int32), axis.labels, axis.positions) for axis in axes]
    found = route(refined.tree, refined.columns(lost))
    assert set(found.tolist()) <= set(refined.leaf_of_row.tolist())
