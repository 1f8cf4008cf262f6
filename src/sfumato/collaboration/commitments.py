"""Commit, then open: nobody chooses what it publishes after it has seen what the others publish.

A party that waits for the others' vectors could publish whatever makes the total the one it wants. So every party first
publishes a hash of its vector, and opens it only when the hashes of all are there.
"""

from __future__ import annotations

import hashlib
import json
import secrets

from sfumato.collaboration.session import Session

NONCE_BYTES = 32
COMMITMENT_BYTES = 32


def commitment_to(opening: bytes, *, session: bytes, stage: str, number: int, party: str) -> bytes:
    """Hash that ties a party to what it will open: a random nonce and a body, in one stage of one session.

    The party's name is in it, so that nobody can publish another's commitment as its own. The nonce hides a body that
    can be guessed.

    Examples
    --------
    >>> same = {"session": bytes(32), "stage": "counts", "number": 1}
    >>> commitment_to(bytes(40), **same, party="a") == commitment_to(bytes(40), **same, party="b")
    False
    """
    label = json.dumps([session.hex(), stage, number, party]).encode()
    return hashlib.sha256(b"sfumato commitment\x00" + len(label).to_bytes(8, "little") + label + opening).digest()


def committed_broadcast(
    session: Session, stage: str, body: bytes, *, commit_stage: str, number: int
) -> dict[str, bytes]:
    """Publish a body and return every party's, this one's included, none of which depends on another: two rounds.

    Parameters
    ----------
    stage, commit_stage : str
        Names of the two rounds: of the bodies, and of the commitments before them.
    body : bytes
        All parties' bodies have the same length.
    number : int
        Tells stages of the same name apart.

    Raises
    ------
    CollaborationError
        If a party opens something else than it had committed to. The party is named.

    Notes
    -----
    A party that commits differently to two others must open differently too. One of them finds that, or else
    :func:`~sfumato.collaboration.echo.check_all_told_the_same`, which has to follow.
    """

    def commitment(party: str, opening: bytes) -> bytes:
        return commitment_to(opening, session=session.binding, stage=stage, number=number, party=party)

    own = secrets.token_bytes(NONCE_BYTES) + body
    commitments = session.broadcast(
        commit_stage, commitment(session.me, own), largest=COMMITMENT_BYTES, noted=bytes.hex
    )
    for name, given in commitments.items():
        if len(given) != COMMITMENT_BYTES:
            session.accuse(name, commit_stage, "wrong-length")
    openings = session.broadcast(stage, own, largest=len(own))
    for name, opening in openings.items():
        if len(opening) != len(own):
            session.accuse(name, stage, "wrong-length")
        if commitment(name, opening) != commitments[name]:
            session.accuse(name, stage, "commitment")
    return openings
