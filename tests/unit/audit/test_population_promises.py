"""Promises about a population table: checked, left open without it, refused where they are forged."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from sfumato import release
from sfumato.audit.auditor import AuditorHas
from sfumato.audit.levels.population import _check_lists, _check_once_each
from sfumato.audit.verify import audit_release
from sfumato.datasets.admissions import admissions
from sfumato.errors import ColumnNotFoundError, InvalidParameterError, PrivacyNotAchievableError
from sfumato.guarantees import KMap, Presence
from sfumato.manifest import with_audited
from sfumato.mechanisms.lattice.gain import GainRecoder
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.population import Population
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.propose import make_release
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

NAMES = ["age", "sex", "insurance", "readmitted"]


@pytest.fixture(scope="module")
def people():
    return admissions(n_rows=900).keep(NAMES)


@pytest.fixture(scope="module")
def sample(people):
    return people.take(np.arange(0, 900, 9))


@pytest.fixture(scope="module")
def made(people, sample):
    return release(sample, Mondrian(k=1, privacy=[KMap(k_map=4), Presence(delta_max=0.5)]), population=people)


def _audit(made, people=None, original=None, **changes):
    manifest = replace(made.manifest, **changes)
    return audit_release(made.table, manifest.to_dict(), AuditorHas(original=original, register=people))


def _promising(made, kind, **changes):
    """State another promise, in all places of the manifest, as somebody would who forges it."""
    entries, parameters = [], dict(made.manifest.mechanism["parameters"])
    for entry, promise in zip(made.manifest.guarantees, made.manifest.promised(), strict=True):
        if promise.kind == kind:
            promise = replace(promise, **changes)
            entry = promise.to_dict() | {"statement": promise.describe(), "audited": entry["audited"]}
            parameters |= {name: value for name, value in changes.items() if name in parameters}
        entries.append(entry)
    return {"guarantees": tuple(entries), "mechanism": {**made.manifest.mechanism, "parameters": parameters}}


def test_promises_are_confirmed_beside_the_register_only(made, people, sample):
    whole = _audit(made, people, sample)
    assert whole.passed
    assert not [one for one in whole.unchecked if one.name == "promises"]
    alone = _audit(made, original=sample)
    assert alone.passed
    assert alone.verdict == "confirmed except"
    left = [one for one in alone.unchecked if one.name == "promises"]
    assert [one.remedy for one in left] == ["give the population table"] * 2
    assert alone.levels == (None, None)


def test_a_promise_says_what_it_rests_on(made, people):
    for entry in made.manifest.guarantees:
        assert entry["people"] == people.n_rows
        assert "register" not in entry
        assert "against an attacker who holds this population table of 900 people" in entry["statement"]
        assert "a newer one may change it" in entry["statement"]


@pytest.mark.parametrize(
    ("kind", "changes", "failed"),
    [
        ("k-map", {"k_map": 90}, "k-map: level"),
        ("k-map", {"people": 901}, "k-map: people"),
        ("delta-presence", {"delta_max": 0.05}, "delta-presence: level"),
        ("delta-presence", {"delta_min": 0.04}, "delta-presence: delta_min"),
    ],
)
def test_a_forged_promise_is_refused(made, people, kind, changes, failed):
    report = _audit(made, people, **_promising(made, kind, **changes))
    assert failed in [check.name for check in report.checks if not check.passed]


def test_a_forged_level_is_refused(made, people):
    forged = tuple(with_audited(made.manifest.guarantees, [7, 0.3]))
    names = [check.name for check in _audit(made, people, guarantees=forged).checks if not check.passed]
    assert {"k-map: audited level", "delta-presence: audited level"} <= set(names)


def test_another_register_is_not_what_the_promise_is_about(made, people, sample):
    fewer = people.take(np.arange(0, 900, 3))
    assert not _audit(made, fewer, sample).passed


def test_presence_needs_classes_that_nobody_fits_two_of_and_a_sample(people, sample):
    """A k-anonymous release whose manifest is given a claim of δ-presence that it does not have."""
    overlapping = release(sample, Mondrian(k=4, strict=False, split="median"))
    columns = overlapping.table.schema.names(Role.QUASI_IDENTIFIER)
    claim = Presence(people=900, columns=columns, delta_max=0.9)
    entry = claim.to_dict() | {"statement": claim.describe(), "audited": 0.5}
    forged = {"guarantees": (*overlapping.manifest.guarantees, entry)}
    failed = [check.name for check in _audit(overlapping, people, sample, **forged).checks if not check.passed]
    assert {"delta-presence: classes", "delta-presence: level"} <= set(failed)
    others = people.take(np.flatnonzero(np.arange(900) % 9))
    failed = [check.name for check in _audit(overlapping, others, sample, **forged).checks if not check.passed]
    assert "delta-presence: sample of the population" in failed


@pytest.mark.parametrize("mechanism", [Mondrian, GlobalRecoder, GainRecoder])
def test_k_anonymity_stays_promised_unless_k_is_one(mechanism, people, sample):
    both = release(sample, mechanism(k=3, privacy=[KMap(k_map=20)]), population=people)
    assert [g.kind for g in both.manifest.promised()] == ["k-anonymity", "k-map"]
    assert both.manifest.guarantees[0]["audited"] >= 3
    assert both.manifest.guarantees[1]["audited"] >= 20
    one = release(sample, mechanism(k=1, privacy=[KMap(k_map=20)]), population=people)
    assert [g.kind for g in one.manifest.promised()] == ["k-map"]
    with pytest.raises(InvalidParameterError, match="at least 2"):
        release(sample, mechanism(k=1))
    with pytest.raises(InvalidParameterError, match="at least 2"):
        release(sample, mechanism(k=1, privacy=[Presence(delta_max=0.5)]), population=people)


def test_a_population_table_changes_no_default(people, sample):
    """What is released without it is released without it to the byte, parameters of the manifest included."""
    plain = release(sample, Mondrian(k=3))
    assert not {"k_map", "delta_max", "delta_min"} & plain.manifest.mechanism["parameters"].keys()
    with pytest.raises(InvalidParameterError, match="neither k_map nor delta_max"):
        release(sample, Mondrian(k=3), population=people)


@pytest.mark.parametrize("name", ["auto", "local-recoding", "anatomy", "random-flipping", "error-risk-tree"])
def test_others_refuse_and_name_those_that_can(name, people, sample):
    with pytest.raises(InvalidParameterError, match="mondrian, global-recoding or gain-recoding"):
        release(sample, build_mechanism(name, {}), population=people)


def test_what_cannot_be_promised_is_refused(people, sample):
    register = Population.of(people)
    cases = [
        (Mondrian(privacy=[KMap(k_map=4)]), None, "table of the population"),
        (Mondrian(strict=False, privacy=[KMap(k_map=4)]), register, "strict"),
        (Mondrian(privacy=[Presence(delta_max=0.5, delta_min=0.1)]), register, "delta_min"),
        (GlobalRecoder(privacy=[Presence(delta_max=0.5, delta_min=0.1)]), register, "max_suppressed_fraction"),
        (GainRecoder(slicing=True, privacy=[KMap(k_map=4)]), register, "slicing"),
    ]
    for mechanism, given, said in cases:
        asked = mechanism if given is None else mechanism.with_population(given)
        with pytest.raises(InvalidParameterError, match=said):
            make_release(sample, asked)
    settings = [({"k_map": 1}, "at least 2"), ({"k_map": 4, "delta_min": 0.1}, "delta_max")]
    for given, said in [*settings, ({"delta_max": 0.1, "delta_min": 0.5}, "delta_min")]:
        with pytest.raises(InvalidParameterError, match=said):
            build_mechanism("global-recoding", given)
    with pytest.raises(PrivacyNotAchievableError, match="1,000 people"):
        release(sample, Mondrian(k=1, privacy=[KMap(k_map=1000)]), population=people)
    with pytest.raises(ColumnNotFoundError, match="population table"):
        release(sample, Mondrian(privacy=[KMap(k_map=4)]), population=people.keep(["age"]))
    with pytest.raises(InvalidParameterError, match="not in the population table"):
        release(sample, Mondrian(privacy=[Presence(delta_max=0.5)]), population=people.take(np.arange(1, 900)))


def test_persons_with_several_rows_are_refused(people, sample):
    visits = admissions(n_rows=900)
    name = next(c.name for c in visits.schema if c.name not in NAMES)
    twice = visits.with_schema({name: Role.PERSON}).take(np.repeat(np.arange(0, 900, 9), 2))
    with pytest.raises(InvalidParameterError, match="several rows"):
        release(twice.keep([*NAMES, name]), Mondrian(privacy=[KMap(k_map=4)]), population=people)


def test_the_constructor_refuses_what_promises_nothing():
    columns = ("age",)
    for wrong in ({"k_map": 1}, {"k_map": 2.5}):
        with pytest.raises(InvalidParameterError):
            KMap(people=10, columns=columns, **wrong)
    for wrong in ({"delta_max": 1.0}, {"delta_max": 0.0}, {"delta_max": 0.3, "delta_min": 0.4}):
        with pytest.raises(InvalidParameterError):
            Presence(people=10, columns=columns, **wrong)


def test_rows_of_the_population_are_counted_exactly_where_values_are_known(people, sample):
    """δ_min above 0: everybody must fit a row, values that the sample lacks included, which ``*`` means too."""
    asked = GlobalRecoder(k=2, max_suppressed_fraction=0.0, privacy=[Presence(delta_max=0.5, delta_min=0.05)])
    made = release(sample, asked, population=people)
    promise = made.manifest.promised()[-1]
    assert (promise.delta_min, promise.delta_max) == (0.05, 0.5)
    assert made.manifest.suppressed_rows == 0


@pytest.mark.parametrize(
    "labels",
    [
        lambda age: {str(age): [str(a) for a in range(20, 40)]},
        lambda age: {f"only {age}": [str(a) for a in range(20, 40)]},
    ],
    ids=["a value that means all", "labels with one list"],
)
def test_lists_cannot_say_that_a_cell_means_everybody(labels):
    """Twenty exact rows whose manifest lists all ages for each of them: everybody would fit every row."""
    ages = list(range(20, 40))
    roles = [Column("age", Role.QUASI_IDENTIFIER, kind=Kind.NUMERIC)]
    people = Table.from_arrow(pa.table({"age": ages}), Schema.of(roles))
    listed = {label: members for age in ages for label, members in labels(age).items()}
    released = Table.from_arrow(pa.table({"age": list(listed)}), Schema.of(roles))
    claims = SimpleNamespace(recodings={"age": SimpleNamespace(rule="hierarchy", column="age", labels=listed)})
    given = SimpleNamespace(released=released, table=people, original=None, claims=claims)

    (check,) = _check_lists(KMap(k_map=4, columns=("age",), people=20), given)

    assert not check.passed


def test_a_register_with_a_person_twice_is_refused_by_mechanism_and_audit():
    names = [f"P{i % 10}" for i in range(40)]
    roles = [Column("who", Role.IDENTIFIER), Column("age", Role.QUASI_IDENTIFIER, kind=Kind.NUMERIC)]
    visits = Table.from_arrow(pa.table({"who": names, "age": [20 + i % 5 for i in range(40)]}), Schema.of(roles))
    mechanism = Mondrian(k=1, privacy=[KMap(k_map=2)]).with_population(Population.of(visits))

    with pytest.raises(InvalidParameterError, match="several rows with the same 'who'"):
        mechanism.release(visits.take(np.arange(10)))
    given = SimpleNamespace(table=visits, original=visits)
    (check,) = _check_once_each("k-map", given)
    assert not check.passed
