"""Scores of a method: AUC over five folds, with the selection in the fold (honest) or on all rows (the paper's way)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.svm import LinearSVC

from reproductions.containment.data import DataSet

PENALTIES = (0.01, 0.1, 1.0, 10.0)
N_TOPICS = 20
SEED = 17


@dataclass(frozen=True)
class Prepared:
    """What a method makes of training rows: the rows to learn from, and the columns that test rows keep."""

    matrix: sp.csr_matrix
    classes: NDArray[np.int32]
    columns: NDArray[np.intp]
    flipped_fraction: float | None = None


Method = Callable[[sp.csc_matrix, NDArray[np.int32], int], Prepared]


@dataclass(frozen=True)
class Score:
    """Mean AUC in the fold and on all rows, and what the method kept of all rows."""

    honest: float
    as_in_paper: float
    n_columns: int
    flipped_fraction: float | None


def svm_auc(train: Prepared, matrix: sp.csr_matrix, classes: NDArray[np.int32]) -> float:
    """AUC on test rows of a linear SVM with squared hinge loss, C tuned on a fifth of the training rows."""
    if not len(train.columns) or len(np.unique(train.classes)) < 2:
        return 0.5
    fit, check, fit_classes, check_classes = train_test_split(
        train.matrix, train.classes, test_size=0.2, stratify=train.classes, random_state=SEED
    )

    def auc_with(penalty: float) -> float:
        return float(roc_auc_score(check_classes, _svm(penalty, fit, fit_classes).decision_function(check)))

    model = _svm(max(PENALTIES, key=auc_with), train.matrix, train.classes)
    return float(roc_auc_score(classes, model.decision_function(matrix[:, train.columns])))


def _svm(penalty: float, matrix: sp.csr_matrix, classes: NDArray[np.int32]) -> Any:
    return LinearSVC(C=penalty, loss="squared_hinge", dual="auto", random_state=SEED, max_iter=20_000).fit(
        matrix.astype(float), classes
    )


def topic_auc(train: Prepared, matrix: sp.csr_matrix, classes: NDArray[np.int32]) -> float:
    """AUC on some rows of the paper's entity classifier (Equation 5): the entropy of a row's topics, without classes.

    The topics are learned from what a method made of its rows.
    """
    if not len(train.columns):
        return 0.5
    model = LatentDirichletAllocation(N_TOPICS, random_state=SEED, max_iter=30).fit(train.matrix.astype(float))
    topics = model.transform(matrix[:, train.columns].astype(float))
    entropy = -(topics * np.log(np.maximum(topics, 1e-12))).sum(axis=1)
    return float(roc_auc_score(classes, entropy))


def topic_score(data: DataSet, method: Method, k: int, n_folds: int = 5) -> Score:
    """Score a method by the entity classifier: features and topics of the training rows on test rows, or of all rows.

    On all rows, which is the paper's way, the rows that are scored are those that the method made (flipped ones of RF).
    """
    rows = data.matrix.tocsr()
    everything = method(data.matrix, data.classes, k)
    own = Prepared(everything.matrix, everything.classes, np.arange(everything.matrix.shape[1]))
    honest = []
    for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=SEED).split(rows, data.classes):
        inside = method(sp.csc_matrix(rows[train]), data.classes[train], k)
        honest.append(topic_auc(inside, rows[test], data.classes[test]))
    paper = topic_auc(own, everything.matrix, everything.classes)
    return Score(float(np.mean(honest)), paper, len(everything.columns), everything.flipped_fraction)


def score(data: DataSet, method: Method, k: int, n_folds: int = 5) -> Score:
    """Score a method on a data set by the SVM; the paper's way prepares all rows before they are divided."""
    rows = data.matrix.tocsr()
    everything = method(data.matrix, data.classes, k)
    honest, paper = [], []
    for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=SEED).split(rows, data.classes):
        inside = method(sp.csc_matrix(rows[train]), data.classes[train], k)
        honest.append(svm_auc(inside, rows[test], data.classes[test]))
        if everything.matrix.shape[0] == rows.shape[0]:
            outside = Prepared(everything.matrix[train], everything.classes[train], everything.columns)
            paper.append(svm_auc(outside, rows[test], data.classes[test]))
    return Score(
        float(np.mean(honest)),
        float(np.mean(paper)) if paper else float("nan"),
        len(everything.columns),
        everything.flipped_fraction,
    )
