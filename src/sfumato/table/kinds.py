"""Guess what kind of values a column holds from its distinct values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.schema import Kind
from sfumato.table.coding import is_number_type, parse_numbers

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
