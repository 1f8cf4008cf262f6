"""Large tiers, in which rows are looked up: the same rows are borrowed, and few are compared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.learning.c45.tree import Tree
from sfumato.mechanisms.axes import Axis
from sfumato.mechanisms.recoder import Cover
from sfumato.mechanisms.tree import lenders, tiered
from sfumato.mechanisms.tree.groups import RowsByLeaf
from sfumato.mechanisms.tree.lenders import Lenders, coordinates_of, distances_of
from sfumato.mechanisms.tree.tiered import tiered_cover

Row = tuple[int | str | None, ...]


def star(n_leaves: int) -> Tree:
    """Root with leaves, numbered from 1."""
    nothing = np.full(n_leaves + 1, np.nan)
    n_children = np.array([n_leaves] + [0] * n_leaves, dtype=np.int32)
    return Tree(
        parent=np.array([-1] + [0] * n_leaves, dtype=np.int32),
        attribute=np.where(n_children > 0, 0, -1).astype(np.int32),
        threshold=nothing,
        cut=nothing,
        first_child=np.where(n_children > 0, 1, -1).astype(np.int32),
        n_children=n_children,
        weights=np.ones(n_leaves + 1),
        statistics=np.ones((n_leaves + 1, 1)),
    )


def axis(values: list[int | str | None], *, is_numeric: bool) -> Axis:
    known = sorted({v for v in values if v is not None})
    codes = np.array([-1 if v is None else known.index(v) for v in values], dtype=np.int32)
    return Axis("c", codes, tuple(map(str, known)), np.array(known, dtype=np.float64) if is_numeric else None)


@contextmanager
def limits(**constants: int) -> Iterator[None]:
    """Set constants of the modules, so that few rows are many."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in constants.items():
            patch.setattr(tiered if name == "_MANY_PAIRS" else lenders, name, value)
        yield


def cover_of(rows: list[Row], leaves: list[int], n_numeric: int, k: int) -> Cover:
    axes = [axis(list(column), is_numeric=j < n_numeric) for j, column in enumerate(zip(*rows, strict=True))]
    tree = star(max(leaves))
    return tiered_cover(tree, np.array(leaves, dtype=np.int32), np.zeros(tree.n_nodes, dtype=np.int32), axes, k)


def homes(cover: Cover) -> list[list[int]]:
    """Rows of the subgroup of each row, and those it borrowed."""
    members = cover.members.tocsr()
    return [sorted(members[home].indices.tolist()) for home in cover.home]


def squared_distance(rows: list[Row], n_numeric: int, candidate: int, subgroup: list[int]) -> float:
    total = 0.0
    for j, column in enumerate(zip(*rows, strict=True)):
        value, own = column[candidate], [column[i] for i in subgroup]
        if j < n_numeric:
            known, own_known = [v for v in column if v is not None], [v for v in own if v is not None]
            total += ((value is None) - own.count(None) / len(own)) ** 2
            if value is not None and own_known and max(known) > min(known):
                total += ((value - sum(own_known) / len(own_known)) / (max(known) - min(known))) ** 2
        else:
            total += sum(((value == v) - own.count(v) / len(own)) ** 2 for v in set(column)) / 2
    return total


@st.composite
def placed_rows(draw: st.DrawFn) -> tuple[list[Row], list[int], int, int]:
    n_numeric, n_categorical = draw(st.integers(0, 2)), draw(st.integers(1, 2))
    number = st.one_of(st.none(), st.integers(0, 20))
    text = st.one_of(st.none(), st.sampled_from("aaabbcdefghijklmnop"))
    row = st.tuples(*[number] * n_numeric, *[text] * n_categorical)
    placed = draw(st.lists(st.tuples(row, st.integers(1, 15)), min_size=10, max_size=60))
    return [r for r, _ in placed], [leaf for _, leaf in placed], n_numeric, draw(st.integers(2, 4))


@pytest.mark.slow
@given(placed_rows(), st.sampled_from([0, 2, 5]))
def test_rows_looked_up_are_those_that_comparing_all_finds(case: tuple[list[Row], list[int], int, int], rare: int):
    with limits(_MANY_PAIRS=0, _SMALLEST_BLOCK=1, _RARE=rare):
        looked_up = homes(cover_of(*case))

    assert looked_up == homes(cover_of(*case))


@pytest.mark.slow
@given(placed_rows())
def test_rows_looked_up_are_the_nearest(case: tuple[list[Row], list[int], int, int]):
    rows, leaves, n_numeric, k = case
    with limits(_MANY_PAIRS=0, _SMALLEST_BLOCK=1, _RARE=2):
        found = homes(cover_of(*case))

    for i, home in enumerate(found):
        own = [j for j, leaf in enumerate(leaves) if leaf == leaves[i]]
        others = [j for j, leaf in enumerate(leaves) if leaf != leaves[i]]
        distances = {j: squared_distance(rows, n_numeric, j, own) for j in others}
        n_needed = max(k - len(own), 0)
        assert sorted(distances[j] for j in home if j not in own) == pytest.approx(
            sorted(distances.values())[:n_needed], abs=1e-9
        )


@pytest.mark.slow
@given(placed_rows())
def test_restricted_lookup_still_fills_every_subgroup_with_rows_of_others(
    case: tuple[list[Row], list[int], int, int],
):
    _, leaves, _, k = case
    with limits(_MANY_PAIRS=0, _SMALLEST_BLOCK=1, _RARE=2, _FEW_PAIRS=0, _MAX_LENDERS=1, _MAX_CANDIDATES=1):
        found, again = homes(cover_of(*case)), homes(cover_of(*case))

    assert found == again
    for i, home in enumerate(found):
        own = {j for j, leaf in enumerate(leaves) if leaf == leaves[i]}
        assert own <= set(home)
        assert len(home) == max(k, len(own))


def lenders_of_many(n_borrowers: int, ages: np.ndarray) -> tuple[RowsByLeaf, Lenders]:
    """Rows of a place each three share, all leaves of the root, with k = 5."""
    n = len(ages)
    place = np.repeat(np.arange(-(-n // 3)), 3)[:n]
    jobs = np.random.default_rng(2).integers(0, 6, n)
    axes = [
        axis([f"p{p}" for p in place], is_numeric=False),
        axis(ages.tolist(), is_numeric=True),
        axis([f"j{j}" for j in jobs], is_numeric=False),
    ]
    rows = RowsByLeaf.of(star(int(place.max()) + 1), (1 + place).astype(np.int32))
    return rows, Lenders.of(rows, 0, coordinates_of(axes, rows), 5, n_borrowers)


@pytest.mark.slow
@pytest.mark.parametrize("n_ages", [30, 10_000], ids=["many rows alike", "nearly all rows different"])
def test_few_rows_of_a_large_tier_are_compared(n_ages: int):
    _, large = lenders_of_many(2_000, np.random.default_rng(1).integers(0, n_ages, 6_000))

    n_compared = sum(len(pairs.places) for pairs in large.candidates(np.arange(2_000)))
    assert n_compared < 2_000 * 6_000 / 15


def test_bounds_of_blocks_are_not_above_the_distances_to_their_rows():
    with limits(_RARE=3):
        rows, large = lenders_of_many(100, np.random.default_rng(1).integers(0, 50, 300))
    borrowers = np.arange(100)
    least = large.blocks.least_distances(rows, borrowers)

    n_blocks = len(large.blocks.sizes)
    assert n_blocks > 1
    every = large._pairs(borrowers, np.ones((100, n_blocks), dtype=np.bool_))
    bounds = least[every.of_pair, large.block_of[every.places]]
    assert (bounds <= distances_of(large.coordinates, every) + 1e-12).all()
    assert (bounds > -1).any()


def test_beyond_what_is_affordable_blocks_and_candidates_are_limited():
    ages = np.random.default_rng(1).permutation(3_000)
    with limits(_FEW_PAIRS=0, _MAX_LENDERS=500, _MAX_CANDIDATES=100):
        _, large = lenders_of_many(1_000, ages)
        compared = [np.bincount(pairs.of_pair) for pairs in large.candidates(np.arange(1_000))]

    assert 400 <= len(large.blocks.members) <= 500
    assert np.concatenate(compared).max() <= 250 + 64  # 50 k, and the rest of a block
