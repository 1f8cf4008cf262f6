"""Risks of prosecutor, journalist and marketer against their definitions, row by row."""

from collections import Counter
from math import comb, inf

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.attack.candidates import Candidates
from sfumato.attack.class_risk import class_size_distribution, expected_inverse_population_size, risks_of_classes
from sfumato.attack.correspondence import Correspondence
from sfumato.attack.reidentification import reidentification_risk, risks_of_candidates
from sfumato.errors import InvalidParameterError
from sfumato.manifest import draft_manifest
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

classes = st.lists(st.tuples(st.integers(1, 60), st.integers(0, 30)), min_size=1, max_size=8)


def table(columns, **cells):
    types = {Kind.NUMERIC: pa.int64()}
    arrays = {c.name: pa.array(cells[c.name], types.get(c.kind, pa.string())) for c in columns}
    return Table.from_arrow(pa.table(arrays), Schema.of(columns))


# --- classes -------------------------------------------------------------------------------------------------------


@given(classes)
def test_classes_are_judged_row_by_row(drawn):
    sizes = [released for released, _ in drawn]
    rows = [1 / size for size in sizes for _ in range(size)]

    found = risks_of_classes(sizes)

    assert found["prosecutor"] == found["journalist"]
    assert found["prosecutor"]["highest"] == pytest.approx(max(rows))
    assert found["prosecutor"]["mean"] == found["marketer"] == pytest.approx(sum(rows) / len(rows))


def test_without_a_population_the_mean_is_classes_over_rows():
    found = risks_of_classes([1, 2, 3, 4])

    assert found["prosecutor"] == found["journalist"] == {"highest": 1.0, "mean": 0.4}
    assert found["marketer"] == 0.4


@given(classes)
def test_distribution_counts_every_row_and_class_once(drawn):
    sizes = [released for released, _ in drawn]

    found = class_size_distribution(sizes)

    assert sum(entry["n_rows"] for entry in found) == sum(sizes)
    assert sum(entry["n_classes"] for entry in found) == len(sizes)
    for entry in found:
        inside = [size for size in sizes if entry["from"] <= size <= (entry["to"] or inf)]
        assert (entry["n_rows"], entry["n_classes"]) == (sum(inside), len(inside))
    assert [entry["from"] for entry in found] == [1, 2, 5, 10, 20, 50]


def test_nothing_released_is_no_risk():
    assert risks_of_classes([]) == {
        "prosecutor": {"highest": 0.0, "mean": 0.0},
        "journalist": {"highest": 0.0, "mean": 0.0},
        "marketer": 0.0,
    }
    assert sum(entry["n_rows"] for entry in class_size_distribution([])) == 0


@given(st.one_of(st.integers(1, 12), st.integers(45, 60)), st.sampled_from([0.1, 0.3, 0.5, 0.9, 1.0]))
def test_expected_inverse_size_is_the_sum_of_the_negative_binomial(size, fraction):
    terms = (
        comb(F - 1, size - 1) * fraction**size * (1 - fraction) ** (F - size) / F for F in range(size, size + 2_000)
    )

    found = expected_inverse_population_size([size], fraction)[0]

    assert found == pytest.approx(sum(terms), rel=1e-9)
    assert found >= fraction / size * (1 - 1e-12)


def test_large_classes_in_a_sample_do_not_overflow():
    found = expected_inverse_population_size([1_000_000], 0.01)[0]

    assert found == pytest.approx(1e-8, rel=1e-3)
    sampled = risks_of_classes([1, 4], sample_fraction=0.5)
    assert sampled["prosecutor"]["highest"] == 1
    assert sampled["journalist"]["highest"] == pytest.approx(np.log(2))


@pytest.mark.parametrize("fraction", [0, -0.5, 1.5, True, float("nan")])
def test_fractions_out_of_range_are_refused(fraction):
    with pytest.raises(InvalidParameterError, match="sample_fraction"):
        expected_inverse_population_size([1], fraction)


def test_sizes_that_cannot_be_are_refused():
    with pytest.raises(InvalidParameterError):
        risks_of_classes([0])


# --- candidates ----------------------------------------------------------------------------------------------------


def test_candidates_by_hand():
    found = Candidates(np.array([1, 2, 4, 3]), np.array([2, 4, 1]))

    risks = risks_of_candidates(found, np.array([0, 1, -1, 2]))

    assert risks["prosecutor"]["highest"] == 1
    assert risks["prosecutor"]["mean"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert risks["journalist"] == {"highest": 1.0, "mean": pytest.approx((1 / 2 + 1 / 4 + 1) / 3)}
    assert risks["marketer"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 4)


def test_people_without_candidates_are_not_found():
    risks = risks_of_candidates(Candidates(np.array([0, 2]), np.array([1, 0])), None)

    assert risks["prosecutor"] == {"highest": 0.5, "mean": 0.5}
    assert risks["marketer"] == 0.25


AGE, JOB = Column("age", kind=Kind.NUMERIC), Column("job")
RANGES = [
    {"name": "age", "column": "age", "rule": "generalized", "kind": "numeric"},
    {"name": "job", "column": "job", "rule": "generalized", "kind": "categorical"},
]


def manifest_of(original, released, **more):
    return draft_manifest(original, released, mechanism="test", parameters={}, guarantees=[], evidence={}, **more)


def test_tiered_cells_of_the_tree_paper_leave_three_candidates_where_classes_have_one_or_two_rows():
    original = table([AGE, JOB], age=[57, 61, 42, 29, 38], job=["M", "M", "N", "N", "N"])
    cells = {"age": ["[42, 61]"] * 2 + ["[29, 61]"] + ["[29, 42]"] * 2, "job": ["{M|N}"] * 3 + ["N"] * 2}
    released = table([Column("age"), JOB], **cells)

    found = reidentification_risk(Correspondence(original, released, manifest_of(original, released, recodings=RANGES)))

    assert found["prosecutor"]["highest"] == pytest.approx(1 / 3)
    assert found["marketer"] == pytest.approx((4 / 3 + 1 / 5) / 5)
    assert found["by_classes"]["prosecutor"] == {"highest": 1.0, "mean": pytest.approx(3 / 5)}
    assert (found["n_people"], found["n_released"], found["n_found"], found["note"]) == (5, 5, 0, "")


def test_people_left_out_lower_the_share_and_crowd_the_journalist():
    original = table([JOB], job=["a", "b", "b", "c"])
    released = table([JOB], job=["a", "b"])
    manifest = manifest_of(original, released, suppressed_rows=2)

    found = reidentification_risk(Correspondence(original, released, manifest))

    assert found["prosecutor"] == {"highest": 1.0, "mean": 1.0}
    assert found["journalist"] == {"highest": 1.0, "mean": 0.75}
    assert found["marketer"] == 0.5
    assert found["n_found"] == 2


def flipped(original, released):
    manifest = manifest_of(original, released)
    columns = [(original[name].cells().to_pylist(), released[name].cells().to_pylist()) for name in original.columns]
    n_changed = sum(old != new for before, after in columns for old, new in zip(before, after, strict=True))
    object.__setattr__(manifest, "perturbation", {"kind": "flipped", "n_cells_changed": n_changed})
    return reidentification_risk(Correspondence(original, released, manifest))


def test_changed_cells_hide_their_people():
    original = table([JOB], job=["1", "1", "0", "0"])

    found = flipped(original, table([JOB], job=["1", "0", "0", "0"]))

    assert found["prosecutor"] == {"highest": 1.0, "mean": pytest.approx((1 + 0 + 1 / 3 + 1 / 3) / 4)}
    assert found["journalist"] == {"highest": 0.5, "mean": pytest.approx((1 / 2 + 0 + 1 / 2 + 1 / 2) / 4)}
    assert "changed at random" in found["note"]


bits = st.tuples(*[st.integers(0, 1)] * 4)


@pytest.mark.slow
@given(st.lists(st.tuples(bits, bits), min_size=1, max_size=12))
def test_changed_cells_are_matched_with_the_rows_that_differ_least(pairs):
    columns = [Column(name) for name in "abcd"]
    before, after = ([pair[side] for pair in pairs] for side in (0, 1))
    original, released = (
        table(columns, **{name: [str(row[i]) for row in rows] for i, name in enumerate("abcd")})
        for rows in (before, after)
    )

    def risk(own, mine, others):
        # a value that stands nowhere in the other table agrees with nothing, in all rows alike
        distances = [sum(x != y for x, y in zip(mine, other, strict=True)) for other in others]
        return 1 / distances.count(min(distances)) if distances[own] == min(distances) else 0

    people = [risk(i, before[i], after) for i in range(len(pairs))]
    rows = [risk(i, after[i], before) for i in range(len(pairs))]

    found = flipped(original, released)

    assert found["prosecutor"] == pytest.approx({"highest": max(people), "mean": sum(people) / len(people)})
    assert found["journalist"] == pytest.approx({"highest": max(rows), "mean": sum(rows) / len(rows)})
    assert found["marketer"] == pytest.approx(sum(people) / len(people))


def test_with_too_many_rows_only_those_that_do_not_differ_are_candidates(monkeypatch):
    monkeypatch.setattr("sfumato.attack.candidates._MOST_PRODUCTS", 0)
    original = table([JOB], job=["1", "1", "0", "0"])

    found = flipped(original, table([JOB], job=["1", "0", "0", "0"]))

    assert found["prosecutor"]["mean"] == pytest.approx((1 + 0 + 1 / 3 + 1 / 3) / 4)
    assert found["journalist"] == {"highest": 0.5, "mean": pytest.approx((1 / 2 + 0 + 1 / 2 + 1 / 2) / 4)}


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab")), min_size=1, max_size=20))
def test_of_an_unchanged_table_all_risks_are_those_of_its_classes(rows):
    columns = [AGE, JOB, Column("ill", Role.SENSITIVE)]
    people = table(columns, age=[r[0] for r in rows], job=[r[1] for r in rows], ill=["x"] * len(rows))
    counts = Counter(rows)

    found = reidentification_risk(Correspondence(people, people, None))

    assert found["marketer"] == pytest.approx(len(counts) / len(rows))
    assert found["prosecutor"]["highest"] == pytest.approx(1 / min(counts.values()))
    assert found["n_found"] == sum(count == 1 for count in counts.values())
    for who in ("prosecutor", "journalist"):
        assert found[who] == pytest.approx(found["by_classes"][who])
