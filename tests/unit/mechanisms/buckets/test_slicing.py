"""Slicing: which columns stay together, buckets within limits, and l-diversity over matching buckets."""

from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from matching_buckets import sliced_diversity_level
from sfumato.counting.counts import DenseCounts
from sfumato.datasets.admissions import admissions
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.mechanisms.buckets.slicing import MOST_VALUES, ShareLimit, Slicer, k_medoids, mean_square_contingency
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

PATIENTS = {
    "age": [22, 22, 33, 52, 54, 60, 60, 64],
    "sex": list("MFFFMMMF"),
    "zip": ["47906", "47906", "47905", "47905", "47302", "47302", "47304", "47304"],
    "disease": ["dyspepsia", "flu", "flu", "bronchitis", "flu", "dyspepsia", "dyspepsia", "gastritis"],
}
"""Table 1(a) of the paper."""


def table_of(cells, roles=None, kinds=None):
    columns = [
        Column(n, (roles or {}).get(n, Role.QUASI_IDENTIFIER), (kinds or {}).get(n, Kind.CATEGORICAL)) for n in cells
    ]
    arrow = pa.table(
        {n: pa.array([None if v is None else str(v) for v in values], pa.string()) for n, values in cells.items()}
    )
    return Table.from_arrow(arrow, Schema.of(columns))


def patients():
    return table_of(PATIENTS, {"disease": Role.SENSITIVE}, {"age": Kind.NUMERIC})


def correlated(n=120, seed=2):
    """Two pairs of columns that agree up to noise, a sensitive column that follows one, and a target."""
    rng = np.random.default_rng(seed)
    a, c = rng.integers(0, 3, n), rng.integers(0, 3, n)
    noisy = lambda x: np.where(rng.random(n) < 0.1, rng.integers(0, 3, n), x)  # noqa: E731
    cells = {"a": a, "b": noisy(a), "c": c, "d": noisy(c), "e": rng.integers(0, 2, n)}
    cells["s"] = np.where(cells["e"] == 0, rng.integers(0, 4, n), rng.integers(2, 6, n))
    cells["y"] = rng.integers(0, 2, n)
    return table_of({n: v.tolist() for n, v in cells.items()}, {"s": Role.SENSITIVE, "y": Role.TARGET})


def tuples_by_bucket(table, names, buckets):
    cells = [table[name].cells().to_pylist() for name in names]
    held = defaultdict(Counter)
    for bucket, *values in zip(buckets, *cells, strict=True):
        held[bucket][tuple(values)] += 1
    return held


def test_slices_hold_the_values_of_their_buckets():
    table = correlated()
    slicer = Slicer(k=6, l=2)
    released = slicer.release(table).table
    buckets = released["bucket"].cells().to_pylist()

    assert sorted(name for names in slicer.slices_ for name in names) == sorted("abcdesy")
    assert min(Counter(buckets).values()) >= 6
    assert len(set(buckets)) > 3
    for names in slicer.slices_:
        assert tuples_by_bucket(released, names, buckets) == tuples_by_bucket(table, names, buckets)


def test_slices_are_parted_from_each_other():
    """Rows that went through one bucket do not stay as they were."""
    table = correlated()
    released = Slicer(k=60, l=2).release(table).table
    same = [table[n].cells().to_pylist() == released[n].cells().to_pylist() for n in ("a", "c", "s")]

    assert not any(same)


def test_correlated_columns_share_a_slice():
    slicer = Slicer(k=5, l=2, n_slices=3)
    slicer.release(correlated())

    found = set(map(frozenset, slicer.slices_))
    assert {frozenset("ab"), frozenset("cd"), frozenset("es")} <= found


def test_no_value_is_too_frequent_in_a_bucket_beside_what_stayed_with_it():
    slicer = Slicer(k=5, l=2)
    released = slicer.release(correlated()).table
    assert slicer.slices_[-1] == ("e", "s")
    held = defaultdict(Counter)
    for bucket, e, s in zip(*(released[n].cells().to_pylist() for n in ("bucket", "e", "s")), strict=True):
        held[bucket, e][s] += 1

    assert all(2 * max(values.values()) <= sum(values.values()) for values in held.values())


def test_a_column_that_gives_the_value_away_does_not_stay_with_it():
    """The copy of the sensitive column is most correlated with it, and the constant column least."""
    table = correlated()
    cells = table.to_arrow().append_column("copy", table["s"].cells()).append_column("one", pa.array(["1"] * 120))
    roles = {c.name: c.role for c in table.schema}
    slicer = Slicer(k=5, l=2)
    slicer.release(table_of(cells.to_pydict(), roles))

    assert slicer.slices_[-1] == ("e", "s")


@pytest.mark.parametrize("n_beside", [0, 2])
def test_how_many_columns_stay_with_the_sensitive_one(n_beside):
    slicer = Slicer(k=5, l=2, n_beside_sensitive=n_beside)
    slicer.release(correlated(n=400))

    assert len(slicer.slices_[-1]) == n_beside + 1


def test_more_slices_than_columns_are_one_each():
    slicer = Slicer(k=5, l=2, n_slices=50, n_beside_sensitive=0)
    slicer.release(correlated())

    assert sorted(map(len, slicer.slices_)) == [1] * 7


def test_constant_columns_and_a_single_quasi_identifier():
    table = table_of({"a": ["x"] * 6, "s": list("123123")}, {"s": Role.SENSITIVE})
    slicer = Slicer(k=2, l=3)
    released = slicer.release(table).table

    assert slicer.slices_ == [("a", "s")]
    assert set(released["bucket"].cells().to_pylist()) == {"1"}


def test_the_papers_example_is_two_diverse():
    """Table 1(f): (age, sex) and (zip, disease) in two buckets of four; t1 can have dyspepsia or flu."""
    buckets = np.repeat(np.arange(2, dtype=np.int32), 4)
    level = sliced_diversity_level(patients(), buckets, [("age", "sex"), ("zip", "disease")], "disease")

    assert level == pytest.approx(2)


def test_rows_match_several_buckets_by_their_shares():
    """By hand: x is one of two rows of bucket 0 and one of four of bucket 1, so it is in them with 2/3 and 1/3.

    Value 1 makes up 1/2 and 3/4 of them: 2/3 · 1/2 + 1/3 · 3/4 = 7/12. For y they weigh 1/2 and 3/4, that is 2/5 and
    3/5: 2/5 · 1/2 + 3/5 · 3/4 = 13/20, the most probable value of anybody.
    """
    table = table_of({"q": list("xyxyyy"), "s": list("121113")}, {"s": Role.SENSITIVE})
    buckets = np.array([0, 0, 1, 1, 1, 1], dtype=np.int32)

    assert sliced_diversity_level(table, buckets, [("q",), ("s",)], "s") == pytest.approx(20 / 13)


def test_contingency_agrees_with_the_formula_written_out():
    table = correlated()
    names = ("a", "b", "e", "y")
    found = mean_square_contingency(table, names)
    for (i, one), (j, two) in combinations(enumerate(names), 2):
        x, y = table[one].cells().to_pylist(), table[two].cells().to_pylist()
        n, total = len(x), 0.0
        for u in set(x):
            for v in set(y):
                f, fu, fv = sum(p == (u, v) for p in zip(x, y, strict=True)) / n, x.count(u) / n, y.count(v) / n
                total += (f - fu * fv) ** 2 / (fu * fv)
        assert found[i, j] == found[j, i] == pytest.approx(total / (min(len(set(x)), len(set(y))) - 1))


def test_many_values_are_coarsened_before_they_are_compared():
    """Columns of all different values would tell everything; independent ones are found nearly independent."""
    rng = np.random.default_rng(0)
    cells = {
        "n": rng.permutation(4000).tolist(),
        "t": [f"v{i}" for i in rng.permutation(4000)],
        "z": (["a", "b"] * 2000),
    }
    found = mean_square_contingency(table_of(cells, kinds={"n": Kind.NUMERIC}), ("n", "t", "z"))

    assert found[0, 2] < 0.02
    assert found[1, 2] < 0.02
    assert found[0, 0] == pytest.approx(1)


def test_missing_numbers_are_a_band_of_their_own():
    cells = {"n": [None if i % 3 == 0 else i for i in range(300)], "gone": [i % 3 == 0 for i in range(300)]}
    found = mean_square_contingency(table_of(cells, kinds={"n": Kind.NUMERIC}), ("n", "gone"))

    assert len(set(cells["n"])) > MOST_VALUES
    assert found[0, 1] == pytest.approx(1)


def test_constant_columns_belong_to_nothing():
    found = mean_square_contingency(table_of({"a": ["1"] * 4, "b": list("xyxy")}), ("a", "b"))

    assert found.tolist() == [[0, 0], [0, 1]]


@pytest.mark.parametrize("n_groups", [1, 2, 3, 5])
def test_no_exchange_of_one_medoid_brings_columns_nearer(n_groups):
    points = np.random.default_rng(7).random((9, 2))
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    groups = k_medoids(distances, n_groups)

    def cost(medoids):
        return distances[:, medoids].min(axis=1).sum()

    assert len(set(groups.tolist())) == n_groups
    medoids = [
        min(np.flatnonzero(groups == g), key=lambda i, g=g: distances[i, groups == g].sum()) for g in range(n_groups)
    ]
    for i in range(n_groups):
        for other in set(range(9)) - set(medoids):
            assert cost([*medoids[:i], other, *medoids[i + 1 :]]) >= cost(medoids) - 1e-9


def test_groups_of_equal_columns_are_as_many_as_asked():
    assert len(set(k_medoids(np.zeros((4, 4)), 3).tolist())) == 3
    assert k_medoids(np.zeros((0, 0)), 2).tolist() == []


def test_a_limit_looks_at_each_combination_beside():
    limit = ShareLimit(2, np.array([0, 3]))
    counts = DenseCounts.alone(np.array([[2, 1, 1, 0, 0], [2, 1, 0, 1, 1], [0, 0, 0, 4, 4], [1, 1, 0, 1, 0]]))

    assert limit.levels(counts).tolist() == [2.0, 1.5, 2.0, 1.0]
    assert limit.are_kept_by(counts).tolist() == [True, False, True, False]


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"k": 1}, "k"),
        ({"k": True}, "k"),
        ({"l": 1}, "l"),
        ({"l": 2.5}, "l"),
        ({"n_slices": 0}, "n_slices"),
        ({"n_slices": 1.5}, "n_slices"),
        ({"n_beside_sensitive": -1}, "n_beside_sensitive"),
        ({"random_state": None}, "random_state"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, name):
    with pytest.raises(InvalidParameterError) as caught:
        Slicer(**parameters).release(patients())
    assert caught.value.name == name


@pytest.mark.parametrize(("k", "l", "best"), [(9, 2, 8), (2, 3, 8 / 3), (2, 9, 8 / 3)])
def test_levels_out_of_reach_name_the_best(k, l, best):  # noqa: E741
    with pytest.raises(PrivacyNotAchievableError) as caught:
        Slicer(k=k, l=l, n_beside_sensitive=0).release(patients())
    assert caught.value.best_level == pytest.approx(best)


def test_a_table_without_a_sensitive_column_is_refused():
    with pytest.raises(SchemaError, match="the table has 0"):
        Slicer().release(table_of({"a": list("xyxy"), "b": list("uvuv")}))


def test_the_demo_can_be_released():
    table = admissions(n_rows=300)
    slicer = Slicer(k=5, l=3)
    released = slicer.release(table).table
    (sensitive,) = table.schema.names(Role.SENSITIVE)

    level = sliced_diversity_level(table, released["bucket"].codes, slicer.slices_, sensitive)
    assert level >= 3 - 1e-9
    assert not set(released.schema.names()) & set(table.schema.names(Role.IDENTIFIER))
