import hashlib
import hmac
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from sfumato.collaborate.secure_sum import stage_key, stream, system_words, uniform
from sfumato.collaborate.transport.channel import PRIME, WHOLE_WORDS
from sfumato.errors import InvalidParameterError

keys = st.binary(min_size=32, max_size=32)


def rotated(word, n):
    return ((word << n) | (word >> (32 - n))) & 0xFFFFFFFF


def chacha20_block(key, counter):
    """RFC 8439, section 2.3, with nonce zero."""
    start = [*struct.unpack("<4I", b"expand 32-byte k"), *struct.unpack("<8I", key), counter, 0, 0, 0]
    state = list(start)

    def quarter(a, b, c, d):
        for first, second, third, bits in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)]:
            state[first] = (state[first] + state[second]) & 0xFFFFFFFF
            state[third] = rotated(state[third] ^ state[first], bits)

    for _ in range(10):
        for i in range(4):
            quarter(i, i + 4, i + 8, i + 12)
        for i in range(4):
            quarter(i, (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12)
    return struct.pack("<16I", *((s + t) & 0xFFFFFFFF for s, t in zip(state, start, strict=True)))


@given(keys, st.lists(st.integers(0, 20), max_size=3))
def test_the_stream_is_chacha20_whatever_the_portions(key, portions):
    words = stream(key)
    drawn = b"".join(words(n).astype("<u8").tobytes() for n in portions)

    assert drawn == b"".join(chacha20_block(key, i) for i in range(8))[: 8 * sum(portions)]


@given(keys, st.binary(max_size=40))
def test_the_key_is_hkdf_with_sha256(seed, label):
    extracted = hmac.digest(bytes(32), seed, hashlib.sha256)

    assert stage_key(seed, label) == hmac.digest(extracted, b"sfumato mask\x00" + label + b"\x01", hashlib.sha256)


def test_a_seed_of_another_length_is_refused():
    with pytest.raises(InvalidParameterError, match="seed"):
        stage_key(bytes(31), b"")


@given(keys, st.integers(0, 30))
def test_numbers_below_the_prime_are_the_upper_61_bits(key, n):
    expected = [word >> 3 for word in stream(key)(n).tolist()]

    assert uniform(stream(key), n, PRIME).tolist() == expected
    assert uniform(stream(key), n, WHOLE_WORDS).tolist() == stream(key)(n).tolist()


@given(st.lists(st.integers(0, 3), max_size=12), st.integers(0, 10))
def test_the_value_that_is_not_below_the_prime_is_drawn_again(choices, n):
    values = [PRIME if choice == 0 else choice for choice in choices] + [7] * n
    left = [value << 3 for value in values]

    def source(count):
        portion = [left.pop(0) for _ in range(count)]
        return np.array(portion, dtype=np.uint64)

    drawn = uniform(source, n, PRIME).tolist()

    assert len(drawn) == n
    assert drawn == [value for value in values if value != PRIME][:n]


def test_another_modulus_is_refused():
    with pytest.raises(InvalidParameterError, match="modulus"):
        uniform(system_words, 1, 97)


@pytest.mark.statistical
@pytest.mark.parametrize("modulus", [WHOLE_WORDS, PRIME], ids=["2^64", "2^61-1"])
@pytest.mark.parametrize("source", [stream(bytes(range(32))), system_words], ids=["stream", "system"])
def test_numbers_are_uniform(source, modulus):
    """Fails by chance once in a million runs for each pair of source and modulus that is not seeded."""
    bins = [int(number * 64 // modulus) for number in uniform(source, 40_000, modulus).tolist()]

    assert chisquare(np.bincount(bins, minlength=64)).pvalue > 1e-6
