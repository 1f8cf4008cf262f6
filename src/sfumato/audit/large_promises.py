"""Promises that compare a release with its original, judged without either in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sfumato.audit import entropy
from sfumato.audit.beside import Beside
from sfumato.audit.block_counting import least_different_values
from sfumato.audit.breach import sample_words
from sfumato.audit.checks import AuditReport, Check, Unchecked
from sfumato.audit.claims import Claims, Promise, is_number
from sfumato.audit.columns import Columns
from sfumato.audit.counted_claims import LEAST_DIFFERENT
from sfumato.audit.entropy import check_gain_promise
from sfumato.audit.evidence import check_risk
from sfumato.audit.kinds import Around
from sfumato.audit.large_breach import check_large_breach, measure_large
from sfumato.audit.verify import check_audited
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees import BreachBound, PrivacyGain
from sfumato.schema import Role
from sfumato.table.large import LargeTable, Told

COMPARED = (BreachBound.kind, PrivacyGain.kind)
"""Guarantees that are judged here, beside the original."""


def judged_beside(
    found: AuditReport,
    claims: Claims,
    released: LargeTable,
    original: LargeTable | None,
    *,
    memory: int,
    has_roles: bool,
    told: Told | None = None,
) -> AuditReport:
    """Put what the two files together show in the place of what the release alone shows of such promises.

    Without an original nothing changes: such a promise then was not measured, which is an exception.
    """
    if original is None or not any(promise.guarantee.kind in COMPARED for promise in claims.promises):
        return found
    beside = Beside(Columns(released.outline), Columns(original.outline), claims)
    checks: list[Check | Unchecked] = [*check_large_breach(claims, original, has_roles, memory, told)]
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


def _check_level(promise: Promise, original: LargeTable, beside: Beside, told: Told | None) -> Iterator[Check]:
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
