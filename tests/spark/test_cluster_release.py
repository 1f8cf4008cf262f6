"""Releases that a cluster writes are those made out of core, row for row, and its audit refuses all others."""

import datetime
import decimal
import json
import os
import shutil
import signal
from collections import Counter
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from manifest_texts import text_of
from sfumato.audit.bytes.files import check_file
from sfumato.audit.checks import Check, Unchecked
from sfumato.audit.claims import read_claims
from sfumato.engines.blocks.rows import open_large
from sfumato.engines.memory_limit import Memory
from sfumato.engines.spark.opening import open_cluster
from sfumato.errors import AuditFailedError, InputError, InvalidParameterError, OutputError, SchemaError
from sfumato.manifest import manifest_digest
from sfumato.mechanisms.lattice.gain import GainRecoder
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing import cluster_folder as proposal_module
from sfumato.publishing.large import release_large
from sfumato.publishing.propose import propose
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.schema import Role
from sfumato.table.io.parquet import folder_sha256
from sfumato.table.io.read import ReadOptions
from spark.interference import in_the_middle, slow_writing

MEMORY = Memory(200 * 10**6)
LITTLE = 4000 * 30
ROLES = {
    "id": Role.IDENTIFIER,
    "age": Role.QUASI_IDENTIFIER,
    "town.of birth": Role.QUASI_IDENTIFIER,
    "Town.of birth": Role.OTHER,
    "day": Role.QUASI_IDENTIFIER,
    "illness": Role.SENSITIVE,
    "ill": Role.TARGET,
    "dose": Role.OTHER,
    "seen": Role.OTHER,
    "moment": Role.OTHER,
    "midnight": Role.OTHER,
    "price": Role.OTHER,
    "small": Role.OTHER,
}
N_ROWS = 240


def random_cells(seed, n_rows=N_ROWS):
    random = np.random.default_rng(seed)

    def pick(values, of=None):
        return pa.array([values[i] for i in random.integers(0, len(values), n_rows)], of)

    start = datetime.datetime(2020, 2, 28, 23)
    hours = [None, *(start + datetime.timedelta(hours=i) for i in range(40))]
    return pa.table(
        {
            "id": pa.array([f"p{i}" for i in range(n_rows)]),
            "age": pick([17, 18, 18, 25, 40, 64, None], pa.int16()),
            "town.of birth": pick(["Ulm", " Ulm", "Bonn", "Kiel\u00a0", "?", "a,b", "two\nlines", None]),
            "Town.of birth": pick(["north", "south", ""]),
            "day": pick([None, 0, 31, 400, 401], pa.int32()).cast(pa.date32()),
            "illness": pick(["flu", "cold", "gout", "NA"]),
            "ill": pick([True, False]),
            "dose": pick([*np.round(np.linspace(-4, 4, 60), 3).tolist(), -0.0, 0.0, float("nan"), None]),
            "seen": pick(hours, pa.timestamp("us")),
            "moment": pick(hours, pa.timestamp("us", "UTC")),
            "midnight": pick([start.replace(hour=0, day=day) for day in range(1, 29)], pa.timestamp("us")),
            "price": pick([decimal.Decimal("1.50"), decimal.Decimal("-2.25"), None], pa.decimal128(7, 2)),
            "small": pick([0.1, 0.5, None], pa.float32()),
        }
    )


def write_folder(cells, folder, n_parts=4):
    folder.mkdir()
    length = -(-cells.num_rows // n_parts)
    for i in range(n_parts):
        pyarrow.parquet.write_table(cells.slice(i * length, length), folder / f"{i}.parquet")


def described(table, roles=ROLES):
    return table.with_schema(table.schema.with_roles({n: r for n, r in roles.items() if n in table.schema}))


def sorted_rows(path):
    rows = pyarrow.parquet.read_table(path).to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=repr)


def plain_schema(path):
    return pyarrow.parquet.read_table(path).schema.remove_metadata()


def without_output(manifest_path, *more):
    entries = json.loads(manifest_path.read_text())
    for part, key in (("output", "sha256"), ("output", "name"), *more):
        entries[part].pop(key)
    del entries["digest"]
    entries["versions"].pop("pyarrow", None)  # which writes no part files of a cluster
    return entries


def hierarchy(folder):
    path = folder / "towns.csv"
    path.write_text('Ulm;south;*\nBonn;west;*\nKiel;north;*\na,b;west;*\n"two\nlines";west;*\n', encoding="utf-8")
    return {"town.of birth": str(path)}


FEW = ["id", "age", "town.of birth", "illness", "ill", "dose"]
ORDERS = {
    "regrouped": (list(ROLES), GlobalRecoder, {"k": 3, "max_suppressed_fraction": 0.3}),
    "close": (FEW, GlobalRecoder, {"k": 2, "t": 0.6, "max_suppressed_fraction": 0.5, "loss": "target_information"}),
    "sliced": (FEW, GainRecoder, {"k": 5, "l": 2, "slicing": True, "threshold": 10.0, "max_suppressed_fraction": 0.2}),
}


@pytest.mark.parametrize("order", ORDERS)
def test_the_release_is_the_one_made_out_of_core(spark, tmp_path, monkeypatch, order):
    """The same manifest, types and rows, whatever order the rows come in; long columns and long labels too."""
    names, build, parameters = ORDERS[order]
    if order == "close":
        monkeypatch.setattr(proposal_module, "MOST_BYTES_BESIDE", 0)
    if order == "close":
        parameters = parameters | {"hierarchies": hierarchy(tmp_path)}
    source = tmp_path / "in [1]*.parquet"
    pyarrow.parquet.write_table(random_cells(len(order)).select(names), source, row_group_size=50)
    large = described(open_large(source, memory=MEMORY.n_bytes))
    table = described(open_cluster(spark, source, memory=LITTLE if order == "sliced" else MEMORY.n_bytes))
    assert table.is_open("dose") == (order == "sliced")

    expected = publish(
        propose(large, build_mechanism(build.mechanism_name, parameters), MEMORY),
        tmp_path / "expected.parquet",
        memory=MEMORY,
    )
    proposal = propose(table, build_mechanism(build.mechanism_name, parameters), MEMORY)
    found = publish(proposal, tmp_path / "found.parquet", memory=MEMORY)

    assert without_output(found.manifest_path) == without_output(expected.manifest_path)
    assert plain_schema(found.table_path) == plain_schema(expected.table_path)
    assert sorted_rows(found.table_path) == sorted_rows(expected.table_path)
    assert found.audit.levels == expected.audit.levels
    assert found.release.manifest.suppressed_rows
    assert pyarrow.parquet.read_table(found.table_path).equals(pyarrow.parquet.read_table(expected.table_path))
    assert "row order" in [check.name for check in found.audit.checks]
    assert "row-order" not in [one.name for one in found.audit.unchecked]
    assert found.release.manifest.output["sha256"] == folder_sha256(found.table_path)
    assert all(name.startswith("part-") for name in files_in(found.table_path))
    assert audit_published(found.table_path, found.manifest_path, memory=MEMORY).passed


def files_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_columns_and_counts_are_those_of_the_file(spark, tmp_path):
    """Codes, values, kinds, counts and counts two by two; too many combinations are refused in the same words."""
    cells = random_cells(9)
    pyarrow.parquet.write_table(cells, tmp_path / "a.parquet")
    write_folder(cells, tmp_path / "folder")
    large = described(open_large(tmp_path / "a.parquet", memory=MEMORY.n_bytes))
    table = described(open_cluster(spark, tmp_path / "a.parquet", memory=MEMORY.n_bytes))
    names, beside = ["town.of birth", "age", "dose"], ["ill"]
    expected = large.distinct(names, beside=beside, most_cells=10**6)
    found = table.distinct(names, beside=beside, most_cells=10**6)

    assert table.schema == large.schema
    assert table.source == large.source
    for name in large.schema.names():
        assert table.outline[name].values.equals(large.outline[name].values)
        assert table.outline[name].counts.tolist() == large.outline[name].counts.tolist()
    for name in names:
        assert found[name].codes.tobytes() == expected[name].codes.tobytes()
    assert found.row_counts.tobytes() == expected.row_counts.tobytes()
    assert {key: counts.tolist() for key, counts in found.pairs.items()} == {
        key: counts.tolist() for key, counts in expected.pairs.items()
    }
    messages = []
    for one in (large, table):
        with pytest.raises(InputError) as caught:
            one.distinct(names, most_cells=20)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    little = open_cluster(spark, tmp_path / "folder", memory=LITTLE)
    assert little.is_open("dose")
    assert little.outline["dose"].n_missing == large.outline["dose"].n_missing
    with pytest.raises(SchemaError, match="too many distinct values"):
        little.distinct(["dose"], most_cells=10)


def test_long_columns_are_read_as_listed_ones_are(spark, tmp_path):
    """The same kinds, types, missing values and cells, by Spark's expressions as by Arrow's."""
    day = datetime.datetime(2020, 2, 28)
    cells = pa.table(
        {
            "numbers as text": [" 1.5", "-2", "3e4", "+.5", "NA", None, "7."],
            "codes": ["007", "12", "13", "?", None, "14", "15"],
            "days as text": ["2020-02-29", "2021-01-01T10:00", "", "2021-01-02", None, "2021-01-03", "2021-01-04"],
            "no days": ["2021-02-29", "2021-01-01", "2021-01-05", "2021-01-02", None, "2021-01-03", "2021-01-04"],
            "words": ["a", "\u2003b\t", "c d ", "NA ", None, "?", "e"],
            "whole": pa.array([1, 7, 3, None, 5, 6, 8], pa.int32()),
            "parts": [0.25, -0.0, 7.0, float("nan"), None, float("inf"), 1e300],
            "midnights": [*(day + datetime.timedelta(days=i) for i in range(6)), None],
            "moments": [*(day + datetime.timedelta(hours=i) for i in range(6)), None],
        }
    )
    pyarrow.parquet.write_table(cells, tmp_path / "a.parquet")
    options = ReadOptions(missing=("", "?", "NA", "7", "2021-01-03"))
    listed = open_large(tmp_path / "a.parquet", memory=MEMORY.n_bytes, options=options)
    long = open_cluster(spark, tmp_path / "a.parquet", memory=4000 * 3, options=options)
    names = listed.schema.names()
    found = long.rows([(name, None) for name in names]).toArrow()
    (block,) = listed.blocks(names, as_cells=names)

    assert long.schema == listed.schema
    for i, name in enumerate(names):
        assert long.is_open(name)
        assert long.outline[name].values.type == listed.outline[name].values.type
        assert long.outline[name].n_missing == listed.outline[name].n_missing
        assert found.column(i).to_pylist() == block[name].to_pylist()


@pytest.fixture(scope="module")
def released(shared_session, one_cluster, tmp_path_factory):
    """Names of an original, its release and the manifest, with some rows suppressed."""
    one_cluster.make_whole()
    folder = tmp_path_factory.mktemp("released")
    kept = ["id", "age", "town.of birth", "illness", "dose"]
    pyarrow.parquet.write_table(random_cells(5, 160).select(kept), folder / "in.parquet")
    table = described(open_cluster(shared_session.get(one_cluster.url), folder / "in.parquet", memory=LITTLE))
    recoder = GlobalRecoder(k=4, max_suppressed_fraction=0.3)
    published = publish(propose(table, recoder, MEMORY), folder / "out.parquet", memory=MEMORY)
    assert published.release.manifest.suppressed_rows
    return folder / "in.parquet", published.table_path, published.manifest_path


@pytest.fixture(scope="module")
def original(released, shared_session, one_cluster):
    """Open the original with its roles."""
    return described(open_cluster(shared_session.get(one_cluster.url), released[0], memory=LITTLE))


def copied(released, folder, change):
    """Copy a release with other rows, and a manifest whose hash and number of rows fit."""
    _, table_path, manifest_path = released
    (folder / "out.parquet").mkdir()
    cells = change(pyarrow.parquet.read_table(table_path)).replace_schema_metadata(None)
    pyarrow.parquet.write_table(
        cells, folder / "out.parquet" / "part-00000.parquet", store_schema=False, write_page_checksum=True
    )
    entries = json.loads(manifest_path.read_text())
    entries["output"] |= {"sha256": folder_sha256(folder / "out.parquet"), "rows": cells.num_rows}
    entries["digest"] = manifest_digest(entries)
    (folder / "out.json").write_text(text_of(entries), encoding="utf-8")
    return folder / "out.parquet", folder / "out.json"


def with_metadata(folder):
    first = folder / "part-00000.parquet"
    first.write_bytes(first.read_bytes().replace(b'"metadata":{}', b'"metadata":{"person":7}', 1))


def with_other_entries(folder):
    """Let the part of a dictionary that holds texts hold others, where statistics do not show it."""
    first = folder / "part-00000.parquet"
    cells = pyarrow.parquet.read_table(first).replace_schema_metadata(None)
    pyarrow.parquet.write_table(cells, first, store_schema=False, write_page_checksum=True, sorting_columns=None)
    content = first.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    first.write_bytes(content[: -8 - length] + b"person 7" + content[-8 - length :])


def with_bytes_behind_the_indexes(folder):
    """Hadoop's library writes indexes of pages between the pages and the footer."""
    first = folder / "part-00000.parquet"
    content = first.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    first.write_bytes(content[:footer] + b"person 7" + content[footer:])


def with_a_structure_behind_the_indexes(folder):
    first = folder / "part-00000.parquet"
    content = first.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    first.write_bytes(content[:footer] + b"\x18\x08person 7\0" + content[footer:])


def with_another_name(folder):
    (folder / "part-00000.parquet").rename(folder / "part-00007.parquet")


def with_a_wrong_checksum(folder):
    (folder / ".part-00000.parquet.crc").write_bytes(b"crc\0\0\0\2\0person 7")


def with_one_more_file(folder):
    (folder / "_metadata").write_bytes(b"person 7")


@pytest.mark.parametrize(
    "change",
    [
        with_metadata,
        with_other_entries,
        with_bytes_behind_the_indexes,
        with_a_structure_behind_the_indexes,
        with_another_name,
        with_a_wrong_checksum,
        with_one_more_file,
    ],
    ids=lambda change: change.__name__,
)
def test_every_byte_of_a_released_folder_is_accounted_for(released, tmp_path, change):
    """What Spark wrote is accounted for by its content, its own choices are an exception, and nothing else passes."""
    _, table_path, manifest_path = released
    claims = read_claims(json.loads(manifest_path.read_text()))
    folder = tmp_path / "out.parquet"
    shutil.copytree(table_path, folder)
    honest = list(check_file(folder, claims, None))
    change(folder)
    changed = list(check_file(folder, claims, None))

    assert [one.passed for one in honest if isinstance(one, Check)] == [True]
    assert [one.name for one in honest if isinstance(one, Unchecked)] == ["writer"]
    assert [one.passed for one in changed] == [False]


def with_cell(cells, name, row, value):
    column = cells.column(name).to_pylist()
    column[row] = value
    return cells.set_column(cells.column_names.index(name), name, pa.array(column, cells.schema.field(name).type))


def first_pair(cells, name, *alike):
    """Two rows that differ in a column and agree in others."""
    rows = cells.to_pylist()
    return next(
        (i, j)
        for i, one in enumerate(rows)
        for j, other in enumerate(rows[:i])
        if one[name] != other[name] and all(one[a] == other[a] for a in alike)
    )


def in_another_order(cells):
    return cells.take(list(range(cells.num_rows))[::-1])


def with_other_illness(cells):
    i, j = first_pair(cells, "illness")
    return with_cell(cells, "illness", i, cells.column("illness")[j].as_py())


def with_other_dose(cells):
    return with_cell(cells, "dose", 3, 17.25)


def with_exchanged_doses(cells):
    """Each column still holds what it did, in the same classes: only whole rows tell."""
    every = cells.to_pylist()
    i, j = next(
        (i, j)
        for i, one in enumerate(every)
        for j, other in enumerate(every[:i])
        if all(one[n] == other[n] for n in ("age", "town.of birth"))
        and all(one[n] != other[n] for n in ("dose", "illness"))
    )
    doses = cells.column("dose").to_pylist()
    doses[i], doses[j] = doses[j], doses[i]
    rows = {(one["illness"], one["dose"]) for k, one in enumerate(cells.to_pylist()) if k in (i, j)}
    assert len(rows) == 2
    return cells.set_column(cells.column_names.index("dose"), "dose", pa.array(doses))


def with_a_doubled_row(cells):
    return pa.concat_tables([cells, cells.slice(0, 1)])


def with_a_row_for_another(cells):
    return pa.concat_tables([cells.slice(1), cells.slice(1, 1)])


def without_a_row(cells):
    return cells.slice(1)


def with_other_label(cells):
    i, j = first_pair(cells, "age", "town.of birth")
    return with_cell(cells, "age", i, cells.column("age")[j].as_py())


def with_a_foreign_label(cells):
    return with_cell(cells, "town.of birth", 0, "Rome")


@pytest.mark.parametrize(
    ("change", "by"),
    [
        (in_another_order, "row order"),
        (with_other_illness, "cells"),
        (with_other_dose, "cells"),
        (with_exchanged_doses, "cells"),
        (with_a_doubled_row, "cells"),
        (with_a_row_for_another, "cells"),
        (without_a_row, "cells"),
        (with_other_label, "cells"),
        (with_a_foreign_label, "cells"),
    ],
)
def test_changed_rows_are_refused_beside_the_original(spark, released, original, tmp_path, change, by):
    path, manifest_path = copied(released, tmp_path, change)

    report = audit_published(path, manifest_path, memory=MEMORY, original=original, check_roles=True)

    failed = {check.name for check in report.checks if not check.passed}
    assert by in failed
    assert change is not in_another_order or failed == {"row order"}


@pytest.mark.parametrize("at_once", [1 << 23, 40])
def test_rows_come_to_the_driver_in_parts_equal_ones_together(spark, released, at_once):
    """In parts that fit, and in one, they are the rows that are read in memory."""
    path = released[1]
    names = ["town.of birth", "age"]
    rows = open_cluster(spark, path, memory=LITTLE)
    with patch("sfumato.engines.spark.rows._CELLS_AT_ONCE", at_once):
        blocks = list(rows.blocks(names, as_cells=names))
    found = pa.concat_tables(pa.table(dict(block)) for block in blocks)

    expected = Counter(zip(*(pyarrow.parquet.read_table(path)[name].to_pylist() for name in names), strict=True))
    assert Counter(zip(*(found[name].to_pylist() for name in names), strict=True)) == expected


def test_a_standing_release_is_audited_and_replaced_only_by_force(spark, released, tmp_path):
    """Without force it stays; with force the same rows stand there again, and nothing else is left."""
    source, path, manifest_path = released
    assert audit_published(path, manifest_path, memory=MEMORY).passed
    other = tmp_path / "out.parquet"
    shutil.copytree(path, other)
    shutil.copy(manifest_path, tmp_path / "out.parquet.manifest.json")
    table = described(open_cluster(spark, source, memory=LITTLE))
    proposal = propose(table, GlobalRecoder(k=4, max_suppressed_fraction=0.3), MEMORY)
    with pytest.raises(OutputError, match="exists already"):
        publish(proposal, other, memory=MEMORY)
    found = publish(proposal, other, memory=MEMORY, force=True)

    assert without_output(found.manifest_path) == without_output(manifest_path)
    assert sorted_rows(found.table_path) == sorted_rows(path)
    assert files_in(tmp_path) == ["out.parquet", "out.parquet.manifest.json"]
    (other / ".git").mkdir()
    with pytest.raises(OutputError, match="holds more than Parquet files"):
        publish(proposal, other, memory=MEMORY, force=True)
    (other / ".git").rmdir()
    (other / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="holds more than Parquet files"):
        publish(proposal, other, memory=MEMORY, force=True)
    for name in (source, source / "x.parquet", source.parent):
        if name.suffix == ".parquet":
            with pytest.raises(OutputError):
                publish(proposal, name, memory=MEMORY, force=True)
    with pytest.raises(InvalidParameterError, match=r"ends in \.parquet"):
        publish(proposal, tmp_path / "out.csv", memory=MEMORY)


@pytest.fixture(scope="module")
def small(shared_session, one_cluster):
    """Propose a release of a frame of the user's, whose rows come in many parts; none of the tests changes it."""
    one_cluster.make_whole()
    session = shared_session.get(one_cluster.url)
    cells = random_cells(2, 60).select(["age", "town.of birth", "illness"])
    table = described(open_cluster(session, session.createDataFrame(cells).repartition(8), memory=MEMORY.n_bytes))
    return propose(table, GlobalRecoder(k=2, max_suppressed_fraction=0.5), MEMORY)


def test_a_frame_of_the_user_is_released_without_a_hash(small, tmp_path):
    """Everything else is as for a file."""
    cells = random_cells(2, 60).select(["age", "town.of birth", "illness"])
    pyarrow.parquet.write_table(cells, tmp_path / "in.parquet")
    large = described(open_large(tmp_path / "in.parquet", memory=MEMORY.n_bytes))
    recoder = GlobalRecoder(k=2, max_suppressed_fraction=0.5)
    expected = publish(propose(large, recoder, MEMORY), tmp_path / "expected.parquet", memory=MEMORY)
    found = publish(small, tmp_path / "found.parquet", memory=MEMORY)

    assert found.release.manifest.input["commitment"] is None
    own = [("input", key) for key in ("name", "format")]
    assert without_output(found.manifest_path, *own) == without_output(expected.manifest_path, *own)
    assert sorted_rows(found.table_path) == sorted_rows(expected.table_path)


@pytest.mark.parametrize("is_cached", [False, True])
def test_force_does_not_replace_the_files_of_a_frame(spark, tmp_path, is_cached):
    """Neither its folder, nor one around it, also if its rows are in the memory of the cluster."""
    source = tmp_path / "all.parquet" / "ä %20 in.parquet"
    source.parent.mkdir()
    write_folder(random_cells(2, 60).select(["age", "illness"]), source, n_parts=2)
    before = sorted_rows(source)
    frame = spark.read.parquet(str(source)).where("age > 0")
    if is_cached:
        frame = frame.cache()
        assert frame.count()
    table = described(open_cluster(spark, frame, memory=MEMORY.n_bytes))
    recoder = GlobalRecoder(k=2, max_suppressed_fraction=0.5)
    proposal = propose(table, recoder, MEMORY)
    for target in (source, source.parent, source / "0.parquet"):
        with pytest.raises(OutputError, match="is the input, inside it, or contains it"):
            publish(proposal, target, memory=MEMORY, force=True)
        with pytest.raises(OutputError, match="is the input, inside it, or contains it"):
            release_large(frame, recoder, target, force=True)
    frame.unpersist()

    assert sorted_rows(source) == before
    assert files_in(tmp_path) == ["all.parquet"]


def test_other_rows_than_proposed_are_refused_and_leave_nothing(small, tmp_path):
    """What is audited is what was written."""
    rows = proposal_module.frame_of

    def fewer(proposal):
        return rows(proposal).limit(20)

    with patch.object(proposal_module, "frame_of", fewer), pytest.raises(AuditFailedError):
        publish(small, tmp_path / "out.parquet", memory=MEMORY)

    assert files_in(tmp_path) == []


@pytest.mark.parametrize("stage", ["written", "audited"])
def test_an_interruption_leaves_nothing(small, tmp_path, stage):
    def interrupt(done, total, what):
        if f" {stage}" in what:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish(small, tmp_path / "out.parquet", memory=MEMORY, progress=interrupt)

    assert files_in(tmp_path) == []


def test_a_file_that_changes_is_refused(spark, tmp_path):
    cells = random_cells(2, 60).select(["age", "illness"])
    pyarrow.parquet.write_table(cells, tmp_path / "in.parquet")
    table = described(open_cluster(spark, tmp_path / "in.parquet", memory=MEMORY.n_bytes))
    proposal = propose(table, GlobalRecoder(k=2, max_suppressed_fraction=0.5), MEMORY)
    pyarrow.parquet.write_table(cells.take(list(range(59, -1, -1))), tmp_path / "in.parquet")
    with pytest.raises(InputError, match="changed while it was being read"):
        publish(proposal, tmp_path / "out.parquet", memory=MEMORY)

    assert files_in(tmp_path) == ["in.parquet"]


def test_what_a_cluster_cannot_do_is_refused_in_words(small):
    with pytest.raises(InvalidParameterError, match="got laplace-dp"):
        propose(small.original, build_mechanism("laplace-dp", {}), MEMORY)
    plain = small.original.with_schema(
        small.original.schema.with_roles(dict.fromkeys(small.original.schema.names(), Role.OTHER))
    )
    with pytest.raises(SchemaError, match="no quasi-identifier"):
        propose(plain, GlobalRecoder(k=2), MEMORY)


def test_ctrl_c_in_the_middle_leaves_nothing(small, spark, tmp_path):
    with (
        slow_writing(),
        in_the_middle(spark, lambda: os.kill(os.getpid(), signal.SIGINT)) as done,
        pytest.raises(KeyboardInterrupt),
    ):
        publish(small, tmp_path / "out.parquet", memory=MEMORY)

    assert done.is_set()
    assert files_in(tmp_path) == []


@pytest.mark.deadly(1)
def test_a_killed_worker_changes_nothing(small, spark, cluster, tmp_path):
    """Spark writes the lost parts again: the same rows as without the loss."""
    expected = publish(small, tmp_path / "expected.parquet", memory=MEMORY)
    with slow_writing(), in_the_middle(spark, cluster.kill_worker) as done:
        found = publish(small, tmp_path / "found.parquet", memory=MEMORY)

    assert done.is_set()
    assert sorted_rows(found.table_path) == sorted_rows(expected.table_path)


def test_rows_that_are_unique_on_all_columns_are_counted_by_the_cluster(spark, tmp_path):
    from sfumato import Mondrian, release
    from sfumato.counting.unique_rows import n_unique_rows
    from sfumato.datasets.admissions import admissions
    from sfumato.publishing.publish import publish

    table = admissions(n_rows=300).keep(["age", "sex", "insurance", "discharge_diagnosis", "readmitted"])
    made = release(table, Mondrian(k=5))
    publish(made, tmp_path / "r.parquet", original=table)
    report = audit_published(tmp_path / "r.parquet", tmp_path / "r.parquet.manifest.json", memory=MEMORY)
    (found,) = [check for check in report.checks if check.name == "risk: unique row fraction"]
    assert found.passed
    assert found.found == n_unique_rows(made.table) / 300
