"""A hierarchy for a column that has none, from its distinct values and how often they occur."""

from __future__ import annotations

import csv
import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.contingency import contingency
from sfumato.errors import InvalidParameterError
from sfumato.mechanisms.hierarchies import builders
from sfumato.mechanisms.hierarchies.builders import (
    are_finite_numbers,
    calendar_levels,
    distinct_numbers,
    is_date,
    ordered_groups,
    quantile_intervals,
    range_of_levels,
    range_of_numbers,
)
from sfumato.mechanisms.hierarchies.hierarchy import ROOT, Covered, Hierarchy, covered
from sfumato.mechanisms.hierarchies.ready import ready_hierarchy, recognised_ready
from sfumato.schema import Kind
from sfumato.table.cells import as_text
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.column_names import folded_name
from sfumato.table.generalized import write_set, write_value

Counts = NDArray[np.int64]
Pair = tuple[int, int]

MAX_LISTED = 8
"""Largest group whose label lists all its values."""
_MAX_INTERVALS = 32
_MAX_COMPARED = 1_000
_MAX_CLASSES = 50
_JOINED_CLASSES = 16
_FEW_ROWS_OF_A_VALUE = 2
METHODS = ("auto", "width", "quantile", "cuts", "mask", "dates", "groups", "ready")
"""Ways to build a hierarchy that people ask for."""


def automatic_hierarchy(
    values: Sequence[str],
    counts: Counts,
    kind: Kind,
    *,
    contingency: Counts | None = None,
    order: Sequence[str] | None = None,
) -> Hierarchy:
    """Build levels that suit a column's kind; each has about half as many labels as the one below, the last is ``*``.

    Numbers: intervals at quantiles, joined pairwise. Dates: months, quarters, years, decades. Values with a declared
    order: neighbours joined pairwise. All others, and numbers and dates that are not all finite or ISO 8601: see
    :func:`groups_of_similar_values` if there is a target, else :func:`groups_of_rare_values`.

    Parameters
    ----------
    values, counts : sequence of str, ndarray of int64
        Distinct values, missing left out, and how many rows hold each.
    contingency : ndarray of int64, shape (n_values, n_classes), or None
        How many rows of each class of the target hold each value.
    order : sequence of str or None
        Declared values of an ordered column, from lowest to highest.

    Notes
    -----
    The labels are provisional: how they are written once it is known which rows are released is the hierarchy's
    ``write``. Months and years name no value.
    """
    if kind is Kind.NUMERIC and are_finite_numbers(values):
        n_intervals = 2 ** int(np.log2(max(2, distinct_numbers(values) // 2)))
        return replace(quantile_intervals(values, counts, min(n_intervals, _MAX_INTERVALS)), write=range_of_numbers)
    if kind is Kind.DATE and all(map(is_date, values)):
        return calendar_levels(values)
    if kind is Kind.ORDERED and order is not None and set(values) <= set(order):
        return replace(ordered_groups(order), write=range_of_levels)
    grouped = (
        groups_of_rare_values(values, counts) if contingency is None else groups_of_similar_values(values, contingency)
    )
    return replace(grouped, write=_label_of)


def hierarchy_for(table: Table, name: str, *, target: str | None = None) -> Hierarchy:
    """Build an automatic hierarchy for a column of a table, in view of a target column if one is named.

    A column without any value gets the hierarchy of missing alone, and one of countries or diagnoses that of their
    standard, see :func:`recognised_ready`; so do postcodes, where there is no target or a value has two rows at most on
    average, from which classes are not learned. For targets of many values see :func:`counts_by_class`.
    """
    described, column = table.schema[name], table[name]
    texts, counts = distinct_texts(column)
    if not texts:
        return Hierarchy.from_rows([("", ROOT)])
    if described.kind is Kind.CATEGORICAL:
        teaches_little = target is None or counts.sum() <= _FEW_ROWS_OF_A_VALUE * len(texts)
        ready = recognised_ready(folded_name(name), texts, with_postcodes=bool(teaches_little))
        if ready is not None:
            return ready.hierarchy(texts)
    counted = None
    if target is not None:
        counted = _summed(counts_by_class(table, name, target), _trimmed(column))
    return automatic_hierarchy(texts, counts, described.kind, contingency=counted, order=described.domain)


def counts_by_class(table: Table, name: str, target: str) -> Counts:
    """Rows of each value of a column in each class of a target.

    A target of more than 50 values counts as 16 classes of neighbouring values with about equally many rows.
    """
    classes = _classes(table[target])
    by_class = np.zeros((table[name].n_distinct, int(classes.max(initial=0)) + 1), dtype=np.int64)
    np.add.at(by_class.T, classes, contingency(table, name, target).T)
    return by_class


def distinct_texts(column: CodedColumn) -> tuple[list[str], Counts]:
    """Distinct values of a column as trimmed texts, missing left out, and how many rows hold each.

    Texts that differ only in blanks around them are one value.

    Examples
    --------
    >>> import pyarrow as pa
    >>> texts, counts = distinct_texts(CodedColumn.encode(pa.array(["a", "a ", "b", None])))
    >>> texts, counts.tolist()
    (['a', 'b'], [2, 1])
    """
    texts = _trimmed(column)
    return list(dict.fromkeys(texts)), _summed(column.counts, texts)


def _trimmed(column: CodedColumn) -> list[str]:
    return [text.strip() for text in as_text(column.values.drop_null()).to_pylist()]


def _summed(counts: Counts, texts: Sequence[str]) -> Counts:
    """Sum the counts of equal texts, in the order in which they first occur; counts beyond the texts are left out."""
    place_of = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    summed = np.zeros((len(place_of), *counts.shape[1:]), dtype=np.int64)
    np.add.at(summed, [place_of[text] for text in texts], counts[: len(texts)])
    return summed


def _classes(target: CodedColumn) -> Counts:
    """Class of each value of a target."""
    if target.n_distinct <= _MAX_CLASSES:
        return np.arange(target.n_distinct)
    reached = np.cumsum(target.counts)
    return np.asarray((reached - 1) * _JOINED_CLASSES // reached[-1], dtype=np.int64)


def groups_of_rare_values(values: Sequence[str], counts: Counts) -> Hierarchy:
    """Join the two rarest groups again and again, so that groups of a level are as equally frequent as can be.

    Examples
    --------
    >>> groups_of_rare_values(["a", "b", "c", "d"], np.array([50, 2, 20, 1])).labels
    (('a', 'b', 'c', 'd'), ('a', '{b|c|d}'), ('*',))
    """
    return _levels_of(values, counts, _rarest_pairs(counts))


def _rarest_pairs(counts: Counts) -> Iterator[Pair]:
    heap = [(int(count), place) for place, count in enumerate(counts)]
    heapq.heapify(heap)
    while len(heap) > 1:
        first, second = heapq.heappop(heap), heapq.heappop(heap)
        kept, gone = sorted((first[1], second[1]))
        heapq.heappush(heap, (first[0] + second[0], kept))
        yield kept, gone


def groups_of_similar_values(values: Sequence[str], contingency: Counts) -> Hierarchy:
    r"""Join the two groups whose classes are distributed most alike, again and again.

    Most alike are those whose union loses the least information on the class, in bits times rows:
    :math:`n_{ab} H(C|a \cup b) - n_a H(C|a) - n_b H(C|b)`, the weighted Jensen-Shannon divergence of agglomerative
    information bottleneck (Slonim, Tishby 1999). Of equals the first in the order of the values. Of more than 1,000
    values, those with the nearest shares of the classes are joined beforehand.

    Examples
    --------
    >>> groups_of_similar_values(["a", "b", "c", "d"], np.array([[9, 1], [1, 9], [8, 2], [2, 8]])).labels
    (('a', 'b', 'c', 'd'), ('{a|c}', '{b|d}'), ('*',))
    """
    return _levels_of(values, contingency.sum(axis=1), _most_alike_pairs(contingency))


def _most_alike_pairs(contingency: Counts) -> Iterator[Pair]:
    """Pairs to join; a group is known by its first value."""
    blocks = _neighbour_blocks(contingency)
    for block in blocks:
        yield from ((int(block[0]), int(gone)) for gone in block[1:])
    leaders = [int(block[0]) for block in blocks]
    classes = np.array([contingency[block].sum(axis=0) for block in blocks], dtype=np.float64)
    entropies = _rows_times_entropy(classes)
    losses = np.full((len(blocks), len(blocks)), np.inf)
    for place in range(len(blocks)):
        losses[place, place + 1 :] = _losses(classes, entropies, place)[place + 1 :]
    for _ in range(len(blocks) - 1):
        kept, gone = divmod(int(np.argmin(losses)), len(blocks))
        classes[kept] += classes[gone]
        entropies[kept] = _rows_times_entropy(classes[kept])
        losses[gone, :] = losses[:, gone] = np.inf
        new = np.where(np.isinf(_known(losses, kept)), np.inf, _losses(classes, entropies, kept))
        losses[kept, kept + 1 :], losses[:kept, kept] = new[kept + 1 :], new[:kept]
        yield leaders[kept], leaders[gone]


def _known(losses: NDArray[np.float64], place: int) -> NDArray[np.float64]:
    """Losses of one group with every other, infinite for groups that are gone."""
    return np.concatenate([losses[:place, place], losses[place, place:]])


def _losses(classes: NDArray[np.float64], entropies: NDArray[np.float64], place: int) -> NDArray[np.float64]:
    """Bits times rows lost by joining a group with each; rounded, so that equals are equal on every machine."""
    lost: NDArray[np.float64] = _rows_times_entropy(classes + classes[place]) - entropies - entropies[place]
    return lost.round(9)


def _rows_times_entropy(classes: NDArray[np.float64]) -> NDArray[np.float64]:
    """:func:`sfumato.measures.information.total_entropies_bits` by natural logarithms, whose ties files rest on."""
    n_rows = classes.sum(axis=-1)
    from scipy.special import xlogy

    return np.asarray((xlogy(n_rows, n_rows) - xlogy(classes, classes).sum(axis=-1)) / np.log(2))


def _neighbour_blocks(contingency: Counts) -> list[NDArray[np.intp]]:
    """Values one by one or, if they are many, in blocks of about as many rows whose class shares are neighbours."""
    n_values = len(contingency)
    if n_values <= _MAX_COMPARED:
        return [np.array([place]) for place in range(n_values)]
    n_rows = contingency.sum(axis=1)
    shares = contingency / np.maximum(n_rows, 1)[:, None]
    order = np.lexsort(shares.T[::-1])
    reached = np.cumsum(n_rows[order])
    block = np.minimum((reached - 1) * _MAX_COMPARED // max(1, int(reached[-1])), _MAX_COMPARED - 1)
    blocks = np.split(order, np.flatnonzero(np.diff(block)) + 1)
    return sorted((np.sort(block) for block in blocks), key=lambda block: int(block[0]))


def _levels_of(values: Sequence[str], counts: Counts, pairs: Iterator[Pair]) -> Hierarchy:
    """Join pairs of groups, and keep a level whenever the number of groups has halved."""
    members = {place: [place] for place in range(len(values))}
    levels: list[list[str]] = []
    wanted = (len(values) + 1) // 2
    for kept, gone in pairs:
        if len(members) <= 2:
            break
        members[kept] += members.pop(gone)
        if len(members) == wanted:
            levels.append(_written(values, counts, members))
            wanted = (wanted + 1) // 2
    return Hierarchy.from_rows(list(zip(values, *levels, [ROOT] * len(values), strict=True))).joining_levels()


def _written(values: Sequence[str], counts: Counts, members: dict[int, list[int]]) -> list[str]:
    """Label of each value: the set of its group's values or, if they are many, the most frequent one and a number."""
    written = [""] * len(values)
    for group in members.values():
        places = sorted(group)
        label = _label_of([values[place] for place in places], [int(counts[place]) for place in places])
        for place in group:
            written[place] = label
    return written


def _label_of(values: Sequence[str], counts: Sequence[int]) -> str:
    if len(values) == 1:
        return write_value(values[0])
    if len(values) <= MAX_LISTED:
        return write_set(values) or ""
    return f"{values[int(np.argmax(counts))]} and {len(values) - 1:,} others"


# Hierarchies as people ask for them: a method by name, its settings as text or numbers.


def build_hierarchy(
    table: Table, column: str, method: str, settings: Mapping[str, Any] | None = None, *, mark: str = ""
) -> Hierarchy:
    """Build a hierarchy for a column of a table, and check that it covers every value.

    Parameters
    ----------
    method : {"auto", "width", "quantile", "cuts", "mask", "dates", "groups", "ready"}
        ``auto`` suits the kind of the column: see :func:`hierarchy_for`.
    settings : mapping, optional
        Of the method, as numbers or as text; None is as good as absent. ``width``: ``width``, ``start``, ``merge``.
        ``quantile``: ``intervals``, ``merge``. ``cuts``: ``cuts``, ``merge``. ``mask``: ``step``. ``groups``:
        ``order``, ``sizes``. ``auto``: ``target``. ``ready``: ``ready`` (its name), ``unknown``, ``country``, see
        :func:`sfumato.mechanisms.hierarchies.ready.ready_hierarchy`. Lists are separated by commas.
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
    if method not in METHODS:
        raise InvalidParameterError(f"{mark}method", f"got {method!r}", allowed=f"one of {', '.join(METHODS)}")
    hierarchy = _built(table, column, _Settings(method, settings or {}, mark))
    cover_column(hierarchy, table, column)
    return hierarchy


def _built(table: Table, column: str, asked: _Settings) -> Hierarchy:
    values, counts = distinct_texts(table[column])
    match asked.method:
        case "width":
            asked.needed("width")
            width, start = asked.number("width", float, None), asked.number("start", float, 0)
            return builders.equal_width_intervals(values, width, start=start, merge=asked.numbers("merge", int))
        case "quantile":
            n_intervals = asked.number("intervals", int, 16)
            return quantile_intervals(values, counts, n_intervals, merge=asked.numbers("merge", int))
        case "cuts":
            asked.needed("cuts")
            return builders.intervals_at(values, asked.numbers("cuts", float) or [], merge=asked.numbers("merge", int))
        case "mask":
            return builders.masked_characters(values, step=asked.number("step", int, 1))
        case "dates":
            return calendar_levels(values)
        case "groups":
            order = next(csv.reader([asked.needed("order")], skipinitialspace=True), [])
            return ordered_groups([value.strip() for value in order], asked.numbers("sizes", int))
        case "ready":
            name, unknown = str(asked.needed("ready")), str(asked.get("unknown") or "refuse")
            return ready_hierarchy(name, values, unknown=unknown, country=asked.get("country"))
        case _:
            return hierarchy_for(table, column, target=asked.get("target"))


def cover_column(hierarchy: Hierarchy, table: Table, column: str) -> Covered:
    """Fit a hierarchy to a column of a table; see :func:`covered` for what is refused."""
    described = table.schema[column]
    return covered(hierarchy, table[column], column, described.kind, missing=table.schema.missing_tokens(column))


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
            raise InvalidParameterError(self.mark + name, f"got {value!r}", allowed=allowed) from None

    def numbers(self, name: str, kind: Callable[[str], Any]) -> list[Any] | None:
        text = self.get(name)
        if text is None:
            return None
        try:
            return [kind(part) for part in text.split(",") if part.strip()]
        except ValueError:
            allowed = "whole numbers separated by commas" if kind is int else "numbers separated by commas"
            raise InvalidParameterError(self.mark + name, f"got {text!r}", allowed=allowed) from None
