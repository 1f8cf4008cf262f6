"""Files and temporary folders that only this user can read.

The folders are removed at the end, also when the process is asked to end (SIGTERM, a closed terminal), or by the next
process if theirs was killed.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType

if sys.platform != "win32":
    import fcntl

_PRIVATE = 0o700
_ORDERS_TO_END = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
_kept: list[PrivateFolder] = []
"""Folders of this process that are not removed yet."""


def _remove_all_and_end(number: int, frame: FrameType | None) -> None:
    """Remove the folders of this process, then end by the signal as if nobody had heard it."""
    for folder in tuple(_kept):
        folder.remove()
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


def _hear_orders_to_end(wanted: bool) -> None:
    """Hear them while there are folders, unless somebody else does; outside the main thread Python hears none."""
    if threading.current_thread() is not threading.main_thread():
        return
    now, then = (signal.SIG_DFL, _remove_all_and_end) if wanted else (_remove_all_and_end, signal.SIG_DFL)
    for number in _ORDERS_TO_END:
        if signal.getsignal(number) is now:
            signal.signal(number, then)


class PrivateFolder:
    """Temporary folder that only this user can enter, held by this process.

    Its name carries the process's id and it is locked while the process lives, so that a later process can tell that
    it was left behind by one that was killed. Making a folder removes such leftovers of the same purpose.

    Parameters
    ----------
    purpose : str
        Part of its name, in small letters.

    Examples
    --------
    >>> folder = PrivateFolder("example")
    >>> folder.path.is_dir(), folder.path.name.startswith(f"sfumato-example-{os.getpid()}-")
    (True, True)
    >>> folder.remove()
    >>> folder.path.exists()
    False
    """

    def __init__(self, purpose: str) -> None:
        remove_leftovers(Path(tempfile.gettempdir()), purpose)
        name = f"sfumato-{purpose}-{os.getpid()}-{secrets.token_hex(8)}"
        self.path = Path(tempfile.gettempdir()) / name
        self._owner = os.getpid()
        self._lock: int | None = None
        _kept.append(self)
        _hear_orders_to_end(wanted=True)  # before there is a folder that could be left
        try:
            self.path.mkdir(_PRIVATE)
            self.path.chmod(_PRIVATE)  # a umask may have taken more
            if sys.platform != "win32":
                self._lock = os.open(self.path, os.O_RDONLY)
                with contextlib.suppress(OSError):  # file systems without locks
                    fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:  # an interruption, a full disk: nobody would remove it
            self.remove()
            raise

    def remove(self) -> None:
        """Remove it with all that is in it; does nothing in a forked child, for the folder is its parent's."""
        if self._owner != os.getpid():
            return
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        if self in _kept:
            _kept.remove(self)
        if not _kept:
            _hear_orders_to_end(wanted=False)


def write_private(path: Path, text: str) -> None:
    """Write a file that only this user can read, whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    part.replace(path)


def remove_leftovers(parent: Path, purpose: str) -> None:
    """Remove this user's folders of a purpose whose processes ended without doing so."""
    if sys.platform == "win32":
        return
    name = re.compile(rf"sfumato-{re.escape(purpose)}-([0-9]{{1,10}})-[a-z0-9_]+", re.ASCII)
    with contextlib.suppress(OSError):
        for folder in parent.iterdir():
            found = name.fullmatch(folder.name)
            if found and not _is_alive(int(found[1])) and _is_free(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError, PermissionError):  # the last: another user's process has the id now
        return False
    return True


def _is_free(folder: Path) -> bool:
    """Whether a folder is this user's and nobody holds it, not even a process that cannot be seen from here."""
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(lock).st_uid == os.getuid()
    except OSError:
        return False
    finally:
        os.close(lock)
