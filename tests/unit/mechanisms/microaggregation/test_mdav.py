"""MDAV beside the algorithm written out by hand with points of 0/1 columns, and what it promises of every table."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.datasets.admissions import admissions
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.mechanisms.microaggregation.mdav import MDAV, Points, mdav_clusters
from sfumato.publishing.propose import make_release, propose_release
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table
from sizes import examples

KEPT = ["age", "sex", "insurance", "discharge_diagnosis", "readmitted"]


def embedded(numbers, codes):
    """Rows as points: numbers as they are, and a column of 0 and the root of 1/2 for each value of the others."""
    parts = [np.array(numbers, dtype=float).reshape(-1, 1)]
    for column in codes:
        values = sorted(set(column))
        parts.append(np.array([[math.sqrt(0.5) * (value == own) for value in values] for own in column]))
    return np.hstack(parts)


def clusters_by_hand(points, k):
    """MDAV-generic as [DFT05] has it, a distance at a time; of rows equally far away the first."""

    def apart(one, other):
        return round(float(((one - other) ** 2).sum()), 9)

    left, found = list(range(len(points))), [0] * len(points)
    number = 0

    def gather(seed):
        nonlocal left, number
        others = sorted((row for row in left if row != seed), key=lambda row: (apart(points[row], points[seed]), row))
        for row in [seed, *others[: k - 1]]:
            found[row] = number
            left.remove(row)
        number += 1

    def farthest_from(point):
        return max(left, key=lambda row: (apart(points[row], point), -row))

    while len(left) >= 3 * k:
        far = farthest_from(points[left].mean(axis=0))
        other = farthest_from(points[far])
        gather(far)
        gather(other)
    if len(left) >= 2 * k:
        gather(farthest_from(points[left].mean(axis=0)))
    for row in left:
        found[row] = number
    return found


rows_of_points = st.lists(
    st.tuples(st.integers(-40, 40), st.integers(0, 2), st.integers(0, 3)), min_size=2, max_size=26
)


@examples(80)
@given(rows_of_points, st.integers(2, 4))
def test_clusters_are_those_of_the_algorithm_by_hand(drawn, k):
    # roots keep different distances apart by more than rounding: equal steps would be symmetric around an average
    numbers = [value * 0.37 + math.sqrt(i) * 1e-3 for i, (value, *_) in enumerate(drawn)]
    codes = [[row[1] for row in drawn], [row[2] for row in drawn]]
    points = Points(np.array([numbers]), np.array(codes, dtype=np.int32))

    assert mdav_clusters(points, k).tolist() == clusters_by_hand(embedded(numbers, codes), k)


def test_one_step_gathers_the_farthest_rows_and_their_nearest():
    numbers = np.array([[0.0, 1, 2, 50, 51, 52, 100, 101, 102, 49]])
    found = mdav_clusters(Points(numbers, np.zeros((0, 10), dtype=np.int32)), 3)

    assert found.tolist() == [1, 1, 1, 2, 2, 2, 0, 0, 0, 2]


@pytest.mark.slow
@examples(40)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(0, 9)),
            st.one_of(st.none(), st.sampled_from("abc")),
            st.sampled_from(["yes", "no"]),
        ),
        min_size=2,
        max_size=30,
    ),
    st.integers(2, 5),
)
def test_clusters_have_k_to_less_than_2k_rows_and_the_audit_confirms_k(drawn, k):
    schema = Schema.of([Column("age", kind=Kind.NUMERIC), Column("job"), Column("ill", Role.TARGET)])
    columns = {
        "age": pa.array([None if row[0] is None else str(row[0]) for row in drawn], pa.string()),
        "job": pa.array([row[1] for row in drawn], pa.string()),
        "ill": pa.array([row[2] for row in drawn], pa.string()),
    }
    table = Table.from_arrow(pa.table(columns), schema)
    if len(drawn) < k:
        with pytest.raises(PrivacyNotAchievableError):
            MDAV(k=k).release(table)
        return
    sizes = np.bincount(MDAV(k=k).recode(table).cover.of_row)
    release = make_release(table, MDAV(k=k))

    assert sizes.min() >= k
    assert sizes.max() <= 2 * k - 1
    assert np.unique(release.table.codes(["age", "job"]), axis=0, return_counts=True)[1].min() >= k


def test_the_release_does_not_depend_on_the_order_of_the_input():
    table = admissions(n_rows=300).keep(KEPT)
    shuffled = table.take(np.random.default_rng(1).permutation(300))

    assert propose_release(table, MDAV()).data.to_arrow() == propose_release(shuffled, MDAV()).data.to_arrow()


def test_clusters_may_be_released_as_ranges():
    table = admissions(n_rows=200).keep(KEPT)
    ranges = make_release(table, MDAV(k=5).with_cells("ranges"))
    values = make_release(table, MDAV(k=5))

    assert {entry["rule"] for entry in ranges.manifest.recodings} == {"generalized"}
    assert {entry["rule"] for entry in values.manifest.recodings} == {"typical"}
    ages, typical = ranges.table["age"].cells().to_pylist(), values.table["age"].cells().to_pylist()
    for cell, value in zip(ages, typical, strict=True):
        low, _, high = cell.strip("[]").partition(", ")
        assert float(low) <= float(value) <= float(high or low)


def test_new_rows_get_the_ranges_of_the_nearest_row():
    table = admissions(n_rows=200).keep(["age", "sex", "readmitted"])
    recoding = MDAV(k=5).recode(table)

    assert recoding.generalized(table)["age"].n_rows == 200
    same = recoding.generalized(table)["sex"].cells().to_pylist()
    assert all(sex in cell or cell == "*" for sex, cell in zip(table["sex"].cells().to_pylist(), same, strict=True))


def test_a_column_with_one_value_or_only_missing_ones_counts_for_nothing():
    schema = Schema.of([Column("age", kind=Kind.NUMERIC), Column("none", kind=Kind.NUMERIC), Column("same")])
    columns = {"age": [str(i) for i in range(10)], "none": pa.nulls(10, pa.string()), "same": ["x"] * 10}
    release = make_release(Table.from_arrow(pa.table(columns), schema), MDAV(k=5))

    assert release.table["none"].n_missing == 10
    assert np.bincount(release.table["age"].codes).tolist() == [5, 5]


def test_persons_with_several_rows_are_refused():
    table = admissions(n_rows=60).keep(["patient_id", "age", "sex", "readmitted"])
    twice = table.take(np.repeat(np.arange(30), 2)).with_schema({"patient_id": "person"})

    with pytest.raises(InvalidParameterError, match="mdav counts rows"):
        make_release(twice, MDAV())


def test_a_k_below_2_is_refused():
    with pytest.raises(InvalidParameterError, match="at least 2"):
        MDAV(k=1).release(admissions(n_rows=20).keep(KEPT))


def test_large_tables_are_not_compared_unasked():
    from sfumato.mechanisms.microaggregation.mdav import DECLARATION

    table = admissions(n_rows=100).keep(KEPT)
    assert DECLARATION.compared(table) == ({"k": 5}, {"k": 10})
    with pytest.raises(SchemaError, match="grows with their square"):
        DECLARATION.compared(table.take(np.zeros(20_001, dtype=np.intp)))
