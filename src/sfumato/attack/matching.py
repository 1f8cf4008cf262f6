"""Reference rows beside the released rows that are consistent with them, without a matrix of all pairs.

Equal reference rows are taken as one, and so are equal released rows, the groups. For each column and value the groups
whose cell may stand for the value are a row of bits; the rows for a record's values are joined by "and", some records
at a time. Groups are numbered by their background information granularity, so that the first bit tells the least one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.background import BackgroundColumn
from sfumato.audit import bit_rows
from sfumato.audit.bit_rows import ColumnBits, Words, a_row_of_each, first_ones, packed
from sfumato.audit.counting import Classes, Refinement
from sfumato.measures.disclosure import background_information_granularity

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]
Bits = NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class Matched:
    """What the released rows that are consistent with a reference row have in common, one entry a reference row.

    Parameters
    ----------
    candidates : array
        How many they are.
    granularity : array
        Least background information granularity among them, in bits; infinite where there are none.
    agreeing : mapping of str to array
        For each column to be learned, whether they all have the same value; false where there are none.
    """

    candidates: Ids
    granularity: Bits
    agreeing: Mapping[str, Flags]


def match(columns: Sequence[BackgroundColumn], learned: Mapping[str, Ids]) -> Matched:
    """Match every reference row.

    Parameters
    ----------
    columns : sequence of BackgroundColumn
        At least one.
    learned : mapping of str to array
        Columns to be learned: the number of each released row's value, from 0.
    """
    records = _alike([(column.places, column.containing.n_places) for column in columns])
    groups = _groups(columns)
    one_record, one_row = a_row_of_each(records), a_row_of_each(groups)
    bits = [ColumnBits(c.containing, c.places[one_record], c.cells[one_row]) for c in columns]
    granularity = np.append(_granularity(columns, one_row), np.inf)
    sizes = [(digit, packed((groups.sizes >> digit) & 1 == 1)) for digit in _digits(groups.sizes)]
    outcomes = {name: _outcomes(values, groups, one_row) for name, values in learned.items()}
    n_records = len(records.sizes)
    candidates, first = np.zeros(n_records, dtype=np.int64), np.full(n_records, len(groups.sizes))
    agreeing = {name: np.zeros(n_records, dtype=np.bool_) for name in learned}
    for chunk, words in _joined(bits, n_records):
        for digit, mask in sizes:
            candidates[chunk] += np.bitwise_count(words & mask).sum(axis=1, dtype=np.int64) << digit
        has_any = candidates[chunk] > 0
        if has_any.any():
            first[chunk][has_any] = first_ones(words[has_any])
        for name, pairs in outcomes.items():
            agreeing[name][chunk] = has_any & _agree(words, pairs)
    of_row = records.ids
    flags = {name: found[of_row] for name, found in agreeing.items()}
    return Matched(candidates[of_row], granularity[first][of_row], flags)


def _alike(columns: Sequence[tuple[Ids, int]]) -> Classes:
    refinement = Refinement(len(columns[0][0]))
    for codes, n_values in columns:
        refinement.add(codes, n_values)
    return refinement.classes()


def _groups(columns: Sequence[BackgroundColumn]) -> Classes:
    """Released rows with equal cells, the group of the least granularity first."""
    groups = _alike([(column.cells, column.containing.n_cells) for column in columns])
    order = np.argsort(_granularity(columns, a_row_of_each(groups)), kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return Classes(rank[groups.ids], groups.sizes[order])


def _granularity(columns: Sequence[BackgroundColumn], released_rows: Ids) -> Bits:
    shares = np.column_stack([column.shares[column.cells[released_rows]] for column in columns])
    return background_information_granularity(shares)


def _joined(columns: Sequence[ColumnBits], n_records: int) -> Iterator[tuple[slice, Words]]:
    """Give the records, some at a time, with the groups that are consistent with each as bits."""
    step = max(1, bit_rows.CHUNK_WORDS // max(columns[0].n_words, 1))
    for start in range(0, n_records, step):
        chunk = slice(start, start + step)
        words = columns[0].of(chunk)
        for column in columns[1:]:
            words &= column.of(chunk)
        yield chunk, words


def _outcomes(values: Ids, groups: Classes, one_row: Ids) -> list[tuple[Words, Words]]:
    """For each binary digit of the values, the groups in which it is 1 and those in which it is 0 (both: it varies)."""
    own = values[one_row]
    varies = np.bincount(groups.ids, weights=values != own[groups.ids], minlength=len(own)) > 0
    digits = [(own >> digit) & 1 == 1 for digit in _digits(values)]
    return [(packed(varies | is_one), packed(varies | ~is_one)) for is_one in digits]


def _agree(words: Words, outcomes: Sequence[tuple[Words, Words]]) -> Flags:
    """Whether the values of all groups in a record's bits have the same binary digits."""
    agree = np.ones(len(words), dtype=np.bool_)
    for with_one, with_zero in outcomes:
        agree &= ~((words & with_one).any(axis=1) & (words & with_zero).any(axis=1))
    return agree


def _digits(numbers: Ids) -> range:
    return range(int(numbers.max(initial=0)).bit_length())
