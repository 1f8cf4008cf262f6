"""Where a party listens while the parties meet: lets those with a certificate in, and is not held up by strangers.

A stranger needs no key to open connections and to say nothing on them. So only few may be unfinished at a time, of any
address and in all, and none for long. Who comes when there are too many is let in all the same: one of those that have
said nothing yet is cut off instead, else any. A party's own handshake takes milliseconds, and a party that is cut off
tries again.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import ipaddress
import logging
import random
import socket
import ssl
import time
from asyncio import StreamReader, StreamReaderProtocol, StreamWriter
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from sfumato.collaborate.roster import Peer, Roster

# TLS as the parties use it: both ends show a certificate, and it is known as a whole.


TLS_HANDSHAKE_SECONDS = 10.0
FAREWELL_SECONDS = 2.0
PIECE_BYTES = 2**18


def tls_contexts(roster: Roster) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Make the settings of a party that listens and of one that connects: version 1.3, one authority is trusted."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for context in (server, client):
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(roster.me.certificate, roster.key)
        context.load_verify_locations(roster.ca)
        context.verify_mode = ssl.CERT_REQUIRED
    server.num_tickets = 0  # nobody resumes a connection
    return server, client


def fingerprint_of_other_end(writer: StreamWriter) -> str:
    """SHA-256 of the certificate that the other end of a connection has shown, in hexadecimal digits."""
    certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    return hashlib.sha256(certificate or b"").hexdigest()


class _KnownConnection(StreamReaderProtocol):
    """Streams on a connection that can be cut from its first moment on."""

    transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.WriteTransport, transport)
        super().connection_made(transport)


async def connect(peer: Peer, context: ssl.SSLContext) -> tuple[StreamReader, StreamWriter]:
    """Connect to a peer; whoever cancels this leaves no connection behind, unlike with ``asyncio.open_connection``."""
    loop = asyncio.get_running_loop()
    reader = StreamReader(limit=PIECE_BYTES, loop=loop)
    protocol = _KnownConnection(reader, loop=loop)
    try:
        transport, _ = await loop.create_connection(
            lambda: protocol,
            peer.host,
            peer.port,
            ssl=context,
            ssl_handshake_timeout=TLS_HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=FAREWELL_SECONDS,
        )
    except BaseException:
        if protocol.transport is not None:
            protocol.transport.abort()
        raise
    return reader, StreamWriter(transport, protocol, reader, loop)


HANDSHAKE_SECONDS, PATIENT_SECONDS = 5.0, 15.0
"""How long a connection may stay without a finished handshake, and how long if there are no more than expected."""

_BACKLOG = 128
_AT_ONCE = 64
_BREATH = 0.2
_SPARE_AN_ADDRESS, _SPARE = 8, 16
_QUIET_SECONDS = 10.0

_log = logging.getLogger(__name__)


class SeldomWarning:
    """A warning about what strangers can cause as often as they like: one line in a while, with how often it was.

    Parameters
    ----------
    text : str
        Takes how often it happened since the last line, and what is said of the last time.
    clock : callable
        Gives the time in seconds.
    """

    def __init__(self, text: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._text = text
        self._clock = clock
        self._said_at = -float("inf")
        self._n_unsaid = 0

    def note(self, *last: str) -> None:
        """Count once more, and say so if a line is due."""
        self._n_unsaid += 1
        if self._clock() - self._said_at >= _QUIET_SECONDS:
            _log.warning(self._text, self._n_unsaid, *last)
            self._said_at, self._n_unsaid = self._clock(), 0


TURNED_AWAY = "turned away %d connections, the last from %s: %s"


@dataclass(eq=False)
class _Guest:
    """A connection that is not finished."""

    connection: socket.socket
    address: str
    group: str
    too_late: asyncio.TimerHandle | None = None
    handshake: asyncio.Task[None] | None = None
    has_transport: bool = False
    is_cut_off: bool = False


class _Entrance(StreamReaderProtocol):
    """Streams of a connection that may have been cut off while its handshake was finished."""

    def __init__(self, guest: _Guest, reader: StreamReader, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(reader, loop=loop)
        self._guest = guest

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._guest.is_cut_off:
            cast(asyncio.WriteTransport, transport).abort()


class Door:
    """Listener with room for few unfinished handshakes.

    Parameters
    ----------
    context : SSLContext
        Asks for a certificate.
    n_expected : int
        Connections that are expected, all of which may come at once and from one address.
    welcome : callable
        Called with the streams of every connection whose handshake is finished.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        n_expected: int,
        welcome: Callable[[StreamReader, StreamWriter], None],
    ) -> None:
        self._context = context
        self._welcome = welcome
        self._n_expected = n_expected
        self._turned_away = SeldomWarning(TURNED_AWAY)
        self.most_of_an_address = n_expected + _SPARE_AN_ADDRESS
        self.most = 2 * n_expected + _SPARE
        self._listeners: list[socket.socket] = []
        self._guests: dict[_Guest, None] = {}
        self._resting: asyncio.TimerHandle | None = None

    async def open(self, host: str, port: int) -> None:
        """Listen on all addresses of a host; raises ``OSError``."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, address in dict.fromkeys((entry[0], entry[4]) for entry in found):
                self._listeners.append(_listener(family, address))
        except OSError:
            self.close()
            raise
        self._attend()

    def close(self) -> None:
        """Listen no more, and cut off whoever is not through."""
        if self._resting is not None:
            self._resting.cancel()
        for listener in self._listeners:
            asyncio.get_running_loop().remove_reader(listener)
            listener.close()
        self._listeners = []
        for guest in list(self._guests):
            self._cut_off(guest)

    def _attend(self) -> None:
        self._resting = None
        for listener in self._listeners:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, where = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as exc:
                self._rest(exc)
                return
            self._let_in(connection, str(where[0]))

    def _rest(self, exc: OSError) -> None:
        """Stop for a moment where the system has no room for another connection."""
        self._turned_away.note("this machine", errno.errorcode.get(exc.errno or 0, "no connection can be accepted"))
        for listener in self._listeners:
            asyncio.get_running_loop().remove_reader(listener)
        if self._resting is None:
            self._resting = asyncio.get_running_loop().call_later(_BREATH, self._attend)

    def _let_in(self, connection: socket.socket, address: str) -> None:
        loop = asyncio.get_running_loop()
        connection.setblocking(False)
        guest = _Guest(connection, address, _group_of(address))
        guest.too_late = loop.call_later(HANDSHAKE_SECONDS, self._is_late, guest)
        self._make_room(guest.group)
        self._guests[guest] = None
        loop.add_reader(connection, self._begin, guest)

    def _make_room(self, group: str) -> None:
        """Make room for one more of a group of addresses."""
        groups = Counter(guest.group for guest in self._guests)
        if groups[group] >= self.most_of_an_address:
            self._turn_away(self._dispensable(group), "too many unfinished connections of this address")
        elif len(self._guests) >= self.most:
            largest = max(groups, key=lambda name: groups[name])
            self._turn_away(self._dispensable(largest), "too many unfinished connections")

    def _dispensable(self, group: str) -> _Guest:
        """Choose the oldest that says nothing; else any, so that nobody knows whom a flood pushes out."""
        guests = [guest for guest in self._guests if guest.group == group]
        silent = [guest for guest in guests if guest.handshake is None]
        return silent[0] if silent else random.choice(guests)

    def _begin(self, guest: _Guest) -> None:
        """Begin the handshake once something was sent."""
        asyncio.get_running_loop().remove_reader(guest.connection)
        guest.handshake = asyncio.create_task(self._shake_hands(guest))

    async def _shake_hands(self, guest: _Guest) -> None:
        loop = asyncio.get_running_loop()
        reader = StreamReader(limit=PIECE_BYTES, loop=loop)
        protocol = _Entrance(guest, reader, loop)
        guest.has_transport = True
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol,
                guest.connection,
                ssl=self._context,
                ssl_handshake_timeout=2 * PATIENT_SECONDS,  # cut off before, with all that is unfinished
                ssl_shutdown_timeout=FAREWELL_SECONDS,
            )
        except (OSError, ssl.SSLError) as exc:
            self._turn_away(guest, _words(exc))
            return
        if guest not in self._guests:
            transport.abort()
            return
        self._forget(guest)
        self._welcome(reader, StreamWriter(transport, protocol, reader, loop))

    def _is_late(self, guest: _Guest) -> None:
        """Cut off a connection that takes long; machines under load get more time as long as nobody is in the way."""
        reason, loop = "no handshake in time", asyncio.get_running_loop()
        if len(self._guests) > self._n_expected:
            self._turn_away(guest, reason)
        else:
            guest.too_late = loop.call_later(PATIENT_SECONDS - HANDSHAKE_SECONDS, self._turn_away, guest, reason)

    def _turn_away(self, guest: _Guest, reason: str) -> None:
        if guest in self._guests:
            if reason:
                self._turned_away.note(guest.address, reason)
            self._cut_off(guest)

    def _cut_off(self, guest: _Guest) -> None:
        self._forget(guest)
        guest.is_cut_off = True
        if guest.handshake is None:
            asyncio.get_running_loop().remove_reader(guest.connection)
        elif guest.handshake is not asyncio.current_task():
            guest.handshake.cancel()
        if not guest.has_transport:  # else that closes it; closed before, its number could be given to another
            guest.connection.close()

    def _forget(self, guest: _Guest) -> None:
        if guest.too_late is not None:
            guest.too_late.cancel()
        self._guests.pop(guest, None)


def _listener(family: int, address: tuple[Any, ...]) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def _group_of(address: str) -> str:
    """Address, or the network of 64 bits that one machine with IPv6 may have for itself.

    Examples
    --------
    >>> _group_of("10.0.0.7"), _group_of("2001:db8::1:2")
    ('10.0.0.7', '2001:db8::/64')
    """
    with contextlib.suppress(ValueError):
        found = ipaddress.ip_address(address.partition("%")[0])
        if found.version == 6:
            return str(ipaddress.ip_network((found, 64), strict=False))
    return address


def _words(exc: OSError) -> str:
    """Say in a few words why a handshake failed; nothing where the other end just left."""
    if isinstance(exc, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted ({exc.verify_message})"
    if isinstance(exc, ssl.SSLError):
        return (exc.reason or "no TLS").replace("_", " ").lower()
    return ""
