"""Bags that DuckDB counts are judged as those in memory."""

import numpy as np
import pytest

from sfumato.audit.checks import Check, Unchecked
from sfumato.audit.original import bags_on_disk
from sfumato.audit.original.bags_on_disk import check_bag_on_disk
from sfumato.audit.original.cell_rules import CellRule, FittingRule
from sfumato.audit.reading.cells import Containing
from tests.unit.audit.original.test_assignment import EXACT, FITTING, bags, fits

MEMORY = 10**9
NUMBERS = CellRule("c", "c")
"""A column whose values are not listed: numbers of their meanings come as they are."""


def blocks(rows, n_rows=7):
    """Start a pass over rows, each of a fitting, an exact and a long column."""

    def started():
        for start in range(0, len(rows), n_rows):
            some = rows[start : start + n_rows]
            yield [np.array([row[i] for row in some], dtype=np.int64) for i in range(3)]

    return started


def judged(originals, released):
    return check_bag_on_disk([FITTING, EXACT, NUMBERS], blocks(originals), blocks(released), MEMORY)


def made(rng, n=40):
    originals = [(int(rng.integers(8)), int(rng.integers(3)), int(rng.integers(4))) for _ in range(n)]
    cells = [[i for i in range(7) if fits(row, (i, row[1]))] for row in originals]
    return originals, [(int(rng.choice(own)), row[1], row[2]) for own, row in zip(cells, originals, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_as_in_memory(seed):
    rng = np.random.default_rng(seed)
    originals, released = made(rng)
    shown = [released[i] for i in rng.permutation(len(released))[: rng.integers(1, len(released) + 1)]]
    cell, exact, number = shown[0]
    tampered = [(cell, (exact + 1) % 3, number), *shown[1:]], [(int(rng.integers(7)), exact, number), *shown[1:]]

    assert judged(originals, shown).passed
    for other in tampered:
        with_number = [(row[0], row[1] + 3 * row[2]) for row in originals], [(r[0], r[1] + 3 * r[2]) for r in other]
        found = judged(originals, other)
        assert isinstance(found, Check)
        assert found.passed == _in_memory(*with_number)


def _in_memory(originals, released):
    """Exact columns side by side as one."""
    both = CellRule("b", "b", np.arange(12), np.arange(12))
    from sfumato.audit.original.assignment import BothBags

    codes = [[np.array([row[i] for row in rows], dtype=np.int64) for i in range(2)] for rows in (originals, released)]
    return BothBags.of([FITTING, both], *codes).can_be_assigned()


def test_rows_that_stay_together_need_no_distinct_rows_in_memory(monkeypatch):
    """Equal values became the same cell, so that counts of the overlapping column tell what became what."""
    cell = {0: 0, 1: 6, 2: 3, 3: 1, 4: 3, 5: 3, 6: 6, 7: 4}
    rng = np.random.default_rng(1)
    originals = [(int(rng.integers(8)), int(rng.integers(3)), i) for i in range(500)]
    released = sorted((cell[value], exact, number) for value, exact, number in originals)

    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(bags_on_disk, "_are_assigned_in_parts", refuse)
    assert judged(originals, released).passed
    assert bags([row[:2] for row in originals], [row[:2] for row in released]).can_be_assigned()


@pytest.mark.slow
def test_what_a_row_became_may_depend_on_a_coarsened_column_that_does_not_overlap():
    """As where too few men of an age are left for a group, and women of that age are not."""
    cell = {(value, exact): 5 if (value + exact) % 4 == 0 else 3 for value in range(8) for exact in range(3)}
    each = np.arange(3)
    as_it_is = FittingRule("b", "b", read=Containing(each, 3, each, each, each + 1, 3))
    rng = np.random.default_rng(2)
    originals = [(int(rng.choice([2, 4])), int(rng.integers(3)), i) for i in range(500)]
    released = sorted((cell[value, exact], exact, number) for value, exact, number in originals)
    forged = [(released[0][0], (released[0][1] + 1) % 3, released[0][2]), *released[1:]]

    def judged_so(shown):
        return check_bag_on_disk([FITTING, as_it_is, NUMBERS], blocks(originals), blocks(shown), MEMORY)

    assert not judged_so(forged).passed
    assert judged_so(released).passed


@pytest.mark.slow
def test_more_values_than_fit_are_counted_by_the_cells_that_may_mean_them(monkeypatch):
    """Twelve thousand values of two cells that overlap: two distinct rows, where 10,000 fit."""
    monkeypatch.setattr(bags_on_disk, "_BYTES_A_CELL", MEMORY)
    n = 12_000
    read = Containing(np.arange(n), n, np.array([0, 1]), np.array([0, 0]), np.array([n, n // 2]), 2)
    originals = np.arange(n)
    released = np.where(originals < n // 2, 1, 0)

    def judged_so(shown):
        return check_bag_on_disk([FittingRule("a", "a", read=read)], lambda: [[originals]], lambda: [[shown]], MEMORY)

    assert judged_so(released).passed
    assert judged_so(np.append(released[1:], 0)).passed  # the wider cell may mean any value
    assert not judged_so(np.append(released[:-1], 1)).passed


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_parts_are_judged_as_the_whole(seed, monkeypatch):
    monkeypatch.setattr(
        bags_on_disk, "_distinct", lambda *_, **__: None
    )  # counts of the overlapping columns do not tell
    rng = np.random.default_rng(seed)
    originals, released = made(rng, 120)
    compared = [bags_on_disk._compared(rule) for rule in (FITTING, EXACT, NUMBERS)]
    for shown in (released, [(released[0][0], released[0][1], 99), *released[1:]]):
        found = bags_on_disk._are_assigned_in_parts(compared, blocks(originals), blocks(shown), MEMORY, 30)
        assert found == (shown is released)


def test_too_many_distinct_rows_are_said_where_counts_do_not_tell(monkeypatch):
    monkeypatch.setattr(bags_on_disk, "_distinct", lambda *_, **__: None)
    monkeypatch.setattr(bags_on_disk, "_MOST_PARTS", 0)

    assert isinstance(judged([(0, 0, 0), (1, 0, 1)], [(2, 0, 0)]), Unchecked)
