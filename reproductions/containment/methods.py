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
from sfumato.mechanisms.baselines.flipping import flip_to_clusters, k_member_clusters
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
    return _flipped(matrix, flip_to_clusters(matrix, k, np.random.default_rng([seed, k])), classes)


def coin_flipping(matrix: sp.csc_matrix, classes: NDArray[np.int32], k: int) -> Prepared:
    """Flip bits in the same clusters, but throw those on which a cluster disagrees: another reading of the paper."""
    rng = np.random.default_rng([0, k])
    of_row = k_member_clusters(matrix, k, rng)
    belongs = sp.csr_matrix((np.ones(len(of_row), dtype=np.int64), (of_row, np.arange(len(of_row)))))
    ones = sp.csr_matrix(belongs @ matrix.astype(np.int64))
    is_common = ones.data == np.repeat(np.bincount(of_row), np.diff(ones.indptr))
    thrown = np.where(is_common, 1, rng.integers(2, size=len(is_common))).astype(np.uint8)
    patterns = sp.csr_matrix((thrown, ones.indices, ones.indptr), shape=ones.shape)
    patterns.eliminate_zeros()
    return _flipped(matrix, sp.csc_matrix(patterns[of_row]), classes)


def _flipped(before: sp.csc_matrix, after: sp.csc_matrix, classes: NDArray[np.int32]) -> Prepared:
    changed = int((before != after).nnz)
    return Prepared(after.tocsr(), classes, np.arange(before.shape[1]), changed / float(np.prod(before.shape)))


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
    "RF, bits thrown": coin_flipping,
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
