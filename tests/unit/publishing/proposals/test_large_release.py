"""Releases out of core are those made in memory, to the byte."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.counting import cells as cell_limits
from sfumato.engines.blocks.rows import open_large
from sfumato.engines.memory_limit import Memory
from sfumato.engines.protocol import TooLargeError
from sfumato.errors import AuditFailedError, InputError, InvalidParameterError, SchemaError
from sfumato.mechanisms.lattice.gain import GainRecoder
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.proposals.in_memory import InMemory
from sfumato.publishing.propose import make_release, mechanisms_without_all_rows, propose
from sfumato.publishing.publish import publish
from sfumato.schema import Role
from sfumato.table.io.read import read_table
from sizes import examples
from unit.publishing.proposals.blockwise import outcome, small_blocks, write_file

MEMORY = Memory(200 * 10**6)
ROLES = {
    "id": Role.IDENTIFIER,
    "age": Role.QUASI_IDENTIFIER,
    "town": Role.QUASI_IDENTIFIER,
    "day": Role.QUASI_IDENTIFIER,
    "illness": Role.SENSITIVE,
    "ill": Role.TARGET,
    "note": Role.OTHER,
    "dose": Role.OTHER,
}


def random_cells(n_rows, seed):
    random = np.random.default_rng(seed)

    def pick(values):
        return [values[i] for i in random.integers(0, len(values), n_rows)]

    return pa.table(
        {
            "id": pa.array([f"p{i}" for i in range(n_rows)]),
            "age": pa.array(pick([17, 18, 18, 25, 40, 64, None]), pa.int16()),
            "town": pa.array(pick(["Ulm", " Ulm", "Bonn", "Kiel ", "?", "a,b", 'say "so"', "two\nlines"])),
            "day": pa.array(pick([None, 0, 31, 400, 401]), pa.int32()).cast(pa.date32()),
            "illness": pa.array(pick(["flu", "cold", "gout", "NA"])),
            "ill": pa.array(pick([True, False])),
            "note": pa.array(pick(["x", "y", "", "=1+1"])),
            "dose": pa.array(random.normal(size=n_rows).round(1)),
        }
    )


def described(table):
    return table.with_schema(table.schema.with_roles(ROLES))


def made_in_memory(source, mechanism, output):
    table = described(read_table(source))
    return publish(make_release(table, mechanism), output, original=table)


def made_out_of_core(source, mechanism, output, memory=MEMORY):
    large = described(open_large(source, memory=memory.n_bytes))
    return publish(propose(large, mechanism, memory), output, memory=memory)


@st.composite
def orders(draw):
    kind = draw(st.sampled_from([GlobalRecoder, GainRecoder]))
    settings = {
        "k": draw(st.integers(2, 6)),
        "max_suppressed_fraction": draw(st.sampled_from([0.0, 0.1, 0.5, 1.0])),
        "regroup": draw(st.booleans()),
        "loss": draw(st.sampled_from(["loss", "discernibility", "target_information"])),
    }
    if draw(st.booleans()):
        variant, level = draw(st.sampled_from([("distinct", 2.0), ("entropy", 1.5), ("entropy", 2.0)]))
        settings |= {"l": level, "variant": variant}
    if draw(st.booleans()):
        settings |= {"t": 0.9}
    if kind is GainRecoder and draw(st.booleans()):
        settings |= {"slicing": True, "threshold": 10.0, "gain_target": draw(st.sampled_from([None, "note"]))}
    return kind, settings


@pytest.mark.slow
@examples(25)
@given(
    st.integers(8, 80),
    st.integers(0, 2**32),
    orders(),
    st.sampled_from(["in.parquet", "in.csv"]),
    st.sampled_from(["out.parquet", "out.csv", "out.tsv.gz"]),
)
def test_the_same_bytes_and_the_same_manifest_as_in_memory(n_rows, seed, order, source_name, output_name):
    """Levels, suppressed rows, guarantees and rows do not depend on whether the table was held."""
    kind, parameters = order
    with TemporaryDirectory() as name, small_blocks():
        folder = Path(name)
        write_file(random_cells(n_rows, seed), folder / source_name)
        (folder / "memory").mkdir()
        (folder / "large").mkdir()
        expected = outcome(
            made_in_memory,
            folder / source_name,
            build_mechanism(kind.mechanism_name, parameters),
            folder / "memory" / output_name,
        )
        found = outcome(
            made_out_of_core,
            folder / source_name,
            build_mechanism(kind.mechanism_name, parameters),
            folder / "large" / output_name,
        )

        if isinstance(expected, str):
            assert found == expected
            return
        assert found.table_path.read_bytes() == expected.table_path.read_bytes()
        assert json.loads(found.manifest_path.read_text()) == json.loads(expected.manifest_path.read_text())
        assert found.audit.levels == expected.audit.levels


@pytest.fixture
def source(tmp_path):
    """Write a file of 60 rows."""
    path = tmp_path / "in.parquet"
    write_file(random_cells(60, 3), path)
    return path


@pytest.mark.slow
def test_columns_with_too_many_values_are_released_as_they_are(source, tmp_path):
    """Their values are never listed; the bytes are the same."""
    expected = made_in_memory(source, GlobalRecoder(k=3), tmp_path / "memory.csv")
    with small_blocks():
        large = described(open_large(source, memory=48_000))
        assert [name for name in ROLES if large.is_open(name)] == ["id", "dose"]
        found = publish(propose(large, GlobalRecoder(k=3), MEMORY), tmp_path / "large.csv", memory=MEMORY)

    assert found.table_path.read_bytes() == expected.table_path.read_bytes()
    assert any("'dose'" in one.message for one in found.audit.unchecked if one.name == "spelling")


@pytest.mark.slow
def test_the_release_does_not_depend_on_the_memory(source, tmp_path):
    """Less memory, the same bytes."""
    outputs = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for memory, output in zip(("600MB", "8GB"), outputs, strict=True):
        made_out_of_core(source, GainRecoder(k=4), output, Memory.of(memory))

    assert outputs[0].read_bytes() == outputs[1].read_bytes()


def test_only_mechanisms_that_need_no_rows_can_do_it(source):
    """The others take the rows into memory, or are refused, and those that can are named."""
    large = described(open_large(source, memory=MEMORY.n_bytes))
    assert isinstance(propose(large, build_mechanism("mdav", {}), MEMORY), InMemory)
    assert mechanisms_without_all_rows() == [
        "auto",
        "breach-aware",
        "error-risk-tree",
        "exact-containment",
        "gain-recoding",
        "global-recoding",
        "greedy-containment",
        "local-recoding",
        "maximal-containment",
        "mondrian",
        "optimal-containment",
    ]
    with (
        patch("sfumato.engines.protocol.cells_in_memory", lambda memory: 10),
        pytest.raises(TooLargeError, match="gain-recoding, global-recoding"),
    ):
        propose(large, build_mechanism("mdav", {}), MEMORY)


def test_a_quasi_identifier_with_too_many_values_is_refused(source):
    """Its hierarchy would be as long as the file."""
    with small_blocks():
        large = open_large(source, memory=48_000)
    large = large.with_schema(large.schema.with_roles(ROLES | {"dose": Role.QUASI_IDENTIFIER}))
    with pytest.raises(SchemaError, match="too many distinct values"):
        propose(large, GlobalRecoder(k=3), MEMORY)
    target = large.with_schema(large.schema.with_roles(ROLES | {"ill": Role.OTHER, "dose": Role.TARGET}))
    with pytest.raises(SchemaError, match="'dose'"):
        propose(target, GlobalRecoder(k=3), MEMORY)


def test_a_target_with_very_many_values_is_refused(source):
    """Counts of its values with those of a quasi-identifier must fit."""
    large = described(open_large(source, memory=MEMORY.n_bytes))
    with (
        patch.object(cell_limits, "_MOST_PAIRS", 3),
        pytest.raises(SchemaError, match="to be counted with those of 'age'"),
    ):
        propose(large, GlobalRecoder(k=3), MEMORY)


def files_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.slow
def test_nothing_appears_when_the_audit_finds_other_rows(source, tmp_path):
    """What is audited is what was written."""
    large = described(open_large(source, memory=MEMORY.n_bytes))
    proposal = propose(large, GlobalRecoder(k=3), MEMORY)

    def wrong_rows(self, columns):
        return np.zeros(len(columns[0]), dtype=np.intp)

    with patch("sfumato.engines.counting.RowFinder.find", wrong_rows), pytest.raises(AuditFailedError):
        publish(proposal, tmp_path / "out.parquet", memory=MEMORY)

    assert files_in(tmp_path) == ["in.parquet"]


@pytest.mark.parametrize("stage", ["written", "audited"])
def test_an_interruption_leaves_nothing(source, tmp_path, stage):
    """Neither of the two files, nor a part of one."""
    proposal = propose(described(open_large(source, memory=MEMORY.n_bytes)), GlobalRecoder(k=3), MEMORY)

    def interrupt(done, total, what):
        if what.endswith(stage):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish(proposal, tmp_path / "out.parquet", memory=MEMORY, progress=interrupt)

    assert files_in(tmp_path) == ["in.parquet"]


@pytest.mark.slow
def test_progress_is_told_in_rows(source, tmp_path):
    """Of each pass over the file."""
    told = []
    with small_blocks():
        large = described(open_large(source, memory=MEMORY.n_bytes))
        proposal = propose(large, GlobalRecoder(k=3), MEMORY, progress=lambda *step: told.append(step))
        publish(proposal, tmp_path / "out.csv", memory=MEMORY, progress=lambda *step: told.append(step))

    assert (60, 60, "60 of 60 rows counted") in told
    assert (60, 60, "60 of 60 rows written") in told
    assert any(what.endswith("rows audited") for _, _, what in told)


def test_a_file_that_changes_before_it_is_written_is_refused(source, tmp_path):
    """The release would be of another table than the one that was counted."""
    proposal = propose(described(open_large(source, memory=MEMORY.n_bytes)), GlobalRecoder(k=3), MEMORY)
    write_file(random_cells(60, 4), source)
    with pytest.raises(InputError, match="changed while it was being read"):
        publish(proposal, tmp_path / "out.parquet", memory=MEMORY)

    assert files_in(tmp_path) == ["in.parquet"]


def test_workbooks_are_not_written_row_by_row(source, tmp_path):
    """Such outputs are refused before anything is done."""
    proposal = propose(described(open_large(source, memory=MEMORY.n_bytes)), GlobalRecoder(k=3), MEMORY)
    with pytest.raises(InvalidParameterError, match="csv, tsv"):
        publish(proposal, tmp_path / "out.xlsx", memory=MEMORY)
