"""Whole numbers that may number people: few rows each, and nothing else that a number could measure.

A guarantee that counts rows says little where a person has several, so such a column is asked about and left out.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sfumato.schema import Column, Kind
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.column_names import POSTCODE_NAMES, QUANTITY_NAMES, folded_name
from sfumato.table.identifiers.text_columns import UNIQUE_FRACTION, is_measurement

_FEWEST_ROWS, _FEWEST_VALUES = 100, 20
_MOST_ROWS_A_VALUE = 10  # on average; who has more is counted by people rather than numbered
_LARGEST_GROUP = 50  # more rows with one number are about the number, such as 0
_FEWEST_PAIRS = 30
_SAME = 0.9
_MOST_USUAL = 0.9  # a column that nearly all rows agree on tells nothing
_FEWEST_SAME = 2
_SMALLEST_KEY = 1_000
_ROUND, _MOST_ROUND = 10, 0.3
_DEVIATIONS = 3.5

Codes = NDArray[np.int32]


def may_number_people(table: Table, column: Column) -> str:
    """Say why a numeric column may number people, who have several rows each; an empty text where it does not.

    Rows with one number follow each other, or agree on other columns, or the numbers are as large as keys, not round,
    and in no order that goes with another column. A name that says what is measured settles it.
    """
    coded = table[column.name]
    name = folded_name(column.name)
    if column.kind is not Kind.NUMERIC or not coded.is_by_row or not _has_few_rows_each(coded):
        return ""
    if QUANTITY_NAMES.search(name) or POSTCODE_NAMES.search(name):
        return ""
    if is_measurement(coded, column.kind):
        return ""
    others = [table[other.name] for other in table.schema if other.name != column.name]
    n_values = coded.n_distinct - coded.values.null_count
    said = f"{n_values:,} whole numbers in {coded.n_rows - coded.n_missing:,} rows"
    n_same = _agreeing(coded.codes, others)
    if n_same >= _FEWEST_SAME:
        return f"may number people: {said}, rows with the same one agree on {n_same:,} other columns"
    looks_like_keys = _looks_like_keys(coded.numbers())
    if _is_in_runs(coded) and (looks_like_keys or not _is_sorted(coded.codes)):
        return f"may number people: {said}, rows with the same one follow each other"
    if looks_like_keys and not _is_related(coded.codes, others):
        return f"may number people: {said}, in no order that goes with another column"
    return ""


def _has_few_rows_each(coded: CodedColumn) -> bool:
    n_present, n_values = coded.n_rows - coded.n_missing, coded.n_distinct - coded.values.null_count
    if n_present < _FEWEST_ROWS or n_values <= _FEWEST_VALUES or n_values >= UNIQUE_FRACTION * n_present:
        return False
    return bool(n_present < _MOST_ROWS_A_VALUE * n_values)


def _agreeing(codes: Codes, others: Iterable[CodedColumn]) -> int:
    """Count the columns on which rows with the same number agree, much more often than any two rows do."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    sizes = np.bincount(codes)
    is_pair = (ordered[1:] == ordered[:-1]) & (sizes[ordered[1:]] <= _LARGEST_GROUP)
    if int(is_pair.sum()) < _FEWEST_PAIRS:
        return 0
    n_agreeing = 0
    for other in others:
        shares = other.counts / max(int(other.counts.sum()), 1)
        usual = float(np.sum(shares**2))
        if not other.is_by_row or usual > _MOST_USUAL:
            continue
        values = other.codes[order]
        same = float(np.mean((values[1:] == values[:-1])[is_pair]))
        n_agreeing += (same - usual) / (1 - usual) >= _SAME
    return n_agreeing


def _is_in_runs(coded: CodedColumn) -> bool:
    """Whether nearly every number is in one run of rows only."""
    n_runs = 1 + int(np.count_nonzero(np.diff(coded.codes)))
    return coded.n_distinct >= UNIQUE_FRACTION * n_runs


def _is_sorted(codes: Codes) -> bool:
    steps = np.diff(codes)
    return bool(np.all(steps >= 0) or np.all(steps <= 0))


def _looks_like_keys(numbers: NDArray[np.float64]) -> bool:
    present = numbers[np.isfinite(numbers)]
    return float(present.min()) >= _SMALLEST_KEY and float(np.mean(present % _ROUND == 0)) <= _MOST_ROUND


def _is_related(codes: Codes, others: Iterable[CodedColumn]) -> bool:
    """Whether the numbers rise or fall with another column, or differ between its values, more than by chance."""
    ranks = _standardised(codes)
    least = _DEVIATIONS / np.sqrt(len(codes))
    for other in others:
        if not other.is_by_row or other.n_distinct < 2:
            continue
        if abs(float(np.mean(ranks * _standardised(other.codes)))) > least:
            return True
        counts = other.counts[other.counts > 0]
        means = np.bincount(other.codes, weights=ranks, minlength=len(other.counts))[other.counts > 0] / counts
        enough = counts >= _FEWEST_PAIRS
        if np.any(np.abs(means[enough]) * np.sqrt(counts[enough]) > _DEVIATIONS + np.sqrt(2 * np.log(len(counts)))):
            return True
    return False


def _standardised(codes: Codes) -> NDArray[np.float64]:
    """Ranks with mean 0 and deviation 1; rows with equal codes share one."""
    counts = np.bincount(codes)
    ranks = (np.cumsum(counts) - (counts + 1) / 2)[codes]
    centred = ranks - ranks.mean()
    deviation = float(centred.std())
    return np.asarray(centred / deviation if deviation else centred)
