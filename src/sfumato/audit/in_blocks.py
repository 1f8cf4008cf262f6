"""The audit of rows that are read in blocks: files larger than memory, part files of a cluster, originals there.

The sequence of checks is :func:`sfumato.audit.verify.audit`. DuckDB counts the distinct rows of the published file, and
levels are measured on these counts; what needs the rows themselves is looked up in passes over them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.audit.audited_rows import AuditedRows, types_of, values_of
from sfumato.audit.auditor import AuditorHas
from sfumato.audit.checks import IN_MEMORY, AuditReport, Check, Unchecked, listed
from sfumato.audit.claims import Claims, read_claims
from sfumato.audit.evidence import MEASURED, UNIQUE_ROWS
from sfumato.audit.kinds import JUDGED, UndecidableError
from sfumato.audit.levels.breach import coarsened_columns, determining_columns, measure_large
from sfumato.audit.levels.persons import Losses
from sfumato.audit.levels.persons_in_blocks import PersonsInBlocks
from sfumato.audit.levels.registry import level_of
from sfumato.audit.levels.row_promises import check_row_promises, person_column, promises_of_rows, said_of_rows
from sfumato.audit.original.cells_in_blocks import check_cells
from sfumato.audit.original.fidelity import check_description, check_rows
from sfumato.audit.original.offered_rows import OfferedRows, order_of_rule
from sfumato.audit.original.preparation import prepared_again
from sfumato.audit.original.release_vs_original import PENALTY, ReleaseVsOriginal
from sfumato.audit.profile import risk_profile
from sfumato.audit.reading.block_counting import counted_rows, least_different_values, n_unique_rows
from sfumato.audit.reading.columns import Columns, Declared
from sfumato.audit.reading.row_order import RowOrder, are_all_numbers, keys_of, ranks_in_order, said_of
from sfumato.audit.reading.spelling import check_spelling
from sfumato.audit.reading.values import GENERALIZED, TYPICAL, is_text
from sfumato.audit.verify import audit
from sfumato.engines.persons import n_different
from sfumato.engines.protocol import Rows
from sfumato.errors import ColumnNotFoundError, InputError
from sfumato.guarantees import BreachBound, Containment, Guarantee, KAnonymity, PrivacyGain
from sfumato.progress import Progress
from sfumato.schema import Kind, Role
from sfumato.table.coding import PersonRows
from sfumato.table.weighted import OpenColumn

LEAST_DIFFERENT = "least_different_sensitive_values"
"""Risk whose combinations, of all quasi-identifiers with a sensitive column, can be many more than the others."""
PATTERNS = (Containment.kind, "containment_level")
"""What is judged by the patterns of 0/1 columns."""
COMPARED = (BreachBound.kind, PrivacyGain.kind)
"""Guarantees that compare a release with its original."""
_NOT_COUNTED_RISKS = ("smallest_bucket", "largest_share_of_a_sensitive_value")
OUT_OF_CORE = "out of core"
"""Name of the check that fails where something can be judged in memory only."""


def audit_rows(
    released: Rows,
    manifest: Mapping[str, Any],
    has: AuditorHas[Rows] | None = None,
    *,
    memory: int,
    progress: Progress | None = None,
    released_sha256: str | None = None,
    file: str | Path | None = None,
    levels_are_stated: bool = True,
) -> AuditReport:
    """Check a release against its manifest and its original as :func:`audit_release` does, with no table in memory.

    What cannot be judged in blocks is an exception; where that is a promise, or how the release came about, a check
    named "out of core" fails.

    Parameters
    ----------
    memory : int
        Bytes that may be kept at a time.
    progress : callable or None
        Hears how many rows were read.
    levels_are_stated : bool
        Whether the manifest states the levels already; a publisher may ask this audit for them.

    Raises
    ------
    InputError
        If a file changed while it was being read, or its distinct rows cannot be counted.
    """
    has = has or AuditorHas()
    claims = read_claims(manifest)
    beyond = list(beyond_counts(claims)) + (["escaped formulas"] if claims.escapes_formulas else [])
    names = [name for name in _judged_together(claims) if name in released.outline.columns]
    apart = released.schema.names(Role.SENSITIVE) if LEAST_DIFFERENT in claims.stated_risk else ()
    if not beyond and (long := [name for name in dict.fromkeys([*names, *apart]) if released.is_open(name)]):
        beyond = [f"columns with too many distinct values, {listed(long)}"]
    if beyond:
        return AuditReport((Check(OUT_OF_CORE, False, f"NOT CHECKED {OUT_OF_CORE}: {listed(beyond)}"),))
    rows = RowsInBlocks(released, names, claims, has, memory, progress)
    report = audit(rows, manifest, has, released_sha256, file, levels_are_stated=levels_are_stated)
    for table in (released, rows.original):
        if table is not None:
            table.ensure_unchanged()
    return report


class RowsInBlocks(AuditedRows):
    """Distinct rows of a release, counted by DuckDB, and its original; rows of both are read in blocks.

    Parameters
    ----------
    together : sequence of str
        Columns whose distinct rows are counted.
    """

    def __init__(
        self,
        released: Rows,
        together: Sequence[str],
        claims: Claims,
        has: AuditorHas[Rows],
        memory: int,
        progress: Progress | None,
    ) -> None:
        self._written, self._memory, self._progress = released, memory, progress
        self.released = self._counted = counted_rows(released, together, memory, progress)
        self.claims = claims
        self.prepared = []
        self.original: Rows | None = None
        self._offered: OfferedRows | None = None
        if has.original is not None:
            self.original = self._with_original(has.original, has.key)
            before = Columns(self.original.outline)
            self.pair = ReleaseVsOriginal(Columns(released.outline), before, self.claims)

    def _with_original(self, original: Rows, key: bytes | None) -> Rows:
        """Prepare the original, and take one row of each person where the manifest says so."""
        if self.claims.prepared:
            outline, self.claims, self.prepared = prepared_again(original.outline.as_read, self.claims, key, None)
            original = replace(original, outline=outline)
        self.given, self.source = Columns(original.outline), original.outline.source
        persons = self.claims.persons
        if persons is None or persons.column not in original.schema:
            return original
        order, ranks = order_of_rule(original.n_rows, persons), None
        if order is not None:
            ranks = np.empty(original.n_rows, dtype=np.int64)
            ranks[order] = np.arange(original.n_rows)
        is_last = persons.rule == "last"
        found = original.place_of_each(persons.column, self._memory, ranks=ranks, is_last=is_last)
        places = np.sort(found if order is None else order[found])
        self._offered = OfferedRows(places, 0, original.n_rows - len(places))
        if not self._offered.n_of_same_persons:
            return original
        return original.only(places, PersonRows(persons.column, persons.rule, self._offered.n_of_same_persons))

    def find_determining(self, names: Sequence[str], sensitive: str) -> list[str]:
        """Columns of the original that determine another one, looked for in all rows."""
        if self.original is None:
            raise AssertionError
        return determining_columns(self.original, names, sensitive, self._memory, self._progress)

    @property
    def n_offered(self) -> int | None:
        """How many rows there are."""
        return None if self.original is None else self.original.n_rows

    def values(self) -> dict[str, Iterable[pa.Array]]:
        """Values that are listed, and distinct cells of each block of the other columns."""
        long = [name for name in self.claims.names() if self._written.is_open(name)]
        return {**values_of(Columns(self._written.outline)), **{name: self._cells_of(name) for name in long}}

    def _cells_of(self, name: str) -> Iterator[pa.Array]:
        return (pc.unique(block[name]) for block in self._written.blocks([name], as_cells={name}))

    def check_spelling(self) -> Iterator[Check | Unchecked]:
        """Look at listed values, and at the cells of long columns."""
        types = None if self.original is None else types_of(Columns(self.original.outline))
        return check_spelling(self.values(), self.claims, types)

    def check_row_order(self) -> Check:
        """Compare each row with the one before."""
        released = self._written
        kinds = {column.name: column.kind for column in self.claims.columns}
        names = [name for name in self.claims.names() if name in released.schema]
        listed = {n: ranks_in_order(released.outline[n].values, kinds[n]) for n in names if not released.is_open(n)}
        are_numbers = {n: self._are_numbers(n, kinds[n]) for n in names if n not in listed}
        order = RowOrder()
        for block in released.blocks(names):
            order.add(
                key
                for name, cells in block.items()
                for key in (
                    [listed[name][np.asarray(cells)]]
                    if name in listed
                    else keys_of(cells, are_numbers=are_numbers[name])
                )
            )
        return said_of(order)

    def _are_numbers(self, name: str, kind: Kind) -> bool:
        """Whether texts of a column that is stated to be numeric are all numbers."""
        if kind is not Kind.NUMERIC or not is_text(self._written.outline[name].values.type):
            return False
        return all(are_all_numbers(cells) for cells in self._cells_of(name))

    def check_kinds(self) -> Iterator[Check]:
        """Whether columns with too many values to be listed hold numbers where they are stated to."""
        stated = {column.name: column.kind for column in self.claims.columns}
        found = {n: c.kind for n, c in self._written.outline.columns.items() if isinstance(c, OpenColumn)}
        wrong = [n for n, kind in found.items() if stated.get(n) is Kind.NUMERIC and kind is not Kind.NUMERIC]
        if found:
            said = f"hold something else than numbers: {listed(wrong)}" if wrong else "hold what they are stated to"
            yield Check(
                "kinds of long columns", not wrong, f"columns with too many distinct values to be listed {said}"
            )

    def level(self, guarantee: Guarantee) -> float:
        """Measure it by counts, or on the original where its rows are."""
        if self.original is not None and isinstance(guarantee, KAnonymity) and guarantee.by_persons:
            if guarantee.unit not in self.original.schema:
                raise ColumnNotFoundError(guarantee.unit, self.original.schema.names(), where="the original")
            return self._persons(guarantee).fewest()
        if self.original is not None and isinstance(guarantee, BreachBound):
            if coarsened_columns(guarantee, self.claims):
                problem = "coarsened cells are judged on rows in memory only"
                raise UndecidableError(problem, math.inf, remedy=IN_MEMORY)
            return measure_large(guarantee, self.original, self._progress)
        return level_of(guarantee, self.described, self.pair)

    def _persons(self, guarantee: KAnonymity) -> PersonsInBlocks:
        if self.original is None or self.pair is None:
            raise AssertionError
        return PersonsInBlocks(guarantee, self._counted, self.original, self.pair.rules, self._memory, self._progress)

    def figure(self, name: str) -> float | Unchecked:
        """Have DuckDB count what the distinct rows of the columns counted together do not show."""
        if name == UNIQUE_ROWS:
            return self._unique_rows()
        sensitive = self._written.schema.names(Role.SENSITIVE)
        if name == LEAST_DIFFERENT and not set(sensitive) <= set(self._counted.together):
            quasi = self._written.schema.quasi_identifiers_beside
            return min(
                least_different_values(self._written, quasi(own), own, self._memory, self._progress)
                for own in sensitive
            )
        return super().figure(name)

    def _unique_rows(self) -> float | Unchecked:
        """Share of the rows that are unique on all released columns together."""
        made = [name for name, claimed in self.claims.prepared.items() if claimed.has("pseudonym")]
        if made:
            said = f"the stated share of rows that are unique on all columns but the pseudonyms of {listed(made)}"
            return Unchecked("figures", said, IN_MEMORY)
        n_unique = n_unique_in_blocks(self._written, self._memory, self._progress)
        if n_unique is None:
            long = [name for name in self.claims.names() if self._written.is_open(name)]
            why = f"{listed(long)} has too many values" if long else "they do not fit in the memory given"
            return Unchecked("figures", f"the stated share of rows that are unique on all columns: {why}", IN_MEMORY)
        return n_unique / max(self._written.n_rows, 1)

    def losses(self, promise: KAnonymity) -> Losses:
        """Count them by DuckDB."""
        return (*self._persons(promise).losses(), "") if self.claims.suppressed_rows else (0, 0, "")

    def check_row_promises(self) -> Iterator[Check | Unchecked]:
        """Count by persons what is promised of rows; k and a breach bound can be, all others are an exception here."""
        original, before = self.original, None if self.pair is None else self.pair.original
        if original is None or before is None:
            yield from check_row_promises(self.claims, None, None)
            return
        person = person_column(self.claims, before)
        of_rows = [] if person is None or person not in before else promises_of_rows(self.claims, person)
        if person is None or not of_rows or n_different(original, person, self._memory) == original.n_rows:
            return
        for own in of_rows:
            is_estimate = isinstance(own, BreachBound) and not coarsened_columns(own, self.claims)
            is_measured = isinstance(own, KAnonymity) or is_estimate
            yield said_of_rows(own, person, None, self.level if is_measured else None, IN_MEMORY)

    def check_penalty(self) -> Iterator[Check | Unchecked]:
        """Measure listed values."""
        if self.original is None or self.pair is None:
            return
        generalized = [recoding.name for recoding in self.claims.recodings.values() if recoding.rule == GENERALIZED]
        if not any(table.is_open(name) for table in (self._written, self.original) for name in generalized):
            yield from self.pair.check_stated_penalty()
        elif PENALTY in self.claims.stated_utility:
            yield Unchecked("figures", "the stated certainty penalty", IN_MEMORY)

    def check_fidelity(self, roles: Declared) -> Iterator[Check | Unchecked]:
        """Compare columns by their values, and cells block by block."""
        original, given, pair = self.original, self.given, self.pair
        if original is None or given is None or pair is None:
            return
        yield from check_description(given, self.claims, roles)
        rows = check_rows(pair.released, given, self.claims, self._offered)
        yield rows
        if rows.passed:
            yield from check_cells(self._written, original, pair.rules, self.claims, self._memory, self._progress)
        else:
            yield Check("cells", False, "cells were not compared, because the numbers of rows do not fit")
        long = [n for n in self.claims.names() if self._written.is_open(n) or original.is_open(n)]
        if long:
            yield Unchecked("spelling", f"whether one value has two spellings in {listed(long)}", IN_MEMORY)


def n_unique_in_blocks(table: Rows, memory: int, progress: Progress | None = None) -> int | None:
    """Count the rows that no other row equals on all columns.

    ``None``: a column has too many values to be listed, or the rows do not fit; nothing else that is checked needs all.
    """
    names = table.schema.names()
    if any(table.is_open(name) for name in names):
        return None
    try:
        return n_unique_rows(table, names, memory, progress)
    except InputError:
        return None


def profile_rows(table: Rows, memory: int, progress: Progress | None = None) -> dict[str, Any]:
    """Describe how far the rows of a table that is not in memory can be distinguished, as :func:`risk_profile` does.

    Raises
    ------
    SchemaError
        If a column has too many distinct values.
    InputError
        If the distinct rows cannot be counted.
    """
    names = table.schema.names(Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.TARGET)
    return risk_profile(counted_rows(table, names, memory, progress))


# What can be judged by counts of distinct rows, and by which columns.


def beyond_counts(claims: Claims) -> Iterator[str]:
    """Name what counts of distinct rows cannot show."""
    if claims.input_parties is not None:
        yield "a release of several parties' rows"
    yield from (promise.guarantee.name for promise in claims.promises if not _is_measured_in_blocks(promise.guarantee))
    yield from (name for name in _NOT_COUNTED_RISKS if name in claims.stated_risk)
    if any(recoding.rule == TYPICAL for recoding in claims.recodings.values()):
        yield "cells that are typical of their class"
    if claims.perturbation is not None:
        yield f"rows that are {claims.perturbation.kind}"
    if claims.drops_incomplete_rows:
        yield "incomplete rows that were left out"


def _is_measured_in_blocks(guarantee: Guarantee) -> bool:
    """Whether counts of distinct rows, or the original where its rows are, can show a guarantee."""
    if guarantee.kind in COMPARED:
        return True
    return isinstance(guarantee, KAnonymity) if guarantee.by_persons else _is_counted(guarantee)


def _is_counted(guarantee: Guarantee) -> bool:
    """Whether counts of distinct rows can show a guarantee, whoever counted."""
    judging = JUDGED.get(guarantee.kind)
    if guarantee.by_persons or judging is None:
        return False
    return judging.in_classes is not None or guarantee.kind in PATTERNS


def _judged_together(claims: Claims) -> list[str]:
    """Columns whose combinations the checks speak of."""
    counted = [promise for promise in claims.promises if promise.guarantee.kind not in COMPARED]
    measured = (MEASURED.keys() - {UNIQUE_ROWS}) & claims.stated_risk.keys()
    is_tree = bool(claims.stated_disclosure)
    names = [*claims.names(Role.QUASI_IDENTIFIER)] if counted or measured or is_tree else []
    for promise in counted:
        names += [*promise.columns, *getattr(promise.guarantee, "protected", ())]
        sensitive = getattr(promise.guarantee, "sensitive", None)
        names += [sensitive] if sensitive is not None and _is_counted(promise.guarantee) else []
    return list(dict.fromkeys(names))
