"""β-likeness, δ-disclosure privacy and (α,k)-anonymity as promises of every mechanism that makes groups of rows."""

import json
import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.evaluation.requested_guarantees import AskedGuarantee
from sfumato.guarantees import AlphaKAnonymity, BetaLikeness, DeltaDisclosure
from sfumato.mechanisms.base import settings_of
from sfumato.mechanisms.lattice.conditions import Condition
from sfumato.mechanisms.lattice.gain import GainRecoder
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.large import release_large
from sfumato.publishing.propose import make_release
from sfumato.publishing.publish import publish
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

QUASI = ("age", "job")
MECHANISMS = {
    "mondrian": lambda **given: build_mechanism("mondrian", given),
    "error-risk-tree": lambda **given: build_mechanism("error-risk-tree", {"generalization": "uniform", **given}),
    "global-recoding": lambda **given: build_mechanism("global-recoding", {"max_suppressed_fraction": 0.2, **given}),
    "gain-recoding": lambda **given: build_mechanism("gain-recoding", {"max_suppressed_fraction": 0.2, **given}),
    "local-recoding": lambda **given: build_mechanism("local-recoding", given),
}
PROMISES = {
    "basic": {"beta": 0.8},
    "enhanced": {"beta": 5.0, "likeness": "enhanced"},
    "delta": {"delta": 0.9},
    "alpha": {"alpha": 0.6},
    "all": {"beta": 1.0, "delta": 1.0, "alpha": 0.7, "l": 2, "t": 0.5},
}


def table_of(illness, seed=3, role=Role.SENSITIVE, person=False):
    """Ages and jobs that go with an illness, and a target."""
    rng = np.random.default_rng(seed)
    n_rows = len(illness)
    order = np.argsort([str(value) for value in illness], kind="stable")
    age = np.empty(n_rows, dtype=np.int64)
    age[order] = np.arange(n_rows) // 4 + rng.integers(0, n_rows // 5, n_rows)
    cells = {
        "age": age,
        "job": rng.choice(["a", "b", "c"], n_rows),
        "illness": pa.array(illness),
        "target": rng.choice(["yes", "no"], n_rows),
        **({"who": np.arange(n_rows) // 2} if person else {}),
    }
    columns = [
        Column("age", kind=Kind.NUMERIC),
        Column("job"),
        Column("illness", role),
        Column("target", Role.TARGET),
        *([Column("who", Role.PERSON)] if person else []),
    ]
    return Table.from_arrow(pa.table(cells), Schema.of(columns))


ILLNESSES = ["flu"] * 60 + ["cold"] * 30 + ["cough"] * 20 + [None] * 10


@pytest.fixture(scope="module")
def table():
    return table_of(ILLNESSES)


def classes_of(released, spelled=str):
    rows = zip(*(released[name].cells().to_pylist() for name in (*QUASI, "illness")), strict=True)
    found = {}
    for *key, value in rows:
        found.setdefault(tuple(key), []).append(spelled(value))
    return list(found.values())


def keeps(promise, classes, k):
    """Whether classes keep a promise, by the definitions."""
    whole = [value for own in classes for value in own]
    for own in classes:
        q = {value: n / len(own) for value, n in Counter(own).items()}
        p = {value: n / len(whole) for value, n in Counter(whole).items()}
        gains = {value: q.get(value, 0) / p[value] - 1 for value in p}
        if "beta" in promise and max(gains.values()) > promise["beta"] + 1e-9:
            return False
        if promise.get("likeness") == "enhanced" and any(gains[v] > -math.log(p[v]) + 1e-9 for v in p):
            return False
        if "delta" in promise and any(v not in q or abs(math.log(q[v] / p[v])) >= promise["delta"] for v in p):
            return False
        if "alpha" in promise and (max(q.values()) > promise["alpha"] + 1e-9 or len(own) < k):
            return False
    return True


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("promise", PROMISES)
def test_releases_keep_the_promise_and_the_audit_finds_it(mechanism, promise, table):
    """By the definitions written out; without the promise the same mechanism does not keep it."""
    asked = PROMISES[promise]
    release = make_release(table, MECHANISMS[mechanism](k=4, **asked))
    plain = make_release(table, MECHANISMS[mechanism](k=4))
    kinds = {"beta": "beta-likeness", "delta": "delta-disclosure", "alpha": "alpha-k-anonymity"}

    audited = {entry["kind"]: entry["audited"] for entry in release.manifest.guarantees}
    assert {kinds[name] for name in asked if name in kinds} <= set(audited)
    assert all(audited[kinds[name]] <= asked[name] + 1e-9 for name in asked if name in kinds)
    assert keeps(asked, classes_of(release.table), 4)
    assert not keeps(asked, classes_of(plain.table), 4)
    assert {**asked}.items() <= release.manifest.mechanism["parameters"].items()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_what_is_not_asked_for_is_not_in_the_manifest(mechanism, table):
    """Neither is what more could be said of it."""
    plain, alone = (MECHANISMS[mechanism](k=4, **asked).parameters() for asked in ({}, {"delta": 2.0}))

    assert not {"l", "variant", "c", "t", "distance", "beta", "likeness", "delta", "alpha", "sensitive"} & set(plain)
    assert set(alone) - set(plain) == {"delta"}


def test_classes_are_compared_with_the_rows_that_are_released():
    """An illness of suppressed rows alone is none of the release, whose classes have all that is left."""
    rng = np.random.default_rng(0)
    cells = {
        "age": [1] * 20 + [2] * 20 + [99] * 4,
        "job": ["a"] * 44,
        "illness": [*rng.permutation(["flu", "cold"] * 10), *rng.permutation(["flu", "cold"] * 10), *["rare"] * 4],
    }
    columns = [Column("age"), Column("job"), Column("illness", Role.SENSITIVE)]
    table = Table.from_arrow(pa.table(cells), Schema.of(columns))

    release = make_release(
        table, GlobalRecoder(k=4, max_suppressed_fraction=0.1, privacy=[BetaLikeness(0.1), DeltaDisclosure(0.1)])
    )

    assert release.manifest.suppressed_rows == 4
    assert sorted(set(release.table["age"].cells().to_pylist())) == ["1", "2"]
    assert {g["kind"]: g["audited"] for g in release.manifest.guarantees}["delta-disclosure"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("promise", ["basic", "enhanced", "delta"])
def test_spellings_are_kept_like_the_table_too(mechanism, promise):
    """A release that is like the table by values alone would be refused by the audit."""
    spelled = table_of(["flu", "Flu", "cold", "FLU"] * 30)
    release = make_release(spelled, MECHANISMS[mechanism](k=4, **PROMISES[promise]))

    assert keeps(PROMISES[promise], classes_of(release.table), 4)
    assert keeps(PROMISES[promise], classes_of(release.table, lambda value: value.lower()), 4)


def test_one_value_is_as_like_as_can_be(table):
    """There is nothing to tell; only α asks for more values than there are."""
    same = table_of(["flu"] * 40)

    release = make_release(same, Mondrian(k=4, privacy=[BetaLikeness(0.1, likeness="enhanced"), DeltaDisclosure(0.1)]))
    assert len(classes_of(release.table)) > 1
    with pytest.raises(PrivacyNotAchievableError, match=r"share of at most 0\.5"):
        Mondrian(k=4, privacy=[AlphaKAnonymity(0.5)]).release(same)
    with pytest.raises(PrivacyNotAchievableError):
        GlobalRecoder(k=4, privacy=[AlphaKAnonymity(0.4)]).release(table)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"beta": 0}, "beta"),
        ({"beta": "much"}, "beta"),
        ({"beta": math.inf}, "beta"),
        ({"beta": 1.0, "likeness": "close"}, "likeness"),
        ({"likeness": "enhanced"}, "likeness"),
        ({"delta": -1}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"alpha": 1}, "alpha"),
        ({"alpha": True}, "alpha"),
        ({"alpha": 0.5, "sensitive": "job"}, "sensitive"),
    ],
    ids=str,
)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_what_makes_no_sense_is_refused_by_name(mechanism, given, name, table):
    with pytest.raises(InvalidParameterError) as raised:
        MECHANISMS[mechanism](**{"k": 4, **given}).release(table)

    assert raised.value.name == name


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_sensitive_column_is_needed(mechanism):
    with pytest.raises(SchemaError, match="β-likeness"):
        MECHANISMS[mechanism](k=4, beta=1.0).release(table_of(ILLNESSES, role=Role.OTHER))


@pytest.mark.parametrize("given", [{"beta": 1.0}, {"delta": 1.0}, {"alpha": 0.5}], ids=str)
def test_where_persons_repeat_shares_of_rows_are_not_promised(given):
    """Shares would be those of rows, and one person could have most of them: persons are weighed instead."""
    promised = build_mechanism("mondrian", {"k": 4, **given}).guarantees(table_of(ILLNESSES, person=True))

    kinds = {"beta": "beta-likeness", "delta": "delta-disclosure", "alpha": "alpha-k-anonymity"}
    assert {one.name for one in promised if one.level.name in given} == {f"{kinds[next(iter(given))]} by persons"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "promise"),
    [*(("global-recoding", one) for one in ("enhanced", "delta", "alpha")), ("error-risk-tree", "alpha")],
)
def test_a_table_out_of_core_is_released_as_one_in_memory(name, promise, table, tmp_path):
    """Sensitive values are counted with the distinct rows where they are asked about."""
    mechanism = MECHANISMS[name](k=4, **PROMISES[promise])
    frame = pa.table({name: table[name].cells() for name in table.schema.names()})
    release_large(frame, mechanism, tmp_path / "large.csv", schema=table.schema)
    publish(make_release(table, mechanism), tmp_path / "small.csv", original=table)

    assert (tmp_path / "large.csv").read_bytes() == (tmp_path / "small.csv").read_bytes()
    large, small = (json.loads((tmp_path / f"{name}.csv.manifest.json").read_text()) for name in ("large", "small"))
    assert large["guarantees"] == small["guarantees"]


def test_slicing_leaves_the_useful_columns_unprotected_and_says_so(table):
    release = make_release(table, GainRecoder(k=4, slicing=True, gain_target="illness", privacy=[AlphaKAnonymity(0.9)]))
    alpha = next(g for g in release.manifest.promised() if g.kind == "alpha-k-anonymity")

    assert alpha.protected
    assert set(alpha.protected) < set(alpha.columns)


def test_what_alpha_needs_is_a_number_of_values():
    """Shares of at most α add up over 1/α values at least; of what compares with other classes nothing follows."""
    of_alpha = [AlphaKAnonymity(alpha, 2, "illness", QUASI) for alpha in (0.5, 0.3)]
    compared = BetaLikeness(1.0, "illness", QUASI), DeltaDisclosure(1.0, "illness", QUASI)

    assert [Condition(one).necessary().guarantee.l for one in of_alpha] == [2, 4]
    assert [Condition(one).necessary() for one in compared] == [None, None]
    assert [one.compares_with_table for one in (*of_alpha, *compared)] == [False, False, True, True]


@pytest.mark.parametrize("asked", ["beta=0.5", "delta=0.5", "alpha=0.5"])
def test_a_comparison_can_ask_for_them(asked):
    wanted = AskedGuarantee.parse(asked)
    kind = {"beta": "beta-likeness", "delta": "delta-disclosure", "alpha": "alpha-k-anonymity"}[wanted.name]

    assert wanted.kind == "k-anonymity"
    assert wanted.is_promised_by([{"kind": kind, wanted.name: 0.4, "is_partial": False}])
    assert not wanted.is_promised_by([{"kind": kind, wanted.name: 0.6, "is_partial": False}])
    assert settings_of(build_mechanism("mondrian", {wanted.name: 0.5}))[wanted.name] == 0.5
