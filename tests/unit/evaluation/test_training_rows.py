"""Rows to train on: means of cells and values drawn from them, whatever the order of rows and the way of writing."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.evaluation import encoding
from sfumato.evaluation.classifiers import CLASSIFIERS
from sfumato.evaluation.encoding import GeneralizedEncoder, TrainingRows, values_as_cells
from sfumato.evaluation.scores import held_out_fold
from sfumato.schema import Column, Kind, Schema
from sfumato.table.coding import Table

COLUMNS = {"age": Column("age", kind=Kind.NUMERIC), "job": Column("job")}
AGES = ("[20, 30]", "[20, 24]", "25", r"{[26, 29]|\N}", "*", None)
JOBS = ("{a|b}", "{a|b|c}", "c", r"{d|\N}", "*", None)


def cells(ages, jobs):
    columns = {"age": pa.array(ages, pa.string()), "job": pa.array(jobs, pa.string())}
    return Table.from_arrow(pa.table(columns), Schema.of([Column("age"), Column("job")]))


def training_rows(table, target, seed=0, columns=COLUMNS, **how):
    return GeneralizedEncoder(**how).fit(table, columns).training_rows(table, np.array(target, dtype=np.int32), seed)


def as_set_of_rows(rows):
    """Sort rows with classes and weights; missing first."""
    whole = np.column_stack([np.nan_to_num(rows.numbers, nan=-1e9), rows.target, rows.weights])
    return whole[np.lexsort(whole.T)]


drawn_rows = st.lists(
    st.tuples(st.sampled_from(AGES), st.sampled_from(JOBS), st.integers(0, 2)), min_size=1, max_size=12
)


@given(drawn_rows, st.randoms(use_true_random=False), st.integers(0, 3))
def test_the_order_of_rows_does_not_matter(rows, shuffling, seed):
    rows = [*rows, ("[20, 30]", "c", 0)]
    other = shuffling.sample(rows, len(rows))

    found, again = (
        training_rows(cells(ages, jobs), target, seed)
        for ages, jobs, target in (zip(*rows, strict=True), zip(*other, strict=True))
    )

    assert np.array_equal(as_set_of_rows(found), as_set_of_rows(again))


@given(drawn_rows)
def test_draws_are_values_of_the_cells(rows):
    ages, jobs, target = zip(*rows, ("[20, 30]", "a", 0), strict=True)
    n_rows = len(ages)
    encoder = GeneralizedEncoder("bounds").fit(table := cells(ages, jobs), COLUMNS)

    found = encoder.training_rows(table, np.array(target, dtype=np.int32))

    means = encoder.transform(table)
    assert np.array_equal(found.numbers[:n_rows], means, equal_nan=True)
    assert np.array_equal(found.target, np.tile(target, 6))
    assert np.allclose(found.weights.reshape(6, n_rows).sum(axis=0), 1)
    for drawn in found.numbers.reshape(6, n_rows, -1)[1:]:
        low, high = drawn[:, 0], drawn[:, 1]
        assert np.array_equal(low, high, equal_nan=True)
        assert np.array_equal(np.isnan(low), np.isnan(means[:, 0]))
        known = ~np.isnan(low)
        assert (means[known, 0] <= low[known]).all()
        assert (low[known] <= means[known, 1]).all()
        assert (low[known] == np.round(low[known])).all()
        shares, of_cell = drawn[:, 2:], means[:, 2:]
        assert np.array_equal(shares.sum(axis=1), (of_cell.sum(axis=1) > 0).astype(float))
        assert (shares <= (of_cell > 0)).all()


def test_every_value_of_a_cell_has_the_same_chance():
    n_rows = 4000
    table = cells(["[1, 4]"] * n_rows, ["{a|b|c}"] * (n_rows - 3) + ["a", "b", "c"])

    drawn = training_rows(table, [0] * n_rows).numbers[n_rows:]

    ages = np.bincount(drawn[:, 0].astype(int), minlength=5)[1:]
    jobs = drawn[:, -3:].sum(axis=0)
    for counts, expected in ((ages, 5 * n_rows / 4), (jobs, 5 * n_rows / 3)):
        assert np.abs(counts - expected).max() < 4 * np.sqrt(expected)


def test_numbers_that_are_not_whole_are_drawn_from_the_whole_range():
    table = cells(["[0.5, 1]", "1"] * 50, ["c"] * 100)

    drawn = training_rows(table, [0] * 100, ranges="midpoint").numbers[100:, 0]

    assert len(np.unique(drawn[::2])) == 250
    assert (drawn[::2].min(), drawn[::2].max()) == pytest.approx((0.5, 1), abs=0.02)
    assert (drawn[1::2] == 1).all()


def test_cells_of_one_value_are_trained_on_as_they_are():
    table = values_as_cells(cells(["20", "30", None], ["a", "b", "c"]), [])

    found = training_rows(table, [0, 1, 1])

    assert found.weights is None
    assert np.array_equal(found.numbers, GeneralizedEncoder().fit(table, COLUMNS).transform(table), equal_nan=True)


def test_values_that_no_cell_tells_apart_are_nothing_to_draw():
    assert training_rows(cells(["20", "20"], ["{a|b}", "c"]), [0, 1]).weights is None


def test_draws_follow_the_seed():
    table = cells(["[20, 90]"] * 30, ["*"] * 29 + ["c"])

    found, again, other = (training_rows(table, [0, 1, 1] * 10, seed).numbers for seed in (1, 1, 2))

    assert np.array_equal(found, again)
    assert not np.array_equal(found, other)


@pytest.mark.parametrize(("n_rows", "n_draws"), [(3, 5), (4, 3), (9, 1), (40, 1)])
def test_large_tables_have_fewer_draws(monkeypatch, n_rows, n_draws):
    monkeypatch.setattr(encoding, "MOST_DRAWN_ROWS", 15)

    found = training_rows(cells(["[20, 30]"] * n_rows, ["a"] * n_rows), [0] * n_rows)

    assert len(found.numbers) == len(found.target) == len(found.weights) == n_rows * (1 + n_draws)
    assert found.weights.sum() == pytest.approx(n_rows)


def test_sets_that_are_taken_as_categories_stay_categories():
    found = training_rows(cells(["[20, 30]", "25"], ["{a|b}", "c"]), [0, 1], sets="label")

    assert np.array_equal(found.numbers[:, -1], np.tile(found.numbers[:2, -1], 6))


def test_ranges_between_huge_numbers_stay_finite():
    found = training_rows(cells(["[-1e308, 1e308]", "[-1e308, 0.5]"], ["a", "b"]), [0, 1])

    assert np.isfinite(found.numbers).all()


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_follow_the_weights(name):
    numbers, target = np.zeros((12, 2)), np.array([0] * 8 + [1] * 4, dtype=np.int32)
    heavy = TrainingRows(numbers, target, np.where(target == 1, 3.0, 1.0))

    found = [
        held_out_fold(CLASSIFIERS[name].build(0), train, (numbers[:1], target[:1]), 2).predicted[0]
        for train in ((numbers, target), heavy)
    ]

    assert found == [0, 1]


def test_a_column_that_is_missing_everywhere_stays_missing():
    of_ages = training_rows(cells(["[20, 30]", "25"], [None, None]), [0, 1], ranges="midpoint").numbers
    of_jobs = training_rows(cells([None, None], ["{a|b}", "a"]), [0, 1]).numbers

    assert of_ages.shape == (12, 1)
    assert np.isnan(of_jobs[:, 0]).all()
    assert (of_jobs[:, 1:].sum(axis=1) == 1).all()
