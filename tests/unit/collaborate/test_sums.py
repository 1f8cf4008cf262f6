import threading
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from sfumato.collaborate.secure_sum import NONCE_BYTES, SecureSum, add, commitment_to, subtract
from sfumato.collaborate.session.session import Session
from sfumato.collaborate.transport.channel import PRIME, WHOLE_WORDS
from sfumato.collaborate.transport.messages import REASONS, Kind, Message, decode, encode
from sfumato.errors import CollaborationError, InvalidParameterError
from sizes import examples
from unit.collaborate.memory_channel import LocalNetwork
from unit.collaborate.sessions import HANG, THREE, add_up, assert_all_blame, run, stage_of

MODES = ["seeds", "shares"]
MODULI = pytest.mark.parametrize("modulus", [WHOLE_WORDS, PRIME], ids=["2^64", "2^61-1"])
NAMES = ("a", "b", "c", "d", "e", "f")


@st.composite
def questions(draw):
    names = NAMES[: draw(st.integers(3, 6))]
    modulus = draw(st.sampled_from([WHOLE_WORDS, PRIME]))
    length = draw(st.integers(0, 12))
    extreme = st.sampled_from([0, 1, modulus - 1])
    numbers = st.lists(extreme | st.integers(0, modulus - 1), min_size=length, max_size=length)
    return {name: draw(numbers) for name in names}, modulus


@pytest.mark.slow
@examples(30)
@given(questions(), st.sampled_from(MODES), st.integers(1, 3))
def test_every_party_gets_the_plain_sum(question, mode, n_sums):
    vectors, modulus = question
    expected = [sum(column) % modulus for column in zip(*vectors.values(), strict=True)]

    outcomes = run(add_up(vectors, mode=mode, modulus=modulus, n_sums=n_sums), names=tuple(vectors))

    assert outcomes == dict.fromkeys(vectors, [expected] * n_sums)


@given(st.integers(0, PRIME - 1), st.integers(0, PRIME - 1), st.sampled_from([WHOLE_WORDS, PRIME]))
def test_adding_and_subtracting_wrap_around(left, right, modulus):
    one, other = np.array([left], dtype=np.uint64), np.array([right], dtype=np.uint64)

    assert add(one, other, modulus).tolist() == [(left + right) % modulus]
    assert subtract(one, other, modulus).tolist() == [(left - right) % modulus]
    assert (one.tolist(), other.tolist()) == ([left], [right])


def test_the_callers_numbers_are_not_changed():
    def work(session):
        own = np.array([1, 2], dtype=np.uint64)
        SecureSum(session).total(own, stage="counts", modulus=PRIME)
        return own.tolist()

    assert run(work) == {name: [1, 2] for name in THREE}


def test_the_number_of_parties_is_known():
    assert run(lambda session: SecureSum(session).n_parties, names=NAMES)["a"] == 6


@pytest.mark.parametrize(
    ("own", "modulus", "name"),
    [
        (np.zeros(2, dtype=np.int64), WHOLE_WORDS, "own"),
        (np.zeros((2, 2), dtype=np.uint64), WHOLE_WORDS, "own"),
        ([1, 2], WHOLE_WORDS, "own"),
        (np.array([PRIME], dtype=np.uint64), PRIME, "own"),
        (np.zeros(2, dtype=np.uint64), 97, "modulus"),
    ],
    ids=["signed", "matrix", "list", "not below", "modulus"],
)
def test_numbers_that_cannot_be_added_are_refused_and_the_others_are_told(own, modulus, name):
    def work(session):
        adder = SecureSum(session)
        if session.me == "c":
            return adder.total(own, stage="counts", modulus=modulus)
        return adder.total(np.zeros(2, dtype=np.uint64), stage="counts")

    outcomes = run(work)

    assert isinstance(outcomes["c"], InvalidParameterError)
    assert outcomes["c"].name == name
    assert all(outcomes[other].party == "c" for other in ("a", "b"))


def test_a_sum_needs_the_hello_and_a_known_mode():
    session = Session("a", THREE, LocalNetwork(THREE).channel("a"))

    with pytest.raises(InvalidParameterError, match="hello"):
        SecureSum(session)
    with pytest.raises(InvalidParameterError, match="mode"):
        SecureSum(session, mode="ring")


@pytest.mark.slow
def test_a_million_numbers_stay_below_20_megabytes():
    def work(session):
        total = SecureSum(session).total(np.full(10**6, 7, dtype=np.uint64), stage="counts")
        return bool((total == 21).all()), session.transcript.bytes_sent

    outcomes = run(work)

    assert all(is_right and n_bytes <= 20e6 for is_right, n_bytes in outcomes.values())


# What leaves a party


def watched(vectors, *, mode, modulus, n_sums=1, make=SecureSum):
    """Every payload that was sent, by sender, receiver and stage; of what is opened the numbers without the nonce."""
    sent = {}

    def watch(sender, to, body):
        payload = decode(body).payload
        numbers = payload[NONCE_BYTES:] if stage_of(body).endswith("-sum") else payload
        sent.setdefault((sender, to, stage_of(body)), []).append(numbers)
        return (body,)

    work = add_up(vectors, mode=mode, modulus=modulus, n_sums=n_sums, make=make)
    outcomes = run(work, names=tuple(vectors), interfere=watch)
    assert not any(isinstance(outcome, Exception) for outcome in outcomes.values())
    return sent


def words_of(payloads):
    return np.frombuffer(b"".join(payloads), dtype="<u8").tolist()


def ring(modulus):
    return "64" if modulus == WHOLE_WORDS else "61"


@pytest.mark.slow
@pytest.mark.statistical
@MODULI
@pytest.mark.parametrize("value", ["zero", "largest"])
@pytest.mark.parametrize("mode", MODES)
def test_what_leaves_a_party_is_uniform(mode, value, modulus):
    """Over many sessions of several sums; each of the two checks fails by chance once in a million runs."""
    number = 0 if value == "zero" else modulus - 1
    vectors = dict.fromkeys(THREE, [number] * 20)
    leaving = []
    for _ in range(40):
        sent = watched(vectors, mode=mode, modulus=modulus, n_sums=5)
        leaving += [words_of(sent["a", "b", f"counts/{ring(modulus)}/{mode}-sum"])]
        if mode == "shares":
            leaving += [words_of(sent["a", "b", f"counts/{ring(modulus)}/shares"])]
    words = np.array(leaving, dtype=np.uint64).ravel()
    low_bytes = words.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :7].ravel()
    top = [word * 64 // modulus for word in words.tolist()]

    assert chisquare(np.bincount(low_bytes, minlength=256)).pvalue > 1e-6
    assert chisquare(np.bincount(top, minlength=64)).pvalue > 1e-6


@pytest.mark.parametrize("mode", MODES)
def test_no_mask_is_used_twice(mode):
    """Two sums of the same numbers, and two sessions, publish different words everywhere."""
    vectors = dict.fromkeys(THREE, [5] * 50)
    stage = f"counts/64/{mode}-sum"
    sent = [watched(vectors, mode=mode, modulus=WHOLE_WORDS, n_sums=3) for _ in range(2)]
    published = [word for session in sent for word in words_of(session["a", "b", stage])]

    assert len(set(published)) == 2 * 3 * 50


def test_even_the_same_seeds_give_other_masks_in_another_session(monkeypatch):
    no_chance = SimpleNamespace(token_bytes=lambda n: bytes(n))
    monkeypatch.setattr("sfumato.collaborate.secure_sum.secrets", no_chance)
    vectors = {name: [place] * 50 for place, name in enumerate(THREE)}
    sent = [watched(vectors, mode="seeds", modulus=WHOLE_WORDS) for _ in range(2)]
    published = [word for session in sent for word in words_of(session["a", "b", "counts/64/seeds-sum"])]

    assert len(set(published)) == 2 * 50


def guesses_right(seen_of_small, seen_of_large):
    """How often a threshold between two inputs' messages tells them apart; one half is guessing."""
    everything = np.concatenate([seen_of_small, seen_of_large])
    return max(
        np.mean([(seen_of_small < threshold).mean(), (seen_of_large >= threshold).mean()])
        for threshold in np.quantile(everything, np.linspace(0.05, 0.95, 19))
    )


@pytest.mark.statistical
def test_segments_of_real_numbers_leak_and_uniform_words_do_not():
    """Section III of [PUFS] leaves open how segments are drawn; parts of the number give away how large it is.

    The last bound fails by chance less than once in a million runs (19 thresholds, 3,000 messages on each side).
    """
    generator = np.random.default_rng(71)
    small, large, n = 10, 1000, 3000
    proportions = generator.dirichlet(np.ones(3), size=n)[:, 0]
    cuts = generator.uniform(size=n)
    noise = generator.uniform(-1000, 1000, size=(n, 2)).sum(axis=1)

    def segments(number):
        return {"shares of it": number * proportions, "cuts of it": number * cuts, "rest after noise": number - noise}

    leaks = {name: guesses_right(segments(small)[name], segments(large)[name]) for name in segments(0)}
    ours = [
        np.array(words_of(sent["a", "b", "counts/64/shares"]), dtype=np.float64)
        for sent in (
            watched(dict.fromkeys(THREE, [number] * n), mode="shares", modulus=WHOLE_WORDS) for number in (small, large)
        )
    ]

    assert leaks["shares of it"] > 0.95
    assert leaks["cuts of it"] > 0.95
    assert leaks["rest after noise"] > 0.65
    assert guesses_right(*ours) < 0.58


# What colluding parties can know


def sum_that_shows(masks):
    """Secure sum that notes the masks of the seeds, which no message shows."""

    class Watched(SecureSum):
        def _mask(self, seed, pair, step, n, modulus):
            mask = super()._mask(seed, pair, step, n, modulus)
            assert masks.setdefault(pair, mask.tolist()) == mask.tolist()
            return mask

    return Watched


def published_by(party, inputs, masks, modulus):
    """Numbers that a party publishes: its numbers, less the masks it sent, plus those it received."""
    others = [name for name in inputs if name != party]
    return [
        (number - sum(masks[party, other][i] for other in others) + sum(masks[other, party][i] for other in others))
        % modulus
        for i, number in enumerate(inputs[party])
    ]


@MODULI
@pytest.mark.parametrize("n_parties", [3, 4, 6])
@pytest.mark.parametrize("mode", MODES)
def test_all_but_two_parties_learn_only_the_sum_of_these_two(mode, n_parties, modulus):
    """Whatever two numbers with that sum the two have, there is a mask between them that gives the same messages.

    Every mask is equally likely (with seeds: looks so), so the messages make no such pair of numbers more likely.
    """
    names = NAMES[:n_parties]
    inputs = {name: [3 * place, 10 + place, modulus - 1 - place] for place, name in enumerate(names)}
    masks = {}
    sent = watched(inputs, mode=mode, modulus=modulus, make=sum_that_shows(masks))
    stage = f"counts/{ring(modulus)}/{mode}-sum"
    if mode == "shares":
        masks = {
            (sender, to): words_of(payloads)
            for (sender, to, step), payloads in sent.items()
            if step == f"counts/{ring(modulus)}/shares"
        }
    shift = [5, 77, 2**40]
    other_inputs = inputs | {
        "a": [(number + more) % modulus for number, more in zip(inputs["a"], shift, strict=True)],
        "b": [(number - more) % modulus for number, more in zip(inputs["b"], shift, strict=True)],
    }
    between = [(mask + more) % modulus for mask, more in zip(masks["a", "b"], shift, strict=True)]
    other_masks = masks | {("a", "b"): between}

    for party in names:
        seen = words_of(sent[party, "c" if party != "c" else "a", stage])
        assert published_by(party, inputs, masks, modulus) == seen
        assert published_by(party, other_inputs, other_masks, modulus) == seen
    assert {step for sender, to, step in sent} == {
        "hello",
        "hello/echo",
        "seeds" if mode == "seeds" else f"counts/{ring(modulus)}/shares",
        f"counts/{ring(modulus)}/commit",
        stage,
        f"counts/{ring(modulus)}/echo",
    }


def test_all_but_one_party_learn_its_numbers():
    """The limit that the documentation states: the total less what the others put in."""
    inputs = {"a": [41, 42], "b": [1, 2], "c": [3, 4]}
    total = run(add_up(inputs))["b"][0]

    assert [t - b - c for t, b, c in zip(total, inputs["b"], inputs["c"], strict=True)] == inputs["a"]


# Faults

VECTORS = {"a": [1, 2, 3], "b": [4, 5, 6], "c": [7, 8, 9], "d": [0, 0, 0]}
STAGES = {
    "seeds": ["seeds", "counts/64/commit", "counts/64/seeds-sum", "counts/64/echo"],
    "shares": ["counts/64/shares", "counts/64/commit", "counts/64/shares-sum", "counts/64/echo"],
}
MODE_AND_STAGE = pytest.mark.parametrize(
    ("mode", "stage"), [(mode, stage) for mode, stages in STAGES.items() for stage in stages]
)


def replaced(stage, make, *, to):
    """Party c's payloads of one stage become others."""

    def interfere(sender, target, body):
        message = decode(body)
        if sender != "c" or target not in to or message.stage != stage or message.kind == Kind.ABORT:
            return (body,)
        return (encode(Message(message.kind, message.binding, message.number, stage, make(message.payload))),)

    return interfere


def recommitted(stage, opening, *, to):
    """Party c commits to, and opens, something of its own choice; the stage is that of the opening."""
    commit_stage = stage.rpartition("/")[0] + "/commit"

    def interfere(sender, target, body):
        message = decode(body)
        if (
            sender != "c"
            or target not in to
            or message.kind == Kind.ABORT
            or message.stage not in (stage, commit_stage)
        ):
            return (body,)
        commitment = commitment_to(opening, session=message.binding, stage=stage, number=1, party="c")
        payload = opening if message.stage == stage else commitment
        return (encode(Message(message.kind, message.binding, message.number, message.stage, payload)),)

    return interfere


def two_sums(mode, *, n_parties=3):
    return add_up({name: VECTORS[name] for name in NAMES[:n_parties]}, mode=mode, n_sums=2)


@pytest.mark.slow
@MODE_AND_STAGE
def test_a_party_that_is_missing_from_some_stage_on_is_named(mode, stage):
    silent = threading.Event()

    def drop(sender, to, body):
        if sender == "c" and stage_of(body) == stage:
            silent.set()
        return () if sender == "c" and silent.is_set() else (body,)

    outcomes = run(two_sums(mode), interfere=drop, timeout=1.0)

    assert_all_blame(outcomes, "c", stage, problem=REASONS["silent"])


@MODE_AND_STAGE
@pytest.mark.parametrize("to", ["a", "ab"])
def test_a_payload_of_the_wrong_length_names_its_sender(mode, stage, to):
    outcomes = run(two_sums(mode), interfere=replaced(stage, lambda payload: payload + bytes(8), to=to))

    assert_all_blame(outcomes, "c", stage, problem=REASONS["wrong-length"])


@pytest.mark.parametrize("mode", MODES)
def test_a_party_with_more_numbers_is_named(mode):
    vectors = VECTORS | {"c": [7, 8, 9, 10]}
    outcomes = run(add_up(vectors, mode=mode))

    stage = {"seeds": "counts/64/seeds-sum", "shares": "counts/64/shares"}[mode]
    assert isinstance(outcomes["c"], CollaborationError)
    assert_all_blame({name: outcomes[name] for name in ("a", "b")}, "c", stage, problem=REASONS["wrong-length"])


def test_a_share_that_is_not_below_the_modulus_names_its_sender():
    stage, too_large = "counts/61/shares", PRIME.to_bytes(8, "little")
    work = add_up(VECTORS, mode="shares", modulus=PRIME)
    outcomes = run(work, interfere=replaced(stage, lambda payload: payload[:-8] + too_large, to="ab"))

    assert_all_blame(outcomes, "c", stage, problem=REASONS["out-of-range"])


@pytest.mark.parametrize("mode", MODES)
def test_an_opened_number_that_is_not_below_the_modulus_names_its_sender(mode):
    stage, opening = f"counts/61/{mode}-sum", bytes(NONCE_BYTES + 16) + PRIME.to_bytes(8, "little")
    work = add_up(VECTORS, mode=mode, modulus=PRIME)
    outcomes = run(work, interfere=recommitted(stage, opening, to="ab"))

    assert_all_blame(outcomes, "c", stage, problem=REASONS["out-of-range"])


PARTIES_AND_VICTIM = pytest.mark.parametrize(
    ("mode", "to", "n_parties"), [(mode, to, n) for mode in MODES for to in "ab" for n in (3, 4)]
)


@PARTIES_AND_VICTIM
@pytest.mark.parametrize("round_name", ["commit", "sum"])
def test_a_party_that_opens_something_else_than_it_committed_to_is_named(mode, to, n_parties, round_name):
    def flipped(payload):
        return bytes([payload[0] ^ 1]) + payload[1:]

    names, opened = NAMES[:n_parties], f"counts/64/{mode}-sum"
    lie = replaced(opened if round_name == "sum" else "counts/64/commit", flipped, to=to)
    outcomes = run(two_sums(mode, n_parties=n_parties), names=names, interfere=lie)

    honest = [name for name in names if name != "c"]
    assert_all_blame(outcomes, "c", opened, problem=REASONS["commitment"], by=honest)


@PARTIES_AND_VICTIM
def test_a_party_that_commits_to_and_opens_different_things_is_named(mode, to, n_parties):
    names = NAMES[:n_parties]
    lie = recommitted(f"counts/64/{mode}-sum", bytes(NONCE_BYTES + 24), to=to)
    outcomes = run(two_sums(mode, n_parties=n_parties), names=names, interfere=lie)

    honest = [name for name in names if name != "c"]
    assert_all_blame(outcomes, "c", "counts/64/echo", problem=REASONS["equivocation"], by=honest)


@MODE_AND_STAGE
def test_garbage_names_its_sender(mode, stage):
    def garbage(sender, to, body):
        return (b"\x00" * 50,) if sender == "c" and stage_of(body) == stage else (body,)

    outcomes = run(two_sums(mode), interfere=garbage)

    assert_all_blame(outcomes, "c", stage, problem=REASONS["garbage"])


@MODE_AND_STAGE
def test_a_duplicate_names_its_sender(mode, stage):
    def twice(sender, to, body):
        return (body, body) if sender == "c" and stage_of(body) == stage else (body,)

    outcomes = run(two_sums(mode), interfere=twice)
    stages = [*STAGES[mode], *(STAGES[mode][1:] if mode == "seeds" else STAGES[mode])]

    assert_all_blame(outcomes, "c", stages[stages.index(stage) + 1], problem=REASONS["out-of-turn"])


@MODE_AND_STAGE
def test_messages_of_an_old_session_are_refused(mode, stage):
    old = {}

    def record(sender, to, body):
        old.setdefault((sender, to, stage_of(body)), body)
        return (body,)

    run(two_sums(mode), interfere=record)

    def replay(sender, to, body):
        is_hit = sender == "c" and stage_of(body) == stage and decode(body).kind == Kind.DATA
        return (old[sender, to, stage],) if is_hit else (body,)

    outcomes = run(two_sums(mode), interfere=replay)

    assert_all_blame(outcomes, "c", stage, problem=REASONS["other-session"])


def test_parties_with_different_modes_end_at_once():
    def work(session):
        return add_up(VECTORS, mode="shares" if session.me == "c" else "seeds")(session)

    outcomes = run(work, timeout=HANG)

    assert all(isinstance(outcome, CollaborationError) for outcome in outcomes.values())
    assert all(REASONS["out-of-turn"] in str(outcome) for outcome in outcomes.values())
