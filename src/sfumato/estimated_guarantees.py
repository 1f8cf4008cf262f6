"""What a release can promise from an estimate only, as data; :mod:`sfumato.guarantees` lists it with the others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from sfumato.errors import InvalidParameterError
from sfumato.promise_data import AsDict

BreachAttacker = Literal["naive-bayes", "c45", "strongest"]
BreachMetric = Literal["accuracy", "balanced_accuracy", "auc"]

_ATTACKERS = {
    "naive-bayes": "naive Bayes",
    "c45": "decision tree",
    "strongest": "naive Bayes or decision tree, whichever is stronger,",
}
_METRICS = {"accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "auc": "area under the ROC curve"}
_ROUNDING = 1e-9
_CONFIDENCES = (0.5, 0.99)  # an interval that is wider still would be met by any release


@dataclass(frozen=True)
class BreachBound(AsDict):
    """Privacy breach increase (PBI) of at most α percent, as estimated by cross-validation.

    Definition 1 of Jafer, Matwin and Sokolova (Transactions on Data Privacy 10, 2017): by how many percent an attacker
    predicts the sensitive column better from ``columns`` than from ``baseline``. An estimate for a kind of attacker,
    not a property of the table: another attacker may do better.

    Parameters
    ----------
    max_breach_increase : float
        α in percent.
    sensitive : str
        Column that the attacker predicts.
    columns, baseline : tuple of str
        Quasi-identifiers that are released, and all of the original.
    attacker : {"naive-bayes", "c45", "strongest"}
    metric : {"accuracy", "balanced_accuracy", "auc"}
        How well the attacker does.
    confidence : float
        Of the interval around the estimate, whose lower end must not exceed α.
    numeric : tuple of str
        Columns of ``baseline`` that the attacker takes as numbers instead of categories.
    """

    kind: ClassVar[str] = "breach-bound"
    max_breach_increase: float
    sensitive: str
    columns: tuple[str, ...]
    baseline: tuple[str, ...]
    attacker: BreachAttacker = "naive-bayes"
    metric: BreachMetric = "accuracy"
    confidence: float = 0.95
    numeric: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not math.isfinite(self.max_breach_increase):
            problem = f"got {self.max_breach_increase!r}"
            raise InvalidParameterError("max_breach_increase", problem, allowed="a finite number of percent")
        is_repeated = len(set(self.baseline)) < len(self.baseline)
        if is_repeated or not set(self.columns) <= set(self.baseline) or self.sensitive in self.baseline:
            allowed = "all quasi-identifiers once each, the released ones included and the sensitive column left out"
            raise InvalidParameterError("baseline", "got another list", allowed=allowed)
        if not set(self.numeric) <= set(self.baseline):
            raise InvalidParameterError("numeric", "names other columns", allowed="some of the baseline")
        for name, choices in (("attacker", get_args(BreachAttacker)), ("metric", get_args(BreachMetric))):
            if getattr(self, name) not in choices:
                raise InvalidParameterError(name, "got another one", allowed=f"one of {', '.join(choices)}")
        if not _CONFIDENCES[0] <= self.confidence <= _CONFIDENCES[1]:
            problem, (least, most) = f"got {self.confidence!r}", _CONFIDENCES
            raise InvalidParameterError("confidence", problem, allowed=f"between {least:g} and {most:g}")

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        alpha = self.max_breach_increase
        better = f"at most {alpha:g}% better" if alpha >= 0 else f"at least {-alpha:g}% worse"
        return (
            f"estimated, not proven: an attacker of the kind {_ATTACKERS[self.attacker]} who trains on the "
            f"{len(self.columns)} released quasi-identifying columns predicts '{self.sensitive}' {better} (by "
            f"{_METRICS[self.metric]}) than one who trains on all {len(self.baseline)} quasi-identifying columns, "
            f"within the error of the estimate (the level found is the lower end of its {self.confidence:.0%} "
            "interval, in percent)"
        )

    def is_met_by(self, level: float) -> bool:
        """Whether the lower end of an interval is low enough (here lower is better)."""
        return level <= self.max_breach_increase + _ROUNDING
