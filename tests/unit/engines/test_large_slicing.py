"""Slicing out of core: which sensitive values occur with each combination is known without counting them together."""

import csv
import json
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from sfumato.audit.in_blocks import audit_rows
from sfumato.audit.reading.block_counting import least_different_values
from sfumato.engines.blocks.rows import open_large
from sfumato.engines.memory_limit import Memory
from sfumato.errors import InputError, SchemaError
from sfumato.manifest import manifest_digest
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.proposals import counted as cells
from sfumato.publishing.propose import make_release, propose
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import open_released, read_manifest
from sfumato.schema import Role
from sfumato.table.io.read import read_table
from sizes import examples
from unit.publishing.proposals.blockwise import small_blocks, write_file

MEMORY = Memory(200 * 10**6)
ROLES = {
    "useful": Role.QUASI_IDENTIFIER,
    "age": Role.QUASI_IDENTIFIER,
    "town": Role.QUASI_IDENTIFIER,
    "illness": Role.SENSITIVE,
    "wage": Role.SENSITIVE,
    "ill": Role.TARGET,
}
QUASI = ("useful", "age", "town")
SLICING = {"slicing": True, "threshold": 0.5, "k": 3, "max_suppressed_fraction": 0.2}


def sliced_cells(n_rows, seed):
    random = np.random.default_rng(seed)
    ill = random.integers(0, 2, n_rows)
    return pa.table(
        {
            "useful": pa.array([f"u{2 * value + random.integers(0, 2)}" for value in ill]),
            "age": pa.array(random.choice([17, 25, 40, 64], n_rows)),
            "town": pa.array(random.choice(["Ulm", "Bonn", "Kiel"], n_rows)),
            "illness": pa.array([["flu", "cold", "gout", None][i] for i in random.integers(0, 4, n_rows)]),
            "wage": pa.array([["1", "1.0", "01", "2", "2.50", "2.5", ""][i] for i in random.integers(0, 7, n_rows)]),
            "ill": pa.array(["yes" if value else "no" for value in ill]),
        }
    )


def described(table):
    return table.with_schema(table.schema.with_roles(ROLES))


def made_out_of_core(source, output, **parameters):
    large = described(open_large(source, memory=MEMORY.n_bytes))
    return publish(
        propose(large, build_mechanism("gain-recoding", {**SLICING | parameters}), MEMORY), output, memory=MEMORY
    )


def read_rows(path):
    if path.suffix == ".parquet":
        return pyarrow.parquet.read_table(path).to_pylist()
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def text(cell):
    return "" if cell is None else str(cell)


def least_different(rows, over, name):
    """Fewest different values of a column among rows that are equal over others; a number has many spellings."""
    found = defaultdict(set)
    for row in rows:
        is_number = name == "wage" and row[name]
        found[tuple(row[column] for column in over)].add(float(row[name]) if is_number else row[name])
    return min(map(len, found.values()))


@pytest.mark.slow
@examples(20)
@given(st.integers(40, 120), st.integers(0, 2**32), st.sampled_from([0, 3, 64]), st.sampled_from(["csv", "parquet"]))
def test_the_same_bytes_manifest_and_risk_as_in_memory(n_rows, seed, most_flags, form):
    """Whether columns of few values are looked up (64), one of them (3), or counted with the others (0)."""
    with TemporaryDirectory() as name, small_blocks(), patch.object(cells, "_MOST_FLAGS", most_flags):
        folder = Path(name)
        source = folder / f"in.{form}"
        write_file(sliced_cells(n_rows, seed), source)
        (folder / "memory").mkdir()
        (folder / "large").mkdir()
        table = described(read_table(source))
        in_memory = make_release(table, build_mechanism("gain-recoding", {**SLICING}))
        expected = publish(in_memory, folder / "memory" / f"out.{form}", original=table)
        found = made_out_of_core(source, folder / "large" / f"out.{form}")

        assert found.table_path.read_bytes() == expected.table_path.read_bytes()
        manifest = json.loads(found.manifest_path.read_text())
        assert manifest == json.loads(expected.manifest_path.read_text())
        assert manifest["guarantees"][0]["protected"] == ["age", "town"]
        rows = [{c: text(cell) for c, cell in row.items()} for row in read_rows(found.table_path)]
        fewest = [least_different(rows, QUASI, sensitive) for sensitive in ("illness", "wage")]
        assert manifest["evidence"]["risk"]["least_different_sensitive_values"] == min(fewest)


@pytest.mark.slow
def test_combinations_with_sensitive_values_need_not_fit(tmp_path):
    """Only those of the quasi-identifiers must, unless a promise speaks of sensitive values."""
    source = tmp_path / "in.parquet"
    table = sliced_cells(400, 1)
    write_file(table, source)
    n_combinations = len(set(zip(*(table[name].to_pylist() for name in QUASI), strict=True)))
    with patch.object(Memory, "most_cells", lambda *_: n_combinations):
        assert made_out_of_core(source, tmp_path / "sliced.parquet").audit.passed
        with pytest.raises(InputError, match="must be counted value by value"):
            made_out_of_core(source, tmp_path / "diverse.parquet", l=2)
    assert not (tmp_path / "diverse.parquet").exists()


def test_flags_of_values_take_memory_from_combinations():
    memory = Memory.of("1GB")
    assert memory.most_cells(6, 0) == memory.most_cells(6) > memory.most_cells(6, 75) > memory.most_cells(6, 750) > 0


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 1), st.sampled_from(["1", "1.0", "2", "", "x"])),
        min_size=1,
        max_size=40,
    ),
    st.sampled_from([("a", "b"), ("b",), ()]),
)
def test_the_audit_finds_the_fewest_different_values_of_a_class(rows, over):
    table = pa.table({name: [row[i] for row in rows] for i, name in enumerate(("a", "b", "c"))})
    with TemporaryDirectory() as folder, small_blocks():
        source = Path(folder) / "in.parquet"
        write_file(table, source)
        large = open_large(source, memory=MEMORY.n_bytes)
        classes = defaultdict(set)
        for row in table.to_pylist():
            classes[tuple(row[name] for name in over)].add(oracles.same_value(row["c"]))
        assert least_different_values(large, over, "c", MEMORY.n_bytes) == min(map(len, classes.values()))


def audited_with(published, stated):
    """Audit the release again, with another number stated."""
    manifest, entries = read_manifest(published.manifest_path)
    entries = json.loads(json.dumps(entries))
    entries["evidence"]["risk"]["least_different_sensitive_values"] = stated
    entries["digest"] = manifest_digest(entries)
    released = open_released(published.table_path, manifest, MEMORY.n_bytes)
    return audit_rows(released, entries, memory=MEMORY.n_bytes)


@pytest.mark.slow
@pytest.mark.parametrize("difference", [-1, 1])
def test_another_number_of_different_values_is_refused(tmp_path, difference):
    source = tmp_path / "in.parquet"
    write_file(sliced_cells(100, 2), source)
    published = made_out_of_core(source, tmp_path / "out.parquet")
    true = published.release.manifest.evidence["risk"]["least_different_sensitive_values"]

    assert audited_with(published, true).passed
    report = audited_with(published, true + difference)
    assert [check.name for check in report.checks if not check.passed] == ["risk: least different sensitive values"]


def test_a_sensitive_column_with_too_many_values_is_refused(tmp_path):
    """What is unprotected cannot be measured with a column whose values are not listed."""
    source = tmp_path / "in.parquet"
    table = sliced_cells(60, 3)
    table = table.set_column(3, "illness", pa.array([f"illness number {i} of many" for i in range(60)]))
    write_file(table, source)
    with small_blocks():
        large = described(open_large(source, memory=24_000))
    assert large.is_open("illness")
    with pytest.raises(SchemaError, match="too many distinct values"):
        propose(large, build_mechanism("gain-recoding", {**SLICING}), MEMORY)
