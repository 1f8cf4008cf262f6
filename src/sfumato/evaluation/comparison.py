"""What a comparison of mechanisms on one table found: all points ranked, the front, and one that is recommended."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from sfumato.attack.reidentification import PEOPLE, ROWS
from sfumato.errors import PrivacyNotAchievableError
from sfumato.evaluation.points import TIME_LIMITS, USUAL_K, USUAL_L, Measuring, Point, Status
from sfumato.evaluation.promises import PERTURBED, STRICT, group_title, kind_title, promised_kind, sought_kind
from sfumato.evaluation.requested_guarantees import AskedGuarantee
from sfumato.evaluation.scores import estimate
from sfumato.figures import COMPARED, SCORES
from sfumato.guarantees import GUARANTEES
from sfumato.learning.fold_scores import compare_folds
from sfumato.mechanisms.breach.tradeoff import EvaluationWeights, evaluation_scores
from sfumato.mechanisms.registry import find_mechanism

# Points of a comparison beside each other: headline numbers, Pareto front, E(S), and the one to recommend.


WITHIN = 0.01
"""A recommended release may have so much less utility than the best that meets the same guarantee."""
SIGNIFICANCE = 0.05
_ROUNDING = 1e-12
_SHOWN = 3
_KIND = ("guarantee",)
_USUAL = {
    STRICT: ("k", USUAL_K),
    PERTURBED: ("k", USUAL_K),
    "kk-anonymity": ("kk-anonymity", USUAL_K),
    "containment": ("containment", USUAL_K),
    "buckets": ("bucket-diversity", USUAL_L),
}
"""Guarantee that is asked of each kind where nobody says which; of other kinds no level is asked."""


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
        Expected share of people named (marketer risk), or of rows, see :attr:`Comparison.counted`; 0 for rows that were
        drawn anew and are nobody's.
    meets : bool
        Whether it promises what was asked, and is of the kind that was asked for.
    low, high : float or None
        95 % interval of the utility over the folds, see :func:`sfumato.evaluation.scores.estimate`.
    on_front : bool
        Whether no other point of its group is as good in utility and risk and better in one.
    score : float or None
        E(S): weighted sum of the ranks of utility, risk and columns.
    rank : int or None
        By E(S), the best is 1.
    """

    result: Mapping[str, Any]
    utility: float | None
    risk: float | None
    meets: bool
    low: float | None = None
    high: float | None = None
    on_front: bool = False
    score: float | None = None
    rank: int | None = None

    @property
    def point(self) -> Point:
        """Mechanism and parameters."""
        return Point(self.result["mechanism"], self.result["parameters"])

    @property
    def kind(self) -> str:
        """Kind of promise: as audited or, where nothing was released, as the mechanism declares."""
        audited = promised_kind(self.result["guarantees"], self.result.get("perturbation"))
        return audited or sought_kind(self.point.mechanism, self.point.parameters)

    @property
    def group(self) -> str:
        """Name of the group of releases that promise the same."""
        return group_title(self.kind, self.result["guarantees"])

    @property
    def figures(self) -> Mapping[str, Any]:
        """Figures that all points have, by name; ``None`` where nothing was released."""
        return {figure.name: self.result.get(figure.name) for figure in COMPARED}

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

    def dominates(self, other: RankedPoint) -> bool:
        """Whether it is at least as good in utility and in risk, and better in one; both must be done."""
        pairs = list(zip(self._merits, other._merits, strict=True))
        return all(ours >= theirs for ours, theirs in pairs) and any(ours > theirs for ours, theirs in pairs)

    @property
    def _merits(self) -> tuple[float, float]:
        return self.utility or 0.0, -(self.risk or 0.0)


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


def headline_risk(result: Mapping[str, Any], counted: str = PEOPLE) -> float | None:
    """Marketer risk; 0 where no released row is anybody's. ``counted``: by people as far as they are known, or rows."""
    if result["risk"] is None:
        return None
    found = result["risk"].get("reidentification", {}).get("by_rows") if counted == ROWS else None
    marketer = (found or result["risk"]["headline"])["marketer"]
    return 0.0 if marketer is None else float(marketer)


def counted_by_all(results: Sequence[Mapping[str, Any]]) -> str:
    """Say what the risks of all these are shares of: ``people``, or ``rows`` where some could count these only."""
    headlines = [result["risk"]["headline"] for result in results if result["risk"] is not None]
    return ROWS if any(headline.get("counted") == ROWS for headline in headlines) else PEOPLE


def rank_points(
    results: Sequence[Mapping[str, Any]],
    original: Mapping[str, Any] | None,
    weights: EvaluationWeights,
    asked: Sequence[AskedGuarantee],
    kind: str | None = STRICT,
) -> list[RankedPoint]:
    """Rank all finished points; the original stands among them in E(S), as [PBI17]_ has it, and not on the front.

    Fronts are those of the groups: a release is compared with those that promise the same. ``kind`` is the kind of
    promise that is asked for.

    References
    ----------
    .. [PBI17] Jafer, Matwin, Sokolova: A Multi-dimensional Privacy-aware Evaluation Function in Automatic Feature
       Selection. Transactions on Data Privacy 10 (2017).
    """
    measure = utility_measure(results)
    counted = counted_by_all([*results, *([] if original is None else [original])])
    found = [_ranked(result, measure, counted, asked, kind) for result in results]
    places = [place for place, one in enumerate(found) if one.is_done]
    if not places:
        return found
    done = [found[place] for place in places]
    baseline = [] if original is None else [_ranked(original, measure, counted, (), None)]
    scored = done + [one for one in baseline if one.is_done]
    evaluation = evaluation_scores(*_factors(scored), weights)
    order = [number for number in evaluation.order if number < len(done)]
    for number, place in enumerate(places):
        one, score, rank = done[number], float(evaluation.scores[number]), order.index(number) + 1
        on_front = not any(other.group == one.group and other.dominates(one) for other in done)
        found[place] = replace(one, on_front=on_front, score=score, rank=rank)
    return found


def _ranked(
    result: Mapping[str, Any], measure: str, counted: str, asked: Sequence[AskedGuarantee], kind: str | None
) -> RankedPoint:
    low, high = _interval(result, measure)
    one = RankedPoint(result, mean_utility(result, measure), headline_risk(result, counted), False, low, high)
    keeps = all(guarantee.is_promised_by(result["guarantees"]) for guarantee in asked)
    return replace(one, meets=keeps and one.is_released and one.kind == kind)


def fold_scores(result: Mapping[str, Any], measure: str) -> list[float] | None:
    """Give the utility fold by fold, the mean over the classifiers; ``None`` where some fold has none."""
    found = (result.get("fold_utility") or {}).get(measure)
    return None if not found or None in found else [float(score) for score in found]


def _interval(result: Mapping[str, Any], measure: str) -> tuple[float | None, float | None]:
    scores = fold_scores(result, measure)
    found = None if scores is None else estimate(scores)
    return (None, None) if found is None else (found.low, found.high)


def _factors(points: Sequence[RankedPoint]) -> tuple[list[float], list[float], list[int]]:
    utility = [one.utility for one in points if one.utility is not None]
    risk = [one.risk for one in points if one.risk is not None]
    return utility, risk, [int(one.result["n_columns"]) for one in points]


# Which release to recommend: of those that promise what was asked one that no other beats, near the best, least risk.


def undominated(points: Sequence[RankedPoint]) -> list[RankedPoint]:
    """Finished points that no other of these is as good as in utility and risk, and better than in one."""
    done = [one for one in points if one.is_done]
    return [one for one in done if not any(other.dominates(one) for other in done)]


def tied_with_best(points: Sequence[RankedPoint], measure: str) -> list[RankedPoint]:
    """Points whose utility does not clearly differ from the best of them, the best included.

    A point is tied if it has at most 0.01 less than the best, and the paired corrected test over the folds (Nadeau and
    Bengio; see :func:`sfumato.learning.fold_scores.compare_folds`) finds no difference at 0.05. Without scores by fold
    the first condition decides.
    """
    if not points:
        return []
    best = max(points, key=lambda one: (one.utility or 0.0, -(one.risk or 0.0)))
    return [one for one in points if one is best or _is_tied(best, one, measure)]


def _is_tied(best: RankedPoint, other: RankedPoint, measure: str) -> bool:
    if (best.utility or 0.0) - (other.utility or 0.0) > WITHIN + _ROUNDING:
        return False
    ours, theirs = fold_scores(best.result, measure), fold_scores(other.result, measure)
    if ours is None or theirs is None or len(ours) != len(theirs) or len(ours) < 2:
        return True
    return compare_folds(ours, theirs).p_value >= SIGNIFICANCE


def least_risk(points: Sequence[RankedPoint]) -> RankedPoint | None:
    """Point with the least risk; of equal ones that with the fewest changed cells, then the most utility."""

    def place(one: RankedPoint) -> tuple[float, float, float]:
        changed = one.figures["changed_cells_fraction"]
        return one.risk or 0.0, 1.0 if changed is None else changed, -(one.utility or 0.0)

    return min(points, key=place, default=None)


def wanted_promise(
    points: Sequence[Point], asked: Sequence[AskedGuarantee]
) -> tuple[str | None, tuple[AskedGuarantee, ...]]:
    """Kind of promise that a recommended release is of, and the guarantees that it must keep.

    It follows from what is asked or, where nothing is, from what the points seek: strict k-anonymity with k >= 5 where
    some point seeks that, and l where all of these do. It never depends on what the rows allow. ``None`` where the
    points are of several kinds and none is strict.
    """
    kinds = list(dict.fromkeys(sought_kind(point.mechanism, point.parameters) for point in points))
    alone = kinds[0] if len(kinds) == 1 else None
    if asked:
        return (asked[0].kind if asked[0].kind in kinds or alone is None else alone), tuple(asked)
    kind = STRICT if STRICT in kinds or not kinds else alone
    members = [point for point in points if sought_kind(point.mechanism, point.parameters) == kind]
    usual = [_usual_of(members, *_USUAL[kind])] if kind in _USUAL else []
    if kind == STRICT and members and all(_sought_level(point, "l") is not None for point in members):
        usual.append(_usual_of(members, "l", USUAL_L))
    return kind, tuple(guarantee for guarantee in usual if guarantee is not None)


def _usual_of(points: Sequence[Point], name: str, value: float) -> AskedGuarantee | None:
    """Usual guarantee where a point seeks it, else the safest level that one seeks; ``None`` where none is sought."""
    usual = AskedGuarantee(name, value)
    sought = [level for point in points if (level := _sought_level(point, usual.parameter)) is not None]
    safest = usual.safest(sought)
    return usual if safest is None or usual.allows(safest) else AskedGuarantee(name, safest)


def _sought_level(point: Point, parameter: str) -> float | None:
    info = find_mechanism(point.mechanism)
    defaults = {} if info is None else {one.name: one.default for one in info.parameters}
    found = point.parameters.get(parameter, defaults.get(parameter))
    return float(found) if isinstance(found, int | float) else None


def refusal(
    points: Sequence[RankedPoint], asked: Sequence[AskedGuarantee], kind: str | None = STRICT
) -> PrivacyNotAchievableError:
    """Say which guarantee no measured point keeps, and the nearest that one does."""
    if kind is None:
        kinds = " or ".join(dict.fromkeys(kind_title(one.kind) for one in points))
        hint = "ask for one kind by its name"
        return PrivacyNotAchievableError(kinds, best_level=None, hint=hint, problem="the points promise", remedy=_KIND)
    of_kind = [one for one in points if one.kind == kind]
    missed = [guarantee for guarantee in asked if not any(one.promises(guarantee) for one in of_kind)]
    unmeasured = [one.point.label for one in points if one.is_released and one.meets]
    if missed or not any(one.is_released for one in points):
        wanted = missed[0] if missed else AskedGuarantee("k", USUAL_K)
        return _missed(points, wanted, asked, is_asked=bool(missed))
    if unmeasured:
        guarantee = f"{listed(asked) or 'any release'} on the training rows of every fold"
        kept = f"{', '.join(unmeasured[:_SHOWN])} can be released, but the utility was not measured"
        hint = f"{kept}; more folds have more rows each"
        return PrivacyNotAchievableError(guarantee, best_level=None, hint=hint, remedy=("n_folds",))
    alone = [f"{one} by {next(p.point.label for p in of_kind if p.promises(one))}" for one in asked]
    hint = f"each is promised alone: {'; '.join(alone)}; name a point with all of them in [compare.grid]"
    problem = "no point of the grid promises"
    return PrivacyNotAchievableError(f"{listed(asked)} together", best_level=None, hint=hint, problem=problem)


def listed(asked: Sequence[AskedGuarantee]) -> str:
    """Guarantees in a line."""
    return " and ".join(str(guarantee) for guarantee in asked)


def _missed(
    points: Sequence[RankedPoint], wanted: AskedGuarantee, asked: Sequence[AskedGuarantee], *, is_asked: bool
) -> PrivacyNotAchievableError:
    known = [(one.point.label, level) for one in points if (level := _reached(one, wanted)) is not None]
    best = wanted.safest([level for _, level in known])
    nearest = [f"{label} reaches {level:g}" for label, level in known if level == best][:_SHOWN]
    tried = [one.result["parameters"].get(wanted.parameter) for one in points]
    most = wanted.safest([float(value) for value in tried if value is not None])
    hints = [f"nearest: {'; '.join(nearest)}"] if nearest else []
    if not nearest and not all(one.is_done for one in points):
        hints.append(_what_went_wrong(points))
    if any(one.result["status"] == Status.NOT_RUN for one in points):
        hints.append("not all points were run; the same command continues with the missing ones")
    if is_asked and (most is None or not wanted.allows(most)):
        safest = "no point asks for it" if most is None else f"the safest {wanted.parameter} tried was {most:g}"
        hints.append(f"{safest}; name others in [compare.grid]")
    asks_l = any(guarantee.name == "l" for guarantee in asked)
    if asks_l:
        hints.append("if l cannot be reached, ask for k alone")
    is_refused = any(
        one.result["status"] == Status.INFEASIBLE and value is not None and wanted.allows(value)
        for one, value in zip(points, tried, strict=True)
    )
    return PrivacyNotAchievableError(
        str(wanted) if is_asked else "any guarantee",
        best_level=best,
        hint="; ".join(hints),
        problem="cannot be met:" if is_refused else "no point of the grid promises",
        remedy=(*(["timeout"] if _are_slow(points) else []), *(["no_l"] if asks_l else [])),
    )


def _are_slow(points: Sequence[RankedPoint]) -> bool:
    return any(one.result["status"] == Status.TIMED_OUT for one in points)


def _reached(one: RankedPoint, wanted: AskedGuarantee) -> float | None:
    """Level of a release or, where there is none, the best that its mechanism could, if it is of the same guarantee."""
    if one.is_released:
        return wanted.level_of(one.result["guarantees"])
    info = find_mechanism(one.point.mechanism)
    defaults = {} if info is None else {parameter.name: parameter.default for parameter in info.parameters}
    is_same = one.kind == wanted.kind and wanted.is_about({**defaults, **one.point.parameters})
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


@dataclass(frozen=True)
class PromiseGroup:
    """Releases that promise the same.

    Parameters
    ----------
    title : str
        What they promise, by name.
    kind : str
        Kind of promise, see :mod:`sfumato.evaluation.promises`.
    points : tuple of RankedPoint
        Finished ones by utility, the best first, then the others.
    best : RankedPoint or None
        Release that is recommended of the group; ``None`` where none is done.
    """

    title: str
    kind: str
    points: tuple[RankedPoint, ...]
    best: RankedPoint | None


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
        What a recommended release must promise; empty asks for what :func:`wanted_promise` says.
    """

    results: tuple[Mapping[str, Any], ...]
    original: Mapping[str, Any]
    left_out: Mapping[str, str] = field(default_factory=dict)
    measuring: Measuring = field(default_factory=Measuring)
    weights: EvaluationWeights = field(default_factory=EvaluationWeights)
    asked: tuple[AskedGuarantee, ...] = ()

    @cached_property
    def _wanted(self) -> tuple[str | None, tuple[AskedGuarantee, ...]]:
        tried = [Point(result["mechanism"], result["parameters"]) for result in self.results]
        return wanted_promise(tried, self.asked)

    @property
    def kind(self) -> str | None:
        """Kind of promise that the recommended release is of; ``None`` where several are tried and none is asked."""
        return self._wanted[0]

    @property
    def used_guarantees(self) -> tuple[AskedGuarantee, ...]:
        """What was asked or, if nothing was, the usual."""
        return self._wanted[1]

    @cached_property
    def points(self) -> tuple[RankedPoint, ...]:
        """All points with their ranks, in the order of the grid."""
        return tuple(rank_points(self.results, self.original, self.weights, self.used_guarantees, self.kind))

    @cached_property
    def groups(self) -> tuple[PromiseGroup, ...]:
        """Finished points by what they promise; first the group of the recommended release."""
        titles = dict.fromkeys(one.group for one in self.points if one.is_done)
        members = {title: [one for one in self.points if one.group == title and one.is_done] for title in titles}
        found = [
            PromiseGroup(
                title,
                of_group[0].kind,
                tuple(sorted(of_group, key=lambda one: (-(one.utility or 0.0), one.risk or 0.0))),
                least_risk(tied_with_best(undominated(of_group), self._measure)),
            )
            for title, of_group in members.items()
        ]
        return tuple(sorted(found, key=lambda group: (self.recommended not in group.points, group.kind != self.kind)))

    @property
    def not_run(self) -> tuple[RankedPoint, ...]:
        """Points that were not run or not finished, because the time was over or the comparison was ended."""
        return tuple(one for one in self.points if one.result["status"] == Status.NOT_RUN)

    @cached_property
    def by_rank(self) -> tuple[RankedPoint, ...]:
        """All points, best E(S) first, then those without a result."""
        return tuple(sorted(self.points, key=lambda one: one.rank or len(self.points) + 1))

    @property
    def utility_name(self) -> str:
        """What utility is the mean of."""
        return next(score.heading for score in SCORES if score.name == self._measure)

    @property
    def original_utility(self) -> float | None:
        """Utility of the original table."""
        return mean_utility(self.original, self._measure)

    @cached_property
    def ranked_original(self) -> RankedPoint:
        """The original table, with its headline figures; it promises nothing."""
        low, high = _interval(self.original, self._measure)
        return RankedPoint(self.original, self.original_utility, self.original_risk, False, low, high)

    @property
    def original_risk(self) -> float | None:
        """Risk of the original table."""
        return headline_risk(self.original, self.counted)

    @cached_property
    def counted(self) -> str:
        """What risks are shares of: people or, where persons may have several rows and are not known, rows."""
        return counted_by_all([*self.results, self.original])

    @cached_property
    def recommended(self) -> RankedPoint | None:
        """Release to make; ``None`` if no finished point keeps what was asked.

        Of the releases that keep it, one that no other of them is as good as in utility and risk and better than in
        one. Of those that cannot be told from the best in utility (:func:`tied_with_best`) it has the least risk, and
        of equal ones the fewest changed cells.
        """
        return least_risk(self._tied)

    @cached_property
    def _tied(self) -> list[RankedPoint]:
        return tied_with_best(undominated([one for one in self.points if one.meets]), self._measure)

    @property
    def _measure(self) -> str:
        return utility_measure(self.results)

    def why(self) -> str:
        """Say in a sentence which release is recommended and why, or that there is none."""
        chosen = self.recommended
        missing = f" {counted(len(self.not_run), 'point')} not run." if self.not_run else ""
        if chosen is None:
            return f"No release is recommended: {self._why_none()}.{missing}"
        changed, before = chosen.figures["changed_cells_fraction"], self.original_utility
        cells = "" if changed is None else f", {changed:.1%} of the cells changed"
        return (
            f"Recommended: {chosen.point.label}. {self._beside_others()}: {self.utility_name} {with_interval(chosen)}"
            f"{'' if before is None else f' of {before:.3f} before'}, {chosen.risk:.2%} expected to be "
            f"re-identified{cells}.{missing}"
        )

    def _beside_others(self) -> str:
        n_meeting = sum(one.is_done and one.meets for one in self.points)
        if n_meeting == 1:
            return f"It is the only finished release that promises {self._asked_words()}"
        of_all = f"Of the {n_meeting:,} releases that promise {self._asked_words()}"
        if len(self._tied) == 1:
            clear = f"every safer one is lower by more than {WITHIN:g} or significantly over the folds"
            return f"{of_all}, it has the best {self.utility_name}, and {clear}"
        best = max(one.utility or 0.0 for one in self._tied)
        return (
            f"{of_all}, {len(self._tied):,} are on the Pareto front and do not clearly differ from the best "
            f"{self.utility_name} ({best:.3f}), and of these it leaves the least risk"
        )

    def _asked_words(self) -> str:
        """Say what a recommended release promises, with the kind where the guarantees do not name it."""
        asked = listed(self.used_guarantees)
        title = kind_title(self.kind) if self.kind is not None else ""
        if self.kind == STRICT and asked:
            return asked
        return f"{title} ({asked})" if asked else title

    def _why_none(self) -> str:
        if self.kind is None:
            kinds = dict.fromkeys(kind_title(one.kind) for one in self.points)
            return f"the points promise different things ({', '.join(kinds)}), and none was asked for"
        if any(one.is_released and one.meets for one in self.points):
            return f"no release that promises {self._asked_words()} has a measured utility"
        if not any(one.is_released for one in self.points):
            return "no point was released"
        return f"no point promises {self._asked_words()}"

    def to_kept(self) -> dict[str, Any]:
        """Plain data for JSON from which :meth:`from_kept` makes the same comparison; no cell value is in it."""
        return {
            "results": [dict(result) for result in self.results],
            "original": dict(self.original),
            "left_out": dict(self.left_out),
            "measuring": self.measuring.to_dict(),
            "weights": list(self.weights),
            "asked": [f"{guarantee.name}={guarantee.value:g}" for guarantee in self.asked],
        }

    @classmethod
    def from_kept(cls, kept: Mapping[str, Any]) -> Self:
        """Make a comparison of what :meth:`to_kept` gave."""
        return cls(
            tuple(kept["results"]),
            kept["original"],
            kept["left_out"],
            Measuring(**{**kept["measuring"], "classifiers": tuple(kept["measuring"]["classifiers"])}),
            EvaluationWeights(*kept["weights"]),
            tuple(AskedGuarantee.parse(text) for text in kept["asked"]),
        )

    def raise_if_nothing_meets(self) -> None:
        """Refuse a comparison in which no point keeps what was asked.

        Raises
        ------
        PrivacyNotAchievableError
            With the nearest values that can be kept.
        """
        if self.recommended is None:
            raise refusal(self.points, self.used_guarantees, self.kind)

    def notes(self) -> list[str]:
        """Say what a reader of the numbers must know."""
        n_rows, most = self.original.get("n_rows"), self.measuring.max_rows
        notes = [
            f"utility is the mean {self.utility_name} of {', '.join(self.measuring.classifiers)} over "
            f"{self.measuring.n_folds} folds; mechanisms were fitted on the training rows of each fold alone",
            "intervals of utility are 95 % ones of the corrected resampled t-test (Nadeau and Bengio) over the folds",
        ]
        if most is not None and n_rows is not None and n_rows > most:
            notes.append(f"utility was measured on {most:,} of {n_rows:,} rows; release and risk are of all rows")
        if self.counted == ROWS:
            notes.append("risk is a share of rows, not of people: some persons may have several")
        if any(TIME_LIMITS & set(one.point.parameters) for one in self.points):
            notes.append(
                "searches had a time limit (one of their parameters); with more time they may find better releases"
            )
        if any(one.is_done and one.result["risk"]["headline"]["marketer"] is None for one in self.points):
            notes.append("synthetic rows belong to nobody: their risk of re-identification counts as 0")
        return notes

    def rows(self) -> list[dict[str, Any]]:
        """Make a tidy table: one row for every point, best E(S) first, then the original."""
        chosen = self.recommended
        return [self._row(one) | {"is_recommended": one is chosen} for one in self.by_rank] + [
            self._row(self.ranked_original) | {"is_recommended": False}
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
            **one.figures,
            "on_front": one.on_front,
            "score": one.score,
            **{
                f"{score.name} {name}": _mean(scores, name, score.name)
                for score in SCORES
                for name in self.measuring.classifiers
            },
            "seconds": result["seconds"],
            "cpu_seconds": result["cpu_seconds"],
            "peak_memory_bytes": result["peak_memory_bytes"],
            "kind": None if one is self.ranked_original else one.kind,
            "group": None if one is self.ranked_original else one.group,
            "utility_low": one.low,
            "utility_high": one.high,
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
        return {
            "guarantees": [str(guarantee) for guarantee in self.used_guarantees],
            "weights": self.weights._asdict(),
            "measuring": self.measuring.to_dict(),
            "original": dict(self.original),
            "points": [{**one.result, "headline": _headline(one)} for one in self.by_rank],
            "kind": self.kind,
            "groups": [
                {
                    "title": group.title,
                    "kind": group.kind,
                    "points": [one.point.label for one in group.points],
                    "best": None if group.best is None else group.best.point.label,
                }
                for group in self.groups
            ],
            "not_run": [one.point.label for one in self.not_run],
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
                "group": one.group,
                "low": one.low,
                "high": one.high,
            }
            for one in self.points
        ]


_HEADLINE = ("utility", "risk", "meets", "on_front", "score", "rank", "kind", "group")


def _headline(one: RankedPoint) -> dict[str, Any]:
    found = {name: getattr(one, name) for name in _HEADLINE}
    return {**found, **one.figures, "utility_low": one.low, "utility_high": one.high}


def with_interval(one: RankedPoint) -> str:
    """Write the utility with its interval, where there is one.

    Examples
    --------
    >>> with_interval(RankedPoint({}, 0.8, 0.1, True, 0.7812, 0.8188)), with_interval(RankedPoint({}, 0.8, 0.1, True))
    ('0.800 (0.781–0.819)', '0.800')
    """
    if one.utility is None:
        return "-"
    return f"{one.utility:.3f}" + ("" if one.low is None else f" ({one.low:.3f}–{one.high:.3f})")


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
