"""Whatever the table: groups of different values, slices that keep what buckets held, no value too probable."""

from collections import Counter
from itertools import product
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching_buckets import sliced_diversity_level
from sfumato.audit import measured_level
from sfumato.audit.claims import read_claims
from sfumato.audit.levels.buckets import check_bucket_numbers
from sfumato.audit.original.buckets import check_buckets
from sfumato.audit.reading.columns import Columns
from sfumato.guarantees.buckets import BucketDiversity, BucketSize
from sfumato.mechanisms.buckets.anatomy import Anatomy, anatomize, two_tables
from sfumato.mechanisms.buckets.slicing import Slicer
from sfumato.schema import Column, Role, Schema
from sfumato.table.coding import Table


def checked(release, original, bucket, slices):
    """Have the audit compare buckets with the original, and numbers and places with the public rule."""
    released, rows = Columns(release.table), np.arange(original.n_rows)
    claims = read_claims(release.manifest.to_dict())
    kept = check_buckets(released, Columns(original), bucket, slices, rows)
    return [*kept, *check_bucket_numbers(released, bucket, slices, claims)]


class Drawn(NamedTuple):
    """A table in which no sensitive value is in more than 1/l of the rows."""

    table: Table
    l: int  # noqa: E741  # the field's own name


@st.composite
def eligible_values(draw):
    """Draw l and values of rows: some sets of at least l different values in any order, so that l can be kept."""
    l = draw(st.integers(2, 4))  # noqa: E741
    values = st.sets(st.sampled_from(range(6)), min_size=l, max_size=6)
    held = [value for group in draw(st.lists(values, min_size=1, max_size=6)) for value in sorted(group)]
    return l, draw(st.permutations(held))


@st.composite
def eligible_tables(draw, n_quasi=3):
    l, values = draw(eligible_values())  # noqa: E741
    spelled = [None if value == 0 else "bca9-"[value - 1] for value in values]
    cell = st.sampled_from(["x", "y", None])
    cells = {f"q{i}": draw(st.lists(cell, min_size=len(values), max_size=len(values))) for i in range(n_quasi)}
    cells |= {"s": spelled, "y": draw(st.lists(cell, min_size=len(values), max_size=len(values)))}
    roles = {"s": Role.SENSITIVE, "y": Role.TARGET}
    columns = [Column(name, roles.get(name, Role.QUASI_IDENTIFIER)) for name in cells]
    arrow = pa.table({name: pa.array(column, pa.string()) for name, column in cells.items()})
    return Drawn(Table.from_arrow(arrow, Schema.of(columns)), l)


def cells_of(table, names):
    return list(zip(*(table[name].cells().to_pylist() for name in names), strict=True))


def naive_level(table, buckets, slices):
    """Compute l of the paper's definition from lists, one person, bucket and value after the other."""
    quasi = table.schema.names(Role.QUASI_IDENTIFIER)
    known = [[name for name in names if name in quasi] for names in slices]
    rows = range(table.n_rows)
    highest = 0.0
    for person, value in product(rows, set(table["s"].cells().to_pylist())):
        above = below = 0.0
        for bucket in set(buckets):
            inside = [i for i in rows if buckets[i] == bucket]
            share, has = 1.0, 0.0
            for names, keys in zip(slices, known, strict=True):
                held = cells_of(table, keys) if keys else [()] * table.n_rows
                match = [i for i in inside if held[i] == held[person]]
                share *= len(match) / len(inside)
                if "s" in names and match:
                    has = sum(table["s"].cells()[i].as_py() == value for i in match) / len(match)
            above, below = above + share * has, below + share
        highest = max(highest, above / below)
    return 1 / highest


@given(eligible_values(), st.integers(0, 99))
def test_groups_of_anatomy_have_at_least_l_rows_and_no_value_twice(drawn, seed):
    l, values = drawn  # noqa: E741
    codes = np.array(values, dtype=np.int32)
    groups = anatomize(codes, l, np.random.default_rng(seed))

    for group in range(int(groups.max()) + 1):
        held = codes[groups == group].tolist()
        assert len(held) >= l
        assert len(set(held)) == len(held)
    assert groups.min() == 0


@pytest.mark.slow
@given(eligible_tables())
def test_anatomy_keeps_its_promise_and_all_values(drawn):
    release = Anatomy(l=drawn.l).release(drawn.table)
    promise = BucketDiversity(("q0", "q1", "q2"), "group", drawn.l, "s")
    checks = checked(release, drawn.table, "group", [["s"]])

    assert measured_level(promise, release.table) >= drawn.l
    assert len(checks) == 3
    assert all(check.passed for check in checks)
    assert cells_of(release.table, ("q0", "q1", "q2", "y")) == cells_of(drawn.table, ("q0", "q1", "q2", "y"))
    quasi, sensitive = two_tables(release)
    counted = {(g, s): n for g, s, n in cells_of(sensitive, ("group", "s", "count"))}
    assert counted == Counter(cells_of(release.table, ("group", "s")))
    assert cells_of(quasi, ("group",)) == cells_of(release.table, ("group",))


@pytest.mark.slow
@given(eligible_tables(), st.data())
def test_slicing_keeps_its_promises_and_all_values(drawn, data):
    table = drawn.table
    k = data.draw(st.integers(2, table.n_rows))
    parameters = {"n_slices": data.draw(st.integers(1, 4)), "n_beside_sensitive": data.draw(st.integers(0, 2))}
    slicer = Slicer(k=k, l=drawn.l, **parameters)
    release = slicer.release(table)
    quasi = ("q0", "q1", "q2")
    beside = tuple(name for name in slicer.slices_[-1] if name in quasi)
    checks = checked(release, table, "bucket", slicer.slices_)

    assert sorted(name for names in slicer.slices_ for name in names) == ["q0", "q1", "q2", "s", "y"]
    assert len(beside) <= parameters["n_beside_sensitive"]
    assert measured_level(BucketSize(quasi, "bucket", k), release.table) >= k
    assert measured_level(BucketDiversity(quasi, "bucket", drawn.l, "s", beside), release.table) >= drawn.l
    assert all(check.passed for check in checks)


@pytest.mark.slow
@given(eligible_tables(), st.integers(2, 4))
def test_a_promise_in_every_bucket_holds_over_all_matching_ones(drawn, k):
    """Our condition is enough for l-diverse slicing to the letter of the paper."""
    slicer = Slicer(k=min(k, drawn.table.n_rows), l=drawn.l)
    buckets = slicer.release(drawn.table).table["bucket"].codes

    assert sliced_diversity_level(drawn.table, buckets, slicer.slices_, "s") >= drawn.l - 1e-9


@pytest.mark.slow
@given(eligible_tables(n_quasi=2), st.data())
def test_the_level_over_matching_buckets_is_the_definition(drawn, data):
    """For any buckets and slices, ours or not."""
    n_rows = drawn.table.n_rows
    drawn_buckets = data.draw(st.lists(st.integers(0, 2), min_size=n_rows, max_size=n_rows))
    buckets = np.unique(drawn_buckets, return_inverse=True)[1].astype(np.int32)
    place = data.draw(st.lists(st.integers(0, 2), min_size=4, max_size=4))
    by_place = [tuple(n for n, p in zip(("q0", "q1", "s", "y"), place, strict=True) if p == at) for at in range(3)]
    slices = [names for names in by_place if names]

    found = sliced_diversity_level(drawn.table, buckets, slices, "s")
    assert found == pytest.approx(naive_level(drawn.table, buckets.tolist(), slices))
