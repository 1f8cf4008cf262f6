"""β-likeness, δ-disclosure privacy and (α,k)-anonymity: the audit beside the definitions written out."""

import json
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit import measured_level
from sfumato.audit.verify import audit_release
from sfumato.errors import InvalidParameterError
from sfumato.guarantees import AlphaKAnonymity, BetaLikeness, DeltaDisclosure, KAnonymity
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.propose import make_release
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table
from unit.audit.audit_oracles import oracle_groups, small_rows, table_from_rows, table_of

QI = ("a",)
SENSITIVE = st.lists(st.one_of(st.none(), st.integers(0, 3)), min_size=7, max_size=7)


def shares_by_class(rows, sensitive):
    """Give p and q of every value of the table in every class, as fractions."""
    for group in oracle_groups(rows, sensitive):
        yield [
            (Fraction(sensitive.count(value), len(sensitive)), Fraction(group.count(value), len(group)))
            for value in set(sensitive)
        ]


def oracle_likeness(rows, sensitive, enhanced):
    pairs = [pair for of_class in shares_by_class(rows, sensitive) for pair in of_class]
    gains = [((q - p) / p, p) for p, q in pairs if q > p]
    if not rows or (enhanced and any(gain > -math.log(p) + 1e-9 for gain, p in gains)):
        return math.inf
    return float(max((gain for gain, _ in gains), default=0))


def oracle_disclosure(rows, sensitive):
    pairs = [pair for of_class in shares_by_class(rows, sensitive) for pair in of_class]
    return max((abs(math.log(q / p)) if q else math.inf for p, q in pairs), default=math.inf)


def oracle_largest_share(rows, sensitive, k):
    groups = oracle_groups(rows, sensitive)
    if not groups or min(map(len, groups)) < k:
        return math.inf
    return max(group.count(value) / len(group) for group in groups for value in group)


def columns_of(rows):
    return tuple(f"q{i}" for i in range(len(rows[0]) if rows else 0))


@pytest.mark.slow
@given(small_rows(1), SENSITIVE)
def test_levels_follow_the_definitions(rows, values):
    sensitive, over = values[: len(rows)], columns_of(rows)
    table = table_from_rows(rows, sensitive)

    def level(guarantee):
        return measured_level(guarantee, table)

    for likeness in ("basic", "enhanced"):
        expected = oracle_likeness(rows, sensitive, likeness == "enhanced")
        assert level(BetaLikeness(1, "s", over, likeness)) == pytest.approx(expected, abs=1e-12)
    assert level(DeltaDisclosure(1, "s", over)) == pytest.approx(oracle_disclosure(rows, sensitive), abs=1e-12)
    for k in (2, 3):
        expected = oracle_largest_share(rows, sensitive, k)
        assert level(AlphaKAnonymity(0.5, k, "s", over)) == pytest.approx(expected, abs=1e-12)


def test_one_value_is_like_itself():
    """Everybody has it in the table already, so that no class tells more; but all have it, which α is about."""
    table = table_of({"a": list("xxyy"), "s": ["flu"] * 4})

    assert measured_level(BetaLikeness(1, "s", QI), table) == 0
    assert measured_level(BetaLikeness(1, "s", QI, "enhanced"), table) == 0
    assert measured_level(DeltaDisclosure(1, "s", QI), table) == 0
    assert measured_level(AlphaKAnonymity(0.5, 2, "s", QI), table) == 1


def test_missing_is_a_value():
    """A class without it discloses that; a class of it alone, too."""
    lacking = table_of({"a": list("xxyy"), "s": ["flu", None, "flu", "flu"]})
    alone = table_of({"a": list("xxyy"), "s": [None, None, "flu", "flu"]})

    assert measured_level(DeltaDisclosure(1, "s", QI), lacking) == math.inf
    assert measured_level(BetaLikeness(1, "s", QI), alone) == 1
    assert measured_level(AlphaKAnonymity(0.5, 2, "s", QI), alone) == 1


def test_spellings_are_compared_as_values_of_their_own_too():
    """By values both classes are as the table; by spellings each tells which one its rows have. α counts values."""
    table = table_of({"a": list("xxyy"), "s": ["flu", "cold", "Flu", "cold"]})

    assert measured_level(BetaLikeness(1, "s", QI), table) == 1
    assert measured_level(DeltaDisclosure(1, "s", QI), table) == math.inf
    assert measured_level(AlphaKAnonymity(0.5, 2, "s", QI), table) == 0.5


def test_enhanced_likeness_counts_values_where_spellings_are_rarer():
    """A value of two spellings is frequent, and may gain less than a rare spelling could."""
    table = table_of({"a": list("xxxxyyyy"), "s": ["flu", "Flu", "flu", "Flu", "flu", "Flu", "b", "c"]})

    assert measured_level(BetaLikeness(1, "s", QI), table) == 1
    assert -math.log(6 / 8) < 1 / 3
    assert -math.log(3 / 8) > 1 / 3
    assert measured_level(BetaLikeness(1, "s", QI, "enhanced"), table) == math.inf


@pytest.fixture
def table():
    cells = pa.table({"a": list(range(40)), "s": (["flu", "cold", "cough", "flu"] * 10)})
    return Table.from_arrow(cells, Schema.of([Column("a", kind=Kind.NUMERIC), Column("s", Role.SENSITIVE)]))


PROMISES = {
    "beta-likeness": {"beta": 0.7},
    "delta-disclosure": {"delta": 0.6},
    "alpha-k-anonymity": {"alpha": 0.6},
}


@pytest.mark.parametrize("kind", PROMISES)
def test_a_stricter_promise_than_holds_is_refused(kind, table):
    """The level in the manifest is made one that the release does not have; parameters, statement and digest fit."""
    release = make_release(table, build_mechanism("mondrian", {"k": 4, **PROMISES[kind]}))
    (name,) = PROMISES[kind]
    guarantee = next(g for g in release.manifest.promised() if g.kind == kind)
    level = measured_level(guarantee, release.table)
    assert level > 0.05
    stricter = type(guarantee)(**(vars(guarantee) | {name: round(level - 0.02, 2)}))
    honest = release.manifest
    entries = [
        entry
        if entry["kind"] != kind
        else {**stricter.to_dict(), "statement": stricter.describe(), "audited": entry["audited"]}
        for entry in honest.guarantees
    ]
    parameters = {**honest.mechanism["parameters"], name: getattr(stricter, name)}
    forged = release.with_manifest(guarantees=entries, mechanism={**honest.mechanism, "parameters": parameters})

    assert audit_release(release.table, honest.to_dict()).passed
    report = audit_release(forged.table, forged.manifest.to_dict())
    assert [check.name for check in report.checks if not check.passed] == [f"{kind}: level"]


def test_moved_sensitive_values_are_found(table):
    """The rows of one class get one value: every level is another, and no promise holds."""
    release = make_release(
        table, Mondrian(k=4, privacy=[BetaLikeness(0.7), DeltaDisclosure(0.6), AlphaKAnonymity(0.6)])
    )
    cells = {name: release.table[name].cells().to_pylist() for name in ("a", "s")}
    cells["s"] = ["flu" if cell == cells["a"][0] else value for cell, value in zip(cells["a"], cells["s"], strict=True)]
    tampered = Table.from_arrow(pa.table(cells), release.table.schema)

    report = audit_release(tampered, release.manifest.to_dict())

    failed = {check.name: check for check in report.checks if not check.passed}
    assert {f"{kind}: level" for kind in PROMISES} <= set(failed)
    assert failed["delta-disclosure: level"].found == "inf"
    assert "Infinity" not in json.dumps(report.to_dict())


def test_the_k_of_alpha_is_measured_as_well():
    """A promise of (α,k)-anonymity with a larger k than classes have does not hold at any α."""
    cells = {"a": list("xxxyyy"), "s": ["flu", "cold", "b"] * 2}

    assert measured_level(AlphaKAnonymity(0.5, 3, "s", QI), table_of(cells)) == pytest.approx(1 / 3)
    assert not AlphaKAnonymity(0.5, 4, "s", QI).is_met_by(
        measured_level(AlphaKAnonymity(0.5, 4, "s", QI), table_of(cells))
    )


@pytest.mark.parametrize("level", [0, -1, math.inf, math.nan])
def test_levels_that_promise_nothing_or_cannot_be_are_refused(level):
    """By name."""
    for make, name in (
        (lambda: BetaLikeness(level, "s", QI), "beta"),
        (lambda: DeltaDisclosure(level, "s", QI), "delta"),
        (lambda: AlphaKAnonymity(level, 2, "s", QI), "alpha"),
    ):
        with pytest.raises(InvalidParameterError, match=f"^{name} must be"):
            make()
    with pytest.raises(InvalidParameterError, match="alpha must be a number above 0 and below 1"):
        AlphaKAnonymity(1, 2, "s", QI)
    with pytest.raises(InvalidParameterError, match="k must be"):
        AlphaKAnonymity(0.5, 1, "s", QI)


def test_some_columns_only_are_said_to_be():
    """As of l-diversity and t-closeness."""
    over = ("a", "b")
    for guarantee in (
        BetaLikeness(1, "s", over, protected=("a",)),
        DeltaDisclosure(1, "s", over, protected=("a",)),
        AlphaKAnonymity(0.5, 2, "s", over, protected=("a",)),
    ):
        assert guarantee.over == ("a",)
        assert guarantee.describe().endswith("; 1 further quasi-identifying columns are released and NOT PROTECTED")
    assert KAnonymity(2, over).over == over


def test_levels_are_those_of_pycanon_where_it_follows_the_definitions():
    """Where it does not: values that a class lacks (δ), and tables that no β makes enhanced β-like."""
    pandas, pycanon = pytest.importorskip("pandas"), pytest.importorskip("pycanon.anonymity")
    rng = np.random.default_rng(5)
    n_finite = 0
    for _ in range(50):
        n_rows, n_values = int(rng.integers(8, 120)), int(rng.integers(1, 6))
        illness = rng.choice(n_values, n_rows, p=rng.dirichlet(np.ones(n_values))).astype(str)
        cells = {"a": rng.integers(0, 3, n_rows).astype(str), "s": np.char.add("v", illness)}
        table, frame = table_of(cells, {"s": Role.SENSITIVE}), pandas.DataFrame(cells)
        basic, enhanced = (measured_level(BetaLikeness(1, "s", QI, one), table) for one in ("basic", "enhanced"))
        delta = measured_level(DeltaDisclosure(1, "s", QI), table)
        alpha, k = pycanon.alpha_k_anonymity(frame, ["a"], ["s"])

        assert basic == pytest.approx(pycanon.basic_beta_likeness(frame, ["a"], ["s"]), abs=1e-12)
        assert k < 2 or measured_level(AlphaKAnonymity(0.5, int(k), "s", QI), table) == pytest.approx(alpha)
        if math.isfinite(enhanced):
            assert enhanced == pytest.approx(pycanon.enhanced_beta_likeness(frame, ["a"], ["s"]), abs=1e-12)
        if math.isfinite(delta):
            assert delta == pytest.approx(pycanon.delta_disclosure(frame, ["a"], ["s"]), abs=1e-12)
        n_finite += math.isfinite(enhanced) and math.isfinite(delta)
    assert n_finite > 10
