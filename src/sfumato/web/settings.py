"""Settings of one page: where it listens, who may come in, and which table it begins with."""

from __future__ import annotations

import ipaddress
import math
import re
import secrets
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from sfumato.errors import InputError, InvalidParameterError
from sfumato.web.confinement import is_inside

SHORTEST_TOKEN = 20
FEWEST_BITS = 64.0
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_HOST_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?\.?", re.ASCII)
_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


@dataclass(frozen=True)
class PageSettings:
    """Settings of one page; a combination that would let strangers in is refused when it is made.

    Parameters
    ----------
    host : str
        Address to listen on. Any but this machine's own (loopback) needs a token and TLS files.
    port : int
        0 lets the system choose one.
    token : str
        Secret of the first address; empty makes a random one. It is in no repr.
    tls_cert, tls_key : Path or None
        Certificate chain and private key, as PEM files; both or none.
    upload_limit : int
        Largest upload, in bytes.
    allowed_hosts : tuple of str
        Further names under which browsers may reach the page.
    data, project : Path or None
        Table and project file to begin with.
    open_browser : bool
        Whether to open a browser at the start.
    root : Path or None
        Folder whose files the page may use, resolved; ``None`` leaves it all files that this account may use. Needed
        where others can reach the page.
    ticket : str
        Stands for the token once, for the browser that the server opens: other users of the machine can see the
        address in the list of processes.

    Examples
    --------
    >>> settings = PageSettings(port=8050)
    >>> settings.origin, sorted(settings.authorities)
    ('http://127.0.0.1:8050', ['127.0.0.1:8050', '[::1]:8050', 'localhost:8050'])
    >>> PageSettings(host="0.0.0.0")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    sfumato.errors.InvalidParameterError: host must be an address of this machine only (127.0.0.1), ...
    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str = field(default="", repr=False)
    tls_cert: Path | None = None
    tls_key: Path | None = None
    upload_limit: int = 2 * 10**9
    allowed_hosts: tuple[str, ...] = ()
    data: Path | None = None
    project: Path | None = None
    open_browser: bool = True
    root: Path | None = None
    ticket: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    def __post_init__(self) -> None:
        _check_host(self.host, "host")
        for name in self.allowed_hosts:
            _check_host(name, "allowed_hosts")
        if not 0 <= self.port <= 65535:
            raise InvalidParameterError("port", f"got {self.port}", allowed="from 0 to 65535")
        if self.upload_limit < 1:
            raise InvalidParameterError("upload_limit", "got less", allowed="at least 1 byte")
        if (self.tls_cert is None) != (self.tls_key is None):
            hint, remedy = "give both or none", ("tls_cert", "tls_key")
            problem, allowed = "got one without the other", "given with tls_key"
            raise InvalidParameterError("tls_cert", problem, allowed=allowed, hint=hint, remedy=remedy)
        _check_token(self.token)
        if self.root is not None:
            object.__setattr__(self, "root", _checked_root(self.root, self.data, self.project))
        if not is_loopback(self.host):
            self._check_open_to_others()
        if not self.token:
            object.__setattr__(self, "token", secrets.token_urlsafe(32))

    def _check_open_to_others(self) -> None:
        if not self.token or not self.is_tls or self.root is None:
            allowed = "an address of this machine only (127.0.0.1), or come with a folder, a token and TLS files"
            hint, remedy = "give all of them", ("root", "token", "tls_cert", "tls_key")
            problem = "as others can reach this one"
            raise InvalidParameterError("host", problem, allowed=allowed, hint=hint, remedy=remedy)
        if _is_wildcard(self.host) and not self.allowed_hosts:
            raise InvalidParameterError(
                "allowed_hosts", "as host means every address", allowed="the name that browsers will use"
            )

    @property
    def is_tls(self) -> bool:
        """Whether the page is served over TLS."""
        return self.tls_cert is not None

    @property
    def scheme(self) -> str:
        """First part of every address of the page."""
        return "https" if self.is_tls else "http"

    @property
    def authorities(self) -> frozenset[str]:
        """Values of the Host header that are answered, in lower case."""
        names = {bracketed(name) for name in (self.host, *self.allowed_hosts) if not _is_wildcard(name)}
        if is_loopback(self.host):
            names.update(_LOOPBACK_NAMES)
        usual = 443 if self.is_tls else 80
        return frozenset(f"{name}:{self.port}" for name in names) | (names if self.port == usual else set())

    @property
    def origin(self) -> str:
        """Address to give to people, without path and token."""
        name = self.allowed_hosts[0] if _is_wildcard(self.host) else self.host
        return f"{self.scheme}://{bracketed(name)}:{self.port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("10.0.0.3")
    (True, True, True, False)
    """
    address = _address(host)
    return address.is_loopback if address is not None else host.lower() == "localhost"


def bracketed(host: str) -> str:
    """Write a host as it stands in an address: lower case, IPv6 in brackets."""
    return f"[{host.lower()}]" if ":" in host else host.lower()


def size_in_bytes(text: str) -> int:
    """Read a size such as ``2GB``, ``500 MB``, ``1.5 GiB`` or ``4096``.

    Examples
    --------
    >>> size_in_bytes("2GB"), size_in_bytes("1.5 KiB"), size_in_bytes("4096")
    (2000000000, 1536, 4096)
    """
    found = re.fullmatch(r"\s*([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([a-z]*)\s*", text.lower(), re.ASCII)
    if found is None or found[2] not in _UNITS:
        raise InvalidParameterError("upload_limit", f"got {text!r}", allowed="a size such as 2GB or 500MB")
    return int(float(found[1]) * _UNITS[found[2]])


def _check_host(host: str, name: str) -> None:
    if _address(host) is None and not _HOST_NAME.fullmatch(host.lower()):
        raise InvalidParameterError(name, f"got {host!r}", allowed="a host name or an IP address, without a port")


def _checked_root(root: Path, *given: Path | None) -> Path:
    """Resolve the folder, and refuse one that is none, or that the table to begin with is not in."""
    if not root.is_dir():
        raise InputError("is not a folder", path=root, hint="name a folder that exists", remedy=("root",))
    for path in given:
        if path is not None and not is_inside(root, path):
            hint = "name a folder that holds it"
            raise InputError("is outside the folder that the page may use", path=path, hint=hint, remedy=("root",))
    return root.resolve()


def _check_token(token: str) -> None:
    if not token:
        return
    hint = "on this machine give none: a random one is made; for other machines let a program draw 32 random bytes"
    remedy = ("token",)
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        allowed = f"at least {SHORTEST_TOKEN} printable ASCII characters"
        raise InvalidParameterError("token", "but this one is not", allowed=allowed, hint=hint, remedy=remedy)
    if guessing_bits(token) < FEWEST_BITS:
        allowed = "hard to guess: random, without repetition and runs"
        raise InvalidParameterError("token", "got a weak one", allowed=allowed, hint=hint, remedy=remedy)


def guessing_bits(token: str) -> float:
    """Bits that a token has at most, without what repeats and what counts up or down.

    Examples
    --------
    >>> round(guessing_bits("abcabcabcabcabcabcabcabc")), round(guessing_bits("0123456789012345678901"))
    (3, 7)
    >>> round(guessing_bits("9b1f0c2ad7e64358"))
    64
    """
    # The last repetition may be cut short.
    period = next((n for n in range(1, len(token)) if token.startswith(token[n:])), len(token))
    once = token[:period]
    steps = [ord(second) - ord(first) for first, second in pairwise(once)]
    # A letter counts if it is not reached by the same small step as the one before.
    fresh = [abs(step) > 1 or step != before for before, step in pairwise([0, *steps])]
    return (1 + sum(fresh)) * math.log2(max(len(set(once)), 1))


def _is_wildcard(host: str) -> bool:
    address = _address(host)
    return address is not None and address.is_unspecified


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
