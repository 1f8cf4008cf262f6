"""Generalized cells: what is written can be read, whatever stands in the values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.reading.cells import _parse
from sfumato.table.generalized import GeneralizedCell, read_cell, write_range, write_set, write_value

values = st.text(alphabet=r"ab ,|{}[]\*N0", max_size=6)


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


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        *((text, "a range is not closed") for text in ("[1", "[1]", "[1, 2, 3]", "[secret", r"{[1|\N}")),
        *(
            (text, "a set is not closed")
            for text in ("{a", "{", "{}", "{a}", "{a|a}", r"{\N}", r"{a|\N|\N}", "{a|b\\}")
        ),
        *((text, "a value has a character") for text in ("a,b", "**", "a]", r"\N", "\\", "a|b", "{a|{b}", "{*|a}")),
        *((text, "a value has a character") for text in ("{[1, 2|a}", "{[1, 2]|[3, 4]}", "{[1, 2]|a}", "{a|[1, 2]}")),
    ],
)
def test_a_text_that_no_writer_makes_is_refused_without_showing_it(text, problem):
    with pytest.raises(ValueError, match=f"^{problem}") as caught:
        read_cell(text)
    assert "secret" not in str(caught.value)


def test_an_empty_member_is_kept_wherever_it_stands():
    assert read_cell("{a|}").values == ("a", "")
    assert read_cell("{|a}").values == ("", "a")
    assert read_cell(r"{|\N}") == GeneralizedCell(values=("",), may_be_missing=True)


@given(st.text(alphabet=r"a ,|{}[]\*N", max_size=9) | st.text(alphabet=r"a|\N", max_size=6).map("{{{}}}".format))
def test_what_is_read_is_what_the_audit_reads(text):
    """The audit's own reader accepts it and finds the same in it."""
    try:
        cell = read_cell(text)
    except ValueError:
        return

    said = _parse(text)
    assert (said.bounds, said.members, said.is_any) == (cell.bounds, cell.values, cell.is_any)
    assert cell.is_any or said.may_be_missing == cell.may_be_missing
