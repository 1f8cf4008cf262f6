import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit import AuditReport, audit_release
from sfumato.audit.auditor import AuditorHas
from sfumato.audit.claims import read_claims
from sfumato.errors import ManifestError, ManifestRefusedError
from sfumato.guarantees import Containment, KAnonymity, LDiversity, TCloseness
from sfumato.manifest import Manifest
from sfumato.manifest_schema import parsed_manifest
from sfumato.schema import Role
from sizes import examples
from unit.audit.audit_oracles import CANARY, manifest_of, sealed, table_of

TABLE = table_of({"a": [1, 1, 1, 1], "s": ["x", "x", "y", "y"]}, {"s": Role.SENSITIVE})
QI = ("a",)
ALL_KINDS = [
    (KAnonymity(2, QI), 4),
    (Containment(2, QI), 4),
    (LDiversity(2, "s", QI), 2),
    (LDiversity(2, "s", QI, "recursive", 3.0), 2),
    (TCloseness(0.2, "s", QI), 0),
]
RECODING = {"name": "a", "column": "a", "rule": "interval", "above": 0, "upto": 2.5}


def full_manifest() -> dict[str, Any]:
    return manifest_of(
        TABLE, ALL_KINDS, recodings=[RECODING, {"name": "b", "column": "a", "rule": "one-of", "values": ["1"]}]
    )


def paths(data: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [prefix] + [path for key, value in items for path in paths(value, (*prefix, key))]


PATHS = [path for path in paths(full_manifest()) if path]


def replaced(manifest: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(manifest)
    inner: Any = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return sealed(changed)


def removed(manifest: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    changed = copy.deepcopy(manifest)
    inner: Any = changed
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return sealed(changed)


def names_a_column(path: tuple[Any, ...]) -> bool:
    """Column names may be shown, whatever they are."""
    return path[-1] in ("name", "column", "sensitive", "unit") or (
        path[0] != "recodings" and path[-2:-1] == ("columns",)
    )


def test_an_honest_manifest_is_read():
    claims = read_claims(full_manifest())

    assert [p.guarantee for p in claims.promises] == [g for g, _ in ALL_KINDS]
    assert claims.names(Role.QUASI_IDENTIFIER) == ("a",)
    assert claims.recodings["b"].values == ("1",)


def test_the_manifest_of_a_release_is_read_before_and_after_it_was_written():
    """``Manifest.to_dict`` holds tuples where the parsed file holds lists."""
    fields = {k: v for k, v in full_manifest().items() if k not in ("sfumato_manifest", "digest")}
    manifest = Manifest(**{k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()})
    again = Manifest.from_json(manifest.to_json())

    assert read_claims(manifest.to_dict()) == read_claims(again.to_dict())


@pytest.mark.slow
@examples(300)
@given(
    st.sampled_from(PATHS),
    st.sampled_from(
        [None, True, -1, 0, 1.5, 10**400, "", CANARY, [], [None], [[]], {}, {"a": 1}, float("nan"), float("inf")]
    ),
)
def test_a_wrong_entry_is_a_manifest_error_or_a_failed_check_and_nothing_else(path, value):
    try:
        said = str(audit_release(TABLE, replaced(full_manifest(), path, value), AuditorHas(original=TABLE)).failures)
    except ManifestError as exc:
        said = str(exc)

    assert CANARY not in said or names_a_column(path)


@pytest.mark.slow
@examples(200)
@given(st.sampled_from(PATHS))
def test_a_missing_entry_is_a_manifest_error_or_a_report(path):
    try:
        report = audit_release(TABLE, removed(full_manifest(), path), AuditorHas(original=TABLE))
    except ManifestError:
        return
    assert isinstance(report, AuditReport)


@pytest.mark.parametrize(
    "path",
    [("input",), ("output", "rows"), ("mechanism",), ("missing", "rows"), ("guarantees",), ("recodings",)],
    ids=lambda path: ".".join(path),
)
def test_a_missing_entry_is_named(path):
    with pytest.raises(ManifestError, match=r"lacks ") as caught:
        read_claims(removed(full_manifest(), path))

    assert all(key in str(caught.value) for key in path)


def test_a_missing_digest_is_named():
    manifest = full_manifest()
    del manifest["digest"]

    with pytest.raises(ManifestError, match="lacks digest"):
        read_claims(manifest)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("sfumato_manifest",), 4, "the only version that this program reads"),
        (
            ("output", "columns", 0, "role"),
            CANARY,
            r"output.columns\[0\].role is not one of identifier",
        ),
        (("output", "columns", 0, "domain"), [1], r"domain\[0\] is not a string"),
        (("output", "columns", 1, "name"), "a", "names a column twice"),
        (("recodings", 1, "name"), "a", "recodings in the manifest names a column twice"),
        (("guarantees", 0, "k"), 0, "not a whole number of at least 2"),
        (("guarantees", 0, "k"), 2.5, "not a whole number"),
        (("guarantees", 0, "columns"), "a", "not a list"),
        (("guarantees", 0, "kind"), CANARY, "of no kind that is known"),
        (("guarantees", 2, "variant"), CANARY, "not one of distinct"),
        (("guarantees", 3, "c"), 0, "c must be above 0"),
        (("guarantees", 3, "c"), None, "out of range"),
        (("guarantees", 4, "t"), 2, "not a number of at least 0 below 1"),
        (("guarantees", 4, "distance"), "far", "not one of equal"),
        (("suppressed_rows",), True, "not a whole number"),
        (("missing", "rows"), "lost", "not one of kept, dropped"),
    ],
    ids=str,
)
def test_a_wrong_entry_is_named(path, value, said):
    with pytest.raises(ManifestError, match=said) as caught:
        audit_release(TABLE, replaced(full_manifest(), path, value))

    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("manifest", [None, [], "text", 3, {1: 2}], ids=str)
def test_something_else_than_a_manifest_is_refused(manifest):
    with pytest.raises(ManifestError, match="the only version that this program reads"):
        read_claims(manifest)


@pytest.mark.parametrize("version", [1, 2, 4, 3.0, "3", True, None])
def test_a_manifest_of_another_version_is_refused_by_reader_and_audit_in_one_sentence(version):
    manifest = full_manifest() | {"sfumato_manifest": version}
    for read in (
        read_claims,
        lambda data: Manifest.from_json(json.dumps(data)),
        lambda data: parsed_manifest(json.dumps(data)),
    ):
        with pytest.raises(ManifestError, match="of version 3, the only version that this") as caught:
            read(manifest)

        assert not isinstance(caught.value, ManifestRefusedError)  # bad input, not a broken promise


@pytest.mark.parametrize("path", [("recodings", 0, "above"), ("guarantees", 0, "audited")])
def test_a_number_of_endless_digits_is_refused(path):
    with pytest.raises(ManifestError, match="not below 2 to the 63"):
        read_claims(replaced(full_manifest(), path, 10**400))
