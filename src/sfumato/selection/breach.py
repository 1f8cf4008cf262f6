"""Candidate subsets of columns that keep performance and do not help an attacker: the ranker and the generator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from sfumato.contract import Progress
from sfumato.errors import InvalidParameterError
from sfumato.selection.judging import Candidate, RankedList, SubsetJudge
from sfumato.selection.tradeoff import (
    Evaluation,
    EvaluationWeights,
    ExtraFactor,
    evaluation_scores,
)

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
    performance_losses, attack_losses : tuple of float
        The losses, by column.
    """

    by_performance: tuple[int, ...]
    by_privacy: tuple[int, ...]
    performance_losses: tuple[float, ...]
    attack_losses: tuple[float, ...]


def rank_columns(judge: SubsetJudge, *, progress: Progress | None = None) -> ColumnRanking:
    """Rank columns for performance and for privacy (Figure 4 of [PBI17]_).

    Of columns with equal losses the earlier one counts as the more valuable, to both sides; so where the sensitive
    column is the target the two lists are each other's reverse.
    """
    judge.prepare_without_each(range(judge.n_columns), progress)
    performance, attack = judge.losses()
    by_performance = np.argsort(-performance.round(12), kind="stable")
    by_privacy = np.argsort(-attack.round(12), kind="stable")[::-1]
    return ColumnRanking(
        tuple(by_performance.tolist()), tuple(by_privacy.tolist()), tuple(performance.tolist()), tuple(attack.tolist())
    )


@dataclass(frozen=True)
class AcceptanceRule:
    """When a subset is a candidate (Objective 2 of [PBI17]_).

    Parameters
    ----------
    max_breach_increase : float, default=0
        α: the largest PBI in percent.
    allow_increase : bool, default=False
        Whether α may be above 0, where an attacker may do better than with all columns.
    significance_level : float, default=0.05
        A lower performance is put up with unless the p-value is below this.
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
    significance_level: float = 0.05
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
            hint = "above 0 an attacker may do better than with all columns; say allow_increase if that is meant"
            raise InvalidParameterError("max_breach_increase", problem, allowed="at most 0", hint=hint)
        if not 0 < self.significance_level < 1:
            problem = f"got {self.significance_level!r}"
            raise InvalidParameterError("significance_level", problem, allowed="between 0 and 1")
        loss = self.max_performance_loss
        if loss is not None and not 0 <= loss <= 100:
            raise InvalidParameterError("max_performance_loss", f"got {loss!r}", allowed="a percentage from 0 to 100")

    def keeps_performance(self, performance: float, p_value: float, baseline: float) -> bool:
        """Whether a performance is no lower than the baseline's, or not significantly and not by too much."""
        if performance >= baseline - _ROUNDING:
            return True
        loss = self.max_performance_loss
        is_large = loss is not None and performance < (1 - loss / 100) * baseline - _ROUNDING
        return p_value >= self.significance_level and not is_large

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
        extra: Mapping[str, ExtraFactor] | None = None,
    ) -> Evaluation:
        """E(S) of :attr:`compared`."""
        return evaluation_scores(
            [found.performance for found in self.compared],
            [found.breach_increase for found in self.compared],
            [len(found.columns) for found in self.compared],
            weights,
            extra=extra,
        )

    def best(
        self, weights: Sequence[float] = EvaluationWeights(), *, extra: Mapping[str, ExtraFactor] | None = None
    ) -> Candidate | None:
        """Highest E(S) of those with a breach of at most α; the baseline is one of them unless α is below 0."""
        for place in self.evaluate(weights, extra=extra).order:
            if self.rule.is_safe(self.compared[place].breach_increase):
                return self.compared[place]
        return None


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

    **Deviations.** The last column is never dropped: without columns there is no release. A subset that both lists
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
