"""(k,k) and global (1,k) by persons: tiered trees of tables in which persons have several rows, and their audit."""

import json

import numpy as np
import pyarrow as pa
import pytest

from sfumato.audit.auditor import AuditorHas, PublisherKnows
from sfumato.audit.verify import audit_release
from sfumato.errors import PrivacyNotAchievableError
from sfumato.guarantees import GlobalAnonymity, KKAnonymity
from sfumato.manifest import manifest_digest
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.propose import make_release, propose_release
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.table.coding import Table
from test_person_values import SCHEMA, assert_persons_of_one_row_change_nothing, visits
from tests import person_oracles as oracles
from tests.guarantee_names import by_name, name_of

KNOWN = ["age", "town"]
BY_PERSONS = ("kk-anonymity by persons", "global-anonymity by persons")


def tiered(k=3, **more):
    return build_mechanism("error-risk-tree", {"k": k, **more})


def persons_of(table):
    return table.to_arrow().column("patient").to_pylist()


def with_persons(names):
    cells = visits(len(names)).to_arrow()
    return Table.from_arrow(cells.set_column(0, "patient", pa.array(names)), SCHEMA)


def penalty_of(release):
    return release.manifest.to_dict()["evidence"]["utility"]["global_certainty_penalty"]


def failed(report):
    return {check.name for check in report.checks if not check.passed}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"refine": False},
        {"rule": "literal", "refine": False},
        {"min_samples_leaf": 1},
        {"splits": "multiway"},
        {"guide": "score"},
    ],
    ids=str,
)
def test_what_is_promised_by_persons_holds_by_the_definition(more):
    for seed, k in ((0, 3), (1, 5)):
        table = visits(140, 60, seed)
        release = make_release(table, tiered(k, **more))
        edges, persons = oracles.edges_of(table, release.table, KNOWN), persons_of(table)

        assert list(by_name(release)) == ["kk-anonymity", "global-anonymity", *BY_PERSONS]
        assert by_name(release)["kk-anonymity by persons"]["audited"] == oracles.kk_level(edges, persons) >= k
        found = oracles.global_level_by_matchings(edges, persons)
        assert by_name(release)["global-anonymity by persons"]["audited"] == found >= k
        rows = list(range(len(persons)))
        assert by_name(release)["kk-anonymity"]["audited"] == oracles.kk_level(edges, rows) >= k


def test_small_subgroups_are_kept_apart():
    """Cells are finer than those of groups that hold k persons each, which is what borrowing is for."""
    table = visits(600, 200, 1)
    penalty = {
        way: penalty_of(make_release(table, tiered(8, generalization=way, refine=False)))
        for way in ("tiered", "uniform")
    }

    assert penalty["tiered"] < penalty["uniform"]


def test_without_persons_the_same_settings_leave_rows_that_fit_fewer_people():
    table = visits(140, 60, 1)
    release = make_release(table.with_schema({"patient": "identifier"}), tiered(3))

    assert oracles.kk_level(oracles.edges_of(table, release.table, KNOWN), persons_of(table)) < 3


@pytest.mark.parametrize("asked", [{}, {"refine": False}], ids=str)
def test_one_row_a_person_gives_the_bytes_of_a_table_without_persons(tmp_path, asked):
    assert_persons_of_one_row_change_nothing(tmp_path, "error-risk-tree", asked)


# Bad input.


def test_all_rows_of_one_person_cannot_be_released():
    with pytest.raises(PrivacyNotAchievableError, match="persons") as raised:
        tiered(2).release(with_persons(["p"] * 60))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("half", ["often", None])
def test_one_person_with_half_of_all_rows_counts_once(half):
    """All rows without a person count together as those of one."""
    table = with_persons([half if i % 2 else f"p{i}" for i in range(120)])
    release = make_release(table, tiered(4))
    edges = oracles.edges_of(table, release.table, KNOWN)

    assert by_name(release)["kk-anonymity by persons"]["audited"] == oracles.kk_level(edges, persons_of(table)) >= 4


# The audit.


def test_promises_by_persons_say_so():
    assert "different persons" in KKAnonymity(3, ("age",), unit="patient").describe()
    assert "different persons" in GlobalAnonymity(3, ("age",), unit="patient").describe()


def forged_of(table, k=3):
    """Promise by persons what was made by rows."""
    by_rows = tiered(k).release(table.with_schema({"patient": "identifier"}))
    return by_rows.with_manifest(guarantees=tiered(k).release(table).manifest.guarantees)


def audited(release, table, entries=None, is_sorted=False):
    """Audit a release as publishing does, which knows whose rows are whose, or as whoever has a sorted file."""
    places = None if is_sorted else np.arange(table.n_rows)
    entries = release.manifest.to_dict() if entries is None else entries
    return audit_release(
        release.table,
        entries,
        AuditorHas(original=table, roles=True),
        publisher=PublisherKnows(levels_are_stated=True, places=places),
    )


@pytest.mark.parametrize("is_sorted", [False, True])
def test_a_release_by_rows_with_promises_by_persons_is_refused(is_sorted):
    table = visits(140, 60, 1)
    report = audited(forged_of(table), table, is_sorted=is_sorted)

    assert "kk-anonymity by persons: level" in failed(report)
    assert is_sorted or "global-anonymity by persons: level" in failed(report)
    assert "kk-anonymity: level" not in failed(report)


def test_a_sorted_file_that_can_hold_no_k_persons_is_refused():
    """Two people with three visits each look alike: whoever is whose, rows of three people there are not."""
    cells = visits(120).to_arrow()
    for name, own in (
        ("patient", [f"p{i // 3}" for i in range(120)]),
        ("age", [20 + 3 * (i // 6) for i in range(120)]),
        ("town", ["Ulm"] * 120),
    ):
        cells = cells.set_column(cells.column_names.index(name), name, pa.array(own))
    table = Table.from_arrow(cells, SCHEMA)
    report = audited(forged_of(table), table, is_sorted=True)

    assert failed(report) >= {"kk-anonymity by persons: level", "global-anonymity by persons: level"}


@pytest.mark.parametrize("field", ["audited", "k"])
def test_a_level_that_is_not_found_is_refused(field):
    table = visits(140, 60)
    release = make_release(table, tiered())
    for kind in BY_PERSONS:
        entries = json.loads(json.dumps(release.manifest.to_dict()))
        for entry in entries["guarantees"]:
            if name_of(entry) == kind:
                entry[field] += 9
        entries["digest"] = manifest_digest(entries)
        report = audited(release, table, entries)
        assert any(name.startswith(kind) for name in failed(report))


def test_another_column_than_the_declared_one_is_refused():
    table = visits(140, 60)
    release = make_release(table, tiered())
    entries = json.loads(json.dumps(release.manifest.to_dict()))
    for entry in entries["guarantees"]:
        if entry["unit"] == "patient":
            entry["unit"] = "better"
    entries["digest"] = manifest_digest(entries)
    report = audit_release(release.table, entries, AuditorHas(original=table, roles=True))

    assert {f"{kind}: persons" for kind in BY_PERSONS} <= failed(report)


def test_without_the_original_nothing_is_said_to_be_measured():
    release = make_release(visits(140, 60), tiered())
    alone = audit_release(release.table, release.manifest.to_dict())

    for kind in BY_PERSONS:
        assert any(f"{kind} was not measured" in one.message for one in alone.unchecked)
    assert alone.passed


def test_a_sorted_file_is_confirmed_but_for_whose_rows_are_whose(tmp_path):
    """Publishing knows whose rows are whose and measures; later, sorted rows tell it only where bounds do."""
    table = visits(140, 60)
    published = publish(propose_release(table, tiered()), tmp_path / "out.csv", original=table)
    entries = json.loads(published.manifest_path.read_text())
    report = audit_published(published.table_path, published.manifest_path, original=table, check_roles=True)

    assert {name_of(entry): entry["audited"] >= 3 for entry in entries["guarantees"]}["kk-anonymity by persons"]
    assert report.passed
    for kind in BY_PERSONS:
        assert any(kind in one.message and "sorted" in one.message for one in report.unchecked)


def test_a_sorted_file_whose_rows_tell_their_persons_is_confirmed(tmp_path):
    """A released column that tells every row: whoever audits later finds the level, as a bound that is kept."""
    cells = visits(140, 60).to_arrow()
    cells = cells.set_column(3, "illness", pa.array([f"code {i}" for i in range(140)]))
    table = Table.from_arrow(cells, SCHEMA.with_confirmed(["illness"]))
    published = publish(propose_release(table, tiered()), tmp_path / "out.csv", original=table)
    report = audit_published(published.table_path, published.manifest_path, original=table, check_roles=True)

    assert report.passed
    for kind in BY_PERSONS:
        (check,) = (check for check in report.checks if check.name == f"{kind}: level")
        assert check.passed
        assert "whichever rows" in check.message


def test_tables_are_compared_with_tiered_trees_too():
    """A mechanism that counts persons is refused by nobody."""
    assert not tiered().why_rows_count()
