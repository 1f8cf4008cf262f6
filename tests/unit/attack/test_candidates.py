"""Candidates and rows that belong together, against loops over all pairs."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.attack.correspondence import Correspondence
from sfumato.errors import SchemaError
from sfumato.manifest import draft_manifest
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable, Feature, as_binary_matrix
from sfumato.table.coding import Table

AGE, JOB, ILL = Column("age", kind=Kind.NUMERIC), Column("job"), Column("ill", Role.SENSITIVE)
GENERALIZED = [
    {"name": "age", "column": "age", "rule": "generalized", "kind": "numeric"},
    {"name": "job", "column": "job", "rule": "generalized", "kind": "categorical"},
]


def table(columns, **cells):
    types = {Kind.NUMERIC: pa.int64()}
    arrays = {c.name: pa.array(cells[c.name], types.get(c.kind, pa.string())) for c in columns}
    return Table.from_arrow(pa.table(arrays), Schema.of(columns))


def beside(original, released, *, recodings=(), suppressed=0, perturbation=None):
    manifest = draft_manifest(
        original,
        released,
        mechanism="test",
        parameters={},
        guarantees=[],
        evidence={},
        recodings=recodings,
        suppressed_rows=suppressed,
    )
    if perturbation:
        object.__setattr__(manifest, "perturbation", perturbation)
    return Correspondence(original, released, manifest)


def stands_for(text, value, is_age):
    """Read a cell naively."""
    if text == "*":
        return True
    if is_age:
        low, _, high = text.strip("[]").partition(", ")
        return int(low) <= value <= int(high or low)
    return value in text.strip("{}").split("|")


ages, jobs = st.integers(0, 5), st.sampled_from("abc")


@st.composite
def cells_around(draw, age, job):
    """Cells that may stand for a person's values."""
    low, high = draw(st.integers(0, age)), draw(st.integers(age, 5))
    age_cell = draw(st.sampled_from(["*", str(age), f"[{low}, {high}]" if low < high else str(age)]))
    members = sorted({job, *draw(st.sets(jobs))})
    job_cell = draw(st.sampled_from(["*", job, "{" + "|".join(members) + "}" if len(members) > 1 else job]))
    return age_cell, job_cell


@st.composite
def generalized_pairs(draw):
    """People, and a released row for some of them, in order."""
    people = draw(st.lists(st.tuples(ages, jobs), min_size=1, max_size=12))
    is_kept = draw(st.lists(st.booleans(), min_size=len(people), max_size=len(people)))
    kept = [i for i, flag in enumerate(is_kept) if flag] or [0]
    return people, kept, [draw(cells_around(*people[i])) for i in kept]


@pytest.mark.slow
@given(generalized_pairs())
def test_ranges_and_sets_are_counted_as_a_double_loop_does(drawn):
    people, kept, cells = drawn
    ids = [str(i) for i in range(len(people))]
    original = table([AGE, JOB, ILL], age=[p[0] for p in people], job=[p[1] for p in people], ill=ids)
    shown = [Column("age"), JOB, ILL]
    released = table(shown, age=[c[0] for c in cells], job=[c[1] for c in cells], ill=[ids[i] for i in kept])

    tables = beside(original, released, recodings=GENERALIZED, suppressed=len(people) - len(kept))
    found = tables.candidates(("age", "job"))

    fits = [[stands_for(a, age, True) and stands_for(j, job, False) for a, j in cells] for age, job in people]
    assert found.per_person.tolist() == [sum(row) for row in fits]
    assert found.per_row.tolist() == [sum(column) for column in zip(*fits, strict=True)]
    own = [kept.index(i) if i in kept else -1 for i in range(len(people))]
    assert tables.own_row.tolist() == own


def test_labels_of_hierarchies_stand_for_their_values():
    original = table([AGE, JOB], age=[17, 24, 25, 60], job=["a", "b", "c", "a"])
    released = table([Column("age"), JOB], age=["[17, 25[", "[17, 25[", "old", "old"], job=["*", "*", "*", "*"])
    recodings = [
        {
            "name": "age",
            "column": "age",
            "rule": "hierarchy",
            "kind": "numeric",
            "levels": [1],
            "labels": {"old": ["25", "60"]},
        },
        {"name": "job", "column": "job", "rule": "hierarchy", "kind": "categorical", "levels": [1], "labels": {}},
    ]

    tables = beside(original, released, recodings=recodings)

    assert tables.candidates(("age", "job")).per_person.tolist() == [2, 2, 2, 2]
    assert tables.own_row.tolist() == [0, 1, 2, 3]


def test_features_are_evaluated_on_the_original():
    original = table([AGE, JOB], age=[10, 20, 30, 30], job=["a", "a", "b", "c"])
    features = (
        Feature("young", "age", "interval", above=None, upto=20.0),
        Feature("b or c", "job", "one-of", ("b", "c")),
    )
    nothing = Table.from_arrow(pa.table({"y": ["n"] * 4}), Schema.of([Column("y", Role.OTHER)])).keep([])
    released = BinaryTable(as_binary_matrix([[1, 0], [1, 0], [0, 1], [0, 1]]), features, nothing)

    tables = beside(original, released)

    assert dict(tables.sources) == {"age": ("young",), "job": ("b or c",)}
    assert tables.candidates(("young", "b or c")).per_person.tolist() == [2, 2, 2, 2]
    assert tables.own_row.tolist() == [0, 1, 2, 3]


def test_rows_that_are_not_the_originals_belong_to_nobody():
    original = table([JOB, ILL], job=["a", "b"], ill=["x", "y"])
    released = table([JOB, ILL], job=["b", "a"], ill=["y", "x"])

    tables = Correspondence(original, released, None)

    assert tables.own_row is None
    assert tables.candidates(("job",)).per_person.tolist() == [1, 1]


def test_incomplete_rows_that_were_dropped_have_no_row():
    original = table([JOB, ILL], job=["a", None, "b"], ill=["x", "x", "y"])
    complete = original.without_incomplete_rows()
    manifest = draft_manifest(complete, complete, mechanism="t", parameters={}, guarantees=[], evidence={})

    assert Correspondence(original, complete, manifest).own_row.tolist() == [0, -1, 1]
    assert Correspondence(complete, complete, manifest).own_row.tolist() == [0, 1]


def test_incomplete_rows_are_passed_over_where_cells_were_changed():
    original = table([JOB, ILL], job=["a", None, "b"], ill=["x", "x", "y"])
    complete = original.without_incomplete_rows()
    manifest = draft_manifest(complete, complete, mechanism="t", parameters={}, guarantees=[], evidence={})
    object.__setattr__(manifest, "perturbation", {"kind": "flipped", "n_cells_changed": 2})
    released = table([JOB, ILL], job=["b", "a"], ill=["x", "y"])

    assert Correspondence(original, released, manifest).own_row.tolist() == [0, -1, 1]
    assert Correspondence(original, original, manifest).own_row is None


def test_unreadable_cells_are_refused_without_being_shown():
    original = table([AGE, JOB], age=[1], job=["a"])
    released = table([Column("age"), JOB], age=["[1, "], job=["a"])

    tables = beside(original, released, recodings=GENERALIZED)

    with pytest.raises(SchemaError, match="column 'age'") as caught:
        tables.candidates(("age",))
    assert "[1" not in str(caught.value)


def test_new_columns_come_from_nowhere():
    original, released = table([JOB], job=["a"]), table([JOB, Column("extra")], job=["a"], extra=["z"])
    tables = Correspondence(original, released, None)

    assert tables.source_of("extra") is None
    with pytest.raises(SchemaError, match="comes from no column"):
        tables.column("extra")


@st.composite
def bucketed(draw):
    """People in buckets, and the values of two slices moved within each bucket."""
    people = draw(st.lists(st.tuples(ages, jobs, st.integers(0, 2)), min_size=1, max_size=12))
    order = draw(st.permutations(range(len(people))))
    return people, sorted(order, key=lambda i: people[i][2])


@pytest.mark.slow
@given(bucketed())
def test_moved_slices_leave_every_row_of_a_bucket_that_fits(drawn):
    people, order = drawn
    in_order = sorted(range(len(people)), key=lambda i: people[i][2])
    original = table([AGE, JOB], age=[people[i][0] for i in in_order], job=[people[i][1] for i in in_order])
    bucket_of = [str(people[i][2]) for i in in_order]
    moved = [people[i] for i in order]
    shown = [AGE, JOB, Column("bucket", Role.OTHER)]
    released = table(shown, age=[people[i][0] for i in in_order], job=[p[1] for p in moved], bucket=bucket_of)
    done = {"kind": "bucketed", "bucket": "bucket", "slices": [["age"], ["job"]]}

    tables = beside(original, released, perturbation=done)
    found = tables.candidates(("age", "job"))

    buckets = {b: [p for p in people if str(p[2]) == b] for b in set(bucket_of)}

    def fits(bucket, age, job):
        return any(p[0] == age for p in bucket) and any(p[1] == job for p in bucket)

    expected = [sum(len(b) for b in buckets.values() if fits(b, people[i][0], people[i][1])) for i in in_order]
    assert tables.is_in_pieces
    assert tables.own_row is None
    assert found.per_person.tolist() == expected
    matching = {name: sum(fits(b, p[0], p[1]) for p in people) for name, b in buckets.items()}
    assert found.per_row.tolist() == [matching[name] for name in bucket_of]
    assert sorted(tables.classes.sizes.tolist()) == sorted(len(b) for b in buckets.values())


def test_only_the_sensitive_column_moved_leaves_rows_that_belong_together():
    original = table([JOB, ILL], job=["a", "b"], ill=["x", "y"])
    released = table([JOB, ILL, Column("group", Role.OTHER)], job=["a", "b"], ill=["y", "x"], group=["1", "1"])
    done = {"kind": "bucketed", "bucket": "group", "slices": [["ill"]]}

    tables = beside(original, released, perturbation=done)

    assert not tables.is_in_pieces
    assert tables.is_moved("ill")
    assert not tables.is_moved("job")
    assert tables.own_row.tolist() == [0, 1]
    assert np.array_equal(tables.candidates(("job",)).per_person, [1, 1])


def test_tables_without_rows_or_columns():
    empty = table([JOB, ILL], job=[], ill=[])
    tables = Correspondence(empty, empty, None)

    assert tables.own_row.tolist() == []
    assert tables.candidates(("job",)).per_person.tolist() == []
    some = table([JOB], job=["a", "b"])
    assert Correspondence(some, some, None).candidates(()).per_person.tolist() == [2, 2]
