"""How much work something is, without a clock: what other processes do on the machine does not change it."""

from __future__ import annotations

import cProfile
from collections.abc import Callable


def n_calls(work: Callable[[], object]) -> int:
    """Count the calls of all functions, also of those in C."""
    profile = cProfile.Profile()
    profile.runcall(work)
    return sum(entry.callcount for entry in profile.getstats())
