"""What a comparison of mechanisms on one table found: all points ranked, the front, and one that is recommended."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.errors import PrivacyNotAchievableError
from sfumato.evaluation.points import TIME_LIMITS, Measuring, Point, Status
from sfumato.evaluation.requested_guarantees import AskedGuarantee
from sfumato.guarantees import GUARANTEES
from sfumato.mechanisms.breach.tradeoff import EvaluationWeights, evaluation_scores, pareto_front
from sfumato.mechanisms.registry import find_mechanism

# Points of a comparison beside each other: headline numbers, Pareto front, E(S), and the one to recommend.


WITHIN = 0.01
"""A recommended release may have so much less utility than the best that meets the same guarantee."""
_ROUNDING = 1e-12
_SHOWN = 3
USUAL = AskedGuarantee("k", 5)
"""Guarantee that is asked for where nobody says which, if some point keeps it."""


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

    @property
    def is_released(self) -> bool:
        """Whether all rows could be released as promised, with or without a measure of utility."""
        return self.result["status"] in (Status.DONE, Status.RELEASED)

    def promises(self, asked: AskedGuarantee) -> bool:
        """Whether its audited guarantees keep what is asked."""
        return self.is_released and asked.is_promised_by(self.result["guarantees"])


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


def refusal(points: Sequence[RankedPoint], asked: Sequence[AskedGuarantee]) -> PrivacyNotAchievableError:
    """Say which guarantee no measured point keeps, and the nearest that one does."""
    missed = [guarantee for guarantee in asked if not any(one.promises(guarantee) for one in points)]
    unmeasured = [one.point.label for one in points if one.is_released and one.meets]
    if missed or not any(one.is_released for one in points):
        return _missed(points, missed[0] if missed else USUAL, is_asked=bool(missed))
    if unmeasured:
        guarantee = f"{listed(asked) or 'any release'} on the training rows of every fold"
        kept = f"{', '.join(unmeasured[:_SHOWN])} can be released, but the utility was not measured"
        hint = f"{kept}; more folds have more rows each"
        return PrivacyNotAchievableError(guarantee, best_level=None, hint=hint, remedy=("n_folds",))
    alone = [f"{one} by {next(p.point.label for p in points if p.promises(one))}" for one in asked]
    hint = f"each is promised alone: {'; '.join(alone)}; name a point with all of them in [compare.grid]"
    problem = "no point of the grid promises"
    return PrivacyNotAchievableError(f"{listed(asked)} together", best_level=None, hint=hint, problem=problem)


def listed(asked: Sequence[AskedGuarantee]) -> str:
    """Guarantees in a line."""
    return " and ".join(str(guarantee) for guarantee in asked)


def _missed(points: Sequence[RankedPoint], wanted: AskedGuarantee, *, is_asked: bool) -> PrivacyNotAchievableError:
    known = [(one.point.label, level) for one in points if (level := _reached(one, wanted)) is not None]
    best = wanted.safest([level for _, level in known])
    nearest = [f"{label} reaches {level:g}" for label, level in known if level == best][:_SHOWN]
    tried = [one.result["parameters"].get(wanted.parameter) for one in points]
    most = wanted.safest([float(value) for value in tried if value is not None])
    hints = [f"nearest: {'; '.join(nearest)}"] if nearest else []
    if not nearest and not all(one.is_done for one in points):
        hints.append(_what_went_wrong(points))
    if is_asked and (most is None or not wanted.allows(most)):
        safest = "no point asks for it" if most is None else f"the safest {wanted.parameter} tried was {most:g}"
        hints.append(f"{safest}; name others in [compare.grid]")
    is_refused = any(
        one.result["status"] == Status.INFEASIBLE and value is not None and wanted.allows(value)
        for one, value in zip(points, tried, strict=True)
    )
    return PrivacyNotAchievableError(
        str(wanted) if is_asked else "any guarantee",
        best_level=best,
        hint="; ".join(hints),
        problem="cannot be met:" if is_refused else "no point of the grid promises",
        remedy=("timeout",) if any(one.result["status"] == Status.TIMED_OUT for one in points) else (),
    )


def _reached(one: RankedPoint, wanted: AskedGuarantee) -> float | None:
    """Level of a release or, where there is none, the best that its mechanism could, if it is of the same guarantee."""
    if one.is_released:
        return wanted.level_of(one.result["guarantees"])
    info = find_mechanism(one.point.mechanism)
    defaults = {} if info is None else {parameter.name: parameter.default for parameter in info.parameters}
    is_same = wanted.is_about({**defaults, **one.point.parameters})
    return one.result["best_level"] if one.result["status"] == Status.INFEASIBLE and is_same else None


def _what_went_wrong(points: Sequence[RankedPoint]) -> str:
    counts = {status: sum(one.result["status"] == status for one in points) for status in Status}
    shown = ", ".join(f"{n} {status}" for status, n in counts.items() if n)
    return f"of {counted(len(points), 'point')}: {shown}; look at their reasons, or give more time"


def counted(n: int, what: str) -> str:
    """Count with its noun.

    Examples
    --------
    >>> counted(1, "release"), counted(2, "release")
    ('1 release', '2 releases')
    """
    return f"{n:,} {what}" + ("" if n == 1 else "s")


_NAMES = {"auc": "AUC", "accuracy": "accuracy"}


@dataclass(frozen=True)
class Comparison:
    """Results of all points, and what follows from them.

    Parameters
    ----------
    results : tuple of mapping
        Of :func:`sfumato.evaluation.points.measure_point`, in the order of the grid.
    original : mapping
        Result of the table as it is.
    left_out : mapping of str to str
        Mechanisms that were not tried, and why.
    measuring : Measuring
    weights : EvaluationWeights
        Of utility, privacy and size in E(S).
    asked : tuple of AskedGuarantee
        What a recommended release must promise; empty asks for k >= 5 where some point promises that.
    """

    results: tuple[Mapping[str, Any], ...]
    original: Mapping[str, Any]
    left_out: Mapping[str, str] = field(default_factory=dict)
    measuring: Measuring = field(default_factory=Measuring)
    weights: EvaluationWeights = field(default_factory=EvaluationWeights)
    asked: tuple[AskedGuarantee, ...] = ()

    @cached_property
    def used_guarantees(self) -> tuple[AskedGuarantee, ...]:
        """What was asked or, if nothing was, the usual one where it is kept."""
        if self.asked:
            return self.asked
        done = [result for result in self.results if result["status"] == Status.DONE]
        return (USUAL,) if any(USUAL.is_promised_by(result["guarantees"]) for result in done) else ()

    @cached_property
    def points(self) -> tuple[RankedPoint, ...]:
        """All points with their ranks, in the order of the grid."""
        return tuple(rank_points(self.results, self.original, self.weights, self.used_guarantees))

    @cached_property
    def by_rank(self) -> tuple[RankedPoint, ...]:
        """All points, best E(S) first, then those without a result."""
        return tuple(sorted(self.points, key=lambda one: one.rank or len(self.points) + 1))

    @property
    def utility_name(self) -> str:
        """What utility is the mean of."""
        return _NAMES[self._measure]

    @property
    def original_utility(self) -> float | None:
        """Utility of the table as it is."""
        return mean_utility(self.original, self._measure)

    @property
    def original_risk(self) -> float | None:
        """Risk of the table as it is."""
        return headline_risk(self.original)

    @property
    def recommended(self) -> RankedPoint | None:
        """Release to make; ``None`` if no point keeps what was asked."""
        place = recommended_place(self.points)
        return None if place is None else self.points[place]

    @property
    def _measure(self) -> str:
        return utility_measure(self.results)

    def why(self) -> str:
        """Say in a sentence which release is recommended and why, or that there is none."""
        chosen = self.recommended
        if chosen is None:
            return f"No release is recommended: {self._why_none()}."
        return (
            f"Recommended: {chosen.point.label}. {self._beside_others()}: "
            f"{self.utility_name} {chosen.utility:.3f}, {chosen.risk:.2%} of the people expected to be re-identified, "
            f"{counted(chosen.result['n_columns'], 'column')}."
        )

    def _beside_others(self) -> str:
        asked, n_meeting = listed(self.used_guarantees), sum(one.is_done and one.meets for one in self.points)
        if n_meeting == 1:
            return f"It is the only release {f'that promises {asked}' if asked else 'that was measured'}"
        near = [self.points[place] for place in near_the_best(self.points)]
        before = "" if self.original_utility is None else f"; {self.original_utility:.3f} before"
        best = f"the best {self.utility_name} ({max(one.utility or 0.0 for one in near):.3f}{before})"
        of_all = f"Of the {n_meeting:,} releases {f'that promise {asked}' if asked else 'that were made'}"
        if len(near) == 1:
            return f"{of_all}, it has {best}, and no other is within {WITHIN:g}"
        return f"{of_all}, {len(near):,} are within {WITHIN:g} of {best}, and of these it has the best E(S)"

    def _why_none(self) -> str:
        asked = listed(self.used_guarantees)
        if any(one.is_released and one.meets for one in self.points):
            return f"no release {f'that promises {asked} ' if asked else ''}has a measured utility"
        if not any(one.is_released for one in self.points):
            return "no point was released"
        return f"no point promises {asked}"

    def raise_if_nothing_meets(self) -> None:
        """Refuse a comparison in which no point keeps what was asked.

        Raises
        ------
        PrivacyNotAchievableError
            With the nearest values that can be kept.
        """
        if self.recommended is None:
            raise refusal(self.points, self.asked)

    def notes(self) -> list[str]:
        """Say what a reader of the numbers must know."""
        n_rows, most = self.original.get("n_rows"), self.measuring.max_rows
        notes = [
            f"utility is the mean {self.utility_name} of {', '.join(self.measuring.classifiers)} over "
            f"{self.measuring.n_folds} folds; mechanisms were fitted on the training rows of each fold alone"
        ]
        if most is not None and n_rows is not None and n_rows > most:
            notes.append(f"utility was measured on {most:,} of {n_rows:,} rows; release and risk are of all rows")
        if any(TIME_LIMITS & set(one.point.parameters) for one in self.points):
            notes.append(
                "searches had a time limit, which is among their parameters; with more time they may find better ones"
            )
        if any(one.is_done and one.result["risk"]["headline"]["marketer"] is None for one in self.points):
            notes.append("rows that were drawn anew are nobody's: their risk of re-identification is taken as 0")
        return notes

    def rows(self) -> list[dict[str, Any]]:
        """Make a tidy table: one row for every point, best E(S) first, then the original."""
        chosen = self.recommended
        return [self._row(one) | {"is_recommended": one is chosen} for one in self.by_rank] + [
            self._row(RankedPoint(self.original, self.original_utility, self.original_risk, meets=False))
            | {"is_recommended": False}
        ]

    def _row(self, one: RankedPoint) -> dict[str, Any]:
        result = one.result
        scores = (result["utility"] or {}).get("classifiers", {})
        return {
            "rank": one.rank,
            "mechanism": result["mechanism"],
            "parameters": json.dumps(result["parameters"], default=str),
            "status": str(result["status"]),
            "reason": result["reason"],
            "guarantees": "; ".join(short_guarantees(result["guarantees"])),
            "meets_guarantee": one.meets,
            "utility": one.utility,
            "risk": one.risk,
            "n_columns": result["n_columns"],
            "n_rows": result["n_rows"],
            "on_front": one.on_front,
            "score": one.score,
            **{f"auc {name}": _mean(scores, name, "auc") for name in self.measuring.classifiers},
            **{f"accuracy {name}": _mean(scores, name, "accuracy") for name in self.measuring.classifiers},
            "seconds": result["seconds"],
            "cpu_seconds": result["cpu_seconds"],
            "peak_memory_bytes": result["peak_memory_bytes"],
        }

    def to_csv(self) -> str:
        """Write the tidy table as CSV."""
        rows = self.rows()
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; no cell value is in it."""
        chosen = self.recommended
        extra = ("utility", "risk", "meets", "on_front", "score", "rank")
        return {
            "guarantees": [str(guarantee) for guarantee in self.used_guarantees],
            "weights": self.weights._asdict(),
            "measuring": self.measuring.to_dict(),
            "original": dict(self.original),
            "points": [
                {**one.result, "headline": {name: getattr(one, name) for name in extra}} for one in self.by_rank
            ],
            "left_out": dict(self.left_out),
            "recommended": None
            if chosen is None
            else {"mechanism": chosen.point.mechanism, "parameters": dict(chosen.point.parameters), "why": self.why()},
            "notes": self.notes(),
        }

    def frontier(self) -> list[dict[str, Any]]:
        """Points as :class:`sfumato.displays.frontier.FrontierDisplay` takes them."""
        return [
            {
                "utility": one.utility if one.is_done else None,
                "risk": one.risk if one.is_done else None,
                "n_columns": one.result["n_columns"],
                "mechanism": one.point.mechanism,
                "on_front": one.on_front,
                "label": one.point.label,
                "recommended": one is self.recommended,
            }
            for one in self.points
        ]


def short_guarantees(guarantees: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each guarantee by kind and promised values, in a few words.

    Examples
    --------
    >>> short_guarantees([{"kind": "k-anonymity", "k": 5, "statement": "…", "audited": 7, "is_partial": False}])
    ['k-anonymity k=5']
    """
    numbers = tuple(dict.fromkeys(guarantee.level.name for guarantee in GUARANTEES.values()))
    return [
        " ".join([entry["kind"], *(f"{name}={entry[name]:g}" for name in numbers if entry.get(name) is not None)])
        + (" (some columns only)" if entry.get("is_partial") else "")
        for entry in guarantees
    ]


def _mean(scores: Mapping[str, Any], name: str, measure: str) -> float | None:
    found = scores.get(name, {}).get(measure)
    return None if found is None else float(found["mean"])
