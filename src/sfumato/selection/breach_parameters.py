"""Parameters of the breach-aware selection: what is allowed, and how the command line offers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np

from sfumato.contract import Parameter
from sfumato.errors import InvalidParameterError
from sfumato.guarantees.estimated import BREACH_ATTACKERS, BreachMetric
from sfumato.selection.base import check_choice
from sfumato.selection.breach import AcceptanceRule
from sfumato.selection.breach_search import SEARCHES
from sfumato.selection.judging import RankedList
from sfumato.selection.search_by_score import check_whole_number
from sfumato.selection.significance import FOLD_TESTS
from sfumato.selection.tradeoff import EvaluationWeights, evaluation_scores

LISTS: Mapping[str, tuple[RankedList, ...]] = {
    "both": ("performance", "privacy"),
    "performance": ("performance",),
    "privacy": ("privacy",),
}
EVEN = (1 / 3, 1 / 3, 1 / 3)
MAX_LOSS = 5.0

PARAMETERS = (
    Parameter("max_breach_increase", float, 0.0, "percent by which an attacker may do better than before"),
    Parameter("allow_increase", bool, False, "must be true for a max_breach_increase above 0"),
    Parameter("weights", dict, EVEN, "of performance, privacy and size in E(S)"),
    Parameter("learner", str, "naive-bayes", "what the recipient trains", tuple(BREACH_ATTACKERS)),
    Parameter("attacker", str, "naive-bayes", "what the attacker trains: as learner, A+B for the stronger, strongest"),
    Parameter("metric", str, "accuracy", "performance of both", get_args(BreachMetric)),
    Parameter("search", str, "lists", "along ranked lists; or by E(S), adding or dropping columns", SEARCHES),
    Parameter("lists", str, "both", "ranked lists along which columns are dropped", tuple(LISTS)),
    Parameter("test", str, "corrected", "t-test for a loss of performance", FOLD_TESTS),
    Parameter("max_performance_loss", float, MAX_LOSS, "largest loss of performance in percent; 100: only the test"),
    Parameter("n_random_orders", int, 0, "random orders of the columns, to see if they lead to the same choice"),
    Parameter("n_folds", int, 10, "folds of the cross-validation"),
    Parameter("random_state", int, 0, "seed of the folds"),
    Parameter("sensitive", str, None, "which sensitive column, or the target's name"),
    Parameter("n_workers", int, None, "processes to train in; default: all cores for a large table"),
)


def checked_rule(given: Mapping[str, Any]) -> AcceptanceRule:
    """Check parameters that are no learners, and return when a set of columns is a candidate."""
    check_choice("metric", given["metric"], get_args(BreachMetric))
    check_choice("search", given["search"], SEARCHES)
    check_choice("lists", given["lists"], tuple(LISTS))
    check_choice("test", given["test"], FOLD_TESTS)
    check_whole_number("random_state", given["random_state"], least=0)
    check_whole_number("n_random_orders", given["n_random_orders"], least=0)
    alpha, loss = given["max_breach_increase"], given["max_performance_loss"]
    if not _is_number(alpha):
        raise InvalidParameterError("max_breach_increase", f"got {alpha!r}", allowed="a number of percent")
    if loss is not None and not _is_number(loss):
        raise InvalidParameterError("max_performance_loss", f"got {loss!r}", allowed="a percentage or None")
    return AcceptanceRule(float(alpha), given["allow_increase"], bound_path=alpha >= 0, max_performance_loss=loss)


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
