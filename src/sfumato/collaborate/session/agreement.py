"""What the parties do once they have greeted each other: count together, score, and remove features until all agree."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.collaborate.scores import (
    EVEN,
    Combining,
    FeatureScore,
    Ranking,
    check_weights,
    gains_of_removal,
    privacy_score,
    removal_order,
    score_features,
)
from sfumato.collaborate.secure_sum import are_any, check_same, is_any
from sfumato.collaborate.shared_schema import Counts, SharedSchema
from sfumato.collaborate.transport.channel import SumOfParties, Words
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError

# Small totals: a rule for what is shown of them, and noise for what is shared.
#
# The rule is about paper, not about programs: the parties' programs all hold the exact totals (unless there is noise),
# and the scores are those of the exact totals; those of a column with few values may even be solved for its totals.
# The rule keeps small counts out of tables that people print, mail and publish.
#
# Noise is about the totals themselves. Every party adds the whole noise that the promise needs to its own counts
# before they are added up, so that the promise holds for each party's rows even if all others work together and
# subtract their own. It is ε-differential privacy of the counts for one row more or less. It says nothing of the
# answers to "is anybody not content yet", which depend on the exact rows, nor of the releases.


LEAST_MINIMUM = 3
"""Smallest rule that hides anything: fewer than 2 can only be 1."""
_LEAST_EPSILON, _MOST_EPSILON = 1e-6, 1e6


def hidden_counts(totals: Counts, minimum: int) -> NDArray[np.bool_]:
    """Which counts of a feature are not to be shown.

    Counts from 1 to ``minimum`` - 1 are hidden. Since the size of every class can be read off another feature, the sum
    of the hidden counts of a class can be had by subtraction. So the smallest larger count of the class is hidden as
    well, and the next ones until each hidden count can be any number from 1 to ``minimum`` - 1 as far as the sum and
    this rule tell. Where that cannot be had, all counts of the class are hidden.

    Parameters
    ----------
    totals : array of shape (values, classes)

    Examples
    --------
    >>> hidden_counts(np.array([[9, 2], [8, 7], [4, 0]]), 5).tolist()
    [[False, True], [True, True], [True, False]]
    """
    if isinstance(minimum, bool) or not isinstance(minimum, int) or minimum < LEAST_MINIMUM:
        allowed = f"a whole number of at least {LEAST_MINIMUM}"
        raise InvalidParameterError("minimum_count", f"got {minimum!r}", allowed=allowed)
    hidden = (totals > 0) & (totals < minimum)
    for place in np.flatnonzero(hidden.any(axis=0)):
        hidden[:, place] = _hidden_in_class(totals[:, place], minimum)
    return hidden


def _hidden_in_class(counts: NDArray[np.int64], minimum: int) -> NDArray[np.bool_]:
    """One hidden count is at least ``minimum``, another may be anything below, all others are at least 1."""
    hidden = (counts > 0) & (counts < minimum)
    large = np.flatnonzero(counts >= minimum)
    for place in large[np.argsort(counts[large], kind="stable")]:
        hidden[place] = True
        if counts[hidden].sum() >= minimum + (minimum - 1) + (hidden.sum() - 2):
            return hidden
    return np.ones_like(hidden)


def shown_counts(totals: Counts, minimum: int) -> list[list[int | str]]:
    """Write the counts of a feature for people; what is hidden says the same whether it is small or large.

    Examples
    --------
    >>> shown_counts(np.array([[9, 2], [8, 7]]), 5)
    [[9, 'fewer than 5, or hidden next to one'], [8, 'fewer than 5, or hidden next to one']]
    """
    said = f"fewer than {minimum}, or hidden next to one"
    hidden = hidden_counts(totals, minimum)
    return [
        [said if is_hidden else int(count) for count, is_hidden in zip(counts, line, strict=True)]
        for counts, line in zip(totals, hidden, strict=True)
    ]


def check_epsilon(epsilon: float) -> None:
    """Refuse an ε that no noise can keep or that needs none."""
    if not math.isfinite(epsilon) or not _LEAST_EPSILON <= epsilon <= _MOST_EPSILON:
        allowed = f"between {_LEAST_EPSILON:g} and {_MOST_EPSILON:g}"
        raise InvalidParameterError("epsilon", f"got {epsilon!r}", allowed=allowed)


def add_own_noise(own_counts: Words, n_features: int, epsilon: float) -> Words:
    """Add discrete Laplace noise of scale ``n_features`` / ε to a party's counts, modulo 2^64.

    One row more or less changes one count of every feature by 1, so the L1 sensitivity is the number of features. With
    N parties the totals carry N times the variance that a single holder would need: the price of trusting nobody.
    """
    from sfumato.mechanisms.baselines.noise import add_two_sided_geometric, noise_scale

    check_epsilon(epsilon)
    noisy = add_two_sided_geometric(own_counts.view(np.int64), noise_scale(n_features, epsilon))
    return noisy.view(np.uint64)


PrivacyBy = Literal["pooled", "average"]

GRID = 1000
"""Steps of the reachable gain that is looked for when the thresholds cannot be met."""
_FIXED_POINT = 2**32


@dataclass(frozen=True)
class AgreementRule:
    """Parameters that all parties must share; each party's threshold is its own.

    Parameters
    ----------
    weights : pair of float
        Of utility and privacy in the trade-off.
    privacy : {"pooled", "average"}
        Scores of privacy from the totals, which do not depend on who holds which rows, or the mean of the parties' own
        (Equation 6).
    epsilon : float or None
        Noise on the counts, see :func:`add_own_noise`; only with pooled scores, since averaged
        ones would tell without noise what the counts hide.
    ranking, tradeoff : str
        Names of what is measured of a feature's counts as its utility, and of how that and its privacy are joined, see
        :mod:`sfumato.collaborate.scores`.
    """

    weights: Sequence[float] = EVEN
    privacy: PrivacyBy = "pooled"
    epsilon: float | None = None
    ranking: Ranking = "mutual-information"
    tradeoff: Combining = "mean"

    def __post_init__(self) -> None:
        check_weights(self.weights)
        if self.privacy not in get_args(PrivacyBy):
            raise InvalidParameterError(
                "privacy", "but this one is not", allowed=f"one of {', '.join(get_args(PrivacyBy))}"
            )
        if self.epsilon is not None:
            check_epsilon(self.epsilon)
            if self.privacy != "pooled":
                raise InvalidParameterError("privacy", "got 'average'", allowed="'pooled' when there is noise")

    def to_dict(self) -> dict[str, object]:
        """Plain data for the greeting and the manifest."""
        return {"weights": [float(w) for w in self.weights], "privacy": self.privacy, "epsilon": self.epsilon}


@dataclass(frozen=True)
class Agreement:
    """What a party holds at the end.

    Parameters
    ----------
    removed : tuple of str
        Features in the order of their removal.
    scores : tuple of FeatureScore
        Of all features, in the order of the shared schema; the same for all parties.
    own_gains : tuple of float
        This party's gain after each removal.
    totals : mapping of str to array
        Counts of all parties together, by feature.
    """

    removed: tuple[str, ...]
    scores: tuple[FeatureScore, ...]
    own_gains: tuple[float, ...]
    totals: Mapping[str, Counts] = field(repr=False, compare=False)


def most_removed(n_features: int) -> int:
    """How many features may go at most: half of them, after which the paper asks for lower thresholds."""
    return n_features // 2


def check_threshold(min_privacy_gain: float) -> None:
    """Refuse a threshold that is no gain."""
    if not 0 < min_privacy_gain <= 1:
        problem = f"got {min_privacy_gain!r}"
        raise InvalidParameterError("min_privacy_gain", problem, allowed="above 0 and at most 1")


def agree(
    sums: SumOfParties,
    schema: SharedSchema,
    own_counts: Words,
    *,
    min_privacy_gain: float,
    rule: AgreementRule | None = None,
) -> Agreement:
    """Remove the features with the smallest trade-off, until every party's own gain reaches its own threshold.

    Section V of [PUFS]_ over a secure sum: counts are added up once, then all learn after how many removals
    everybody is content, but not who needed them.

    Parameters
    ----------
    own_counts : array of uint64
        Of ``schema.counts(table)``.
    min_privacy_gain : float
        θ of this party; the gain is that of its own rows.

    Raises
    ------
    PrivacyNotAchievableError
        If removing half of the features is not enough for everybody. Carries the gain (in thousandths) that all
        parties reach, which tells each of them the smallest gain of any.

    Notes
    -----
    With noise the totals are private, but when the removal ends depends on the parties' exact rows.

    References
    ----------
    .. [PUFS] Sheikhalishahi, Martinelli: Privacy-Utility Feature Selection as a Privacy Mechanism in Collaborative
       Data Classification. WETICE 2017.
    """
    rule = rule or AgreementRule()
    check_threshold(min_privacy_gain)
    own = dict(zip(schema.names, schema.matrices(own_counts), strict=True))
    shared = own_counts if rule.epsilon is None else add_own_noise(own_counts, len(own), rule.epsilon)
    totals = dict(zip(schema.names, schema.matrices(sums.total(shared, stage="counts")), strict=True))
    averages = None
    if rule.privacy == "average":  # the mean of the parties' own (Equation 6), added up as multiples of 2^-32
        scaled = [round(privacy_score(counts) * _FIXED_POINT) for counts in own.values()]
        added = sums.total(np.array(scaled, dtype=np.uint64), stage="privacy scores")
        averages = {n: int(total) / _FIXED_POINT / sums.n_parties for n, total in zip(own, added, strict=True)}
    scores = score_features(totals, averages, check_weights(rule.weights), rule.ranking, rule.tradeoff)
    order = removal_order(scores)[: most_removed(len(own))]
    check_same(sums, json.dumps(order).encode(), stage="removal order")
    gains = gains_of_removal(order, own)
    # After how many removals does nobody say "not yet" any more? All numbers are asked about at once: a party's gain
    # never falls, so nothing is learned that asking one after the other until the number is found would not tell.
    not_yet = are_any(sums, [gain < min_privacy_gain for gain in gains], stage="not yet")
    if all(not_yet):
        raise _out_of_reach(_reachable(sums, gains), len(order), len(own))
    n_removed = not_yet.index(False) + 1
    return Agreement(order[:n_removed], scores, gains[:n_removed], totals)


def _reachable(sums: SumOfParties, gains: Sequence[float]) -> float:
    """Largest gain on a grid that every party reaches when half of the features are gone.

    By bisection, and not all steps at once: the party with the smallest gain could subtract its own answers, and read
    off the second smallest.
    """
    own = gains[-1] if gains else 0.0
    reached, missed = 0, GRID + 1
    while missed - reached > 1:
        middle = (reached + missed) // 2
        if is_any(sums, own < middle / GRID, stage=f"reachable at {middle}"):
            missed = middle
        else:
            reached = middle
    return reached / GRID


def _out_of_reach(reachable: float, n_removed: int, n_features: int) -> PrivacyNotAchievableError:
    promise = f"the privacy gain that every party asks for by removing at most {n_removed} of {n_features} features"
    hint = f"all parties reach {reachable:g}: agree on a min_privacy_gain of at most that"
    if not reachable:
        hint = "some party gains next to nothing: it may hold too few rows, or the same values in all of them"
    return PrivacyNotAchievableError(promise, best_level=reachable, hint=hint)
