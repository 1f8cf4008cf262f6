"""A release and its original: the guarantees that only the two together can show."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.audit.checks import Check
from sfumato.audit.claims import Claims
from sfumato.audit.original.assignment import BothBags, Pairs, TooManyPairsError
from sfumato.audit.original.cell_rules import CellRule, FittingRule, cell_rules, codes_of
from sfumato.audit.original.consistency import Consistency, consistency
from sfumato.audit.original.offered_rows import OfferedRows, offered_rows
from sfumato.audit.reading.cells import Containing
from sfumato.audit.reading.columns import Columns
from sfumato.audit.reading.values import GENERALIZED, meanings_read_as, moments_in, numbers_in
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees import ROUNDING
from sfumato.schema import Column, Kind, Role
from sfumato.table.coding import CodedColumn
from sfumato.table.weighted import WeightedColumn

# Certainty penalties, re-computed from what the audit reads in the cells: how much a release leaves open.
#
# NCP and GCP of [GKKM07]_: a range costs its width over that of the column, a set the share of the column's values
# that it names, a single value nothing; the table's penalty is the mean over all cells. A range that may also be
# missing costs one value's share more.
#
# References ---------- .. [GKKM07] Ghinita, Karras, Kalnis, Mamoulis: Fast Data Anonymization with Low Information
# Loss. VLDB 2007.


Penalties = NDArray[np.float64]


def cell_penalties(
    read: Containing, original: CodedColumn, described: Column, codes: NDArray[np.int32]
) -> Penalties | None:
    """Penalty of each distinct cell; ``None`` where values that ranges run over have no measurable distance.

    Only values whose codes are given count as values of the column.
    """
    occurs = np.zeros(read.n_places, dtype=np.bool_)
    occurs[read.places[codes]] = True
    missing = original.missing_code
    missing_place = read.n_places if missing is None else int(read.places[missing])
    may_be_missing = np.zeros(read.n_cells, dtype=np.bool_)
    holds_missing = (read.starts <= missing_place) & (missing_place < read.stops)
    may_be_missing[read.cells[holds_missing]] = True
    if described.kind is Kind.CATEGORICAL:
        return _of_sets(read, occurs)
    positions = _positions(original.values, described)
    if positions is None:
        return None
    at_place = np.full(read.n_places, np.nan)
    at_place[read.places] = positions
    occurs[missing_place:] = False
    return _of_ranges(read, occurs, at_place, may_be_missing)


def _of_sets(read: Containing, occurs: NDArray[np.bool_]) -> Penalties:
    before = np.concatenate([[0], np.cumsum(occurs)])
    covered = np.bincount(read.cells, weights=before[read.stops] - before[read.starts], minlength=read.n_cells)
    return np.where(covered <= 1, 0.0, covered / max(before[-1], 1))


def _of_ranges(
    read: Containing, occurs: NDArray[np.bool_], at_place: Penalties, may_be_missing: NDArray[np.bool_]
) -> Penalties:
    known = at_place[occurs]
    span = float(np.ptp(known)) if len(known) else 0.0
    low, high = np.full(read.n_cells, np.inf), np.full(read.n_cells, -np.inf)
    places = np.flatnonzero(occurs)
    first, last = np.searchsorted(places, read.starts), np.searchsorted(places, read.stops) - 1
    holds = first <= last
    with np.errstate(invalid="ignore"):  # places of values that are none by the stated kind, which another check says
        np.minimum.at(low, read.cells[holds], at_place[places[first[holds]]])
        np.maximum.at(high, read.cells[holds], at_place[places[last[holds]]])
    has_value = low <= high
    width = np.subtract(high, low, out=np.zeros(read.n_cells), where=has_value)
    penalties = width / span if span > 0 else np.zeros(read.n_cells)
    return np.minimum(penalties + may_be_missing / (len(places) + 1), 1.0) * has_value


def _positions(values: pa.Array, described: Column) -> Penalties | None:
    if described.kind is Kind.NUMERIC:
        numbers, wrong = numbers_in(values)
        return None if wrong.any() else numbers
    if described.kind is Kind.DATE:
        moments = moments_in(values)
        if moments is None:
            return None
        return np.asarray(pc.cast(moments, pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    if described.domain is None:
        return None
    place = {meaning: float(i) for i, meaning in enumerate(meanings_read_as(pa.array(described.domain), values.type))}
    # a value that the order lacks is of rows that are not released; of a released one no penalty can be measured
    return np.array([place.get(m, np.nan) for m in meanings_read_as(values, pa.string())], dtype=np.float64)


PENALTY = "global_certainty_penalty"


class ReleaseVsOriginal:
    """Both tables and what the manifest says of them; their consistency on the same columns is measured once.

    ``in_original_order`` says whether it is known which row of the original each released one is: they are in its
    order and all are released, or ``own_rows``, which the publisher gives, are those rows.

    Raises
    ------
    InvalidParameterError
        If the rows that are given are not rows of the original that may be released, in their order.
    """

    def __init__(
        self,
        released: Columns,
        original: Columns,
        claims: Claims,
        *,
        in_original_order: bool = True,
        own_rows: NDArray[np.intp] | None = None,
    ) -> None:
        self.released = released
        self.original = original
        self.claims = claims
        self.in_original_order = in_original_order
        self._measured: dict[frozenset[str], Consistency] = {}
        self.own_rows = own_rows
        if own_rows is not None:
            is_offered = np.isin(own_rows, self.rows).all() and (np.diff(own_rows) > 0).all()
            if len(own_rows) != released.n_rows or not is_offered:
                problem = "some are not rows of the original that may be released"
                raise InvalidParameterError("own_rows", problem, allowed="a row of the original for each released row")

    @cached_property
    def offered(self) -> OfferedRows:
        """Rows of the original that may be released, and how many were left out beforehand."""
        return offered_rows(self.original, self.claims)

    @property
    def rows(self) -> NDArray[np.intp]:
        """Rows of the original that may be released: all but those left out beforehand."""
        return self.offered.rows

    @property
    def n_rows(self) -> int:
        """How many rows of the original may be released."""
        are_left_out = self.claims.drops_incomplete_rows or self.claims.persons is not None
        return len(self.rows) if are_left_out else self.original.n_rows

    @cached_property
    def rules(self) -> tuple[CellRule, ...]:
        """How the cells of each released column follow from the original's; each column is read once."""
        return tuple(cell_rules(self.released, self.original, self.claims))

    @cached_property
    def fitting(self) -> Pairs | None:
        """Original and released rows that fit each other in all columns whose cells were not moved.

        ``None`` where cells cannot be compared, or rows fit in too many ways.
        """
        moved = self.claims.perturbation.moved if self.claims.perturbation else frozenset()
        rules = [rule for rule in self.rules if rule.name not in moved]
        if not rules or any(rule.problem for rule in rules):
            return None
        before = [codes_of(self.original, rule.column)[self.rows] for rule in rules]
        after = [codes_of(self.released, rule.name) for rule in rules]
        try:
            return Pairs.of(BothBags.of(rules, before, after))
        except TooManyPairsError:
            return None

    @cached_property
    def generalized(self) -> dict[str, Column]:
        """Columns whose cells are generalized, with the kind that the manifest gives their values."""
        recodings = [r for r in self.claims.recodings.values() if r.rule == GENERALIZED and r.name == r.column]
        return {r.name: Column(r.name, kind=r.kind, domain=r.domain) for r in recodings}

    @cached_property
    def read(self) -> dict[str, Containing]:
        """Which original values the cells of generalized columns may mean, where they can be read."""
        rules = (rule for rule in self.rules if isinstance(rule, FittingRule) and rule.name in self.generalized)
        return {rule.name: rule.read for rule in rules if rule.read is not None}

    def consistency(self, names: tuple[str, ...]) -> Consistency:
        """Compare the two tables on some columns.

        Raises
        ------
        SchemaError
            If a column is not in both tables or its cells cannot be read.
        InvalidParameterError
            If rows do not belong together one by one.
        """
        if len(self.rows) != self.released.n_rows:
            raise InvalidParameterError("rows", "the numbers differ", allowed="one released row for each original one")
        key = frozenset(names)
        if key not in self._measured:
            self._measured[key] = consistency(
                self.released, self.original, names, generalized=self.generalized, rows=self.rows, read=self.read
            )
        return self._measured[key]

    def check_what_holds(self) -> Iterator[Check]:
        """Name every level of anonymity that holds, so that none is taken for another; nothing where none can be."""
        try:
            found = self.consistency(self.claims.names(Role.QUASI_IDENTIFIER))
        except (SchemaError, InvalidParameterError):
            return
        said = (
            f"k-anonymity holds with k = {found.anonymity_level}, (1,k) with {found.level_1k}, (k,1) with "
            f"{found.level_k1}, (k,k) with {found.level_kk}, global (1,k) with {found.level_global}"
        )
        yield Check("what holds", True, said)

    def check_stated_penalty(self) -> Iterator[Check]:
        """Compare the certainty penalty that the manifest states with that of the released cells.

        Counts of each column by itself are enough.
        """
        if PENALTY not in self.claims.stated_utility or not self.generalized or self.n_rows != self.released.n_rows:
            return
        name, stated = "utility: global certainty penalty", self.claims.stated_utility[PENALTY]
        penalties = [self._penalty_of(column) for column in self.generalized.values()]
        if any(penalty is None for penalty in penalties):
            yield Check(name, False, "global certainty penalty: some cells cannot be measured", stated)
            return
        found = float(np.mean([penalty for penalty in penalties if penalty is not None]))
        passed = abs(stated - found) <= ROUNDING
        said = f"global certainty penalty: the manifest gives {stated:.6g}, found {found:.6g}"
        yield Check(name, passed, said, stated, found)

    def _penalty_of(self, column: Column) -> float | None:
        read = self.read.get(column.name)
        if read is None:
            return None
        before, after = self.original.coded(column.name), self.released.coded(column.name)
        penalties = cell_penalties(read, before, column, self._codes_of_rows(before))
        return None if penalties is None or not after.n_rows else float(penalties @ after.counts / after.n_rows)

    def _codes_of_rows(self, column: CodedColumn) -> NDArray[np.int32]:
        """Codes of the rows that may be released; all, where each stands for many rows."""
        return column.codes if isinstance(column, WeightedColumn) else column.codes[self.rows]
