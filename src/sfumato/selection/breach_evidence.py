"""What a choice of columns by E(S) rests on, as plain data for a manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sfumato.selection.breach import CandidateSearch
from sfumato.selection.judging import Candidate
from sfumato.selection.significance import compare_folds
from sfumato.selection.tradeoff import Evaluation, breach_increase_percent, regions

Scores = NDArray[np.float64]

N_BEST = 5


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
    compared = compare_folds(attack, attack_with_all)
    quantile = float(stats.t.ppf((1 + confidence) / 2, len(attack) - 1))
    half = 100 * quantile * compared.standard_error / everything
    return BreachEstimate(increase, increase - half, increase + half, ours, everything)


def choice_evidence(search: CandidateSearch, weights: Sequence[float], chosen: Candidate) -> dict[str, Any]:
    """Tell how many candidates there were, in which regions, and the best by E(S) with their ranks.

    ``best`` may start above the chosen one where α is below 0: candidates with a larger breach are not chosen.
    """
    found = search.evaluate(weights)
    where = regions(
        [candidate.performance for candidate in search.compared],
        [candidate.breach_increase for candidate in search.compared],
        baseline_performance=search.baseline.performance,
    )
    counted = Counter(str(region) for region in where[1:])
    place = search.compared.index(chosen)
    return {
        "n_candidates": len(search.candidates),
        "candidates_by_region": {name: counted.get(name, 0) for name in ("I", "II", "III", "IV")},
        "region_of_the_choice": "baseline" if place == 0 else str(where[place]),
        "weights": dict(found.weights),
        **({"note_on_weights": found.note} if found.note else {}),
        "best": [_described(search, found, other, str(where[other])) for other in found.order[:N_BEST]],
    }


def _described(search: CandidateSearch, found: Evaluation, place: int, region: str) -> dict[str, Any]:
    candidate = search.compared[place]
    return {
        "n_columns": len(candidate.columns),
        "score": round(float(found.scores[place]), 9),
        "ranks": {name: int(ranks[place]) for name, ranks in found.ranks.items()},
        "performance": candidate.performance,
        "p_value": candidate.p_value,
        "breach_increase_percent": candidate.breach_increase,
        "region": "baseline" if place == 0 else region,
    }
