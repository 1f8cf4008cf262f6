"""A query that runs in a thread of its own: its batches are taken one by one, and whoever stops taking cancels it.

Drivers wait for a server inside native code, where neither Ctrl-C nor a time limit reaches them. The thread that asked
waits in Python instead, and cancels the query when it is interrupted, when the time is over, or when it needs no more.
Meanwhile the next batches arrive, up to ``_WAITING`` of them.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sfumato.errors import InputError, InvalidParameterError, SfumatoError

SETTING = "SFUMATO_QUERY_SECONDS"
_MOST_SECONDS = 3600
_WAITING = 2
_GRACE_SECONDS = 10.0
_LOOKS_SECONDS = 0.2


class StoppedError(Exception):
    """Nobody takes batches any more."""


class Hand:
    """What the thread of a query gives its batches to."""

    def __init__(self) -> None:
        self._given: queue.Queue[Any] = queue.Queue(_WAITING)
        self._is_over = threading.Event()
        self._cancel: Callable[[], None] | None = None
        self._lock = threading.Lock()  # a query is not closed while it is being cancelled

    @contextmanager
    def cancelled_by(self, cancel: Callable[[], None]) -> Iterator[None]:
        """Say how what the block does is stopped from another thread."""
        with self._lock:
            if self._is_over.is_set():
                raise StoppedError
            self._cancel = cancel
        try:
            yield
        finally:
            with self._lock:
                self._cancel = None

    def give(self, thing: pa.Schema | pa.RecordBatch | BaseException | None) -> None:
        """Hand over the schema, then batches, and ``None`` or an error at the end."""
        while not self._is_over.is_set():
            with suppress(queue.Full):
                self._given.put(thing, timeout=_LOOKS_SECONDS)
                return
        raise StoppedError

    def take(self, until: float | None) -> Any:
        """Wait for the next thing until a moment of the monotonic clock; raises ``queue.Empty`` then."""
        return self._given.get(timeout=None if until is None else max(0.0, until - time.monotonic()))

    def stop(self) -> None:
        """Take nothing more, and cancel what is under way."""
        self._is_over.set()
        with self._lock, suppress(Exception):
            if self._cancel is not None:
                self._cancel()


@dataclass(frozen=True, repr=False)
class QueryRows:
    """Columns of a result, and its rows, which can be taken once."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


def most_seconds() -> int:
    """Seconds that a query may take, from the environment or by default; 0 is without a limit."""
    given = os.environ.get(SETTING)
    if given is None:
        return _MOST_SECONDS
    if not (given.isascii() and given.isdecimal()) or len(given) > 6:
        raise InvalidParameterError(SETTING, "got something else", allowed="a whole number of seconds, 0 for no limit")
    return int(given)


@contextmanager
def running(
    work: Callable[[Hand], None], explained: Callable[[BaseException], SfumatoError], place: str
) -> Iterator[QueryRows]:
    """Run a query in a thread and give its rows.

    Parameters
    ----------
    work : callable
        Gives schema and batches to the hand.
    explained : callable
        Says an error of the driver in our own words: the driver's may quote cells and credentials.

    Raises
    ------
    InputError
        What ``explained`` gives, or that it took too long.
    """
    hand = Hand()
    seconds = most_seconds()
    until = time.monotonic() + seconds if seconds else None

    def worked() -> None:
        with suppress(StoppedError):
            try:
                work(hand)
                hand.give(None)
            except StoppedError:
                raise
            except BaseException as error:  # whatever it is, it is said by the thread that waits
                hand.give(error)

    def taken() -> Any:
        try:
            thing = hand.take(until)
        except queue.Empty:
            raise too_slow(place) from None
        if isinstance(thing, BaseException):
            is_ours = isinstance(thing, SfumatoError | MemoryError | KeyboardInterrupt)
            raise (thing if is_ours else explained(thing)) from None
        return thing

    is_whole = False

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal is_whole
        while (batch := taken()) is not None:
            yield batch
        is_whole = True

    thread = _started(worked)
    try:
        yield QueryRows(taken(), batches())
    finally:
        if not is_whole:
            _started(hand.stop).join(_GRACE_SECONDS)  # a server that does not answer keeps nobody waiting
        thread.join(_GRACE_SECONDS)  # one that still waits for a connection dies with the process


def _started(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, name="sfumato query", daemon=True)
    thread.start()
    return thread


def too_slow(place: str) -> InputError:
    """Say that the time is over."""
    problem = "did not answer within the time that a query may take"
    hint = f"narrow the query, or set {SETTING} to more seconds"
    return InputError(problem, path=place, hint=hint)
