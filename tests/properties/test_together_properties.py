"""Several releases together: the kernel against definitions, and against an attacker who tries every possible world."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.together.levels import ABSENT, Appearances, Together
from sizes import examples
from together_oracles import Row, Rows, carried, joint_classes, possible_values, remaining


def appearances(rows: Rows, k: int = 1, diversity: Mapping[str, float] | None = None) -> Appearances:
    persons, classes, values = (
        (np.array(part, dtype=np.int64) for part in zip(*rows, strict=True))
        if rows
        else (np.zeros(0, dtype=np.int64) for _ in range(3))
    )
    return Appearances(persons, classes, {"ill": values}, k, diversity or {})


rows_of_visits = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2), st.integers(0, 3)), max_size=14)


@st.composite
def stable_releases(draw: st.DrawFn) -> list[list[Row]]:
    """One row a person and release, values that do not change, some people missing from some releases."""
    n_persons = draw(st.integers(1, 6))
    value_of = draw(st.lists(st.integers(0, 2), min_size=n_persons, max_size=n_persons))
    releases = []
    for _ in range(draw(st.integers(1, 3))):
        places = draw(st.lists(st.integers(-1, 1), min_size=n_persons, max_size=n_persons))
        releases.append([(p, c, value_of[p]) for p, c in enumerate(places) if c >= 0])
    return releases


@pytest.mark.slow
@given(st.lists(rows_of_visits, min_size=1, max_size=3))
@examples(200)
def test_joint_classes_hold_the_persons_of_the_definition(releases: list[list[Row]]) -> None:
    together = Together([appearances(rows) for rows in releases])
    expected = joint_classes(releases)
    assert {tuple(c): n for c, n in zip(together.classes.tolist(), together.sizes.tolist(), strict=True)} == {
        c: len(persons) for c, persons in expected.items()
    }
    assert together.anonymity == min(map(len, expected.values()), default=0)
    for i, rows in enumerate(releases):
        counted = together.diversity(i, "ill").tolist()
        for classes, n in zip(together.classes.tolist(), counted, strict=True):
            assert n == carried(rows, classes[i], expected[tuple(classes)])
    for classes, n in zip(together.classes.tolist(), together.remaining_values("ill").tolist(), strict=True):
        assert n == remaining(releases, tuple(classes))


@pytest.mark.slow
@given(st.lists(rows_of_visits, min_size=1, max_size=3), st.lists(st.integers(1, 4), min_size=3, max_size=3))
@examples(200)
def test_those_below_are_the_persons_whom_a_promise_fails(releases: list[list[Row]], promised: list[int]) -> None:
    seen = [appearances(rows, k, {"ill": k - 1.0}) for rows, k in zip(releases, promised, strict=False)]
    together = Together(seen)
    below = set()
    for combination, persons in joint_classes(releases).items():
        there = [i for i, c in enumerate(combination) if c != ABSENT]
        if len(persons) < max(promised[i] for i in there):
            below |= persons
        if any(carried(releases[i], combination[i], persons) < promised[i] - 1 for i in there):
            below |= persons
        if 0 < remaining(releases, combination) < max(promised[i] - 1 for i in there):
            below |= persons
    assert set(together.persons_below().tolist()) == below
    assert bool(list(together.shortfalls())) == bool(below)


@given(stable_releases())
@examples(150)
def test_an_attacker_who_tries_all_worlds_is_left_at_least_the_joint_diversity(releases: list[list[Row]]) -> None:
    together = Together([appearances(rows) for rows in releases])
    possible = possible_values(releases)
    left = together.remaining_values("ill")
    for entry, person in enumerate(together.persons.tolist()):
        joint = together.joint[entry]
        classes = together.classes[joint]
        for i in np.flatnonzero(classes != ABSENT).tolist():
            assert int(together.diversity(i, "ill")[joint]) <= len(possible[person]) <= int(left[joint])


@given(st.lists(rows_of_visits, min_size=2, max_size=3))
@examples(100)
def test_a_further_release_never_leaves_more(releases: list[list[Row]]) -> None:
    def most_of(n: int) -> dict[int, int]:
        together = Together([appearances(rows) for rows in releases[:n]])
        found: dict[int, int] = {}
        for person, size in zip(together.persons.tolist(), together.sizes[together.joint].tolist(), strict=True):
            found[person] = max(size, found.get(person, 0))
        return found

    before, after = most_of(len(releases) - 1), most_of(len(releases))
    assert all(after[person] <= size for person, size in before.items())


def test_values_that_one_person_carries_alone_are_one() -> None:
    """Three values in a joint class of two persons: one of them carries two, and is left out by whoever knows them."""
    rows = [(0, 0, 1), (0, 0, 2), (1, 0, 3)]
    assert Together([appearances(rows)]).diversity(0, "ill").tolist() == [2]


def test_one_who_leaves_alone_is_found_although_no_value_set_shrinks() -> None:
    """The same classes in both years; person 0 left: the values of the class before and after show what they had."""
    first = [(0, 0, 7), (1, 0, 8), (2, 0, 8), (3, 0, 9)]
    second = [row for row in first if row[0] != 0]
    together = Together([appearances(first, 2, {"ill": 2}), appearances(second, 2, {"ill": 2})])
    assert possible_values([first, second])[0] == {7}
    assert [(s.what, s.n_persons) for s in together.shortfalls()] == [("persons", 1), ("values", 1)]


def test_the_same_release_twice_says_no_more_than_once() -> None:
    rows = [(0, 0, 1), (1, 0, 2), (2, 1, 1), (3, 1, 2)]
    seen = appearances(rows, 2, {"ill": 2})
    assert not list(Together([seen, seen, seen]).shortfalls())
