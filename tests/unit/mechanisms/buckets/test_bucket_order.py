"""Order of rows in buckets, and the limit on shares, against plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.counting.counts import DenseCounts
from sfumato.mechanisms.buckets.buckets import _order
from sfumato.mechanisms.buckets.slicing import ShareLimit

short, long = st.integers(0, 3), st.sampled_from([0, 1, 2**16 - 1, 2**16, 2**40])


@given(st.lists(st.tuples(short, long, st.integers(0, 2**64 - 1)), max_size=20))
def test_rows_come_by_the_first_key_then_the_next_then_as_they_stand(rows):
    keys = [
        np.array([row[0] for row in rows], dtype=np.int32),
        np.array([row[1] for row in rows], dtype=np.int64),
        np.array([row[2] for row in rows], dtype=np.uint64),
    ]

    assert _order(keys).tolist() == sorted(range(len(rows)), key=rows.__getitem__)


@pytest.mark.parametrize("below", [-1, -(2**40)])
def test_numbers_below_0_come_first(below):
    assert _order([np.array([3, below, 0])]).tolist() == [1, 2, 0]


@given(
    st.lists(st.lists(st.integers(0, 6), min_size=5, max_size=5), min_size=1, max_size=6),
    st.sampled_from([[0], [0, 2], [0, 1, 4]]),
    st.integers(1, 4),
)
def test_a_limit_holds_where_no_count_is_above_its_share_of_the_block(counts, starts, l):  # noqa: E741  # usual name
    expected = []
    for row in counts:
        blocks = [row[a:b] for a, b in zip(starts, [*starts[1:], len(row)], strict=True)]
        expected.append(all(l * max(block) <= sum(block) for block in blocks))

    assert ShareLimit(l, np.array(starts)).are_kept_by(DenseCounts.alone(np.array(counts))).tolist() == expected
