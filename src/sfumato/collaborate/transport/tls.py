"""Channel between parties on a network: mutual TLS, in order, with a limit on the size of a message."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from asyncio import StreamReader, StreamWriter
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar

from sfumato.collaborate.roster import Peer, Roster
from sfumato.collaborate.transport.channel import CONNECT_STAGE, GaveUpError, UnexpectedSizeError
from sfumato.collaborate.transport.door import (
    FAREWELL_SECONDS,
    PIECE_BYTES,
    Door,
    SeldomWarning,
    connect,
    fingerprint_of_other_end,
    tls_contexts,
)
from sfumato.errors import CollaborationError, InvalidParameterError

# Packets between parties over mutual TLS.
#
# Every party keeps one connection to every other, on which it only sends. A peer is known by the SHA-256 of its whole
# certificate, which the authority must have signed as well; one connection per party is admitted. A packet is eight
# bytes of length, eight of the message's number, and the message; the length, which counts the number too, is checked
# before the rest is read.


_LENGTH_BYTES = _NUMBER_BYTES = 8
_ADMITTED, _REFUSED = b"+", b"-"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
_MOST_ATTEMPTS = 12  # some seconds; a peer without room cuts connections off, and so does one of another authority
_CLOSED = "it closed the connection at once; it may trust another authority"
_LINGER_SECONDS = 5.0
_GAVE_UP = 2**64 - 1  # in the place of a length
_NAME_BYTES = 64
_COST_OF_A_MESSAGE = 1024  # bytes that an unread message may take besides its content


@dataclass(eq=False)
class Incoming:
    """What came from a peer and is not read yet, and whether more can come."""

    sender: str
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    unread: deque[bytes] = field(default_factory=deque)
    has_news: asyncio.Event = field(default_factory=asyncio.Event)
    was_read: asyncio.Event = field(default_factory=asyncio.Event)
    is_raised: asyncio.Event = field(default_factory=asyncio.Event)
    is_held: bool = False
    held_bytes: int = 0
    problem: str = ""
    blames: str = ""
    has_spoken: bool = False
    unread_bytes: int = 0

    async def wait_until_expected(self, n_bytes: int, expected: Callable[[], int]) -> None:
        """Read nothing more while a packet is larger than is expected in this stage."""
        while n_bytes > expected():
            self.held_bytes = n_bytes
            self.is_held = True
            self.has_news.set()
            self.is_raised.clear()
            await self.is_raised.wait()
        self.is_held = False

    async def wait_for_room(self, n_bytes: int, limit: int) -> None:
        """Wait until a packet fits next to those that are not read yet, and count it."""
        while self.unread_bytes and self.unread_bytes + n_bytes > limit:
            self.was_read.clear()
            await self.was_read.wait()
        self.unread_bytes += n_bytes + _COST_OF_A_MESSAGE

    def keep(self, body: bytes) -> None:
        """Keep a message until it is read."""
        self.unread.append(body)
        self.has_news.set()

    def read(self) -> bytes:
        """Return the first message that is not read yet, and make room."""
        body = self.unread.popleft()
        self.mark_read(_NUMBER_BYTES + len(body))
        return body

    def mark_read(self, n_bytes: int) -> None:
        """Make room."""
        self.unread_bytes -= n_bytes + _COST_OF_A_MESSAGE
        self.was_read.set()


class TlsCommunicator:
    """Connections to and from all peers of a roster, in the event loop of :class:`TlsChannel`, which see.

    The roster's files are checked when it is made. A packet that does not fit beside a sender's unread ones waits until
    some are read.
    """

    def __init__(
        self,
        roster: Roster,
        *,
        listen_host: str,
        start_timeout: float,
        send_timeout: float,
        max_packet_bytes: int,
        on_connected: Callable[[str], None] | None = None,
    ) -> None:
        self._me = roster.me
        self._peers = roster.peers
        self._parties = roster.names
        self._name_of = {digest: name for name, digest in roster.fingerprints.items() if name != roster.me.name}
        self._digest_of = {name: digest for digest, name in self._name_of.items()}
        self._server_context, self._client_context = tls_contexts(roster)
        self._listen_host = listen_host
        self._start_timeout = start_timeout
        self._send_timeout = send_timeout
        self._max_packet_bytes = self._expected_bytes = max_packet_bytes
        self._on_connected = on_connected
        self._door = Door(self._server_context, len(roster.peers), self._answer)
        self._visits: set[asyncio.Task[None]] = set()
        self._outgoing: dict[str, tuple[StreamReader, StreamWriter]] = {}
        self._has_met_all = asyncio.Event()
        self.incoming = {peer.name: Incoming(peer.name) for peer in roster.peers}

    async def initialize(self) -> None:
        """Listen until all are there, and connect with every peer both ways."""
        try:
            await self._door.open(self._listen_host, self._me.port)
        except OSError as exc:
            problem = f"cannot listen on port {self._me.port} of '{self._listen_host}' ({exc.strerror})"
            raise CollaborationError(problem, party=self._me.name, stage=CONNECT_STAGE) from None
        meetings = {peer.name: asyncio.create_task(self._meet(peer)) for peer in self._peers}
        watches = [asyncio.create_task(self._watch(incoming)) for incoming in self.incoming.values()]
        try:
            await self._until_all_met(meetings, watches)
        except CollaborationError as error:
            await self._linger(meetings, error.party)
            for _, writer in self._outgoing.values():  # tell the peers for whom we give up
                writer.write(_GAVE_UP.to_bytes(_LENGTH_BYTES) + error.party.encode().ljust(_NAME_BYTES))
            raise
        finally:
            await _ended([*meetings.values(), *watches])
        self._door.close()
        self._has_met_all.set()

    async def _linger(self, meetings: dict[str, asyncio.Task[None]], culprit: str) -> None:
        """Stay a while for those who come a little later: they shall see our certificate, and learn the reason."""
        others = [meeting for name, meeting in meetings.items() if name != culprit and not meeting.done()]
        awaited = [incoming for name, incoming in self.incoming.items() if name != culprit]
        arrivals = [asyncio.create_task(incoming.arrived.wait()) for incoming in awaited]
        if others or arrivals:
            await asyncio.wait({*others, *arrivals}, timeout=min(_LINGER_SECONDS, self._start_timeout))
        for arrival in arrivals:
            arrival.cancel()

    async def _until_all_met(self, meetings: dict[str, asyncio.Task[None]], watches: list[asyncio.Task[None]]) -> None:
        tasks = [*meetings.values(), *watches]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._start_timeout):
                while not all(meeting.done() for meeting in meetings.values()):
                    pending = [task for task in tasks if not task.done()]
                    await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                    for task in tasks:
                        if task.done():
                            task.result()
                return
        late = sorted(name for name, meeting in meetings.items() if not meeting.done())
        await _ended(meetings.values())
        what = "did not connect to us" if late[0] in self._outgoing else "could not be reached"
        also = f" (nor did all go well with: {', '.join(late[1:])})" if late[1:] else ""
        problem = f"{what} within {self._start_timeout:g} s{also}"
        raise CollaborationError(
            problem, party=late[0], stage=CONNECT_STAGE, hint="is it running, at this host and port?"
        )

    async def _watch(self, incoming: Incoming) -> None:
        """Fail if a peer leaves before the session.

        Who has sent a message had met all, and has left the session that began for it: that is not a failure to
        connect, and the session hears from its messages who is to blame.
        """
        await incoming.gone.wait()
        if incoming.has_spoken:
            return
        if incoming.blames:
            problem = f"party '{incoming.sender}' gave up because of it"
            raise CollaborationError(problem, party=incoming.blames, stage=CONNECT_STAGE)
        raise CollaborationError(incoming.problem, party=incoming.sender, stage=CONNECT_STAGE)

    async def _meet(self, peer: Peer) -> None:
        self._outgoing[peer.name] = await self._admitted(peer)
        await self.incoming[peer.name].arrived.wait()
        if self._on_connected is not None:
            self._on_connected(peer.name)

    async def _admitted(self, peer: Peer) -> tuple[StreamReader, StreamWriter]:
        """Connect to a peer that lets us in; tries again where it may only have had no room."""
        pause = _FIRST_PAUSE
        for n_tried in range(1, _MOST_ATTEMPTS + 1):
            reader, writer = await self._connect(peer)
            try:
                problem = await self._reason_against(peer, reader, writer)
            except BaseException:
                writer.transport.abort()
                raise
            if not problem:
                return reader, writer
            writer.transport.abort()
            if problem != _CLOSED or n_tried == _MOST_ATTEMPTS:
                break
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        raise CollaborationError(problem, party=peer.name, stage=CONNECT_STAGE)

    async def _connect(self, peer: Peer) -> tuple[StreamReader, StreamWriter]:
        pause = _FIRST_PAUSE
        while True:
            try:
                return await connect(peer, self._client_context)
            except ssl.SSLCertVerificationError as exc:
                problem = f"its certificate is not accepted ({exc.verify_message})"
                raise CollaborationError(problem, party=peer.name, stage=CONNECT_STAGE) from None
            except OSError:  # not up yet, its name is not known yet, or it has no room
                if self.incoming[peer.name].gone.is_set():
                    raise CollaborationError(
                        self.incoming[peer.name].problem, party=peer.name, stage=CONNECT_STAGE
                    ) from None
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    async def _reason_against(self, peer: Peer, reader: StreamReader, writer: StreamWriter) -> str:
        if fingerprint_of_other_end(writer) != self._digest_of[peer.name]:
            return "it answers with another certificate than the one configured for it"
        try:
            answer = await reader.read(1)
        except ssl.SSLError as exc:
            return f"it does not accept our certificate ({(exc.reason or 'no reason given').replace('_', ' ').lower()})"
        except OSError:
            answer = b""
        if answer == _REFUSED:
            return "it does not accept our certificate (not the one configured there, or in use already)"
        return "" if answer == _ADMITTED else _CLOSED

    def _answer(self, reader: StreamReader, writer: StreamWriter) -> None:
        visit = asyncio.create_task(self._admit(reader, writer))
        self._visits.add(visit)
        visit.add_done_callback(self._visits.discard)
        visit.add_done_callback(lambda _: writer.transport.abort())

    async def _admit(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Read from a party that has shown its certificate; turn away everybody else."""
        incoming = self.incoming.get(self._name_of.get(fingerprint_of_other_end(writer), ""))
        try:
            if incoming is None or incoming.arrived.is_set():
                writer.write(_REFUSED)
                writer.close()
                await writer.wait_closed()
                return
            writer.write(_ADMITTED)
            incoming.arrived.set()
            try:
                await self._listen(incoming, reader)
            finally:
                incoming.gone.set()
                incoming.has_news.set()
        except OSError:
            pass  # the other end has gone, which is all there is to know

    async def _listen(self, incoming: Incoming, reader: StreamReader) -> None:
        incoming.problem = "closed the connection"
        n_packets = 0
        while True:
            try:
                length = int.from_bytes(await reader.readexactly(_LENGTH_BYTES))
                if length == _GAVE_UP:
                    incoming.problem = "gave up before the session began"
                    name = (await reader.readexactly(_NAME_BYTES)).decode(errors="replace").rstrip()
                    incoming.blames = name if name in self._parties else ""
                    return
                incoming.has_spoken = True
                if length > self._max_packet_bytes:
                    incoming.problem = f"announced {length:,} bytes; at most {self._max_packet_bytes:,} are accepted"
                    return
                await incoming.wait_until_expected(length, lambda: self._expected_bytes)
                await incoming.wait_for_room(length, self._max_packet_bytes)
                number = int.from_bytes(await reader.readexactly(min(_NUMBER_BYTES, length)))
                if length < _NUMBER_BYTES or number != n_packets:
                    incoming.problem = "sent something that is not its next message"
                    return
                incoming.keep(await _read_exactly(reader, length - _NUMBER_BYTES))
            except (asyncio.IncompleteReadError, OSError):
                return
            n_packets += 1

    def expect_at_most(self, n_bytes: int | None) -> None:
        """Hold packets of more bytes, unread, until larger ones are expected; None leaves the limit of all packets."""
        self._expected_bytes = self._max_packet_bytes if n_bytes is None else min(n_bytes, self._max_packet_bytes)
        for incoming in self.incoming.values():
            incoming.is_raised.set()
            if incoming.held_bytes <= self._expected_bytes:
                incoming.is_held = False

    async def send(self, to: str, number: int, body: bytes) -> None:
        """Send a message and its number once all have met; a connection on which this fails is not used again."""
        await self._has_met_all.wait()
        reader, writer = self._outgoing[to]
        if reader.at_eof() or writer.is_closing():
            problem = "the connection is closed"
            raise ConnectionError(problem)
        rest = memoryview(body)
        try:
            async with asyncio.timeout(self._send_timeout):
                length = _NUMBER_BYTES + len(body)
                writer.write(length.to_bytes(_LENGTH_BYTES) + number.to_bytes(_NUMBER_BYTES))
                while rest:
                    writer.write(rest[:PIECE_BYTES])
                    rest = rest[PIECE_BYTES:]
                    await writer.drain()
        except TimeoutError:
            writer.transport.abort()
            problem = f"a message was not taken within {self._send_timeout:g} s"
            raise TimeoutError(problem) from None
        except OSError:
            writer.transport.abort()
            problem = "the connection broke while a message was sent"
            raise ConnectionError(problem) from None

    async def shutdown(self) -> None:
        """Deliver what was sent, close everything and end all tasks: the event loop is the communicator's own."""
        self._door.close()
        await _ended(self._visits)
        writers = [writer for _, writer in self._outgoing.values()]
        for writer in writers:
            writer.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_SECONDS):
                await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)
        for writer in writers:
            writer.transport.abort()
        await _ended(asyncio.all_tasks() - {asyncio.current_task()})  # connections that were just coming in
        for _ in range(5):  # from cutting a connection to closing its socket the event loop takes three turns
            await asyncio.sleep(0)


async def _read_exactly(reader: StreamReader, n_bytes: int) -> bytes:
    """Read a packet piece by piece: the reader's own way keeps a second copy."""
    packet = bytearray()
    while len(packet) < n_bytes:
        piece = await reader.read(min(PIECE_BYTES, n_bytes - len(packet)))
        if not piece:
            raise asyncio.IncompleteReadError(b"", n_bytes)
        packet += piece
    return bytes(packet)


async def _ended(tasks: Iterable[asyncio.Task[Any] | None]) -> None:
    """Cancel tasks and wait until they have ended, however they do."""
    started = [task for task in tasks if task is not None]
    for task in started:
        task.cancel()
    await asyncio.gather(*started, return_exceptions=True)


MAX_BODY_BYTES = 256 * 2**20

_CLOSED_HERE = "this channel was closed meanwhile"
_Result = TypeVar("_Result")


class TlsChannel:
    """Messages to and from all other parties of a roster: a :class:`~sfumato.collaborate.transport.channel.Channel`.

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
            max_packet_bytes=max_body_bytes + _NUMBER_BYTES,
            on_connected=on_connected,
        )
        self._n_sent = dict.fromkeys(self._communicator.incoming, 0)
        self._sending = {name: asyncio.Lock() for name in self._communicator.incoming}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._running = threading.Event()
        self._trouble = SeldomWarning("the network reports %d times, the last: %s")
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
            self._do(self._communicator.initialize())
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
        packed = None if n_bytes is None else n_bytes + _NUMBER_BYTES
        if self._loop is None:
            self._communicator.expect_at_most(packed)
        else:
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
            raise InvalidParameterError("the party", f"got {name!r}", allowed="one of the roster's other parties")

    def _do(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        if self._loop is None:
            work.close()
            problem = "this channel is not open"
            raise ConnectionError(problem)
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except CancelledError:
            raise ConnectionError(_CLOSED_HERE) from None

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        # one line, without a traceback for everything that a stranger sends
        self._loop.set_exception_handler(lambda _, context: self._trouble.note(context["message"]))
        self._running.set()
        await self._stop.wait()
        for incoming in self._communicator.incoming.values():
            incoming.has_news.set()  # that no more will come
        await self._communicator.shutdown()

    async def _send(self, to: str, body: bytes) -> None:
        async with self._sending[to]:
            number = self._n_sent[to]
            self._n_sent[to] += 1
            await self._communicator.send(to, number, body)

    async def _receive(self, sender: str, timeout: float) -> bytes:
        incoming = self._communicator.incoming[sender]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while not (incoming.unread or incoming.gone.is_set() or incoming.is_held or self._stop.is_set()):
                    incoming.has_news.clear()
                    await incoming.has_news.wait()
        if incoming.unread:
            return incoming.read()
        if self._stop.is_set():
            raise ConnectionError(_CLOSED_HERE)
        if incoming.gone.is_set():
            if incoming.blames:
                raise GaveUpError(incoming.problem, because_of=incoming.blames)
            raise ConnectionError(incoming.problem)
        if incoming.is_held:
            problem = f"a message of {incoming.held_bytes - _NUMBER_BYTES:,} bytes is not expected now"
            raise UnexpectedSizeError(problem)
        problem = f"no message within {timeout:g} s"
        raise TimeoutError(problem)
