"""A new release together with those in the project's ledger: checked before it is published, kept afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sfumato.audit.claims import read_claims
from sfumato.audit.together.appearances import (
    NamedRows,
    Promised,
    are_same,
    judged_together,
    n_in_common,
)
from sfumato.audit.together.levels import Shortfall, Together, total_epsilon
from sfumato.engines.memory_limit import Memory
from sfumato.errors import InputError, InvalidParameterError, PrivacyNotAchievableError
from sfumato.manifest import Manifest
from sfumato.mechanisms.base import Mechanism, Release, name_of
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.publishing.ledger import Entry, Ledger, levels_of
from sfumato.publishing.proposals.base import DEFAULT_MEMORY, Proposal, RowsProposal
from sfumato.publishing.proposals.in_memory import InMemory
from sfumato.publishing.whose_rows import check_fits, named_rows_of
from sfumato.schema import Role, Schema

LedgerUse = Literal["check", "same-levels", "off"]
"""What a project's releases do with its ledger: be checked, take the last levels and be checked, or leave it alone."""
_ANEW = "withdraw the earlier releases and release all anew"


@dataclass(frozen=True, eq=False)
class Recording:
    """A release that was checked with the ledger, to be kept there when it is published.

    Parameters
    ----------
    lines : tuple of str
        What the check found, for people: counts, no values.
    """

    ledger: Ledger
    rows: NamedRows | None
    person: str | None
    checked: tuple[int, ...]
    lines: tuple[str, ...]

    def __call__(self, table: Path, manifest: Manifest) -> AbstractContextManager[Any]:
        """Keep the release whose bytes are at ``table`` while it gets its name."""
        rows = self.rows
        if rows is not None and not self.checked:
            rows = self.ledger.named(rows)  # not before: only a first release that is published may make a key
        return self.ledger.recorded(table, manifest, rows, self.person, checked=self.checked)


@dataclass(frozen=True, eq=False)
class NotRecorded:
    """A release that leaves the ledger alone."""

    lines: tuple[str, ...] = ()

    def __call__(self, table: Path, manifest: Manifest) -> AbstractContextManager[Any]:
        """Do nothing."""
        return nullcontext()


def checked_together(
    proposal: Proposal, ledger: Ledger, use: LedgerUse = "check", memory: Memory = DEFAULT_MEMORY
) -> Recording | NotRecorded:
    """Check a proposal together with all releases in a ledger.

    Where no column tells persons apart and there is no ledger, nothing is checked or kept.

    Raises
    ------
    PrivacyNotAchievableError
        If together they fall below what was promised, with how many people that concerns.
    InputError
        If the ledger cannot be read, is that of another table, or holds more than fits in memory.
    SchemaError
        If the column that tells persons apart has missing values.
    """
    release, person = proposal.release, proposal.person
    if use == "off":
        said = "left out of the ledger, and not checked together with earlier releases, as asked"
        return NotRecorded((said,) if ledger.exists or person is not None else ())
    if person is None and not ledger.exists:
        return NotRecorded()
    entries = ledger.entries()
    promised = Promised.of(read_claims(release.manifest.to_dict()))
    numbers = tuple(entry.number for entry in entries)
    cannot = _why_not(promised, person, release)
    if cannot:
        lines = [*_epsilon_lines(promised, entries), *([_not_checked(entries, cannot)] if entries else [])]
        return Recording(ledger, None, None, numbers, tuple(lines))
    n_others = sum(len(entry.rows.classes) for entry in entries if entry.rows is not None)
    rows = _named(proposal, promised, str(person), n_others, memory)
    if entries:
        rows = ledger.named(rows)
    lines = _checked_with(entries, rows, proposal, ledger)
    return Recording(ledger, rows, person, numbers, tuple(lines))


def _named(proposal: Proposal, promised: Promised, person: str, n_others: int, memory: Memory) -> NamedRows:
    """Say whose row is in which class, to be checked together with so many rows of other releases."""
    if isinstance(proposal, InMemory):
        return proposal.named_rows(promised, person)
    if not isinstance(proposal, RowsProposal):
        raise AssertionError
    original = proposal.original
    check_fits(original.n_rows + n_others, memory, original.place)
    blocks = proposal.blocks_with(person)
    if original.is_on_cluster:
        from sfumato.publishing.cluster_folder import blocks_on_cluster  # Spark is there only where somebody has one

        blocks = blocks_on_cluster(proposal, person, (*promised.columns, person, *promised.diversity))
    return named_rows_of(original, blocks, promised, person)


def _why_not(promised: Promised, person: str | None, release: Release) -> str:
    """Say why a release cannot be judged together with others; empty where it can."""
    if promised.epsilon is not None:
        return "differential privacy holds whatever else is known, and its ε add up"
    if not promised.has_classes:
        kinds = ", ".join(promised.others) or "nothing"
        return f"{release.manifest.mechanism['name']} promises {kinds}, which is not judged together"
    return "" if person is not None else "no column tells persons apart (role person)"


def _not_checked(entries: Sequence[Entry], why: str) -> str:
    return f"not checked together with {_earlier(len(entries))}: {why}"


def _earlier(n: int) -> str:
    return "1 earlier release" if n == 1 else f"{n:,} earlier releases"


def _epsilon_lines(promised: Promised, entries: Sequence[Entry]) -> list[str]:
    before = [entry.promised.epsilon for entry in entries if entry.promised.epsilon is not None]
    if promised.epsilon is None or not before:
        return []
    total = total_epsilon([*before, promised.epsilon])
    return [f"differential privacy together with {_earlier(len(before))}: ε = {total:g}, the sum"]


def _checked_with(entries: Sequence[Entry], rows: NamedRows, proposal: Proposal, ledger: Ledger) -> list[str]:
    known = [entry.rows for entry in entries if entry.rows is not None and not are_same(entry.rows, rows)]
    lines = []
    for why, n in (
        ("nobody said whose rows they hold", sum(e.rows is None and e.promised.has_classes for e in entries)),
        ("what they promise is not judged together", sum(_is_judged_alone(e.promised) for e in entries)),
    ):
        lines += [f"not checked together with {_earlier(n)}: {why}"] if n else []
    if any(entry.promised.epsilon is not None for entry in entries):
        lines.append("k and l are not judged together with differentially private releases, which keep their promise")
    if not known:
        return lines
    n_common = n_in_common(rows, known)
    if not n_common:
        problem = f"none of the {rows.n_persons:,} persons of this table is in {_earlier(len(known))} that it holds"
        hint = "if these are other people, keep them in a project (a folder) of their own"
        raise InputError(problem, path=ledger.folder, hint=hint, remedy=("ledger",))
    others = tuple(dict.fromkeys([*rows.promised.others, *(kind for own in known for kind in own.promised.others)]))
    if others:
        lines.append(f"not judged together: {', '.join(others)}")
    together, before = judged_together([*known, rows]), judged_together(known)
    below, already = together.persons_below(), before.persons_below()
    at_risk = np.setdiff1d(below, already)
    if len(at_risk):
        raise _refusal(together, len(at_risk), len(known), _advice(proposal, entries))
    if len(already):
        lines.append(f"{len(already):,} persons are below the promise by the earlier releases alone")
    said = f"together with {_earlier(len(known))} ({n_common:,} of {rows.n_persons:,} persons are in them)"
    return [
        *lines,
        f"{said}: nobody falls below the promise; the smallest joint class has {together.anonymity:,} persons",
    ]


def _is_judged_alone(promised: Promised) -> bool:
    return not promised.has_classes and promised.epsilon is None


def _refusal(
    together: Together, n_at_risk: int, n_known: int, advice: tuple[str, tuple[str, ...]]
) -> PrivacyNotAchievableError:
    what = "; ".join(_in_words(shortfall) for shortfall in together.shortfalls())
    guarantee = f"together with {_earlier(n_known)} {n_at_risk:,} persons fall below what was promised ({what})"
    hint, remedy = advice
    return PrivacyNotAchievableError(guarantee, best_level=None, problem="refused:", hint=hint, remedy=remedy)


def _in_words(shortfall: Shortfall) -> str:
    of_column = f" of '{shortfall.column}'" if shortfall.column else ""
    words = {
        "persons": "persons who cannot be told apart",
        "values": f"values{of_column} among them",
        "remaining values": f"values{of_column} that all releases leave possible",
    }[shortfall.what]
    return f"{words}: {shortfall.found:g} of {shortfall.promised:g}, {shortfall.n_persons:,} persons"


def _advice(proposal: Proposal, entries: Sequence[Entry]) -> tuple[str, tuple[str, ...]]:
    """Say what may hold instead of a release that is refused, and which option leads there."""
    own = levels_of(proposal.release.manifest.to_dict())
    last = _last_levels(proposal.release.table.coded_part.schema, entries) if own is not None else None
    if last is None or last == own:
        return _ANEW, ()
    return f"{_ANEW}, or try the levels of the last release", ("ledger_same_levels",)


def _last_levels(schema: Schema, entries: Sequence[Entry]) -> dict[str, int] | None:
    """Levels of the last release that has some for the quasi-identifiers, in their order."""
    names = schema.names(Role.QUASI_IDENTIFIER)
    for entry in reversed(entries):
        if entry.levels is not None and set(entry.levels) == set(names):
            return {name: entry.levels[name] for name in names}
    return None


def at_last_levels(mechanism: Mechanism, schema: Schema, ledger: Ledger) -> Mechanism:
    """Give a recoder that takes the levels of the last release in a ledger; the same one where there is no release.

    Equal levels of equal hierarchies give people who did not change the classes that they had. Rows are left out as by
    any release of the recoder, within its limit. Whether it holds together with the others is checked afterwards.

    Raises
    ------
    InvalidParameterError
        If the mechanism has no such levels, or no release of these quasi-identifiers has.
    """
    if not isinstance(mechanism, GlobalRecoder) or getattr(mechanism, "slicing", False):
        problem, allowed = f"{name_of(mechanism)} has no levels that it could keep", "global-recoding or gain-recoding"
        raise InvalidParameterError("the mechanism", problem, allowed=allowed, remedy=("mechanism",))
    entries = ledger.entries()
    if not entries:
        return mechanism
    levels = _last_levels(schema, entries)
    if levels is None:
        problem = "got same-levels, and no earlier release has levels of these quasi-identifiers"
        raise InvalidParameterError("ledger", problem, allowed="check or off")
    return mechanism.at_levels(levels)
