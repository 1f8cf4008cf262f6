"""A contingency table with noise in every cell, the 2^N empty ones included, without listing them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.perturbation.noise import Counts, add_two_sided_geometric, geometric
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import CodedColumn, Table

MOST_CELLS = 2**60
_DIGITS = 60  # significant decimal digits of the rate at which empty cells come out above the threshold
_SPARE_DRAWS = 8


@dataclass(frozen=True)
class Cells:
    """Some cells of a table of patterns × classes: their keys, ascending, and counts.

    A key is ``pattern * n_classes + class``; a pattern's highest bit is the first feature.
    """

    keys: Counts
    counts: Counts
    n_features: int
    n_classes: int

    @property
    def n_cells(self) -> int:
        """Number of all cells, those not listed included."""
        return self.n_classes << self.n_features


def occupied_cells(matrix: sp.csc_matrix, classes: NDArray[np.int32], n_classes: int) -> Cells:
    """Count the rows of each pattern and class; only cells with a row are listed."""
    n_features = matrix.shape[1]
    places = np.int64(1) << np.arange(n_features - 1, -1, -1, dtype=np.int64)
    patterns = np.asarray(sp.csr_matrix(matrix, dtype=np.int64) @ places, dtype=np.int64)
    keys, counts = np.unique(patterns * n_classes + classes, return_counts=True)
    return Cells(keys, counts.astype(np.int64), n_features, n_classes)


def noise_threshold(n_cells: int, scale: float, most_false_rows: float) -> int:
    r"""Smallest t ≥ 1 so that empty cells with noise of at least t hold at most ``most_false_rows`` rows on average.

    With :math:`\alpha = e^{-1/scale}` they hold :math:`n_{cells} \, \alpha^t (t + \alpha/(1-\alpha)) / (1+\alpha)`
    rows. It depends on nothing but its arguments: a cell's count has no part in it.

    Examples
    --------
    >>> noise_threshold(2**10, 4.0, 30_000), noise_threshold(2**28, 4.0, 30_000)
    (1, 51)
    """
    alpha = math.exp(-1 / scale)
    mean_excess = 1 / math.expm1(1 / scale)

    def is_enough(t: int) -> bool:
        rows = math.log(n_cells) - t / scale - math.log1p(alpha) + math.log(t + mean_excess)
        return rows <= math.log(most_false_rows)

    high = 1
    while not is_enough(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def noisy_cells(cells: Cells, scale: float, threshold: int) -> Cells:
    """Add two-sided geometric noise to every cell and list those that reach a threshold of at least 1.

    Equal in distribution to drawing noise for all ``n_cells``: the cells that hold rows get theirs directly. Among the
    others, those whose noise reaches the threshold are found by drawing the distances from one to the next, so their
    number is binomial and their places are uniform; their noise beyond the threshold is geometric.

    Notes
    -----
    Everything is drawn in whole numbers from OpenDP. The only number that is rounded is the rate p at which empty cells
    come out, upward by less than one part in 10^15. This keeps the privacy of the counts exactly: as long as p lies
    between the true rates for cells with no row and with one, everything that can come out of an empty cell is at most
    exp(1/scale) times as likely as from a cell with one row, and the other way round.

    Time is proportional to the number of cells that hold rows and of those that come out.
    """
    noisy = add_two_sided_geometric(cells.counts, scale)
    reaches = noisy >= threshold
    fresh = _empty_cells_that_reach(cells, scale, threshold)
    keys = np.concatenate([cells.keys[reaches], fresh])
    counts = np.concatenate([noisy[reaches], threshold + geometric(len(fresh), scale)])
    order = np.argsort(keys)
    return Cells(keys[order], counts[order], cells.n_features, cells.n_classes)


def _empty_cells_that_reach(cells: Cells, scale: float, threshold: int) -> Counts:
    """Keys of the empty cells whose noise reaches the threshold, ascending.

    Distances are drawn over all cells; those that end on a cell with rows are left out again, which leaves every empty
    cell its own independent chance.
    """
    rate, distance_scale = _rate_and_distance_scale(scale, threshold)
    found: list[int] = []
    place = -1
    while place < cells.n_cells:
        expected = rate * (cells.n_cells - place)
        for distance in geometric(int(expected + 4 * math.sqrt(expected)) + _SPARE_DRAWS, distance_scale).tolist():
            place += distance + 1
            if place >= cells.n_cells:
                break
            found.append(place)
    keys = np.array(found, dtype=np.int64)
    return keys[~np.isin(keys, cells.keys, assume_unique=True)]


def _rate_and_distance_scale(scale: float, threshold: int) -> tuple[float, float]:
    r"""Probability p that noise reaches the threshold, and the scale of the geometric distance to the next such cell.

    :math:`p = \alpha^t / (1 + \alpha)`, and distances with :math:`P(J \ge j) = (1-p)^j = e^{-j/s}` have
    :math:`s = -1/\ln(1-p)`. s is rounded down and p thereby up: never below the true rate.
    """
    with localcontext() as context:
        context.prec = _DIGITS + math.ceil(threshold / scale / math.log(10))  # 1 - rate must tell the rate from 0
        step = 1 / Decimal(scale)
        rate = (-threshold * step).exp() / (1 + (-step).exp())
        distance_scale = -1 / (1 - rate).ln()
        return float(rate), math.nextafter(float(distance_scale), 0)


def scaled_to(cells: Cells, class_sizes: Counts) -> Cells:
    """Change the counts to as many rows a class as given, in proportion, without randomness.

    The rows of a class stand in line by key; equally spaced ones are taken, so a cell's rows differ from its due share
    by less than one. A class in which no cell is listed takes equally spaced patterns: nothing is known of it.
    """
    keys: list[Counts] = []
    for c, size in enumerate(class_sizes.tolist()):
        mine = cells.keys % cells.n_classes == c
        if mine.any():
            ends = np.cumsum(cells.counts[mine])
            keys.append(cells.keys[mine][np.searchsorted(ends, _spaced(int(ends[-1]), size), side="right")])
        else:
            keys.append(_spaced(1 << cells.n_features, size) * cells.n_classes + c)
    chosen, counts = np.unique(np.concatenate(keys), return_counts=True)
    return Cells(chosen, counts.astype(np.int64), cells.n_features, cells.n_classes)


def _spaced(length: int, n: int) -> Counts:
    """Return n equally spaced places in a line, half a step from its ends."""
    return np.array([length * (2 * i + 1) // (2 * n) for i in range(n)], dtype=np.int64)


def rows_of(cells: Cells) -> tuple[sp.csc_matrix, NDArray[np.int32]]:
    """Write the cells out as rows, sorted by pattern and then by class: the 0/1 matrix and the class of each row."""
    keys = np.repeat(cells.keys, cells.counts)
    patterns, classes = keys // cells.n_classes, (keys % cells.n_classes).astype(np.int32)
    places = np.arange(cells.n_features - 1, -1, -1, dtype=np.int64)
    bits = ((patterns[:, None] >> places) & 1).astype(np.uint8)
    return sp.csc_matrix(bits), classes


def synthetic_table(original: BinaryTable, chosen: NDArray[np.intp], cells: Cells) -> BinaryTable:
    """Make a table of the cells' rows, with the chosen features and the target; no other column goes along."""
    matrix, classes = rows_of(cells)
    name = original.companions.schema.target or ""
    column = CodedColumn(classes, original.companions[name].values)
    companions = Table(original.companions.schema.keep([name]), {name: column}, len(classes))
    return BinaryTable(matrix, tuple(original.features[i] for i in chosen), companions)
