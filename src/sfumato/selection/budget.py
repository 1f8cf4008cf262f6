"""How long a search may take."""

from __future__ import annotations

import math
import time

from sfumato.errors import InvalidParameterError


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


def check_time_budget(seconds: object) -> None:
    """Refuse a time budget that is no number of seconds."""
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not math.isfinite(seconds) or seconds < 0:  # type: ignore[arg-type,operator]
        raise InvalidParameterError("time_budget", f"got {seconds!r}", allowed="a number of seconds of at least 0")
