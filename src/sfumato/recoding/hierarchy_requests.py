"""Hierarchies as people ask for them: a method by name, its settings as text or numbers."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.errors import InvalidParameterError
from sfumato.recoding import hierarchy_builders as builders
from sfumato.recoding import hierarchy_intervals as intervals
from sfumato.recoding.covering import Covered, covered
from sfumato.recoding.hierarchy import Hierarchy
from sfumato.recoding.hierarchy_automatic import distinct_texts, hierarchy_for
from sfumato.table.coding import Table


def build_hierarchy(
    table: Table, column: str, method: str, settings: Mapping[str, Any] | None = None, *, mark: str = ""
) -> Hierarchy:
    """Build a hierarchy for a column of a table, and check that it covers every value.

    Parameters
    ----------
    method : {"auto", "width", "quantile", "cuts", "mask", "dates", "groups"}
        ``auto`` suits the kind of the column: see :func:`hierarchy_for`.
    settings : mapping, optional
        Of the method, as numbers or as text; None is as good as absent. ``width``: ``width``, ``start``, ``merge``.
        ``quantile``: ``intervals``, ``merge``. ``cuts``: ``cuts``, ``merge``. ``mask``: ``step``. ``groups``:
        ``order``, ``sizes``. ``auto``: ``target``. Lists are separated by commas.
    mark : str
        What stands before the name of a setting where the user writes it, for messages.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.schema import Column, Kind, Schema
    >>> ages = Table.from_arrow(pa.table({"age": [17, 25, 64]}), Schema.of([Column("age", kind=Kind.NUMERIC)]))
    >>> build_hierarchy(ages, "age", "cuts", {"cuts": "0,18,65"}).labels[1]
    ('[0, 17]', '[18, 64]')
    """
    asked = _Settings(method, settings or {}, mark)
    hierarchy = _BUILDERS[_known(method, mark)](table, column, asked)
    cover_column(hierarchy, table, column)
    return hierarchy


def cover_column(hierarchy: Hierarchy, table: Table, column: str) -> Covered:
    """Fit a hierarchy to a column of a table; see :func:`covered` for what is refused."""
    described = table.schema[column]
    return covered(hierarchy, table[column], column, described.kind, missing=table.schema.missing_tokens(column))


def _known(method: str, mark: str) -> str:
    if method not in _BUILDERS:
        raise InvalidParameterError(f"{mark}method", "got another", allowed=f"one of {', '.join(_BUILDERS)}")
    return method


@dataclass(frozen=True)
class _Settings:
    method: str
    given: Mapping[str, Any]
    mark: str

    def get(self, name: str) -> Any:
        return self.given.get(name)

    def needed(self, name: str) -> Any:
        if self.get(name) is None:
            allowed = f"given with {self.mark}method {self.method}"
            raise InvalidParameterError(self.mark + name, "got nothing", allowed=allowed)
        return self.get(name)

    def number(self, name: str, kind: Callable[[Any], Any], default: Any) -> Any:
        value = default if self.get(name) is None else self.get(name)
        try:
            return kind(value)
        except ValueError:
            allowed = "a whole number" if kind is int else "a number"
            raise InvalidParameterError(self.mark + name, "got something else", allowed=allowed) from None

    def numbers(self, name: str, kind: Callable[[str], Any]) -> list[Any] | None:
        text = self.get(name)
        if text is None:
            return None
        try:
            return [kind(part) for part in text.split(",") if part.strip()]
        except ValueError:
            allowed = "whole numbers separated by commas" if kind is int else "numbers separated by commas"
            raise InvalidParameterError(self.mark + name, "got something else", allowed=allowed) from None


def _by_width(table: Table, column: str, asked: _Settings) -> Hierarchy:
    asked.needed("width")
    width, start = asked.number("width", float, None), asked.number("start", float, 0)
    values, _ = distinct_texts(table[column])
    return intervals.equal_width_intervals(values, width, start=start, merge=asked.numbers("merge", int))


def _by_quantiles(table: Table, column: str, asked: _Settings) -> Hierarchy:
    values, counts = distinct_texts(table[column])
    n_intervals = asked.number("intervals", int, 16)
    return intervals.quantile_intervals(values, counts, n_intervals, merge=asked.numbers("merge", int))


def _by_cuts(table: Table, column: str, asked: _Settings) -> Hierarchy:
    asked.needed("cuts")
    values, _ = distinct_texts(table[column])
    return intervals.intervals_at(values, asked.numbers("cuts", float) or [], merge=asked.numbers("merge", int))


def _by_masking(table: Table, column: str, asked: _Settings) -> Hierarchy:
    return builders.masked_characters(distinct_texts(table[column])[0], step=asked.number("step", int, 1))


def _by_dates(table: Table, column: str, asked: _Settings) -> Hierarchy:
    return builders.calendar_levels(distinct_texts(table[column])[0])


def _by_groups(table: Table, column: str, asked: _Settings) -> Hierarchy:
    order = next(csv.reader([asked.needed("order")], skipinitialspace=True), [])
    return builders.ordered_groups([value.strip() for value in order], asked.numbers("sizes", int))


def _automatically(table: Table, column: str, asked: _Settings) -> Hierarchy:
    return hierarchy_for(table, column, target=asked.get("target"))


_BUILDERS: Mapping[str, Callable[[Table, str, _Settings], Hierarchy]] = {
    "auto": _automatically,
    "width": _by_width,
    "quantile": _by_quantiles,
    "cuts": _by_cuts,
    "mask": _by_masking,
    "dates": _by_dates,
    "groups": _by_groups,
}
