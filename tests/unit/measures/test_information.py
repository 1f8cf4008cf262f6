"""Entropy and mutual information: worked by hand, and the two papers' tables on their own data."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score
from sklearn.metrics.cluster import expected_mutual_information

from sfumato.counting.classes import class_value_counts
from sfumato.counting.contingency import contingencies
from sfumato.measures.information import (
    conditional_entropy_bits,
    entropy_bits,
    expected_information_bits,
    mutual_information_bits,
)
from sfumato.schema import Column, Schema
from sfumato.table.coding import Table

GAINS_FOR_SEX = {
    "relationship": 0.394,
    "marital-status": 0.167,
    "salary-class": 0.037,
    "workclass": 0.017,
    "age": 0.012,
    "race": 0.010,
    "education": 0.006,
    "native-country": 0.004,
}
"""Table 1 of [FBA19], but for age, which the paper cuts first: see tests/papers/test_gain_paper.py."""
GAINS_FOR_SALARY = {
    "relationship": 0.166,
    "marital-status": 0.157,
    "age": 0.097,
    "education": 0.093,
    "occupation": 0.093,
    "hours-per-week": 0.060,
    "sex": 0.037,
    "workclass": 0.017,
    "native-country": 0.009,
    "race": 0.008,
}
TUMOR_UTILITIES = {
    "age": 0.1547,
    "sex": 0.3354,
    "histologic-type": 0.5524,
    "degree-of-diffe": 0.3791,
    "bone": 0.2125,
    "bone-marrow": 0.0204,
    "lung": 0.1009,
    "pleura": 0.0679,
    "peritoneum": 0.2205,
    "liver": 0.1998,
    "brain": 0.0671,
    "skin": 0.0603,
    "neck": 0.2915,
    "supraclavicular": 0.1272,
    "axillar": 0.2459,
    "mediastinum": 0.1843,
    "abdominal": 0.1701,
}
"""Total utility of Table I of [PUFS], in bits."""
TUMOR_PRIVACY = {
    "sex": 0.6464,
    "histologic-type": 0.6885,
    "degree-of-diffe": 0.8795,
    "bone": 0.8517,
    "bone-marrow": 0.1451,
    "lung": 0.7624,
    "abdominal": 0.9241,
    "age": 0.7689,  # the paper prints .6213, which does not follow from the data
}


def coded(cells):
    return Table.from_arrow(cells, Schema.of(Column(name) for name in cells.column_names))


@pytest.fixture(scope="module")
def adult(shared_data):
    """Read the 30,162 complete rows of adult.data."""
    names = "age workclass fnlwgt education education-num marital-status occupation relationship race sex"
    names += " capital-gain capital-loss hours-per-week native-country salary-class"
    lines = (shared_data / "adult" / "adult.data").read_text(encoding="utf-8").splitlines()
    rows = [fields for line in lines if len(fields := line.split(", ")) == 15 and "?" not in fields]
    return coded(pa.table([pa.array(cells) for cells in zip(*rows, strict=True)], names=names.split()))


@pytest.fixture(scope="module")
def tumor(shared_data):
    """Read all 339 rows of Primary Tumor; a question mark is a value."""
    lines = (shared_data / "primary-tumor" / "primary-tumor.arff").read_text(encoding="utf-8").splitlines()
    names = [line.split()[1].strip("'") for line in lines if line.lower().startswith("@attribute")]
    start = next(i for i, line in enumerate(lines) if line.lower().startswith("@data"))
    rows = [line.split(",") for line in lines[start + 1 :] if line.strip() and not line.startswith("%")]
    return coded(pa.table([pa.array(cells) for cells in zip(*rows, strict=True)], names=names))


@pytest.mark.parametrize(
    ("counts", "expected"),
    [([], 0), ([0, 0], 0), ([7], 0), ([5, 0], 0), ([1, 1], 1), ([[1, 1], [1, 1]], 2), ([9, 3, 3, 1], 1.6225562)],
    ids=["nothing", "zeros", "one-value", "one-value-of-two", "coin", "all-dimensions", "mendel"],
)
def test_entropy_in_bits(counts, expected):
    assert entropy_bits(counts) == pytest.approx(expected)


@pytest.mark.parametrize("n", [2, 3, 7, 1000])
def test_entropy_of_equally_frequent_values_is_the_logarithm_of_their_number(n):
    assert entropy_bits(np.full(n, 3)) == pytest.approx(math.log2(n))


def test_conditional_entropy_worked_by_hand():
    """Half the rows are certain; the other half are a coin."""
    assert conditional_entropy_bits([[2, 2], [4, 0]]) == 0.5


@pytest.mark.parametrize(
    ("counts", "expected"),
    [(np.zeros((0, 0)), 0), ([[5, 3]], 0), ([[2, 4], [3, 6]], 0), ([[3, 0], [0, 3]], 1)],
    ids=["empty", "one-value", "independent", "determined"],
)
def test_mutual_information_at_its_ends(counts, expected):
    assert mutual_information_bits(counts) == pytest.approx(expected, abs=1e-15)


def test_mutual_information_agrees_with_scikit_learn():
    counts = np.random.default_rng(1).integers(0, 20, size=(6, 4))
    theirs = mutual_info_score(None, None, contingency=counts) / math.log(2)

    assert mutual_information_bits(counts) == pytest.approx(theirs)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=6))
def test_expected_information_is_the_mean_over_all_ways_to_deal_the_classes(pairs):
    values, classes = zip(*pairs, strict=True)

    def gain(dealt):
        counts = np.zeros((4, 3))
        np.add.at(counts, (list(values), list(dealt)), 1)
        return mutual_information_bits(counts)

    counts = np.zeros((4, 3))
    np.add.at(counts, (list(values), list(classes)), 1)
    ways = [gain(dealt) for dealt in itertools.permutations(classes)]
    assert expected_information_bits(counts) == pytest.approx(sum(ways) / len(ways), abs=1e-12)


@pytest.mark.parametrize(("n_values", "n_rows"), [(5, 50), (100, 2000), (1000, 2000), (41, 30_000)])
def test_expected_information_agrees_with_scikit_learn(n_values, n_rows):
    """Exactly where counts are small; to half a percent where the expansion for large counts is used."""
    rng = np.random.default_rng(n_values)
    counts = np.zeros((n_values, 4), dtype=np.int64)
    np.add.at(counts, (rng.integers(0, n_values, n_rows), np.minimum(rng.geometric(0.4, n_rows) - 1, 3)), 1)
    counts = counts[counts.sum(axis=1) > 0]
    theirs = expected_mutual_information(counts, n_rows) / math.log(2)

    assert expected_information_bits(counts) == pytest.approx(theirs, rel=5e-3 if n_rows > 2000 else 1e-9)


def test_expected_information_of_a_value_a_row_is_the_entropy_of_the_class():
    counts = np.eye(2)[np.arange(200) % 2]

    assert expected_information_bits(counts) == pytest.approx(1.0)
    assert expected_information_bits(np.zeros((0, 2))) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "gains"), [("sex", GAINS_FOR_SEX), ("salary-class", GAINS_FOR_SALARY)], ids=["sex", "salary"]
)
def test_information_gains_on_adult(adult, by, gains):
    found = {name: mutual_information_bits(counts) for name, counts in contingencies(adult, gains, by).items()}

    assert adult.n_rows == 30_162
    assert found == pytest.approx(gains, abs=5e-4)


@pytest.mark.slow
def test_gains_are_the_same_counted_out_of_core(shared_data):
    path = shared_data / "adult-arx" / "adult.csv"
    gains = {name: gain for name, gain in GAINS_FOR_SEX.items() if name != "relationship"}
    found = {name: mutual_information_bits(counts) for name, counts in contingencies(path, gains, "sex").items()}
    cells = pa.csv.read_csv(path, parse_options=pa.csv.ParseOptions(delimiter=";"))
    in_memory = contingencies(coded(cells), gains, "sex")

    assert found == pytest.approx(gains, abs=5e-4)
    assert found == {name: mutual_information_bits(counts) for name, counts in in_memory.items()}


def test_utilities_on_primary_tumor(tumor):
    found = {
        name: mutual_information_bits(counts) for name, counts in contingencies(tumor, TUMOR_UTILITIES, "class").items()
    }

    assert tumor.n_rows == 339
    assert found == pytest.approx(TUMOR_UTILITIES, abs=1e-4)


def test_normalized_entropies_on_primary_tumor(tumor):
    found = {
        name: entropy_bits(counts := class_value_counts(tumor, [], name).value_totals) / math.log2(len(counts))
        for name in TUMOR_PRIVACY
    }

    assert found == pytest.approx(TUMOR_PRIVACY, abs=1e-4)
