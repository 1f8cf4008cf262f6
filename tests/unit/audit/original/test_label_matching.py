"""What distinct rows of an original became, found from counts where cells overlap."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.original import matching as label_matching
from sfumato.audit.original.matching import TooManyLayersError, matched_rows
from sfumato.audit.reading.cells import contained
from sfumato.schema import Kind

N_VALUES = 6
LEVELS = [
    [str(i) for i in range(N_VALUES)],
    ["[0, 1]", "[0, 1]", "[2, 3]", "[2, 3]", "[4, 5]", "[4, 5]"],
    ["*"] * N_VALUES,
]


def fits(read, place, cell):
    return bool(read.holds_at(np.array([place]), np.array([cell]))[0])


@st.composite
def local_recodings(draw):
    """Draw rows of two columns with counts, taken to levels round by round: a class goes as a whole, or is left."""
    rows = draw(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=20, unique=True))
    counts = {row: draw(st.integers(1, 4)) for row in rows}
    became, left = {}, list(rows)
    for _ in range(draw(st.integers(1, 3))):
        levels = draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
        classes = {}
        for row in left:
            classes.setdefault(tuple(LEVELS[level][v] for level, v in zip(levels, row, strict=True)), []).append(row)
        k = draw(st.integers(1, 6))
        for label, members in classes.items():
            if sum(counts[row] for row in members) >= k:
                became |= dict.fromkeys(members, label)
        left = [row for row in left if row not in became]
    return counts, became or dict.fromkeys(rows, ("*", "*"))


@given(local_recodings())
def test_a_local_recoding_is_matched_so_that_everything_fits_and_adds_up(case):
    """Each row fits what it became, and every released row is given exactly as many as it has."""
    counts, became = case
    rows, labels = list(counts), sorted(set(became.values()))
    texts = [sorted({label[j] for label in labels}) for j in range(2)]
    reads = [contained(pa.array(texts[j]), pa.array(range(N_VALUES)), Kind.NUMERIC) for j in range(2)]
    places = [np.array([row[j] for row in rows]) for j in range(2)]
    cells = [np.array([texts[j].index(label[j]) for label in labels]) for j in range(2)]
    n_before = np.array([counts[row] for row in rows])
    n_after = np.array([sum(counts[r] for r, label in became.items() if label == own) for own in labels])

    found = matched_rows(reads, places, n_before, cells, n_after).became

    given_to = np.zeros(len(labels), dtype=int)
    for i, row in enumerate(rows):
        if found[i] >= 0:
            assert all(fits(reads[j], row[j], cells[j][found[i]]) for j in range(2))
            given_to[found[i]] += counts[row]
    assert given_to.tolist() == n_after.tolist()


def test_rows_that_were_recoded_again_leave_the_others_to_their_own_labels():
    """``*`` holds every value, but what can be nothing else fills it."""
    read = contained(pa.array(["*", "[0, 1]"]), pa.array([0, 1, 2, 3]), Kind.NUMERIC)

    found = matched_rows(
        [read], [np.array([0, 1, 2, 3])], np.array([5, 4, 1, 2]), [np.array([0, 1])], np.array([3, 9])
    ).became

    assert found.tolist() == [1, 1, 0, 0]


def test_rows_that_fit_nothing_are_left_out():
    read = contained(pa.array(["0", "2"]), pa.array([0, 1, 2]), Kind.NUMERIC)

    found = matched_rows(
        [read], [np.array([0, 1, 2])], np.array([2, 1, 4]), [np.array([0, 1])], np.array([2, 4])
    ).became

    assert found.tolist() == [0, -1, 1]


def test_cells_that_overlap_in_too_many_ways_are_refused(monkeypatch):
    monkeypatch.setattr(label_matching, "_MOST_LAYERS", 2)
    read = contained(pa.array(["[0, 3]", "[1, 4]", "[2, 5]", "*"]), pa.array(range(6)), Kind.NUMERIC)
    with pytest.raises(TooManyLayersError):
        matched_rows([read], [np.arange(6)], np.ones(6, dtype=int), [np.arange(4)], np.ones(4, dtype=int))
