"""Mechanisms that promise k-map and δ-presence, beside loops over people, rows and cuts."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import people_in_box
from sfumato.audit.claims import read_claims
from sfumato.audit.population_table import in_population
from sfumato.errors import PrivacyNotAchievableError
from sfumato.mechanisms.lattice.lattice import LatticePeople, LatticeProblem
from sfumato.mechanisms.lattice.node_checks import NodeChecker
from sfumato.mechanisms.lattice.search import search_lattice
from sfumato.mechanisms.population import Population
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.propose import make_release
from sfumato.schema import Column, Kind, Schema
from sfumato.table.coding import Table
from sizes import examples

IS_ORDERED = (True, True, False)
PERSON = st.tuples(
    st.one_of(st.none(), st.integers(20, 25)), st.integers(0, 3), st.one_of(st.none(), st.sampled_from("abcd"))
)
PEOPLE = st.lists(PERSON, min_size=2, max_size=24)
# a number column with one known value beside missing ones: its cells are refused by the audit, population or not
SAMPLES = PEOPLE.filter(lambda rows: len({age for age, _, _ in rows if age is not None}) != 1)

ANYBODY = (22, 1, "a")
"""Ranges are not read beside a population without any number, which the audit refuses."""


def _table(rows):
    ages, sizes, jobs = zip(*rows, strict=True)
    numbers = {"age": pa.array(ages, pa.int64()), "size": pa.array(sizes, pa.int64())}
    arrow = pa.table({**numbers, "job": pa.array(jobs, pa.string())})
    columns = [Column("age", kind=Kind.NUMERIC), Column("size", kind=Kind.NUMERIC), Column("job")]
    return Table.from_arrow(arrow, Schema.of(columns))


def _cuts(rows, of_values):
    """All ways to divide rows between two values of a column, in a given order of its values."""
    for place in range(len(IS_ORDERED)):
        present = [value for value in of_values[place] if value in {row[place] for row in rows}]
        for i in range(1, len(present)):
            left = set(present[:i])
            yield [row for row in rows if row[place] in left], [row for row in rows if row[place] not in left]


def _orders(rows):
    """Order of the values along each axis: numbers by size, others by falling frequency; missing last."""
    orders = []
    for place, is_ordered in enumerate(IS_ORDERED):
        counts = Counter(row[place] for row in rows if row[place] is not None)
        by_size = sorted(counts) if is_ordered else sorted(counts, key=lambda value: (-counts[value], value))
        orders.append([*by_size, None])
    return orders


@pytest.mark.slow
@examples(60)
@given(SAMPLES, PEOPLE, st.integers(2, 4), st.integers(1, 2), st.sampled_from([None, 0.3, 0.6]))
def test_mondrian_divides_exactly_as_far_as_the_people_allow(sample, others, k_map, k, delta_max):
    """Every group fits enough people, no group can be divided so that both halves do, and the audit agrees."""
    people = [*sample, *others, ANYBODY] if delta_max else [*others, ANYBODY]
    mechanism = build_mechanism("mondrian", {"k": k, "k_map": k_map, "delta_max": delta_max, "split": "median"})
    mechanism = mechanism.with_population(Population(_table(people)))

    def is_allowed(rows):
        n_people = people_in_box(people, rows, IS_ORDERED)
        return len(rows) >= k and n_people >= k_map and (delta_max is None or len(rows) <= delta_max * n_people)

    try:
        made = make_release(_table(sample), mechanism)
    except PrivacyNotAchievableError:
        assert not is_allowed(sample)
        return
    groups = defaultdict(list)
    cells = [made.table[name] for name in ("age", "size", "job")]
    for i, row in enumerate(sample):
        groups[tuple(int(column.codes[i]) for column in cells)].append(row)
    orders = _orders(sample)
    for rows in groups.values():
        assert is_allowed(rows)
        assert not any(is_allowed(left) and is_allowed(right) for left, right in _cuts(rows, orders))
    kinds = (["k-anonymity"] if k > 1 else []) + ["k-map"] + (["delta-presence"] if delta_max else [])
    assert [g.kind for g in made.manifest.promised()] == kinds


MAPS = ([0, 1, 2, 3], [0, 0, 1, 1], [0, 0, 0, 0])
CODES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=14)
WITH_FOREIGN = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30)


def _label(code, level, has_star):
    if code < 4:
        return MAPS[level][code]
    return 0 if level == 2 and has_star else "no label"


@examples(60)
@given(
    CODES,
    WITH_FOREIGN,
    st.tuples(st.booleans(), st.booleans()),
    st.integers(1, 4),
    st.sampled_from([(math.inf, 0.0), (0.5, 0.0), (0.7, 0.1)]),
    st.sampled_from([0.0, 0.3]),
)
def test_lattice_search_beside_all_nodes(rows, people, has_star, k_map, deltas, fraction):
    """The number of suppressed rows of every node, and the best node, by loops; 4 is a value that no row has."""
    delta_max, delta_min = deltas
    if delta_min:
        fraction = 0.0
    counted, alike = Counter(rows), Counter(people)
    problem = LatticeProblem(
        np.array(list(counted)),
        np.array(list(counted.values())),
        (tuple(map(np.array, MAPS)),) * 2,
        (tuple(np.bincount(m) / 4 for m in MAPS),) * 2,
        max_suppressed_fraction=fraction,
        people=LatticePeople(
            np.array(list(alike)), np.array(list(alike.values())), has_star, k_map, delta_max, delta_min
        ),
    )
    checker, satisfying = NodeChecker(problem), []
    for levels in itertools.product(range(3), repeat=2):
        classes = Counter(tuple(MAPS[level][code] for level, code in zip(levels, row, strict=True)) for row in rows)
        labels = [
            tuple(_label(code, level, star) for code, level, star in zip(person, levels, has_star, strict=True))
            for person in people
        ]
        is_left = any(own not in classes for own in labels)
        lost = 0
        for own, n_rows in classes.items():
            n_people = labels.count(own)
            has_share = n_people > 0 and delta_min <= n_rows / n_people <= delta_max
            lost += 0 if n_people >= k_map and has_share else n_rows
        if delta_min and is_left:
            lost = len(rows)
        found = checker.check(levels)
        assert found.n_suppressed == lost
        assert found.satisfies is (lost <= problem.max_suppressed)
        satisfying += [found] if found.satisfies else []
    try:
        best = search_lattice(problem)
    except PrivacyNotAchievableError:
        assert not satisfying
        return
    assert best.loss == pytest.approx(min(node.loss for node in satisfying), abs=1e-9)


@pytest.mark.slow
@examples(25)
@given(SAMPLES, PEOPLE, st.integers(2, 4), st.booleans())
def test_global_recoding_keeps_what_the_audit_counts(sample, others, k_map, with_presence):
    """Whatever the cells mean to the audit, at least as many people fit; suppressed rows are recoded again too."""
    people = [*sample, *others, ANYBODY]
    asked = {"k_map": k_map, "delta_max": 0.8} if with_presence else {"k_map": k_map}
    mechanism = build_mechanism("global-recoding", {"k": 1, "max_suppressed_fraction": 0.2, **asked}).with_population(
        Population(_table(people))
    )
    try:
        made = make_release(_table(sample), mechanism)
    except PrivacyNotAchievableError:
        return
    found = in_population(made.table, _table(people), read_claims(made.manifest.to_dict()))
    assert found.k_map >= k_map
    assert made.manifest.guarantees[0]["audited"] == found.k_map
    if with_presence:
        assert found.is_disjoint
        assert found.presence is not None
        assert found.presence[1] <= 0.8
