"""How much a packed file may unpack to, so that a small one cannot take all memory, or hours, before it is refused.

Two rules, for gzip, workbooks and Parquet alike. Read at once, a file must not unpack to more than half of the memory
that is free. However it is read, one that unpacks to more than ``COMFORTABLE_BYTES`` (or a quarter of the free memory)
must not unpack to more than ``LARGEST_RATIO`` times its stored size. Up to there no ratio is refused: a column of zeros
shrinks a thousandfold. ``LEAST_BYTES`` are always allowed. What is given in the environment as ``SFUMATO_MAX_UNPACKED``
replaces both rules.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import InputError, InvalidParameterError

COMFORTABLE_BYTES = 1 << 30
LEAST_BYTES = 64 << 20
"""As much is always allowed."""
LARGEST_RATIO = 200
SETTING = "SFUMATO_MAX_UNPACKED"

_WITHOUT_ANSWER = 4 << 30
_CONTROL_GROUPS = (
    (Path("/sys/fs/cgroup"), "memory.max", "memory.current"),
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes"),
)
_NO_LIMIT = 1 << 60  # a control group without a limit says a number of this size


@dataclass(frozen=True)
class UnpackingLimit:
    """Bytes that a file may unpack to.

    Parameters
    ----------
    most : int
        More is refused.
    comfortable : int
        Up to here the ratio does not matter.
    n_stored : int
        Bytes of the packed file, as far as they are known beforehand.
    """

    most: int
    comfortable: int
    n_stored: int = 0

    @classmethod
    def of(cls, n_stored: int = 0, *, in_blocks: bool = False) -> UnpackingLimit:
        """Find the limit for a file that is read at once, or in blocks."""
        given = os.environ.get(SETTING)
        if given is not None:
            if not (given.isascii() and given.isdecimal()):
                raise InvalidParameterError(SETTING, "got something else", allowed="a number of bytes")
            return cls(int(given), int(given), n_stored)
        free = available_memory()
        comfortable = max(LEAST_BYTES, min(COMFORTABLE_BYTES, free // 4))
        return cls(sys.maxsize if in_blocks else max(LEAST_BYTES, free // 2), comfortable, n_stored)

    def check(self, n_unpacked: int, name: str, n_read: int = 0, *, hint: str = "") -> None:
        """Refuse a file that unpacks to so many bytes; of its stored bytes at least ``n_read`` are known to be there.

        Raises
        ------
        InputError
            If that is too much.
        """
        if n_unpacked <= self.comfortable:
            return
        most = min(self.most, max(self.comfortable, LARGEST_RATIO * max(self.n_stored, n_read)))
        if n_unpacked <= most:
            return
        is_ratio = most < self.most
        why = f"more than {LARGEST_RATIO} times its own size" if is_ratio else "more than may be read at once"
        remedy = f"if that is right, set {SETTING} to the bytes that it may take"
        raise InputError(
            f"unpacks to more than {most:,} bytes, {why}",
            path=name,
            hint=f"{hint or 'give the unpacked file'}; {remedy}",
        )

    def counted(self, chunks: Iterable[bytes], name: str, stored: Tally) -> Iterator[bytes]:
        """Pass chunks of an unpacked file on until they are too much."""
        n_unpacked = 0
        for chunk in chunks:
            n_unpacked += len(chunk)
            self.check(n_unpacked, name, stored.n_bytes)
            yield chunk


class Tally:
    """Counts the bytes of chunks that are passed on."""

    def __init__(self) -> None:
        self.n_bytes = 0

    def of(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Pass chunks on."""
        for chunk in chunks:
            self.n_bytes += len(chunk)
            yield chunk


def available_memory() -> int:
    """Bytes of memory that are free for this process: of the machine, of its control group, of its address space."""
    return min(_of_machine(), _of_control_group(), _of_address_space())


def _of_machine() -> int:
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return _WITHOUT_ANSWER


def _of_control_group() -> int:
    for folder, limit, used in _CONTROL_GROUPS:
        with suppress(OSError, ValueError):  # no such group, or "max"
            most = int((folder / limit).read_text())
            if most >= _NO_LIMIT:
                return most
            return most - int((folder / used).read_text()) + _cached_files(folder)
    return _NO_LIMIT


def _cached_files(folder: Path) -> int:
    """Bytes that a group uses for copies of files, which are given back when memory is needed."""
    with suppress(OSError, ValueError):
        for line in (folder / "memory.stat").read_text().splitlines():
            name, _, amount = line.partition(" ")
            if name in ("inactive_file", "total_inactive_file"):
                return int(amount)
    return 0


def _of_address_space() -> int:
    with suppress(ImportError, OSError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        return _NO_LIMIT if soft == resource.RLIM_INFINITY else soft
    return _NO_LIMIT
