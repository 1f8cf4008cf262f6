"""Many parties in one process: a network of queues, with a hook through which tests interfere."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from sfumato.collaborate.transport.channel import Channel

Result = TypeVar("Result")
Interference = Callable[[str, str, bytes], Sequence[bytes]]


def deliver_as_sent(sender: str, to: str, body: bytes) -> Sequence[bytes]:
    """Interfere with nothing."""
    return (body,)


class LocalNetwork:
    """Channels between threads of one process.

    Parameters
    ----------
    names : iterable of str
        The parties.
    interfere : callable
        Called with sender, receiver and body of every message; what it returns is delivered instead: nothing drops
        the message, two bodies duplicate it, another body tampers with it. It runs in the sender's thread, so
        sleeping in it delays the sender.

    Examples
    --------
    >>> network = LocalNetwork(["a", "b"])
    >>> network.channel("a").send("b", b"hello")
    >>> network.channel("b").receive("a", timeout=1.0)
    b'hello'
    """

    def __init__(self, names: Iterable[str], *, interfere: Interference = deliver_as_sent) -> None:
        self.names = tuple(names)
        self._interfere = interfere
        self._queues: dict[tuple[str, str], queue.SimpleQueue[bytes | None]] = {
            (sender, to): queue.SimpleQueue() for sender in self.names for to in self.names if sender != to
        }

    def channel(self, name: str) -> Channel:
        """Way of one party to all others."""
        return _LocalChannel(self, name)

    def disconnect(self, name: str) -> None:
        """End a party's connections; what it sent before is still delivered."""
        for (sender, _), waiting in self._queues.items():
            if sender == name:
                waiting.put(None)

    def run(self, work: Callable[[str, Channel], Result], *, time_limit: float = 60.0) -> dict[str, Result | Exception]:
        """Let every party work in a thread of its own; gives each one's result, or the exception it ended with.

        A party that is not ready within the time limit has a ``TimeoutError``.
        """
        outcomes: dict[str, Result | Exception] = {}

        def take_part(name: str) -> None:
            try:
                outcomes[name] = work(name, self.channel(name))
            except Exception as exc:
                outcomes[name] = exc

        threads = [threading.Thread(target=take_part, args=(name,), daemon=True) for name in self.names]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + time_limit
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        finished = dict(outcomes)
        return {name: finished.get(name, TimeoutError(f"{name} is still busy")) for name in self.names}

    def put(self, sender: str, to: str, body: bytes) -> None:
        """Deliver what the interference makes of a message."""
        for delivered in self._interfere(sender, to, body):
            self._queues[sender, to].put(delivered)

    def get(self, sender: str, to: str, timeout: float) -> bytes:
        """Take the next message of a sender."""
        waiting = self._queues[sender, to]
        try:
            body = waiting.get(timeout=max(0.0, timeout))
        except queue.Empty:
            raise TimeoutError from None
        if body is None:
            waiting.put(None)
            raise ConnectionError
        return body


class _LocalChannel:
    def __init__(self, network: LocalNetwork, name: str) -> None:
        self._network = network
        self._name = name

    def send(self, to: str, body: bytes) -> None:
        self._network.put(self._name, to, body)

    def receive(self, sender: str, timeout: float) -> bytes:
        return self._network.get(sender, self._name, timeout)
