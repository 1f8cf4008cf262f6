import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given

from sfumato.audit import measured_level
from sfumato.audit.levels.anonymity import containment_level
from sfumato.audit.reading.columns import Columns
from sfumato.errors import NotBinaryError
from sfumato.guarantees import Containment
from sfumato.measures.containment import containment_level as mechanisms_level
from sfumato.schema import Schema
from sfumato.table.binary import BinaryTable, Feature
from sfumato.table.coding import Table
from unit.audit.audit_oracles import (
    binary_table,
    golden_table,
    oracle_containment,
    row_containment,
    small_binary_rows,
    table_of,
)

ALL = ("x1", "x2", "x3", "x4", "x5")


def test_table_1_of_the_paper():
    """AC(e1) = 4, AC(e6) = 1 and AC(D) = 1."""
    columns = Columns(golden_table())

    assert row_containment(columns, ALL).tolist() == [4, 4, 2, 4, 1, 1]
    assert containment_level(columns, ALL) == 1


@pytest.mark.parametrize(
    ("names", "level"), [(("x1", "x2", "x5"), 2), (("x1", "x3", "x4", "x5"), 2), (("x2", "x3"), 1), ((), 6)], ids=str
)
def test_projections_of_table_1(names, level):
    assert measured_level(Containment(2, names), golden_table()) == level


@given(small_binary_rows())
def test_counts_follow_the_definition(width_and_rows):
    width, rows = width_and_rows
    table = binary_table(rows, width)
    columns = Columns(table)

    assert row_containment(columns, table.feature_names).tolist() == oracle_containment(rows)
    assert containment_level(columns, table.feature_names) == min(oracle_containment(rows), default=0)


@given(small_binary_rows())
def test_sparse_and_coded_tables_agree(width_and_rows):
    width, rows = width_and_rows
    sparse = binary_table(rows, width)

    coded = Columns(sparse.to_table())

    assert containment_level(coded, sparse.feature_names) == containment_level(Columns(sparse), sparse.feature_names)


@given(small_binary_rows())
def test_dropping_a_column_never_lowers_the_level(width_and_rows):
    width, rows = width_and_rows
    table = binary_table(rows, width)
    level = containment_level(Columns(table), table.feature_names)

    assert all(
        containment_level(Columns(table), [n for n in table.feature_names if n != left_out]) >= level
        for left_out in table.feature_names
    )


@pytest.mark.parametrize(
    "cells",
    [["1", "0", "1"], [1, 0, 1], [1.0, 0.0, 1.0], ["1.0", "0", "1.0"], [True, False, True]],
    ids=["text", "int", "float", "decimal text", "truth"],
)
def test_zeros_and_ones_may_be_written_in_several_ways(cells):
    assert row_containment(Columns(table_of({"a": cells})), ["a"]).tolist() == [2, 3, 2]


@pytest.mark.parametrize("cells", [["1", "2"], ["1", None], ["yes", "no"], [0.5, 1.0]], ids=str)
def test_a_column_that_is_not_binary_is_refused(cells):
    with pytest.raises(NotBinaryError, match="column 'a'"):
        containment_level(Columns(table_of({"a": cells})), ["a"])


def test_a_constant_column_changes_nothing():
    table = table_of({"a": [1, 1, 1], "b": [0, 0, 0], "c": [1, 0, 1]})

    assert row_containment(Columns(table), ["a", "b", "c"]).tolist() == [2, 3, 2]


def test_an_empty_table_keeps_no_promise():
    level = containment_level(Columns(Table(Schema.of([]), {}, 0)), [])

    assert level == 0
    assert not Containment(2, ()).is_met_by(level)


def test_more_patterns_than_a_machine_word_holds():
    """300 distinct patterns: bits lie in several words, and levels are checked against a matrix product."""
    rng = np.random.default_rng(1)
    rows = (rng.random((400, 40)) < 0.3).astype(np.int64)
    rows[:3] = 1
    table = binary_table(rows.tolist(), 40)
    contained = (rows @ rows.T == rows.sum(axis=1)[:, None]).sum(axis=1)

    assert row_containment(Columns(table), table.feature_names).tolist() == contained.tolist()
    assert containment_level(Columns(table), table.feature_names) == contained.min()


def test_stored_zeros_and_unsorted_rows_do_not_matter():
    matrix = sp.csc_matrix((np.array([1, 1, 0]), np.array([2, 0, 1]), np.array([0, 3])), shape=(3, 1))
    table = BinaryTable(matrix, (Feature("a", "a"),), Table(Schema.of([]), {}, 3))

    assert row_containment(Columns(table), ["a"]).tolist() == [2, 3, 2]


def test_stored_numbers_other_than_one_are_refused():
    matrix = sp.csc_matrix(np.array([[0, 1], [0, 7]]))
    table = BinaryTable(matrix, (Feature("a", "a"), Feature("b", "b")), Table(Schema.of([]), {}, 2))

    with pytest.raises(NotBinaryError, match="column 'b'"):
        Columns(table)


def test_binary_companions_count_as_well():
    table = binary_table([[1], [1], [0]], 1, table_of({"b": pa.array(["0", "1", "1"])}))

    assert row_containment(Columns(table), ["f0", "b"]).tolist() == [2, 1, 2]


@pytest.mark.parametrize("density", [0.05, 0.3, 0.8])
def test_the_audit_and_the_mechanisms_agree_on_the_level(density):
    """Two routes to one number: intersections of packed sets here, candidates of the rarest feature there."""
    rng = np.random.default_rng(7)
    rows = (rng.random((300, 9)) < density).astype(int)
    table = binary_table(rows.tolist(), 9)

    assert containment_level(Columns(table), table.feature_names) == mechanisms_level(table.matrix)
