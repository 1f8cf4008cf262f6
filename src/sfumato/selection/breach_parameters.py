"""Parameters of the breach-aware selection: what is allowed, and how the command line offers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.contract import ParameterSpec
from sfumato.errors import InvalidParameterError
from sfumato.guarantees.estimated import BREACH_ATTACKERS
from sfumato.selection.base import check_choices
from sfumato.selection.breach import AcceptanceRule
from sfumato.selection.judging import RankedList
from sfumato.selection.tradeoff import EvaluationWeights, evaluation_scores

LISTS: Mapping[str, tuple[RankedList, ...]] = {
    "both": ("performance", "privacy"),
    "performance": ("performance",),
    "privacy": ("privacy",),
}

BREACH_PARAMETERS: Mapping[str, ParameterSpec] = {
    "max_breach_increase": ParameterSpec("percent by which an attacker may do better than before"),
    "allow_increase": ParameterSpec("must be true for a max_breach_increase above 0"),
    "weights": ParameterSpec("of performance, privacy and size in E(S)"),
    "learner": ParameterSpec("what the recipient trains", tuple(BREACH_ATTACKERS)),
    "attacker": ParameterSpec("what the attacker trains: as learner, A+B for the stronger, strongest"),
    "metric": ParameterSpec("performance of both"),
    "search": ParameterSpec("along ranked lists; or by E(S), adding or dropping columns"),
    "lists": ParameterSpec("ranked lists along which columns are dropped", tuple(LISTS)),
    "test": ParameterSpec("t-test for a loss of performance"),
    "max_performance_loss": ParameterSpec("largest loss of performance in percent; 100: only the test"),
    "n_random_orders": ParameterSpec(
        "random orders of the columns, to see if they lead to the same choice", at_least=0
    ),
    "n_folds": ParameterSpec("folds of the cross-validation"),
    "random_state": ParameterSpec("seed of the folds", at_least=0),
    "sensitive": ParameterSpec("which sensitive column, or the target's name"),
    "n_workers": ParameterSpec("processes to train in; default: all cores for a large table"),
}


def checked_rule(selector: Any) -> AcceptanceRule:
    """Check a selector's parameters that are no learners, and return when a set of columns is a candidate."""
    check_choices(selector, "metric", "search", "lists", "test")
    selector.check_parameters("random_state", "n_random_orders")
    alpha, loss = selector.max_breach_increase, selector.max_performance_loss
    if not _is_number(alpha):
        raise InvalidParameterError("max_breach_increase", f"got {alpha!r}", allowed="a number of percent")
    if loss is not None and not _is_number(loss):
        raise InvalidParameterError("max_performance_loss", f"got {loss!r}", allowed="a percentage or None")
    return AcceptanceRule(float(alpha), selector.allow_increase, bound_path=alpha >= 0, max_performance_loss=loss)


def three_weights(given: Sequence[float] | Mapping[str, float]) -> EvaluationWeights:
    """Weights by name or in order, refused before any training where E(S) would refuse them."""
    allowed = "three numbers, for performance, privacy and size"
    if isinstance(given, Mapping):
        if not set(given) <= set(EvaluationWeights._fields):
            raise InvalidParameterError("weights", "got other names", allowed=allowed)
        given = [given.get(name, 0.0) for name in EvaluationWeights._fields]
    if isinstance(given, str) or np.ndim(given) != 1 or len(given) != 3 or not all(map(_is_number, given)):
        raise InvalidParameterError("weights", "got something else", allowed=allowed)
    weights = EvaluationWeights(*map(float, given))
    evaluation_scores([1.0], [0.0], [1], weights)
    return weights


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
