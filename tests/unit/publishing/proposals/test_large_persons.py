"""People, not rows, where the table is larger than memory: the same bytes and the same manifest as in memory."""

import json
from collections import defaultdict
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from manifest_texts import text_of
from sfumato.cli.main import run
from sfumato.engines.blocks.rows import open_large
from sfumato.engines.memory_limit import Memory
from sfumato.engines.persons import identifiers_away, one_row_each, persons_repeat
from sfumato.engines.protocol import TooLargeError
from sfumato.errors import InputError, InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.manifest import manifest_digest
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.propose import make_release, propose
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.schema import Role
from sfumato.table.io.read import ReadOptions, read_table
from sfumato.table.persons import identifiers_of
from sizes import examples
from test_persons import SCHEMA, visits
from tests.guarantee_names import by_name, name_of
from unit.publishing.proposals.blockwise import made_open, outcome, small_blocks, write_file
from unit.publishing.proposals.test_from_base import holding

MEMORY = Memory(200 * 10**6)
SYSTEMS = {
    "global": ("global-recoding", {"k": 4, "max_suppressed_fraction": 0.1}),
    "global, no row left out": ("global-recoding", {"k": 3, "max_suppressed_fraction": 0.0}),
    "global, two values": ("global-recoding", {"k": 3, "l": 2, "loss": "target_information"}),
    "gain": ("gain-recoding", {"k": 4, "max_suppressed_fraction": 0.3}),
    "local": ("local-recoding", {"k": 4}),
    "local, by the target": ("local-recoding", {"k": 3, "loss": "target_information"}),
}


def large_of(path, *, are_open=False, schema=SCHEMA):
    """Open a file; the persons are listed or not."""
    large = open_large(path, memory=MEMORY.n_bytes, schema=schema)
    return made_open(large, "patient") if are_open else large


def blocks_of(suffix):
    return small_blocks() if suffix == ".csv" else nullcontext()


def stated(path):
    """Read what a manifest says, without the name of the file."""
    entries = json.loads(path.read_text())
    entries["output"].pop("name")
    entries.pop("digest")
    return entries


def assert_the_same(found, expected):
    """Compare everything; l = 2 by persons, which follows from the other promises, is named in memory only."""
    assert found.table_path.read_bytes() == expected.table_path.read_bytes()
    in_memory = stated(expected.manifest_path)
    kept = [name_of(entry) != "l-diversity by persons" for entry in in_memory["guarantees"]]
    in_memory["guarantees"] = [entry for entry, is_kept in zip(in_memory["guarantees"], kept, strict=True) if is_kept]
    levels = [level for level, is_kept in zip(expected.audit.levels, kept, strict=True) if is_kept]

    assert stated(found.manifest_path) == in_memory
    assert list(found.audit.levels) == levels
    names = {check.name for check in expected.audit.checks if not check.name.startswith("l-diversity by persons")}
    assert {check.name for check in found.audit.checks} == names


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("are_open", [False, True])
def test_the_release_is_the_one_made_in_memory(system, suffix, are_open, tmp_path):
    name, parameters = SYSTEMS[system]
    path = tmp_path / f"visits{suffix}"
    write_file(visits(seed=1).to_arrow(), path)
    table = read_table(path, schema=SCHEMA)
    expected = publish(make_release(table, build_mechanism(name, parameters)), tmp_path / f"a{suffix}", original=table)
    with blocks_of(suffix):
        large = large_of(path, are_open=are_open)
        found = publish(
            propose(large, build_mechanism(name, parameters), MEMORY), tmp_path / f"b{suffix}", memory=MEMORY
        )

        assert_the_same(found, expected)
        assert "k-anonymity by persons" in by_name(found.release)
        again = audit_published(found.table_path, found.manifest_path, memory=MEMORY, original=large, check_roles=True)
        assert again.passed
        assert again.levels == found.audit.levels
    assert audit_published(found.table_path, found.manifest_path, original=table).passed


@st.composite
def rows_of_persons(draw):
    rows = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", None]),
                st.integers(20, 29),
                st.sampled_from(["Ulm", "Bonn"]),
            ),
            min_size=6,
            max_size=50,
        )
    )
    cells = {name: [row[i] for row in rows] for i, name in enumerate(("patient", "age", "town"))}
    return pa.table(
        cells | {"illness": ["flu"] * len(rows), "better": ["no", "yes"] * (len(rows) // 2) + ["no"] * (len(rows) % 2)}
    )


@pytest.mark.slow
@given(rows_of_persons(), st.sampled_from(["global-recoding", "local-recoding"]), st.integers(2, 3))
@examples(40)
def test_random_tables_are_released_as_in_memory(cells, name, k):
    """Or refused for the same reason; missing persons are one."""
    with TemporaryDirectory() as folder, small_blocks():
        path = Path(folder) / "visits.parquet"
        write_file(cells, path)
        table = read_table(path, schema=SCHEMA)

        def in_memory():
            return publish(make_release(table, build_mechanism(name, {"k": k})), Path(folder) / "a.csv", original=table)

        def away():
            large = open_large(path, memory=MEMORY.n_bytes, schema=SCHEMA)
            return publish(
                propose(large, build_mechanism(name, {"k": k}), MEMORY), Path(folder) / "b.csv", memory=MEMORY
            )

        expected, found = outcome(in_memory), outcome(away)
        if isinstance(expected, str) or isinstance(found, str):
            assert found == expected
        else:
            assert_the_same(found, expected)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("most", [3, 10, 25, 60])
@pytest.mark.parametrize("system", ["global", "gain", "local"])
def test_persons_are_counted_at_coarser_levels_where_pairs_do_not_fit(system, most, tmp_path):
    """Brute force: every released group has k persons at least, as many as are stated."""
    name, parameters = SYSTEMS[system]
    table = visits(n_rows=600, n_persons=250, seed=3)
    write_file(table.to_arrow(), tmp_path / "visits.csv")
    with holding(most), small_blocks():
        large = large_of(tmp_path / "visits.csv", are_open=True)
        proposal = propose(large, build_mechanism(name, parameters), MEMORY).with_order_kept()
        found = publish(proposal, tmp_path / "a.csv", memory=MEMORY)

    entries = json.loads(found.manifest_path.read_text())
    assert "only levels from these on were searched" in entries["evidence"]["search"]["method"]
    promised = next(entry for entry in entries["guarantees"] if name_of(entry) == "k-anonymity by persons")
    if not entries["suppressed_rows"]:
        groups = defaultdict(set)
        released = read_table(found.table_path).to_arrow().select(["age", "town"]).to_pylist()
        for person, row in zip(table.to_arrow().column("patient").to_pylist(), released, strict=True):
            groups[tuple(row.values())].add(person)
        assert promised["audited"] == min(map(len, groups.values()))
    assert promised["audited"] >= 4


@pytest.mark.slow
def test_where_each_person_has_one_row_nothing_changes(tmp_path):
    """Byte for byte; the column is withheld as an identifier is."""
    cells = visits().to_arrow()
    cells = cells.set_column(0, "patient", pa.array([f"p{i}" for i in range(cells.num_rows)]))
    write_file(cells, tmp_path / "visits.csv")
    made = []
    for role in (Role.PERSON, Role.IDENTIFIER):
        for are_open in (False, True):
            schema = SCHEMA.with_roles({"patient": role})
            large = large_of(tmp_path / "visits.csv", are_open=are_open, schema=schema)
            assert not persons_repeat(large, MEMORY.n_bytes)
            path = tmp_path / f"{role}{are_open}.csv"
            made.append(
                publish(propose(large, build_mechanism("global-recoding", {"k": 4}), MEMORY), path, memory=MEMORY)
            )

    assert len({one.table_path.read_bytes() for one in made}) == 1
    assert stated(made[0].manifest_path)["guarantees"] == stated(made[2].manifest_path)["guarantees"]


# One row of each person.


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("rule", ["first", "last", "random"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("are_open", [False, True])
@pytest.mark.parametrize("system", ["global-recoding", "breach-aware"])
def test_one_row_of_each_person_is_the_one_kept_in_memory(rule, suffix, are_open, system, tmp_path):
    path = tmp_path / f"visits{suffix}"
    write_file(visits(seed=2).to_arrow(), path)
    options = ReadOptions(one_row_per_person=rule)
    table = read_table(path, schema=SCHEMA, options=options)
    expected = publish(make_release(table, build_mechanism(system, {})), tmp_path / f"a{suffix}", original=table)
    with blocks_of(suffix):
        whole = large_of(path, are_open=are_open)
        kept = one_row_each(whole, rule, MEMORY.n_bytes)
        assert kept.n_rows == table.n_rows
        assert kept.outline.person_rows == table.person_rows
        for name in ("age", "town", "illness", "better"):
            assert kept.outline[name].values.equals(table[name].values)
            assert kept.outline[name].counts.tolist() == table[name].counts.tolist()
        found = publish(propose(kept, build_mechanism(system, {}), MEMORY), tmp_path / f"b{suffix}", memory=MEMORY)
        assert_the_same(found, expected)

        again = audit_published(found.table_path, found.manifest_path, memory=MEMORY, original=whole, check_roles=True)
        assert again.passed, [check for check in again.checks if not check.passed]


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"rule": "first"}, {"n_dropped": 3}, {"column": "town"}, {"column": "nobody"}])
def test_another_row_of_each_person_than_stated_is_refused(change, tmp_path):
    write_file(visits(seed=2).to_arrow(), tmp_path / "visits.csv")
    whole = large_of(tmp_path / "visits.csv", are_open=False)
    kept = one_row_each(whole, "last", MEMORY.n_bytes)
    found = publish(propose(kept, build_mechanism("global-recoding", {}), MEMORY), tmp_path / "a.csv", memory=MEMORY)
    entries = json.loads(found.manifest_path.read_text())
    entries["input"]["one_row_per_person"].update(change)
    entries["digest"] = manifest_digest(entries)
    found.manifest_path.write_text(text_of(entries))

    report = audit_published(found.table_path, found.manifest_path, memory=MEMORY, original=whole, check_roles=True)

    assert {"row balance", "cells"} & {check.name for check in report.checks if not check.passed}


def test_an_order_that_does_not_fit_is_refused_in_one_line(tmp_path):
    write_file(visits().to_arrow(), tmp_path / "visits.csv")
    large = large_of(tmp_path / "visits.csv", are_open=False)

    with pytest.raises(InputError, match="does not fit"):
        one_row_each(large, "random", 1000)
    with pytest.raises(SchemaError, match="no column has the role person"):
        one_row_each(large.with_schema({"patient": "identifier"}), "first", MEMORY.n_bytes)


@pytest.mark.slow
def test_a_frame_is_released_with_one_row_of_each_person(tmp_path):
    options = ReadOptions(one_row_per_person="first")
    mechanism = sfumato.GlobalRecoder(k=3)
    roles = {"patient": "person", "illness": "sensitive", "better": "target"}
    done = sfumato.release_large(visits().to_arrow(), mechanism, tmp_path / "a.csv", roles=roles, options=options)

    assert done.release.manifest.input["one_row_per_person"]["rule"] == "first"
    assert done.audit.passed


# What the audit refuses.


@pytest.mark.slow
def test_groups_of_rows_that_are_promised_as_groups_of_persons_are_refused(tmp_path):
    """A release by rows with the manifest of one by persons."""
    write_file(visits(seed=4).to_arrow(), tmp_path / "visits.csv")
    large = large_of(tmp_path / "visits.csv", are_open=True)
    by_rows = propose(large.with_schema({"patient": "identifier"}), build_mechanism("local-recoding", {"k": 4}), MEMORY)
    by_persons = propose(large, build_mechanism("local-recoding", {"k": 4}), MEMORY)
    promise = by_name(by_persons.release)["k-anonymity by persons"]
    made = publish(by_rows, tmp_path / "a.csv", memory=MEMORY)
    entries = json.loads(made.manifest_path.read_text())
    entries["guarantees"].append(promise)
    entries["digest"] = manifest_digest(entries)
    made.manifest_path.write_text(text_of(entries))

    report = audit_published(made.table_path, made.manifest_path, memory=MEMORY, original=large, check_roles=True)

    assert "k-anonymity by persons: level" in {check.name for check in report.checks if not check.passed}


# What is refused before anything is counted, and bad input.


@pytest.mark.parametrize(
    ("mechanism", "parameters", "said"),
    [
        ("breach-aware", {}, "breach-aware, which counts persons by their rows"),
        ("error-risk-tree", {"k": 3, "generalization": "uniform"}, "error-risk-tree, which counts persons"),
        ("mondrian", {"k": 3}, "mondrian, which counts persons"),
        ("global-recoding", {"l": 3}, "l of global-recoding"),
        ("global-recoding", {"t": 0.5}, "t of global-recoding"),
        ("global-recoding", {"alpha": 0.5}, "alpha of global-recoding"),
        ("global-recoding", {"guide": "score", "loss": "target_information"}, "guide of global-recoding"),
    ],
)
def test_what_is_not_counted_by_persons_takes_the_rows_into_memory(mechanism, parameters, said, tmp_path):
    """With the outcome of a table in memory; rows that do not fit are refused with what needs them."""
    write_file(visits().to_arrow(), tmp_path / "visits.csv")
    large = large_of(tmp_path / "visits.csv", are_open=False)
    here = read_table(tmp_path / "visits.csv", schema=large.schema)
    made = build_mechanism(mechanism, parameters)

    expected = outcome(lambda: publish(make_release(here, made), tmp_path / "here.csv", original=here))
    found = outcome(lambda: publish(propose(large, made, MEMORY), tmp_path / "there.csv", memory=MEMORY))
    if isinstance(expected, str):
        assert found == expected
    else:
        assert found.table_path.read_bytes() == expected.table_path.read_bytes()
        assert stated(found.manifest_path) == stated(expected.manifest_path)
    with (
        patch("sfumato.engines.protocol.cells_in_memory", lambda memory: 10),
        pytest.raises(TooLargeError, match=f"{said}.* needs? the whole table in memory"),
    ):
        propose(large, made, MEMORY)


def test_slicing_where_persons_repeat_is_refused_as_in_memory(tmp_path):
    write_file(visits().to_arrow(), tmp_path / "visits.csv")
    large, made = large_of(tmp_path / "visits.csv"), build_mechanism("gain-recoding", {"slicing": True})

    with pytest.raises(InvalidParameterError, match="slicing must be false"):
        propose(large, made, MEMORY)


@pytest.mark.slow
@pytest.mark.parametrize("n_missing", [1, 150, 300])
def test_all_rows_without_a_person_are_those_of_one(n_missing, tmp_path):
    """One, half of the rows, and all of them."""
    cells = visits().to_arrow()
    persons = cells.column("patient").to_pylist()
    cells = cells.set_column(0, "patient", pa.array([None] * n_missing + persons[n_missing:], pa.string()))
    pyarrow.parquet.write_table(cells, tmp_path / "visits.parquet")
    table = read_table(tmp_path / "visits.parquet", schema=SCHEMA)
    large = open_large(tmp_path / "visits.parquet", memory=MEMORY.n_bytes, schema=SCHEMA)
    mechanism = build_mechanism("local-recoding", {"k": 4})
    if n_missing == 300:
        for make in (lambda: make_release(table, mechanism), lambda: propose(large, mechanism, MEMORY)):
            with pytest.raises(PrivacyNotAchievableError, match="4 persons in every class"):
                make()
        return
    expected = publish(make_release(table, mechanism), tmp_path / "a.csv", original=table)
    assert_the_same(publish(propose(large, mechanism, MEMORY), tmp_path / "b.csv", memory=MEMORY), expected)


# The commands.


@pytest.fixture
def ran(tmp_path, monkeypatch, capsys):
    """Run commands in a folder with a file of visits."""
    monkeypatch.chdir(tmp_path)
    write_file(visits().to_arrow(), Path("visits.csv"))

    def ran(*arguments):
        code = run(list(arguments))
        return code, capsys.readouterr().err

    return ran


FLAGS = ["--quasi-identifiers", "age,town", "--target", "better", "--sensitive", "illness", "-m", "global-recoding"]


@pytest.mark.slow
def test_commands_count_persons_out_of_core(ran):
    code, said = ran("release", "visits.csv", "--person", "patient", *FLAGS, "--memory", "600MB", "-o", "a.csv")
    assert code == 0, said
    assert "persons" in said
    flags = ["--manifest", "a.csv.manifest.json", "--original", "visits.csv", "--person", "patient"]
    code, said = ran("audit", "a.csv", *flags, "--memory", "600MB", "--accept", "roles,figures")
    assert code == 0, said
    code, said = ran(
        "audit", "visits.csv", "--person", "patient", "--quasi-identifiers", "age,town", "--memory", "600MB"
    )
    assert "this profile is about rows, not about people" in said


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["first", "last", "random"])
def test_commands_keep_one_row_of_each_person_out_of_core(ran, rule):
    flags = ["--person", "patient", *FLAGS, "--one-row-per-person", rule]
    for name, more in (("memory.csv", []), ("away.csv", ["--memory", "600MB"])):
        code, said = ran("release", "visits.csv", *flags, *more, "-o", name)
        assert code == 0, said
        assert f"kept the {rule} row of each of" in said
    assert Path("memory.csv").read_bytes() == Path("away.csv").read_bytes()


@pytest.mark.slow
def test_identifiers_that_repeat_are_said_out_of_core_as_in_memory(ran):
    said = []
    for more in ([], ["--memory", "600MB"]):
        flags = ["--identifiers", "patient", *FLAGS, *more]
        code, words = ran("release", "visits.csv", *flags, "-o", f"{len(said)}.csv")
        assert code == 0, words
        said.append([line for line in words.splitlines() if "repeats" in line])
    assert said[0] == said[1]
    assert len(said[0]) == 1
    code, words = ran(
        "audit",
        "0.csv",
        "--manifest",
        "0.csv.manifest.json",
        "--original",
        "visits.csv",
        "--identifiers",
        "patient",
        "--memory",
        "600MB",
    )
    assert said[0][0] in words


@pytest.mark.parametrize("are_open", [False, True])
def test_identifiers_are_counted_as_in_memory(are_open, tmp_path):
    cells = visits().to_arrow()
    persons = cells.column("patient").to_pylist()
    cells = cells.set_column(0, "patient", pa.array([None, None, *persons[2:]], pa.string()))
    pyarrow.parquet.write_table(cells, tmp_path / "visits.parquet")
    schema = SCHEMA.with_roles({"patient": Role.IDENTIFIER})
    table = read_table(tmp_path / "visits.parquet", schema=schema)
    large = large_of(tmp_path / "visits.parquet", are_open=are_open, schema=schema)

    assert large.is_open("patient") == are_open
    assert identifiers_away(large, MEMORY.n_bytes) == identifiers_of(table)


def test_a_person_column_that_is_not_in_the_file_is_refused_in_one_line(ran):
    code, said = ran("release", "visits.csv", "--person", "nobody", *FLAGS, "--memory", "600MB", "-o", "a.csv")

    assert code == 3, said
    assert "nobody" in said
    assert "Traceback" not in said
