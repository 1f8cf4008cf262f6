"""What a feature is worth to a recipient: the criteria that selections maximise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.bitsets import ones_by_class
from sfumato.counting.projected_rows import ProjectedRows
from sfumato.measures.information import mutual_information_bits
from sfumato.measures.separation import pairs_of_different_classes, pairs_separated_by_each, separated_pairs

Counts = NDArray[np.int64]
Criterion = Literal[
    "hamming_separation", "distinguished_pairs", "class_contrast", "mutual_information", "classification_metric"
]
CRITERIA: tuple[str, ...] = get_args(Criterion)

_FIRST_BATCH, _LARGEST_BATCH = 32, 2048  # features whose gains are looked at again together
_OFFERED = -1  # in place of a gain: a feature that is not to be offered any more


def modular_gains(criterion: str, ones: Counts, class_sizes: Counts) -> NDArray[np.float64] | Counts:
    """Worth of every feature by a criterion that is a sum over features.

    Parameters
    ----------
    criterion : {"hamming_separation", "class_contrast", "mutual_information"}
        Pairs of rows of different classes that the feature separates (HamDist, a whole number); the largest difference
        of its shares of ones between two classes; its mutual information with the class, in bits.
    ones : array, classes × features
        Number of ones of every feature in every class.
    """
    if criterion == "hamming_separation":
        return pairs_separated_by_each(ones, class_sizes)
    if criterion == "class_contrast":
        shares = ones / class_sizes[:, None]
        return np.asarray(shares.max(axis=0) - shares.min(axis=0))
    tables = np.stack([class_sizes[:, None] - ones, ones])
    return np.array([mutual_information_bits(tables[:, :, feature]) for feature in range(ones.shape[1])])


def candidates(criterion: str, rows: ProjectedRows) -> Iterator[tuple[int, float]]:
    """Features in the order a greedy search looks at them, each with its gain at that moment.

    Ties go to the earlier column. The caller adds an accepted feature to ``rows`` before it asks for the next; a
    feature is offered once, and one that ``rows`` excludes is not offered. Gains in pairs are given as shares of all
    pairs of rows of different classes, those of the classification metric as shares of the rows.
    """
    pairs = max(int(pairs_of_different_classes(rows.class_counts[0])), 1)
    if criterion == "distinguished_pairs":
        return ((feature, gain / pairs) for feature, gain in _by_falling_gains(rows))
    if criterion == "classification_metric":
        n_rows = max(int(rows.class_counts.sum()), 1)
        return ((feature, gain / n_rows) for feature, gain in _by_recounted_gains(rows, fewer_in_minority))
    ones = ones_by_class(rows.matrix, rows.classes, rows.n_classes, rows.row_counts)
    gains = modular_gains(criterion, ones, rows.class_counts[0])
    scale = pairs if criterion == "hamming_separation" else 1
    order = np.argsort(-gains, kind="stable").tolist()
    return ((feature, float(gains[feature]) / scale) for feature in order if not rows.excluded[feature])


def fewer_in_minority(with_one: Counts, with_zero: Counts) -> Counts:
    """By how much dividing groups lowers Iyengar's classification metric, for each group.

    The metric counts the rows that are not in the majority class of their group (Definition 2 of [kAC17]_).
    """

    def majority(counts: Counts) -> Counts:
        return np.asarray(counts.max(axis=1), dtype=np.int64)

    return majority(with_one) + majority(with_zero) - majority(with_one + with_zero)


def _by_falling_gains(rows: ProjectedRows) -> Iterator[tuple[int, int]]:
    """Repeatedly the feature that separates most pairs not yet separated.

    Gains only fall as features join (DistCnt is submodular), so an old gain bounds the present one and most features
    need not be looked at again: the lazy greedy of Minoux, in batches.
    """
    ones = ones_by_class(rows.matrix, rows.classes, rows.n_classes, rows.row_counts)
    bounds = pairs_separated_by_each(ones, rows.class_counts[0])
    known_at = np.zeros(len(bounds), dtype=np.intp)  # how many features had been chosen when a gain was computed
    while len(bounds):
        bounds[rows.excluded] = _OFFERED
        feature = _leader(rows, bounds, known_at)
        if bounds[feature] == _OFFERED:
            return
        yield feature, int(bounds[feature])
        bounds[feature] = _OFFERED


def _leader(rows: ProjectedRows, bounds: Counts, known_at: NDArray[np.intp]) -> int:
    """Compute the largest bounds anew until the largest of all is a gain of this moment."""
    n_chosen, batch_size = len(rows.chosen), _FIRST_BATCH
    while True:
        leader = int(np.argmax(bounds))
        if bounds[leader] <= 0 or known_at[leader] == n_chosen:
            return leader
        stale = np.flatnonzero((known_at < n_chosen) & (bounds > 0))
        if len(stale) > batch_size:
            stale = stale[np.argpartition(-bounds[stale], batch_size)[:batch_size]]
        bounds[stale] = _gains(rows, stale, separated_pairs)
        known_at[stale] = n_chosen
        batch_size = min(4 * batch_size, _LARGEST_BATCH)


def _by_recounted_gains(
    rows: ProjectedRows, gain_of_division: Callable[[Counts, Counts], Counts]
) -> Iterator[tuple[int, int]]:
    """Repeatedly the feature with the largest gain, all gains counted anew whenever a feature has joined."""
    left = np.arange(rows.matrix.shape[1])
    while len(left := left[~rows.excluded[left]]):
        n_chosen = len(rows.chosen)
        batches = [left[i : i + _LARGEST_BATCH] for i in range(0, len(left), _LARGEST_BATCH)]
        gains = np.concatenate([_gains(rows, batch, gain_of_division) for batch in batches])
        offered: list[int] = []
        for place in np.argsort(-gains, kind="stable").tolist():
            offered.append(place)
            yield int(left[place]), int(gains[place])
            if len(rows.chosen) > n_chosen:
                break
        left = np.delete(left, offered)


def _gains(
    rows: ProjectedRows, features: NDArray[np.intp], gain_of_division: Callable[[Counts, Counts], Counts]
) -> Counts:
    """Gain of each feature: the sum over the groups that it divides."""
    owner, with_one, with_zero = rows.splits(features)
    gains = np.zeros(len(features), dtype=np.int64)
    np.add.at(gains, owner, gain_of_division(with_one, with_zero))
    return gains
