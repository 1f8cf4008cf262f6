"""What each released column should hold, given the original's: compared by codes, so for any rows at any time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.audit.claims import ClaimedRecoding, Claims
from sfumato.audit.reading.cells import Containing, contained
from sfumato.audit.reading.columns import Columns
from sfumato.audit.reading.labels import contained_in_labels
from sfumato.audit.reading.values import (
    AS_IS,
    GENERALIZED,
    HIERARCHY,
    TYPICAL,
    evaluate,
    matching_ids,
    moments_in,
    zero_one,
)
from sfumato.errors import InvalidParameterError
from sfumato.table.binary import Feature

Ids = NDArray[np.int64] | NDArray[np.int8]
Codes = NDArray[np.integer]

_ZERO_ONE = np.arange(2, dtype=np.int8)
_MICROSECONDS_A_DAY = 86_400_000_000


def _no_ids() -> Ids:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class CellRule:
    """How the cells of a released column follow from those of a column of the original.

    Parameters
    ----------
    name, column : str
        The released column, and the original's.
    expected : array
        For each code of the original a number; equal numbers stand for equal cells.
    found : array
        The same for each code of the release.
    problem : str
        Why there is nothing to compare.
    fits_any_row : bool
        Whether a cell need only be a value of the column, whoever's it is.
    """

    name: str
    column: str
    expected: Ids = field(default_factory=_no_ids)
    found: Ids = field(default_factory=_no_ids)
    problem: str = ""
    fits_any_row: bool = False

    def agree(self, original: Codes, released: Codes) -> NDArray[np.bool_]:
        """Whether cells of the original and of the release agree, one by one."""
        return np.asarray(self.expected[original] == self.found[released])


@dataclass(frozen=True)
class FittingRule(CellRule):
    """Cells that agree when the released one may mean the original's."""

    read: Containing | None = None

    def agree(self, original: Codes, released: Codes) -> NDArray[np.bool_]:
        """Whether released cells represent the values next to them."""
        if self.read is None:
            raise AssertionError
        return self.read.holds(original, released)


def cell_rules(released: Columns, original: Columns, claims: Claims) -> Iterator[CellRule]:
    """Give the rule of each stated column."""
    for name in claims.names():
        if name not in released:
            yield _impossible(name, "is not in the release")
        elif name in claims.unkeyed:
            yield _without_key(name, released, original, claims)
        elif name in claims.recodings:
            yield _recoded(released, original, claims, claims.recodings[name])
        elif name not in original:
            yield _impossible(name, "is neither a column of the original nor a stated recoding")
        elif original.feature(name):
            yield _as_ones(name, name, released, _ZERO_ONE)
        else:
            expected, found = matching_ids(original.coded(name).values, released.coded(name).values)
            yield CellRule(name, name, expected, found)


def _without_key(name: str, released: Columns, original: Columns, claims: Claims) -> CellRule:
    """Compare what can be of a column whose values rest on a secret that the audit was not given.

    Of pseudonyms that is whether cells are missing; of shifted dates also that they moved by no more than is stated.
    """
    if name not in original or original.feature(name) or released.feature(name):
        return _impossible(name, "is not a column of both tables")
    before, after = original.coded(name).values, released.coded(name).values
    shift = claims.prepared[name].parameters("shift")
    if shift is None:
        return CellRule(name, name, _is_missing(before), _is_missing(after))
    read = _within_days(before, after, shift["days"])
    return _impossible(name, "holds cells that are no dates") if read is None else FittingRule(name, name, read=read)


def _within_days(before: pa.Array, after: pa.Array, most: int) -> Containing | None:
    """Which original dates each released one may be, if it was moved by so many days at most."""
    originals, moved = moments_in(before), moments_in(after)
    if originals is None or moved is None:
        return None
    known = np.unique(originals.drop_null().to_numpy(zero_copy_only=False))
    n_known = len(known)  # a missing date comes after all others
    places = np.full(len(before), n_known, dtype=np.int64)
    is_date = ~np.asarray(before.is_null().to_numpy(zero_copy_only=False))
    places[is_date] = np.searchsorted(known, originals.drop_null().to_numpy(zero_copy_only=False))
    starts, stops = np.full(len(after), n_known), np.full(len(after), n_known + 1)
    was_date = ~np.asarray(after.is_null().to_numpy(zero_copy_only=False))
    found, width = moved.drop_null().to_numpy(zero_copy_only=False), most * _MICROSECONDS_A_DAY
    starts[was_date] = np.searchsorted(known, found - width, side="left")
    stops[was_date] = np.searchsorted(known, found + width, side="right")
    holds = starts < stops
    return Containing(places, n_known + 1, np.flatnonzero(holds), starts[holds], stops[holds], len(after))


def _is_missing(values: pa.Array) -> Ids:
    return np.asarray(values.is_null().to_numpy(zero_copy_only=False)).astype(np.int64)


def refuse_problems(rules: Iterable[CellRule]) -> None:
    """Refuse rules by which nothing can be compared.

    Raises
    ------
    InvalidParameterError
        With the first column.
    """
    for rule in rules:
        if rule.problem:
            raise InvalidParameterError("cells", f"'{rule.name}' {rule.problem}", allowed="those of the original")


def codes_of(columns: Columns, name: str) -> Codes:
    """Codes of a column by rows; of a feature 0 and 1."""
    if not columns.feature(name):
        return columns.coded(name).codes
    ones = np.zeros(columns.n_rows, dtype=np.int8)
    ones[columns.rows_with_one(name)] = 1
    return ones


def _recoded(released: Columns, original: Columns, claims: Claims, recoding: ClaimedRecoding) -> CellRule:
    name = recoding.name
    feature = original.feature(name) or (original.feature(recoding.column) if recoding.rule == AS_IS else None)
    if feature is not None:
        if recoding.name == feature.name and not _same_rule(recoding, feature):
            return _impossible(name, "has another rule than in the original")
        return _as_ones(name, feature.name, released, _ZERO_ONE)
    if recoding.column not in original:
        return _impossible(name, "was computed from a column that the original lacks")
    if recoding.rule == GENERALIZED:
        cells, values = released.coded(name).values, original.coded(recoding.column).values
        return _fitting(recoding, contained(cells, values, recoding.kind, recoding.domain))
    if recoding.rule == TYPICAL:
        return _of_some_row(recoding, released, original)
    if recoding.rule == HIERARCHY:
        return _fitting(recoding, _by_labels(released, original, claims, recoding))
    result = evaluate(recoding, original.coded(recoding.column).values)
    if result is None:
        return _impossible(name, f"has a rule ({recoding.rule}) that cannot be applied to '{recoding.column}'")
    return _as_ones(name, recoding.column, released, result)


def _of_some_row(recoding: ClaimedRecoding, released: Columns, original: Columns) -> CellRule:
    """Let a typical value stand for any row: it is one of the column's values, whoever's it is."""
    before, after = matching_ids(original.coded(recoding.column).values, released.coded(recoding.name).values)
    expected, found = np.zeros(len(before), dtype=np.int64), ~np.isin(after, before) * 1
    return CellRule(recoding.name, recoding.column, expected, found, fits_any_row=True)


def _by_labels(released: Columns, original: Columns, claims: Claims, recoding: ClaimedRecoding) -> Containing:
    """Read cells that are labels of a hierarchy."""
    is_built = "hierarchies" in claims.parameters  # else intervals were agreed on
    return contained_in_labels(
        released.coded(recoding.name).values,
        original.coded(recoding.column).values,
        recoding.kind,
        recoding.labels,
        recoding.domain,
        n_levels=recoding.n_levels,
        is_built=is_built and recoding.name not in (claims.parameters["hierarchies"] or ()),
    )


def _fitting(recoding: ClaimedRecoding, read: Containing) -> CellRule:
    """Compare cells that stand for several values with the original's."""
    if read.n_unreadable or read.n_foreign or read.n_repeated or read.n_misspelled:
        return _impossible(recoding.name, "has cells that cannot be read as ranges or sets of the original's values")
    return FittingRule(recoding.name, recoding.column, read=read)


def _same_rule(recoding: ClaimedRecoding, feature: Feature) -> bool:
    stated = (recoding.column, recoding.rule, recoding.values, recoding.above, recoding.upto)
    return stated == (feature.column, feature.rule, tuple(feature.values), feature.above, feature.upto)


def _as_ones(name: str, column: str, released: Columns, expected: NDArray[np.int8]) -> CellRule:
    """Compare a released column with expected zeros and ones; anything else in it differs."""
    if released.feature(name):
        return CellRule(name, column, expected, _ZERO_ONE)
    numbers = zero_one(released.coded(name).values)
    if numbers is None or len(set(numbers.tolist())) < len(numbers):
        return _impossible(name, "should hold only 0 and 1, in one spelling each")
    return CellRule(name, column, expected, numbers)


def _impossible(name: str, problem: str) -> CellRule:
    return CellRule(name, name, problem=problem)
