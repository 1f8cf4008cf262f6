"""First rounds of a session: the parties find that they agree on everything, and bind what follows to this session."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from sfumato.collaborate.session.session import Session
from sfumato.errors import InvalidParameterError

# Whether all parties were told the same: hashes of what each received, compared by everyone.


_HASH_BYTES = 32


def check_all_told_the_same(session: Session, stage: str, bodies: Mapping[str, bytes]) -> None:
    """Compare, in one round, what every party received from every party; end the session if anything differs.

    Parameters
    ----------
    session : Session
        The session.
    stage : str
        Name of the round.
    bodies : mapping of str to bytes
        What each party broadcast, as it arrived here, this party's own included.

    Notes
    -----
    Without signatures a contradiction between a sender and one receiver can be the fault of either. The party that
    is part of every contradiction is named; of two such parties, this party trusts itself, and else takes the sender.
    """
    own = b"".join(hashlib.sha256(bodies[name]).digest() for name in session.roster)
    reports = {}
    for reporter, report in session.broadcast(stage, own, largest=len(own)).items():
        if len(report) != len(own):
            session.accuse(reporter, stage, "wrong-length")
        reports[reporter] = [report[start : start + _HASH_BYTES] for start in range(0, len(report), _HASH_BYTES)]
    contradictions = _contradictions(session.roster, reports)
    if contradictions:
        culprit, is_sender = _culprit(session.me, contradictions)
        session.accuse(culprit, stage, "equivocation" if is_sender else "false-report")


def check_all_have_the_same(session: Session, stage: str, content: bytes) -> None:
    """Compare a hash of what all parties must hold, such as the result, before anybody acts on it."""
    hashes = session.broadcast(stage, hashlib.sha256(content).digest(), largest=_HASH_BYTES)
    if odd := odd_one_out(hashes):
        session.accuse(odd, stage, "result")


def odd_one_out(held: Mapping[str, bytes]) -> str | None:
    """Party that holds something else than most; None if all hold the same.

    In a tie what the first party of the roster holds counts as what most hold, so all parties name the same one.

    Examples
    --------
    >>> odd_one_out({"a": b"x", "b": b"y", "c": b"x"})
    'b'
    """
    usual = Counter(held[name] for name in sorted(held)).most_common(1)[0][0]
    return next((name for name in sorted(held) if held[name] != usual), None)


def _contradictions(roster: tuple[str, ...], reports: Mapping[str, list[bytes]]) -> list[tuple[str, str]]:
    """Pairs (sender, reporter) where the reporter received something else from the sender than most did."""
    found = []
    for place, sender in enumerate(roster):
        told = {reporter: reports[reporter][place] for reporter in roster}
        usual = Counter(told.values()).most_common(1)[0][0]
        found += [(sender, reporter) for reporter in roster if told[reporter] != usual]
    return found


def _culprit(me: str, contradictions: list[tuple[str, str]]) -> tuple[str, bool]:
    sender, reporter = contradictions[0]
    sender_explains = all(sender in pair for pair in contradictions)
    reporter_explains = all(reporter in pair for pair in contradictions)
    if reporter_explains and reporter != me and (sender == me or not sender_explains):
        return reporter, False
    return sender, True


PROTOCOL_VERSION = 2

MOST_PARAMETERS = 64

_NONCE_BYTES = 32
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
