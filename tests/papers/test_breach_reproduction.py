"""Pima tables of [PBI17] from the data: C4.5 on the folds of Weka's seed 1 gives what the paper prints."""

from dataclasses import replace
from math import erf, sqrt

import numpy as np
import pytest

from reproductions.breach.printed import BAYES, PAPER, TREE, abbreviated, readings
from reproductions.breach.scoring import (
    ALL_PATIENTS,
    ANYTHING_GOES,
    CUT,
    SAME,
    Job,
    measure,
    problem_of,
    scores_of,
)
from reproductions.breach.weka_bayes import WekaBayesScores
from reproductions.breach.weka_folds import JavaRandom, repeated_weka_folds, weka_folds
from reproductions.breach.wrapper import weka_cross_validations, weka_wrapper
from reproductions.public_data import load_diabetes130
from sfumato.learning.c45.tree import TreeColumn
from sfumato.learning.trained_scores import TreeScores
from sfumato.mechanisms.breach.parameters import rule_by_name
from sfumato.mechanisms.breach.search import AcceptanceRule, candidate_subsets, rank_columns
from sfumato.mechanisms.breach.subset_evaluation import SubsetJudge


@pytest.mark.parametrize(
    ("seed", "bound", "numbers"),
    [
        (42, 10, [0, 3, 8, 4, 0]),
        (42, 16, [11, 0, 10, 0, 4]),
        (7, 1_500_000_000, [1_371_249_164, 20_678_044, 747_989_380, 1_053_566_254, 1_222_239_534]),
    ],
)
def test_numbers_are_those_of_java(seed, bound, numbers):
    """Printed by ``new Random(seed).nextInt(bound)``; the last bound makes it draw again now and then."""
    draw = JavaRandom(seed)

    assert [draw.below(bound) for _ in range(5)] == numbers


def test_weka_folds_are_stratified():
    target = np.array([0] * 23 + [1] * 14)

    fold_of_row = weka_folds(target, n_folds=4)

    assert sorted(np.bincount(fold_of_row).tolist()) == [9, 9, 9, 10]
    assert set(np.bincount(fold_of_row[:23]).tolist()) == {5, 6}


@pytest.mark.usefixtures("shared_data")
def test_the_sensitive_column_is_more_than_six_pregnancies():
    """The cut by description length; 599 of 768 are the majority from which the paper's DistP follows."""
    problem = problem_of("Pima", CUT)

    assert np.bincount(problem.sensitive).tolist() == [599, 169]
    assert "pregnancies" not in problem.names


@pytest.mark.usefixtures("shared_data")
def test_tables_4_to_6():
    """Ranked lists, all candidates in their order, Perf and PBI to three decimals, and the three choices."""
    run = measure(Job("Pima", TREE, SAME, seed=None))
    rows = PAPER["table_6"]["rows"]

    assert [abbreviated("Pima", [name]) for name in run.by_performance] == rows[0]["subset"].split()
    assert run.by_privacy == run.by_performance[::-1]
    assert list(run.candidates) == [readings("Pima", row["subset"])[0] for row in rows[1:]]
    for row in rows:
        judged = run.judged[readings("Pima", row["subset"])[0]]
        assert judged.performance == pytest.approx(row["performance"], abs=1e-3)
        assert judged.breach == pytest.approx(row["breach"], abs=1e-3)
    assert all(choice.chosen == names for (_, names), choice in run.choices.items())


@pytest.fixture(scope="module", name="pregnancies")
def fixture_pregnancies(shared_data):
    """Measure what Tables 1 and 2 are about."""
    return measure(Job("Pima", TREE, CUT, seed=None))


def test_tables_1_and_2(pregnancies):
    """Perf, p-values and PBI, cut off after the printed digits; the PBI of I, J and K is printed as -3.08."""
    run = pregnancies

    assert run.baseline == pytest.approx(PAPER["pregnancies"]["baseline"], abs=0.01)
    assert [abbreviated("Pima", [name]) for name in run.by_privacy] == PAPER["pregnancies"]["by_privacy"].split()
    for letter, row in PAPER["pregnancies"]["subsets"].items():
        judged = run.judged[readings("Pima", row["subset"])[0]]
        assert judged.performance == pytest.approx(row["performance"], abs=0.01)
        assert judged.p_value == pytest.approx(row["p_value"], abs=1e-3)
        if letter in "IJK":
            assert judged.breach == pytest.approx(-2.76, abs=0.005)
        elif "breach" in row:
            assert judged.breach == pytest.approx(row["breach"], abs=0.01)


def test_repeated_folds_begin_with_wekas_and_go_on_with_others():
    target = np.array([0] * 23 + [1] * 14)

    first, second = repeated_weka_folds(target, 4, 2)

    assert first.tolist() == weka_folds(target, 4).tolist()
    assert second.tolist() != first.tolist()
    assert sorted(np.bincount(second).tolist()) == [9, 9, 9, 10]


@pytest.mark.usefixtures("shared_data")
@pytest.mark.parametrize("direction", ["forward", pytest.param("backward", marks=pytest.mark.soak)])
def test_the_wrapper_that_the_paper_compares_with(direction):
    """Section 4.3: {Plas, Pres, Mass, Age}, forward and backward; Weka 3.9.7 with J48 selects the same."""
    problem = problem_of("Pima", CUT)
    (printed,) = readings("Pima", PAPER["pregnancies"]["wrapper"]["subset"])

    assert weka_wrapper(problem, weka_cross_validations(problem, TREE), direction) == printed


@pytest.mark.usefixtures("shared_data")
def test_the_wrapper_with_naive_bayes_selects_the_same_in_both_directions():
    problem = problem_of("Pima", CUT)
    times = weka_cross_validations(problem, BAYES)

    found = [weka_wrapper(problem, times, direction) for direction in ("forward", "backward")]
    assert found == [{"glucose", "pressure", "mass", "pedigree"}] * 2


@pytest.mark.usefixtures("shared_data")
def test_alpha_is_the_gain_of_mere_guessing(pregnancies):
    """Section 4.3: with α = DistP the ideal sets are H, C, G, D and E; {plas, mass} (E) has the fewest columns.

    H has 73.57 %, below the baseline's 73.70, and is in region III; the paper counts it all the same.
    """
    problem = problem_of("Pima", CUT)
    attacker = TreeScores(problem.columns, problem.sensitive, weka_folds(problem.sensitive))
    judge = SubsetJudge(attacker)
    rule = rule_by_name(AcceptanceRule(), "distp", judge)
    rows = PAPER["pregnancies"]["subsets"]
    named = {letter: readings("Pima", row["subset"])[0] for letter, row in rows.items() if len(letter) == 1}

    assert rule.max_breach_increase == pytest.approx(-2.75, abs=0.01)
    safe = {letter for letter, names in named.items() if rule.is_safe(pregnancies.judged[names].breach)}
    assert safe == set("CDEFGHIJK")
    better = {letter for letter in safe if pregnancies.judged[named[letter]].performance >= pregnancies.baseline}
    assert better == set("CDEG")
    assert min(better, key=lambda letter: len(named[letter])) == "E"


def test_naive_bayes_of_weka_is_that_of_its_definition():
    """Row by row: rounded to the mean distance of neighbours, integrals of normal densities, counts from one."""
    rng = np.random.default_rng(7)
    n_rows = 40
    target, fold_of_row = rng.integers(0, 2, n_rows), np.arange(n_rows) % 4
    numbers, kinds = rng.integers(0, 12, n_rows) * 1.7 + target, rng.integers(-1, 3, n_rows)
    different = np.unique(numbers)
    columns = [
        TreeColumn(np.searchsorted(different, numbers).astype(np.int32), len(different), different),
        TreeColumn(kinds.astype(np.int32), 3),
    ]

    right = np.zeros(4)
    for row in range(n_rows):
        train = np.flatnonzero(fold_of_row != fold_of_row[row])
        steps = np.diff(np.unique(numbers[train]))
        step = steps.mean()
        best = []
        for one in (0, 1):
            own = train[target[train] == one]
            rounded = np.array([np.rint(number / step) * step for number in numbers[own]])
            spread = max(rounded.std(), step / 6)
            ends = [
                (np.rint(numbers[row] / step) * step + half - rounded.mean()) / spread for half in (-step / 2, step / 2)
            ]
            chance = (erf(ends[1] / sqrt(2)) - erf(ends[0] / sqrt(2))) / 2
            if kinds[row] >= 0:
                known = kinds[own][kinds[own] >= 0]
                chance *= ((known == kinds[row]).sum() + 1) / (len(known) + 3)
            best.append(chance * (len(own) + 1) / (len(train) + 2))
        right[fold_of_row[row]] += target[row] == int(best[1] > best[0])

    scores = WekaBayesScores(columns, target, fold_of_row)
    assert scores.scores([0, 1]) == pytest.approx(right / 10)
    assert scores.without_each([0, 1]).tolist() == [scores.scores([1]).tolist(), scores.scores([0]).tolist()]


@pytest.mark.usefixtures("shared_data")
def test_figure_10_is_that_of_wekas_naive_bayes():
    """All three choices, and the text's tie: {plas}, {pedi, plas} and {skin, pedi, plas} have 9.8 at .2/.6/.2."""
    problem, job = problem_of("Pima"), Job("Pima", BAYES, SAME, seed=None)
    judge = SubsetJudge(*scores_of(problem, job), test="paired")
    search = candidate_subsets(judge, rank_columns(judge), ANYTHING_GOES)
    sets = [abbreviated("Pima", [problem.names[column] for column in one.columns]) for one in search.compared]
    scores = search.evaluate((0.2, 0.6, 0.2)).scores

    assert all(choice.chosen == names for (_, names), choice in measure(job).choices.items())
    best = {name for name, score in zip(sets, scores, strict=True) if score == pytest.approx(max(scores))}
    assert best == {"plas", "plas pedi", "plas skin pedi"}
    assert max(scores) == pytest.approx(9.8)


def places(run):
    """Best place of the paper's choice in any reading, by weights."""
    found = {}
    for (weights, _), choice in run.choices.items():
        found[weights] = min(found.get(weights, choice.n_compared), choice.place_of_printed)
    return list(found.values())


@pytest.mark.soak
@pytest.mark.usefixtures("shared_data")
@pytest.mark.parametrize(("learner", "complete", "everything"), [(TREE, [9, 9], [1, 1]), (BAYES, [3], [2])])
def test_four_rows_that_miss_a_ratio_decide_the_place_of_the_choices_of_ilpd(learner, complete, everything):
    assert places(measure(Job("ILPD", learner, SAME, seed=None))) == complete
    assert places(measure(Job(ALL_PATIENTS, learner, SAME, seed=None))) == everything


MISSED_MOST = ("weight", "payer_code", "medical_specialty")
"""Columns of Diabetes130 of which 40 to 97 % of the cells are missing."""


@pytest.mark.soak
@pytest.mark.usefixtures("shared_data")
def test_codes_read_as_numbers_make_the_choice_of_figure_14_the_best(monkeypatch):
    """As Weka reads them from a file with commas; without the columns that miss most."""
    whole = problem_of("Diabetes130")
    kept = [place for place, name in enumerate(whole.names) if name not in MISSED_MOST]
    table = load_diabetes130()

    def column(place):
        found, name = whole.columns[place], whole.names[place]
        if not name.endswith("_id"):
            return found
        numbers = np.array([float(str(value)) for value in table[name].values])
        different = np.unique(numbers)
        return TreeColumn(np.searchsorted(different, numbers)[found.codes].astype(np.int32), len(different), different)

    problem = replace(
        whole, names=tuple(whole.names[place] for place in kept), columns=tuple(column(place) for place in kept)
    )
    monkeypatch.setattr("reproductions.breach.scoring.problem_of", lambda *_: problem)

    assert places(measure(Job("Diabetes130", BAYES, SAME, seed=None))) == [1]


@pytest.mark.soak
@pytest.mark.usefixtures("shared_data")
def test_folds_decide_whether_a_column_of_adult_may_go():
    """The paper puts EN back on its walk by privacy; so do our folds of seed 0 (1 to 3 do not), Weka's do not."""
    problem = problem_of("Adult")
    rest = [place for place, name in enumerate(problem.names) if name != "education-num"]

    lost = {}
    for seed in (None, 0):
        judge = SubsetJudge(*scores_of(problem, Job("Adult", TREE, SAME, seed)), test="paired")
        judged = judge.judge(rest, "without EN")
        assert judged.performance < judge.baseline.performance
        lost[seed] = judged.p_value < 0.05
    assert lost == {None: False, 0: True}
