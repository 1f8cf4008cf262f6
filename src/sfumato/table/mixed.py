"""Columns of text in which almost every row is a number: a few others made them categorical."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.schema import Kind
from sfumato.table.coding import CodedColumn, Table, parse_numbers

FEWEST_NUMBERS = 0.9
"""Share of the rows with a value that have to be numbers."""
FEW_DISTINCT_NUMBERS = 10
"""With so many distinct numbers or fewer they may be codes."""

_NUMBER = r"^-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"
_LEADING_ZERO = r"^-?0\d"


@dataclass(frozen=True)
class MixedColumn:
    """A categorical column that would be numeric but for a few rows.

    Parameters
    ----------
    name : str
    n_rows_not_numbers : int
        Rows with a value that is no number; missing values do not count.
    first_row : int
        Data row (from 0) of the first of them.
    """

    name: str
    n_rows_not_numbers: int
    first_row: int


def mixed_columns(table: Table) -> list[MixedColumn]:
    """Find the categorical columns in which at least 90 % of the values, but not all, are numbers, in table order.

    Only text with more than 10 distinct numbers counts, and no column in which a number has a leading zero: those are
    codes (``02139``).

    Notes
    -----
    Time O(distinct values) a column, and one look at the rows of a column that is found.
    """
    candidates = (column.name for column in table.schema if column.kind is Kind.CATEGORICAL)
    found = (_mixed(name, table[name]) for name in candidates)
    return [column for column in found if column is not None]


def _mixed(name: str, coded: CodedColumn) -> MixedColumn | None:
    if coded.n_distinct <= FEW_DISTINCT_NUMBERS + 1 or not pa.types.is_string(coded.values.type):
        return None
    is_number = _are_numbers(coded.values)
    is_other = ~is_number & coded.values.is_valid().to_numpy(zero_copy_only=False)
    n_numbers, n_others = int(coded.counts[is_number].sum()), int(coded.counts[is_other].sum())
    if n_others == 0 or n_numbers < FEWEST_NUMBERS * (n_numbers + n_others):
        return None
    numbers = coded.values.filter(pa.array(is_number))
    is_code = pc.any(pc.match_substring_regex(numbers, _LEADING_ZERO)).as_py()
    if is_code or len(np.unique(parse_numbers(numbers))) <= FEW_DISTINCT_NUMBERS:
        return None
    return MixedColumn(name, n_others, int(np.argmax(is_other[coded.codes])))


def _are_numbers(values: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which distinct values are finite decimal numbers, as the guess of a column's kind takes them."""
    looks = pc.fill_null(pc.match_substring_regex(values, _NUMBER), fill_value=False)
    are = np.array(looks.to_numpy(zero_copy_only=False), dtype=np.bool_)
    are[are] = np.isfinite(parse_numbers(values.filter(looks)))
    return are
