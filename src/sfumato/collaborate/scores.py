r"""What totals say of the features: utility, privacy, their trade-off and the gain of removing some.

Names of [PUFS]_: total utility :math:`v`, privacy :math:`\rho(A)`, trade-off :math:`\tau`, gain :math:`\rho(D, D')`.

Deviations
----------
Equation 5 drops :math:`H(C)` and misuses the conditional; utility here is the mutual information of Example V.1, which
is what the paper's Table I holds. Its scores of privacy are :math:`H(A)/\log_2|A|`, normalised feature by feature,
although the text divides by the table's :math:`M_D`: the first ranks features, the second is the gain that is compared
with a party's threshold.

Ranking functions f
-------------------
What a feature's counts say of the class may be measured by another function than the paper's, by name:
``mutual-information`` I (the paper's), ``normalized`` :math:`I/\sqrt{H(A) H(C)}`, ``gain-ratio`` :math:`I/H(A)`,
``symmetrical-uncertainty`` :math:`2I/(H(A) + H(C))`, ``chi-squared`` :math:`\chi^2/n`, which ranks as χ² does, and
``gini``, by how much a value lowers the Gini impurity of the class. Of a feature or class of one value all are 0.

Trade-offs
----------
``mean``, the paper's; ``product``, the geometric mean, which ranks as the product does; and ``harmonic``. All are
weighted, with weights of sum 1.

References
----------
.. [PUFS] Sheikhalishahi, Martinelli: Privacy-Utility Feature Selection as a Privacy Mechanism in Collaborative Data
   Classification. WETICE 2017.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from sfumato.collaborate.shared_schema import Counts
from sfumato.errors import InvalidParameterError
from sfumato.measures.information import entropy_bits, most_entropy_bits, mutual_information_bits

_LEAST_WEIGHT, _MOST_WEIGHT = 1e-9, 1e9
_DECIMALS = 9  # trade-offs that agree to so many are ties, so that all parties find the same order on any machine


Ranking = Literal["mutual-information", "normalized", "gain-ratio", "symmetrical-uncertainty", "chi-squared", "gini"]
Combining = Literal["mean", "product", "harmonic"]


class TradeoffWeights(NamedTuple):
    """How much utility and privacy count in the trade-off; Equation 8 takes a half each."""

    utility: float = 0.5
    privacy: float = 0.5


EVEN = TradeoffWeights()


class FeatureScore(NamedTuple):
    """Scores of one feature; ``privacy_average`` is ``None`` unless the parties averaged their own."""

    name: str
    utility: float
    privacy_pooled: float
    privacy_average: float | None
    tradeoff: float


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def utility_score(counts: Counts, ranking: Ranking = "mutual-information") -> float:
    """Measure what a feature's counts say of the class, by a function's name; negative counts count as 0.

    Examples
    --------
    >>> same = np.array([[2, 0], [0, 2]])
    >>> [utility_score(same, name) for name in ("gain-ratio", "symmetrical-uncertainty", "chi-squared", "gini")]
    [1.0, 1.0, 1.0, 0.5]
    """
    counts = np.maximum(counts, 0)
    n, by_value, by_class = float(counts.sum()), counts.sum(axis=1), counts.sum(axis=0)
    if ranking == "chi-squared":  # squared differences from independence, over what independence expects
        expected = np.outer(by_value, by_class) / n if n else np.zeros(counts.shape)
        occurs = expected > 0
        return _share(float(((counts[occurs] - expected[occurs]) ** 2 / expected[occurs]).sum()), n)
    if ranking == "gini":
        occurs = by_value > 0
        within = float((np.square(counts[occurs].astype(np.float64)).sum(axis=1) / by_value[occurs]).sum())
        return _share(within - _share(float(np.square(counts.sum(axis=0, dtype=np.float64)).sum()), n), n)
    information = mutual_information_bits(counts)
    if ranking == "mutual-information":
        return information
    of_feature, of_class = entropy_bits(by_value), entropy_bits(by_class)
    if ranking == "normalized":
        return _share(information, math.sqrt(of_feature * of_class))
    if ranking == "gain-ratio":
        return _share(information, of_feature)
    return _share(2 * information, of_feature + of_class)  # symmetrical uncertainty


def feature_entropy_bits(counts: Counts) -> float:
    """Entropy H(A) of a feature from its counts of shape (values, classes)."""
    return entropy_bits(np.maximum(counts, 0).sum(axis=1))


def privacy_score(counts: Counts) -> float:
    r"""Share of the largest possible entropy that a feature has, :math:`H(A)/\log_2|A|`; 0 if it has one value.

    Examples
    --------
    >>> privacy_score(np.array([[1, 1], [1, 1]])), privacy_score(np.array([[3, 4]]))
    (1.0, 0.0)
    """
    n_values = len(counts)
    return min(1.0, feature_entropy_bits(counts) / math.log2(n_values)) if n_values > 1 else 0.0


def tradeoff_score(
    utility: float, privacy: float, weights: TradeoffWeights = EVEN, combining: Combining = "mean"
) -> float:
    """Weighted mean of the two, arithmetic, geometric or harmonic; the weights are divided by their sum.

    Examples
    --------
    >>> [round(tradeoff_score(0.2, 0.8, combining=name), 4) for name in ("mean", "product", "harmonic")]
    [0.5, 0.4, 0.32]
    """
    if combining == "mean":
        return (weights.utility * utility + weights.privacy * privacy) / sum(weights)
    weighted = [(value, weight) for value, weight in zip((utility, privacy), weights, strict=True) if weight]
    if any(value <= 0 for value, _ in weighted):
        return 0.0
    if combining == "product":
        return math.exp(sum(weight * math.log(value) for value, weight in weighted) / sum(weights))
    return sum(weights) / sum(weight / value for value, weight in weighted)


def check_weights(weights: Sequence[float]) -> TradeoffWeights:
    """Take two weights, none negative and not both 0; none so large or small that products with it lose digits."""
    numbers = [w for w in weights if isinstance(w, int | float) and not isinstance(w, bool)]
    in_range = all(w == 0 or _LEAST_WEIGHT <= w <= _MOST_WEIGHT for w in numbers)
    if len(weights) != 2 or len(numbers) != 2 or not in_range or not any(numbers):
        allowed = f"two numbers, for utility and privacy, 0 or from {_LEAST_WEIGHT:g} to {_MOST_WEIGHT:g}, not both 0"
        raise InvalidParameterError("weights", f"got {list(weights)}", allowed=allowed)
    return TradeoffWeights(*numbers)


def gains_of_removal(order: Sequence[str], counts: Mapping[str, Counts]) -> tuple[float, ...]:
    r"""Gain :math:`\rho(D, D')` after the first, the second, … removal of Example V.2: removed entropy over M_D.

    Parameters
    ----------
    counts : mapping of str to array
        Of every feature of the table, those that stay included. Columns of one value only give no gain at all.

    Examples
    --------
    >>> even = np.array([[1], [1]])
    >>> gains_of_removal(["a", "b"], {"a": even, "b": even, "c": even, "d": even})
    (0.25, 0.5)
    """
    most = most_entropy_bits(len(matrix) for matrix in counts.values())
    if not most:
        return (0.0,) * len(order)
    return tuple(np.cumsum([feature_entropy_bits(counts[name]) / most for name in order]).tolist())


def score_features(
    totals: Mapping[str, Counts],
    averages: Mapping[str, float] | None = None,
    weights: TradeoffWeights = EVEN,
    ranking: Ranking = "mutual-information",
    combining: Combining = "mean",
) -> tuple[FeatureScore, ...]:
    """Score all features from totals; the trade-off takes the averaged scores of privacy where they are given."""
    found = []
    for name, counts in totals.items():
        utility, pooled = utility_score(counts, ranking), privacy_score(counts)
        average = averages[name] if averages is not None else None
        privacy = pooled if average is None else average
        found.append(FeatureScore(name, utility, pooled, average, tradeoff_score(utility, privacy, weights, combining)))
    return tuple(found)


def removal_order(scores: Sequence[FeatureScore]) -> tuple[str, ...]:
    """Names by ascending trade-off (Equation 7); ties, to nine decimals, in the order given."""
    return tuple(score.name for score in sorted(scores, key=lambda score: round(score.tradeoff, _DECIMALS)))
