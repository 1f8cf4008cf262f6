"""Points of a comparison beside each other: headline numbers, Pareto front, E(S), and the one to recommend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.evaluation.asked import AskedGuarantee
from sfumato.evaluation.grid import Point
from sfumato.evaluation.points import Status
from sfumato.selection.tradeoff import EvaluationWeights, evaluation_scores, pareto_front

WITHIN = 0.01
"""A recommended release may have so much less utility than the best that meets the same guarantee."""
_ROUNDING = 1e-12


@dataclass(frozen=True)
class RankedPoint:
    """A point's result with what comes of the others.

    Parameters
    ----------
    result : mapping
        Of :func:`sfumato.evaluation.points.measure_point`.
    utility : float or None
        Mean AUC of the classifiers, or accuracy where there is no AUC.
    risk : float or None
        Expected share of people named (marketer risk); 0 for rows that were drawn anew and are nobody's.
    meets : bool
        Whether it promises what was asked.
    on_front : bool
        Whether no other point is as good in utility, risk and columns and better in one.
    score : float or None
        E(S): weighted sum of the ranks of utility, risk and columns.
    rank : int or None
        By E(S), the best is 1.
    """

    result: Mapping[str, Any]
    utility: float | None
    risk: float | None
    meets: bool
    on_front: bool = False
    score: float | None = None
    rank: int | None = None

    @property
    def point(self) -> Point:
        """Mechanism and parameters."""
        return Point(self.result["mechanism"], self.result["parameters"])

    @property
    def is_done(self) -> bool:
        """Whether there is all that is compared."""
        return self.result["status"] == Status.DONE and self.utility is not None and self.risk is not None


def mean_utility(result: Mapping[str, Any], measure: str) -> float | None:
    """Average a measure over the classifiers; ``None`` where one has none."""
    if result["utility"] is None:
        return None
    found = [scores[measure] for scores in result["utility"]["classifiers"].values()]
    return float(np.mean([one["mean"] for one in found])) if all(found) else None


def utility_measure(results: Sequence[Mapping[str, Any]]) -> str:
    """Measure that all finished points have: ``auc``, else ``accuracy``."""
    done = [result for result in results if result["status"] == Status.DONE]
    return "auc" if all(mean_utility(result, "auc") is not None for result in done) else "accuracy"


def headline_risk(result: Mapping[str, Any]) -> float | None:
    """Marketer risk; 0 where no released row is anybody's."""
    if result["risk"] is None:
        return None
    marketer = result["risk"]["headline"]["marketer"]
    return 0.0 if marketer is None else float(marketer)


def rank_points(
    results: Sequence[Mapping[str, Any]],
    original: Mapping[str, Any] | None,
    weights: EvaluationWeights,
    asked: Sequence[AskedGuarantee],
) -> list[RankedPoint]:
    """Rank all finished points; the original stands among them in E(S), as [PBI17]_ has it, and not on the front.

    References
    ----------
    .. [PBI17] Jafer, Matwin, Sokolova: A Multi-dimensional Privacy-aware Evaluation Function in Automatic Feature
       Selection. Transactions on Data Privacy 10 (2017).
    """
    measure = utility_measure(results)
    found = [_ranked(result, measure, asked) for result in results]
    places = [place for place, one in enumerate(found) if one.is_done]
    if not places:
        return found
    done = [found[place] for place in places]
    on_front = pareto_front(*_factors(done))
    baseline = [] if original is None else [_ranked(original, measure, ())]
    scored = done + [one for one in baseline if one.is_done]
    evaluation = evaluation_scores(*_factors(scored), weights)
    order = [number for number in evaluation.order if number < len(done)]
    for number, place in enumerate(places):
        score, rank = float(evaluation.scores[number]), order.index(number) + 1
        found[place] = replace(done[number], on_front=bool(on_front[number]), score=score, rank=rank)
    return found


def _ranked(result: Mapping[str, Any], measure: str, asked: Sequence[AskedGuarantee]) -> RankedPoint:
    meets = all(guarantee.is_promised_by(result["guarantees"]) for guarantee in asked)
    return RankedPoint(result, mean_utility(result, measure), headline_risk(result), meets)


def _factors(points: Sequence[RankedPoint]) -> tuple[list[float], list[float], list[int]]:
    utility = [one.utility for one in points if one.utility is not None]
    risk = [one.risk for one in points if one.risk is not None]
    return utility, risk, [int(one.result["n_columns"]) for one in points]


def recommended_place(points: Sequence[RankedPoint]) -> int | None:
    """Place of the release to recommend; ``None`` if none is done and meets what was asked.

    Best E(S) of those whose utility is within 0.01 of the best that meets the same.
    """
    near = near_the_best(points)
    return min(near, key=lambda place: points[place].rank or 0, default=None)


def near_the_best(points: Sequence[RankedPoint]) -> list[int]:
    """Places of the points that meet what was asked and have almost the best utility of these."""
    eligible = {place: one.utility for place, one in enumerate(points) if one.is_done and one.meets}
    best = max((utility for utility in eligible.values() if utility is not None), default=0.0)
    return [place for place, u in eligible.items() if u is not None and u >= best - WITHIN - _ROUNDING]
