"""The table of all parties' rows: the same for every party, audited, and with every party's rows in it."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import sfumato
from sfumato.audit.auditor import AuditorHas, PublisherKnows
from sfumato.audit.claims import read_claims
from sfumato.audit.in_blocks import beyond_counts
from sfumato.audit.verify import audit_release
from sfumato.cli.main import run
from sfumato.collaborate.joint.generalization import generalized_columns
from sfumato.collaborate.joint.party import TOTALS, added_up, places_of_rows, release_of
from sfumato.collaborate.joint.search import ClassOfRows, divide_pooled
from sfumato.collaborate.plan import Plan
from sfumato.collaborate.session.party import SessionRecord
from sfumato.collaborate.shared_schema import SharedSchema
from sfumato.collaborate.simulate.joint import simulate_jointly
from sfumato.errors import CollaborationError, InvalidParameterError
from sfumato.manifest import manifest_digest
from sfumato.publishing.reaudit import audit_published
from unit.collaborate.groups import small_table
from unit.collaborate.plain_sums import Meeting

K = 4
PARTIES = {"ann": "a" * 64, "bob": "b" * 64, "cid": "c" * 64}


def joint_release(table, k=K):
    """Compute in one place what parties publish who hold these rows together."""
    schema = SharedSchema.of_table(table)
    columns = generalized_columns(schema)
    classes = divide_pooled(columns, places_of_rows(table, schema.features), k)
    targets = places_of_rows(table, [schema.target])[0]
    totals = np.array([np.bincount(targets[one.rows], minlength=schema.target.n_values) for one in classes])
    record = SessionRecord("trial", "joint-k by seeds", PARTIES, {"joint_k": k})
    return release_of(schema, columns, classes, totals, k=k, session=record, missing=table.schema.missing)


@pytest.fixture(scope="module")
def table():
    return small_table(60)


@pytest.fixture(scope="module")
def release(table):
    return joint_release(table)


def audited(release, original=None, table=None, **changes):
    manifest = release.manifest.to_dict() | changes
    manifest |= {"digest": manifest_digest(manifest)}
    rows = release.data if table is None else table
    return audit_release(
        rows, manifest, AuditorHas(original=original, roles=True), publisher=PublisherKnows(levels_are_stated=False)
    )


def failed(report):
    return {check.name for check in report.checks if not check.passed}


def test_every_class_of_the_union_has_k_rows_and_no_row_is_lost(table, release):
    names = [c.name for c in release.table.schema if c.role is sfumato.Role.QUASI_IDENTIFIER]
    _, sizes = np.unique(release.table.codes(names), axis=0, return_counts=True)

    assert sizes.min() >= K
    assert release.table.n_rows == table.n_rows
    assert "party" not in json.dumps(release.manifest.to_dict()["output"])
    assert sorted(release.table["ill"].cells().to_pylist()) == sorted(table["ill"].cells().to_pylist())


@pytest.mark.parametrize("part", [slice(0, 20), slice(20, 60), slice(0, 60)])
def test_the_audit_confirms_it_with_the_rows_of_any_party(table, release, part):
    report = audited(release, table.take(np.arange(60)[part]))

    assert not failed(report)
    assert "own rows" in {check.name for check in report.checks}
    assert {one.name for one in report.unchecked} == {"original"}
    assert report.verdict == "confirmed except"


def test_without_a_party_the_audit_says_that_nobody_has_all_rows(release):
    report = audited(release)

    assert not failed(report)
    (said,) = [one for one in report.unchecked if one.name == "original"]
    assert "3 parties" in said.message


@pytest.mark.slow
def test_rows_of_a_party_that_were_left_out_are_found(table, release):
    order = np.arange(release.table.n_rows)
    without = joint_release(table.take(np.arange(60) != 7))

    assert "own rows" in failed(audited(without, table))
    assert "own rows" not in failed(audited(without, table.take(np.arange(60) != 7)))
    assert not failed(audited(release, table, table=release.table.take(order)))


def test_a_k_that_does_not_hold_is_refused(table, release):
    promise = {**release.manifest.guarantees[0], "k": K + 2}
    words = sfumato.guarantees.KAnonymity(K + 2, tuple(promise["columns"])).describe()

    assert "k-anonymity: level" in failed(audited(release, guarantees=[{**promise, "statement": words}]))


def test_a_table_of_one_holder_cannot_pass_for_one_of_parties(release):
    stated = release.manifest.to_dict()

    for parties, listed in [(2, {"ann": "a", "bob": "b"}), (4, PARTIES)]:
        mechanism = json.loads(json.dumps(stated["mechanism"]))
        mechanism["parameters"]["session"]["parties"] = listed
        with pytest.raises(sfumato.errors.ManifestError, match="parties"):
            audited(release, input={**stated["input"], "parties": parties}, mechanism=mechanism)


@pytest.mark.slow
def test_numbers_in_intervals_listed_numbers_and_missing_ones_are_read_again():
    rng = np.random.default_rng(2)
    n = 80
    cells = {
        "age": pa.array(rng.integers(20, 60, n)),
        "grade": pa.array([None if g == 3 else int(g) for g in rng.integers(0, 4, n)]),
        "town": pa.array([None if t == 0 else f"t{t}" for t in rng.integers(0, 3, n)]),
        "ill": pa.array(rng.integers(0, 2, n)),
    }
    table = sfumato.read_table(pa.table(cells))
    table = table.with_schema(table.schema.with_roles({"ill": sfumato.Role.TARGET}))
    schema = SharedSchema.of_table(table, {"age": [30.0, 40.0, 50.0]})
    columns = generalized_columns(schema)
    classes = divide_pooled(columns, places_of_rows(table, schema.features), 5)
    targets = places_of_rows(table, [schema.target])[0]
    totals = np.array([np.bincount(targets[one.rows], minlength=2) for one in classes])
    record = SessionRecord("trial", "joint-k by seeds", PARTIES, {"joint_k": 5})
    release = release_of(schema, columns, classes, totals, k=5, session=record, missing=table.schema.missing)

    assert len(classes) > 5
    assert not failed(audited(release, table))
    assert not failed(audited(release, table.take(np.arange(0, n, 3))))
    assert failed(audited(release, pooled_with_another_age(table)))


def pooled_with_another_age(table):
    """Give all rows the youngest age."""
    cells = table.to_arrow()
    youngest = pa.array([20] * table.n_rows, cells["age"].type)
    other = sfumato.read_table(cells.set_column(cells.column_names.index("age"), "age", youngest))
    return other.with_schema(other.schema.with_roles({"ill": sfumato.Role.TARGET}))


def test_other_numbers_in_the_sum_than_in_the_search_end_it():
    few = [ClassOfRows((), np.arange(3)), ClassOfRows((), np.arange(1))]

    def program(sums):
        return added_up(sums, few, np.zeros(3, dtype=np.intp), 2, k=4)

    found = Meeting(3).run([program] * 3)

    assert all(isinstance(error, CollaborationError) and "other numbers" in str(error) for error in found)


def test_the_only_sum_is_that_of_classes_and_target_values():
    meeting = Meeting(3)

    def program(sums):
        return added_up(sums, [ClassOfRows((), np.arange(4))], np.array([0, 1, 1, 1]), 2, k=12)

    found = meeting.run([program] * 3)

    assert [totals.tolist() for totals in found] == [[[3, 9]]] * 3
    assert [(stage, words.tolist()) for stage, _, words in meeting.seen] == [(TOTALS, [3, 9])]


@pytest.mark.parametrize(
    "other", [{"mode": "selection-only"}, {"epsilon": 1.0}, {"drop_incomplete": True}, {"ranking": "gini"}]
)
def test_settings_that_a_joint_k_has_no_use_for_are_refused(other):
    with pytest.raises(InvalidParameterError, match="joint k"):
        Plan(0.1, joint_k=5, **other)


@pytest.mark.slow
def test_processes_publish_the_same_bytes_and_each_finds_its_rows_in_them(tmp_path):
    found = simulate_jointly(small_table(60), Plan(0.1, joint_k=6, max_rows=60), parties=3, output_dir=tmp_path / "out")

    assert found.k >= 6 > max(found.own_levels.values())
    assert found.certainty_penalty == found.pooled_certainty_penalty
    tables = {(tmp_path / "out" / f"party-{i}.csv").read_bytes() for i in (1, 2, 3)}
    assert len(tables) == 1
    for i in (1, 2, 3):
        path = tmp_path / "out" / f"party-{i}.csv"
        manifest = tmp_path / "out" / f"party-{i}.csv.manifest.json"
        own = sfumato.read_table(tmp_path / "out" / f"party-{i}.original.parquet")
        report = audit_published(path, manifest, original=own)
        assert not failed(report)
        messages = (tmp_path / "out" / f"party-{i}.transcript.jsonl").read_text().splitlines()
        sums = {json.loads(line)["stage"].split("/")[0] for line in messages[1:-1]}
        assert sums == {"hello", "joint k", "seeds", TOTALS, "ready to publish", "all are ready"}


def test_hierarchies_are_refused_where_nothing_uses_them(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("a,b,c\n" + "x,y,z\n" * 9)
    arguments = ["collaborate", "simulate", str(tmp_path / "t.csv"), "--target", "c", "--hierarchy", "a=b.csv"]

    assert run(arguments) != 0
    assert "--joint-k" in capsys.readouterr().err


def test_an_audit_of_rows_that_are_not_in_memory_says_that_it_cannot(release):
    claims = read_claims(release.manifest.to_dict())

    assert "a release of several parties' rows" in list(beyond_counts(claims))
