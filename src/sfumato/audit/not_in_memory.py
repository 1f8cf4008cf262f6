"""The audit of tables whose rows are not in memory: the same checks, on counts of distinct rows and on a row reader.

The sequence of checks is :func:`sfumato.audit.verify.audit`. What counts can show is judged on distinct rows; what
needs the rows themselves is asked of a :class:`RowReader`, of which each home of rows has one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import pyarrow as pa

from sfumato.audit.audited_rows import AuditedRows, types_of, values_of
from sfumato.audit.auditor import AuditorHas
from sfumato.audit.checks import IN_MEMORY, AuditReport, Check, Unchecked, listed
from sfumato.audit.claims import ClaimedPersons, Claims, read_claims
from sfumato.audit.evidence import MEASURED, UNIQUE_ROWS
from sfumato.audit.kinds import JUDGED, TooManyRowsError, UndecidableError
from sfumato.audit.levels.breach import coarsened_columns, measure_large
from sfumato.audit.levels.persons import limit_of_persons, within_limit_of_persons
from sfumato.audit.levels.persons_not_in_memory import AskedOfPersons, losses_away, measure_away
from sfumato.audit.levels.registry import level_of
from sfumato.audit.levels.row_promises import check_row_promises, person_column, promises_of_rows, said_of_rows
from sfumato.audit.original.cell_rules import CellRule, cell_rules
from sfumato.audit.original.fidelity import check_description, check_rows
from sfumato.audit.original.offered_rows import OfferedRows
from sfumato.audit.original.preparation import prepared_again
from sfumato.audit.original.release_vs_original import PENALTY, ReleaseVsOriginal
from sfumato.audit.profile import risk_profile
from sfumato.audit.reading.block_counting import Counts, GroupKeys
from sfumato.audit.reading.columns import Columns, Declared
from sfumato.audit.reading.row_order import is_sorted
from sfumato.audit.reading.spelling import NAME as SPELLING
from sfumato.audit.reading.spelling import SPELLED, check_spelling
from sfumato.audit.reading.values import GENERALIZED, TYPICAL, is_text
from sfumato.audit.verify import audit
from sfumato.errors import ColumnNotFoundError, InputError, InvalidParameterError, SchemaError
from sfumato.guarantees import BreachBound, Containment, Guarantee, KAnonymity, PrivacyGain
from sfumato.progress import Progress
from sfumato.schema import Kind, Role
from sfumato.table.coding import PersonRows
from sfumato.table.weighted import CountedTable, OpenColumn, OutlinedTable

AnyRows = TypeVar("AnyRows", bound=OutlinedTable)

LEAST_DIFFERENT = "least_different_sensitive_values"
"""Risk whose combinations, of all quasi-identifiers with a sensitive column, can be many more than the others."""
PATTERNS = (Containment.kind, "containment_level")
"""What is judged by the patterns of 0/1 columns."""
COMPARED = (BreachBound.kind, PrivacyGain.kind)
"""Guarantees that compare a release with its original."""
_NOT_COUNTED_RISKS = ("smallest_bucket", "largest_share_of_a_sensitive_value")


class RowReader(ABC, Generic[AnyRows]):
    """What the audit asks of rows that are not in memory; each home of rows answers in its own way."""

    where: ClassVar[str]
    """Where the rows are, in the words of the checks."""
    keeps_order: ClassVar[bool]
    """Whether rows are compared in their order, which otherwise is an exception."""

    @property
    def progress(self) -> Progress | None:
        """What hears how many rows were read."""
        return None

    @abstractmethod
    def counted(self, table: AnyRows, names: Sequence[str]) -> CountedTable:
        """Count the distinct rows of some columns.

        Raises
        ------
        TooManyRowsError, SchemaError, InputError
            If they do not fit, a column has too many values, or the rows cannot be read.
        """

    @abstractmethod
    def least_different_values(self, table: AnyRows, over: Sequence[str], name: str) -> int:
        """Smallest number of different values of a column in a class of rows."""

    @abstractmethod
    def n_unique_rows(self, table: AnyRows) -> int | None:
        """Count the rows that no other row equals on all columns; ``None``: that cannot be counted here."""

    @abstractmethod
    def determining(self, original: AnyRows, names: Sequence[str], sensitive: str) -> list[str]:
        """Columns among some that equal or determine another one in all rows."""

    @abstractmethod
    def persons_of_groups(self, original: AnyRows, known: GroupKeys, person: str) -> tuple[Counts, Counts, Counts]:
        """Count rows and different persons of groups: the groups that occur, then both; missing persons are one."""

    @abstractmethod
    def place_of_each_person(self, original: AnyRows, stated: ClaimedPersons) -> Counts:
        """Places of the rows of which each person has one by the stated rule, ascending."""

    @abstractmethod
    def long_cells(self, table: AnyRows, name: str) -> Iterator[pa.Array] | None:
        """Cells of a column with too many values to be listed, in parts; ``None``: they cannot be read here."""

    @abstractmethod
    def check_row_order(self, released: AnyRows, claims: Claims) -> Check | Unchecked:
        """Whether released rows are in their canonical order."""

    @abstractmethod
    def check_cells(
        self, released: AnyRows, counted: CountedTable, original: AnyRows, rules: Sequence[CellRule], claims: Claims
    ) -> Iterator[Check | Unchecked]:
        """Whether the cells of the release follow from the original's by these rules."""


def audit_rows(
    reader: RowReader[AnyRows],
    released: AnyRows,
    manifest: Mapping[str, Any],
    has: AuditorHas[AnyRows] | None = None,
    *,
    released_sha256: str | None = None,
    file: str | Path | None = None,
) -> AuditReport:
    """Check a release against its manifest and its original as :func:`audit_release` does, with no table in memory.

    What cannot be judged where the rows are is an exception; where that is a promise, or how the release came about, a
    check named after that place fails.

    Raises
    ------
    InputError
        If a file changed while it was being read, or a released folder holds more than its part files.
    """
    has = has or AuditorHas()
    released.ensure_alone()
    claims = read_claims(manifest)
    beyond = list(beyond_counts(claims)) + (["escaped formulas"] if claims.escapes_formulas else [])
    if beyond:
        return _refused(reader, listed(beyond))
    names = [name for name in _judged_together(claims) if name in released.outline.columns]
    apart = released.schema.names(Role.SENSITIVE) if LEAST_DIFFERENT in claims.stated_risk else ()
    too_many = [name for name in dict.fromkeys([*names, *apart]) if released.is_open(name)]
    if too_many:
        return _refused(reader, f"columns with too many distinct values, {listed(too_many)}")
    try:
        counted = reader.counted(released, names)
    except TooManyRowsError as exc:
        return _refused(reader, f"{exc} of {listed(names)} do not fit in the memory given")
    rows = RowsElsewhere(reader, released, counted, claims, has)
    report = audit(rows, manifest, has, released_sha256, file)
    for table in (released, rows.original):
        if table is not None:
            table.ensure_unchanged()
    return report


class RowsElsewhere(AuditedRows, Generic[AnyRows]):
    """Distinct rows of a release, counted where its rows are, and its original there; a reader looks at rows."""

    def __init__(
        self,
        reader: RowReader[AnyRows],
        released: AnyRows,
        counted: CountedTable,
        claims: Claims,
        has: AuditorHas[AnyRows],
    ) -> None:
        self._reader = reader
        self._written = released
        self.released = self._counted = counted
        self.claims = claims
        self.prepared = []
        self.original: AnyRows | None = None
        self._offered: OfferedRows | None = None
        if has.original is not None:
            self.original = self._with_original(has.original, has.key)
            before = Columns(self.original.outline)
            self.pair = ReleaseVsOriginal(Columns(released.outline), before, self.claims)

    def _with_original(self, original: AnyRows, key: bytes | None) -> AnyRows:
        """Prepare the original, and take one row of each person where the manifest says so."""
        if self.claims.prepared:
            outline, self.claims, self.prepared = prepared_again(original.outline.as_read, self.claims, key, None)
            original = replace(original, outline=outline)
        self.given, self.source = Columns(original.outline), original.outline.source
        persons = self.claims.persons
        if persons is None or persons.column not in original.schema:
            return original
        places = self._reader.place_of_each_person(original, persons)
        self._offered = OfferedRows(places, 0, original.n_rows - len(places))
        if not self._offered.n_of_same_persons:
            return original
        return original.only(places, PersonRows(persons.column, persons.rule, self._offered.n_of_same_persons))

    def find_determining(self, names: Sequence[str], sensitive: str) -> list[str]:
        """Columns of the original that determine another one, looked for in all rows."""
        if self.original is None:
            raise AssertionError
        return self._reader.determining(self.original, names, sensitive)

    @property
    def n_offered(self) -> int | None:
        """How many rows there are."""
        return None if self.original is None else self.original.n_rows

    def values(self) -> dict[str, Iterable[pa.Array]]:
        """Values that are listed, and the cells of long columns so far as they can be read."""
        long = {name: own for name, own in self._long_cells().items() if own is not None}
        return {**values_of(Columns(self._written.outline)), **long}

    def _long_cells(self) -> dict[str, Iterable[pa.Array] | None]:
        """Cells of the columns whose values are not listed; None where the reader cannot give them."""
        long = [name for name in self.claims.names() if is_long(self._written, name)]
        return {name: self._reader.long_cells(self._written, name) for name in long}

    def check_spelling(self) -> Iterator[Check | Unchecked]:
        """Look at listed values, and at the cells of long columns."""
        types = None if self.original is None else types_of(Columns(self.original.outline))
        yield from check_spelling(self.values(), self.claims, types)
        spelled = {column.name for column in self.claims.columns if column.kind in SPELLED}
        unread = [name for name, own in self._long_cells().items() if own is None and name in spelled]
        texts = [name for name in unread if is_text(Columns(self._written.outline).type_of(name))]
        if texts:
            message = f"whether numbers or dates in {listed(texts)}, which has very many values, have one spelling each"
            yield Unchecked(SPELLING, message, "audit it in blocks on one machine, with a limit of memory")

    def check_row_order(self) -> Check | Unchecked:
        """Compare neighbours where the rows are."""
        return self._reader.check_row_order(self._written, self.claims)

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
            return measure_away(*self._asked_of_persons(guarantee))
        if self.original is not None and isinstance(guarantee, BreachBound):
            if coarsened_columns(guarantee, self.claims):
                problem = "coarsened cells are judged on rows in memory only"
                raise UndecidableError(problem, math.inf, remedy=IN_MEMORY)
            return measure_large(guarantee, self.original, self._reader.progress)
        return level_of(guarantee, self.described, self.pair)

    def _asked_of_persons(self, guarantee: KAnonymity) -> AskedOfPersons:
        reader, original, pair = self._reader, self.original, self.pair
        if original is None or pair is None:
            raise AssertionError
        return (
            guarantee,
            self._counted,
            original,
            list(cell_rules(pair.released, pair.original, self.claims)),
            lambda names: reader.counted(original, names),
            lambda known: reader.persons_of_groups(original, known, guarantee.unit),
        )

    def risk(self, name: str) -> float | Unchecked:
        """Have the reader count what the distinct rows of the columns counted together do not show."""
        if name == UNIQUE_ROWS:
            return self._unique_rows()
        sensitive = self._written.schema.names(Role.SENSITIVE)
        if name == LEAST_DIFFERENT and not set(sensitive) <= set(self._counted.together):
            quasi = self._written.schema.quasi_identifiers_beside
            return min(self._reader.least_different_values(self._written, quasi(own), own) for own in sensitive)
        return super().risk(name)

    def _unique_rows(self) -> float | Unchecked:
        """Share of the rows that are unique on all released columns together."""
        made = [name for name, claimed in self.claims.prepared.items() if claimed.has("pseudonym")]
        if made:
            said = f"the stated share of rows that are unique on all columns but the pseudonyms of {listed(made)}"
            return Unchecked("figures", said, IN_MEMORY)
        n_unique = self._reader.n_unique_rows(self._written)
        if n_unique is None:
            long = [name for name in self.claims.names() if is_long(self._written, name)]
            why = f"{listed(long)} has too many values" if long else "they do not fit in the memory given"
            return Unchecked("figures", f"the stated share of rows that are unique on all columns: {why}", IN_MEMORY)
        return n_unique / max(self._written.n_rows, 1)

    def check_person_suppression(self) -> Iterator[Check | Unchecked]:
        """Have the reader count the persons of rows that were left out."""
        limited = limit_of_persons(self.claims)
        if isinstance(limited, Check):
            yield limited
        if limited is None or isinstance(limited, Check) or self.original is None:
            return
        try:
            losses = losses_away(*self._asked_of_persons(limited)) if self.claims.suppressed_rows else (0, 0)
        except (SchemaError, InvalidParameterError, TooManyRowsError):
            return  # the promise cannot be measured either, which is refused there
        yield within_limit_of_persons(self.claims, *losses)

    def check_row_promises(self) -> Iterator[Check | Unchecked]:
        """Count by persons what is promised of rows; k and a breach bound can be, all others are an exception here."""
        original, before = self.original, None if self.pair is None else self.pair.original
        if original is None or before is None:
            yield from check_row_promises(self.claims, None, None)
            return
        person = person_column(self.claims, before)
        of_rows = [] if person is None or person not in before else promises_of_rows(self.claims, person)
        if person is None or not of_rows:
            return
        one_row_each = ClaimedPersons(person, "first", 0)
        if len(self._reader.place_of_each_person(original, one_row_each)) == original.n_rows:
            return
        for own in of_rows:
            is_estimate = isinstance(own, BreachBound) and not coarsened_columns(own, self.claims)
            is_measured = isinstance(own, KAnonymity) or is_estimate
            yield said_of_rows(own, person, None, self._level_by_persons if is_measured else None, IN_MEMORY)

    def _level_by_persons(self, guarantee: Guarantee) -> float:
        try:
            return self.level(guarantee)
        except TooManyRowsError as exc:
            raise InvalidParameterError("rows", f"there are {exc}", allowed="as many as fit in memory") from None

    def check_penalty(self) -> Iterator[Check | Unchecked]:
        """Measure listed values."""
        if self.original is None or self.pair is None:
            return
        generalized = [recoding.name for recoding in self.claims.recodings.values() if recoding.rule == GENERALIZED]
        if not any(is_long(table, name) for table in (self._written, self.original) for name in generalized):
            yield from self.pair.check_stated_penalty()
        elif PENALTY in self.claims.stated_utility:
            yield Unchecked("figures", "the stated certainty penalty", IN_MEMORY)

    def check_fidelity(self, roles: Declared) -> Iterator[Check | Unchecked]:
        """Compare columns by their values, and have the reader compare the cells."""
        original, given, pair = self.original, self.given, self.pair
        if original is None or given is None or pair is None:
            return
        yield from check_description(given, self.claims, roles)
        rows = check_rows(pair.released, given, self.claims, self._offered)
        yield rows
        if rows.passed:
            rules = list(cell_rules(pair.released, pair.original, self.claims))
            yield from self._reader.check_cells(self._written, self._counted, original, rules, self.claims)
        else:
            yield Check("cells", False, "cells were not compared, because the numbers of rows do not fit")
        if not self._reader.keeps_order and not is_sorted(self.claims):
            yield Unchecked("row-order", "the order of the rows: a cluster does not keep it", IN_MEMORY)
        long = [n for n in self.claims.names() if is_long(self._written, n) or is_long(original, n)]
        if long:
            yield Unchecked("spelling", f"whether one value has two spellings in {listed(long)}", IN_MEMORY)


def profile_rows(reader: RowReader[AnyRows], table: AnyRows) -> dict[str, Any]:
    """Describe how far the rows of a table that is not in memory can be distinguished, as :func:`risk_profile` does.

    Raises
    ------
    SchemaError
        If a column has too many distinct values.
    InputError
        If there are more distinct rows than fit.
    """
    names = table.schema.names(Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.TARGET)
    for name in names:
        if table.is_open(name):
            problem = "has too many distinct values to be counted with other columns"
            hint = "give it the role other or identifier, or more memory"
            raise SchemaError(problem, column=name, hint=hint, remedy=("memory",))
    try:
        return risk_profile(reader.counted(table, names))
    except TooManyRowsError as exc:
        problem = f"there are {exc}, which do not fit in the memory given"
        raise InputError(problem, path=table.place, hint="give more memory", remedy=("memory",)) from None


def is_long(table: OutlinedTable, name: str) -> bool:
    """Whether a table has a column with too many values to be listed."""
    return name in table.schema and table.is_open(name)


# What can be judged by counts of distinct rows, and by which columns.


def beyond_counts(claims: Claims) -> Iterator[str]:
    """Name what counts of distinct rows cannot show."""
    if claims.input_parties is not None:
        yield "a release of several parties' rows"
    yield from (promise.guarantee.name for promise in claims.promises if not _is_measured_away(promise.guarantee))
    yield from (name for name in _NOT_COUNTED_RISKS if name in claims.stated_risk)
    if any(recoding.rule == TYPICAL for recoding in claims.recodings.values()):
        yield "cells that are typical of their class"
    if claims.perturbation is not None:
        yield f"rows that are {claims.perturbation.kind}"
    if claims.drops_incomplete_rows:
        yield "incomplete rows that were left out"


def _is_measured_away(guarantee: Guarantee) -> bool:
    """Whether counts of distinct rows, or the original where its rows are, can show a guarantee."""
    if guarantee.kind in COMPARED:
        return True
    return isinstance(guarantee, KAnonymity) if guarantee.by_persons else _is_counted(guarantee)


def _is_counted(guarantee: Guarantee) -> bool:
    """Whether counts of distinct rows can show a guarantee, whoever counted."""
    judging = JUDGED.get(guarantee.kind)
    return not guarantee.by_persons and judging is not None and (judging.by_counts or guarantee.kind in PATTERNS)


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


def _refused(reader: RowReader[AnyRows], said: str) -> AuditReport:
    return AuditReport((Check(reader.where, False, f"NOT CHECKED {reader.where}: {said}"),))
