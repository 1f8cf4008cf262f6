"""Cuts that keep earlier groups together: the kernel against counting both sides of every cut."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.mechanisms.earlier_releases import EarlierReleases, GroupLimit


@st.composite
def places(draw: st.DrawFn) -> tuple[EarlierReleases, np.ndarray, np.ndarray]:
    n = draw(st.integers(1, 14))
    groups = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), dtype=np.int64)
    limits = []
    for _ in range(draw(st.integers(1, 2))):
        codes = np.array(draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)), dtype=np.int64)
        needed = np.array(draw(st.lists(st.integers(0, 4), min_size=3, max_size=3)), dtype=np.int64)
        limits.append(GroupLimit(codes, needed))
    rows = np.array(draw(st.permutations(range(n))))
    parts = np.sort(np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))))
    parts = np.unique(parts, return_inverse=True)[1].reshape(-1)
    return EarlierReleases(np.arange(n), groups, tuple(limits)), rows, parts


def is_allowed(earlier: EarlierReleases, rows: np.ndarray, parts: np.ndarray, index: int) -> bool:
    """Whether both sides of a cut have nothing, or enough, of every group of which the part has some."""
    here = [(place, row) for place, row in enumerate(rows.tolist()) if parts[place] == parts[index]]
    for side in ([r for p, r in here if p < index], [r for p, r in here if p >= index]):
        for limit in earlier.limits:
            for group, needed in enumerate(limit.needed.tolist()):
                held = {int(limit.codes[r]) for r in side if earlier.groups[r] == group}
                whole = {int(limit.codes[r]) for _, r in here if earlier.groups[r] == group}
                all_there = len([r for r in side if earlier.groups[r] == group]) == len(
                    [r for _, r in here if earlier.groups[r] == group]
                )
                # a group that has too few already can only stay whole
                if held and len(held) < needed and not (all_there and len(whole) < needed):
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
