"""From a table, wherever its rows are, and a mechanism to a proposal: what is to be released, not audited yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.engines.limits import DIFFERENTIAL_PRIVACY
from sfumato.engines.memory_limit import Memory, give_back
from sfumato.engines.persons import n_repeating_persons
from sfumato.engines.protocol import Rows, check_fits_in_memory
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.guarantees import AboutPopulation, AboutValues
from sfumato.manifest import AnyTable
from sfumato.mechanisms.base import (
    Mechanism,
    Needs,
    Release,
    check_digits,
    check_takes_both_roles,
    columns_with_hierarchies,
    name_of,
    needs_of,
)
from sfumato.mechanisms.registry import is_differentially_private, registered_mechanisms
from sfumato.mechanisms.requested import follows_from_two_persons
from sfumato.progress import Progress
from sfumato.project.keys import ReleaseKey
from sfumato.publishing.proposals.base import DEFAULT_MEMORY, Proposal, RowsProposal
from sfumato.publishing.proposals.counted import propose_counted
from sfumato.publishing.proposals.features import propose_features
from sfumato.publishing.proposals.in_memory import InMemory
from sfumato.publishing.proposals.sampled import propose_fitted, propose_sampled
from sfumato.publishing.publish import no_table
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import Source, Table
from sfumato.table.identifiers.text_columns import check_text_columns
from sfumato.table.io.formats import writable_format_of
from sfumato.table.io.write import BLOCK_FORMATS
from sfumato.table.persons import person_codes
from sfumato.table.preparing.declared import Preparation
from sfumato.table.preparing.keyed import PreparationKeys
from sfumato.table.preparing.prepared import prepared

if TYPE_CHECKING:
    from sfumato.mechanisms.population import Population

Propose = Callable[[Rows, Any, Memory, Progress | None], RowsProposal]
_WAYS: Mapping[Needs, Propose] = {
    Needs.COUNTS: propose_counted,
    Needs.COUNTS_OR_SAMPLE: propose_fitted,
    Needs.SAMPLE: propose_sampled,
    Needs.FEATURE_COUNTS: propose_features,
}
"""How a release comes of what a mechanism needs, where that is less than all rows."""


def mechanisms_without_all_rows() -> list[str]:
    """Name the mechanisms that need counts or a sample only, and so release tables of any size."""
    return [name for name, info in registered_mechanisms().items() if info.needs in _WAYS]


def why_written_whole(target: Path | None, *, escapes_formulas: bool = False) -> str:
    """Say what of a file needs all rows in memory while it is written, a name and a verb; empty where nothing does."""
    if escapes_formulas:
        return "escaped formulas need"
    output_format = BLOCK_FORMATS[0] if target is None else writable_format_of(target)
    return "" if output_format in BLOCK_FORMATS else f"a file of the format {output_format} needs"


def prepared_rows(
    rows: Rows,
    preparations: Sequence[Preparation],
    memory: Memory,
    keys: PreparationKeys | None = None,
    progress: Progress | None = None,
) -> AnyTable | Rows:
    """Prepare columns where the rows are; what follows from a key is done row by row, and takes them into memory."""
    if not any(asked.is_keyed for asked in preparations):
        return rows.prepared(preparations)
    instead = "leave these preparations out"
    table = rows.in_memory(memory.n_bytes, "pseudonyms and shifted dates need", instead, progress)
    return prepared(table, preparations, keys)


def _instead() -> str:
    return f"choose what needs counts or a sample only: {', '.join(mechanisms_without_all_rows())}"


def check_may_be_counted(mechanism: Mechanism) -> None:
    """Refuse differential privacy for rows that are not in memory, before anything is read."""
    if is_differentially_private(mechanism):
        raise DIFFERENTIAL_PRIVACY.refusal("the mechanism", f"got {name_of(mechanism)}")


def check_mechanism_fits(mechanism: object, n_rows: int, n_columns: int, memory: Memory, place: str) -> None:
    """Refuse a mechanism that needs all rows of a table that does not fit, by its size alone."""
    if needs_of(mechanism) not in _WAYS:
        why = f"{name_of(mechanism)} needs"
        check_fits_in_memory(n_rows, n_columns, memory.n_bytes, why, _instead(), place)


def make_release(
    table: AnyTable, mechanism: Mechanism, *, key: ReleaseKey | None = None, progress: Progress | None = None
) -> Release:
    """Let a mechanism propose a release and have it audited against the original; nothing is written.

    For ``key`` see :func:`propose`.

    Raises
    ------
    PrivacyNotAchievableError
        If the mechanism cannot keep its promise on this table.
    AuditFailedError
        If the audit does not confirm the proposal.
    """
    return _in_memory(table, mechanism, key, progress).audited_in_memory()


def propose_release(
    table: AnyTable, mechanism: Mechanism, *, key: ReleaseKey | None = None, progress: Progress | None = None
) -> Release:
    """Let a mechanism propose a release of a table in memory, see :func:`propose`."""
    return _in_memory(table, mechanism, key, progress).release


def propose(
    original: AnyTable | Rows,
    mechanism: Mechanism,
    memory: Memory = DEFAULT_MEMORY,
    *,
    key: ReleaseKey | None = None,
    all_rows_for: str = "",
    progress: Progress | None = None,
) -> Proposal:
    """Let a mechanism propose a release that nobody has audited yet: for those who publish it at once.

    :func:`sfumato.publishing.publish.publish` audits the bytes that will be on disk, and states the levels that this
    audit found. An audit of the rows in memory before would find nothing that it does not.

    Rows that are not in memory are counted or sampled where they are. What needs all of them takes them into memory.

    Parameters
    ----------
    memory : Memory
        For rows that are not in memory.
    key : ReleaseKey or None
        Of this release: the manifest commits to the original by it, and choices that hide something follow from it.
        Without one there is no commitment, and such choices are drawn from the system's random numbers.
    all_rows_for : str
        What else needs all rows in memory, for a message; empty where nothing does.

    Raises
    ------
    SchemaError
        If there is no quasi-identifier, or a column that may name people would be released and nobody has confirmed it.
    TooLargeError
        If all rows are needed in memory and do not fit.
    InputError
        If what the mechanism needs does not fit.
    PrivacyNotAchievableError
        If the mechanism cannot keep its promise on this table.
    """
    if not isinstance(original, Rows):
        return _in_memory(original, mechanism, key, progress)
    check_may_be_counted(mechanism)
    check_digits(mechanism)
    chosen = _for_table(mechanism, original.outline)
    check_takes_both_roles(original.schema, chosen)
    check_text_columns(original.outline, columns_with_hierarchies(chosen))
    n_persons = n_repeating_persons(original, memory.n_bytes)
    if original.schema.person is not None and n_persons is not None:
        original = replace(original, n_persons=n_persons)
    why = all_rows_for or why_all_rows(chosen, original) or _why_of_form(mechanism)
    give_back()
    if why:
        table = original.in_memory(memory.n_bytes, why, _instead(), progress)
        return replace(_in_memory(table, mechanism, key, progress), read_from=original)
    try:
        found = _WAYS[needs_of(chosen)](original, chosen, memory, progress)
    except PrivacyNotAchievableError as exc:
        explained = mechanism.explained(exc, original.outline) if isinstance(mechanism, Mechanism) else exc
        raise explained from exc.__cause__
    return replace(found, release=_committed(found.release, original.source, key))


def _why_of_form(mechanism: object) -> str:
    """Say the same of the form that was asked for, which a choice among mechanisms keeps to itself."""
    if (cells := getattr(mechanism, "cells", "ranges")) != "ranges":
        return f"cells that are {cells} need"
    if getattr(mechanism, "population", None) is not None:
        return "a comparison with a population table needs"
    return ""


def why_all_rows(mechanism: object, original: Rows) -> str:
    """Say why a release needs all rows in memory, a name and a verb; empty where counts or a sample are enough.

    ``original.n_persons`` says whether some persons have several rows.
    """
    if needs_of(mechanism) not in _WAYS:
        return f"{name_of(mechanism)} needs"
    if original.n_persons is not None and not getattr(mechanism, "counts_crowds", False):
        return f"{name_of(mechanism)}, which counts persons by their rows, needs"
    if original.n_persons is not None and (names := list(_not_by_persons(mechanism))):
        return f"{', '.join(names)} of {name_of(mechanism)}, counted by persons, need"
    return mechanism.why_all_rows(original.schema) if isinstance(mechanism, Mechanism) else ""


def _not_by_persons(mechanism: object) -> Iterator[str]:
    """Name parameters that ask for something of which only rows are counted on distinct rows."""
    for own in getattr(mechanism, "privacy", ()):
        if isinstance(own, AboutValues) and not follows_from_two_persons(own):
            yield own.level.name
    if getattr(mechanism, "slicing", False):
        yield "slicing"
    if getattr(mechanism, "guide", "label") != "label":
        yield "guide"


def _for_table(mechanism: object, outline: Table) -> object:
    """Give the mechanism that a choice among several makes for a table, of which each column is known by itself."""
    return mechanism.for_table(outline) if isinstance(mechanism, Mechanism) else mechanism


def _in_memory(table: AnyTable, mechanism: Mechanism, key: ReleaseKey | None, progress: Progress | None) -> InMemory:
    """Let a mechanism propose a release of a table in memory."""
    if not isinstance(table, Table | BinaryTable):
        raise no_table("table", table)
    check_digits(mechanism)
    check_counts_persons(table, mechanism)
    chosen = mechanism.for_table(table) if hasattr(mechanism, "for_table") else mechanism
    check_takes_both_roles(table.coded_part.schema, chosen)
    done = table.coded_part.prepared
    if not is_differentially_private(mechanism):  # whose refusals must not depend on the rows either
        if not getattr(mechanism, "roles_are_agreed", False):
            check_text_columns(table, columns_with_hierarchies(mechanism))
    elif done is not None:
        refuse_preparation(name_of(mechanism))
    if key is not None and getattr(mechanism, "hides_choices", False):
        mechanism = mechanism.keyed(key.choices)
    release = _committed(_released(mechanism, table, progress), table.source, key)
    release = release if done is None else replace(release, preparation_keys=done.keys)
    return InMemory(_about_population(release, getattr(mechanism, "population", None), key), table)


def _released(mechanism: Mechanism, table: AnyTable, progress: Progress | None) -> Release:
    """Let a mechanism propose a release, with cells of the form that it was asked for."""
    proposed = mechanism.release(table, progress=progress)
    if getattr(mechanism, "cells", "ranges") == "ranges":
        return proposed
    from sfumato.mechanisms.drop_in.form import in_asked_form  # takes recoders with it

    return in_asked_form(mechanism, table, proposed)


def _about_population(release: Release, population: Population | None, key: ReleaseKey | None) -> Release:
    """Keep the population for the audit, and let promises about it commit to it where the release has a key."""
    if population is None:
        return release
    if key is not None and release.audit_key is not None and population.sha256:
        register = {"register": key.commitment_to_population(population.sha256)}
        kinds = {promise.kind for promise in release.manifest.promised() if isinstance(promise, AboutPopulation)}
        entries = [{**e, **register} if e["kind"] in kinds else e for e in release.manifest.guarantees]
        release = release.with_manifest(guarantees=tuple(entries))
    return replace(release, population=population)


def refuse_preparation(mechanism: str) -> None:
    """Refuse to prepare columns for differential privacy, whose refusals must not depend on a cell.

    Raises
    ------
    InvalidParameterError
        Always.
    """
    hint = "leave the preparations out: the mechanism bounds and groups the values that it counts itself"
    allowed = f"left out for {mechanism}, where a cell that cannot be prepared would show in a refusal"
    raise InvalidParameterError("preparations of columns", "got some", allowed=allowed, hint=hint)


def _committed(release: Release, source: Source | None, key: ReleaseKey | None) -> Release:
    """Let a manifest commit to the original by the key of its release, where it says anything of the original."""
    stated = release.manifest.input
    if key is None or stated is None or source is None or not source.sha256:
        return release
    named = release.with_manifest(input={**stated, "commitment": key.commitment(source.sha256)})
    return replace(named, audit_key=key.secret)


def check_counts_persons(table: AnyTable, mechanism: Mechanism) -> None:
    """Refuse a mechanism that counts rows where a column tells persons apart and some have several rows.

    Raises
    ------
    InvalidParameterError
        Five rows of one person would pass for five people.
    SchemaError
        For differential privacy, which is about one row: whether a person has several is not looked at.
    """
    plain = table.coded_part
    if is_differentially_private(mechanism):
        if plain.schema.person is not None:
            problem = f"tells persons apart, and {name_of(mechanism)} bounds what one row can change"
            hint = "keep one row of each person in the table, and give the column the role identifier"
            raise SchemaError(problem, column=plain.schema.person, hint=hint)
        return
    if person_codes(table) is None:
        return
    chooses = getattr(mechanism, "for_table", None)
    asked = getattr(chooses(table) if chooses else mechanism, "why_rows_count", None)
    why = asked() if asked else "counts rows"  # an object of another package may know nothing of persons
    if not why:
        return
    able = [name for name, info in registered_mechanisms().items() if info.build.counts_persons]
    problem = f"some persons ('{plain.schema.person}') have several rows, and {name_of(mechanism)} {why}"
    hint = "name one of these, or keep one row of each person"
    allowed, remedy = f"one that counts persons ({', '.join(able)})", ("mechanism", "one_row_per_person")
    raise InvalidParameterError("the mechanism", problem, allowed=allowed, hint=hint, remedy=remedy)
