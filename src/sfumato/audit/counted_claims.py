"""Claims that can be judged by counts of distinct rows, where no table is in memory: which, and by which columns."""

from __future__ import annotations

from collections.abc import Iterator

from sfumato.audit.checks import Check, listed
from sfumato.audit.claims import Claims
from sfumato.audit.evidence import MEASURED
from sfumato.audit.kinds import JUDGED
from sfumato.guarantees import Containment
from sfumato.schema import Kind, Role
from sfumato.table.coding import Table
from sfumato.table.weighted import OpenColumn

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
