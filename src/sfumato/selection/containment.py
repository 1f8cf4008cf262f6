"""Greedy feature selection under k-anonymity by containment: Algorithms 2 and 3 of [kAC17]_."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.contract import MechanismInfo, Parameter, Progress
from sfumato.counting.bitsets import ProjectedRows, ones_by_class
from sfumato.errors import InvalidParameterError
from sfumato.measures.separation import pairs_of_different_classes, separated_pairs
from sfumato.selection.base import ContainmentSelector, Labelled, Step
from sfumato.table.binarize import BinarizePlan

Criterion = Literal["hamming_separation", "distinguished_pairs"]
OnInfeasible = Literal["stop", "skip"]

_FIRST_BATCH, _LARGEST_BATCH = 16, 1024  # features whose gains are looked at again together


class GreedyContainmentSelector(ContainmentSelector):
    """Add the best feature as long as every row stays k-anonymous by containment.

    Parameters
    ----------
    k : int, default=5
        Whatever ones of a row an attacker knows, at least k rows have them all.
    criterion : {"hamming_separation", "distinguished_pairs"}, default="hamming_separation"
        What a feature is worth: its share of pairs of different classes that it separates (HamDist, Algorithm 2), or
        the pairs that it separates and no chosen feature does yet (DistCnt, Algorithm 3).
    on_infeasible : {"stop", "skip"}, default="stop"
        At the first feature that would break k: stop, as in the paper, or leave it out for good and go on, which
        gives a maximal set: no further feature can join it.
    binarize : BinarizePlan, mapping or None
        How ``release`` turns a mixed table into binary features; ``fit`` does not use it.

    Attributes
    ----------
    selected_columns_ : array of int
        Positions of the chosen features, ascending.
    containment_level_ : int
        Largest k that holds on the chosen features.
    trace_ : list of Step
        Features in the order looked at, with gain and verdict.

    Notes
    -----
    Ties go to the larger gain, then to the earlier column. A rejected feature is never looked at again: dropping
    columns never lowers the level (Lemma 2), so what breaks k now breaks it for every larger set.

    **Deviations.** Algorithm 3 as printed never ends once no feature gains anything. With ``"stop"`` it ends there;
    with ``"skip"`` the features that gain nothing are still tried, in column order, so that the result is maximal.
    More than two classes are allowed: pairs of rows of different classes take the place of the paper's pairs.

    References
    ----------
    .. [kAC17] Zhang, Mohammed, Dave, Al Hasan: Feature Selection for Classification under Anonymity Constraint.
       Transactions on Data Privacy 10 (2017) 1-25.

    Examples
    --------
    >>> from sfumato.datasets.papers import toy_containment_table
    >>> toy = toy_containment_table()
    >>> selector = GreedyContainmentSelector(k=2, on_infeasible="skip")
    >>> selector.fit(toy.matrix, toy.target().codes).get_support(indices=True)
    array([0, 1, 4])
    """

    mechanism_name: ClassVar[str] = "greedy-containment"

    def __init__(
        self,
        k: int = 5,
        criterion: Criterion = "hamming_separation",
        on_infeasible: OnInfeasible = "stop",
        binarize: BinarizePlan | Mapping[str, Any] | None = None,
    ) -> None:
        self.k = k
        self.criterion = criterion
        self.on_infeasible = on_infeasible
        self.binarize = binarize

    def _check_parameters(self, n_rows: int) -> None:
        super()._check_parameters(n_rows)
        for name, choices in (("criterion", get_args(Criterion)), ("on_infeasible", get_args(OnInfeasible))):
            if getattr(self, name) not in choices:
                listed = " or ".join(f"'{choice}'" for choice in choices)
                raise InvalidParameterError(name, f"got {getattr(self, name)!r}", allowed=listed)

    def _search(self, data: Labelled, progress: Progress | None) -> list[Step]:
        rows = ProjectedRows(data.matrix, data.classes, data.n_classes)
        pairs = int(pairs_of_different_classes(rows.class_counts[0]))
        by_hamming = self.criterion == "hamming_separation"
        candidates = _by_separation(data) if by_hamming else _by_new_pairs(rows)
        stops = self.on_infeasible == "stop"
        trace: list[Step] = []
        for feature, gain in candidates:
            if stops and gain == 0 and not by_hamming:
                break
            accepted = rows.keeps_containment(feature, int(self.k))
            trace.append(Step(feature, gain / pairs, accepted))
            if accepted:
                rows.add(feature)
            elif stops:
                break
            if progress and len(trace) % 256 == 0:
                progress(len(trace), data.matrix.shape[1], "features tried")
        return trace


def _by_separation(data: Labelled) -> Iterator[tuple[int, int]]:
    """Features by the pairs that they separate, most first, with that number (HamDist is modular)."""
    ones = ones_by_class(data.matrix, data.classes, data.n_classes).T
    sizes = np.bincount(data.classes, minlength=data.n_classes)
    gains = separated_pairs(ones, sizes - ones)
    for feature in np.argsort(-gains, kind="stable").tolist():
        yield feature, int(gains[feature])


def _by_new_pairs(rows: ProjectedRows) -> Iterator[tuple[int, int]]:
    """Repeatedly the feature that separates most pairs not yet separated.

    Gains only fall as features join (DistCnt is submodular), so an old gain bounds the present one and most features
    need not be looked at again: the lazy greedy of Minoux. The caller adds an accepted feature to ``rows`` before it
    asks for the next.
    """
    ones = ones_by_class(rows.matrix, rows.classes, rows.n_classes).T
    gains = separated_pairs(ones, rows.class_counts[0] - ones)
    known_at = np.zeros(len(gains), dtype=np.intp)  # how many features had been chosen when a gain was computed
    heap = [(-gain, feature) for feature, gain in enumerate(gains.tolist())]
    heapq.heapify(heap)
    while heap:
        n_chosen, batch_size = len(rows.chosen), _FIRST_BATCH
        while heap[0][0] and known_at[heap[0][1]] < n_chosen:
            stale = [heapq.heappop(heap)[1] for _ in range(min(batch_size, len(heap)))]
            known_at[stale] = n_chosen
            for feature, gain in zip(stale, _new_pairs(rows, np.array(stale)), strict=True):
                heapq.heappush(heap, (-gain, feature))
            batch_size = min(2 * batch_size, _LARGEST_BATCH)
        negative_gain, feature = heapq.heappop(heap)
        yield feature, -negative_gain


def _new_pairs(rows: ProjectedRows, features: NDArray[np.intp]) -> list[int]:
    """For each feature the pairs of different classes that it separates and no chosen feature does."""
    owner, with_one, with_zero = rows.splits(features)
    gains = np.zeros(len(features), dtype=np.int64)
    np.add.at(gains, owner, separated_pairs(with_one, with_zero))
    found: list[int] = gains.tolist()
    return found


MECHANISMS = (
    MechanismInfo(
        name=GreedyContainmentSelector.mechanism_name,
        build=GreedyContainmentSelector,
        why="keeps the binary features that separate the classes best; scales to tens of thousands of features",
        promises="k-anonymity by containment",
        parameters=(
            Parameter("k", int, 5, "at least k rows have all the ones that an attacker knows of a row"),
            Parameter("criterion", str, "hamming_separation", "what a feature is worth", get_args(Criterion)),
            Parameter(
                "on_infeasible", str, "stop", "at a feature that breaks k: stop or skip it", get_args(OnInfeasible)
            ),
            Parameter("binarize", dict, None, "how mixed columns become binary features ([binarize] in the project)"),
        ),
    ),
)
