"""Calls that may take only so long."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class HungError(BaseException):
    """A call that took too long; not an ``Exception``, so that nothing on the way takes it for an error of a file."""


@contextmanager
def no_longer_than(seconds: float) -> Iterator[None]:
    """Raise :class:`HungError` in the main thread when the time is over."""
    before = signal.signal(signal.SIGALRM, _hang)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _hang(number: int, frame: FrameType | None) -> None:
    raise HungError
