"""A promise that counts rows is counted by persons too, where a column tells them apart."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sfumato.audit.auditor import AuditorHas
from sfumato.audit.checks import Check, Unchecked
from sfumato.audit.claims import read_claims
from sfumato.audit.kinds import UndecidableError
from sfumato.audit.levels.row_promises import (
    NOT_OF_ROWS,
    by_persons,
    said_of_rows,
    share_of_one_person,
)
from sfumato.audit.original.assignment import BothBags, Pairs
from sfumato.audit.original.cell_rules import CellRule
from sfumato.audit.original.release_vs_original import ReleaseVsOriginal
from sfumato.audit.reading.columns import Columns
from sfumato.audit.verify import audit_release
from sfumato.cli.main import run
from sfumato.errors import InvalidParameterError
from sfumato.guarantees import GUARANTEES, DifferentialPrivacy, KAnonymity, LDiversity
from sfumato.manifest import manifest_digest
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.propose import make_release
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table
from tests.guarantee_names import name_of

EXCEPT = 8


def schema(person=Role.PERSON):
    return Schema.of(
        [
            Column("patient", person),
            Column("age", Role.QUASI_IDENTIFIER, Kind.NUMERIC),
            Column("town", Role.QUASI_IDENTIFIER),
            Column("illness", Role.SENSITIVE),
            Column("better", Role.TARGET),
        ]
    )


def visits(n_persons=60, n_visits=4, are_alike=True):
    """Make a table in which the visits of a person are alike in age and town, or as different as can be."""
    rng = np.random.default_rng(7)
    persons = np.repeat(np.arange(n_persons), n_visits)
    groups = persons if are_alike else np.tile(np.arange(n_persons), n_visits)
    cells = {
        "patient": [f"p{one}" for one in persons],
        "age": 20 + groups % 15,
        "town": np.array(["Ulm", "Bonn", "Köln"])[groups // 15 % 3],
        "illness": np.array(["flu", "gout", "cold", "mumps"])[rng.integers(0, 4, len(persons))],
        "better": np.array(["no", "yes"])[rng.integers(0, 2, len(persons))],
    }
    return pa.table(cells)


def of_rows(cells, name, parameters):
    """Release a table by rows, and audit it as somebody who knows that rows are visits of persons."""
    release = make_release(Table.from_arrow(cells, schema(Role.IDENTIFIER)), build_mechanism(name, parameters))
    return audit(release, cells)


def audit(release, cells, change=lambda entries: None, roles=True, original=True):
    entries = json.loads(json.dumps(release.manifest.to_dict()))
    change(entries)
    entries["digest"] = manifest_digest(entries)
    table = Table.from_arrow(cells, schema() if roles else schema(Role.IDENTIFIER))
    return audit_release(release.table, entries, AuditorHas(original=table if original else None, roles=roles))


def exceptions(report):
    return [one.message for one in report.unchecked if one.name == "persons"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parameters", "kinds"),
    [
        ("mondrian", {"k": 4}, ["k-anonymity"]),
        ("mondrian", {"k": 4, "l": 3}, ["k-anonymity", "l-diversity"]),
        ("mondrian", {"k": 4, "l": 2.5, "variant": "entropy"}, ["l-diversity"]),
        ("mondrian", {"k": 4, "t": 0.4}, ["t-closeness"]),
        ("mondrian", {"k": 4, "beta": 1.5}, ["beta-likeness"]),
        ("mondrian", {"k": 4, "delta": 1.5}, ["delta-disclosure"]),
        ("mondrian", {"k": 4, "alpha": 0.5}, ["alpha-k-anonymity"]),
        ("gain-recoding", {"k": 4}, ["k-anonymity"]),
        ("error-risk-tree", {"k": 4}, ["kk-anonymity"]),
        ("anatomy", {"l": 2}, ["bucket-diversity"]),
        ("slicing", {"k": 4, "l": 2}, ["bucket-size"]),
        ("greedy-containment", {"k": 4}, ["containment"]),
    ],
)
def test_every_promise_of_rows_is_counted_by_persons_or_an_exception(name, parameters, kinds):
    report = of_rows(visits(), name, parameters)

    assert report.passed, report.failures
    said = [*exceptions(report), *(one.message for one in report.checks if one.name.endswith(": by persons"))]
    assert all(any(one.startswith(f"{kind} counts rows") for one in said) for kind in kinds), said
    assert report.verdict == "confirmed except"
    assert exceptions(report)


def test_the_level_of_people_is_printed():
    """Every person has four alike rows: a class of k rows is one of k / 4 persons."""
    report = of_rows(visits(), "mondrian", {"k": 4})

    k = next(one.found for one in report.checks if one.name == "k-anonymity: level")
    assert exceptions(report) == [
        f"k-anonymity counts rows, and some persons ('patient') have several. Counted by persons, k = {k // 4}; "
        "promised is 4"
    ]


def test_a_promise_of_rows_that_holds_of_persons_passes():
    report = of_rows(visits(are_alike=False), "mondrian", {"k": 4})

    assert not exceptions(report)
    found = next(one for one in report.checks if one.name == "k-anonymity: by persons")
    assert found.passed
    assert "counted by persons it holds too" in found.message


def test_nothing_is_said_where_every_person_has_one_row():
    report = of_rows(visits(n_persons=120, n_visits=1), "mondrian", {"k": 4, "l": 2})

    assert not exceptions(report)
    assert not any(one.name.endswith(": by persons") for one in report.checks)


@pytest.mark.slow
@pytest.mark.parametrize("roles", [True, False])
@pytest.mark.parametrize("original", [True, False])
def test_a_manifest_that_tells_persons_apart_does_not_hide_a_promise_of_rows(roles, original):
    """The forger leaves the promise of k persons, and takes away that of l by persons."""
    cells = visits(are_alike=False)
    release = make_release(Table.from_arrow(cells, schema()), build_mechanism("mondrian", {"k": 4, "l": 4}))

    def forged(entries):
        entries["guarantees"] = [one for one in entries["guarantees"] if name_of(one) != "l-diversity by persons"]

    honest = audit(release, cells, roles=roles, original=original)
    report = audit(release, cells, forged, roles=roles, original=original)

    assert not exceptions(honest)
    told = [*exceptions(report), *(one.message for one in report.checks if one.name == "l-diversity: by persons")]
    assert len(told) == 1
    assert told[0].startswith("l-diversity counts rows")
    assert original or exceptions(report)


def test_two_values_of_rows_of_two_persons_are_those_of_two_persons():
    """Out of core no promise of l = 2 by persons is made: it follows."""
    cells = visits(are_alike=False)
    release = make_release(Table.from_arrow(cells, schema()), build_mechanism("mondrian", {"k": 4, "l": 2}))

    def forged(entries):
        entries["guarantees"] = [one for one in entries["guarantees"] if name_of(one) != "l-diversity by persons"]

    assert not exceptions(audit(release, cells, forged))


def test_every_kind_is_counted_by_persons_or_an_exception():
    """A kind that is added later is an exception until somebody says how persons are counted."""
    counted = {kind for kind, guarantee in GUARANTEES.items() if guarantee.counts_persons}
    never = {"bucket-size", "bucket-diversity", "unique-patterns", "delta-presence", "differential-privacy"}

    assert set(GUARANTEES) == counted | never | NOT_OF_ROWS
    for kind in never:
        own = object.__new__(GUARANTEES[kind])
        assert by_persons(own, "id") is None
        assert isinstance(said_of_rows(own, "id", 3, None), Unchecked)


def test_epsilon_is_of_one_row():
    said = said_of_rows(DifferentialPrivacy(1.0, ("a",)), "id", 3, None)

    assert "up to 3 times as large" in said.message


def test_what_cannot_be_measured_is_an_exception_and_a_bound_that_is_enough_is_not():
    def impossible(guarantee):
        raise InvalidParameterError("rows", "some are not", allowed="all")

    said = said_of_rows(KAnonymity(3, ("a",)), "id", 2, impossible, "audit it in memory")
    held = said_of_rows(LDiversity(3, "s", ("a",)), "id", 2, lambda own: 3.0)

    assert isinstance(said, Unchecked)
    assert (said.name, said.remedy) == ("persons", "audit it in memory")
    assert isinstance(held, Check)
    assert held.passed


@pytest.mark.parametrize(("at_least", "is_enough"), [(3, True), (2, False)])
def test_where_sorted_rows_do_not_tell_a_bound_may_be_enough(at_least, is_enough):
    def level(guarantee):
        problem = "rows are sorted"
        raise UndecidableError(problem, at_least)

    said = said_of_rows(KAnonymity(3, ("a",)), "id", 2, level)

    assert isinstance(said, Check if is_enough else Unchecked)
    assert ("found at least 3" if is_enough else "was not measured: rows are sorted") in said.message


def test_rows_that_only_one_person_has_are_as_telling_as_unique_ones():
    """Four alike rows of a person are no unique pattern by rows, and one by persons."""
    cells = visits(n_persons=40)
    table = Table.from_arrow(cells, schema())
    release = make_release(Table.from_arrow(cells, schema(Role.IDENTIFIER)), build_mechanism("anatomy", {"l": 2}))
    claims = replace(read_claims(release.manifest.to_dict()), perturbation=None)
    released = Columns(release.table)
    pair = ReleaseVsOriginal(released, Columns(table), claims)
    by_values = {}
    for person, age, town in zip(*(cells.column(n).to_pylist() for n in ("patient", "age", "town")), strict=True):
        by_values.setdefault((age, town), []).append(person)
    expected = sum(len(own) for own in by_values.values() if len(set(own)) == 1) / len(cells)

    assert share_of_one_person(("age", "town"), pair, "patient") == expected > 0


# The commands, in memory and out of core.


@pytest.mark.slow
@pytest.mark.parametrize("memory", [[], ["--memory", "600MB"]], ids=["in memory", "out of core"])
def test_the_command_says_it_alike_wherever_the_rows_are(tmp_path, monkeypatch, capsys, memory):
    monkeypatch.chdir(tmp_path)
    import pyarrow.csv

    pyarrow.csv.write_csv(visits(), "visits.csv", pyarrow.csv.WriteOptions(quoting_style="none"))
    roles = ["--target", "better", "--sensitive", "illness", "--quasi-identifiers", "age,town"]
    made = ["release", "visits.csv", "-m", "global-recoding", "-k", "4", "--identifiers", "patient", *roles]
    assert run([*made, "-p", "max_suppressed_fraction=0.2", "-o", "release.csv"]) == 0
    capsys.readouterr()
    asked = ["audit", "release.csv", "--manifest", "release.csv.manifest.json", "--original", "visits.csv", *roles]

    assert run([*asked, "--person", "patient", *memory, "--accept", "figures"]) == EXCEPT

    out = capsys.readouterr().out
    assert "NOT COVERED (persons): k-anonymity counts rows, and some persons ('patient') have several" in out
    assert "Counted by persons, k = " in out
    assert out.splitlines()[-1].startswith("confirmed except: ")
    assert run([*asked, "--person", "patient", *memory, "--accept", "figures,persons"]) == 0
    assert run([*asked, "--identifiers", "patient", *memory, "--accept", "figures"]) == 0


@pytest.mark.slow
def test_typical_values_of_persons_are_not_refused_because_rows_are_sorted(tmp_path, monkeypatch, capsys):
    """A typical value fits every row: released rows that fit the same originals may be of several classes."""
    monkeypatch.chdir(tmp_path)
    rows = [f"p{i // 2},{20 + i % 30},{'fm'[i % 2]},{['flu', 'gout', 'cold'][i % 3]},{i % 2}" for i in range(120)]
    Path("visits.csv").write_text("patient,age,sex,ill,y\n" + "\n".join(rows) + "\n")
    roles = ["--person", "patient", "--target", "y", "--sensitive", "ill", "--quasi-identifiers", "age,sex"]
    made = ["release", "visits.csv", "-m", "mondrian", "-k", "5", *roles, "--cells", "values", "-o", "release.csv"]
    assert run(made) == 0
    asked = ["audit", "release.csv", "--manifest", "release.csv.manifest.json", "--original", "visits.csv", *roles]
    capsys.readouterr()

    assert run(asked) == EXCEPT, capsys.readouterr().out


def test_originals_fit_all_groups_of_the_released_rows_that_they_fit():
    """Rows with typical cells (column 0 fits anything) and a column that is compared exactly."""
    originals, released = np.array([0, 1, 1, 0]), np.array([0, 0, 1, 1])
    anything = CellRule("t", "t", np.zeros(1, dtype=np.int64), np.zeros(2, dtype=np.int64))
    exact = CellRule("e", "e", np.arange(2), np.arange(2))
    cells = np.array([0, 1, 0, 0])
    pairs = Pairs.of(BothBags.of([anything, exact], [np.zeros(4, dtype=np.int64), originals], [cells, released]))
    groups = np.array([0, 1, 0, 0])

    found = set(zip(*(own.tolist() for own in pairs.rows_of_groups(groups)), strict=True))
    fits = {(g, i) for i, o in enumerate(originals) for g, r in zip(groups.tolist(), released, strict=True) if o == r}
    assert found == fits
    assert pairs.group_of_originals(groups) is None
    assert pairs.group_of_originals(np.array([0, 0, 1, 1])).tolist() == [0, 1, 1, 0]
