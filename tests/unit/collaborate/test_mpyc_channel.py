"""Tests of MPyC over a channel of ours: what it carries, and how it ends when a party does something else."""

from __future__ import annotations

import pickle
import time

import numpy as np
import pytest

from sfumato.collaborate.mpyc_channel import compute_together
from sfumato.errors import CollaborationError, InvalidParameterError
from unit.collaborate.memory_channel import LocalNetwork, deliver_as_sent

NAMES = ("anna", "bert", "cleo")
PRIME = 2**127 - 1


async def cube_of_sum(runtime):
    """Each party puts in its place + 1, ten times; the third power of their sum is opened."""
    field = runtime.secure_integers(40, PRIME).field
    rows = await runtime.input(field.array(np.array([runtime.pid + 1] * 10, dtype=object)))
    total = sum(row.value for (row,) in rows)
    square = await runtime._reshare(field.array(total * total))
    cube = await runtime._reshare(field.array(square.value * total))
    return int((await runtime.output(cube)).value[0])


def together(computation=cube_of_sum, *, names=NAMES, interfere=deliver_as_sent, patience=20.0, **parameters):
    """Outcome of every party by name; anna has her own patience, and whoever fails is gone for the others."""
    network = LocalNetwork(names, interfere=interfere)

    def take_part(name, channel):
        timeout = patience if name == "anna" else 20.0
        try:
            return compute_together(channel, name, names, computation, timeout=timeout, **{"agreed": b"", **parameters})
        except Exception:
            network.disconnect(name)
            raise

    return network.run(take_part)


class Tampering:
    """Change one message from bert to anna: the one with this number, the greeting being 0."""

    def __init__(self, number, change):
        self.number = number
        self.change = change
        self.n_seen = 0

    def __call__(self, sender, to, body):
        if (sender, to) != ("bert", "anna"):
            return (body,)
        self.n_seen += 1
        return self.change(body) if self.n_seen == self.number + 1 else (body,)


@pytest.mark.parametrize("n_parties", [3, 4, 5, 6, 7])
def test_parties_compute_with_each_others_numbers(n_parties):
    names = [f"party {i}" for i in range(n_parties)]

    found = together(names=names)

    assert list(found.values()) == [sum(range(1, n_parties + 1)) ** 3] * n_parties


def test_sessions_of_one_thread_follow_each_other_on_the_same_channel():
    def twice(name, channel):
        first = compute_together(channel, name, NAMES, cube_of_sum, agreed=b"1")
        return first, compute_together(channel, name, NAMES, cube_of_sum, agreed=b"2")

    assert list(LocalNetwork(NAMES).run(twice).values()) == [(216, 216)] * 3


def test_later_messages_are_left_in_the_channel():
    def with_a_last_word(name, channel):
        found = compute_together(channel, name, NAMES, cube_of_sum, agreed=b"")
        others = [other for other in NAMES if other != name]
        for other in others:
            channel.send(other, f"from {name}".encode())
        return found, [channel.receive(other, 5.0) for other in others]

    found = LocalNetwork(NAMES).run(with_a_last_word)

    assert found["anna"] == (216, [b"from bert", b"from cleo"])


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda body: (body[:-1],), "wrong length"),
        (lambda body: (body + b"\0",), "wrong length"),
        (lambda body: (b"",), "not a message of this protocol"),
        (lambda body: (), "nothing within the time limit"),
    ],
    ids=["short", "long", "empty", "none"],
)
def test_a_party_that_sends_something_else_is_named(number, change, problem):
    found = together(interfere=Tampering(number, change), patience=1.0)

    assert isinstance(found["anna"], CollaborationError)
    assert (found["anna"].party, found["anna"].stage) == ("bert", "selection")
    assert problem in str(found["anna"])


@pytest.mark.parametrize("change", [lambda body: (body[:-1],), lambda body: (body + b"\0",), lambda body: (b"",)])
def test_a_greeting_of_another_length_is_refused(change):
    found = together(interfere=Tampering(0, change))

    assert found["anna"].party == "bert"
    assert "wrong length" in str(found["anna"])


def test_a_message_that_comes_twice_is_refused():
    found = together(interfere=Tampering(2, lambda body: (body, body)))

    assert isinstance(found["anna"], CollaborationError)
    assert found["anna"].party == "bert"


def test_another_label_than_asked_for_ends_with_the_time_limit():
    found = together(interfere=Tampering(2, lambda body: (bytes(8) + body[8:],)), patience=1.0)

    assert isinstance(found["anna"], CollaborationError)
    assert found["anna"].party == "bert"


def test_a_message_that_nobody_asked_for_is_found_at_the_end():
    found = together(interfere=Tampering(2, lambda body: (bytes(8) + b"hello", body)))

    assert isinstance(found["anna"], CollaborationError)
    assert found["anna"].party == "bert"
    assert "out of turn" in str(found["anna"])


def test_a_flood_of_labels_is_cut_off():
    flood = [number.to_bytes(8, "little") for number in range(5000)]

    found = together(interfere=Tampering(2, lambda body: (*flood, body)))

    assert found["anna"].party == "bert"
    assert "out of turn" in str(found["anna"])


def test_a_party_that_went_away_is_named_at_once():
    network = LocalNetwork(NAMES)

    def take_part(name, channel):
        if name == "cleo":
            network.disconnect("cleo")
            return None
        return compute_together(channel, name, NAMES, cube_of_sum, agreed=b"", timeout=30.0)

    found = network.run(take_part, time_limit=10.0)

    assert {found["anna"].party, found["bert"].party} == {"cleo"}
    assert "not connected" in str(found["anna"])


def test_a_channel_that_cannot_send_is_its_receivers_fault():
    def refuse(sender, to, body):
        if (sender, to) == ("anna", "cleo") and len(body) > 100:
            raise ConnectionError
        return (body,)

    async def long_message(runtime):
        field = runtime.secure_integers(40, PRIME).field
        return await runtime.input(field.array(np.zeros(50, dtype=object)))

    found = together(long_message, interfere=refuse)

    assert found["anna"].party == "cleo"


def test_a_fault_of_one_party_does_not_wait_for_another_that_is_silent():
    tamper = Tampering(1, lambda body: (body[:-1],))

    def interfere(sender, to, body):
        is_late = (sender, to) == ("cleo", "anna") and len(body) < 32
        return () if is_late else tamper(sender, to, body)

    begun = time.monotonic()
    found = together(interfere=interfere, patience=60.0)

    assert found["anna"].party == "bert"
    assert time.monotonic() - begun < 30


def test_an_accusation_can_be_passed_on():
    accused = []

    found = together(interfere=Tampering(1, lambda body: (body[:-1],)), accuse=lambda *fault: accused.append(fault))

    assert ("bert", "wrong-length") in accused
    assert isinstance(found["anna"], CollaborationError)


_exploded = []


class _Bomb:
    def __reduce__(self):
        return _exploded.append, (True,)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_pickles_are_never_loaded(number):
    """A pickle ends before the zeros that make it as long as the message it replaces."""
    bomb = pickle.dumps(_Bomb())
    lengths = []

    def plant(body):
        lengths.append(len(body))
        return (body[:8] + bomb.ljust(len(body) - 8, b"\0"),)

    together(interfere=Tampering(number, plant))

    assert lengths[0] > 8 + len(bomb)
    assert not _exploded


def test_nothing_is_unpickled_in_a_session_without_faults(monkeypatch):
    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(pickle, "loads", refuse)
    monkeypatch.setattr(pickle, "dumps", refuse)

    assert list(together().values()) == [216] * 3


def test_parties_with_other_parameters_are_refused():
    found = LocalNetwork(NAMES).run(
        lambda name, channel: compute_together(
            channel, name, NAMES, cube_of_sum, agreed=b"other" if name == "cleo" else b"this"
        )
    )

    assert {found["anna"].party, found["bert"].party} == {"cleo"}
    assert "parameters" in str(found["anna"])


def test_an_error_of_the_computation_itself_is_passed_on():
    async def refuse(runtime):
        await cube_of_sum(runtime)
        raise InvalidParameterError("this", "got that", allowed="something else")

    found = together(refuse)

    assert all(isinstance(error, InvalidParameterError) for error in found.values())


@pytest.mark.parametrize("roster", [("anna", "bert"), tuple("abcdefgh"), ("anna", "anna", "bert")])
def test_rosters_of_other_sizes_are_refused(roster):
    with pytest.raises(InvalidParameterError, match="roster"):
        compute_together(LocalNetwork(NAMES).channel("anna"), "anna", roster, cube_of_sum, agreed=b"")


def test_a_party_outside_the_roster_is_refused():
    with pytest.raises(InvalidParameterError, match="me must be"):
        compute_together(LocalNetwork(NAMES).channel("anna"), "dora", NAMES, cube_of_sum, agreed=b"")
