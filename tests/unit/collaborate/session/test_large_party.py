"""A party whose file is read in blocks: the same counts, gains and bytes as with the file in memory."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from manifest_texts import text_of
from sfumato.cli.making.collaborate import described
from sfumato.collaborate.config import load_party_config
from sfumato.collaborate.plan import Plan
from sfumato.collaborate.session.joining import in_shared_roles
from sfumato.collaborate.session.party import (
    LargeRows,
    ProjectionProposal,
    ProjectionReleaser,
    SessionRecord,
    propose_projection,
    take_part,
)
from sfumato.collaborate.shared_schema import SharedSchema, read_shared_schema, write_shared_schema
from sfumato.engines.blocks import rows as distinct
from sfumato.engines.blocks.rows import open_large
from sfumato.engines.memory_limit import Memory
from sfumato.errors import (
    AuditFailedError,
    CollaborationError,
    InputError,
    InvalidParameterError,
    PrivacyNotAchievableError,
    SchemaError,
)
from sfumato.manifest import in_three_digits, manifest_digest
from sfumato.publishing.propose import make_release
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.schema import Role
from sfumato.table.io import csv as delimited_blocks
from sfumato.table.io import parquet
from sizes import examples
from unit.collaborate.groups import NAMES, Group, Nursery, small_table

MEMORY = Memory(200 * 10**6)
THETA = 0.1
CUTS = {"age": [30.0, 50.0]}
RECORD = SessionRecord("s-1/0", "totals by seeds", dict.fromkeys(NAMES, "00" * 32))


@pytest.fixture(autouse=True)
def small_blocks():
    with ExitStack() as stack:
        for module, name, value in (
            (delimited_blocks, "BLOCK_BYTES", 300),
            (parquet, "BLOCK_ROWS", 7),
            (distinct, "_FEWEST_PENDING", 3),
        ):
            stack.enter_context(patch.object(module, name, value))
        yield


def mixed_table(n_rows=90, seed=4):
    """Table with a number that is cut, missing values, an identifier and a column that is published unchanged."""
    random = np.random.default_rng(seed)
    plain = small_table(n_rows, seed).to_arrow()
    ages = random.integers(18, 80, n_rows)
    more = {
        "age": pa.array([None if i % 11 == 0 else int(age) for i, age in enumerate(ages)]),
        "id": pa.array([f"p{i}" for i in range(n_rows)]),
        "note": pa.array([("x", "y z", "a,b")[i] for i in random.integers(0, 3, n_rows)]),
    }
    table = sfumato.read_table(pa.table({name: plain.column(name) for name in plain.column_names} | more))
    roles = {"ill": Role.TARGET, "id": Role.IDENTIFIER, "note": Role.OTHER}
    return table.with_schema(table.schema.with_roles(roles))


BEYOND = {"id": Role.IDENTIFIER, "note": Role.OTHER}


class MixedGroup(Group):
    """Parties that have more than the features."""

    def __init__(self, folder):
        super().__init__(folder, table=mixed_table())
        self.schema = SharedSchema.of_table(self.table, CUTS)
        self.schema_path.unlink()
        write_shared_schema(self.schema, self.schema_path)


@pytest.fixture(scope="module")
def keyed_group(tmp_path_factory):
    return MixedGroup(tmp_path_factory.mktemp("group"))


@pytest.fixture
def group(keyed_group):
    for path in [*keyed_group.folder.glob("*-release*"), *keyed_group.folder.glob("*.jsonl")]:
        path.unlink()
    return keyed_group


def in_memory(group, name):
    return in_shared_roles(sfumato.read_table(group.data(name)), group.schema, BEYOND)


def in_blocks(path, schema, roles=BEYOND, memory=MEMORY.n_bytes):
    large = open_large(path, memory=memory)
    return large.with_schema(in_shared_roles(large.outline, schema, roles).schema)


def together(group, plan, large=(), **options):
    """Run all parties in threads, some of them with their file in blocks."""

    def one(name):
        is_large = name in large
        rows = in_blocks(group.data(name), group.schema) if is_large else in_memory(group, name)
        try:
            return take_part(
                load_party_config(group.config(name)),
                rows,
                group.schema,
                plan,
                memory=MEMORY if is_large else None,
                output=group.output(name),
                **options,
            )
        except Exception as exc:
            return exc

    with ThreadPoolExecutor(len(group.names)) as threads:
        return dict(zip(group.names, threads.map(one, group.names), strict=True))


def comparable(manifest):
    """Leave out what is drawn anew in every session."""
    data = json.loads(manifest.read_text())
    del data["digest"], data["mechanism"]["parameters"]["session"]["id"]
    return data


@pytest.mark.slow
@pytest.mark.parametrize(
    "plan",
    [Plan(THETA), Plan(THETA, privacy="average"), Plan(THETA, mode="selection-only", max_rows=90)],
    ids=["totals", "average", "selection-only"],
)
def test_a_session_with_a_large_party_ends_as_one_without(group, plan):
    expected = together(group, plan)
    assert not [found for found in expected.values() if isinstance(found, Exception)], expected
    bytes_expected = {name: group.output(name).read_bytes() for name in NAMES}
    manifests_expected = {name: comparable(expected[name].published.manifest_path) for name in NAMES}

    found = together(group, plan, large=("bob",), force=True)

    for name in NAMES:
        assert found[name].selection == expected[name].selection
        assert group.output(name).read_bytes() == bytes_expected[name]
        assert comparable(found[name].published.manifest_path) == manifests_expected[name]
        assert found[name].to_dict()["audited_gain"] == expected[name].to_dict()["audited_gain"]
    manifest = found["bob"].published.manifest_path
    original = in_memory(group, "bob")
    assert audit_published(group.output("bob"), manifest, original=original, check_roles=True).passed
    large = in_blocks(group.data("bob"), group.schema)
    assert audit_published(group.output("bob"), manifest, memory=MEMORY, original=large, check_roles=True).passed


@pytest.mark.slow
def test_a_large_dry_run_writes_nothing_but_measures_the_gain(group):
    found = together(group, Plan(THETA, dry_run=True), large=("ann",))

    assert group.releases() == set()
    assert found["ann"].published is None
    assert found["ann"].to_dict()["audited_gain"] == in_three_digits(found["ann"].selection.own_gains[-1])
    assert found["ann"].to_dict()["audited_gain"] >= THETA


@pytest.mark.slow
def test_nobody_publishes_when_the_audit_of_a_large_release_fails(group):
    def wrong_rows(self, progress=None):
        for block in self.original.blocks(self.schema.names(), progress=progress):
            yield {name: np.zeros_like(np.asarray(cells)) for name, cells in block.items()}

    with patch.object(ProjectionProposal, "blocks", wrong_rows):
        found = together(group, Plan(THETA), large=("cid",))

    assert isinstance(found["cid"], AuditFailedError)
    assert isinstance(found["ann"], CollaborationError)
    assert isinstance(found["bob"], CollaborationError)
    assert group.releases() == set()


def test_a_file_that_changes_meanwhile_is_refused(group):
    large = in_blocks(group.data("ann"), group.schema)
    rows = LargeRows.of(large, group.schema, MEMORY)
    before = group.data("ann").read_bytes()
    try:
        group.data("ann").write_bytes(before.replace(b"yes", b"no", 1))
        proposal = propose_projection(rows, ProjectionReleaser(group.schema, ["coin", "site"], 0.01, RECORD))
        with pytest.raises(InputError, match="changed while it was being read"):
            publish(proposal, group.output("ann"), memory=MEMORY)
    finally:
        group.data("ann").write_bytes(before)
    assert group.releases() == set()


@pytest.mark.slow
@examples(12)
@given(
    st.integers(12, 70),
    st.integers(0, 2**32),
    st.permutations(["rare", "coin", "close", "site", "grade", "few", "age"]),
    st.integers(1, 6),
    st.sampled_from(["out.csv", "out.parquet"]),
)
def test_counts_gain_and_bytes_are_those_in_memory(n_rows, seed, order, n_removed, output_name):
    """For any features that go; the counts and the smallest class by brute force too."""
    table = mixed_table(n_rows, seed)
    schema = SharedSchema.of_table(table, CUTS)
    with TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "in.parquet"
        pyarrow.parquet.write_table(table.to_arrow(), source, row_group_size=11)
        own = in_shared_roles(sfumato.read_table(source), schema, BEYOND)
        rows = LargeRows.of(in_blocks(source, schema), schema, MEMORY)
        assert schema.counts(rows.counted).tolist() == naive_counts(table, schema)
        releaser = ProjectionReleaser(schema, order[:n_removed], 1e-6, RECORD)
        (folder / "large").mkdir()
        expected = outcome(lambda: publish(make_release(own, releaser), folder / output_name, original=own))
        found = outcome(
            lambda: publish(propose_projection(rows, releaser), folder / "large" / output_name, memory=MEMORY)
        )
        if isinstance(expected, str):
            assert found == expected
            return
        assert found.table_path.read_bytes() == expected.table_path.read_bytes()
        assert json.loads(found.manifest_path.read_text()) == json.loads(expected.manifest_path.read_text())
        assert found.audit.levels == expected.audit.levels
        released = sfumato.read_table(found.table_path).to_arrow()
        classes = Counter(zip(*(released.column(n).to_pylist() for n in order[n_removed:]), strict=True))
        assert found.release.manifest.evidence["risk"]["anonymity_level"] == min(classes.values())


def outcome(make):
    """Give the release, or why there is none."""
    try:
        return make()
    except PrivacyNotAchievableError as error:
        return str(error)


def naive_counts(table, schema):
    """Count value by value, with the intervals of the definition: each with its upper end."""
    rows = table.to_arrow().to_pylist()
    found = []
    for feature in schema.features:
        for place in range(feature.n_values):
            for label in schema.target.values:
                found.append(sum(place_of(row[feature.name], feature) == place and row["ill"] == label for row in rows))
    return found


def place_of(cell, feature):
    if cell is None:
        return feature.n_values - 1
    if feature.cuts is None:
        return feature.values.index(cell)
    return sum(cell > cut for cut in feature.cuts)


@pytest.fixture
def published(group):
    large = in_blocks(group.data("ann"), group.schema)
    rows = LargeRows.of(large, group.schema, MEMORY)
    releaser = ProjectionReleaser(group.schema, ["coin", "site"], 0.05, RECORD)
    return publish(propose_projection(rows, releaser), group.output("ann"), memory=MEMORY)


def audited(group, published):
    large = in_blocks(group.data("ann"), group.schema)
    return audit_published(
        published.table_path, published.manifest_path, memory=MEMORY, original=large, check_roles=True
    )


def _forget_a_column(manifest):
    """With fewer columns to be counted the gain looks larger."""
    promise = manifest["guarantees"][0]
    promise["removed"].remove("site")
    del promise["n_values"]["site"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m["guarantees"][0].update(audited=0.9), "gives 0.9 as audited"),
        (lambda m: m["guarantees"][0].update(min_privacy_gain=0.9), "privacy-gain does not hold"),
        (lambda m: m["guarantees"][0]["n_values"].update(grade=2), "have more values than stated: 'grade'"),
        (lambda m: m["guarantees"][0].update(cuts={}), "have more values than stated: 'age'"),
        (lambda m: m["evidence"]["risk"].update(anonymity_level=7), "anonymity level: the manifest gives 7"),
        (lambda m: m["dropped_columns"].remove("coin"), "are released or not stated as dropped: 'coin'"),
        (_forget_a_column, "are not the original's quasi-identifiers"),
    ],
)
def test_a_changed_manifest_is_refused(group, published, change, said):
    data = json.loads(published.manifest_path.read_text())
    change(data)
    data["digest"] = manifest_digest(data)
    published.manifest_path.write_text(text_of(data), encoding="utf-8")

    assert any(said in failure for failure in audited(group, published).failures), audited(group, published).failures


@pytest.mark.slow
def test_a_changed_cell_is_refused(group, published):
    lines = published.table_path.read_text().splitlines()
    other = next(line for line in lines[1:] if line.partition(",")[0] != lines[3].partition(",")[0])
    lines[3] = other.partition(",")[0] + "," + lines[3].partition(",")[2]
    published.table_path.write_text("\n".join(lines) + "\n")
    failed = [check.name for check in audited(group, published).checks if not check.passed]

    assert "cells" in failed


@pytest.mark.slow
def test_without_the_original_the_gain_is_not_checked(published):
    report = audit_published(published.table_path, published.manifest_path, memory=MEMORY)

    assert any("privacy-gain was not measured" in one.message for one in report.unchecked if one.name == "promises")


@pytest.mark.slow
def test_combinations_that_do_not_fit_are_left_out_in_words(group):
    rows = LargeRows.of(in_blocks(group.data("ann"), group.schema), group.schema, MEMORY)
    releaser = ProjectionReleaser(group.schema, ["coin", "site"], 0.05, RECORD)
    with patch.object(Memory, "most_cells", lambda *_: 3):
        proposal = propose_projection(rows, releaser)
        published = publish(proposal, group.output("ann"), memory=MEMORY)

    risk = published.release.manifest.evidence["risk"]
    assert "anonymity_level" not in risk
    assert "too many" in risk["anonymity_level_left_out"]


class TestBeforeItConnects:
    """What is wrong at home is said at once: nobody listens on the other ports here."""

    def alone(self, group, large, schema=None, output="ann-release.csv"):
        config = load_party_config(group.config("ann"))
        own = schema or group.schema
        return take_part(config, large, own, Plan(THETA), memory=MEMORY, output=group.folder / output)

    def test_a_workbook_is_not_written_row_by_row(self, group):
        large = in_blocks(group.data("ann"), group.schema)
        with pytest.raises(InvalidParameterError, match="format must be one of csv"):
            self.alone(group, large, output="ann-release.xlsx")

    def test_a_feature_with_too_many_values_is_refused(self, group):
        large = in_blocks(group.data("ann"), group.schema, memory=12 * 4000)
        assert large.is_open("age")
        with pytest.raises(SchemaError, match="'age': has too many distinct values"):
            self.alone(group, large)

    def test_a_value_outside_the_schema_is_refused(self, group):
        features = {column.name: column.values for column in group.schema.features if column.cuts is None}
        features["site"] = features["site"][:-1]
        narrow = SharedSchema.of_values({**features, "age": (None,)}, {"ill": ["no", "yes"]}, CUTS)
        with pytest.raises(SchemaError, match="1 value that the shared schema does not list"):
            self.alone(group, in_blocks(group.data("ann"), group.schema), narrow)


@pytest.fixture(scope="module")
def nursery():
    with Nursery() as started:
        yield started


@pytest.mark.slow
def test_on_the_command_line_one_party_with_memory(group, nursery):
    beyond = ["--identifiers", "id", "--other", "note", "--min-privacy-gain", str(THETA)]
    commands = {name: group.command(name, *beyond) for name in NAMES}
    commands["cid"] += ["--memory", "600MB"]
    found = nursery.run(group, commands)
    assert {name: outcome.code for name, outcome in found.items()} == dict.fromkeys(NAMES, 0), found
    in_blocks_bytes = group.output("cid").read_bytes()

    again = nursery.run(group, {name: group.command(name, *beyond, "--force") for name in NAMES})

    assert again["cid"].code == 0, again["cid"].said
    assert group.output("cid").read_bytes() == in_blocks_bytes


def schema_command(group, name, *more):
    given = ["--config", group.config(name), "--data", group.data(name), "-o", group.folder / f"{name}-schema.json"]
    roles = ["--target", "ill", "--bins", "age=30,50", "--identifiers", "id", "--other", "note", "--force", "--yes"]
    return [str(part) for part in ("collaborate", "schema", *given, *roles, *more)]


@pytest.mark.slow
def test_the_schema_is_agreed_on_with_a_file_in_blocks(group, nursery):
    """The same as that of all rows, for everybody."""
    commands = {name: schema_command(group, name) for name in NAMES}
    commands["bob"] += ["--memory", "600MB"]
    found = nursery.run(group, commands)
    commands["ann"] += ["--memory", "5MB"]

    assert "--memory" in nursery.run(group, {"ann": commands["ann"]})["ann"].said
    assert {name: outcome.code for name, outcome in found.items()} == dict.fromkeys(NAMES, 0), found
    agreed = [read_shared_schema(group.folder / f"{name}-schema.json") for name in NAMES]
    assert {one.hash() for one in agreed} == {group.schema.hash()}


def test_a_feature_with_too_many_values_is_told_to_nobody(group):
    """Its values are not listed, so it would look as if it had none."""
    settings = dict.fromkeys(["sensitive", "identifiers", "other", "quasi_identifiers"], ())
    read = {"format_": None, "encoding": None, "delimiter": None, "no_header": False, "sheet": None, "skip_rows": 0}
    more = {"target": "ill", "missing": (), "drop_incomplete": False}
    with patch.object(Memory, "of", lambda _: Memory(12 * 4000)), pytest.raises(SchemaError, match="too many distinct"):
        described(str(group.data("ann")), settings | read | more, "600MB")


@pytest.mark.slow
def test_wrong_memory_is_refused_before_anything(group, nursery):
    found = nursery.run(
        group, {"ann": group.command("ann", "--identifiers", "id", "--other", "note", "--memory", "5MB")}
    )

    assert found["ann"].code != 0
    assert "--memory" in found["ann"].said
