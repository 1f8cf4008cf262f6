"""What the page shows of each column: guess, missing and distinct values, uniqueness and a small histogram.

The histograms hold cell values. They are for the page on this machine only, never for a log or an error.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.audit.reading.cells import Containing
from sfumato.schema import AS_TEXT, Column, Kind
from sfumato.table.binary import BinaryTable
from sfumato.table.cells import as_text
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.identifiers.text_columns import why_withheld
from sfumato.table.roles import ColumnGuess

Counts = NDArray[np.int64]
Histogram = dict[str, list[Any]]

MAX_BARS = 12
"""Most bars of a column's histogram."""
_MAX_LABEL = 40
_LEAST_WIDTH = 1e-290


def column_facts(table: Table | BinaryTable, guesses: Sequence[ColumnGuess]) -> list[dict[str, Any]]:
    """Facts of every column, as plain data.

    ``number`` counts from 1 in the list that is returned: the columns in the order of the guesses, but the features of
    a sparse 0/1 table after its other columns. ``uniqueness`` is the share of rows with a value that no other row has;
    a missing cell is no value. ``withheld`` says why a column may name people; it is empty where it is of categories.
    ``format`` is the one in which texts were read that are no plain numbers and no ISO dates, ``doubt`` what in it is a
    guess.

    Parameters
    ----------
    table : Table or BinaryTable
    guesses : sequence of ColumnGuess
        Of columns of the table, as :func:`sfumato.table.roles.describe_columns` makes them. Columns without a guess
        are left out.
    """
    ones = dict(zip(table.feature_names, _ones(table), strict=True)) if isinstance(table, BinaryTable) else {}
    plain = table.coded_part
    ordered = sorted(guesses, key=lambda guess: guess.column.name in ones)
    return [
        {"number": number, **_guessed(guess)}
        | (
            _feature_facts(ones[guess.column.name], table.n_rows)
            if guess.column.name in ones
            else _column_facts(plain[guess.column.name], guess.column)
        )
        for number, guess in enumerate(ordered, start=1)
    ]


def facts_beside(
    table: Table | BinaryTable, made: Table | BinaryTable, guesses: Sequence[ColumnGuess]
) -> list[dict[str, Any]]:
    """Give facts of columns as they were read, but whether they name people once prepared: that is what is released."""
    after = made.coded_part
    done = {asked.column for asked in after.prepared.preparations} if after.prepared is not None else set()
    return [
        {**facts, "withheld": why_withheld(replace(after.schema[name], confirmed=False), after[name])}
        if (name := facts["name"]) in done
        else facts
        for facts in column_facts(table, guesses)
    ]


def _ones(table: BinaryTable) -> list[int]:
    return [int(n) for n in np.diff(table.matrix.indptr)]


def _guessed(guess: ColumnGuess) -> dict[str, Any]:
    reading = guess.column.reading
    return {
        "name": guess.column.name,
        "kind": str(guess.column.kind),
        "guessed_role": str(guess.column.role),
        "reason": guess.reason,
        "n_distinct": guess.n_distinct,
        "n_missing": guess.n_missing,
        "format": "" if reading is None or reading.format == AS_TEXT else reading.format,
        "doubt": "" if reading is None else reading.doubt,
    }


def _feature_facts(n_ones: int, n_rows: int) -> dict[str, Any]:
    counts = [n_rows - n_ones, n_ones]
    return {
        "is_feature": True,
        "withheld": "",
        "uniqueness": counts.count(1) / n_rows if n_rows else 0.0,
        "histogram": {"labels": ["0", "1"], "counts": counts},
    }


def _column_facts(column: CodedColumn, described: Column) -> dict[str, Any]:
    counts = _present_counts(column)
    n_rows = len(column.codes)
    return {
        "is_feature": False,
        "withheld": why_withheld(replace(described, confirmed=False), column),
        "uniqueness": int(np.count_nonzero(counts == 1)) / n_rows if n_rows else 0.0,
        "histogram": histogram(column, described.kind),
    }


def _present_counts(column: CodedColumn) -> Counts:
    """Count the rows of each value; the missing value, the last one, is left out."""
    return column.counts[: len(column.values) - column.values.null_count]


def histogram(column: CodedColumn, kind: Kind, max_bars: int = MAX_BARS) -> Histogram:
    """Labels and counts of at most ``max_bars`` bars; missing cells are left out.

    Few values: a bar for each, in their order. Many numbers or dates: ranges of one width, each from its first label up
    to, but without, its second (infinite numbers count to the outermost). Many others: the most frequent values, of
    equals the first, and one bar for all the rest.

    Examples
    --------
    >>> histogram(CodedColumn.encode(pa.array(["b", "a", None, "b"])), Kind.CATEGORICAL)
    {'labels': ['a', 'b'], 'counts': [1, 2]}
    >>> histogram(CodedColumn.encode(pa.array(list(range(40)))), Kind.NUMERIC, max_bars=2)
    {'labels': ['0 – 20', '20 – 40'], 'counts': [20, 20]}
    """
    bars = bars_of(column, kind, max_bars)
    counts = np.bincount(bars.of_value, weights=_present_counts(column), minlength=len(bars.labels))
    return {"labels": list(bars.labels), "counts": [int(count) for count in counts]}


@dataclass(frozen=True, repr=False, eq=False)
class Bars:
    """Bars of a column: their labels, the bar of each value that is not missing, and where each value lies.

    ``sizes`` and ``edges`` are of bars that are ranges of numbers or days; ``None`` where bars are values.
    """

    labels: tuple[str, ...]
    of_value: NDArray[np.int64]
    sizes: NDArray[np.float64] | None = None
    edges: NDArray[np.float64] | None = None


def bars_of(column: CodedColumn, kind: Kind, max_bars: int = MAX_BARS) -> Bars:
    """Choose the bars of a column, see :func:`histogram`."""
    counts = _present_counts(column)
    values = column.values[: len(counts)]
    if len(counts) <= max_bars:
        return Bars(tuple(_written(values)), np.arange(len(counts)))
    sizes = _sizes(values, kind)
    edges = None if sizes is None else _edges(sizes, kind, max_bars)
    if sizes is None or edges is None:
        return _most_frequent(values, counts, max_bars)
    places = np.clip(np.searchsorted(edges, sizes, side="right") - 1, 0, len(edges) - 2)
    labels = [f"{low} – {high}" for low, high in itertools.pairwise(_edge(edge, kind) for edge in edges.tolist())]
    return Bars(tuple(labels), places.astype(np.int64), np.clip(sizes, edges[0], edges[-1]), edges)


def mass_in_bars(bars: Bars, read: Containing, n_rows: NDArray[np.integer]) -> list[float]:
    """Spread the rows of every released cell over the original's bars.

    The rows of a range of numbers or dates lie evenly over its width, those of a set evenly on its values; a cell of
    one value adds to that value's bar. A cell that stands for no value of the original adds to none.

    Parameters
    ----------
    read : Containing
        Which values of the original each distinct released cell may stand for.
    n_rows : array of int
        Rows of each distinct released cell.

    Examples
    --------
    >>> from sfumato.audit.reading.cells import contained
    >>> column = CodedColumn.encode(pa.array(list(range(40))))
    >>> read = contained(pa.array(["[0, 29]", "35"]), column.values, Kind.NUMERIC)
    >>> mass_in_bars(bars_of(column, Kind.NUMERIC, max_bars=2), read, np.array([30, 5]))
    [20.0, 15.0]
    """
    place = read.places[: len(bars.of_value)]
    known = np.unique(place)
    first, last = np.searchsorted(known, read.starts), np.searchsorted(known, read.stops)
    n_values = last - first
    in_cell = np.bincount(read.cells, weights=n_values, minlength=read.n_cells)
    rows = np.asarray(n_rows)[read.cells] * n_values / np.maximum(in_cell[read.cells], 1)
    shares = np.zeros((len(known), len(bars.labels)))  # of each place in each bar: values that mean the same share one
    np.add.at(shares, (np.searchsorted(known, place), bars.of_value), 1)
    shares /= shares.sum(axis=1, keepdims=True)
    total = np.concatenate([np.zeros((1, len(bars.labels))), np.cumsum(shares, axis=0)])
    spread = (total[last] - total[first]) / np.maximum(n_values, 1)[:, None]
    if bars.sizes is not None and bars.edges is not None and len(known) > 1:
        at = np.zeros(len(known))
        at[np.searchsorted(known, place)] = bars.sizes
        wide = n_values > 1
        low, high = at[first[wide]], at[last[wide] - 1] + np.diff(np.sort(at)).min()  # whole numbers fill their width
        inside = np.clip(np.minimum(high[:, None], bars.edges[1:]) - np.maximum(low[:, None], bars.edges[:-1]), 0, None)
        inside[:, -1] += np.clip(high - np.maximum(low, bars.edges[-1]), 0, None)
        spread[wide] = inside / np.maximum(inside.sum(axis=1, keepdims=True), _LEAST_WIDTH)
    return np.round(rows @ spread, 6).tolist() if len(rows) else [0.0] * len(bars.labels)


def _written(values: pa.Array) -> list[str]:
    texts = [str(text) for text in as_text(values).to_pylist()]
    return [text if len(text) <= _MAX_LABEL else text[: _MAX_LABEL - 1] + "…" for text in texts]


def _most_frequent(values: pa.Array, counts: Counts, max_bars: int) -> Bars:
    shown = np.argsort(-counts, kind="stable")[: max_bars - 1]
    of_value = np.full(len(counts), len(shown))
    of_value[shown] = np.arange(len(shown))
    labels = _written(values.take(pa.array(shown)))
    return Bars((*labels, f"{len(counts) - len(shown):,} other values"), of_value)


def _sizes(values: pa.Array, kind: Kind) -> NDArray[np.float64] | None:
    """Place of each value on a line: a number's size or a date's day; None for values that have none."""
    column = CodedColumn(np.zeros(0, dtype=np.int32), values)
    try:
        if kind is Kind.NUMERIC:
            return column.numbers()
        if kind is Kind.DATE:
            days = pc.cast(pc.utf8_slice_codeunits(as_text(values), 0, 10), pa.date32())
            return np.asarray(days.cast(pa.int32()).to_numpy(), dtype=np.float64)
    except (ValueError, pa.ArrowInvalid):
        return None
    return None


def _edges(sizes: NDArray[np.float64], kind: Kind, max_bars: int) -> NDArray[np.float64] | None:
    """Bounds of at most ``max_bars`` ranges of one round width that hold every finite size; None if there are none."""
    finite = sizes[np.isfinite(sizes)]
    if not len(finite):
        return None
    low, high = float(finite.min()), float(finite.max())
    if kind is Kind.DATE:
        n_days = math.ceil((high - low + 1) / max_bars)
        return np.arange(low, high + n_days + 1, n_days, dtype=np.float64)
    if not _LEAST_WIDTH < high - low < 1 / _LEAST_WIDTH:
        return None
    for step in _round_widths((high - low) / max_bars):
        first, last = math.floor(low / step), math.floor(high / step)
        if last - first < max_bars:
            return np.arange(first, last + 2, dtype=np.float64) * step
    return None


def _round_widths(least: float) -> Iterator[float]:
    power = math.floor(math.log10(least))
    for exponent in range(power, power + 3):
        yield from (float(f"{digit}e{exponent}") for digit in ("1", "2", "2.5", "5"))


def _edge(size: float, kind: Kind) -> str:
    return str(np.datetime64(int(size), "D")) if kind is Kind.DATE else f"{size:.12g}"
