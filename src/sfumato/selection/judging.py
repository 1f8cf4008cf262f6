"""How a set of columns does for recipient and attacker, fold by fold; every set is scored once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.contract import Progress
from sfumato.errors import InvalidParameterError
from sfumato.learning.fold_scores import SubsetScores
from sfumato.selection.significance import FoldTest, compare_folds
from sfumato.selection.tradeoff import breach_increase_percent

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
    test, test_train_ratio
        Of :func:`sfumato.selection.significance.compare_folds`.

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
        test_train_ratio: float | None = None,
    ) -> None:
        if performance.n_columns < 1:
            raise InvalidParameterError("performance", "it has none", allowed="scores of at least one column")
        if attacker is not None and attacker.n_columns != performance.n_columns:
            problem = f"got {attacker.n_columns:,} and {performance.n_columns:,}"
            raise InvalidParameterError("attacker", problem, allowed="scores of as many columns as performance has")
        self.n_columns = performance.n_columns
        self.test = test
        self.test_train_ratio = test_train_ratio
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
        folds = self.fold_performance(columns)
        ratio = self.test_train_ratio
        return compare_folds(folds, self._baseline_folds, test=self.test, test_train_ratio=ratio).p_value

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
