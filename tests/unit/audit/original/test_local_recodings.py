"""What distinct rows of an original became, found from counts where cells overlap."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.original.assignment import BothBags, Pairs
from sfumato.audit.reading.cells import a_row_of_each, contained
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

    found = settled(reads, places, n_before, cells, n_after)

    given_to = np.zeros(len(labels), dtype=int)
    for i, row in enumerate(rows):
        if found[i] >= 0:
            assert all(fits(reads[j], row[j], cells[j][found[i]]) for j in range(2))
            given_to[found[i]] += counts[row]
    assert given_to.tolist() == n_after.tolist()


def settled(reads, places, n_before, cells, n_after):
    """Released row of each original row, as far as counts leave no choice."""
    overlapping = list(zip(reads, places, cells, strict=True))
    none = (np.zeros(len(own), dtype=np.int64) for own in (n_before, n_after))
    pairs = Pairs.of(BothBags(*none, 1, overlapping, n_before, n_after))
    found = pairs.whole()
    if found is None:
        return None
    released = np.append(a_row_of_each(pairs.classes), -1)
    return released[found][pairs.originals.ids]


def test_rows_that_were_recoded_again_leave_the_others_to_their_own_labels():
    """``*`` holds every value, but what can be nothing else fills it."""
    read = contained(pa.array(["*", "[0, 1]"]), pa.array([0, 1, 2, 3]), Kind.NUMERIC)

    found = settled([read], [np.array([0, 1, 2, 3])], np.array([5, 4, 1, 2]), [np.array([0, 1])], np.array([3, 9]))

    assert found.tolist() == [1, 1, 0, 0]


def test_rows_that_fit_nothing_are_left_out():
    read = contained(pa.array(["0", "2"]), pa.array([0, 1, 2]), Kind.NUMERIC)

    found = settled([read], [np.array([0, 1, 2])], np.array([2, 1, 4]), [np.array([0, 1])], np.array([2, 4]))

    assert found.tolist() == [0, -1, 1]


def test_nothing_is_said_where_counts_leave_a_choice():
    """Either value may be the one that is left out."""
    read = contained(pa.array(["*"]), pa.array([0, 1]), Kind.NUMERIC)

    assert settled([read], [np.array([0, 1])], np.array([2, 2]), [np.array([0])], np.array([2])) is None
