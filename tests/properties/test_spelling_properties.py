"""One table of spellings, followed by writer and audit by code of their own: an oracle written from it judges both."""

import datetime
import re
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spelling_oracle as oracle
from sfumato.audit.reading import cells as audit_cells
from sfumato.audit.reading.spelling import Spelling, double_text
from sfumato.audit.reading.values import texts_of
from sfumato.errors import InputError
from sfumato.table.cells import as_text, written_text
from sfumato.table.generalized import read_cell, write_range, write_set, write_value

MOMENTS = st.datetimes(datetime.datetime(1000, 1, 1), datetime.datetime(9999, 12, 31))
TYPES = {
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1), 0),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1), 0),
    "double": (pa.float64(), st.floats(allow_nan=False).map(lambda x: x + 0.0), 0),
    "decimal": (pa.decimal128(20, 7), st.integers(-(10**18), 10**18).map(lambda x: Decimal(x).scaleb(-7)), 0),
    "whole decimal": (pa.decimal128(20, 0), st.integers(-(10**15), 10**15).map(Decimal), 0),
    "bool": (pa.bool_(), st.booleans(), 0),
    "date": (pa.date32(), st.dates(datetime.date(1000, 1, 1)), 0),
    "moment": (pa.timestamp("us"), MOMENTS, 6),
    "moment of milliseconds": (pa.timestamp("ms"), MOMENTS.map(lambda x: x.replace(microsecond=0)), 3),
    "moment in Berlin": (
        pa.timestamp("us", "Europe/Berlin"),
        MOMENTS.filter(lambda x: x.year < 9999).map(lambda x: x.replace(tzinfo=datetime.UTC)),
        6,
    ),
    "time": (pa.time64("us"), st.times(), 6),
}
FORM_OF = {
    "int64": "whole numbers",
    "uint64": "whole numbers",
    "whole decimal": "whole numbers",
    "double": "shortest decimals",
    "decimal": "decimals of one length",
    "bool": "truth values",
    "date": "dates",
    "moment": "moments",
    "moment of milliseconds": "moments",
    "moment in Berlin": "moments in UTC",
    "time": "times",
}
PIECES = [
    "0",
    "1",
    "7",
    "00",
    "-",
    "+",
    ".",
    "e",
    "E",
    "e+1",
    "inf",
    "-0",
    "10",
    "5",
    "nan",
    "2020-01-02",
    " ",
    ":",
    "Z",
]
ODD = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join) | st.sampled_from(
    ["1e+10", "1e-7", "0.000001", "9999999999", "1.50", "-0.00", "2020-01-02 03:04:05.5", "2020-01-02 03:04:05Z"]
)


@pytest.mark.parametrize("name", TYPES)
@given(data=st.data())
def test_typed_values_are_spelled_as_the_table_says(name, data):
    """Writer, audit and oracle give one text for a typed value, and it is of the form that the table has for it."""
    arrow_type, values, digits = TYPES[name]
    drawn = data.draw(st.lists(values, min_size=1, max_size=8))
    expected = [oracle.spelled(value, digits=digits) for value in drawn]
    array = pa.array(drawn, arrow_type)

    assert written_text(array).to_pylist() == expected
    assert texts_of(array).to_pylist() == expected
    assert oracle.is_spelled(expected, FORM_OF[name])
    judged = Spelling([FORM_OF[name]])
    judged.take(pa.array(expected))
    assert judged.is_one_form


@pytest.mark.parametrize("form", oracle.FORMS)
@given(texts=st.lists(ODD, min_size=1, max_size=4))
def test_the_audit_takes_just_the_texts_that_the_table_has(form, texts):
    """A column of odd texts is of a form for the audit exactly when it is for the oracle."""
    judged = Spelling([form])
    judged.take(pa.array(texts))

    assert judged.is_one_form == oracle.is_spelled(texts, form)


@given(st.floats(allow_nan=False).map(lambda x: x + 0.0))
def test_doubles_have_one_text(number):
    """The audit's own spelling of a double is the oracle's and the writer's."""
    assert double_text(number) == oracle.spelled(number) == as_text(pa.array([number])).to_pylist()[0]


@given(st.lists(st.text(alphabet="ab1\\|{}[],* \n", min_size=1, max_size=6), min_size=2, max_size=4, unique=True))
def test_values_in_sets_are_escaped_as_the_table_says(values):
    """A raw value such as {a|b} comes back from a set, a range and a cell of its own, by writer's reader and audit."""
    for value in values:
        assert write_value(value) == oracle.escaped(value)
        assert read_cell(write_value(value)).values == (value,)
        assert audit_cells.tokens_of(pa.array([write_value(value)]))[0] == [value]
    whole = write_set(values)
    assert whole == "{" + "|".join(map(oracle.escaped, values)) + "}"
    assert read_cell(whole).values == tuple(values)
    assert audit_cells.tokens_of(pa.array([whole])) == (values, False)
    assert read_cell(write_range(*values[:2])).bounds == tuple(values[:2])
    assert audit_cells.tokens_of(pa.array([write_range(*values[:2])]))[0] == values[:2]


def test_a_year_of_five_digits_has_no_spelling():
    """What the table cannot spell is a plain error of the writer, not a refusal by the audit."""
    with pytest.raises(InputError, match="no spelling"):
        written_text(pa.array([4_000_000], pa.date32()))


def test_the_patterns_are_read_alike_by_all_three():
    """Patterns use nothing that one of the engines of regular expressions reads otherwise."""
    for form in oracle.FORMS.values():
        assert "words" in form or not re.search(r"\(\?[=!<]|\\[dwsb]", form["pattern"])
