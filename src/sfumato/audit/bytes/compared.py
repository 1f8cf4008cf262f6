"""A file to write to that keeps nothing: what is written is compared with what is stored."""

from __future__ import annotations

import hashlib
import io
from typing import Any, BinaryIO

CHUNK_BYTES = 1 << 20


class NotAccountedError(Exception):
    """Says, without any cell, what of a file is not accounted for."""


def require(holds: bool, otherwise: str) -> None:
    """Refuse a file unless something holds."""
    if not holds:
        raise NotAccountedError(otherwise)


class Compared(io.RawIOBase):
    """Compares bytes as they are written with those of a stored file, in the memory of one piece.

    Attributes
    ----------
    is_same : bool
        Whether all bytes so far were the stored ones; after :meth:`finish`, whether the two files are the same.
    n_lines : int
        Lines that are the same, for messages about text.
    """

    def __init__(self, stored: BinaryIO) -> None:
        super().__init__()
        self._stored = stored
        self._digest = hashlib.sha256()
        self.is_same = True
        self.n_lines = 0

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, data: Any) -> int:
        """Compare the next bytes."""
        made = bytes(data)
        if self.is_same:
            found = self._stored.read(len(made))
            self._digest.update(found)
            self.is_same = found == made
            self.n_lines += made.count(b"\n") if self.is_same else _equal_start(made, found).count(b"\n")
        return len(made)

    def finish(self) -> str:
        """Compare the end, and give the SHA-256 of the stored file."""
        while rest := self._stored.read(CHUNK_BYTES):
            self.is_same = False
            self._digest.update(rest)
        return self._digest.hexdigest()


def _equal_start(one: bytes, other: bytes) -> bytes:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return one[:low]
