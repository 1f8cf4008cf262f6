"""Public side of the selection without totals: the field, its roots of unity, and functions as polynomials in them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.collaboration.agreement import most_removed
from sfumato.collaboration.mpyc_runtime import SECURITY_BITS, is_prime
from sfumato.collaboration.scores import TradeoffWeights
from sfumato.collaboration.shared_schema import Counts
from sfumato.errors import InvalidParameterError

Residues = NDArray[np.object_]
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
            raise InvalidParameterError("counts", "got others", allowed=allowed)
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
