"""Files that appear whole or not at all.

On Linux the content goes into a file that has no name until it is complete (``O_TMPFILE``), so a process that is
killed leaves nothing behind. Elsewhere a hidden file beside the target is renamed; a kill can leave that hidden file,
never a half-written target.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from sfumato.errors import OutputError

if sys.platform != "win32":
    import fcntl

_NO_UNNAMED_FILES = {errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL}
_LONGEST_WAIT = 5.0
_GLANCE = 0.01
_NO_SECOND_NAMES = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class PendingFile:
    """A complete-to-be file in the folder of ``target``; ``appear`` gives it its name.

    Use as a context manager: leaving it without ``appear`` leaves no trace.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        self._hidden: Path | None = None
        with explained_writing(target):
            descriptor = self._open()
        self.file: BinaryIO = os.fdopen(descriptor, "w+b")

    def _open(self) -> int:
        folder = self.target.parent
        if hasattr(os, "O_TMPFILE") and Path("/proc/self/fd").exists():
            try:
                return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666)
            except OSError as exc:
                if exc.errno not in _NO_UNNAMED_FILES or not folder.is_dir():
                    raise
        self._hidden = folder / f".{self.target.name}.{secrets.token_hex(6)}.part"
        return os.open(self._hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)

    @property
    def readable_path(self) -> Path:
        """A path under which the content can be read before the file has its name."""
        return self._hidden or Path(f"/proc/self/fd/{self.file.fileno()}")

    def complete(self) -> None:
        """Push the content to the disk."""
        with explained_writing(self.target):
            self.file.flush()
            os.fsync(self.file.fileno())

    def appear(self) -> None:
        """Give the file its name. A file that stands there already is never replaced: :func:`remove` it first."""
        with explained_writing(self.target):
            folder = os.open(self.target.parent, os.O_RDONLY)
            try:
                self._link(folder)
                os.fsync(folder)
            finally:
                os.close(folder)

    def _link(self, folder: int) -> None:
        try:
            # With a folder's descriptor Python calls linkat, which follows /proc/self/fd to the unnamed file.
            os.link(self.readable_path, self.target.name, dst_dir_fd=folder, follow_symlinks=True)
        except OSError as exc:
            if self._hidden is None or exc.errno not in _NO_SECOND_NAMES or self.target.exists():
                raise
            self._hidden.rename(self.target)  # a file system without second names, such as FAT

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        with contextlib.suppress(OSError):
            self.file.close()
        if self._hidden:
            self._hidden.unlink(missing_ok=True)


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Name files in a folder while no other process of this program does, so that a pair of files is of one of them.

    Where the system or the folder has no locks, or somebody keeps it locked for seconds, it goes on without.
    """
    if sys.platform == "win32":
        yield
        return
    with explained_writing(folder):
        descriptor = os.open(folder, os.O_RDONLY)
    try:
        _lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    deadline = time.monotonic() + _LONGEST_WAIT
    while sys.platform != "win32" and time.monotonic() < deadline:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_GLANCE)
        except OSError:
            return None
    return None


def remove(path: Path) -> None:
    """Remove a file that is about to be replaced, if it is there."""
    with explained_writing(path):
        path.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes, *, force: bool = False) -> None:
    """Write a small file whole or not at all; one that exists is replaced only with ``force``."""
    check_writable(path, force=force)
    with PendingFile(path) as pending:
        with explained_writing(path):
            pending.file.write(content)
        pending.complete()
        if force:
            remove(path)
        pending.appear()


def check_writable(path: Path, *, force: bool) -> None:
    """Refuse a target that is a folder, stands in no folder, or exists while ``force`` is off."""
    try:
        is_folder, has_folder = path.is_dir(), path.parent.is_dir()
        exists, is_file = path.exists() or path.is_symlink(), path.is_file()
    except ValueError:  # a NUL in the path
        problem = "is not a path"
        raise OutputError(problem, path="the output") from None
    if is_folder or not path.name:
        problem = "is a folder, not a file"
        raise OutputError(problem, path=path, hint="name a file in it")
    if not has_folder:
        problem = "its folder does not exist"
        raise OutputError(problem, path=path, hint=f"create '{path.parent}' first")
    if exists and not is_file:
        problem = "is neither a file nor free: devices, pipes and broken links are not replaced"
        raise OutputError(problem, path=path, hint="name another file")
    if exists and not force:
        problem = "exists already"
        raise OutputError(problem, path=path, hint="use --force (in Python force=True) to replace it")


@contextlib.contextmanager
def explained_writing(path: Path) -> Iterator[None]:
    """Turn the operating system's refusals into one clear line."""
    try:
        yield
    except OSError as exc:
        if isinstance(exc, OutputError):
            raise
        reasons = {
            errno.ENOSPC: ("the disk is full", "free some space or write to another disk"),
            errno.EDQUOT: ("the disk quota is used up", "free some space or write to another disk"),
            errno.EFBIG: ("the file would be larger than this system allows", "write a compressed or smaller file"),
            errno.EACCES: ("no permission to write there", "choose another folder"),
            errno.EPERM: ("no permission to write there", "choose another folder"),
            errno.EROFS: ("the file system is read-only", "choose another folder"),
            errno.EEXIST: ("was created by somebody else meanwhile", "use --force to replace it"),
            errno.ENAMETOOLONG: ("the name is too long", "choose a shorter one"),
        }
        problem, hint = reasons.get(exc.errno or 0, (f"cannot be written ({exc.strerror})", ""))
        raise OutputError(problem, path=path, hint=hint) from None
