"""One party's side of a session: rounds of messages, and one way to end early that every party hears of."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import NoReturn, Self

from sfumato.collaboration.contract import Channel
from sfumato.collaboration.messages import (
    SIZE_LIMIT,
    UNBOUND,
    Accusation,
    Kind,
    Message,
    UnreadableMessageError,
    decode,
    encode,
)
from sfumato.collaboration.transcript import Round, RoundProgress, Transcript, public_digest
from sfumato.errors import CollaborationError, InvalidParameterError, PrivacyNotAchievableError

MIN_PARTIES = 3

_PATIENCE = 0.25
_GLANCE = 0.005
_HEARING = 2.0
_READ_AHEAD_BYTES = 2**16
_SILENCE = {"silent", "gone"}
_ABORT_STAGE = "abort"


class Session:
    """Rounds with the other parties over a channel; any failure ends the session for all.

    Leave it as a context manager: an exception is then told to the others, and the transcript is written. Every
    message carries the session's binding (see :mod:`sfumato.collaboration.hello`), its stage and its number.

    Parameters
    ----------
    me : str
        Name of this party, one of the roster.
    roster : iterable of str
        Names of all parties, at least 3: with two, each could subtract its own numbers from every sum.
    channel : Channel
        Authenticated, private way to the others.
    timeout : float
        Seconds that the messages of one round may take.
    transcript : Transcript or None
        Record of the session; a new one in memory if left out.
    progress : callable or None
        Called with a :class:`~sfumato.collaboration.transcript.Round` after each round.
    size_limit : int
        Largest message in bytes that is read.

    Notes
    -----
    A party that falls silent makes others late in turn. So whoever misses a message first tells the others, then
    listens for a moment and names the party that was missed in the earliest round. An accusation is only as good as
    the party it comes from; the message says who that is.
    """

    def __init__(
        self,
        me: str,
        roster: Iterable[str],
        channel: Channel,
        *,
        timeout: float = 60.0,
        transcript: Transcript | None = None,
        progress: RoundProgress | None = None,
        size_limit: int = SIZE_LIMIT,
    ) -> None:
        if not timeout > 0:
            raise InvalidParameterError("timeout", f"got {timeout:g}", allowed="above 0 seconds")
        self.me = me
        self.roster = checked_roster(me, roster)
        self.others = tuple(name for name in self.roster if name != me)
        self.transcript = transcript or Transcript()
        self.transcript.describe(party=me, roster=self.roster)
        self.binding = UNBOUND
        self._channel = channel
        self._timeout = timeout
        self._progress = progress
        self._size_limit = size_limit
        self._round = 0
        self._stage = "start"
        self._largest: int | None = None
        self._sent = dict.fromkeys(self.others, 0)
        self._taken = dict.fromkeys(self.others, 0)
        self._inbox: dict[str, deque[Message]] = {name: deque() for name in self.others}
        self._failure: CollaborationError | None = None

    @property
    def is_bound(self) -> bool:
        """Whether the hello is over."""
        return self.binding != UNBOUND

    def bind(self, binding: bytes) -> None:
        """Tie every message from now on to this session; messages of any other are refused."""
        self.binding = binding
        self.transcript.describe(binding=binding.hex())

    def exchange(
        self, stage: str, bodies: Mapping[str, bytes], *, public: bool = False, largest: int | None = None
    ) -> dict[str, bytes]:
        """Send each other party its body and return theirs, by name: one round.

        With ``public`` the transcript notes the start of each body's hash; leave it off for secrets. A body of more
        than ``largest`` bytes ends the session as soon as it comes in.
        """
        with self.round(stage):
            self._largest = largest
            for peer in self.others:
                self.send(peer, stage, bodies[peer], public=public)
            deadline = time.monotonic() + self._timeout
            return {peer: self._take(peer, stage, deadline, public=public) for peer in self.others}

    @contextlib.contextmanager
    def round(self, stage: str) -> Iterator[None]:
        """Begin a round, which failures inside belong to; progress is told when it is over.

        For protocols that bring messages of their own; :meth:`exchange` is a round by itself.
        """
        self._round += 1
        self._stage = stage
        self._largest = None
        yield
        if self._progress:
            record = self.transcript
            self._progress(Round(self._round, stage, record.bytes_sent, record.bytes_received, record.seconds))

    def broadcast(self, stage: str, body: bytes, *, largest: int | None = None) -> dict[str, bytes]:
        """Send all others the same body and return every party's, this one's included: one round."""
        received = self.exchange(stage, dict.fromkeys(self.others, body), public=True, largest=largest)
        return {name: body if name == self.me else received[name] for name in self.roster}

    def send(self, to: str, stage: str, body: bytes, *, public: bool = False) -> None:
        """Send one message."""
        self._refuse_when_over()
        framed = encode(Message(Kind.DATA, self.binding, self._sent[to], stage, body))
        self._sent[to] += 1
        self.transcript.note("sent", stage, to, len(framed), public_digest(body) if public else None)
        try:
            self._channel.send(to, framed)
        except OSError as exc:
            self.accuse(to, stage, "gone", detail=str(exc))

    def receive(self, sender: str, stage: str, *, public: bool = False) -> bytes:
        """Wait for one message, which must be the sender's next and of this stage."""
        self._refuse_when_over()
        return self._take(sender, stage, time.monotonic() + self._timeout, public=public)

    def next_within(self, sender: str, stage: str, timeout: float) -> bytes:
        """Return one message like :meth:`receive`; ``TimeoutError`` and ``ConnectionError`` are left to the caller."""
        self._refuse_when_over()
        if not self._inbox[sender]:
            self._store(sender, stage, self._channel.receive(sender, timeout), awaited=sender)
        return self._checked(sender, stage, public=False)

    def accuse(self, culprit: str, stage: str, reason: str, *, detail: str = "") -> NoReturn:
        """End the session for all: tell the others, then raise ``CollaborationError``; reasons as in ``REASONS``.

        The detail is for this party's own message only; it must hold nothing secret.
        """
        self._end(Accusation(culprit, stage, reason, self._round), detail=detail)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        if self._failure is not None:
            return
        if exc is None:
            self.transcript.end(outcome="complete")
        elif isinstance(exc, PrivacyNotAchievableError):
            self.transcript.end(outcome="not achievable")  # every party finds the same, so nobody has to be told
        else:
            with contextlib.suppress(CollaborationError):
                self.accuse(self.me, self._stage, "stopped")

    def _take(self, sender: str, stage: str, deadline: float, *, public: bool) -> bytes:
        self._await(sender, stage, deadline)
        return self._checked(sender, stage, public=public)

    def _checked(self, sender: str, stage: str, *, public: bool) -> bytes:
        message = self._inbox[sender].popleft()
        if message.binding != self.binding:
            self.accuse(sender, stage, "other-session")
        if message.stage != stage or message.number != self._taken[sender]:
            self.accuse(sender, stage, "out-of-turn")
        self._taken[sender] += 1
        digest = public_digest(message.payload) if public else None
        self.transcript.note("received", stage, sender, message.n_bytes, digest)
        return message.payload

    def _await(self, sender: str, stage: str, deadline: float) -> None:
        while not self._inbox[sender]:
            left = deadline - time.monotonic()
            try:
                body = self._channel.receive(sender, max(_GLANCE, min(left, _PATIENCE)))
            except TimeoutError:
                self._glance_at_others(sender, stage)
                if left <= 0:
                    self.accuse(sender, stage, "silent")
            except OSError as exc:
                self.accuse(sender, stage, "gone", detail=str(exc))
            else:
                self._store(sender, stage, body, awaited=sender)

    def _glance_at_others(self, awaited: str, stage: str) -> None:
        """Look whether somebody else ended the session meanwhile."""
        for peer in self.others:
            if peer != awaited and sum(message.n_bytes for message in self._inbox[peer]) < _READ_AHEAD_BYTES:
                with contextlib.suppress(OSError):
                    self._store(peer, stage, self._channel.receive(peer, _GLANCE), awaited=awaited)

    def _store(self, sender: str, stage: str, body: bytes, *, awaited: str) -> None:
        try:
            message = decode(body, size_limit=self._size_limit)
            accusation = self._accusation(sender, message) if message.kind == Kind.ABORT else None
        except UnreadableMessageError as exc:
            self.accuse(sender, stage, exc.reason)
        if accusation and accusation.reason == "silent" and accusation.round > self._round:
            self.accuse(awaited, stage, "silent")  # they wait for what comes after the message awaited here
        if accusation:
            self._end(accusation, told_by=sender)
        if self._largest is not None and message.stage == self._stage and len(message.payload) > self._largest:
            self.accuse(sender, stage, "wrong-length")
        self._inbox[sender].append(message)

    def _accusation(self, sender: str, message: Message) -> Accusation:
        self.transcript.note("received", _ABORT_STAGE, sender, message.n_bytes, None)
        return Accusation.decode(message.payload, self.roster)

    def _refuse_when_over(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _end(self, accusation: Accusation, *, told_by: str | None = None, detail: str = "") -> NoReturn:
        self._refuse_when_over()
        self._failure = accusation.error(told_by=told_by, detail=detail)
        self._tell_others(accusation)
        if accusation.reason in _SILENCE and accusation.culprit != self.me:
            earliest, told_by = self._earliest(accusation, told_by)
            self._failure = earliest.error(told_by=told_by, detail=detail if earliest is accusation else "")
            accusation = earliest
        self.transcript.end(
            outcome="aborted", culprit=accusation.culprit, stage=accusation.stage, reason=accusation.reason
        )
        raise self._failure

    def _tell_others(self, accusation: Accusation) -> None:
        body = encode(Message(Kind.ABORT, self.binding, 0, _ABORT_STAGE, accusation.encode()))
        for peer in sorted(self.others, key=lambda name: name == accusation.culprit):  # who may not listen comes last
            self.transcript.note("sent", _ABORT_STAGE, peer, len(body), None)
            with contextlib.suppress(OSError):
                self._channel.send(peer, body)

    def _earliest(self, accusation: Accusation, told_by: str | None) -> tuple[Accusation, str | None]:
        """Hear the others and keep what went wrong first; a silent party makes others look silent later."""
        heard: list[tuple[Accusation, str | None]] = [(accusation, told_by)]
        deadline = time.monotonic() + min(_HEARING, self._timeout / 2)
        waiting = set(self.others) - {told_by}
        while waiting and time.monotonic() < deadline:
            for peer in sorted(waiting):
                waiting -= self._hear(peer, heard)
        return min(heard, key=lambda entry: (entry[0].round, entry[0].reason in _SILENCE))

    def _hear(self, peer: str, heard: list[tuple[Accusation, str | None]]) -> set[str]:
        """Read one message of a peer; returns the peer once there is no more to hear from it."""
        try:
            message = decode(self._channel.receive(peer, _GLANCE), size_limit=self._size_limit)
            if message.kind == Kind.DATA:
                return set()
            heard.append((self._accusation(peer, message), peer))
        except TimeoutError:
            return set()
        except (OSError, UnreadableMessageError):
            return {peer}
        return {peer}


def checked_roster(me: str, roster: Iterable[str]) -> tuple[str, ...]:
    """Sorted names of all parties, of which there must be at least 3.

    Examples
    --------
    >>> checked_roster("b", ["c", "a", "b"])
    ('a', 'b', 'c')
    """
    names = tuple(sorted(roster))
    if len(set(names)) != len(names) or me not in names or not all(names):
        allowed = "different names that are not empty, with this party's own"
        raise InvalidParameterError("roster", "it is not", allowed=allowed)
    if len(names) < MIN_PARTIES:
        problem = f"a session needs at least {MIN_PARTIES} parties, and here are {len(names)}"
        hint = "with two, each could subtract its own numbers from every sum"
        raise CollaborationError(problem, party=me, stage="start", hint=hint)
    return names
