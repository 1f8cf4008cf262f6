import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from sfumato.audit.levels.anonymity import SMALLEST_CLASS
from sfumato.audit.profile import risk_profile
from sfumato.audit.reading.columns import Columns, group_rows
from sfumato.audit.reading.equivalence import classes_of_rows
from sfumato.errors import ColumnNotFoundError
from sfumato.guarantees import KAnonymity
from sfumato.schema import Kind, Role, Schema
from sfumato.table.coding import Table
from unit.audit.audit_oracles import (
    binary_table,
    oracle_class_sizes,
    small_binary_rows,
    small_rows,
    table_from_rows,
    table_of,
)


@given(small_rows())
def test_classes_are_the_sets_of_equal_rows(rows):
    """Every row's class has as many rows as are equal to it, missing values included."""
    columns = Columns(table_from_rows(rows))

    classes = group_rows(columns, columns.names)

    assert classes.sizes[classes.ids].tolist() == oracle_class_sizes(rows)
    assert int(classes.sizes.sum()) == len(rows)
    assert counted_sizes(columns, columns.names) == sorted(classes.sizes.tolist())


@given(small_binary_rows())
def test_sparse_features_are_grouped_like_coded_columns(width_and_rows):
    width, rows = width_and_rows
    table = binary_table(rows, width)

    classes = group_rows(Columns(table), table.feature_names)

    assert classes.sizes[classes.ids].tolist() == oracle_class_sizes(rows)
    assert counted_sizes(Columns(table), table.feature_names) == sorted(classes.sizes.tolist())


def test_features_and_companions_are_grouped_together():
    companions = table_of({"age": ["1", "1", "2", "2"]})
    columns = Columns(binary_table([[1], [1], [1], [0]], 1, companions))

    assert group_rows(columns, ["f0", "age"]).sizes.tolist() == [2, 1, 1]
    assert counted_sizes(columns, ["f0", "age"]) == [1, 1, 2]
    assert group_rows(columns, ["age"]).sizes.tolist() == [2, 2]


def test_many_columns_of_many_values_do_not_overflow():
    """30 columns of 1,000 values have 1000**30 combinations, far past 64 bits."""
    rng = np.random.default_rng(0)
    cells = {f"c{i}": pa.array(rng.integers(0, 1000, 50).tolist() * 2) for i in range(30)}
    columns = Columns(table_of(cells))

    classes = group_rows(columns, columns.names)

    assert classes.sizes.tolist() == counted_sizes(columns, columns.names) == [2] * 50


def test_rows_that_differ_in_the_last_of_many_columns_are_told_apart():
    """A key that wrapped around would forget the first or the last columns."""
    cells = {f"c{i}": list(range(64)) for i in range(12)}
    cells["first"], cells["last"] = [0, 1] * 32, [0] * 63 + [1]
    columns = Columns(table_of({name: cells[name] * 2 for name in ("first", *(f"c{i}" for i in range(12)), "last")}))

    assert len(group_rows(columns, columns.names).sizes) == len(counted_sizes(columns, columns.names)) == 64
    assert group_rows(columns, ["last"]).sizes.tolist() == [126, 2]


def test_no_columns_give_one_class_of_all_rows():
    columns = Columns(table_of({"a": ["x", "y", "y"]}))

    assert group_rows(columns, []).sizes.tolist() == counted_sizes(columns, []) == [3]


def test_an_empty_table_has_no_class_and_level_zero():
    columns = Columns(Table(Schema.of([]), {}, 0))

    with classes_of_rows(columns, []) as classes:
        level = classes.ask(SMALLEST_CLASS)
    assert (len(group_rows(columns, []).sizes), level, risk_profile(table_of({"a": []}))["k"]) == (0, 0, 0)
    assert not KAnonymity(2, ()).is_met_by(level)


def test_rows_at_risk_are_those_in_small_classes():
    found = risk_profile(table_of({"a": ["x", "y", "y", "z", "z", "z"]}))

    assert found["sample_uniques"]["count"] == 1
    assert found["share_of_rows_at_risk"] == {"2": 1 / 6, "3": 3 / 6, "5": 1.0, "10": 1.0}


def test_an_unknown_column_is_named():
    with pytest.raises(ColumnNotFoundError, match="'agee': not found"):
        group_rows(Columns(table_of({"age": ["1"]})), ["agee"])


def test_two_spellings_of_a_number_are_one_sensitive_value():
    """Otherwise 1 and 1.0 would pass for diversity."""
    table = table_of({"a": ["x", "x", "x"], "s": ["1", "1.0", None]}, {"s": Role.SENSITIVE}, {"s": Kind.NUMERIC})
    columns = Columns(table)

    with classes_of_rows(columns, ["a"], "s") as classes:
        assert classes.ask("SELECT count(*) FROM pairs") == classes.ask("SELECT max(n) FROM pairs") == 2


def counted_sizes(columns, names):
    """Sizes of the classes that the database counts, ascending."""
    with classes_of_rows(columns, names) as classes:
        n = int(classes.ask("SELECT count(*) FROM classes"))
        query = "SELECT size FROM classes ORDER BY size LIMIT 1 OFFSET $i"
        return [classes.ask(query, i=i) for i in range(n)]
