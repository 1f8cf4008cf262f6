"""How a message looks on the wire, and how an accusation that ends a session is written down."""

from __future__ import annotations

import json
import re
import struct
from dataclasses import dataclass, field
from enum import IntEnum

from sfumato.errors import InvalidParameterError

SIZE_LIMIT = 256 * 2**20
UNBOUND = bytes(32)

_MAGIC = b"sfumato\x01"
_HEADER = struct.Struct("<8sB32sIHQ")
_STAGE_LIMIT = 200
_ACCUSATION_LIMIT = 10_000
_SHORT = 2**16
OVERHEAD_BYTES = 2**15
"""Room for a message's header, and for an accusation where only a short body is expected."""
_ABOUT = re.compile(r"[A-Za-z0-9_-]{0,64}")

REASONS = {
    "silent": "sent nothing within the time limit",
    "gone": "is not connected any more",
    "unheard": "does not get what is sent to it",
    "cut-off": "heard nothing from any other party within the time limit; its own line is probably down",
    "not-heard": "is not heard by the others; its own line is probably down",
    "not-met": "made another give up while the parties connected",
    "stopped": "stopped because of a failure of its own",
    "garbage": "sent something that is not a message of this protocol",
    "too-large": "sent a message above the size limit",
    "other-session": "sent a message of another session, perhaps a replay",
    "out-of-turn": "sent a message out of turn",
    "wrong-length": "sent a message of the wrong length",
    "out-of-range": "sent a number that is not below the modulus",
    "commitment": "opened something else than it had committed to",
    "forgery": "passed on an accusation that the party it names as its author did not sign",
    "equivocation": "told different parties different things, or is falsely said to",
    "false-report": "reports messages that were not sent in this session",
    "version": "speaks another version of the protocol",
    "session-id": "has another session id",
    "roster": "has another list of parties or of their certificates",
    "schema": "has another shared schema; the schema differs",
    "mode": "has another mode; the mode differs",
    "parameters": "has other parameters; the parameters differ",
    "parameter": "has another value of the parameter",
    "result": "has another result",
}


def size_limit_of_counts(n_counts: int) -> int:
    """Largest message of a session in which so many counts are added up; all others are short.

    Examples
    --------
    >>> size_limit_of_counts(3740)
    95456
    """
    return min(SIZE_LIMIT, _SHORT + 8 * n_counts)


class UnreadableMessageError(ValueError):
    """Bytes that are no message; ``reason`` is a key of ``REASONS``. The session adds who sent them."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(REASONS[reason])


class Kind(IntEnum):
    """Part of the protocol, or the end of it."""

    DATA = 0
    ABORT = 1


@dataclass(frozen=True, slots=True)
class Message:
    """Payload with the stage it belongs to, its number on the way to this peer, and the session it is bound to."""

    kind: Kind
    binding: bytes = field(repr=False)
    number: int
    stage: str
    payload: bytes = field(repr=False)

    @property
    def n_bytes(self) -> int:
        """Size on the wire."""
        return _HEADER.size + len(self.stage.encode()) + len(self.payload)


def encode(message: Message) -> bytes:
    """Write a message as bytes.

    Examples
    --------
    >>> decode(encode(Message(Kind.DATA, UNBOUND, 3, "counts", b"abc"))).stage
    'counts'
    """
    stage = message.stage.encode()
    if len(stage) > _STAGE_LIMIT:
        raise InvalidParameterError("stage", f"it has {len(stage)}", allowed=f"at most {_STAGE_LIMIT} bytes long")
    header = _HEADER.pack(_MAGIC, message.kind, message.binding, message.number, len(stage), len(message.payload))
    return b"".join((header, stage, message.payload))


def decode(body: bytes, *, size_limit: int = SIZE_LIMIT) -> Message:
    """Read a message; anything that :func:`encode` cannot have written raises ``UnreadableMessageError``."""
    if len(body) > size_limit:
        raise UnreadableMessageError("too-large")
    if len(body) < _HEADER.size:
        raise UnreadableMessageError("garbage")
    magic, kind, binding, number, stage_length, payload_length = _HEADER.unpack_from(body)
    start = _HEADER.size + stage_length
    if magic != _MAGIC or stage_length > _STAGE_LIMIT or len(body) != start + payload_length:
        raise UnreadableMessageError("garbage")
    try:
        stage = body[_HEADER.size : start].decode()
        return Message(Kind(kind), binding, number, stage, body[start:])
    except ValueError:
        raise UnreadableMessageError("garbage") from None


@dataclass(frozen=True, slots=True)
class Accusation:
    """Why a session ended: who did what, in which stage and in which round, the first being 1.

    Parameters
    ----------
    about : str
        Name of the parameter that differs; empty for all other reasons.
    """

    culprit: str
    stage: str
    reason: str
    round: int
    about: str = ""

    def encode(self) -> bytes:
        """Write the accusation as bytes."""
        return json.dumps([self.culprit, self.stage, self.reason, self.round, self.about]).encode()

    @classmethod
    def decode(cls, payload: bytes, roster: tuple[str, ...]) -> Accusation:
        """Read an accusation of a party in the roster for a reason in ``REASONS``; nothing else is accepted."""
        if len(payload) > _ACCUSATION_LIMIT:
            raise UnreadableMessageError("garbage")
        try:
            culprit, stage, reason, round_number, about = json.loads(payload)
            known = culprit in roster and reason in REASONS
        except (ValueError, TypeError, RecursionError):
            raise UnreadableMessageError("garbage") from None
        if not known or type(stage) is not str or len(stage.encode(errors="replace")) > _STAGE_LIMIT:
            raise UnreadableMessageError("garbage")
        if type(round_number) is not int or round_number < 0:
            raise UnreadableMessageError("garbage")
        if type(about) is not str or not _ABOUT.fullmatch(about) or bool(about) != (reason == "parameter"):
            raise UnreadableMessageError("garbage")
        return cls(culprit, stage, reason, round_number, about)
