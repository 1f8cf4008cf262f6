"""Finding rows, and how memory is shared out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engines.counting import RowFinder
from sfumato.engines.memory_limit import Memory
from sfumato.errors import InputError, InvalidParameterError


@given(st.integers(1, 6), st.integers(1, 30), st.sampled_from([3, 2**20, 2**31 - 1]), st.integers(0, 2**32))
def test_every_row_is_found_at_its_place(n_columns, n_rows, n_values, seed):
    """Also where the columns do not fit into one key."""
    random = np.random.default_rng(seed)
    rows = random.integers(0, n_values, (n_rows, n_columns), dtype=np.int32)
    places = {tuple(row): i for i, row in enumerate(rows.tolist())}
    distinct = np.array(list(places), dtype=np.int32)
    finder = RowFinder(list(distinct.T), [n_values] * n_columns)

    found = finder.find(list(rows.T))

    assert [distinct[place].tolist() for place in found] == rows.tolist()


@pytest.mark.parametrize("row", [(0, 0), (1, 1), (4, 4)])
def test_a_row_that_is_not_there_is_refused(row):
    """Before, between and after those that are."""
    finder = RowFinder([np.array([0, 2]), np.array([1, 3])], [5, 5])
    with pytest.raises(InputError, match="changed while it was being read"):
        finder.find([np.array([code]) for code in row])


@pytest.mark.parametrize(
    ("text", "n_bytes"), [("1GB", 10**9), (" 600 mb ", 6 * 10**8), ("0.75GiB", 3 * 2**28), ("2TB", 2 * 10**12)]
)
def test_memory_is_a_number_with_a_unit(text, n_bytes):
    """Decimal and binary units."""
    assert Memory.of(text).n_bytes == n_bytes


@pytest.mark.parametrize("text", ["", "1", "GB", "-1GB", "599MB", "1 000MB", "1e9GB", "many", "٣GB"])
def test_other_memory_is_refused(text):
    """No unit, no number, or too little."""
    with pytest.raises(InvalidParameterError, match="memory must be"):
        Memory.of(text)


def test_more_memory_holds_more_distinct_rows():
    """And more columns fewer."""
    assert Memory.of("2GB").most_cells(6) > Memory.of("1GB").most_cells(6) > Memory.of("1GB").most_cells(12) > 10**6
    assert Memory(200 * 10**6).most_cells(6) == 10_000
