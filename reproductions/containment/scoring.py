"""Scores of a method: AUC with the method in the fold and real test rows (honest), or of the released table (paper).

The paper prepares all rows first and then cross-validates what came out. For selections this only lets the test rows
have a say in the selection; for RF the test rows are flipped ones as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
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
    """Mean AUC in the fold and of the released table, and what the method kept of all rows.

    ``deviation``: of the paper's way over several runs of a randomized method, of which the others are means.
    """

    honest: float
    as_in_paper: float
    n_columns: int
    flipped_fraction: float | None
    deviation: float | None = None


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
    """Solve the primal problem: the dual one does not converge on equal rows of both classes, which RF makes."""
    return LinearSVC(C=penalty, loss="squared_hinge", dual=False, random_state=SEED, max_iter=20_000).fit(
        matrix.astype(float), classes
    )


def keyword_spread(model: LatentDirichletAllocation, matrix: sp.csr_matrix) -> NDArray[np.float64]:
    """Entropy of "the distribution of entity u's keywords across different topics" (Equation 5).

    That distribution is p(topic | keyword), the mean over the row's keywords; a keyword's topics are the shares of its
    occurrences that the model gives each. A row without keywords counts as concentrated.
    """
    of_keyword = (model.components_ / model.components_.sum(axis=0)).T
    n_keywords = np.asarray(matrix.sum(axis=1)).ravel()
    topics = (matrix.astype(float) @ of_keyword) / np.maximum(n_keywords, 1)[:, None]
    return _entropy(topics)


def document_spread(model: LatentDirichletAllocation, matrix: sp.csr_matrix) -> NDArray[np.float64]:
    """Entropy of the row's own topics, as the model infers them: our earlier reading. Longer rows look sharper."""
    return _entropy(model.transform(matrix.astype(float)))


def _entropy(topics: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(-(topics * np.log(np.maximum(topics, 1e-12))).sum(axis=1), dtype=np.float64)


Spread = Callable[[LatentDirichletAllocation, sp.csr_matrix], NDArray[np.float64]]


def topic_auc(
    train: Prepared, matrix: sp.csr_matrix, classes: NDArray[np.int32], spread: Spread = keyword_spread
) -> float:
    """AUC on some rows of the paper's entity classifier: how widely a row's keywords spread over topics.

    The topics are learned from what a method made of its rows, without classes.
    """
    if not len(train.columns) or not train.matrix.nnz:
        return 0.5
    model = LatentDirichletAllocation(N_TOPICS, random_state=SEED, max_iter=30).fit(train.matrix.astype(float))
    return float(roc_auc_score(classes, spread(model, matrix[:, train.columns])))


def svm_auc_of(released: Prepared, n_folds: int = 5) -> float:
    """Cross-validate a released table by the SVM: the paper's way."""
    columns = np.arange(released.matrix.shape[1])
    parts = folds(n_folds).split(released.matrix, released.classes)
    return float(
        np.mean(
            [
                svm_auc(
                    Prepared(released.matrix[train], released.classes[train], columns),
                    released.matrix[test],
                    released.classes[test],
                )
                for train, test in parts
            ]
        )
    )


def topic_auc_of(released: Prepared, spread: Spread = keyword_spread) -> float:
    """AUC of the entity classifier on a released table; it sees no classes, so that nothing is held out."""
    own = Prepared(released.matrix, released.classes, np.arange(released.matrix.shape[1]))
    return topic_auc(own, released.matrix, released.classes, spread)


@dataclass(frozen=True)
class Classifier:
    """How a table is scored: the AUC on test rows of what was learned from training rows, and that of a whole table."""

    on_test_rows: Callable[[Prepared, sp.csr_matrix, NDArray[np.int32]], float]
    of_release: Callable[[Prepared], float]


SVM = Classifier(svm_auc, svm_auc_of)
TOPICS = Classifier(topic_auc, topic_auc_of)
DOCUMENT_TOPICS = Classifier(partial(topic_auc, spread=document_spread), partial(topic_auc_of, spread=document_spread))


def score(data: DataSet, methods: Sequence[Method], k: int, classifier: Classifier = SVM, n_folds: int = 5) -> Score:
    """Score a method, or the runs of a randomized one; of these the first is scored in the fold."""
    rows = data.matrix.tocsr()
    honest = []
    for train, test in folds(n_folds).split(rows, data.classes):
        inside = methods[0](sp.csc_matrix(rows[train]), data.classes[train], k)
        honest.append(classifier.on_test_rows(inside, rows[test], data.classes[test]))
    released = [method(data.matrix, data.classes, k) for method in methods]
    paper = [classifier.of_release(one) for one in released]
    flipped = [one.flipped_fraction for one in released if one.flipped_fraction is not None]
    return Score(
        float(np.mean(honest)),
        float(np.mean(paper)),
        len(released[0].columns),
        float(np.mean(flipped)) if flipped else None,
        float(np.std(paper)) if len(paper) > 1 else None,
    )


def folds(n_folds: int = 5) -> StratifiedKFold:
    """Divide the rows as every score here does."""
    return StratifiedKFold(n_folds, shuffle=True, random_state=SEED)
