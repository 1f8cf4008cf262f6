"""Columns of numbers with too many values to be listed, whatever numbers those are."""

import json
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from sfumato.engines.blocks import rows as distinct
from sfumato.engines.blocks.rows import open_large
from sfumato.engines.memory_limit import Memory
from sfumato.errors import InputError
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.publishing.propose import make_release, propose
from sfumato.publishing.publish import publish
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.io import csv as delimited_blocks
from sfumato.table.io import parquet
from sfumato.table.io.read import read_table

MEMORY = Memory(200 * 10**6)


def few_values():
    """Cut files into small blocks, and list at most four values a column."""
    stack = ExitStack()
    stack.enter_context(patch("sfumato.engines.memory_limit._BYTES_A_VALUE", MEMORY.n_bytes // 4))
    stack.enter_context(patch.object(delimited_blocks, "BLOCK_BYTES", 97))
    stack.enter_context(patch.object(parquet, "BLOCK_ROWS", 5))
    stack.enter_context(patch.object(distinct, "_FEWEST_PENDING", 2))
    return stack


@pytest.mark.slow
@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
@pytest.mark.parametrize("odd", [[float("inf")], [float("-inf"), float("nan"), -0.0], [1e300, 5e-324]], ids=str)
def test_infinite_and_extreme_numbers_have_the_bytes_of_the_release_in_memory(odd, output, tmp_path):
    """An infinite number is not guessed to be one in a text, but the manifest declares it."""
    doses = np.random.default_rng(2).normal(size=60)
    doses[[3, 17, 41][: len(odd)]] = odd
    path = tmp_path / "in.parquet"
    pyarrow.parquet.write_table(pa.table({"sex": ["f", "m"] * 30, "dose": doses}), path)

    def described(table):
        return table.with_schema(table.schema.with_roles({"dose": Role.OTHER}))

    for place in ("memory", "large"):
        (tmp_path / place).mkdir()
    whole = described(read_table(path))
    expected = publish(make_release(whole, GlobalRecoder(k=3)), tmp_path / "memory" / output, original=whole)
    with few_values():
        original = described(open_large(path, memory=MEMORY.n_bytes))
        assert original.is_open("dose")
        found = publish(propose(original, GlobalRecoder(k=3), MEMORY), tmp_path / "large" / output, memory=MEMORY)

    assert found.table_path.read_bytes() == expected.table_path.read_bytes()
    stated, in_memory = (json.loads(one.manifest_path.read_text()) for one in (found, expected))
    del in_memory["evidence"]["risk"]["unique_row_fraction"]  # not counted where a column's values are not listed
    for entries in (stated, in_memory):
        del entries["digest"]
    assert {"risk": {}, **stated["evidence"]} == in_memory["evidence"]
    assert {**stated, "evidence": None} == {**in_memory, "evidence": None}


@pytest.mark.parametrize("odd", ["inf", "-Infinity", "007", "1e5"])
def test_texts_that_are_declared_numeric_are_numbers_as_in_memory(odd, tmp_path):
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pa.table({"a": [*map(str, range(40)), odd]}), path)
    declared = Schema.of([Column("a", kind=Kind.NUMERIC)])
    with few_values():
        found = open_large(path, memory=MEMORY.n_bytes, schema=declared)
        guessed = open_large(path, memory=MEMORY.n_bytes)

    assert found.is_open("a")
    assert found.schema == read_table(path, schema=declared).schema
    assert guessed.schema == read_table(path).schema


@pytest.mark.parametrize("odd", ["x", "1,5,6", "2024-01-02"])
def test_texts_that_are_no_numbers_are_refused_as_in_memory(odd, tmp_path):
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pa.table({"a": [*map(str, range(40)), odd]}), path)
    declared = Schema.of([Column("a", kind=Kind.NUMERIC)])
    with few_values():
        with pytest.raises(InputError, match="not numbers"):
            open_large(path, memory=MEMORY.n_bytes, schema=declared)
        with pytest.raises(InputError, match="not numbers"):
            read_table(path, schema=declared)
