"""Who takes part in a collaboration, where each party is reached, and by which certificate it is known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cryptography import x509

from sfumato.collaborate.transport.certificates import (
    check_authority,
    check_certificate,
    check_key,
    check_name,
    fingerprint,
)
from sfumato.errors import InvalidParameterError


@dataclass(frozen=True)
class Peer:
    """A party as the others know it.

    Parameters
    ----------
    name : str
        Its name in the session, and the common name of its certificate.
    host : str
        Host name or address where it listens.
    port : int
        Port where it listens.
    certificate : Path
        PEM file with its certificate.
    """

    name: str
    host: str
    port: int
    certificate: Path

    def __post_init__(self) -> None:
        check_name(self.name)
        if not 1 <= self.port <= 65535:
            raise InvalidParameterError("port", f"got {self.port}", allowed="from 1 to 65535")


@dataclass(frozen=True)
class Roster:
    """All parties of a session, from the view of one of them.

    Parameters
    ----------
    me : Peer
        This party.
    key : Path
        Private key of this party, a PEM file.
    peers : tuple of Peer
        All other parties.
    ca : Path
        Certificate of the one authority that signed all parties' certificates.
    """

    me: Peer
    key: Path
    peers: tuple[Peer, ...]
    ca: Path

    def __post_init__(self) -> None:
        if len(set(self.names)) < len(self.peers) + 1:
            raise InvalidParameterError("the parties' names", "one is there twice", allowed="different")
        if len({(peer.host, peer.port) for peer in (self.me, *self.peers)}) < len(self.peers) + 1:
            raise InvalidParameterError("the parties' hosts and ports", "one pair is there twice", allowed="different")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parties, this one included, in the order that all parties share."""
        return tuple(sorted(peer.name for peer in (self.me, *self.peers)))

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        """SHA-256 of every party's certificate by name; reading them checks all files.

        Raises
        ------
        InputError
            If a certificate is signed by another authority, has expired, names another party or does not cover the
            party's host, or if the private key is not this party's.
        """
        authority = check_authority(self.ca)
        mine = check_certificate(self.me.certificate, authority=authority, name=self.me.name)
        check_key(self.key, mine)
        found = {self.me.name: mine} | {peer.name: _checked(peer, authority) for peer in self.peers}
        return {name: fingerprint(found[name]) for name in self.names}


def _checked(peer: Peer, authority: x509.Certificate) -> x509.Certificate:
    return check_certificate(peer.certificate, authority=authority, name=peer.name, host=peer.host)
