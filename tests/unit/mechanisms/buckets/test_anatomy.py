"""Anatomy: groups of different sensitive values, an order that says nothing of rows, and the paper's two tables."""

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from sfumato.datasets.admissions import admissions
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.mechanisms.buckets.anatomy import Anatomy, anatomize, two_tables
from sfumato.mechanisms.buckets.buckets import arrange
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable, Feature
from sfumato.table.coding import Table

DISEASES = ["pneumonia", "dyspepsia", "dyspepsia", "pneumonia", "flu", "gastritis", "flu", "bronchitis"]


def patients(diseases=DISEASES, name="disease", kind=Kind.CATEGORICAL, **more):
    """Make Table 1 of the paper, or one of its shape."""
    n = len(diseases)
    ages = [23, 27, 35, 59, 61, 65, 65, 70]
    cells = {
        "who": pa.array([f"p{i}" for i in range(n)]),
        "age": pa.array([str(ages[i % 8]) for i in range(n)]),
        "sex": pa.array(["m" if i % 8 < 4 else "f" for i in range(n)]),
        name: pa.array(diseases, pa.string()),
    } | {column: pa.array(values) for column, values in more.items()}
    columns = [
        Column("who", Role.IDENTIFIER),
        Column("age", kind=Kind.NUMERIC),
        Column("sex"),
        Column(name, Role.SENSITIVE, kind),
        *(Column(column, Role.OTHER) for column in more),
    ]
    return Table.from_arrow(pa.table(cells), Schema.of(columns))


def by_group(table, name, group="group"):
    values = defaultdict(list)
    for bucket, value in zip(table[group].cells().to_pylist(), table[name].cells().to_pylist(), strict=True):
        values[bucket].append(value)
    return values


def test_groups_of_the_papers_patients_have_different_diseases():
    groups = by_group(Anatomy(l=2).release(patients()).table, "disease")

    assert sum(map(len, groups.values())) == 8
    assert all(len(set(values)) == len(values) >= 2 for values in groups.values())


def test_one_value_of_each_of_the_most_frequent_makes_a_group():
    """4 a, 3 b and 1 c at l = 2: a with b three times, and the last a with c."""
    codes = np.array([0, 0, 0, 0, 1, 1, 1, 2], dtype=np.int32)
    groups = anatomize(codes, 2, np.random.default_rng(3))

    made = Counter(tuple(sorted(codes[groups == g].tolist())) for g in range(4))
    assert made == {(0, 1): 3, (0, 2): 1}


def test_a_left_row_joins_a_group_without_its_value():
    """3 a, 2 b and 2 c at l = 2 make (a, b), (a, c) and (a, b); the last c joins the first or the third."""
    codes = np.array([0, 0, 0, 1, 1, 2, 2], dtype=np.int32)
    joined = set()
    for seed in range(20):
        groups = anatomize(codes, 2, np.random.default_rng(seed))
        held = [tuple(sorted(codes[groups == g].tolist())) for g in range(3)]
        assert sorted(held) == [(0, 1), (0, 1, 2), (0, 2)]
        joined.add(held.index((0, 1, 2)))

    assert joined == {0, 2}


def test_every_grouping_that_fits_is_equally_likely():
    """With the values 0, 0, 1, 1 there are two groupings; 600 draws of a fair coin stay within 5 deviations."""
    codes = np.array([0, 0, 1, 1], dtype=np.int32)
    with_third = sum(
        int(groups[0] == groups[2])
        for groups in (anatomize(codes, 2, np.random.default_rng(seed)) for seed in range(600))
    )

    assert abs(with_third - 300) < 5 * np.sqrt(600 / 4)


@pytest.mark.parametrize(
    ("counts", "l", "best"), [((3, 1), 2, 1), ((3, 2), 2, 1), ((5, 3, 2), 3, 2), ((2,), 2, 1), ((4, 4), 3, 2)]
)
def test_an_l_out_of_reach_names_the_best(counts, l, best):  # noqa: E741
    codes = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    with pytest.raises(PrivacyNotAchievableError) as caught:
        anatomize(codes, l, np.random.default_rng(0))

    assert caught.value.best_level == best
    if best > 1:
        anatomize(codes, best, np.random.default_rng(0))


def test_quasi_identifiers_and_other_columns_stay_in_their_rows():
    table = patients(city=list("abcdabcd"))
    released = Anatomy(l=2).release(table).table

    assert released.schema.names() == ("age", "sex", "disease", "city", "group")
    for name in ("age", "sex", "city"):
        assert released[name].cells().equals(table[name].cells())
    assert Counter(released["disease"].cells().to_pylist()) == Counter(DISEASES)


def test_the_order_within_groups_does_not_depend_on_whose_the_values_are():
    """Any other assignment of a group's values to its rows gives the same release."""
    rng = np.random.default_rng(5)
    groups = np.array([0, 1, 0, 1, 0, 2, 2, 1], dtype=np.int32)
    seen = set()
    for _ in range(30):
        shuffled = np.array(DISEASES, dtype=object)
        for group in range(3):
            rows = np.flatnonzero(groups == group)
            shuffled[rows] = rng.permutation(shuffled[rows])
        table = patients(shuffled.tolist())
        source = arrange(table, groups, ["disease"], (0, 0))
        assert (groups[source] == groups).all()
        seen.add(tuple(shuffled[source]))

    assert len(seen) == 1


def test_other_seeds_give_other_orders():
    groups = np.zeros(8, dtype=np.int32)
    orders = {tuple(arrange(patients(), groups, ["disease"], (seed, 0)).tolist()) for seed in range(6)}

    assert len(orders) > 1


def groups_by(mechanism):
    """Group 64 patients."""
    return mechanism.release(patients([f"d{i % 8}" for i in range(64)])).table["group"].codes.tolist()


def test_a_secret_or_a_seed_repeats_the_grouping_and_nothing_else_does():
    plain = Anatomy(l=4)
    of_secret, of_seed = groups_by(plain.keyed(b"one")), groups_by(Anatomy(l=4, random_state=0))

    assert groups_by(plain.keyed(b"one")) == of_secret
    assert groups_by(plain.keyed(b"other")) != of_secret
    assert groups_by(Anatomy(l=4, random_state=0)) == of_seed
    assert groups_by(Anatomy(l=4, random_state=1)) != of_seed
    assert groups_by(plain) != groups_by(plain)  # drawn from the system: the same with a probability of 1e-60


def test_no_seed_stands_in_the_manifest():
    """Whoever knows the seed can confirm a guess of who has which value."""
    mechanism = Anatomy(l=2, random_state=77).release(patients()).manifest.mechanism

    assert mechanism["seed"] is None
    assert mechanism["parameters"]["random_state"] is None


def test_the_new_column_takes_a_free_name():
    release = Anatomy(l=2).release(patients(group=list("xyxyxyxy"), group_2=list("uvuvuvuv")))

    assert release.table.schema.names()[-1] == "group_3"
    assert release.manifest.perturbation == {"kind": "bucketed", "bucket": "group_3", "slices": [["disease"]]}


def test_two_tables_hold_the_release_apart():
    release = Anatomy(l=2).release(patients())
    quasi, sensitive = two_tables(release)

    assert quasi.schema.names() == ("age", "sex", "group")
    rows = zip(*(sensitive[n].cells().to_pylist() for n in ("group", "disease", "count")), strict=True)
    counted = {(group, value): count for group, value, count in rows}
    naive = {(g, v): n for g, vs in by_group(release.table, "disease").items() for v, n in Counter(vs).items()}
    assert counted == naive


def test_two_tables_refuse_another_release():
    release = Anatomy(l=2).release(patients()).with_manifest(perturbation=None)
    with pytest.raises(InvalidParameterError, match="a release of anatomy"):
        two_tables(release)


def test_a_missing_value_is_a_value():
    groups = by_group(Anatomy(l=2).release(patients([None, None, "flu", "flu"])).table, "disease")

    assert [set(values) for values in groups.values()] == [{None, "flu"}] * 2


def test_equal_numbers_in_two_spellings_are_one_value():
    table = patients(["1", "1.0", "2", "3"], kind=Kind.NUMERIC)

    groups = by_group(Anatomy(l=2).release(table).table, "disease")
    assert all(len({float(value) for value in values}) == 2 for values in groups.values())
    with pytest.raises(PrivacyNotAchievableError):
        Anatomy(l=3).release(table)


def test_constant_quasi_identifiers_are_no_obstacle():
    cells = pa.table({"a": ["x"] * 4, "s": ["1", "2", "1", "2"]})
    table = Table.from_arrow(cells, Schema.of([Column("a"), Column("s", Role.SENSITIVE)]))

    assert all(len(set(values)) == 2 for values in by_group(Anatomy(l=2).release(table).table, "s").values())


def test_evidence_says_how_far_rows_can_be_told_apart():
    assert Anatomy(l=2).release(patients()).manifest.evidence["risk"]["anonymity_level"] == 1


@pytest.mark.parametrize("l", [1, 0, True, 2.5, "2", None])
def test_levels_that_promise_nothing_are_refused(l):  # noqa: E741
    with pytest.raises(InvalidParameterError, match=r"^l must be"):
        Anatomy(l=l).release(patients())


@pytest.mark.parametrize("seed", [-1, 2**63, True, 0.5])
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(InvalidParameterError, match="random_state"):
        Anatomy(random_state=seed).release(patients())


@pytest.mark.parametrize(
    ("roles", "sensitive", "problem"),
    [
        ({"disease": Role.OTHER}, None, "the table has 0"),
        ({"sex": Role.SENSITIVE}, None, "the table has 2"),
        ({"sex": Role.SENSITIVE}, "disease", "the table has 2"),
        ({"disease": Role.OTHER}, "age", "is a quasi-identifier"),
        ({"age": Role.OTHER, "sex": Role.OTHER}, None, "no quasi-identifier"),
    ],
)
def test_roles_that_leave_nothing_to_part_are_refused(roles, sensitive, problem):
    table = patients()
    table = table.with_schema(table.schema.with_roles(roles))
    with pytest.raises((SchemaError, InvalidParameterError), match=problem):
        Anatomy(sensitive=sensitive).release(table)


def test_a_named_column_need_not_have_the_role():
    table = patients()
    table = table.with_schema(table.schema.with_roles({"disease": Role.TARGET}))

    assert Anatomy(sensitive="disease").release(table).manifest.perturbation["slices"] == [["disease"]]


def test_sparse_and_empty_tables_are_refused():
    matrix = sp.csc_matrix(np.ones((8, 1), dtype=np.uint8))
    sparse = BinaryTable(matrix, (Feature("a", "a"),), patients())
    with pytest.raises(SchemaError, match="sparse"):
        Anatomy().release(sparse)
    with pytest.raises(PrivacyNotAchievableError):
        Anatomy().release(patients().take(np.zeros(0, dtype=np.intp)))


def test_no_message_shows_a_value():
    with pytest.raises(PrivacyNotAchievableError) as caught:
        Anatomy(l=5).release(patients(["CANARY"] * 4))
    assert "CANARY" not in str(caught.value)


def test_the_demo_can_be_released():
    release = Anatomy(l=3).release(admissions(n_rows=300))

    (slice_,) = release.manifest.perturbation["slices"]
    assert all(len(set(v)) == len(v) >= 3 for v in by_group(release.table, slice_[0]).values())
