"""A generalized column is read beside its original once in an audit, whatever asks for it, and always the same way."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato.audit.auditor import AuditorHas
from sfumato.audit.reading import read_once
from sfumato.audit.reading.columns import Columns
from sfumato.audit.reading.read_once import GeneralizedColumns
from sfumato.audit.verify import audit_release
from sfumato.datasets.admissions import admissions
from sfumato.errors import ColumnNotFoundError
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.tree.mechanism import ErrorRiskTree
from sfumato.publishing.propose import make_release
from sfumato.schema import Column, Kind, Schema
from sfumato.table.coding import Table


@pytest.fixture
def readings(monkeypatch):
    """Count how often each pair of columns is read."""
    counted = []
    really = read_once.contained

    def counting(released, original, kind, domain=None):
        counted.append((id(released), id(original)))
        return really(released, original, kind, domain)

    monkeypatch.setattr(read_once, "contained", counting)
    return counted


def ages():
    """Give a released column and its original."""
    schema = Schema.of([Column("age")])
    released, original = pa.table({"age": ["[20, 30]", "40"]}), pa.table({"age": [20, 40]})
    return (Columns(Table.from_arrow(table, schema)) for table in (released, original))


@pytest.mark.parametrize("mechanism", [Mondrian(k=5), ErrorRiskTree(k=5)], ids=["k-anonymity", "kk-anonymity"])
def test_an_audit_reads_each_generalized_column_once(readings, mechanism):
    table = admissions(n_rows=60).keep(["age", "sex", "diabetes", "readmitted"])
    made = make_release(table, mechanism)
    readings.clear()
    report = audit_release(made.table, made.manifest.to_dict(), AuditorHas(original=table))

    assert report.passed
    assert len(readings) == len(made.manifest.recodings) == 3


def test_what_does_not_fit_into_memory_is_read_again(readings, monkeypatch):
    monkeypatch.setattr(read_once, "MOST_KEPT", 4)
    columns = GeneralizedColumns(*ages())
    first, second = (columns.read("age", "age", Kind.NUMERIC, None) for _ in range(2))

    assert len(readings) == 2
    assert np.array_equal(first.starts, second.starts)
    assert np.array_equal(first.places, second.places)


def test_another_kind_is_another_reading(readings):
    columns = GeneralizedColumns(*ages())
    found = [columns.read("age", "age", kind, None) for kind in (Kind.NUMERIC, Kind.CATEGORICAL, Kind.NUMERIC)]

    assert [one.n_unreadable for one in found] == [0, 1, 0]
    assert len(readings) == 2


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(ColumnNotFoundError):
        GeneralizedColumns(*ages()).read("height", "age", Kind.NUMERIC, None)
