"""What a comparison of mechanisms on one table found: all points ranked, the front, and one that is recommended."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sfumato.evaluation.asked import AskedGuarantee
from sfumato.evaluation.grid import TIME_LIMITS
from sfumato.evaluation.points import Measuring, Status
from sfumato.evaluation.ranking import (
    USUAL,
    WITHIN,
    RankedPoint,
    counted,
    headline_risk,
    listed,
    mean_utility,
    near_the_best,
    rank_points,
    recommended_place,
    refusal,
    utility_measure,
)
from sfumato.guarantees import GUARANTEES
from sfumato.selection.tradeoff import EvaluationWeights

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
