"""Scores with the original are measured once, and found again by what they were made of."""

import numpy as np
import pytest

from sfumato.attack import inference
from sfumato.attack.inference import ScoresInMemory, best_in, key_of
from sfumato.attack.risk import risk_of
from sfumato.datasets.admissions import admissions
from sfumato.learning.c45.tree import TreeColumn
from sfumato.mechanisms.registry import build_mechanism

COLUMN = TreeColumn(np.array([0, 1, 0], dtype=np.int32), 2)
NUMERIC = TreeColumn(np.array([0, 1, 0], dtype=np.int32), 2, np.array([1.5, 2.5]))
TARGET, FOLDS = np.array([0, 1, 1]), np.array([0, 0, 1])


class Trained:
    """Counts the learners that are trained."""

    def __init__(self, monkeypatch):
        self.n, learner = 0, inference._learner
        monkeypatch.setattr(inference, "_learner", lambda *asked: self.counted() or learner(*asked))

    def counted(self):
        self.n += 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mondrian", "slicing"])
def test_an_attack_with_kept_scores_finds_the_same_and_trains_half_as_often(name, monkeypatch):
    table = admissions(n_rows=300).keep(["age", "sex", "diabetes", "insurance", "discharge_diagnosis", "readmitted"])
    release = build_mechanism(name, {"k": 5}).release(table)
    trained, kept = Trained(monkeypatch), ScoresInMemory()

    alone = risk_of(table, release.table, release.manifest)
    n_alone, trained.n = trained.n, 0
    risk_of(table, table, kept=kept)
    trained.n = 0
    beside = risk_of(table, release.table, release.manifest, kept=kept)

    assert beside == alone
    assert beside["inference"][0]["with_release"] > 0
    assert 2 * trained.n == n_alone


@pytest.mark.slow
def test_scores_of_another_table_are_not_taken(monkeypatch):
    table, other = (
        admissions(n_rows=n).keep(["age", "sex", "diabetes", "insurance", "discharge_diagnosis", "readmitted"])
        for n in (200, 201)
    )
    trained, kept = Trained(monkeypatch), ScoresInMemory()
    alone = risk_of(other, other)
    n_alone, trained.n = trained.n, 0
    risk_of(table, table, kept=kept)
    trained.n = 0

    assert risk_of(other, other, kept=kept) == alone
    assert trained.n == n_alone


@pytest.mark.parametrize(
    "other",
    [
        (("c45",), [COLUMN, NUMERIC], TARGET, FOLDS),
        (("naive-bayes", "c45"), [COLUMN], TARGET, FOLDS),
        (("naive-bayes", "c45"), [NUMERIC, COLUMN], TARGET, FOLDS),
        (("naive-bayes", "c45"), [COLUMN, COLUMN], TARGET, FOLDS),
        (("naive-bayes", "c45"), [COLUMN, NUMERIC], FOLDS, FOLDS),
        (("naive-bayes", "c45"), [COLUMN, NUMERIC], TARGET, TARGET),
        (("naive-bayes", "c45"), [TreeColumn(COLUMN.codes, 3), NUMERIC], TARGET, FOLDS),
        (("naive-bayes", "c45"), [COLUMN, TreeColumn(COLUMN.codes, 2, np.array([1.5, 2.6]))], TARGET, FOLDS),
    ],
)
def test_the_key_tells_apart_all_that_scores_depend_on(other):
    asked = ("naive-bayes", "c45"), [COLUMN, NUMERIC], TARGET, FOLDS

    assert key_of(*asked) == key_of(*asked)
    assert key_of(*asked) != key_of(*other)


@pytest.mark.parametrize(
    "entry",
    [
        None,
        [],
        {},
        {"attacker": "c45", "scores": [0.5]},
        {"attacker": "c45", "scores": [0.5, "x"]},
        {"attacker": "c45", "scores": [0.5, 2.0]},
        {"attacker": "c45", "scores": [0.5, float("nan")]},
        {"attacker": "c45", "scores": "0.5"},
        {"attacker": "guess", "scores": [0.5, 0.5]},
        {"scores": [0.5, 0.5]},
    ],
)
def test_what_is_not_an_entry_is_no_score(entry):
    assert best_in(entry, ("c45",), 2) is None


def test_an_entry_comes_back():
    scores, attacker = best_in({"attacker": "c45", "scores": [0.25, 1.0]}, ("c45",), 2)

    assert (scores.tolist(), attacker) == ([0.25, 1.0], "c45")
