"""Blocks hold every consistent pair of an original and a released class once, and leave out many others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.original import consistency as blocks
from sfumato.audit.original.consistency import blocks_of
from sfumato.audit.reading.cells import ColumnBits, Containing, packed, weighted_ones, weighted_rows
from sizes import examples


def column_of(n_places, places, cells):
    """Make a column of the originals' places and of the places that each released class may stand for."""
    runs = [(cell, place) for cell, held in enumerate(cells) for place in sorted(held)]
    merged = []
    for cell, place in runs:
        if merged and merged[-1][0] == cell and merged[-1][2] == place:
            merged[-1][2] = place + 1
        else:
            merged.append([cell, place, place + 1])
    numbers, starts, stops = np.array(merged, dtype=np.int64).reshape(-1, 3).T
    containing = Containing(np.arange(n_places), n_places, numbers, starts, stops, len(cells))
    return ColumnBits(containing, np.array(places, dtype=np.int64), np.arange(len(cells)))


@st.composite
def two_columns(draw):
    """Draw originals and classes with cells in a short column (sets) and one of more values than a word has bits."""
    n_originals, n_classes = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    drawn = []
    for n_places in (5, 70):
        places = draw(st.lists(st.integers(0, n_places - 1), min_size=n_originals, max_size=n_originals))
        cell = st.sets(st.integers(0, n_places - 1), max_size=4)
        drawn.append((n_places, places, draw(st.lists(cell, min_size=n_classes, max_size=n_classes))))
    return drawn


def consistent_pairs(drawn):
    n_originals, n_classes = len(drawn[0][1]), len(drawn[0][2])
    return {
        (original, released)
        for original in range(n_originals)
        for released in range(n_classes)
        if all(places[original] in cells[released] for _, places, cells in drawn)
    }


@pytest.mark.slow
@examples(100)
@given(two_columns(), st.integers(0, 20), st.sampled_from([0, 4, 100]))
def test_every_consistent_pair_is_in_one_block(drawn, most_pairs, few_originals):
    columns = [column_of(*parts) for parts in drawn]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_MOST_PAIRS", most_pairs)
        patch.setattr(blocks, "_FEW_ORIGINALS", few_originals)
        patch.setattr(blocks, "_SAMPLED", 3)
        found = list(blocks_of(columns, len(drawn[0][1]), len(drawn[0][2])))

    pairs = [(int(o), int(c)) for originals, classes in found for o in originals for c in classes]
    assert len(set(pairs)) == len(pairs)
    assert consistent_pairs(drawn) <= set(pairs)


def test_ranges_that_do_not_meet_are_divided_into_small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "_MOST_PAIRS", 100)
    n = 256
    column = column_of(n, range(n), [{place} for place in range(n)])

    found = list(blocks_of([column], n, n))

    assert sum(len(originals) * len(classes) for originals, classes in found) <= n * 16
    assert len(found) > n // 16


def test_blocks_that_cannot_become_smaller_are_not_divided(monkeypatch):
    monkeypatch.setattr(blocks, "_MOST_PAIRS", 0)
    everything = [set(range(4))] * 5

    found = list(blocks_of([column_of(4, [0, 1, 2, 3], everything)], 4, 5))

    assert [(o.tolist(), c.tolist()) for o, c in found] == [([0, 1, 2, 3], [0, 1, 2, 3, 4])]


def test_without_columns_or_rows():
    assert [(len(o), len(c)) for o, c in blocks_of([], 3, 2)] == [(3, 2)]
    assert list(blocks_of([], 0, 2)) == []


@examples(50)
@given(st.integers(1, 70), st.integers(1, 5), st.integers(0, 2**32 - 1), st.sampled_from([1, 3, 300]))
def test_weighted_sums_of_bits_are_those_of_the_plain_matrix(n_bits, n_rows, seed, largest):
    rng = np.random.default_rng(seed)
    flags = rng.random((n_rows, n_bits)) < 0.5
    of_bits, of_rows = rng.integers(0, largest, n_bits), rng.integers(0, largest, n_rows)
    words = np.stack([packed(row) for row in flags])

    assert weighted_ones(words, of_bits).tolist() == (flags * of_bits).sum(axis=1).tolist()
    assert weighted_rows(words, of_rows, n_bits).tolist() == (flags * of_rows[:, None]).sum(axis=0).tolist()


def test_more_rows_than_a_byte_counts():
    words = np.stack([packed(np.array([True, False, True]))] * 600)

    assert weighted_rows(words, np.full(600, 3), 3).tolist() == [1800, 0, 1800]
