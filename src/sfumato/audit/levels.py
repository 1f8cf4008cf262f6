"""Which function measures which guarantee; a new guarantee is a module and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sfumato.audit import anonymity, breach, buckets, closeness, containment, diversity, entropy
from sfumato.audit.beside import Beside
from sfumato.audit.columns import AnyTable
from sfumato.errors import InvalidParameterError
from sfumato.guarantees import (
    Containment,
    DifferentialPrivacy,
    GlobalAnonymity,
    Guarantee,
    KAnonymity,
    KKAnonymity,
    LDiversity,
    TCloseness,
    UniquePatterns,
)
from sfumato.guarantees.buckets import BucketDiversity, BucketSize
from sfumato.guarantees.entropy import PrivacyGain
from sfumato.guarantees.estimated import BreachBound

LEVELS: Mapping[str, Callable[[Any, AnyTable], float]] = {
    KAnonymity.kind: anonymity.measure,
    Containment.kind: containment.measure,
    UniquePatterns.kind: anonymity.measure_uniques,
    LDiversity.kind: diversity.measure,
    TCloseness.kind: closeness.measure,
    BucketSize.kind: buckets.measure_size,
    BucketDiversity.kind: buckets.measure_diversity,
}

LEVELS_BESIDE_ORIGINAL: Mapping[str, Callable[[Any, Beside], float]] = {
    KKAnonymity.kind: lambda promised, beside: beside.consistency(promised.columns).level_kk,
    GlobalAnonymity.kind: lambda promised, beside: beside.consistency(promised.columns).level_global,
    BreachBound.kind: breach.measure,
    PrivacyGain.kind: entropy.measure,
}
"""Guarantees that compare a release with its original."""


def needs_original(guarantee: Guarantee) -> bool:
    """Whether a guarantee can be measured only beside the original."""
    return guarantee.kind in LEVELS_BESIDE_ORIGINAL


def is_about_fitting_rows(guarantee: Guarantee) -> bool:
    """Whether a guarantee is about which released rows fit which original ones."""
    return guarantee.kind in (KKAnonymity.kind, GlobalAnonymity.kind)


def is_measurable(guarantee: Guarantee) -> bool:
    """Whether a table can show that a guarantee holds; differential privacy is a property of how it was made."""
    return guarantee.kind != DifferentialPrivacy.kind


def measured_level(guarantee: Guarantee, released: AnyTable) -> float:
    """Measure on a table what a guarantee promises about it; the guarantee's ``is_met_by`` judges the result.

    Raises
    ------
    ColumnNotFoundError
        If the table lacks a column that the guarantee names.
    NotBinaryError
        If a containment guarantee names a column that is not 0/1.
    """
    measure = LEVELS.get(guarantee.kind)
    if measure is None:
        allowed = f"one that the audit can measure ({', '.join(LEVELS)})"
        parameter = "guarantee"
        raise InvalidParameterError(parameter, f"got '{guarantee.kind}'", allowed=allowed)
    return measure(guarantee, released)
