"""What a column is taken for without being told."""

from __future__ import annotations

from datetime import date, datetime

import pyarrow as pa
import pytest

from sfumato.schema import Kind
from sfumato.table.kinds import guess_kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2.5", "-3e4"], Kind.NUMERIC),
        (["1", None], Kind.NUMERIC),
        ([1, 2, None], Kind.NUMERIC),
        ([1.5], Kind.NUMERIC),
        (["0", "0.5", "-0.25"], Kind.NUMERIC),
        (["02139", "10115"], Kind.CATEGORICAL),
        (["-01"], Kind.CATEGORICAL),
        (["1", "inf"], Kind.CATEGORICAL),
        (["1", "nan"], Kind.CATEGORICAL),
        (["1", "two"], Kind.CATEGORICAL),
        (["1,5"], Kind.CATEGORICAL),
        (["0x10"], Kind.CATEGORICAL),
        ([True, False], Kind.CATEGORICAL),
        ([None, None], Kind.CATEGORICAL),
        ([], Kind.CATEGORICAL),
        (["2024-02-29", "1999-12-31"], Kind.DATE),
        (["2024-02-29T10:30", "2024-02-29 10:30:59.5Z"], Kind.DATE),
        (["2023-02-29"], Kind.CATEGORICAL),
        (["2024-1-2"], Kind.CATEGORICAL),
        (["2024-01-02x"], Kind.CATEGORICAL),
        ([date(2024, 1, 2)], Kind.DATE),
        ([datetime(2024, 1, 2, 3)], Kind.DATE),
        (["male", "female"], Kind.CATEGORICAL),
    ],
)
def test_kind_is_guessed_from_distinct_values(values: list[object], kind: Kind) -> None:
    array = pa.array(values) if any(v is not None for v in values) else pa.array(values, pa.string())

    assert guess_kind(array) is kind


def test_times_of_day_are_categorical() -> None:
    assert guess_kind(pa.array([3600], pa.time32("s"))) is Kind.CATEGORICAL
