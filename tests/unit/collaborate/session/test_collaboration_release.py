"""A party's own release after the session: what is in it, what its manifest says, and that the audit confirms it."""

import json

import numpy as np
import pytest

import sfumato
from sfumato.collaborate.session.agreement import AgreementRule, agree
from sfumato.collaborate.session.party import ProjectionReleaser, SessionRecord
from sfumato.collaborate.shared_schema import SharedSchema
from sfumato.datasets.admissions import admissions
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.schema import Role
from unit.collaborate.plain_sums import run_together, table_of

CUTS = {"age": [30.0, 50.0]}
ROWS = 60
TABLE = table_of(
    {
        "id": [f"p{i}" for i in range(ROWS)],
        "sex": ["mf"[i % 2] if i % 7 else None for i in range(ROWS)],
        "age": [float(20 + i) for i in range(ROWS)],
        "job": ["abc"[i % 3] for i in range(ROWS)],
        "rare": ["0" if i % 20 else "1" for i in range(ROWS)],
        "ward": [str(i % 4) for i in range(ROWS)],
        "illness": ["uvw"[i * 5 % 3] for i in range(ROWS)],
        "y": ["nj"[i // 3 % 2] for i in range(ROWS)],
    },
    numeric=("age",),
    id=Role.IDENTIFIER,
    ward=Role.OTHER,
    illness=Role.SENSITIVE,
)
SCHEMA = SharedSchema.of_table(TABLE, CUTS)
SESSION = SessionRecord("s-1", "seeds", {"b": "22" * 32, "a": "11" * 32}, AgreementRule().to_dict())


def releaser(removed=("rare", "age"), threshold=0.1, schema=SCHEMA):
    return ProjectionReleaser(schema, removed, threshold, SESSION)


@pytest.mark.slow
def test_what_the_parties_agreed_on_is_published_and_confirmed(tmp_path):
    parts = [TABLE.take(np.arange(i, ROWS, 3)) for i in range(3)]
    found = run_together(
        [lambda sums, part=part: agree(sums, SCHEMA, SCHEMA.counts(part), min_privacy_gain=0.1) for part in parts]
    )
    for i, (part, agreed) in enumerate(zip(parts, found, strict=True)):
        release = sfumato.release(part, releaser(agreed.removed))
        done = publish(release, tmp_path / f"{i}.csv", original=part)
        report = audit_published(done.table_path, done.manifest_path, original=part, check_roles=True)

        assert report.passed, report.failures
        assert report.levels[0] == pytest.approx(agreed.own_gains[-1])
        kept = [name for name in TABLE.schema.names() if name in {*SCHEMA.names, "ward", "y"} - {*agreed.removed}]
        assert [c["name"] for c in release.manifest.output["columns"]] == kept


def test_the_manifest_names_session_roster_schema_and_agreed_parameters():
    manifest = sfumato.release(TABLE, releaser()).manifest
    parameters = manifest.mechanism["parameters"]

    assert manifest.mechanism["name"] == "collaboration"
    assert parameters["session"] == {"id": "s-1", "mode": "seeds", "parties": {"a": "11" * 32, "b": "22" * 32}}
    assert parameters["shared_schema_sha256"] == SCHEMA.hash()
    assert parameters["agreed"] == {"weights": [0.5, 0.5], "privacy": "pooled", "epsilon": None}
    assert parameters["min_privacy_gain"] == 0.1
    assert set(manifest.dropped_columns) == {"id", "rare", "age", "illness"}
    (entry,) = manifest.guarantees
    assert entry["n_values"] == {"sex": 3, "age": 3, "job": 3, "rare": 2}
    assert entry["removed"] == ["rare", "age"]
    assert "NOT k-anonymity" in entry["statement"]
    json.loads(manifest.to_json())


def test_an_own_gain_below_the_threshold_is_not_released():
    with pytest.raises(PrivacyNotAchievableError) as caught:
        releaser(("rare",), 0.2).release(TABLE)

    assert 0 < caught.value.best_level < 0.2


@pytest.mark.parametrize("removed", [(), ("rare", "rare"), ("other",), SCHEMA.names])
def test_removing_nothing_everything_or_something_else_is_refused(removed):
    with pytest.raises(InvalidParameterError):
        releaser(removed).release(TABLE)


def test_another_kind_of_table_is_refused():
    with pytest.raises(SchemaError):
        releaser().release(TABLE.keep(["sex", "age", "job", "y"]))
    flags = sfumato.binarize(admissions(n_rows=40))
    with pytest.raises(SchemaError, match="sparse"):
        releaser().release(flags)


@pytest.mark.slow
def test_a_cut_feature_that_stays_is_released_by_interval_and_confirmed(tmp_path):
    part = TABLE.take(np.arange(5, ROWS))
    release = sfumato.release(part, releaser(("rare", "job")))
    done = publish(release, tmp_path / "r.csv", original=part)
    report = audit_published(done.table_path, done.manifest_path, original=part, check_roles=True)

    ages = [float(age) for age in part["age"].cells().to_pylist()]
    expected = ["≤ 30" if age <= 30 else "]30, 50]" if age <= 50 else "> 50" for age in ages]
    assert release.table["age"].cells().to_pylist() == expected
    assert report.passed, report.failures
    assert "released, if at all) as intervals" in release.manifest.guarantees[0]["statement"]


def test_a_missing_number_stays_missing_in_a_release_by_interval():
    ages = [None if i % 9 == 0 else float(20 + i) for i in range(ROWS)]
    cells = {name: TABLE[name].cells().to_pylist() for name in ("sex", "job", "rare", "y")}
    table = table_of(cells | {"age": ages}, numeric=("age",))
    release = sfumato.release(table, releaser(("rare", "job"), schema=SharedSchema.of_table(table, CUTS)))

    found = release.table["age"].cells().to_pylist()
    assert [age is None for age in found] == [age is None for age in ages]
    assert release.table["age"].n_distinct == 4 == release.manifest.guarantees[0]["n_values"]["age"]


def test_a_cut_feature_that_is_not_numeric_here_is_refused():
    cells = {name: TABLE[name].cells().to_pylist() for name in ("sex", "job", "rare", "y")}
    table = table_of(cells | {"age": [str(20 + i) for i in range(ROWS)]})

    with pytest.raises(SchemaError, match="'age': is cut into intervals in the shared schema and is not numeric"):
        releaser().release(table)
