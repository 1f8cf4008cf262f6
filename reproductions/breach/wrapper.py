"""The wrapper that the paper compares with (Section 4.3): Weka's ``WrapperSubsetEval`` and ``BestFirst``, re-made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from reproductions.breach.printed import BAYES, TREE, Names
from reproductions.breach.scoring import CUT, Job, problem_of, scores_of
from reproductions.breach.weka_bayes import WekaBayesScores
from reproductions.breach.weka_folds import repeated_weka_folds
from sfumato.learning.fold_scores import SubsetScores
from sfumato.learning.trained_scores import TreeScores
from sfumato.mechanisms.breach.best_first import WrapperDirection, best_first_search, repeated_score
from sfumato.mechanisms.breach.problem import BreachProblem
from sfumato.mechanisms.breach.subset_evaluation import SubsetJudge

N_FOLDS = MOST_TIMES = 5
"""Weka's defaults: five folds, five times at most."""
DIRECTIONS: tuple[WrapperDirection, ...] = ("forward", "backward")


@dataclass(frozen=True)
class WrapperJob:
    """Learner of the recipient and the attacker, and whether columns are added or dropped. Pima without Preg."""

    learner: str
    direction: WrapperDirection


@dataclass(frozen=True)
class Wrapped:
    """What the wrapper selects, judged as the paper's subsets are: on the ten folds of Weka, in percent."""

    job: WrapperJob
    selected: Names
    baseline: float
    performance: float
    p_value: float
    breach: float


WRAPPER_JOBS = [WrapperJob(learner, direction) for learner in (TREE, BAYES) for direction in DIRECTIONS]


def wrapped(job: WrapperJob) -> Wrapped:
    """Select columns of Pima, and measure what they give to the recipient and to an attacker who wants Preg."""
    problem = problem_of("Pima", CUT)
    selected = weka_wrapper(problem, weka_cross_validations(problem, job.learner), job.direction)
    judge = SubsetJudge(*scores_of(problem, Job("Pima", job.learner, CUT, seed=None)), test="paired")
    own = judge.judge([place for place, name in enumerate(problem.names) if name in selected], "wrapper")
    return Wrapped(
        job, selected, 100 * judge.baseline.performance, 100 * own.performance, own.p_value, own.breach_increase
    )


def weka_cross_validations(problem: BreachProblem, learner: str) -> list[SubsetScores]:
    """Scores in cross-validations that follow one another on Weka's folds of seed 1."""
    kind: Callable[..., SubsetScores] = TreeScores if learner == TREE else WekaBayesScores
    times = repeated_weka_folds(problem.target, N_FOLDS, MOST_TIMES)
    return [kind(problem.columns, problem.target, folds) for folds in times]


def weka_wrapper(problem: BreachProblem, times: Sequence[SubsetScores], direction: WrapperDirection) -> Names:
    """Columns that the wrapper selects."""
    found = best_first_search(partial(repeated_score, times), len(problem.columns), direction=direction)
    return frozenset(problem.names[column] for column in found.columns)
