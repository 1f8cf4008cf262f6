"""The one way to a release on disk: its bytes are written, audited, and get their names, or there is nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from sfumato.atomic import PendingFile, alone_in, appear_together, check_writable, explained_writing
from sfumato.audit.verify import AuditReport, with_stated_levels
from sfumato.engines.memory_limit import Memory
from sfumato.engines.protocol import Rows
from sfumato.errors import InvalidParameterError, OutputError
from sfumato.manifest import AnyTable, Manifest, stated_versions, with_audited
from sfumato.mechanisms.base import Release
from sfumato.progress import Progress
from sfumato.publishing.manifest_file import is_left_alone, manifest_path_for
from sfumato.publishing.proposals.base import DEFAULT_MEMORY, Proposal, RowsProposal
from sfumato.publishing.proposals.in_memory import InMemory
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import Source, Table
from sfumato.table.io.formats import STATISTICS, check_format, writable_format_of
from sfumato.table.io.read import ReadOptions, read_table
from sfumato.table.io.statistics.read import require_pyreadstat
from sfumato.table.io.write import BLOCK_FORMATS
from sfumato.table.roles import redescribed

Recorded = Callable[[Path, Manifest], AbstractContextManager[Any]]
"""Given written bytes and their manifest, what is entered while the files get their names."""


@dataclass(frozen=True)
class Published:
    """A release that is on disk, with the audit that confirmed it."""

    release: Release
    audit: AuditReport
    table_path: Path
    manifest_path: Path


class Output(Protocol):
    """Where a release is written before it has a name: a file, or a folder of a cluster's part files."""

    @property
    def path(self) -> Path:
        """Where what was written can be read."""
        ...

    def write(self, proposal: Proposal, memory: Memory, progress: Progress | None) -> str | None:
        """Write the released rows; gives the SHA-256 if it is known then."""
        ...

    def appear(self, manifest: PendingFile, recording: AbstractContextManager[Any]) -> None:
        """Let the manifest and what was written get their names, the manifest first."""
        ...


def publish(
    release: Release | Proposal,
    path: str | Path,
    *,
    original: AnyTable | Any = None,
    force: bool = False,
    manifest_path: str | Path | None = None,
    recorded: Recorded | None = None,
    memory: Memory = DEFAULT_MEMORY,
    progress: Progress | None = None,
) -> Published:
    """Write a release and its manifest, after auditing the very bytes that will be on disk.

    ``original`` is what the release was made of: a table, or the frame or path that :func:`sfumato.release` was given.
    A proposal knows its own. Of rows that are not in memory the table of the release that is returned describes each
    column by itself, with its distinct values and their counts.

    The files appear only when the audit has confirmed them, the manifest first, so that a table never stands without
    its manifest. A kill at any moment leaves no table or a complete, auditable release. With ``force`` it leaves the
    old release, the new one, or in the instant between the two names the old table with the new manifest, which the
    audit refuses; publish once more then.

    ``recorded`` gives, for the written bytes and their manifest, what is entered while the files get their names: it
    keeps the release in a ledger, and takes that back if they do not.
    """
    proposal = release if isinstance(release, Proposal) else InMemory(release, as_described(original, release))
    with staged(
        proposal, path, force=force, manifest_path=manifest_path, recorded=recorded, memory=memory, progress=progress
    ) as appear:
        return appear()


@contextmanager
def staged(
    proposal: Proposal,
    path: str | Path,
    *,
    force: bool = False,
    manifest_path: str | Path | None = None,
    recorded: Recorded | None = None,
    memory: Memory = DEFAULT_MEMORY,
    progress: Progress | None = None,
) -> Iterator[Callable[[], Published]]:
    """Write a release into files without a name, audit these very bytes, and hand out what names them.

    :func:`publish` in two steps, for those who wait for others in between. Leaving without calling what was handed out
    leaves no trace, and neither does a kill where the system has files without a name.
    """
    target = Path(path)
    manifest_target = Path(manifest_path) if manifest_path else manifest_path_for(target)
    check_output(proposal.original, target, manifest_target, force=force)
    output_format = writable_format_of(target)
    proposal = proposal.for_format(output_format)
    with _output_of(proposal, target, manifest_target, force=force) as output, PendingFile(manifest_target) as entries:
        digest = output.write(proposal, memory, progress)
        known = {} if digest is None else {"sha256": digest}
        named = {**proposal.release.manifest.output, "name": target.name, **known, "format": output_format}
        writer = {} if digest is None else stated_versions(output_format)  # a cluster writes by programs of its own
        versions = {**writer, **proposal.release.manifest.versions}
        written = proposal.release.with_manifest(output=named, versions=versions)
        written, report = proposal.judged(output.path, written, digest, memory, progress)
        report.raise_if_failed()
        if not written.manifest.states_levels:
            written = written.with_manifest(guarantees=with_audited(written.manifest.guarantees, report.levels))
            report = with_stated_levels(report, written.manifest.to_dict())
            report.raise_if_failed()
        with explained_writing(manifest_target):
            entries.file.write(written.manifest.to_json().encode())
        entries.complete()

        def appear() -> Published:
            output.appear(entries, recorded(output.path, written.manifest) if recorded else nullcontext())
            return Published(written, report, target, manifest_target)

        yield appear


@contextmanager
def _output_of(proposal: Proposal, target: Path, manifest_target: Path, *, force: bool) -> Iterator[Output]:
    """Open what a proposal is written to: its rows are here, or on a cluster, which writes part files."""
    if isinstance(proposal, RowsProposal) and proposal.original.is_on_cluster:
        from sfumato.publishing.cluster_folder import folder_output  # Spark is there only where somebody has a cluster

        with folder_output(proposal, target, force=force) as folder:
            yield folder
        return
    with PendingFile(target) as file:
        yield _FileOutput(file, manifest_target, proposal.original.source, force)


@dataclass(frozen=True)
class _FileOutput:
    """One file."""

    file: PendingFile
    manifest_target: Path
    source: Source | None
    force: bool

    @property
    def path(self) -> Path:
        return self.file.readable_path

    def write(self, proposal: Proposal, memory: Memory, progress: Progress | None) -> str | None:
        with explained_writing(self.file.target):
            proposal.write(self.file.file, writable_format_of(self.file.target), memory, progress)
        self.file.complete()
        return _sha256(self.file.file)

    def appear(self, manifest: PendingFile, recording: AbstractContextManager[Any]) -> None:
        target, manifest_target = self.file.target, self.manifest_target
        with alone_in(target.parent, manifest_target.parent):
            check_targets(target, manifest_target, self.source, force=self.force)
            replaced = [target, manifest_target] if self.force else []
            if is_left_alone(manifest_target, target):
                replaced.append(manifest_target)
            with recording:
                appear_together([manifest, self.file], replaced)


def as_described(original: Any, release: Release) -> AnyTable:
    """Read a frame that is no table yet with the roles by which the release was made of it."""
    if isinstance(original, Table | BinaryTable):
        return original
    is_private = release.manifest.is_differentially_private  # its roles were given, and nothing was guessed
    if not release.description and not is_private:
        raise no_table("original", original)
    table = read_table(original, options=ReadOptions(mixed_as_text=True, guess_formats=not is_private))
    if is_private:
        return table
    return redescribed(table, [guess.column for guess in release.description])


def check_output(original: AnyTable | Rows, target: Path, manifest_target: Path, *, force: bool) -> None:
    """Refuse output paths that a release of a table cannot be written to."""
    if isinstance(original, Rows) and original.is_on_cluster:
        from sfumato.publishing.cluster_folder import check_folder_targets, inputs_of

        check_folder_targets(target, manifest_target, inputs_of(original), force=force)
        return
    check_targets(target, manifest_target, original.source, force=force)
    if isinstance(original, Rows):
        check_format(writable_format_of(target), BLOCK_FORMATS)


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


def no_table(name: str, given: object) -> InvalidParameterError:
    """Refuse what is no table."""
    hint = "read it with sfumato.read_table and describe it with table.with_schema"
    return InvalidParameterError(name, f"got a {type(given).__name__}", allowed="a Table or BinaryTable", hint=hint)


def _sha256(file: BinaryIO) -> str:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # opened for reading as well
