"""What a classifier says about held-out rows, and how right it is: by fold, by class, and over all thresholds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_curve
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # comes with scikit-learn

from sfumato.evaluation.encoding import Matrix
from sfumato.evaluation.folds import Codes
from sfumato.learning.performance import area_under_curve
from sfumato.selection.significance import compare_folds

Numbers = NDArray[np.float64]
CONFIDENCE = 0.95
MOST_POINTS = 100


@dataclass(frozen=True, eq=False)
class HeldOutFold:
    """Test rows of one fold: their classes, the predicted ones, and the evidence for each class (rows × classes)."""

    target: Codes
    predicted: Codes
    evidence: Numbers

    def accuracy(self) -> float:
        """Share of rows predicted right."""
        return float((self.predicted == self.target).mean())

    def recalls(self) -> Numbers:
        """Share of each class predicted right; not-a-number for a class without rows."""
        n_classes = self.evidence.shape[1]
        sizes = np.bincount(self.target, minlength=n_classes)
        right = np.bincount(self.target[self.predicted == self.target], minlength=n_classes)
        return np.where(sizes > 0, right / np.maximum(sizes, 1), np.nan)

    def balanced_accuracy(self) -> float:
        """Mean recall of the classes that have rows."""
        return float(np.nanmean(self.recalls()))

    def area(self) -> float:
        """Area under the ROC curve; of several classes the mean over each against the rest.

        Only classes with rows are averaged. Not-a-number where all rows are of one class.
        """
        there = np.unique(self.target).tolist()
        if len(there) < 2:
            return float("nan")
        positive = there[1:] if self.evidence.shape[1] == 2 else there
        return float(np.mean([area_under_curve(self.evidence[:, c], self.target == c) for c in positive]))


def held_out_fold(
    classifier: Any, train: tuple[Matrix, Codes], test: tuple[Matrix, Codes], n_classes: int
) -> HeldOutFold:
    """Train a classifier on encoded rows with their classes and ask it about others.

    Where all training rows are of one class, that class is predicted. Evidence is a probability or, where there is
    none, the value of the decision function; a class that the training rows do not have has less than any other.
    """
    rows, target = test
    has_classes = len(np.unique(train[1])) > 1
    model = classifier if has_classes else DummyClassifier(strategy="prior")
    with warnings.catch_warnings(), _threads().limit(limits=1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # sized for speed
        model.fit(*train)
        evidence = np.full((len(rows), n_classes), -np.inf)
        evidence[:, model.classes_] = _evidence(model, rows)
        return HeldOutFold(target, np.asarray(model.predict(rows), dtype=np.int32), evidence)


@cache
def _threads() -> Any:
    """Thread pools of this process; more than one thread is slow on a busy machine, and may round otherwise."""
    return ThreadpoolController()


def _evidence(model: Any, test: Matrix) -> Numbers:
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(test), dtype=np.float64)
    found = np.asarray(model.decision_function(test), dtype=np.float64)
    return found if found.ndim == 2 else np.column_stack([-found, found])


@dataclass(frozen=True)
class Estimate:
    """Mean over folds and its 95 % interval, cut at 0 and 1; ``folds`` holds one number a fold, or None."""

    mean: float
    low: float
    high: float
    folds: tuple[float | None, ...]

    def to_dict(self) -> dict[str, float]:
        """Plain data."""
        return {"mean": self.mean, "low": self.low, "high": self.high}


def estimate(of_folds: list[float]) -> Estimate | None:
    """Average over the folds in which there is a number; ``None`` if there is none.

    The interval is that of the corrected resampled t-test, see :func:`sfumato.selection.significance.compare_folds`:
    training parts overlap, so the folds vary less than independent samples would. One fold alone tells nothing of the
    spread, and its interval is from 0 to 1.

    Examples
    --------
    >>> found = estimate([0.8, 0.7, 0.9, 0.8])
    >>> round(found.mean, 3), round(found.low, 3), round(found.high, 3)
    (0.8, 0.602, 0.998)
    """
    known = np.array([number for number in of_folds if not np.isnan(number)])
    if not len(known):
        return None
    mean, low, high = float(known.mean()), 0.0, 1.0
    if len(known) > 1:
        compared = compare_folds(known, np.zeros(len(known)), test_train_ratio=1 / (len(of_folds) - 1))
        margin = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(known) - 1)) * compared.standard_error
        low, high = max(mean - margin, 0.0), min(mean + margin, 1.0)
    return Estimate(mean, low, high, tuple(None if np.isnan(number) else number for number in of_folds))


@dataclass(frozen=True)
class RocCurve:
    """Points of the ROC curve of all held-out rows together, from (0, 0) to (1, 1)."""

    false_positive: tuple[float, ...]
    true_positive: tuple[float, ...]

    def to_dict(self) -> dict[str, list[float]]:
        """Plain data."""
        return {"false_positive": list(self.false_positive), "true_positive": list(self.true_positive)}


def pooled_curve(folds: list[HeldOutFold], positive: int) -> RocCurve | None:
    """Draw the curve of one class against the other, at most 100 of its points; ``None`` if there is but one.

    Points are taken at equal steps along the curve. Evidence of all folds is put together as if of one classifier.
    """
    is_positive = np.concatenate([fold.target == positive for fold in folds])
    if is_positive.all() or not is_positive.any():
        return None
    evidence = np.concatenate([fold.evidence[:, positive] for fold in folds])
    lowest = evidence[np.isfinite(evidence)].min(initial=0.0) - 1
    false_positive, true_positive, _ = roc_curve(is_positive, np.where(np.isfinite(evidence), evidence, lowest))
    along = (false_positive + true_positive) / 2
    taken = np.unique(np.searchsorted(along, np.linspace(0, 1, MOST_POINTS)).clip(max=len(along) - 1))
    return RocCurve(tuple(false_positive[taken].tolist()), tuple(true_positive[taken].tolist()))
