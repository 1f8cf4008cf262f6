"""What the parts of a collaboration offer each other: a channel between parties and a sum over them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

WHOLE_WORDS = 2**64
PRIME = 2**61 - 1
CONNECT_STAGE = "connect"
"""Before the rounds of a session."""


class UnexpectedSizeError(TimeoutError):
    """A message is on its way that is larger than expected now; it is not read before larger ones are expected."""


class GaveUpError(ConnectionError):
    """A party left while it was still connecting, because of another one."""

    def __init__(self, problem: str, *, because_of: str) -> None:
        self.because_of = because_of
        super().__init__(problem)


class Channel(Protocol):
    """Authenticated, private way to every other party; messages of a sender arrive complete, once, and in order."""

    def send(self, to: str, body: bytes) -> None:
        """Hand over a message to a party; does not wait for the party to ask for it."""
        ...

    def receive(self, sender: str, timeout: float) -> bytes:
        """Return the next message of a party; raises ``TimeoutError`` or ``ConnectionError``, never returns less."""
        ...


@runtime_checkable
class MeteredChannel(Protocol):
    """Channel that does not even read a message which is larger than expected."""

    def expect_at_most(self, n_bytes: int | None) -> None:
        """Read no message of more bytes from now on; None leaves the channel's own limit."""
        ...


class SumOfParties(Protocol):
    """Sum of every party's numbers, of which a party learns nothing but the sum."""

    @property
    def n_parties(self) -> int:
        """How many parties add up."""
        ...

    def total(self, own: Words, *, stage: str, modulus: int = WHOLE_WORDS) -> Words:
        """Add up the parties' numbers modulo 2^64 or modulo the prime 2^61 - 1; every party must ask for the same."""
        ...
