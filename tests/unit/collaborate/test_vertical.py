"""The study of two parties with different columns of the same people."""

import math
from collections import Counter

import numpy as np
import pytest

from sfumato.collaborate.scores import TradeoffWeights
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.schema import Role
from unit.collaborate.plain_sums import table_of
from unit.collaborate.vertical import agree_on_columns

N = 60
RNG = np.random.default_rng(3)
COLUMNS = {
    name: RNG.integers(n, size=N).astype(str).tolist() for name, n in zip("abcdef", (2, 3, 4, 2, 3, 5), strict=True)
}
LABELS = ["nj"[i % 2] for i in range(N)]
KEYS = [f"p{i:03}" for i in range(N)]


def party(names, rows, labels=LABELS, **roles):
    columns = {"id": KEYS} | {name: COLUMNS[name] for name in names} | {"y": labels}
    picked = {name: [cells[row] for row in rows] for name, cells in columns.items()}
    return table_of(picked, **{"id": Role.IDENTIFIER} | roles)


def entropy(cells):
    return -sum(n / len(cells) * math.log2(n / len(cells)) for n in Counter(cells).values())


def test_the_result_is_that_of_a_loop_over_the_joined_rows():
    """The second table has another order and other people; only common rows count."""
    first, second = party("abc", range(50)), party("def", range(N - 1, 9, -1))
    found = agree_on_columns(first, second, key="id", min_privacy_gain=(0.02, 0.02))
    common = range(10, 50)
    joined = {name: [cells[row] for row in common] for name, cells in COLUMNS.items()}
    labels = [LABELS[row] for row in common]
    scores = {}
    for name, cells in joined.items():
        utility = entropy(cells) + entropy(labels) - entropy(list(zip(cells, labels, strict=True)))
        scores[name] = (utility + entropy(cells) / math.log2(len(set(cells)))) / 2
    most = [sum(math.log2(len(set(joined[name]))) for name in names) for names in ("abc", "def")]
    order = sorted(scores, key=scores.get)

    assert found.n_common_rows == 40
    assert {score.name: score.tradeoff for score in found.scores} == pytest.approx(scores)
    assert list(found.removed) == order[: len(found.removed)]
    for i, pair in enumerate(found.gains, start=1):
        for side, names in enumerate(("abc", "def")):
            own = sum(entropy(joined[name]) for name in order[:i] if name in names)
            assert pair[side] == pytest.approx(own / most[side])
    assert min(found.gains[-1]) >= 0.02
    assert all(min(pair) < 0.02 for pair in found.gains[:-1])
    assert set(found.kept) | set(found.removed) == set("abcdef")


def test_a_party_that_loses_no_column_gains_nothing():
    """By privacy alone the constant columns of one party go first; the other never gets its gain."""
    flat = {"flat1": ["x"] * (N - 1) + ["z"], "flat2": ["z"] + ["x"] * (N - 1)}
    first = table_of({"id": KEYS, **flat, "y": LABELS}, id=Role.IDENTIFIER)

    with pytest.raises(PrivacyNotAchievableError) as caught:
        agree_on_columns(
            first, party("af", range(N)), key="id", min_privacy_gain=(0.01, 0.01), weights=TradeoffWeights(0, 1)
        )

    assert caught.value.best_level == 0


def test_tables_that_do_not_fit_together_are_refused():
    base = party("abc", range(N))
    other_labels = ["j" if i == 7 else label for i, label in enumerate(LABELS)]
    repeated = table_of({"id": ["p000"] * N, "d": COLUMNS["d"], "y": LABELS}, id=Role.IDENTIFIER)
    cases = {
        "differs between": party("def", range(N), labels=["n"] * 7 + other_labels[7:]),
        "feature of both": party("cd", range(N)),
        "share one": repeated,
        "it cannot be a feature": party("def", range(N), id=Role.QUASI_IDENTIFIER),
    }
    for match, second in cases.items():
        with pytest.raises(SchemaError, match=match):
            agree_on_columns(base, second, key="id", min_privacy_gain=(0.1, 0.1))
    without = table_of({"id": KEYS, "d": COLUMNS["d"], "z": LABELS}, "z", id=Role.IDENTIFIER)
    with pytest.raises(SchemaError, match="target of one table only"):
        agree_on_columns(base, without, key="id", min_privacy_gain=(0.1, 0.1))


def test_no_common_rows_are_refused():
    with pytest.raises(SchemaError):
        agree_on_columns(party("abc", range(30)), party("def", range(30, N)), key="id", min_privacy_gain=(0.1, 0.1))


def test_thresholds_out_of_range_are_refused():
    with pytest.raises(InvalidParameterError):
        agree_on_columns(party("ab", range(N)), party("de", range(N)), key="id", min_privacy_gain=(0.1, 0))
