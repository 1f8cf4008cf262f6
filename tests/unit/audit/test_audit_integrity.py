import json

import pytest

import sfumato
from sfumato.audit import audit_release
from sfumato.audit.evidence import digest_of
from sfumato.guarantees import KAnonymity
from sfumato.manifest import Manifest, manifest_digest
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.schema import Kind, Role, Schema
from sfumato.table.coding import Table
from unit.audit.audit_oracles import CANARY, binary_table, manifest_of, sealed, table_of

TABLE = table_of({"a": ["x", "x"], "n": ["1", "2"]}, {"n": Role.OTHER}, {"n": Kind.NUMERIC})
PROMISE = [(KAnonymity(2, ("a",)), 2)]
HASH = "ab" * 32


def failed(report) -> list[str]:
    return [check.name for check in report.checks if not check.passed]


def test_an_honest_release_passes():
    report = audit_release(TABLE, manifest_of(TABLE, PROMISE))

    assert report.passed
    assert failed(report) == []


def test_the_digest_is_the_one_that_releases_carry():
    """Two implementations of one definition: the release's and the audit's."""
    fields = {k: v for k, v in manifest_of(TABLE, PROMISE, dropped_columns=["ä"]).items() if k != "digest"}
    manifest = Manifest(**{k: v for k, v in fields.items() if k != "sfumato_manifest"}).to_dict()

    assert digest_of(manifest) == manifest["digest"] == manifest_digest(fields)


@pytest.mark.parametrize(
    "change",
    [{"evidence": {"risk": {"what_this_is": CANARY}}}, {"versions": {"sfumato": "0.0.1"}}, {"dropped_columns": ["x"]}],
    ids=str,
)
def test_any_change_breaks_the_digest(change):
    assert failed(audit_release(TABLE, manifest_of(TABLE, PROMISE) | change)) == ["manifest digest"]


def test_the_released_file_is_compared_by_its_hash():
    manifest = manifest_of(TABLE, PROMISE)
    manifest = sealed(manifest | {"output": manifest["output"] | {"sha256": HASH}})

    assert audit_release(TABLE, manifest, released_sha256=HASH).passed
    assert failed(audit_release(TABLE, manifest, released_sha256="cd" * 32)) == ["released file"]


def test_a_manifest_without_a_hash_does_not_speak_of_a_file():
    report = audit_release(TABLE, manifest_of(TABLE, PROMISE), released_sha256=HASH)

    assert report.failures == ("the manifest has no SHA-256 of the released file",)


def test_another_number_of_rows_fails():
    output = manifest_of(TABLE, PROMISE)["output"]

    assert failed(audit_release(TABLE, manifest_of(TABLE, PROMISE, output=output | {"rows": 3}))) == ["rows"]


def test_a_release_without_rows_fails():
    empty = table_of({"a": []}).take(TABLE["a"].codes[:0])

    report = audit_release(empty, manifest_of(empty, [(KAnonymity(2, ("a",)), 0)]))

    assert failed(report) == ["rows", "k-anonymity: level"]
    assert audit_release(Table(Schema.of([]), {}, 0), manifest_of(empty, PROMISE)).passed is False


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"a": ["x", "x"]}, "the release lacks 'n'"),
        ({"a": ["x", "x"], "n": ["1", "2"], "m": ["1", "2"]}, "the manifest does not state 'm'"),
        ({"n": ["1", "2"], "a": ["x", "x"]}, "their order differs"),
    ],
    ids=["missing", "unstated", "order"],
)
def test_other_columns_than_stated_fail(columns, said):
    report = audit_release(table_of(columns), manifest_of(TABLE, PROMISE))

    assert failed(report) == ["columns"]
    assert said in report.failures[0]


def test_the_features_of_a_sparse_release_have_no_order():
    table = binary_table([[1, 1], [1, 1]], 2)
    manifest = manifest_of(table, [(KAnonymity(2, ("f0", "f1")), 2)])
    output = manifest["output"] | {"columns": manifest["output"]["columns"][::-1]}
    guarantees = [manifest["guarantees"][0] | {"columns": ["f1", "f0"]}]

    assert audit_release(table, sealed(manifest | {"output": output, "guarantees": guarantees})).passed


def test_an_identifier_is_never_released():
    table = table_of({"a": ["x", "x"], "ssn": ["1", "1"]}, {"ssn": Role.IDENTIFIER})

    report = audit_release(table, manifest_of(table, PROMISE))

    assert report.failures == ("identifiers are released: 'ssn'",)


def test_a_numeric_column_must_hold_numbers():
    table = table_of({"a": ["x", "x"], "n": ["1", CANARY]}, {"n": Role.OTHER})

    report = audit_release(table, manifest_of(TABLE, PROMISE))

    assert report.failures == ("stated to be numeric, but not all values are numbers: 'n'",)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["recodings", "guarantees"])
def test_lists_of_columns_are_in_the_order_of_the_columns(place):
    """Of 300 features another order of the list holds 2,000 bits."""
    rows = {"a": ["x"] * 4, "b": ["y"] * 4, "y": ["0", "1", "0", "1"]}
    original = table_of(rows, {"y": Role.TARGET})
    published = sfumato.release(original, Mondrian(k=2)).manifest.to_dict()
    changed = json.loads(json.dumps(published))
    columns = changed[place] if place == "recodings" else changed[place][0]["columns"]
    columns.reverse()

    assert len(columns) == 2
    released = sfumato.release(original, Mondrian(k=2)).table
    assert "order of entries" not in failed(audit_release(released, sealed(published)))
    assert "order of entries" in failed(audit_release(released, sealed(changed)))
