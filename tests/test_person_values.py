"""l, t, β, δ and α by persons: values of different persons, weights of persons; measured, searched and audited."""

import json
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.auditor import AuditorHas, PublisherKnows
from sfumato.audit.verify import audit_release
from sfumato.counting.counts import Counts, DenseCounts, Pairs
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.guarantees import AlphaKAnonymity, BetaLikeness, DeltaDisclosure, KAnonymity, LDiversity, TCloseness
from sfumato.learning.c45.criteria import Entropy
from sfumato.learning.c45.grow import grow
from sfumato.learning.c45.tree import TreeColumn, route
from sfumato.manifest import manifest_digest
from sfumato.measures.diversity import recursive_diversity
from sfumato.measures.value_shares import disclosure_levels, likeness_levels
from sfumato.mechanisms.constraints import Limit, Promised
from sfumato.mechanisms.lattice.conditions import Condition, PrivacyGoal
from sfumato.mechanisms.lattice.lattice import LatticeProblem
from sfumato.mechanisms.lattice.node_checks import NodeChecker
from sfumato.mechanisms.lattice.search import search_lattice
from sfumato.mechanisms.mondrian.allowed_cuts import allowed_cuts, weights_of_sides
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.mondrian.parts import SortedParts, stretches
from sfumato.mechanisms.registry import build_mechanism
from sfumato.mechanisms.requested import Requested, check_needs_no_pairs
from sfumato.mechanisms.tree.groups import nodes_allowed_by_persons
from sfumato.publishing.propose import make_release, propose_release
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table
from sfumato.table.persons import one_row_per_person
from sizes import examples
from tests import person_oracles as oracles
from tests.guarantee_names import by_name, name_of

SCHEMA = Schema.of(
    [
        Column("patient", Role.PERSON),
        Column("age", Role.QUASI_IDENTIFIER, Kind.NUMERIC),
        Column("town", Role.QUASI_IDENTIFIER),
        Column("illness", Role.SENSITIVE),
        Column("better", Role.TARGET),
    ]
)
ILLNESSES = np.array(["cold", "cough", "flu", "gout", "mumps"])
ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=40
)  # class, person, value
ASKED = [
    {"l": 2},
    {"l": 3},
    {"l": 4},
    {"l": 2.5, "variant": "entropy"},
    {"l": 2, "variant": "recursive", "c": 1.5},
    {"t": 0.35},
    {"t": 0.3, "distance": "ordered"},
    {"beta": 1.2},
    {"beta": 1.5, "likeness": "enhanced"},
    {"delta": 1.6},
    {"alpha": 0.5},
]
KINDS = {"l": LDiversity, "t": TCloseness, "beta": BetaLikeness, "delta": DeltaDisclosure, "alpha": AlphaKAnonymity}


EVERY_ROW = {
    "global-recoding": {"max_suppressed_fraction": 0.0},
    "gain-recoding": {"max_suppressed_fraction": 0.0},
    "error-risk-tree": {"generalization": "uniform"},
}


def promise_of(asked, sensitive="illness", columns=("age", "town")):
    """Guarantee by persons that parameters of a mechanism ask for."""
    (level,) = set(asked) & set(KINDS)
    own = {**asked, **({"k": 2} if level == "alpha" else {})}
    return KINDS[level](sensitive=sensitive, columns=columns, unit="patient", **own)


def is_kept(found, asked):
    return promise_of(asked).is_met_by(found)


def entry_of(release, asked):
    return by_name(release)[promise_of(asked).name]


def visits(n_rows=300, n_persons=120, seed=0):
    """Make visits: some people come often, mostly with the same illness."""
    random = np.random.default_rng(seed)
    persons = np.minimum(random.geometric(6 / n_persons, n_rows) - 1, n_persons - 1)
    usual = random.integers(0, 5, n_persons)[persons]
    ages = random.integers(20, 80, n_persons)[persons] + random.integers(0, 2, n_rows)
    cells = {
        "patient": pa.array([f"p{person}" for person in persons]),
        "age": pa.array(ages),
        "town": pa.array(np.array(["Ulm", "Bonn", "Kiel", "Jena"])[random.integers(0, 4, n_persons)[persons]]),
        "illness": pa.array(ILLNESSES[np.where(random.random(n_rows) < 0.7, usual, random.integers(0, 5, n_rows))]),
        "better": pa.array(np.where(random.random(n_rows) < ages / 100, "no", "yes")),
    }
    return Table.from_arrow(pa.table(cells), SCHEMA)


def assert_persons_of_one_row_change_nothing(folder, name, asked):
    """Compare the files of a table of one row a person with those of the same table without persons."""
    kept = Table.from_arrow(one_row_per_person(visits(600, 200), "first").to_arrow(), SCHEMA)
    manifests = []
    for role in ("person", "identifier"):
        described = kept.with_schema({"patient": role})
        proposed = propose_release(described, build_mechanism(name, {"k": 3, **asked, **EVERY_ROW.get(name, {})}))
        published = publish(proposed, folder / f"{role}.csv", original=described)
        entries = json.loads(published.manifest_path.read_text())
        entries["output"].pop("name")
        entries.pop("digest")
        manifests.append(entries)

    assert (folder / "person.csv").read_bytes() == (folder / "identifier.csv").read_bytes()
    assert manifests[0] == manifests[1]


def counted_rows(rows):
    """Count the persons and values of the classes of rows."""
    number = {group: i for i, group in enumerate(sorted({group for group, _, _ in rows}))}
    groups = np.array([number[group] for group, _, _ in rows])
    persons, values = np.array([(person, value) for _, person, value in rows]).T
    return Counts.of_rows(groups, values, persons)


def kept_classes(every, levels, persons, values):
    """Persons and values of the rows of each class of a node that is not suppressed."""
    classes = every.roll_up.classes_of_cells(levels)
    kept = every.judge.judge(every.roll_up.table(levels)).kept[classes]
    return [
        [(p, v) for p, v, number in zip(persons[kept], values[kept], classes[kept], strict=True) if number == c]
        for c in np.unique(classes[kept])
    ]


def assert_search_finds(best, problem):
    """Compare what the search finds with the best of all nodes; ``None``: there is none."""
    if best is None:
        with pytest.raises(PrivacyNotAchievableError):
            search_lattice(problem)
        return
    found = search_lattice(problem)

    assert found.proven
    assert (found.loss, sum(found.levels), found.levels) == best.rank


def either_value_in_each_cell(seed):
    """Draw persons, cells and values: in each cell one person of either value, with some rows each."""
    random = np.random.default_rng(seed)
    rows = []
    for cell in range(4):
        for person, value in ((random.integers(0, 4), 0), (random.integers(4, 8), 1)):
            rows += [(person, cell, value)] * int(random.integers(1, 5))
    return (np.array(column) for column in zip(*rows, strict=True))


# The measures.


def by_class(rows):
    classes = {}
    for group, person, value in rows:
        classes.setdefault(group, []).append((person, value))
    return [classes[group] for group in sorted(classes)]


@given(ROWS)
def test_levels_agree_with_their_definitions(rows):
    classes = by_class(rows)
    counts = counted_rows(rows)
    table = [row for own in classes for row in own]
    asked = [*ASKED, {"l": 2, "variant": "recursive", "c": 0.5}, {"l": 2, "variant": "recursive", "c": 3}]

    assert counts.n_units.tolist() == [len({person for person, _ in own}) for own in classes]
    for one in asked:
        expected = [oracles.level([own], one, table) for own in classes]
        promise = promise_of(one)
        assert promise.levels(counts) == pytest.approx(expected, abs=1e-12)
        assert promise.are_kept_by(counts).tolist() == [promise.is_met_by(level) for level in expected]
        if one.get("variant", "distinct") != "distinct" or "l" not in one:
            weights = counts.weights
            dense = DenseCounts(weights.dense(weights.n_values), weights.value_totals)
            assert promise.levels(dense) == pytest.approx(expected, abs=1e-12)


@given(ROWS)
def test_one_less_is_left_whoever_is_taken_out(rows):
    """A matching of size l leaves one of size l - 1."""
    (own, *_) = by_class(rows)
    level = oracles.matched_level(own)
    for person in {person for person, _ in own}:
        assert oracles.matched_level([row for row in own if row[0] != person] or [(0, 0)]) >= level - 1


@given(ROWS)
def test_with_one_row_a_person_levels_are_those_of_rows(rows):
    values = np.array([value for _, _, value in rows])
    persons, one_class = np.arange(len(rows)), np.zeros(len(rows), dtype=np.int64)

    assert Counts.of_rows(one_class, values, persons).matched()[0] == len(set(values.tolist()))
    assert all(weight.denominator == 1 for weight in oracles.weights(list(enumerate(values))).values())


def test_weights_are_not_monotone():
    """The example of the module: both classes have both values by half, and their union has not."""
    one, other = [("p", "a"), ("q", "b")], [("p", "a")] * 99 + [("r", "b")]

    assert oracles.weights(one) == oracles.weights(other) == {"a": 1, "b": 1}
    assert oracles.weights(one + other) == {"a": 1, "b": 2}


def test_a_weight_that_is_equal_is_not_below():
    """Three thirds are 1, whatever the sum of floating-point thirds is."""
    thirds = np.array([[1 / 3 + 1 / 3 + 1 / 3, 1 / 3 + 1 / 3 + 1 / 3 + 1e-16]])

    assert recursive_diversity(DenseCounts.alone(thirds), 1).tolist() == [1.0]
    assert recursive_diversity(DenseCounts.alone(np.array([[1.0, 1.0]])), 1).tolist() == [1.0]


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
    counts = Counts.of_rows(np.zeros(12, np.int64), values, persons)

    assert likeness_levels(counts) == pytest.approx([0])
    assert disclosure_levels(counts) == pytest.approx([0])


# Mondrian's cuts.


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 6), st.integers(0, 3)), min_size=4),
    st.booleans(),
)
def test_sides_of_cuts_are_judged_as_by_their_definitions(rows, is_divided):
    first, second, persons, codes = (np.array(column, dtype=np.int32) for column in zip(*rows, strict=True))
    for axis in (first, second):
        axis[:] = np.unique(axis, return_inverse=True)[1]
    within = np.unique(first % 2, return_inverse=True)[1].astype(np.int32) if is_divided else None
    parts = SortedParts.of([first, second], within)
    cuts = parts.cuts_between_values(1)
    n_values = int(codes.max()) + 1
    sides = []
    for axis, part, index in zip(cuts.axis, cuts.part, cuts.index, strict=True):
        places = parts.rows[axis]
        low, high = parts.starts[part], parts.starts[part + 1]
        sides.append(
            [[(int(persons[r]), int(codes[r])) for r in own] for own in (places[low:index], places[index:high])]
        )

    for side, n_persons in enumerate(parts.persons_of_sides(cuts, persons)):
        assert n_persons.tolist() == [len({person for person, _ in own[side]}) for own in sides]
    for at in stretches(parts, cuts, n_values):
        for found, side in zip(weights_of_sides(parts, at, codes, persons), (0, 1), strict=True):
            for row, number in zip(found, range(at.taken.start, at.taken.stop), strict=True):
                expected = oracles.weights(sides[number][side])
                assert row == pytest.approx([float(expected.get(v, 0)) for v in range(n_values)])
    for least in (2, 3):
        kept = allowed_cuts(parts, cuts, Limit(Promised(LDiversity(least, "", ())), codes, persons))
        allowed = [min(map(oracles.matched_level, own)) >= least for own in sides]
        assert list(zip(kept.axis, kept.index, strict=True)) == [
            pair for pair, is_it in zip(zip(cuts.axis, cuts.index, strict=True), allowed, strict=True) if is_it
        ]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7), st.integers(0, 3)), min_size=6, max_size=40))
@examples(60)
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

    for asked in ASKED[1:]:  # distinct 2 follows from two persons, and is asked of rows
        mechanism = build_mechanism("mondrian", {"k": 2, **asked})
        if not keeps([whole], asked) and not any(keeps(sides, asked) for sides in halves(rows)):
            with pytest.raises(PrivacyNotAchievableError):
                mechanism.release(table)
            continue
        groups = mechanism.recode(table).cover.of_row
        for group in np.unique(groups):
            own = [row for row, number in zip(rows, groups, strict=True) if number == group]
            assert keeps([[(p, v) for p, _, v in own]], asked)
            assert not any(keeps(sides, asked) for sides in halves(own))


# Releases.


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_where_rows_are_suppressed_what_is_left_keeps_the_promise(asked):
    """The audit finds the rows of each group; here they are found by looking each row up in the recoded levels."""
    n_suppressed = 0
    for seed in range(4):
        table = visits(200, 150, seed)
        mechanism = build_mechanism("global-recoding", {"k": 4, "max_suppressed_fraction": 0.5, **asked})
        release = make_release(table, mechanism)
        kept = np.flatnonzero(mechanism.recoding_.setting_of_row >= 0)
        classes = oracles.classes_of(table.take(kept), release.table, "patient", "illness", ["age", "town"])
        assert entry_of(release, asked)["audited"] == pytest.approx(oracles.level(classes, asked), rel=5e-3)
        n_suppressed += release.manifest.suppressed_rows
    assert n_suppressed


def lattice_problem(persons, values, columns, asked, limit=0.0):
    """Make a problem of columns of four values that are halved twice."""
    pairs, n_persons = Pairs.of(persons, values), int(persons.max()) + 1
    steps = (np.arange(4), np.arange(4) // 2, np.zeros(4, dtype=np.int64))
    shares = (np.full(4, 0.25), np.full(2, 0.5), np.ones(1))
    return LatticeProblem(
        np.column_stack(columns),
        np.ones(len(persons), dtype=np.int64),
        (steps,) * len(columns),
        (shares,) * len(columns),
        k=2,
        max_suppressed_fraction=limit,
        conditions=(
            Condition(KAnonymity(2, (), unit="patient"), 0, Pairs.of_units(n_persons)),
            Condition(promise_of(asked), 2, pairs, values=1),
        ),
        sensitive=(persons, values, pairs.find(persons, values)),
    )


@pytest.mark.parametrize("asked", [{"l": 1.9, "variant": "entropy"}, {"alpha": 0.52}], ids=str)
def test_a_node_that_fails_by_weights_does_not_rule_out_those_below(asked):
    """Classes with a person of either value are diverse; joined they need not be, whatever a person's rows weigh."""
    n_not_monotone = 0
    for seed in range(60):
        persons, cells, values = either_value_in_each_cell(seed)
        problem = lattice_problem(persons, values, [cells], asked)
        every = NodeChecker(problem)
        satisfies = [every.check((level,)).satisfies for level in range(3)]
        n_not_monotone += satisfies != sorted(satisfies)
        assert search_lattice(problem).levels == every.best.levels
    assert n_not_monotone


SEARCHED = [*ASKED[:7], {"beta": 0.6}, {"beta": 0.9, "likeness": "enhanced"}, {"delta": 0.8}, {"alpha": 0.55}]


@pytest.mark.parametrize("asked", SEARCHED, ids=str)
@given(
    st.lists(st.tuples(st.integers(0, 5), *[st.integers(0, 3)] * 3, st.integers(0, 2)), min_size=8, max_size=40),
    st.sampled_from([0.0, 0.2]),
)
@examples(40)
def test_the_search_finds_the_best_node_of_all(asked, rows, limit):
    """Also where the condition is not monotone: nothing may be pruned by it, and every node that is found keeps it."""
    persons, *columns, values = (np.array(column) for column in zip(*rows, strict=True))
    problem = lattice_problem(persons, values, columns, asked, limit)
    every = NodeChecker(problem)
    for levels in product(range(3), repeat=3):
        every.check(levels)
        if whole := kept_classes(every, levels, persons, values):
            assert is_kept(oracles.level(whole, asked), asked)
    assert_search_finds(every.best, problem)


def test_classes_that_may_not_be_joined_are_found():
    """Persons make both classes diverse by half and half, and all rows together are not: a search must not prune."""
    cells = {
        "patient": ["p", "q", "p", "p", "p", "r"],
        "age": [30, 30, 60, 60, 60, 60],
        "town": ["Ulm"] * 6,
        "illness": ["flu", "cold", "flu", "flu", "flu", "cold"],
        "better": ["no"] * 6,
    }
    table = Table.from_arrow(pa.table(cells), SCHEMA)
    for name in ("global-recoding", "mondrian"):
        asked = {"k": 2, "l": 2, "variant": "entropy", **EVERY_ROW.get(name, {})}
        release = make_release(table, build_mechanism(name, asked))
        assert by_name(release)["l-diversity by persons"]["audited"] == 2
        assert len(oracles.classes_of(table, release.table, "patient", "illness", ["age", "town"])) == 2


def test_values_of_one_person_are_not_diverse():
    """One patient with three illnesses makes rows diverse; persons are not."""
    cells = {
        "patient": ["a"] * 3 + ["b"] + ["c"],
        "age": [30] * 5,
        "town": ["Ulm"] * 5,
        "illness": ["flu", "cold", "gout", "flu", "flu"],
        "better": ["no"] * 5,
    }
    table = Table.from_arrow(pa.table(cells), SCHEMA)
    for name in ("mondrian", "global-recoding", "local-recoding", "error-risk-tree"):
        more = EVERY_ROW.get(name, {})
        with pytest.raises(PrivacyNotAchievableError, match="by persons") as raised:
            build_mechanism(name, {"k": 2, "l": 3, **more}).release(table)
        assert raised.value.best_level == 2
        assert make_release(table, build_mechanism(name, {"k": 2, "l": 2, **more})) is not None


def test_spellings_of_a_value_are_one_value_of_a_person():
    cells = visits(seed=1).to_arrow()
    shouted = [text.upper() if i % 3 == 0 else text for i, text in enumerate(cells.column("illness").to_pylist())]
    table = Table.from_arrow(cells.set_column(3, "illness", pa.array(shouted)), SCHEMA)
    plain = [(p, v.lower()) for p, v in zip(cells.column("patient").to_pylist(), shouted, strict=True)]
    for name in ("mondrian", "global-recoding"):
        release = make_release(table, build_mechanism(name, {"k": 3, "l": 3, **EVERY_ROW.get(name, {})}))
        groups = {}
        for row, own in zip(release.table.to_arrow().select(["age", "town"]).to_pylist(), plain, strict=True):
            groups.setdefault(tuple(row.values()), []).append(own)
        assert (
            by_name(release)["l-diversity by persons"]["audited"]
            == min(map(oracles.matched_level, groups.values()))
            >= 3
        )
    close = make_release(table, Mondrian(k=3, privacy=[TCloseness(0.5)]))
    assert by_name(close)["t-closeness by persons"]["audited"] <= 0.5


@pytest.mark.sampled
@pytest.mark.parametrize("asked", ASKED, ids=str)
@pytest.mark.parametrize("name", ["mondrian", "global-recoding", "local-recoding", "error-risk-tree"])
def test_one_row_a_person_gives_the_bytes_of_a_table_without_persons(tmp_path, name, asked):
    assert_persons_of_one_row_change_nothing(tmp_path, name, asked)


# Trees.


@pytest.mark.sampled
@pytest.mark.parametrize("rule", ["lowest", "literal"])
@pytest.mark.parametrize("refine", [True, False])
@pytest.mark.parametrize("guide", ["label", "score"])
def test_leaves_of_trees_are_those_of_k_persons(rule, refine, guide):
    table = visits(600, 200, 1)
    asked = {"generalization": "uniform", "rule": rule, "refine": refine, "guide": guide, "min_samples_leaf": 2}
    release = make_release(table, build_mechanism("error-risk-tree", {"k": 4, **asked}))
    classes = oracles.classes_of(table, release.table, "patient", "illness", ["age", "town"])
    smallest = min(len({person for person, _ in rows}) for rows in classes)

    assert by_name(release)["k-anonymity by persons"]["audited"] == smallest >= 4
    assert len(classes) > 1


@given(st.data())
def test_nodes_of_trees_are_judged_by_all_rows_below_them(data):
    """Every node by brute force, of a tree that is grown on drawn rows."""
    rows = data.draw(st.lists(st.tuples(*[st.integers(0, 3)] * 2, st.integers(0, 5), st.integers(0, 3)), min_size=8))
    one, two, persons, codes = (np.array(column, dtype=np.int32) for column in zip(*rows, strict=True))
    for axis in (one, two):
        axis[:] = np.unique(axis, return_inverse=True)[1]
    columns = [TreeColumn(axis, int(axis.max()) + 1, np.arange(int(axis.max()) + 1.0)) for axis in (one, two)]
    label = (one + two + codes) % 2
    tree = grow(columns, np.eye(2)[label], Entropy(2), min_leaf=1, missing="heaviest")
    leaves = route(tree, columns)
    limits = [
        Limit(Promised(LDiversity(3, "", ())), codes, persons),
        Limit(Promised(LDiversity(2, "", (), "entropy")), codes, persons),
    ]
    for asked, of_rows in (
        ([], lambda own: True),
        (limits[:1], lambda own: oracles.matched_level(own) >= 3),
        (limits[1:], lambda own: oracles.entropy_level(own) >= 2 - 1e-9),
    ):
        found = nodes_allowed_by_persons(tree, leaves, 2, persons, asked)
        for node in range(tree.n_nodes):
            below = []
            for row, leaf in enumerate(leaves.tolist()):
                while leaf not in (node, -1):
                    leaf = int(tree.parent[leaf])
                if leaf == node:
                    below.append((int(persons[row]), int(codes[row])))
            assert found[node] == (not below or (len({p for p, _ in below}) >= 2 and of_rows(below)))


# Rows that are not in memory.


@pytest.mark.parametrize(
    ("asked", "name"),
    [({"l": 3}, "l"), ({"l": 2, "variant": "entropy"}, "l"), ({"t": 0.5}, "t"), ({"beta": 1}, "beta")],
)
def test_where_only_persons_were_counted_pairs_are_refused(asked, name):
    with pytest.raises(InvalidParameterError, match="the table is not in memory") as raised:
        check_needs_no_pairs(Requested.of(build_mechanism("mondrian", asked)))
    assert raised.value.name == name
    check_needs_no_pairs(Requested(5, (LDiversity(2),)))


def test_without_pairs_nothing_is_promised_of_the_values_of_persons():
    goal = PrivacyGoal(5, (LDiversity(2.0, "illness", ()),), person="patient", counts_pairs=False)

    assert [one.name for one in goal.guarantees(("age",))] == ["k-anonymity", "k-anonymity by persons", "l-diversity"]


# Bad input.


def with_persons(names):
    cells = visits(len(names)).to_arrow()
    return Table.from_arrow(cells.set_column(0, "patient", pa.array(names)), SCHEMA)


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_one_person_with_half_of_all_rows_weighs_1(asked):
    table = with_persons(["often" if i % 2 else f"p{i}" for i in range(200)])
    release = make_release(table, build_mechanism("mondrian", {"k": 3, **asked}))
    classes = oracles.classes_of(table, release.table, "patient", "illness", ["age", "town"])

    assert entry_of(release, asked)["audited"] == pytest.approx(oracles.level(classes, asked), rel=5e-3)


@pytest.mark.parametrize("asked", [*ASKED[1:4], {}], ids=str)
def test_all_rows_of_one_person_cannot_be_released(asked):
    table = with_persons(["p"] * 60)
    for name in ("mondrian", "global-recoding", "local-recoding", "error-risk-tree"):
        with pytest.raises(PrivacyNotAchievableError, match="person") as raised:
            build_mechanism(name, {"k": 2, **asked, **EVERY_ROW.get(name, {})}).release(table)
        assert "\n" not in str(raised.value)


def test_rows_without_a_person_carry_the_value_of_one_person():
    """All rows without a person are those of one: three values there are one value of one person."""
    cells = {
        "patient": [None, None, None, "b", "c"],
        "age": [30] * 5,
        "town": ["Ulm"] * 5,
        "illness": ["flu", "cold", "gout", "flu", "flu"],
        "better": ["no"] * 5,
    }
    table = Table.from_arrow(pa.table(cells), SCHEMA)

    with pytest.raises(PrivacyNotAchievableError, match="by persons"):
        Mondrian(k=2, privacy=[LDiversity(3)]).release(table)
    assert (
        by_name(make_release(table, Mondrian(k=2, privacy=[LDiversity(2)])))["l-diversity by persons"]["audited"] == 2
    )


# The audit.


def test_promises_by_persons_say_so():
    assert "of as many different persons" in LDiversity(3, "illness", ("age",), unit="patient").describe()
    assert "each person weighs 1" in TCloseness(0.2, "illness", ("age",), unit="patient").describe()


@pytest.mark.parametrize("asked", [{"l": 4}, {"l": 3.5, "variant": "entropy"}, {"t": 0.3}, *ASKED[7:]], ids=str)
def test_a_release_by_rows_with_promises_by_persons_is_refused(asked):
    n_refused = 0
    for seed in range(4):
        table = visits(seed=seed)
        by_rows = build_mechanism("mondrian", {"k": 4, **asked}).release(table.with_schema({"patient": "identifier"}))
        by_persons = build_mechanism("mondrian", {"k": 4, **asked}).release(table)
        forged = by_rows.with_manifest(guarantees=by_persons.manifest.guarantees)
        report = audit_release(
            forged.table,
            forged.manifest.to_dict(),
            AuditorHas(original=table, roles=True),
            publisher=PublisherKnows(levels_are_stated=False),
        )
        classes = oracles.classes_of(table, forged.table, "patient", "illness", ["age", "town"])
        crowd = min(len({p for p, _ in rows}) for rows in classes)
        keeps = is_kept(oracles.level(classes, asked), asked) and ("alpha" not in asked or crowd >= 4)
        failed = {check.name for check in report.checks if not check.passed}
        assert (f"{promise_of(asked).name}: level" in failed) == (not keeps)
        n_refused += not keeps
    assert n_refused


@pytest.mark.parametrize("asked", [{"t": 0.4}, *ASKED[7:]], ids=str)
def test_a_level_that_is_not_found_is_refused(asked):
    table = visits()
    release = make_release(table, build_mechanism("mondrian", {"k": 4, **asked}))
    promise = promise_of(asked)
    for field in ("audited", promise.level.name):
        entries = json.loads(json.dumps(release.manifest.to_dict()))
        for entry in entries["guarantees"]:
            if name_of(entry) == promise.name:
                entry[field] /= 2
        entries["digest"] = manifest_digest(entries)
        report = audit_release(release.table, entries, AuditorHas(original=table, roles=True))
        assert any(check.name.startswith(promise.name) for check in report.checks if not check.passed)


def test_without_the_original_nothing_is_said_to_be_measured():
    release = make_release(visits(), Mondrian(k=4, privacy=[LDiversity(3), AlphaKAnonymity(0.6)]))
    alone = audit_release(release.table, release.manifest.to_dict())

    for kind in ("k-anonymity", "l-diversity", "alpha-k-anonymity"):
        assert any(f"{kind} by persons was not measured" in one.message for one in alone.unchecked)
    assert alone.passed


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_a_published_file_is_confirmed_with_its_original(tmp_path, asked):
    table = visits()
    published = publish(
        propose_release(table, build_mechanism("mondrian", {"k": 3, **asked})), tmp_path / "out.csv", original=table
    )

    assert audit_published(published.table_path, published.manifest_path, original=table, check_roles=True).passed


# Shares of single values.


def test_levels_by_rows_and_by_persons_differ():
    """Somebody with many rows of one value weighs 1: neither sense follows from the other."""
    table = visits(seed=1)
    release = make_release(table, Mondrian(k=3, privacy=[AlphaKAnonymity(0.5)]))
    classes = oracles.classes_of(table, release.table, "patient", "illness", ["age", "town"])
    by_rows = max(oracles.largest_share(list(enumerate(value for _, value in rows))) for rows in classes)

    assert by_rows > 0.5 >= oracles.level(classes, {"alpha": 0.5}) - 1e-9


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
    by_rows = Mondrian(k=4, privacy=[AlphaKAnonymity(0.5)]).release(table.with_schema({"patient": "identifier"}))
    by_persons = Mondrian(k=4, privacy=[AlphaKAnonymity(0.5)]).release(table)
    forged = by_rows.with_manifest(guarantees=by_persons.manifest.guarantees)
    report = audit_release(
        forged.table,
        forged.manifest.to_dict(),
        AuditorHas(original=table),
        publisher=PublisherKnows(levels_are_stated=False),
    )

    (check,) = (check for check in report.checks if check.name == "alpha-k-anonymity by persons: level")
    assert not check.passed
    assert check.found == "inf"
    assert len(oracles.classes_of(table, by_persons.table, "patient", "illness", ["age", "town"])) == 1


def test_another_column_than_the_declared_one_is_refused():
    table = visits()
    release = make_release(table, Mondrian(k=4, privacy=[AlphaKAnonymity(0.6)]))
    entries = json.loads(json.dumps(release.manifest.to_dict()))
    for entry in entries["guarantees"]:
        if entry["unit"] == "patient":
            entry["unit"] = "better"
    entries["digest"] = manifest_digest(entries)

    report = audit_release(release.table, entries, AuditorHas(original=table, roles=True))
    assert "alpha-k-anonymity by persons: persons" in {check.name for check in report.checks if not check.passed}
