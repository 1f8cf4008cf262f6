"""What the machine can do at most: bytes copied in memory, read from a file in memory, and read from the disk."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

N_BYTES = 1 << 28
REPEATS = 5
PIECE = 1 << 20


@dataclass(frozen=True)
class MachineLimits:
    """Bytes a second, the best of some repeats; each byte of a copy in memory counts once."""

    memory: float
    cached_file: float
    disk: float

    def ratio(self, seconds: float, figures: Mapping[str, Any]) -> float | None:
        """How many times longer work took than reading its bytes once: ``bytes`` in memory or ``file bytes``."""
        least = figures.get("bytes", 0) / self.memory + figures.get("file bytes", 0) / self.cached_file
        return seconds / least if least else None

    def describe(self) -> str:
        """Say the rates as a Markdown section."""
        rows = {
            f"copy of {N_BYTES >> 20} MB in memory (NumPy)": self.memory,
            "reading a file that the system holds in memory": self.cached_file,
            "reading the same file from the disk": self.disk,
        }
        lines = [f"| {what} | {rate / 1e9:.3g} |" for what, rate in rows.items()]
        note = "Ratios to the limit are to the first for tables in memory and to the second for files."
        return "\n".join(["## machine", "", "| limit | GB/s |", "| --- | ---: |", *lines, "", note, ""])


def measured_limits() -> MachineLimits:
    """Measure them, which takes about two seconds."""
    import numpy as np

    source, target = np.ones(N_BYTES, dtype=np.uint8), np.zeros(N_BYTES, dtype=np.uint8)
    memory = _rate(lambda: np.copyto(target, source))
    with tempfile.TemporaryDirectory(prefix="sfumato-benchmark-") as folder:
        path = Path(folder) / "bytes"
        with path.open("wb") as file:
            file.write(os.urandom(PIECE) * (N_BYTES // PIECE))
            file.flush()
            os.fsync(file.fileno())
        cached = _rate(lambda: _read(path))
        disk = _rate(lambda: _read(path), before=lambda: _forget(path))
    return MachineLimits(memory, cached, disk)


def _rate(work: Callable[[], Any], before: Callable[[], None] = lambda: None) -> float:
    best = float("inf")
    for _ in range(REPEATS):
        before()
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return N_BYTES / best


def _read(path: Path) -> None:
    buffer = bytearray(PIECE)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def _forget(path: Path) -> None:
    """Ask the system to drop its copy of a file; where it cannot, the disk looks as fast as memory."""
    if hasattr(os, "posix_fadvise"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
