"""The audit of tables whose rows are not in memory: the same checks, on counts of distinct rows and on a row reader.

Everything that counts can show is judged here, by :func:`sfumato.audit.verify.audit_release` on distinct rows. What
needs the rows themselves is asked of a :class:`RowReader`, of which each home of rows has one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import pyarrow as pa

from sfumato.audit.auditor import AuditorHas
from sfumato.audit.bytes.files import check_file
from sfumato.audit.checks import IN_MEMORY, AuditReport, Check, Unchecked, check_risk, listed
from sfumato.audit.claims import ClaimedPersons, Claims, Promise, is_number, read_claims
from sfumato.audit.evidence import MEASURED, UNIQUE_ROWS
from sfumato.audit.kinds import JUDGED, Evidence, UndecidableError
from sfumato.audit.levels import entropy
from sfumato.audit.levels.breach import check_large_breach, coarsened_columns, measure_large
from sfumato.audit.levels.entropy import check_gain_promise
from sfumato.audit.levels.persons import check_person_promise, limit_of_persons, within_limit_of_persons
from sfumato.audit.levels.persons_not_in_memory import AskedOfPersons, losses_away, measure_away
from sfumato.audit.levels.row_promises import person_column, promises_of_rows, said_of_rows
from sfumato.audit.original.cell_rules import CellRule, cell_rules
from sfumato.audit.original.fidelity import check_description, check_rows
from sfumato.audit.original.labels import check_labels
from sfumato.audit.original.offered_rows import OfferedRows
from sfumato.audit.original.preparation import prepared_again
from sfumato.audit.original.release_vs_original import PENALTY, ReleaseVsOriginal
from sfumato.audit.profile import risk_profile
from sfumato.audit.reading.block_counting import Counts, GroupKeys
from sfumato.audit.reading.columns import AnyTable, Columns
from sfumato.audit.reading.identifiers import NAME as IDENTIFIERS
from sfumato.audit.reading.identifiers import check_identifiers
from sfumato.audit.reading.row_order import is_sorted
from sfumato.audit.reading.spelling import NAME as SPELLING
from sfumato.audit.reading.spelling import SPELLED, check_spelling
from sfumato.audit.reading.values import GENERALIZED, TYPICAL, is_text
from sfumato.audit.verify import (
    audit_release,
    check_audited,
    check_level,
    has_all_roles,
    not_measured,
    open_questions,
    said_of_bound,
    types_of,
    values_of,
    without_open_questions,
)
from sfumato.errors import ColumnNotFoundError, InputError, InvalidParameterError, SchemaError
from sfumato.guarantees import BreachBound, Containment, Guarantee, KAnonymity, PrivacyGain
from sfumato.progress import Progress
from sfumato.schema import Kind, Role
from sfumato.table.coding import PersonRows, Table
from sfumato.table.weighted import CountedTable, OpenColumn, OutlinedTable

AnyRows = TypeVar("AnyRows", bound=OutlinedTable)

LEAST_DIFFERENT = "least_different_sensitive_values"
"""Risk whose combinations, of all quasi-identifiers with a sensitive column, can be many more than the others."""
PATTERNS = (Containment.kind, "containment_level")
"""What is judged by the patterns of 0/1 columns."""
COMPARED = (BreachBound.kind, PrivacyGain.kind)
"""Guarantees that compare a release with its original."""
_NOT_COUNTED_RISKS = ("smallest_bucket", "largest_share_of_a_sensitive_value")


class TooManyRowsError(Exception):
    """There are more distinct rows than can be held; the text says how many are too many."""


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
    original = has.original
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
    done: list[Check | Unchecked] = []
    if original is not None and claims.prepared:
        outline, claims, done = prepared_again(original.outline.as_read, claims, has.key, None)
        original = replace(original, outline=outline)
    offered, whole = None, original
    if original is not None and claims.persons is not None and claims.persons.column in original.schema:
        places = reader.place_of_each_person(original, claims.persons)
        offered = OfferedRows(places, 0, original.n_rows - len(places))
        if offered.n_of_same_persons:
            stated = PersonRows(claims.persons.column, claims.persons.rule, offered.n_of_same_persons)
            original = original.only(places, stated)
    known = AuditorHas[AnyTable](original_sha256=has.original_sha256, key=has.key)
    found = audit_release(counted, manifest, known, released_sha256=released_sha256)
    found = _with_identifiers(found, reader, released, claims)
    if not set(apart) <= set(names):
        found = _with_least_different(found, claims, reader, released)
    unique = list(_check_unique_rows(reader, released, claims))
    found = _with_unique_rows(found, [one for one in unique if isinstance(one, Check)])
    more: list[Check | Unchecked] = [*done, *_check_open_kinds(released.outline, claims)]
    more.extend(one for one in unique if isinstance(one, Unchecked))
    if file is not None:
        more.extend(check_file(file, claims, released_sha256))
        more.extend(_check_spelling(reader, released, original, claims))
        more.extend([reader.check_row_order(released, claims)] if is_sorted(claims) else [])
    if original is not None and whole is not None:
        before = Columns(whole.outline)
        has_roles = has_all_roles(before, has.roles)
        found = _judged_beside(without_open_questions(found), claims, reader, released, counted, original, has_roles)
        more.extend(check_description(before, claims, has.roles))
        rows = check_rows(Columns(released.outline), before, claims, offered)
        more.append(rows)
        more.extend(_check_cells(reader, released, counted, original, claims, rows))
        more.extend(_check_row_promises(reader, released, counted, original, claims))
        more.extend(_check_penalty(released, original, claims))
        more.extend(check_labels(original.outline.source, claims))
        more.extend(_not_checked(reader, released, original, claims))
        more.extend(open_questions(claims, before, has.roles))
    for table in (released, original):
        if table is not None:
            table.ensure_unchanged()
    return AuditReport.of([*found.checks, *found.unchecked, *more], found.levels)


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


def _check_open_kinds(released: Table, claims: Claims) -> Iterator[Check]:
    """Whether columns with too many values to be listed hold numbers where they are stated to."""
    stated = {column.name: column.kind for column in claims.columns}
    found = {n: c.kind for n, c in released.columns.items() if isinstance(c, OpenColumn)}
    wrong = [n for n, kind in found.items() if stated.get(n) is Kind.NUMERIC and kind is not Kind.NUMERIC]
    if found:
        said = f"hold something else than numbers: {listed(wrong)}" if wrong else "hold what they are stated to"
        yield Check("kinds of long columns", not wrong, f"columns with too many distinct values to be listed {said}")


def _with_least_different(
    found: AuditReport, claims: Claims, reader: RowReader[AnyRows], released: AnyRows
) -> AuditReport:
    """Measure how different sensitive values are over all quasi-identifiers, which were not counted with those."""
    stated = claims.stated_risk[LEAST_DIFFERENT]
    if not is_number(stated):
        return found
    least = min(
        reader.least_different_values(released, released.schema.quasi_identifiers_beside(name), name)
        for name in released.schema.names(Role.SENSITIVE)
    )
    return _with_anew(found, [check_risk(LEAST_DIFFERENT, stated, least)], found.levels)


def _with_unique_rows(found: AuditReport, own: Sequence[Check]) -> AuditReport:
    """Put the check of unique rows where the audit in memory has it: after the other risks, before utility."""
    names = [check.name for check in found.checks]
    at = next((i for i, name in enumerate(names) if name == "figures" or name.startswith("utility:")), len(names))
    return AuditReport.of([*found.checks[:at], *own, *found.checks[at:], *found.unchecked], found.levels)


def _check_unique_rows(reader: RowReader[AnyRows], released: AnyRows, claims: Claims) -> Iterator[Check | Unchecked]:
    """Count again the rows that are unique on all released columns together, if that is stated."""
    stated = claims.stated_risk.get(UNIQUE_ROWS)
    if stated is None:
        return
    if not is_number(stated):
        yield Check("risk: unique row fraction", False, "unique row fraction: the manifest gives no number")
        return
    made = [name for name, claimed in claims.prepared.items() if claimed.has("pseudonym")]
    if made:
        said = f"the stated share of rows that are unique on all columns but the pseudonyms of {listed(made)}"
        yield Unchecked("figures", said, IN_MEMORY)
        return
    n_unique = reader.n_unique_rows(released)
    if n_unique is None:
        long = [name for name in claims.names() if is_long(released, name)]
        why = f"{listed(long)} has too many values" if long else "they do not fit in the memory given"
        yield Unchecked("figures", f"the stated share of rows that are unique on all columns: {why}", IN_MEMORY)
        return
    yield check_risk(UNIQUE_ROWS, stated, n_unique / max(released.n_rows, 1))


def _with_anew(
    found: AuditReport, checks: Sequence[Check | Unchecked], levels: Sequence[float | str | None]
) -> AuditReport:
    """Put checks in the place of those with the same names."""
    anew = {check.name for check in checks if isinstance(check, Check)}
    kept = [check for check in found.checks if check.name not in anew]
    return AuditReport.of([*kept, *found.unchecked, *checks], levels)


def _long_cells(reader: RowReader[AnyRows], released: AnyRows, claims: Claims) -> dict[str, Iterable[pa.Array] | None]:
    """Cells of the columns whose values are not listed; None where the reader cannot give them."""
    return {name: reader.long_cells(released, name) for name in claims.names() if is_long(released, name)}


def _with_identifiers(found: AuditReport, reader: RowReader[AnyRows], released: AnyRows, claims: Claims) -> AuditReport:
    """Look for identifiers in all released columns, not only in those that were counted."""
    cells = _long_cells(reader, released, claims)
    values = {**values_of(Columns(released.outline)), **{name: own for name, own in cells.items() if own is not None}}
    every: list[Check | Unchecked] = [*found.checks, *found.unchecked]
    (place,) = (place for place, one in enumerate(every) if one.name == IDENTIFIERS)
    return AuditReport.of([*every[:place], *check_identifiers(values, claims), *every[place + 1 :]], found.levels)


def _check_spelling(
    reader: RowReader[AnyRows], released: AnyRows, original: AnyRows | None, claims: Claims
) -> Iterator[Check | Unchecked]:
    """Whether values have one spelling each: listed values, and the cells of columns whose values are not listed."""
    columns = Columns(released.outline)
    cells = _long_cells(reader, released, claims)
    values = {**values_of(columns), **{name: own for name, own in cells.items() if own is not None}}
    yield from check_spelling(values, claims, None if original is None else types_of(Columns(original.outline)))
    spelled = {column.name for column in claims.columns if column.kind in SPELLED}
    unread = [name for name, own in cells.items() if own is None and name in spelled]
    texts = [name for name in unread if is_text(columns.type_of(name))]
    if texts:
        message = f"whether numbers or dates in {listed(texts)}, which has very many values, have one spelling each"
        yield Unchecked(SPELLING, message, "audit it in blocks on one machine, with a limit of memory")


# What compares a release with its original.


def _judged_beside(
    found: AuditReport,
    claims: Claims,
    reader: RowReader[AnyRows],
    released: AnyRows,
    counted: CountedTable,
    original: AnyRows,
    has_roles: bool,
) -> AuditReport:
    """Put what the two tables together show in the place of what the release alone shows of such promises."""
    if not any(own.guarantee.by_persons or own.guarantee.kind in COMPARED for own in claims.promises):
        return found

    def determining(names: Sequence[str], sensitive: str) -> list[str]:
        return reader.determining(original, names, sensitive)

    pair = ReleaseVsOriginal(Columns(released.outline), Columns(original.outline), claims)
    checks: list[Check | Unchecked] = [*check_large_breach(claims, original, has_roles, determining)]
    evidence = Evidence(claims, pair.original, pair, has_roles)
    gains = [promise.guarantee for promise in claims.promises if isinstance(promise.guarantee, PrivacyGain)]
    checks += [check for gain in gains for check in check_gain_promise(gain, evidence)]
    levels = []
    for promise, level in zip(claims.promises, found.levels, strict=True):
        own: list[Check | Unchecked] = []
        if isinstance(promise.guarantee, KAnonymity) and promise.guarantee.by_persons:
            checks += check_person_promise(promise.guarantee, evidence)
            own = list(_check_persons(promise, promise.guarantee, reader, counted, original, pair))
        elif isinstance(promise.guarantee, BreachBound) and coarsened_columns(promise.guarantee, claims):
            said = f"{promise.guarantee.kind} was not measured: coarsened cells are judged on rows in memory only"
            checks.append(Unchecked("promises", said, IN_MEMORY))
        elif promise.guarantee.kind in COMPARED:
            own = list(_check_level(promise, original, pair, reader.progress))
        checks += own
        levels.append(own[0].found if own and isinstance(own[0], Check) else level)
    return _with_anew(found, checks, levels)


def _check_persons(
    promise: Promise,
    guarantee: KAnonymity,
    reader: RowReader[AnyRows],
    counted: CountedTable,
    original: AnyRows,
    pair: ReleaseVsOriginal,
) -> Iterator[Check]:
    """Whether every group has the rows of enough persons, whom the original alone knows."""
    try:
        if guarantee.unit not in original.schema:
            raise ColumnNotFoundError(guarantee.unit, original.schema.names(), where="the original")
        asked = _asked_of_persons(guarantee, reader, counted, original, pair)
        found = measure_away(*asked)
        limited = limit_of_persons(pair.claims)
        losses = losses_away(*asked) if limited == guarantee and pair.claims.suppressed_rows else (0, 0)
    except (SchemaError, InvalidParameterError, TooManyRowsError) as exc:
        yield not_measured(promise, exc)
        return
    yield check_level(promise, found)
    yield check_audited(promise, found)
    if isinstance(limited, Check):
        yield limited
    elif limited == guarantee:
        yield within_limit_of_persons(pair.claims, *losses)


def _asked_of_persons(
    guarantee: KAnonymity,
    reader: RowReader[AnyRows],
    counted: CountedTable,
    original: AnyRows,
    pair: ReleaseVsOriginal,
) -> AskedOfPersons:
    return (
        guarantee,
        counted,
        original,
        list(cell_rules(pair.released, pair.original, pair.claims)),
        lambda names: reader.counted(original, names),
        lambda known: reader.persons_of_groups(original, known, guarantee.unit),
    )


def _check_row_promises(
    reader: RowReader[AnyRows], released: AnyRows, counted: CountedTable, original: AnyRows, claims: Claims
) -> Iterator[Check | Unchecked]:
    """Count by persons what is promised of rows; k and a breach bound can be, all others are an exception here."""
    before = Columns(original.outline)
    person = person_column(claims, before)
    of_rows = [] if person is None or person not in before else promises_of_rows(claims, person)
    if person is None or not of_rows:
        return
    if len(reader.place_of_each_person(original, ClaimedPersons(person, "first", 0))) == original.n_rows:
        return
    pair = ReleaseVsOriginal(Columns(released.outline), before, claims)

    def level(own: Guarantee) -> float:
        if isinstance(own, BreachBound):
            return measure_large(own, original, reader.progress)
        if not isinstance(own, KAnonymity):
            raise AssertionError
        try:
            return measure_away(*_asked_of_persons(own, reader, counted, original, pair))
        except TooManyRowsError as exc:
            raise InvalidParameterError("rows", f"there are {exc}", allowed="as many as fit in memory") from None

    for own in of_rows:
        is_estimate = isinstance(own, BreachBound) and not coarsened_columns(own, claims)
        is_measured = isinstance(own, KAnonymity) or is_estimate
        yield said_of_rows(own, person, None, level if is_measured else None, IN_MEMORY)


def _check_level(
    promise: Promise, original: OutlinedTable, pair: ReleaseVsOriginal, progress: Progress | None
) -> Iterator[Check | Unchecked]:
    guarantee = promise.guarantee
    try:
        if isinstance(guarantee, BreachBound):
            found = measure_large(guarantee, original, progress)
        elif isinstance(guarantee, PrivacyGain):
            found = entropy.measure(guarantee, pair)
        else:
            raise AssertionError
    except UndecidableError as exc:
        yield from said_of_bound(promise, exc)
        return
    except (SchemaError, InvalidParameterError) as exc:
        yield not_measured(promise, exc)
        return
    yield check_level(promise, found, original.n_rows)
    yield check_audited(promise, found)


def _check_cells(
    reader: RowReader[AnyRows],
    released: AnyRows,
    counted: CountedTable,
    original: AnyRows,
    claims: Claims,
    rows: Check,
) -> Iterator[Check | Unchecked]:
    if not rows.passed:
        yield Check("cells", False, "cells were not compared, because the numbers of rows do not fit")
        return
    before, after = Columns(original.outline), Columns(released.outline)
    yield from reader.check_cells(released, counted, original, list(cell_rules(after, before, claims)), claims)


def _check_penalty(released: OutlinedTable, original: OutlinedTable, claims: Claims) -> Iterator[Check]:
    if not _long_generalized(released, original, claims):
        yield from ReleaseVsOriginal(
            Columns(released.outline), Columns(original.outline), claims
        ).check_stated_penalty()


def _long_generalized(released: OutlinedTable, original: OutlinedTable, claims: Claims) -> bool:
    """Whether values of a column that the certainty penalty speaks of are not listed."""
    names = [recoding.name for recoding in claims.recodings.values() if recoding.rule == GENERALIZED]
    return any(is_long(table, name) for table in (released, original) for name in names)


def _not_checked(
    reader: RowReader[AnyRows], released: AnyRows, original: AnyRows, claims: Claims
) -> Iterator[Unchecked]:
    """Name what the audit in memory checks and this one does not."""
    if not reader.keeps_order and not is_sorted(claims):
        yield Unchecked("row-order", "the order of the rows: a cluster does not keep it", IN_MEMORY)
    long = [n for n in claims.names() if is_long(released, n) or is_long(original, n)]
    if long:
        yield Unchecked("spelling", f"whether one value has two spellings in {listed(long)}", IN_MEMORY)
    if PENALTY in claims.stated_utility and _long_generalized(released, original, claims):
        yield Unchecked("figures", "the stated certainty penalty", IN_MEMORY)
