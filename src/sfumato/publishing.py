"""The one place where a mechanism's proposal is audited and becomes a file, or is refused."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from sfumato.atomic import PendingFile, check_writable, explained_writing, remove
from sfumato.audit.verify import AuditReport, audit_release, measured_level
from sfumato.contract import Mechanism, Progress, Release
from sfumato.errors import InputError, ManifestError, OutputError, SchemaError
from sfumato.manifest import AnyTable, Manifest
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Source
from sfumato.table.read import ReadOptions, format_of, read_table
from sfumato.table.write import write_table


@dataclass(frozen=True)
class Published:
    """A release that stands on disk, with the audit that confirmed it."""

    release: Release
    audit: AuditReport
    table_path: Path
    manifest_path: Path


def manifest_path_for(table_path: Path) -> Path:
    """Where a release's manifest stands: beside the table, under its full name.

    Examples
    --------
    >>> manifest_path_for(Path("out/release.csv")).as_posix()
    'out/release.csv.manifest.json'
    """
    return table_path.with_name(table_path.name + ".manifest.json")


def make_release(table: AnyTable, mechanism: Mechanism, *, progress: Progress | None = None) -> Release:
    """Let a mechanism propose a release and have it audited against the original; nothing is written.

    Raises
    ------
    PrivacyNotAchievableError
        If the mechanism cannot keep its promise on this table.
    AuditFailedError
        If the audit does not confirm the proposal.
    """
    proposed = mechanism.release(table, progress=progress)
    promised = proposed.manifest.promised()
    levels = [measured_level(guarantee, proposed.table) for guarantee in promised]
    entries = zip(proposed.manifest.guarantees, levels, strict=True)
    release = proposed.with_manifest(guarantees=tuple({**entry, "audited": level} for entry, level in entries))
    audit_release(release.table, release.manifest.to_dict(), original=table, check_roles=True).raise_if_failed()
    return release


def publish(
    release: Release,
    path: str | Path,
    *,
    original: AnyTable,
    force: bool = False,
    manifest_path: Path | None = None,
) -> Published:
    """Write a release and its manifest, after auditing the very bytes that will stand on disk.

    The files appear only when the audit has confirmed them, the manifest first, so that a table never stands without
    its manifest. A kill at any moment leaves no table or a complete, auditable release.
    """
    target = Path(path)
    manifest_target = manifest_path or manifest_path_for(target)
    check_targets(target, manifest_target, original.source, force=force)
    with PendingFile(target) as table_file, PendingFile(manifest_target) as manifest_file:
        output_format = format_of(target)
        with explained_writing(target):
            write_table(release.table, table_file.file, output_format)
        table_file.complete()
        digest = _sha256(table_file.file)
        output = {**release.manifest.output, "name": target.name, "sha256": digest, "format": output_format}
        written = release.with_manifest(output=output)
        reread = read_released(table_file.readable_path, written.manifest)
        entries = written.manifest.to_dict()
        report = audit_release(reread, entries, original=original, released_sha256=digest, check_roles=True)
        report.raise_if_failed()
        with explained_writing(manifest_target):
            manifest_file.file.write(written.manifest.to_json().encode())
        manifest_file.complete()
        remove(target)
        remove(manifest_target)
        manifest_file.appear()
        table_file.appear()
    return Published(written, report, target, manifest_target)


def audit_published(table_path: Path, manifest_path: Path, *, original: AnyTable | None = None) -> AuditReport:
    """Audit a release that stands on disk, with all hashes."""
    manifest, entries = read_manifest(manifest_path)
    released = read_released(table_path, manifest)
    return audit_release(
        released,
        entries,
        original=original,
        released_sha256=released.source.sha256 if released.source else None,
        original_sha256=original.source.sha256 if original is not None and original.source else None,
    )


def read_manifest(path: Path) -> tuple[Manifest, dict[str, Any]]:
    """Read a manifest, as an object and as the plain entries that the audit judges."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "not a path of UTF-8 text"
        raise ManifestError(f"cannot be read ({reason})", path=path) from None
    return Manifest.from_json(text, path=str(path)), json.loads(text)


def read_released(path: Path, manifest: Manifest) -> AnyTable:
    """Read a released file the way its manifest describes it: no column and no value is guessed."""
    try:
        output_format = str(manifest.output["format"])
        columns = [
            Column(c["name"], Role(c["role"]), Kind(c["kind"]), tuple(c["domain"]) if c.get("domain") else None)
            for c in manifest.output["columns"]
        ]
    except (KeyError, TypeError, ValueError):
        raise ManifestError("does not describe the released columns") from None
    tokens = manifest.missing_tokens
    content_format = output_format.removesuffix(".gz")
    delimiter = {"csv": ",", "tsv": "\t"}.get(content_format)
    options = ReadOptions(format=content_format, encoding="utf-8", delimiter=delimiter, missing=tokens)
    try:
        return read_table(path, schema=Schema.of(columns, tokens), options=options)
    except (SchemaError, InputError):
        return read_table(path, options=options)  # not the table described: the audit says in which way


def check_targets(target: Path, manifest_target: Path, source: Source | None, *, force: bool) -> None:
    """Refuse output paths that exist (without ``force``), are the input, or are each other."""
    for path in (target, manifest_target):
        if source and path.exists() and Path(source.name).exists() and path.samefile(source.name):
            problem = "is the input, which is never written to"
            raise OutputError(problem, path=path, hint="choose another output path")
    if target == manifest_target:
        problem = "is named as the table and as the manifest"
        raise OutputError(problem, path=target, hint="choose two paths")
    check_writable(target, force=force)
    # A manifest without its table is what a kill between the two names leaves: it is no release and may be replaced.
    check_writable(manifest_target, force=force or (not target.exists() and _is_manifest(manifest_target)))


def _is_manifest(path: Path) -> bool:
    try:
        return b'"sfumato_manifest"' in path.read_bytes()[:200]
    except OSError:
        return False


def _sha256(file: BinaryIO) -> str:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # opened for reading as well
