"""Coding of arrays and DataFrames: the same cells give the same codes whatever holds them."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato.errors import ColumnNotFoundError, InvalidParameterError, SchemaError
from sfumato.learning.c45.tree import ColumnCoding, cells_by_name, learn_codings, tree_columns

CELLS = {
    "colour": ["red", None, "blue", "red"],
    "size": [3, 1, None, 3],
    "weight": [0.5, float("nan"), 0.25, 0.5],
    "is_new": [True, False, None, False],
}
CODES = {"colour": [1, -1, 0, 1], "size": [1, 0, -1, 1], "weight": [1, -1, 0, 1], "is_new": [1, 0, -1, 0]}
NUMERIC = {"size": [1, 3], "weight": [0.25, 0.5]}


def as_object_array():
    return np.array(list(zip(*CELLS.values(), strict=True)), dtype=object)


def as_categories():
    return pd.DataFrame(CELLS).astype({"colour": pd.CategoricalDtype(["unused", "red", "blue"]), "size": "Int64"})


HOLDERS = {
    "pandas": lambda: pd.DataFrame(CELLS),
    "pandas with nullable types": lambda: pd.DataFrame(CELLS).convert_dtypes(),
    "pandas with categories": as_categories,
    "polars": lambda: pl.DataFrame(CELLS),
    "polars with categories": lambda: pl.DataFrame(CELLS).with_columns(pl.col("colour").cast(pl.Categorical)),
    "polars with an enumeration": lambda: pl.DataFrame(CELLS).with_columns(
        pl.col("colour").cast(pl.Enum(["unused", "red", "blue"]))
    ),
    "arrow": lambda: pa.table(CELLS),
    "object array": as_object_array,
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_every_holder_gives_the_same_codes(holder):
    columns = dict(zip(CELLS, tree_columns(HOLDERS[holder]()), strict=True))

    for name, column in columns.items():
        assert column.codes.tolist() == CODES[name]
        assert column.n_values == 2
        assert (None if column.numbers is None else column.numbers.tolist()) == NUMERIC.get(name)


def test_a_plain_array_is_numeric():
    (column,) = tree_columns(np.array([[2], [1]]))

    assert column.numbers.tolist() == [1, 2]


@pytest.mark.parametrize("chosen", [["a"], [0], np.array([True, False]), [True, False]])
def test_numbers_become_categories_on_request(chosen):
    first, second = tree_columns(pd.DataFrame({"a": [10.0, 9.0, np.nan], "b": [1, 2, 3]}), chosen)

    assert (first.is_numeric, second.is_numeric) == (False, True)
    assert first.codes.tolist() == [1, 0, -1]


def test_none_means_that_all_columns_are_numbers():
    assert tree_columns(pd.DataFrame({"a": [True, False]}), None)[0].numbers.tolist() == [0, 1]
    with pytest.raises(SchemaError, match="'a'"):
        tree_columns(pd.DataFrame({"a": ["x", "y"]}), None)


def test_an_unknown_category_counts_as_missing():
    coding = ColumnCoding.learn(pa.array(["b", "a", None]), "letter", is_categorical=True)

    assert coding.encode(pa.array(["a", "zebra", "b", None])).codes.tolist() == [0, -1, 1, -1]


def test_a_column_without_values_is_missing_throughout():
    for cells in (pa.nulls(3), pa.array([None, None, None], pa.string())):
        (column,) = tree_columns(pa.table({"nothing": cells}))
        assert column.codes.tolist() == [-1, -1, -1]
        assert column.n_values == 0


def test_another_type_than_in_training_is_refused_without_showing_a_value():
    (coding,) = learn_codings(cells_by_name(pd.DataFrame({"n": [1, 2]})), ["n"])

    with pytest.raises(SchemaError, match="'n'") as caught:
        coding.encode(pa.array(["canary"]))
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "cells",
    [
        np.array([["canary"], [3]], dtype=object),
        np.array([[{"canary": 1}], [None]], dtype=object),
        pd.DataFrame({"x0": [datetime.date(2020, 1, 1), None]}),
        pd.DataFrame({"x0": [1.0, np.inf]}),
    ],
    ids=["text and number", "mapping", "date", "infinity"],
)
def test_cells_that_cannot_be_coded_are_refused_without_showing_a_value(cells):
    with pytest.raises(SchemaError, match="'x0'") as caught:
        tree_columns(cells)
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_coding_shows_no_category():
    coding = ColumnCoding.learn(pa.array(["canary", "b"]), "letter", is_categorical=True)

    assert repr(coding) == "ColumnCoding('letter', 2 categories)"
    assert repr(ColumnCoding("age", None)) == "ColumnCoding('age', numeric)"


@pytest.mark.parametrize("chosen", ["all", [2], [-1], [True]])
def test_a_choice_of_categorical_columns_that_makes_no_sense_is_refused(chosen):
    with pytest.raises(InvalidParameterError, match="categorical_features"):
        tree_columns(np.zeros((2, 2)), chosen)


def test_an_unknown_name_is_refused():
    with pytest.raises(ColumnNotFoundError, match="age"):
        tree_columns(pd.DataFrame({"age": [1, 2]}), ["aeg"])
