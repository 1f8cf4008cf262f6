"""Scores of classifiers: how well one predicts rows that it has not seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.figures.base import Direction, Figure, Unit
from sfumato.learning.fold_scores import area_under_curve

Codes = NDArray[np.int32]
Numbers = NDArray[np.float64]


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


SCORES: tuple[Figure[HeldOutFold], ...] = (
    Figure(
        "auc",
        "Area under the ROC curve (AUC; 0.5 is guessing)",
        Unit.NUMBER,
        HeldOutFold.area,
        direction=Direction.HIGHER,
        heading="AUC",
    ),
    Figure("accuracy", "Accuracy", Unit.NUMBER, HeldOutFold.accuracy, direction=Direction.HIGHER, heading="accuracy"),
    Figure(
        "balanced_accuracy",
        "Balanced accuracy",
        Unit.NUMBER,
        HeldOutFold.balanced_accuracy,
        direction=Direction.HIGHER,
        heading="balanced accuracy",
    ),
)
