"""The audit's own median and most frequent value: wrong cells are found, and nothing is claimed of sorted rows."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.auditor import AuditorHas, PublisherKnows
from sfumato.audit.claims import read_claims
from sfumato.audit.original.typical import check_typical
from sfumato.audit.reading.columns import Columns
from sfumato.audit.verify import audit_release
from sfumato.datasets.admissions import admissions
from sfumato.manifest import manifest_digest
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.propose import make_release
from sfumato.schema import Column, Kind, Schema
from sfumato.table.coding import CodedColumn, Table
from sizes import examples

KEPT = ["age", "sex", "insurance", "readmitted"]


@pytest.fixture(scope="module")
def made():
    table = admissions(n_rows=300).keep(KEPT)
    return table, make_release(table, build_mechanism("mondrian", {"k": 5}).with_cells("values"))


def audited(table, release, original, **more):
    return audit_release(table, release.manifest.to_dict(), AuditorHas(original=original, roles=True), **more)


def with_column(table, name, values):
    column = CodedColumn.encode(pa.array(values, table[name].values.type), table.schema[name].kind)
    return replace(table, columns={**table.columns, name: column})


def in_place(release):
    return {"publisher": PublisherKnows(places=np.arange(release.table.n_rows))}


def test_rows_whose_originals_are_known_are_confirmed(made):
    table, release = made
    report = audited(release.table, release, table, **in_place(release))

    assert report.verdict == "confirmed"


def moved_class(release, name, step):
    """Give all rows of the largest class another value of a column that occurs in the table."""
    names = ["age", "sex", "insurance"]
    classes, counts = np.unique(release.table.codes(names), axis=0, return_inverse=True, return_counts=True)[1:]
    chosen = classes.reshape(-1) == counts.argmax()
    column = release.table[name]
    values = column.values.to_pylist()
    own = int(column.codes[chosen][0])
    other = values[(own + step) % len(values)]
    return [other if is_chosen else values[c] for is_chosen, c in zip(chosen, column.codes, strict=True)]


@pytest.mark.parametrize("name", ["age", "sex", "insurance"])
def test_a_class_with_another_value_is_refused_where_rows_are_known(made, name):
    table, release = made
    forged = with_column(release.table, name, moved_class(release, name, 1))
    report = audited(forged, release, table, **in_place(release))

    failed = [check.name for check in report.checks if not check.passed]
    assert "typical values" in failed


def test_sorted_rows_are_confirmed_except_for_whose_cells_are_whose(made):
    table, release = made
    report = audited(release.data, release, table)

    assert report.verdict == "confirmed except"
    assert [one.name for one in report.unchecked] == ["cells"]
    assert "is the middle or most frequent value of its own class: rows are sorted" in report.unchecked[0].message
    cells = next(one.message for one in report.checks if one.name == "cells")
    assert "are values that occur in the original" in cells


def test_sorted_rows_with_impossible_medians_are_refused(made):
    table, release = made
    oldest = max(table["age"].values.to_pylist(), key=float)
    forged = with_column(release.data, "age", [oldest] * release.data.n_rows)
    report = audited(forged, release, table)

    assert any(check.name == "typical values" and not check.passed for check in report.checks)


def test_values_that_the_original_lacks_are_refused(made):
    table, release = made
    values = release.data["insurance"].cells().to_pylist()
    forged = with_column(release.data, "insurance", ["unheard of" if v == values[0] else v for v in values])
    report = audited(forged, release, table)

    assert any(check.name == "cells" and not check.passed for check in report.checks)


def test_travelling_columns_are_compared_with_the_original(made):
    table, release = made
    values = release.data["readmitted"].cells().to_pylist()
    flipped = ["yes" if values[0] == "no" else "no", *values[1:]]
    report = audited(with_column(release.data, "readmitted", flipped), release, table)

    assert report.verdict == "refused"


def test_a_manifest_that_states_no_rule_for_typical_cells_is_refused(made):
    table, release = made
    entries = release.manifest.to_dict() | {"recodings": []}
    entries["digest"] = manifest_digest(entries)
    report = audit_release(release.data, entries, AuditorHas(original=table, roles=True))

    assert report.verdict == "refused"


def stated(kind):
    entry = {"name": "x", "column": "x", "rule": "typical", "kind": str(kind)}
    table = Table.from_arrow(pa.table({"x": ["1"] * 2}), Schema.of([Column("x", kind=kind)]))
    manifest = make_release(table, build_mechanism("mondrian", {"k": 2})).manifest.to_dict()
    manifest = manifest | {"recodings": [entry]}
    return read_claims(manifest | {"digest": manifest_digest(manifest)})


CLAIMS = {kind: stated(kind) for kind in (Kind.NUMERIC, Kind.CATEGORICAL)}


@examples(60)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=6),
    st.data(),
    st.sampled_from([Kind.NUMERIC, Kind.CATEGORICAL]),
)
def test_cells_that_could_come_about_pass_and_those_that_cannot_fail(values, data, kind):
    """Beside all ways to deal out the rows; the condition for most frequent values is a necessary one only."""
    cells = data.draw(st.lists(st.sampled_from(values), min_size=len(values), max_size=len(values)))
    schema = Schema.of([Column("x", kind=kind)])
    original = Table.from_arrow(pa.table({"x": [str(value) for value in values]}), schema)
    released = Table.from_arrow(pa.table({"x": [str(cell) for cell in cells]}), schema)
    check = next(iter(check_typical(Columns(released), Columns(original), CLAIMS[kind], np.arange(len(values)), None)))

    def is_typical(dealt):
        for cell in set(cells):
            own = sorted(value for value, shown in zip(dealt, cells, strict=True) if shown == cell)
            if kind is Kind.NUMERIC and own[(len(own) - 1) // 2] != cell:
                return False
            if kind is Kind.CATEGORICAL and min(own, key=lambda v: (-own.count(v), v)) != cell:
                return False
        return True

    is_possible = any(is_typical(dealt) for dealt in permutations(values))
    if kind is Kind.NUMERIC:
        assert check.passed == is_possible
    else:
        assert check.passed or not is_possible
