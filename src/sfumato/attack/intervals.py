r"""Confidence intervals of success rates, their differences, risks beyond a control group and areas under the curve.

They rest on score tests, so that they stay inside their range and keep their level where rates are 0 or 1 and groups
are small. They take outcomes as independent draws from a population.

References
----------
.. [W27] Wilson: Probable inference, the law of succession, and statistical inference. JASA 22 (1927) 209-212.
.. [K84] Koopman: Confidence intervals for the ratio of two binomial proportions. Biometrics 40 (1984) 513-517.
.. [N98] Newcombe: Interval estimation for the difference between independent proportions. Statistics in Medicine 17
   (1998) 873-890, method 10.
.. [N06] Newcombe: Confidence intervals for an effect size measure based on the Mann-Whitney statistic, part 2.
   Statistics in Medicine 25 (2006) 559-573, method 5.
.. [AM23] Giomi, Boenisch, Wehmeyer, Tasnadi: A Unified Framework for Quantifying Privacy Risk in Synthetic Data.
   PoPETs 2023(2) 312-328.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.stats import norm, rankdata

from sfumato.errors import InvalidParameterError

CONFIDENCE = 0.95

Interval = tuple[float, float]

_LARGEST_RATIO = 1e9
_SMALLEST = 1e-12
_BESIDE = 1e-9


def rate_interval(n_success: int, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Wilson's interval of a success rate [W27]_; nothing is known without attempts.

    Examples
    --------
    >>> [round(end, 4) for end in rate_interval(0, 10)]
    [0.0, 0.2775]
    """
    _check_counts(n_success, n)
    if n == 0:
        return 0.0, 1.0
    z = _quantile(confidence)
    middle = (n_success + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * sqrt(n_success * (n - n_success) / n + z * z / 4)
    low = 0.0 if n_success == 0 else max(middle - half, 0.0)
    return low, 1.0 if n_success == n else min(middle + half, 1.0)


def difference_interval(x: int, n: int, x_0: int, n_0: int) -> Interval:
    """Interval of the difference of two rates, from -1 to 1: method 10 of [N98]_, of two Wilson intervals.

    Examples
    --------
    >>> [round(end, 4) for end in difference_interval(56, 70, 48, 80)]
    [0.0524, 0.3339]
    """
    (low, high), (low_0, high_0) = rate_interval(x, n), rate_interval(x_0, n_0)
    if n == 0 or n_0 == 0:
        return -1.0, 1.0
    rate, rate_0 = x / n, x_0 / n_0
    below, above = sqrt((rate - low) ** 2 + (high_0 - rate_0) ** 2), sqrt((high - rate) ** 2 + (rate_0 - low_0) ** 2)
    return max(rate - rate_0 - below, -1.0), min(rate - rate_0 + above, 1.0)


def residual_risk(n_success: int, n: int, n_control_success: int, n_control: int) -> tuple[float | None, Interval]:
    r"""Risk :math:`(r - r_0) / (1 - r_0)` of [AM23]_ and its interval, both at least 0.

    It is the share, of those people on whom the attack would fail if they were not in the release, on whom it succeeds
    because they are. Of the failures :math:`f = 1 - r` it is :math:`1 - f/f_0`: the interval is the score interval of
    the ratio of two rates [K84]_. [AM23]_ propagates the errors of two Wilson intervals instead, which needs
    :math:`r_0` away from 1.

    Parameters
    ----------
    n_success, n : int
        Successes and attempts on people in the release.
    n_control_success, n_control : int
        On control people.

    Returns
    -------
    value : float or None
        ``None`` where there is nothing to compare: no attempts, or success on every control person.
    interval : tuple of two float

    Examples
    --------
    >>> value, (low, high) = residual_risk(60, 100, 20, 100)
    >>> value, round(low, 3), round(high, 3)
    (0.5, 0.36, 0.619)
    """
    _check_counts(n_success, n)
    _check_counts(n_control_success, n_control)
    if n == 0 or n_control == 0:
        return None, (0.0, 1.0)
    failed, control_failed = n - n_success, n_control - n_control_success
    low, high = ratio_interval(failed, n, control_failed, n_control)
    value = None if control_failed == 0 else _within(1 - (failed / n) / (control_failed / n_control))
    return value, (_within(1 - high), _within(1 - low))


def ratio_interval(x: int, n: int, x_0: int, n_0: int, confidence: float = CONFIDENCE) -> Interval:
    r"""Score interval of the ratio :math:`p / p_0` of two rates [K84]_, from 0 to infinity.

    Ratios are kept for which :math:`\frac{(x - n\hat p)^2}{n \hat p (1 - \hat p)} + \frac{(x_0 - n_0\hat p_0)^2}{n_0
    \hat p_0 (1 - \hat p_0)}` is at most the quantile of chi-square, with the most likely rates of that ratio.
    """
    z = _quantile(confidence)

    def excess(log_ratio: float) -> float:
        return _score(x, n, x_0, n_0, float(np.exp(log_ratio))) - z * z

    if x == 0 and x_0 == 0:
        return 0.0, inf
    best = inf if x_0 == 0 else (-inf if x == 0 else float(np.log(x * n_0 / (n * x_0))))
    end = float(np.log(_LARGEST_RATIO))
    inside = min(max(best, -end), end)
    low = 0.0 if x == 0 or excess(-end) <= 0 else float(np.exp(brentq(excess, -end, inside)))
    high = inf if x_0 == 0 or excess(end) <= 0 else float(np.exp(brentq(excess, inside, end)))
    return low, high


def _score(x: int, n: int, x_0: int, n_0: int, ratio: float) -> float:
    """Chi-square statistic of one ratio; the most likely base rate solves a quadratic equation."""
    a, b, c = (n + n_0) * ratio, -((n + x_0) * ratio + x + n_0), float(x + x_0)
    base = (-b - sqrt(max(b * b - 4 * a * c, 0.0))) / (2 * a)
    rates = (min(max(base * ratio, _SMALLEST), 1 - _SMALLEST), min(max(base, _SMALLEST), 1 - _SMALLEST))
    pairs = zip((x, x_0), (n, n_0), rates, strict=True)
    return float(sum((seen - m * p) ** 2 / (m * p * (1 - p)) for seen, m, p in pairs))


def area_under_curve(scores: ArrayLike, control_scores: ArrayLike) -> tuple[float, Interval]:
    r"""Chance that a random person of the release scores above a random control person, ties counting half.

    The interval is method 5 of [N06]_: areas :math:`\theta` with :math:`|\theta - \hat\theta| \le z \sqrt{V(\theta)}`,
    where V is the variance of Hanley and McNeil with both groups of their mean size. Ties make it wider than needed.

    Examples
    --------
    >>> area_under_curve([3, 2], [1, 2])[0]
    0.875
    """
    members, controls = np.asarray(scores, dtype=np.float64), np.asarray(control_scores, dtype=np.float64)
    m, n = len(members), len(controls)
    if not m or not n:
        return 0.5, (0.0, 1.0)
    ranks = rankdata(np.concatenate([members, controls]))
    value = float((ranks[:m].sum() - m * (m + 1) / 2) / (m * n))
    z, others = _quantile(CONFIDENCE), (m + n) / 2 - 1

    def excess(area: float) -> float:
        spread = area * (1 - area) * (1 + others * ((1 - area) / (2 - area) + area / (1 + area))) / (m * n)
        return (area - value) ** 2 - z * z * spread

    # 0 and 1 have no spread, so that each solves the equation of its own value: look beside them
    low = 0.0 if value == 0 else float(brentq(excess, 0.0, min(value, 1 - _BESIDE)))
    return value, (low, 1.0 if value == 1 else float(brentq(excess, max(value, _BESIDE), 1.0)))


def _quantile(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise InvalidParameterError("confidence", f"got {confidence!r}", allowed="above 0 and below 1")
    return float(norm.ppf((1 + confidence) / 2))


def _check_counts(n_success: int, n: int) -> None:
    if not 0 <= n_success <= n:
        raise InvalidParameterError("n_success", f"got {n_success} of {n}", allowed="from 0 to the number of attempts")


def _within(risk: float) -> float:
    return min(max(risk, 0.0), 1.0)
