"""E(S) as the guide of forward and backward search, and how much a choice hangs on the order of the columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from sfumato.contract import Progress
from sfumato.errors import InvalidParameterError
from sfumato.selection.breach import AcceptanceRule, eliminate_along
from sfumato.selection.judging import Candidate, SubsetJudge
from sfumato.selection.tradeoff import EvaluationWeights, evaluation_scores

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
    n_compared : int
        Number of subsets looked at.
    """

    path: tuple[Candidate, ...]
    is_safe: bool
    n_compared: int

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
    n_compared = len(path)
    n_steps = judge.n_columns - len(path)
    for step in range(n_steps):
        neighbours = _neighbours(judge, present, direction)
        n_compared += len(neighbours)
        must_move = not present or not rule.is_safe(judge.breach_increase(present))
        safe = [subset for subset in neighbours if rule.is_safe(judge.breach_increase(subset))]
        if not safe and not must_move:
            break
        ahead = _best(judge, safe or neighbours, weights)
        if not must_move and _best(judge, [present, ahead], weights) != ahead:
            break
        present = ahead
        path.append(judge.judge(present, direction))
        if progress is not None:
            progress(step + 1, n_steps, f"columns {'dropped' if direction == 'backward' else 'added'}")
    return ScoreSearch(tuple(path), rule.is_safe(path[-1].breach_increase), n_compared)


def _neighbours(judge: SubsetJudge, present: Subset, direction: Direction) -> list[Subset]:
    if direction == "backward":
        judge.prepare_without_each(present)
        return [tuple(other for other in present if other != column) for column in present]
    others = sorted(set(range(judge.n_columns)) - set(present))
    return [tuple(sorted((*present, column))) for column in others]


def _best(judge: SubsetJudge, subsets: Sequence[Subset], weights: Sequence[float]) -> Subset:
    performance = [float(judge.fold_performance(subset).mean()) for subset in subsets]
    breach = [judge.breach_increase(subset) for subset in subsets]
    sizes = [len(subset) for subset in subsets]
    return subsets[evaluation_scores(performance, breach, sizes, weights).best]


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
    column_fractions : tuple of float
        Of every column, the fraction of the orders whose choice holds it.
    """

    choices: tuple[Subset | None, ...]
    candidates: tuple[Candidate, ...]
    column_fractions: tuple[float, ...]

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
        best = search.best(weights)
        choices.append(best.columns if best else None)
        found |= {candidate.columns: candidate for candidate in search.candidates if candidate.columns not in found}
        if progress is not None:
            progress(n_done, n_orders, "random orders")
    held = [sum(column in (choice or ()) for choice in choices) / n_orders for column in range(judge.n_columns)]
    return OrderStability(tuple(choices), tuple(found.values()), tuple(held))
