"""How a set of columns does for recipient and attacker, fold by fold; every set is scored once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from joblib import cpu_count  # type: ignore[import-untyped]  # no types upstream
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sfumato.errors import InvalidParameterError
from sfumato.guarantees.estimated import BREACH_ATTACKERS, attackers_in
from sfumato.learning.fold_scores import (
    FoldTest,
    Metric,
    StrongestScores,
    SubsetScores,
    checked_workers,
    compare_folds,
    end_workers,
    folds,
)
from sfumato.learning.naive_bayes import NaiveBayesScores, Numeric
from sfumato.learning.trained_scores import ClassifierScores, TreeScores, feature_matrix
from sfumato.mechanisms.breach.problem import BreachProblem
from sfumato.mechanisms.breach.tradeoff import breach_increase_percent
from sfumato.progress import Progress

FoldScores = NDArray[np.float64]
RankedList = Literal["performance", "privacy"]


@dataclass(frozen=True)
class Candidate:
    """A subset of columns, what it is good for and what it gives away.

    Parameters
    ----------
    columns : tuple of int
        Ascending.
    fold_performance : tuple of float
        Perf(S) fold by fold.
    performance : float
        Its mean.
    p_value : float
        Of the test against the baseline over the folds.
    breach_increase : float
        PBI(S) in percent; below 0 the attacker does worse than with all columns.
    found_by : tuple of str
        Searches that came to it.
    """

    columns: tuple[int, ...]
    fold_performance: tuple[float, ...]
    performance: float
    p_value: float
    breach_increase: float
    found_by: tuple[str, ...] = ()


class SubsetJudge:
    """Performance and breach of subsets of columns against the baseline of all columns, each asked for once.

    Parameters
    ----------
    performance : SubsetScores
        Scores of the recipient's learner for the target.
    attacker : SubsetScores or None
        Scores of the attacker's learner for the sensitive column; None if that is the target (C = SA).
    test
        Of :func:`sfumato.learning.fold_scores.compare_folds`.

    Attributes
    ----------
    baseline : Candidate
        All columns.
    """

    def __init__(
        self,
        performance: SubsetScores,
        attacker: SubsetScores | None = None,
        *,
        test: FoldTest = "corrected",
    ) -> None:
        if performance.n_columns < 1:
            raise InvalidParameterError("performance", "it has none", allowed="scores of at least one column")
        if attacker is not None and attacker.n_columns != performance.n_columns:
            problem = f"got {attacker.n_columns:,} and {performance.n_columns:,}"
            raise InvalidParameterError("attacker", problem, allowed="scores of as many columns as performance has")
        self.n_columns = performance.n_columns
        self.test = test
        self._performance = _Remembered(performance)
        self._attacker = self._performance if attacker is None else _Remembered(attacker)
        everything = tuple(range(self.n_columns))
        self._baseline_folds = self._performance.scores(everything)
        self._baseline_attack = float(self._attacker.scores(everything).mean())
        self.baseline = self.judge(everything, "baseline")

    def fold_performance(self, columns: Sequence[int]) -> FoldScores:
        """Perf(S) fold by fold."""
        return self._performance.scores(columns)

    def breach_increase(self, columns: Sequence[int]) -> float:
        """PBI(S) in percent."""
        return breach_increase_percent(float(self._attacker.scores(columns).mean()), self._baseline_attack)

    def p_value(self, columns: Sequence[int]) -> float:
        """P-value of the difference of Perf(S) from the baseline."""
        return compare_folds(self.fold_performance(columns), self._baseline_folds, test=self.test).p_value

    def judge(self, columns: Sequence[int], found_by: str) -> Candidate:
        """Describe a subset by all that is compared."""
        folds = self.fold_performance(columns)
        return Candidate(
            tuple(sorted(columns)),
            tuple(folds.tolist()),
            float(folds.mean()),
            self.p_value(columns),
            self.breach_increase(columns),
            (found_by,),
        )

    def prepare_without_each(self, columns: Sequence[int], progress: Progress | None = None) -> None:
        """Ask both learners for the subset without each of its columns, which some can do faster together."""
        n_learners = 1 if self._attacker is self._performance else 2
        for place, learner in enumerate((self._performance, self._attacker)[:n_learners]):
            learner.prepare_without_each(columns)
            if progress is not None:
                progress((place + 1) * len(columns), n_learners * len(columns), "subsets without one column")

    def losses(self) -> tuple[FoldScores, FoldScores]:
        """By how much the mean of performance and of attack falls without each column alone."""
        columns = range(self.n_columns)
        rest = [tuple(other for other in columns if other != column) for column in columns]
        performance = self.baseline.performance - np.array([self.fold_performance(left).mean() for left in rest])
        attack = self._baseline_attack - np.array([self._attacker.scores(left).mean() for left in rest])
        return performance, attack


class _Remembered:
    """Scores of a learner, by subset."""

    def __init__(self, source: SubsetScores) -> None:
        self._source = source
        self._known: dict[tuple[int, ...], FoldScores] = {}

    def scores(self, columns: Sequence[int]) -> FoldScores:
        subset = tuple(sorted(columns))
        if subset not in self._known:
            self._learn(subset, self._source.scores(subset))
        return self._known[subset]

    def prepare_without_each(self, columns: Sequence[int]) -> None:
        subset = tuple(sorted(columns))
        rests = [tuple(other for other in subset if other != column) for column in subset]
        if all(rest in self._known for rest in rests):
            return
        for rest, scores in zip(rests, self._source.without_each(subset), strict=True):
            if rest not in self._known:
                self._learn(rest, scores)

    def _learn(self, subset: tuple[int, ...], scores: FoldScores) -> None:
        if not np.isfinite(scores).all():
            problem = f"some are not, for {len(subset):,} columns"
            raise InvalidParameterError("scores", problem, allowed="finite in every fold")
        self._known[subset] = scores


# Learners of recipients and attackers: by name or as a scikit-learn classifier, ready to score sets of columns.


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
        fold_of_row = folds(target, self._n_folds, self._seed, self._problem.persons)
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
