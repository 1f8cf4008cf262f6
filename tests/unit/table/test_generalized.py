"""Generalized cells: what is written can be read, whatever stands in the values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.table.generalized import GeneralizedCell, read_cell, write_range, write_set, write_value

values = st.text(alphabet=r"ab ,|{}[]\*N0", min_size=1, max_size=6)


@given(values)
def test_a_single_value_comes_back(value):
    assert read_cell(write_value(value)) == GeneralizedCell(values=(value,))


@given(st.lists(values, min_size=1, max_size=4, unique=True), st.booleans())
def test_a_set_comes_back(members, may_be_missing):
    assert read_cell(write_set(members, may_be_missing=may_be_missing)) == GeneralizedCell(
        values=tuple(members), may_be_missing=may_be_missing
    )


@given(values, values, st.booleans())
def test_a_range_comes_back(low, high, may_be_missing):
    cell = read_cell(write_range(low, high, may_be_missing=may_be_missing))

    if low == high:
        assert cell == GeneralizedCell(values=(low,), may_be_missing=may_be_missing)
    else:
        assert cell == GeneralizedCell(bounds=(low, high), may_be_missing=may_be_missing)


def test_an_empty_cell_and_a_star_stand_for_missing_and_for_anything():
    assert read_cell(None) == GeneralizedCell(may_be_missing=True)
    assert read_cell("*") == GeneralizedCell(may_be_missing=True, is_any=True)
    assert write_set([], may_be_missing=True) is None


@pytest.mark.parametrize("text", ["[1", "[1]", "[1, 2, 3]", "{a", "{[1, 2|a}", "[secret"])
def test_a_text_that_no_writer_makes_is_refused_without_showing_it(text):
    with pytest.raises(ValueError, match=r"^a (set|range) is not closed") as caught:
        read_cell(text)
    assert "secret" not in str(caught.value)
