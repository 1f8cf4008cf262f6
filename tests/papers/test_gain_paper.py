"""The gain paper's Table 1 whole, and gains that many values alone cannot raise."""

import itertools
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from sklearn.ensemble import RandomForestClassifier

from reproductions.adult_hierarchies import adult_hierarchies
from reproductions.gain.run import PRINTED
from reproductions.gain.scoring import (
    FOREST,
    NAIVE_BAYES,
    PAPER,
    REGRESSION,
    CellEncoder,
    Swapping,
    height_of,
    table_of,
)
from reproductions.public_data import load_adult
from sfumato.evaluation.utility import cross_validated_utility
from sfumato.learning.discretization import description_length_cuts
from sfumato.mechanisms.hierarchies.automatic import counts_by_class
from sfumato.mechanisms.lattice import recoder as global_recoding
from sfumato.mechanisms.lattice.gain import GainRecoder
from sfumato.mechanisms.lattice.losses import column_weights, information_gains
from sfumato.mechanisms.lattice.search import search_lattice
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

TABLE_1 = {
    "relationship": 0.394,
    "marital-status": 0.167,
    "salary": 0.037,
    "workclass": 0.017,
    "age": 0.01,
    "race": 0.01,
    "education": 0.006,
    "native-country": 0.004,
}
"""Gains for sex on the 30,162 complete rows of Adult, as printed (Weka's InfoGainAttributeEval)."""


@pytest.fixture(scope="module")
def adult(shared_data):
    """Read the complete rows of adult.data."""
    assert shared_data.is_dir()
    return load_adult("train", complete=True)


def test_all_eight_gains_of_table_1_come_out(adult):
    found = information_gains(adult, list(TABLE_1), "sex", correction="none")

    assert adult.n_rows == 30_162
    assert {name: round(gain, 3) for name, gain in found.items()} == TABLE_1
    assert found["age"] == pytest.approx(0.0100, abs=5e-5)


def test_age_is_cut_where_weka_cuts_it(adult):
    counts = counts_by_class(adult, "age", "sex")
    numbers = np.array([float(value) for value in adult["age"].values.to_pylist()])
    order = np.argsort(numbers)

    assert description_length_cuts(numbers[order], counts[order].astype(float)).tolist() == [22.5, 25.5, 29.5]


def test_the_paper_s_recoder_slices_by_table_1(adult):
    quasi = [*TABLE_1, "sex"]
    roles = {c.name: Role.QUASI_IDENTIFIER if c.name in quasi else Role.OTHER for c in adult.schema}
    table = adult.with_schema(adult.schema.with_roles(roles))
    recoder = GainRecoder(slicing=True, gain_target="sex", gain_correction="none")

    assert set(recoder.columns(table)) == {"workclass", "age", "race", "education", "native-country"}


def test_the_correction_changes_little_where_values_are_few(adult):
    plain = information_gains(adult, list(TABLE_1), "sex", correction="none")
    corrected = information_gains(adult, list(TABLE_1), "sex")

    assert all(plain[name] - 0.0011 <= corrected[name] <= plain[name] for name in TABLE_1)


def noisy_table(kind):
    """2,000 rows: a column that is right in 85 %, and one of noise with about 1,100 values."""
    rng = np.random.default_rng(4)
    target = rng.integers(0, 2, 2000)
    useful = np.where(rng.random(2000) < 0.85, target, 1 - target)
    noise = rng.choice(1330, 2000)
    spell = str if kind is Kind.NUMERIC else "code {:04d}".format
    cells = {
        "useful": [f"value {v}" for v in useful],
        "noise": [spell(v) for v in noise],
        "y": ["yes" if t else "no" for t in target],
    }
    columns = [Column("useful"), Column("noise", kind=kind), Column("y", Role.TARGET)]
    return Table.from_arrow(pa.table(cells), Schema.of(columns))


@pytest.mark.parametrize("kind", [Kind.NUMERIC, Kind.CATEGORICAL])
def test_noise_of_many_values_tells_less_than_a_useful_column(kind):
    table = noisy_table(kind)
    gains = information_gains(table, ["useful", "noise"], "y")

    assert 1000 < table["noise"].n_distinct < 1200
    assert gains["useful"] == pytest.approx(0.39, abs=0.02)
    assert gains["noise"] < 0.05 * gains["useful"]


@pytest.mark.parametrize("kind", [Kind.NUMERIC, Kind.CATEGORICAL])
@pytest.mark.parametrize("slicing", [False, True], ids=["sound", "slicing"])
def test_noise_is_neither_spared_nor_released_unprotected(kind, slicing):
    table = noisy_table(kind)
    recoder = GainRecoder(k=5, slicing=slicing, max_suppressed_fraction=0.02).fit(table)

    assert "noise" in recoder.recoding_.names
    assert ("useful" in recoder.recoding_.names) != slicing
    if not slicing:
        assert recoder.levels_["useful"] == 0
        assert recoder.levels_["noise"] > 0
        assert (
            column_weights("gain", table, ("useful", "noise"))[0]
            >= 20 * column_weights("gain", table, ("useful", "noise"))[1]
        )


@pytest.mark.parametrize("values", ["all different", "pairs"])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_a_column_of_a_value_a_row_tells_nothing(values, n_classes):
    rng = np.random.default_rng(5)
    target = rng.integers(0, n_classes, 600)
    numbers = np.arange(600) if values == "all different" else rng.permutation(600) // 2
    cells = {"x": [f"id {v}" for v in numbers], "y": [f"class {v}" for v in target]}
    table = Table.from_arrow(pa.table(cells), Schema.of([Column("x"), Column("y", Role.TARGET)]))

    assert information_gains(table, ["x"], "y")["x"] < 0.05


def test_dates_are_cut_like_numbers_and_a_target_of_many_numbers_counts_as_classes():
    rng = np.random.default_rng(6)
    days = rng.integers(0, 900, 3000)
    cells = {
        "day": [str(np.datetime64("2020-01-01") + int(d)) for d in days],
        "noise": [str(np.datetime64("2020-01-01") + int(d)) for d in rng.integers(0, 900, 3000)],
        "y": [f"{d // 30 + rng.random():.3f}" for d in days],
    }
    columns = [Column("day", kind=Kind.DATE), Column("noise", kind=Kind.DATE)]
    table = Table.from_arrow(pa.table(cells), Schema.of([*columns, Column("y", Role.TARGET, kind=Kind.NUMERIC)]))
    gains = information_gains(table, ["day", "noise"], "y")

    assert gains["day"] > 2
    assert gains["noise"] < 0.1


def test_a_missing_number_is_a_value_of_its_own():
    cells = {"x": [None] * 50 + ["1", "2"] * 25, "y": ["a"] * 50 + ["b"] * 50}
    schema = Schema.of([Column("x", kind=Kind.NUMERIC), Column("y", Role.TARGET)])
    table = Table.from_arrow(pa.table(cells), schema)

    assert information_gains(table, ["x"], "y", correction="none")["x"] == pytest.approx(1.0)


def test_with_fourteen_quasi_identifiers_the_sampling_weight_is_spared_last(adult):
    """Counted value by value, ``fnlwgt`` is kept and age, education and sex become ``*``."""
    quasi = [name for name in adult.schema.names() if name != "salary"]
    roles = {c.name: Role.QUASI_IDENTIFIER if c.name in quasi else Role.TARGET for c in adult.schema}
    table = adult.with_schema(adult.schema.with_roles(roles))
    gains = information_gains(table, quasi, "salary")

    assert len(quasi) == 14
    assert min(gains, key=gains.get) == "fnlwgt"

    def searched(problem, _):
        readings = itertools.count()  # a limit of work, the same on every machine
        return search_lattice(problem, 4_000.0, clock=lambda: float(next(readings)))

    with patch.object(global_recoding, "search_lattice", searched):
        found = GainRecoder(k=5, regroup=False).fit(table)
    heights = {c.name: found.levels_[c.name] / (c.n_levels - 1) for c in found.recoding_.covered}
    assert heights["fnlwgt"] == 1.0
    assert all(heights["fnlwgt"] >= heights[name] for name in ("age", "education", "sex"))


@pytest.mark.soak
def test_the_printed_forest_lies_between_leaves_of_one_and_of_two_rows(shared_data):
    """The reason given for the forests of Tables 3 and 4: settings that the paper does not state move the area."""
    assert shared_data.is_dir()
    table = table_of(PAPER)
    printed = PRINTED[FOREST]["Table 3"]["input"][0] / 100
    found = [
        cross_validated_utility(
            table,
            None,
            classifier=RandomForestClassifier(30, min_samples_leaf=n, random_state=0, n_jobs=1),
            encoder=CellEncoder,
            n_folds=2,
        ).auc
        for n in (1, 2)
    ]

    assert found[0] < printed < found[1]


def test_table_5_contradicts_tables_3_and_4():
    """Of the forest by points, of the others by less than a tenth of one."""
    for classifier, most in ((NAIVE_BAYES, 0.04), (REGRESSION, 0.08)):
        differences = [abs(printed - lost) for printed, lost in printed_and_subtracted(classifier)]
        assert 0.004 < min(differences) < max(differences) < most
    (without, lost), (with_gain, lost_with_gain) = printed_and_subtracted(FOREST)[::2]

    assert (round(without, 2), round(lost, 2)) == (4.52, 0.89)
    assert (round(with_gain, 2), round(lost_with_gain, 2)) == (-0.9, 1.59)


def printed_and_subtracted(classifier):
    """Losses of Table 5 beside input less output data of Tables 3 and 4, both classes of each."""
    losses, tables = (
        PRINTED[classifier]["Table 5"].values(),
        (PRINTED[classifier][name] for name in ("Table 3", "Table 4")),
    )
    return [
        (loss, before - after)
        for values, table in zip(losses, tables, strict=True)
        for loss, before, after in zip(values, table["input"], table["output"], strict=True)
    ]


def test_swapping_keeps_the_counts_of_every_column_and_breaks_what_belongs_together(adult):
    swapped = Swapping(("age", "race"), 1.0).recoded(adult)

    for name in ("age", "race", "sex"):
        before, after = (np.bincount(table[name].codes, minlength=80) for table in (adult, swapped))
        assert (before == after).all()
    assert (swapped["sex"].codes == adult["sex"].codes).all()
    assert (swapped["age"].codes != adult["age"].codes).mean() > 0.9


def test_the_height_of_a_release_is_counted_cell_by_cell(adult):
    """Equation 4: each label's level, here of a table whose age is at level 1 and whose rows are all released."""
    known = adult_hierarchies()["age"]
    labels = {row[0]: row[1] for row in known.rows()}
    values = adult["age"].values.to_pylist()
    raised = Table.from_arrow(
        pa.table({"age": [labels[str(values[code])] for code in adult["age"].codes]}),
        Schema.of([Column("age", Role.QUASI_IDENTIFIER)]),
    )

    assert height_of(raised, 0, ("age",)) == 1.0
    assert height_of(raised, raised.n_rows, ("age",)) == (1 + known.n_levels - 1) / 2
