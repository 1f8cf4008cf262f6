"""Parameters of the breach-aware selection: what is allowed, how the command line offers them, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from sfumato.errors import InvalidParameterError
from sfumato.guarantees.estimated import BREACH_ATTACKERS
from sfumato.guarantees.forms import list_of, number, record, word
from sfumato.mechanisms.base import SEEDS
from sfumato.mechanisms.breach.factors import FURTHER_FACTORS
from sfumato.mechanisms.breach.search import AcceptanceRule
from sfumato.mechanisms.breach.subset_evaluation import RankedList, SubsetJudge
from sfumato.mechanisms.breach.tradeoff import EvaluationWeights, evaluation_scores
from sfumato.mechanisms.containment.base import check_choices
from sfumato.parameters import ParameterSpec
from sfumato.progress import Progress

LISTS: Mapping[str, tuple[RankedList, ...]] = {
    "both": ("performance", "privacy"),
    "performance": ("performance",),
    "privacy": ("privacy",),
}

OWN_CLASSIFIER = "own"
"""What a manifest calls a classifier that was given as an object: its class may have any name."""
LEARNER = ParameterSpec(
    "what the recipient trains", tuple(BREACH_ATTACKERS), stated=word(*BREACH_ATTACKERS, OWN_CLASSIFIER)
)
ATTACKER_BY_NAME = {"type": "string", "pattern": "^[a-z0-9+-]{1,120}$"}
"""Form of the names of attackers, which a promise holds in the same words."""
N_WORKERS = ParameterSpec("processes to train in; default: all cores for a large table", is_stated=False)
SEED_OF_FOLDS = ParameterSpec("seed of the folds", at_least=0, below=SEEDS)

BREACH_PARAMETERS: Mapping[str, ParameterSpec] = {
    "max_breach_increase": ParameterSpec(
        "percent by which the attacker may do better than before; distp: as mere guessing; baseline: 0",
        digits=6,
        stated=number(-100, 10_000, digits=6),
    ),
    "allow_increase": ParameterSpec("must be true for a max_breach_increase above 0"),
    "weights": ParameterSpec("weights of performance, privacy and size in E(S)", stated=list_of(number(0, 10_000))),
    "learner": LEARNER,
    "attacker": ParameterSpec(
        "what the attacker trains: as for learner; A+B: the stronger of both; strongest", stated=ATTACKER_BY_NAME
    ),
    "metric": ParameterSpec("performance of both"),
    "search": ParameterSpec("along ranked lists; or by E(S), adding or dropping columns"),
    "lists": ParameterSpec("ranked lists along which columns are dropped", tuple(LISTS)),
    "test": ParameterSpec("t-test for a loss of performance"),
    "max_performance_loss": ParameterSpec("largest loss of performance in percent; 100: only the test"),
    "n_random_orders": ParameterSpec(
        "random orders of the columns, to see if they lead to the same choice", at_least=0, at_most=9_999
    ),
    "n_folds": ParameterSpec("folds of the cross-validation", at_most=999),
    "random_state": SEED_OF_FOLDS,
    "sensitive": ParameterSpec("which sensitive column, or the target's name"),
    "n_workers": N_WORKERS,
    "factors": ParameterSpec(
        f"weights of further factors of E(S): {', '.join(FURTHER_FACTORS)}",
        stated=record({}, dict.fromkeys(FURTHER_FACTORS, number(0, 10_000))),
    ),
    "k": ParameterSpec("coarsen the chosen columns to k-anonymity afterwards", at_least=2),
    "then": ParameterSpec("mechanism that coarsens them (with k; default: mondrian)"),
    "then_settings": ParameterSpec("its settings other than k"),
}


AlphaName = Literal["distp", "baseline"]
"""α by name: the PBI of guessing the most frequent sensitive value (the paper's own choice), or that of all columns."""


def checked_rule(selector: Any) -> AcceptanceRule:
    """Check a selector's parameters that are no learners, and return when a set of columns is a candidate.

    Of an α by name that must be measured, the rule is that of 0; see :func:`rule_by_name`.
    """
    check_choices(selector, "metric", "search", "lists", "test")
    selector.check_parameters("random_state", "n_random_orders")
    alpha, loss = selector.max_breach_increase, selector.max_performance_loss
    if isinstance(alpha, str) and alpha in get_args(AlphaName):
        alpha = 0.0
    if not _is_number(alpha):
        allowed = f"a number of percent, or {' or '.join(get_args(AlphaName))}"
        raise InvalidParameterError("max_breach_increase", f"got {alpha!r}", allowed=allowed)
    if loss is not None and not _is_number(loss):
        raise InvalidParameterError("max_performance_loss", f"got {loss!r}", allowed="a percentage or None")
    return AcceptanceRule(float(alpha), selector.allow_increase, bound_path=alpha >= 0, max_performance_loss=loss)


def rule_by_name(rule: AcceptanceRule, given: float | AlphaName, judge: SubsetJudge) -> AcceptanceRule:
    """Put the measured number in the place of α by name.

    Without any column an attacker says the most frequent value; the paper's DistP is his share of right answers.
    """
    if given != "distp":
        return rule
    alpha = judge.breach_increase(())
    if alpha > 0 and not rule.allow_increase:
        problem = "got distp, and with all columns the attacker does worse than by mere guessing"
        hint = "name another attacker, take baseline, or set allow_increase"
        raise InvalidParameterError("max_breach_increase", problem, allowed="at most 0", hint=hint)
    return replace(rule, max_breach_increase=alpha, bound_path=alpha >= 0)


def three_weights(given: Sequence[float] | Mapping[str, float]) -> EvaluationWeights:
    """Weights by name or in order, refused before any training where E(S) would refuse them."""
    allowed = "three numbers, for performance, privacy and size"
    if isinstance(given, Mapping):
        if not set(given) <= set(EvaluationWeights._fields):
            raise InvalidParameterError("weights", f"got the names {', '.join(map(str, given))}", allowed=allowed)
        given = [given.get(name, 0.0) for name in EvaluationWeights._fields]
    if isinstance(given, str) or np.ndim(given) != 1 or len(given) != 3 or not all(map(_is_number, given)):
        raise InvalidParameterError("weights", f"got {given!r}", allowed=allowed)
    weights = EvaluationWeights(*map(float, given))
    evaluation_scores([1.0], [0.0], [1], weights)
    return weights


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


# How far a search is, counted in trainings, so that a bar can tell the time left.


class TrainingCount:
    """Counts trainings done of those that a search still needs at most.

    Sets that were scored before, or need no attacker because they lose performance, come off the total.

    Parameters
    ----------
    progress : callable
        Called as ``progress(done, total, "models trained")``; ``total`` may shrink.
    per_set : int
        Trainings for one set of columns: folds times learners that are trained.
    n_columns, n_lists : int
        The baseline, the sets without one column, and a walk along each list are expected.

    Examples
    --------
    >>> calls = []
    >>> count = TrainingCount(lambda *call: calls.append(call), per_set=10, n_columns=3, n_lists=1)
    >>> count.trained(1, 10, "trees")
    >>> count.tried(2, 3, "columns tried")
    >>> calls
    [(1, 60, 'models trained'), (1, 11, 'models trained')]
    """

    def __init__(self, progress: Progress, per_set: int, n_columns: int, n_lists: int) -> None:
        self._progress = progress
        self._per_set = per_set
        self._done = 0
        self._total = per_set * (1 + n_columns + n_lists * (n_columns - 1))  # a walk's first set is known

    def trained(self, done: int, total: int, what: str) -> None:
        """Count one training; the numbers given are those of one set and are not used."""
        self._done += 1
        self._report(max(self._total, self._done))

    def tried(self, done: int, total: int, what: str) -> None:
        """Expect trainings for the columns that are still to be tried."""
        self._report(min(self._total, self._done + self._per_set * (total - done)))

    def _report(self, total: int) -> None:
        self._total = total
        self._progress(self._done, total, "models trained")
