"""Find the order of a column of texts by what they say: intervals, words of a known scale, numbered labels.

All values have to fit one scale; a part of its levels is enough. A wrong order is worse than none, so what overlaps or
can be read in two ways gets none, and the reason says why.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from sfumato.schema import Column, Kind
from sfumato.table.orders.intervals import order_of_intervals
from sfumato.table.orders.numbered import order_of_numbered
from sfumato.table.orders.words import order_of_words

FEWEST = 3
"""Distinct values from which an order says anything: of two there is nothing in between."""
MOST = 500
"""Distinct values up to which an order is looked for."""
_LONGEST = 80


@dataclass(frozen=True)
class FoundOrder:
    """What the texts of a column are.

    Parameters
    ----------
    domain : tuple of str
        The values from lowest to highest; empty where they have no order.
    said : str
        What they are, such as ``intervals``; without an order, why they have none, or nothing. Never a value.
    """

    domain: tuple[str, ...] = ()
    said: str = ""

    def __repr__(self) -> str:
        return f"FoundOrder({len(self.domain)} values, {self.said!r})"


def recognise_order(values: pa.Array) -> FoundOrder:
    """Find the order of distinct values; missing ones say nothing.

    Examples
    --------
    >>> recognise_order(pa.array(["65+", "18-64", None, "under 18"])).domain
    ('under 18', '18-64', '65+')
    >>> recognise_order(pa.array(["Mon", "Sun", "Wed"])), recognise_order(pa.array(["cat", "dog", "cow"]))
    (FoundOrder(3 values, 'days of the week or months'), FoundOrder(0 values, ''))
    """
    n_known = len(values) - values.null_count
    if not pa.types.is_string(values.type) or not FEWEST <= n_known <= MOST:
        return FoundOrder()
    texts = sorted(values.drop_null().to_pylist())
    if max(map(len, texts)) > _LONGEST:
        return FoundOrder()
    order, why = order_of_intervals(texts)
    if order:
        return FoundOrder(order, "intervals")
    for found in (order_of_words, order_of_numbered):
        order, said = found(texts)
        if order or said:
            return FoundOrder(order, said)
    return FoundOrder((), why)


def with_recognised_order(column: Column, values: pa.Array) -> Column:
    """Describe a column as ordered if its values are; one that is declared ordered without a domain gets it.

    Columns of another kind than categorical or ordered, and those with a domain, stay as they are.
    """
    if column.domain is not None or column.kind not in (Kind.CATEGORICAL, Kind.ORDERED):
        return column
    found = recognise_order(values)
    if not found.domain:
        return column
    return replace(column, kind=Kind.ORDERED, domain=found.domain, is_order_recognised=True)
