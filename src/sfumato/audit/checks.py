"""What an audit finds: single checks and the report that holds them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

from sfumato.errors import AuditFailedError, InvalidParameterError
from sfumato.guarantees import ROUNDING

Verdict = Literal["confirmed", "confirmed except", "refused"]

EXCEPTIONS: Mapping[str, str] = {
    "original": "the release was not compared with the original",
    "roles": "the roles of released columns were taken from the manifest",
    "promises": "a promise was not measured",
    "breach": "a breach bound was not estimated, which needs scikit-learn",
    "format": "the manifest is by a later version of sfumato",
    "figures": "figures of the manifest were not recomputed",
    "mechanism": "the release is by a mechanism of another package, whose settings the audit does not know",
    "names": "the released file or the original has another name than in the manifest",
    "order": "the kind, order or listed values of a column were taken from the manifest",
    "formats": "the format of dates or numbers in the original was taken from the manifest",
    "cells": "cells of some columns were not compared with the original's",
    "row-order": "the rows are in an order that may tell more than they do",
    "spelling": "spellings in some columns were not checked",
    "bytes": "some bytes of the release are not accounted for",
    "compression": "the bytes of a compressed file were not reproduced",
    "writer": "the bytes of a file were not reproduced",
    "epsilon": "differential privacy is a property of the mechanism",
    "noise": "whether noise was added cannot be checked",
    "commitment": "the commitment to the original, or to the population table, was not checked",
    "together": "releases of the same people were not judged together",
    "persons": "a promise counts rows, and some persons have several",
    "identifiers": "released texts look as if they named people, and nobody has confirmed the column",
}
"""What an audit may be unable to check, by the word under which a reader accepts that."""

NOT_COVERED = frozenset({"persons", "identifiers"})
"""Exceptions that were looked at, and are about what no promise covers."""


PUBLISHERS_WORD = (
    "which mechanism it was, and its settings other than levels; numbers of hierarchy levels; which columns were "
    "confirmed; versions of programs"
)
"""Entries of a manifest that nothing is compared with, of closed forms. None of them is a promise."""

GIVE_ORIGINAL = "give the original"
DECLARE = "declare the roles of all columns"
IN_MEMORY = "audit it in memory"
GIVE_KEY = "give the key of the release"
GIVE_BOTH = "give the original and the key of the release"
GIVE_POPULATION = "give the population table"
"""Remedies that several checks name."""


def agrees_in_three_digits(stated: float, found: float) -> bool:
    """Whether a stated figure is the one found, or that in three significant digits, to half a unit of the last one.

    Examples
    --------
    >>> agrees_in_three_digits(0.123, 0.12345), agrees_in_three_digits(0.124, 0.12345), agrees_in_three_digits(12, 12)
    (True, False, True)
    """
    if not math.isfinite(found):
        return stated == found
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

    def __post_init__(self) -> None:
        if self.name not in EXCEPTIONS:
            raise AssertionError(self.name)  # what is not listed there nobody could accept

    @property
    def heading(self) -> str:
        """Words in front of the message."""
        return "NOT COVERED" if self.name in NOT_COVERED else "NOT CHECKED"


@dataclass(frozen=True)
class AuditReport:
    """All checks of a release. It passes when there is at least one check and none failed.

    A report that passes is no confirmation: see ``verdict``.
    """

    checks: tuple[Check, ...]
    levels: tuple[float | str | None, ...] = ()
    """Level found of each promised guarantee, in the manifest's order; ``None`` where none can be measured."""
    unchecked: tuple[Unchecked, ...] = ()
    """What could not be checked: with any of it a release that passes is confirmed except for that."""
    accepted: tuple[str, ...] = ()
    """Names of exceptions that the reader accepts; they stay listed."""

    @classmethod
    def of(cls, found: Iterable[Check | Unchecked], levels: Iterable[float | str | None] = ()) -> Self:
        """Sort what was found into the checks that were made and those that could not be."""
        every = list(found)
        unchecked = tuple(one for one in every if isinstance(one, Unchecked))
        return cls(tuple(one for one in every if isinstance(one, Check)), tuple(levels), unchecked)

    @property
    def passed(self) -> bool:
        """Whether no check failed, and there is one."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def verdict(self) -> Verdict:
        """Return the audit's end: confirmed, confirmed except for what could not be checked, or refused."""
        if not self.passed:
            return "refused"
        return "confirmed except" if self.unchecked else "confirmed"

    @property
    def is_accepted(self) -> bool:
        """Whether the audit confirms the release, except at most for what the reader accepts."""
        return self.passed and {one.name for one in self.unchecked} <= set(self.accepted)

    def accepting(self, names: Iterable[str]) -> Self:
        """Accept exceptions by their names.

        Raises
        ------
        InvalidParameterError
            If there is no such exception.

        Examples
        --------
        >>> found = AuditReport((Check("rows", True, ""),), unchecked=(Unchecked("roles", ""),))
        >>> found.verdict, found.is_accepted, found.accepting(["roles"]).is_accepted
        ('confirmed except', False, True)
        """
        accepted = tuple(dict.fromkeys(names))
        if not set(accepted) <= set(EXCEPTIONS):
            allowed = f"names of exceptions ({', '.join(EXCEPTIONS)})"
            unknown = ", ".join(repr(name) for name in accepted if name not in EXCEPTIONS)
            raise InvalidParameterError("accepted exceptions", f"got {unknown}", allowed=allowed)
        return replace(self, accepted=accepted)

    @property
    def last_line(self) -> str:
        """Say the end in one line that is enough for a reader.

        Examples
        --------
        >>> AuditReport((Check("rows", True, ""),), unchecked=(Unchecked("roles", "", "declare roles"),)).last_line
        'confirmed except: roles — 1 check passed, 1 could not run; to run it, declare roles'
        >>> AuditReport((Check("rows", True, ""),), unchecked=(Unchecked("persons", ""),)).last_line
        'confirmed except: persons — 1 check passed, 1 point is not covered'
        """
        n_good, n_all = sum(check.passed for check in self.checks), len(self.checks)
        if not self.passed:
            n_bad = n_all - n_good
            why = self.failures[0] if self.failures else "nothing was checked"
            more = f" (and {n_bad - 1} more)" if n_bad > 1 else ""
            return f"refused: {n_bad} of {n_all} checks failed: {why}{more}"
        held = f"{n_good} {'check' if n_good == 1 else 'checks'} passed"
        if not self.unchecked:
            return f"confirmed: all {held}" if n_good > 1 else f"confirmed: {held}"
        names = list(dict.fromkeys(one.name for one in self.unchecked))
        shown = [f"{name} (accepted)" if name in self.accepted else name for name in names]
        remedies = list(dict.fromkeys(one.remedy for one in self.unchecked if one.remedy))
        n_beyond = sum(one.name in NOT_COVERED for one in self.unchecked)
        n_open = len(self.unchecked) - n_beyond
        ends = [f"{n_open} could not run"] if n_open else []
        ends += [f"{n_beyond} {'point is' if n_beyond == 1 else 'points are'} not covered"] if n_beyond else []
        aim = f"run {'it' if n_open == 1 else 'them'}" if n_open else "learn more"
        to_make = f"; to {aim}, {'; '.join(remedies)}" if remedies else ""
        return f"confirmed except: {', '.join(shown)} — {', '.join([held, *ends])}{to_make}"

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
            "accepted": list(self.accepted),
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


def check_figure(part: str, name: str, stated: float, found: float) -> Check:
    """Whether a stated figure is what was found: a whole number to the last digit, another one in three digits."""
    label, is_count = name.replace("_", " "), float(found).is_integer()
    passed = abs(stated - found) <= ROUNDING if is_count else agrees_in_three_digits(stated, found)
    said = f"{label}: the manifest gives {stated:.6g}, found {found:.6g}"
    return Check(f"{part}: {label}", passed, said, stated, found)
