"""Hierarchies fitted to columns, beside a naive look-up of every value."""

import math
import re
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.cli.main import in_flag_words
from sfumato.errors import SchemaError
from sfumato.mechanisms.hierarchies.files import read_hierarchy
from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy, covered
from sfumato.schema import Kind
from sfumato.table.coding import CodedColumn
from sfumato.table.io.read import read_table

AGES = Hierarchy.from_rows([("9", "young", "*"), ("10", "young", "*"), ("40", "old", "*"), ("50", "old", "*")])


def fitted(hierarchy, cells, kind=Kind.CATEGORICAL, **options):
    return covered(hierarchy, CodedColumn.encode(pa.array(cells, pa.string()), kind), "age", kind, **options)


@st.composite
def hierarchies_with_cells(draw):
    """Draw a hierarchy of numbers under ``*``, and cells of a column in several spellings, some missing."""
    n_values = draw(st.integers(1, 6))
    first = draw(st.lists(st.sampled_from("abc"), min_size=n_values, max_size=n_values))
    second = {label: draw(st.sampled_from("xy")) for label in "abc"}
    rows = [(str(i), first[i], second[first[i]], "*") for i in range(n_values)]
    number = st.builds(
        str.format, st.sampled_from(["{}", "{}.0", "+{}", "{}e0", " {}"]), st.integers(0, n_values - 1).map(str)
    )
    return rows, draw(st.lists(st.none() | number, min_size=1, max_size=12))


@given(hierarchies_with_cells())
def test_every_cell_gets_the_labels_of_its_number(drawn):
    rows, cells = drawn
    hierarchy = Hierarchy.from_rows(rows)
    column = CodedColumn.encode(pa.array(cells, pa.string()), Kind.NUMERIC)

    found = covered(hierarchy, column, "n", Kind.NUMERIC)

    by_number = {Fraction(row[0]): row for row in rows}
    own = (None, None, None, "*")
    listed = [*rows, own] if None in cells else rows
    assert found.n_rows == len(listed)
    for cell, code in zip(cells, column.codes, strict=True):
        row = own if cell is None else by_number[Fraction(cell.strip())]
        for level in range(1, 4):
            label = found.level_codes[level, code]
            assert found.labels[level][label] == row[level]
            n_alike = sum(other[level] == row[level] for other in listed)
            assert found.shares[level][label] == pytest.approx(n_alike / len(listed))
        first = found.labels[0][found.level_codes[0, code]]
        assert (first is None) == (cell is None)
        assert first is None or Fraction(first) == Fraction(cell.strip())


@given(hierarchies_with_cells())
def test_codes_are_nested_and_without_gaps(drawn):
    rows, cells = drawn
    found = fitted(Hierarchy.from_rows(rows), cells, Kind.NUMERIC)

    for labels, codes in zip(found.labels, found.level_codes, strict=True):
        assert len(set(labels)) == len(labels)
        assert sorted(set(codes.tolist())) == list(range(len(labels)))
    for base in range(found.n_levels):
        level_maps = found.level_maps_from(base)
        assert level_maps[0].tolist() == list(range(len(found.labels[base])))
        for codes, level_map in zip(found.level_codes[base:], level_maps, strict=True):
            assert np.array_equal(level_map[found.level_codes[base]], codes)


@given(hierarchies_with_cells())
def test_values_with_one_label_are_merged_into_the_first_of_them(drawn):
    rows, cells = drawn
    found = fitted(Hierarchy.from_rows(rows), cells, Kind.NUMERIC)

    for level, codes in enumerate(found.level_codes.tolist()):
        assert found.merged_at(level).tolist() == [codes.index(label) for label in codes]


def test_labels_that_do_not_occur_still_count_in_shares():
    found = fitted(AGES, ["10"], Kind.NUMERIC)

    assert found.labels == (("10",), ("young",), ("*",))
    assert [share.tolist() for share in found.shares] == [[0.25], [0.5], [1.0]]


def test_texts_match_as_they_are_written():
    with pytest.raises(SchemaError, match=re.escape("does not cover 1 of 2 values (2 of 3 rows)")):
        fitted(AGES, ["10", "10.0", "10.0"], Kind.CATEGORICAL)
    assert fitted(AGES, [" 10 "]).labels[0] == ("10",)


def test_large_whole_numbers_are_not_confused():
    """As floating-point numbers the two would be equal."""
    big = Hierarchy.from_rows([("9007199254740992", "even", "*"), ("9007199254740993", "odd", "*")])

    assert fitted(big, ["9007199254740993"], Kind.NUMERIC).labels[1] == ("odd",)


def test_typed_columns_are_matched_by_what_they_would_be_written_as():
    column = CodedColumn.encode(pa.array([10, 40, None]), Kind.NUMERIC)

    assert covered(AGES, column, "age", Kind.NUMERIC).labels[0] == ("10", "40", None)


def test_uncovered_values_are_counted_and_not_shown():
    with pytest.raises(SchemaError) as caught:
        fitted(AGES, ["10", "77777", "88888", "88888"], Kind.NUMERIC)

    said = str(caught.value)
    assert "column 'age': its hierarchy does not cover 2 of 3 values (3 of 4 rows)" in said
    assert said.endswith("Hint: add a row for each, or build a hierarchy that covers them")
    assert "'sfumato hierarchy build' makes one" in in_flag_words(caught.value)
    assert "77777" not in said
    assert "88888" not in said


def test_a_listed_missing_value_keeps_its_labels():
    listed = Hierarchy.from_rows([("a", "known", "*"), ("?", "unknown", "*"), ("b", "known", "*")])

    found = fitted(listed, ["a", None])

    assert found.labels == (("a", None), ("known", "unknown"), ("*",))
    assert found.n_rows == 3


def test_labels_of_missing_that_mean_missing_are_missing():
    listed = Hierarchy.from_rows([("a", "known", "*"), ("?", "?", "*")])

    assert fitted(listed, ["a", None]).labels[1] == ("known", None)


def test_missing_stays_apart_without_a_root():
    flat = Hierarchy.from_rows([("a", "x"), ("b", "y")])

    assert fitted(flat, ["a", None]).labels == (("a", None), ("x", None))


@pytest.mark.parametrize("rows", [[("a",)], [("a", "a")], [("a", "everything")]])
def test_the_label_that_missing_shares_is_a_star(rows):
    """A single value's label must not come to stand for missing too."""
    found = fitted(Hierarchy.from_rows(rows), ["a", None])

    assert found.labels[0] == ("a", None)
    assert found.labels[1:] == (("*",),) * (len(rows[0]) - 1)


def test_a_label_of_values_that_reads_as_missing_is_refused():
    north = Hierarchy.from_rows([("Mexico", "NA", "*"), ("Chile", "SA", "*")])

    with pytest.raises(SchemaError, match="level 1 of its hierarchy gives 1 values a label that means missing"):
        fitted(north, ["Chile"])
    assert fitted(north, ["Mexico"], missing=("?",)).labels[1] == ("NA",)


@pytest.mark.parametrize("again", ["10.0", " 10"])
def test_two_rows_for_one_value_are_refused(again):
    twice = Hierarchy.from_rows([("10", "a", "*"), (again, "b", "*")])

    with pytest.raises(SchemaError, match="rows 1 and 2 of its hierarchy are the same value"):
        fitted(twice, ["10"], Kind.NUMERIC)


def test_texts_among_the_numbers_of_a_hierarchy_are_in_nobodys_way():
    ages = Hierarchy.from_rows([("10", "young", "*"), ("not said", "other", "*")])

    found = fitted(ages, ["10"], Kind.NUMERIC)

    assert found.labels[1] == ("young",)
    assert repr(found) == "Covered('age', 3 levels: 1, 1, 1 labels)"


def test_no_rows_no_labels():
    found = fitted(AGES, [])

    assert found.labels == ((), (), ())
    assert found.level_codes.shape == (3, 0)


def test_shares_give_the_loss_that_arx_reports_for_its_optimum(shared_data):
    """Adult, k = 5: 421 rows in smaller classes, Loss .34441460899 (ARX 3.9.2)."""
    levels = {"sex": 0, "age": 3, "race": 0, "marital-status": 2, "education": 3}
    levels |= {"native-country": 1, "workclass": 1, "occupation": 1}
    folder = shared_data / "adult-arx"
    adult = read_table(folder / "adult.csv")
    cells, losses = [], []
    for name, level in levels.items():
        hierarchy = read_hierarchy(folder / f"adult_hierarchy_{name}.csv")
        found = covered(hierarchy, adult[name], name, adult.schema[name].kind)
        codes = found.level_codes[level][adult[name].codes]
        cells.append(codes)
        losses.append((found.shares[level][codes], 1 / found.n_rows))
    sizes = Counter(zip(*(codes.tolist() for codes in cells), strict=True))
    is_suppressed = np.array([sizes[row] < 5 for row in zip(*(codes.tolist() for codes in cells), strict=True)])

    means = [(np.where(is_suppressed, 1, shares).mean() - least) / (1 - least) for shares, least in losses]

    assert is_suppressed.sum() == 421
    assert math.prod(1 + mean for mean in means) ** (1 / 8) - 1 == pytest.approx(0.34441460899, abs=1e-9)
