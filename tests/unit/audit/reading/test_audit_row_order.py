"""The audit's own look at the order of released rows, against sorting by hand."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.reading.row_order import RowOrder, keys_of, ranks_in_order
from sfumato.schema import Kind
from sfumato.table.row_order import value_ranks

VALUES = [
    (pa.array(["10", "9", "9.0", None, "-1", "1e1"]), Kind.NUMERIC),
    (pa.array(["10", "9", "[3, 4]", None, "-1"]), Kind.NUMERIC),
    (pa.array(["10", "nan", "9"]), Kind.NUMERIC),
    (pa.array(["é", "z", "\U0001f600", "￿", "", None]), Kind.CATEGORICAL),
    (pa.array([10, None, 9, -3]), Kind.CATEGORICAL),
    (pa.array([True, None, False]), Kind.CATEGORICAL),
    (pa.array([1.5, -0.25, 1e300]), Kind.NUMERIC),
    (pa.array([20_000, 3, None], pa.date32()), Kind.DATE),
]


@pytest.mark.parametrize(("values", "kind"), VALUES)
def test_the_audit_and_the_writer_agree_on_the_order_of_values(values, kind):
    """Two programs written apart."""
    assert ranks_in_order(values, kind).tolist() == value_ranks(values, kind).tolist()


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([None, "a", "b"])), max_size=8), st.integers(1, 4))
def test_rows_in_blocks_are_judged_as_one_sequence(rows, n_rows):
    order = RowOrder()
    for start in range(0, len(rows), n_rows):
        first, second = zip(*rows[start : start + n_rows], strict=True)
        order.add([np.array(first), *keys_of(pa.array(second, pa.string()), are_numbers=False)])

    assert order.is_kept == (rows == sorted(rows, key=lambda row: (row[0], row[1] or "")))


def test_numbers_in_texts_are_compared_by_value_and_then_as_texts():
    for cells, expected in ((["9", "9.0", "10"], True), (["9.0", "9", "10"], False), (["10", "9"], False)):
        order = RowOrder()
        order.add(keys_of(pa.array(cells), are_numbers=True))
        assert order.is_kept == expected
