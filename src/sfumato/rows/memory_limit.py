"""How much memory may be used, and how it is shared out."""

from __future__ import annotations

import ctypes
import re
import sys
from dataclasses import dataclass

import pyarrow as pa

from sfumato.errors import InvalidParameterError

LEAST_BYTES = 200 * 10**6
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_PROGRAM_BYTES = 250 * 10**6
_FEWEST_CELLS = 10_000
_BYTES_A_LABEL = 32
_OTHER_LABELS = 3


@dataclass(frozen=True)
class Memory:
    """Bytes that a process may use; a guide for how much is kept at a time, not a limit that the system enforces.

    Examples
    --------
    >>> Memory.of("1GB").n_bytes, Memory.of("1.5 GiB").n_bytes
    (1000000000, 1610612736)
    """

    n_bytes: int

    @classmethod
    def of(cls, text: str) -> Memory:
        """Read a number with a unit.

        Raises
        ------
        InvalidParameterError
            If it is none, or less than 200 MB.
        """
        allowed = "a number with a unit, such as 800MB or 4GB, and at least 200MB"
        found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]i?B)", text.strip(), re.IGNORECASE | re.ASCII)
        if not found:
            raise InvalidParameterError("memory", f"got {text!r}", allowed=allowed)
        n_bytes = int(float(found[1]) * _UNITS[found[2].upper()])
        if n_bytes < LEAST_BYTES:
            raise InvalidParameterError("memory", "got less", allowed=allowed)
        return cls(n_bytes)

    def most_cells(self, n_columns: int, besides: int = 0) -> int:
        """Distinct rows of so many columns that can be searched: their labels, those of tables rolled up, and keys.

        Each of them may take some more bytes besides.
        """
        left = max(self.n_bytes - _PROGRAM_BYTES, 0)
        return max(left // (_BYTES_A_LABEL * (n_columns + _OTHER_LABELS) + besides), _FEWEST_CELLS)


def give_back() -> None:
    """Give memory that is free, but held for later use, back to the system; call it between stages."""
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, others may not
        if trim is not None:
            trim(0)
