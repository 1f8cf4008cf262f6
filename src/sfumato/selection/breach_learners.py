"""Learners of recipients and attackers: by name or as a scikit-learn classifier, ready to score sets of columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from joblib import cpu_count  # type: ignore[import-untyped]  # no types upstream
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sfumato.contract import Progress
from sfumato.errors import InvalidParameterError
from sfumato.guarantees.estimated import BREACH_ATTACKERS, attackers_in
from sfumato.learning.classifier_scores import ClassifierScores, feature_matrix
from sfumato.learning.fold_scores import StrongestScores, SubsetScores, checked_workers, end_workers, folds
from sfumato.learning.likelihoods import Numeric
from sfumato.learning.naive_bayes import NaiveBayesScores
from sfumato.learning.performance import Metric
from sfumato.learning.tree_scores import TreeScores
from sfumato.selection.breach_problem import BreachProblem

LEARNERS = tuple(BREACH_ATTACKERS)
STEPS = 1000
CELLS_FOR_PROCESSES = 200_000  # with fewer, starting processes takes as long as they save

Learner = Any
"""One of :data:`LEARNERS`, or a scikit-learn classifier."""


def checked_learner(name: str, given: object) -> Learner:
    """Return a learner, or say that it is none."""
    is_model = not isinstance(given, type | str) and hasattr(given, "get_params") and is_classifier(given)
    if is_model or (isinstance(given, str) and given in LEARNERS):
        return given
    got = f"got {given!r}" if isinstance(given, str) else f"got an object of type {type(given).__name__}"
    raise InvalidParameterError(name, got, allowed=f"one of {', '.join(LEARNERS)}, or in Python a classifier")


def checked_attackers(given: object) -> tuple[Learner, ...]:
    """Return the attackers of which the strongest counts, or say that some are none."""
    listed = list(given) if isinstance(given, list | tuple) else [given]
    if listed == ["strongest"]:
        return attackers_in("strongest")
    parts = [part for one in listed for part in (one.split("+") if isinstance(one, str) else [one])]
    found = [checked_learner("attacker", part) for part in parts]
    names = [part for part in found if isinstance(part, str)]
    if not found or len(set(names)) < len(names):
        problem = "got one twice" if found else "got none"
        raise InvalidParameterError("attacker", problem, allowed="one, or several that differ")
    return tuple(found)


def attacker_by_name(given: object) -> str:
    """Name an attacker, or several of which the strongest counts, as a guarantee does; refuse what has no name."""
    attackers = checked_attackers(given)
    if not all(isinstance(attacker, str) for attacker in attackers):
        allowed = f"given by name in a release ({', '.join(LEARNERS)}), so that the audit can train it too"
        raise InvalidParameterError("attacker", "got a classifier", allowed=allowed, hint="fit takes any classifier")
    return "strongest" if isinstance(given, str) and given == "strongest" else "+".join(attackers)


def needs_training(learner: Learner) -> bool:
    """Whether every set of columns costs a training of its own."""
    return not (isinstance(learner, str) and learner.startswith("naive-bayes"))


class LearnerScores:
    """Builds the scores of learners on one table, with the same folds for the same column to predict.

    A context whose end is that of its worker processes.

    Parameters
    ----------
    problem : BreachProblem
    metric : {"accuracy", "balanced_accuracy", "auc"}
    n_folds : int
    seed : int
        Of the folds, and of learners that draw numbers.
    n_workers : int or None
        Processes to train in. None is every core, or this process alone for a small table.
    progress : callable or None
        Called after every training.
    """

    def __init__(
        self,
        problem: BreachProblem,
        metric: Metric,
        n_folds: int,
        seed: int,
        n_workers: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._problem = problem
        self._metric = metric
        self._n_folds = n_folds
        self._seed = seed
        self._progress = progress
        is_large = len(problem.columns) * len(problem.target) >= CELLS_FOR_PROCESSES
        self._n_workers = checked_workers(n_workers) if n_workers is not None else cpu_count() if is_large else 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._n_workers > 1:
            end_workers()

    @cached_property
    def _matrix(self) -> tuple[NDArray[np.float64], list[list[int]]]:
        return feature_matrix(self._problem.columns)

    def of(self, learners: Sequence[Learner], target: NDArray[np.intp]) -> SubsetScores:
        """Scores for a column to predict, of the strongest where there are several learners."""
        fold_of_row = folds(target, self._n_folds, self._seed)
        found = [self._of_one(learner, target, fold_of_row) for learner in learners]
        return found[0] if len(found) == 1 else StrongestScores(found)

    def _of_one(self, learner: Learner, target: NDArray[np.intp], fold_of_row: NDArray[np.intp]) -> SubsetScores:
        columns, metric = self._problem.columns, self._metric
        if not needs_training(learner):
            numeric: Numeric = "gaussian" if learner == "naive-bayes" else "discretized"
            return NaiveBayesScores(columns, target, fold_of_row, metric, numeric)
        if isinstance(learner, str) and learner == "c45":
            return TreeScores(columns, target, fold_of_row, metric, self._n_workers, self._progress)
        X, groups = self._matrix
        model = _classifier(learner, self._seed)
        return ClassifierScores(X, groups, model, target, fold_of_row, metric, self._n_workers, self._progress)


def _classifier(learner: Learner, seed: int) -> Any:
    """Return an untrained classifier; what it draws depends on the seed unless it has one of its own."""
    if learner == "logistic-regression":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=STEPS))
    if learner == "random-forest":
        return RandomForestClassifier(random_state=seed)
    if learner == "gradient-boosting":
        return HistGradientBoostingClassifier(early_stopping=False, random_state=seed)
    model = clone(learner)
    undecided = {
        name: seed
        for name, value in model.get_params().items()
        if name.rpartition("__")[2] == "random_state" and value is None
    }
    return model.set_params(**undecided)
