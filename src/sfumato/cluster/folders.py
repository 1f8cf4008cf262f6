"""Folders of part files that appear whole or not at all, each with its manifest beside it."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sfumato.atomic import PendingFile, alone_in, check_writable, explained_writing, remove
from sfumato.errors import InvalidParameterError, OutputError
from sfumato.publishing import is_left_alone
from sfumato.table.coding import Source
from sfumato.table.formats import writable_format_of
from sfumato.table.parquet_folder import part_files

_ROWS, _REPLACED = "rows", "replaced"
_GLANCES, _GLANCE_SECONDS = 10, 0.1


@dataclass(frozen=True)
class PendingFolder:
    """A complete-to-be folder beside ``target``, in a hidden one; ``appear`` gives it its name."""

    target: Path
    _hidden: Path

    @property
    def rows(self) -> Path:
        """Where part files are written; it does not exist before."""
        return self._hidden / _ROWS

    def complete(self) -> None:
        """Keep part files only, named by their number, and push them to the disk.

        What a cluster calls its files differs from run to run.
        """
        with explained_writing(self.target):
            kept = part_files(self.rows)
            for path in set(self.rows.iterdir()) - set(kept):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            for i, path in enumerate(kept):
                _flush(path.rename(self.rows / f"part-{i:05d}.parquet"))
            _flush(self.rows)

    def make_room(self) -> None:
        """Move away what stands under the folder's name, if something does; it is removed at the end."""
        with explained_writing(self.target):
            if os.path.lexists(self.target):
                self.target.rename(self._hidden / _REPLACED)

    def appear(self) -> None:
        """Give the folder its name, which must be free."""
        with explained_writing(self.target):
            self.rows.rename(self.target)
            _flush(self.target.parent)


@contextmanager
def pending_folder(target: Path) -> Iterator[PendingFolder]:
    """Make a hidden folder beside the target, and remove it at the end with all that is left in it."""
    hidden = target.parent / f".{target.name}.{secrets.token_hex(6)}.part"
    with explained_writing(target):
        hidden.mkdir()
    try:
        yield PendingFolder(target, hidden)
    except BaseException:
        _remove_for_good(hidden)
        raise
    shutil.rmtree(hidden, ignore_errors=True)


def _remove_for_good(hidden: Path) -> None:
    """Remove a folder again if tasks that are just being cancelled make it anew."""
    for _ in range(_GLANCES):
        shutil.rmtree(hidden, ignore_errors=True)
        time.sleep(_GLANCE_SECONDS)
    shutil.rmtree(hidden, ignore_errors=True)


def name_both(folder: PendingFolder, manifest: PendingFile, source: Source | None, *, force: bool) -> None:
    """Let manifest and folder appear, the manifest first, while no other process of this program names files there."""
    with alone_in(folder.target.parent.resolve()):
        check_folder_targets(folder.target, manifest.target, source, force=force)
        if force:
            folder.make_room()
        if force or is_left_alone(manifest.target, folder.target):
            remove(manifest.target)
        manifest.appear()
        try:
            folder.appear()
        except OutputError:
            remove(manifest.target)
            raise


def check_folder_targets(target: Path, manifest_target: Path, source: Source | None, *, force: bool) -> None:
    """Refuse an output that exists (without ``force``), has to do with the input, or is not named as Parquet."""
    if str(target) == "-" or writable_format_of(target) != "parquet":
        allowed = "a folder whose name ends in .parquet, which the cluster can write to"
        raise InvalidParameterError("output of a cluster", "got another", allowed=allowed)
    if source is not None and _is_about(target, Path(source.name)):
        problem = "is the input, in it, or around it; the input is never written to"
        raise OutputError(problem, path=target, hint="choose another output path")
    if target.is_dir() and not target.is_symlink():
        _check_replaceable(target, force=force)
    else:
        check_writable(target, force=force)
    check_writable(manifest_target, force=force or is_left_alone(manifest_target, target))


def _is_about(target: Path, source: Path) -> bool:
    output, given = target.resolve(), source.resolve()
    return output == given or output in given.parents or given in output.parents


def _check_replaceable(folder: Path, *, force: bool) -> None:
    if not force:
        problem = "exists already"
        raise OutputError(problem, path=folder, hint="use --force (in Python force=True) to replace it")
    with explained_writing(folder):
        entries = [path for path in folder.iterdir() if not path.name.startswith(("_", "."))]
    if any(path.is_dir() or path.suffix != ".parquet" for path in entries):
        problem = "is a folder that holds more than Parquet files, and is not replaced"
        raise OutputError(problem, path=folder, hint="name another output, or remove it yourself")


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
