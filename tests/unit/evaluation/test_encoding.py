"""Encoders: ranges and sets become the numbers that the definitions say, for fitted and for other tables."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from sfumato.errors import InputError, InvalidParameterError
from sfumato.evaluation.encoding import GeneralizedEncoder, cells_of_release
from sfumato.schema import Column, Kind, Schema
from sfumato.table.coding import Table
from sfumato.table.generalized import write_range, write_set

COLUMNS = {"age": Column("age", kind=Kind.NUMERIC), "job": Column("job")}


def cells(ages, jobs):
    table = pa.table({"age": pa.array(ages, pa.string()), "job": pa.array(jobs, pa.string())})
    return Table.from_arrow(table, Schema.of([Column("age"), Column("job")]))


TABLE = cells(["[20, 30]", "25", None, r"{[10, 20]|\N}"], ["{a|b}", "c", None, "*"])


def test_midpoints_and_shares():
    encoder = GeneralizedEncoder(ranges="midpoint").fit(TABLE, COLUMNS)

    assert encoder.feature_names_ == ("age", "job = 0", "job = 1")
    expected = [[25, 1, 0], [25, 0, 1], [np.nan, 0, 0], [15, 2 / 3, 1 / 3]]
    assert np.array_equal(encoder.transform(TABLE), np.array(expected), equal_nan=True)
    assert not encoder.is_categorical_.any()
    assert encoder.is_share_.tolist() == [False, True, True]


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

    shares = GeneralizedEncoder("midpoint").fit(TABLE, COLUMNS).transform(other)
    assert shares.tolist() == [[22, 0.5, 0], [99, 0.5, 0.5]]
    labels = GeneralizedEncoder("midpoint", "label").fit(TABLE, COLUMNS).transform(other)
    assert np.isnan(labels[:, 1]).all()


def test_levels_and_dates_have_middles_too():
    columns = {
        "grade": Column("grade", kind=Kind.ORDERED, domain=("low", "middle", "high")),
        "born": Column("born", kind=Kind.DATE),
    }
    table = pa.table({"grade": ["[low, high]", "middle"], "born": ["[2000-01-01, 2000-01-03]", "2000-01-02"]})
    coded = Table.from_arrow(table, Schema.of([Column("grade"), Column("born")]))
    found = GeneralizedEncoder("midpoint").fit(coded, columns).transform(coded)

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


def test_values_of_plain_columns_are_no_cells_whatever_they_look_like():
    texts = ["*", "{a|b}", "[x", r"\N", "[1, 2]", None]
    manifest = {
        "recodings": [
            {"name": "age", "column": "age", "rule": "generalized", "kind": "numeric"},
            {"name": "job", "column": "job", "rule": "as-is", "kind": "numeric"},
        ]
    }
    shown, columns = cells_of_release(manifest, cells(["[20, 30]"] * 6, texts))
    found = GeneralizedEncoder().fit(shown, columns).transform(shown)

    assert columns["job"] == Column("job")
    assert found[:, 0].tolist() == [25] * 6
    assert sorted(found[:5, 1:].tolist()) == np.eye(5)[::-1].tolist()
    assert not found[5, 1:].any()


def test_unknown_encodings_and_unreadable_cells_are_refused_without_a_value():
    with pytest.raises(InvalidParameterError, match="ranges must be one of pieces, midpoint, bounds"):
        GeneralizedEncoder(ranges="ends")
    with pytest.raises(InvalidParameterError, match="sets must be one of shares, label"):
        GeneralizedEncoder(sets="bits")
    with pytest.raises(InputError, match="'age': has cells that are neither values nor ranges") as caught:
        GeneralizedEncoder().fit(cells(["[canary"], ["a"]), COLUMNS)
    assert "canary" not in str(caught.value)


def one_column(texts, **described):
    table = Table.from_arrow(pa.table({"x": pa.array(texts, pa.string())}), Schema.of([Column("x")]))
    return table, {"x": Column("x", **described)}


def test_labels_of_a_hierarchy_are_read_as_what_they_cover():
    manifest = {
        "recodings": [
            {
                "name": "age",
                "column": "age",
                "rule": "hierarchy",
                "kind": "numeric",
                "labels": {"old": ["80", "9", ""]},
            },
            {"name": "job", "column": "job", "rule": "hierarchy", "kind": "categorical", "labels": {"x": ["b", "a"]}},
        ]
    }
    ages = ["[17, 25[", "≥ 58", "old", "*", "33", None]
    shown, columns = cells_of_release(manifest, cells(ages, ["x", "c", "*", "1**", "[1, 2[", None]))

    assert shown["age"].cells().to_pylist() == ["[17, 25]", "58", r"{[9, 80]|\N}", "*", "33", None]
    assert shown["job"].cells().to_pylist() == ["{a|b}", "c", "*", r"1\*\*", r"\[1\, 2\[", None]
    assert columns == COLUMNS


def test_masks_of_numbers_have_no_place_and_are_values():
    table, columns = one_column(["19**", "20**", "1999"], kind=Kind.NUMERIC)
    recoding = {"name": "x", "column": "x", "rule": "hierarchy", "kind": "numeric"}
    shown, columns = cells_of_release({"recodings": [recoding]}, table)

    assert GeneralizedEncoder().fit(shown, columns).transform(shown).tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]


@given(
    st.lists(st.tuples(st.integers(-30, 30), st.integers(0, 20), st.integers(1, 9)), min_size=1, max_size=40),
    st.integers(-40, 60),
)
def test_pieces_are_the_share_of_a_range_above_each_cut(drawn, new):
    """Compared with a loop over the definition; every cut divides the ends, and there are at most 15."""
    ranges = [(low, low + width) for low, width, count in drawn for _ in range(count)]
    table, columns = one_column([write_range(str(low), str(high)) for low, high in ranges], kind=Kind.NUMERIC)
    encoder = GeneralizedEncoder().fit(table, columns)
    found = encoder.transform(table)
    ends = sorted({end for two in ranges for end in two})
    cuts = encoder._parts[0].cuts.tolist()

    assert encoder.is_piece_.tolist() == [False] + [True] * len(cuts)
    assert len(cuts) == 0 if len(ends) <= 2 else len(cuts) <= 15
    if 2 < len(ends) <= 16:
        assert cuts == [(low + high) / 2 for low, high in itertools.pairwise(ends)]
    for (low, high), row in zip(ranges, found.tolist(), strict=True):
        assert row[0] == (low + high) / 2
        for cut, share in zip(cuts, row[1:], strict=True):
            if low == high:
                assert share == (low > cut)
            else:
                assert share == pytest.approx(min(max((high - cut) / (high - low), 0), 1))
    single, _ = one_column([str(new)])
    assert encoder.transform(single).tolist() == [[new, *(float(new > cut) for cut in cuts)]]


def test_anything_is_the_range_of_all_and_the_set_of_all():
    table, columns = one_column(["1", "5", "*", "[1, 5]", "{1|5}", "3"], kind=Kind.NUMERIC)
    numbers = GeneralizedEncoder().fit(table, columns).transform(table)
    assert numbers[2].tolist() == numbers[3].tolist() == numbers[4].tolist() == [3, 0.75, 0.25]

    table, columns = one_column(["a", "b", "*", "{a|b|c}"])
    shares = GeneralizedEncoder().fit(table, columns).transform(table)
    assert shares[2].tolist() == shares[3].tolist() == pytest.approx([1 / 3] * 3)


def test_huge_numbers_have_finite_pieces():
    table, columns = one_column(["-1.7e308", "[-1.7e308, 1.7e308]", "1.7e308", "0"], kind=Kind.NUMERIC)
    encoder = GeneralizedEncoder().fit(table, columns)

    found = encoder.transform(table)
    assert np.isfinite(found).all()
    assert found[:, 1:] == pytest.approx(np.array([[0, 0], [0.75, 0.25], [1, 1], [1, 0]]))


members = st.lists(st.sampled_from("abcdefgh|{"), min_size=1, max_size=4, unique=True)


@given(st.lists(st.one_of(members, st.none(), st.just("*")), min_size=1, max_size=30), st.integers(1, 9))
def test_values_named_together_share_a_column_and_only_the_most_frequent_have_one(drawn, most):
    texts = [write_set(cell) if isinstance(cell, list) else cell for cell in drawn]
    table, columns = one_column(texts)
    sets = [set(cell) if isinstance(cell, list) else set() for cell in drawn]
    together = {}
    for value in sorted(set().union(*sets)):
        together.setdefault(tuple(value in cell for cell in sets), []).append(value)
    groups = list(together.values())
    n_values = sum(map(len, groups))

    found = GeneralizedEncoder().fit(table, columns).transform(table)

    if not groups:
        assert not found.any()
        return
    for cell, row in zip(drawn, found.tolist(), strict=True):
        held = {v for group in groups for v in group} if cell == "*" else set(cell or ())
        assert row == pytest.approx(
            [len(held & set(g)) / (n_values if cell == "*" else max(len(held), 1)) for g in groups]
        )
    encoder = GeneralizedEncoder(max_values=most).fit(table, columns)
    kept = encoder.transform(table)
    assert kept.shape[1] == min(most, len(groups))
    assert np.sort(kept.sum(axis=0)) == pytest.approx(np.sort(found.sum(axis=0))[-kept.shape[1] :])
