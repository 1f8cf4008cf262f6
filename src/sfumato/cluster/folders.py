"""Folders of part files that appear whole or not at all, each with its manifest beside it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sfumato.atomic import PendingFile, alone_in, appear_together, check_writable, exchange, explained_writing
from sfumato.errors import InvalidParameterError, OutputError
from sfumato.publishing import is_left_alone
from sfumato.table.formats import writable_format_of
from sfumato.table.parquet_folder import part_files

_ROWS = "rows"
_PRIVATE = 0o700
_BESIDE_PARTS = {"_SUCCESS", "_metadata", "_common_metadata"}
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

    def appear(self, *, replace: bool = False) -> None:
        """Give the folder its name, which must be free unless ``replace`` says that it may be exchanged.

        Where the system cannot exchange names in one step, the old folder is moved away first.
        """
        with explained_writing(self.target):
            if not (replace and os.path.lexists(self.target) and exchange(self.rows, self.target)):
                if replace and os.path.lexists(self.target):
                    self.target.rename(self._former)
                self.rows.rename(self.target)
            _flush(self.target.parent)

    def withdraw(self, rows: os.stat_result) -> None:
        """Take the name away again from the folder that these rows are, if it has it, and give it back."""
        with contextlib.suppress(OSError):
            is_ours = os.path.lexists(self.target) and os.path.samestat(self.target.lstat(), rows)
            if is_ours and not (os.path.lexists(self.rows) and exchange(self.rows, self.target)):
                self.target.rename(self.rows)
            if os.path.lexists(self._former) and not os.path.lexists(self.target):
                self._former.rename(self.target)

    @property
    def _former(self) -> Path:
        return self._hidden / self.target.name


@contextmanager
def pending_folder(target: Path) -> Iterator[PendingFolder]:
    """Make a hidden folder beside the target, and remove it at the end with all that is left in it."""
    hidden = target.parent / f".{target.name}.{secrets.token_hex(6)}.part"
    with explained_writing(target):
        hidden.mkdir(_PRIVATE)
        hidden.chmod(_PRIVATE)  # a umask may have taken more
    try:
        yield PendingFolder(target, hidden)
        shutil.rmtree(hidden, ignore_errors=True)
    except BaseException:
        _remove_for_good(hidden)
        raise


def _remove_for_good(hidden: Path) -> None:
    """Remove a folder again if tasks that are just being cancelled make it anew."""
    for _ in range(_GLANCES):
        shutil.rmtree(hidden, ignore_errors=True)
        time.sleep(_GLANCE_SECONDS)
    shutil.rmtree(hidden, ignore_errors=True)


def name_both(folder: PendingFolder, manifest: PendingFile, inputs: Sequence[Path], *, force: bool) -> None:
    """Let manifest and folder appear, the manifest first, while no other process of this program names files there.

    If that fails or is interrupted, what stood there before stands there again.
    """
    with alone_in(folder.target.parent):
        check_folder_targets(folder.target, manifest.target, inputs, force=force)
        is_replaced = force or is_left_alone(manifest.target, folder.target)
        with explained_writing(folder.target):
            rows = folder.rows.stat()
        try:
            appear_together([manifest], [manifest.target] if is_replaced else [])
            folder.appear(replace=force)
        except BaseException:
            folder.withdraw(rows)
            manifest.withdraw()
            raise


def check_folder_targets(target: Path, manifest_target: Path, inputs: Sequence[Path], *, force: bool) -> None:
    """Refuse an output that exists (without ``force``), has to do with an input, or is not named as Parquet."""
    if str(target) == "-" or writable_format_of(target) != "parquet":
        allowed = "a folder whose name ends in .parquet, which the cluster can write to"
        raise InvalidParameterError("output of a cluster", "got another", allowed=allowed)
    if _is_about(target, inputs):
        problem = "is the input, in it, or around it; the input is never written to"
        raise OutputError(problem, path=target, hint="choose another output path")
    if target.is_dir() and not target.is_symlink():
        _check_replaceable(target, force=force)
    else:
        check_writable(target, force=force)
    check_writable(manifest_target, force=force or is_left_alone(manifest_target, target))


def _is_about(target: Path, inputs: Sequence[Path]) -> bool:
    output = target.resolve()
    given = [path.resolve() for path in inputs]
    return any(output == path or output in path.parents or path in output.parents for path in given)


def _check_replaceable(folder: Path, *, force: bool) -> None:
    if not force:
        problem = "exists already"
        raise OutputError(
            problem, path=folder, hint="move it away, or say that it is to be replaced", remedy=("force",)
        )
    with explained_writing(folder):
        is_known = all(path.is_file() and _is_of_spark(path.name) for path in folder.iterdir())
    if not is_known:
        problem = "is a folder that holds more than Parquet files, and is not replaced"
        raise OutputError(problem, path=folder, hint="name another output, or remove it yourself")


def _is_of_spark(name: str) -> bool:
    """Whether a file in a folder of Parquet is a part, or one that Spark puts beside parts."""
    is_part = name.endswith(".parquet") and not name.startswith(("_", "."))
    return is_part or name in _BESIDE_PARTS or (name.startswith(".") and name.endswith(".crc"))


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
