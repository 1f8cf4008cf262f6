"""Computations on shared secrets with MPyC, carried over our own authenticated channel."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import logging
import os
import queue
import struct
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import ModuleType, SimpleNamespace
from typing import Any, TypeVar

from sfumato.collaborate.transport.channel import Channel
from sfumato.collaborate.transport.messages import REASONS
from sfumato.errors import CollaborationError, InvalidParameterError

# MPyC's runtime without its side effects: one for every thread, no sockets, nothing unpickled.
#
# MPyC [MPyC]_ keeps numbers as Shamir shares: with m parties, any (m - 1) // 2 of them learn nothing, more than that
# can open everything. It protects against parties that follow the protocol and look at what they receive, not against
# parties that send something else.
#
# Deviations ---------- Four habits of MPyC 0.11 are not taken over. It reads ``sys.argv`` and configures logging when
# it is imported; it opens sockets of its own, over which it unpickles arrays; it has one runtime for a whole process;
# and its public test for zero opens the product of two sharings as it is, a polynomial of degree 2t whose roots tell
# every single party the tested number. Here the product is shared anew before it is opened.
#
# References ---------- .. [MPyC] Schoenmakers: MPyC, Multiparty Computation in Python. https://github.com/lschoe/mpyc


SECURITY_BITS = 64
"""Masks are so many bits longer than what they hide."""


def _mpyc_runtimes() -> ModuleType:
    """Import MPyC, and keep it from reading ``sys.argv``, setting up a runtime, and configuring the root logger."""
    # The last lines of mpyc/__init__.py and mpyc/runtime.py parse sys.argv (our own --config among it) and build a
    # runtime as soon as they are imported. This variable, meant for builders of documentation, is MPyC's only way past
    # them; it is set for the one import below, and nothing else of the process is made up (decision 42).
    variable = "READTHEDOCS"
    before = os.environ.get(variable)
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    os.environ[variable] = "True"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # it takes names from numpy.core
            return importlib.import_module("mpyc.runtime")  # which imports all of MPyC that is used here
    except ModuleNotFoundError:
        problem = "but this one needs mpyc, which is not installed"
        hint = "pip install 'sfumato[collaborate]'"
        raise InvalidParameterError("mode", problem, allowed="one whose packages are installed", hint=hint) from None
    finally:
        logging.getLogger().removeHandler(handler)
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before


_runtimes = _mpyc_runtimes()
_asyncoro, _fields = _runtimes.asyncoro, _runtimes.finfields


class _RuntimeOfThread:
    """Stand-in for the one runtime of a process: that of the thread which asks."""

    def __init__(self) -> None:
        object.__setattr__(self, "threads", threading.local())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.threads.runtime, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.threads.runtime, name, value)


_current = _RuntimeOfThread()
for _module in (_asyncoro, _runtimes.sectypes, _runtimes.mpctools):
    vars(_module)["runtime"] = _current
# Asked for the number of threads whenever square roots are taken, and for nothing else: none besides the caller's.
vars(_fields)["os"] = SimpleNamespace(getenv={"MPYC_MAXWORKERS": "0"}.__getitem__)

_making_types = threading.Lock()


class ChannelRuntime(_runtimes.Runtime):  # type: ignore[misc, name-defined]
    """MPyC's runtime of one party, for messages that others carry: set ``parties[i].protocol`` for every peer."""

    def __init__(self, place: int, n_parties: int) -> None:
        options = SimpleNamespace(
            threshold=(n_parties - 1) // 2,
            sec_param=SECURITY_BITS,
            bit_length=32,  # of numbers whose length is not given, of which there are none here
            mix32_64bit=True,  # arrays travel as plain bytes of fixed length, not pickled
            no_prss=False,
            no_async=False,
            no_barrier=True,
            no_log=True,
        )
        super().__init__(place, [_runtimes.Party(i) for i in range(n_parties)], options)

    @_asyncoro.mpc_coro  # type: ignore[untyped-decorator]
    async def np_is_zero_public(self, a: Any) -> asyncio.Future:  # type: ignore[type-arg]
        """Open which numbers are 0, and nothing else of them."""
        masks = self._np_randoms(type(a).sectype.field, a.size)
        numbers = await self.gather(a)
        products = await self._reshare(numbers.reshape(-1) * masks)
        opened = await self.output(products)
        return (opened == 0).reshape(numbers.shape)  # type: ignore[no-any-return]

    def _refuse(self, *_: object, **__: object) -> None:
        raise NotImplementedError

    transfer = is_zero_public = _np_is_zero = _refuse

    def secure_integers(self, n_bits: int, modulus: int) -> Any:
        """Type of shared integers of so many bits in a prime field; all threads get the same one."""
        with _making_types:
            return self.SecInt(n_bits, p=modulus)


@contextmanager
def runtime_of_this_thread(runtime: ChannelRuntime) -> Iterator[None]:
    """Make a runtime the one that MPyC finds in this thread; at the end the keys of its random numbers are dropped."""
    _current.threads.runtime = runtime
    try:
        yield
    finally:
        del _current.threads.runtime
        runtime.prfs.cache_clear()


def is_prime(number: int) -> bool:
    """Tell whether a number is prime; wrong with probability below 2^-50 for one that is not."""
    return bool(_fields.gmpy2.is_prime(number))


Result = TypeVar("Result")
Computation = Callable[[ChannelRuntime], Awaitable[Result]]
Accuse = Callable[[str, str], object]

FEWEST_PARTIES, MOST_PARTIES = 3, 7
STAGE = "selection"

_LABEL = struct.Struct("<q")
_DIGEST_BYTES = 32
_PATIENCE = 0.2
_MOST_EARLY = 1000


class _BrokenProtocolError(Exception):
    """A party's fault; ``reason`` is a key of ``REASONS``."""

    def __init__(self, party: str, reason: str) -> None:
        self.party = party
        self.reason = reason
        super().__init__(reason)


class _Exchange:
    """Messages of one session with all peers, for the event loop in which MPyC runs."""

    def __init__(self, channel: Channel, timeout: float, loop: asyncio.AbstractEventLoop) -> None:
        self.channel = channel
        self.timeout = timeout
        self.loop = loop
        self.failure: asyncio.Future[None] = loop.create_future()
        self._own_lengths: dict[int, int] = {}
        self._early: dict[int, list[tuple[str, int]]] = {}

    def fail(self, error: Exception) -> None:
        """End the session; only the first failure counts."""
        if not self.failure.done():
            self.failure.set_exception(error)

    def note_sent(self, label: int, length: int) -> None:
        """Keep the length of an own message: those of all parties with this label are as long."""
        self._own_lengths[label] = length
        for peer, other in self._early.pop(label, ()):
            self.note_received(peer, label, other)

    def note_received(self, peer: str, label: int, length: int) -> None:
        """Check the length of a peer's message, if need be when this party sends its own."""
        if label not in self._own_lengths:
            self._early.setdefault(label, []).append((peer, length))
        elif length != self._own_lengths[label]:
            self.fail(_BrokenProtocolError(peer, "wrong-length"))


class _PeerLine:
    """What MPyC takes for its connection to a peer: sends and receives bodies by label.

    A thread of its own waits for the channel, and only while MPyC waits for a message that the peer still has to send,
    so that whatever the peer sends after this computation is left for others.
    """

    def __init__(self, exchange: _Exchange, peer: str) -> None:
        self._exchange = exchange
        self._peer = peer
        self._early: dict[int, bytes] = {}
        self._awaited: dict[int, asyncio.Future[bytes]] = {}
        self._labels: set[int] = set()
        self._is_reading = False
        self._orders: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._reader = threading.Thread(target=self._read, name=f"sfumato-from-{peer}", daemon=True)
        self._reader.start()

    def send(self, label: int, payload: bytes) -> None:
        self._exchange.note_sent(label, len(payload))
        try:
            self._exchange.channel.send(self._peer, _LABEL.pack(label) + payload)
        except Exception as exc:
            self._exchange.fail(_as_fault(self._peer, exc))

    def receive(self, label: int) -> bytes | asyncio.Future[bytes]:
        if label in self._early:
            return self._early.pop(label)
        self._awaited[label] = self._exchange.loop.create_future()
        self._read_on()
        return self._awaited[label]

    def close(self) -> None:
        self._closed.set()
        self._orders.put(False)
        self._reader.join()

    def check_all_used(self) -> None:
        """Refuse messages that nobody asked for."""
        if self._early:
            raise _BrokenProtocolError(self._peer, "out-of-turn")

    def _read_on(self) -> None:
        if self._awaited and not self._is_reading:
            self._is_reading = True
            self._orders.put(True)

    def _deliver(self, body: bytes) -> None:
        self._is_reading = False
        if len(body) < _LABEL.size:
            self._exchange.fail(_BrokenProtocolError(self._peer, "garbage"))
            return
        (label,) = _LABEL.unpack_from(body)
        payload = body[_LABEL.size :]
        self._exchange.note_received(self._peer, label, len(payload))
        if label in self._labels or len(self._early) >= _MOST_EARLY:
            self._exchange.fail(_BrokenProtocolError(self._peer, "out-of-turn"))
        if self._exchange.failure.done():
            return
        self._labels.add(label)
        if label in self._awaited:
            self._awaited.pop(label).set_result(payload)
        else:
            self._early[label] = payload
        self._read_on()

    def _read(self) -> None:
        call = self._exchange.loop.call_soon_threadsafe
        while self._orders.get() and not self._closed.is_set():
            try:
                call(self._deliver, self._next())
            except Exception as exc:
                call(self._exchange.fail, _as_fault(self._peer, exc))
                return

    def _next(self) -> bytes:
        """Wait in short pieces, so that nobody has to wait for this thread after a failure elsewhere."""
        deadline = time.monotonic() + self._exchange.timeout
        while not self._closed.is_set():
            left = deadline - time.monotonic()
            try:
                return self._exchange.channel.receive(self._peer, max(0.0, min(left, _PATIENCE)))
            except TimeoutError:
                if left <= _PATIENCE:
                    raise
        raise ConnectionError


def compute_together(
    channel: Channel,
    me: str,
    roster: Sequence[str],
    computation: Computation[Result],
    *,
    agreed: bytes,
    timeout: float = 60.0,
    accuse: Accuse | None = None,
    stage: str = STAGE,
) -> Result:
    """Run a computation on shared secrets with all other parties, who run it at the same time.

    Parameters
    ----------
    channel : Channel
        Private and authenticated. Threads must be able to receive from different senders and to send at the same time.
    me : str
        Name of this party.
    roster : sequence of str
        Names of all parties, from 3 to 7, in the same order for all of them.
    computation : coroutine function
        Called with the runtime; every party must ask it for the same operations in the same order.
    agreed : bytes
        All public parameters of the computation; a party with others is refused.
    timeout : float
        Seconds to wait for a message that is due.
    accuse : callable or None
        Called at a fault with the party and a key of :data:`sfumato.collaborate.transport.messages.REASONS`, to tell
        the others before the error is raised; may raise an error of its own.
    stage : str
        Name of the computation, for errors.

    Raises
    ------
    CollaborationError
        If a party has other parameters, is silent, or sends something else than the protocol asks for.
    """
    if not FEWEST_PARTIES <= len(roster) <= MOST_PARTIES or len(set(roster)) < len(roster):
        allowed = f"from {FEWEST_PARTIES} to {MOST_PARTIES} different names"
        raise InvalidParameterError("roster", f"got {len(roster)}", allowed=allowed)
    if me not in roster:
        raise InvalidParameterError("me", f"got {me!r}", allowed="one of the roster")
    loop = asyncio.new_event_loop()
    try:
        runtime = loop.run_until_complete(_new_runtime(roster.index(me), len(roster)))
        exchange = _Exchange(channel, timeout, loop)
        with runtime_of_this_thread(runtime):
            _greet(runtime, exchange, me, roster, hashlib.sha256(agreed).digest())
            return _run_to_the_end(loop, loop.create_task(_session(runtime, exchange, me, roster, computation, stage)))
    except _BrokenProtocolError as fault:
        if accuse is not None:
            accuse(fault.party, fault.reason)
        raise CollaborationError(REASONS[fault.reason], party=fault.party, stage=stage) from fault.__cause__
    finally:
        loop.close()


async def _new_runtime(place: int, n_parties: int) -> ChannelRuntime:
    """Build a runtime inside the loop in which it runs, since it takes the running one."""
    return ChannelRuntime(place, n_parties)


def _run_to_the_end(loop: asyncio.AbstractEventLoop, session: asyncio.Task[Result]) -> Result:
    try:
        while True:
            try:
                return loop.run_until_complete(session)
            except RuntimeError:  # MPyC stops the loop when one of its own coroutines fails
                if session.done():
                    raise
    finally:
        _drop_tasks(loop)


async def _session(
    runtime: ChannelRuntime,
    exchange: _Exchange,
    me: str,
    roster: Sequence[str],
    computation: Computation[Result],
    stage: str,
) -> Result:
    others = " or ".join(name for name in roster if name != me)
    misfit = CollaborationError("sent shares that do not fit together", party=others, stage=stage)
    exchange.loop.set_exception_handler(lambda _loop, _context: exchange.fail(misfit))
    lines = {name: _PeerLine(exchange, name) for name in roster if name != me}
    for party, name in zip(runtime.parties, roster, strict=True):
        party.protocol = lines.get(name)
    work = asyncio.ensure_future(computation(runtime))
    try:
        ends: set[asyncio.Future[Any]] = {work, exchange.failure}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if exchange.failure.done():
            exchange.failure.result()
        result = work.result()
        for line in lines.values():
            line.check_all_used()
        return result
    finally:
        for line in lines.values():
            line.close()


def _drop_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what a session left behind: after a failure, MPyC's unfinished tasks."""
    while tasks := asyncio.all_tasks(loop):
        for task in tasks:
            task.cancel()
        with suppress(RuntimeError):  # MPyC stops the loop again
            loop.run_until_complete(asyncio.wait(tasks))


def _greet(runtime: ChannelRuntime, exchange: _Exchange, me: str, roster: Sequence[str], digest: bytes) -> None:
    """Exchange the digest of what was agreed on, and the keys from which MPyC's parties draw random numbers."""
    peers = [(place, name) for place, name in enumerate(roster) if name != me]
    for place, name in peers:
        exchange.channel.send(name, digest + b"".join(runtime._prss_keys_to_peer(place)))
    for place, name in peers:
        try:
            body = exchange.channel.receive(name, exchange.timeout)
        except Exception as exc:
            raise _as_fault(name, exc) from exc
        if len(body) != _DIGEST_BYTES + runtime._prss_keys_from_peer(place):
            raise _BrokenProtocolError(name, "wrong-length")
        if body[:_DIGEST_BYTES] != digest:
            raise _BrokenProtocolError(name, "parameters")
        runtime._prss_keys_from_peer(place, body[_DIGEST_BYTES:])


def _as_fault(peer: str, error: Exception) -> Exception:
    """Turn a channel's error into a fault of the peer; others, which say themselves what they are, stay."""
    if isinstance(error, TimeoutError):
        return _BrokenProtocolError(peer, "silent")
    return _BrokenProtocolError(peer, "gone") if isinstance(error, OSError) else error
