"""Secure sum: every party learns the total of all parties' numbers, and nothing else about the others'."""

from __future__ import annotations

import json
import secrets
from typing import Literal, get_args

import numpy as np

from sfumato.collaboration.commitments import NONCE_BYTES, committed_broadcast
from sfumato.collaboration.contract import PRIME, WHOLE_WORDS, Words
from sfumato.collaboration.echo import check_all_told_the_same
from sfumato.collaboration.prg import SEED_BYTES, stage_key, stream, system_words, uniform
from sfumato.collaboration.session import Session
from sfumato.errors import InvalidParameterError

SumMode = Literal["seeds", "shares"]

_WORD_BYTES = 8
_RING_NAMES = {WHOLE_WORDS: "64", PRIME: "61"}


class SecureSum:
    r"""Sums over the parties of a session; implements :class:`~sfumato.collaboration.contract.SumOfParties`.

    With ``seeds`` each party sends each other party a fresh seed once a session. For every sum it publishes
    :math:`y_i = x_i - \sum_j G(s_{ij}) + \sum_j G(s_{ji}) \bmod m`, where G is ChaCha20 under a key derived from the
    seed for this sum alone; the masks cancel in :math:`\sum_i y_i`. With ``shares`` each party splits its numbers
    into uniform shares, one for each party, and publishes the sum of the shares it got; this does not rest on a
    cipher, and sends twice as much. The distributed secure sum of [PUFS]_, section III, with uniform integers in
    place of real numbers.

    Any N - 2 parties that pool what they saw learn only the sum of the other two. N - 1 learn the last one's numbers
    by subtraction. A party may put in numbers that are not true; that is not noticed. But it chooses them before it
    sees anything of this sum: what is published was committed to before
    (:mod:`sfumato.collaboration.commitments`), so that nobody who comes last chooses the total.

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
        if not session.is_bound:
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
        _check_own(own, modulus)
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

    def _exchange_seeds(self) -> None:
        stage = "seeds"
        self._sent_seeds = {peer: secrets.token_bytes(SEED_BYTES) for peer in self._session.others}
        self._received_seeds = self._session.exchange(stage, self._sent_seeds, largest=SEED_BYTES)
        for peer, seed in self._received_seeds.items():
            if len(seed) != SEED_BYTES:
                self._session.accuse(peer, stage, "wrong-length")

    def _mask(self, seed: bytes, pair: tuple[str, str], step: str, n: int, modulus: int) -> Words:
        label = json.dumps([self._session.binding.hex(), *pair, step, self._n_sums, n]).encode()
        return uniform(stream(stage_key(seed, label)), n, modulus)

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


def _check_own(own: Words, modulus: int) -> None:
    if modulus not in _RING_NAMES:
        raise InvalidParameterError("modulus", "it is another number", allowed="2**64 or 2**61 - 1")
    if not isinstance(own, np.ndarray) or own.dtype != np.uint64 or own.ndim != 1:
        raise InvalidParameterError("own", "it is not", allowed="a one-dimensional array of uint64")
    if modulus == PRIME and own.size and int(own.max()) >= PRIME:
        raise InvalidParameterError("own", "some are not", allowed="numbers below the modulus")
