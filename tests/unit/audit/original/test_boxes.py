"""The index of released classes against looking at every class, for boxes that come from cuts and for any others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.original.boxes import NO_BOX, Boxes
from sfumato.audit.reading.cells import Containing
from sizes import examples

N_PLACES = 8


def containing(sets):
    """Say what distinct cells stand for, given the set of places of each."""
    cells, starts, stops = [], [], []
    for cell, places in enumerate(sets):
        for place in sorted(places):
            if cells and cells[-1] == cell and stops[-1] == place:
                stops[-1] += 1
            else:
                cells.append(cell)
                starts.append(place)
                stops.append(place + 1)
    each = np.arange(N_PLACES)
    numbers = (np.array(own, dtype=np.int64) for own in (cells, starts, stops))
    return Containing(each, N_PLACES, *numbers, len(sets))


def indexed(boxes):
    """Index of boxes, each a set of places a column."""
    reads, codes = [], []
    for column in zip(*boxes, strict=True):
        distinct = sorted({tuple(sorted(own)) for own in column})
        reads.append(containing(distinct))
        codes.append(np.array([distinct.index(tuple(sorted(own))) for own in column]))
    return Boxes.of(reads, codes), codes


def every_row(n_columns):
    return np.stack(np.meshgrid(*[np.arange(N_PLACES)] * n_columns, indexing="ij")).reshape(n_columns, -1)


def boxes_of(rows, boxes):
    return [
        [i for i, box in enumerate(boxes) if all(int(p) in own for p, own in zip(row, box, strict=True))]
        for row in rows.T
    ]


@st.composite
def divided(draw):
    """Boxes that come from cuts: a column and a set of places for one side, again and again; then some values go."""
    n_columns = draw(st.integers(1, 3))
    boxes = [tuple(frozenset(range(N_PLACES)) for _ in range(n_columns))]
    for _ in range(draw(st.integers(0, 9))):
        box = boxes.pop(draw(st.integers(0, len(boxes) - 1)))
        column = draw(st.integers(0, n_columns - 1))
        side = draw(st.frozensets(st.sampled_from(sorted(box[column])), min_size=1))
        halves = [side, box[column] - side] if side != box[column] else [side]
        boxes += [(*box[:column], half, *box[column + 1 :]) for half in halves]
    return [
        tuple(draw(st.frozensets(st.sampled_from(sorted(own)), min_size=1)) for own in box)
        if draw(st.booleans())
        else box
        for box in boxes
    ]


@given(divided())
def test_every_row_finds_the_one_class_that_can_hold_it(boxes):
    found, codes = indexed(boxes)
    rows = every_row(len(boxes[0]))

    held = boxes_of(rows, boxes)

    assert found is not None
    assert max(map(len, held)) <= 1
    assert found.of_rows(list(rows)).tolist() == [own[0] if own else NO_BOX for own in held]
    assert found.of_cells(codes).tolist() == list(range(len(boxes)))


@pytest.mark.slow
@examples(200)
@given(st.lists(st.tuples(*[st.frozensets(st.integers(0, N_PLACES - 1), min_size=1)] * 2), min_size=1, max_size=6))
def test_classes_that_may_hold_the_same_row_are_never_indexed(boxes):
    boxes = list(dict.fromkeys(boxes))
    found, _ = indexed(boxes)
    rows = every_row(2)

    held = boxes_of(rows, boxes)

    if found is None:
        return
    assert max(map(len, held)) <= 1
    assert found.of_rows(list(rows)).tolist() == [own[0] if own else NO_BOX for own in held]


def test_two_classes_that_overlap_have_no_index():
    assert indexed([({0, 1}, {0, 1}), ({1, 2}, {1, 2})])[0] is None
    assert indexed([({0, 1}, {0, 1}), ({1, 2}, {2, 3})])[0] is not None


def test_a_cell_that_stands_for_no_value_holds_no_row():
    found, codes = indexed([({0}, {0}), (set(), {1})])

    assert found.of_rows([np.array([0, 1]), np.array([0, 1])]).tolist() == [0, NO_BOX]
    assert found.of_cells(codes).tolist() == [0, NO_BOX]
