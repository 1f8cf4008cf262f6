"""A release beside its original: the guarantees that only the two together can show."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.cells import contained
from sfumato.audit.checks import Check
from sfumato.audit.claims import Claims, is_number
from sfumato.audit.columns import Columns
from sfumato.audit.consistency import Consistency, consistency
from sfumato.audit.kinds import CROWD, Judging, judge
from sfumato.audit.penalty import cell_penalties
from sfumato.audit.rules import GENERALIZED
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees import ROUNDING, GlobalAnonymity, KKAnonymity
from sfumato.schema import Column, Role
from sfumato.table.coding import CodedColumn
from sfumato.table.weighted import WeightedColumn

PENALTY = "global_certainty_penalty"


class Beside:
    """Both tables and what the manifest says of them; their consistency on the same columns is measured once."""

    def __init__(self, released: Columns, original: Columns, claims: Claims) -> None:
        self.released = released
        self.original = original
        self.claims = claims
        self._measured: dict[frozenset[str], Consistency] = {}

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """Rows of the original that may be released: all, or those in which nothing is missing."""
        if not self.claims.drops_incomplete_rows:
            return np.arange(self.original.n_rows)
        return np.flatnonzero(~self.original.incomplete_rows())

    @property
    def n_rows(self) -> int:
        """How many rows of the original may be released."""
        return len(self.rows) if self.claims.drops_incomplete_rows else self.original.n_rows

    @cached_property
    def generalized(self) -> dict[str, Column]:
        """Columns whose cells are generalized, with the kind that the manifest gives their values."""
        recodings = [r for r in self.claims.recodings.values() if r.rule == GENERALIZED and r.name == r.column]
        return {r.name: Column(r.name, kind=r.kind, domain=r.domain) for r in recodings}

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
                self.released, self.original, names, generalized=self.generalized, rows=self.rows
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
        if not is_number(stated):
            yield Check(name, False, "global certainty penalty: the manifest gives no number")
            return
        penalties = [self._penalty_of(column) for column in self.generalized.values()]
        if any(penalty is None for penalty in penalties):
            yield Check(name, False, "global certainty penalty: some cells cannot be measured", stated)
            return
        found = float(np.mean([penalty for penalty in penalties if penalty is not None]))
        passed = abs(stated - found) <= ROUNDING
        said = f"global certainty penalty: the manifest gives {stated:.6g}, found {found:.6g}"
        yield Check(name, passed, said, stated, found)

    def _penalty_of(self, column: Column) -> float | None:
        if column.name not in self.released or column.name not in self.original:
            return None
        before, after = self.original.coded(column.name), self.released.coded(column.name)
        read = contained(after.values, before.values, column.kind, column.domain)
        penalties = cell_penalties(read, before, column, self._codes_of_rows(before))
        return None if penalties is None or not after.n_rows else float(penalties @ after.counts / after.n_rows)

    def _codes_of_rows(self, column: CodedColumn) -> NDArray[np.int32]:
        """Codes of the rows that may be released; all, where each stands for many rows."""
        return column.codes if isinstance(column, WeightedColumn) else column.codes[self.rows]


def _measure_kk(guarantee: KKAnonymity, beside: Beside) -> float:
    return beside.consistency(guarantee.columns).level_kk


def _measure_global(guarantee: GlobalAnonymity, beside: Beside) -> float:
    return beside.consistency(guarantee.columns).level_global


for _kind, _measure in ((KKAnonymity.kind, _measure_kk), (GlobalAnonymity.kind, _measure_global)):
    judge(_kind, Judging(form=CROWD, parameters=("k",), beside_original=_measure, is_about_fitting_rows=True))
