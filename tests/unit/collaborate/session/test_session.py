import threading
import time

import numpy as np
import pytest

from sfumato.collaborate.secure_sum import SecureSum
from sfumato.collaborate.session.handshake import (
    MOST_PARAMETERS,
    check_all_have_the_same,
    check_all_told_the_same,
    greet,
    odd_one_out,
)
from sfumato.collaborate.session.party import StageChannel
from sfumato.collaborate.session.session import Session, SignedAccusation
from sfumato.collaborate.transport.messages import REASONS, Accusation, Kind, Message, NoSignatures, decode, encode
from sfumato.errors import CollaborationError, InvalidParameterError, PrivacyNotAchievableError
from unit.collaborate.memory_channel import LocalNetwork
from unit.collaborate.sessions import HANG, THREE, assert_all_blame, run, stage_of, terms_for

SHORT = 1.0
CANARY = b"canary-71"


def four_rounds(session):
    for number in range(4):
        session.broadcast(f"round {number}", session.me.encode())
    return "done"


def abort(author, accusation, *, binding=bytes(32), signatures=None):
    """Message in which a party accuses another."""
    signed = SignedAccusation.by(author, accusation, binding, signatures or NoSignatures())
    return encode(Message(Kind.ABORT, binding, 0, "abort", signed.encode()))


def change(sender, stage, make, *, to=None):
    """Interference with one party's messages of one stage."""

    def interfere(source, target, body):
        hit = source == sender and to in (None, target) and decode(body).kind == Kind.DATA and stage_of(body) == stage
        return make(body) if hit else (body,)

    return interfere


@pytest.mark.parametrize("names", [["a"], ["a", "b"]])
def test_fewer_than_three_parties_are_refused(names):
    with pytest.raises(CollaborationError, match="at least 3 parties") as caught:
        Session("a", names, LocalNetwork(names).channel("a"))
    assert caught.value.party == "a"


@pytest.mark.parametrize("names", [["b", "c", "d"], ["a", "b", "b"], ["a", "b", ""]])
def test_a_roster_names_every_party_once(names):
    with pytest.raises(InvalidParameterError, match="roster"):
        Session("a", names, LocalNetwork(names).channel("a"))


@pytest.mark.parametrize("timeout", [0, -1.0])
def test_a_time_limit_is_positive(timeout):
    with pytest.raises(InvalidParameterError, match="timeout"):
        Session("a", THREE, LocalNetwork(THREE).channel("a"), timeout=timeout)


def test_an_exchange_gives_every_party_its_own_body():
    def work(session):
        return session.exchange("swap", {peer: f"{session.me} to {peer}".encode() for peer in session.others})

    outcomes = run(work, names=("a", "b", "c", "d"))

    for name, received in outcomes.items():
        assert received == {other: f"{other} to {name}".encode() for other in outcomes if other != name}


def test_a_broadcast_returns_every_bodys_own_too():
    outcomes = run(lambda session: session.broadcast("news", session.me.upper().encode()))

    assert outcomes == {name: {"a": b"A", "b": b"B", "c": b"C"} for name in THREE}


def test_single_messages_go_one_way():
    def work(session):
        if session.me == "a":
            session.send("b", "note", b"for b")
            return None
        return session.receive("a", "note") if session.me == "b" else None

    assert run(work)["b"] == b"for b"


def test_a_slow_party_in_time_is_waited_for():
    def slow(sender, to, body):
        if sender == "c":
            time.sleep(0.05)  # its slowness is the case
        return (body,)

    assert run(four_rounds, interfere=slow, timeout=5.0) == dict.fromkeys(THREE, "done")


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["hello", "hello/echo", "round 0", "round 2"])
def test_a_party_that_falls_silent_is_named_by_all(stage):
    silent = threading.Event()

    def drop(sender, to, body):
        if sender == "c" and stage_of(body) == stage:
            silent.set()
        return () if sender == "c" and silent.is_set() else (body,)

    outcomes = run(four_rounds, interfere=drop, timeout=SHORT)

    assert_all_blame(outcomes, "c", stage, problem=REASONS["silent"])


@pytest.mark.slow
def test_who_was_late_because_of_another_is_not_named():
    """All wait in round 2 for a, which still waits for c in round 1; they accuse a, until they hear what a says."""
    names = ("a", "b", "c", "d")

    def cut(sender, to, body):
        return () if (sender, to) == ("c", "a") and stage_of(body) in ("round 1", "round 2") else (body,)

    network = LocalNetwork(names, interfere=cut)

    def take_part(me, channel):
        with Session(me, names, channel, timeout=HANG if me == "a" else 2 * SHORT) as session:
            greet(session, terms_for(names))
            return four_rounds(session)

    outcomes = network.run(take_part, time_limit=HANG)

    for name in names:
        assert (outcomes[name].line, outcomes[name].stage) == (("a", "c"), "round 1"), str(outcomes[name])


def test_what_a_peer_sent_before_its_accusation_does_not_hide_it():
    network = LocalNetwork(THREE)
    b = network.channel("b")
    for number in range(9):
        b.send("a", encode(Message(Kind.DATA, bytes(32), number, "ahead", b"")))
    b.send("a", abort("b", Accusation("c", "hello", "garbage", 0)))
    session = Session("a", THREE, network.channel("a"), timeout=0.5)

    with pytest.raises(CollaborationError, match=REASONS["garbage"]) as caught:
        session.receive("c", "hello")
    assert (caught.value.party, caught.value.stage) == ("c", "hello")


def test_a_party_whose_connection_ends_is_named_by_all():
    network = LocalNetwork(THREE)

    def take_part(me, channel):
        with Session(me, THREE, channel, timeout=HANG) as session:
            greet(session, terms_for(THREE))
            if me == "c":
                network.disconnect("c")
                return None
            return four_rounds(session)

    outcomes = network.run(take_part, time_limit=HANG)

    for name in ("a", "b"):
        assert (outcomes[name].party, outcomes[name].stage) == ("c", "round 0")
        assert REASONS["gone"] in str(outcomes[name])


def test_a_party_that_cannot_be_sent_to_is_named():
    network = LocalNetwork(THREE)

    class Broken:
        def __init__(self, channel):
            self.receive = channel.receive

        def send(self, to, body):
            problem = "the cable is cut"
            raise ConnectionError(problem)

    session = Session("a", THREE, Broken(network.channel("a")), timeout=0.1)

    with pytest.raises(CollaborationError, match="the cable is cut") as caught:
        session.broadcast("round 0", b"")
    assert (caught.value.party, caught.value.stage) == ("b", "round 0")


def framed(**changes):
    """Another message in place of the one that was sent."""

    def make(body):
        sent = decode(body)
        parts = {"kind": sent.kind, "binding": sent.binding, "number": sent.number, "stage": sent.stage}
        return (encode(Message(**{**parts, **changes}, payload=CANARY)),)

    return make


@pytest.mark.parametrize(
    ("make", "reason", "stage"),
    [
        (lambda body: (CANARY,), "garbage", "round 1"),
        (lambda body: (body[:-1],), "garbage", "round 1"),
        (lambda body: (b"",), "garbage", "round 1"),
        (lambda body: (body, body), "out-of-turn", "round 2"),
        (lambda body: (body + bytes(2**20),), "too-large", "round 1"),
        (framed(binding=bytes(32)), "other-session", "round 1"),
        (framed(stage="round 9"), "out-of-turn", "round 1"),
        (framed(number=2), "out-of-turn", "round 1"),
        (framed(kind=Kind.ABORT), "garbage", "round 1"),
    ],
    ids=["garbage", "cut", "empty", "duplicate", "too large", "other session", "stage", "number", "abort"],
)
def test_a_message_that_breaks_the_protocol_names_its_sender(make, reason, stage):
    network = LocalNetwork(THREE, interfere=change("c", "round 1", make, to="b"))

    def take_part(me, channel):
        with Session(me, THREE, channel, timeout=HANG, size_limit=10_000) as session:
            greet(session, terms_for(THREE))
            return four_rounds(session)

    outcomes = network.run(take_part, time_limit=HANG)

    for outcome in outcomes.values():
        assert isinstance(outcome, CollaborationError)
        assert (outcome.party, outcome.stage) == ("c", stage)
        assert REASONS[reason] in str(outcome)
        assert CANARY.decode() not in str(outcome)


def test_an_abort_is_passed_on_with_the_name_it_carries():
    """Party c hears of it from d only, and still learns that it is b who accuses a."""

    def work(session):
        if session.me == "b":
            session.accuse("a", "counting", "wrong-length")
        return four_rounds(session)

    def cut(sender, to, body):
        return () if (sender, to) == ("b", "c") and decode(body).kind == Kind.ABORT else (body,)

    outcomes = run(work, names=("a", "b", "c", "d"), interfere=cut)

    assert_all_blame(outcomes, "a", "counting", problem=REASONS["wrong-length"], by=("a", "b", "c", "d"))
    for name in ("a", "c", "d"):
        assert "says party 'b'" in str(outcomes[name])


def test_a_failure_of_its_own_is_told_to_the_others():
    def work(session):
        session.broadcast("round 0", b"")
        if session.me == "c":
            raise ZeroDivisionError(CANARY.decode())
        return four_rounds(session)

    outcomes = run(work)

    assert isinstance(outcomes["c"], ZeroDivisionError)
    for name in ("a", "b"):
        assert (outcomes[name].party, outcomes[name].stage) == ("c", "round 0")
        assert REASONS["stopped"] in str(outcomes[name])
        assert CANARY.decode() not in str(outcomes[name])


def test_a_goal_that_all_find_out_of_reach_is_no_failure_of_the_session():
    sent = []

    def watch(sender, to, body):
        sent.append(decode(body).kind)
        return (body,)

    def work(session):
        four_rounds(session)
        raise PrivacyNotAchievableError("a gain of 0.9", best_level=0.4)

    outcomes = run(work, interfere=watch)

    assert all(isinstance(outcome, PrivacyNotAchievableError) for outcome in outcomes.values())
    assert set(sent) == {Kind.DATA}


def test_a_failure_within_a_round_of_another_protocol_is_told_with_its_stage():
    def work(session):
        session.broadcast("first", b"")
        with session.round("second"):
            channel = StageChannel(session, "second")
            if session.me == "c":
                raise ValueError
            return channel.receive("c", 5.0)

    outcomes = run(work)

    assert isinstance(outcomes.pop("c"), ValueError)
    assert_all_blame(outcomes, "c", "second", problem=REASONS["stopped"])


class LostChannel:
    """Way to two others, one of whom is gone while the other stopped earlier."""

    def __init__(self):
        stopped = Accusation("c", "earlier", "stopped", 1)
        self.heard = [abort("c", stopped)]

    def send(self, to, body):
        if to == "b":
            raise ConnectionError("the line to b is cut")

    def receive(self, sender, timeout):
        if sender == "c" and self.heard:
            return self.heard.pop()
        raise TimeoutError


def test_the_detail_of_one_accusation_is_not_told_of_another():
    session = Session("a", ("a", "b", "c"), LostChannel(), timeout=0.2)

    with pytest.raises(CollaborationError) as caught:
        session.broadcast("later", b"")

    assert (caught.value.party, caught.value.stage) == ("c", "earlier")
    assert "cut" not in str(caught.value)


def test_a_session_that_ended_stays_ended():
    def work(session):
        with pytest.raises(CollaborationError) as first:
            session.accuse("b", "counting", "garbage")
        for again in (
            lambda: session.broadcast("more", b""),
            lambda: session.receive("b", "more"),
            lambda: session.accuse("c", "more", "silent"),
        ):
            with pytest.raises(CollaborationError) as later:
                again()
            assert later.value is first.value
        return "checked"

    assert run(work, hello=False) == dict.fromkeys(THREE, "checked")


def test_an_accusation_of_somebody_unknown_is_garbage():
    forged = abort("c", Accusation("nobody", "x", "silent", 1))
    outcomes = run(four_rounds, interfere=change("c", "round 0", lambda body: (forged,)))

    assert_all_blame(outcomes, "c", "round 0", problem=REASONS["garbage"])


def test_the_same_result_passes_and_another_names_who_has_it():
    assert run(lambda session: check_all_have_the_same(session, "result", b"x")) == dict.fromkeys(THREE)

    results = {"a": b"x", "b": b"x", "c": b"y"}
    outcomes = run(lambda session: check_all_have_the_same(session, "result", results[session.me]))
    assert_all_blame(outcomes, "c", "result", problem=REASONS["result"], by=THREE)


@pytest.mark.parametrize(
    ("held", "odd"),
    [
        ({"a": b"1", "b": b"1", "c": b"1"}, None),
        ({"a": b"1", "b": b"2", "c": b"2"}, "a"),
        ({"b": b"2", "a": b"1", "c": b"3"}, "b"),
    ],
)
def test_the_odd_one_out_is_the_first_that_differs_from_most(held, odd):
    assert odd_one_out(held) == odd


def test_a_false_report_about_several_parties_names_the_reporter():
    def work(session):
        bodies = session.broadcast("news", session.me.encode())
        if session.me == "c":
            bodies = {name: b"invented" if name in ("a", "b") else body for name, body in bodies.items()}
        check_all_told_the_same(session, "news/echo", bodies)

    assert_all_blame(run(work), "c", "news/echo", problem=REASONS["false-report"])


def test_a_party_knows_better_when_it_is_itself_reported_falsely():
    """Nobody but a can tell that c's report about a is false; the others name the sender, as documented."""

    def work(session):
        bodies = session.broadcast("news", session.me.encode())
        if session.me == "c":
            bodies["a"] = b"invented"
        check_all_told_the_same(session, "news/echo", bodies)

    outcomes = run(work)

    assert_all_blame(outcomes, "c", "news/echo", problem=REASONS["false-report"], by=("a",))
    assert_all_blame(outcomes, "a", "news/echo", problem=REASONS["equivocation"], by=("b",))


def test_a_party_that_two_others_lie_to_does_not_name_itself():
    def lie(sender, to, body):
        message = decode(body)
        if sender in "ab" and to == "d" and message.stage == "news":
            return (encode(Message(message.kind, message.binding, message.number, "news", b"invented")),)
        return (body,)

    def work(session):
        bodies = session.broadcast("news", session.me.encode())
        check_all_told_the_same(session, "news/echo", bodies)

    outcomes = run(work, names=("a", "b", "c", "d"), interfere=lie)

    assert_all_blame(outcomes, "a", "news/echo", problem=REASONS["equivocation"], by=("d",))


def test_a_report_of_the_wrong_length_names_the_reporter():
    def work(session):
        bodies = session.broadcast("news", b"same")
        if session.me == "c":
            session.broadcast("news/echo", b"short")
        else:
            check_all_told_the_same(session, "news/echo", bodies)
        four_rounds(session)

    assert_all_blame(run(work), "c", "news/echo", problem=REASONS["wrong-length"])


def test_a_stage_channel_keeps_order_and_the_record():
    def work(session):
        session.broadcast("before", b"")
        channel = StageChannel(session, "inner")
        for peer in session.others:
            channel.send(peer, b"first")
            channel.send(peer, b"second")
        received = [channel.receive(peer, 5.0) for _ in range(2) for peer in session.others]
        noted = [entry.stage for entry in session.transcript.entries].count("inner")
        return received, noted, len(session.broadcast("after", b""))

    assert run(work) == dict.fromkeys(THREE, ([b"first"] * 2 + [b"second"] * 2, 8, 3))


def test_a_stage_channel_starts_with_what_the_session_read_ahead():
    def slow_to_b(sender, to, body):
        if (sender, to, stage_of(body)) == ("c", "b", "before"):
            time.sleep(0.7)  # its slowness is the case
        return (body,)

    def work(session):
        channel = StageChannel(session, "inner")
        session.broadcast("before", b"")
        if session.me == "a":
            channel.send("b", b"first")
            channel.send("b", b"second")
        return [channel.receive("a", 5.0) for _ in range(2)] if session.me == "b" else None

    assert run(work, interfere=slow_to_b)["b"] == [b"first", b"second"]


def test_a_stage_channel_leaves_waiting_to_its_user():
    network = LocalNetwork(THREE)
    channel = StageChannel(Session("a", THREE, network.channel("a")), "inner")

    with pytest.raises(TimeoutError):
        channel.receive("b", 0.01)
    network.disconnect("b")
    with pytest.raises(ConnectionError):
        channel.receive("b", 0.01)


def test_a_stage_channel_hears_an_abort():
    def work(session):
        if session.me == "c":
            session.accuse("b", "inner", "garbage")
        StageChannel(session, "inner").receive("c", HANG)

    assert_all_blame(run(work), "b", "inner", problem=REASONS["garbage"], by=THREE)


def test_a_body_above_the_largest_of_its_stage_is_refused():
    def work(session):
        return session.broadcast("news", bytes(11 if session.me == "c" else 10), largest=10)

    outcomes = run(work)
    del outcomes["c"]
    assert_all_blame(outcomes, "c", "news", problem="wrong length")


@pytest.mark.slow
def test_it_is_refused_as_soon_as_it_comes_in():
    """Though a, whose message is awaited first, says nothing for long."""

    def work(session):
        if session.me == "a":
            time.sleep(4 * SHORT)  # its silence is the case
        return session.broadcast("news", bytes(11 if session.me == "c" else 10), largest=10)

    assert_all_blame(run(work, timeout=2 * SHORT), "c", "news", problem="wrong length", by=("b",))


@pytest.mark.slow
def test_of_a_party_that_sends_on_no_more_than_one_long_message_is_read_ahead():
    network, read_ahead = LocalNetwork(THREE), []

    def take_part(me, channel):
        with Session(me, THREE, channel, timeout=SHORT) as session:
            greet(session, terms_for(THREE))
            if me == "c":
                for _ in range(5):
                    session.send("b", "later", bytes(10**6))
            if me == "b":
                try:
                    session.broadcast("news", b"")
                finally:
                    read_ahead.extend(session._inbox["c"])
            time.sleep(2 * SHORT)  # stays connected and says nothing, which is the case

    outcomes = network.run(take_part, time_limit=HANG)

    assert isinstance(outcomes["b"], CollaborationError)
    assert len(read_ahead) == 1


@pytest.mark.parametrize(
    "stage", ["hello", "hello/echo", "seeds", "counts/64/commit", "counts/64/seeds-sum", "counts/64/echo"]
)
def test_every_stage_of_a_sum_has_a_largest_length(stage):
    class Watched(Session):
        def exchange(self, stage, bodies, *, noted=None, largest=None):
            limits[stage] = (largest, max(map(len, bodies.values())))
            return super().exchange(stage, bodies, noted=noted, largest=largest)

    limits = {}

    def take_part(me, channel):
        with Watched(me, THREE, channel, timeout=HANG) as session:
            greet(session, terms_for(THREE))
            return SecureSum(session).total(np.arange(5, dtype=np.uint64), stage="counts")

    LocalNetwork(THREE).run(take_part, time_limit=HANG)

    slack = (MOST_PARAMETERS - len(terms_for(THREE).parameters)) * 32 if stage == "hello" else 0
    assert limits[stage][0] == limits[stage][1] + slack
