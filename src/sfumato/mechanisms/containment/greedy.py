"""Greedy feature selection under k-anonymity by containment: Algorithms 2 and 3 of [kAC17]_."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.bitsets import ProjectedRows, ones_by_class
from sfumato.guarantees import REVEALING
from sfumato.guarantees.forms import word
from sfumato.measures.information import mutual_information_bits
from sfumato.measures.separation import pairs_of_different_classes, pairs_separated_by_each, separated_pairs
from sfumato.mechanisms.base import Compared, MechanismInfo, combinations
from sfumato.mechanisms.containment.base import (
    BINARIZE,
    DECLARED_BY_COLUMN,
    ContainmentSelector,
    K,
    Labelled,
    Selection,
    Step,
    check_choices,
    revealing_codes,
)
from sfumato.parameters import ParameterSpec
from sfumato.progress import Progress
from sfumato.table.binarize import BinarizePlan
from sfumato.table.binary import Feature

# What a feature is worth to a recipient: the criteria that selections maximise.


Counts = NDArray[np.int64]
Criterion = Literal[
    "hamming_separation", "distinguished_pairs", "class_contrast", "mutual_information", "classification_metric"
]

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


OnInfeasible = Literal["stop", "skip"]

_REJECTED_BEFORE_EXCLUDING = 64  # looking for all conflicts of the chosen features pays when many are rejected


class GreedyContainmentSelector(ContainmentSelector):
    """Add the best feature as long as every row stays k-anonymous by containment.

    Parameters
    ----------
    k : int, default=5
        Whatever ones of a row an attacker knows, at least k rows have them all.
    criterion : str, default="hamming_separation"
        What a feature is worth. The paper's: ``"hamming_separation"``, the share of pairs of different classes that it
        separates (HamDist, Algorithm 2); ``"distinguished_pairs"``, those that no chosen feature separates yet
        (DistCnt, Algorithm 3); ``"classification_metric"``, the rows that leave the minority of their group (the
        baseline CM). Ours, because HamDist rewards common features more than discriminating ones:
        ``"class_contrast"``, the difference of its share of ones between classes, and ``"mutual_information"``.
    on_infeasible : {"stop", "skip"}, default="stop"
        At the first feature that would break k: stop, as in the paper, or leave it out for good and go on, which
        gives a maximal set: no further feature can join it.
    reveals : {"ones", "zeros", "both"} or mapping of column to one of these, default="ones"
        Which values an attacker may know. ``"both"`` everywhere is ordinary k-anonymity, and is promised as such; a
        column that a mapping leaves out reveals by its ones.
    max_unique_fraction : float or None
        At most this share of the rows may have a 0/1 pattern that no other row has; promised and audited as well.
    binarize : BinarizePlan, mapping or None
        How ``release`` turns a mixed table into binary features; ``fit`` does not use it.

    Attributes
    ----------
    selected_columns_ : array of int
        Positions of the chosen features, ascending.
    containment_level_ : int
        Largest k that holds on the chosen features.
    trace_ : list of Step
        Features in the order looked at, with gain and verdict; with ``"skip"`` features that a rare pair rules out are
        passed over.

    Notes
    -----
    Ties go to the larger gain, then to the earlier column. A rejected feature is never looked at again: dropping
    columns never lowers the level (Lemma 2), so what breaks k now breaks it for every larger set.

    **Deviations.** Algorithm 3 as printed never ends once no feature gains anything. With ``"stop"`` it ends there;
    with ``"skip"`` the features that gain nothing are still tried, in column order, so that the result is maximal.
    The classification metric goes on at zero gain, for no single feature of Adult lowers it and the paper has five.
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
    parameter_specs: ClassVar[Mapping[str, ParameterSpec]] = {
        "k": K,
        "criterion": ParameterSpec("what a feature is worth"),
        "on_infeasible": ParameterSpec("at a feature that breaks k: stop or skip it"),
        "reveals": ParameterSpec(
            "values an attacker may know: ones, zeros, both; or by column", stated=word(*REVEALING, DECLARED_BY_COLUMN)
        ),
        "max_unique_fraction": ParameterSpec(
            "bound on the share of rows with a unique 0/1 pattern",
            at_least=0,
            below=1,
            allowed="from 0 and below 1, or None",
        ),
        "binarize": BINARIZE,
    }

    def __init__(
        self,
        k: int = 5,
        criterion: Criterion = "hamming_separation",
        on_infeasible: OnInfeasible = "stop",
        reveals: str | Mapping[str, str] = "ones",
        max_unique_fraction: float | None = None,
        binarize: BinarizePlan | Mapping[str, Any] | None = None,
    ) -> None:
        self.k = k
        self.criterion = criterion
        self.on_infeasible = on_infeasible
        self.reveals = reveals
        self.max_unique_fraction = max_unique_fraction
        self.binarize = binarize

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self.check_parameters("max_unique_fraction")
        check_choices(self, "criterion", "on_infeasible")

    def _revealing(self, features: Callable[[], Sequence[Feature]]) -> NDArray[np.uint8] | None:
        return None if self.reveals == "ones" else revealing_codes(self.reveals, features())

    def _search(self, data: Labelled, progress: Progress | None) -> Selection:
        rows = ProjectedRows(data.matrix, data.classes, data.n_classes, data.reveals, data.row_counts, data.persons)
        stops = self.on_infeasible == "stop"
        ends_at_no_gain = stops and self.criterion == "distinguished_pairs"
        steps: list[Step] = []
        n_rejected = 0
        limit = self.max_unique_fraction
        most_unique = None if limit is None else limit * int(rows.class_counts.sum())
        if not stops:
            rows.exclude_rare(int(self.k))
        for feature, gain in candidates(self.criterion, rows):
            if ends_at_no_gain and gain == 0:
                break
            accepted = rows.keeps_containment(feature, int(self.k)) and (
                most_unique is None or rows.n_unique_with(feature) <= most_unique
            )
            steps.append(Step(feature, gain, accepted))
            if accepted:
                rows.add(feature)
            elif stops:
                break
            else:
                n_rejected += 1
                if n_rejected % _REJECTED_BEFORE_EXCLUDING == 0:
                    rows.exclude_conflicts(int(self.k))
            if progress and len(steps) % 256 == 0:
                progress(len(steps), data.matrix.shape[1], "features tried")
        return Selection(rows.chosen, steps)


_OF_THE_PAPER = ["hamming_separation", "distinguished_pairs"]
DECLARATION = MechanismInfo(
    GreedyContainmentSelector,
    why="keeps the binary features that separate the classes best; scales to tens of thousands of features",
    promises="k-anonymity by containment",
    compared=Compared(
        (
            *combinations({"k": [3, 5, 10, 20], "on_infeasible": ["skip"]}),
            {"k": 5, "on_infeasible": "skip", "reveals": "both"},
            # Algorithms 2 and 3 of [kAC17]_, and the same searches under ordinary k-anonymity, its baselines
            *combinations({"k": [5], "criterion": _OF_THE_PAPER}),
            *combinations({"k": [5], "criterion": _OF_THE_PAPER, "reveals": ["both"]}),
        )
    ),
    guarantee="containment",
    needs_target=True,
    kind_of=lambda parameters: "k-anonymity" if parameters.get("reveals") == "both" else "containment",
    cost=1.0,
)
