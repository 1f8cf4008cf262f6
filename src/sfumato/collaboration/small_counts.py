"""Small totals: a rule for what is shown of them, and noise for what is shared.

The rule is about paper, not about programs: the parties' programs all hold the exact totals (unless there is noise),
and the scores are those of the exact totals; those of a column with few values may even be solved for its totals. The
rule keeps small counts out of tables that people print, mail and publish.

Noise is about the totals themselves. Every party adds the whole noise that the promise needs to its own counts before
they are added up, so that the promise holds for each party's rows even if all others work together and subtract
their own. It is ε-differential privacy of the counts for one row more or less. It says nothing of the answers to "is
anybody not content yet", which depend on the exact rows, nor of the releases.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.collaboration.contract import Words
from sfumato.collaboration.shared_schema import Counts
from sfumato.errors import InvalidParameterError

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
    [[9, 'fewer than 5, or hidden beside one'], [8, 'fewer than 5, or hidden beside one']]
    """
    said = f"fewer than {minimum}, or hidden beside one"
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
    from sfumato.perturbation.noise import add_two_sided_geometric, noise_scale

    check_epsilon(epsilon)
    noisy = add_two_sided_geometric(own_counts.view(np.int64), noise_scale(n_features, epsilon))
    return noisy.view(np.uint64)
