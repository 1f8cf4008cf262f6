"""The canonical order of released rows: by all released columns, so that it says nothing about the input's order.

Rows are compared by the first released column, then by the next. Within a column missing is first; numbers are compared
by value, truth values as false before true, dates by time and texts by their UTF-8 bytes, which is the order of code
points. A text column that is stated to be numeric and holds only numbers is compared by value, then by its texts. In a
text file every cell is a text. Equal rows need no order. ``docs/canonical-form.md`` has the definition; the audit has
code of its own for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.schema import Kind
from sfumato.table.binary import BinaryTable
from sfumato.table.cells import are_whole_seconds, as_text
from sfumato.table.coding import Table, parse_numbers
from sfumato.table.io.formats import STATISTICS

Ranks = NDArray[np.int64]
Rows = NDArray[np.intp]

SORTED, AS_READ = "sorted", "as-read"
"""What a manifest says of the order of released rows."""
TEXT_FORMATS = ("csv", "tsv", "csv.gz", "tsv.gz")
"""Formats in which every cell is a text."""
_JSON_LINES = ("jsonl", "jsonl.gz")
_LARGEST_KEY = 2**62
_FEATURES_AT_ONCE = 62


def stored_values(values: pa.Array, format: str) -> pa.Array:
    """Values as a file of a format holds them: texts, numbers for labels of libsvm, or what they are."""
    if format in TEXT_FORMATS or _is_text_in(format, values):
        return as_text(values)
    if format == "excel":
        from sfumato.table.io.excel import stored_in_workbook  # which few need

        return stored_in_workbook(values)
    if format in _JSON_LINES:
        from sfumato.table.io.json_lines import stored_in_lines

        return stored_in_lines(values)
    if format != "libsvm":
        return values
    try:
        return pa.array(parse_numbers(values), from_pandas=True)
    except ValueError:  # no libsvm file can hold them, which its writer says
        return values


def _is_text_in(format: str, values: pa.Array) -> bool:
    """Whether a file of a statistics package holds values as texts."""
    kinds = pa.types
    if format not in STATISTICS:
        return False
    is_number = kinds.is_integer(values.type) or kinds.is_floating(values.type)
    return not (is_number or kinds.is_date(values.type) or are_whole_seconds(values))


def numbers_of_texts(values: pa.Array, kind: Kind) -> pa.Array | None:
    """Numbers that a text column is compared by; ``None`` where it is compared by its texts or is no text."""
    if kind is not Kind.NUMERIC or not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return None
    try:
        numbers = parse_numbers(values)
    except ValueError:
        return None
    is_known = np.asarray(values.is_valid().to_numpy(zero_copy_only=False))
    return None if np.isnan(numbers[is_known]).any() else pa.array(numbers, from_pandas=True)


def value_ranks(values: pa.Array, kind: Kind) -> Ranks:
    """Rank of each value in the canonical order, from 0; equal values share one.

    Examples
    --------
    >>> value_ranks(pa.array(["10", "9", None, "9"]), Kind.NUMERIC).tolist()
    [2, 1, 0, 1]
    >>> value_ranks(pa.array(["10", "9", None, "[3, 5]"]), Kind.NUMERIC).tolist()
    [1, 2, 0, 3]
    """
    numbers = numbers_of_texts(values, kind)
    keys = {"value": values} if numbers is None else {"number": numbers, "value": values}
    nulls_last = pc.sort_indices(pa.table(keys), sort_keys=[(key, "ascending") for key in keys]).to_numpy()
    order = np.roll(nulls_last, values.null_count)
    found = values.take(pa.array(order))
    is_new = np.ones(len(found), dtype=np.bool_)
    if len(found) > 1:
        same = pc.fill_null(pc.equal(found[1:], found[:-1]), False)
        both_missing = pc.and_(found[1:].is_null(), found[:-1].is_null())
        is_new[1:] = ~pc.or_(same, both_missing).to_numpy(zero_copy_only=False)
    ranks = np.empty(len(found), dtype=np.int64)
    ranks[order] = np.cumsum(is_new) - 1
    return ranks


def packed_keys(columns: Iterable[tuple[NDArray[np.integer], int]], n_rows: int) -> Ranks:
    """Give rows numbers that ascend as their columns do, of each of which come ranks and how many there may be.

    Examples
    --------
    >>> packed_keys([(np.array([1, 0, 1]), 2), (np.array([0, 2, 1]), 3)], 3).tolist()
    [3, 2, 4]
    """
    key, span = np.zeros(n_rows, dtype=np.int64), 1
    for ranks, radix in columns:
        if span * radix > _LARGEST_KEY:
            known, key = np.unique(key, return_inverse=True)
            span = len(known)
        key = key * radix + ranks
        span *= radix
    return key


def canonical_order(table: Table | BinaryTable, format: str) -> Rows:
    """Rows of a table in the canonical order of a file of some format."""
    return np.argsort(packed_keys(_ranked_columns(table, format), table.n_rows), kind="stable")


def _ranked_columns(table: Table | BinaryTable, format: str) -> Iterator[tuple[NDArray[np.integer], int]]:
    if isinstance(table, BinaryTable):
        yield from _feature_words(table)
    coded = table.coded_part
    for column in coded.schema:
        own = coded[column.name]
        ranks = value_ranks(stored_values(own.values, format), column.kind)
        yield ranks[own.codes], int(ranks.max(initial=0)) + 1


def _feature_words(table: BinaryTable) -> Iterator[tuple[Ranks, int]]:
    """Features, many at a time, as numbers of which the first feature is the highest digit."""
    matrix = table.matrix
    for first in range(0, len(table.features), _FEATURES_AT_ONCE):
        word = np.zeros(table.n_rows, dtype=np.int64)
        last = min(first + _FEATURES_AT_ONCE, len(table.features))
        for i in range(first, last):
            ends = slice(matrix.indptr[i], matrix.indptr[i + 1])
            word[matrix.indices[ends][matrix.data[ends] != 0]] |= 1 << (last - 1 - i)
        known, ranks = np.unique(word, return_inverse=True)
        yield ranks, len(known)
