"""Tests of MPyC's runtime without its side effects."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.collaborate import mpyc_channel as mpyc_runtime
from sfumato.collaborate.mpyc_channel import ChannelRuntime, compute_together, is_prime
from unit.collaborate.memory_channel import LocalNetwork

NAMES = ("anna", "bert", "cleo")
PRIME = 2**127 - 1  # p % 4 == 3
SECRETS = {"anna": 3, "bert": 4, "cleo": 35}


async def shared_sum(runtime, secret):
    """Share of the sum of all parties' secrets, as an array of one number."""
    integers = runtime.secure_integers(40, PRIME)
    rows = await runtime.input(integers.field.array(np.array([secret], dtype=object)))
    return integers.array(sum(row.value for (row,) in rows))


def together(computation):
    """Outcome of every party, each with its own secret."""

    def take_part(name, channel):
        return compute_together(
            channel, name, NAMES, partial(computation, secret=SECRETS[name]), agreed=b"", timeout=20.0
        )

    return list(LocalNetwork(NAMES).run(take_part).values())


@pytest.mark.slow
def test_importing_leaves_the_process_as_it_is():
    """MPyC by itself would print its version and exit, or print a line and configure logging."""
    script = """
import asyncio, logging, os, sys
policy, environment = asyncio.get_event_loop_policy(), dict(os.environ)
import sfumato.collaborate.mpyc_channel
assert sys.argv == ["-c", "--VERSION", "-M3"], sys.argv
assert not logging.getLogger().handlers
assert asyncio.get_event_loop_policy() is policy
assert dict(os.environ) == environment
"""
    ours = {"READTHEDOCS", "MPYC_MAXWORKERS"}
    environment = {name: value for name, value in os.environ.items() if name not in ours}

    done = subprocess.run(
        [sys.executable, "-c", script, "--VERSION", "-M3"],
        capture_output=True,
        timeout=60,
        env=environment,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@given(st.integers(2, 5000))
def test_primes_are_told_from_others(number):
    assert is_prime(number) == all(number % divisor for divisor in range(2, number))


def test_a_difference_of_zero_is_found_without_opening_it():
    async def is_zero(runtime, secret):
        total = await shared_sum(runtime, secret)
        return [bool((await runtime.np_is_zero_public(total - number))[0]) for number in (41, 42)]

    assert together(is_zero) == [[False, True]] * 3


def products_opened(test_for_zero, monkeypatch):
    """Secret candidates that one party computes from all it sees of a test for zero.

    If the product of two sharings of degree 1 is opened as it is, then its polynomial of degree 2 has the roots of
    both. With the own share of the secret, each root gives the line, and the line the secret.
    """
    seen = []
    recombine = mpyc_runtime._runtimes.thresha.recombine

    def recording(field, points, x_rs=0):
        seen.append([(x, int(values[0])) for x, values in points])
        return recombine(field, points, x_rs)

    async def attack(runtime, secret):
        total = await shared_sum(runtime, secret)
        own_share = int((await runtime.gather(total)).value[0])
        if runtime.pid == 0:
            seen.clear()
        await test_for_zero(runtime, total)
        return own_share

    monkeypatch.setattr(mpyc_runtime._runtimes.thresha, "recombine", recording)
    own_share, *_ = together(attack)
    monkeypatch.undo()
    return {candidate for points in seen if len(points) == 3 for candidate in _candidates(points, own_share)}


def _candidates(points, own_share):
    p, a, b, c = PRIME, 0, 0, 0
    for x, y in points:
        (u, v) = (other for other, _ in points if other != x)
        factor = y * pow((x - u) * (x - v), -1, p)
        a, b, c = a + factor, b - factor * (u + v), c + factor * u * v
    root = pow(b * b - 4 * a * c, (p + 1) // 4, p)
    for sign in (1, -1):
        zero = (sign * root - b) * pow(2 * a, -1, p) % p
        yield -own_share * zero * pow(1 - zero, -1, p) % p


def test_the_test_for_zero_of_mpyc_tells_one_party_the_number(monkeypatch):
    """Why ours takes its place; once MPyC has mended it this fails, and ours can go."""
    assert sum(SECRETS.values()) in products_opened(mpyc_runtime._runtimes.Runtime.np_is_zero_public, monkeypatch)


def test_our_test_for_zero_opens_no_product_of_sharings(monkeypatch):
    opened = []
    output = ChannelRuntime.output

    def recording(self, x, receivers=None, threshold=None, raw=False):
        opened.append(threshold)
        return output(self, x, receivers, threshold, raw)

    async def is_zero(runtime, secret):
        total = await shared_sum(runtime, secret)
        return bool((await runtime.np_is_zero_public(total))[0])

    monkeypatch.setattr(ChannelRuntime, "output", recording)

    assert together(is_zero) == [False] * 3
    assert opened == [None] * 3


def test_the_environment_is_not_asked_for_the_number_of_threads(monkeypatch):
    """MPyC would, whenever it takes square roots, which random bits need."""
    monkeypatch.setenv("MPYC_MAXWORKERS", "not a number")

    async def is_below_50(runtime, secret):
        total = await shared_sum(runtime, secret)
        return int((await runtime.output(runtime.np_sgn(total - 50, LT=True)))[0])

    assert together(is_below_50) == [1] * 3


@pytest.mark.parametrize("method", ["transfer", "is_zero_public", "_np_is_zero"])
def test_operations_that_unpickle_or_tell_too_much_are_refused(method):
    async def ask(runtime, secret):
        with pytest.raises(NotImplementedError):
            getattr(runtime, method)(secret)
        return True

    assert together(ask) == [True] * 3


def test_nothing_is_logged(caplog):
    caplog.set_level(logging.DEBUG)

    async def compare(runtime, secret):
        total = await shared_sum(runtime, secret)
        return int((await runtime.output(runtime.np_sgn(total - 50, LT=True)))[0])

    assert together(compare) == [1] * 3
    assert not [record for record in caplog.records if record.name != "asyncio"]
