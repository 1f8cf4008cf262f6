"""Guess what kind of values a column holds from its distinct values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.schema import Kind
from sfumato.table.coding import CodedColumn, Table, is_number_type, parse_numbers

_ISO_DATE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$"
_LEADING_ZERO = r"^[+-]?0\d"


def guess_kind(values: pa.Array) -> Kind:
    """Kind of a column whose distinct values these are: numeric, date or categorical.

    Text is numeric when every value is a finite decimal number and none has a leading zero (``02139`` is a code, not a
    quantity), and a date when every value is an ISO 8601 date with or without a time. Missing values say nothing;
    truth values and columns without any value are categorical.

    Examples
    --------
    >>> guess_kind(pa.array(["1", "2.5", None])), guess_kind(pa.array(["02139"])), guess_kind(pa.array(["2024-02-29"]))
    (<Kind.NUMERIC: 'numeric'>, <Kind.CATEGORICAL: 'categorical'>, <Kind.DATE: 'date'>)
    """
    known = values.drop_null()
    if len(known) == 0 or pa.types.is_boolean(known.type):
        return Kind.CATEGORICAL
    if is_number_type(known.type):
        return Kind.NUMERIC
    if pa.types.is_date(known.type) or pa.types.is_timestamp(known.type):
        return Kind.DATE
    if not pa.types.is_string(known.type):
        return Kind.CATEGORICAL
    return _kind_of_text(known)


def _kind_of_text(known: pa.Array) -> Kind:
    if not any(character.isdigit() for character in known[0].as_py()):
        return Kind.CATEGORICAL
    if _are_numbers(known):
        return Kind.NUMERIC
    return Kind.DATE if _are_dates(known) else Kind.CATEGORICAL


def _are_numbers(known: pa.Array) -> bool:
    try:
        numbers = parse_numbers(known)
    except ValueError:
        return False
    return bool(np.isfinite(numbers).all()) and not pc.any(pc.match_substring_regex(known, _LEADING_ZERO)).as_py()


def _are_dates(known: pa.Array) -> bool:
    if not pc.all(pc.match_substring_regex(known, _ISO_DATE)).as_py():
        return False
    try:
        pc.cast(pc.utf8_slice_codeunits(known, 0, 10), pa.date32())
    except pa.ArrowInvalid:
        return False
    return True


# Columns of text in which almost every row is a number: a few others made them categorical.


FEWEST_NUMBERS = 0.9
"""Share of the rows with a value that have to be numbers."""
FEW_DISTINCT_NUMBERS = 10
"""With so many distinct numbers or fewer they may be codes."""

_NUMBER = r"^-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"
_LEADING_ZERO_TEXT = r"^-?0\d"


@dataclass(frozen=True)
class MixedColumn:
    """A categorical column that would be numeric but for a few rows.

    Parameters
    ----------
    name : str
    n_rows_not_numbers : int
        Rows with a value that is no number; missing values do not count.
    """

    name: str
    n_rows_not_numbers: int


def mixed_columns(table: Table) -> list[MixedColumn]:
    """Find the categorical columns in which at least 90 % of the values, but not all, are numbers, in table order.

    Only text with more than 10 distinct numbers counts, and no column in which a number has a leading zero: those are
    codes (``02139``).

    Notes
    -----
    Time O(distinct values) a column.
    """
    candidates = (column.name for column in table.schema if column.kind is Kind.CATEGORICAL)
    found = (_mixed(name, table[name]) for name in candidates)
    return [column for column in found if column is not None]


def _mixed(name: str, coded: CodedColumn) -> MixedColumn | None:
    if coded.n_distinct <= FEW_DISTINCT_NUMBERS + 1 or not pa.types.is_string(coded.values.type):
        return None
    is_number = _are_numeric_texts(coded.values)
    is_other = ~is_number & coded.values.is_valid().to_numpy(zero_copy_only=False)
    n_numbers, n_others = int(coded.counts[is_number].sum()), int(coded.counts[is_other].sum())
    if n_others == 0 or n_numbers < FEWEST_NUMBERS * (n_numbers + n_others):
        return None
    numbers = coded.values.filter(pa.array(is_number))
    is_code = pc.any(pc.match_substring_regex(numbers, _LEADING_ZERO_TEXT)).as_py()
    if is_code or len(np.unique(parse_numbers(numbers))) <= FEW_DISTINCT_NUMBERS:
        return None
    return MixedColumn(name, n_others)


def _are_numeric_texts(values: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which distinct values are finite decimal numbers, as the guess of a column's kind takes them."""
    looks = pc.fill_null(pc.match_substring_regex(values, _NUMBER), fill_value=False)
    are = np.array(looks.to_numpy(zero_copy_only=False), dtype=np.bool_)
    are[are] = np.isfinite(parse_numbers(values.filter(looks)))
    return are
