"""All five systems on a real cluster, with one master and two workers: the release is the one made in memory."""

import json

import numpy as np
import pyarrow.parquet
import pytest

from sfumato.audit.in_blocks import profile_rows
from sfumato.audit.levels import breach as audited_breach
from sfumato.audit.profile import risk_profile
from sfumato.collaborate.session.joining import in_shared_roles
from sfumato.collaborate.session.party import LargeRows, ProjectionReleaser, SessionRecord, propose_projection
from sfumato.collaborate.shared_schema import SharedSchema
from sfumato.datasets.admissions import admissions
from sfumato.engines.blocks.rows import open_large
from sfumato.engines.memory_limit import Memory
from sfumato.engines.spark import errors as spark_errors
from sfumato.engines.spark.opening import open_cluster
from sfumato.errors import ClusterError, InputError
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.proposals import sampled
from sfumato.publishing.propose import make_release, propose
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.schema import Role
from sfumato.table.io.read import read_table
from sfumato.table.io.write import write_table
from spark.interference import in_the_middle, slow_writing

MEMORY = Memory.of("600MB")
RECORD = SessionRecord("s-1/0", "totals by seeds", dict.fromkeys(("ann", "bob", "cid"), "00" * 32))
NAMES = ["patient_id", "age", "sex", "insurance", "diabetes", "smoker", "discharge_diagnosis", "readmitted"]
SYSTEMS = {
    "containment, greedy": ("greedy-containment", {"k": 4}),
    "containment, both values": ("greedy-containment", {"k": 4, "reveals": "both"}),
    "containment, exact": ("exact-containment", {"k": 6}),
    "containment, maximal": ("maximal-containment", {"k": 6}),
    "breach": ("breach-aware", {}),
    "tree, uniform": ("error-risk-tree", {"k": 5, "generalization": "uniform"}),
    "default": ("auto", {}),
    "partition": ("mondrian", {"k": 5, "t": 0.5}),
    "gain": ("gain-recoding", {"k": 5, "max_suppressed_fraction": 0.1}),
    "local": ("local-recoding", {"k": 5}),
}
"""The fifth, collaboration, needs the counts of each party: see below."""
EACH = ["containment, greedy", "breach", "default", "gain", "collaborating party"]
"""Systems whose workers and master are killed in ``make soak``: a new cluster takes half a minute."""


@pytest.fixture
def stays(tmp_path):
    """Give a folder of three Parquet files, and the schema of its columns."""
    table = admissions(n_rows=400).keep(NAMES)
    with (tmp_path / "whole.parquet").open("wb") as file:
        write_table(table, file, "parquet")
    cells = pyarrow.parquet.read_table(tmp_path / "whole.parquet")
    folder = tmp_path / "stays [1] é.parquet"
    folder.mkdir()
    for number, start in enumerate((0, 150, 151)):
        stop = (150, 151, 400)[number]
        part = cells.slice(start, stop - start)
        pyarrow.parquet.write_table(part, folder / f"{number} of+3.parquet", row_group_size=60)
    return folder, table.schema


def sorted_rows(path):
    rows = pyarrow.parquet.read_table(path).to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=repr)


def stated(path):
    """Read what a manifest says, without what differs by the home of the rows: names, hashes and writers of files."""
    entries = json.loads(path.read_text())
    for key in ("sha256", "name"):
        entries["output"].pop(key)
    entries.pop("digest")
    entries["versions"].pop("pyarrow", None)  # which writes no part files of a cluster
    return entries


def checked(published):
    """Names of the checks that were made."""
    return {check.name for check in published.audit.checks}


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_cluster_releases_what_is_released_in_memory(spark, stays, tmp_path, system):
    """The same manifest, the same rows as a bag, and the same levels; the audit out of core confirms it too."""
    folder, schema = stays
    name, parameters = SYSTEMS[system]
    table = read_table(folder, schema=schema)
    expected = publish(
        make_release(table, build_mechanism(name, parameters)), tmp_path / "expected.parquet", original=table
    )

    rows = open_cluster(spark, folder, memory=MEMORY.n_bytes, schema=schema)
    proposal = propose(rows, build_mechanism(name, parameters), MEMORY)
    found = publish(proposal, tmp_path / "found.parquet", memory=MEMORY)

    assert sorted_rows(found.table_path) == sorted_rows(expected.table_path)
    assert stated(found.manifest_path) == stated(expected.manifest_path)
    assert found.audit.levels == expected.audit.levels
    assert checked(found) == checked(expected)
    assert audit_published(found.table_path, found.manifest_path, memory=MEMORY, original=rows).passed
    assert audit_published(found.table_path, found.manifest_path, memory=MEMORY).passed


def test_a_sample_on_a_cluster_is_the_one_drawn_out_of_core(spark, stays, tmp_path, monkeypatch):
    """Rows are known by their places in the files, so that mechanism and audit draw the same ones from any home."""
    monkeypatch.setattr(sampled, "SAMPLE_ROWS", 150)
    monkeypatch.setattr(audited_breach, "SAMPLE_ROWS", 170)
    folder, schema = stays
    homes = {
        "large.parquet": open_large(folder, memory=MEMORY.n_bytes, schema=schema),
        "cluster.parquet": open_cluster(spark, folder, memory=MEMORY.n_bytes, schema=schema),
    }
    large, cluster = (
        publish(propose(rows, build_mechanism("breach-aware", {}), MEMORY), tmp_path / name, memory=MEMORY)
        for name, rows in homes.items()
    )

    assert "150" in json.dumps(large.release.manifest.to_dict())
    assert stated(cluster.manifest_path) == stated(large.manifest_path)
    assert sorted_rows(cluster.table_path) == sorted_rows(large.table_path)
    assert cluster.audit.levels == large.audit.levels


def test_rows_are_taken_by_their_places_in_the_files(spark, stays):
    folder, schema = stays
    places = np.array([0, 1, 149, 150, 151, 152, 399])
    whole = read_table(folder, schema=schema).to_arrow()
    taken = [
        opened.taken(NAMES, places)
        for opened in (
            open_large(folder, memory=MEMORY.n_bytes, schema=schema),
            open_cluster(spark, folder, memory=MEMORY.n_bytes, schema=schema),
        )
    ]

    for name in NAMES:
        cells = [column[name].values.take(pyarrow.array(column[name].codes)).to_pylist() for column in taken]
        assert cells[0] == cells[1] == whole.column(name).take(places).to_pylist()


def test_a_frame_without_a_fixed_order_gives_no_sample(spark, stays):
    folder, schema = stays
    frame = spark.read.option("recursiveFileLookup", "true").parquet(f"file://{folder.parent}/whole.parquet")
    rows = open_cluster(spark, frame, memory=MEMORY.n_bytes, schema=schema)

    with pytest.raises(InputError, match=r"rows without a fixed order.*write the frame to Parquet files"):
        propose(rows, build_mechanism("breach-aware", {}), MEMORY)


def party(folder, schema):
    """Give the description that parties share, a party's table, and the releaser of the features agreed on."""
    roles = {"patient_id": Role.IDENTIFIER, "discharge_diagnosis": Role.SENSITIVE}
    plain = read_table(folder, schema=schema)
    shared = SharedSchema.of_table(plain.keep([n for n in NAMES if n not in roles]), {"age": (30.0, 50.0)})
    table = in_shared_roles(plain, shared, roles)
    return shared, table, ProjectionReleaser(shared, ["smoker", "insurance"], 1e-6, RECORD)


def test_a_collaborating_party_counts_and_releases_what_it_does_in_memory(spark, stays, tmp_path):
    """What it gives into the sums, and the release when features and cut points are agreed on."""
    folder, schema = stays
    shared, table, releaser = party(folder, schema)
    expected = publish(make_release(table, releaser), tmp_path / "expected.parquet", original=table)

    opened = open_cluster(spark, folder, memory=MEMORY.n_bytes, schema=table.schema)
    rows = LargeRows.of(opened, shared, MEMORY)
    found = publish(propose_projection(rows, releaser), tmp_path / "found.parquet", memory=MEMORY)

    assert shared.counts(rows.counted).tolist() == shared.counts(table).tolist()
    assert sorted_rows(found.table_path) == sorted_rows(expected.table_path)
    assert stated(found.manifest_path) == stated(expected.manifest_path)
    assert found.audit.levels == expected.audit.levels


def proposed(spark, folder, schema, system):
    """Find out in memory and on the cluster what a system releases."""
    if system == "collaborating party":
        shared, table, releaser = party(folder, schema)
        rows = open_cluster(spark, folder, memory=MEMORY.n_bytes, schema=table.schema)
        return make_release(table, releaser), table, propose_projection(LargeRows.of(rows, shared, MEMORY), releaser)
    name, parameters = SYSTEMS[system]
    table = read_table(folder, schema=schema)
    rows = open_cluster(spark, folder, memory=MEMORY.n_bytes, schema=schema)
    release = make_release(table, build_mechanism(name, parameters))
    return release, table, propose(rows, build_mechanism(name, parameters), MEMORY)


@pytest.mark.soak
@pytest.mark.deadly(1)
@pytest.mark.parametrize("system", EACH)
def test_a_release_is_the_same_though_a_worker_is_killed(spark, cluster, stays, tmp_path, system):
    release, table, proposal = proposed(spark, *stays, system)
    expected = publish(release, tmp_path / "expected.parquet", original=table)
    with slow_writing(10), in_the_middle(spark, cluster.kill_worker) as killed:
        found = publish(proposal, tmp_path / "found.parquet", memory=MEMORY)

    assert killed.is_set()
    assert len(cluster.workers) == 1
    assert sorted_rows(found.table_path) == sorted_rows(expected.table_path)
    assert stated(found.manifest_path) == stated(expected.manifest_path)
    assert found.audit.levels == expected.audit.levels


@pytest.mark.soak
@pytest.mark.deadly(3)
@pytest.mark.parametrize("system", EACH)
def test_a_release_whose_master_is_killed_leaves_nothing(spark, cluster, stays, tmp_path, monkeypatch, system):
    monkeypatch.setattr(spark_errors, "MASTER_SECONDS", 1.0)
    monkeypatch.setattr(spark_errors, "_PAUSE_SECONDS", 0.2)
    proposal, folder = proposed(spark, *stays, system)[2], tmp_path / "releases"
    folder.mkdir()
    with (
        slow_writing(30),
        in_the_middle(spark, cluster.kill_master) as killed,
        pytest.raises(ClusterError, match="the Spark master was lost") as caught,
    ):
        publish(proposal, folder / "found.parquet", memory=MEMORY)

    assert killed.is_set()
    assert caught.value.exit_code == 7
    assert not list(folder.iterdir())


def test_the_risk_profile_of_a_table_on_a_cluster_is_that_in_memory(spark, stays):
    folder, schema = stays
    rows = open_cluster(spark, folder, memory=MEMORY.n_bytes, schema=schema)

    assert profile_rows(rows, MEMORY.n_bytes) == risk_profile(read_table(folder, schema=schema))
