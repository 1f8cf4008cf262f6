"""Kinds of attackers that the audit trains: each sees what it can see, and a bound names them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from sfumato.audit import attackers
from sfumato.audit.attackers import Attack, log_odds
from sfumato.errors import InvalidParameterError
from sfumato.guarantees.estimated import BREACH_ATTACKERS, BreachBound, attackers_in
from sfumato.schema import Kind
from unit.audit.audit_oracles import table_of

N_ROWS = 300


def attack_on(columns, sensitive, metric="accuracy"):
    """Attack columns of floats as numbers and others as categories."""
    is_numeric = [np.asarray(column).dtype.kind == "f" for column in columns.values()]
    kinds = {name: Kind.NUMERIC for name, flag in zip(columns, is_numeric, strict=True) if flag}
    table = table_of(columns, kinds=kinds)
    cells = [table[name] for name in columns]
    return Attack(cells, is_numeric, np.arange(len(sensitive)), np.asarray(sensitive, dtype=np.int64), metric)


def mixed():
    rng = np.random.default_rng(2)
    sensitive = rng.integers(3, size=N_ROWS)
    columns = {
        "number": np.round(sensitive + rng.normal(size=N_ROWS) / 4, 2),
        "category": np.array(list("xyz"))[np.where(rng.random(N_ROWS) < 0.8, sensitive, 0)],
        "noise": rng.normal(size=N_ROWS).round(2),
    }
    return columns, sensitive


@pytest.fixture(scope="module")
def trained_once():
    """Train on the same cells once in this module, whatever metric is worked out from what the attacker says."""
    said = {}

    def remembering(kind, train):
        def attacker(cells, is_numeric, target, is_held_out):
            key = (kind, cells.shape, *(part.tobytes() for part in (cells, is_numeric, target, is_held_out)))
            if key not in said:
                said[key] = train(cells, is_numeric, target, is_held_out)
            classes, found = said[key]
            return classes.copy(), found.copy()

        return attacker

    with pytest.MonkeyPatch.context() as patch:
        for kind, train in list(attackers._ATTACKERS.items()):
            patch.setitem(attackers._ATTACKERS, kind, remembering(kind, train))
        yield


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy", "auc"])
@pytest.mark.parametrize("kind", BREACH_ATTACKERS)
def test_every_kind_learns_from_numbers_and_from_categories(trained_once, kind, metric):
    attack = attack_on(*mixed(), metric)

    number, category, noise = (attack.scores([place], kind).mean() for place in range(3))

    assert number > 0.85
    assert category > 0.75
    assert noise < 0.6


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["c45", "random-forest", "gradient-boosting"])
def test_trees_see_what_depends_on_two_columns_together(kind):
    rng = np.random.default_rng(7)
    a, b = rng.integers(2, size=(2, N_ROWS))
    attack = attack_on({"a": a, "b": b}, a ^ b)

    assert attack.scores([0, 1], kind).mean() == 1
    assert attack.scores([0, 1], "logistic-regression").mean() < 0.7


def test_intervals_see_what_no_normal_distribution_shows():
    """The value is in the middle or at both ends: means and nearly the spreads of both classes agree."""
    rng = np.random.default_rng(3)
    number = rng.uniform(-1, 1, size=N_ROWS)
    sensitive = (np.abs(np.abs(number) - 0.5) < 0.25).astype(int)
    attack = attack_on({"number": number}, sensitive)

    assert attack.scores([0], "naive-bayes-discretized").mean() > 0.9 > attack.scores([0], "naive-bayes").mean() + 0.2


@pytest.mark.slow
def test_logistic_regression_has_a_feature_for_every_category():
    columns, sensitive = mixed()
    attack = attack_on(columns, sensitive)
    numbers = [(columns[name] - columns[name].mean()) / columns[name].std() for name in ("number", "noise")]
    X = np.column_stack([*numbers, *(columns["category"] == value for value in "xyz")])

    found = attack.scores([0, 1, 2], "logistic-regression")

    for fold, score in enumerate(found):
        is_held_out = attack._fold_of_row == fold
        model = LogisticRegression(max_iter=1000).fit(X[~is_held_out], sensitive[~is_held_out])
        assert score == pytest.approx(model.score(X[is_held_out], sensitive[is_held_out]), abs=1 / is_held_out.sum())


@pytest.mark.slow
def test_of_several_the_strongest_counts(trained_once):
    attack = attack_on(*mixed())
    kinds = ["naive-bayes", "logistic-regression", "random-forest"]

    together = attack.scores([0, 1], "+".join(kinds)).mean()

    assert together == max(attack.scores([0, 1], kind).mean() for kind in kinds)


@pytest.mark.parametrize("kind", BREACH_ATTACKERS)
def test_training_rows_of_one_class_predict_it(kind):
    attack = attack_on({"a": np.array([0.5, 1.5]), "b": [1, 2]}, [0, 1])

    assert attack.scores([0, 1], kind).tolist() == [0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", BREACH_ATTACKERS)
def test_a_number_that_is_the_same_for_all_tells_nothing(kind):
    sensitive = np.array([0, 0, 1] * 20)
    attack = attack_on({"same": np.full(60, 2.5)}, sensitive)

    assert attack.scores([0], kind).mean() == pytest.approx(2 / 3)


@given(st.lists(st.lists(st.floats(-80, 0), min_size=3, max_size=3), min_size=1, max_size=5))
def test_log_odds_compare_each_class_with_the_sum_of_the_others(rows):
    """The likeliest class may have odds of e to the 80, whose probability is rounded to 1."""
    found = log_odds(np.array(rows))

    for row, odds in zip(rows, found.tolist(), strict=True):
        for place, own in enumerate(row):
            others = math.fsum(math.exp(other) for number, other in enumerate(row) if number != place)
            assert odds[place] == pytest.approx(own - math.log(others), abs=1e-9)


def test_odds_are_worked_out_for_the_area_only(monkeypatch):
    asked = []
    monkeypatch.setattr(attackers, "log_odds", lambda joint: asked.append(joint) or log_odds(joint))

    for metric in ("accuracy", "balanced_accuracy", "auc"):
        assert not asked
        attack_on(*mixed(), metric).scores([1], "naive-bayes")

    assert len(asked) == 10


@pytest.mark.parametrize(
    ("attacker", "words"),
    [
        ("random-forest", "of the kind random forest who"),
        ("strongest", "of the kind naive Bayes or decision tree, whichever is stronger, who"),
        ("c45+gradient-boosting", "of the kind decision tree or gradient boosting, whichever is stronger, who"),
    ],
)
def test_a_bound_names_its_attackers(attacker, words):
    assert words in BreachBound(0.0, "s", ("a",), ("a", "b"), attacker).describe()


@pytest.mark.parametrize("attacker", ["", "+", "c45+", "c45+c45", "strongest+c45", "KNN", ("c45",), 3])
def test_other_attackers_are_refused(attacker):
    with pytest.raises(InvalidParameterError, match="attacker must be"):
        attackers_in(attacker)
    with pytest.raises(InvalidParameterError, match="attacker must be"):
        BreachBound(0.0, "s", ("a",), ("a", "b"), attacker)
