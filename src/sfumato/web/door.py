"""Connections to the page: those of strangers are few and short, and do not count against the user's.

A connection is a stranger's until a request on it has shown the token or the cookie. A stranger has some seconds for
that, TLS handshake included. When there are too many strangers, those of the address that has the most go first, and of
these the oldest: somebody who is about to show the token has only just come.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections import OrderedDict
from collections.abc import Callable

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_STRANGERS = 256
MOST_STRANGERS_OF_AN_ADDRESS = 64
SECONDS_FOR_THE_TOKEN = 10.0
_PAUSE_SECONDS = 0.1

Client = tuple[str, int]
"""Address and port, as an ASGI scope names a client."""


class Door:
    """Who is connected and has not shown the token yet.

    Examples
    --------
    >>> door, closed = Door(most=3, most_of_an_address=2), []
    >>> for port in (1, 2, 3):
    ...     door.arrive(("10.0.0.1", port), lambda port=port: closed.append(port))
    >>> closed, door.n_strangers
    ([1], 2)
    >>> door.admit(("10.0.0.1", 2))
    >>> door.n_strangers
    1
    """

    def __init__(self, *, most: int = MOST_STRANGERS, most_of_an_address: int = MOST_STRANGERS_OF_AN_ADDRESS) -> None:
        self._most = most
        self._most_of_an_address = most_of_an_address
        self._strangers: dict[str, OrderedDict[Client, Callable[[], object]]] = {}

    @property
    def n_strangers(self) -> int:
        """Connections that have not shown the token."""
        return sum(map(len, self._strangers.values()))

    def arrive(self, client: Client, close: Callable[[], object]) -> None:
        """Take a connection in; ``close`` ends it, which may happen to an older one at once."""
        self._strangers.setdefault(client[0], OrderedDict())[client] = close
        if len(self._strangers[client[0]]) > self._most_of_an_address:
            self._close_oldest(client[0])
        if self.n_strangers > self._most:
            self._close_oldest(max(self._strangers, key=lambda address: len(self._strangers[address])))

    def admit(self, client: Client | None) -> None:
        """Take a connection for the user's from now on."""
        if client is not None:
            self._forget(client)

    def leave(self, client: Client) -> None:
        """Forget a connection that is gone."""
        self._forget(client)

    def expire(self, client: Client) -> None:
        """Close a connection whose time is over, if it is a stranger's still."""
        close = self._forget(client)
        if close is not None:
            close()

    def _close_oldest(self, address: str) -> None:
        self.expire(next(iter(self._strangers[address])))

    def _forget(self, client: Client) -> Callable[[], object] | None:
        found = self._strangers.get(client[0], OrderedDict())
        close = found.pop(client, None)
        if not found:
            self._strangers.pop(client[0], None)
        return close


class Connection(H11Protocol):
    """A connection that says when it is lost."""

    gone: asyncio.Event

    def connection_lost(self, exc: Exception | None) -> None:
        """Say so."""
        self.gone.set()
        super().connection_lost(exc)


async def accept(
    listener: socket.socket, door: Door, make: Callable[[], Connection], context: ssl.SSLContext | None
) -> None:
    """Take connections of a listener in through the door, until cancelled."""
    loop = asyncio.get_running_loop()
    listener.setblocking(False)
    open_ones: set[asyncio.Task[None]] = set()
    while True:
        try:
            connection, address = await loop.sock_accept(listener)
        except OSError:  # such as too many open files
            await asyncio.sleep(_PAUSE_SECONDS)
            continue
        client = (str(address[0]), int(address[1]))
        task = loop.create_task(_connected(connection, client, door, make, context))
        open_ones.add(task)
        task.add_done_callback(open_ones.discard)
        door.arrive(client, task.cancel)
        loop.call_later(SECONDS_FOR_THE_TOKEN, door.expire, client)


async def _connected(
    connection: socket.socket,
    client: Client,
    door: Door,
    make: Callable[[], Connection],
    context: ssl.SSLContext | None,
) -> None:
    """Shake hands, and stay until the connection is lost, or until cancelled, which closes it."""
    protocol, transport = make(), None
    protocol.gone = asyncio.Event()
    limit = SECONDS_FOR_THE_TOKEN if context is not None else None
    try:
        with contextlib.suppress(OSError, ssl.SSLError):  # a stranger who cannot shake hands is not worth a line
            transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                lambda: protocol, connection, ssl=context, ssl_handshake_timeout=limit
            )
            await protocol.gone.wait()
    finally:
        door.leave(client)
        if transport is not None:
            transport.abort()
        else:
            connection.close()
