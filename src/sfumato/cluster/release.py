"""A release that a cluster writes and audits: part files in a folder that appears when the audit has confirmed it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.atomic import PendingFile, explained_writing
from sfumato.audit.checks import AuditReport
from sfumato.audit.cluster import audit_cluster
from sfumato.audit.columns import Declared
from sfumato.cluster.folders import PendingFolder, check_folder_targets, name_both, pending_folder
from sfumato.cluster.frames import Session, exact_settings, url_of
from sfumato.cluster.inputs import files_of
from sfumato.cluster.proposal import ClusterProposal, check_able_on_cluster, propose_on_cluster
from sfumato.cluster.table import ClusterTable, open_cluster
from sfumato.cluster.watching import watching
from sfumato.contract import Progress
from sfumato.errors import ClusterError, InputError
from sfumato.large.api import with_roles
from sfumato.large.memory import Memory, give_back
from sfumato.manifest import Manifest
from sfumato.publishing import Published, manifest_path_for
from sfumato.reaudit import read_manifest, released_by
from sfumato.schema import Role, Schema
from sfumato.table.read import DEFAULT_OPTIONS, ReadOptions

__all__ = ["ClusterProposal", "audit_cluster_file", "propose_on_cluster", "publish_on_cluster", "release_frame"]


def publish_on_cluster(
    proposal: ClusterProposal,
    path: str | Path,
    memory: Memory,
    *,
    force: bool = False,
    progress: Progress | None = None,
) -> Published:
    """Have a cluster write a release as Parquet files, audit these very files, and let the folder appear.

    The folder and its manifest appear only when the audit has confirmed them, the manifest first. A failure or an
    interruption leaves neither, and with ``force`` what stood there before; only a killed driver can leave a hidden
    folder, which then holds it. The order of the rows is not promised.

    Parameters
    ----------
    path : path
        A folder to be made, whose name ends in ``.parquet``; driver and workers must see it under the same path.

    Raises
    ------
    OutputError
        If the path exists (without ``force``), cannot be written, or has to do with the input.
    AuditFailedError
        If the audit does not confirm the release.
    InputError
        If the input changed meanwhile.
    ClusterError
        If the cluster cannot do it.
    """
    original, target = proposal.original, Path(path)
    manifest_target, inputs = manifest_path_for(target), _inputs(original)
    check_folder_targets(target, manifest_target, inputs, force=force)
    with pending_folder(target) as folder, PendingFile(manifest_target) as manifest_file:
        _tell(progress, proposal, "written")
        _write(proposal, folder)
        give_back()
        _tell(progress, proposal, "audited")
        output = {**proposal.release.manifest.output, "name": target.name, "format": "parquet"}
        manifest = proposal.release.with_manifest(output=output).manifest
        released = _open_released(original.session, folder.rows, manifest, memory)
        written = proposal.release.with_manifest(output=output | {"sha256": _sha256(released)})
        report = _audited(released, written.manifest, folder.rows, memory, original)
        report.raise_if_failed()
        with explained_writing(manifest_target):
            manifest_file.file.write(written.manifest.to_json().encode())
        manifest_file.complete()
        name_both(folder, manifest_file, inputs, force=force)
    return Published(replace(written, table=released.outline), report, target, manifest_target)


def release_frame(
    frame: Any,
    mechanism: object,
    path: str | Path,
    *,
    schema: Schema | None = None,
    roles: Mapping[str, Role | str] | None = None,
    memory: str = "1GB",
    options: ReadOptions = DEFAULT_OPTIONS,
    force: bool = False,
    progress: Progress | None = None,
) -> Published:
    """Release a Spark DataFrame on the cluster of its session: :func:`sfumato.release_large` for such a frame."""
    allowed, target = Memory.of(memory), Path(path)
    check_able_on_cluster(mechanism)
    check_folder_targets(target, manifest_path_for(target), files_of(frame), force=force)
    table = open_cluster(frame.sparkSession, frame, memory=allowed.n_bytes, schema=schema, options=options)
    described = table.with_schema(with_roles(table.schema, roles))
    proposal = propose_on_cluster(described, mechanism, allowed, progress=progress)
    return publish_on_cluster(proposal, target, allowed, force=force, progress=progress)


def audit_cluster_file(
    session: Session,
    path: str | Path,
    manifest_path: str | Path,
    memory: Memory,
    *,
    original: ClusterTable | None = None,
    check_roles: Declared = False,
) -> AuditReport:
    """Have a cluster audit a release that stands on disk, as :func:`sfumato.reaudit.audit_published` does in memory."""
    manifest, entries = read_manifest(Path(manifest_path))
    released = _open_released(session, path, manifest, memory)
    with watching(session), exact_settings(session):
        return audit_cluster(
            released,
            entries,
            most_cells=memory.most_cells(len(released.schema)),
            original=original,
            released_sha256=_sha256(released),
            file=path,
            original_sha256=_sha256(original),
            check_roles=check_roles,
        )


def _inputs(original: ClusterTable) -> list[Path]:
    """Files or folders that hold the rows."""
    return files_of(original.rows([])) if original.source is None else [Path(original.source.name)]


def _write(proposal: ClusterProposal, folder: PendingFolder) -> None:
    original = proposal.original
    try:
        with watching(original.session), exact_settings(original.session):
            proposal.frame().write.parquet(url_of(folder.rows), mode="error")
    except (ClusterError, InputError):
        original.ensure_unchanged()  # says more than what the cluster stumbled over
        raise
    folder.complete()


def _audited(
    released: ClusterTable, manifest: Manifest, folder: Path, memory: Memory, original: ClusterTable
) -> AuditReport:
    with watching(original.session), exact_settings(original.session):
        return audit_cluster(
            released,
            manifest.to_dict(),
            most_cells=memory.most_cells(len(released.schema)),
            original=original,
            released_sha256=manifest.output["sha256"],
            file=folder,
            check_roles=True,
        )


def _open_released(session: Session, path: str | Path, manifest: Manifest, memory: Memory) -> ClusterTable:
    """Open a released folder or file the way its manifest describes it."""
    return released_by(
        manifest,
        lambda schema, options: open_cluster(session, path, memory=memory.n_bytes, schema=schema, options=options),
    )


def _sha256(table: ClusterTable | None) -> str | None:
    return table.source.sha256 if table is not None and table.source is not None else None


def _tell(progress: Progress | None, proposal: ClusterProposal, what: str) -> None:
    if progress is not None:
        n_rows = int(proposal.release.manifest.output["rows"])
        progress(0, n_rows, f"{n_rows:,} rows are {what} by the cluster")
