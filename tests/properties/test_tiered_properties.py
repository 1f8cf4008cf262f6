"""Tiered generalization against its definition, on trees and rows drawn at random."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.learning.c45.tree import Tree
from sfumato.mechanisms.axes import Axis
from sfumato.mechanisms.recoder import Cover
from sfumato.mechanisms.tree.tiered import tiered_cover, uniform_cover

Row = tuple[int | str | None, ...]
Domain = list[tuple[int, int] | set[str | None] | None]


class Case(NamedTuple):
    """Rows of numbers (first columns) and texts on the leaves of a tree, with a group of at least k rows for each."""

    rows: list[Row]
    n_numeric: int
    parent: list[int]
    leaf_of_row: list[int]
    group_of_node: list[int]
    k: int

    def axes(self) -> list[Axis]:
        return [_axis(f"c{j}", column, j < self.n_numeric) for j, column in enumerate(zip(*self.rows, strict=True))]

    def tree(self) -> Tree:
        n_nodes = len(self.parent)
        n_children = [self.parent.count(node) for node in range(n_nodes)]
        first_child = [self.parent.index(node) if n_children[node] else -1 for node in range(n_nodes)]
        nothing = np.full(n_nodes, np.nan)
        return Tree(
            parent=np.array(self.parent, dtype=np.int32),
            attribute=np.array([0 if n else -1 for n in n_children], dtype=np.int32),
            threshold=nothing,
            cut=nothing,
            first_child=np.array(first_child, dtype=np.int32),
            n_children=np.array(n_children, dtype=np.int32),
            weights=np.ones(n_nodes),
            statistics=np.ones((n_nodes, 1)),
        )

    def tiered(self) -> Cover:
        leaves, groups = np.array(self.leaf_of_row, dtype=np.int32), np.array(self.group_of_node, dtype=np.int32)
        return tiered_cover(self.tree(), leaves, groups, self.axes(), self.k)

    def subgroup(self, row: int) -> set[int]:
        return {i for i, leaf in enumerate(self.leaf_of_row) if leaf == self.leaf_of_row[row]}

    def rows_below(self, node: int) -> set[int]:
        return {i for i, leaf in enumerate(self.leaf_of_row) if node in _path(self.parent, leaf)}


def _axis(name: str, values: Row, is_numeric: bool) -> Axis:
    known = sorted({v for v in values if v is not None})
    codes = np.array([-1 if v is None else known.index(v) for v in values], dtype=np.int32)
    positions = np.array(known, dtype=np.float64) if is_numeric else None
    return Axis(name, codes, tuple(map(str, known)), positions)


def _path(parent: list[int], node: int) -> list[int]:
    """Nodes from a node up to the root, both included."""
    return [node] if parent[node] < 0 else [node, *_path(parent, parent[node])]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    parent = [-1]
    for node, n in enumerate(draw(st.lists(st.integers(0, 4), max_size=7))):
        parent += [node] * (n if node < len(parent) else 0)
    leaves = [node for node in range(len(parent)) if node not in parent]
    k = draw(st.integers(1, 5))
    n_numeric, n_categorical = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    number = st.one_of(st.none(), st.integers(-3, 8))
    text = st.sampled_from([None, "a", "b", "c"])
    row = st.tuples(*[number] * n_numeric, *[text] * n_categorical)
    placed = draw(st.lists(st.tuples(row, st.sampled_from(leaves)), min_size=k, max_size=12))
    leaf_of_row = [leaf for _, leaf in placed]
    stops = draw(st.lists(st.booleans(), min_size=len(parent), max_size=len(parent)))
    return Case([r for r, _ in placed], n_numeric, parent, leaf_of_row, _groups(parent, leaf_of_row, stops, k), k)


def _groups(parent: list[int], leaf_of_row: list[int], stops: list[bool], k: int) -> list[int]:
    """Group of every node when the tree is pruned at some nodes, and above groups with fewer than k rows."""

    def size(node: int) -> int:
        return sum(node in _path(parent, leaf) for leaf in leaf_of_row)

    def is_stop(node: int) -> bool:
        children = [child for child in range(len(parent)) if parent[child] == node]
        return stops[node] or not children or any(0 < size(child) < k for child in children)

    return [next((n for n in reversed(_path(parent, node)) if is_stop(n)), -1) for node in range(len(parent))]


def _stands_for(cover: Cover) -> list[set[int]]:
    members, parts = cover.members.toarray() != 0, cover.parts.toarray() != 0
    return [set(np.flatnonzero(members[parts[c]].any(axis=0)).tolist()) for c in cover.of_row]


def _domain(case: Case, rows: set[int]) -> tuple[Domain, list[bool]]:
    """Range or set of values of some rows in each column, and whether some are missing there."""
    ranges: Domain = []
    for j, column in enumerate(zip(*(case.rows[i] for i in rows), strict=True)):
        known = [v for v in column if v is not None]
        if j < case.n_numeric:
            ranges.append((min(known), max(known)) if known else None)
        else:
            ranges.append(set(known))
    return ranges, [None in column for column in zip(*(case.rows[i] for i in rows), strict=True)]


def _fits(row: Row, domain: tuple[Domain, list[bool]]) -> bool:
    for value, held, may_be_missing in zip(row, *domain, strict=True):
        if value is None:
            fits = may_be_missing
        elif isinstance(held, tuple):
            fits = held[0] <= value <= held[1]
        else:
            fits = held is not None and value in held
        if not fits:
            return False
    return True


def _fit_matrix(case: Case) -> list[list[bool]]:
    """Whether each original (outer) fits each released row (inner)."""
    domains = [_domain(case, rows) for rows in _stands_for(case.tiered())]
    return [[_fits(row, domain) for domain in domains] for row in case.rows]


def _has_perfect_matching(fits: list[list[bool]]) -> bool:
    owner: dict[int, int] = {}

    def place(original: int, tried: set[int]) -> bool:
        for released, may in enumerate(fits[original]):
            if may and released not in tried:
                tried.add(released)
                if released not in owner or place(owner[released], tried):
                    owner[released] = original
                    return True
        return False

    return all(place(original, set()) for original in range(len(fits)))


def _borrowed(case: Case) -> list[set[int]]:
    """Rows that the subgroup of each row borrowed: the other members of its home."""
    cover = case.tiered()
    members = cover.members.toarray() != 0
    return [set(np.flatnonzero(members[home]).tolist()) - case.subgroup(i) for i, home in enumerate(cover.home)]


def _squared_distance(case: Case, candidate: int, subgroup: set[int]) -> float:
    """From a row to the mean of a subgroup; every column is written out as coordinates."""
    total = 0.0
    for j, column in enumerate(zip(*case.rows, strict=True)):
        value, own = column[candidate], [column[i] for i in subgroup]
        if j < case.n_numeric:
            known, own_known = [v for v in column if v is not None], [v for v in own if v is not None]
            total += ((value is None) - own.count(None) / len(own)) ** 2
            if value is not None and own_known and max(known) > min(known):
                total += ((value - sum(own_known) / len(own_known)) / (max(known) - min(known))) ** 2
        else:
            total += sum(((value == v) - own.count(v) / len(own)) ** 2 for v in set(column)) / 2
    return total


@given(cases())
def test_every_original_fits_k_released_rows_and_every_released_row_k_originals(case: Case):
    fits = _fit_matrix(case)

    assert all(sum(row) >= case.k for row in fits)
    assert all(sum(column) >= case.k for column in zip(*fits, strict=True))


@pytest.mark.slow
@given(cases())
def test_every_original_is_matched_with_k_released_rows_in_some_perfect_matching(case: Case):
    fits = _fit_matrix(case)
    n = len(fits)

    def may_be(original: int, released: int) -> bool:
        rest = [[fits[i][j] for j in range(n) if j != released] for i in range(n) if i != original]
        return fits[original][released] and _has_perfect_matching(rest)

    assert all(sum(may_be(i, j) for j in range(n)) >= case.k for i in range(n))


@pytest.mark.slow
@given(cases())
def test_small_subgroups_borrow_the_rows_that_are_missing_to_k_from_the_lowest_tier(case: Case):
    for i, borrowed in enumerate(_borrowed(case)):
        path = _path(case.parent, case.leaf_of_row[i])
        tier = next(node for node in path if len(case.rows_below(node)) >= case.k)

        assert len(borrowed) == max(case.k - len(case.subgroup(i)), 0)
        assert borrowed <= case.rows_below(tier) & case.rows_below(case.group_of_node[case.leaf_of_row[i]])


@pytest.mark.slow
@given(cases())
def test_borrowed_rows_are_the_nearest_to_the_centroid(case: Case):
    for i, borrowed in enumerate(_borrowed(case)):
        subgroup = case.subgroup(i)
        path = _path(case.parent, case.leaf_of_row[i])
        tier = next(node for node in path if len(case.rows_below(node)) >= case.k)
        left = case.rows_below(tier) - subgroup - borrowed
        for lent in borrowed:
            for other in left:
                nearer = _squared_distance(case, other, subgroup) - _squared_distance(case, lent, subgroup)

                assert nearer > -1e-9
                assert case.rows[other] != case.rows[lent] or lent < other


@pytest.mark.slow
@given(cases())
def test_row_stands_for_its_subgroup_what_this_borrowed_and_the_subgroups_that_borrowed_it(case: Case):
    borrowed = _borrowed(case)

    for i, stands_for in enumerate(_stands_for(case.tiered())):
        borrowers = {j for j, rows in enumerate(borrowed) if i in rows}
        assert stands_for == case.subgroup(i) | borrowed[i] | borrowers


@given(cases())
def test_home_is_the_one_part_of_its_class_that_a_row_is_a_member_of(case: Case):
    cover = case.tiered()
    members, parts = cover.members.toarray() != 0, cover.parts.toarray() != 0

    for i, (home, its_class) in enumerate(zip(cover.home, cover.of_row, strict=True)):
        assert np.flatnonzero(parts[its_class] & members[:, i]).tolist() == [home]


@given(cases())
def test_rows_that_stand_for_the_same_parts_are_one_class_and_every_class_has_rows(case: Case):
    cover = case.tiered()
    classes = [tuple(row.tolist()) for row in cover.parts.toarray() != 0]

    assert len(set(classes)) == len(classes)
    assert set(cover.of_row.tolist()) == set(range(len(classes)))


@pytest.mark.slow
@given(cases())
def test_tiered_rows_stand_for_no_more_than_uniform_ones(case: Case):
    uniform = uniform_cover(np.array(case.leaf_of_row), np.array(case.group_of_node))

    for inside, outside in zip(_stands_for(case.tiered()), _stands_for(uniform), strict=True):
        assert inside <= outside
