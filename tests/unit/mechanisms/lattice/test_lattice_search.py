"""Search of a lattice of hierarchy levels: ARX's optima, order among equals, limits and errors."""

import csv
import itertools
from collections import Counter
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from benchmarks.wide_lattices import OF_ARX, load_wide
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.guarantees import LDiversity, TCloseness
from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy
from sfumato.mechanisms.lattice import recoder as regrouping
from sfumato.mechanisms.lattice import search as lattice_search
from sfumato.mechanisms.lattice.bounded_search import BoundedSearch
from sfumato.mechanisms.lattice.conditions import Condition
from sfumato.mechanisms.lattice.lattice import LatticeProblem, RollUp
from sfumato.mechanisms.lattice.node_checks import Judge, NodeChecker
from sfumato.mechanisms.lattice.recoder import regroup
from sfumato.mechanisms.lattice.search import search_lattice
from sizes import IS_FULL

EIGHT = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")


def diverse(level, variant="distinct", c=None):
    """Condition of l-diversity."""
    return Condition(LDiversity(level, "s", (), variant, c))


def close(t):
    """Condition of t-closeness."""
    return Condition(TCloseness(t, "s", ()))


def adult(folder, columns, sensitive=(), target=None, **goal):
    """Cells of ARX's copy of Adult with its hierarchies."""
    with (folder / "adult-arx" / "adult.csv").open(encoding="ascii") as lines:
        rows = list(csv.DictReader(lines, delimiter=";"))
    hierarchies, coded = [], []
    for name in columns:
        with (folder / "adult-arx" / f"adult_hierarchy_{name}.csv").open(encoding="ascii") as lines:
            hierarchies.append(Hierarchy.from_rows(list(csv.reader(lines, delimiter=";"))))
        number = {value: i for i, value in enumerate(hierarchies[-1].values)}
        coded.append([number[row[name]] for row in rows])
    for name in (*sensitive, *([target] if target else [])):
        number = {value: i for i, value in enumerate(sorted({row[name] for row in rows}))}
        coded.append([number[row[name]] for row in rows])
    cells, counts = np.unique(np.array(coded, dtype=np.int32).T, axis=0, return_counts=True)
    n = len(columns)
    return LatticeProblem(
        codes=cells[:, :n],
        counts=counts,
        level_maps=tuple(tuple(h.codes) for h in hierarchies),
        shares=tuple(tuple(h.shares(level) for level in range(h.n_levels)) for h in hierarchies),
        sensitive=tuple(cells[:, n + i] for i in range(len(sensitive))),
        target=cells[:, -1] if target else None,
        **goal,
    )


def ages(counts, **goal):
    """One column of four values, in pairs on level 1 and all together on level 2."""
    maps = (np.array([0, 1, 2, 3]), np.array([0, 0, 1, 1]), np.array([0, 0, 0, 0]))
    shares = (np.full(4, 0.25), np.full(2, 0.5), np.ones(1))
    codes = np.arange(len(counts), dtype=np.int32).reshape(-1, 1)
    return LatticeProblem(codes, np.array(counts), (maps,), (shares,), **goal)


def two_columns(cells, counts, **goal):
    """Two columns of two values and a root each."""
    maps = ((np.array([0, 1]), np.array([0, 0])),) * 2
    shares = ((np.full(2, 0.5), np.ones(1)),) * 2
    return LatticeProblem(np.array(cells, dtype=np.int32), np.array(counts), maps, shares, **goal)


@pytest.mark.slow
def test_eight_columns_of_adult_give_arx_optimum(shared_data):
    problem = adult(shared_data, EIGHT, k=5, max_suppressed_fraction=0.015)
    result = search_lattice(problem)
    sizes = np.bincount(result.classes[result.classes >= 0], weights=problem.counts[result.classes >= 0])

    assert result.levels == (0, 3, 0, 2, 3, 1, 1, 1)
    assert result.n_suppressed == 421
    assert result.loss == pytest.approx(0.34441460899, abs=1e-9)
    assert result.proven
    assert result.bound == result.loss
    assert int(problem.counts[result.classes < 0].sum()) == 421
    assert sizes[sizes > 0].min() >= 5


@pytest.mark.slow
def test_nine_columns_of_adult_give_arx_optimum(shared_data):
    result = search_lattice(adult(shared_data, (*EIGHT, "salary-class"), k=5, max_suppressed_fraction=0.015))

    assert result.n_suppressed == 381
    assert result.loss == pytest.approx(0.3173016781, abs=1e-9)
    assert result.proven


@pytest.mark.slow
def test_distinct_diversity_of_occupation_gives_arx_optimum(shared_data):
    goal = {"k": 5, "max_suppressed_fraction": 0.015, "conditions": (diverse(3),)}
    result = search_lattice(adult(shared_data, EIGHT[:-1], sensitive=("occupation",), **goal))

    assert result.loss == pytest.approx(0.2737319871, abs=1e-9)
    assert result.proven


@pytest.mark.slow
def test_regrouping_releases_most_of_what_adult_loses(shared_data):
    problem = adult(shared_data, EIGHT, k=5, max_suppressed_fraction=0.015)
    levels, rounds = regroup(problem, search_lattice(problem))
    held = rounds >= 0

    assert int(problem.counts[~held].sum()) < 5
    assert len(levels) > 1
    for number, node in enumerate(levels):
        here = rounds == number
        columns = zip(problem.level_maps, node, problem.codes[here].T, strict=True)
        labels = np.column_stack([maps[level][codes] for maps, level, codes in columns])
        _, classes = np.unique(labels, axis=0, return_inverse=True)
        assert np.bincount(classes.ravel(), problem.counts[here]).min() >= 5


def test_loss_is_the_share_of_the_hierarchy_and_one_where_suppressed():
    result = search_lattice(ages([1, 5, 5, 5], k=2, max_suppressed_fraction=0.1))

    assert (result.levels, result.n_suppressed) == ((0,), 1)
    assert result.loss == pytest.approx(((15 * 0.25 + 1) / 16 - 0.25) / 0.75)
    assert result.classes.tolist() == [-1, 1, 2, 3]


@pytest.mark.parametrize(("fraction", "levels"), [(0.29, (0,)), (0.28, (1,))])
def test_limit_of_suppressed_rows_is_taken_as_written(fraction, levels):
    """0.29 · 100 is 28.999… in floating point, and 29 rows may go."""
    assert search_lattice(ages([29, 31, 40], k=30, max_suppressed_fraction=fraction)).levels == levels


def test_of_equal_losses_the_first_column_stays_low():
    """Either column alone must go to its root; the two cost the same."""
    result = search_lattice(two_columns([[0, 0], [0, 1], [1, 0], [1, 1]], [1, 1, 1, 1], k=2))

    assert result.levels == (0, 1)


def test_of_equal_losses_the_lower_node_wins():
    """With all weight on the first column, whatever the second one does costs nothing."""
    problem = two_columns([[0, 0], [0, 1], [1, 0], [1, 1]], [1, 1, 1, 1], weights=(1.0, 0.0))

    assert search_lattice(problem).levels == (0, 0)


def test_weights_decide_which_column_is_generalized():
    problem = two_columns([[0, 0], [0, 1], [1, 0], [1, 1]], [1, 1, 1, 1], k=2, weights=(1.0, 5.0))

    assert search_lattice(problem).levels == (1, 0)


def test_a_goal_out_of_reach_names_the_level_of_the_highest_node():
    with pytest.raises(PrivacyNotAchievableError, match="20-anonymity") as caught:
        search_lattice(ages([1, 2, 3, 4], k=20))

    assert caught.value.best_level == 10


def test_a_diversity_out_of_reach_names_the_level_of_the_highest_node():
    problem = ages([1, 2, 3, 4], conditions=(diverse(3),), sensitive=(np.array([0, 1, 1, 0]),))
    with pytest.raises(PrivacyNotAchievableError, match="distinct 3-diversity") as caught:
        search_lattice(problem)

    assert caught.value.best_level == 2


@pytest.mark.slow
def test_a_search_out_of_time_gives_a_bound_below_the_optimum(shared_data):
    problem = adult(shared_data, EIGHT, k=5, max_suppressed_fraction=0.015)
    ticks = itertools.count()
    result = search_lattice(problem, max_seconds=20.0, clock=lambda: float(next(ticks)))

    assert not result.proven
    assert 0 <= result.bound <= 0.34441460899 <= result.loss + 1e-9
    assert result.n_checked < 100


@pytest.mark.slow
def test_a_search_of_a_large_lattice_keeps_its_bound_below_the_optimum(shared_data):
    problem = adult(shared_data, EIGHT[:-1], k=5, max_suppressed_fraction=0.015)
    exact = search_lattice(problem)
    with patch.object(lattice_search, "MAX_NODES", 1):
        result = search_lattice(problem, max_seconds=1.0)

    assert result.bound <= exact.loss + 1e-9 <= result.loss + 2e-9
    assert result.n_suppressed <= problem.max_suppressed


@pytest.mark.parametrize(
    "condition",
    [diverse(1.9, "entropy"), diverse(2, "recursive", c=2.0), close(0.2)],
    ids=["entropy", "recursive", "closeness"],
)
def test_a_diverse_class_joined_with_a_uniform_one_can_violate(condition):
    """Why these are not declared monotone with suppression: the 12 rows of one class violate below, 4 more above."""
    maps = ((np.array([0, 1, 2]), np.array([0, 0, 1])),)
    shares = ((np.full(3, 1 / 3), np.array([2, 1]) / 3),)
    problem = LatticeProblem(
        codes=np.array([[0], [0], [1], [2], [2]]),
        counts=np.array([2, 2, 12, 20, 20]),
        level_maps=maps,
        shares=shares,
        max_suppressed_fraction=0.9,
        conditions=(condition,),
        sensitive=(np.array([0, 1, 1, 0, 1]),),
    )
    checker = NodeChecker(problem)

    assert not condition.guarantee.is_kept_by_growing
    assert checker.check((0,)).n_suppressed == 12
    assert checker.check((1,)).n_suppressed == 16


@pytest.mark.slow
def test_kept_tables_change_no_classes(shared_data):
    problem = adult(shared_data, EIGHT[:4], k=5)
    upwards = RollUp(problem)

    for levels in [(0, 1, 0, 0), (0, 2, 0, 1), (1, 3, 0, 1), (1, 4, 1, 2), (0, 0, 1, 0)]:
        assert upwards.table(levels).sizes.tolist() == RollUp(problem).table(levels).sizes.tolist()


@pytest.mark.parametrize(
    ("name", "goal"),
    [
        ("k", {"k": 0}),
        ("max_suppressed_fraction", {"max_suppressed_fraction": 1.01}),
        ("max_suppressed_fraction", {"max_suppressed_fraction": -0.1}),
        ("column", {"conditions": (diverse(2),)}),
        ("level_maps", {"level_maps": ()}),
        ("counts", {"counts": np.array([], dtype=np.int64), "codes": np.zeros((0, 1), dtype=np.int32)}),
        ("counts", {"counts": np.array([1, 0, 2, 3])}),
        ("codes", {"codes": np.zeros((4, 0), dtype=np.int32)}),
    ],
)
def test_what_a_problem_refuses(name, goal):
    with pytest.raises(InvalidParameterError, match=name):
        replace(ages([1, 2, 3, 4]), **goal)


@pytest.mark.parametrize(
    ("name", "goal"),
    [
        ("loss", {"loss": "beauty"}),
        ("weights", {"weights": (1.0, 2.0)}),
        ("weights", {"weights": (0.0,)}),
        ("weights", {"weights": (float("nan"),)}),
        ("weights", {"weights": (1.0,), "loss": "discernibility"}),
        ("target", {"loss": "classification"}),
    ],
)
def test_what_a_search_refuses(name, goal):
    with pytest.raises(InvalidParameterError, match=name):
        search_lattice(ages([1, 2, 3, 4], **goal))


def test_a_search_needs_time():
    with pytest.raises(InvalidParameterError, match="max_seconds"):
        search_lattice(ages([1, 2, 3, 4]), max_seconds=0)


def test_regrouping_refuses_conditions_that_depend_on_what_else_is_released():
    problem = ages([1, 2, 3, 4], conditions=(close(0.9),), sensitive=(np.array([0, 1, 1, 0]),))
    with pytest.raises(InvalidParameterError, match="closeness"):
        regroup(problem, search_lattice(problem))


def test_reprs_show_counts_only():
    problem = ages([1, 2, 3, 4], k=2)
    result = search_lattice(problem)

    assert repr(problem) == "LatticeProblem(4 cells, 3 nodes, k=2, loss='loss')"
    assert repr(result).startswith("LatticeResult(levels=[1], loss=0.333333 (the optimum), 0 rows suppressed")


@pytest.mark.parametrize(("seconds_a_search", "limits"), [(3.0, [5.0, 2.0]), (5.0, [5.0])])
def test_regrouping_shares_one_time_limit_among_all_its_searches(seconds_a_search, limits):
    problem = ages([2, 2, 30, 30], k=3, max_suppressed_fraction=0.1)
    first, now, given = search_lattice(problem), [100.0], []

    def searched(part, max_seconds=None):
        given.append(max_seconds)
        now[0] += seconds_a_search
        raise PrivacyNotAchievableError("k", best_level=None)

    with patch.object(regrouping, "search_lattice", searched), patch.object(regrouping, "time") as clock:
        clock.monotonic.side_effect = lambda: now[0]
        levels, rounds = regroup(problem, first, max_seconds=5.0)

    assert given == limits
    assert levels == [first.levels]
    assert problem.counts[rounds < 0].sum() == first.n_suppressed == 4


def out_after(n_calls):
    """Clock that stands still for some readings, and then is far beyond any limit."""
    readings = itertools.count()
    return lambda: 0.0 if next(readings) < n_calls else 1e9


def wide_problem(n_columns, n_rows=60, **goal):
    """Many columns of eight values each, in four levels."""
    rng = np.random.default_rng(n_columns)
    maps = (np.arange(8), np.arange(8) // 2, np.arange(8) // 4, np.zeros(8, dtype=np.intp))
    shares = tuple(np.bincount(m) / 8 for m in maps)
    codes = rng.integers(0, 8, size=(n_rows, n_columns)).astype(np.int32)
    counts = np.ones(n_rows, dtype=np.int64)
    return LatticeProblem(codes, counts, (maps,) * n_columns, (shares,) * n_columns, k=3, **goal)


TIMED = {
    "exact": (4_000_000, lambda: wide_problem(4, max_suppressed_fraction=0.1)),
    "bounded": (1, lambda: wide_problem(4, max_suppressed_fraction=0.1)),
    "bounded, all rows": (1, lambda: wide_problem(3, max_suppressed_fraction=1.0)),
    "wide": (1, lambda: wide_problem(40, max_suppressed_fraction=0.3)),
    "diversity": (
        1,
        lambda: replace(
            wide_problem(3, max_suppressed_fraction=0.2),
            conditions=(diverse(2, "entropy"),),
            sensitive=(np.arange(60) % 3,),
        ),
    ),
    "classes": (1, lambda: wide_problem(3, max_suppressed_fraction=0.2, loss="discernibility")),
}


MOMENTS = [*range(1, 150), *range(150, 3000, 97)]
if not IS_FULL:
    MOMENTS = [*MOMENTS[:12], *MOMENTS[12::5]]


@pytest.mark.slow
@pytest.mark.parametrize("case", TIMED)
def test_time_that_runs_out_at_any_moment_leaves_a_valid_answer(case):
    """The clock jumps after 1, 2, 3, … readings: each a search that stops somewhere else."""
    most_nodes, make = TIMED[case]
    problem = make()
    losses = []
    with patch.object(lattice_search, "MAX_NODES", most_nodes):
        for n_calls in MOMENTS:
            result = search_lattice(problem, max_seconds=60.0, clock=out_after(n_calls))
            released = result.classes >= 0
            sizes = np.bincount(result.classes[released], weights=problem.counts[released])

            assert result.n_suppressed == int(problem.counts[~released].sum()) <= problem.max_suppressed
            assert sizes[sizes > 0].min() >= 3
            assert result.bound <= result.loss
            losses.append(result.loss)
            if result.proven:
                break

    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("most_nodes", [1, 4_000_000], ids=["bounded", "exact"])
def test_a_goal_out_of_reach_is_said_however_little_time_there_is(most_nodes):
    problem = replace(
        wide_problem(3), conditions=(diverse(3),), sensitive=(np.arange(60) % 2,), max_suppressed_fraction=1.0
    )
    with patch.object(lattice_search, "MAX_NODES", most_nodes):
        for n_calls in range(1, 60):
            with pytest.raises(PrivacyNotAchievableError, match="distinct 3-diversity"):
                search_lattice(problem, max_seconds=60.0, clock=out_after(n_calls))


@pytest.mark.slow
@pytest.mark.parametrize("n_columns", [30, 100, 300])
def test_the_clock_is_asked_before_every_step_at_any_width(n_columns):
    """Between two readings no more than one node is looked at, and few are considered; after time is up none."""
    problem = wide_problem(n_columns, max_suppressed_fraction=0.2)
    work = Counter()
    most = Counter()
    readings = itertools.count()

    def clock():
        for name, n in work.items():
            most[name] = max(most[name], n)
        work.clear()
        return 0.0 if next(readings) < 4000 else 1e9

    def counted(name, function):
        def call(*args, **more):
            work[name] += 1
            return function(*args, **more)

        return call

    with (
        patch.object(RollUp, "table", counted("tables", RollUp.table)),
        patch.object(BoundedSearch, "is_open", counted("considered", BoundedSearch.is_open)),
    ):
        search_lattice(problem, max_seconds=60.0, clock=clock)

    assert next(readings) > 4000
    assert most["tables"] == 1
    assert most["considered"] <= 2


def checks_clock(n_checks):
    """Clock that goes by the nodes looked at, and a context in which it runs."""
    made = itertools.count()
    now = [0]
    plain = Judge.judge

    def judge(self, table):
        now[0] = 1000 * next(made)  # far above what the integer programs take
        return plain(self, table)

    return patch.object(Judge, "judge", judge), lambda: float(now[0]), 1000.0 * n_checks


@pytest.mark.slow
@pytest.mark.usefixtures("shared_data")
@pytest.mark.parametrize("name", ["creditcard", "mach2019"])
def test_a_looser_limit_gives_no_worse_answer_on_wide_tables(name):
    problem, losses = load_wide(name), []
    for fraction in (0.0, 0.015, 0.1, 0.2, 0.9999, 1.0):
        counting, clock, seconds = checks_clock(200)
        with counting:
            found = search_lattice(replace(problem, max_suppressed_fraction=fraction), seconds, clock=clock)
        losses.append(found.loss)

    assert losses == sorted(losses, reverse=True)
    assert round(losses[1], 3) <= OF_ARX[name, 0.015]
    assert round(losses[3], 3) <= OF_ARX[name, 0.2]
    assert losses[-1] <= losses[3] < 0.67


@pytest.mark.parametrize(("bound", "is_told"), [(0.02, False), (0.29, False), (0.31, True), (0.6, True)])
def test_a_bound_that_says_nothing_is_not_told(bound, is_told):
    result = replace(search_lattice(ages([1, 2, 3, 4], k=2)), loss=0.6, proven=False, bound=bound)

    assert (result.telling_bound is not None) == is_told
    assert (f"at least {bound:.6g}" in repr(result)) == is_told
    assert ("optimum unknown" in repr(result)) != is_told


def test_all_rows_may_be_suppressed_but_one():
    problem = ages([1, 2, 3, 4], max_suppressed_fraction=1.0)

    assert problem.max_suppressed == 9
    with pytest.raises(PrivacyNotAchievableError, match="at most 9 of 10 rows"):
        search_lattice(replace(problem, conditions=(diverse(2),), sensitive=(np.zeros(4, dtype=np.int64),)))


def test_regrouping_without_time_left_changes_nothing():
    problem = ages([2, 2, 30, 30], k=3, max_suppressed_fraction=0.1)
    first = search_lattice(problem)

    assert (regroup(problem, first)[1] >= 0).all()
    assert problem.counts[regroup(problem, first, max_seconds=-1.0)[1] < 0].sum() == 4
