"""Uniform numbers: from a seed that two parties share, or from the operating system."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import numpy as np

from sfumato.collaboration.contract import PRIME, WHOLE_WORDS, Words
from sfumato.errors import InvalidParameterError

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
        raise InvalidParameterError("modulus", "it is another number", allowed="2**64 or 2**61 - 1")
    drawn = source(n) >> np.uint64(3)
    while (refused := drawn == PRIME).any():
        drawn = np.concatenate([drawn[~refused], source(int(refused.sum())) >> np.uint64(3)])
    return drawn
