"""Where a Spark cluster is found."""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass

from sfumato.errors import InvalidParameterError

_LOCAL = re.compile(r"local(\[(\d{1,4}|\*)\])?", re.ASCII)
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})", re.ASCII)
_SCHEME = "spark://"


@dataclass(frozen=True)
class Master:
    """Address of a Spark master, or of none: ``local[n]`` works on this machine.

    Examples
    --------
    >>> Master.of("spark://node1:7077,node2:7077").addresses
    (('node1', 7077), ('node2', 7077))
    >>> Master.of("local[2]").is_local
    True
    """

    url: str
    addresses: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, url: str) -> Master:
        """Read an address.

        Raises
        ------
        InvalidParameterError
            If it is none.
        """
        if _LOCAL.fullmatch(url):
            return cls(url)
        found = [_ADDRESS.fullmatch(part) for part in url.removeprefix(_SCHEME).split(",")]
        places = [(part[1].strip("[]"), int(part[2])) for part in found if part is not None]
        is_known = url.startswith(_SCHEME) and len(places) == len(found)
        if not is_known or any(not 0 < port < 2**16 for _, port in places):
            allowed = "spark://host:port, as the page of the Spark master shows it, or local[n] to try it out"
            raise InvalidParameterError("the Spark master", f"got {url!r}", allowed=allowed)
        return cls(url, tuple(places))

    @property
    def is_local(self) -> bool:
        """Whether everything runs in one process of this machine."""
        return not self.addresses

    @property
    def is_on_loopback(self) -> bool:
        """Whether no other machine takes part."""
        return all(map(_is_loopback, (host for host, _ in self.addresses)))

    def answers(self, seconds: float) -> bool:
        """Whether a master's port, one of them if there are several, can be connected to in so many seconds."""
        return self.is_local or any(_answers(address, seconds) for address in self.addresses)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(socket.gethostbyname(host)).is_loopback
    except (OSError, ValueError):
        return host == "::1"


def _answers(address: tuple[str, int], seconds: float) -> bool:
    try:
        socket.create_connection(address, timeout=seconds).close()
    except OSError:
        return False
    return True
