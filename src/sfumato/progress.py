"""How long work says how far it is: one kind of callback everywhere."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int, str], None]
"""Called as ``progress(done, total, what)`` during long work; a total of 0 is not known yet."""


def in_rows(progress: Progress | None, n_rows: int, what: str) -> Progress | None:
    """Say of a pass over rows what is done with them, such as "rows counted", and of how many.

    Whoever reads rows knows neither, and says only how many were read.
    """
    if progress is None:
        return None

    def say(done: int, total: int, reading: str) -> None:
        progress(done, n_rows, f"{done:,} of {n_rows:,} {what}")

    return say
