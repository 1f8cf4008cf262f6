"""How long a search may take: one clock, asked at every step, that ends the step under way's caller when time is up."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from sfumato.parameters import ParameterSpec

Clock = Callable[[], float]


class OutOfTime(Exception):  # noqa: N818  # no error: what a search found so far is its answer
    """Time is up; the best found so far counts."""


class TimeLimit:
    """A moment of a clock after which no further step begins.

    Parameters
    ----------
    seconds : float or None
        ``None``: no limit.
    clock : callable or None
        Gives the seconds of a clock that never goes back; ``None`` takes :func:`time.monotonic`.

    Examples
    --------
    >>> seconds = iter(range(10))
    >>> limit = TimeLimit(2, clock=lambda: next(seconds))
    >>> limit.is_over, limit.is_over, limit.is_over
    (False, True, True)
    """

    def __init__(self, seconds: float | None = None, clock: Clock | None = None) -> None:
        self._clock = clock or time.monotonic
        self._began = self._clock()
        self._seconds = float("inf") if seconds is None else float(seconds)

    @property
    def elapsed(self) -> float:
        """Seconds since the limit was set."""
        return self._clock() - self._began

    @property
    def left(self) -> float:
        """Seconds left, below 0 when time is up."""
        return self._seconds - self.elapsed

    @property
    def is_over(self) -> bool:
        """Whether time is up."""
        return self.left <= 0

    def part(self, share: float) -> TimeLimit:
        """Limit that ends when a share of the whole time, counted from the beginning, has passed."""
        own = TimeLimit.__new__(TimeLimit)
        own._clock, own._began, own._seconds = self._clock, self._began, self._seconds * share
        return own

    def check(self) -> None:
        """Raise :class:`OutOfTime` when time is up."""
        if self.is_over:
            raise OutOfTime


# How long a search may take.


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
