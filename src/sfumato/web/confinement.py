"""The folder that the page may use: a path that leads out of it is refused, whatever is there.

Who has the token reads and writes files as the account of the server. With ``--root`` only those in one folder. A path
is checked twice: as it was typed, in the server, and as it is opened, in the processes that do the work, for a project
file or a link may lead elsewhere. Both times links are followed first.
"""

from __future__ import annotations

import errno
import os
import site
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfumato.errors import InputError

_OUTSIDE = "this path is outside the folder that the page may use"
_EVENTS: dict[str, tuple[tuple[int, int | None], ...]] = {
    "open": ((0, None),),
    "os.listdir": ((0, None),),
    "os.scandir": ((0, None),),
    "os.truncate": ((0, None),),
    "os.mkdir": ((0, 2),),
    "os.remove": ((0, 1),),
    "os.rmdir": ((0, 1),),
    "os.rename": ((0, 2), (1, 3)),
    "os.link": ((0, 2), (1, 3)),
    "os.symlink": ((1, 2),),
}
"""Events of Python's audit: places of the paths, and of the open folders that these are named from."""
_LISTING = ("os.listdir", "os.scandir")
_READ_BY_LIBRARIES = (
    "/usr/lib",
    "/usr/share",
    "/usr/local/lib",
    "/lib",
    "/lib64",
    "/sys",
    "/dev/null",
    "/dev/urandom",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/mime.types",
    "/etc/ssl",
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/proc/meminfo",
    "/proc/cpuinfo",
    "/proc/stat",
)
_OF_PROCESS = ("fd", "status", "stat", "maps", "mounts", "cgroup", "task")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def checked_path(root: Path | None, typed: str) -> str:
    """Give a path whole, and refuse one that leads out of the folder; without a folder it stays as typed.

    What is said is the same whether something is there or not.

    Raises
    ------
    InputError
        If it does, or is no path.
    """
    if root is None or not typed:
        return typed
    whole = os.path.join(os.getcwd(), os.path.expanduser(typed))  # noqa: PTH109, PTH111, PTH118 # links are for later
    if "\0" in typed or not is_inside(root, whole):
        raise InputError(_OUTSIDE, hint="give a path inside it; whoever started the server chose the folder")
    return whole


def is_inside(root: Path, path: str | os.PathLike[str]) -> bool:
    """Whether a path is in a folder once all links are followed.

    Examples
    --------
    >>> is_inside(Path("/srv"), "/srv/data/a.csv"), is_inside(Path("/srv"), "/srv/../etc"), is_inside(Path("/"), "x")
    (True, False, True)
    """
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))
    except (OSError, ValueError):
        return False


def confine_this_process(folders: Sequence[Path]) -> None:
    """Let this process open files of some folders only, and else read those of its libraries.

    It cannot be undone. Native code that opens files by itself is not held back. The audit does not say from which open
    folder ``os.open`` is given a name: the working folder is therefore one of ours from now on.
    """
    os.chdir(folders[-1])
    own = [Path(os.path.realpath(folder)) for folder in folders]
    libraries = [*_READ_BY_LIBRARIES, sys.prefix, sys.base_prefix, str(Path(__file__).parents[1])]
    libraries += [*sysconfig.get_paths().values(), *site.getsitepackages(), *filter(None, sys.path)]
    readable = [Path(os.path.realpath(name)) for name in dict.fromkeys(libraries) if os.path.realpath(name) != "/"]

    def is_allowed(path: str, *, is_written: bool) -> bool:
        found = Path(os.path.realpath(path))
        if str(found) == os.devnull or any(map(found.is_relative_to, own)):
            return True
        return not is_written and (any(map(found.is_relative_to, readable)) or _is_of_this_process(path))

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _EVENTS:
            return
        is_written = _is_written(arguments) if event == "open" else event not in _LISTING
        for place, folder in _EVENTS[event]:
            path = arguments[place]
            if not isinstance(path, str | bytes | os.PathLike):  # a file that is open already
                continue
            opened = -1 if folder is None else arguments[folder]
            beginning = f"/proc/self/fd/{opened}" if opened != -1 else ""
            if not is_allowed(os.path.join(beginning, os.fsdecode(path)), is_written=is_written):  # noqa: PTH118
                raise PermissionError(errno.EACCES, _OUTSIDE)

    sys.addaudithook(refuse)


def _is_written(arguments: tuple[Any, ...]) -> bool:
    _, mode, flags = arguments
    by_mode = isinstance(mode, str) and any(sign in mode for sign in "wax+")
    return by_mode or (isinstance(flags, int) and bool(flags & _WRITING))


def _is_of_this_process(path: str) -> bool:
    """Whether a path names what the system says of this very process, or a file that it has opened already."""
    parts = Path(path).parts[1:]
    return len(parts) >= 3 and parts[0] == "proc" and parts[1] in ("self", str(os.getpid())) and parts[2] in _OF_PROCESS
