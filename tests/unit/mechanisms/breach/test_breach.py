"""Ranker, candidate search and searches by E(S) on made-up scores, against a plain re-telling of Figures 4 and 5."""

from fractions import Fraction
from itertools import chain, combinations, permutations
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sfumato.errors import InvalidParameterError
from sfumato.mechanisms.breach import search as search_module
from sfumato.mechanisms.breach.problem import leaking_columns
from sfumato.mechanisms.breach.search import (
    AcceptanceRule,
    ColumnRanking,
    candidate_subsets,
    choices_from_random_orders,
    eliminate_along,
    rank_columns,
    search_by_score,
)
from sfumato.mechanisms.breach.subset_evaluation import SubsetJudge

N_FOLDS = 3


class ScoresByTable:
    """Scores looked up by subset; counts what was asked."""

    def __init__(self, n_columns, table):
        self.n_columns, self.n_folds = n_columns, N_FOLDS
        self.table = table
        self.n_asked = 0

    def scores(self, columns):
        self.n_asked += 1
        return np.array(self.table[frozenset(columns)], dtype=np.float64)

    def without_each(self, columns):
        return np.array([self.scores([other for other in columns if other != column]) for column in columns])


class AdditiveScores(ScoresByTable):
    """Every column adds its worth to a score of 10, with the same spread over the folds."""

    def __init__(self, worths):
        self.worths = worths
        table = {
            frozenset(subset): 10 + sum(worths[column] for column in subset) + np.array([-1.0, 0.0, 1.0])
            for subset in all_subsets(len(worths))
        }
        super().__init__(len(worths), table)


def all_subsets(n_columns):
    return chain.from_iterable(combinations(range(n_columns), size) for size in range(n_columns + 1))


def tables(n_columns):
    folds = st.lists(st.integers(1, 9), min_size=N_FOLDS, max_size=N_FOLDS)
    return st.fixed_dictionaries({frozenset(subset): folds for subset in all_subsets(n_columns)})


@st.composite
def learners(draw, max_columns=4):
    """Scores of a recipient and of an attacker; one in two times they are the same (C = SA)."""
    n_columns = draw(st.integers(1, max_columns))
    performance = ScoresByTable(n_columns, draw(tables(n_columns)))
    attacker = ScoresByTable(n_columns, draw(tables(n_columns))) if draw(st.booleans()) else None
    return performance, attacker


def pbi(attacker, subset):
    return 100 * (Fraction(sum(attacker.table[subset]), sum(attacker.table[max(attacker.table, key=len)])) - 1)


def plain_p_value(ours, baseline):
    differences = {a - b for a, b in zip(ours, baseline, strict=True)}
    if len(differences) == 1:
        return 1.0 if differences == {0} else 0.0
    return stats.ttest_rel(ours, baseline).pvalue


def plain_walk(performance, attacker, order, limit, level, max_loss=None):
    """Figure 5, word for word, on exact numbers; the last column stays, and so does what loses too many percent."""
    baseline = performance.table[frozenset(order)]
    kept, accepted = set(order), []
    for column in reversed(order):
        rest = frozenset(kept - {column})
        if not rest:
            continue
        ours = performance.table[rest]
        loss = 100 * (1 - Fraction(sum(ours), sum(baseline)))
        is_small = max_loss is None or loss <= max_loss
        keeps = loss <= 0 or (plain_p_value(ours, baseline) >= level and is_small)
        if keeps and pbi(attacker, rest) <= limit:
            kept.remove(column)
            accepted.append(tuple(sorted(rest)))
    return accepted


@given(learners())
def test_lists_order_columns_by_what_dropping_each_alone_costs(scores):
    performance, attacker = scores
    everything = frozenset(range(performance.n_columns))

    ranking = rank_columns(SubsetJudge(performance, attacker))

    def loss(learner, column):
        return sum(learner.table[everything]) - sum(learner.table[everything - {column}])

    of_performance = [loss(performance, column) for column in everything]
    of_attack = [loss(attacker or performance, column) for column in everything]
    assert list(ranking.by_performance) == sorted(everything, key=lambda c: (-of_performance[c], c))
    assert list(ranking.by_privacy) == sorted(everything, key=lambda c: (of_attack[c], -c))
    if attacker is None:
        assert ranking.by_privacy == ranking.by_performance[::-1]


@given(
    learners(),
    st.integers(-60, 60),
    st.sampled_from([0.05, 0.3, 0.9]),
    st.none() | st.integers(0, 100),
    st.data(),
)
def test_candidates_are_those_of_the_plain_walk(scores, limit, level, max_loss, data):
    performance, attacker = scores
    order, other = (data.draw(st.permutations(range(performance.n_columns))) for _ in range(2))
    rule = AcceptanceRule(limit, allow_increase=True, max_performance_loss=max_loss)
    judge = SubsetJudge(performance, attacker, test="paired")
    against = attacker or performance

    with patch.object(search_module, "SIGNIFICANCE_LEVEL", level):
        search = eliminate_along(judge, {"one": order, "two": other}, rule)

    walks = {
        "one": plain_walk(performance, against, order, limit, level, max_loss),
        "two": plain_walk(performance, against, other, limit, level, max_loss),
    }
    assert [found.columns for found in search.candidates] == list(dict.fromkeys(walks["one"] + walks["two"]))
    for found in search.candidates:
        assert list(found.found_by) == [name for name, walk in walks.items() if found.columns in walk]
        ours = performance.table[frozenset(found.columns)]
        assert list(found.fold_performance) == ours
        assert found.performance == pytest.approx(sum(ours) / N_FOLDS)
        everything = performance.table[frozenset(order)]
        assert found.p_value == pytest.approx(plain_p_value(ours, everything), abs=1e-9)
        assert found.breach_increase == pytest.approx(float(pbi(against, frozenset(found.columns))))


@given(learners(), st.integers(-60, 0))
def test_without_bound_on_the_path_only_performance_puts_back(scores, limit):
    performance, attacker = scores
    judge = SubsetJudge(performance, attacker, test="paired")
    order = list(range(performance.n_columns))
    against = attacker or performance

    search = eliminate_along(
        judge, {"given": order}, AcceptanceRule(limit, bound_path=False, max_performance_loss=None)
    )

    walked = plain_walk(performance, against, order, 10_000, 0.05)
    safe = [subset for subset in walked if pbi(against, frozenset(subset)) <= limit]
    assert [found.columns for found in search.candidates] == safe
    assert sum(step.outcome == "passed through" for step in search.steps) == len(walked) - len(safe)
    assert all(step.outcome != "breach too high" for step in search.steps)


def test_either_list_or_both_are_walked_and_a_subset_found_twice_is_one_candidate():
    performance = AdditiveScores([3, 0, 0])
    judge = SubsetJudge(performance, AdditiveScores([0, 0, 2]))
    ranking = rank_columns(judge)

    assert ranking.by_performance == (0, 1, 2)
    assert ranking.by_privacy == (1, 0, 2)

    both = candidate_subsets(judge, ranking)
    by_privacy = candidate_subsets(judge, ranking, lists=["privacy"])

    assert [(found.columns, found.found_by) for found in both.candidates] == [
        ((0, 1), ("performance", "privacy")),
        ((0,), ("performance", "privacy")),
    ]
    assert [(step.column, step.outcome) for step in by_privacy.steps] == [
        (2, "accepted"),
        (0, "loses performance"),
        (1, "accepted"),
    ]
    assert both.baseline.columns == (0, 1, 2)
    assert both.baseline.p_value == 1
    assert both.baseline.breach_increase == 0


def test_the_corrected_test_puts_fewer_drops_back(monkeypatch):
    """Differences of -1, -1, -2: t = -4 and p = 0.057 by the plain test; t = -2.5 and p = 0.13 by the corrected."""
    table = {frozenset(subset): [9, 9, 9] for subset in all_subsets(2)} | {frozenset({0}): [8, 8, 7]}
    monkeypatch.setattr(search_module, "SIGNIFICANCE_LEVEL", 0.1)
    rule = AcceptanceRule(max_performance_loss=None)

    found = {
        test: eliminate_along(SubsetJudge(ScoresByTable(2, table), test=test), {"given": [0, 1]}, rule).candidates
        for test in ("paired", "corrected")
    }

    assert [candidate.columns for candidate in found["paired"]] == [(1,)]
    assert [candidate.columns for candidate in found["corrected"]] == [(0,)]


def test_a_loss_that_is_large_but_not_significant_is_put_back_unless_the_test_alone_decides():
    """Differences of -9, 0, -9 have p = 0.18 by the plain test, and are a loss of a fifth."""
    table = {frozenset(subset): [30, 30, 30] for subset in all_subsets(2)} | {frozenset({0}): [21, 30, 21]}
    judge = SubsetJudge(ScoresByTable(2, table), test="paired")

    found = {
        loss: eliminate_along(judge, {"given": [0, 1]}, AcceptanceRule(max_performance_loss=loss))
        for loss in (None, 100, 20, 19.9, 0)
    }

    assert judge.p_value((0,)) > 0.05
    assert [[candidate.columns for candidate in search.candidates] for search in found.values()] == [
        [(0,)], [(0,)], [(0,)], [(1,)], [(1,)],
    ]  # fmt: skip
    assert found[19.9].steps[0].outcome == "loses performance"
    assert AcceptanceRule().max_performance_loss == 5


def test_every_subset_is_scored_once():
    performance, attacker = AdditiveScores([1, 2, 3, 4]), AdditiveScores([4, 3, 2, 1])
    judge = SubsetJudge(performance, attacker)
    ranking = rank_columns(judge)
    candidate_subsets(judge, ranking)
    asked = performance.n_asked, attacker.n_asked

    rank_columns(judge)
    candidate_subsets(judge, ranking)

    assert (performance.n_asked, attacker.n_asked) == asked


def test_a_known_score_is_kept_where_the_learner_later_rounds_otherwise():
    class RoundsOtherwise(AdditiveScores):
        def without_each(self, columns):
            return super().without_each(columns) + 1e-9

    judge = SubsetJudge(RoundsOtherwise([1, 2, 3]))
    before = judge.judge((0, 1), "given")
    judge.prepare_without_each((0, 1, 2))

    assert judge.judge((0, 1), "given") == before


def test_progress_counts_columns_and_ends_at_the_total():
    calls = []
    judge = SubsetJudge(AdditiveScores([1, 2, 3]), AdditiveScores([1, 1, 1]))

    def record(*call):
        calls.append(call)

    candidate_subsets(judge, rank_columns(judge, progress=record), progress=record)

    ranked = [call for call in calls if call[2] == "subsets without one column"]
    tried = [call for call in calls if call[2] == "columns tried"]
    assert ranked == [(3, 6, "subsets without one column"), (6, 6, "subsets without one column")]
    assert [done for done, *_ in tried] == sorted(done for done, *_ in tried)
    assert tried[-1][:2] == (6, 6)


def test_the_only_column_stays():
    search = eliminate_along(SubsetJudge(AdditiveScores([1])), {"given": [0]})

    assert search.candidates == ()
    assert search.steps == ()
    assert search.best().columns == (0,)


def test_best_leaves_out_what_exceeds_the_limit_even_the_baseline():
    judge = SubsetJudge(AdditiveScores([5, 0]), AdditiveScores([0, 5]))

    safe = candidate_subsets(judge, rank_columns(judge), AcceptanceRule(-10))
    none = candidate_subsets(judge, rank_columns(judge), AcceptanceRule(-90))

    assert safe.best((1, 0, 0)).columns == (0,)
    assert none.best((1, 0, 0)) is None
    assert len(none.evaluate().scores) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_breach_increase": 0.5}, "allow_increase"),
        ({"max_breach_increase": np.nan}, "finite"),
        ({"max_breach_increase": -np.inf}, "finite"),
        ({"max_performance_loss": -1}, "from 0 to 100"),
        ({"max_performance_loss": np.nan}, "from 0 to 100"),
    ],
)
def test_rules_that_say_nothing_or_too_much_are_refused(options, said):
    with pytest.raises(InvalidParameterError, match=said):
        AcceptanceRule(**options)


def test_an_increase_that_is_meant_is_allowed():
    assert AcceptanceRule(0.5, allow_increase=True).is_safe(0.5)


def test_learners_that_do_not_fit_are_refused():
    with pytest.raises(InvalidParameterError, match="as many columns"):
        SubsetJudge(AdditiveScores([1, 2]), AdditiveScores([1]))
    with pytest.raises(InvalidParameterError, match="at least one column"):
        SubsetJudge(AdditiveScores([]))
    with pytest.raises(InvalidParameterError, match="attacker's score"):
        SubsetJudge(AdditiveScores([1]), AdditiveScores([-10]))
    with pytest.raises(InvalidParameterError, match="finite"):
        SubsetJudge(AdditiveScores([np.nan]))


def test_lists_that_do_not_fit_are_refused():
    judge = SubsetJudge(AdditiveScores([1, 2]))
    ranking = ColumnRanking((0, 1), (1, 0))
    for lists in ([], ["accuracy"]):
        with pytest.raises(InvalidParameterError, match="lists"):
            candidate_subsets(judge, ranking, lists=lists)
    for order in ([0], [0, 0], [0, 1, 2]):
        with pytest.raises(InvalidParameterError, match="every column once"):
            eliminate_along(judge, {"given": order})


def test_a_column_equal_to_the_sensitive_one_under_any_labels_is_a_leak():
    sensitive = [0, 1, 1, 2]
    columns = {
        "same": [0, 1, 1, 2],
        "renamed": [5, 0, 0, -1],
        "finer": [0, 1, 2, 3],
        "coarser": [0, 1, 1, 1],
        "other": [0, 0, 1, 2],
        "constant": [0, 0, 0, 0],
    }

    assert leaking_columns(columns, sensitive) == ("same", "renamed")


@given(st.lists(st.integers(0, 2), min_size=4, max_size=7), st.permutations(range(3)), st.data())
def test_a_leak_is_a_one_to_one_relation(sensitive, renaming, data):
    """In so few rows no column of three values determines another without being equal to it."""
    column = data.draw(st.lists(st.integers(0, 2), min_size=len(sensitive), max_size=len(sensitive)))
    equal = any(
        all(names[value] == cell for value, cell in zip(sensitive, column, strict=True))
        for names in permutations(range(3))
    )
    columns = {"drawn": column, "renamed": [renaming[value] for value in sensitive]}

    found = leaking_columns({name: [*cells, "end"] for name, cells in columns.items()}, [*sensitive, None])

    assert found == (("drawn", "renamed") if equal else ("renamed",))


def test_a_column_that_determines_the_sensitive_one_is_a_leak_but_for_few_rows():
    sensitive = ["flu", "none", "none", "cold"] * 50
    finer = [place % 40 for place in range(200)]
    slips = {n: [-1 if place < n else value for place, value in enumerate(finer)] for n in (0, 1, 2, 8, 20)}
    slips["key"] = list(range(200))

    assert leaking_columns(slips, sensitive) == (0, 1, 2)


def test_a_rare_value_is_not_given_away_by_a_column_that_says_nothing():
    """One row in a hundred is wrong by any guess, so the tolerance must not let every column through."""
    sensitive = ["rare"] + ["common"] * 299
    columns = {"constant": [0] * 300, "own value there": [1] + [0] * 299, "noise": [0, 1, 2] * 100}

    assert leaking_columns(columns, sensitive) == ("own value there",)
    assert leaking_columns({"with tail": [1, 2, *[0] * 298]}, sensitive) == ()


@pytest.mark.parametrize(
    ("column", "message"),
    [([1, 2], "one value for each row"), ([[1], [2], [3]], "got 2 dimensions"), ([{}, {}, {}], "single values")],
)
def test_columns_that_cannot_be_compared_are_refused(column, message):
    with pytest.raises(InvalidParameterError, match=message):
        leaking_columns({"a": column}, ["x", "y", None])


def pairwise_higher(judge, weights, own, other):
    """E(own) less E(other) where the two are all there is, ranks written out; whole numbers in, so exact."""
    gains = [
        sum(judge.fold_performance(own)) - sum(judge.fold_performance(other)),
        judge.breach_increase(other) - judge.breach_increase(own),
        len(other) - len(own),
    ]
    return sum(weight * np.sign(round(gain, 9)) for weight, gain in zip(weights, gains, strict=True))


@given(learners(), st.sampled_from(["forward", "backward"]), st.sampled_from([(1, 1, 1), (5, 2, 1), (1, 5, 2)]))
def test_a_search_by_score_moves_one_column_at_a_time_and_never_to_a_lower_score(scores, direction, weights):
    judge = SubsetJudge(*scores)
    weights = tuple(weight / sum(weights) for weight in weights)

    found = search_by_score(judge, weights, direction=direction)

    sizes = [len(candidate.columns) for candidate in found.path]
    start, step = (judge.n_columns, -1) if direction == "backward" else (1, 1)
    assert sizes == [start + step * place for place in range(len(sizes))]
    assert found.chosen is found.path[-1]
    assert found.is_safe == (found.chosen.breach_increase <= 1e-9)
    for before, after in zip(found.path, found.path[1:], strict=False):
        own, other = before.columns, after.columns
        assert set(own) < set(other) or set(other) < set(own)
        if before.breach_increase <= 1e-9:
            assert after.breach_increase <= 1e-9
            higher = pairwise_higher(judge, weights, other, own)
            assert higher > -1e-9
            assert direction == "backward" or higher > 1e-9


@given(learners(), st.sampled_from(["forward", "backward"]))
def test_a_search_by_performance_alone_is_the_plain_greedy_wrapper(scores, direction):
    """With α out of the way and all weight on performance: on to the best neighbour while it is better, or smaller."""
    performance, attacker = scores
    judge = SubsetJudge(performance, attacker)
    everything = frozenset(range(performance.n_columns))
    rule = AcceptanceRule(10_000, allow_increase=True)

    def total(subset):
        return sum(performance.table[subset])

    present = everything if direction == "backward" else frozenset()
    while True:
        columns = sorted(present if direction == "backward" else everything - present)
        neighbours = [present ^ {column} for column in columns if present ^ {column}]
        if not neighbours:
            break
        ahead = max(neighbours, key=total)  # the first of equals
        worth_it = total(ahead) >= total(present) if direction == "backward" else total(ahead) > total(present)
        if present and not worth_it:
            break
        present = ahead

    found = search_by_score(judge, (1, 0, 0), direction=direction, rule=rule)

    assert found.chosen.columns == tuple(sorted(present))


def test_a_backward_search_goes_on_until_the_breach_is_low_enough():
    judge = SubsetJudge(AdditiveScores([5, 5, 5]), AdditiveScores([1, 2, 3]))

    stays = search_by_score(judge, (1, 0, 0))
    goes_on = search_by_score(judge, (1, 0, 0), rule=AcceptanceRule(-20))
    runs_out = search_by_score(judge, (1, 0, 0), rule=AcceptanceRule(-50))

    assert stays.chosen.columns == (0, 1, 2)
    assert stays.is_safe
    assert [found.columns for found in goes_on.path] == [(0, 1, 2), (1, 2), (1,)]
    assert goes_on.is_safe
    assert len(runs_out.chosen.columns) == 1
    assert not runs_out.is_safe


def test_a_forward_search_does_not_step_over_the_limit():
    judge = SubsetJudge(AdditiveScores([5, 4, 3]), AdditiveScores([0, 4, 1]))

    found = search_by_score(judge, (1, 0, 0), direction="forward", rule=AcceptanceRule(-20))

    assert found.chosen.columns == (0, 2)
    assert found.chosen.breach_increase == pytest.approx(100 * (11 / 15 - 1))


def test_search_by_score_reports_progress_and_refuses_other_directions():
    calls = []
    judge = SubsetJudge(AdditiveScores([0, 0, 0]))

    search_by_score(judge, progress=lambda *call: calls.append(call))

    assert calls == [(1, 2, "columns dropped"), (2, 2, "columns dropped")]
    with pytest.raises(InvalidParameterError, match="forward or backward"):
        search_by_score(judge, direction="sideways")


def test_random_orders_agree_where_every_order_leads_to_the_same_subset():
    judge = SubsetJudge(AdditiveScores([5, 0, 0]), AdditiveScores([0, 3, 3]))

    found = choices_from_random_orders(judge, n_orders=7)

    assert found.most_frequent == ((0,), 1.0)


def test_random_orders_show_that_either_of_two_equal_columns_will_do():
    """Columns 0 and 1 stand in for each other: whichever comes up first is dropped, the other has to stay."""
    table = {frozenset(subset): [9, 9, 9] if {0, 1} & set(subset) else [1, 1, 1] for subset in all_subsets(3)}
    judge = SubsetJudge(ScoresByTable(3, table))

    found = choices_from_random_orders(judge, n_orders=30, random_state=1)

    assert set(found.choices) == {(0,), (1,)}
    assert {candidate.columns for candidate in found.candidates} == {(0,), (1,), (0, 1), (0, 2), (1, 2)}
    assert found.choices == choices_from_random_orders(judge, n_orders=30, random_state=1).choices
    assert found.choices != choices_from_random_orders(judge, n_orders=30, random_state=2).choices


def test_orders_without_a_safe_subset_choose_nothing():
    calls = []
    judge = SubsetJudge(AdditiveScores([1, 1]))

    found = choices_from_random_orders(
        judge, rule=AcceptanceRule(-80), n_orders=2, progress=lambda *call: calls.append(call)
    )

    assert found.choices == (None, None)
    assert found.most_frequent == (None, 1.0)
    assert calls == [(1, 2, "random orders"), (2, 2, "random orders")]
    for n_orders in (0, 2.5, True, "2"):
        with pytest.raises(InvalidParameterError, match="n_orders must be a whole number"):
            choices_from_random_orders(judge, n_orders=n_orders)
    with pytest.raises(InvalidParameterError, match="random_state must be a whole number"):
        choices_from_random_orders(judge, random_state=-1)
