"""The audit of files that are larger than memory: the same checks, on counts and on rows that come in blocks."""

from __future__ import annotations

import math
import secrets
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.audit.bytes.files import check_file
from sfumato.audit.checks import IN_MEMORY, AuditReport, Check, Unchecked, listed
from sfumato.audit.claims import Claims, Promise, is_number, read_claims
from sfumato.audit.evidence import MEASURED, check_risk
from sfumato.audit.kinds import JUDGED, Around
from sfumato.audit.levels import entropy
from sfumato.audit.levels.breach import Telling, check_large_breach, measure_large, sample_words, telling_columns
from sfumato.audit.levels.entropy import check_gain_promise
from sfumato.audit.original.cell_rules import CellRule, Codes, cell_rules
from sfumato.audit.original.fidelity import check_description, check_order, check_rows
from sfumato.audit.original.release_vs_original import PENALTY, Beside
from sfumato.audit.profile import risk_profile
from sfumato.audit.reading.block_counting import counted_rows, least_different_values
from sfumato.audit.reading.columns import Columns, Declared
from sfumato.audit.reading.spelling import check_spelling
from sfumato.audit.reading.values import GENERALIZED, is_text, meanings_beside
from sfumato.audit.verify import (
    audit_release,
    check_audited,
    has_all_roles,
    open_questions,
    types_of,
    values_of,
    without_open_questions,
)
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees import BreachBound, Containment, PrivacyGain
from sfumato.rows.out_of_core import LargeTable, Told
from sfumato.schema import Kind, Role
from sfumato.table.coding import Table
from sfumato.table.weighted import OpenColumn, OutlinedTable

# Claims that can be judged by counts of distinct rows, where no table is in memory: which, and by which columns.


LEAST_DIFFERENT = "least_different_sensitive_values"
"""Risk whose combinations, of all quasi-identifiers with a sensitive column, can be many more than the others."""
PATTERNS = (Containment.kind, "containment_level")
"""What is judged by the patterns of 0/1 columns."""
_NOT_COUNTED_RISKS = ("smallest_bucket", "largest_share_of_a_sensitive_value")


def beyond_counts(claims: Claims, known: tuple[str, ...]) -> Iterator[str]:
    """Name what cannot be judged; ``known`` names the guarantees and risks that the caller judges besides."""
    kinds = [promise.guarantee.kind for promise in claims.promises]
    yield from (kind for kind in kinds if kind not in known and not _is_counted(kind))
    risks = [*_NOT_COUNTED_RISKS, *(name for name in PATTERNS if name not in known)]
    yield from (name for name in risks if name in claims.stated_risk)
    if claims.perturbation is not None:
        yield f"rows that are {claims.perturbation.kind}"
    if claims.drops_incomplete_rows:
        yield "incomplete rows that were left out"


def _is_counted(kind: str) -> bool:
    """Whether counts of distinct rows can show a guarantee, whoever counted."""
    return kind in JUDGED and JUDGED[kind].by_counts


def judged_together(claims: Claims, besides: tuple[str, ...] = ()) -> list[str]:
    """Columns whose combinations the checks speak of; guarantees and risks ``besides`` are judged in another way."""
    counted = [promise for promise in claims.promises if promise.guarantee.kind not in besides]
    names = [*claims.names(Role.QUASI_IDENTIFIER)] if counted or MEASURED.keys() & claims.stated_risk.keys() else []
    for promise in counted:
        names += [*promise.columns, *getattr(promise.guarantee, "protected", ())]
        sensitive = getattr(promise.guarantee, "sensitive", None)
        names += [sensitive] if sensitive is not None and _is_counted(promise.guarantee.kind) else []
    if LEAST_DIFFERENT in claims.stated_risk and LEAST_DIFFERENT not in besides:
        names += claims.names(Role.SENSITIVE)
    return list(dict.fromkeys(names))


def check_open_kinds(released: Table, claims: Claims) -> Iterator[Check]:
    """Whether columns with too many values to be listed hold numbers where they are stated to."""
    stated = {column.name: column.kind for column in claims.columns}
    found = {n: c.kind for n, c in released.columns.items() if isinstance(c, OpenColumn)}
    wrong = [n for n, kind in found.items() if stated.get(n) is Kind.NUMERIC and kind is not Kind.NUMERIC]
    if found:
        said = f"hold something else than numbers: {listed(wrong)}" if wrong else "hold what they are stated to"
        yield Check("kinds of long columns", not wrong, f"columns with too many distinct values to be listed {said}")


# Promises that compare a release with its original, judged without either in memory.


COMPARED = (BreachBound.kind, PrivacyGain.kind)
"""Guarantees that are judged here, beside the original."""


def judged_beside(
    found: AuditReport,
    claims: Claims,
    released: OutlinedTable,
    original: OutlinedTable | None,
    telling: Telling,
    *,
    has_roles: bool,
    told: Told | None = None,
) -> AuditReport:
    """Put what the two tables together show in the place of what the release alone shows of such promises.

    Without an original nothing changes: such a promise then was not measured, which is an exception. ``telling`` finds
    the columns among some that determine another one in all rows of the original.
    """
    if original is None or not any(promise.guarantee.kind in COMPARED for promise in claims.promises):
        return found
    beside = Beside(Columns(released.outline), Columns(original.outline), claims)
    checks: list[Check | Unchecked] = [*check_large_breach(claims, original, has_roles, telling)]
    around = Around(claims, beside.original, beside, has_roles)
    gains = [promise.guarantee for promise in claims.promises if isinstance(promise.guarantee, PrivacyGain)]
    checks += [check for gain in gains for check in check_gain_promise(gain, around)]
    levels = []
    for promise, level in zip(claims.promises, found.levels, strict=True):
        own = list(_check_level(promise, original, beside, told)) if promise.guarantee.kind in COMPARED else []
        checks += own
        levels.append(own[0].found if own else level)
    return _with_anew(found, checks, levels)


def judged_apart(
    found: AuditReport, claims: Claims, released: LargeTable, memory: int, told: Told | None = None
) -> AuditReport:
    """Measure how different sensitive values are over all quasi-identifiers, which were not counted with those."""
    stated = claims.stated_risk[LEAST_DIFFERENT]
    if not is_number(stated):
        return found
    over, sensitive = (released.schema.names(role) for role in (Role.QUASI_IDENTIFIER, Role.SENSITIVE))
    least = min(least_different_values(released, over, name, memory, told) for name in sensitive)
    return _with_anew(found, [check_risk(LEAST_DIFFERENT, stated, least)], found.levels)


def _with_anew(
    found: AuditReport, checks: Sequence[Check | Unchecked], levels: Sequence[float | str | None]
) -> AuditReport:
    """Put checks in the place of those with the same names."""
    anew = {check.name for check in checks if isinstance(check, Check)}
    kept = [check for check in found.checks if check.name not in anew]
    return AuditReport.of([*kept, *found.unchecked, *checks], levels)


def _check_level(promise: Promise, original: OutlinedTable, beside: Beside, told: Told | None) -> Iterator[Check]:
    guarantee = promise.guarantee
    name = f"{guarantee.kind}: level"
    try:
        if isinstance(guarantee, BreachBound):
            promised, found = guarantee.max_breach_increase, measure_large(guarantee, original, told)
        elif isinstance(guarantee, PrivacyGain):
            promised, found = guarantee.min_privacy_gain, entropy.measure(guarantee, beside)
        else:
            raise AssertionError
    except (SchemaError, InvalidParameterError) as exc:
        yield Check(name, False, f"{guarantee.kind} cannot be measured: {exc}")
        return
    passed = guarantee.is_met_by(found)
    said = f"{'holds' if passed else 'does not hold'}: promised {promised:g}, found {found:.6g}"
    sampled = sample_words(guarantee, original.n_rows)
    said += f", estimated on the audit's own {sampled}" if sampled else ""
    yield Check(name, passed, f"{guarantee.kind} {said}", promised, found)
    yield check_audited(promise, found)


_MISSING = secrets.randbits(62)
_SALT = secrets.token_hex(16)


def audit_large(
    released: LargeTable,
    manifest: Mapping[str, Any],
    *,
    memory: int,
    original: LargeTable | None = None,
    released_sha256: str | None = None,
    original_sha256: str | None = None,
    file: str | Path | None = None,
    check_roles: Declared = False,
    told: Told | None = None,
) -> AuditReport:
    """Check a release against its manifest and its original as :func:`audit_release` does, with no table in memory.

    What cannot be judged out of core is an exception; where that is a promise, or how the release came about, a check
    named ``out of core`` fails.

    Raises
    ------
    InputError
        If a file changed while it was being read.
    """
    claims = read_claims(manifest)
    beyond = list(beyond_counts(claims, (*PATTERNS, *COMPARED)))
    if beyond:
        return AuditReport((Check("out of core", False, f"NOT CHECKED out of core: {listed(beyond)}"),))
    together = judged_together(claims, (*COMPARED, LEAST_DIFFERENT))
    names = [name for name in together if name in released.outline.columns]
    apart = released.schema.names(Role.SENSITIVE) if LEAST_DIFFERENT in claims.stated_risk else ()
    too_many = [name for name in dict.fromkeys([*names, *apart]) if released.is_open(name)]
    if too_many:
        said = f"NOT CHECKED out of core: columns with too many distinct values, {listed(too_many)}"
        return AuditReport((Check("out of core", False, said),))
    counted = counted_rows(released, names, memory, told)
    found = audit_release(
        counted, manifest, released_sha256=released_sha256, original_sha256=original_sha256, check_audited_values=True
    )
    if not set(apart) <= set(names):
        found = judged_apart(found, claims, released, memory, told)
    before = Columns(original.outline) if original is not None else None
    found = found if before is None else without_open_questions(found)
    has_roles = has_all_roles(before, check_roles)

    def telling(names: Sequence[str], sensitive: str) -> list[str]:
        return [] if original is None else telling_columns(original, names, sensitive, memory, told)

    found = judged_beside(found, claims, released, original, telling, has_roles=has_roles, told=told)
    more: list[Check | Unchecked] = [*check_open_kinds(released.outline, claims)]
    if file is not None:
        more.extend(check_file(file, claims, released_sha256))
        types = None if before is None else types_of(before)
        more.extend(check_spelling(_values(released, claims), claims, types))
    if original is not None:
        more.extend(_check_beside(released, original, claims, check_roles, told))
        more.extend(_check_penalty(released, original, claims))
        more.extend(_not_checked(released, original, claims))
        more.extend(open_questions(claims, before, check_roles))
    for table in (released, original):
        if table is not None:
            table.ensure_unchanged()
    return AuditReport.of([*found.checks, *found.unchecked, *more], found.levels)


def _values(released: LargeTable, claims: Claims) -> dict[str, Iterable[pa.Array]]:
    """Distinct values of the columns, and the cells of those whose values are not listed."""
    values: dict[str, Iterable[pa.Array]] = {**values_of(Columns(released.outline))}
    open_columns = [name for name in claims.names() if _is_long(released, name)]
    return values | {name: _cells_of(released, name) for name in open_columns}


def _cells_of(released: LargeTable, name: str) -> Iterator[pa.Array]:
    for block in released.blocks([name], as_cells={name}):
        yield pc.unique(block[name])


def large_risk_profile(table: LargeTable, *, memory: int, told: Told | None = None) -> dict[str, Any]:
    """Describe how far the rows of a large file can be distinguished, as :func:`risk_profile` does."""
    roles = (Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.TARGET)
    return risk_profile(counted_rows(table, table.schema.names(*roles), memory, told))


def _check_beside(
    released: LargeTable, original: LargeTable, claims: Claims, check_roles: Declared, told: Told | None
) -> Iterator[Check | Unchecked]:
    before, after = Columns(original.outline), Columns(released.outline)
    yield from check_description(before, claims, check_roles)
    rows = check_rows(after, before, claims, 0)
    yield rows
    if not rows.passed:
        yield Check("cells", False, "cells were not compared, because the numbers of rows do not fit")
        return
    every = [_for_blocks(rule, released, original, claims) for rule in cell_rules(after, before, claims)]
    rules = [rule for rule in every if rule is not None]
    long = [name for name, rule in zip(claims.names(), every, strict=True) if rule is None]
    if long:
        said = (
            f"whether cells of {listed(long)} follow from the original: they have too many distinct values out of core"
        )
        yield Unchecked("cells", said, IN_MEMORY)
    if not rules and long:
        return
    originals = _codes(original, rules, [rule.column for rule in rules], released, [rule.name for rule in rules], None)
    found = _codes(released, rules, [rule.name for rule in rules], original, [rule.column for rule in rules], told)
    yield check_order(rules, originals, found, claims.suppressed_rows)


@dataclass(frozen=True)
class _SameMeaning(CellRule):
    """Cells that agree when the numbers of their meanings are equal: for columns whose values are not listed."""

    def agree(self, original: Codes, released: Codes) -> NDArray[np.bool_]:
        """Whether the numbers are equal."""
        return np.asarray(original == released)


def _for_blocks(rule: CellRule, released: LargeTable, original: LargeTable, claims: Claims) -> CellRule | None:
    """Rule for columns of which values may not be listed; ``None`` where nothing can be said of a recoding then."""
    recoding = claims.recodings.get(rule.name)
    column = rule.column if recoding is None else recoding.column
    if not (_is_long(released, rule.name) or _is_long(original, column)):
        return rule
    if recoding is not None:
        return None
    return rule if rule.problem else _SameMeaning(rule.name, rule.column)


def _is_long(table: LargeTable, name: str) -> bool:
    return name in table.schema and table.is_open(name)


def _check_penalty(released: LargeTable, original: LargeTable, claims: Claims) -> Iterator[Check]:
    if not _long_generalized(released, original, claims):
        yield from Beside(Columns(released.outline), Columns(original.outline), claims).check_stated_penalty()


def _long_generalized(released: LargeTable, original: LargeTable, claims: Claims) -> bool:
    """Whether values of a column that the certainty penalty speaks of are not listed."""
    names = [recoding.name for recoding in claims.recodings.values() if recoding.rule == GENERALIZED]
    return any(_is_long(table, name) for table in (released, original) for name in names)


def _codes(
    table: LargeTable,
    rules: Sequence[CellRule],
    names: Sequence[str],
    other: LargeTable,
    other_names: Sequence[str],
    told: Told | None,
) -> Iterator[list[Codes]]:
    """Codes of the rules' columns, block by block; of values that are not listed the numbers of their meanings."""
    if any(rule.problem for rule in rules):
        return
    by_meaning = {name for name, rule in zip(names, rules, strict=True) if isinstance(rule, _SameMeaning)}
    beside = {name: other.outline[second].values.type for name, second in zip(names, other_names, strict=True)}
    for block in table.blocks(list(dict.fromkeys(names)), as_cells=by_meaning, told=told):
        read = {n: meaning_numbers(c, beside[n]) if n in by_meaning else np.asarray(c) for n, c in block.items()}
        yield [read[name] for name in names]


def meaning_numbers(cells: pa.Array, beside: pa.DataType) -> NDArray[np.int64]:
    """Numbers of 64 bits that are equal for cells that mean the same, and, but for a rare chance, for no others.

    Examples
    --------
    >>> first = meaning_numbers(pa.array([1, -1, None]), pa.string())
    >>> first.tolist() == meaning_numbers(pa.array(["1.0", "-1", None]), pa.int64()).tolist()
    True
    """
    if cells.type == beside and not is_text(beside) and not pa.types.is_decimal(beside) and beside.bit_width == 64:
        numbers = pc.fill_null(cells.view(pa.int64()), _MISSING)
        return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.int64)
    found = (
        _MISSING if meaning is None else hash(_SALT + _as_text(meaning)) for meaning in meanings_beside(cells, beside)
    )
    return np.fromiter(found, dtype=np.int64, count=len(cells))


def _as_text(meaning: Hashable) -> str:
    """Write a meaning so that equal ones have equal texts; Python's hash of a number itself can be foreseen."""
    if isinstance(meaning, str):
        return f"text {meaning}"
    if isinstance(meaning, int | float | Decimal) and math.isfinite(meaning):
        top, bottom = meaning.as_integer_ratio()
        return f"number {top}/{bottom}"
    return f"other {float(meaning) if isinstance(meaning, Decimal) else meaning}"


def _not_checked(released: LargeTable, original: LargeTable, claims: Claims) -> Iterator[Unchecked]:
    """Name what the audit in memory checks and this one does not."""
    tables = (released, original)
    long = [n for n in claims.names() if any(_is_long(table, n) for table in tables)]
    if long:
        yield Unchecked("spelling", f"whether one value has two spellings in {listed(long)}", IN_MEMORY)
    if PENALTY in claims.stated_utility and _long_generalized(released, original, claims):
        yield Unchecked("figures", "the stated certainty penalty", IN_MEMORY)
