"""The flow over a sum of parties: what is removed, what is learned, and what happens when it is not enough."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.collaborate.secure_sum import check_same, is_any
from sfumato.collaborate.session.agreement import AgreementRule, agree
from sfumato.collaborate.shared_schema import SharedSchema
from sfumato.collaborate.transport.channel import PRIME, WHOLE_WORDS
from sfumato.errors import CollaborationError, InvalidParameterError, PrivacyNotAchievableError
from sizes import examples
from unit.collaborate.plain_sums import Meeting, run_together, table_of

NAMES = ["a", "b", "c", "d"]
DOMAIN = ["0", "1", "2"]
SCHEMA = SharedSchema.of_values(dict.fromkeys(NAMES, DOMAIN), {"y": ["n", "j"]})


def table(rows):
    return table_of({name: [row[i] for row in rows] for i, name in enumerate([*NAMES, "y"])})


def together(parts, thresholds, schema=SCHEMA, rule=None, meeting=None):
    def program(part, threshold):
        return lambda sums: agree(sums, schema, schema.counts(part), min_privacy_gain=threshold, rule=rule)

    programs = [program(part, threshold) for part, threshold in zip(parts, thresholds, strict=True)]
    return (meeting or Meeting(len(parts))).run(programs)


def entropy(cells):
    return -sum(n / len(cells) * math.log2(n / len(cells)) for n in Counter(cells).values())


def naive_flow(parts, thresholds, weights, privacy):
    """Section V in one process: scores by loops, removal one by one, gains row by row."""
    rows = [row for part in parts for row in part]
    most = len(NAMES) * math.log2(len(DOMAIN))
    scores = []
    for i in range(len(NAMES)):
        pairs = [(row[i], row[-1]) for row in rows]
        utility = entropy([v for v, _ in pairs]) + entropy([c for _, c in pairs]) - entropy(pairs)
        own = [entropy([row[i] for row in part]) / math.log2(len(DOMAIN)) for part in parts]
        pooled = entropy([v for v, _ in pairs]) / math.log2(len(DOMAIN))
        score = pooled if privacy == "pooled" else sum(own) / len(own)
        scores.append((weights[0] * utility + weights[1] * score) / sum(weights))
    order = sorted(range(len(NAMES)), key=lambda i: round(scores[i], 7))
    removed = []
    for i in order[: len(NAMES) // 2]:
        removed.append(i)
        gains = [sum(entropy([row[j] for row in part]) for j in removed) / most for part in parts]
        if all(gain >= threshold for gain, threshold in zip(gains, thresholds, strict=True)):
            return [NAMES[j] for j in removed], gains, scores
    return None, gains, scores


ROW = st.tuples(*[st.sampled_from(DOMAIN)] * 4, st.sampled_from(["n", "j"]))
PARTS = st.lists(st.lists(ROW, min_size=1, max_size=12), min_size=3, max_size=4)


@pytest.mark.slow
@examples(40)
@given(PARTS, st.data())
def test_the_flow_is_section_five_of_the_paper(parts, data):
    thresholds = [data.draw(st.sampled_from([0.013, 0.051, 0.107, 0.203, 0.311, 0.497])) for _ in parts]
    weights = data.draw(st.sampled_from([(0.5, 0.5), (1.0, 0.0), (1.0, 3.0)]))
    privacy = data.draw(st.sampled_from(["pooled", "average"]))
    removed, gains, scores = naive_flow(parts, thresholds, weights, privacy)
    found = together([table(part) for part in parts], thresholds, rule=AgreementRule(weights=weights, privacy=privacy))

    if removed is None:
        assert all(isinstance(each, PrivacyNotAchievableError) for each in found)
        assert len({each.best_level for each in found}) == 1
        assert min(gains) - 0.001 - 1e-9 < found[0].best_level <= min(gains) + 1e-9
        return
    for each, gain in zip(found, gains, strict=True):
        assert list(each.removed) == removed
        assert each.own_gains[-1] == pytest.approx(gain)
        assert [score.tradeoff for score in each.scores] == pytest.approx(scores, abs=1e-8)


ROWS = [(str(i % 3), str(i % 2), str(i // 5 % 3), "0" if i % 9 else "1", "nj"[i % 2]) for i in range(30)]


def test_whether_anybody_is_not_content_is_all_that_is_learned():
    """Counts, a check of equality, and for each number of removals a random number, or 0 where all are content."""
    meeting = Meeting(3)
    together([table(ROWS[:10]), table(ROWS[10:20]), table(ROWS[20:])], [0.01, 0.2, 0.01], meeting=meeting)

    stages = [stage for stage, _, _ in meeting.seen]
    assert stages == ["counts", "removal order", "not yet"]
    assert [modulus for _, modulus, _ in meeting.seen] == [WHOLE_WORDS, PRIME, PRIME]
    first, second = meeting.seen[2][2]
    assert first > 2
    assert second == 0
    expected = sum(SCHEMA.counts(table(part)) for part in (ROWS[:10], ROWS[10:20], ROWS[20:]))
    assert np.array_equal(meeting.seen[0][2], expected)


def test_out_of_reach_tells_the_same_reachable_gain_to_everybody():
    parts = [table(ROWS[:10]), table(ROWS[10:20]), table([ROWS[0]] * 5)]
    found = together(parts, [0.1, 0.1, 0.1])

    assert [each.best_level for each in found] == [0, 0, 0]
    assert "Nothing was released" in str(found[0])


def test_no_more_than_half_of_the_features_go():
    for each in together([table(ROWS)] * 3, [1.0, 0.01, 0.01]):
        assert isinstance(each, PrivacyNotAchievableError)
        assert "at most 2 of 4" in str(each)
        again = together([table(ROWS)] * 3, [each.best_level] * 3)
        assert all(len(agreed.removed) == 2 for agreed in again)


def test_a_party_that_comes_to_another_order_ends_the_session():
    own = SCHEMA.counts(table(ROWS))
    other = AgreementRule(weights=(0.0, 1.0))
    skewed = [("0", str(i % 2), str(i % 3), str(i % 2), "nj"[i % 2]) for i in range(30)]
    own_skewed = SCHEMA.counts(table(skewed))
    found = run_together(
        [
            lambda sums: agree(sums, SCHEMA, own, min_privacy_gain=0.1),
            lambda sums: agree(sums, SCHEMA, own_skewed, min_privacy_gain=0.1),
            lambda sums: agree(sums, SCHEMA, own_skewed, min_privacy_gain=0.1, rule=other),
        ]
    )

    assert all(isinstance(each, CollaborationError) for each in found)
    assert found[0].stage == "removal order"


@pytest.mark.parametrize("answers", [[0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1, 1]])
def test_is_any_is_a_disjunction(answers):
    programs = [lambda sums, own=bool(own): is_any(sums, own, stage="s") for own in answers]

    assert run_together(programs) == [any(answers)] * len(answers)


def test_same_bytes_pass_and_different_ones_end_the_session():
    assert run_together([lambda sums: check_same(sums, b"x", stage="s")] * 3) == [None] * 3
    programs = [lambda sums, own=own: check_same(sums, own, stage="s") for own in (b"x", b"x", b"y")]

    assert all(isinstance(each, CollaborationError) for each in run_together(programs))


@pytest.mark.parametrize("threshold", [0, -0.1, 1.1, math.nan])
def test_thresholds_out_of_range_are_refused(threshold):
    with pytest.raises(InvalidParameterError, match="min_privacy_gain"):
        agree(Meeting(3), SCHEMA, SCHEMA.counts(table(ROWS)), min_privacy_gain=threshold)


@pytest.mark.parametrize("fields", [{"privacy": "other"}, {"weights": (0, 0)}, {"epsilon": 0}, {"epsilon": math.inf}])
def test_rules_out_of_range_are_refused(fields):
    with pytest.raises(InvalidParameterError):
        AgreementRule(**fields)


def test_averaged_scores_go_with_no_noise():
    with pytest.raises(InvalidParameterError, match="pooled"):
        AgreementRule(privacy="average", epsilon=1.0)


def test_with_noise_all_parties_hold_the_same_noisy_totals():
    parts = [table(ROWS[:10]), table(ROWS[10:20]), table(ROWS[20:])]
    found = together(parts, [0.01] * 3, rule=AgreementRule(epsilon=0.5))
    exact = dict(zip(NAMES, SCHEMA.matrices(sum(SCHEMA.counts(part) for part in parts)), strict=True))

    assert len({each.removed for each in found}) == 1
    assert all(np.array_equal(found[0].totals[name], found[2].totals[name]) for name in NAMES)
    assert any(not np.array_equal(found[0].totals[name], exact[name]) for name in NAMES)


def test_huge_epsilon_is_next_to_no_noise():
    parts = [table(ROWS)] * 3
    noisy, exact = together(parts, [0.01] * 3, rule=AgreementRule(epsilon=1e5)), together(parts, [0.01] * 3)

    assert noisy[0].scores == exact[0].scores


def test_repr_shows_no_counts():
    (found, *_) = together([table(ROWS)] * 3, [0.01] * 3)

    assert "array" not in repr(found)
