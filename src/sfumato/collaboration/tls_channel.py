"""Channel between parties on a network: mutual TLS, in order, with a limit on the size of a message."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from types import TracebackType
from typing import Any, Self, TypeVar

from sfumato.collaboration.contract import GaveUpError, UnexpectedSizeError
from sfumato.collaboration.door import Seldom
from sfumato.collaboration.roster import Roster
from sfumato.collaboration.tls_communicator import TlsCommunicator
from sfumato.collaboration.tno_pool import NumberedBytes, Pool
from sfumato.errors import InvalidParameterError

MAX_BODY_BYTES = 256 * 2**20

_PACKING_BYTES = 8
_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


class TlsChannel:
    """Messages to and from all other parties of a roster: a :class:`~sfumato.collaboration.contract.Channel`.

    Use as a context manager: entering connects with all peers, and leaving closes every connection, after what was
    sent has been handed over. A channel serves one session; a connection that breaks is not made again. The network
    runs in a thread of its own, so that messages arrive while the caller computes. Any thread may send, one thread at a
    time may receive from a sender.

    Parameters
    ----------
    roster : Roster
        All parties, this one's private key and the one authority.
    listen_host : str or None
        Address to listen on; the roster's host of this party if None.
    start_timeout : float
        Seconds to wait for peers that are not up yet.
    send_timeout : float
        Seconds within which a peer's machine must take a message.
    max_body_bytes : int
        Largest message, sent or received. A peer that announces a larger one is cut off before the message is read,
        and one that sends on waits until its message fits beside what is unread: memory stays within
        about three times this, for every peer.
    on_connected : callable or None
        Called with the name of each peer once it is connected both ways, from the thread of the network.

    Raises
    ------
    InputError
        If a certificate or the private key cannot be used; see :attr:`Roster.fingerprints`.

    Notes
    -----
    Entering raises :class:`~sfumato.errors.CollaborationError` with the peer that could not be reached, did not accept
    our certificate or showed another one than the roster's.
    """

    def __init__(
        self,
        roster: Roster,
        *,
        listen_host: str | None = None,
        start_timeout: float = 60.0,
        send_timeout: float = 60.0,
        max_body_bytes: int = MAX_BODY_BYTES,
        on_connected: Callable[[str], None] | None = None,
    ) -> None:
        for name, seconds in [("start_timeout", start_timeout), ("send_timeout", send_timeout)]:
            if not seconds > 0:
                raise InvalidParameterError(name, f"got {seconds:g}", allowed="above 0 seconds")
        if max_body_bytes < 1:
            raise InvalidParameterError("max_body_bytes", f"got {max_body_bytes}", allowed="at least 1")
        self._roster = roster
        self._max_body_bytes = max_body_bytes
        self._communicator = TlsCommunicator(
            roster,
            listen_host=listen_host or roster.me.host,
            start_timeout=start_timeout,
            send_timeout=send_timeout,
            max_packet_bytes=max_body_bytes + _PACKING_BYTES,
            on_connected=on_connected,
        )
        self._pool = Pool(roster.me.name, self._communicator, NumberedBytes(), timeout=None)
        for peer in roster.peers:
            self._pool.add_client(peer.name, peer)
        self._n_sent = dict.fromkeys(self._communicator.incoming, 0)
        self._n_received = dict.fromkeys(self._communicator.incoming, 0)
        self._sending = {name: asyncio.Lock() for name in self._communicator.incoming}
        self._awaited: dict[str, asyncio.Task[bytes]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._running = threading.Event()
        self._seldom = Seldom()
        self._stop = asyncio.Event()

    def open(self) -> None:
        """Connect with all peers.

        Raises
        ------
        CollaborationError
            If a peer cannot be reached in time, or either side does not accept the other's certificate.
        """
        if self._thread is not None:
            problem = "but this one was opened before"
            raise InvalidParameterError("a channel", problem, allowed="opened once: it serves one session")
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(),), name="sfumato-tls", daemon=True)
        self._thread.start()
        self._running.wait()
        try:
            self._do(self._pool.initialize())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Hand over what was sent, close all connections and end the thread."""
        if self._thread is None or self._loop is None:
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop = None

    def send(self, to: str, body: bytes) -> None:
        """Hand over a message to a party; does not wait for the party to ask for it.

        Raises
        ------
        ConnectionError
            If the connection is broken or closed.
        TimeoutError
            If the party's machine does not take the message in time.
        """
        self._check_party(to)
        if len(body) > self._max_body_bytes:
            allowed = f"at most {self._max_body_bytes:,} bytes"
            raise InvalidParameterError("a message", f"got {len(body):,}", allowed=allowed)
        self._do(self._send(to, body))

    def expect_at_most(self, n_bytes: int | None) -> None:
        """Read no message of more bytes from now on, until more are expected; None leaves ``max_body_bytes``."""
        if self._loop is not None:
            packed = None if n_bytes is None else n_bytes + _PACKING_BYTES
            self._loop.call_soon_threadsafe(self._communicator.expect_at_most, packed)

    def receive(self, sender: str, timeout: float) -> bytes:
        """Return the next message of a party.

        What a party sent before it went away is still returned.

        Raises
        ------
        UnexpectedSizeError
            If the next message is larger than expected. It can be asked for again once larger ones are expected.
        TimeoutError
            If none comes in so many seconds. It can be asked for again.
        ConnectionError
            If none can come any more: the party has gone, or was cut off for what it sent.
        """
        self._check_party(sender)
        return self._do(self._receive(sender, timeout))

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _check_party(self, name: str) -> None:
        if name not in self._n_sent:
            raise InvalidParameterError("the party", "but this one is not", allowed="one of the roster's other parties")

    def _do(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        if self._loop is None:
            work.close()
            problem = "this channel is not open"
            raise ConnectionError(problem)
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except CancelledError:
            problem = "this channel was closed meanwhile"
            raise ConnectionError(problem) from None

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._say_in_one_line)
        self._running.set()
        await self._stop.wait()
        self._pool.buffer.empty()
        await self._pool.shutdown()

    def _say_in_one_line(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Say what went wrong in the network's thread, without a traceback for everything that a stranger sends."""
        if n_times := self._seldom.count():
            _log.warning("the network reports %d times, the last: %s", n_times, context["message"])

    async def _send(self, to: str, body: bytes) -> None:
        async with self._sending[to]:
            number = self._n_sent[to]
            self._n_sent[to] += 1
            await self._pool.send(to, body, str(number))

    async def _receive(self, sender: str, timeout: float) -> bytes:
        incoming = self._communicator.incoming[sender]
        task = self._awaited.pop(sender, None)
        if task is None:
            number = self._n_received[sender]
            self._n_received[sender] += 1
            task = asyncio.create_task(self._pool.recv(sender, str(number)))
        ends = [asyncio.create_task(event.wait()) for event in (incoming.gone, incoming.is_held)]
        await asyncio.wait({task, *ends}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
        if not task.done():
            self._awaited[sender] = task
            if incoming.gone.is_set():
                if incoming.blames:
                    raise GaveUpError(incoming.problem, because_of=incoming.blames)
                raise ConnectionError(incoming.problem)
            if incoming.is_held.is_set():
                problem = f"a message of {incoming.held_bytes - _PACKING_BYTES:,} bytes is not expected now"
                raise UnexpectedSizeError(problem)
            problem = f"no message within {timeout:g} s"
            raise TimeoutError(problem)
        body = task.result()
        self._communicator.mark_read(sender, len(body) + _PACKING_BYTES)
        return body
