"""First rounds of a session: the parties find that they agree on everything, and bind what follows to this session."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from sfumato.collaboration.echo import check_all_told_the_same, odd_one_out
from sfumato.collaboration.session import Session
from sfumato.errors import InvalidParameterError

PROTOCOL_VERSION = 2

MOST_PARAMETERS = 64

_NONCE_BYTES = 32
_HASH_BYTES = 32
_STAGE = "hello"

Plain = str | int | float | bool | None | list["Plain"] | dict[str, "Plain"]


@dataclass(frozen=True)
class Terms:
    """Everything the parties must agree on before they count.

    Parameters
    ----------
    session_id : str
        Name of the session, chosen by the parties beforehand.
    fingerprints : mapping of str to str
        Every party's name and the SHA-256 fingerprint of its certificate.
    schema_hash : str
        Hash of the shared schema.
    mode : str
        How sums are made, or that only the selection is revealed.
    parameters : mapping
        All other agreed settings, as plain JSON values, by names of plain letters; the others may see these names.
    """

    session_id: str
    fingerprints: Mapping[str, str]
    schema_hash: str
    mode: str
    parameters: Mapping[str, Plain] = field(default_factory=dict)
    version: int = PROTOCOL_VERSION

    def part_hashes(self) -> dict[str, bytes]:
        """SHA-256 of each part, in the order in which a difference is reported."""
        parts: dict[str, object] = {
            "version": self.version,
            "session-id": self.session_id,
            "roster": dict(self.fingerprints),
            "schema": self.schema_hash,
            "mode": self.mode,
            "parameters": sorted(self.parameters),
        }
        return {name: _hash_of_plain(name, part) for name, part in parts.items()}

    def parameter_hashes(self) -> dict[str, bytes]:
        """SHA-256 of each parameter, sorted by name."""
        return {name: _hash_of_plain(f"parameters/{name}", self.parameters[name]) for name in sorted(self.parameters)}


def greet(session: Session, terms: Terms) -> bytes:
    """Compare the terms of all parties and bind the session; returns the binding.

    Each party sends a fresh nonce of 32 bytes with the hashes of its terms, and checks in a second round that all
    parties got the same. The binding is the SHA-256 over the terms and all nonces. It is no secret; it makes the
    messages of another session, even one with the same terms, unusable in this one.
    """
    if set(terms.fingerprints) != set(session.roster):
        raise InvalidParameterError("fingerprints", "they are not", allowed="given for every party of the roster")
    parts, parameters = terms.part_hashes(), terms.parameter_hashes()
    own = secrets.token_bytes(_NONCE_BYTES) + b"".join([*parts.values(), *parameters.values()])
    shortest = _NONCE_BYTES + _HASH_BYTES * len(parts)
    hellos = session.broadcast(_STAGE, own, largest=shortest + _HASH_BYTES * MOST_PARAMETERS)
    for name, hello in hellos.items():
        if len(hello) < shortest:
            session.accuse(name, _STAGE, "wrong-length")
    for place, part in enumerate([*parts, *parameters]):
        if place == len(parts):  # from here on all name the same parameters
            _check_lengths(session, hellos)
        start = _NONCE_BYTES + place * _HASH_BYTES
        if odd := odd_one_out({name: hello[start : start + _HASH_BYTES] for name, hello in hellos.items()}):
            is_parameter = place >= len(parts)
            session.accuse(odd, _STAGE, "parameter" if is_parameter else part, about=part if is_parameter else "")
    _check_lengths(session, hellos)
    check_all_told_the_same(session, f"{_STAGE}/echo", hellos)
    binding = _binding(session.roster, hellos)
    session.bind(binding)
    session.transcript.describe(session=terms.session_id, mode=terms.mode)
    return binding


def _check_lengths(session: Session, hellos: Mapping[str, bytes]) -> None:
    for name, hello in hellos.items():
        if len(hello) != len(hellos[session.me]):
            session.accuse(name, _STAGE, "wrong-length")


def _binding(roster: tuple[str, ...], hellos: Mapping[str, bytes]) -> bytes:
    names = json.dumps(roster).encode()
    digest = hashlib.sha256(b"sfumato session\x00" + len(names).to_bytes(8, "little") + names)
    for name in roster:
        digest.update(hellos[name])
    return digest.digest()


def _hash_of_plain(name: str, part: object) -> bytes:
    try:
        text = json.dumps([name, part], sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError):
        raise InvalidParameterError(name, "it is not", allowed="plain JSON values") from None
    return hashlib.sha256(text.encode()).digest()
