"""How ε is divided between choosing features and counting cells, and how much noise each part then needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sfumato.perturbation.noise import Counts, noise_scale

Calibration = Literal["proven", "paper"]

_CHANGES = 2
"""A changed row may raise one score and lower another, and takes 1 from one count and adds 1 to another."""


@dataclass(frozen=True)
class Spending:
    """One part of the budget: the noise that was added and the ε that it is proven to cost."""

    step: str
    noise: str
    n_choices: int
    sensitivity: int
    scale: float
    epsilon: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the manifest."""
        return dict(vars(self))


@dataclass(frozen=True)
class Budget:
    r"""What the two steps cost, for tables that differ in the feature values of one row.

    *Choosing N features* by scores of which each changes by at most Δ costs :math:`2N\Delta/scale`, with two-sided
    geometric noise on all scores as well as with N runs of the exponential mechanism. Scores are HamDist in pairs of
    rows, :math:`p_1(n_2-p_2)+(n_1-p_1)p_2`: a row of one class is in as many pairs as the other classes have rows, so
    Δ is the number of rows outside the smallest class (:math:`\Delta H = 1/\min(n_1, n_2)` of [kAC17]_, times the
    :math:`n_1 n_2` pairs). *Counting* costs :math:`2/scale`: one count falls by 1 and one rises by 1.

    ``"proven"`` gives each step ε/2. ``"paper"`` takes the scales as printed in [kAC17]_, section 5.2, which count only
    one of the two changes: :math:`N\Delta H/(ε/2)` for Laplace noise on the scores and :math:`1/(ε/2)` on the counts.
    They cost twice the ε/2 each was given.
    """

    selection: Spending
    counts: Spending

    @property
    def epsilon(self) -> float:
        """What both steps cost together."""
        return self.selection.epsilon + self.counts.epsilon

    def to_list(self) -> list[dict[str, Any]]:
        """Plain data for the manifest."""
        return [self.selection.to_dict(), self.counts.to_dict()]


def divide_budget(
    epsilon: float,
    n_features: int,
    class_sizes: Counts,
    *,
    noise: str,
    calibration: Calibration = "proven",
    paper_changes: int = _CHANGES,
) -> Budget:
    """Divide ε in two halves; ``paper_changes`` of the two changes enter the paper's scale for the selection.

    Examples
    --------
    >>> import numpy as np
    >>> sizes = np.array([40, 60])
    >>> halves = divide_budget(1.0, 5, sizes, noise="two-sided geometric")
    >>> halves.selection.scale, halves.counts.scale, halves.epsilon
    (1200.0, 4.0, 1.0)
    >>> divide_budget(1.0, 5, sizes, noise="exponential mechanism", calibration="paper").epsilon
    1.5
    """
    half = epsilon / 2
    most_changed_pairs = int(class_sizes.sum() - class_sizes.min())
    is_paper = calibration == "paper"
    for_scores, for_counts = (paper_changes, 1) if is_paper else (_CHANGES, _CHANGES)
    return Budget(
        Spending(
            "feature selection",
            noise,
            n_features,
            most_changed_pairs,
            noise_scale(for_scores * n_features * most_changed_pairs, half),
            half * _CHANGES / for_scores,
        ),
        Spending("counts", "two-sided geometric", 1, 2, noise_scale(for_counts, half), half * _CHANGES / for_counts),
    )
