"""The wrapper that the paper compares with (Section 4.3): Weka's ``WrapperSubsetEval`` and ``BestFirst``, re-made."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from reproductions.breach.printed import TREE, Names
from reproductions.breach.weka_folds import repeated_weka_folds
from sfumato.learning.fold_scores import SubsetScores
from sfumato.learning.naive_bayes import NaiveBayesScores
from sfumato.learning.trained_scores import TreeScores
from sfumato.mechanisms.breach.best_first import WrapperDirection, best_first_search, repeated_score
from sfumato.mechanisms.breach.problem import BreachProblem

N_FOLDS = MOST_TIMES = 5
"""Weka's defaults: five folds, five times at most."""


def weka_cross_validations(problem: BreachProblem, learner: str) -> list[SubsetScores]:
    """Scores in cross-validations that follow one another on Weka's folds of seed 1."""
    kind = TreeScores if learner == TREE else NaiveBayesScores
    times = repeated_weka_folds(problem.target, N_FOLDS, MOST_TIMES)
    return [kind(problem.columns, problem.target, folds) for folds in times]


def weka_wrapper(problem: BreachProblem, times: Sequence[SubsetScores], direction: WrapperDirection) -> Names:
    """Columns that the wrapper selects."""
    found = best_first_search(partial(repeated_score, times), len(problem.columns), direction=direction)
    return frozenset(problem.names[column] for column in found.columns)
