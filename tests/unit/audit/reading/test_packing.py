"""Columns side by side in one number: rows that differ stay different, and equal ones equal."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.reading.packing import Packing


@given(data=st.data(), n_rows=st.integers(0, 6))
def test_packed_columns_fit_and_tell_the_same_rows_apart(data: st.DataObject, n_rows: int) -> None:
    size = st.none() | st.integers(1, 2**40) | st.sampled_from([1, 2, 2**31, 2**62])
    sizes = data.draw(st.lists(size, min_size=1, max_size=8))
    columns = []
    for own in sizes:
        low, high = (-(2**63), 2**63 - 1) if own is None else (0, own - 1)
        column = data.draw(st.lists(st.integers(low, high), min_size=n_rows, max_size=n_rows))
        columns.append(np.array(column, dtype=np.int64))

    packing = Packing.of(sizes)
    packed = packing.packed(columns)

    assert len(packed) <= len(columns)
    assert all(
        (own >= 0).all() and (own < 2**62).all()
        for own, group in zip(packed, packing.groups, strict=True)
        if sizes[group[0]] is not None
    )
    rows, keys = ([tuple(row) for row in np.column_stack(own).tolist()] for own in (columns, packed))
    assert [rows.index(row) for row in rows] == [keys.index(key) for key in keys]
