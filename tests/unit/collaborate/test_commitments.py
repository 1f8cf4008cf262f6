"""Nobody chooses a total: a party that waits for what the others publish is caught, or learns nothing."""

import json

import numpy as np
import pytest

from sfumato.collaborate.schema_session import private_union
from sfumato.collaborate.secure_sum import SecureSum, are_any
from sfumato.collaborate.session.agreement import agree
from sfumato.collaborate.session.handshake import greet
from sfumato.collaborate.session.session import Session
from sfumato.collaborate.session.transcript import Transcript
from sfumato.collaborate.shared_schema import SharedSchema
from sfumato.collaborate.transport.messages import REASONS
from sfumato.errors import CollaborationError
from unit.collaborate.memory_channel import LocalNetwork
from unit.collaborate.plain_sums import table_of
from unit.collaborate.sessions import HANG, THREE, assert_all_blame, terms_for

WORD = 8
CLASSES = ["n", "y"] * 20
COLUMNS = {"useful": CLASSES, "coin": ["h", "h", "t", "t"] * 10, "dice": ["1", "2", "3", "4"] * 10}
TABLE = table_of(COLUMNS | {"ill": CLASSES}, target="ill")
SCHEMA = SharedSchema.of_table(TABLE)


class Rushing(Session):
    """Party that publishes last: it waits for the others' vectors and makes the total the one that it wants."""

    wanted = ()
    attacked = "counts/64/seeds-sum"

    def exchange(self, stage, bodies, **given):
        if stage != self.attacked:
            return super().exchange(stage, bodies, **given)
        (own,) = set(bodies.values())
        n_bytes = WORD * len(self.wanted)
        with self.round(stage):
            received = {peer: self.receive(peer, stage) for peer in self.others}
            published = [np.frombuffer(body[-n_bytes:], dtype="<u8") for body in received.values()]
            chosen = np.array(self.wanted, dtype=np.uint64) - sum(published[1:], published[0])
            for peer in self.others:
                self.send(peer, stage, own[:-n_bytes] + chosen.astype("<u8").tobytes())
        return received


class Withholding(Session):
    """Party that does not even commit before it has seen what the others open."""

    def exchange(self, stage, bodies, **given):
        if not stage.endswith("/commit"):
            return super().exchange(stage, bodies, **given)
        with self.round(stage):
            for peer in self.others:
                self.receive(peer, stage)
            for peer in self.others:
                self.receive(peer, stage.replace("/commit", "/seeds-sum"))
        raise AssertionError("an honest party opened its numbers")


def run(work, *, bad, timeout=HANG):
    """Run a session whose third party is a bad one; gives outcomes and transcripts."""
    records = {name: Transcript() for name in THREE}

    def take_part(me, channel):
        kind = bad if me == "c" else Session
        with kind(me, THREE, channel, timeout=timeout, transcript=records[me]) as session:
            greet(session, terms_for(THREE))
            return work(session)

    return LocalNetwork(THREE).run(take_part, time_limit=2 * HANG), records


def removed_by(session):
    found = agree(SecureSum(session), SCHEMA, SCHEMA.counts(TABLE), min_privacy_gain=0.05)
    return found.removed


def test_honest_parties_keep_the_only_useful_column():
    outcomes, _ = run(removed_by, bad=Session)

    assert all("useful" not in removed for removed in outcomes.values()), outcomes


def test_a_party_that_waits_for_the_others_does_not_make_them_drop_the_only_useful_column():
    class Attacker(Rushing):
        """Wants a total in which the useful column has one value, and the others follow the class."""

        wanted = np.concatenate([[60, 60, 0, 0], [60, 0, 0, 60], [30, 0, 30, 0, 0, 30, 0, 30]])

    outcomes, _ = run(removed_by, bad=Attacker)

    assert_all_blame(outcomes, "c", "counts/64/seeds-sum", problem=REASONS["commitment"])


@pytest.mark.parametrize(
    ("work", "stage", "wanted"),
    [
        (lambda session: are_any(SecureSum(session), [session.me == "a"] * 3, stage="not yet"), "not yet", [0] * 3),
        (
            lambda session: private_union(SecureSum(session), {"x": [session.me]}, expected=8, most_bytes=3),
            "union 1",
            [0] * 48,
        ),
    ],
    ids=["not yet", "union"],
)
def test_nor_does_it_choose_an_answer_or_a_union(work, stage, wanted):
    class Attacker(Rushing):
        attacked = f"{stage}/61/seeds-sum"

    Attacker.wanted = wanted
    outcomes, _ = run(work, bad=Attacker)

    assert_all_blame(outcomes, "c", Attacker.attacked, problem=REASONS["commitment"])


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["seeds", "shares"])
@pytest.mark.parametrize("modulus", [2**64, 2**61 - 1])
def test_nobody_opens_before_all_commitments_are_there(mode, modulus):
    def work(session):
        return SecureSum(session, mode=mode).total(np.arange(3, dtype=np.uint64), stage="counts", modulus=modulus)

    outcomes, records = run(work, bad=Withholding, timeout=1.0)

    assert all(isinstance(outcome, CollaborationError) for outcome in outcomes.values()), outcomes
    for name in ("a", "b"):
        assert not [entry for entry in records[name].entries if entry.stage.endswith("-sum")]


def test_the_transcript_shows_every_commitment_whole(tmp_path):
    transcript = Transcript(tmp_path / "t.jsonl")

    def take_part(me, channel):
        record = transcript if me == "a" else None
        with Session(me, THREE, channel, timeout=HANG, transcript=record) as session:
            greet(session, terms_for(THREE))
            return SecureSum(session).total(np.arange(3, dtype=np.uint64), stage="counts").tolist()

    assert LocalNetwork(THREE).run(take_part) == {name: [0, 3, 6] for name in THREE}
    lines = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    committed = [line for line in lines if line.get("stage") == "counts/64/commit"]
    assert sorted((line["direction"], line["peer"]) for line in committed) == [
        ("received", "b"),
        ("received", "c"),
        ("sent", "b"),
        ("sent", "c"),
    ]
    assert {len(line["digest"]) for line in committed} == {64}
    opened = [place for place, line in enumerate(lines) if line.get("stage") == "counts/64/seeds-sum"]
    assert max(place for place, line in enumerate(lines) if line in committed) < min(opened)
