"""TLS as the parties use it: both ends show a certificate, and it is known as a whole."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from asyncio import StreamReader, StreamReaderProtocol, StreamWriter
from typing import cast

from sfumato.collaboration.roster import Peer, Roster

HANDSHAKE_SECONDS = 10.0
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
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=FAREWELL_SECONDS,
        )
    except BaseException:
        if protocol.transport is not None:
            protocol.transport.abort()
        raise
    return reader, StreamWriter(transport, protocol, reader, loop)
