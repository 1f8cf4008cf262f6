"""How a message looks on the wire, and how an accusation that ends a session is written down."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes

from sfumato.collaborate.roster import Roster
from sfumato.collaborate.transport.certificates import check_key, read_certificate
from sfumato.errors import InputError, InvalidParameterError

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
    "equivocation": "sent different parties different things, or is falsely accused of it",
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


# Signatures by the keys of the parties' certificates, so that an accusation keeps its author when it is passed on.


_PSS = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.DIGEST_LENGTH)


class Signatures(Protocol):
    """Signs as this party, and tells whether another party has signed something."""

    def sign(self, content: bytes) -> bytes:
        """Signature of this party."""
        ...

    def is_signed(self, party: str, content: bytes, signature: bytes) -> bool:
        """Whether a party has signed the content."""
        ...


class NoSignatures:
    """For parties in one process, none of which lies about who said something."""

    def sign(self, content: bytes) -> bytes:
        """Nothing."""
        return b""

    def is_signed(self, party: str, content: bytes, signature: bytes) -> bool:
        """Believe everything."""
        return True


class CertificateSignatures:
    """Signatures by the keys that the parties also use for their connections.

    Parameters
    ----------
    key : private key
        This party's own.
    public_keys : mapping of str to public key
        Every party's, by its name.
    """

    def __init__(self, key: PrivateKeyTypes, public_keys: Mapping[str, PublicKeyTypes]) -> None:
        self._key = key
        self._public_keys = public_keys

    @classmethod
    def of(cls, roster: Roster) -> Self:
        """Read the keys of a roster, whose files were checked.

        Raises
        ------
        InputError
            If this party's key is of a kind that cannot sign.
        """
        certificates = {peer.name: read_certificate(peer.certificate) for peer in (roster.me, *roster.peers)}
        key = check_key(roster.key, certificates[roster.me.name])
        if not isinstance(
            key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey
        ):
            raise InputError(
                "the private key is of a kind that cannot sign", path=roster.key, hint="have new ones made"
            )
        return cls(key, {name: certificate.public_key() for name, certificate in certificates.items()})

    def sign(self, content: bytes) -> bytes:
        """Signature of this party."""
        match self._key:
            case ec.EllipticCurvePrivateKey():
                return self._key.sign(content, ec.ECDSA(hashes.SHA256()))
            case rsa.RSAPrivateKey():
                return self._key.sign(content, _PSS, hashes.SHA256())
            case ed25519.Ed25519PrivateKey() | ed448.Ed448PrivateKey():
                return self._key.sign(content)
        raise AssertionError

    def is_signed(self, party: str, content: bytes, signature: bytes) -> bool:
        """Whether a party has signed the content."""
        try:
            match self._public_keys.get(party):
                case ec.EllipticCurvePublicKey() as key:
                    key.verify(signature, content, ec.ECDSA(hashes.SHA256()))
                case rsa.RSAPublicKey() as key:
                    key.verify(signature, content, _PSS, hashes.SHA256())
                case ed25519.Ed25519PublicKey() | ed448.Ed448PublicKey() as key:
                    key.verify(signature, content)
                case _:
                    return False
        except InvalidSignature:
            return False
        return True
