"""People, not rows, on a real cluster: the release is the one made in memory, as a bag of rows."""

import json
from unittest.mock import patch

import pyarrow.parquet
import pytest

from manifest_texts import text_of
from sfumato.engines.blocks.rows import open_large
from sfumato.engines.memory_limit import Memory
from sfumato.engines.persons import identifiers_away, one_row_each, persons_repeat
from sfumato.engines.protocol import TooLargeError
from sfumato.engines.spark.opening import open_cluster
from sfumato.errors import InputError
from sfumato.manifest import manifest_digest
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.propose import make_release, propose
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.schema import Role
from sfumato.table.io.read import ReadOptions, read_table
from sfumato.table.persons import identifiers_of
from spark.test_five_systems import checked, sorted_rows, stated
from test_persons import SCHEMA, visits
from tests.guarantee_names import by_name, name_of
from unit.publishing.proposals.blockwise import made_open

MEMORY = Memory.of("600MB")


@pytest.fixture
def folder(tmp_path):
    """Give a folder of two Parquet files; some rows have no person."""
    cells = visits(n_rows=240, n_persons=90, seed=5).to_arrow()
    persons = cells.column("patient").to_pylist()
    cells = cells.set_column(0, "patient", pyarrow.array([None, None, *persons[2:]], pyarrow.string()))
    path = tmp_path / "visits.parquet"
    path.mkdir()
    pyarrow.parquet.write_table(cells.slice(0, 100), path / "0.parquet", row_group_size=30)
    pyarrow.parquet.write_table(cells.slice(100), path / "1.parquet", row_group_size=30)
    return path


@pytest.mark.parametrize(
    ("name", "parameters", "are_open"),
    [
        ("global-recoding", {"k": 4, "max_suppressed_fraction": 0.2}, True),
        ("gain-recoding", {"k": 3, "l": 2}, False),
        ("local-recoding", {"k": 4}, True),
    ],
)
def test_persons_are_counted_as_in_memory(spark, folder, tmp_path, name, parameters, are_open):
    """The same release; l = 2 by persons, which follows from the other promises, is named in memory only."""
    table = read_table(folder, schema=SCHEMA)
    mechanism = build_mechanism(name, parameters)
    expected = publish(make_release(table, mechanism), tmp_path / "expected.parquet", original=table)

    rows = open_cluster(spark, folder, memory=MEMORY.n_bytes, schema=SCHEMA)
    rows = made_open(rows, "patient") if are_open else rows
    found = publish(propose(rows, mechanism, MEMORY), tmp_path / "found.parquet", memory=MEMORY)

    assert "k-anonymity by persons" in by_name(found.release)
    assert sorted_rows(found.table_path) == sorted_rows(expected.table_path)
    in_memory = stated(expected.manifest_path)
    kept = [name_of(entry) != "l-diversity by persons" for entry in in_memory["guarantees"]]
    in_memory["guarantees"] = [entry for entry, is_kept in zip(in_memory["guarantees"], kept, strict=True) if is_kept]
    assert stated(found.manifest_path) == in_memory
    assert list(found.audit.levels) == [x for x, is_kept in zip(expected.audit.levels, kept, strict=True) if is_kept]
    assert checked(found) == {name for name in checked(expected) if not name.startswith("l-diversity by persons")}
    again = audit_published(found.table_path, found.manifest_path, memory=MEMORY, original=rows, check_roles=True)
    assert again.passed


def test_a_promise_of_rows_is_counted_by_persons_as_in_memory(spark, folder, tmp_path):
    """Whoever declares persons is told of them, whatever the publisher counted."""
    by_rows = read_table(folder, schema=SCHEMA).with_schema({"patient": "identifier"})
    made = publish(
        make_release(by_rows, build_mechanism("mondrian", {"k": 4})), tmp_path / "r.parquet", original=by_rows
    )
    table = read_table(folder, schema=SCHEMA)
    expected = audit_published(made.table_path, made.manifest_path, original=table, check_roles=True)

    rows = open_cluster(spark, folder, memory=MEMORY.n_bytes, schema=SCHEMA)
    found = audit_published(made.table_path, made.manifest_path, memory=MEMORY, original=rows, check_roles=True)

    assert [one.message for one in found.unchecked if one.name == "persons"] == [
        one.message for one in expected.unchecked if one.name == "persons"
    ]
    by_persons = [[one.message for one in r.checks if one.name.endswith("by persons")] for r in (found, expected)]
    assert by_persons[0] == by_persons[1]
    assert by_persons[0] or any(one.name == "persons" for one in found.unchecked)


@pytest.mark.parametrize("rule", ["first", "last", "random"])
def test_one_row_of_each_person_is_the_one_kept_in_memory(spark, folder, tmp_path, rule):
    options = ReadOptions(one_row_per_person=rule)
    table = read_table(folder, schema=SCHEMA, options=options)
    name = "breach-aware" if rule == "random" else "global-recoding"
    expected = publish(make_release(table, build_mechanism(name, {})), tmp_path / "expected.parquet", original=table)

    whole = made_open(open_cluster(spark, folder, memory=MEMORY.n_bytes, schema=SCHEMA), "patient")
    rows = one_row_each(whole, rule, MEMORY.n_bytes)
    found = publish(propose(rows, build_mechanism(name, {}), MEMORY), tmp_path / "found.parquet", memory=MEMORY)

    assert sorted_rows(found.table_path) == sorted_rows(expected.table_path)
    assert stated(found.manifest_path) == stated(expected.manifest_path)
    assert audit_published(found.table_path, found.manifest_path, memory=MEMORY, original=whole).passed
    places = list(range(0, table.n_rows, 7))
    ages = rows.taken(["age"], pyarrow.array(places).to_numpy())["age"]
    assert ages.values.take(pyarrow.array(ages.codes)).to_pylist() == [
        table["age"].values[int(table["age"].codes[place])].as_py() for place in places
    ]
    assert open_cluster(spark, folder, memory=MEMORY.n_bytes, schema=SCHEMA, options=options).n_rows == table.n_rows


def test_what_is_false_of_persons_is_refused_by_a_cluster(spark, folder, tmp_path):
    """Groups of rows that are promised as groups of persons."""
    rows = open_cluster(spark, folder, memory=MEMORY.n_bytes, schema=SCHEMA)
    mechanism = build_mechanism("global-recoding", {"k": 4})
    by_persons = propose(rows, mechanism, MEMORY).release.manifest
    promise = next(entry for entry in by_persons.guarantees if name_of(entry) == "k-anonymity by persons")
    made = publish(
        propose(rows.with_schema({"patient": "identifier"}), mechanism, MEMORY), tmp_path / "a.parquet", memory=MEMORY
    )
    entries = json.loads(made.manifest_path.read_text())
    entries["guarantees"].append(dict(promise))
    entries["digest"] = manifest_digest(entries)
    made.manifest_path.write_text(text_of(entries))

    report = audit_published(made.table_path, made.manifest_path, memory=MEMORY, original=rows, check_roles=True)
    out_of_core = audit_published(
        made.table_path,
        made.manifest_path,
        memory=MEMORY,
        original=open_large(folder, memory=MEMORY.n_bytes, schema=SCHEMA),
        check_roles=True,
    )

    for one in (report, out_of_core):
        assert "k-anonymity by persons: level" in {check.name for check in one.checks if not check.passed}


def test_a_cluster_says_what_it_cannot_do_for_persons(spark, folder):
    rows = open_cluster(spark, folder, memory=MEMORY.n_bytes, schema=SCHEMA)
    assert persons_repeat(rows, MEMORY.n_bytes)
    assert persons_repeat(made_open(rows, "patient"), MEMORY.n_bytes)
    with (
        patch("sfumato.engines.protocol.cells_in_memory", lambda memory: 10),
        pytest.raises(TooLargeError, match="breach-aware, which counts persons by their rows, needs"),
    ):
        propose(rows, build_mechanism("breach-aware", {}), MEMORY)

    named = SCHEMA.with_roles({"patient": Role.IDENTIFIER})
    identifiers = made_open(rows.with_schema(named), "patient")
    assert identifiers_away(identifiers, MEMORY.n_bytes) == identifiers_of(read_table(folder, schema=named))

    frame = open_cluster(spark, spark.read.parquet(str(folder)), memory=MEMORY.n_bytes, schema=SCHEMA)
    with pytest.raises(InputError, match="without a fixed order"):
        one_row_each(frame, "first", MEMORY.n_bytes)
