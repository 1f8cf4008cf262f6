"""Attacks with a control group: brute force by the definitions, releases of which the answer is known, and people."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.attack import with_controls
from sfumato.attack.candidates import MatchedColumn
from sfumato.attack.controls import hold_out, stacked, without_people_of
from sfumato.attack.correspondence import Correspondence
from sfumato.attack.nearest import DistancesToRows
from sfumato.attack.with_controls import (
    _cells_by_bucket,
    _chances_of_link,
    _membership,
    attack_with_controls,
    best_threshold,
    singled_out,
)
from sfumato.audit.reading.cells import unchanged
from sfumato.datasets.admissions import admissions
from sfumato.errors import ColumnNotFoundError, InvalidParameterError, SchemaError
from sfumato.manifest import draft_manifest
from sfumato.mechanisms.registry import build_mechanism, registered_mechanisms
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import Table

AGE, JOB, ILL = Column("age", kind=Kind.NUMERIC), Column("job"), Column("ill", Role.SENSITIVE)
RANGES = [
    {"name": "age", "column": "age", "rule": "generalized", "kind": "numeric"},
    {"name": "job", "column": "job", "rule": "generalized", "kind": "categorical"},
    {"name": "ill", "column": "ill", "rule": "generalized", "kind": "categorical"},
]
NAMES = ("age", "job", "ill")


def people_of(rows):
    cells = {name: [row[i] for row in rows] for i, name in enumerate(NAMES)}
    return Table.from_arrow(pa.table(cells), Schema.of([AGE, JOB, ILL]))


def release_of(original, rows):
    cells = {name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate(NAMES)}
    released = Table.from_arrow(pa.table(cells), Schema.of([Column("age"), JOB, ILL]))
    manifest = draft_manifest(
        original, released, mechanism="test", parameters={}, guarantees=[], evidence={}, recodings=RANGES
    )
    return released, manifest


def attacks_by_name(found):
    return {(e["attack"], e["by"], e.get("column")): e for e in found["attacks"]}


SINGLED_ALL = ("singling_out", "all released columns", None)
SINGLED_QUASI = ("singling_out", "quasi-identifiers", None)
LINKED = ("linkability", "quasi-identifiers", None)
INFERRED = ("inference", "quasi-identifiers", "ill")
MEMBER = ("membership", "all released columns", None)

# --- brute force -----------------------------------------------------------------------------------------------------


def covers(cell, value):
    if cell == "*":
        return True
    if cell.startswith("["):
        low, high = cell[1:-1].split(", ")
        return int(low) <= value <= int(high)
    members = cell[1:-1].split("|") if cell.startswith("{") else [cell]
    return str(value) in members


def misses(row, person, places):
    return sum(not covers(row[i], person[i]) for i in places)


def nearest(rows, person, places):
    distances = [misses(row, person, places) for row in rows]
    return [i for i, distance in enumerate(distances) if distance == min(distances)], min(distances)


def is_singled_out(person, crowd, rows, places):
    shown = [tuple(row[i] for i in places) for row in rows]
    for row, cells in zip(rows, shown, strict=True):
        is_guess = shown.count(cells) == 1 and misses(row, person, places) == 0
        if is_guess and sum(misses(row, other, places) == 0 for other in crowd) == 1:
            return True
    return False


def inferred(person, rows, values):
    def votes(chosen):
        found = dict.fromkeys(values, 0.0)
        for i in chosen:
            meant = [v for v in values if covers(rows[i][2], v)]
            for value in meant:
                found[value] += 1 / len(meant)
            if not meant:
                found[rows[i][2]] = found.get(rows[i][2], 0.0) + 1
        return found

    near, every = votes(nearest(rows, person, (0, 1))[0]), votes(range(len(rows)))
    order = [*values, *sorted(set(near) - set(values))]
    return max(order, key=lambda v: (round(near[v], 6), round(every.get(v, 0.0), 6), -order.index(v)))


def score(person, rows):
    chosen, distance = nearest(rows, person, (0, 1, 2))
    return -distance + 1 / len(chosen)


person = st.tuples(st.integers(0, 4), st.sampled_from("abc"), st.sampled_from("xyz"))
cells = st.tuples(
    st.sampled_from(["*", "[0, 2]", "[2, 4]", "[1, 3]", "0", "1", "2", "3", "4"]),
    st.sampled_from(["*", "a", "b", "c", "{a|b}", "{b|c}"]),
    st.sampled_from(["x", "y", "z", "w", "{x|y}", "*"]),
)


@st.composite
def worlds(draw):
    n = draw(st.integers(2, 7))
    groups = [draw(st.lists(person, min_size=n, max_size=n)) for _ in range(2)]
    return *groups, draw(st.lists(cells, min_size=1, max_size=8))


@pytest.mark.slow
@given(worlds())
def test_attacks_succeed_on_the_people_that_the_definitions_name(world):
    members, controls, rows = world
    original, control = people_of(members), people_of(controls)
    released, manifest = release_of(original, rows)

    found = attacks_by_name(attack_with_controls(original, control, released, manifest))

    values = sorted({p[2] for p in (*members, *controls)})
    for side, group in (("released", members), ("control", controls)):
        for key, places in ((SINGLED_ALL, (0, 1, 2)), (SINGLED_QUASI, (0, 1))):
            expected = sum(is_singled_out(p, group, rows, places) for p in group)
            assert found[key][side]["n_success"] == expected
        assert found[INFERRED][side]["n_success"] == sum(inferred(p, rows, values) == p[2] for p in group)
        assert found[INFERRED][side]["n_people"] == len(group)
    above = [
        (a > b) + (a == b) / 2 for a in (score(p, rows) for p in members) for b in (score(p, rows) for p in controls)
    ]
    assert found[MEMBER]["auc"]["value"] == pytest.approx(sum(above) / len(above))


@pytest.mark.slow
@given(worlds())
def test_links_have_the_chance_that_the_definition_gives(world):
    members, _, rows = world
    original = people_of(members)
    released, manifest = release_of(original, rows)
    tables = Correspondence(original, released, manifest)
    distances = DistancesToRows({name: tables.column(name) for name in NAMES}, len(rows))

    ((_, (one, other)),) = distances.chunks(np.arange(len(members)), [["age"], ["job"]])
    found = _chances_of_link(one, other, distances.groups.sizes.astype(float))

    for p, chance in zip(members, found, strict=True):
        by_age, by_job = nearest(rows, p, (0,))[0], nearest(rows, p, (1,))[0]
        pairs = [(i, j) for i in by_age for j in by_job]
        assert chance == pytest.approx(sum(i == j for i, j in pairs) / len(pairs))


@pytest.mark.slow
@given(worlds(), st.integers(1, 3))
def test_people_are_handled_some_at_a_time(world, at_once):
    members, controls, rows = world
    original, control = people_of(members), people_of(controls)
    released, manifest = release_of(original, rows)
    expected = attack_with_controls(original, control, released, manifest)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sfumato.attack.nearest._CHUNK", at_once)
        assert attack_with_controls(original, control, released, manifest) == expected


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.lists(st.integers(0, 3), min_size=1, max_size=8))
def test_the_threshold_separates_members_from_controls_best(members, controls):
    def advantage(threshold):
        called = [sum(s >= threshold for s in group) / len(group) for group in (members, controls)]
        return round(called[0] - called[1], 9)

    chosen = best_threshold(np.array(members, float), np.array(controls, float))

    best = max(advantage(t) for t in (*members, *controls, np.inf))
    assert advantage(chosen) == best
    assert chosen == max(t for t in (*members, *controls, np.inf) if advantage(t) == best)


# --- releases of which the answer is known ---------------------------------------------------------------------------


def drawn(n, seed, *, n_values=6):
    random = np.random.default_rng(seed)
    base = random.integers(0, n_values, n)
    return [
        (int(b), "abcdefgh"[(int(b) + int(j)) % 8], "xyz"[int(i)])
        for b, j, i in zip(base, random.integers(0, 4, n), np.minimum(base % 3, random.integers(0, 3, n)), strict=True)
    ]


@pytest.mark.slow
@given(st.lists(person, min_size=3, max_size=10), st.lists(person, min_size=10, max_size=10), st.data())
def test_of_the_original_itself_every_unique_person_is_singled_out_and_no_truthful_release_does_more(
    rows, others, data
):
    original, control = people_of(rows), people_of(others)

    def widened(row):
        return (
            data.draw(st.sampled_from([str(row[0]), f"[{row[0]}, {row[0] + 1}]", "*"])),
            data.draw(st.sampled_from([row[1], "*"])),
            row[2],
        )

    released, manifest = release_of(original, [widened(row) for row in rows])
    before = attacks_by_name(attack_with_controls(original, control, original))[SINGLED_ALL]
    after = attacks_by_name(attack_with_controls(original, control, released, manifest))[SINGLED_ALL]

    assert before["released"]["n_success"] == sum(rows.count(row) == 1 for row in rows)
    assert after["released"]["n_success"] <= before["released"]["n_success"]


def test_a_release_of_stars_only_gives_nothing_away():
    original, control = people_of(drawn(300, 1)), people_of(drawn(300, 2))
    released, manifest = release_of(original, [("*", "*", "*")] * 300)

    found = attack_with_controls(original, control, released, manifest)

    for entry in found["attacks"]:
        assert entry["risk" if "risk" in entry else "advantage"]["interval"][0] <= 0
    by_name = attacks_by_name(found)
    assert by_name[SINGLED_ALL]["released"]["n_success"] == by_name[SINGLED_ALL]["control"]["n_success"] == 0
    assert by_name[MEMBER]["auc"]["value"] == 0.5
    assert by_name[MEMBER]["released"]["n_success"] == 0


def test_control_people_equal_to_those_released_show_no_risk():
    rows = drawn(400, 3)
    original, copies = people_of(rows), people_of(rows[::-1])

    found = attacks_by_name(attack_with_controls(original, copies, original))

    for key in (SINGLED_ALL, SINGLED_QUASI, INFERRED):
        assert found[key]["risk"]["value"] == 0
        assert found[key]["released"] == found[key]["control"]
    assert found[MEMBER]["auc"]["value"] == 0.5
    assert found[LINKED]["risk"]["interval"][0] == 0
    assert found[MEMBER]["advantage"]["interval"][0] <= 0


def test_the_original_as_a_release_gives_members_away():
    original, control = people_of(drawn(500, 4, n_values=200)), people_of(drawn(500, 5, n_values=200))

    found = attacks_by_name(attack_with_controls(original, control, original))

    for key in (SINGLED_ALL, SINGLED_QUASI, INFERRED):
        assert found[key]["risk"]["interval"][0] > 0.2
    assert found[MEMBER]["advantage"]["interval"][0] > 0.2
    assert found[MEMBER]["auc"]["interval"][0] > 0.5
    assert found[INFERRED]["is_better_than_guessing"]


def test_values_that_a_cell_covers_are_equally_likely_and_a_star_helps_nobody():
    rows = [(0, "a", "x"), (1, "a", "y"), (2, "b", "y"), (3, "b", "y")]
    original = people_of(rows)
    released, manifest = release_of(original, [("0", "a", "*"), ("1", "a", "*"), ("2", "b", "*"), ("3", "b", "*")])

    found = attacks_by_name(attack_with_controls(original, original, released, manifest))[INFERRED]

    assert found["released"]["n_success"] == 1  # all values are equally likely, so the first one is named
    assert found["guessing"] == 0.25


@pytest.mark.slow
def test_values_moved_within_a_bucket_are_inferred_by_the_whole_bucket():
    original = admissions(n_rows=400).keep(["age", "sex", "insurance", "discharge_diagnosis"])
    original = original.with_schema({"discharge_diagnosis": "sensitive"})
    members, control = hold_out(original, 0.5)
    release = sfumato.release(members, build_mechanism("anatomy", {"l": 2}))
    tables = Correspondence(members, release.table, release.manifest)

    found = attacks_by_name(attack_with_controls(members, control, release.table, release.manifest))

    entry = found["inference", "quasi-identifiers", "discharge_diagnosis"]
    assert tables.is_moved("discharge_diagnosis")
    names, rows = ("age", "sex", "insurance"), release.table.to_arrow().to_pylist()
    (bucket,) = (n for n in release.table.schema.names() if n not in (*names, "discharge_diagnosis"))
    in_bucket = {}
    for row in rows:
        in_bucket.setdefault(row[bucket], []).append(row["discharge_diagnosis"])
    n_sure = n_tied = 0
    for p in members.to_arrow().to_pylist():
        distances = [sum(str(row[n]) != str(p[n]) for n in names) for row in rows]
        near = [row[bucket] for row, distance in zip(rows, distances, strict=True) if distance == min(distances)]
        shares = {}
        for number in near:
            for value in in_bucket[number]:
                shares[value] = shares.get(value, 0) + 1 / len(in_bucket[number])
        likely = [value for value, share in shares.items() if share > max(shares.values()) - 1e-6]
        n_sure += likely == [p["discharge_diagnosis"]]
        n_tied += p["discharge_diagnosis"] in likely and len(likely) > 1

    assert n_sure <= entry["released"]["n_success"] <= n_sure + n_tied
    assert n_sure > 0


@pytest.mark.slow
@pytest.mark.statistical
def test_intervals_hold_no_risk_for_a_release_of_other_people():
    """Neither group is in the release: of 300 draws at least 93 % of the intervals of each attack begin at 0."""
    begin_at_0 = {}
    for seed in range(300):
        groups = [people_of(drawn(150, [seed, i], n_values=40)) for i in range(3)]
        found = attack_with_controls(groups[0], groups[1], groups[2], seed=seed)
        for key, entry in attacks_by_name(found).items():
            if "risk" in entry:
                begin_at_0.setdefault(key, []).append(entry["risk"]["interval"][0] == 0)
                continue
            for name, chance in (("advantage", 0), ("auc", 0.5)):
                low, high = entry[name]["interval"]
                begin_at_0.setdefault(name, []).append(low <= chance <= high)

    assert {key: np.mean(found) >= 0.93 for key, found in begin_at_0.items()} == dict.fromkeys(begin_at_0, True)


def test_a_value_of_a_small_bucket_weighs_more_than_one_of_a_large_bucket():
    same = unchanged(pa.array(["x", "y"]), pa.array(["x", "y"]))
    column = MatchedColumn(same, np.array([0]), np.array([0, 1, 1, 1, 1]))  # bucket 0: x, y; bucket 1: y, y, y
    groups, buckets = np.array([0, 1, 0, 1, 1]), np.array([0, 0, 1, 1, 1])

    found = _cells_by_bucket(groups, buckets, column).toarray()

    assert found == pytest.approx(np.array([[0.5, 1.5], [0.5, 2.5]]))


def test_members_are_called_by_a_threshold_from_the_other_half():
    members, controls = np.array([3.0, 2.0, 2.0, 1.0]), np.array([0.0, 2.0, 1.0, 0.0])

    found = _membership(members, controls)  # of 3, 2 and 0, 1 the threshold is 2, which judges 2, 1 and 2, 0

    assert (found["released"]["n_success"], found["control"]["n_success"]) == (1, 1)
    assert (found["released"]["n_people"], found["guessing"]) == (2, None)
    assert found["advantage"]["value"] == 0  # one of two and one of two
    assert "risk" not in found


def test_an_attacker_who_calls_everybody_a_member_has_no_advantage():
    """The risk of the other attacks would be 100 %: no member is missed."""
    members = np.array([1.0, 1.0, 1.0, 1.0] * 50)
    controls = np.array([0.0, 1.0, 1.0, 1.0] * 50)  # of the half that is judged all look like members

    found = _membership(members, controls)

    assert (found["released"]["rate"], found["control"]["rate"]) == (1.0, 1.0)
    assert found["advantage"]["value"] == 0
    assert found["advantage"]["interval"][0] < 0 < found["advantage"]["interval"][1]


@pytest.mark.slow
def test_without_a_signal_the_advantage_is_that_of_guessing():
    """Members and controls of one population: the mean of 400 advantages is near 0, and their intervals hold it."""
    random = np.random.default_rng(11)

    found = [_membership(*random.integers(0, 20, (2, 200)).astype(float)) for _ in range(400)]

    advantages = [one["advantage"] for one in found]
    assert abs(np.mean([one["value"] for one in advantages])) < 0.01
    assert np.mean([one["interval"][0] <= 0 <= one["interval"][1] for one in advantages]) >= 0.93


# --- draws, order and bounds -----------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_figures_whatever_the_order_of_released_rows():
    original, control = people_of(drawn(200, 6, n_values=50)), people_of(drawn(150, 7, n_values=50))
    rows = [(str(r[0]), r[1], r[2]) for r in drawn(200, 6, n_values=50)]
    released, manifest = release_of(original, rows)
    turned, _ = release_of(original, rows[::-1])

    found = attack_with_controls(original, control, released, manifest, seed=3, most_people=60)

    assert found == attack_with_controls(original, control, turned, manifest, seed=3, most_people=60)
    assert found != attack_with_controls(original, control, released, manifest, seed=4, most_people=60)
    assert (found["n_attacked"], found["n_crowd"]) == (60, 150)
    assert found["n_people"] == {"released": 200, "control": 150}
    json.dumps(found, allow_nan=False)


def test_progress_ends_with_all_people():
    said = []
    original = people_of(drawn(50, 8))

    attack_with_controls(original, original, original, progress=lambda *step: said.append(step))

    assert said[0] == (0, 100, "singling out")
    assert said[-1][:2] == (100, 100)


def test_of_many_columns_some_are_drawn_and_the_sensitive_one_stays(monkeypatch):
    monkeypatch.setattr(with_controls, "_MOST_COLUMNS", 2)
    original = people_of(drawn(60, 9))

    found = attacks_by_name(attack_with_controls(original, original, original))

    assert found[SINGLED_ALL]["n_columns"] == 2
    assert found[INFERRED]["released"]["n_people"] == 60
    assert "fewer than two" in found[LINKED]["not_applicable"]


@pytest.mark.parametrize("most_people", [1, 2.5, True], ids=str)
def test_a_bound_below_two_people_is_refused(most_people):
    original = people_of(drawn(5, 1))

    with pytest.raises(InvalidParameterError, match="most_people"):
        attack_with_controls(original, original, original, most_people=most_people)


def test_too_few_control_people_are_refused():
    original = people_of(drawn(5, 1))

    with pytest.raises(InvalidParameterError, match="1 control people"):
        attack_with_controls(original, original.take(np.arange(1)), original)


def test_a_control_table_without_a_released_column_is_refused():
    original = people_of(drawn(5, 1))

    with pytest.raises(ColumnNotFoundError, match=r"job.*the control table"):
        attack_with_controls(original, original.keep(["age", "ill"]), original)


# --- all mechanisms --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", registered_mechanisms())
def test_releases_of_every_mechanism_are_attacked_and_no_cell_is_told(name):
    random = np.random.default_rng(8)
    bits = (0.5 * random.random((400, 6)) + 0.5 * random.random((400, 1)) < np.linspace(0.3, 0.7, 6)).astype(int)
    arrays = {letter: [str(bit) for bit in bits[:, i]] for i, letter in enumerate("abcdef")}
    arrays |= {"illness": ["uvw"[i] for i in random.integers(0, 3, 400)], "y": ["ny"[bit] for bit in bits[:, 2]]}
    schema = Schema.of([*map(Column, "abcdef"), Column("illness", Role.SENSITIVE), Column("y", Role.TARGET)])
    original, control = hold_out(Table.from_arrow(pa.table(arrays), schema), 0.5)
    parameters = {p.name for p in registered_mechanisms()[name].parameters}
    release = sfumato.release(original, build_mechanism(name, {"n_features": 3} if "n_features" in parameters else {}))

    found = attack_with_controls(original, control, release.table, release.manifest, include_target=True)

    json.dumps(found, allow_nan=False)
    for entry in found["attacks"]:
        if "not_applicable" in entry:
            assert len(entry["not_applicable"]) > 10
            continue
        is_membership = entry["attack"] == "membership"
        low, high = entry["advantage" if is_membership else "risk"]["interval"]
        assert (-1 if is_membership else 0) <= low <= high <= 1
        assert entry["released"]["n_people"] == (100 if is_membership else 200)
    assert [e["attack"] for e in found["attacks"]][:3] == ["singling_out", "singling_out", "linkability"]
    by_class = attacks_by_name(found).get(SINGLED_QUASI, {})
    if any(g["kind"] == "k-anonymity" for g in release.manifest.guarantees) and "released" in by_class:
        assert by_class["released"]["n_success"] == 0


# --- control people --------------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(["p", "q", "r", "s", "t", None]), min_size=1, max_size=20), st.floats(0.1, 0.9))
def test_rows_of_one_person_are_never_on_both_sides(persons, fraction):
    visits = pa.table({"who": pa.array(persons, pa.string()), "n": list(range(len(persons)))})
    table = Table.from_arrow(visits, Schema.of([Column("who", Role.PERSON), Column("n", kind=Kind.NUMERIC)]))
    n_people = len(set(persons))
    n_control = round(fraction * n_people)
    if min(n_control, n_people - n_control) < 2:
        with pytest.raises(InvalidParameterError, match="hold_out"):
            hold_out(table, fraction)
        return

    sides = [part.to_arrow().to_pydict() for part in hold_out(table, fraction, seed=5)]

    assert not set(sides[0]["who"]) & set(sides[1]["who"])
    assert sorted(sides[0]["n"] + sides[1]["n"]) == list(range(len(persons)))
    assert len(set(sides[1]["who"])) == n_control
    assert all(side["n"] == sorted(side["n"]) for side in sides)


@pytest.mark.parametrize("fraction", [0, 1, -0.5, 20, True], ids=str)
def test_a_share_out_of_range_is_refused(fraction):
    with pytest.raises(InvalidParameterError, match="hold_out"):
        hold_out(people_of(drawn(9, 1)), fraction)


def visits_of(persons, jobs):
    schema = Schema.of([Column("who", Role.PERSON), JOB])
    return Table.from_arrow(pa.table({"who": persons, "job": jobs}), schema)


def test_control_rows_of_people_in_the_original_are_left_out():
    original = visits_of(["1", "1", "2"], ["a", "b", "c"])
    numbered = Table.from_arrow(
        pa.table({"who": [2, 3, 3, 4], "job": ["a", "b", "c", "d"]}), Schema.of([Column("who", Role.PERSON), JOB])
    )

    assert without_people_of(numbered, original).to_arrow().column("who").to_pylist() == [3, 3, 4]
    assert without_people_of(people_of(drawn(3, 1)), people_of(drawn(3, 1))).n_rows == 3
    with pytest.raises(ColumnNotFoundError, match="who"):
        without_people_of(numbered.keep(["job"]), original)


def test_people_with_many_rows_are_attacked_once():
    original = visits_of([*["p"] * 50, "q", "r"], [*["a"] * 50, "b", "c"])
    control = visits_of([*["s"] * 20, "t", "u"], [*["a"] * 20, "b", "c"])

    found = attack_with_controls(original, control, original)

    assert found["n_people"] == {"released": 3, "control": 3}
    assert attacks_by_name(found)[SINGLED_ALL]["released"]["n_people"] == 3
    assert attacks_by_name(found)[SINGLED_ALL]["n_columns"] == 1  # the person column is not used


def test_columns_of_other_types_are_joined_by_meaning():
    original = people_of([(1, "a", "x"), (2, "b", "y"), (3, "c", "z")])
    texts = pa.table({"ill": ["x", "y", "q"], "age": ["1", "2.0", "7"], "job": ["a", "b", "c"]})
    control = Table.from_arrow(texts, Schema.of([ILL, Column("age"), JOB]))

    found = attacks_by_name(attack_with_controls(original, control, original))

    assert found[SINGLED_ALL]["control"]["n_success"] == 2
    assert stacked(original, control).schema.names() == NAMES


def test_numbers_that_are_none_in_the_control_table_are_refused_without_a_cell():
    original = people_of([(1, "a", "x"), (2, "b", "y")])
    texts = pa.table({"age": ["1", "canary"], "job": ["a", "b"], "ill": ["x", "y"]})

    with pytest.raises(SchemaError, match="age") as caught:
        stacked(original, Table.from_arrow(texts, Schema.of([Column("age"), JOB, ILL])))
    assert "canary" not in str(caught.value)


def test_a_release_without_rows_is_not_attacked():
    original = people_of(drawn(5, 1))
    released, manifest = release_of(original, [])

    found = attack_with_controls(original, original, released, manifest)

    assert all("not_applicable" in entry for entry in found["attacks"])


def test_sparse_features_that_the_control_table_lacks_are_0_there():
    rows = pa.table({"a": [1, 0, 1, 0], "b": [0, 1, 1, 0], "y": ["n", "y", "n", "y"]})
    schema = Schema.of([Column("a"), Column("b"), Column("y", Role.TARGET)])
    table = sfumato.binarize(Table.from_arrow(rows, schema))
    fewer = table.select([table.position(table.feature_names[-1])])

    both = stacked(table, fewer)

    assert isinstance(both, BinaryTable)
    assert both.n_rows == 8
    assert both.matrix[4:, :-1].nnz == 0
    assert both.matrix[4:, -1].nnz == table.matrix[:, -1].nnz
    with pytest.raises(InvalidParameterError, match="control"):
        stacked(table, table.to_table())
    assert attack_with_controls(table, fewer, table)["n_attacked"] == 4


def test_incomplete_rows_are_left_out_of_both_groups_where_the_release_left_them_out():
    original = people_of([(1, "a", "x"), (2, "b", "y"), (3, "c", "z"), (4, None, "z")])
    released, manifest = release_of(
        original.without_incomplete_rows(), [("1", "a", "x"), ("2", "b", "y"), ("3", "c", "z")]
    )
    manifest = replace(manifest, missing=dict(manifest.missing) | {"rows": "dropped", "n_dropped": 1})

    found = attack_with_controls(original, original, released, manifest)

    assert found["n_people"] == {"released": 3, "control": 3}


def test_nobody_is_singled_out_by_rows_that_repeat():
    same = unchanged(pa.array(["a", "b"]), pa.array(["a", "b"]))
    column = MatchedColumn(same, np.array([0, 1]), np.array([0, 0, 1]))

    assert singled_out([column], np.arange(2), 3).tolist() == [False, True]
