"""What a cluster reads is what stands in the files: no note, no folder's name and no hidden file changes it."""

import contextlib
import datetime
import decimal
import json
import shutil
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from manifest_texts import text_of
from sfumato.engines.blocks.rows import open_large
from sfumato.engines.counting import count_blocks
from sfumato.engines.memory_limit import Memory
from sfumato.engines.spark import frames as frames_module
from sfumato.engines.spark import opening as opening_module
from sfumato.engines.spark.frames import parquet_frame
from sfumato.engines.spark.opening import open_cluster
from sfumato.errors import InputError
from sfumato.manifest import manifest_digest
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.propose import make_release, propose
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.schema import Role
from sfumato.table.io.parquet import folder_sha256
from sfumato.table.io.read import read_table

MEMORY = Memory(200 * 10**6)
NOTE = b"org.apache.spark.sql.parquet.row.metadata"
CANARY = "canary-4711"
N_ROWS = 60
ROLES = {"town": Role.QUASI_IDENTIFIER, "ill": Role.SENSITIVE}


def cells():
    random = np.random.default_rng(3)
    return pa.table(
        {
            "town": [f"town {i}" for i in random.integers(0, 4, N_ROWS)],
            "ill": [["flu", "cold", "gout"][i] for i in random.integers(0, 3, N_ROWS)],
        }
    )


def noted(table, types):
    """Write a note about columns into a table, as Spark does and believes."""
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in types.items()]
    return table.replace_schema_metadata({NOTE: json.dumps({"type": "struct", "fields": fields}).encode()})


@pytest.fixture(scope="module")
def released(shared_session, one_cluster, tmp_path_factory):
    """Folder of a release, its manifest, and the original it came from."""
    one_cluster.make_whole()
    folder = tmp_path_factory.mktemp("released")
    pq.write_table(cells(), folder / "in.parquet")
    table = open_cluster(shared_session.get(one_cluster.url), folder / "in.parquet", memory=MEMORY.n_bytes)
    proposal = propose(table.with_schema(table.schema.with_roles(ROLES)), GlobalRecoder(k=40), MEMORY)
    found = publish(proposal, folder / "out.parquet", memory=MEMORY)
    return found.table_path, found.manifest_path, proposal.original


def with_another_column(folder):
    path = folder / "part-00000.parquet"
    table = pq.read_table(path)
    raw = pa.array([f"{CANARY} {i}" for i in range(table.num_rows)])
    pq.write_table(noted(table.append_column("raw", raw), {"town": "string", "ill": "string"}), path)


def with_a_folder_for_a_column(folder):
    parts = sorted(folder.iterdir())
    table = pa.concat_tables(pq.read_table(path) for path in parts)
    (label,) = set(table.column("town").to_pylist())
    inner = folder / ("town=" + "".join(f"%{byte:02X}" for byte in label.encode()))
    inner.mkdir()
    for path in parts:
        path.unlink()
    raw = pa.array([f"{CANARY} {i}" for i in range(table.num_rows)])
    pq.write_table(table.set_column(0, "town", raw), inner / "part.parquet")


def with_rows_in(name):
    def change(folder):
        (folder / name).parent.mkdir(exist_ok=True)
        pq.write_table(cells().cast(pq.read_schema(folder / "part-00000.parquet")), folder / name)

    return change


def with_rows_for_success(folder):
    (folder / "_SUCCESS").write_text(CANARY)


def with_a_long_checksum(folder):
    (folder / ".part-00000.parquet.crc").write_bytes(bytes((folder / "part-00000.parquet").stat().st_size))


HIDING = {
    "a column": with_another_column,
    "a folder for a column": with_a_folder_for_a_column,
    "a folder": with_rows_in("more/raw.parquet"),
    "a copy": with_rows_in("part-1.parquet._COPYING_"),
    "a hidden name": with_rows_in(".a=b.parquet"),
    "another hidden name": with_rows_in("_a=b.parquet"),
    "a hidden file": with_rows_in("_raw.parquet"),
    "metadata": with_rows_in("_metadata"),
    "a hidden folder": with_rows_in(".old/part-00000.parquet"),
    "success": with_rows_for_success,
    "a checksum": with_a_long_checksum,
}


def changed(released, folder, change):
    """Copy a release, change it, and make the hash in its manifest fit where one can be made."""
    path, manifest_path = folder / "out.parquet", folder / "out.json"
    shutil.copytree(released[0], path)
    change(path)
    entries = json.loads(released[1].read_text())
    with contextlib.suppress(InputError):
        entries["output"]["sha256"] = folder_sha256(path)
    entries["digest"] = manifest_digest(entries)
    manifest_path.write_text(text_of(entries), encoding="utf-8")
    return path, manifest_path


def is_refused(audit):
    try:
        return not audit().passed
    except InputError as error:
        return CANARY not in str(error)


@pytest.mark.parametrize("what", HIDING)
def test_raw_rows_hidden_in_a_release_are_found(spark, released, tmp_path, what):
    """On a cluster, out of core and in memory; what stands there is neither overlooked nor overridden."""
    path, manifest_path = changed(released, tmp_path, HIDING[what])

    assert is_refused(lambda: audit_published(path, manifest_path, memory=MEMORY, original=released[2]))
    assert is_refused(lambda: audit_published(path, manifest_path, memory=MEMORY))
    assert is_refused(lambda: audit_published(path, manifest_path, memory=MEMORY))
    assert is_refused(lambda: audit_published(path, manifest_path))


def with_what_clusters_leave(folder):
    (folder / "_SUCCESS").write_bytes(b"")
    for name in ("_SUCCESS", "part-00000.parquet"):
        written = (folder / name).read_bytes()
        sums = [zlib.crc32(written[i : i + 512]).to_bytes(4, "big") for i in range(0, len(written), 512)]
        (folder / f".{name}.crc").write_bytes(b"crc\0" + (512).to_bytes(4, "big") + b"".join(sums))


def test_what_a_cluster_leaves_in_a_folder_is_no_more_than_its_parts(spark, released, tmp_path):
    path, manifest_path = changed(released, tmp_path, with_what_clusters_leave)

    assert audit_published(path, manifest_path, memory=MEMORY, original=released[2]).passed
    assert audit_published(path, manifest_path, memory=MEMORY).passed
    assert audit_published(path, manifest_path).passed


def test_columns_are_those_of_the_files_whatever_a_note_says(spark, tmp_path):
    """A column that the note leaves out is read; a type that it lies about is the real one."""
    table = pa.table({"age": pa.array([1, 2, 2], pa.int32()), "town": ["a", "b", "b"], "Town": ["x", "y", "y"]})
    path = tmp_path / "town=ulm" / "in.parquet"
    path.parent.mkdir()
    pq.write_table(noted(table, {"age": "date", "town": "string"}), path)

    found = open_cluster(spark, path, memory=MEMORY.n_bytes)

    assert found.schema == open_large(path, memory=MEMORY.n_bytes).schema
    assert found.outline["age"].values.to_pylist() == [1, 2]
    assert found.outline["age"].values.type == pa.int32()
    assert found.outline["town"].values.to_pylist() == ["a", "b"]


NINE = decimal.Decimal("1.10")
MOMENTS = [datetime.datetime(2020, 7, 1, 3), datetime.datetime(2020, 1, 1, 4), None, datetime.datetime(2020, 1, 1, 4)]
REFUSED = {
    "zone": pa.array(MOMENTS, pa.timestamp("us", "America/New_York")),
    "nanoseconds": pa.array(MOMENTS, pa.timestamp("ns")),
    "duration": pa.array([1, 2, None, 1], pa.duration("us")),
    "time": pa.array([1, 2, None, 1], pa.time64("us")),
    "half": pa.array(np.array([1.5, 2.5, 0, 1], dtype=np.float16)),
    "long decimal": pa.array([NINE, -NINE, None, NINE], pa.decimal256(50, 2)),
    "list": pa.array([[1], [2], None, [1]]),
    "bytes": pa.array([b"a", b"b", None, b"a"]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_types_that_spark_reads_otherwise_are_refused_by_name(spark, tmp_path, what):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"q": REFUSED[what], "z": [1, 2, 3, 4]}), path)

    with pytest.raises(InputError, match=r"column 'q': (is of a type|holds values that are neither)"):
        open_cluster(spark, path, memory=MEMORY.n_bytes)


def test_all_other_types_are_read_as_out_of_core(spark, tmp_path, monkeypatch):
    """The same values, codes and counts, looked up in both ways; Spark has no shorter type for some of them."""
    wider = {
        "u8": pa.array([255, 0, 1, None], pa.uint8()),
        "u16": pa.array([65535, 0, 1, None], pa.uint16()),
        "u32": pa.array([2**32 - 1, 0, 1, None], pa.uint32()),
        "u64": pa.array([2**64 - 1, 0, 1, None], pa.uint64()),
        "seconds": pa.array(MOMENTS, pa.timestamp("s")),
        "milliseconds": pa.array(MOMENTS, pa.timestamp("ms")),
    }
    same = {
        "utc": pa.array(MOMENTS, pa.timestamp("us", "UTC")),
        "nothing": pa.nulls(4),
        "no text": pa.nulls(4, pa.string()),
        "large": pa.array(["a", "b", None, "a"], pa.large_string()),
        "listed": pa.array(["a", "b", None, "a"]).dictionary_encode(),
        "day": pa.array([0, 86400000, None, 0], pa.date64()),
        "decimal": pa.array([NINE, -NINE, None, NINE], pa.decimal128(38, 2)),
        "small": pa.array([0.1, 1e38, -0.0, float("nan")], pa.float32()),
        "short": pa.array([-128, 127, None, 0], pa.int8()),
        "truth": pa.array([True, False, None, True]),
    }
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table(wider | same), path)
    expected, found = open_large(path, memory=MEMORY.n_bytes), open_cluster(spark, path, memory=MEMORY.n_bytes)

    assert found.schema == expected.schema
    for name in wider | same:
        ours, theirs = found.outline[name], expected.outline[name]
        assert ours.values.to_pylist() == theirs.values.to_pylist()
        assert (ours.values.type == theirs.values.type) == (name in same)
        assert ours.counts.tolist() == theirs.counts.tolist()
    names = list(wider | same)
    theirs = count_blocks(expected, names, most_cells=9)
    for few in (frames_module.FEW, 0):
        monkeypatch.setattr(frames_module, "FEW", few)
        ours = found.distinct(names, most_cells=9)
        assert [ours[n].codes.tolist() for n in names] == [theirs[n].codes.tolist() for n in names]
        assert ours.row_counts.tolist() == theirs.row_counts.tolist()


@pytest.mark.parametrize("memory", [MEMORY.n_bytes, 4000])
def test_texts_that_are_not_utf_8_are_refused_in_words(spark, tmp_path, memory):
    """Also in a column that is too long to be listed; no byte of it is shown."""
    texts = [f"{CANARY}\xff".encode("latin-1"), b"a", b"b", b"c"]
    broken = pa.Array.from_buffers(pa.string(), 4, pa.array(texts).buffers())
    pq.write_table(pa.table({"town": broken}), tmp_path / "in.parquet")

    with pytest.raises(InputError, match="UTF-8") as caught:
        open_cluster(spark, tmp_path / "in.parquet", memory=memory)
    assert CANARY not in str(caught.value)
    assert "town" in str(caught.value)


def test_a_release_that_counts_cannot_follow_is_compared_by_its_rows(spark, tmp_path):
    """Equal rows became different ones, which is right."""
    random = np.random.default_rng(0)
    rows = cells().add_column(0, "age", pa.array(random.integers(20, 24, N_ROWS)))
    roles = ROLES | {"age": Role.QUASI_IDENTIFIER}
    pq.write_table(rows, tmp_path / "in.parquet")
    table = read_table(tmp_path / "in.parquet")
    table = table.with_schema(table.schema.with_roles(roles))
    release = make_release(table, build_mechanism("mondrian", {"k": 4, "strict": False}))
    made = publish(release, tmp_path / "out.parquet", original=table)
    original = open_cluster(spark, tmp_path / "in.parquet", memory=MEMORY.n_bytes)
    original = original.with_schema(original.schema.with_roles(roles))

    report = audit_published(made.table_path, made.manifest_path, memory=MEMORY, original=original, check_roles=True)

    assert report.passed
    assert "cells" in {one.name for one in report.checks}
    assert "cells" not in {one.name for one in report.unchecked}
    assert audit_published(made.table_path, made.manifest_path, original=table).passed


def test_files_and_rows_that_spark_leaves_out_are_missed(spark, tmp_path, monkeypatch):
    """Spark passes over hidden files without a word; and rows are counted twice, by it and by the files."""
    pq.write_table(cells(), tmp_path / "_in.parquet")
    pq.write_table(cells(), tmp_path / "in.parquet")
    with pytest.raises(InputError, match="reads other files"):
        open_cluster(spark, tmp_path / "_in.parquet", memory=MEMORY.n_bytes)
    monkeypatch.setattr(opening_module, "parquet_frame", lambda *given: parquet_frame(*given).limit(N_ROWS - 1))
    with pytest.raises(InputError, match="another number of rows"):
        open_cluster(spark, tmp_path / "in.parquet", memory=MEMORY.n_bytes)
