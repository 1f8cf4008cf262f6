"""The audit of promises about a sensitive quasi-identifier: overlapping cells, distances, columns left out."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import Mondrian, release
from sfumato.audit.claims import ClaimedRecoding
from sfumato.audit.levels.both_roles import overlapping_classes
from sfumato.audit.reading.columns import Columns
from sfumato.audit.verify import audit_release
from sfumato.guarantees import LDiversity, TCloseness
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

BOTH = Role.SENSITIVE_QUASI_IDENTIFIER


def _columns(rows):
    arrow = pa.table({"group": pa.array([g for g, _ in rows]), "ill": pa.array([c for _, c in rows], pa.string())})
    return Columns(Table.from_arrow(arrow, Schema.of([Column("group"), Column("ill", BOTH)])))


def _recoding(kind, domain=None):
    return ClaimedRecoding("ill", "ill", "generalized", kind=kind, domain=domain)


@pytest.mark.parametrize(
    ("kind", "cells", "overlaps"),
    [
        (Kind.CATEGORICAL, ["{cold|flu}", "{flu|hiv}"], True),
        (Kind.CATEGORICAL, ["{cold|flu}", "{gout|hiv}"], False),
        (Kind.CATEGORICAL, ["{cold|flu}", "Flu"], True),  # another spelling of the same value
        (Kind.CATEGORICAL, ["*", "flu"], True),
        (Kind.CATEGORICAL, [r"{cold|\N}", None], True),
        (Kind.CATEGORICAL, ["{cold|flu}", None], False),
        (Kind.NUMERIC, ["[1, 5]", "[5, 9]"], True),
        (Kind.NUMERIC, ["[1, 5]", "[6, 9]"], False),
        (Kind.NUMERIC, ["[1, 9]", "[4, 5]"], True),
        (Kind.NUMERIC, ["[1, 9]", "4.0"], True),
        (Kind.NUMERIC, [r"{[1, 5]|\N}", "[6, 9]"], False),
    ],
)
def test_cells_that_may_mean_the_same_value_overlap(kind, cells, overlaps):
    found = overlapping_classes(_columns([("a", cell) for cell in cells]), ("group",), "ill", _recoding(kind))
    assert found == int(overlaps)
    apart = _columns([(str(i), cell) for i, cell in enumerate(cells)])
    assert overlapping_classes(apart, ("group",), "ill", _recoding(kind)) == 0  # in different classes they may


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sets(st.sampled_from("stuvw"), min_size=1)), min_size=1))
def test_overlaps_of_sets_by_brute_force(rows):
    texts = [(g, "{" + "|".join(sorted(s)) + "}" if len(s) > 1 else next(iter(s))) for g, s in rows]
    expected = {g for g, s in rows for h, r in rows if g == h and s != r and s & r}
    assert overlapping_classes(_columns(texts), ("group",), "ill", _recoding(Kind.CATEGORICAL)) == len(expected)


def test_cells_that_cannot_be_read_are_not_taken_as_values():
    columns = _columns([("a", "[1, 5]"), ("a", "x")])
    assert overlapping_classes(columns, ("group",), "ill", _recoding(Kind.CATEGORICAL)) is None
    assert overlapping_classes(columns, ("group",), "ill", replace(_recoding(Kind.NUMERIC), rule="labels")) is None


def _made():
    from sfumato.datasets.admissions import admissions

    table = admissions(n_rows=300).keep(["age", "sex", "discharge_diagnosis"])
    table = table.with_schema(table.schema.with_roles({"discharge_diagnosis": BOTH}))
    return table, release(table, Mondrian(k=5, privacy=[LDiversity(2)]))


def _failed(manifest, released):
    return [check.name for check in audit_release(released, manifest.to_dict()).checks if not check.passed]


@pytest.mark.slow
def test_a_promise_may_leave_out_its_own_column_and_no_other():
    _, made = _made()
    crowd, diversity = made.manifest.guarantees
    assert not _failed(made.manifest, made.table)
    short = {**crowd, "columns": [n for n in crowd["columns"] if n != "discharge_diagnosis"]}
    assert "k-anonymity: columns" in _failed(replace(made.manifest, guarantees=(short, diversity)), made.table)
    short = {**diversity, "columns": ["sex"]}
    assert "l-diversity: columns" in _failed(replace(made.manifest, guarantees=(crowd, short)), made.table)


def test_without_the_combined_role_the_promise_must_cover_the_column():
    _, made = _made()
    columns = [{**c, "role": "quasi-identifier"} for c in made.manifest.output["columns"]]
    manifest = replace(made.manifest, output={**made.manifest.output, "columns": columns})
    assert "l-diversity: columns" in _failed(manifest, made.table)


@pytest.mark.parametrize(
    "promise",
    [
        TCloseness(0.9, "discharge_diagnosis", ("age", "sex")),
        LDiversity(2, "discharge_diagnosis", ("age", "sex", "discharge_diagnosis")),
    ],
)
def test_what_does_not_follow_from_cells_is_not_confirmed(promise):
    _, made = _made()
    entry = promise.to_dict() | {"statement": promise.describe(), "audited": 1.0}
    manifest = replace(made.manifest, guarantees=(made.manifest.guarantees[0], entry))
    assert f"{promise.kind}: cells of a sensitive quasi-identifier" in _failed(manifest, made.table)


def test_overlapping_cells_are_not_counted_as_different_values():
    _, made = _made()
    column = made.table["discharge_diagnosis"]
    texts = column.values.to_pylist()
    widest = max(range(len(texts)), key=lambda i: len(texts[i] or ""))
    values = pa.array(["*" if i == widest else text for i, text in enumerate(texts)])
    columns = {**made.table.columns, "discharge_diagnosis": replace(column, values=values)}
    failed = _failed(made.manifest, replace(made.table, columns=columns))
    assert "l-diversity: cells of a sensitive quasi-identifier" in failed
