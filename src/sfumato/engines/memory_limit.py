"""How much memory may be used, and how it is shared out.

The whole of it is for the process and those that it starts. The program itself takes ``PROGRAM_BYTES``; what is left is
shared by the database that counts and sorts, the block of rows that is on its way, listed values and distinct rows.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from dataclasses import dataclass

import pyarrow as pa

from sfumato.errors import InvalidParameterError

LEAST_BYTES = 600 * 10**6
"""Memory with which a table of some tens of columns was released within the limit, see benchmarks/README.md."""
PROGRAM_BYTES = 400 * 10**6
"""Of Python with Arrow, scikit-learn and DuckDB: 275 MB, 130 of them mapped libraries; and what allocators keep."""
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_LEAST_WORKING = 50 * 10**6
_FEWEST_CELLS = 10_000
_BYTES_A_LABEL = 32
_LEAST_DATABASE = 40 * 10**6
_BYTES_A_THREAD = 64 * 10**6
_SHARE_OF_BLOCKS = 5
_BYTES_A_CELL = 64
_SHARE_OF_TEXT = 32
_BYTES_A_CELL_HELD = 100
_BYTES_A_VALUE = 4000
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # of malloc.h
_OWN_PAGES = 1 << 18
_OTHER_LABELS = 3


@dataclass(frozen=True)
class Memory:
    """Bytes that a command may use, with the processes that it starts.

    It decides how much is kept at a time; the system does not enforce it. In a program of your own, whose other memory
    nobody knows here, it is a guide.

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
            If it is none, or less than the program needs.
        """
        allowed = f"a number with a unit, such as 800MB or 4GB, and at least {LEAST_BYTES // 10**6}MB"
        found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]i?B)", text.strip(), re.IGNORECASE | re.ASCII)
        if not found:
            raise InvalidParameterError("memory", f"got {text!r}", allowed=allowed)
        n_bytes = int(float(found[1]) * _UNITS[found[2].upper()])
        if n_bytes < LEAST_BYTES:
            hint = f"the program itself takes about {PROGRAM_BYTES // 10**6} MB"
            raise InvalidParameterError("memory", "got less", allowed=allowed, hint=hint)
        return cls(n_bytes)

    def most_cells(self, n_columns: int, besides: int = 0) -> int:
        """Distinct rows of so many columns that can be searched: their labels, those of tables rolled up, and keys.

        Each of them may take some more bytes besides.
        """
        left = max(self.n_bytes - PROGRAM_BYTES, 0)
        return max(left // (_BYTES_A_LABEL * (n_columns + _OTHER_LABELS) + besides), _FEWEST_CELLS)


# Shares of what the program leaves. Together they are less than all of it: allocators keep some.


def working_bytes(memory: int) -> int:
    """Give what is left for rows; a little even where nothing is, so that a small table is read all the same."""
    return max(memory - PROGRAM_BYTES, _LEAST_WORKING)


def database_bytes(memory: int) -> int:
    """Give the share of the database, which spills what does not fit."""
    return min(memory // 3, max(working_bytes(memory) * 2 // 5, _LEAST_DATABASE))


def database_threads(memory: int) -> int:
    """Threads of the database, each of which has buffers of its own."""
    return max(1, min(os.cpu_count() or 1, database_bytes(memory) // _BYTES_A_THREAD))


def cells_at_once(memory: int) -> int:
    """Cells of a block: as they are read, as codes, and on their way to the database."""
    return working_bytes(memory) // _SHARE_OF_BLOCKS // _BYTES_A_CELL


def text_at_once(memory: int) -> int:
    """Bytes of a text file that are parsed at once."""
    return working_bytes(memory) // _SHARE_OF_TEXT


def listed_values(memory: int) -> tuple[int, int]:
    """Give how many values of a column are listed, and how many bytes they may take."""
    left = working_bytes(memory)
    return min(memory // _BYTES_A_VALUE, 2 * left // _BYTES_A_VALUE), min(memory // 16, left // 8)


def cells_in_memory(memory: int) -> int:
    """Cells of a table that is held whole, with all that a mechanism and the audit make of it."""
    return max(memory - PROGRAM_BYTES, _LEAST_WORKING) // _BYTES_A_CELL_HELD


def bytes_in_memory(n_cells: int) -> int:
    """Memory that a table of so many cells takes, held whole; the same the other way round."""
    return max(n_cells * _BYTES_A_CELL_HELD + PROGRAM_BYTES, LEAST_BYTES)


def hold_little() -> None:
    """Let allocators give back at once what is freed; for a process that is all ours.

    Arrow's own pool and glibc keep large blocks for later use, which is quick and takes twice the memory.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    if sys.platform == "linux":
        set_option = getattr(ctypes.CDLL(None), "mallopt", None)
        if set_option is not None:
            set_option(_M_MMAP_THRESHOLD, _OWN_PAGES)
            set_option(_M_ARENA_MAX, 1)


def give_back() -> None:
    """Give memory that is free, but held for later use, back to the system; call it between stages."""
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, others may not
        if trim is not None:
            trim(0)
