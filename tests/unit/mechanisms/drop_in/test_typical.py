"""Drop-in releases: each class has its own rows' median or most frequent value, in the original's types."""

from collections import Counter
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.datasets.admissions import admissions
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.mechanisms.axes import axes_of
from sfumato.mechanisms.drop_in.typical import typical_of_classes
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.propose import make_release
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import read_released
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

SCHEMA = Schema.of([Column("age", kind=Kind.NUMERIC), Column("job")])
KEPT = ["age", "sex", "insurance", "discharge_diagnosis", "readmitted"]


def typical_by_hand(values, *, has_order):
    """Definition in the words of the guide, one class at a time."""
    known = sorted(value for value in values if value is not None)
    n_missing = len(values) - len(known)
    if has_order:
        return None if not known or n_missing > len(known) else known[(len(known) - 1) // 2]
    counts = Counter(known)
    most = max(counts.values(), default=0)
    return None if n_missing > most else min(value for value, n in counts.items() if n == most)


def typical_cells(ages, jobs, classes):
    table = Table.from_arrow(pa.table({"age": pa.array(ages, pa.int64()), "job": pa.array(jobs, pa.string())}), SCHEMA)
    found = []
    for axis in axes_of(table, ["age", "job"]):
        codes = typical_of_classes(axis, np.array(classes), max(classes) + 1)
        found.append([None if code < 0 else axis.labels[code] for code in codes.tolist()])
    return found


rows = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(-3, 12)),
        st.one_of(st.none(), st.sampled_from(["b", "a", "ä", "B", "10", "9"])),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=40,
)


@given(rows)
def test_typical_values_are_those_of_the_definition(drawn):
    groups = sorted({group for *_, group in drawn})
    classes = [groups.index(group) for *_, group in drawn]
    ages, jobs = typical_cells([row[0] for row in drawn], [row[1] for row in drawn], classes)

    for number in range(len(groups)):
        own = [row for row, group in zip(drawn, classes, strict=True) if group == number]
        age = typical_by_hand([row[0] for row in own], has_order=True)
        assert ages[number] == (None if age is None else str(age))
        assert jobs[number] == typical_by_hand([row[1] for row in own], has_order=False)


@given(st.lists(st.one_of(st.none(), st.integers(0, 4)), min_size=1), st.lists(st.integers(0, 4), min_size=1))
def test_classes_with_the_same_typical_value_have_it_together(one, other):
    for has_order in (True, False):
        alone = {typical_by_hand(values, has_order=has_order) for values in (one, other)}
        if len(alone) == 1:
            assert {typical_by_hand([*one, *other], has_order=has_order)} == alone


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("auto", {"k": 5, "l": 1}),
        ("mondrian", {"k": 5}),
        ("error-risk-tree", {"k": 5, "generalization": "uniform"}),
        ("global-recoding", {"k": 5}),
        ("gain-recoding", {"k": 5}),
        ("local-recoding", {"k": 5}),
    ],
)
def test_every_recoder_gives_values_of_the_original_columns(name, settings):
    table = admissions(n_rows=400).keep(KEPT)
    plain = make_release(table, build_mechanism(name, settings))
    made = make_release(table, build_mechanism(name, settings).with_cells("values"))

    quasi = made.table.schema.names(Role.QUASI_IDENTIFIER)
    original = table if made.kept_rows is None else table.take(made.kept_rows)
    classes = np.unique(plain.table.codes(quasi), axis=0, return_inverse=True)[1].reshape(-1)
    for column in quasi:
        assert made.table.schema[column].kind is table.schema[column].kind
        assert made.table[column].values.type == table[column].values.type
        before, after = original[column].cells().to_pylist(), made.table[column].cells().to_pylist()
        has_order = table.schema[column].kind is Kind.NUMERIC
        before = [float(value) for value in before] if has_order else before
        for number in range(classes.max() + 1):
            own = [value for value, group in zip(before, classes, strict=True) if group == number]
            shown = {value for value, group in zip(after, classes, strict=True) if group == number}
            shown = {float(value) for value in shown} if has_order else shown
            assert shown == {typical_by_hand(own, has_order=has_order)}
    assert np.unique(made.table.codes(quasi), axis=0, return_counts=True)[1].min() >= 5
    for column in ("discharge_diagnosis", "readmitted"):
        assert made.table[column].cells() == original[column].cells()


def frame(n=60):
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "age": pa.array(rng.integers(18, 90, n), pa.int16()),
            "income": pa.array(np.round(rng.normal(30_000, 9_000, n), 2), pa.float64()),
            "born": pa.array([date(1950 + int(y), 1 + int(y) % 12, 3) for y in rng.integers(0, 50, n)], pa.date32()),
            "smokes": pa.array((rng.random(n) < 0.3).tolist(), pa.bool_()),
            "job": pa.array(rng.choice(["cook", "baker", "smith"], n).tolist()),
            "ill": pa.array(rng.choice(["yes", "no"], n).tolist()),
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_files_hold_the_original_types_and_the_audit_of_their_bytes_confirms_them(tmp_path, suffix):
    roles = dict.fromkeys(["age", "income", "born", "smokes", "job"], "quasi-identifier")
    made = sfumato.release(frame(), "mondrian", target="ill", roles=roles, k=4, cells="values")
    done = publish(made, tmp_path / f"out.{suffix}", original=frame())

    assert done.audit.verdict == "confirmed"
    assert any(check.name == "typical values" and check.passed for check in done.audit.checks)
    if suffix == "parquet":
        types = pq.read_schema(done.table_path)
        assert [types.field(name).type for name in frame().column_names] == frame().schema.types
    again = read_released(done.table_path, done.release.manifest)
    assert set(again["job"].values.to_pylist()) <= {"cook", "baker", "smith"}


def test_values_of_equal_numbers_in_two_spellings_are_spelled_in_one():
    ages = ["7", "7.0", "07", "7", "8", "8.0"]
    table = Table.from_arrow(pa.table({"age": ages}), Schema.of([Column("age", kind=Kind.NUMERIC)]))
    made = make_release(table, build_mechanism("mondrian", {"k": 6}).with_cells("values"))

    assert set(made.table["age"].cells().to_pylist()) == {"07"}


def test_missing_cells_are_typical_where_most_are_missing():
    ages = [None, None, None, "4", "5"]
    table = Table.from_arrow(pa.table({"age": ages}), Schema.of([Column("age", kind=Kind.NUMERIC)]))
    made = make_release(table, build_mechanism("mondrian", {"k": 5}).with_cells("values"))

    assert made.table["age"].cells().to_pylist() == [None] * 5


def test_the_manifest_says_nothing_of_ranges():
    made = make_release(admissions(n_rows=200).keep(KEPT), build_mechanism("global-recoding", {}).with_cells("values"))

    assert {entry["rule"] for entry in made.manifest.recodings} == {"typical"}
    assert set(made.manifest.evidence["utility"]) <= {"n_classes_of_cells", "suppressed_fraction"}
    assert all(set(entry) <= {"name", "column", "rule", "kind", "domain"} for entry in made.manifest.recodings)


@pytest.mark.parametrize("name", ["anatomy", "greedy-containment", "breach-aware", "laplace-dp"])
def test_mechanisms_without_classes_of_cells_are_refused(name):
    with pytest.raises(InvalidParameterError, match="does not make classes of rows by coarsening values"):
        build_mechanism(name, {}).with_cells("values")


def test_an_unknown_form_of_cells_is_refused():
    with pytest.raises(InvalidParameterError, match="one of ranges, values"):
        build_mechanism("mondrian", {}).with_cells("means")


def test_tiered_cells_are_refused_in_one_sentence():
    mechanism = build_mechanism("error-risk-tree", {"generalization": "tiered"}).with_cells("values")

    with pytest.raises(InvalidParameterError, match="promises kk-anonymity"):
        make_release(admissions(n_rows=200).keep(KEPT), mechanism)


def test_a_column_of_both_roles_is_refused():
    table = admissions(n_rows=200).keep(KEPT).with_schema({"discharge_diagnosis": Role.SENSITIVE_QUASI_IDENTIFIER})

    with pytest.raises(SchemaError, match="sensitive and a quasi-identifier"):
        make_release(table, build_mechanism("mondrian", {"k": 5}).with_cells("values"))


def test_ranges_are_left_as_they_were():
    table = admissions(n_rows=200).keep(KEPT)
    mechanism = build_mechanism("mondrian", {"k": 5})

    assert mechanism.with_cells("ranges") is mechanism
    assert make_release(table, mechanism).manifest.recodings[0]["rule"] == "generalized"
