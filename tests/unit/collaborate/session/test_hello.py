import hashlib
import math

import pytest

from sfumato.collaborate.session.handshake import Terms, greet
from sfumato.collaborate.session.session import Session
from sfumato.collaborate.transport.messages import REASONS, UNBOUND, Kind, Message, decode, encode
from sfumato.errors import InvalidParameterError
from unit.collaborate.memory_channel import LocalNetwork
from unit.collaborate.sessions import HANG, THREE, assert_all_blame, run, stage_of, terms_for


def greetings(terms_of, *, names=THREE, interfere=None, timeout=HANG):
    network = LocalNetwork(names, **({"interfere": interfere} if interfere else {}))

    def take_part(me, channel):
        with Session(me, names, channel, timeout=timeout) as session:
            binding = greet(session, terms_of(me))
            session.broadcast("after", b"")
            return binding

    return network.run(take_part, time_limit=HANG)


def test_parties_that_agree_get_one_binding():
    outcomes = greetings(lambda me: terms_for(THREE))

    assert len(set(outcomes.values())) == 1
    assert len(outcomes["a"]) == 32
    assert outcomes["a"] != UNBOUND


def test_the_binding_is_the_hash_over_names_nonces_and_terms():
    hellos = {}

    def watch(sender, to, body):
        if stage_of(body) == "hello":
            hellos[sender] = decode(body).payload
        return (body,)

    outcomes = greetings(lambda me: terms_for(THREE), interfere=watch)
    names = b'["a", "b", "c"]'
    expected = hashlib.sha256(b"sfumato session\x00" + len(names).to_bytes(8, "little") + names)
    for name in THREE:
        expected.update(hellos[name])

    assert outcomes["a"] == expected.digest()
    assert len({hello[:32] for hello in hellos.values()}) == 3
    assert len({hello[32:] for hello in hellos.values()}) == 1


def test_every_session_has_another_binding():
    bindings = {greetings(lambda me: terms_for(THREE))["a"] for _ in range(5)}

    assert len(bindings) == 5


DIFFERENCES = [
    ("version", {"version": 1}),
    ("session-id", {"session_id": "s-2"}),
    ("roster", {"fingerprints": {"a": "fingerprint of a", "b": "fingerprint of b", "c": "other"}}),
    ("schema", {"schema_hash": "other"}),
    ("mode", {"mode": "shares"}),
    ("parameters", {"parameters": {"min_gain": 0.1, "weight": 0.5}}),
    ("parameter", {"parameters": {"min_gain": 0.1000001}}),
]


@pytest.mark.parametrize(("part", "change"), DIFFERENCES, ids=[part for part, _ in DIFFERENCES])
@pytest.mark.parametrize("odd", THREE)
def test_a_party_with_other_terms_is_named_with_the_part(part, change, odd):
    outcomes = greetings(lambda me: terms_for(THREE, **(change if me == odd else {})))

    assert_all_blame(outcomes, odd, "hello", problem=REASONS[part], by=THREE)


@pytest.mark.parametrize("name", ["weights", "min_count", "dry_run"])
@pytest.mark.parametrize("odd", THREE)
def test_the_parameter_that_differs_is_named_to_all_and_its_value_is_not(name, odd):
    usual = {"weights": [0.5, 0.5], "min_count": None, "dry_run": False}
    outcomes = greetings(lambda me: terms_for(THREE, parameters=usual | ({name: "canary-71"} if me == odd else {})))

    assert_all_blame(outcomes, odd, "hello", problem=f"has another value of the parameter '{name}'", by=THREE)
    assert not any("canary-71" in str(outcome) for outcome in outcomes.values())


def test_the_order_of_parameters_does_not_matter():
    def terms_of(me):
        names = ["x", "y"] if me == "a" else ["y", "x"]
        return terms_for(THREE, parameters=dict.fromkeys(names, 1))

    assert len(set(greetings(terms_of).values())) == 1


def test_every_part_has_its_own_hash():
    terms = Terms("x", {}, "x", "x")

    assert len(set(terms.part_hashes().values())) == 6


@pytest.mark.parametrize("value", [math.nan, {1}, b"x"], ids=["nan", "set", "bytes"])
def test_parameters_that_are_no_plain_data_are_refused(value):
    with pytest.raises(InvalidParameterError, match="parameters"):
        terms_for(THREE, parameters={"x": value}).parameter_hashes()


def test_fingerprints_cover_the_roster():
    outcomes = greetings(lambda me: terms_for(("a", "b")))

    assert all(isinstance(outcome, InvalidParameterError) for outcome in outcomes.values())


def test_a_hello_of_the_wrong_length_names_its_sender():
    def shorten(sender, to, body):
        if sender == "c" and stage_of(body) == "hello" and decode(body).kind == Kind.DATA:
            return (encode(Message(Kind.DATA, UNBOUND, 0, "hello", bytes(31))),)
        return (body,)

    outcomes = greetings(lambda me: terms_for(THREE), interfere=shorten)

    assert_all_blame(outcomes, "c", "hello", problem=REASONS["wrong-length"])


@pytest.mark.parametrize("names", [THREE, ("a", "b", "c", "d")], ids=len)
def test_a_party_with_two_nonces_is_named(names):
    def second_nonce(sender, to, body):
        message = decode(body)
        if (sender, to, message.stage, message.kind) == ("c", "b", "hello", Kind.DATA):
            return (encode(Message(Kind.DATA, UNBOUND, 0, "hello", bytes(32) + message.payload[32:])),)
        return (body,)

    outcomes = greetings(lambda me: terms_for(names), names=names, interfere=second_nonce)

    honest = [name for name in names if name != "c"]
    assert_all_blame(outcomes, "c", "hello/echo", problem=REASONS["equivocation"], by=honest)


def recording(store):
    def watch(sender, to, body):
        store.setdefault((sender, to), []).append(body)
        return (body,)

    return watch


def four_rounds(session):
    for number in range(4):
        session.broadcast(f"round {number}", session.me.encode())


@pytest.mark.parametrize("first_replayed", [0, 1, 2, 4], ids=["hello", "echo", "round 0", "round 2"])
def test_messages_of_an_old_session_are_refused(first_replayed):
    """Party c's messages from some point on are those of an earlier session with the same terms."""
    old = {}
    run(four_rounds, interfere=recording(old))
    seen = {}

    def replay(sender, to, body):
        seen[sender, to] = place = seen.get((sender, to), -1) + 1
        if sender == "c" and first_replayed <= place < len(old[sender, to]):
            return (old[sender, to][place],)
        return (body,)

    outcomes = run(four_rounds, interfere=replay)

    stage = "hello/echo" if first_replayed < 2 else f"round {first_replayed - 2}"
    reason = "false-report" if first_replayed < 2 else "other-session"
    assert_all_blame(outcomes, "c", stage, problem=REASONS[reason])
