"""Best-first search for the set of columns with the highest score, by which wrappers choose that know no privacy."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from sfumato.errors import InvalidParameterError
from sfumato.learning.fold_scores import SubsetScores
from sfumato.progress import Progress

Subset = tuple[int, ...]
WrapperDirection = Literal["forward", "backward"]

N_STALE = 5
LEAST_GAIN = 1e-5
"""By how much more a set must score for a forward search to count it as better, as in Weka."""


REPEATED_UNTIL = 0.01
"""Share of the mean that the deviation of an error over repeated cross-validations may have, as in Weka."""


def repeated_score(times: Sequence[SubsetScores], columns: Sequence[int]) -> float:
    """Score of a set over several cross-validations, of which no more are made than it takes to be sure of it.

    As Weka's ``WrapperSubsetEval``: the second, third, ... is added until the standard deviation of the error is at
    most 1 % of its mean.
    """
    errors: list[float] = []
    for scores in times:
        errors.append(1 - float(scores.scores(columns).mean()))
        if len(errors) > 1 and np.std(errors) <= REPEATED_UNTIL * np.mean(errors):
            break
    return 1 - float(np.mean(errors))


@dataclass(frozen=True)
class BestFirst:
    """Outcome of a best-first search.

    Parameters
    ----------
    columns : tuple of int
        The best set, ascending; a forward search that nothing improves has none.
    score : float
    n_scored : int
        Different sets whose score was asked for.
    n_expanded : int
        Sets whose neighbours were looked at.
    """

    columns: Subset
    score: float
    n_scored: int
    n_expanded: int


def best_first_search(
    score: Callable[[Subset], float],
    n_columns: int,
    *,
    direction: WrapperDirection = "forward",
    n_stale: int = N_STALE,
    progress: Progress | None = None,
) -> BestFirst:
    """Search sets of columns by the best one that is not expanded yet, from none upwards or from all downwards.

    The search of [KJ97]_ as Weka's ``BestFirst`` does it: the best set on the open list is expanded by adding
    (dropping) one column at a time; the list holds the ``n_stale`` best sets, of equal ones the earlier first; the
    search ends after ``n_stale`` expansions in a row that led to no better set. Forward, better means by more than
    0.00001; backward, higher, or equal with fewer columns.

    Parameters
    ----------
    score : callable
        Score of a set of columns (ascending places); higher is better. Every set is asked for once.
    n_columns : int
    direction : {"forward", "backward"}
    n_stale : int, default=5
    progress : callable or None
        Called after every expansion; the total is what is left if none of the next leads anywhere.

    References
    ----------
    .. [KJ97] Kohavi, John: Wrappers for Feature Subset Selection. Artificial Intelligence 97 (1997) 273-324.

    Examples
    --------
    >>> worth = {(): 0.5, (0,): 0.6, (1,): 0.7, (0, 1): 0.9}
    >>> best_first_search(worth.__getitem__, 2).columns
    (0, 1)
    """
    if direction not in get_args(WrapperDirection):
        raise InvalidParameterError("direction", f"got {direction!r}", allowed=" or ".join(get_args(WrapperDirection)))
    if n_stale < 1:
        raise InvalidParameterError("n_stale", f"got {n_stale!r}", allowed="a whole number of at least 1")
    best: Subset = () if direction == "forward" else tuple(range(n_columns))
    known = {best: score(best)}
    highest = known[best]
    open_sets = _OpenSets(n_stale)
    open_sets.add(best, highest)
    n_expanded = stale = 0
    while stale < n_stale and len(open_sets):
        present = open_sets.take_best()
        is_better = False
        for column in range(n_columns):
            if (column in present) == (direction == "forward"):
                continue
            neighbour = tuple(sorted(set(present) ^ {column}))
            if neighbour not in known:
                known[neighbour] = score(neighbour)
            found = known[neighbour]
            open_sets.add(neighbour, found)
            if direction == "forward":
                gains = found - highest > LEAST_GAIN
            else:
                gains = found > highest or (found == highest and len(neighbour) < len(best))
            if gains:
                is_better, best, highest = True, neighbour, found
        n_expanded += 1
        stale = 0 if is_better else stale + 1
        if progress is not None:
            progress(n_expanded, n_expanded + n_stale - stale, "sets of columns expanded")
    return BestFirst(best, highest, len(known), n_expanded)


class _OpenSets:
    """Sets to expand, at most so many, the best first and of equal ones the earlier."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._costs: list[float] = []
        self._sets: list[Subset] = []

    def __len__(self) -> int:
        return len(self._sets)

    def add(self, subset: Subset, score: float) -> None:
        """Put a set behind those that score as much; what is then one too many at the end falls out."""
        place = bisect_left(self._costs, True, key=lambda cost: cost > -score)
        self._costs.insert(place, -score)
        self._sets.insert(place, subset)
        del self._costs[self._most :], self._sets[self._most :]

    def take_best(self) -> Subset:
        self._costs.pop(0)
        return self._sets.pop(0)
