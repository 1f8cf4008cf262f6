import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit import measured_level
from sfumato.guarantees import TCloseness
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table
from unit.audit.audit_oracles import (
    oracle_equal_distance,
    oracle_ordered_distance,
    small_rows,
    table_from_rows,
    table_of,
)

QI = ("a",)
SENSITIVE = st.lists(st.one_of(st.none(), st.integers(0, 5)), min_size=7, max_size=7)


def quasi_identifiers(rows):
    return tuple(f"q{i}" for i in range(len(rows[0]) if rows else 0))


@pytest.mark.slow
@given(small_rows(1), SENSITIVE)
def test_equal_distance_follows_the_definition(rows, values):
    sensitive = values[: len(rows)]
    guarantee = TCloseness(0.2, "s", quasi_identifiers(rows))

    found = measured_level(guarantee, table_from_rows(rows, sensitive))

    assert found == pytest.approx(oracle_equal_distance(rows, sensitive), abs=1e-12)
    assert 0 <= found <= 1


@pytest.mark.slow
@given(small_rows(1), SENSITIVE)
def test_ordered_distance_follows_the_definition(rows, values):
    sensitive = values[: len(rows)]
    guarantee = TCloseness(0.2, "s", quasi_identifiers(rows), "ordered")

    found = measured_level(guarantee, table_from_rows(rows, sensitive))

    assert found == pytest.approx(oracle_ordered_distance(rows, sensitive), abs=1e-12)
    assert -1e-12 <= found <= 1


def test_the_salary_example_of_the_paper():
    """Li et al., section 4: D[{3k,4k,5k}, Q] = 0.375 and D[{6k,8k,11k}, Q] = 0.167, Q = 3k … 11k."""
    salary = [3, 4, 5, 6, 7, 8, 9, 10, 11]
    near = table_of({"a": list("xxxyyyyyy"), "s": salary}, kinds={"s": Kind.NUMERIC})
    spread = table_of({"a": list("yyyxyxyyx"), "s": salary}, kinds={"s": Kind.NUMERIC})

    assert measured_level(TCloseness(0.999, "s", QI, "ordered"), near) == pytest.approx(0.375)
    assert measured_level(TCloseness(0.999, "s", QI, "ordered"), spread) == pytest.approx(1 / 6)


def test_numbers_written_as_text_are_ordered_by_size():
    cells = {"a": list("xxyy"), "s": ["9", "10", "10", "100"]}
    as_text = table_of(cells)  # coded in text order, as a reader does that knows nothing of the column
    numeric = Table(
        Schema.of([Column("a"), Column("s", Role.SENSITIVE, Kind.NUMERIC)]), dict(as_text.columns), as_text.n_rows
    )
    right = table_of({"a": list("xxyy"), "s": [9, 10, 10, 100]}, kinds={"s": Kind.NUMERIC})
    guarantee = TCloseness(0.999, "s", QI, "ordered")

    assert measured_level(guarantee, numeric) == measured_level(guarantee, right) == 0.25


def test_an_ordered_column_follows_its_domain():
    cells = pa.table({"a": list("xy"), "s": ["low", "high"], "u": ["low", "mid"]})
    domain = ("low", "mid", "high")
    columns = [Column("a"), Column("s", Role.SENSITIVE, Kind.ORDERED, domain)]
    three = pa.table({"a": list("xxy"), "s": ["low", "high", "mid"]})

    def level(table: pa.Table, described: list[Column]) -> float:
        return measured_level(TCloseness(0.999, "s", QI, "ordered"), Table.from_arrow(table, Schema.of(described)))

    assert level(cells.drop_columns(["u"]), columns) == 0.5
    assert level(three, columns) == pytest.approx(1 / 3)
    assert level(three, [columns[0], Column("s", Role.SENSITIVE, Kind.ORDERED)]) == pytest.approx(0.5)
    assert level(three, [columns[0], Column("s", Role.SENSITIVE, Kind.ORDERED, ("low",))]) == pytest.approx(0.5)


@pytest.mark.parametrize("distance", ["equal", "ordered"])
def test_one_class_or_one_value_has_distance_zero(distance):
    guarantee = TCloseness(0, "s", QI, distance)

    assert measured_level(guarantee, table_of({"a": ["x", "x"], "s": [1, 2]})) == 0
    assert measured_level(guarantee, table_of({"a": ["x", "y"], "s": [1, 1]})) == 0


@pytest.mark.parametrize("distance", ["equal", "ordered"])
def test_an_empty_table_has_the_worst_level(distance):
    assert measured_level(TCloseness(0.9, "s", (), distance), table_from_rows([], [])) == 1
