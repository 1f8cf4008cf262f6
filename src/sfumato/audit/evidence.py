"""Whether the risk that a manifest states beside its promises is the risk that is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sfumato.audit.anonymity import anonymity_level, sample_uniques
from sfumato.audit.checks import Check
from sfumato.audit.columns import AnyTable, Columns
from sfumato.audit.containment import containment_level
from sfumato.audit.counting import group_rows
from sfumato.errors import NotBinaryError
from sfumato.guarantees import ROUNDING
from sfumato.schema import Role

Names = tuple[str, ...]


def _smallest_class(columns: Columns, names: Names) -> float:
    return anonymity_level(group_rows(columns, names))


def _unique_fraction(columns: Columns, names: Names) -> float:
    return sample_uniques(group_rows(columns, names)) / max(columns.n_rows, 1)


MEASURED: Mapping[str, Callable[[Columns, Names], float]] = {
    "containment_level": containment_level,
    "anonymity_level": _smallest_class,
    "unique_pattern_fraction": _unique_fraction,
}
"""Risks that are measured on the release alone; what a manifest says of the original is not re-computed."""


_LARGEST = 10**15  # larger numbers are no level of any table


def check_stated_risk(released: AnyTable, stated: Mapping[str, Any]) -> Iterator[Check]:
    """Measure the stated risks anew over the released quasi-identifiers."""
    columns = Columns(released)
    names = columns.with_role(Role.QUASI_IDENTIFIER)
    for name, measure in MEASURED.items():
        if name not in stated:
            continue
        label, value = name.replace("_", " "), stated[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > _LARGEST:
            yield Check(f"risk: {label}", False, f"{label}: the manifest gives no number")
            continue
        try:
            found = measure(columns, names)
        except NotBinaryError as exc:
            yield Check(f"risk: {label}", False, f"{label} cannot be measured: {exc}", value)
            continue
        passed = abs(value - found) <= ROUNDING
        yield Check(
            f"risk: {label}", passed, f"{label}: the manifest gives {value:.6g}, found {found:.6g}", value, found
        )
