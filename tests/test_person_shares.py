"""β-likeness, δ-disclosure and (α,k)-anonymity by persons: weights measured, searched and audited."""

import json
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sfumato.measures.person_weights import PersonPairs
from sfumato.mechanisms.lattice.models import LimitedClasses, PrivacyGoal
from sfumato.mechanisms.person_constraints import check_needs_no_pairs, weights_of_parts
from sfumato.mechanisms.share_limits import SharePromises, limit_of

from sfumato.audit.verify import audit_release
from sfumato.counting.classes import ClassValueCounts
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.guarantees import AlphaKAnonymity, BetaLikeness, DeltaDisclosure
from sfumato.manifest import manifest_digest
from sfumato.measures.value_shares import (
    disclosure_levels,
    disclosure_levels_by_class,
    largest_shares,
    largest_shares_by_class,
    likeness_levels,
    likeness_levels_by_class,
)
from sfumato.mechanisms.lattice.node_checks import NodeChecker
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.lattice.search import search_lattice
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.publish import make_release, propose_release, publish
from sfumato.publishing.reaudit import audit_published
from sfumato.table.coding import Table
from test_person_values import (
    EVERY_ROW,
    ILLNESSES,
    ROWS,
    SCHEMA,
    assert_persons_of_one_row_change_nothing,
    assert_search_finds,
    by_class,
    either_value_in_each_cell,
    kept_classes,
    lattice_problem,
    visits,
    weighed_rows,
)
from tests import person_oracles as oracles
from tests.guarantee_names import by_name
from tests.guarantee_names import name_of as name_of_entry

ASKED = [
    {"beta": 1.2},
    {"beta": 1.5, "likeness": "enhanced"},
    {"delta": 1.6},
    {"alpha": 0.5},
]
LEVELS = {
    "beta": "beta-likeness by persons",
    "delta": "delta-disclosure by persons",
    "alpha": "alpha-k-anonymity by persons",
}


def name_of(asked):
    return next(name for name in LEVELS if name in asked)


def entry_of(release, asked):
    return by_name(release)[LEVELS[name_of(asked)]]


def is_kept(found, asked):
    return found <= asked[name_of(asked)] + 1e-9


# The measures.


@given(ROWS)
def test_measures_of_weights_agree_with_their_definitions(rows):
    classes = by_class(rows)
    table = [row for own in classes for row in own]
    groups, persons, values, weighed = weighed_rows(rows)
    n_values = int(values.max()) + 1
    dense = weights_of_parts(groups, persons, values, n_values)
    overall = weights_of_parts(np.zeros(len(rows), dtype=np.int64), persons, values, n_values)[0]

    for kind in ("basic", "enhanced"):
        expected = pytest.approx([oracles.likeness(own, table, kind) for own in classes], abs=1e-12)
        assert likeness_levels_by_class(weighed, kind) == expected
        assert likeness_levels(dense, overall, kind) == expected
    expected = pytest.approx([oracles.disclosure(own, table) for own in classes], abs=1e-12)
    assert disclosure_levels_by_class(weighed) == expected
    assert disclosure_levels(dense, overall) == expected
    expected = pytest.approx([oracles.largest_share(own) for own in classes])
    assert largest_shares_by_class(weighed) == expected
    assert largest_shares(dense) == expected


def test_shares_of_weights_are_not_monotone():
    """Classes that keep to α, δ and β may not be joined: the example of the measures."""
    one, other = [("p", "a"), ("q", "b")], [("p", "a")] * 99 + [("r", "b")]

    assert oracles.largest_share(one) == oracles.largest_share(other) == 0.5
    assert oracles.largest_share(one + other) == pytest.approx(2 / 3)
    third = [("s", "a"), ("t", "b"), ("u", "a"), ("v", "b"), ("w", "a")]
    table = one + other + third  # both values by half
    for level in (oracles.likeness, oracles.disclosure):
        assert level(one, table) == level(other, table) == 0
        assert level(one + other, table) > 0.3


def test_a_value_of_less_weight_than_a_person_keeps_its_share():
    """A value of one of ten rows of somebody weighs a tenth: it is not taken as that of a whole person."""
    persons, values = np.array([0] * 10 + [1, 2]), np.array([1] + [0] * 11)
    pairs = PersonPairs.of(persons, values)
    counts = ClassValueCounts.of(np.zeros(4, np.int64), np.arange(4), np.array([9, 1, 1, 1]), 1, 4)

    assert likeness_levels_by_class(pairs.weighed(counts)) == pytest.approx([0])
    assert disclosure_levels_by_class(pairs.weighed(counts)) == pytest.approx([0])


# Releases.


def test_levels_by_rows_and_by_persons_differ():
    """Somebody with many rows of one value weighs 1: neither sense follows from the other."""
    table = visits(seed=1)
    release = make_release(table, Mondrian(k=3, alpha=0.5))
    classes = oracles.classes_of(table, release.table, "patient", "illness", ["age", "town"])
    by_rows = max(oracles.largest_share(list(enumerate(value for _, value in rows))) for rows in classes)

    assert by_rows > 0.5 >= oracles.level(classes, {"alpha": 0.5}) - 1e-9


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_where_rows_are_suppressed_what_is_left_keeps_the_promise(asked):
    n_suppressed = 0
    for seed in range(3):
        table = visits(200, 150, seed)
        mechanism = GlobalRecoder(k=4, max_suppressed_fraction=0.5, **asked)
        release = make_release(table, mechanism)
        kept = np.flatnonzero(mechanism.recoding_.setting_of_row >= 0)
        classes = oracles.classes_of(table.take(kept), release.table, "patient", "illness", ["age", "town"])
        assert entry_of(release, asked)["audited"] == pytest.approx(oracles.level(classes, asked), rel=5e-3)
        n_suppressed += release.manifest.suppressed_rows
    assert n_suppressed


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7), st.integers(0, 3)), min_size=6, max_size=40))
@settings(max_examples=40)
def test_every_group_keeps_the_limit_and_no_allowed_cut_is_left(rows):
    cells = {
        "patient": [f"p{person}" for person, _, _ in rows],
        "age": [age for _, age, _ in rows],
        "town": ["Ulm"] * len(rows),
        "illness": ILLNESSES[[value for _, _, value in rows]].tolist(),
        "better": ["no"] * len(rows),
    }
    table = Table.from_arrow(pa.table(cells), SCHEMA)
    if len({*cells["patient"]}) == len(rows):
        return
    whole = [(person, value) for person, _, value in rows]

    def keeps(sides, asked):
        return all(len({p for p, _ in side}) >= 2 for side in sides) and is_kept(
            oracles.level(sides, asked, whole), asked
        )

    def halves(own):
        for cut in sorted({age for _, age, _ in own})[1:]:
            yield [[(p, v) for p, age, v in own if (age >= cut) == is_right] for is_right in (False, True)]

    for asked in ASKED:
        mechanism = Mondrian(k=2, **asked)
        if not keeps([whole], asked) and not any(keeps(sides, asked) for sides in halves(rows)):
            with pytest.raises(PrivacyNotAchievableError):
                mechanism.release(table)
            continue
        groups = mechanism.recode(table).cover.of_row
        for group in np.unique(groups):
            own = [row for row, number in zip(rows, groups, strict=True) if number == group]
            assert keeps([[(p, v) for p, _, v in own]], asked)
            assert not any(keeps(sides, asked) for sides in halves(own))


@pytest.mark.parametrize(
    "promised",
    [
        BetaLikeness(0.6, "", ()),
        BetaLikeness(0.9, "", (), "enhanced"),
        DeltaDisclosure(0.8, "", ()),
        AlphaKAnonymity(0.55, 2, "", ()),
    ],
    ids=lambda one: one.kind,
)
@given(
    st.lists(st.tuples(st.integers(0, 5), *[st.integers(0, 3)] * 3, st.integers(0, 2)), min_size=8, max_size=40),
    st.sampled_from([0.0, 0.2]),
)
@settings(max_examples=30)
def test_the_search_finds_the_best_node_of_all(promised, rows, limit):
    """Nothing may be pruned by a condition that is not monotone, and every node that is found keeps it."""
    persons, *columns, values = (np.array(column) for column in zip(*rows, strict=True))
    problem = lattice_problem(persons, values, columns, [LimitedClasses(limit_of(promised), 1)], limit)
    asked = {promised.level.name: getattr(promised, promised.level.name)}
    asked |= {"likeness": promised.likeness} if isinstance(promised, BetaLikeness) else {}
    every = NodeChecker(problem)
    for levels in product(range(3), repeat=3):
        every.check(levels)
        if whole := kept_classes(every, levels, persons, values):
            assert is_kept(oracles.level(whole, asked), asked)
    assert_search_finds(every.best, problem)


def test_a_node_that_fails_by_weights_does_not_rule_out_those_below():
    n_not_monotone = 0
    for seed in range(40):
        persons, cells, values = either_value_in_each_cell(seed)
        problem = lattice_problem(
            persons, values, [cells], [LimitedClasses(limit_of(AlphaKAnonymity(0.52, 2, "", ())), 1)]
        )
        every = NodeChecker(problem)
        satisfies = [every.check((level,)).satisfies for level in range(3)]
        n_not_monotone += satisfies != sorted(satisfies)
        assert search_lattice(problem).levels == every.best.levels
    assert n_not_monotone


def test_one_person_with_half_of_all_rows_weighs_1():
    cells = visits(200).to_arrow()
    names = pa.array(["often" if i % 2 else f"p{i}" for i in range(200)])
    table = Table.from_arrow(cells.set_column(0, "patient", names), SCHEMA)
    for asked in ASKED:
        release = make_release(table, Mondrian(k=3, **asked))
        classes = oracles.classes_of(table, release.table, "patient", "illness", ["age", "town"])
        assert entry_of(release, asked)["audited"] == pytest.approx(oracles.level(classes, asked), rel=5e-3)


def test_spellings_count_apart_where_shares_are_compared():
    """β and δ hold between spellings too; α counts values, however they are spelled."""
    cells = visits(seed=1).to_arrow()
    shouted = [text.upper() if i % 3 == 0 else text for i, text in enumerate(cells.column("illness").to_pylist())]
    table = Table.from_arrow(cells.set_column(3, "illness", pa.array(shouted)), SCHEMA)
    persons = cells.column("patient").to_pylist()
    for name, asked in product(("mondrian", "global-recoding"), ({"beta": 2.0}, {"alpha": 0.6})):
        release = make_release(table, build_mechanism(name, {"k": 3, **asked, **EVERY_ROW.get(name, {})}))
        released = release.table.to_arrow().select(["age", "town"]).to_pylist()
        found = []
        for spell in (str, str.lower):
            groups = {}
            for row, person, text in zip(released, persons, shouted, strict=True):
                groups.setdefault(tuple(row.values()), []).append((person, spell(text)))
            found.append(oracles.level(list(groups.values()), asked))
        expected = max(found) if "beta" in asked else found[1]
        assert entry_of(release, asked)["audited"] == pytest.approx(expected, rel=5e-3)
        assert is_kept(expected, asked)


@pytest.mark.parametrize("asked", ASKED, ids=str)
@pytest.mark.parametrize("name", ["mondrian", "global-recoding", "local-recoding", "error-risk-tree"])
def test_one_row_a_person_gives_the_bytes_of_a_table_without_persons(tmp_path, name, asked):
    assert_persons_of_one_row_change_nothing(tmp_path, name, asked)


# Refusals.


@pytest.mark.parametrize("asked", [{"alpha": 0.1}, {"delta": 1e-6}, {"beta": 1e-6}], ids=str)
@pytest.mark.parametrize("name", ["mondrian", "global-recoding", "local-recoding", "error-risk-tree"])
def test_what_no_grouping_keeps_is_refused_in_one_sentence(name, asked):
    table = visits(40, 30)
    mechanism = build_mechanism(name, {"k": 3, **asked, **EVERY_ROW.get(name, {})})
    if "alpha" in asked:
        with pytest.raises(PrivacyNotAchievableError, match="by persons") as raised:
            mechanism.release(table)
        assert "\n" not in str(raised.value)
        return
    classes = oracles.classes_of(table, mechanism.release(table).table, "patient", "illness", ["age", "town"])
    assert len(classes) == 1  # all rows together are as the table is, and nothing finer


def test_where_only_persons_were_counted_shares_are_refused():
    with pytest.raises(InvalidParameterError, match="the table is not in memory") as raised:
        check_needs_no_pairs(None, "distinct", None, ("beta",))
    assert raised.value.name == "beta"


# The audit.


def test_the_goal_names_promises_by_persons():
    goal = PrivacyGoal(5, sensitive=("illness",), shares=SharePromises(1.0, delta=2.0, alpha=0.5, k=5), person="who")

    promised = [one.name for one in goal.guarantees(("age",))]
    assert promised == ["k-anonymity", "k-anonymity by persons", *LEVELS.values()]


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_a_release_by_rows_with_promises_by_persons_is_refused(asked):
    n_refused = 0
    for seed in range(4):
        table = visits(seed=seed)
        by_rows = Mondrian(k=4, **asked).release(table.with_schema({"patient": "identifier"}))
        by_persons = Mondrian(k=4, **asked).release(table)
        forged = by_rows.with_manifest(guarantees=by_persons.manifest.guarantees)
        report = audit_release(
            forged.table, forged.manifest.to_dict(), original=table, check_roles=True, check_audited_values=False
        )
        classes = oracles.classes_of(table, forged.table, "patient", "illness", ["age", "town"])
        crowd = min(len({p for p, _ in rows}) for rows in classes)
        keeps = is_kept(oracles.level(classes, asked), asked) and (name_of(asked) != "alpha" or crowd >= 4)
        failed = {check.name for check in report.checks if not check.passed}
        assert (f"{LEVELS[name_of(asked)]}: level" in failed) == (not keeps)
        n_refused += not keeps
    assert n_refused


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_a_level_that_is_not_found_is_refused(asked):
    table = visits()
    release = make_release(table, Mondrian(k=4, **asked))
    kind = LEVELS[name_of(asked)]
    for field in ("audited", name_of(asked)):
        entries = json.loads(json.dumps(release.manifest.to_dict()))
        for entry in entries["guarantees"]:
            if name_of_entry(entry) == kind:
                entry[field] /= 2
        entries["digest"] = manifest_digest(entries)
        report = audit_release(release.table, entries, original=table, check_roles=True)
        assert any(check.name.startswith(kind) for check in report.checks if not check.passed)


def test_the_k_of_a_share_counts_persons():
    """Groups of four rows of two persons are not (α, 4)-anonymous by persons, whatever their shares."""
    cells = {
        "patient": [*"aabbcdef"],
        "age": [30] * 4 + [60] * 4,
        "town": ["Ulm"] * 8,
        "illness": ["flu", "flu", "cold", "cold"] * 2,
        "better": ["no"] * 8,
    }
    table = Table.from_arrow(pa.table(cells), SCHEMA)
    by_rows = Mondrian(k=4, alpha=0.5).release(table.with_schema({"patient": "identifier"}))
    by_persons = Mondrian(k=4, alpha=0.5).release(table)
    forged = by_rows.with_manifest(guarantees=by_persons.manifest.guarantees)
    report = audit_release(forged.table, forged.manifest.to_dict(), original=table, check_audited_values=False)

    (check,) = (check for check in report.checks if check.name == "alpha-k-anonymity by persons: level")
    assert not check.passed
    assert check.found == "inf"
    assert len(oracles.classes_of(table, by_persons.table, "patient", "illness", ["age", "town"])) == 1


def test_another_column_than_the_declared_one_is_refused():
    table = visits()
    release = make_release(table, Mondrian(k=4, alpha=0.6))
    entries = json.loads(json.dumps(release.manifest.to_dict()))
    for entry in entries["guarantees"]:
        if entry["unit"] == "patient":
            entry["unit"] = "better"
    entries["digest"] = manifest_digest(entries)

    report = audit_release(release.table, entries, original=table, check_roles=True)
    assert "alpha-k-anonymity by persons: persons" in {check.name for check in report.checks if not check.passed}


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_a_published_file_is_confirmed_with_its_original(tmp_path, asked):
    table = visits()
    published = publish(propose_release(table, Mondrian(k=3, **asked)), tmp_path / "out.csv", original=table)

    assert audit_published(published.table_path, published.manifest_path, original=table, check_roles=True).passed
