"""The methods of the paper's tables, and ours, as functions of training rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from reproductions.containment.scoring import Method, Prepared
from sfumato import GreedyContainmentSelector
from sfumato.mechanisms.baselines.flipping import flip_to_clusters
from sfumato.mechanisms.containment.exact import ExactContainmentSelector
from sfumato.mechanisms.containment.maximal import MaximalContainmentSelector
from sfumato.mechanisms.containment.optimal import OptimalContainmentSelector

Greedy = GreedyContainmentSelector


def selecting(selector: Any, matrix: sp.csc_matrix, classes: NDArray[np.int32], k: int) -> Prepared:
    """Keep the columns that a selector chooses."""
    columns = clone(selector).set_params(k=k).fit(matrix, classes).selected_columns_
    return Prepared(matrix[:, columns].tocsr(), classes, columns)


def everything(matrix: sp.csc_matrix, classes: NDArray[np.int32], k: int) -> Prepared:
    """Keep all columns."""
    return Prepared(matrix.tocsr(), classes, np.arange(matrix.shape[1]))


def flipping(matrix: sp.csc_matrix, classes: NDArray[np.int32], k: int, seed: int = 0) -> Prepared:
    """Flip bits until rows are equal in clusters of k."""
    flipped = flip_to_clusters(matrix, k, np.random.default_rng([seed, k]))
    changed = int(abs(flipped.astype(np.int8) - matrix.astype(np.int8)).sum())
    return Prepared(flipped.tocsr(), classes, np.arange(matrix.shape[1]), changed / np.prod(matrix.shape))


def _by(selector: Any) -> Method:
    return partial(selecting, selector)


PAPER_METHODS: dict[str, Method] = {
    "Maximal": _by(MaximalContainmentSelector()),
    "HamDist": _by(Greedy()),
    "DistCnt": _by(Greedy(criterion="distinguished_pairs")),
    "CM Greedy": _by(Greedy(criterion="classification_metric")),
    "RF": flipping,
    "k-anonymity HamDist": _by(Greedy(reveals="both")),
    "k-anonymity DistCnt": _by(Greedy(criterion="distinguished_pairs", reveals="both")),
    "Full-Feature-Set": everything,
}

OUR_METHODS: dict[str, Method] = {
    "HamDist, skip": _by(Greedy(on_infeasible="skip")),
    "DistCnt, skip": _by(Greedy(criterion="distinguished_pairs", on_infeasible="skip")),
    "class contrast": _by(Greedy(criterion="class_contrast")),
    "class contrast, skip": _by(Greedy(criterion="class_contrast", on_infeasible="skip")),
    "mutual information, skip": _by(Greedy(criterion="mutual_information", on_infeasible="skip")),
    "Maximal, best HamDist": _by(MaximalContainmentSelector(search="best")),
    "exact, improved": _by(ExactContainmentSelector(time_budget=6.0)),
    "optimal HamDist": _by(OptimalContainmentSelector(time_budget=6.0)),
}

RUNS: dict[str, Sequence[Method]] = {"RF": [partial(flipping, seed=seed) for seed in range(10)]}
"""Runs of a randomized method; the paper gives the mean and the standard deviation of ten."""
