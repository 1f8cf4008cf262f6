"""Each party's record of what left it and what reached it: sizes and stages, never contents."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from sfumato.atomic import PendingFile, alone_in, appear_together, check_writable, explained_writing
from sfumato.errors import OutputError

_DIGEST_CHARACTERS = 16


@dataclass(frozen=True, slots=True)
class Entry:
    """One message: its size on the way and, if every party gets the same, the start of its payload's SHA-256."""

    seconds: float
    direction: Literal["sent", "received"]
    stage: str
    peer: str
    n_bytes: int
    digest: str | None


@dataclass(frozen=True, slots=True)
class Round:
    """A round of a session that is over."""

    number: int
    stage: str
    bytes_sent: int
    bytes_received: int
    seconds: float


class SessionWatch:
    """Is told what goes on while a session runs; override what is of interest.

    The calls come from several threads and in the middle of a session, so they must be short and raise nothing.
    """

    def connected(self, peer: str) -> None:
        """Hear that this party and a peer are connected, both ways."""

    def noted(self, entry: Entry) -> None:
        """Hear of a message, as the transcript notes it."""

    def round_over(self, done: Round) -> None:
        """Hear that a round is over; how many there will be nobody knows."""

    def ended(self, party: str, *, went_well: bool) -> None:
        """Hear that a party has ended; only a simulation, which runs all of them, tells this."""


def public_digest(payload: bytes) -> str:
    """Start of the SHA-256 of a payload that every party gets; never call it on seeds or shares."""
    return hashlib.sha256(payload).hexdigest()[:_DIGEST_CHARACTERS]


class Transcript:
    """Entries of one party's session, written as JSON lines, whole or not at all, when the session ends.

    A record that cannot be written at the end changes nothing of what the session came to: see ``problem``.

    Parameters
    ----------
    path : Path or None
        File to write; with none the record stays in memory.
    force : bool
        Replace a file that exists.
    watch : SessionWatch or None
        Hears of peers that are connected, of every entry and of every round at once, while the file appears at the
        end only.

    Examples
    --------
    >>> transcript = Transcript()
    >>> transcript.note("sent", "counts/masked", "clinic", 139, None)
    >>> transcript.bytes_sent, transcript.bytes_received
    (139, 0)
    """

    def __init__(self, path: Path | None = None, *, force: bool = False, watch: SessionWatch | None = None) -> None:
        if path is not None:
            check_writable(path, force=force)
        self.path = path
        self.problem: OutputError | None = None
        self._pending: PendingFile | None = None
        self._force = force
        self.watch = watch or SessionWatch()
        self._facts: dict[str, object] = {}
        self._entries: list[Entry] = []
        self._n_bytes = {"sent": 0, "received": 0}
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._ended = False

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Messages so far, in order."""
        with self._lock:
            return tuple(self._entries)

    @property
    def bytes_sent(self) -> int:
        """Bytes that left this party, headers included, before encryption by the channel."""
        return self._n_bytes["sent"]

    @property
    def bytes_received(self) -> int:
        """Bytes that reached this party, headers included."""
        return self._n_bytes["received"]

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return round(time.monotonic() - self._started, 4)

    def describe(self, **facts: object) -> None:
        """Add public facts (names, ids, hashes) to the first line."""
        self._facts.update(facts)

    def note(
        self, direction: Literal["sent", "received"], stage: str, peer: str, n_bytes: int, digest: str | None
    ) -> None:
        """Record one message."""
        with self._lock:
            self._n_bytes[direction] += n_bytes
            self._entries.append(Entry(self.seconds, direction, stage, peer, n_bytes, digest))
            self.watch.noted(self._entries[-1])

    def tell_round(self, number: int, stage: str) -> None:
        """Tell the watch that a round is over."""
        self.watch.round_over(Round(number, stage, self.bytes_sent, self.bytes_received, self.seconds))

    def open(self) -> None:
        """Take up the file, still without a name, so that one that cannot be written is found before the session.

        Raises
        ------
        OutputError
            If it cannot be written, or exists.
        """
        if self.path is not None and self._pending is None:
            check_writable(self.path, force=self._force)
            self._pending = PendingFile(self.path)

    def end(self, **outcome: object) -> None:
        """Write the file; only the first call counts. ``problem`` says afterwards why there is none."""
        if self._ended:
            return
        self._ended = True
        try:
            self.open()
            if self._pending is not None:
                self._write(self._pending, self._lines(outcome).encode())
        except OutputError as exc:
            self.problem = exc

    def _write(self, pending: PendingFile, content: bytes) -> None:
        with pending:
            with explained_writing(pending.target):
                pending.file.write(content)
            pending.complete()
            with alone_in(pending.target.parent):
                check_writable(pending.target, force=self._force)
                appear_together([pending], [pending.target] if self._force else [])

    def _lines(self, outcome: dict[str, object]) -> str:
        totals = {"bytes_sent": self.bytes_sent, "bytes_received": self.bytes_received, "seconds": self.seconds}
        lines = [self._facts, *(asdict(entry) for entry in self.entries), {**outcome, **totals}]
        return "".join(json.dumps(line) + "\n" for line in lines)
