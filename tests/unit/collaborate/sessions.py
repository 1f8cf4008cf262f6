"""Sessions of several parties in one process, and what every fault must end in."""

from __future__ import annotations

import numpy as np

from sfumato.collaborate.secure_sum import SecureSum
from sfumato.collaborate.session.handshake import Terms, greet
from sfumato.collaborate.session.session import Session
from sfumato.collaborate.session.transcript import SessionWatch
from sfumato.collaborate.transport.messages import decode
from sfumato.errors import CollaborationError
from unit.collaborate.memory_channel import LocalNetwork, deliver_as_sent

THREE = ("a", "b", "c")
HANG = 20.0


class HeardRounds(SessionWatch):
    """Calls a function with every round that is over."""

    def __init__(self, hear):
        self._hear = hear

    def round_over(self, done):
        self._hear(done)


def terms_for(names, **changes):
    given = {
        "session_id": "s-1",
        "fingerprints": {name: f"fingerprint of {name}" for name in names},
        "schema_hash": "schema",
        "mode": "seeds",
        "parameters": {"min_gain": 0.1},
    }
    return Terms(**{**given, **changes})


def run(work, *, names=THREE, interfere=deliver_as_sent, timeout=HANG, hello=True):
    """Run a session; gives what every party ends with: ``work(session)``'s result, or its exception."""
    network = LocalNetwork(names, interfere=interfere)

    def take_part(me, channel):
        with Session(me, names, channel, timeout=timeout) as session:
            if hello:
                greet(session, terms_for(names))
            return work(session)

    return network.run(take_part, time_limit=HANG)


def add_up(vectors, *, mode="seeds", modulus=2**64, n_sums=1, make=SecureSum):
    """Work of a party that adds its vector to the others'."""

    def work(session):
        adder = make(session, mode=mode)
        own = np.array(vectors[session.me], dtype=np.uint64)
        return [adder.total(own, stage="counts", modulus=modulus).tolist() for _ in range(n_sums)]

    return work


def assert_all_blame(outcomes, culprit, stage, *, problem="", by=("a", "b")):
    """All parties ended in time with ``CollaborationError``, and those of ``by`` name the culprit and the stage."""
    for name, outcome in outcomes.items():
        assert isinstance(outcome, CollaborationError), (name, outcome)
    for name in by:
        error = outcomes[name]
        assert (error.party, error.stage) == (culprit, stage), (name, str(error))
        assert problem in str(error), (name, str(error))


def stage_of(body):
    return decode(body).stage
