"""Cells of text that a spreadsheet program would run as a formula, and the apostrophe that keeps it from doing so.

A program that opens a text file takes a cell for a formula when it begins with ``=``, ``+``, ``-``, ``@``, a tab or a
carriage return. A number is none. An escaped cell has an apostrophe in front; so that it can be taken away again
without doubt, a cell that already has apostrophes before such a character gets one more.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.schema import Column, Kind
from sfumato.table.binary import BinaryTable
from sfumato.table.cells import as_text
from sfumato.table.coding import Table
from sfumato.table.spellings import FORMULAS
from sfumato.table.weighted import OpenColumn

_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_BEGIN, _MARK = "[" + re.escape(FORMULAS["begin"]) + "]", FORMULAS["mark"]
_FORMULA = f"^{_BEGIN}"
_MARKED = f"^{_MARK}*{_BEGIN}"
_ESCAPED = f"^{_MARK}+{_BEGIN}"


def escaped(values: pa.Array) -> pa.Array:
    """Put an apostrophe before texts that would be run.

    Examples
    --------
    >>> escaped(pa.array(["=1+1", "-5", "'=x", "'n", None])).to_pylist()
    ["'=1+1", '-5', "''=x", "'n", None]
    """
    return pc.if_else(_matches(values, _MARKED), pc.binary_join_element_wise(_MARK, values, ""), values)


def unescaped(values: pa.Array) -> pa.Array:
    """Take that apostrophe away again.

    Examples
    --------
    >>> unescaped(escaped(pa.array(["=1+1", "-5", "'=x", "'n", None]))).to_pylist()
    ['=1+1', '-5', "'=x", "'n", None]
    """
    marked = pc.fill_null(pc.match_substring_regex(values, _ESCAPED), fill_value=False)
    return pc.if_else(marked, pc.utf8_slice_codeunits(values, 1), values)


def may_hold_formulas(column: Column) -> bool:
    """Whether a column is neither numeric nor of dates: what it holds is escaped by its text, as ``-inf`` is."""
    return column.kind not in (Kind.NUMERIC, Kind.DATE)


def n_formulas(table: Table | BinaryTable) -> int:
    """Count the cells that a spreadsheet program would run, of columns whose values are listed."""
    plain, n_cells = table.coded_part, 0
    for column in plain.schema:
        coded = plain[column.name]
        if may_hold_formulas(column) and not isinstance(coded, OpenColumn):
            is_one = np.asarray(_matches(as_text(coded.values), _FORMULA).to_numpy(zero_copy_only=False))
            n_cells += int(coded.counts[is_one].sum())
    return n_cells


def without_escapes(table: Table) -> Table:
    """Give the cells of a table that was read from a file with escaped cells."""
    columns = {
        column.name: table[column.name].recode(unescaped(table[column.name].values), column.kind)
        if may_hold_formulas(column)
        else table[column.name]
        for column in table.schema
    }
    return replace(table, columns=columns)


def _matches(values: pa.Array, pattern: str) -> pa.Array:
    """Which texts match and are no numbers."""
    found = pc.and_(pc.match_substring_regex(values, pattern), pc.invert(pc.match_substring_regex(values, _NUMBER)))
    return pc.fill_null(found, fill_value=False)
