"""A release of a file that is larger than memory: found without all rows at hand, written in one pass over the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from sfumato.audit.auditor import AuditorHas
from sfumato.audit.checks import AuditReport
from sfumato.audit.in_blocks import audit_rows, n_unique_in_blocks
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.guarantees import AboutValues, LDiversity
from sfumato.manifest import Manifest, stating_unique_rows
from sfumato.mechanisms.base import (
    Mechanism,
    Needs,
    check_digits,
    check_takes_both_roles,
    columns_with_hierarchies,
    name_of,
    needs_of,
)
from sfumato.mechanisms.registry import registered_mechanisms
from sfumato.mechanisms.requested import follows_from_two_persons
from sfumato.progress import Progress, in_rows
from sfumato.publishing.manifest_file import manifest_path_for
from sfumato.publishing.out_of_core.from_base import propose_counted
from sfumato.publishing.out_of_core.proposal import Proposal, propose_features
from sfumato.publishing.out_of_core.sampled import propose_fitted, propose_sampled
from sfumato.publishing.publish import Published, Recorded, check_targets, staged_files, states_levels
from sfumato.publishing.reaudit import open_released
from sfumato.rows.memory_limit import Memory, give_back
from sfumato.rows.out_of_core import LargeTable
from sfumato.rows.persons import n_repeating_persons
from sfumato.table.coding import Table
from sfumato.table.identifiers.text_columns import check_text_columns
from sfumato.table.io.formats import writable_format_of
from sfumato.table.io.write import BLOCK_FORMATS
from sfumato.table.weighted import OutlinedTable

Propose = Callable[[OutlinedTable, Any, Memory, Progress | None], Proposal]
_WAYS: Mapping[Needs, Propose] = {
    Needs.COUNTS: propose_counted,
    Needs.COUNTS_OR_SAMPLE: propose_fitted,
    Needs.SAMPLE: propose_sampled,
    Needs.FEATURE_COUNTS: propose_features,
}
"""How a release comes of what a mechanism needs, where that is less than all rows."""


def able_mechanisms() -> list[str]:
    """Names of the mechanisms that can release files larger than memory."""
    return [name for name, info in registered_mechanisms().items() if info.needs in _WAYS]


_MOST_DISTINCT = 2
OUT_OF_CORE, ON_A_CLUSTER = "out of core", "on a cluster"


def check_able(mechanism: object, where: str = OUT_OF_CORE) -> Propose:
    """Refuse a mechanism that needs all rows in memory, and name those that do not; gives the way to a release."""
    way = _WAYS.get(needs_of(mechanism))
    cells = getattr(mechanism, "cells", "ranges")
    if way is not None and cells != "ranges":
        hint, allowed = "read the table into memory, or release ranges", f"ranges for a table that is {where}"
        raise InvalidParameterError("cells", f"got {cells}", allowed=allowed, hint=hint)
    if way is not None:
        return way
    problem = f"but {name_of(mechanism)} needs the whole table in memory"
    hint = "choose one of these, or read the table into memory"
    allowed = f"one of {', '.join(able_mechanisms())}"
    raise InvalidParameterError(f"{where} the mechanism", problem, allowed=allowed, hint=hint, remedy=("mechanism",))


def propose(
    original: OutlinedTable, mechanism: object, memory: Memory, *, progress: Progress | None = None
) -> Proposal:
    """Find out what a mechanism releases of a table that is not in memory, wherever its rows are.

    Raises
    ------
    InvalidParameterError
        If the mechanism needs all rows in memory.
    SchemaError
        If there is no quasi-identifier, or a column that may name people would be released and nobody has confirmed it.
    InputError
        If what the mechanism needs does not fit.
    PrivacyNotAchievableError
        If the mechanism cannot keep its promise.
    """
    where = OUT_OF_CORE if isinstance(original, LargeTable) else ON_A_CLUSTER
    check_able(mechanism, where)
    check_digits(mechanism)
    asked, mechanism = mechanism, _for_table(mechanism, original.outline)
    way = check_able(mechanism, where)
    check_takes_both_roles(original.schema, mechanism)
    check_text_columns(original.outline, columns_with_hierarchies(mechanism))
    n_persons = n_repeating_persons(original, memory.n_bytes)
    if original.schema.person is not None and n_persons is not None:
        check_counts_persons_away(mechanism, original.schema.person, where)
        original = replace(original, n_persons=n_persons)
    if isinstance(mechanism, Mechanism):
        mechanism.check_counts_are_enough(original.schema)
    give_back()
    try:
        return way(original, mechanism, memory, progress)
    except PrivacyNotAchievableError as exc:
        raise (asked.explained(exc, original.outline) if isinstance(asked, Mechanism) else exc) from exc.__cause__


def _for_table(mechanism: object, outline: Table) -> object:
    """Give the mechanism that a choice among several makes for a table, of which each column is known by itself."""
    return mechanism.for_table(outline) if isinstance(mechanism, Mechanism) else mechanism


def check_counts_persons_away(mechanism: object, person: str, where: str = OUT_OF_CORE) -> None:
    """Refuse what does not count persons where some have several rows and the table is not in memory.

    Raises
    ------
    InvalidParameterError
        If the mechanism counts rows there, or it is asked for something of which persons are not counted there.
    """
    found = registered_mechanisms()
    able = [name for name, info in found.items() if info.build.counts_crowds]
    if not getattr(mechanism, "counts_crowds", False):
        problem = f"some persons ('{person}') have several rows, and {where} {name_of(mechanism)} counts rows"
        hint = "name one of these, or keep one row of each person"
        allowed, remedy = f"one that counts persons ({', '.join(able)})", ("mechanism", "one_row_per_person")
        raise InvalidParameterError("the mechanism", problem, allowed=allowed, hint=hint, remedy=remedy)
    for name, allowed in _not_by_persons(mechanism):
        problem, hint = "got another, and some persons have several rows", "keep one row of each person"
        raise InvalidParameterError(
            name, problem, allowed=f"{allowed} {where}", hint=hint, remedy=("one_row_per_person",)
        )


def _not_by_persons(mechanism: object) -> Iterator[tuple[str, str]]:
    """Name parameters that ask for something of which rows alone are counted, and what they may be."""
    for own in getattr(mechanism, "privacy", ()):
        if isinstance(own, AboutValues) and not follows_from_two_persons(own):
            most = f"distinct and at most {_MOST_DISTINCT}, which k persons in a class bring along,"
            yield own.level.name, most if isinstance(own, LDiversity) else "left out"
    if getattr(mechanism, "slicing", False):
        yield "slicing", "false"
    if getattr(mechanism, "guide", "label") != "label":
        yield "guide", "label"


def publish_large(
    proposal: Proposal,
    path: str | Path,
    memory: Memory,
    *,
    force: bool = False,
    recorded: Recorded | None = None,
    progress: Progress | None = None,
) -> Published:
    """Write a release in one pass over the original, audit the very bytes, and let the files appear.

    A cluster writes a folder of Parquet files, see :func:`sfumato.publishing.spark.staged_on_cluster`.

    As :func:`sfumato.publishing.publish.publish`, with the rows never held in memory: the table of the release that is
    returned describes each column by itself, with its distinct values and their counts.
    """
    with staged_large(proposal, path, memory, force=force, recorded=recorded, progress=progress) as appear:
        return appear()


@contextmanager
def staged_large(
    proposal: Proposal,
    path: str | Path,
    memory: Memory,
    *,
    force: bool = False,
    recorded: Recorded | None = None,
    progress: Progress | None = None,
) -> Iterator[Callable[[], Published]]:
    """:func:`publish_large` in two steps, as ``publishing.publish.staged``, for those who wait in between."""
    if not isinstance(proposal.original, LargeTable):
        from sfumato.publishing.spark import staged_on_cluster  # Spark is there only where somebody has a cluster

        with staged_on_cluster(proposal, path, memory, force=force, recorded=recorded, progress=progress) as appear:
            yield appear
        return
    original = proposal.large
    check_output_format(path)

    def write(file: BinaryIO, output_format: str) -> None:
        proposal.write(file, output_format, memory, in_rows(progress, original.n_rows, "rows written"))

    opened: list[LargeTable] = []

    def auditing(manifest: Manifest) -> Progress | None:
        return in_rows(progress, int(manifest.output["rows"]), "rows audited")

    def measure(written: Path, manifest: Manifest) -> Mapping[str, Any]:
        give_back()
        released = open_released(written, manifest, memory.n_bytes, progress=auditing(manifest))
        opened.append(released)
        n_unique = n_unique_in_blocks(released, memory.n_bytes, auditing(manifest))
        return stating_unique_rows(manifest.evidence, n_unique, released.n_rows)

    def audit(written: Path, manifest: Manifest, digest: str) -> AuditReport:
        return audit_rows(
            opened[0],
            manifest.to_dict(),
            AuditorHas(
                original=original, original_sha256=original.source.sha256, key=proposal.release.audit_key, roles=True
            ),
            memory=memory.n_bytes,
            progress=auditing(manifest),
            released_sha256=digest,
            file=written,
            levels_are_stated=states_levels(manifest),
        )

    with staged_files(
        proposal.release, path, original.source, write, audit, force=force, recorded=recorded, measure=measure
    ) as appear:

        def appear_described() -> Published:
            published = appear()
            return replace(published, release=replace(published.release, table=opened[0].outline))

        yield appear_described


def check_output_format(path: str | Path) -> None:
    """Refuse an output of a format that is not written row by row."""
    if writable_format_of(path) not in BLOCK_FORMATS:
        allowed = f"a file in a format that is written row by row ({', '.join(BLOCK_FORMATS)})"
        got = f"got {Path(path).name!r}"
        raise InvalidParameterError("output of a table that is read in blocks", got, allowed=allowed)


def check_large_targets(original: OutlinedTable, path: str | Path, *, force: bool) -> None:
    """Refuse output paths as :func:`publish_large` does, before anything is counted."""
    target = Path(path)
    if isinstance(original, LargeTable):
        check_output_format(target)
        check_targets(target, manifest_path_for(target), original.source, force=force)
        return
    from sfumato.publishing.spark import as_on_cluster, check_folder_targets, inputs_of

    check_folder_targets(target, manifest_path_for(target), inputs_of(as_on_cluster(original)), force=force)
