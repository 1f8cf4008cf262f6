"""Cell tables: distinct rows with counts, in one order whatever counted them."""

import numpy as np
import pytest

from sfumato.counting.cells import CellTable, cell_table
from sfumato.errors import ColumnNotFoundError
from strategies import CategoricalRows

PEOPLE = CategoricalRows(("sex", "town"), [("m", "Ulm"), ("f", None), ("m", "Ulm"), ("f", "Bonn"), (None, "Ulm")])


def test_cells_are_sorted_with_missing_values_last():
    cells = cell_table(PEOPLE.table(), ["sex", "town"])

    assert cells.codes.tolist() == [[0, 0], [0, 2], [1, 1], [2, 1]]
    assert cells.counts.tolist() == [1, 1, 2, 1]
    assert [values.to_pylist() for values in cells.values] == [["f", "m", None], ["Bonn", "Ulm", None]]
    assert (cells.n_cells, cells.n_rows, cells.n_values) == (4, 5, (3, 3))


def test_representation_shows_counts_only():
    assert repr(cell_table(PEOPLE.table(), ["town"])) == "CellTable(3 cells, 1 columns, 5 rows)"


def test_no_columns_make_one_cell_of_all_rows():
    cells = cell_table(PEOPLE.table(), [])

    assert cells.codes.shape == (1, 0)
    assert cells.counts.tolist() == [5]
    assert cell_table(PEOPLE.table(), ["sex"]).project([]).counts.tolist() == [5]


def test_empty_table_has_no_cells():
    empty = CategoricalRows(("a", "b"), []).table()

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
