"""What can be promised from an estimate only: a bound on the privacy breach increase."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, get_args

from sfumato.errors import InvalidParameterError
from sfumato.guarantees.base import FormField, Guarantee, GuaranteeWords, Level, ReleaseFacts, declared
from sfumato.guarantees.forms import TEXT

BreachMetric = Literal["accuracy", "balanced_accuracy", "auc"]

BREACH_ATTACKERS = {
    "naive-bayes": "naive Bayes",
    "naive-bayes-discretized": "naive Bayes with intervals",
    "c45": "decision tree",
    "logistic-regression": "logistic regression",
    "random-forest": "random forest",
    "gradient-boosting": "gradient boosting",
}
"""Kinds of attackers that both a mechanism and the audit can train, in words."""

BREACH_CONFIDENCE = 0.95
"""Of the interval around an estimate, of mechanism and audit alike: a wider one would be met by any release."""

_METRICS = {"accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "auc": "area under the ROC curve"}


def attackers_in(attacker: str) -> tuple[str, ...]:
    """Kinds of which the strongest attacks: names joined by ``+``; ``strongest`` means the paper's two.

    Examples
    --------
    >>> attackers_in("c45+random-forest"), attackers_in("strongest")
    (('c45', 'random-forest'), ('naive-bayes', 'c45'))
    """
    kinds = () if not isinstance(attacker, str) else tuple(attacker.split("+"))
    if attacker == "strongest":
        return ("naive-bayes", "c45")
    if not kinds or len(set(kinds)) < len(kinds) or not set(kinds) <= set(BREACH_ATTACKERS):
        allowed = f"'strongest' or one of {', '.join(BREACH_ATTACKERS)}; or several, joined by '+'"
        raise InvalidParameterError("attacker", "but this one is not", allowed=allowed)
    return kinds


@declared
@dataclass(frozen=True)
class BreachBound(Guarantee):
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
    attacker : str
        Kind of attacker, or several of which the strongest counts (see :func:`attackers_in`).
    metric : {"accuracy", "balanced_accuracy", "auc"}
        How well the attacker does.
    confidence : float
        Of the interval around the estimate, whose lower end must not exceed α: always 0.95.
    numeric : tuple of str
        Columns of ``baseline`` that the attacker takes as numbers instead of categories.
    unit : str
        What folds are of. By persons nobody is tested on a person whom the attacker was trained on.
    """

    kind: ClassVar[str] = "breach-bound"
    level: ClassVar[Level] = Level("max_breach_increase", False, "a number of percent")
    asked_as: ClassVar[tuple[str, ...]] = ("breach-bound",)
    counts_persons: ClassVar[bool] = True
    of_original: ClassVar[bool] = True
    form_field: ClassVar[FormField | None] = FormField(
        symbol="α",
        title="Gain of an attacker, in per cent",
        why="The released columns do not make the sensitive one easier to predict.",
        suggested="0",
        left_empty="The sensitive column may become easier to predict.",
    )
    words: ClassVar[GuaranteeWords] = GuaranteeWords(
        title="bound on what an attacker learns (estimated, not proven)",
        meaning="The released columns make an attacker better at predicting the sensitive column by at most α per "
        "cent. This is estimated, not proven.",
        found="Found by the audit's own attackers: an increase of {level} % or more (lower end of the interval). "
        "Promised: at most {max_breach_increase} %.",
        against="an attacker of the named kind who trains on rows like the released ones",
        not_promised=(
            "Anything against another kind of attacker, or from columns that are not quasi-identifiers.",
            "That the sensitive column is hard to predict: only that it is not easier than before.",
            "k-anonymity. On few rows only clear breaches are found.",
        ),
    )
    max_breach_increase: float
    sensitive: str
    columns: tuple[str, ...]
    baseline: tuple[str, ...]
    attacker: str = "naive-bayes"
    metric: Annotated[BreachMetric, TEXT] = "accuracy"
    confidence: float = BREACH_CONFIDENCE
    numeric: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not math.isfinite(self.max_breach_increase):
            problem = f"got {self.max_breach_increase!r}"
            raise InvalidParameterError("max_breach_increase", problem, allowed="a finite number of percent")
        is_repeated = len(set(self.baseline)) < len(self.baseline)
        if is_repeated or not set(self.columns) <= set(self.baseline) or self.sensitive in self.baseline:
            allowed = "all quasi-identifiers once each, the released ones included and the sensitive column left out"
            raise InvalidParameterError("baseline", "but these are not", allowed=allowed)
        if not set(self.numeric) <= set(self.baseline):
            raise InvalidParameterError("numeric", "but names other columns", allowed="some of the baseline")
        attackers_in(self.attacker)
        if self.metric not in get_args(BreachMetric):
            allowed = f"one of {', '.join(get_args(BreachMetric))}"
            raise InvalidParameterError("metric", "but this one is not", allowed=allowed)
        if self.confidence != BREACH_CONFIDENCE:
            problem = f"got {self.confidence!r}"
            raise InvalidParameterError("confidence", problem, allowed=f"{BREACH_CONFIDENCE:g}")

    def describe(self) -> str:
        """Say the promise in one plain sentence."""
        alpha = self.max_breach_increase
        better = f"at most {alpha:g}% better" if alpha >= 0 else f"at least {-alpha:g}% worse"
        kind = _in_words(attackers_in(self.attacker))
        return (
            f"estimated, not proven: an attacker of the kind {kind} who trains on the "
            f"{len(self.columns)} released quasi-identifying columns predicts '{self.sensitive}' {better} (by "
            f"{_METRICS[self.metric]}) than one who trains on all {len(self.baseline)} quasi-identifying columns, "
            f"within the error of the estimate (the level found is the lower end of its {self.confidence:.0%} "
            f"interval, in percent){self._by_persons()}"
        )

    def _by_persons(self) -> str:
        return f"; trained on some persons and tested on others{self._by()}" if self.by_persons else ""

    def left_open(self, facts: ReleaseFacts) -> Iterator[str]:
        """Say that it is about one kind of attacker, and no k-anonymity."""
        said = (
            "safety from other kinds of attackers, or from attackers who also use the released target and other "
            "columns (the estimate gives the attacker quasi-identifiers only)"
        )
        if facts.promises_anonymity:
            yield f"not promised: {said}"
        else:
            yield facts.with_smallest_class(f"not promised: k-anonymity, or {said}")


def _in_words(attackers: tuple[str, ...]) -> str:
    words = [BREACH_ATTACKERS[kind] for kind in attackers]
    if len(words) == 1:
        return words[0]
    return f"{', '.join(words[:-1])} or {words[-1]}, whichever is stronger,"
