"""One column that an attacker knows: which released cells may stand for a reference value, and how much they say."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.audit.cells import Containing, contained
from sfumato.audit.values import is_text, meanings_beside, numbers_in
from sfumato.errors import SchemaError
from sfumato.recoding.axes import positions_of
from sfumato.schema import Column, Kind
from sfumato.table.coding import CodedColumn
from sfumato.table.generalized import GeneralizedCell, read_cell

Ids = NDArray[np.int64]
Shares = NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class BackgroundColumn:
    """A column of a reference table beside the same column of a release.

    Parameters
    ----------
    containing : Containing
        Values that each distinct released cell may stand for, among all values that either table shows.
    places : array
        Value of each reference row, as its place among them.
    cells : array
        Distinct released cell of each released row.
    shares : array
        Share of the column's domain that each distinct released cell stands for, :math:`P_j` of [ERP19]_.
    """

    containing: Containing
    places: Ids
    cells: Ids
    shares: Shares

    def holds(self, rows: Ids, released_rows: Ids) -> NDArray[np.bool_]:
        """Whether, pair by pair, a released row's cell may stand for a reference row's value."""
        return self.containing.holds_at(self.places[rows], self.cells[released_rows])


def background_column(
    reference: CodedColumn, released: CodedColumn, described: Column, *, generalized: bool
) -> BackgroundColumn:
    """Read a column of both tables.

    The domain is what the released cells and the reference show together; missing is a value. A set's share is its
    number of values over that of the domain. A range's share is its length over the length of the domain, but no less
    than that of one value, which is 1 over the number of values; a missing member adds one value.

    Parameters
    ----------
    described : Column
        Name, kind and order of the column's *original* values.
    generalized : bool
        Whether released cells are written as ranges and sets; otherwise each one is a value.

    Raises
    ------
    SchemaError
        If released cells cannot be read, or a column of numbers or dates has something else in the reference. No cell
        is shown.
    """
    if generalized:
        containing, shares = _of_generalized(reference.values, released.values, described)
    else:
        containing = _of_single_values(reference.values, released.values, described.kind)
        shares = np.full(containing.n_cells, 1 / max(containing.n_places, 1))
    places = containing.places[reference.codes]
    return BackgroundColumn(containing, places, released.codes.astype(np.int64), shares)


def _of_single_values(reference: pa.Array, released: pa.Array, kind: Kind) -> Containing:
    """Let a released cell stand for the value that means the same: numbers by size, whatever their spelling."""
    is_numeric = kind is Kind.NUMERIC
    known = meanings_beside(_trimmed(reference), pa.float64() if is_numeric else released.type)
    shown = meanings_beside(_trimmed(released), pa.float64() if is_numeric else reference.type)
    place_of: dict[Hashable, int] = {}
    for meaning in (*known, *shown):
        place_of.setdefault(meaning, len(place_of))
    starts = np.array([place_of[meaning] for meaning in shown], dtype=np.int64)
    places = np.array([place_of[meaning] for meaning in known], dtype=np.int64)
    return Containing(places, len(place_of), np.arange(len(shown)), starts, starts + 1, len(shown))


def _trimmed(values: pa.Array) -> pa.Array:
    return pc.utf8_trim_whitespace(values) if is_text(values.type) else values


def _of_generalized(reference: pa.Array, released: pa.Array, described: Column) -> tuple[Containing, Shares]:
    known = pc.cast(_trimmed(reference), pa.string())
    _check_reference(reference, known, described)
    cells = _read_cells(released, described.name)
    tokens = [value for cell in cells for value in (*cell.values, *(cell.bounds or ()))]
    tokens += [None] if any(cell.may_be_missing and not cell.is_any for cell in cells) else []
    if described.kind is Kind.NUMERIC and numbers_in(pa.array(tokens, pa.string()))[1].any():
        raise _unreadable(described.name)
    domain = pa.concat_arrays([known, pa.array(tokens, pa.string())]).unique()
    if described.domain:
        described = replace(
            described, domain=tuple(dict.fromkeys([*described.domain, *domain.drop_null().to_pylist()]))
        )
    containing = contained(released, domain, described.kind, described.domain)
    if containing.n_unreadable:
        raise _unreadable(described.name)
    shares = _shares(containing, _positions(domain, containing, described))
    places = containing.places[pc.index_in(known, domain).to_numpy().astype(np.int64)]
    return replace(containing, places=places), shares


def _check_reference(reference: pa.Array, known: pa.Array, described: Column) -> None:
    """Refuse values that would be compared as texts with ranges of numbers or dates."""
    if described.kind is Kind.NUMERIC:
        n_wrong, what, hint = int(numbers_in(known)[1].sum()), "numbers", "say which texts mean 'missing'"
    elif described.kind is Kind.DATE and not pa.types.is_temporal(reference.type):
        n_wrong, what, hint = _n_no_dates(known), "dates", "write them as 1960-02-11"
    else:
        return
    if n_wrong:
        problem = f"the release has {what} here, but {n_wrong:,} distinct values of the reference are none"
        raise SchemaError(problem, column=described.name, hint=f"{hint}, or leave the column out")


def _n_no_dates(known: pa.Array) -> int:
    """Count texts that are no ISO dates or times, with or without a zone."""
    texts = known.drop_null()
    if _are_moments(texts):
        return 0
    return sum(not _are_moments(texts.slice(i, 1)) for i in range(len(texts)))


def _are_moments(texts: pa.Array) -> bool:
    for zone in (None, "UTC"):
        try:
            pc.cast(texts, pa.timestamp("us", zone))
        except pa.ArrowInvalid:
            continue
        return True
    return False


def _read_cells(released: pa.Array, name: str) -> list[GeneralizedCell]:
    try:
        return [read_cell(text) for text in pc.cast(released, pa.string()).to_pylist()]
    except ValueError:
        raise _unreadable(name) from None


def _unreadable(name: str) -> SchemaError:
    problem = "the release has cells that are neither values nor ranges or sets of values"
    return SchemaError(problem, column=name, hint="is this the release that the manifest describes?")


def _positions(domain: pa.Array, containing: Containing, described: Column) -> Shares | None:
    """Position of each place, not-a-number for missing; ``None`` where the values have no order."""
    found = positions_of(described, domain.drop_null())
    if found is None:
        return None
    positions = np.full(containing.n_places, np.nan)
    positions[containing.places[domain.is_valid().to_numpy(zero_copy_only=False)]] = found
    return positions


def _shares(containing: Containing, positions: Shares | None) -> Shares:
    n_values = max(containing.n_places, 1)
    sizes = (containing.stops - containing.starts) / n_values
    if positions is not None and len(containing.cells):
        has_missing = np.isnan(positions[containing.stops - 1])  # missing has the last place
        last = containing.stops - 1 - has_missing
        length = positions[np.maximum(last, containing.starts)] - positions[containing.starts]
        span = np.nanmax(positions, initial=-np.inf) - np.nanmin(positions, initial=np.inf)
        is_range = last >= containing.starts
        part = np.maximum(length / span if span > 0 else 0.0, 1 / n_values)
        sizes = np.where(is_range, part, 0.0) + has_missing / n_values
    return np.minimum(np.bincount(containing.cells, weights=sizes, minlength=containing.n_cells), 1.0)
