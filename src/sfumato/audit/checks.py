"""What an audit finds: single checks and the report that holds them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from sfumato.errors import AuditFailedError


@dataclass(frozen=True)
class Check:
    """One thing that was checked; the message shows column names, parameters and counts, never a cell value."""

    name: str
    passed: bool
    message: str
    promised: float | str | None = None
    found: float | str | None = None


@dataclass(frozen=True)
class AuditReport:
    """All checks of a release. It passes when there is at least one check and none failed."""

    checks: tuple[Check, ...]
    levels: tuple[float | str | None, ...] = ()
    """Level found of each promised guarantee, in the manifest's order; ``None`` where none can be measured."""

    @property
    def passed(self) -> bool:
        """Whether the audit confirms the release."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[str, ...]:
        """Messages of the checks that failed."""
        return tuple(check.message for check in self.checks if not check.passed)

    def raise_if_failed(self) -> None:
        """Raise ``AuditFailedError`` unless the audit confirms the release."""
        if not self.passed:
            raise AuditFailedError(self.failures or ("nothing was checked",))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {"passed": self.passed, "checks": [asdict(check) for check in self.checks]}


def listed(names: Iterable[str], most: int = 5) -> str:
    """Join names for a message, cutting a long list.

    Examples
    --------
    >>> listed(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    every = list(names)
    shown = ", ".join(f"'{name}'" for name in every[:most])
    return shown + (f" and {len(every) - most:,} more" if len(every) > most else "")
