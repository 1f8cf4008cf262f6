r"""Unique in the sample, unique in the population? What class sizes of a sample say about the population it is from.

All three estimators are functions of the numbers of classes of each size: :math:`f_j` classes of j rows, u classes and
n rows in all, drawn at random from a population of N, :math:`\pi = n / N`. None is a bound: they are expectations under
a model of how class sizes are spread, and differ by what they assume.

References
----------
.. [Z91] Zayatz: Estimation of the Percent of Unique Population Elements on a Microdata File Using the Sample. U.S.
   Bureau of the Census, Statistical Research Division Report RR-91/08 (1991).
.. [H01] Hoshino: Applying Pitman's Sampling Formula to Microdata Disclosure Risk Assessment. Journal of Official
   Statistics 17 (2001) 499-520.
.. [CK98] Chen, Keller-McNulty: Estimation of Identification Disclosure Risk in Microdata. Journal of Official
   Statistics 14 (1998) 79-95.
.. [S81] Shlosser: On Estimation of the Size of the Dictionary of a Long Text on the Basis of a Sample. Engineering
   Cybernetics 19 (1981) 97-102.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError

Numbers = NDArray[np.float64]

_PRECISION = 1e-12
_LEAST_ALPHA = 1e-6


@dataclass(frozen=True)
class SampledClasses:
    """Class sizes of a sample and the size of its population.

    Parameters
    ----------
    sizes, classes : ndarray of float64
        Sizes that occur, ascending, and how many classes have each.
    population : int
        People in the population, at least as many as rows in the sample.

    Examples
    --------
    >>> sample = SampledClasses.of({1: 40, 2: 10, 5: 8}, population=1000)
    >>> sample.n_rows, sample.n_classes, sample.n_unique
    (100, 58, 40)
    """

    sizes: Numbers
    classes: Numbers
    population: int

    @classmethod
    def of(cls, class_sizes: Mapping[int, int], population: int) -> SampledClasses:
        """Take the number of classes of each size, see :func:`sfumato.counting.classes.class_size_counts`.

        Raises
        ------
        InvalidParameterError
            If the population is smaller than the sample, or there are no rows.
        """
        sizes = np.array(sorted(class_sizes), dtype=np.float64)
        classes = np.array([class_sizes[int(size)] for size in sizes], dtype=np.float64)
        n_rows = int((sizes * classes).sum())
        if isinstance(population, bool) or not isinstance(population, int) or population < max(n_rows, 1):
            allowed = f"a whole number of people, at least as many as the {n_rows:,} rows"
            raise InvalidParameterError("population", f"got {population!r}", allowed=allowed)
        return cls(sizes, classes, population)

    @property
    def n_rows(self) -> int:
        """Rows of the sample."""
        return int((self.sizes * self.classes).sum())

    @property
    def n_classes(self) -> int:
        """Classes of the sample."""
        return int(self.classes.sum())

    @property
    def n_unique(self) -> int:
        """Rows that are alone in their class."""
        return int(self.classes[self.sizes == 1].sum())

    @property
    def fraction(self) -> float:
        """Share of the population that is in the sample."""
        return self.n_rows / self.population


def zayatz(sample: SampledClasses) -> float:
    r"""Estimate how many people are unique in the population, by [Z91]_.

    Classes of the population are taken to have the sizes of those of the sample. A unique row of the sample is then
    unique in the population with

    .. math:: P = \frac{\frac{f_1}{u} h(1 \mid 1)}{\sum_j \frac{f_j}{u} h(1 \mid j)},

    where h(1 | j) is the probability that one of j people is drawn (hypergeometric). Each unique person of the
    population is in the sample with probability π, so that :math:`f_1 P / \pi` are expected.
    """
    if not sample.n_unique:
        return 0.0
    from scipy.stats import hypergeom

    drawn_once = hypergeom.pmf(1, sample.population, sample.sizes.astype(np.int64), sample.n_rows)
    weights = sample.classes / sample.n_classes * drawn_once
    likely = float(weights[sample.sizes == 1].sum() / weights.sum())
    return sample.n_unique * likely / sample.fraction


def pitman_parameters(sample: SampledClasses) -> tuple[float, float] | None:
    r"""Maximum-likelihood parameters :math:`(\theta, \alpha)` of Pitman's sampling formula [H01]_, θ > 0, 0 < α < 1.

    The log-likelihood is, up to a constant,

    .. math:: \sum_{i=1}^{u-1} \log(\theta + i \alpha) - \sum_{i=1}^{n-1} \log(\theta + i)
       + \sum_j f_j \sum_{i=1}^{j-1} \log(i - \alpha).

    ``None`` where all rows are unique, or none is: then it has no maximum inside.
    """
    if not 0 < sample.n_unique < sample.n_rows:
        return None
    from scipy.optimize import minimize

    def lost(at: Numbers) -> float:
        theta, alpha = _unlimited(at)
        return -pitman_log_likelihood(sample, theta, alpha)

    starts = [np.array([np.log(theta), 0.0]) for theta in (1.0, float(sample.n_classes))]
    options = {"xatol": _PRECISION, "fatol": _PRECISION, "maxiter": 20_000, "maxfev": 20_000}
    found = min((minimize(lost, at, method="Nelder-Mead", options=options) for at in starts), key=lambda one: one.fun)
    theta, alpha = _unlimited(found.x)
    return (theta, alpha) if _LEAST_ALPHA < alpha < 1 - _LEAST_ALPHA else None


def _unlimited(at: Numbers) -> tuple[float, float]:
    """Give a parameter above 0 and one between 0 and 1 by numbers that may be any: a search then has no limits."""
    return float(np.exp(np.clip(at[0], -50, 50))), float(1 / (1 + np.exp(-np.clip(at[1], -50, 50))))


def pitman_log_likelihood(sample: SampledClasses, theta: float, alpha: float) -> float:
    """Log-likelihood of :func:`pitman_parameters`, by the logarithms of gamma functions."""
    from scipy.special import gammaln

    u, n = sample.n_classes, sample.n_rows
    classes = (u - 1) * np.log(alpha) + gammaln(theta / alpha + u) - gammaln(theta / alpha + 1)
    rows = gammaln(theta + n) - gammaln(theta + 1)
    within = (sample.classes * (gammaln(sample.sizes - alpha) - gammaln(1 - alpha))).sum()
    return float(classes - rows + within)


def pitman(sample: SampledClasses) -> float | None:
    r"""Estimate how many people are unique in a population of Pitman's model with the sample's parameters.

    .. math:: N \frac{\Gamma(\theta + 1)\, \Gamma(N - 1 + \theta + \alpha)}
       {\Gamma(\theta + \alpha)\, \Gamma(N + \theta)}

    which is about :math:`N^\alpha\, \Gamma(\theta + 1) / \Gamma(\theta + \alpha)`. ``None`` where there are none.
    """
    if not sample.n_unique:
        return 0.0
    found = pitman_parameters(sample)
    if found is None:
        return None
    from scipy.special import gammaln

    theta, alpha = found
    size = sample.population
    logs = gammaln(theta + 1) + gammaln(size - 1 + theta + alpha) - gammaln(theta + alpha) - gammaln(size + theta)
    return float(size * np.exp(logs))


def shlosser(sample: SampledClasses) -> float:
    r"""Estimate how many classes the population has, by [S81]_.

    .. math:: u + f_1 \frac{\sum_j (1 - \pi)^j f_j}{\sum_j j \pi (1 - \pi)^{j - 1} f_j}
    """
    missed = 1 - sample.fraction
    never = float((missed**sample.sizes * sample.classes).sum())
    once = float((sample.sizes * sample.fraction * missed ** (sample.sizes - 1) * sample.classes).sum())
    return sample.n_classes + (sample.n_unique * never / once if once > 0 else 0.0)


def slide_negative_binomial(sample: SampledClasses) -> float | None:
    r"""Estimate how many people are unique by the slide negative binomial model of [CK98]_.

    A class of the population has 1 + J people, J negative binomial with parameters α, β: generating function
    :math:`G(s) = s\, (\beta / (1 - (1 - \beta) s))^\alpha`. The number K of classes is that of :func:`shlosser`. α and
    β are those by which as many classes of the sample are expected as there are, :math:`K (1 - G(1 - \pi)) = u`, and
    as many unique rows, :math:`K \pi G'(1 - \pi) = f_1`. Unique are then :math:`K \beta^\alpha`. ``None`` where no α
    and β do that.
    """
    if not sample.n_unique:
        return 0.0
    from scipy.optimize import root

    n_classes, drawn = shlosser(sample), sample.fraction
    if drawn == 1:
        return float(sample.n_unique)

    def missed_by(at: Numbers) -> list[float]:
        alpha, beta = _unlimited(at)
        share, slope = snb_generating(1 - drawn, alpha, beta)
        expected = n_classes * (1 - share), n_classes * drawn * slope
        return [expected[0] / sample.n_classes - 1, expected[1] / sample.n_unique - 1]

    for start in ((0.0, 0.0), (-2.0, -2.0), (2.0, -2.0), (-2.0, 2.0), (-4.0, -4.0)):
        found = root(missed_by, np.array(start), method="hybr", tol=_PRECISION)
        if max(map(abs, missed_by(found.x))) < 1e-9:
            alpha, beta = _unlimited(found.x)
            return float(n_classes * beta**alpha)
    return None


def snb_generating(s: float, alpha: float, beta: float) -> tuple[float, float]:
    """Compute the generating function of the sizes of classes, and its slope."""
    below = 1 - (1 - beta) * s
    power = (beta / below) ** alpha
    return s * power, power * (1 + s * alpha * (1 - beta) / below)


def size_by_fraction(n_rows: int, fraction: float) -> int:
    """Size of a population of which some rows are a share, at least as many as the rows.

    Examples
    --------
    >>> size_by_fraction(100, 0.03)
    3333
    """
    if not 0 < fraction <= 1:
        raise InvalidParameterError("fraction", f"got {fraction!r}", allowed="above 0 and at most 1")
    return max(round(n_rows / fraction), n_rows)


def population_uniques(class_sizes: Mapping[int, int], population: int) -> dict[str, float | int | None]:
    """Estimate how many people are unique in the population, as shares of it; ``None`` where a model does not fit.

    Examples
    --------
    >>> found = population_uniques({1: 40, 2: 10, 5: 8}, population=1000)
    >>> round(found["zayatz"], 4), found["sampling_fraction"]
    (0.1897, 0.1)
    """
    sample = SampledClasses.of(class_sizes, population)
    found = {
        "zayatz": zayatz(sample),
        "pitman": pitman(sample),
        "slide_negative_binomial": slide_negative_binomial(sample),
    }
    shares = {name: None if count is None else count / population for name, count in found.items()}
    return {"population": population, "sampling_fraction": sample.fraction, **shares}
