"""Encoders: ranges and sets become the numbers that the definitions say, for fitted and for other tables."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import InputError, InvalidParameterError
from sfumato.evaluation.encoding import GeneralizedEncoder, original_columns
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
    assert shares.tolist() == [[22, 1, 0, 0], [99, 0, 0.5, 0.5]]
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


def test_the_manifest_says_what_the_cells_were():
    manifest = {"recodings": [{"name": "age", "column": "age", "rule": "generalized", "kind": "numeric"}]}

    assert original_columns(manifest, TABLE) == COLUMNS


def test_unknown_encodings_and_unreadable_cells_are_refused_without_a_value():
    with pytest.raises(InvalidParameterError, match="ranges must be one of midpoint, bounds"):
        GeneralizedEncoder(ranges="ends")
    with pytest.raises(InvalidParameterError, match="sets must be one of shares, label"):
        GeneralizedEncoder(sets="bits")
    with pytest.raises(InputError, match="'age': has cells that are neither values nor ranges") as caught:
        GeneralizedEncoder().fit(cells(["[canary"], ["a"]), COLUMNS)
    assert "canary" not in str(caught.value)
