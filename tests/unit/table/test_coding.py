"""Coded columns: equal numbers are one value, whatever their sign bit."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.cli.main import run
from sfumato.schema import Kind
from sfumato.table.coding import CodedColumn

CELLS = [0.0, -0.0, 1.5, None, -0.0, -1.5]


@pytest.mark.parametrize("kind", [Kind.NUMERIC, Kind.CATEGORICAL])
@pytest.mark.parametrize("number_type", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("is_dictionary", [False, True])
def test_zero_has_no_sign(kind, number_type, is_dictionary):
    cells = pa.array(CELLS, number_type)

    column = CodedColumn.encode(cells.dictionary_encode() if is_dictionary else cells, kind)

    assert column.values.to_pylist() == [-1.5, 0.0, 1.5, None]
    assert not np.signbit(column.values[1].as_py())
    assert column.codes.tolist() == [1, 1, 2, 3, 1, 0]


@pytest.mark.slow
def test_a_release_with_both_zeros_is_confirmed_by_its_own_audit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    number = np.round(rng.normal(size=200), 1)
    assert {False, True} <= set(np.signbit(number[number == 0]).tolist())
    columns = {"a": number, "c": rng.choice(list("xyz"), 200), "y": rng.integers(2, size=200)}
    pq.write_table(pa.table(columns | {"s": rng.choice(["flu", "none"], 200)}), "in.parquet")
    roles = ["--quasi-identifiers", "a,c", "--target", "y", "--sensitive", "s"]

    assert run(["release", "in.parquet", "-m", "breach-aware", "-o", "out.csv", *roles]) == 0
