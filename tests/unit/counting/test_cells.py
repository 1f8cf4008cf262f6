"""Cell tables: distinct rows with counts, in one order whatever counted them."""

import datetime
from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from sfumato.counting.cells import CellTable, cell_table
from sfumato.errors import ColumnNotFoundError
from strategies import CategoricalRows

PEOPLE = CategoricalRows(("sex", "town"), [("m", "Ulm"), ("f", None), ("m", "Ulm"), ("f", "Bonn"), (None, "Ulm")])


@pytest.mark.parametrize("make", [CategoricalRows.table, CategoricalRows.arrow], ids=["coded", "arrow"])
def test_cells_are_sorted_with_missing_values_last(make):
    cells = cell_table(make(PEOPLE), ["sex", "town"])

    assert cells.codes.tolist() == [[0, 0], [0, 2], [1, 1], [2, 1]]
    assert cells.counts.tolist() == [1, 1, 2, 1]
    assert [values.to_pylist() for values in cells.values] == [["f", "m", None], ["Bonn", "Ulm", None]]
    assert (cells.n_cells, cells.n_rows, cells.n_values) == (4, 5, (3, 3))


def test_representation_shows_counts_only():
    assert repr(cell_table(PEOPLE.table(), ["town"])) == "CellTable(3 cells, 1 columns, 5 rows)"


@pytest.mark.parametrize("make", [CategoricalRows.table, CategoricalRows.arrow], ids=["coded", "arrow"])
def test_no_columns_make_one_cell_of_all_rows(make):
    cells = cell_table(make(PEOPLE), [])

    assert cells.codes.shape == (1, 0)
    assert cells.counts.tolist() == [5]
    assert cell_table(make(PEOPLE), ["sex"]).project([]).counts.tolist() == [5]


@pytest.mark.parametrize("make", [CategoricalRows.table, CategoricalRows.arrow], ids=["coded", "arrow"])
def test_empty_table_has_no_cells(make):
    empty = make(CategoricalRows(("a", "b"), []))

    for cells in (cell_table(empty, ["a", "b"]), cell_table(empty, ["a", "b"]).project(["b"]), cell_table(empty, [])):
        assert cells.codes.shape == (0, len(cells.columns))
        assert cells.n_rows == 0


def test_roll_up_keeps_the_order_asked_for():
    cells = cell_table(PEOPLE.table(), ["sex", "town"]).project(["town"])

    assert cells.columns == ("town",)
    assert cells.codes.tolist() == [[0], [1], [2]]
    assert cells.counts.tolist() == [1, 3, 1]
    assert cells.values[0].to_pylist() == ["Bonn", "Ulm", None]


def test_roll_up_of_hand_made_cells_needs_no_values():
    cells = CellTable(("a", "b"), np.array([[0, 1], [2, 0], [2, 1]]), np.array([3, 1, 2]))

    assert cells.n_values == (3, 2)
    assert cells.project(["b"]).counts.tolist() == [1, 5]


def test_roll_up_to_an_unknown_column_is_refused():
    with pytest.raises(ColumnNotFoundError, match="cell table"):
        cell_table(PEOPLE.table(), ["sex"]).project(["town"])


def test_column_named_twice_is_two_equal_columns():
    assert cell_table(PEOPLE.table(), ["sex", "sex"]).codes.tolist() == [[0, 0], [1, 1], [2, 2]]


def test_more_codes_than_one_word_holds_are_sorted_all_the_same():
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 2**28, size=(200, 5)) * rng.integers(0, 2, size=(200, 5))
    names = tuple("abcde")
    cells = CellTable(names, rows, np.ones(200, dtype=np.int64)).project(names)
    expected, counts = np.unique(rows, axis=0, return_counts=True)

    assert cells.codes.tolist() == expected.tolist()
    assert cells.counts.tolist() == counts.tolist()


@pytest.mark.parametrize(
    ("values", "ordered"),
    [
        ([10, 9, None, 9], [9, 10, None]),
        ([2.5, -1.0, None, 2.5], [-1.0, 2.5, None]),
        ([True, False, None, True], [False, True, None]),
        (
            [datetime.date(2020, 2, 1), datetime.date(2019, 1, 1), None],
            [datetime.date(2019, 1, 1), datetime.date(2020, 2, 1), None],
        ),
        ([Decimal("1.50"), Decimal("-2.25")], [Decimal("-2.25"), Decimal("1.50")]),
        ([None, None], [None]),
    ],
    ids=["integers", "floats", "truth", "dates", "decimals", "nulls"],
)
def test_values_of_any_type_are_coded_in_their_order(values, ordered):
    for source in (pa.table({"a": values}), pl.DataFrame({"a": values}).lazy()):
        cells = cell_table(source, ["a"])

        assert cells.values[0].to_pylist() == ordered
        assert cells.counts.tolist() == [values.count(v) for v in ordered]


def test_dictionary_encoded_columns_are_counted_by_value():
    encoded = pa.table({"a": pa.array(["x", "y", None, "x"]).dictionary_encode()})

    for source in (
        encoded,
        pl.DataFrame({"a": ["x", "y", None, "x"]}, schema={"a": pl.Categorical()}),
        encoded.to_pandas(),
    ):
        cells = cell_table(source, ["a"])

        assert cells.values[0].to_pylist() == ["x", "y", None]
        assert cells.counts.tolist() == [2, 1, 1]


def test_not_a_number_is_not_missing():
    numbers = pa.table({"a": [1.0, float("nan"), None, float("nan")]})

    for source in (numbers, pl.from_arrow(numbers)):
        assert cell_table(source, ["a"]).counts.tolist() == [1, 2, 1]
    assert cell_table(numbers.to_pandas(), ["a"]).counts.tolist() == [1, 3]
