"""Questions that all parties answer together, of whose answers nothing but the outcome is learned."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence

import numpy as np

from sfumato.collaboration.contract import PRIME, WHOLE_WORDS, SumOfParties, Words
from sfumato.errors import CollaborationError


class CountedSums:
    """A sum of parties that counts how often it was asked."""

    def __init__(self, sums: SumOfParties) -> None:
        self._sums = sums
        self.n_rounds = 0

    @property
    def n_parties(self) -> int:
        """How many parties add up."""
        return self._sums.n_parties

    def total(self, own: Words, *, stage: str, modulus: int = WHOLE_WORDS) -> Words:
        """Add up the parties' numbers."""
        self.n_rounds += 1
        return self._sums.total(own, stage=stage, modulus=modulus)


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
