"""What a choice of columns by E(S) rests on, as plain data for a manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sfumato.guarantees.estimated import BREACH_CONFIDENCE
from sfumato.learning.fold_scores import compare_folds
from sfumato.mechanisms.breach.factors import FurtherFactors
from sfumato.mechanisms.breach.problem import BreachProblem
from sfumato.mechanisms.breach.rankings import rankings
from sfumato.mechanisms.breach.search import CandidateSearch
from sfumato.mechanisms.breach.subset_evaluation import Candidate
from sfumato.mechanisms.breach.tradeoff import Evaluation, Factor, breach_increase_percent, pareto_front, regions

Scores = NDArray[np.float64]

CONFIDENCE = BREACH_CONFIDENCE
N_CANDIDATES = 500


@dataclass(frozen=True)
class BreachEstimate:
    """PBI in percent with a confidence interval, and the attacker's scores that it comes from."""

    increase: float
    low: float
    high: float
    attack: float
    attack_with_all: float


def estimate_breach(attack: Scores, attack_with_all: Scores, confidence: float) -> BreachEstimate:
    """Estimate PBI from scores fold by fold.

    The interval is that of the corrected resampled t-test for the difference, over the mean of the baseline, whose own
    error is left out.

    Examples
    --------
    >>> found = estimate_breach(np.array([0.9, 0.7, 0.9]), np.array([0.8, 0.8, 0.8]), 0.95)
    >>> round(found.low, 1), round(found.increase, 1), round(found.high, 1)
    (-52.5, 4.2, 60.9)
    """
    ours, everything = float(attack.mean()), float(attack_with_all.mean())
    increase = breach_increase_percent(ours, everything)
    half = _half_interval_percent(attack, attack_with_all, confidence)
    return BreachEstimate(increase, increase - half, increase + half, ours, everything)


def performance_evidence(chosen: Candidate, baseline: Candidate) -> dict[str, Any]:
    """Compare the choice with all columns, and tell the loss in percent of their performance with an interval.

    Below 0 it is a gain. The interval is that of the corrected test, whichever test the search used.
    """
    loss = half = 0.0
    if baseline.performance > 0:
        loss = 100 * (1 - chosen.performance / baseline.performance)
        folds, of_all = np.array(chosen.fold_performance), np.array(baseline.fold_performance)
        half = _half_interval_percent(folds, of_all, CONFIDENCE)
    return {
        "performance": chosen.performance,
        "performance_of_all_columns": baseline.performance,
        "performance_loss_percent": round(loss, 6) + 0.0,
        "performance_loss_interval": [round(loss - half, 6) + 0.0, round(loss + half, 6) + 0.0],
        "p_value_of_the_difference": chosen.p_value,
    }


def risk_evidence(breach: BreachEstimate, problem: BreachProblem, smallest_class: int) -> dict[str, Any]:
    """Tell what an attacker gains by the choice, in numbers and in words."""
    is_target = "the target, which is released: the bound is about people whose value is not in the release"
    return {
        "breach_increase_percent": breach.increase,
        "breach_increase_interval": [round(breach.low, 6), round(breach.high, 6)],
        "confidence_of_the_intervals": CONFIDENCE,
        "attacker_performance": breach.attack,
        "attacker_performance_with_all_columns": breach.attack_with_all,
        "share_of_the_most_frequent_value": problem.majority_fraction,
        "anonymity_level": smallest_class,
        "sensitive_column": is_target if problem.is_target_sensitive else "not released",
        "what_this_is": "estimates by cross-validation for one kind of attacker; nothing is proven",
    }


def _half_interval_percent(scores: Scores, baseline: Scores, confidence: float) -> float:
    quantile = float(stats.t.ppf((1 + confidence) / 2, len(scores) - 1))
    return 100 * quantile * compare_folds(scores, baseline).standard_error / float(baseline.mean())


def choice_evidence(
    search: CandidateSearch,
    weights: Sequence[float],
    chosen: Candidate,
    names: Sequence[str],
    factors: FurtherFactors | None = None,
) -> dict[str, Any]:
    """Tell how many candidates there were, in which regions, and which, with their ranks.

    ``candidates`` starts with the baseline, goes on from the best by E(S), and always holds the chosen one, which is
    not the best where α is below 0 and those above it have a larger breach. Every set has its place by TOPSIS and by
    the lexicographic order as well, with the same weights; ``first_by`` names the sets that these would choose.
    """
    found = search.evaluate(weights, factors=factors)
    compared = search.compared
    performance, breach = ([getattr(one, field) for one in compared] for field in ("performance", "breach_increase"))
    where = regions(performance, breach, baseline_performance=search.baseline.performance)
    sizes = [len(one.columns) for one in compared]
    is_on_front = pareto_front(performance, breach, sizes)
    extra = {} if factors is None else factors.of([one.columns for one in compared])
    criteria = {
        "performance": Factor(performance, found.weights["performance"]),
        "privacy": Factor(breach, found.weights["privacy"], higher_is_better=False),
        "size": Factor(sizes, found.weights["size"], higher_is_better=False),
    } | {name: Factor(one.values, found.weights[name], one.higher_is_better) for name, one in extra.items()}
    others = rankings(criteria)
    safe = [place for place, one in enumerate(compared) if search.rule.is_safe(one.breach_increase)]

    def first(places: NDArray[np.int64]) -> list[str]:
        """Set that is first by another ranking, of those with a breach of at most α; of equals the smallest."""
        best = min(safe, key=lambda place: (places[place], sizes[place]))
        return [names[column] for column in compared[best].columns]

    counted = Counter(str(region) for region in where[1:])
    place = compared.index(chosen)
    named = ["baseline", *map(str, where[1:])]
    return {
        "n_candidates": len(search.candidates),
        "candidates_by_region": {name: counted.get(name, 0) for name in ("I", "II", "III", "IV")},
        "region_of_the_choice": named[place],
        "weights": dict(found.weights),
        **({"note_on_weights": found.note} if found.note else {}),
        "first_by": {
            "topsis": first(others.topsis_places),
            "lexicographic": first(others.lexicographic_places),
        },
        "candidates": [
            _described(compared[other], found, other, named[other], names)
            | {"on_pareto_front": bool(is_on_front[other]), "chosen": other == place}
            | {
                "topsis": round(float(others.closeness[other]), 9),
                "topsis_place": int(others.topsis_places[other]),
                "lexicographic_place": int(others.lexicographic_places[other]),
            }
            for other in _listed(found.order, place)
        ],
    }


def _listed(order: Sequence[int], chosen: int) -> list[int]:
    """Places of the baseline, then of the best, the chosen one among them."""
    best = [place for place in order if place != 0][: N_CANDIDATES - 1]
    if chosen not in (0, *best):
        best[-1] = chosen
    return [0, *best]


def _described(
    candidate: Candidate, found: Evaluation, place: int, region: str, names: Sequence[str]
) -> dict[str, Any]:
    return {
        "columns": [names[column] for column in candidate.columns],
        "n_columns": len(candidate.columns),
        "score": round(float(found.scores[place]), 9),
        "performance": candidate.performance,
        "p_value": candidate.p_value,
        "breach_increase_percent": candidate.breach_increase,
        "region": region,
        "ranks": {name: int(ranks[place]) for name, ranks in found.ranks.items()},
    }
