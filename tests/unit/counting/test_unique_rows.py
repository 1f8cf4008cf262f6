"""Rows that are unique on everything: against a dictionary of whole rows, and against the audit's own count."""

from __future__ import annotations

import json
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sfumato import Mondrian, release
from sfumato.audit.auditor import AuditorHas
from sfumato.audit.evidence import MEASURED, UNIQUE_ROWS
from sfumato.audit.reading.columns import Columns
from sfumato.audit.verify import audit_release
from sfumato.counting.unique_rows import n_unique_rows
from sfumato.datasets.admissions import admissions
from sfumato.manifest import Manifest
from sfumato.mechanisms.registry import build_mechanism
from sfumato.schema import Column, Schema
from sfumato.table.binary import BinaryTable, Feature
from sfumato.table.coding import Table

ROWS = st.lists(st.tuples(*[st.sampled_from(["x", "y", "z", None])] * 3), min_size=1, max_size=30)


def _table(rows, names="abc"):
    cells = {name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate(names)}
    return Table.from_arrow(pa.table(cells), Schema.of([Column(name) for name in names]))


def _alone(rows):
    return sum(n == 1 for n in Counter(rows).values())


@given(ROWS)
def test_rows_of_a_table_by_brute_force(rows):
    table = _table(rows)
    assert n_unique_rows(table) == _alone(rows)
    with pytest.MonkeyPatch.context() as patched:  # as if keys were too long for one number
        patched.setattr("sfumato.counting.unique_rows._LARGEST_KEY", 8)
        assert n_unique_rows(table) == _alone(rows)
    assert MEASURED[UNIQUE_ROWS](Columns(table), SimpleNamespace(prepared={})) == pytest.approx(
        _alone(rows) / len(rows)
    )


@pytest.mark.slow
@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.sampled_from("pq")), min_size=1, max_size=20))
def test_rows_of_a_sparse_table_by_brute_force(rows):
    matrix = sp.csc_matrix(np.array([row[:2] for row in rows], dtype=np.int8))
    held = _table([(row[2],) for row in rows], "t")
    held = held.with_schema(held.schema.with_roles({"t": "target"}))
    table = BinaryTable(matrix, (Feature("f", "f"), Feature("g", "g")), held)
    assert n_unique_rows(table) == _alone(rows)
    assert MEASURED[UNIQUE_ROWS](Columns(table), SimpleNamespace(prepared={})) == pytest.approx(
        _alone(rows) / len(rows)
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mondrian", "global-recoding", "anatomy", "random-flipping"])
def test_every_release_states_it_and_the_audit_counts_again(name):
    table = admissions(n_rows=300).keep(["age", "sex", "insurance", "discharge_diagnosis", "readmitted"])
    if name == "random-flipping":
        table = table.keep(["sex", "insurance", "readmitted"])
    made = release(table, build_mechanism(name, {}))
    stated = made.manifest.evidence["risk"][UNIQUE_ROWS]
    assert stated == float(f"{n_unique_rows(made.table) / made.table.n_rows:.3g}")
    data = made.manifest.to_dict()
    assert audit_release(made.table, data, AuditorHas(original=table)).passed
    data["evidence"]["risk"][UNIQUE_ROWS] = stated + 0.001 if stated < 1 else 0.5
    failed = [check.name for check in audit_release(made.table, data).checks if not check.passed]
    assert "risk: unique row fraction" in failed


def test_a_manifest_without_it_keeps_its_meaning():
    table = admissions(n_rows=100).keep(["age", "sex"])
    made = release(table, Mondrian(k=5))
    data = made.manifest.to_dict()
    del data["evidence"]["risk"][UNIQUE_ROWS]
    names = [check.name for check in audit_release(made.table, data).checks]
    assert not any("unique row" in name for name in names)


@pytest.mark.slow
def test_it_is_counted_again_out_of_core(tmp_path):
    from sfumato.audit.in_blocks import audit_rows
    from sfumato.publishing.publish import publish
    from sfumato.publishing.reaudit import open_released

    table = admissions(n_rows=400).keep(["age", "sex", "insurance", "discharge_diagnosis", "readmitted"])
    publish(release(table, Mondrian(k=5)), tmp_path / "r.csv", original=table)
    text = (tmp_path / "r.csv.manifest.json").read_text(encoding="utf-8")
    manifest = json.loads(text)
    stated = manifest["evidence"]["risk"][UNIQUE_ROWS]
    large = open_released(tmp_path / "r.csv", Manifest.from_json(text), 2**27)
    for told, passes in ((stated, True), (stated / 2, False)):
        manifest["evidence"]["risk"][UNIQUE_ROWS] = told
        report = audit_rows(large, manifest, memory=2**27)
        (check,) = [check for check in report.checks if check.name == "risk: unique row fraction"]
        assert check.passed is passes
