from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import PrivacyNotAchievableError
from sfumato.learning.c45.tree import Tree
from sfumato.mechanisms.axes import Axis
from sfumato.mechanisms.recoder import Cover, generalize
from sfumato.mechanisms.tree import lenders as nearness
from sfumato.mechanisms.tree.tiered import tiered_cover, uniform_cover


def tree_of(*n_children: int) -> Tree:
    """Tree whose nodes, level by level, have these numbers of children; nodes not named are leaves."""
    n_nodes = 1 + sum(n_children)
    branching = np.array([*n_children, *[0] * (n_nodes - len(n_children))], dtype=np.int32)
    nothing = np.full(n_nodes, np.nan)
    return Tree(
        parent=np.append(-1, np.repeat(np.arange(n_nodes), branching)).astype(np.int32),
        attribute=np.where(branching > 0, 0, -1).astype(np.int32),
        threshold=nothing,
        cut=nothing,
        first_child=np.where(branching > 0, 1 + np.cumsum(branching) - branching, -1).astype(np.int32),
        n_children=branching,
        weights=np.ones(n_nodes),
        statistics=np.ones((n_nodes, 1)),
    )


def numeric(*values: float | None) -> Axis:
    known = sorted({v for v in values if v is not None})
    codes = [-1 if v is None else known.index(v) for v in values]
    return Axis("number", np.array(codes, dtype=np.int32), tuple(f"{v:g}" for v in known), np.array(known))


def categorical(*values: str | None) -> Axis:
    known = sorted({v for v in values if v is not None})
    codes = [-1 if v is None else known.index(v) for v in values]
    return Axis("category", np.array(codes, dtype=np.int32), tuple(known))


def ids(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int32)


def one_group(tree: Tree) -> np.ndarray:
    return np.zeros(tree.n_nodes, dtype=np.int32)


def stands_for(cover: Cover) -> list[set[int]]:
    """Rows whose values each row's class stands for."""
    members = cover.members.toarray() != 0
    parts = cover.parts.toarray() != 0
    return [set(np.flatnonzero(members[parts[c]].any(axis=0)).tolist()) for c in cover.of_row]


def n_fitting(values: list[tuple[float, str]], domain: list[tuple[float, str]]) -> int:
    """How many originals fit a released row that stands for the values of some rows (age and marital status)."""
    low, high = min(v[0] for v in domain), max(v[0] for v in domain)
    statuses = {v[1] for v in domain}
    return sum(low <= age <= high and status in statuses for age, status in values)


PAPER_ROWS = [(57.0, "M"), (61.0, "M"), (42.0, "N"), (29.0, "N"), (38.0, "N")]
PAPER_AXES = [numeric(*(age for age, _ in PAPER_ROWS)), categorical(*(status for _, status in PAPER_ROWS))]
PAPER_TREE = tree_of(2)
PAPER_LEAVES = ids(1, 1, 2, 2, 2)


def released_cells(cover: Cover) -> list[tuple[str | None, ...]]:
    columns = [[g.texts[g.of_class[c]] for c in cover.of_row] for g in generalize(PAPER_AXES, cover)]
    return list(zip(*columns, strict=True))


class TestTableOneOfThePaper:
    def test_tiered_generalization_is_as_printed(self):
        cover = tiered_cover(PAPER_TREE, PAPER_LEAVES, one_group(PAPER_TREE), PAPER_AXES, 3)

        assert released_cells(cover) == [
            ("[42, 61]", "*"),
            ("[42, 61]", "*"),
            ("[29, 61]", "*"),
            ("[29, 42]", "N"),
            ("[29, 42]", "N"),
        ]

    def test_uniform_generalization_is_as_printed(self):
        cover = uniform_cover(PAPER_LEAVES, one_group(PAPER_TREE))

        assert released_cells(cover) == [("[29, 61]", "*")] * 5

    def test_every_released_row_fits_three_originals(self):
        cover = tiered_cover(PAPER_TREE, PAPER_LEAVES, one_group(PAPER_TREE), PAPER_AXES, 3)

        fitting = [n_fitting(PAPER_ROWS, [PAPER_ROWS[i] for i in rows]) for rows in stands_for(cover)]
        assert fitting == [3, 3, 5, 3, 3]

    def test_step_three_to_the_letter_leaves_released_rows_that_fit_two_originals(self):
        """Rows that nobody borrowed get the values of their subset only, the shared row those of both subsets."""
        subsets = [{0, 1}, {2, 3, 4}]
        literal = [subsets[0], subsets[0], subsets[0] | subsets[1], subsets[1], subsets[1]]

        assert [n_fitting(PAPER_ROWS, [PAPER_ROWS[i] for i in rows]) for rows in literal] == [2, 2, 5, 3, 3]


def test_subgroup_of_k_rows_borrows_nothing():
    tree = tree_of(2)

    cover = tiered_cover(tree, ids(1, 1, 1, 2, 2, 2, 2), one_group(tree), [numeric(*range(7))], 3)
    assert stands_for(cover) == [{0, 1, 2}] * 3 + [{3, 4, 5, 6}] * 4


def test_rows_come_from_the_lowest_node_with_k_rows_however_near_others_are():
    tree = tree_of(2, 2)  # leaves 3 and 4 below 1, leaf 2 beside it
    axis = numeric(0, 1, 100, 99, 2, 3, 4)

    cover = tiered_cover(tree, ids(3, 3, 4, 4, 2, 2, 2), one_group(tree), [axis], 3)
    assert stands_for(cover)[0] == {0, 1, 3}
    assert stands_for(cover)[2] == {2, 3, 1}


def test_search_goes_on_above_a_node_that_has_too_few_rows():
    tree = tree_of(2, 2)

    cover = tiered_cover(tree, ids(3, 4, 2, 2), one_group(tree), [numeric(0, 100, 2, 3)], 3)
    assert stands_for(cover)[0] == {0, 2, 3}


def test_tier_deep_in_the_last_branch_is_found():
    tree = tree_of(2, 2, 2, 0, 0, 0, 2)  # leaves 3 and 4; 5, and 7 and 8 below 6

    cover = tiered_cover(tree, ids(8, 7, 5, 4, 3, 7, 5, 4, 3), one_group(tree), [numeric(*range(9))], 3)
    assert stands_for(cover)[0] == {0, 1, 5}


def test_rows_that_stopped_at_an_inner_node_are_a_subgroup():
    tree = tree_of(2, 2)

    cover = tiered_cover(tree, ids(3, 1, 4, 3, 1, 4, 3, 1, 4, 2), one_group(tree), [numeric(*range(10))], 3)
    assert stands_for(cover)[:3] == [{0, 3, 6}, {1, 4, 7}, {2, 5, 8}]


def test_group_of_exactly_k_rows_is_released_as_one():
    tree = tree_of(3)

    cover = tiered_cover(tree, ids(1, 2, 3, 3), one_group(tree), [numeric(5, 1, 9, 7)], 4)
    assert stands_for(cover) == [{0, 1, 2, 3}] * 4


def test_groups_do_not_lend_to_each_other():
    tree = tree_of(2, 2, 2)  # groups 1 (leaves 3, 4) and 2 (leaves 5, 6)
    groups = ids(-1, 1, 2, 1, 1, 2, 2)

    cover = tiered_cover(tree, ids(3, 4, 4, 5, 6, 6), groups, [numeric(0, 50, 51, 1, 52, 53)], 3)
    assert stands_for(cover) == [{0, 1, 2}] * 3 + [{3, 4, 5}] * 3


def test_lender_that_is_itself_too_small_stands_for_what_it_borrowed():
    """Without, row 1 would fit only rows 0 and 1: its own subgroup and the one that borrowed it."""
    tree = tree_of(3)

    cover = tiered_cover(tree, ids(1, 2, 3, 3, 3), one_group(tree), [numeric(0, 1, 3, 10, 11)], 3)
    assert stands_for(cover)[:3] == [{0, 1, 2}, {0, 1, 2}, {0, 1, 2, 3, 4}]


def test_lender_does_not_stand_for_what_its_borrower_borrowed_besides():
    tree = tree_of(3)  # subgroup 1 borrows a row of each neighbour

    cover = tiered_cover(tree, ids(1, 2, 2, 2, 3, 3, 3), one_group(tree), [numeric(5, 4, 0, 0, 6, 10, 10)], 3)
    assert stands_for(cover)[0] == {0, 1, 4}
    assert stands_for(cover)[1] == {1, 2, 3, 0}
    assert stands_for(cover)[4] == {4, 5, 6, 0}


def test_row_lent_to_several_stands_for_all_of_them():
    tree = tree_of(3)

    cover = tiered_cover(tree, ids(1, 1, 2, 2, 3, 3, 3), one_group(tree), [numeric(4, 4, 6, 6, 5, 50, 50)], 3)
    assert stands_for(cover)[4] == {0, 1, 2, 3, 4, 5, 6}
    assert stands_for(cover)[5] == {4, 5, 6}


def test_equally_near_rows_are_borrowed_in_their_order():
    tree = tree_of(3)

    cover = tiered_cover(tree, ids(2, 3, 1, 3, 2), one_group(tree), [numeric(7, 7, 0, 7, 7)], 3)
    assert stands_for(cover)[2] == {2, 0, 1}


def test_rows_with_most_values_in_common_are_near():
    tree = tree_of(2)
    axes = [categorical(*"aabacbcc"), categorical(*"uvwxvuxx")]

    cover = tiered_cover(tree, ids(1, 1, 1, 2, 2, 2, 2, 2), one_group(tree), axes, 5)
    assert stands_for(cover)[0] == {0, 1, 2, 3, 5}  # their values have 2/3 and 1/3 + 1/3 of the subgroup


@pytest.mark.parametrize(("first", "borrowed"), [(None, 2), (1.0, 3)])
def test_missing_is_near_missing_and_a_number_near_numbers(first: float | None, borrowed: int):
    tree = tree_of(2)

    cover = tiered_cover(tree, ids(1, 2, 2, 2), one_group(tree), [numeric(first, 100, None, 0)], 2)
    assert stands_for(cover)[0] == {0, borrowed}


def test_missing_number_is_half_way_off_a_subgroup_of_which_half_is_missing():
    """It is 1/2 away; a number is as well, and its distance from the mean of the numbers besides."""
    tree = tree_of(2)

    cover = tiered_cover(tree, ids(1, 1, 2, 2, 2), one_group(tree), [numeric(None, 10, 11, None, 0)], 3)
    assert stands_for(cover)[0] == {0, 1, 3}


def test_leaves_without_rows_make_no_part():
    tree = tree_of(4)

    cover = tiered_cover(tree, ids(2, 4, 4), one_group(tree), [numeric(1, 2, 3)], 2)
    assert stands_for(cover) == [{0, 1}, {1, 2, 0}, {1, 2}]
    assert np.diff(cover.members.indptr).min() > 0


def test_columns_without_spread_or_without_values_leave_the_choice_to_the_others():
    tree = tree_of(2)
    axes = [numeric(3, 3, 3, 3), numeric(None, None, None, None), categorical(None, None, None, None)]

    cover = tiered_cover(tree, ids(1, 2, 2, 2), one_group(tree), [*axes, numeric(0, 9, 8, 1)], 2)
    assert stands_for(cover)[0] == {0, 3}


@pytest.mark.parametrize("leaf_of_row", [ids(0, 0, 0), ids()], ids=["tree that cannot split", "no rows"])
def test_tree_of_one_node_is_one_group(leaf_of_row: np.ndarray):
    tree = tree_of()

    cover = tiered_cover(tree, leaf_of_row, ids(0), [numeric(*range(len(leaf_of_row)))], 3)
    assert stands_for(cover) == [set(range(len(leaf_of_row)))] * len(leaf_of_row)


def test_group_with_too_few_rows_is_refused():
    tree = tree_of(2)

    with pytest.raises(PrivacyNotAchievableError, match="k = 3") as refused:
        tiered_cover(tree, ids(1, 1, 2, 2, 2), ids(-1, 1, 2), [numeric(*range(5))], 3)
    assert refused.value.best_level == 2


@pytest.mark.parametrize(("max_pairs", "max_subgroups"), [(1, 1 << 10), (100, 1 << 10), (1 << 20, 3)])
def test_comparing_in_chunks_changes_nothing(monkeypatch: pytest.MonkeyPatch, max_pairs: int, max_subgroups: int):
    rng = np.random.default_rng(7)
    tree = tree_of(3, 4, 4, 4)
    leaves = rng.integers(4, tree.n_nodes, 60).astype(np.int32)
    axes = [numeric(*rng.integers(0, 30, 60).tolist()), categorical(*rng.choice(list("abcdef"), 60).tolist())]
    at_once = tiered_cover(tree, leaves, one_group(tree), axes, 8)
    monkeypatch.setattr(nearness, "_MAX_PAIRS", max_pairs)
    monkeypatch.setattr(nearness, "_MAX_SUBGROUPS", max_subgroups)
    seen: list[tuple[int, int, str]] = []

    in_chunks = tiered_cover(tree, leaves, one_group(tree), axes, 8, progress=lambda *args: seen.append(args))
    assert stands_for(in_chunks) == stands_for(at_once)
    assert len(seen) > 1
    assert seen[-1][0] == seen[-1][1]
