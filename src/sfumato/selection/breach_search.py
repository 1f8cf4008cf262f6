"""How a set of columns is searched for: along ranked lists, or by E(S) on the fly; and how much hangs on the order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from sfumato.contract import Progress
from sfumato.errors import PrivacyNotAchievableError
from sfumato.selection.breach import AcceptanceRule, CandidateSearch, candidate_subsets, rank_columns
from sfumato.selection.judging import Candidate, RankedList, SubsetJudge
from sfumato.selection.search_by_score import OrderStability, search_by_score

Search = Literal["lists", "forward", "backward"]
SEARCHES: tuple[str, ...] = get_args(Search)
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
    """

    search: Search
    lists: Sequence[RankedList]
    rule: AcceptanceRule
    weights: Sequence[float]

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
        best = found.best(self.weights)
        if best is None:
            anything = replace(self.rule, max_breach_increase=np.finfo(np.float64).max, allow_increase=True)
            raise self._out_of_reach(candidate_subsets(judge, ranking, anything, lists=self.lists).compared)
        return found, best

    def _run_by_score(self, judge: SubsetJudge, tried: Progress | None) -> tuple[CandidateSearch, Candidate]:
        direction: Literal["forward", "backward"] = "forward" if self.search == "forward" else "backward"
        walked = search_by_score(judge, self.weights, direction=direction, rule=self.rule, progress=tried)
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
