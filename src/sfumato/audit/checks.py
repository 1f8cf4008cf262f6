"""What an audit finds: single checks and the report that holds them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from sfumato.errors import AuditFailedError
from sfumato.guarantees import ROUNDING

Verdict = Literal["confirmed", "confirmed except", "refused"]


def agrees_in_three_digits(stated: float, found: float) -> bool:
    """Whether a stated figure is the one found, or that in three significant digits, to half a unit of the last one.

    Examples
    --------
    >>> agrees_in_three_digits(0.123, 0.12345), agrees_in_three_digits(0.124, 0.12345), agrees_in_three_digits(12, 12)
    (True, False, True)
    """
    unit = 10.0 ** (math.floor(math.log10(abs(found))) - 2) if found else 0.0
    return abs(stated - found) <= unit / 2 + ROUNDING


@dataclass(frozen=True)
class Check:
    """One thing that was checked; the message shows column names, parameters and counts, never a cell value."""

    name: str
    passed: bool
    message: str
    promised: float | str | None = None
    found: float | str | None = None


@dataclass(frozen=True)
class Unchecked:
    """One thing that could not be checked, and what to give the audit so that it can be.

    Parameters
    ----------
    name : str
        One word by which a reader accepts this exception, such as ``original`` or ``roles``.
    message : str
        What was not checked, in one plain sentence without its full stop.
    remedy : str
        What makes the check possible; empty where nothing does.
    """

    name: str
    message: str
    remedy: str = ""


@dataclass(frozen=True)
class AuditReport:
    """All checks of a release. It passes when there is at least one check and none failed."""

    checks: tuple[Check, ...]
    levels: tuple[float | str | None, ...] = ()
    """Level found of each promised guarantee, in the manifest's order; ``None`` where none can be measured."""
    unchecked: tuple[Unchecked, ...] = ()
    """What could not be checked: with any of it a release that passes is confirmed except for that."""

    @property
    def passed(self) -> bool:
        """Whether the audit confirms the release."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def verdict(self) -> Verdict:
        """Return the audit's end: confirmed, confirmed except for what could not be checked, or refused."""
        if not self.passed:
            return "refused"
        return "confirmed except" if self.unchecked else "confirmed"

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
        return {
            "passed": self.passed,
            "verdict": self.verdict,
            "checks": [asdict(check) for check in self.checks],
            "unchecked": [asdict(exception) for exception in self.unchecked],
        }


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
