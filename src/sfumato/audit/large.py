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

from sfumato.audit.beside import PENALTY, Beside
from sfumato.audit.block_counting import counted_rows
from sfumato.audit.cell_rules import CellRule, Codes, cell_rules
from sfumato.audit.checks import IN_MEMORY, AuditReport, Check, Unchecked, listed
from sfumato.audit.claims import Claims, read_claims
from sfumato.audit.columns import Columns, Declared
from sfumato.audit.counted_claims import LEAST_DIFFERENT, PATTERNS, beyond_counts, check_open_kinds, judged_together
from sfumato.audit.fidelity import check_description, check_order, check_rows
from sfumato.audit.file_bytes import check_file
from sfumato.audit.large_promises import COMPARED, judged_apart, judged_beside
from sfumato.audit.profile import risk_profile
from sfumato.audit.rules import GENERALIZED
from sfumato.audit.spelling import check_spelling
from sfumato.audit.values import is_text, meanings_beside
from sfumato.audit.verify import (
    audit_release,
    has_all_roles,
    open_questions,
    types_of,
    values_of,
    without_open_questions,
)
from sfumato.schema import Role
from sfumato.table.large import LargeTable, Told

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
    found = judged_beside(found, claims, released, original, memory=memory, has_roles=has_roles, told=told)
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
    """Describe how far the rows of a large file can be told apart, as :func:`risk_profile` does."""
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
        said = f"whether cells of {listed(long)} follow from the original: distinct values are too many out of core"
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
