"""Columns of many different values, cut down to what a classifier can learn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

import pyarrow as pa

from sfumato.recoding.axes import positions_of
from sfumato.schema import Column
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.generalized import GeneralizedCell, read_cell, write_set

MOST_VALUES = 64
"""Values of a column without order that get a column of numbers each."""


def without_rare_values(cells: Table, columns: Mapping[str, Column], most: int = MOST_VALUES) -> Table:
    """Take all but the most frequent values out of cells, in columns without order that have more of them.

    An encoder that is fitted on the result knows no other values, and so makes no more columns of numbers. A value of a
    set of n counts 1/n.

    Examples
    --------
    >>> from sfumato.schema import Schema
    >>> table = Table.from_arrow(pa.table({"job": ["a", "a", "b", "{b|c}"]}), Schema.of([Column("job")]))
    >>> without_rare_values(table, {"job": Column("job")}, most=2)["job"].cells().to_pylist()
    ['a', 'a', 'b', 'b']
    """
    kept = {name: _frequent(cells[name], described, most) for name, described in columns.items()}
    return replace(cells, columns={**cells.columns, **kept})


def _frequent(column: CodedColumn, described: Column, most: int) -> CodedColumn:
    read = [read_cell(text) for text in column.values.to_pylist()]
    weights: Counter[str] = Counter()
    for cell, count in zip(read, column.counts.tolist(), strict=True):
        weights.update({value: count / len(cell.values) for value in cell.values})
    if len(weights) <= most or positions_of(described, pa.array(sorted(weights), pa.string())) is not None:
        return column
    kept = set(sorted(weights, key=lambda value: (-weights[value], value))[:most])
    texts = [_only(cell, kept, text) for cell, text in zip(read, column.values.to_pylist(), strict=True)]
    return column.recode(pa.array(texts, pa.string()))


def _only(cell: GeneralizedCell, kept: Collection[str], text: str | None) -> str | None:
    if not cell.values:
        return text
    return write_set([value for value in cell.values if value in kept], may_be_missing=cell.may_be_missing)
