"""The union of the parties' values, and that it hides who and how many hold one."""

import secrets

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sfumato.collaborate import schema_session as module
from sfumato.collaborate.schema_session import MOST_BYTES, private_union
from sfumato.collaborate.shared_schema import MOST_VALUES
from sfumato.collaborate.transport.channel import PRIME
from sfumato.errors import CollaborationError, InvalidParameterError, SchemaError
from sizes import examples
from unit.collaborate.plain_sums import Meeting, run_together

CANARY = "CANARY-7f3a"
VALUE = st.one_of(st.none(), st.text(max_size=6), st.sampled_from(["a", "b", "", "?", "ä" * 60]))
SETS = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(st.sets(VALUE, max_size=6), min_size=width, max_size=width), min_size=3, max_size=5)
)


def together(parties, meeting=None, **options):
    def program(held):
        return lambda sums: private_union(sums, held, **options)

    return (meeting or Meeting(len(parties))).run([program(held) for held in parties])


@pytest.mark.slow
@examples(40)
@given(SETS, st.sampled_from([1, 4, 100]))
def test_everybody_gets_the_union_of_the_sets(sets, expected):
    names = [f"c{i}" for i in range(len(sets[0]))]
    found = together([dict(zip(names, held, strict=True)) for held in sets], expected=expected, salt=b"s")

    for i, name in enumerate(names):
        united = set().union(*(held[i] for held in sets))
        texts = sorted(value for value in united if value is not None)
        assert all(each[name] == (*texts, *([None] if None in united else [])) for each in found)


def test_collisions_are_resolved_in_further_rounds():
    """Ninety values in sixteen slots: nearly every slot holds several."""
    parties = [{"x": [f"v{i}" for i in range(start, start + 50)]} for start in (0, 20, 40)]
    meeting = Meeting(3)
    found = together(parties, meeting, expected=1)

    assert found[0] == {"x": tuple(sorted(f"v{i}" for i in range(90)))}
    assert found[1] == found[2] == found[0]
    assert 4 < len(meeting.seen) < 30


def test_empty_sets_and_no_columns_are_unions_too():
    assert together([{"x": []}, {"x": []}, {"x": []}]) == [{"x": ()}] * 3
    assert together([{}, {}, {}]) == [{}] * 3


def test_missing_empty_text_and_question_mark_stay_apart():
    assert together([{"x": [None]}, {"x": [""]}, {"x": ["?"]}])[0] == {"x": ("", "?", None)}


def test_the_same_value_in_two_columns_stays_in_its_column():
    assert together([{"x": ["a"], "y": []}, {"x": [], "y": ["b"]}, {"x": [], "y": []}])[2] == {"x": ("a",), "y": ("b",)}


def first_words(n_holders, n_runs):
    """First words of the slot that a value falls into, when so many of three parties hold it."""
    words = []
    for _ in range(n_runs):
        meeting = Meeting(3)
        together([{"x": ["same"] if i < n_holders else []} for i in range(3)], meeting, expected=1, most_bytes=8)
        table = meeting.seen[0][2].reshape(16, -1)
        (slot,) = np.flatnonzero(table.any(axis=1))
        words.append(int(table[slot, 0]))
    return words


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("n_holders", [1, 3])
def test_a_slot_looks_the_same_however_many_hold_its_value(n_holders):
    """Uniform on 1..p-1 in either case; the test fails by chance once in 10^6 runs."""
    words = first_words(n_holders, 400)

    assert stats.kstest(np.array(words) / PRIME, "uniform").pvalue > 1e-6
    assert stats.chisquare(np.bincount([word % 8 for word in words], minlength=8)).pvalue > 1e-6


def test_all_else_in_a_slot_follows_from_its_first_word_and_the_value():
    """Exactly: totals of a run are first word times the public words of the value, and 0 in every other slot."""
    meetings = [Meeting(3), Meeting(3)]
    for meeting, holders in zip(meetings, (1, 3), strict=True):
        together([{"x": ["same"] if i < holders else []} for i in range(3)], meeting, expected=1)

    divided = []
    for meeting in meetings:
        table = meeting.seen[0][2].reshape(16, -1)
        (slot,) = np.flatnonzero(table.any(axis=1))
        factor = pow(int(table[slot, 0]), -1, PRIME)
        divided.append((slot, [int(word) * factor % PRIME for word in table[slot]]))
    assert divided[0] == divided[1]
    assert [stage for stage, _, _ in meetings[0].seen] == [stage for stage, _, _ in meetings[1].seen]


@pytest.mark.parametrize(("others", "is_alone"), [([], True), (["same"], False)])
def test_a_holder_can_tell_whether_anybody_else_holds_its_value(monkeypatch, others, is_alone):
    """The limit that the module states: with its own factor known, what is left of the slot is 0 or not."""
    factors, draw = [], secrets.randbelow

    def remembered(most):
        factors.append(draw(most))
        return factors[-1]

    monkeypatch.setattr(module.secrets, "randbelow", remembered)
    meeting = Meeting(2)
    together([{"x": ["same"]}, {"x": others}], meeting, expected=1)
    table = meeting.seen[0][2].reshape(16, -1)
    (slot,) = np.flatnonzero(table.any(axis=1))

    assert ((int(table[slot, 0]) - 1) in factors) == is_alone


def test_whether_values_are_left_says_nothing_of_how_many_have_some():
    """Where slots were spoiled, the answer of the round is a random number and not a count of parties."""
    parties = [{"x": [f"v{i}" for i in range(40)]}] * 3
    answers = []
    for _ in range(3):
        meeting = Meeting(3)
        together(parties, meeting, expected=1)
        answers += [int(total[0]) for stage, _, total in meeting.seen if stage.endswith("anything left")][:1]

    assert len(set(answers)) == 3
    assert min(answers) > 3


def test_factors_that_cancel_out_cost_a_round_and_lose_nothing(monkeypatch):
    """Two holders draw r and p - r, once: the slot is empty, and the value is written again."""
    drawn = iter([4, PRIME - 6])
    lock = module.secrets.randbelow

    def randbelow(most):
        return next(drawn, None) or lock(most)

    monkeypatch.setattr(module.secrets, "randbelow", randbelow)
    meeting = Meeting(2)
    found = together([{"x": ["a"]}, {"x": ["a"]}], meeting)

    assert not meeting.seen[0][2].any()
    assert found == [{"x": ("a",)}] * 2


@pytest.mark.parametrize("value", [CANARY * 20, "ä" * 61, "\ud800" + CANARY])
def test_values_that_do_not_fit_are_refused_without_being_shown(value):
    with pytest.raises(SchemaError, match="column 'x'") as caught:
        private_union(Meeting(3), {"x": ["a", value]})

    assert CANARY not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_the_longest_value_fits():
    longest = "x" * MOST_BYTES

    assert together([{"x": [longest]}, {"x": []}, {"x": []}])[1] == {"x": (longest,)}


def test_too_many_values_are_refused():
    with pytest.raises(SchemaError, match=f"{MOST_VALUES:,}"):
        private_union(Meeting(3), {"x": map(str, range(MOST_VALUES + 1))})


@pytest.mark.parametrize("options", [{"expected": 0}, {"expected": True}, {"expected": 2**40}, {"most_bytes": 121}])
def test_parameters_out_of_range_are_refused(options):
    with pytest.raises(InvalidParameterError):
        private_union(Meeting(3), {"x": []}, **options)


def test_a_party_that_writes_noise_into_every_slot_is_not_waited_for_forever(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROUNDS", 4)
    monkeypatch.setattr(module, "MOST_SLOTS", 64)

    def noise(sums):
        """Answer every question with random numbers, as long as somebody asks."""
        for number in range(1, 5):
            n_slots = 16 if number == 1 else 64
            words = np.array([secrets.randbelow(PRIME) for _ in range(n_slots * 4)], dtype=np.uint64)
            sums.total(words, stage=f"union {number}", modulus=PRIME)
            sums.total(np.zeros(1, dtype=np.uint64), stage=f"union {number}: anything left", modulus=PRIME)

    honest = [lambda sums: private_union(sums, {"x": ["a"]}, expected=1, most_bytes=8)] * 2
    found = run_together([*honest, noise])

    assert isinstance(found[0], CollaborationError)
    assert "a" not in found[0].problem.split()


@pytest.mark.parametrize("item", [b"\x00\x09\x01a", b"\x00\x00\x07a", b"\x00\x00\x00a", b"\x00\x00\x01\xff", b"\x00"])
def test_items_that_no_honest_party_writes_end_the_session(item):
    def writer(sums):
        salted = module.hashlib.sha256(b"sfumato union" + (1).to_bytes(4)).digest()
        sums.total(module._written({item}, salted, 16, module._Layout(8)), stage="union 1", modulus=PRIME)

    honest = [lambda sums: private_union(sums, {"x": []}, expected=1, most_bytes=8)] * 2
    found = run_together([*honest, writer])

    assert isinstance(found[0], CollaborationError)
    assert found[0].stage == "union"
