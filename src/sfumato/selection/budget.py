"""How long a search may take."""

from __future__ import annotations

import math
import time

from sfumato.contract import ParameterSpec

TIME_BUDGET = ParameterSpec("", at_least=0, below=math.inf, allowed="a number of seconds of at least 0")
"""Limits of a parameter that is a time budget; what it is for is said by the mechanism."""


class TimeBudget:
    """Seconds from now on; a search asks whether they are spent and then gives the best it has.

    Examples
    --------
    >>> TimeBudget(0).is_spent()
    True
    >>> TimeBudget(60).share(0.5).is_spent()
    False
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def is_spent(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self._end

    def share(self, fraction: float) -> TimeBudget:
        """Give a part of what is left."""
        return TimeBudget(fraction * max(0.0, self._end - time.monotonic()))
