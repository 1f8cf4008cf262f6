"""Random draws for differential privacy, all from OpenDP: exact on whole numbers and from its own secure generator.

Nothing here takes a seed. OpenDP has none to take, and noise that somebody could draw again would hide nothing.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, nextafter
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError

Counts = NDArray[np.int64]


def opendp() -> ModuleType:
    """Return OpenDP, ready for use.

    Raises
    ------
    InvalidParameterError
        If it is not installed.
    """
    try:
        import opendp.prelude as dp
    except ImportError:
        raise InvalidParameterError(
            "mechanism",
            "but this one needs opendp, which is not installed",
            allowed="one whose packages are installed",
            hint="pip install 'sfumato[dp]'",
        ) from None
    dp.enable_features("contrib")  # what OpenDP's own review has not finished with; the proofs are published with it
    return dp


def noise_scale(sensitivity: int | Fraction, epsilon: float) -> float:
    """Smallest floating-point scale that spends at most ``epsilon`` on this sensitivity: their ratio, rounded up.

    Examples
    --------
    >>> noise_scale(2, 0.25)
    8.0
    """
    exact = sensitivity / Fraction(epsilon)
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else nextafter(nearest, inf)


def add_two_sided_geometric(values: Counts, scale: float) -> Counts:
    r"""Add independent noise Z with :math:`P(Z=z) \propto e^{-|z|/scale}` on the whole numbers (discrete Laplace).

    ε-differentially private for ε = L1 sensitivity / ``scale`` [GRS12]_.

    References
    ----------
    .. [GRS12] Ghosh, Roughgarden, Sundararajan: Universally Utility-Maximizing Privacy Mechanisms.
       SIAM Journal on Computing 41 (2012) 1673-1693.
    """
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return np.array(dp.m.make_geometric(*space, scale=scale)(values.tolist()), dtype=np.int64)


def geometric(n: int, scale: float) -> Counts:
    r"""Draw n whole numbers from 0 with :math:`P(J=j) \propto e^{-j/scale}`.

    They are the two-sided draws that are not negative.
    """
    drawn: list[Counts] = []
    missing = n
    while missing > 0:
        both_sides = add_two_sided_geometric(np.zeros(2 * missing + 16, dtype=np.int64), scale)
        drawn.append(both_sides[both_sides >= 0][:missing])
        missing -= len(drawn[-1])
    return np.concatenate([np.zeros(0, dtype=np.int64), *drawn])


def exponential_choices(scores: Counts, n: int, scale: float) -> NDArray[np.intp]:
    r"""Choose n positions one after the other, each with probability :math:`\propto e^{score/scale}` among the rest.

    n runs of the exponential mechanism [MT07]_: ε-differentially private for ε = n · 2 · sensitivity / ``scale``,
    sensitivity being the most by which any one score can change.

    References
    ----------
    .. [MT07] McSherry, Talwar: Mechanism Design via Differential Privacy. FOCS 2007.
    """
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
    # Under this measure OpenDP draws by the exponential mechanism; under max_divergence it would permute and flip.
    choose = dp.m.make_noisy_top_k(*space, dp.zero_concentrated_divergence(), k=n, scale=scale)
    return np.array(choose(scores.tolist()), dtype=np.intp)


def noisy_top(scores: Counts, n: int, scale: float) -> NDArray[np.intp]:
    r"""Choose the n largest scores after two-sided geometric noise on each; earlier positions win ties.

    ε-differentially private for ε = n · 2 · sensitivity / ``scale``, sensitivity Δ being the most by which any one
    score can change, however many change at once. Proof: fix the noise of the scores that are not chosen. Where the
    chosen ones win on one table, they win on its neighbour if the noise of each is moved by its own change plus Δ, at
    most 2Δ, because all others rise by at most Δ; moving n draws by at most 2Δ changes the probability by a factor of
    at most :math:`e^{2nΔ/scale}`.
    """
    noisy = add_two_sided_geometric(scores, scale)
    return np.argsort(~noisy, kind="stable")[:n].astype(np.intp)  # ~x = -x - 1, which cannot overflow
