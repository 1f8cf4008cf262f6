"""Secure sum: every party learns the total of all parties' numbers, and nothing else about the others'."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Sequence
from typing import Literal, get_args

import numpy as np

from sfumato.collaborate.session.handshake import check_all_told_the_same
from sfumato.collaborate.session.session import Session
from sfumato.collaborate.transport.channel import PRIME, WHOLE_WORDS, SumOfParties, Words
from sfumato.collaborate.transport.messages import UNBOUND
from sfumato.errors import CollaborationError, InvalidParameterError

# Commit, then open: nobody chooses what it publishes after it has seen what the others publish.
#
# A party that waits for the others' vectors could publish whatever makes the total the one it wants. So every party
# first publishes a hash of its vector, and opens it only when the hashes of all are there.


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
    :func:`~sfumato.collaborate.session.handshake.check_all_told_the_same`, which has to follow.
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


# Uniform numbers: from a seed that two parties share, or from the operating system.


SEED_BYTES = 32

WordSource = Callable[[int], Words]


def stage_key(seed: bytes, label: bytes) -> bytes:
    """Key of 32 bytes for one use of a seed, by HKDF with SHA-256 (RFC 5869); labels must never repeat."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    if len(seed) != SEED_BYTES:
        raise InvalidParameterError("seed", f"it has {len(seed)}", allowed=f"of {SEED_BYTES} bytes")
    return HKDF(hashes.SHA256(), SEED_BYTES, salt=None, info=b"sfumato mask\x00" + label).derive(seed)


def stream(key: bytes) -> WordSource:
    """Words of the ChaCha20 key stream (RFC 8439) of a key, one after the other with each call.

    Examples
    --------
    >>> stream(bytes(32))(1).tobytes().hex()        # first test vector of RFC 8439, appendix A.1
    '76b8e0ada0f13d90'
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    encryptor = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()

    def words(n: int) -> Words:
        return np.frombuffer(encryptor.update(bytes(8 * n)), dtype="<u8").astype(np.uint64, copy=False)

    return words


def system_words(n: int) -> Words:
    """Words from the operating system's cryptographic generator."""
    return np.frombuffer(secrets.token_bytes(8 * n), dtype="<u8").astype(np.uint64, copy=False)


def uniform(source: WordSource, n: int, modulus: int) -> Words:
    """Draw n numbers, each exactly uniform below the modulus.

    Modulo 2^61 - 1 the upper 61 bits of a word are taken, and the one value that is not below the modulus is drawn
    again, so there is no bias and two parties with one key draw the same numbers.
    """
    if modulus == WHOLE_WORDS:
        return source(n)
    if modulus != PRIME:
        raise InvalidParameterError("modulus", f"got {modulus}", allowed="2**64 or 2**61 - 1")
    drawn = source(n) >> np.uint64(3)
    while (refused := drawn == PRIME).any():
        drawn = np.concatenate([drawn[~refused], source(int(refused.sum())) >> np.uint64(3)])
    return drawn


SumMode = Literal["seeds", "shares"]

_WORD_BYTES = 8
_RING_NAMES = {WHOLE_WORDS: "64", PRIME: "61"}


class SecureSum:
    r"""Sums over the parties of a session; implements :class:`~sfumato.collaborate.transport.channel.SumOfParties`.

    With ``seeds`` each party sends each other party a fresh seed once a session. For every sum it publishes
    :math:`y_i = x_i - \sum_j G(s_{ij}) + \sum_j G(s_{ji}) \bmod m`, where G is ChaCha20 under a key derived from the
    seed for this sum alone; the masks cancel in :math:`\sum_i y_i`. With ``shares`` each party splits its numbers
    into uniform shares, one for each party, and publishes the sum of the shares it got; this does not rest on a
    cipher, and sends twice as much. The distributed secure sum of [PUFS]_, section III, with uniform integers in
    place of real numbers.

    Any N - 2 parties that pool what they saw learn only the sum of the other two. N - 1 learn the last one's numbers
    by subtraction. A party may put in numbers that are not true; that is not noticed. But it chooses them before it
    sees anything of this sum: what is published was committed to before
    (:func:`committed_broadcast`), so that nobody who comes last chooses the total.

    Parameters
    ----------
    session : Session
        Session after the hello.
    mode : {'seeds', 'shares'}
        How numbers are hidden; the same for all parties.
    """

    def __init__(self, session: Session, *, mode: SumMode = "seeds") -> None:
        if mode not in get_args(SumMode):
            raise InvalidParameterError("mode", "it is not", allowed="'seeds' or 'shares'")
        if session.binding == UNBOUND:
            raise InvalidParameterError("session", "it is not", allowed="one whose hello is over")
        self._session = session
        self._mode = mode
        self._n_sums = 0
        self._sent_seeds: dict[str, bytes] = {}
        self._received_seeds: dict[str, bytes] = {}

    @property
    def n_parties(self) -> int:
        """How many parties add up."""
        return len(self._session.roster)

    def total(self, own: Words, *, stage: str, modulus: int = WHOLE_WORDS) -> Words:
        """Add up the parties' numbers modulo 2^64 or modulo the prime 2^61 - 1.

        Three rounds (``shares``: four): all commit to what they publish, open it, and compare. Every party must ask
        for sums of the same lengths in the same order.
        """
        if modulus not in _RING_NAMES:
            raise InvalidParameterError("modulus", f"got {modulus}", allowed="2**64 or 2**61 - 1")
        if not isinstance(own, np.ndarray) or own.dtype != np.uint64 or own.ndim != 1:
            raise InvalidParameterError("own", "it is not", allowed="a one-dimensional array of uint64")
        if modulus == PRIME and own.size and int(own.max()) >= PRIME:
            raise InvalidParameterError("own", "some are not", allowed="numbers below the modulus")
        self._n_sums += 1
        step = f"{stage}/{_RING_NAMES[modulus]}"
        if self._mode == "seeds":
            published = self._masked(own, step, modulus)
        else:
            published = self._sum_of_shares(own, step, modulus)
        open_stage = f"{step}/{self._mode}-sum"
        openings = committed_broadcast(
            self._session, open_stage, _to_bytes(published), commit_stage=f"{step}/commit", number=self._n_sums
        )
        parts = [
            self._words(name, open_stage, memoryview(opening)[NONCE_BYTES:], own.size, modulus)
            for name, opening in openings.items()
        ]
        check_all_told_the_same(self._session, f"{step}/echo", openings)
        result = np.zeros(own.size, dtype=np.uint64)
        for part in parts:
            result = add(result, part, modulus)
        return result

    def _masked(self, own: Words, step: str, modulus: int) -> Words:
        if not self._sent_seeds:
            self._exchange_seeds()
        masked = own
        for peer in self._session.others:
            sent = self._mask(self._sent_seeds[peer], (self._session.me, peer), step, own.size, modulus)
            received = self._mask(self._received_seeds[peer], (peer, self._session.me), step, own.size, modulus)
            masked = add(subtract(masked, sent, modulus), received, modulus)
        return masked

    def _mask(self, seed: bytes, pair: tuple[str, str], step: str, n: int, modulus: int) -> Words:
        label = json.dumps([self._session.binding.hex(), *pair, step, self._n_sums, n]).encode()
        return uniform(stream(stage_key(seed, label)), n, modulus)

    def _exchange_seeds(self) -> None:
        stage = "seeds"
        self._sent_seeds = {peer: secrets.token_bytes(SEED_BYTES) for peer in self._session.others}
        self._received_seeds = self._session.exchange(stage, self._sent_seeds, largest=SEED_BYTES)
        for peer, seed in self._received_seeds.items():
            if len(seed) != SEED_BYTES:
                self._session.accuse(peer, stage, "wrong-length")

    def _sum_of_shares(self, own: Words, step: str, modulus: int) -> Words:
        stage = f"{step}/shares"
        shares = {peer: uniform(system_words, own.size, modulus) for peer in self._session.others}
        bodies = {peer: _to_bytes(share) for peer, share in shares.items()}
        received = self._session.exchange(stage, bodies, largest=own.size * _WORD_BYTES)
        kept = own
        for peer in self._session.others:
            share = self._words(peer, stage, received[peer], own.size, modulus)
            kept = add(subtract(kept, shares[peer], modulus), share, modulus)
        return kept

    def _words(self, sender: str, stage: str, body: bytes | memoryview, n: int, modulus: int) -> Words:
        if len(body) != n * _WORD_BYTES:
            self._session.accuse(sender, stage, "wrong-length")
        words = np.frombuffer(body, dtype="<u8").astype(np.uint64, copy=False)
        if modulus == PRIME and n and int(words.max()) >= PRIME:
            self._session.accuse(sender, stage, "out-of-range")
        return words


def add(left: Words, right: Words, modulus: int) -> Words:
    """Add numbers below the modulus, modulo it.

    Examples
    --------
    >>> add(np.array([2**61 - 2], np.uint64), np.array([3], np.uint64), PRIME).tolist()
    [2]
    """
    return _below(left + right, modulus)


def subtract(left: Words, right: Words, modulus: int) -> Words:
    """Subtract numbers below the modulus, modulo it.

    Examples
    --------
    >>> subtract(np.array([0], np.uint64), np.array([1], np.uint64), WHOLE_WORDS).tolist() == [2**64 - 1]
    True
    """
    return left - right if modulus == WHOLE_WORDS else _below(left + (np.uint64(PRIME) - right), modulus)


def _below(words: Words, modulus: int) -> Words:
    if modulus == PRIME:
        # words - PRIME wraps around to a larger number exactly where words < PRIME
        np.minimum(words, words - np.uint64(PRIME), out=words)
    return words


def _to_bytes(words: Words) -> bytes:
    return words.astype("<u8", copy=False).tobytes()


# Questions that all parties answer together, of whose answers nothing but the outcome is learned.


def is_any(sums: SumOfParties, own: bool, *, stage: str) -> bool:
    """Whether any party says yes; see :func:`are_any`."""
    return are_any(sums, [own], stage=stage)[0]


def are_any(sums: SumOfParties, own: Sequence[bool], *, stage: str) -> list[bool]:
    """Of several questions, whether any party says yes; neither who nor how many is learned.

    A yes is a random number other than 0 modulo a prime, a no is 0. The sum of several yeses is 0 with a probability
    of 2^-61, and otherwise any number with the same one. Who says yes can subtract its own number, and so learns
    whether anybody else does.
    """
    answers = [1 + secrets.randbelow(PRIME - 1) if yes else 0 for yes in own]
    return [bool(total) for total in sums.total(np.array(answers, dtype=np.uint64), stage=stage, modulus=PRIME)]


def check_same(sums: SumOfParties, own: bytes, *, stage: str) -> None:
    """End the session unless all parties hold the same bytes, which none of them needs to hide.

    Raises
    ------
    CollaborationError
        If somebody's differ. Who cannot be told from a sum.
    """
    digest = int.from_bytes(hashlib.sha256(own).digest()[:7])
    total = sums.total(np.array([digest], dtype=np.uint64), stage=stage, modulus=PRIME)
    if int(total[0]) != digest * sums.n_parties % PRIME:
        problem = "the parties do not come to the same result"
        hint = "run the same version of this program everywhere"
        raise CollaborationError(problem, party="one of them", stage=stage, hint=hint)
