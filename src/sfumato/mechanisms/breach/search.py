"""Candidate subsets of columns that keep performance and do not help an attacker: the ranker and the generator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.mechanisms.breach.factors import FurtherFactors
from sfumato.mechanisms.breach.subset_evaluation import Candidate, RankedList, SubsetJudge
from sfumato.mechanisms.breach.tradeoff import Evaluation, EvaluationWeights, evaluation_scores
from sfumato.progress import Progress

Outcome = Literal["accepted", "loses performance", "breach too high", "passed through"]

_ROUNDING = 1e-9


@dataclass(frozen=True)
class ColumnRanking:
    """Columns by what dropping each one alone costs.

    Parameters
    ----------
    by_performance : tuple of int
        PerfR of [PBI17]_: from the largest loss of performance to the smallest.
    by_privacy : tuple of int
        PrivR: from the smallest loss of the attacker to the largest.
    """

    by_performance: tuple[int, ...]
    by_privacy: tuple[int, ...]


def rank_columns(judge: SubsetJudge, *, progress: Progress | None = None) -> ColumnRanking:
    """Rank columns for performance and for privacy (Figure 4 of [PBI17]_).

    Of columns with equal losses the earlier one counts as the more valuable, to both sides; so where the sensitive
    column is the target the two lists are each other's reverse.
    """
    judge.prepare_without_each(range(judge.n_columns), progress)
    performance, attack = judge.losses()
    by_performance = np.argsort(-performance.round(12), kind="stable")
    by_privacy = np.argsort(-attack.round(12), kind="stable")[::-1]
    return ColumnRanking(tuple(by_performance.tolist()), tuple(by_privacy.tolist()))


SIGNIFICANCE_LEVEL = 0.05
"""A lower performance is put up with unless the p-value is below this."""


@dataclass(frozen=True)
class AcceptanceRule:
    """When a subset is a candidate (Objective 2 of [PBI17]_).

    Parameters
    ----------
    max_breach_increase : float, default=0
        α: the largest PBI in percent.
    allow_increase : bool, default=False
        Whether α may be above 0, where an attacker may do better than with all columns.
    bound_path : bool, default=True
        Whether a drop that leaves the breach above α is put back (Figure 5). If not, only performance decides what
        is put back, and subsets above α are passed through without becoming candidates: with α below 0 few single
        drops reach it, and this is what the paper's example with α = DistP does (Tables 1 and 2, Figure 6).
    max_performance_loss : float or None, default=5
        Largest loss of performance in percent of the baseline's, significant or not: over few folds a large loss may
        not be significant. None is the paper's rule, significance alone.
    """

    max_breach_increase: float = 0.0
    allow_increase: bool = False
    bound_path: bool = True
    max_performance_loss: float | None = 5.0

    def __post_init__(self) -> None:
        if not isinstance(self.allow_increase, bool | np.bool_):
            problem = f"got an object of type {type(self.allow_increase).__name__}"
            raise InvalidParameterError("allow_increase", problem, allowed="True or False")
        if not np.isfinite(self.max_breach_increase):
            problem = f"got {self.max_breach_increase!r}"
            raise InvalidParameterError("max_breach_increase", problem, allowed="a finite number of percent")
        if self.max_breach_increase > 0 and not self.allow_increase:
            problem = f"got {self.max_breach_increase!r}"
            hint = "above 0 an attacker may do better than with all columns; set allow_increase to permit it"
            raise InvalidParameterError("max_breach_increase", problem, allowed="at most 0", hint=hint)
        loss = self.max_performance_loss
        if loss is not None and not 0 <= loss <= 100:
            raise InvalidParameterError("max_performance_loss", f"got {loss!r}", allowed="a percentage from 0 to 100")

    def keeps_performance(self, performance: float, p_value: float, baseline: float) -> bool:
        """Whether a performance is no lower than the baseline's, or not significantly and not by too much."""
        if performance >= baseline - _ROUNDING:
            return True
        loss = self.max_performance_loss
        is_large = loss is not None and performance < (1 - loss / 100) * baseline - _ROUNDING
        return p_value >= SIGNIFICANCE_LEVEL and not is_large

    def is_safe(self, breach_increase: float) -> bool:
        """Whether a breach is at most α."""
        return breach_increase <= self.max_breach_increase + _ROUNDING


@dataclass(frozen=True)
class Step:
    """One drop that was tried: by which list, of which column, and what came of it."""

    ranked_list: str
    column: int
    outcome: Outcome


@dataclass(frozen=True)
class CandidateSearch:
    """Candidates of a search, in the order found, each once; the baseline is not among them."""

    baseline: Candidate
    candidates: tuple[Candidate, ...]
    steps: tuple[Step, ...]
    rule: AcceptanceRule

    @property
    def compared(self) -> tuple[Candidate, ...]:
        """Baseline and candidates: what E(S) ranks."""
        return (self.baseline, *self.candidates)

    def evaluate(
        self,
        weights: Sequence[float] = EvaluationWeights(),
        *,
        factors: FurtherFactors | None = None,
    ) -> Evaluation:
        """E(S) of :attr:`compared`."""
        return evaluation_scores(
            [found.performance for found in self.compared],
            [found.breach_increase for found in self.compared],
            [len(found.columns) for found in self.compared],
            weights,
            extra=factors.of([found.columns for found in self.compared]) if factors else None,
        )

    def safe_in_order(
        self, weights: Sequence[float] = EvaluationWeights(), *, factors: FurtherFactors | None = None
    ) -> list[Candidate]:
        """Those with a breach of at most α by E(S), the highest first; the baseline is one unless α is below 0."""
        found = [self.compared[place] for place in self.evaluate(weights, factors=factors).order]
        return [candidate for candidate in found if self.rule.is_safe(candidate.breach_increase)]

    def best(
        self, weights: Sequence[float] = EvaluationWeights(), *, factors: FurtherFactors | None = None
    ) -> Candidate | None:
        """Highest E(S) of those with a breach of at most α."""
        return next(iter(self.safe_in_order(weights, factors=factors)), None)


def candidate_subsets(
    judge: SubsetJudge,
    ranking: ColumnRanking,
    rule: AcceptanceRule | None = None,
    *,
    lists: Sequence[RankedList] = ("performance", "privacy"),
    progress: Progress | None = None,
) -> CandidateSearch:
    """Find candidate subsets by backward elimination along ranked lists (Figure 5 of [PBI17]_).

    A list is walked once from its end; a drop that breaks the rule is put back for good. Every subset accepted on the
    way is a candidate.

    **Deviations.** Figure 5 prints ``S = RankedList - {R_i}``, which taken literally drops one column of all; as the
    text and Tables 1, 2 and 4 do, a column is dropped from what is left. The last column is never dropped: without
    columns there is no release. A subset that both lists
    come to is one candidate, where the paper lists it under the first.

    References
    ----------
    .. [PBI17] Jafer, Matwin, Sokolova: A Multi-dimensional Privacy-aware Evaluation Function in Automatic Feature
       Selection. Transactions on Data Privacy 10 (2017).
    """
    orders = {"performance": ranking.by_performance, "privacy": ranking.by_privacy}
    if not lists or any(name not in orders for name in lists):
        raise InvalidParameterError("lists", f"got {list(lists)!r}", allowed="performance, privacy or both")
    return eliminate_along(judge, {name: orders[name] for name in lists}, rule, progress=progress)


def eliminate_along(
    judge: SubsetJudge,
    orders: Mapping[str, Sequence[int]],
    rule: AcceptanceRule | None = None,
    *,
    progress: Progress | None = None,
) -> CandidateSearch:
    """Walk any orders of all columns, by name, from their ends as :func:`candidate_subsets` does."""
    rule = AcceptanceRule() if rule is None else rule
    found: dict[tuple[int, ...], Candidate] = {}
    steps: list[Step] = []
    total = judge.n_columns * len(orders)
    for n_walked, (name, order) in enumerate(orders.items()):
        if sorted(order) != list(range(judge.n_columns)):
            raise InvalidParameterError("orders", f"'{name}' does not", allowed="lists that hold every column once")
        for n_tried, (step, rest) in enumerate(_walk(judge, name, order, rule), start=1):
            steps.append(step)
            if step.outcome == "accepted":
                candidate = found.get(rest) or replace(judge.judge(rest, name), found_by=())
                found[rest] = replace(candidate, found_by=(*candidate.found_by, name))
            if progress is not None:
                progress(n_walked * judge.n_columns + n_tried, total, "columns tried")
        if progress is not None:
            progress((n_walked + 1) * judge.n_columns, total, "columns tried")
    return CandidateSearch(judge.baseline, tuple(found.values()), tuple(steps), rule)


def _walk(
    judge: SubsetJudge, name: str, order: Sequence[int], rule: AcceptanceRule
) -> Iterator[tuple[Step, tuple[int, ...]]]:
    kept = set(order)
    for column in reversed(order):
        if len(kept) == 1:
            return
        rest = tuple(sorted(kept - {column}))
        outcome = _outcome(judge, rest, rule)
        if outcome in ("accepted", "passed through"):
            kept.remove(column)
        yield Step(name, column, outcome), rest


def _outcome(judge: SubsetJudge, columns: tuple[int, ...], rule: AcceptanceRule) -> Outcome:
    performance = float(judge.fold_performance(columns).mean())
    if not rule.keeps_performance(performance, judge.p_value(columns), judge.baseline.performance):
        return "loses performance"
    if rule.is_safe(judge.breach_increase(columns)):
        return "accepted"
    return "breach too high" if rule.bound_path else "passed through"


# E(S) as the guide of forward and backward search, and how much a choice hangs on the order of the columns.


Direction = Literal["forward", "backward"]
DIRECTIONS: tuple[str, ...] = get_args(Direction)
Subset = tuple[int, ...]


@dataclass(frozen=True)
class ScoreSearch:
    """Subsets that a search guided by E(S) went through, the chosen one last.

    Parameters
    ----------
    path : tuple of Candidate
        From all columns downwards or from one column upwards.
    is_safe : bool
        Whether the chosen subset has a breach of at most α; a backward search may run out of columns before.
    """

    path: tuple[Candidate, ...]
    is_safe: bool

    @property
    def chosen(self) -> Candidate:
        """Where the search stopped."""
        return self.path[-1]


def search_by_score(
    judge: SubsetJudge,
    weights: Sequence[float] = EvaluationWeights(),
    *,
    direction: Direction = "backward",
    rule: AcceptanceRule | None = None,
    factors: FurtherFactors | None = None,
    progress: Progress | None = None,
) -> ScoreSearch:
    """Add or drop one column at a time as long as E(S) does not fall: the on-the-fly use that [PBI17]_ announces.

    In every step the neighbours (one column more or fewer) are ranked among each other; the one with the highest E(S)
    is then ranked against the present subset alone, and taken if its E(S) is higher, or equal with fewer columns.
    Ties between neighbours go to the earlier column.

    Parameters
    ----------
    rule : AcceptanceRule or None
        Only α counts. A safe subset is left only for a safe neighbour. As long as the present one is not safe the
        best neighbour, a safe one if there is any, is taken in any case.

    Notes
    -----
    A forward search starts from the best single column, as no columns are no release. With privacy and size weighing
    more than performance it stops there, since a further column almost never makes an attacker worse.

    References
    ----------
    .. [PBI17] Jafer, Matwin, Sokolova: A Multi-dimensional Privacy-aware Evaluation Function in Automatic Feature
       Selection. Transactions on Data Privacy 10 (2017), Section 7.
    """
    if direction not in DIRECTIONS:
        raise InvalidParameterError("direction", f"got {direction!r}", allowed=" or ".join(DIRECTIONS))
    rule = AcceptanceRule() if rule is None else rule
    present: Subset = tuple(range(judge.n_columns)) if direction == "backward" else ()
    path = [judge.baseline] if direction == "backward" else []
    n_steps = judge.n_columns - len(path)
    for step in range(n_steps):
        neighbours = _neighbours(judge, present, direction)
        must_move = not present or not rule.is_safe(judge.breach_increase(present))
        safe = [subset for subset in neighbours if rule.is_safe(judge.breach_increase(subset))]
        if not safe and not must_move:
            break
        ahead = _best(judge, safe or neighbours, weights, factors)
        if not must_move and _best(judge, [present, ahead], weights, factors) != ahead:
            break
        present = ahead
        path.append(judge.judge(present, direction))
        if progress is not None:
            progress(step + 1, n_steps, f"columns {'dropped' if direction == 'backward' else 'added'}")
    return ScoreSearch(tuple(path), rule.is_safe(path[-1].breach_increase))


def _neighbours(judge: SubsetJudge, present: Subset, direction: Direction) -> list[Subset]:
    if direction == "backward":
        judge.prepare_without_each(present)
        return [tuple(other for other in present if other != column) for column in present]
    others = sorted(set(range(judge.n_columns)) - set(present))
    return [tuple(sorted((*present, column))) for column in others]


def _best(
    judge: SubsetJudge, subsets: Sequence[Subset], weights: Sequence[float], factors: FurtherFactors | None
) -> Subset:
    performance = [float(judge.fold_performance(subset).mean()) for subset in subsets]
    breach = [judge.breach_increase(subset) for subset in subsets]
    sizes = [len(subset) for subset in subsets]
    extra = factors.of(subsets) if factors else None
    return subsets[evaluation_scores(performance, breach, sizes, weights, extra=extra).best]


def check_whole_number(name: str, given: object, *, least: int) -> None:
    """Refuse what is no whole number from ``least``."""
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < least:
        raise InvalidParameterError(name, f"got {given!r}", allowed=f"a whole number of at least {least}")


@dataclass(frozen=True)
class OrderStability:
    """What searches along random orders of the columns choose.

    Parameters
    ----------
    choices : tuple of (tuple of int or None)
        Columns chosen in each order; None where no subset was accepted.
    candidates : tuple of Candidate
        All candidates of all orders, each once.
    """

    choices: tuple[Subset | None, ...]
    candidates: tuple[Candidate, ...]

    @property
    def most_frequent(self) -> tuple[Subset | None, float]:
        """Choice that most orders come to, of equals the first, and the fraction of the orders that do."""
        choice, times = Counter(self.choices).most_common(1)[0]
        return choice, times / len(self.choices)


def choices_from_random_orders(
    judge: SubsetJudge,
    weights: Sequence[float] = EvaluationWeights(),
    rule: AcceptanceRule | None = None,
    *,
    n_orders: int = 20,
    random_state: int = 0,
    factors: FurtherFactors | None = None,
    progress: Progress | None = None,
) -> OrderStability:
    """Search for candidates along random orders instead of ranked lists and choose by E(S) in each.

    The orders take the place of PerfR and PrivR in Figure 5 of [PBI17]_; the ranks of E(S) are those among the
    candidates of one order and the baseline. Subsets that several orders come to are fitted once.
    """
    check_whole_number("n_orders", n_orders, least=1)
    check_whole_number("random_state", random_state, least=0)
    rng = np.random.default_rng(random_state)
    choices: list[Subset | None] = []
    found: dict[Subset, Candidate] = {}
    for n_done in range(1, n_orders + 1):
        search = eliminate_along(judge, {"random order": rng.permutation(judge.n_columns).tolist()}, rule)
        best = search.best(weights, factors=factors)
        choices.append(best.columns if best else None)
        found |= {candidate.columns: candidate for candidate in search.candidates if candidate.columns not in found}
        if progress is not None:
            progress(n_done, n_orders, "random orders")
    return OrderStability(tuple(choices), tuple(found.values()))


# How a set of columns is searched for: along ranked lists, or by E(S) on the fly; and how much hangs on the order.


Search = Literal["lists", "forward", "backward"]
N_FREQUENT = 5


@dataclass(frozen=True)
class ColumnSearch:
    """What is searched, and by which rule and weights.

    Parameters
    ----------
    search : {"lists", "forward", "backward"}
    lists : sequence of str
        Ranked lists to walk along; of no meaning to the other two.
    rule : AcceptanceRule
        To the other two only α counts.
    weights : sequence of 3 float
    factors : FurtherFactors or None
    """

    search: Search
    lists: Sequence[RankedList]
    rule: AcceptanceRule
    weights: Sequence[float]
    factors: FurtherFactors | None = None

    def run(
        self, judge: SubsetJudge, ranked: Progress | None, tried: Progress | None
    ) -> tuple[CandidateSearch, Candidate]:
        """Find candidates and the one to take; ``ranked`` and ``tried`` are told how far ranking and search are.

        Raises
        ------
        PrivacyNotAchievableError
            If no set that was found has a breach of at most α.
        """
        if self.search != "lists":
            return self._run_by_score(judge, tried)
        ranking = rank_columns(judge, progress=ranked)
        found = candidate_subsets(judge, ranking, self.rule, lists=self.lists, progress=tried)
        best = found.best(self.weights, factors=self.factors)
        if best is None:
            anything = replace(self.rule, max_breach_increase=np.finfo(np.float64).max, allow_increase=True)
            raise self._out_of_reach(candidate_subsets(judge, ranking, anything, lists=self.lists).compared)
        return found, best

    def _run_by_score(self, judge: SubsetJudge, tried: Progress | None) -> tuple[CandidateSearch, Candidate]:
        direction: Literal["forward", "backward"] = "forward" if self.search == "forward" else "backward"
        walked = search_by_score(
            judge, self.weights, direction=direction, rule=self.rule, factors=self.factors, progress=tried
        )
        if not walked.is_safe:
            raise self._out_of_reach(walked.path)
        everything = judge.baseline.columns
        others = tuple(found for found in walked.path if found.columns != everything)
        chosen = judge.baseline if walked.chosen.columns == everything else walked.chosen
        return CandidateSearch(judge.baseline, others, (), self.rule), chosen

    def _out_of_reach(self, found: Sequence[Candidate]) -> PrivacyNotAchievableError:
        """Say which breach the sets that were found do reach."""
        least = min(candidate.breach_increase for candidate in found)
        promise = f"a breach increase of at most {self.rule.max_breach_increase:g}% by dropping columns"
        hint = "raise max_breach_increase, or use another attacker, list or search"
        return PrivacyNotAchievableError(promise, best_level=least, hint=hint)


def stability_evidence(found: OrderStability, chosen: Candidate, names: Sequence[str]) -> dict[str, Any]:
    """Tell in which share of random orders the same columns are chosen, and what is chosen most often.

    An order that leads to no set with a breach of at most α has None for its columns.
    """
    n_orders = len(found.choices)
    counted = Counter(found.choices)
    return {
        "n_random_orders": n_orders,
        "share_with_the_same_choice": counted[chosen.columns] / n_orders,
        "n_different_choices": len(counted),
        "most_frequent_choices": [
            {"columns": None if choice is None else [names[column] for column in choice], "share": times / n_orders}
            for choice, times in counted.most_common(N_FREQUENT)
        ],
    }
