"""Worked example of [PBI17], Pima with C4.5: Tables 1, 2 and Figure 6 (C ≠ SA), Tables 4 to 6 (C = SA)."""

import numpy as np
import pytest
from scipy import stats

from sfumato.mechanisms.breach.search import AcceptanceRule, ColumnRanking, candidate_subsets
from sfumato.mechanisms.breach.subset_evaluation import SubsetJudge
from sfumato.mechanisms.breach.tradeoff import evaluation_scores, pareto_front, regions

N_FOLDS = 10


class PrintedScores:
    """Folds with the printed mean that differ from the baseline's with the printed p-value of a paired t-test."""

    def __init__(self, names, baseline, printed):
        self.names = names
        self.n_columns, self.n_folds = len(names), N_FOLDS
        self.pattern = np.resize([1.0, -1.0], N_FOLDS) * np.sqrt((N_FOLDS - 1) / N_FOLDS)  # mean 0, variance 1
        self.baseline = baseline + np.linspace(-3, 3, N_FOLDS)
        self.folds = {frozenset(names): self.baseline}
        for subset, (mean, p_value) in printed.items():
            difference = mean - baseline
            t = stats.t.isf(p_value / 2, N_FOLDS - 1)
            spread = abs(difference) * np.sqrt(N_FOLDS) / t if t else 0
            self.folds[frozenset(subset)] = self.baseline + difference + spread * self.pattern

    def scores(self, columns):
        return self.folds[frozenset(self.names[column] for column in columns)]

    def without_each(self, columns):
        return np.array([self.scores([other for other in columns if other != column]) for column in columns])


def as_ranking(names, by_performance, by_privacy):
    return ColumnRanking(tuple(map(names.index, by_performance)), tuple(map(names.index, by_privacy)))


WITHOUT_PREG = ("Plas", "Pres", "Skin", "Insu", "Mass", "Pedi", "Age")
PERF_R = ("Plas", "Mass", "Pres", "Skin", "Age", "Pedi", "Insu")
PRIV_R = ("Skin", "Insu", "Pres", "Mass", "Pedi", "Plas", "Age")
TABLES_1_AND_2 = {
    "A": ("Plas_Mass_Pres_Skin_Age_Pedi", 75.26, 0.044, 0.97),
    "B": ("Plas_Mass_Pres_Skin_Age", 75.52, 0.009, 1.29),
    "C": ("Plas_Mass_Pres_Skin", 73.83, 0.931, -3.08),
    "D": ("Plas_Mass_Pres", 74.35, 0.599, -3.08),
    "E": ("Plas_Mass", 74.48, 0.525, -2.75),
    "F": ("Plas", 73.04, 0.626, -2.75),
    "G": ("Skin_Insu_Pres_Mass_Pedi_Plas", 73.96, 0.8544, -3.24),
    "H": ("Skin_Insu_Pres_Mass_Plas", 73.57, 0.9318, -3.08),
    "I": ("Skin_Insu_Pres_Plas", 72.91, 0.6115, -3.08),
    "J": ("Skin_Insu_Plas", 73.30, 0.7542, -3.08),
    "K": ("Skin_Plas", 73.30, 0.7542, -3.08),
}
PUT_BACK = ("Skin_Insu_Pres_Mass_Pedi", 66.15, 0.0015)  # struck out in Table 2: Plas is put back
BASELINE_PERFORMANCE = 73.70


@pytest.fixture
def pregnancies():
    """Sensitive Preg: judge and ranked lists of Section 4.3."""
    rows = [*TABLES_1_AND_2.values(), (*PUT_BACK, 0.0)]
    performance = {tuple(name.split("_")): (perf, p_value) for name, perf, p_value, _ in rows}
    attack = {tuple(name.split("_")): (100 + breach, 0.5) for name, _, _, breach in rows}
    judge = SubsetJudge(
        PrintedScores(WITHOUT_PREG, BASELINE_PERFORMANCE, performance),
        PrintedScores(WITHOUT_PREG, 100, attack),
        test="paired",
    )
    return judge, as_ranking(WITHOUT_PREG, PERF_R, PRIV_R)


def letters(candidates):
    of_subset = {frozenset(row[0].split("_")): letter for letter, row in TABLES_1_AND_2.items()}
    return [of_subset[frozenset(WITHOUT_PREG[column] for column in found.columns)] for found in candidates]


def test_tables_1_and_2_are_the_walks_along_both_lists(pregnancies):
    search = candidate_subsets(*pregnancies, AcceptanceRule(1.5, allow_increase=True))

    assert letters(search.candidates) == list("ABCDEFGHIJK")
    for found, (_, performance, p_value, breach) in zip(search.candidates, TABLES_1_AND_2.values(), strict=True):
        assert found.performance == pytest.approx(performance)
        assert found.p_value == pytest.approx(p_value, abs=1e-9)
        assert found.breach_increase == pytest.approx(breach)
    put_back = [(step.ranked_list, WITHOUT_PREG[step.column]) for step in search.steps if step.outcome != "accepted"]
    assert put_back == [("privacy", "Plas")]
    assert [found.found_by for found in search.candidates if len(found.columns) == 1] == [("performance", "privacy")]


def test_figure_6_below_alpha(pregnancies):
    """Region IV holds C, D, E and G; the paper also counts H, whose 73.57 is below the baseline's 73.70."""
    search = candidate_subsets(*pregnancies, AcceptanceRule(-2.7, bound_path=False))
    found = search.candidates
    places = regions(
        [candidate.performance for candidate in found],
        [candidate.breach_increase for candidate in found],
        baseline_performance=search.baseline.performance,
    )

    assert letters(found) == list("CDEFGHIJK")
    best = [candidate for candidate, place in zip(found, places, strict=True) if place == "IV"]
    assert letters(best) == list("CDEG")
    assert letters([min(best, key=lambda candidate: len(candidate.columns))]) == ["E"]


def test_the_walk_of_table_2_keeps_below_alpha_at_every_step(pregnancies):
    """Its first drop, of Age, reaches -3.24 at once: with the path bound as in Figure 5 it is the same."""
    bound, free = (
        candidate_subsets(*pregnancies, AcceptanceRule(-2.7, bound_path=bound_path), lists=["privacy"])
        for bound_path in (True, False)
    )

    assert letters(bound.candidates) == letters(free.candidates) == list("GHIJKF")


PIMA = ("preg", "plas", "pres", "skin", "insu", "mass", "pedi", "age")
TABLE_4 = [
    ("plas_mass_preg_skin_pedi_age_pres_insu", 8, 0, 73.835, "A"),
    ("plas_mass_preg_skin_pedi_age_pres", 7, 1.409, 74.875, "E"),
    ("plas_mass_preg_skin_pedi_age", 6, 1.231, 74.744, "A"),
    ("plas_mass_preg_skin_pedi", 5, 0.889, 74.491, "A"),
    ("plas_mass_preg_skin", 4, 0.711, 74.359, "A"),
    ("plas_mass_preg", 3, 0.711, 74.359, "A"),
    ("plas_mass", 2, 0.882, 74.486, "A"),
    ("plas", 1, -1.072, 73.043, "B"),
    ("insu_pres_age_pedi_skin_preg_plas", 7, -1.942, 72.401, "C"),
    ("insu_pres_age_pedi_skin_plas", 6, -0.708, 73.312, "A"),
    ("insu_pres_age_pedi_plas", 5, -1.238, 72.920, "A"),
    ("insu_pres_age_plas", 4, -1.241, 72.919, "A"),
    ("insu_pres_plas", 3, -0.893, 73.175, "A"),
    ("insu_plas", 2, -1.072, 73.043, "A"),
]
SUBSETS, SIZES, BREACHES, PERFORMANCES, COMBINATIONS = map(list, zip(*TABLE_4, strict=True))
RANKS = {
    "size": [1, 2, 4, 6, 8, 10, 12, 14, 2, 4, 6, 8, 10, 12],
    "privacy": [7, 1, 2, 3, 5, 5, 4, 10, 14, 8, 12, 13, 9, 10],
    "performance": [8, 14, 13, 12, 9, 9, 11, 4, 1, 7, 3, 2, 6, 4],
}
TABLE_6 = {
    (0.333, 0.333, 0.333): (
        [5.328, 5.661, 6.327, 6.993, 7.326, 7.992, 8.991, 9.324, 5.661, 6.327, 6.993, 7.659, 8.325, 8.658],
        "plas",
    ),
    (0.5, 0.25, 0.25): ([6, 7.75, 8, 8.25, 7.75, 8.25, 9.5, 8, 4.5, 6.5, 6, 6.25, 7.75, 7.5], "plas_mass"),
    (0.2, 0.6, 0.2): ([6, 3.8, 4.6, 5.4, 6.4, 6.8, 7, 9.6, 9, 7, 9, 9.8, 8.6, 9.2], "insu_pres_age_plas"),
}


def test_table_5_ranks():
    found = evaluation_scores(PERFORMANCES, BREACHES, SIZES)

    assert {name: ranks.tolist() for name, ranks in found.ranks.items()} == RANKS


def test_table_4_combinations_are_the_best_of_each_factor():
    """Letters of Table 3 count in binary: performance 4, breach 2, number of columns 1."""
    ranks = evaluation_scores(PERFORMANCES, BREACHES, SIZES).ranks
    best = {name: ranks[name] == ranks[name].max() for name in ranks}
    codes = 4 * best["performance"] + 2 * best["privacy"] + 1 * best["size"]

    assert ["ABCDEFGH"[code] for code in codes] == COMBINATIONS


@pytest.mark.parametrize("weights", TABLE_6)
def test_table_6_scores_and_choices(weights):
    scores, choice = TABLE_6[weights]

    found = evaluation_scores(PERFORMANCES, BREACHES, SIZES, weights)

    assert found.scores.round(3).tolist() == scores
    assert found.note == ""
    assert SUBSETS[found.best] == choice


def test_table_4_is_walked_with_the_sensitive_column_as_target():
    """PerfR as the subsets of the table show it, PrivR its reverse; without plas performance is lost."""
    by_performance = SUBSETS[0].split("_")
    printed = {tuple(name.split("_")): (performance, 0.6) for name, _, _, performance, _ in TABLE_4[1:]}
    without_plas = tuple(name for name in PIMA if name != "plas")
    scores = PrintedScores(PIMA, PERFORMANCES[0], printed | {without_plas: (66.0, 0.001)})
    judge = SubsetJudge(scores, test="paired")

    search = candidate_subsets(
        judge, as_ranking(PIMA, by_performance, by_performance[::-1]), AcceptanceRule(1.5, allow_increase=True)
    )

    names = [{PIMA[column] for column in found.columns} for found in search.compared]
    assert names == [set(name.split("_")) for name in SUBSETS]
    assert [found.breach_increase for found in search.compared] == pytest.approx(BREACHES, abs=0.002)
    for weights, (printed_scores, choice) in TABLE_6.items():
        assert search.evaluate(weights).scores.round(3).tolist() == printed_scores
        assert {PIMA[column] for column in search.best(weights).columns} == set(choice.split("_"))


def test_choices_of_table_6_are_on_the_pareto_front():
    front = pareto_front(PERFORMANCES, BREACHES, SIZES)

    on_front = {name for name, kept in zip(SUBSETS, front, strict=True) if kept}
    assert {choice for _, choice in TABLE_6.values()} <= on_front
    assert "plas_mass_preg_skin" not in on_front  # plas_mass_preg is as good with a column less
    assert "insu_plas" not in on_front  # plas alone is as good


def whole_ranks(weights, score, most_by_size, most=27):
    """Ranks of performance, privacy and size, up to the most there can be, that give a printed E(S)."""
    found = np.array(np.meshgrid(*(np.arange(1, top + 1) for top in (most, most, most_by_size)), indexing="ij"))
    given = np.tensordot(weights, found, axes=1)
    return {tuple(ranks) for ranks in found[:, np.abs(given - score) < 1e-9].T.tolist()}


def most_by_size(n_columns, n_all=14):
    """Highest rank by size: the baseline and two walks, which pass every size once at most, have more columns."""
    return 2 + 2 * (n_all - 1 - n_columns)


def test_scores_of_table_7_contradict_one_another():
    """Adult has 14 columns, so there are 27 sets at most; each printed set has one triple of ranks for all weights."""
    six, four, eleven = most_by_size(6), most_by_size(4), most_by_size(11)
    assert (six, four, eleven) == (16, 20, 6)

    first = whole_ranks((0.6, 0.2, 0.2), 15.4, six)
    assert first
    assert not first & whole_ranks((0.6, 0.15, 0.25), 16.5, six)
    assert whole_ranks((0.15, 0.3, 0.55), 15.5, four)
    assert not whole_ranks((0.1, 0.8, 0.1), 15.75, eleven)


def test_scores_of_table_7_fit_twenty_sets_with_two_of_them_exchanged_and_a_digit_lost():
    """Twenty sets whose order by privacy is that by performance reversed; 16.15 for 16.5, 15.75 and 16.7 exchanged."""
    n_sets = 20

    def of_one_order(found):
        return {ranks for ranks in found if ranks[0] + ranks[1] == n_sets + 1}

    six, four, eleven = (most_by_size(n) for n in (6, 4, 11))
    first = of_one_order(whole_ranks((0.6, 0.2, 0.2), 15.4, six))
    assert first & whole_ranks((0.6, 0.15, 0.25), 16.15, six) == {(20, 1, 16)}
    assert (12, 9, 20) in of_one_order(whole_ranks((0.15, 0.3, 0.55), 15.5, four))
    exchanged = whole_ranks((0.15, 0.75, 0.1), 15.75, eleven) & whole_ranks((0.1, 0.8, 0.1), 16.7, eleven)
    assert exchanged == {(1, 20, 6)}
