"""Encoders: ranges and sets become the numbers that the definitions say, for fitted and for other tables."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

from sfumato.errors import InputError, InvalidParameterError
from sfumato.evaluation.encoding import GeneralizedEncoder, cells_of_release
from sfumato.schema import Column, Kind, Schema
from sfumato.table.coding import Table

COLUMNS = {"age": Column("age", kind=Kind.NUMERIC), "job": Column("job")}


def cells(ages, jobs):
    table = pa.table({"age": pa.array(ages, pa.string()), "job": pa.array(jobs, pa.string())})
    return Table.from_arrow(table, Schema.of([Column("age"), Column("job")]))


TABLE = cells(["[20, 30]", "25", None, r"{[10, 20]|\N}"], ["{a|b}", "c", None, "*"])


def test_midpoints_and_shares():
    encoder = GeneralizedEncoder().fit(TABLE, COLUMNS)

    assert encoder.feature_names_ == ("age", "job = 0", "job = 1", "job = 2")
    expected = [[25, 0.5, 0.5, 0], [25, 0, 0, 1], [np.nan, 0, 0, 0], [15, 1 / 3, 1 / 3, 1 / 3]]
    assert np.array_equal(encoder.transform(TABLE), np.array(expected), equal_nan=True)
    assert not encoder.is_categorical_.any()


def test_bounds_and_labels():
    encoder = GeneralizedEncoder(ranges="bounds", sets="label").fit(TABLE, COLUMNS)

    found = encoder.transform(TABLE)
    assert found[:, :2].tolist()[0] == [20, 30]
    assert found[1, :2].tolist() == [25, 25]
    assert encoder.is_categorical_.tolist() == [False, False, True]
    assert len(set(found[[0, 1, 3], 2].tolist())) == 3
    assert np.isnan(found[2]).all()


def test_another_table_with_cells_that_were_not_seen():
    other = cells(["[21, 23]", "99"], ["{a|d}", "{b|c}"])

    shares = GeneralizedEncoder().fit(TABLE, COLUMNS).transform(other)
    assert shares.tolist() == [[22, 0.5, 0, 0], [99, 0, 0.5, 0.5]]
    labels = GeneralizedEncoder(sets="label").fit(TABLE, COLUMNS).transform(other)
    assert np.isnan(labels[:, 1]).all()


def test_levels_and_dates_have_middles_too():
    columns = {
        "grade": Column("grade", kind=Kind.ORDERED, domain=("low", "middle", "high")),
        "born": Column("born", kind=Kind.DATE),
    }
    table = pa.table({"grade": ["[low, high]", "middle"], "born": ["[2000-01-01, 2000-01-03]", "2000-01-02"]})
    coded = Table.from_arrow(table, Schema.of([Column("grade"), Column("born")]))
    found = GeneralizedEncoder().fit(coded, columns).transform(coded)

    assert found[0].tolist() == found[1].tolist()


@pytest.mark.parametrize(
    ("described", "known"),
    [
        (Column("x", kind=Kind.DATE), ["1970-01-01", "1970-01-02"]),
        (Column("x", kind=Kind.ORDERED, domain=("low", "high")), ["low", "high"]),
    ],
)
@pytest.mark.parametrize("odd", ["canary", "{canary|low}", "[low, canary]"])
def test_a_value_without_a_place_among_fitted_ones_is_not_a_number(described, known, odd):
    def of(texts):
        return Table.from_arrow(pa.table({"x": texts}), Schema.of([Column("x")]))

    encoder = GeneralizedEncoder().fit(of(known), {"x": described})
    found = encoder.transform(of([known[1], odd, known[0]]))

    assert np.array_equal(found, encoder.transform(of(known))[[1, 1, 0]] * [[1], [np.nan], [1]], equal_nan=True)
    assert found[0] > found[2]


def test_cells_that_say_nothing_become_one_column_of_zeros():
    table = Table.from_arrow(pa.table({"job": ["*", "*", None]}), Schema.of([Column("job")]))
    encoder = GeneralizedEncoder().fit(table, {"job": Column("job")})

    assert encoder.transform(table).tolist() == [[0], [0], [0]]
    assert encoder.feature_names_ == ("nothing known",)
    assert encoder.is_categorical_.tolist() == [False]


def test_an_encoder_must_be_fitted_first():
    with pytest.raises(NotFittedError, match="fit the encoder before"):
        GeneralizedEncoder().transform(TABLE)


def test_the_manifest_says_what_the_cells_were():
    manifest = {"recodings": [{"name": "age", "column": "age", "rule": "generalized", "kind": "numeric"}]}
    shown, columns = cells_of_release(manifest, cells(["[20, 30]", "25"], ["c", "d"]))

    assert columns == COLUMNS
    assert shown["age"].cells().to_pylist() == ["[20, 30]", "25"]


@pytest.mark.parametrize("rule", ["hierarchy", "as-is"])
def test_values_of_plain_columns_are_no_cells_whatever_they_look_like(rule):
    texts = ["*", "{a|b}", "[x", r"\N", "[1, 2]", None]
    manifest = {
        "recodings": [
            {"name": "age", "column": "age", "rule": "generalized", "kind": "numeric"},
            {"name": "job", "column": "job", "rule": rule, "kind": "numeric"},
        ]
    }
    shown, columns = cells_of_release(manifest, cells(["[20, 30]"] * 6, texts))
    found = GeneralizedEncoder().fit(shown, columns).transform(shown)

    assert columns["job"] == Column("job")
    assert found[:, 0].tolist() == [25] * 6
    assert sorted(found[:5, 1:].tolist()) == np.eye(5)[::-1].tolist()
    assert not found[5, 1:].any()


def test_unknown_encodings_and_unreadable_cells_are_refused_without_a_value():
    with pytest.raises(InvalidParameterError, match="ranges must be one of midpoint, bounds"):
        GeneralizedEncoder(ranges="ends")
    with pytest.raises(InvalidParameterError, match="sets must be one of shares, label"):
        GeneralizedEncoder(sets="bits")
    with pytest.raises(InputError, match="'age': has cells that are neither values nor ranges") as caught:
        GeneralizedEncoder().fit(cells(["[canary"], ["a"]), COLUMNS)
    assert "canary" not in str(caught.value)
