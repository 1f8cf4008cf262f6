"""Files that appear whole or not at all.

On Linux the content goes into a file that has no name until it is complete (``O_TMPFILE``), so a process that is
killed leaves nothing behind. Elsewhere a hidden file beside the target is renamed; a kill can leave that hidden file,
never a half-written target. Until it has its name only this user can read the file (mode 0600).

A file that is replaced is there until the new one is: one rename puts the new file in its place. For two files that
belong together there is no such rename. A kill between the two leaves the new one of the first and the old one of the
second, which for a release (manifest first, then table) is a pair that the audit refuses.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import secrets
import sys
import time
from collections.abc import Container, Iterator, Sequence
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
_PRIVATE = 0o600
_AT_WORKING_FOLDER, _RENAME_EXCHANGE = -100, 2  # of renameat2(2)


class PendingFile:
    """A complete-to-be file in the folder of ``target``; ``appear`` gives it its name.

    Use as a context manager: leaving it without ``appear`` leaves no trace.

    Parameters
    ----------
    mode : int or None
        Permissions that it gets with its name; ``None`` takes those of any new file of this process (0666 less the
        umask). Before, only this user can read it.
    """

    def __init__(self, target: Path, *, mode: int | None = None) -> None:
        self.target = target
        self._mode = mode
        self._hidden: Path | None = None
        start = f".{target.name}.{secrets.token_hex(6)}"
        self._part, self._new, self._old = (target.parent / (start + end) for end in (".part", ".new", ".old"))
        self._is_old_lost = False
        with explained_writing(target):
            descriptor = self._open()
        self.file: BinaryIO = os.fdopen(descriptor, "w+b")
        _allow(descriptor, _PRIVATE)  # a umask may have taken more

    def _open(self) -> int:
        folder = self.target.parent
        if hasattr(os, "O_TMPFILE") and Path("/proc/self/fd").exists():
            try:
                return os.open(folder, os.O_TMPFILE | os.O_RDWR, _PRIVATE)
            except OSError as exc:
                if exc.errno not in _NO_UNNAMED_FILES or not folder.is_dir():
                    raise
        self._hidden = self._part
        return os.open(self._hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL, _PRIVATE)

    @property
    def readable_path(self) -> Path:
        """A path under which the content can be read before the file has its name."""
        return self._hidden or Path(f"/proc/self/fd/{self.file.fileno()}")

    def complete(self) -> None:
        """Push the content to the disk."""
        with explained_writing(self.target):
            self.file.flush()
            os.fsync(self.file.fileno())

    def appear(self, *, replace: bool = False) -> None:
        """Give the file its name; one that has the name already is replaced only if ``replace`` says so.

        To replace, be :func:`alone_in` the folder. The name is never free in between.
        """
        with explained_writing(self.target):
            _allow(self.file.fileno(), _mode_of_new_files() if self._mode is None else self._mode)
            folder = os.open(self.target.parent, os.O_RDONLY)
            try:
                if replace and os.path.lexists(self.target):
                    self._replace(folder)
                else:
                    self._link(folder, self.target)
                os.fsync(folder)
            finally:
                os.close(folder)

    def _link(self, folder: int, name: Path) -> None:
        try:
            # With a folder's descriptor Python calls linkat, which follows /proc/self/fd to the unnamed file.
            os.link(self.readable_path, name.name, dst_dir_fd=folder, follow_symlinks=True)
        except OSError as exc:
            if self._hidden is None or exc.errno not in _NO_SECOND_NAMES or name.exists():
                raise
            self._hidden.rename(name)  # a file system without second names, such as FAT

    def _replace(self, folder: int) -> None:
        """Put the file in the place of another, which keeps a hidden name until this is left."""
        self._link(folder, self._new)
        try:
            os.link(self.target, self._old, follow_symlinks=False)
        except OSError as exc:
            if exc.errno not in _NO_SECOND_NAMES:
                raise
            self._is_old_lost = True
        self._new.replace(self.target)

    def withdraw(self) -> None:
        """Take the name away again if the file has it, and give it back to the file that had it before."""
        with contextlib.suppress(OSError):
            if not os.path.samestat(self.target.lstat(), os.fstat(self.file.fileno())):
                return
            if os.path.lexists(self._old):
                self._old.replace(self.target)
            elif not self._is_old_lost:
                self.target.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        with contextlib.suppress(OSError):
            self.file.close()
        for path in (self._part, self._new, self._old):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def _allow(descriptor: int, mode: int) -> None:
    """Set permissions; a file system that has none, such as FAT, has none to set."""
    if hasattr(os, "fchmod"):
        with contextlib.suppress(OSError):
            os.fchmod(descriptor, mode)


def _mode_of_new_files() -> int:
    """Permissions of a new file by the umask, which Linux tells without its being changed for other threads."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("Umask:"):
                return 0o666 & ~int(line.split()[1], 8)
    umask = os.umask(0o077)
    os.umask(umask)
    return 0o666 & ~umask


def appear_together(files: Sequence[PendingFile], replaced: Container[Path] = ()) -> None:
    """Give files that belong together their names, in this order; those in ``replaced`` may be there already.

    Be :func:`alone_in` their folders. If it fails or is interrupted, what had the names before has them again.
    """
    try:
        for file in files:
            is_replaced = file.target in replaced
            if is_replaced:
                _remove_leftovers(file.target)
            file.appear(replace=is_replaced)
    except BaseException:
        for file in reversed(files):
            file.withdraw()
        raise


def _remove_leftovers(target: Path) -> None:
    """Remove the hidden names that a kill left while a file was replaced; be :func:`alone_in` its folder."""
    left = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{12}}\.(new|old)", re.ASCII)
    with contextlib.suppress(OSError):
        for path in target.parent.iterdir():
            if left.fullmatch(path.name):
                path.unlink()


def exchange(one: Path, other: Path) -> bool:
    """Let two files or folders change their names in one step, and say whether the system could do that."""
    change = getattr(ctypes.CDLL(None), "renameat2", None) if sys.platform == "linux" else None
    if change is None:
        return False
    here, there = os.fsencode(one), os.fsencode(other)
    return bool(change(_AT_WORKING_FOLDER, here, _AT_WORKING_FOLDER, there, _RENAME_EXCHANGE) == 0)


@contextlib.contextmanager
def alone_in(*folders: Path) -> Iterator[None]:
    """Name files in folders while no other process of this program does, so that a pair of files is of one of them.

    Where the system or a folder has no locks, or somebody keeps it locked for seconds, it goes on without.
    """
    with contextlib.ExitStack() as opened:
        for folder in sorted({folder.resolve() for folder in folders}) if sys.platform != "win32" else ():
            with explained_writing(folder):
                descriptor = os.open(folder, os.O_RDONLY)
            opened.callback(os.close, descriptor)
            _lock(descriptor)
        yield


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


def write_atomically(path: Path, content: bytes, *, force: bool = False, mode: int | None = None) -> None:
    """Write a small file whole or not at all; one that exists is replaced only with ``force``."""
    check_writable(path, force=force)
    with PendingFile(path, mode=mode) as pending:
        with explained_writing(path):
            pending.file.write(content)
        pending.complete()
        with alone_in(path.parent):
            appear_together([pending], [path] if force else [])


def check_writable(path: Path, *, force: bool) -> None:
    """Refuse a target that is a folder, is in no folder, or exists while ``force`` is off."""
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
        raise OutputError(problem, path=path, hint="move it, or allow replacing it", remedy=("force",))


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
            errno.EEXIST: ("was created by another program in the meantime", "move it, or allow replacing it"),
            errno.ENAMETOOLONG: ("the name is too long", "choose a shorter one"),
        }
        problem, hint = reasons.get(exc.errno or 0, (f"cannot be written ({exc.strerror})", ""))
        remedy = ("force",) if exc.errno == errno.EEXIST else ()
        raise OutputError(problem, path=path, hint=hint, remedy=remedy) from None
