"""Columns that stay text although most of their rows are dates or numbers: how many are not, and where the first is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.schema import AS_TEXT, Kind
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.reading.columns import Format
from sfumato.table.reading.dates import date_formats
from sfumato.table.reading.numbers import number_formats

_MOST = 0.5
_LOOKED_AT = 40
_FEWEST_DATES, _FEWEST_NUMBERS = 3, 10
_LEADING_ZERO = r"^-?0[0-9]"
_SPREADSHEET_ERROR = r"^#([^\s#]{2,10}[!?]|N/A|NV)$"


@dataclass(frozen=True)
class UnreadColumn:
    """A categorical column that would be a date or a number but for some rows.

    Parameters
    ----------
    name : str
    format : date or number format
        The one in which most rows are written.
    n_rows, n_present : int
        Rows that do not fit it, of the rows that have a value.
    n_errors : int
        Rows among them that hold the error of a spreadsheet's formula.
    first_row : int
        Data row (from 0) of the first of them.
    """

    name: str
    format: Format
    n_rows: int
    n_present: int
    n_errors: int
    first_row: int

    def in_words(self, line: int | None) -> str:
        """Say it without any cell; ``line`` is that of the first row, if it is known."""
        what = "a date" if self.format.kind is Kind.DATE else "a number"
        where = f"data row {self.first_row + 1:,}" if line is None else f"line {line:,}"
        said = f"column '{self.name}' is left as text: {self.n_rows:,} of {self.n_present:,} values do not parse as"
        errors = f"; {self.n_errors:,} are errors of a spreadsheet (#…)" if self.n_errors else ""
        return f"{said} {what} ({self.format.name}), first in {where}{errors}"


def unread_columns(table: Table) -> list[UnreadColumn]:
    """Find the text columns most of whose rows, but not all, are dates or numbers of one format, in table order.

    Codes are left out: numbers with leading zeros, and few different ones.
    """
    texts = (c.name for c in table.schema if c.kind is Kind.CATEGORICAL and not _is_declared_text(table, c.name))
    found = (_unread(name, table[name]) for name in texts)
    return [column for column in found if column is not None]


def _is_declared_text(table: Table, name: str) -> bool:
    reading = table.schema[name].reading
    return reading is not None and reading.format == AS_TEXT


def _unread(name: str, coded: CodedColumn) -> UnreadColumn | None:
    if not pa.types.is_string(coded.values.type):
        return None
    present = coded.values.is_valid().to_numpy(zero_copy_only=False)
    matches = pc.fill_null(pc.match_substring_regex(coded.values, _SPREADSHEET_ERROR), fill_value=False)
    is_error = np.asarray(matches.to_numpy(zero_copy_only=False), dtype=np.bool_)
    best: tuple[int, Format, NDArray[np.bool_]] | None = None
    for one in _formats_of_some(coded):
        fits = _fitting(coded.values, one)
        n_rows = int(coded.counts[fits].sum())
        fewest = _FEWEST_DATES if one.kind is Kind.DATE else _FEWEST_NUMBERS
        is_enough = fits.sum() >= fewest or bool((fits | is_error)[present].all())
        if is_enough and (best is None or n_rows > best[0]):
            best = n_rows, one, fits
    n_present = int(coded.counts[present].sum())
    if best is None or best[0] < _MOST * n_present or best[0] == n_present:
        return None
    is_other = present & ~best[2]
    n_errors = int(coded.counts[is_other & is_error].sum())
    first = int(np.argmax(is_other[coded.codes]))
    return UnreadColumn(name, best[1], n_present - best[0], n_present, n_errors, first)


def _formats_of_some(coded: CodedColumn) -> Iterable[Format]:
    """Give the formats of some of the most frequent texts that have a digit."""
    frequent = np.argsort(-coded.counts, kind="stable")[:_LOOKED_AT]
    texts = [text for text in coded.values.take(pa.array(frequent)).to_pylist() if text and _has_digit(text)]
    found: dict[Format, None] = {}
    for text in texts:
        found |= dict.fromkeys(one for one in date_formats() if one.may_be(text))
        found |= dict.fromkeys(one for one in number_formats(text) if one.group != " ")
    return found


def _has_digit(text: str) -> bool:
    return any(character.isdigit() for character in text)


def _fitting(values: pa.Array, one: Format) -> NDArray[np.bool_]:
    read = one.read(values)
    fits = read.is_valid().to_numpy(zero_copy_only=False)
    is_code = one.kind is Kind.NUMERIC and pc.any(pc.match_substring_regex(read, _LEADING_ZERO)).as_py()
    return np.zeros(len(values), dtype=np.bool_) if is_code else np.asarray(fits, dtype=np.bool_)
