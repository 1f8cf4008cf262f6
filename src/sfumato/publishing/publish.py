"""The one place where a mechanism's proposal is audited and becomes a file, or is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from sfumato.atomic import PendingFile, alone_in, appear_together, check_writable, explained_writing
from sfumato.audit.auditor import AuditorHas, PublisherKnows
from sfumato.audit.verify import AuditReport, audit_release, with_stated_levels
from sfumato.errors import InvalidParameterError, OutputError, SchemaError
from sfumato.guarantees import AboutPopulation
from sfumato.manifest import AnyTable, Manifest, stated_labels, stated_versions, with_audited
from sfumato.mechanisms.base import (
    Mechanism,
    Release,
    check_digits,
    check_takes_both_roles,
    columns_with_hierarchies,
    name_of,
)
from sfumato.mechanisms.registry import is_differentially_private, registered_mechanisms
from sfumato.progress import Progress
from sfumato.project.keys import ReleaseKey
from sfumato.publishing.manifest_file import manifest_path_for
from sfumato.publishing.reaudit import read_as_written
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import Source, Table
from sfumato.table.identifiers.text_columns import check_text_columns
from sfumato.table.io.formats import STATISTICS, writable_format_of
from sfumato.table.io.read import ReadOptions, read_table
from sfumato.table.io.statistics.read import require_pyreadstat
from sfumato.table.io.statistics.write import written_labels
from sfumato.table.io.write import write_table
from sfumato.table.labels import ColumnLabels
from sfumato.table.persons import person_codes
from sfumato.table.roles import redescribed

if TYPE_CHECKING:
    from sfumato.mechanisms.population import Population

Recorded = Callable[[Path, Manifest], AbstractContextManager[Any]]
"""Given written bytes and their manifest, what is entered while the files get their names."""


@dataclass(frozen=True)
class Published:
    """A release that is on disk, with the audit that confirmed it."""

    release: Release
    audit: AuditReport
    table_path: Path
    manifest_path: Path


def make_release(
    table: AnyTable, mechanism: Mechanism, *, key: ReleaseKey | None = None, progress: Progress | None = None
) -> Release:
    """Let a mechanism propose a release and have it audited against the original; nothing is written.

    For ``key`` see :func:`propose_release`.

    Raises
    ------
    PrivacyNotAchievableError
        If the mechanism cannot keep its promise on this table.
    AuditFailedError
        If the audit does not confirm the proposal.
    """
    proposed = propose_release(table, mechanism, key=key, progress=progress)
    entries = proposed.manifest.to_dict()
    report = audit_release(
        proposed.table,
        entries,
        _known_to_publisher(proposed, table),
        publisher=PublisherKnows(
            levels_are_stated=False, places=np.arange(proposed.table.n_rows), own_rows=proposed.kept_rows
        ),
    )
    report.raise_if_failed()
    return proposed.with_manifest(guarantees=with_audited(proposed.manifest.guarantees, report.levels))


def propose_release(
    table: AnyTable, mechanism: Mechanism, *, key: ReleaseKey | None = None, progress: Progress | None = None
) -> Release:
    """Let a mechanism propose a release that nobody has audited yet: for those who publish it at once.

    :func:`publish` audits the bytes that will stand on disk, and states the levels that this audit found. An audit of
    the rows in memory before would find nothing that it does not.

    Parameters
    ----------
    key : ReleaseKey or None
        Of this release: the manifest commits to the original by it, and choices that hide something follow from it.
        Without one there is no commitment, and such choices are drawn from the system's random numbers.

    Raises
    ------
    SchemaError
        If a column that may name people would be released and nobody has confirmed it.
    PrivacyNotAchievableError
        If the mechanism cannot keep its promise on this table.
    """
    if not isinstance(table, Table | BinaryTable):
        raise _no_table("table", table)
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
    proposed = committed(_proposal_of(mechanism, table, progress), table.source, key)
    proposed = proposed if done is None else replace(proposed, preparation_keys=done.keys)
    return _about_population(proposed, getattr(mechanism, "population", None), key)


def _proposal_of(mechanism: Mechanism, table: AnyTable, progress: Progress | None) -> Release:
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


def _audit_key(release: Release) -> bytes | None:
    """Secret by which commitments, pseudonyms and shifts are checked; without a project it is nobody else's."""
    keys = release.preparation_keys
    return release.audit_key if release.audit_key is not None or keys is None else keys.release


def _project_key(release: Release) -> bytes | None:
    return None if release.preparation_keys is None else release.preparation_keys.project


def _population_of(release: Release) -> AnyTable | None:
    return None if release.population is None else release.population.table


def committed(release: Release, source: Source | None, key: ReleaseKey | None) -> Release:
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


def publish(
    release: Release,
    path: str | Path,
    *,
    original: AnyTable | Any,
    force: bool = False,
    manifest_path: str | Path | None = None,
    recorded: Recorded | None = None,
) -> Published:
    """Write a release and its manifest, after auditing the very bytes that will be on disk.

    ``original`` is what the release was made of: a table, or the frame or path that :func:`sfumato.release` was given.

    The files appear only when the audit has confirmed them, the manifest first, so that a table never stands without
    its manifest. A kill at any moment leaves no table or a complete, auditable release. With ``force`` it leaves the
    old release, the new one, or in the instant between the two names the old table with the new manifest, which the
    audit refuses; publish once more then.

    ``recorded`` gives, for the written bytes and their manifest, what is entered while the files get their names: it
    keeps the release in a ledger, and takes that back if they do not.
    """
    with staged(
        release, path, original=original, force=force, manifest_path=manifest_path, recorded=recorded
    ) as appear:
        return appear()


@contextmanager
def staged(
    release: Release,
    path: str | Path,
    *,
    original: AnyTable,
    force: bool = False,
    manifest_path: str | Path | None = None,
    recorded: Recorded | None = None,
) -> Iterator[Callable[[], Published]]:
    """Write a release into files without a name, audit these very bytes, and hand out what names them.

    :func:`publish` in two steps, for those who wait for others in between. Leaving without calling what was handed out
    leaves no trace, and neither does a kill where the system has files without a name.
    """
    original = _as_described(original, release)
    order = release.order(writable_format_of(path))
    is_escaped = release.manifest.output.get("escaped_formulas", False)
    if is_escaped:
        check_escapes(release.table.coded_part.schema.names(), writable_format_of(path))
    release, labels = with_labels(release, original.source, writable_format_of(path))

    def write(file: BinaryIO, output_format: str) -> None:
        write_table(release.table.take(order), file, output_format, labels, escape_formulas=is_escaped)

    def audit(written: Path, manifest: Manifest, digest: str) -> AuditReport:
        reread = read_as_written(written, manifest)
        return audit_release(
            reread,
            manifest.to_dict(),
            _known_to_publisher(release, original),
            released_sha256=digest,
            file=written,
            publisher=PublisherKnows(
                levels_are_stated=states_levels(manifest),
                places=np.argsort(order) if reread.n_rows == len(order) else None,
                own_rows=release.kept_rows,
            ),
        )

    with staged_files(
        release,
        path,
        original.source,
        write,
        audit,
        force=force,
        manifest_path=manifest_path,
        recorded=recorded,
    ) as appear:
        yield appear


def with_labels(release: Release, source: Source | None, format: str) -> tuple[Release, dict[str, ColumnLabels]]:
    """State the labels that a file of a statistics package will hold; of differentially private rows there are none."""
    if format not in STATISTICS:
        return release, {}
    manifest = release.manifest
    given = source.labels if source is not None and not manifest.is_differentially_private else {}
    hidden = {recoding["name"] for recoding in manifest.recodings if recoding["rule"] == "hierarchy"}
    labels = written_labels(release.table, format, given, hidden)
    columns = [
        {**entry, **stated_labels(labels[entry["name"]])} if entry["name"] in labels else entry
        for entry in manifest.output["columns"]
    ]
    versions = stated_versions(format, "pyreadstat")
    return release.with_manifest(output={**manifest.output, "columns": columns}, versions=versions), labels


@contextmanager
def staged_files(
    release: Release,
    path: str | Path,
    source: Source | None,
    write: Callable[[BinaryIO, str], None],
    audit: Callable[[Path, Manifest, str], AuditReport],
    *,
    force: bool = False,
    manifest_path: str | Path | None = None,
    recorded: Recorded | None = None,
    measure: Callable[[Path, Manifest], Mapping[str, Any]] | None = None,
) -> Iterator[Callable[[], Published]]:
    """Stage a release that ``write`` writes in a format, and ``audit`` judges by its path, manifest and SHA-256.

    ``measure`` gives the evidence to be stated, where some of it can be measured on the written file only.
    """
    target = Path(path)
    manifest_target = Path(manifest_path) if manifest_path else manifest_path_for(target)
    check_targets(target, manifest_target, source, force=force)
    with PendingFile(target) as table_file, PendingFile(manifest_target) as manifest_file:
        output_format = writable_format_of(target)
        with explained_writing(target):
            write(table_file.file, output_format)
        table_file.complete()
        digest = _sha256(table_file.file)
        output = {**release.manifest.output, "name": target.name, "sha256": digest, "format": output_format}
        versions = {**stated_versions(output_format), **release.manifest.versions}
        written = release.with_manifest(output=output, versions=versions)
        if measure is not None:
            written = written.with_manifest(evidence=measure(table_file.readable_path, written.manifest))
        report = audit(table_file.readable_path, written.manifest, digest)
        report.raise_if_failed()
        if not states_levels(written.manifest):
            written = written.with_manifest(guarantees=with_audited(written.manifest.guarantees, report.levels))
            report = with_stated_levels(report, written.manifest.to_dict())
            report.raise_if_failed()
        with explained_writing(manifest_target):
            manifest_file.file.write(written.manifest.to_json().encode())
        manifest_file.complete()

        def appear() -> Published:
            with alone_in(target.parent, manifest_target.parent):
                check_targets(target, manifest_target, source, force=force)
                replaced = [target, manifest_target] if force else []
                if is_left_alone(manifest_target, target):
                    replaced.append(manifest_target)
                keeping = recorded(table_file.readable_path, written.manifest) if recorded else nullcontext()
                with keeping:
                    appear_together([manifest_file, table_file], replaced)
            return Published(written, report, target, manifest_target)

        yield appear


def _sha256_of(original: AnyTable) -> str | None:
    return original.source.sha256 if original.source is not None else None


def states_levels(manifest: Manifest) -> bool:
    """Whether an audit has found the levels already that the manifest gives as audited; some have none to be found."""
    return any(entry.get("audited") is not None for entry in manifest.guarantees)


def _as_described(original: Any, release: Release) -> AnyTable:
    """Read a frame that is no table yet with the roles by which the release was made of it."""
    if isinstance(original, Table | BinaryTable):
        return original
    is_private = release.manifest.is_differentially_private  # its roles were given, and nothing was guessed
    if not release.description and not is_private:
        raise _no_table("original", original)
    table = read_table(original, options=ReadOptions(mixed_as_text=True, guess_formats=not is_private))
    if is_private:
        return table
    return redescribed(table, [guess.column for guess in release.description])


def check_escapes(names: Iterable[str], output_format: str) -> None:
    """Refuse to escape formulas where nothing has to be, or where it cannot be done.

    Raises
    ------
    InvalidParameterError
        If the format marks texts itself.
    SchemaError
        If the name of a column would be run: names are never altered.
    """
    if not output_format.startswith(("csv", "tsv")):
        allowed = "used with CSV and TSV files, which cannot mark a cell as text"
        raise InvalidParameterError("escaping of formulas", f"got {output_format}", allowed=allowed)
    for name in names:
        if name[:1] in tuple("=+-@"):
            problem = "begins with a character that spreadsheet programs take for a formula"
            raise SchemaError(problem, column=name, hint="rename the column")


def check_targets(target: Path, manifest_target: Path, source: Source | None, *, force: bool) -> None:
    """Refuse output paths that exist (without ``force``), are the input, are each other, or name no format."""
    if str(target) == "-":
        hint = "a release is two files, a table and its manifest: name one such as release.csv"
        raise InvalidParameterError("output", "got '-'", allowed="a file", hint=hint, remedy=("output",))
    writable_format_of(target)
    for path in (target, manifest_target):
        if source and path.exists() and Path(source.name).exists() and path.samefile(source.name):
            problem = "is the input, which is never overwritten"
            raise OutputError(problem, path=path, hint="choose another output path", remedy=("output",))
    if target.absolute() == manifest_target.absolute() or target.resolve() == manifest_target.resolve():
        problem = "is named as the table and as the manifest"
        raise OutputError(problem, path=target, hint="choose two paths")
    if writable_format_of(target) in STATISTICS:
        require_pyreadstat(f"{target.suffix} as output")
    check_writable(target, force=force)
    # A manifest without its table is what a kill between the two names leaves: it is no release and may be replaced.
    check_writable(manifest_target, force=force or is_left_alone(manifest_target, target))


def is_left_alone(manifest_path: Path, table_path: Path) -> bool:
    """Whether a manifest is there without its table."""
    try:
        return not table_path.exists() and b'"sfumato_manifest"' in manifest_path.read_bytes()[:200]
    except (OSError, ValueError):
        return False


def _known_to_publisher(release: Release, original: AnyTable) -> AuditorHas[AnyTable]:
    """Give the audit all that the publisher of a release has."""
    return AuditorHas(
        original=_original_for_audit(release, original),
        original_sha256=_sha256_of(original),
        key=_audit_key(release),
        project_key=_project_key(release),
        register=_population_of(release),
        roles=True,
    )


def _original_for_audit(release: Release, original: AnyTable) -> AnyTable | None:
    """Withhold the original of a differentially private release: what appears must not depend on a look at the rows."""
    return None if release.manifest.is_differentially_private else original


def _no_table(name: str, given: object) -> InvalidParameterError:
    hint = "read it with sfumato.read_table and describe it with table.with_schema"
    return InvalidParameterError(name, f"got a {type(given).__name__}", allowed="a Table or BinaryTable", hint=hint)


def _sha256(file: BinaryIO) -> str:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # opened for reading as well
