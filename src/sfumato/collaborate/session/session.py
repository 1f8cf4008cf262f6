"""One party's side of a session: rounds of messages, and one way to end early that every party hears of."""

from __future__ import annotations

import contextlib
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import NoReturn, Self

from sfumato.collaborate.session.transcript import Transcript, public_digest
from sfumato.collaborate.transport.channel import (
    CONNECT_STAGE,
    Channel,
    GaveUpError,
    MeteredChannel,
    UnexpectedSizeError,
)
from sfumato.collaborate.transport.messages import (
    OVERHEAD_BYTES,
    REASONS,
    SIZE_LIMIT,
    UNBOUND,
    Accusation,
    Kind,
    Message,
    NoSignatures,
    Signatures,
    UnreadableMessageError,
    decode,
    encode,
)
from sfumato.errors import CollaborationError, InvalidParameterError, PrivacyNotAchievableError, on_one_line

# Who failed, or which line: what a party concludes from its own and the others' accusations.
#
# An accusation is signed by its author, who stays its author when others pass it on. A party that misses a message
# cannot know whether the sender, its own line or the line between the two is at fault; several accusations together
# tell more.


SILENCE = frozenset({"silent", "gone", "unheard", "cut-off"})
"""Reasons that a broken line can have as well as a party."""

_MOST_BYTES = 20_000
_LINE_DOWN = "neither gets what the other sends; the line between them is probably down"


@dataclass(frozen=True)
class SignedAccusation:
    """An accusation, its author and its author's signature.

    Parameters
    ----------
    binding : bytes
        Of the author's session, zeros if its hello was not over.
    """

    accusation: Accusation
    author: str
    binding: bytes
    signature: bytes

    @classmethod
    def by(cls, author: str, accusation: Accusation, binding: bytes, signatures: Signatures) -> SignedAccusation:
        """Sign an accusation as this party."""
        return cls(accusation, author, binding, signatures.sign(_signed_content(accusation, author, binding)))

    def encode(self) -> bytes:
        """Write it as bytes."""
        said = self.accusation.encode().decode()
        return json.dumps([said, self.author, self.binding.hex(), self.signature.hex()]).encode()

    @classmethod
    def decode(
        cls, payload: bytes, *, sender: str, binding: bytes, roster: tuple[str, ...], signatures: Signatures
    ) -> SignedAccusation:
        """Read what a party sent: its own accusation, or another's that it passes on.

        Before the hello is over nothing ties an accusation to this session, and one of a former session could be passed
        on. It then counts as said by the sender.

        Raises
        ------
        UnreadableMessageError
            If it is of another form, of another session, or not signed by the author that it names.
        """
        try:
            if len(payload) > _MOST_BYTES:
                raise ValueError
            said, author, of_session, signature = json.loads(payload)
            found = cls(
                Accusation.decode(said.encode(), roster), author, bytes.fromhex(of_session), bytes.fromhex(signature)
            )
        except UnreadableMessageError:
            raise
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise UnreadableMessageError("garbage") from None
        if author not in roster or len(found.binding) != len(UNBOUND):
            raise UnreadableMessageError("garbage")
        content = _signed_content(found.accusation, author, found.binding)
        if not signatures.is_signed(author, content, found.signature):
            raise UnreadableMessageError("forgery")
        if UNBOUND in (binding, found.binding):
            return replace(found, author=sender)
        if found.binding != binding:
            raise UnreadableMessageError("other-session")
        return found


def _signed_content(accusation: Accusation, author: str, binding: bytes) -> bytes:
    return b"sfumato accusation\x00" + json.dumps([author, binding.hex(), accusation.encode().decode()]).encode()


@dataclass(frozen=True)
class Finding:
    """What went wrong, and who says so; with ``line``, between which two parties."""

    accusation: Accusation
    told_by: str | None
    line: tuple[str, str] | None = None

    def error(self, *, detail: str = "", may_be_published: bool = False) -> CollaborationError:
        """Exception that names the party, or both ends of a line, and the stage."""
        accusation = self.accusation
        problem = REASONS[accusation.reason] + (f" '{on_one_line(accusation.about)}'" if accusation.about else "")
        if self.line:
            problem = _LINE_DOWN
        elif self.told_by:
            problem += f" (says party '{on_one_line(self.told_by)}')"
        elif detail:
            problem += f" ({on_one_line(detail)})"
        return CollaborationError(
            problem,
            party=accusation.culprit,
            stage=accusation.stage,
            line=self.line,
            may_be_published=may_be_published,
        )


def judged(me: str, heard: Sequence[SignedAccusation]) -> Finding:
    """Conclude from accusations, at least one: what went wrong first, since a party that fails makes others late.

    Of two that miss each other's messages neither is named alone, but the line between them, unless others miss the
    same party. A party whom several others miss names its own line.

    Examples
    --------
    >>> a = SignedAccusation(Accusation("b", "counts", "silent", 4), "a", bytes(32), b"")
    >>> b = SignedAccusation(Accusation("a", "counts", "silent", 4), "b", bytes(32), b"")
    >>> judged("c", [a, b]).line, judged("c", [a]).line
    (('a', 'b'), None)
    """
    silences = [each for each in heard if each.accusation.reason in SILENCE]

    def accusers(culprit: str, round_number: int) -> set[str]:
        """Who misses a party in a round; in later ones all miss those who are held up."""
        return {
            each.author
            for each in silences
            if each.accusation.culprit == culprit and each.accusation.round == round_number
        }

    def rank(each: SignedAccusation) -> tuple[int, bool, bool, int]:
        said = each.accusation
        return said.round, each in silences, said.reason == "unheard", -len(accusers(said.culprit, said.round))

    first = min(heard, key=rank)
    said, author = first.accusation, first.author
    if first not in silences or said.culprit == author:
        return Finding(said, author if author not in (me, said.culprit) else None)
    missing_culprit = accusers(said.culprit, said.round)
    is_mutual = any((each.author, each.accusation.culprit) == (said.culprit, author) for each in silences)
    if is_mutual and missing_culprit == {author} and accusers(author, said.round) <= {said.culprit}:
        one, two = sorted((author, said.culprit))
        return Finding(said, author, (one, two))
    if said.culprit == me and len(missing_culprit) > 1:
        return Finding(replace(said, reason="not-heard"), None)
    return Finding(said, author if author != me else None)


MIN_PARTIES = 3

_PATIENCE = 0.25
_GLANCE = 0.005
_HEARING = 2.0
_READ_AHEAD_BYTES = 2**16
_MOST_HEARD = 4  # accusations of one author
_ABORT_STAGE = "abort"

Noted = Callable[[bytes], str]
"""What the transcript shows of a body that all parties get."""


class Session:
    """Rounds with the other parties over a channel; any failure ends the session for all.

    Leave it as a context manager: an exception is then told to the others, and the transcript is written. Every
    message carries the session's binding (see :mod:`sfumato.collaborate.session.handshake`), its stage and its number.

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
    size_limit : int
        Largest message in bytes that is read.
    signatures : Signatures or None
        Of the parties, for accusations; None only where all parties are in one process.

    Notes
    -----
    A party that falls silent makes others late in turn. So whoever misses a message first tells the others, then
    listens for a moment and concludes what went wrong first (:func:`judged`). An
    accusation is only as good as its author, whom the message names, whoever passed it on.
    """

    def __init__(
        self,
        me: str,
        roster: Iterable[str],
        channel: Channel,
        *,
        timeout: float = 60.0,
        transcript: Transcript | None = None,
        size_limit: int = SIZE_LIMIT,
        signatures: Signatures | None = None,
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
        self._size_limit = size_limit
        self._round = 0
        self._stage = "start"
        self._largest: int | None = None
        self._sent = dict.fromkeys(self.others, 0)
        self._taken = dict.fromkeys(self.others, 0)
        self._inbox: dict[str, deque[Message]] = {name: deque() for name in self.others}
        self._signatures = signatures or NoSignatures()
        self._last_heard = time.monotonic()
        self._has_sent_all = self._has_taken_any = False
        self._may_be_published = False
        self._failure: CollaborationError | None = None

    def bind(self, binding: bytes) -> None:
        """Tie every message from now on to this session; messages of any other are refused."""
        self.binding = binding
        self.transcript.describe(binding=binding.hex())

    def exchange(
        self, stage: str, bodies: Mapping[str, bytes], *, noted: Noted | None = None, largest: int | None = None
    ) -> dict[str, bytes]:
        """Send each other party its body and return theirs, by name: one round.

        What ``noted`` makes of each body is shown in the transcript; leave it out for secrets. A body of more than
        ``largest`` bytes ends the session as soon as it comes in.
        """
        with self.round(stage, largest=largest):
            for peer in self.others:
                self.send(peer, stage, bodies[peer], noted=noted)
            self._has_sent_all = True
            deadline = time.monotonic() + self._timeout
            return {peer: self._take(peer, stage, deadline, noted=noted) for peer in self.others}

    @contextlib.contextmanager
    def round(self, stage: str, *, largest: int | None = None) -> Iterator[None]:
        """Begin a round, which failures inside belong to; the transcript's watch hears when it is over.

        The channel reads no message of more than ``largest`` bytes until the next round.

        For protocols that bring messages of their own; :meth:`exchange` is a round by itself.
        """
        self._round += 1
        self._stage = stage
        self._largest = largest
        self._expect_at_most(largest)
        self._has_sent_all = self._has_taken_any = False
        yield
        self.transcript.tell_round(self._round, stage)

    def _expect_at_most(self, largest: int | None) -> None:
        if isinstance(self._channel, MeteredChannel):
            self._channel.expect_at_most(None if largest is None else largest + OVERHEAD_BYTES)

    def broadcast(
        self, stage: str, body: bytes, *, largest: int | None = None, noted: Noted = public_digest
    ) -> dict[str, bytes]:
        """Send all others the same body and return every party's, this one's included: one round."""
        received = self.exchange(stage, dict.fromkeys(self.others, body), noted=noted, largest=largest)
        return {name: body if name == self.me else received[name] for name in self.roster}

    def let_others_publish(self) -> None:
        """Say that the next message lets others publish: a failure from now on comes too late to stop all of them."""
        self._may_be_published = True

    def send(self, to: str, stage: str, body: bytes, *, noted: Noted | None = None) -> None:
        """Send one message."""
        self._refuse_when_over()
        framed = encode(Message(Kind.DATA, self.binding, self._sent[to], stage, body))
        self._sent[to] += 1
        self.transcript.note("sent", stage, to, len(framed), noted(body) if noted else None)
        try:
            self._channel.send(to, framed)
        except OSError as exc:
            self.accuse(to, stage, "gone", detail=str(exc))

    def receive(self, sender: str, stage: str, *, noted: Noted | None = None) -> bytes:
        """Wait for one message, which must be the sender's next and of this stage."""
        self._refuse_when_over()
        return self._take(sender, stage, time.monotonic() + self._timeout, noted=noted)

    def next_within(self, sender: str, stage: str, timeout: float) -> bytes:
        """Return one message like :meth:`receive`; ``TimeoutError`` and ``ConnectionError`` are left to the caller."""
        self._refuse_when_over()
        if not self._inbox[sender]:
            self._store(sender, stage, self._channel.receive(sender, timeout), awaited=sender)
        return self._checked(sender, stage, noted=None)

    def accuse(self, culprit: str, stage: str, reason: str, *, detail: str = "", about: str = "") -> NoReturn:
        """End the session for all: tell the others, then raise ``CollaborationError``; reasons as in ``REASONS``.

        The detail is for this party's own message only, ``about`` the name of a parameter for that of all; they must
        hold nothing secret. Who says that another is silent while it hears nobody says so of its own line instead.
        """
        if reason == "silent" and culprit != self.me and self._hears_nobody(culprit, stage):
            culprit, reason = self.me, "cut-off"
        self._end(self._signed(Accusation(culprit, stage, reason, self._round, about)), detail=detail)

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

    def _take(self, sender: str, stage: str, deadline: float, *, noted: Noted | None) -> bytes:
        self._await(sender, stage, deadline)
        return self._checked(sender, stage, noted=noted)

    def _checked(self, sender: str, stage: str, *, noted: Noted | None) -> bytes:
        message = self._inbox[sender].popleft()
        if message.binding != self.binding:
            self.accuse(sender, stage, "other-session")
        if message.stage != stage or message.number != self._taken[sender]:
            self.accuse(sender, stage, "out-of-turn")
        self._taken[sender] += 1
        self._has_taken_any = True
        self.transcript.note("received", stage, sender, message.n_bytes, noted(message.payload) if noted else None)
        return message.payload

    def _await(self, sender: str, stage: str, deadline: float) -> None:
        while not self._inbox[sender]:
            left = deadline - time.monotonic()
            try:
                body = self._channel.receive(sender, max(_GLANCE, min(left, _PATIENCE)))
            except UnexpectedSizeError as exc:  # the next of this sender, so the one that is awaited
                self.accuse(sender, stage, "too-large", detail=str(exc))
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

    def _hears_nobody(self, awaited: str, stage: str) -> bool:
        """Whether nothing at all has come in this round, or for as long as one message may take where it has many."""
        if self._failure is None:
            self._glance_at_others(awaited, stage)
        is_long_ago = time.monotonic() - self._last_heard >= self._timeout
        is_heard = any(self._inbox.values()) or (self._has_sent_all and self._has_taken_any)
        return is_long_ago and not is_heard

    def _store(self, sender: str, stage: str, body: bytes, *, awaited: str) -> None:
        self._last_heard = time.monotonic()
        try:
            message = decode(body, size_limit=self._size_limit)
            told = self._told(sender, message) if message.kind == Kind.ABORT else None
        except UnreadableMessageError as exc:
            self.accuse(sender, stage, exc.reason)
        if told and told.accusation.reason in ("silent", "cut-off") and told.accusation.round > self._round:
            self.accuse(awaited, stage, "silent")  # they wait for what comes after the message awaited here
        if told:
            self._end(told, awaited=awaited)
        if self._largest is not None and message.stage == self._stage and len(message.payload) > self._largest:
            self.accuse(sender, stage, "wrong-length")
        self._inbox[sender].append(message)

    def _told(self, sender: str, message: Message) -> SignedAccusation:
        self.transcript.note("received", _ABORT_STAGE, sender, message.n_bytes, None)
        return SignedAccusation.decode(
            message.payload, sender=sender, binding=self.binding, roster=self.roster, signatures=self._signatures
        )

    def _signed(self, accusation: Accusation) -> SignedAccusation:
        return SignedAccusation.by(self.me, accusation, self.binding, self._signatures)

    def _refuse_when_over(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _end(self, told: SignedAccusation, *, awaited: str | None = None, detail: str = "") -> NoReturn:
        self._refuse_when_over()
        heard = [told]
        self._failure = judged(self.me, heard).error(detail=detail, may_be_published=self._may_be_published)
        self._expect_at_most(None)  # an accusation may come behind a message that was not expected yet
        self._pass_on(told)
        self._answer(told, heard, awaited)
        if told.accusation.reason in SILENCE:
            self._hear_all(heard)
        finding = judged(self.me, heard)
        own_detail = detail if finding.accusation == told.accusation else ""
        self._failure = finding.error(detail=own_detail, may_be_published=self._may_be_published)
        said = finding.accusation
        marks: dict[str, object] = {"line": list(finding.line)} if finding.line else {"culprit": said.culprit}
        marks |= {"told_by": finding.told_by} if finding.told_by else {}
        marks |= {"others_may_have_published": True} if self._may_be_published else {}
        self.transcript.end(outcome="aborted", **marks, stage=said.stage, reason=said.reason)
        raise self._failure

    def _pass_on(self, told: SignedAccusation) -> None:
        body = encode(Message(Kind.ABORT, self.binding, 0, _ABORT_STAGE, told.encode()))
        culprit = told.accusation.culprit
        for peer in sorted(self.others, key=lambda name: name == culprit):  # who may not listen comes last
            if peer != told.author:
                self.transcript.note("sent", _ABORT_STAGE, peer, len(body), None)
                with contextlib.suppress(OSError):
                    self._channel.send(peer, body)

    def _answer(self, told: SignedAccusation, heard: list[SignedAccusation], awaited: str | None) -> None:
        """Say what this party knows of another's accusation of silence, which can be the line's fault."""
        said = told.accusation
        if told.author == self.me or said.reason not in ("silent", "gone"):
            return
        has_sent = self._round > said.round or (self._round == said.round and self._has_sent_all)
        if said.culprit == self.me and has_sent:
            own = self._signed(Accusation(told.author, said.stage, "unheard", said.round))
        elif said.reason == "silent" and said.culprit == awaited and said.round == self._round:
            own = self._signed(Accusation(awaited, said.stage, "silent", said.round))
        else:
            return
        if not any(each.author == self.me and each.accusation == own.accusation for each in heard):
            heard.append(own)
            self._pass_on(own)

    def _hear_all(self, heard: list[SignedAccusation]) -> None:
        """Hear the others for a moment: a silent party makes others look silent later, and a line has two ends."""
        deadline = time.monotonic() + min(_HEARING, self._timeout / 2)
        is_gone = heard[0].accusation.reason == "gone"
        waiting = set(self.others)
        while waiting and time.monotonic() < deadline:
            for peer in sorted(waiting):
                waiting -= self._hear(peer, heard, once=is_gone)

    def _hear(self, peer: str, heard: list[SignedAccusation], *, once: bool) -> set[str]:
        """Read one message of a peer; returns the peer once there is no more to hear from it."""
        try:
            message = decode(self._channel.receive(peer, _GLANCE), size_limit=self._size_limit)
            if message.kind == Kind.DATA:
                return set()
            told = self._told(peer, message)
        except TimeoutError:
            return set()
        except GaveUpError as exc:
            if all(each.accusation.culprit != exc.because_of for each in heard):
                said = Accusation(exc.because_of, CONNECT_STAGE, "not-met", 0)
                heard.append(SignedAccusation(said, peer, self.binding, b""))  # unsigned: it cannot be passed on
            return {peer}
        except (OSError, UnreadableMessageError):
            return {peer}
        known = [each.accusation for each in heard if each.author == told.author]
        if told.author != self.me and told.accusation not in known and len(known) < _MOST_HEARD:
            heard.append(told)
            if told.accusation.reason in SILENCE:
                self._pass_on(told)
                self._answer(told, heard, None)
        return {peer} if once else set()


def checked_roster(me: str, roster: Iterable[str]) -> tuple[str, ...]:
    """Sorted names of all parties, at least 3.

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
