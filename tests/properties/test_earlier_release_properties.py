"""Cuts that keep earlier groups together: the kernel against counting both sides of every cut."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.audit.together.appearances import Named, NamedRows, Promised
from sfumato.mechanisms.axes import Axis
from sfumato.mechanisms.earlier_releases import EarlierReleases, GroupLimit
from sfumato.mechanisms.mondrian.division import mondrian_partition
from sfumato.publishing.repair import asked_by_earlier
from together_oracles import ABSENT, carried, joint_classes, remaining


@st.composite
def places(draw: st.DrawFn) -> tuple[EarlierReleases, np.ndarray, np.ndarray]:
    """Rows in an order and in parts, each a member of one group or, as rows of persons with several, of up to three."""
    n = draw(st.integers(1, 14))
    of_rows = draw(
        st.one_of(
            st.just([1] * n),
            st.lists(st.integers(1, 3), min_size=n, max_size=n),
        )
    )
    groups = np.concatenate([draw(st.permutations(range(3)))[:size] for size in of_rows]).astype(np.int64)
    limits = []
    for _ in range(draw(st.integers(1, 2))):
        codes = np.array(draw(st.lists(st.integers(-1, 5), min_size=len(groups), max_size=len(groups))), dtype=np.int64)
        needed = np.array(draw(st.lists(st.integers(0, 4), min_size=3, max_size=3)), dtype=np.int64)
        limits.append(GroupLimit(codes, needed))
    rows = np.array(draw(st.permutations(range(n))))
    parts = np.sort(np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))))
    parts = np.unique(parts, return_inverse=True)[1].reshape(-1)
    row_of = None if max(of_rows) == 1 else np.repeat(np.arange(n), of_rows)
    return EarlierReleases(np.arange(n), groups, tuple(limits), row_of), rows, parts


def is_allowed(earlier: EarlierReleases, rows: np.ndarray, parts: np.ndarray, index: int) -> bool:
    """Whether both sides of a cut have nothing, or enough, of every group of which the part has some."""
    row_of = range(len(rows)) if earlier.row_of is None else earlier.row_of.tolist()
    place_of = {row: place for place, row in enumerate(rows.tolist())}
    for limit in earlier.limits:
        for group, needed in enumerate(limit.needed.tolist()):
            members = [(place_of[r], m) for m, r in enumerate(row_of) if earlier.groups[m] == group]
            here = [(place, m) for place, m in members if parts[place] == parts[index]]
            for side in ([m for p, m in here if p < index], [m for p, m in here if p >= index]):
                held, whole = ({int(limit.codes[m]) for m in own} - {-1} for own in (side, [m for _, m in here]))
                # a group that has too few already can only stay whole
                stays_whole = len(side) == len(here) and len(whole) < needed
                if side and needed > 1 and len(held) < needed and not stays_whole:
                    return False
    return True


@given(places())
@settings(max_examples=400, deadline=None)
def test_a_cut_is_allowed_when_both_sides_have_nobody_or_enough_of_every_group(given_places) -> None:
    earlier, rows, parts = given_places
    allowed = earlier.allowed(rows, parts)
    for index in range(1, len(rows)):
        if parts[index] == parts[index - 1]:  # a cut within a part
            assert bool(allowed[index]) == is_allowed(earlier, rows, parts, index), index


@given(places(), st.data())
@settings(max_examples=100, deadline=None)
def test_members_of_the_rows_that_are_kept_stay_with_their_rows(given_places, data) -> None:
    earlier, _, _ = given_places
    kept = np.array(sorted(data.draw(st.sets(st.sampled_from(range(len(earlier.kept)))))), dtype=np.intp)
    smaller = EarlierReleases(kept, earlier.groups, earlier.limits, earlier.row_of).of_kept()
    row_of = np.arange(len(earlier.kept)) if earlier.row_of is None else earlier.row_of
    found = range(len(kept)) if smaller.row_of is None else smaller.row_of.tolist()
    expected = [(r, g) for r, g in zip(row_of.tolist(), earlier.groups.tolist(), strict=True) if r in kept.tolist()]
    assert [(int(kept[r]), g) for r, g in zip(found, smaller.groups.tolist(), strict=True)] == expected


# The repair as a whole, against the definition of what several releases say together.

Visit = tuple[int, int, int]
"""Person, place on an axis, sensitive value."""


def named(visits: list[Visit], classes: list[int], k: int, diversity: float) -> NamedRows:
    def names(codes: list[int]) -> Named:
        distinct = tuple(str(code).encode() for code in sorted(set(codes)))
        return Named(np.array([distinct.index(str(c).encode()) for c in codes], dtype=np.int64), distinct)

    promised = Promised(k, ("place",), {"ill": diversity} if diversity > 1 else {})
    values = {"ill": names([v for _, _, v in visits])} if diversity > 1 else {}
    return NamedRows(names([p for p, _, _ in visits]), np.array(classes, dtype=np.int64), values, promised)


def people_below(years: list[list[Visit]], classes: list[list[int]], ks: list[int], ls: list[float]) -> set[int]:
    """Persons for whom some promise fails, by the definition, in plain loops."""
    placed = [
        [(p, c, v) for (p, _, v), c in zip(year, own, strict=True) if c >= 0]
        for year, own in zip(years, classes, strict=True)
    ]
    below = set()
    for combination, persons in joint_classes(placed).items():
        there = [i for i, c in enumerate(combination) if c != -1]
        asked = max(ls[i] for i in there)
        if (
            len(persons) < max(ks[i] for i in there)
            or any(carried(placed[i], combination[i], persons) < ls[i] for i in there if ls[i] > 1)
            or (asked > 1 and 0 < remaining(placed, combination) < asked)
        ):
            below |= persons
    return below


@st.composite
def several_years(draw: st.DrawFn) -> tuple[int, float, list[list[Visit]]]:
    """One or two earlier years and a new one, of persons with several rows; values may change from row to row."""
    k, diversity = draw(st.sampled_from([(2, 1.0), (2, 2.0), (3, 2.0), (3, 3.0)]))
    n_persons = draw(st.integers(4, 12))
    visit = st.tuples(st.integers(0, n_persons - 1), st.integers(0, 5), st.integers(0, 3))
    return k, diversity, draw(st.lists(st.lists(visit, min_size=4, max_size=18), min_size=2, max_size=3))


def halves(year: list[Visit]) -> list[int]:
    return [place // 3 for _, place, _ in year]


def is_nobody_new_below(years: list[list[Visit]], new: list[int], k: int, diversity: float) -> bool:
    classes, n = [halves(year) for year in years[:-1]], len(years)
    before = people_below(years[:-1], classes, [k] * n, [diversity] * n)
    return people_below(years, [*classes, new], [k] * n, [diversity] * n) <= before


@given(several_years())
@settings(max_examples=150, deadline=None)
def test_whatever_is_cut_after_a_repair_leaves_nobody_new_below(drawn) -> None:
    k, diversity, years = drawn
    known, year = [named(own, halves(own), k, diversity) for own in years[:-1]], years[-1]
    asked = asked_by_earlier(known, named(year, [0] * len(year), k, diversity))
    for choice in asked.choices():
        new = [ABSENT] * len(year)
        if len(choice.kept):
            places = np.array([year[row][1] for row in choice.kept], dtype=np.int32)
            axis = Axis("place", places, tuple(map(str, range(6))), np.arange(6.0))
            division = mondrian_partition([axis], 1, earlier=choice.of_kept()).of_row
            for row, own in zip(choice.kept.tolist(), division.tolist(), strict=True):
                new[row] = own
        assert is_nobody_new_below(years, new, k, diversity)


@given(several_years())
@settings(max_examples=150, deadline=None)
def test_classes_that_are_settled_keep_whom_they_can_and_leave_nobody_new_below(drawn) -> None:
    k, diversity, years = drawn
    known, year = [named(own, halves(own), k, diversity) for own in years[:-1]], years[-1]
    settled = halves(year)
    kept = set(asked_by_earlier(known, named(year, settled, k, diversity)).kept.tolist())
    new = [own if row in kept else ABSENT for row, own in enumerate(settled)]
    assert is_nobody_new_below(years, new, k, diversity)


def test_values_that_one_person_carries_alone_do_not_pass_for_three() -> None:
    """Three persons with three values among them, all of the first one: the others have one of them between them."""
    first = [(0, 0, 0), (1, 0, 1), (2, 0, 2)]
    second = [(0, 0, 0), (0, 0, 1), (0, 0, 2), (1, 0, 0), (2, 0, 0)]
    known = [named(first, [0] * 3, 3, 3.0)]
    assert people_below([first, second], [[0] * 3, [0] * 5], [3, 3], [3.0, 3.0]) == {0, 1, 2}
    assert not len(asked_by_earlier(known, named(second, [0] * 5, 3, 3.0)).kept)
