r"""Which features to remove, and nothing else: the choice of [PUFS]_ without totals that anybody sees.

Every party's counts are shared as secrets (:mod:`sfumato.collaborate.mpyc_channel`), and only the answer is opened.
The trade-off of feature A over all n rows, times n and without what all features have in common, is

.. math:: w_1 \sum_{v,c} f(n_{vc}) - \Bigl(w_1 + \frac{w_2}{\log_2|A|}\Bigr) \sum_v f(n_v)
          + \frac{w_2}{\log_2|A|} f(n), \qquad f(x) = x \log_2 x,

a sum of public functions of secret counts. A count x is shared as a power :math:`\omega^x` of a root of unity of order
M in the field: each party knows that of its own rows, and their product is that of all rows. A function on 0 … M - 1
is then a polynomial in :math:`\omega^x` whose coefficients are its discrete Fourier transform, and with
:math:`M = s^2` it takes 2 s multiplications a count. Nothing is rounded but the table of the function.

Notes
-----
*What is opened.* Whether the parties have more rows than ``max_rows`` (then nothing else), how many features have to
go or that half of them are not enough (then nothing else), and which these are, in the order of removal. The number
of rows stays secret, and so do all counts, scores, gains and thresholds, the order of the kept features, and who was
not content yet. All else that is opened on the way is masked; together it is off from independent of the secrets by
less than 2^-40 for up to 100 features, as long as SHAKE-128, from which MPyC draws masks, is taken for random.

*Against whom.* With m parties any :math:`\lfloor (m - 1)/2 \rfloor` of them together learn nothing more: one of three
or four, two of five. More than that, two of three, can open all secrets. The mode with totals holds against m - 2
parties, since it shares sums only; here secrets are multiplied, which needs an honest majority. Parties are taken to
follow the protocol; one that sends wrong numbers can spoil the result.

*How exact.* Tables are rounded to whole multiples of 2^-32, so that n times the trade-off of a feature is wrong by at
most half a multiple for each number in its sum. Features whose trade-offs differ by less than
their two errors may change places; features with the same counts stay in the order given. Gains are rounded to
multiples of 2^-40: none that reaches its threshold is turned down, and one that misses it by less than 2^-39 times the
number of features may pass.

*Cost* grows with the number of counts times the square root of ``max_rows``, and with the square of the number of
features.

References
----------
.. [PUFS] Sheikhalishahi, Martinelli: Privacy-Utility Feature Selection as a Privacy Mechanism in Collaborative Data
   Classification. WETICE 2017.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.collaborate.mpyc_channel import SECURITY_BITS, Accuse, ChannelRuntime, compute_together, is_prime
from sfumato.collaborate.scores import EVEN, TradeoffWeights, check_weights, feature_entropy_bits
from sfumato.collaborate.session.agreement import check_threshold, most_removed
from sfumato.collaborate.shared_arithmetic import Residues, SharedArithmetic
from sfumato.collaborate.shared_schema import Counts
from sfumato.collaborate.transport.channel import Channel
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.measures.information import most_entropy_bits

# Public side of the selection without totals: the field, its roots of unity, and functions as polynomials in them.


Places = NDArray[np.intp]

MOST_ROWS = 100_000
TABLE_BITS = 32
GAIN_BITS = 40

_PIECE_BITS = 25

_EXACT = Context(prec=60)  # decimal logarithms are rounded correctly, hence the same on all machines


class Summand(NamedTuple):
    """Coefficient of x log2 x, the counts x it belongs to, and for each of them the feature and the sign."""

    coefficient: Decimal
    counts: Places
    features: Places
    signs: Places


@dataclass(frozen=True)
class Question:
    """All that is public, the same for all parties.

    Parameters
    ----------
    n_values : tuple of int
        Of each feature.
    n_classes : int
        Of the target.
    weights : TradeoffWeights
        With sum 1.
    max_rows : int
        Bound of all counts.
    """

    n_values: tuple[int, ...]
    n_classes: int
    weights: TradeoffWeights
    max_rows: int

    @classmethod
    def of(cls, counts: Sequence[Counts], weights: TradeoffWeights, max_rows: int) -> Question:
        """Take the public part of a party's parameters."""
        if isinstance(max_rows, bool) or not isinstance(max_rows, int) or not 1 <= max_rows <= MOST_ROWS:
            allowed = f"a whole number from 1 to {MOST_ROWS:,}"
            raise InvalidParameterError("max_rows", f"got {max_rows!r}", allowed=allowed)
        by_class = [matrix.sum(axis=0).tolist() for matrix in counts]
        if not counts or any(np.min(matrix) < 0 for matrix in counts) or any(c != by_class[0] for c in by_class):
            allowed = "one matrix a feature, all with the same rows counted by the same classes"
            raise InvalidParameterError("counts", "but these are not", allowed=allowed)
        share = weights.utility / sum(weights)
        return cls(tuple(map(len, counts)), len(by_class[0]), TradeoffWeights(share, 1 - share), max_rows)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.n_values)

    @property
    def n_removable(self) -> int:
        """How many features may go at most."""
        return most_removed(self.n_features)

    @property
    def as_bytes(self) -> bytes:
        """All of it, for the parties to compare."""
        parameters = [self.n_values, self.n_classes, self.weights, self.max_rows, self.modulus]
        return b"sfumato selection-only 1 " + json.dumps(parameters).encode()

    @cached_property
    def side(self) -> int:
        """Square root of the order of the root of unity; the order is above all counts, and odd."""
        return math.isqrt(self.max_rows) + 1 | 1

    @cached_property
    def n_bits(self) -> int:
        """Bits of the differences that are compared, the sign included."""
        tradeoffs = (self.max_rows * (self.n_classes.bit_length() + 1)).bit_length() + TABLE_BITS
        gains = self.n_features.bit_length() + GAIN_BITS
        return max(tradeoffs, gains) + 2

    @cached_property
    def modulus(self) -> int:
        """Prime p with enough bits for masks, a root of unity of the wanted order, and p % 4 = 3 as MPyC wants it."""
        step = 2 * self.side**2
        factor = (1 << self.n_bits + SECURITY_BITS + 2) // step | 1
        while not is_prime(factor * step + 1):
            factor += 2
        return factor * step + 1

    @cached_property
    def roots(self) -> Residues:
        """Powers of the root of unity from 0 on, all different."""
        p, order = self.modulus, self.side**2
        divisors = [d for d in range(3, self.side + 1) if self.side % d == 0]
        candidates = (pow(base, (p - 1) // order, p) for base in range(2, p))
        root = next(w for w in candidates if all(pow(w, order // d, p) != 1 for d in divisors))
        powers = np.ones(order, dtype=object)
        for exponent in range(1, order):
            powers[exponent] = powers[exponent - 1] * root % p
        return powers

    def exponents(self, counts: Sequence[Counts]) -> Places:
        """All counts that the trade-offs need: of pairs of a value and a class, of values, and of rows."""
        pairs, values = [m.ravel() for m in counts], [m.sum(axis=1) for m in counts]
        return np.concatenate([*pairs, *values, values[0].sum(keepdims=True)]).astype(np.intp)

    def summands(self) -> list[Summand]:
        """Trade-offs of all features as sums over :meth:`exponents`, without what they have in common."""
        found: dict[Decimal, list[tuple[int, int, int]]] = {}
        n_pairs = sum(self.n_values) * self.n_classes
        rows = range(n_pairs + sum(self.n_values), n_pairs + sum(self.n_values) + 1)
        start = 0
        with localcontext(_EXACT):
            utility, privacy = map(Decimal, self.weights)
            for feature, size in enumerate(self.n_values):
                share = privacy / _log2(size) if size > 1 else Decimal(0)
                pairs = range(start * self.n_classes, (start + size) * self.n_classes)
                values = range(n_pairs + start, n_pairs + start + size)
                for coefficient, counts, sign in (
                    (utility, pairs, 1),
                    (utility, values, -1),
                    (share, values, -1),
                    (share, rows, 1),
                ):
                    found.setdefault(coefficient, []).extend((count, feature, sign) for count in counts)
                start += size
        return [Summand(factor, *np.array(parts, dtype=np.intp).T) for factor, parts in found.items() if factor]

    @cached_property
    def entropy_terms(self) -> list[Decimal]:
        """Values of x log2 x for x from 0 below the order of the root of unity."""
        with localcontext(_EXACT):
            return [Decimal(0), *(x * log for x, log in enumerate(_logs(self.side**2), start=1))]

    def table(self, coefficient: Decimal) -> Residues:
        """Multiples of 2^-32 nearest to a coefficient times x log2 x."""
        with localcontext(_EXACT):
            scaled = coefficient * 2**TABLE_BITS
            return np.array([int((scaled * term).to_integral_value()) for term in self.entropy_terms], dtype=object)

    def spectrum(self, table: Residues) -> Residues:
        """Coefficients c of the polynomial with value table[x] at w^x: of its power i + side · j at place i, j.

        Fourier transform of length side² in two steps of length side (Cooley and Tukey 1965).
        """
        p, order = self.modulus, self.side**2
        grid = np.multiply.outer(np.arange(self.side), np.arange(self.side))
        short = self.roots[-self.side * grid % order]
        inner = modular_product(short, table.reshape(self.side, self.side) % p, p) * self.roots[-grid % order] % p
        found: Residues = modular_product(inner, short, p) * pow(order, -1, p) % p
        return found

    def prepared(self) -> Prepared:
        """Compute all that takes long and needs no other party; to be done before anybody waits."""
        return Prepared(self, tuple((part, self.spectrum(self.table(part.coefficient))) for part in self.summands()))


class Prepared(NamedTuple):
    """Public parameters with the polynomials that follow from them, one for each summand."""

    question: Question
    spectra: tuple[tuple[Summand, Residues], ...]


def _log2(number: int) -> Decimal:
    return Decimal(number).ln() / Decimal(2).ln()


def _logs(stop: int) -> list[Decimal]:
    """Logarithms to base 2 of the numbers from 1 below ``stop``: of primes by themselves, of all others as sums."""
    least_factor = np.arange(stop)
    for factor in range(2, math.isqrt(stop) + 1):
        multiples = least_factor[factor * factor :: factor]
        multiples[multiples > factor] = np.minimum(multiples[multiples > factor], factor)
    of_2, found = Decimal(2).ln(), [Decimal(0), Decimal(0)]
    for number, factor in enumerate(least_factor[2:].tolist(), start=2):
        found.append(Decimal(number).ln() / of_2 if number == factor else found[factor] + found[number // factor])
    return found[1:stop]


def modular_product(left: Residues, right: Residues, p: int) -> Residues:
    """Multiply matrices of residues modulo p, by products of their pieces that fit into machine words.

    A sum of products of pieces stays below 2^63 for up to 1,000 columns on the left and eight pieces. Whole numbers,
    since a library for products in floating point would start threads of its own.

    Examples
    --------
    >>> modular_product(np.array([[5, 3]], dtype=object), np.array([[4], [6]], dtype=object), 7)
    array([[3]], dtype=object)
    """
    n_pieces = -(-p.bit_length() // _PIECE_BITS)
    lefts, rights = _pieces(left, n_pieces), _pieces(right, n_pieces)
    found = np.zeros((left.shape[0], right.shape[1]), dtype=object)
    for place in range(2 * n_pieces - 2, -1, -1):
        pairs = range(max(0, place - n_pieces + 1), min(place, n_pieces - 1) + 1)
        total = sum(lefts[i] @ rights[place - i] for i in pairs)
        found = (found << _PIECE_BITS) + np.asarray(total).astype(object)
    return found % p


def _pieces(numbers: Residues, n_pieces: int) -> list[NDArray[np.int64]]:
    mask = (1 << _PIECE_BITS) - 1
    return [(numbers >> (_PIECE_BITS * i) & mask).astype(np.int64) for i in range(n_pieces)]


def rank_indicators(n: int, n_rows: int, p: int) -> Residues:
    """Coefficients of the polynomials that are 1 at 0, 1, … (one a row) and 0 at all other numbers below n, modulo p.

    Examples
    --------
    >>> rank_indicators(2, 2, 7)
    array([[1, 6],
           [0, 1]], dtype=object)
    """
    found = np.zeros((n_rows, n), dtype=object)
    for row in range(n_rows):
        polynomial = np.ones(1, dtype=object)
        for other in set(range(n)) - {row}:
            shifted = np.append(0, polynomial) - other * np.append(polynomial, 0)
            polynomial = shifted * pow(row - other, -1, p) % p
        found[row] = polynomial
    return found


def select_only(
    channel: Channel,
    me: str,
    roster: Sequence[str],
    counts: Sequence[Counts],
    *,
    min_privacy_gain: float,
    max_rows: int,
    weights: Sequence[float] = EVEN,
    prepared: Prepared | None = None,
    timeout: float = 60.0,
    accuse: Accuse | None = None,
) -> tuple[int, ...]:
    """Choose the features to remove together with all other parties, who call this at the same time.

    Parameters
    ----------
    channel : Channel
        See :func:`sfumato.collaborate.mpyc_channel.compute_together`.
    me : str
        Name of this party.
    roster : sequence of str
        Names of all parties, in the same order for all of them.
    counts : sequence of array of shape (values, classes)
        Of each feature, in this party's own rows.
    min_privacy_gain : float
        Gain that this party wants for its own rows; stays secret.
    max_rows : int
        At least the number of all parties' rows together. Public.
    weights : pair of float
        Of utility and privacy in the trade-off. Public.
    prepared : Prepared or None
        Result of :func:`prepare` for the same parameters. Without it the others have to wait while it is computed.
    timeout : float
        Seconds to wait for a message that is due.
    accuse : callable or None
        Called at a party's fault, see :func:`sfumato.collaborate.mpyc_channel.compute_together`.

    Returns
    -------
    tuple of int
        Places of the removed features, in the order of removal; the same for all parties.

    Raises
    ------
    PrivacyNotAchievableError
        If removing half of the features is not enough for everybody.
    InvalidParameterError
        If the parties have more rows than ``max_rows``, or a parameter is not allowed.
    CollaborationError
        If a party has other public parameters, is silent, or does not keep to the protocol.
    """
    check_threshold(min_privacy_gain)
    question = Question.of(counts, check_weights(weights), max_rows)
    if prepared is not None and prepared.question != question:
        raise InvalidParameterError(
            "prepared", "but it was prepared for other parameters", allowed="the result for the same parameters"
        )
    own = _own_numbers(question, counts, min_privacy_gain)
    if not question.n_removable:
        raise _out_of_reach(question)
    choose = partial(_choose, prepared=prepared or question.prepared(), own=own)
    removed = compute_together(channel, me, roster, choose, agreed=question.as_bytes, timeout=timeout, accuse=accuse)
    if not removed:
        raise _out_of_reach(question)
    return removed


def prepare(counts: Sequence[Counts], *, max_rows: int, weights: Sequence[float] = EVEN) -> Prepared:
    """Compute the public polynomials, which takes seconds where ``max_rows`` is large; best before connecting.

    Only the number of values and classes in ``counts`` is used.
    """
    return Question.of(counts, check_weights(weights), max_rows).prepared()


def _out_of_reach(question: Question) -> PrivacyNotAchievableError:
    removed, features = question.n_removable, question.n_features
    promise = f"the privacy gain that every party asks for by removing at most {removed} of {features} features"
    return PrivacyNotAchievableError(promise, best_level=None, hint="agree on a lower min_privacy_gain")


def _own_numbers(question: Question, counts: Sequence[Counts], min_privacy_gain: float) -> Residues:
    """All that this party puts in: its counts as two powers each, number of rows, threshold and gains."""
    n_rows = int(counts[0].sum())
    if n_rows > question.max_rows:
        raise _too_many_rows()
    exponents = question.exponents(counts)
    powers = question.roots[exponents], question.roots[exponents * question.side % question.side**2]
    most = most_entropy_bits(question.n_values) or 1.0
    gains = [round(feature_entropy_bits(matrix) / most * 2**GAIN_BITS) for matrix in counts]
    threshold = round(min_privacy_gain * 2**GAIN_BITS) - question.n_features - 1
    return np.concatenate([*powers, np.array([n_rows, threshold, *gains], dtype=object)])


def _too_many_rows() -> InvalidParameterError:
    return InvalidParameterError("max_rows", "got fewer", allowed="at least the number of all parties' rows together")


async def _choose(runtime: ChannelRuntime, *, prepared: Prepared, own: Residues) -> tuple[int, ...]:
    """Open which features go, in order; none if half of them are not enough."""
    question = prepared.question
    n = question.n_features
    shared = SharedArithmetic(runtime, question.n_bits, question.modulus)
    inputs = await shared.inputs(own)
    powers, n_rows, thresholds, gains = np.split(inputs, [-n - 2, -n - 1, -n], axis=1)
    scores = await _scores(shared, prepared, powers)
    first, second = np.triu_indices(n, 1)
    signs = await shared.is_negative(np.append(scores[second] - scores[first], question.max_rows - n_rows.sum()))
    if any(await shared.opened(signs[-1:])):
        raise _too_many_rows()
    ranks = np.zeros(n, dtype=object)
    np.add.at(ranks, first, signs[:-1])
    np.add.at(ranks, second, 1 - signs[:-1])
    chosen = await _chosen(shared, question, ranks)
    reached = await shared.reshared(gains @ np.cumsum(chosen, axis=0).T - thresholds)
    is_enough = await shared.product(1 - await shared.is_negative(reached))
    (n_enough,) = await shared.opened(is_enough.sum(keepdims=True))
    n_removed = question.n_removable - n_enough + 1 if n_enough else 0
    return tuple(await shared.opened(chosen[:n_removed] @ np.arange(n))) if n_removed else ()


async def _scores(shared: SharedArithmetic, prepared: Prepared, inputs: Residues) -> Residues:
    """Trade-offs over all rows, times their number and 2^32, without what all features have in common."""
    question = prepared.question
    bases = (await shared.product(inputs)).reshape(2, -1)
    ones = np.ones((1, *bases.shape), dtype=object)
    powers = np.concatenate([ones, await shared.powers(bases, question.side - 1)])
    scores = np.zeros(question.n_features, dtype=object)
    for (_, counts, features, signs), spectrum in prepared.spectra:
        small, large = powers[:, 0, counts], powers[:, 1, counts]
        terms = modular_product(spectrum.T, small % question.modulus, question.modulus) * large
        np.add.at(scores, features, terms.sum(axis=0) * signs)
        await asyncio.sleep(0)
    return await shared.reshared(scores)


async def _chosen(shared: SharedArithmetic, question: Question, ranks: Residues) -> Residues:
    """Matrix with a 1 where the row's number is the rank of the column's feature, for the ranks that may go."""
    n, p = question.n_features, question.modulus
    powers = np.concatenate([np.ones((1, n), dtype=object), await shared.powers(ranks, n - 1)])
    indicators: Residues = rank_indicators(n, question.n_removable, p) @ powers % p
    return indicators
